//! The plots of a study: pings per second by size, throughput by each test's parameter, the spread
//! of repetitions, the loss of localhost's throughput.
//!
//! The published curves stand in a second panel with the same axes and the same colours, so that
//! neither hides the other and a narrow screen can stack them.

mod flows;
mod losses;
mod sequence;
mod spread;

use super::compare::TopologyComparison;
use super::figure::FlowKind;
use super::grid::{Grid, TopologyRow};
use crate::device;
use crate::document::ReportFigure;
use crate::number;
use crate::svg::{
    Axis, AxisKind, ChartSeries, LineChart, described, linear_domain, log_domain, text_width,
};

/// Above this ratio of largest to smallest value an axis becomes logarithmic.
const LOG_FROM: f64 = 10.0;

/// All plots that the plan has tests for.
pub(crate) fn collect_plots(grid: &Grid<'_>, compared: &TopologyComparison) -> Vec<ReportFigure> {
    let pings = grid.topologies.first().map_or(0, |row| row.ping.len());
    let mut out = Vec::from_iter(losses::loss_bars(grid, compared));
    out.extend((0..pings).map(|test| ping_rate_figure(grid, test)));
    out.extend(flows::throughput_plots(grid));
    out.extend(sequence::time_sequence_plots(grid));
    out.extend(spread::repetition_plots(grid));
    out.extend(device::figures(&grid.bench_suite()));
    distinct_titles(out)
}

/// Two plots never have one file: identifiers may differ in capitals alone.
fn distinct_titles(mut plots: Vec<ReportFigure>) -> Vec<ReportFigure> {
    let mut taken: Vec<String> = Vec::new();
    for (name, _) in plots.iter_mut().flat_map(|plot| &mut plot.panels) {
        let bare = name.trim_end_matches(".svg").to_owned();
        let mut count = 2;
        while taken.contains(name) {
            *name = format!("{bare}-{count}.svg");
            count += 1;
        }
        taken.push(name.clone());
    }
    plots
}

/// `name` for the first test of a kind, `name-id` for others: small letters, digits and dashes.
fn plot_file_name(name: &str, id: &str, test: usize) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let whole = if test == 0 { name.to_owned() } else { format!("{name}-{id}") };
    whole.chars().map(safe).collect()
}

/// A topology's name in a legend; of a model's figures it says so.
fn legend(row: &TopologyRow<'_>, kind: FlowKind) -> String {
    let title = &row.topology.title;
    match kind {
        FlowKind::Simulated => format!("{title}, simulated"),
        _ => title.clone(),
    }
}

fn ping_rate_figure(grid: &Grid<'_>, test: usize) -> ReportFigure {
    let first = grid.topologies.first().and_then(|row| row.ping.get(test));
    let figures = first.into_iter().flat_map(|ping| &ping.figures);
    let sizes: Vec<u32> = figures.map(|figure| figure.payload_bytes).collect();
    let now = curves(grid, |row| {
        let figures = row.ping.get(test)?.figures.iter();
        let points = figures.filter_map(|f| Some((f64::from(f.payload_bytes), f.pps_from_mean()?)));
        Some((row.topology.title.clone(), points.collect()))
    });
    let past = past_curves(grid, |row| {
        let points = sizes.iter().filter_map(|&size| {
            // The mean is printed with three decimals, the rate is not rounded any further.
            Some((f64::from(size), row.published.pings_per_second(size)?))
        });
        let name = row.published.ping.first()?.topology.clone();
        Some((name, points.collect()))
    });
    let axes = Axes {
        x: Axis {
            domain: Some((0.0, f64::from(sizes.iter().copied().max().unwrap_or(1500)))),
            ticks: sizes.iter().map(|&size| (f64::from(size), size.to_string())).collect(),
            ..Axis::linear("payload of a ping, bytes", number::short_count)
        },
        y: shared_axis(
            "pings per second (1000/avg ms)",
            Some(AxisKind::Log),
            number::short_count,
            &now,
            &past,
        ),
    };
    let id = first.map_or("", |ping| ping.test.id.as_str());
    let caption = format!(
        "Flood ping, one answer awaited before the next probe: 1000 over the mean round-trip time in \
         ms, as the study of {} printed it. Higher is better; equal steps of the axis are equal \
         ratios.",
        grid.past
    );
    let file = plot_file_name("pings-by-size", id, test);
    let panels = panels(&file, "Pings per second", &axes, now, past, grid);
    ReportFigure::new("Pings per second by size", caption, panels)
}

