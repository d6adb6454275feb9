//! Each throughput test across the topologies that it is on: rows are topologies, columns are the
//! test's values, cells the best run and its share of the ceiling.

use super::figure::FlowFigure;
use super::flow_table;
use super::grid::{Grid, TopologyRow};
use super::spoilt::marked;
use crate::document::{ReportSection, ReportTable};
use crate::number::{self, NONE};

/// A table for each test that several topologies have results of; `None` without such a test.
pub(super) fn section(grid: &Grid<'_>) -> Option<ReportSection> {
    let tables: Vec<(ReportTable, bool)> =
        grid.flow_tests().filter_map(|test| test_table(grid, &test.id)).collect();
    if tables.is_empty() {
        return None;
    }
    let mut notes = vec!["Mbit/s of payload, the best of the repetitions".to_owned()];
    if tables.iter().any(|(_, shares)| *shares) {
        notes[0].push_str("; in brackets its share of the topology's ceiling");
    }
    let tables = tables.into_iter().map(|(table, _)| table);
    let title = "By topology".to_owned();
    Some(ReportSection::from_tables(title, tables, notes))
}

/// The table of a test, and true if it has shares.
fn test_table(grid: &Grid<'_>, id: &str) -> Option<(ReportTable, bool)> {
    let rows: Vec<(&TopologyRow<'_>, &[FlowFigure<'_>])> = grid
        .topologies
        .iter()
        .filter_map(|row| Some((row, row.find_flow_test(id)?.figures.as_slice())))
        .filter(|(_, figures)| figures.iter().any(|figure| figure.best_bps().is_some()))
        .collect();
    let [(first, figures), _, ..] = rows.as_slice() else { return None };
    let test = first.find_flow_test(id)?;
    let head = flow_table::heading(test, true);
    let values = figures.iter().map(|figure| figure.label.clone());
    let mut table = ReportTable::new(std::iter::once(head).chain(values));
    let mut shares = false;
    for (row, figures) in &rows {
        let cells = figures.iter().map(|figure| best_and_share(row, figure));
        shares |= figures.iter().any(|figure| row.ceiling_share(figure).is_some());
        table.add_measured_row(std::iter::once(row.topology.title.clone()).chain(cells));
    }
    Some((table, shares))
}

fn best_and_share(row: &TopologyRow<'_>, figure: &FlowFigure<'_>) -> String {
    let best = |bps| marked(number::rate_in_mbit(bps), figure.best_spoilt);
    match (figure.best_bps(), row.ceiling_share(figure)) {
        (Some(bps), Some(share)) => format!("{} ({})", best(bps), number::percent(share)),
        (Some(bps), None) => best(bps),
        (None, _) => NONE.to_owned(),
    }
}
