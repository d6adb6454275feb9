//! The results of a study as one tidy long table.

use linerate_core::record::{MetricId, Record, Stat, Summary};
use linerate_core::study::{Answer, QuestionVerdict, Test, Unit};

use super::StudyResults;
use super::figure::by_window;
use super::grid::{Grid, TopologyRow};
use super::questions::QuestionAnswers;
use crate::csv::{bound_fields, layer_alone, rows_with_head, value_fields};

const HEAD: &str = "study,run,topology,test,parameter,repetition,metric,stat,value,unit,layer,\
    ceiling,ceiling_share,ceiling_unknown";

/// All summary rows about whole measurements, then the published figures, then the answers.
pub(crate) fn long_table(results: &StudyResults, grid: &Grid<'_>) -> String {
    let answered = QuestionAnswers::new(results, grid);
    let mut well = grid.well.clone();
    // The order of the plan, which is that of the records' start.
    well.sort_by_key(|record| (record.started_at, record.id));
    let measured = well.iter().flat_map(|record| measured(results, grid, record));
    let published = grid.topologies.iter().flat_map(|row| published(results, row));
    let answers = answered.numbered().flat_map(|(number, it)| answer(results, number, it));
    rows_with_head(HEAD, measured.chain(published).chain(answers))
}

fn measured(results: &StudyResults, grid: &Grid<'_>, record: &Record) -> Vec<Vec<String>> {
    let Some(cell) = &record.cell else { return Vec::new() };
    let row = grid.topologies.iter().find(|row| row.topology.id == cell.topology);
    let whole = record.summary.iter().filter(|row| row.flow.is_none());
    whole
        .map(|value| {
            let mut line = vec![
                cell.study.clone(),
                results.run.clone(),
                cell.topology.clone(),
                cell.test.clone(),
                cell.parameter.to_string(),
                cell.repetition.to_string(),
            ];
            line.extend(value_fields(value));
            line.extend(bounds(row, record, value));
            line
        })
        .collect()
}

/// The layer of a value, its ceiling, the share of it, what is not known. The plan's slowest link
/// goes before what the ends of the path saw.
fn bounds(row: Option<&TopologyRow<'_>>, record: &Record, value: &Summary) -> [String; 4] {
    let fields = bound_fields(record, value);
    let limit = row.and_then(|row| row.slowest_link(row.figure_of(record)?));
    match limit.filter(|_| value.metric == MetricId::Goodput && value.stat == Stat::Value) {
        Some(limit) => {
            let share = value.value / limit.payload_bps;
            let [layer, ..] = fields;
            [layer, limit.payload_bps.to_string(), share.to_string(), String::new()]
        }
        None => fields,
    }
}

/// The published figures under the names of the measured ones; they have no repetition.
fn published(results: &StudyResults, row: &TopologyRow<'_>) -> Vec<Vec<String>> {
    let line = |test: &Test, parameter: u64, summary: Summary| {
        let mut line = vec![
            results.plan.name.clone(),
            "published".to_owned(),
            row.topology.id.clone(),
            test.id.clone(),
            parameter.to_string(),
            String::new(),
        ];
        line.extend(value_fields(&summary));
        line.extend(layer_alone(&summary));
        line
    };
    let mut out = Vec::new();
    if let Some(test) = row.ping.first().map(|ping| ping.test) {
        for size in row.published.ping.iter().map(|figure| figure.payload_bytes) {
            let rtt = row.published.rtt_ns(size);
            let pps = row.published.pings_per_second(size);
            out.extend(rtt.map(|ns| {
                line(test, size.into(), Summary::from_value(MetricId::Rtt, Stat::Mean, ns))
            }));
            out.extend(pps.map(|pps| {
                line(test, size.into(), Summary::from_value(MetricId::PpsPaper, Stat::Value, pps))
            }));
        }
    }
    let by_window = row.flows.iter().map(|flow| flow.test).find(|test| by_window(test));
    if let Some(test) = by_window {
        for window in row.published.windows() {
            // Best of several runs.
            let best = row.published.throughput_bps(window);
            out.extend(best.map(|bps| {
                line(test, window, Summary::from_value(MetricId::Goodput, Stat::Max, bps))
            }));
        }
    }
    out
}

/// The answer to a question, 1 for yes and 0 for no, then its figures by name; the question's
/// number stands for the parameter. What was not answered has no row, as what was not measured.
fn answer(results: &StudyResults, number: usize, answer: &Answer<'_>) -> Vec<Vec<String>> {
    let line = |metric: &str, stat: &str, value: f64, unit: &str| {
        let mut line: Vec<String> = [&results.plan.name, &results.run, "", "question"]
            .map(|field: &str| field.to_owned())
            .into();
        line.extend([number.to_string(), String::new(), metric.to_owned(), stat.to_owned()]);
        line.extend([value.to_string(), unit.to_owned()]);
        line.extend([const { String::new() }; 4]);
        line
    };
    let verdict = match answer.verdict {
        QuestionVerdict::Yes => Some(1.0),
        QuestionVerdict::No => Some(0.0),
        QuestionVerdict::Told | QuestionVerdict::Unanswered(_) => None,
    };
    let mut out: Vec<Vec<String>> =
        verdict.map(|value| line("answer", "yes", value, "1")).into_iter().collect();
    for (name, figure) in &answer.figures {
        let Ok(figure) = figure else { continue };
        let quantity = &figure.quantity;
        let unit = match &quantity.unit {
            Unit::Rate => "bit/s",
            Unit::Time => "ns",
            Unit::Bytes => "bytes",
            Unit::Share | Unit::Times | Unit::Number => "1",
            Unit::Count(unit) => unit,
        };
        match quantity.single_value() {
            Some(value) => out.push(line(name, "figure", value, unit)),
            None => {
                // An end that was not printed is absent.
                let ends = [("low", quantity.low), ("high", quantity.high)];
                let ends = ends.into_iter().filter(|(_, value)| value.is_finite());
                out.extend(ends.map(|(stat, value)| line(name, stat, value, unit)));
            }
        }
    }
    out
}
