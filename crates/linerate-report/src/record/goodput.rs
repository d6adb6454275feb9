//! Goodput over time, for the pages of throughput tests.

use linerate_core::record::{Ceiling, Direction, LINK, MetricId, Record, Series};

use crate::document::{Block, ReportFigure, ReportSection};
use crate::svg::{self, Axis, LineChart};
use crate::{ceiling, number};

/// The chart of a record, before all else on a page; none without intervals.
pub(super) fn figure(record: &Record) -> Option<ReportSection> {
    let figure = ReportFigure::from_panel("Goodput over time", "", interval_chart(record)?.svg());
    Some(ReportSection::without_blank_line("", [Block::Figure(figure)]).leading())
}

/// Goodput of each interval; the streams one by one where no sum was kept, and the ceiling.
fn interval_chart(record: &Record) -> Option<LineChart> {
    let goodput = |series: &&Series| series.metric == MetricId::Goodput;
    let all: Vec<&Series> = record.series.iter().filter(goodput).collect();
    let sums: Vec<&Series> = all.iter().copied().filter(|series| series.flow.is_none()).collect();
    let shown = if sums.is_empty() { all } else { sums };
    let shown = shown.iter().enumerate();
    let mut curves: Vec<svg::ChartSeries> = shown
        .map(|(style, series)| svg::ChartSeries::new(series_name(series), style, points(series)))
        .collect();
    let ends = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let last = ends.reduce(f64::max)?;
    let highest = curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.1));
    let highest = highest.fold(0.0, f64::max);
    curves.extend(bounds(record, highest).into_iter().map(|(label, style, value)| {
        svg::ChartSeries::new(label, style, vec![(0.0, value), (last, value)]).dashed()
    }));
    let seconds = number::significant(last, 3);
    let x = Axis::linear("seconds since the start", number::short_count);
    Some(LineChart::new(
        "Goodput of each interval",
        format!("{} curves over {seconds} seconds", curves.len()),
        [x, Axis::linear("goodput", number::rate_with_unit)],
        curves,
    ))
}

/// Lines across the chart: each direction's ceiling, and its smallest bound where that is another
/// one and near enough to leave the curves their room.
fn bounds(record: &Record, highest: f64) -> Vec<(String, usize, f64)> {
    let goodput = |ceiling: &&Ceiling| ceiling.metric == MetricId::Goodput;
    let all: Vec<&Ceiling> = record.ceilings().filter(goodput).collect();
    let mut out = Vec::new();
    for (index, ceiling) in all.iter().enumerate() {
        let way = match ceiling.direction.filter(|_| all.len() > 1) {
            Some(Direction::Up) => " up",
            Some(Direction::Down) => " down",
            None => "",
        };
        let style = 5 + index;
        out.extend(ceiling.value.map(|value| (format!("ceiling{way}"), style, value)));
        let bound = ceiling.expected().filter(|bound| bound.kind != LINK);
        out.extend(
            bound
                .filter(|bound| bound.value <= 2.0 * highest)
                .map(|bound| (format!("{}{way}", ceiling::spoken(bound.kind)), style, bound.value)),
        );
    }
    out
}

fn series_name(series: &Series) -> String {
    let way = match series.direction {
        Some(Direction::Up) => "up",
        Some(Direction::Down) => "down",
        None => "goodput",
    };
    series.flow.map_or_else(|| way.to_owned(), |flow| format!("{way} {flow}"))
}

/// Seconds and values; a missing sample has no value and leaves a gap.
fn points(series: &Series) -> Vec<(f64, f64)> {
    let pairs = series.t_ns.iter().zip(&series.values);
    pairs.map(|(&t, &value)| (t as f64 / 1e9, value.unwrap_or(f64::NAN))).collect()
}
