//! Throughput by the parameter of a test: lines over numbers, bars over names, with what bounds
//! them dashed.

use std::collections::BTreeMap;

use linerate_core::study::Test;

use super::super::figure::{FlowFigure, FlowKind, FlowTest, by_window, knee_window};
use super::super::grid::{Grid, TopologyRow};
use super::super::spoilt::{limited_caption, marked};
use super::{
    Axes, curves, legend, panels, past_curves, plot_file_name, series, shared_axis, without_repeats,
};
use crate::document::ReportFigure;
use crate::svg::{Axis, BarChart, BarRow, ChartSeries, described_rows};
use crate::{number, words};

/// Places between two values at which a bound is drawn: window/RTT is no straight line here.
const STEPS_OF_A_BOUND: u32 = 8;

/// Bounds closer to each other than this everywhere are one line.
const SAME_BOUND: f64 = 0.1;

/// Runs above this share of a bound come near it.
const NEAR_BOUND: f64 = 0.5;

/// A plot for each throughput test of the plan.
pub(super) fn throughput_plots(grid: &Grid<'_>) -> Vec<ReportFigure> {
    let tests: Vec<&Test> = grid.flow_tests().collect();
    let plot = |index: usize, test: &Test| {
        let earlier = tests[..index].iter().any(|other| test_title(other) == test_title(test));
        let stem = test_title(test).replace("TCP ", "");
        let file = plot_file_name(&stem, &test.id, usize::from(earlier));
        if is_for_bars(test) {
            bar_figure(grid, &file, test)
        } else {
            line_figure(grid, &file, test)
        }
    };
    tests.iter().enumerate().map(|(index, test)| plot(index, test)).collect()
}

/// True if bars show the test: its values are names, which have no order or distance, or there is
/// only one, through which no line goes.
fn is_for_bars(test: &Test) -> bool {
    let numbers = |label: &str| label.parse::<f64>().is_ok();
    let values = test.values();
    let by_name = test.parameter().unit.is_none();
    values.len() == 1 || by_name && !values.iter().all(|value| numbers(&value.label))
}

fn kind_of(test: &Test) -> FlowKind {
    FlowKind::from_test(test).unwrap_or(FlowKind::Tcp)
}

fn test_title(test: &Test) -> String {
    format!("{} by {}", kind_of(test).plot_title(), test.parameter().name)
}

/// The heading of a test's plot: with the test's name where another has the same title.
fn heading(grid: &Grid<'_>, test: &Test) -> String {
    let same = grid.flow_tests().filter(|other| test_title(other) == test_title(test)).count();
    if same > 1 { format!("{} ({})", test_title(test), test.id) } else { test_title(test) }
}

fn bar_figure(grid: &Grid<'_>, file: &str, test: &Test) -> ReportFigure {
    let values = test.values();
    let row = |row: &TopologyRow<'_>| {
        let flow = row.find_flow_test(&test.id)?;
        let best = || flow.figures.iter().map(|figure| (figure.best_bps(), figure.best_spoilt));
        let text = |(bps, spoilt)| {
            number::or_dash(bps, |bps: f64| marked(number::rate_in_mbit(bps), spoilt))
        };
        best().any(|(bps, _)| bps.is_some()).then(|| BarRow {
            label: legend(row, flow.flow_kind()),
            texts: best().map(text).collect(),
            values: best().map(|(bps, _)| bps.map(|bps| bps / 1e6)).collect(),
        })
    };
    let rows: Vec<BarRow> = grid.topologies.iter().filter_map(row).collect();
    let chart = BarChart {
        stacked: false,
        title: test_title(test),
        description: described_rows(&rows),
        axis: "payload, Mbit/s, best of the repetitions".to_owned(),
        names: values.iter().map(|value| value.label.clone()).collect(),
        rows,
    };
    let marks = limited_caption(chart.rows.iter().flat_map(|row| &row.texts));
    let caption = format!("The best of the repetitions. Longer is faster.{marks}");
    ReportFigure::new(heading(grid, test), caption, vec![(format!("{file}.svg"), chart.svg())])
}

