//! Every repetition of every value as a dot.

use linerate_core::study::Test;

use super::super::figure::{FlowFigure, FlowKind};
use super::super::grid::Grid;
use super::{legend, plot_file_name};
use crate::document::ReportFigure;
use crate::svg::{StripChart, StripGroup, StripRow};
use crate::{number, words};

/// A plot for each test that was repeated.
pub(super) fn repetition_plots(grid: &Grid<'_>) -> Vec<ReportFigure> {
    let tests = grid.flow_tests().enumerate();
    tests.filter_map(|(index, test)| test_figure(grid, index, test)).collect()
}

/// Every repetition as a dot; none where no value has two.
fn test_figure(grid: &Grid<'_>, index: usize, test: &Test) -> Option<ReportFigure> {
    let groups: Vec<StripGroup> = grid
        .topologies
        .iter()
        .enumerate()
        .filter_map(|(style, row)| {
            let rows: Vec<StripRow> =
                row.find_flow_test(&test.id)?.figures.iter().filter_map(strip_row).collect();
            let label = legend(row, FlowKind::from_test(test).unwrap_or(FlowKind::Tcp));
            (!rows.is_empty()).then_some(StripGroup { label, style, rows })
        })
        .collect();
    let runs = groups.iter().flat_map(|g| g.rows.iter().map(|row| row.shares.len())).max();
    if runs.is_some_and(|runs| runs < 2) {
        return None;
    }
    let name = test.parameter().name;
    let chart = StripChart {
        title: format!("Repetitions of test {}, as a share of the best", test.id),
        description: groups
            .iter()
            .flat_map(|group| {
                group.rows.iter().map(|row| format!("{} {}: {}", group.label, row.label, row.note))
            })
            .collect::<Vec<String>>()
            .join("; "),
        notes: "best, median bit/s".to_owned(),
        axis: format!("% of the best run of the same topology and {name}"),
        groups,
    };
    Some(ReportFigure {
        title: "How far repetitions differ".to_owned(),
        caption: format!(
            "{} of each topology and {name}. Full dot: the best run, the figure in the tables; \
             open dots: the others; bar: the median.",
            words::counted(runs.unwrap_or(0) as u64, "run")
        ),
        panels: vec![(
            format!("{}.svg", plot_file_name("repetitions", &test.id, index)),
            chart.svg(),
        )],
    })
}

fn strip_row(figure: &FlowFigure<'_>) -> Option<StripRow> {
    let (best, median) = (figure.best_bps().filter(|best| *best > 0.0)?, figure.median()?);
    Some(StripRow {
        label: figure.label.clone(),
        shares: figure.runs_bps.iter().map(|bps| bps / best).collect(),
        median: Some(median / best),
        note: format!("{}, {}", number::short_count(best), number::short_count(median)),
    })
}