/// Name and points of a topology's curve; none where it has no such test.
type Curve = Option<(String, Vec<(f64, f64)>)>;

fn curves(grid: &Grid<'_>, of: impl Fn(&TopologyRow<'_>) -> Curve) -> Vec<ChartSeries> {
    let rows = grid.topologies.iter().enumerate();
    let curve = |style: usize, row: &TopologyRow<'_>| {
        let (label, points) = of(row)?;
        series(style, label, points)
    };
    rows.filter_map(|(style, row)| curve(style, row)).collect()
}

/// Published curves, each once: several topologies may stand beside the same published rows.
fn past_curves(grid: &Grid<'_>, of: impl Fn(&TopologyRow<'_>) -> Curve) -> Vec<ChartSeries> {
    let rows = grid.topologies.iter().enumerate();
    let is_first = |index: usize, row: &TopologyRow<'_>| {
        let mut earlier = grid.topologies[..index].iter();
        row.topology.published.is_some()
            && !earlier.any(|other| other.topology.published == row.topology.published)
    };
    let curves = rows.filter(|(index, row)| is_first(*index, row)).filter_map(|(style, row)| {
        let (label, points) = of(row)?;
        series(style, label, points)
    });
    // c.1 with two MTUs has one ping table.
    without_repeats(curves, |one, other| one.points == other.points)
}

/// The curves without those that are the same as an earlier one.
fn without_repeats(
    curves: impl Iterator<Item = ChartSeries>,
    same: impl Fn(&ChartSeries, &ChartSeries) -> bool,
) -> Vec<ChartSeries> {
    curves.fold(Vec::new(), |mut kept, curve| {
        if !kept.iter().any(|other| same(other, &curve)) {
            kept.push(curve);
        }
        kept
    })
}

fn series(style: usize, label: String, points: Vec<(f64, f64)>) -> Option<ChartSeries> {
    (!points.is_empty()).then(|| ChartSeries::new(label, style, points))
}

struct Axes {
    x: Axis,
    y: Axis,
}

/// An axis that both panels share; its kind follows the spread of the values unless given.
fn shared_axis(
    label: &str,
    kind: Option<AxisKind>,
    show: fn(f64) -> String,
    now: &[ChartSeries],
    past: &[ChartSeries],
) -> Axis {
    let values = || {
        let curves = now.iter().chain(past);
        curves.flat_map(|curve| curve.points.iter().map(|point| point.1))
    };
    let positive = || values().filter(|value| *value > 0.0);
    let ratio =
        positive().reduce(f64::max).unwrap_or(1.0) / positive().reduce(f64::min).unwrap_or(1.0);
    let kind = kind.unwrap_or(if ratio > LOG_FROM { AxisKind::Log } else { AxisKind::Linear });
    let domain = match kind {
        AxisKind::Log => log_domain(values()),
        AxisKind::Linear => linear_domain(values(), 0.0, 5),
    };
    Axis { kind, domain, ..Axis::linear(label, show) }
}

/// The panel of now, and that of the past where there is one.
fn panels(
    file: &str,
    title: &str,
    axes: &Axes,
    now: Vec<ChartSeries>,
    past: Vec<ChartSeries>,
    grid: &Grid<'_>,
) -> Vec<(String, crate::svg::Svg)> {
    let has_past = !past.is_empty();
    let names = now.iter().chain(&past).map(|curve| text_width(&curve.label));
    let room = names.fold(0.0, f64::max);
    let chart = |when: &str, series: Vec<ChartSeries>| {
        let (title, axes) = (format!("{title}, {when}"), [axes.x.clone(), axes.y.clone()]);
        LineChart { room, ..LineChart::new(title, described(&series), axes, series) }
    };
    let mut out = vec![(format!("{file}-now.svg"), chart("now", now).svg())];
    if has_past {
        out.push((format!("{file}-{}.svg", grid.past), chart(&grid.past, past).svg()));
    }
    out
}
