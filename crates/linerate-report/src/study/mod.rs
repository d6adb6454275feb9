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
pub(crate) mod plots;
pub(crate) mod questions;
pub(crate) mod sections;
pub(crate) mod sentence;
mod table_csv;
mod way;

use linerate_core::record::{End, Record};
use linerate_core::study::{PublishedFigures, StudyPlan, TestKind};

pub use sentence::summary_sentence;

use crate::svg::Svg;
use crate::{escape, html, number, words};
use compare::Comparison;
use grid::Grid;
use questions::Answered;
use sections::{Section, sections, unfinished};

/// Everything that the report of a study is made of.
#[derive(Clone, Debug)]
pub struct Results {
    /// The plan that was run.
    pub plan: StudyPlan,
    /// The run's identifier.
    pub run: String,
    /// Its records in any order; those without a cell of this study are left out.
    pub records: Vec<Record>,
    /// The figures of the study that is rebuilt; empty where there is none.
    pub published: PublishedFigures,
}

/// The whole report for a terminal; lines are ended, the last one too.
pub fn text(results: &Results) -> String {
    text_within(results, None)
}

/// The whole report for a terminal of `width` columns: tables lose the columns that tell least,
/// then fold; remarks are broken earlier.
pub fn text_within(results: &Results, width: Option<usize>) -> String {
    let columns = width.map_or(words::COLUMNS, |width| width.min(words::COLUMNS));
    let grid = Grid::new(results);
    let mut out = format!("{}\n", escape::line(&results.plan.title));
    for line in facts(results, &grid) {
        out.push_str(&words::wrapped(&escape::line(&line), 2, columns));
    }
    let answered = Answered::new(results, &grid);
    for section in sections(&grid, &answered) {
        out.push_str(&section_text(&section, width));
    }
    out.push('\n');
    let sentence = sentence::of(&grid, &answered);
    out.push_str(&words::wrapped(&escape::line(&sentence), 0, columns));
    out
}

pub(crate) fn section_text(section: &Section, width: Option<usize>) -> String {
    let columns = width.map_or(words::COLUMNS, |width| width.min(words::COLUMNS));
    let mut out = format!("\n{}", words::wrapped(&escape::line(&section.title), 0, columns));
    for (index, table) in section.tables.iter().enumerate() {
        if index > 0 {
            out.push('\n');
        }
        out.push_str(&table.text_within(2, width));
    }
    for entry in &section.answers {
        out.push_str(&words::wrapped(&escape::line(&entry.ask), 2, columns));
        out.push_str(&words::wrapped(&escape::line(&entry.answer()), 4, columns));
    }
    for note in &section.notes {
        out.push_str(&words::wrapped(&escape::line(note), 2, columns));
    }
    out
}

/// The whole report as Markdown, without plots.
pub fn markdown(results: &Results) -> String {
    use crate::table::markdown_cell as safe;
    let grid = Grid::new(results);
    let mut out = format!("# {}\n\n", safe(&results.plan.title));
    let answered = Answered::new(results, &grid);
    out.push_str(&format!("{}\n\n", safe(&sentence::of(&grid, &answered))));
    for line in facts(results, &grid) {
        out.push_str(&format!("- {}\n", safe(&line)));
    }
    for section in sections(&grid, &answered) {
        out.push_str(&format!("\n## {}\n\n", safe(&section.title)));
        for table in &section.tables {
            out.push_str(&table.markdown());
            out.push('\n');
        }
        for entry in &section.answers {
            out.push_str(&format!("**{}**\n\n{}\n\n", safe(&entry.ask), safe(&entry.answer())));
        }
        for note in &section.notes {
            out.push_str(&format!("- {}\n", safe(note)));
        }
    }
    out
}

/// One tidy long table: study, run, topology, test, parameter, repetition, metric, stat, value,
/// unit. Values are in stored units; published figures follow with the run `published`.
pub fn csv(results: &Results) -> String {
    table_csv::csv(results, &Grid::new(results))
}

/// Every plot as a file of its own: name and content.
pub fn svgs(results: &Results) -> Vec<(String, String)> {
    let grid = Grid::new(results);
    let plots = plots::plots(&grid, &Comparison::new(&grid));
    plots.into_iter().flat_map(|plot| plot.panels).map(|(name, svg)| (name, svg.file())).collect()
}

/// The whole report as one HTML file without scripts or outside requests.
pub fn html(results: &Results) -> String {
    html::study::page(results)
}

/// A figure with a caption, of one panel or of several that share their axes.
#[derive(Clone, Debug)]
pub(crate) struct Plot {
    /// Heading.
    pub title: String,
    /// What to see in it, and how it was made.
    pub caption: String,
    /// File name and drawing of each panel.
    pub panels: Vec<(String, Svg)>,
}

/// What did not end well, and the caveats of what did.
pub(crate) fn unfinished_and_caveats(grid: &Grid<'_>) -> Vec<Section> {
    unfinished(grid).into_iter().chain(caveats::section(grid)).collect()
}

/// Source, purpose, when, where: one line each.
pub(crate) fn facts(results: &Results, grid: &Grid<'_>) -> Vec<String> {
    let mut out = Vec::new();
    out.extend(results.plan.source.as_ref().map(|source| format!("rebuilds {source}")));
    out.extend(results.plan.purpose.clone());
    let records = &grid.records;
    let planned = results.plan.cells().len();
    let well = grid.well.len();
    let mut line = format!(
        "run {}: {well} of {} ended well",
        results.run,
        words::counted(planned as u64, "measurement")
    );
    let started = records.iter().map(|record| record.started_at).min();
    line.extend(started.map(|at| format!(", started {at}")));
    let ns: u64 = records.iter().map(|record| record.duration_ns).sum();
    line.push_str(&format!(", measuring for {}", number::seconds(ns as f64)));
    out.push(line);
    out.extend(tests(&results.plan));
    out.extend(host(grid));
    out
}

/// What was asked of each topology: one line for all tests.
fn tests(plan: &StudyPlan) -> Option<String> {
    let each: Vec<String> = plan
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
                        let named = tcp.congestion_control.as_deref();
                        format!(", congestion control {}", named.unwrap_or("as the host has it"))
                    }
                };
                format!("TCP by {}, {runs}{each} each{control}", test.parameter().name)
            }
            TestKind::Bench(bench) => {
                let names = bench.measures.iter().map(|measure| measure.0.name());
                let names = names.collect::<Vec<_>>().join(", ");
                format!("raw frames by {}: {names}", test.parameter().name)
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
    (!each.is_empty()).then(|| format!("asked: {}", each.join("; ")))
}

/// The machine that measured, from the first record that tells of it.
fn host(grid: &Grid<'_>) -> Option<String> {
    grid.records.iter().find_map(|record| {
        // The interface changes with the topology; the machine does not.
        let machine = End { interface: None, ..record.ends.first()?.clone() };
        let about = words::end(&machine);
        (machine.kernel.is_some() && !about.is_empty()).then(|| format!("on {about}"))
    })
}