fn line_figure(grid: &Grid<'_>, file: &str, test: &Test) -> ReportFigure {
    let asked = AxisValues::from_test(test);
    let of_windows = by_window(test);
    let now = curves(grid, |row| {
        let figures = row.find_flow_test(&test.id)?.figures.iter();
        let points = figures
            .filter_map(|figure| Some((asked.position_of(figure.number), figure.best_bps()?)));
        let mut points: Vec<(f64, f64)> = points.collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        Some((legend(row, kind_of(test)), points))
    });
    let past = past_curves(grid, |row| {
        let windows = asked.numbers.iter().filter(|window| of_windows && **window > 0);
        let points =
            windows.filter_map(|&w| Some((asked.position_of(w), row.published.throughput_bps(w)?)));
        Some((row.published.tcp_name()?, points.collect()))
    });
    let bounds = bound_lines(grid, test, &asked);
    // Where a round trip bounds the window, it says more than the bend that it makes.
    let knees = of_windows && bounds.is_empty();
    let (mut now, past) = if knees { (ringed(now), ringed(past)) } else { (now, past) };
    let ceilings = ceiling_lines(grid, test, &asked);
    let mut caption = match knees {
        true => knee_caption(grid, &now, &past),
        false => "Best of the repetitions.".to_owned(),
    };
    let (has_bounds, has_ceilings) = (!bounds.is_empty(), !ceilings.is_empty());
    now.extend(bounds);
    now.extend(ceilings);
    let y =
        shared_axis("payload, best of the repetitions", None, number::rate_with_unit, &now, &past);
    let top = y.domain.map_or(0.0, |domain| domain.1);
    let axes = Axes { x: asked.build_axis(test), y };
    let seen = seen_window_lines(grid, test, &asked, top);
    caption.push_str(&dashes_caption([has_bounds, has_ceilings, !seen.is_empty()]));
    now.extend(seen);
    let panels = panels(file, kind_of(test).plot_title(), &axes, now, past, grid);
    ReportFigure::new(heading(grid, test), caption, panels)
}

/// The values of a test as places on an axis.
struct AxisValues {
    numbers: Vec<u64>,
    labels: Vec<String>,
}

impl AxisValues {
    fn from_test(test: &Test) -> Self {
        let values = test.values();
        let label = |value: &linerate_core::study::Value| match by_window(test) {
            true => number::window(value.number),
            false => value.label.clone(),
        };
        Self {
            labels: values.iter().map(label).collect(),
            numbers: values.iter().map(|value| value.number).collect(),
        }
    }

    /// A value as a place; the kernel's own choice stands two doublings after the largest.
    fn position_of(&self, number: u64) -> f64 {
        match number {
            0 => 4.0 * self.numbers.iter().copied().max().unwrap_or(0).max(1) as f64,
            _ => number as f64,
        }
    }

    fn build_axis(&self, test: &Test) -> Axis {
        let places: Vec<f64> =
            self.numbers.iter().map(|&number| self.position_of(number)).collect();
        let least = places.iter().copied().reduce(f64::min);
        let label = match by_window(test) {
            true => "window asked for, bytes".to_owned(),
            false => test.parameter().axis_title(),
        };
        let mut ticks: Vec<(f64, String)> =
            places.iter().copied().zip(self.labels.iter().cloned()).collect();
        ticks.sort_by(|one, other| one.0.total_cmp(&other.0));
        let domain = least.zip(places.iter().copied().reduce(f64::max));
        Axis { domain, ticks, ..Axis::logarithmic(label, number::short_count) }
    }
}

