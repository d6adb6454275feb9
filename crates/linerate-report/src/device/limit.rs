//! A benchmark's result and what limits it, in words.

use linerate_core::explain::DeviceLimit;
pub(crate) use linerate_core::explain::{stalls_part, usual_goal as usual};
use linerate_core::record::{BenchPlan, BenchResult, GoalFound, Record};

use super::words;
use crate::number;

/// A forwarding rate under flood below this share of the throughput is called a collapse.
const COLLAPSE_BELOW: f64 = 0.9;

/// The goal whose rate counts as the rate without loss: strict, else verified, else the usual one.
pub(crate) fn lossless(result: &BenchResult) -> Option<&GoalFound> {
    let named =
        |name| result.find_goal(name).filter(|goal: &&GoalFound| goal.throughput_fps().is_some());
    named("strict").or_else(|| named("verified")).or_else(|| usual(result))
}

/// The throughput in frames per second; without one, the rate under flood or the reason why there
/// is none.
pub(crate) fn result(record: &Record, plan: &BenchPlan) -> String {
    let Some(result) = &record.bench else { return "nothing was measured".to_owned() };
    let frames = match &plan.frames.mix {
        Some(mix) => format!("frames of the mix {mix}"),
        None => format!("{}-byte frames", plan.frames.size_bytes),
    };
    let each = if words::senders(plan) > 1 { " on each input" } else { "" };
    match usual(result).and_then(GoalFound::throughput_fps) {
        Some(fps) if DeviceLimit::from_result(result) == Some(DeviceLimit::Tester) => {
            format!("{} {frames} per second or more{each}", words::frames(fps))
        }
        Some(fps) => format!("{} {frames} per second{each}", words::frames(fps)),
        None => without_goal(result, &frames),
    }
}

/// The figures that show the limit: stalls, the tester's rate, a collapse under flood. Empty where
/// there are none.
pub(crate) fn evidence(record: &Record, plan: &BenchPlan, limit: Option<DeviceLimit>) -> String {
    let Some(result) = &record.bench else { return String::new() };
    let said = limit.map(|limit| match limit {
        DeviceLimit::Stalls => stalls_evidence(result),
        DeviceLimit::Medium => "all that it carries".to_owned(),
        DeviceLimit::Tester => {
            format!("the tester alone does no more than {}", tester_rate(result))
        }
        DeviceLimit::Device => String::new(),
    });
    let fps = usual(result).and_then(GoalFound::throughput_fps);
    let collapse = fps.and_then(|fps| flood_collapse(result, plan, fps));
    let parts = said.into_iter().chain(collapse).filter(|part| !part.is_empty());
    parts.collect::<Vec<String>>().join(", ")
}

fn stalls_evidence(result: &BenchResult) -> String {
    let strict = stalls_part(result).map_or(0.0, |(strict, _)| strict);
    let often = result.stalls_per_sec.as_ref().map_or_else(String::new, |stalls| {
        format!(", {} per second", number::trimmed(&number::significant(stalls.value, 3)))
    });
    let strict = match strict {
        0.0 => "no load without a loss".to_owned(),
        fps => format!("{} without a single loss", words::frames(fps)),
    };
    format!("it stalls{often}: {strict}")
}

fn tester_rate(result: &BenchResult) -> String {
    let own = result.tester.as_ref().map(|tester| tester.frames_per_sec);
    own.map_or_else(|| "that".to_owned(), |fps| format!("{} per second", words::frames(fps)))
}

/// Forwarding rate under flood, where it is below `COLLAPSE_BELOW` of the throughput.
fn flood_collapse(result: &BenchResult, plan: &BenchPlan, fps: f64) -> Option<String> {
    let senders = words::senders(plan) as f64;
    let flood = result.flood.as_ref().map(|point| point.forwarded_fps / senders);
    let collapsed = flood.filter(|flood| *flood < fps * COLLAPSE_BELOW)?;
    Some(format!("flooded it passes only {}", words::frames(collapsed)))
}

/// Result of a record without a throughput: no load passed, the rate under flood, or nothing
/// measured.
fn without_goal(result: &BenchResult, frames: &str) -> String {
    if !result.goals.is_empty() {
        return format!("no load of {frames} passed as any goal asks");
    }
    if let Some(flood) = &result.flood {
        let (out, offered) = (words::frames(flood.forwarded_fps), words::frames(flood.offered_fps));
        return format!("{out} of {offered} {frames} per second were forwarded");
    }
    match result.load_points().count() + result.trials.len() {
        0 => "nothing was measured".to_owned(),
        _ => "no throughput was asked for".to_owned(),
    }
}
