//! The report of a study: tables in the form of the study that is rebuilt, its published figures
//! beside today's, plots, and one plain sentence. All from the records and the plan alone.
//!
//! Only runs that ended well count in figures; the others are listed with their reason.

mod across;
mod caveats;
pub(crate) mod compare;
mod facts;
mod figure;
mod flow_table;
pub(crate) mod grid;
pub(crate) mod headline;
mod limit;
mod past;
mod path_links;
pub(crate) mod plots;
pub(crate) mod questions;
pub(crate) mod sections;
pub(crate) mod sentence;
pub(crate) mod spoilt;
mod table_csv;

use linerate_core::record::{MeasurementEnd, MetricId, Record};
use linerate_core::study::{PublishedFigures, StudyPlan, TestKind};

pub use sentence::summary_sentence;

use crate::document::{Block, Document, ReportSection};
use crate::{device, number, words};
use compare::TopologyComparison;
use grid::Grid;
use questions::QuestionAnswers;
use spoilt::LimitedRuns;

/// The metrics that a report on paths defines.
const METRICS: [MetricId; 7] = [
    MetricId::Goodput,
    MetricId::Rtt,
    MetricId::Pps,
    MetricId::PpsPaper,
    MetricId::Sent,
    MetricId::Received,
    MetricId::LossRatio,
];

/// Everything from which the report of a study is made.
#[derive(Clone, Debug)]
pub struct StudyResults {
    /// The plan of the study.
    pub plan: StudyPlan,
    /// Identifier of the study run.
    pub run: String,
    /// The run's records in any order; records without a cell of this study are left out.
    pub records: Vec<Record>,
    /// Published figures of the study that is repeated; empty where there are none.
    pub published: PublishedFigures,
}

/// The whole report: a section for each topology, devices, the comparison, failed runs, caveats,
/// answers.
pub fn document(results: &StudyResults) -> Document {
    let grid = Grid::new(results);
    let compared = TopologyComparison::new(&grid);
    let answered = QuestionAnswers::new(results, &grid);
    let suite = grid.bench_suite();
    let mut sections: Vec<ReportSection> =
        grid.path_topologies().map(|row| sections::of_topology(row, &grid.past)).collect();
    sections.extend(device::sections(&suite, grid.routers));
    let mut figures = plots::collect_plots(&grid, &compared).into_iter().map(Block::Figure);
    let main = ReportSection::after_blank_line("", figures.next()).leading();
    let rest = ReportSection::after_blank_line("", figures).leading();
    let compares = sections::comparison(&grid, &compared).map(ReportSection::leading);
    sections.extend([main].into_iter().chain(compares).chain([rest]));
    sections.extend(sections::unfinished(&grid).map(ReportSection::leading));
    sections.extend(caveats::section(&grid));
    sections.extend(answered.published(&grid));
    sections.push(ReportSection::from_tables("The run", [], head_lines(results, &grid)));
    sections.extend(answered.section(&grid).map(ReportSection::leading));
    let devices: &[MetricId] = if suite.is_empty() { &[] } else { device::METRICS };
    let plan = linerate_core::tree::to_json_pretty(&results.plan);
    let tool = grid.records.first().map(|record| &record.tool);
    Document {
        title: results.plan.title.clone(),
        head: vec![Block::Remarks(opening(results, &grid))],
        limits: LimitedRuns::from_runs(grid.well.iter().copied())
            .before_figures()
            .into_iter()
            .collect(),
        tiles: headline::study_tiles(&grid, &compared, &answered),
        sections,
        sentence: sentence::grid_sentence(&grid, &answered),
        metrics: [&METRICS, devices].concat(),
        plan: Some(plan.unwrap_or_else(|error| error.to_string())),
        foot: tool.map_or_else(String::new, |tool| format!("{} {}", tool.name, tool.version)),
        ..Document::default()
    }
}

/// One long table: study, run, topology, test, parameter, repetition, metric, stat, value, unit.
/// Values are in stored units; published figures follow with the run `published`.
pub fn csv(results: &StudyResults) -> String {
    table_csv::long_table(results, &Grid::new(results))
}

/// Purpose of the study, and number of measurements with their dates, a line each.
fn opening(results: &StudyResults, grid: &Grid<'_>) -> Vec<String> {
    let records = &grid.records;
    let planned = words::counted(results.plan.cell_plans().len() as u64, "measurement");
    let mut line = format!("{} of {planned} ended well", grid.well.len());
    let started = records.iter().map(|record| record.started_at).min();
    line.extend(started.map(|at| format!(", started {at}")));
    let ns: u64 = records.iter().map(|record| record.duration_ns).sum();
    line.push_str(&format!(", measuring for {}", number::seconds(ns as f64)));
    results.plan.purpose.iter().cloned().chain([line]).collect()
}

/// The repeated study, the run's identifier, the tests and the hosts, a line each.
fn head_lines(results: &StudyResults, grid: &Grid<'_>) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(results.plan.source.as_ref().map(|source| format!("rebuilds {source}")));
    out.push(format!("run {}", results.run));
    out.extend(tests_line(&results.plan));
    out.extend(host_line(grid));
    out
}

/// The tests that the plan runs on each topology, in one line.
fn tests_line(plan: &StudyPlan) -> Option<String> {
    let mut each: Vec<String> = plan
        .tests
        .iter()
        .map(|test| match &test.kind {
            TestKind::Ping { count, .. } => format!("flood ping, {count} probes of each size"),
            TestKind::Tcp(tcp) => {
                let runs = words::counted(test.repetitions.into(), "run");
                let seconds = tcp.seconds.map(|seconds| number::seconds(seconds * 1e9));
                let each = seconds.or_else(|| tcp.transfer().map(number::amount));
                let each = each.map(|each| format!(" of {each}")).unwrap_or_default();
                let control = match test.parameter().key {
                    "congestion_controls" => String::new(),
                    _ => {
                        let named = tcp.base.congestion_control.as_deref();
                        format!(", congestion control {}", named.unwrap_or("as the host has it"))
                    }
                };
                format!("TCP by {}, {runs}{each} each{control}", test.parameter().name)
            }
            TestKind::Bench(bench) => {
                let names = bench.measures.iter().map(|measure| measure.0.name());
                format!("raw frames by length: {}", names.collect::<Vec<_>>().join(", "))
            }
            TestKind::Udp(udp) => {
                let runs = words::counted(test.repetitions.into(), "run");
                let each = number::seconds(udp.seconds * 1e9);
                format!("UDP by {}, {runs} of {each} each", test.parameter().name)
            }
            TestKind::Simulate(simulate) => {
                let name = test.parameter().name;
                let runs = words::counted(test.repetitions.into(), "run");
                let stack = simulate.tcp.name();
                format!("TCP of {stack} simulated in virtual time, {runs} by {name}")
            }
        })
        .collect();
    // Tests that differ in their frames or devices alone are asked for in the same words.
    each.dedup();
    (!each.is_empty()).then(|| format!("asked: {}", each.join("; ")))
}

/// The measuring machine, from the first record that describes it.
fn host_line(grid: &Grid<'_>) -> Option<String> {
    grid.records.iter().find_map(|record| {
        // The interface changes with the topology; the machine does not.
        let machine = MeasurementEnd { interface: None, ..record.ends.first()?.clone() };
        let about = words::end_in_words(&machine);
        (machine.kernel.is_some() && !about.is_empty()).then(|| format!("on {about}"))
    })
}
