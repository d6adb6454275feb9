//! Time and sequence of the flows whose records tell both: those of models in virtual time.
//!
//! A line for each value of a test, by the first flow of its first repetition; a panel for each
//! topology, and one of the start where the whole is so long that nobody would see it.

use linerate_core::simulate::SequencePoint;
use linerate_core::study::Test;

use super::super::figure::{FlowKind, FlowTest};
use super::super::grid::{Grid, TopologyRow};
use super::{legend, plot_file_name};
use crate::document::ReportFigure;
use crate::simulate::{START_ROUNDS, START_WORTH, points, sequences};
use crate::svg::Svg;

/// Panels of one test, at most.
const PANELS_MOST: usize = 6;

/// A plot for each test that has such records.
pub(super) fn time_sequence_plots(grid: &Grid<'_>) -> Vec<ReportFigure> {
    let tests = grid.flow_tests().enumerate();
    tests.filter_map(|(index, test)| test_figure(grid, index, test)).collect()
}

fn test_figure(grid: &Grid<'_>, index: usize, test: &Test) -> Option<ReportFigure> {
    let mut panels: Vec<(String, Svg)> = Vec::new();
    for row in &grid.topologies {
        let Some(flow) = row.find_flow_test(&test.id) else { continue };
        let whole =
            plot_file_name("time-sequence", &format!("{}-{}", test.id, row.topology.id), index + 1);
        panels.extend(of_topology(row, flow, &whole));
    }
    panels.truncate(PANELS_MOST);
    let kind = FlowKind::from_test(test).unwrap_or(FlowKind::Tcp).sentence_word();
    (!panels.is_empty()).then(|| ReportFigure {
        title: format!("Time and sequence by {} ({})", test.parameter().name, test.id),
        caption: format!(
            "Test {}: what the first flow of {kind} had acknowledged by when, in its first \
             repetition. A slope is a rate; a step without one is a loss under repair.",
            test.id
        ),
        panels,
    })
}

/// The whole, and the start where it is worth a panel of its own.
fn of_topology(row: &TopologyRow<'_>, flow: &FlowTest<'_>, file: &str) -> Vec<(String, Svg)> {
    let lines: Vec<(String, Vec<SequencePoint>)> = flow
        .figures
        .iter()
        .filter_map(|figure| {
            let points = points(figure.runs.first()?).into_iter().next()?;
            Some((figure.label.clone(), points))
        })
        .collect();
    if lines.is_empty() {
        return Vec::new();
    }
    let title = format!("{}: time and sequence", legend(row, flow.flow_kind()));
    let lent = |lines: &[(String, Vec<SequencePoint>)], title: &str| {
        let lines = lines.iter().map(|(label, points)| (label.clone(), points.as_slice()));
        sequences(title, lines).svg()
    };
    let mut out = vec![(format!("{file}.svg"), lent(&lines, &title))];
    let start_ns = row.way.rtt_ns.unwrap_or(0.0) * f64::from(START_ROUNDS);
    let last = lines.iter().filter_map(|(_, points)| points.last());
    let last_ns = last.map(|point| point.at.as_nanos()).max().unwrap_or(0) as f64;
    if start_ns > 0.0 && last_ns > START_WORTH * start_ns {
        let early = |points: &[SequencePoint]| {
            let early = points.iter().take_while(|point| point.at.as_nanos() as f64 <= start_ns);
            early.copied().collect()
        };
        let starts = lines.iter().map(|(label, points)| (label.clone(), early(points)));
        let lines: Vec<(String, Vec<SequencePoint>)> = starts.collect();
        out.push((format!("{file}-start.svg"), lent(&lines, &format!("{title} of the start"))));
    }
    out
}
