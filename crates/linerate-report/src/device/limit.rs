//! What limits a benchmark's result: the tester, the medium, stalls, or the device; in a sentence.

use linerate_core::record::{BenchPlan, BenchResult, GoalFound, Record};

use super::words;
use crate::number;

/// From this share of the theoretical rate on, the medium is the limit: RFC 8239 §2 tests at
/// 99.98 % for the tolerance of clocks, and a search ends within half a per cent.
const MEDIUM_FROM: f64 = 0.995;

/// A forwarding rate under flood below this share of the throughput is a collapse.
const COLLAPSE_BELOW: f64 = 0.9;

/// What the result is the measure of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Limit {
    /// The tester sends or counts no more.
    Tester,
    /// The medium carries no more.
    Medium,
    /// Now and then frames are lost far below what usually passes.
    Stalls,
    /// The device forwards no more.
    Device,
}

/// The goal that speaks for the throughput: typical where it is there, else the first with a rate.
pub(crate) fn usual(result: &BenchResult) -> Option<&GoalFound> {
    let found = |goal: &&GoalFound| goal.throughput_fps().is_some();
    result.goal("typical").filter(found).or_else(|| result.goals.iter().find(found))
}

/// The goal that stands for a rate without loss: strict, else verified, else the usual one.
pub(crate) fn lossless(result: &BenchResult) -> Option<&GoalFound> {
    let named =
        |name| result.goal(name).filter(|goal: &&GoalFound| goal.throughput_fps().is_some());
    named("strict").or_else(|| named("verified")).or_else(|| usual(result))
}

/// Whether strict lies below typical by more than the resolution of both searches.
pub(crate) fn stalls_part(result: &BenchResult) -> Option<(f64, f64)> {
    let (strict, typical) = (result.goal("strict")?, result.goal("typical")?);
    let apart = match (strict.upper_fps, typical.lower_fps) {
        (Some(upper), Some(lower)) => upper <= lower,
        _ => false,
    };
    let least = strict.throughput_fps().unwrap_or(0.0);
    apart.then_some((least, typical.throughput_fps()?))
}

/// What limits; `None` without a throughput.
pub(crate) fn limit(result: &BenchResult) -> Option<Limit> {
    let usual = usual(result)?;
    let fps = usual.throughput_fps()?;
    let share = result.theoretical_fps.map(|theory| fps / theory);
    Some(if stalls_part(result).is_some() {
        Limit::Stalls
    } else if share.is_some_and(|share| share >= MEDIUM_FROM) {
        Limit::Medium
    } else if usual.tester_limited {
        Limit::Tester
    } else {
        Limit::Device
    })
}

/// One plain sentence on what the record says and what limits it.
pub(crate) fn sentence(record: &Record, plan: &BenchPlan) -> String {
    let Some(result) = &record.bench else { return "Nothing was measured.".to_owned() };
    let frames = match &plan.frames.mix {
        Some(mix) => format!("frames of the mix {mix}"),
        None => format!("{}-byte frames", plan.frames.size_bytes),
    };
    let Some((limit, fps)) = limit(result).zip(usual(result).and_then(GoalFound::throughput_fps))
    else {
        return without_goal(result, &frames);
    };
    let rate = format!("{} {frames} per second", words::frames(fps));
    let each = if words::senders(plan) > 1 { " on each input" } else { "" };
    let said = match limit {
        Limit::Stalls => stalled(result, &rate, each),
        Limit::Medium => format!("The medium is the limit: {rate} pass{each}, all that it carries"),
        Limit::Tester => format!(
            "The tester is the limit: the device passes {rate} or more{each}, and the tester \
             itself does no more than {}",
            tester(result)
        ),
        Limit::Device => format!("The device is the limit: it passes {rate}{each}"),
    };
    format!("{said}{}.", collapse(result, plan, fps))
}

fn stalled(result: &BenchResult, rate: &str, each: &str) -> String {
    let strict = stalls_part(result).map_or(0.0, |(strict, _)| strict);
    let often = result.stalls_per_sec.as_ref().map_or_else(String::new, |stalls| {
        format!(", {} per second", number::trimmed(&number::significant(stalls.value, 3)))
    });
    let strict = match strict {
        0.0 => "no load without a loss".to_owned(),
        fps => format!("{} without a single loss", words::frames(fps)),
    };
    format!("Stalls are the limit{often}: usually {rate} pass{each}, but {strict}")
}

fn tester(result: &BenchResult) -> String {
    let own = result.tester.as_ref().map(|tester| tester.frames_per_sec);
    own.map_or_else(|| "that".to_owned(), |fps| format!("{} per second", words::frames(fps)))
}

/// What comes of a flood, where it is much less than what passes without one.
fn collapse(result: &BenchResult, plan: &BenchPlan, fps: f64) -> String {
    let senders = words::senders(plan) as f64;
    let flood = result.flood.as_ref().map(|point| point.forwarded_fps / senders);
    match flood.filter(|flood| *flood < fps * COLLAPSE_BELOW) {
        Some(flood) => format!("; when flooded it passes only {}", words::frames(flood)),
        None => String::new(),
    }
}

/// Where no goal was searched or reached: what else is known.
fn without_goal(result: &BenchResult, frames: &str) -> String {
    if !result.goals.is_empty() {
        return format!("No load of {frames} passed as any goal asks.");
    }
    if let Some(flood) = &result.flood {
        let (out, offered) = (words::frames(flood.forwarded_fps), words::frames(flood.offered_fps));
        return format!("Of {offered} {frames} per second {out} were forwarded.");
    }
    match result.load_points().count() + result.trials.len() {
        0 => "Nothing was measured.".to_owned(),
        _ => "What was measured is above; no throughput was asked for.".to_owned(),
    }
}
