//! Time and sequence of the flows whose records tell both: those of models in virtual time.
//!
//! A line for each value of a test, by the first flow of its first repetition; a panel for each
//! topology, and one of the start where the whole is so long that nobody would see it.

use linerate_core::simulate::Point;
use linerate_core::study::Test;

use super::super::figure::{FlowKind, FlowTest};
use super::super::grid::{Grid, Row};
use super::{legend, named};
use crate::document::Figure;
use crate::simulate::{START_ROUNDS, START_WORTH, points, sequences};
use crate::svg::Svg;

/// Panels of one test, at most.
const PANELS_MOST: usize = 6;

/// A plot for each test that has such records.
pub(super) fn plots(grid: &Grid<'_>) -> Vec<Figure> {
    let tests = grid.flow_tests().enumerate();
    tests.filter_map(|(index, test)| plot(grid, index, test)).collect()
}

fn plot(grid: &Grid<'_>, index: usize, test: &Test) -> Option<Figure> {
    let mut panels: Vec<(String, Svg)> = Vec::new();
    for row in &grid.topologies {
        let Some(flow) = row.flow(&test.id) else { continue };
        let whole = named("time-sequence", &format!("{}-{}", test.id, row.topology.id), index + 1);
        panels.extend(of_topology(row, flow, &whole));
    }
    panels.truncate(PANELS_MOST);
    let kind = FlowKind::from_test(test).unwrap_or(FlowKind::Tcp).title();
    (!panels.is_empty()).then(|| Figure {
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
fn of_topology(row: &Row<'_>, flow: &FlowTest<'_>, file: &str) -> Vec<(String, Svg)> {
    let lines: Vec<(String, Vec<Point>)> = flow
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
    let title = format!("{}: time and sequence", legend(row, flow.kind()));
    let lent = |lines: &[(String, Vec<Point>)], title: &str| {
        let lines = lines.iter().map(|(label, points)| (label.clone(), points.as_slice()));
        sequences(title, lines).svg()
    };
    let mut out = vec![(format!("{file}.svg"), lent(&lines, &title))];
    let start_ns = row.way.rtt_ns.unwrap_or(0.0) * f64::from(START_ROUNDS);
    let last = lines.iter().filter_map(|(_, points)| points.last());
    let last_ns = last.map(|point| point.at.nanos()).max().unwrap_or(0) as f64;
    if start_ns > 0.0 && last_ns > START_WORTH * start_ns {
        let of_start = |(label, points): &(String, Vec<Point>)| {
            let early = points.iter().take_while(|point| point.at.nanos() as f64 <= start_ns);
            (label.clone(), early.copied().collect())
        };
        let lines: Vec<(String, Vec<Point>)> = lines.iter().map(of_start).collect();
        out.push((format!("{file}-start.svg"), lent(&lines, &format!("{title} of the start"))));
    }
    out
}
