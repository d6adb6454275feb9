//! What is about to be measured, every default filled in, and how long it takes.

use std::fmt::Write as _;

use linerate_core::device::time_needed::longest_ns;
use linerate_core::record::{BenchGoal, BenchPlan, BenchWay, Plan};
use linerate_core::study::{CellPlan, Estimator, StudyPlan};
use linerate_core::units::print_span;

use crate::columns::spoken;

/// Lines for the reader before the first measurement; `left` are the cells that are not measured.
pub(super) fn plan_summary(plan: &StudyPlan, left: &[CellPlan]) -> String {
    let mut out = format!("{}\n", plan.title);
    let first = left.iter().find_map(|cell| match &cell.plan {
        Plan::Bench(plan) => Some(plan),
        _ => None,
    });
    if let Some(first) = first {
        let _ = writeln!(out, "  tests    {}", describe_tests(first));
        let _ = writeln!(out, "  frames   {}", frames(first, left));
        if !first.goals.is_empty() {
            let goals: Vec<String> = first.goals.iter().map(describe_goal).collect();
            let _ = writeln!(out, "  goals    {}", goals.join("\n           "));
        }
        let _ = writeln!(out, "  trials   {}", describe_times(first));
    }
    let of = match plan.cell_plans().len() - left.len() {
        0 => String::new(),
        done => format!(", {done} measured before"),
    };
    let laboratories = StudyPlan::laboratories(left.iter());
    let expected = Estimator::default().remaining_ns(left.iter(), laboratories);
    let count = match left.len() {
        1 => "1 measurement".to_owned(),
        some => format!("{some} measurements"),
    };
    let _ = write!(out, "  in all   {count}{of}, about {}", spoken(expected));
    let longest: u64 = left.iter().map(longest_more_ns).sum();
    if longest > 0 {
        let _ = write!(out, "; at most {} if trials are invalid", spoken(expected + longest));
    }
    if expected > LONG_NS && !plan.title.contains("quick") {
        out.push_str("; --quick takes a look in less");
    }
    out
}

/// Time that a benchmark may take beyond the expected one.
fn longest_more_ns(cell: &CellPlan) -> u64 {
    match &cell.plan {
        Plan::Bench(plan) => longest_ns(plan).saturating_sub(plan.expected_ns()),
        _ => 0,
    }
}

/// Expected time of a benchmark from which the reader is told of `--quick`.
const LONG_NS: u64 = 600_000_000_000;

fn describe_tests(plan: &BenchPlan) -> String {
    let names: Vec<&str> = plan.tests.iter().map(|test| test.name()).collect();
    let way = match plan.way {
        BenchWay::Single => "",
        BenchWay::Dual => ", both ways at once",
        BenchWay::Mesh => ", every port to every other",
    };
    names.join(", ") + way
}

fn frames(plan: &BenchPlan, left: &[CellPlan]) -> String {
    let mut sizes: Vec<u64> = Vec::new();
    for cell in left {
        if !sizes.contains(&cell.cell.parameter) {
            sizes.push(cell.cell.parameter);
        }
    }
    let sizes = match &plan.frames.mix {
        Some(mix) => mix.clone(),
        None => sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(", "),
    };
    let frames = &plan.frames;
    let flows = match frames.flows {
        1 => "1 flow".to_owned(),
        some => format!("{some} flows"),
    };
    let tags: String = frames.vlans.iter().map(|tag| format!(", VLAN {tag}")).collect();
    let burst =
        if frames.burst > 1 { format!(", {} at a time", frames.burst) } else { String::new() };
    format!("{} of {sizes} bytes, {flows}{tags}{burst}, seed {}", frames.protocol, plan.seed)
}

/// `strict: trials of 60s, 60s in all, loss 0, exceed 0 %, width 0.5 %`.
fn describe_goal(goal: &BenchGoal) -> String {
    let span = |ns: u64| print_span(std::time::Duration::from_nanos(ns));
    format!(
        "{}: trials of {}, {} at a load, loss {}, exceed {} %, width {} %",
        goal.name,
        span(goal.final_trial_ns),
        span(goal.duration_sum_ns),
        goal.loss_ratio,
        goal.exceed_ratio * 100.0,
        goal.width * 100.0
    )
}

fn describe_times(plan: &BenchPlan) -> String {
    let span = |ns: u64| print_span(std::time::Duration::from_nanos(ns));
    let times = &plan.times;
    format!(
        "{}, of latency {}; before each {}, after it {} and {}; {} repetitions",
        span(times.trial_ns),
        span(times.latency_ns),
        span(times.before_ns),
        span(times.after_ns),
        span(times.settle_ns),
        times.repetitions
    )
}
