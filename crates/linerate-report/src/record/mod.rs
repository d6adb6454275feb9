//! Documents of single results.
//!
//! A kind gives title, figures and sentence; what all kinds have in common is added here: when and
//! where it was measured, caveats, the failure, the plan.

mod brief;
mod by_size;
mod datagrams;
pub(crate) mod delay;
mod device;
mod goodput;
mod page_datagrams;
mod ping;
mod ping_plots;
mod ping_split;
mod pings;
mod search;
mod simulate;
mod stamp;
mod streams;
mod tcp;
mod tcp_means;
pub(crate) mod trace;
mod udp;

use linerate_core::record::{Caveat, Plan, Record, RecordStatus};

use crate::document::{Block, Document, Fact};
use crate::headline::Headline;
use crate::{compare, emulated, examination, number, words};

pub use pings::targets_document as table_of_pings;

/// The document of any record.
pub fn document(record: &Record) -> Document {
    let kind = match &record.plan {
        Plan::Tcp(plan) => tcp::document(record, plan),
        Plan::Ping(plan) => ping::document(record, plan),
        Plan::Udp(plan) => udp::document(record, plan),
        Plan::Simulate(plan) => simulate::document(record, plan),
        Plan::Bench(plan) => device::document(record, plan),
        Plan::Test(_) => examination::document(record),
        Plan::Compare(_) => compare::document(record),
        Plan::Trace(plan) => trace::document(record, plan),
    };
    let (limits, notes) = match &record.plan {
        Plan::Test(_) => examination::cautions(record),
        _ => {
            let lines = |all: Vec<&Caveat>| all.into_iter().map(ToString::to_string).collect();
            let (own, others) = words::caveats(record);
            (lines(own), lines(others))
        }
    };
    let how = match record.status {
        RecordStatus::Partial => "ended early",
        RecordStatus::Interrupted => "interrupted",
        RecordStatus::Ok | RecordStatus::Error => "failed",
    };
    let tool = format!("{} {}", record.tool.name, record.tool.version);
    let name = record.name.as_ref().map_or_else(String::new, |name| format!(", named {name}"));
    let plan =
        linerate_core::tree::to_json_pretty(&record.plan).unwrap_or_else(|error| error.to_string());
    let headline = Headline::from_record(record);
    let (mut sections, mut metrics) = (kind.sections, kind.metrics);
    if let Some(section) = delay::section(record) {
        sections.push(section);
        metrics.extend(delay::METRICS);
    }
    if let Some(section) = page_datagrams::section(record) {
        sections.push(section);
        metrics.extend(page_datagrams::METRICS);
    }
    Document {
        sentence: headline.summary_line(),
        headline: Some(headline),
        brief: brief::lines_under_headline(record),
        head: head_blocks(record, &tool).into_iter().chain(kind.head).collect(),
        limits,
        notes,
        failure: record.failure.as_ref().map(|failure| (how, failure.to_string())),
        plan: Some(plan),
        foot: format!("{tool}, record {}{name}", record.id),
        sections,
        metrics,
        ..kind
    }
}

/// Start, length, program, ends, emulated paths.
fn head_blocks(record: &Record, tool: &str) -> [Block; 2] {
    let span = number::seconds(record.duration_ns as f64);
    let started = format!("started {}, took {span}, {tool}", record.started_at);
    let ends = record.ends.iter().map(|end| (end, words::end_in_words(end)));
    let ends = ends.filter(|(_, about)| !about.is_empty());
    let ends = ends.map(|(end, about)| Fact::new(end.role.to_string(), 6, about));
    let first = record.ends.first();
    let calibration = first.and_then(|end| Some((end.calibration.as_ref()?, end.clock_tick_ns)));
    let calibration = calibration
        .map(|(found, tick_ns)| Fact::new("host", 6, words::calibration(found, tick_ns)));
    let facts = ends.chain(calibration).chain(emulated::path_facts(&record.paths)).collect();
    [Block::Lines(vec![started]), Block::Facts(facts)]
}
