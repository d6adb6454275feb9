//! A benchmark of a device as text.

use linerate_core::record::{BenchPlan, Record};

use super::{facts, own_limits, tail};
use crate::device::{limit, single, words as told};
use crate::study::section_text;
use crate::{escape, words};

/// Title, facts, figures, caveats, one plain sentence.
pub(super) fn summary(record: &Record, plan: &BenchPlan, width: Option<usize>) -> String {
    let mut out = escape::line(&title(plan));
    out.push('\n');
    out.push_str(&facts(record));
    let result = record.bench.as_deref();
    for line in result.map(|result| single::facts(plan, result)).unwrap_or_default() {
        out.push_str(&words::remark(&escape::line(&line), width));
    }
    out.push_str(&own_limits(record));
    for section in result.map(|result| single::sections(plan, result)).unwrap_or_default() {
        out.push_str(&section_text(&section, width));
    }
    out.push('\n');
    out.push_str(&tail(record));
    out
}

/// What was measured, in a line.
pub(crate) fn title(plan: &BenchPlan) -> String {
    let ports: Vec<_> = plan.ports.iter().map(|port| port.interface.as_str()).collect();
    let frames = &plan.frames;
    let size = match &frames.mix {
        Some(mix) => format!("the mix {mix}"),
        None => format!("{} bytes", frames.size_bytes),
    };
    let mut title = format!(
        "bench of {}: {} frames of {size}, {}",
        ports.join(", "),
        told::protocol(frames.protocol),
        told::way(plan.way)
    );
    if frames.flows > 1 {
        title.push_str(&format!(", {} flows", frames.flows));
    }
    if frames.burst > 1 {
        title.push_str(&format!(", {} back to back", frames.burst));
    }
    title
}

/// One plain sentence on what the record says.
pub(crate) fn sentence(record: &Record, plan: &BenchPlan) -> String {
    limit::sentence(record, plan)
}