/// The legend of the dashed lines: bounds of windows over emulated round trips, ceilings, windows
/// over measured round trips.
fn dashes_caption(has: [bool; 3]) -> String {
    let each = [
        " Dashed, \u{201c}window over RTT\u{201d}: the largest window that the receiver advertised \
         over the emulated round trip of that topology, at most its ceiling; one line stands for \
         bounds that differ by less than 10 %.",
        " Dashed, \u{201c}ceiling\u{201d}: what the link leaves for payload.",
        " Dashed, \u{201c}window over RTT seen\u{201d}: the same over the smallest round trip that \
         was measured, where none is emulated.",
    ];
    each.into_iter().zip(has).filter_map(|(text, has)| has.then_some(text)).collect()
}

/// The least of window/RTT and the ceiling for each topology with an emulated round trip.
fn bound_lines(grid: &Grid<'_>, test: &Test, asked: &AxisValues) -> Vec<ChartSeries> {
    let line = |style: usize, row: &TopologyRow<'_>| {
        let flow = row.find_flow_test(&test.id).filter(|flow| row.has_window_bound(flow))?;
        let points = bound_points(row, flow, asked);
        let label = format!("window over RTT: {}", row.topology.title);
        dashed(label, style, points.into_iter())
    };
    let rows = grid.topologies.iter().enumerate();
    let all = rows.filter_map(|(style, row)| line(style, row));
    without_repeats(all, |one, other| is_close(&one.points, &other.points))
}

/// The bound at each value, and at steps between windows that were asked for.
fn bound_points(row: &TopologyRow<'_>, flow: &FlowTest<'_>, asked: &AxisValues) -> Vec<(f64, f64)> {
    let Some(rtt_ns) = row.way.rtt_ns else { return Vec::new() };
    let ceiling = flow.figures.iter().filter_map(|figure| row.ceiling_bps(figure)).reduce(f64::max);
    let known = |figure: &FlowFigure<'_>| {
        figure.best_bps()?;
        Some((asked.position_of(figure.number), figure.window_bytes()? * 8e9 / rtt_ns))
    };
    let mut known: Vec<(f64, f64)> = flow.figures.iter().filter_map(known).collect();
    known.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mut points = Vec::new();
    for pair in known.windows(2) {
        let [(from, low), (to, high)] = [pair[0], pair[1]];
        points.extend((0..STEPS_OF_A_BOUND).map(|step| {
            let part = f64::from(step) / f64::from(STEPS_OF_A_BOUND);
            (from * (to / from).powf(part), low * (high / low).powf(part))
        }));
    }
    points.extend(known.last());
    let least = |bps: f64| ceiling.map_or(bps, |ceiling| bps.min(ceiling));
    points.into_iter().map(|(place, bps)| (place, least(bps))).collect()
}

/// True if two bounds differ by at most [`SAME_BOUND`] wherever both are known.
fn is_close(one: &[(f64, f64)], other: &[(f64, f64)]) -> bool {
    let at = |place: f64| other.iter().find(|point| (point.0 / place - 1.0).abs() < 1e-9);
    let mut both = one.iter().filter_map(|point| Some((point.1, at(point.0)?.1))).peekable();
    both.peek().is_some() && both.all(|(one, other)| (one / other - 1.0).abs() <= SAME_BOUND)
}

/// A dashed line for each ceiling, in the colour of the first topology that has it; those that a
/// window's bound holds have theirs in it.
fn ceiling_lines(grid: &Grid<'_>, test: &Test, asked: &AxisValues) -> Vec<ChartSeries> {
    let is_near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-3;
    let rate = number::rate_with_unit;
    let line = |style: usize, row: &TopologyRow<'_>| {
        let flow = row.find_flow_test(&test.id).filter(|flow| !row.has_window_bound(flow))?;
        let point = |figure: &FlowFigure<'_>| {
            figure.best_bps()?;
            Some((asked.position_of(figure.number), row.ceiling_bps(figure)?))
        };
        let mut points: Vec<(f64, f64)> = flow.figures.iter().filter_map(point).collect();
        points.sort_by(|one, other| one.0.total_cmp(&other.0));
        let (least, most) = (points.first()?.1, points.last()?.1);
        let to = if is_near(least, most) { String::new() } else { format!(" to {}", rate(most)) };
        dashed(format!("ceiling {}{to}", rate(least)), style, points.into_iter())
    };
    let rows = grid.topologies.iter().enumerate();
    let all = rows.filter_map(|(style, row)| line(style, row));
    without_repeats(all, |one, other| one.label == other.label)
}

