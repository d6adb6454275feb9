//! A benchmark of a device as text.

use linerate_core::record::{BenchPlan, Record};

use super::{facts, own_limits, tail};
use crate::escape;

/// Title, facts, figures, caveats, one plain sentence.
pub(super) fn summary(record: &Record, plan: &BenchPlan, _width: Option<usize>) -> String {
    let mut out = escape::line(&title(plan));
    out.push('\n');
    out.push_str(&facts(record));
    out.push_str(&own_limits(record));
    out.push_str(&tail(record));
    out
}

/// What was measured, in a line.
pub(crate) fn title(plan: &BenchPlan) -> String {
    let ports: Vec<_> = plan.ports.iter().map(|port| port.interface.as_str()).collect();
    let frames = &plan.frames;
    format!(
        "bench of {}: {} frames of {} bytes",
        ports.join(", "),
        frames.protocol,
        frames.size_bytes
    )
}

/// One plain sentence on what the record says.
pub(crate) fn sentence(record: &Record) -> String {
    let goals = record.bench.iter().flat_map(|bench| &bench.goals);
    let found: Vec<_> = goals
        .filter_map(|goal| Some(format!("{} {:.0} frames/s", goal.goal, goal.lower_fps?)))
        .collect();
    if found.is_empty() {
        "Nothing was found.".to_owned()
    } else {
        format!("Throughput: {}.", found.join(", "))
    }
}
