//! Benchmarks of devices: one record in full, and the records of a run as tables in the form of
//! Bradner's of 1990 and of RFC 2544, with their diagrams.
//!
//! All from the records and the published table alone. A record is one frame length on one state
//! of a device; records are told by their plan, not by the study that they are of.

mod blocking;
mod bradner;
mod contract;
mod filters;
pub(crate) mod headline;
pub(crate) mod limit;
mod loads;
mod plots;
mod rfc2544;
pub(crate) mod single;
pub(crate) mod suite;
mod trials;
pub(crate) mod words;

use linerate_core::record::{MetricId, Plan, Record};
use linerate_core::study::PublishedRouter;

pub use trials::trials_csv;

use crate::document::{Block, Document, ReportFigure, ReportSection};
use suite::Suite;

/// The metrics that a report on benchmarks defines.
pub(crate) const METRICS: &[MetricId] = &[
    MetricId::TheoreticalFrames,
    MetricId::TesterFrames,
    MetricId::TesterLatency,
    MetricId::ThroughputStrict,
    MetricId::ThroughputTypical,
    MetricId::ThroughputVerified,
    MetricId::FloodOffered,
    MetricId::FloodForwarded,
    MetricId::ForwardingRateMax,
    MetricId::Stalls,
    MetricId::FrameLatency,
    MetricId::FramePdv,
    MetricId::BurstFrames,
    MetricId::BurstBufferTime,
    MetricId::Recovery,
    MetricId::ResetByLoss,
    MetricId::ResetByStamps,
    MetricId::AddressesCached,
    MetricId::AddressRate,
    MetricId::BlockedLoss,
    MetricId::SoakLoss,
    MetricId::SoakErroredSeconds,
    MetricId::ContractCir,
    MetricId::ContractCbs,
];

/// Several records of benchmarks as one report: tables in Bradner's form and today's, then those of
/// RFC 2544. The devices of 1990 stand beside today's where `published` has them. Empty without a
/// benchmark.
pub fn document(records: &[Record], published: &[PublishedRouter]) -> Document {
    let suite = Suite::new(records, suite::plain_name);
    let figures = figures(&suite).into_iter().map(Block::Figure);
    let figures = ReportSection::after_blank_line("", figures).leading();
    Document {
        sections: std::iter::once(figures).chain(sections(&suite, published)).collect(),
        metrics: METRICS.to_vec(),
        ..Document::default()
    }
}

/// The sections of all groups, then the cost of a filter, the devices of 1990, and the trials that
/// do not count.
pub(crate) fn sections(suite: &Suite<'_>, published: &[PublishedRouter]) -> Vec<ReportSection> {
    let mut out = Vec::new();
    for group in &suite.groups {
        out.push(bradner::section(group));
        out.extend(filters::section(group));
    }
    out.extend(bradner::beside_1990(suite, published));
    out.extend(suite.groups.iter().flat_map(rfc2544::sections));
    let cases = suite.groups.iter().flat_map(|group| &group.cases);
    out.extend(single::invalid_trials(cases.flat_map(|case| &case.result.trials)));
    out
}

/// The diagrams of all groups.
pub(crate) fn figures(suite: &Suite<'_>) -> Vec<ReportFigure> {
    let groups = suite.groups.iter().enumerate();
    groups.flat_map(|(number, group)| plots::group_figures(group, number)).collect()
}

/// True if the record is of a benchmark and has its result.
pub fn is_bench(record: &Record) -> bool {
    matches!(record.plan, Plan::Bench(_)) && record.bench.is_some()
}
