//! Pages of benchmarks: that of one record, and that of several.

use linerate_core::record::{BenchPlan, MetricId, Record};

use super::page;
use super::study::{figure, section};
use crate::device::suite::{Suite, plain_name};
use crate::device::{self, single, words};
use crate::number::{self, or_dash};
use crate::study::Plot;
use crate::study::sections::Section;

/// The metrics that the pages show.
pub(super) const METRICS: &[MetricId] = &[
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

/// The figures of one record in large type.
pub(super) fn tiles(record: &Record) -> Vec<[String; 3]> {
    let Some(result) = &record.bench else { return Vec::new() };
    let mut tiles = Vec::new();
    for goal in &result.goals {
        let fps = goal.throughput_fps();
        let share = fps.zip(result.theoretical_fps).map(|(fps, of)| number::percent(fps / of));
        let past = match (share, goal.tester_limited) {
            (_, true) => "tester-limited".to_owned(),
            (Some(share), false) => format!("{share} of the theoretical rate"),
            (None, false) => String::new(),
        };
        tiles.push([or_dash(fps, words::frames), format!("frames/s, {}", goal.goal), past]);
    }
    tiles.extend(result.latency.first().map(|found| {
        let p99 = format!("99 % below {}", words::time(found.p99_ns));
        [words::time(found.p50_ns), "median latency".to_owned(), p99]
    }));
    tiles.extend(result.back_to_back.as_ref().map(|found| {
        let frames = single::burst(found.mean_frames);
        [frames, "frames back to back".to_owned(), String::new()]
    }));
    tiles
}

/// The body of one record's page: facts, diagrams, all sections.
pub(super) fn body(record: &Record, plan: &BenchPlan) -> String {
    let Some(result) = &record.bench else { return String::new() };
    let mut out = page::list(&single::facts(plan, result));
    out.push_str(&figures(&device::plots(&Suite::new([record], plain_name))));
    for each in single::sections(plan, result) {
        out.push_str(&section(&each, "h2"));
    }
    out
}

/// Diagrams in columns.
fn figures(plots: &[Plot]) -> String {
    let each: String = plots.iter().map(figure).collect();
    format!("<div class=\"plots\">\n{each}</div>\n")
}

/// The sections and diagrams of benchmarks within a study's page.
pub(super) fn within(sections: &[Section], plots: &[Plot]) -> String {
    let mut out = figures(plots);
    sections.iter().for_each(|each| out.push_str(&section(each, "h2")));
    out
}

/// The page of several records.
pub(crate) fn pages(
    title: &str,
    records: &[Record],
    sections: &[Section],
    plots: &[Plot],
) -> String {
    let mut out = page::title(title);
    let started = records.iter().map(|record| record.started_at).min();
    let leads: Vec<String> = started.map(|at| format!("started {at}")).into_iter().collect();
    out.push_str(&page::leads(&leads));
    out.push_str(&within(sections, plots));
    out.push_str("<h2>How it was measured</h2>\n");
    out.push_str(&page::methods(METRICS));
    let tool = records.first().map(|record| &record.tool);
    out.push_str(&tool.map_or_else(String::new, |tool| {
        format!("<footer>{} {}</footer>\n", crate::escape::xml(&tool.name), tool.version)
    }));
    page::page(title, &out)
}