/// A dashed line for the window seen over the smallest round trip, where none is emulated, of each
/// topology whose runs come near it, as far as it lies below `top`: others bound nothing that is
/// shown.
fn seen_window_lines(
    grid: &Grid<'_>,
    test: &Test,
    asked: &AxisValues,
    top: f64,
) -> Vec<ChartSeries> {
    let line = |style: usize, row: &TopologyRow<'_>| {
        let flow = row.find_flow_test(&test.id).filter(|flow| !row.has_window_bound(flow))?;
        let bound = |figure: &FlowFigure<'_>| {
            let rungs = &figure.ceiling.as_ref()?.rungs;
            rungs.iter().find(|rung| rung.kind == "receive_window")?.value
        };
        let comes_near = |figure: &FlowFigure<'_>| {
            let both = figure.best_bps().zip(bound(figure));
            both.is_some_and(|(bps, bound)| bps >= NEAR_BOUND * bound)
        };
        let point = |figure: &FlowFigure<'_>| {
            let bps = bound(figure).filter(|bps| *bps <= top)?;
            Some((asked.position_of(figure.number), bps))
        };
        let points = flow.figures.iter().filter_map(point);
        flow.figures.iter().any(comes_near).then_some(())?;
        dashed(format!("window over RTT seen: {}", row.topology.title), style, points)
    };
    let rows = grid.topologies.iter().enumerate();
    let all = rows.filter_map(|(style, row)| line(style, row));
    // One point is no line: the bound of the others lies above all that is shown.
    all.filter(|line| by_window(test) && line.points.len() > 1).collect()
}

fn dashed(
    label: String,
    style: usize,
    points: impl Iterator<Item = (f64, f64)>,
) -> Option<ChartSeries> {
    series(style, label, points.collect()).map(ChartSeries::dashed)
}

fn knee_caption(grid: &Grid<'_>, now: &[ChartSeries], past: &[ChartSeries]) -> String {
    let mut text = "A ring marks the knee: the window reached by the last doubling that still \
                    gained 10 % or more, where a later doubling was measured and gained less."
        .to_owned();
    text.push_str(&format!(" Now {}.", knees_in_words(now)));
    if !past.is_empty() {
        text.push_str(&format!(" In {} {}.", grid.past, knees_in_words(past)));
    }
    text
}

/// Which curves bend at which window.
fn knees_in_words(curves: &[ChartSeries]) -> String {
    let mut by_window: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for curve in curves {
        if let Some((window, _)) = curve.rings.first() {
            by_window.entry(*window as u64).or_default().push(curve.label.clone());
        }
    }
    let each: Vec<String> = by_window
        .iter()
        .map(|(window, labels)| {
            let who = match labels.len() {
                all if all == curves.len() && all > 1 => "all".to_owned(),
                _ => words::listed(labels),
            };
            format!("at {} for {who}", number::window(*window))
        })
        .collect();
    if each.is_empty() { "there is none".to_owned() } else { each.join("; ") }
}

fn ringed(mut curves: Vec<ChartSeries>) -> Vec<ChartSeries> {
    for curve in &mut curves {
        let points: Vec<(u64, f64)> =
            curve.points.iter().map(|&(window, bps)| (window as u64, bps)).collect();
        let at = knee_window(&points);
        curve.rings = curve.points.iter().copied().filter(|(x, _)| at == Some(*x as u64)).collect();
    }
    curves
}
