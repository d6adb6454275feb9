//! A chart of lines with markers, named at their right ends.

use linerate_core::record::Distribution;

use super::axis::{AxisKind, AxisScale, linear_domain, linear_ticks, log_domain, log_ticks};
use super::palette::{colour_class, light_colour, marker};
use super::{
    Anchor, Area, Canvas, LINE_HEIGHT, Svg, WIDTH, broken, coordinate_text, fitted, text_width,
};
use crate::{escape, number};

/// Height of the plot area in user units.
const PLOT_HEIGHT: f64 = 300.0;

/// Above this many points a line goes without markers.
const MARKED_POINTS: usize = 40;

/// Up to this many points of a formula's chart are single results.
const SINGLE_RESULTS: usize = 12;

/// A point of a line without markers may be left out where that moves the line by less than this,
/// user units.
const UNSEEN: f64 = 0.15;

/// The widest name that stands at the end of its line: 25 characters, user units.
const BESIDE_MOST: f64 = 200.0;

/// A line that ends so near to the right edge is joined with its name, user units.
const NEAR_END: f64 = 60.0;

/// Half of the dash that stands for a dashed line of one point, user units.
const LONE_DASH: f64 = 14.0;

/// One axis of a line chart.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Title of the axis, with the unit.
    pub label: String,
    /// Scale of the axis, such as linear or logarithmic.
    pub kind: AxisKind,
    /// Its ends; from the data when absent.
    pub domain: Option<(f64, f64)>,
    /// Ticks with their text; round values when empty.
    pub ticks: Vec<(f64, String)>,
    /// The text of a round value.
    pub show: fn(f64) -> String,
}

impl Axis {
    /// An axis of equal differences, whose ends and ticks follow from the data.
    pub fn linear(label: impl Into<String>, show: fn(f64) -> String) -> Self {
        Self { label: label.into(), kind: AxisKind::Linear, domain: None, ticks: vec![], show }
    }

    /// An axis of equal ratios, whose ends and ticks follow from the data.
    pub fn logarithmic(label: impl Into<String>, show: fn(f64) -> String) -> Self {
        Self { kind: AxisKind::Log, ..Self::linear(label, show) }
    }
}

/// A curve with its name and style.
#[derive(Clone, Debug)]
pub struct ChartSeries {
    /// Its name at its right end.
    pub label: String,
    /// Number of its colour and marker.
    pub style: usize,
    /// Points in the order in which they are joined; what is not finite leaves a gap.
    pub points: Vec<(f64, f64)>,
    /// Points with a ring around them.
    pub rings: Vec<(f64, f64)>,
    /// Dashes instead of a full line, and no markers.
    pub dashed: bool,
    /// Joined by steps: level first, then up (a distribution function).
    pub steps: bool,
}

impl ChartSeries {
    /// A full line through `points`, with the colour and the marker of number `style`.
    pub fn new(label: impl Into<String>, style: usize, points: Vec<(f64, f64)>) -> Self {
        let label = label.into();
        Self { label, style, points, rings: vec![], dashed: false, steps: false }
    }

    /// The series, drawn with dashes.
    pub fn dashed(self) -> Self {
        Self { dashed: true, ..self }
    }

    /// The same in steps.
    pub fn in_steps(self) -> Self {
        Self { steps: true, ..self }
    }
}

/// Curves in words, for readers who do not see them.
pub(crate) fn described(series: &[ChartSeries]) -> String {
    let each = series.iter().filter_map(|curve| {
        let (first, last) = (curve.points.first()?, curve.points.last()?);
        let ends =
            format!("from {} to {}", number::short_count(first.1), number::short_count(last.1));
        Some(format!("{}: {ends}", curve.label))
    });
    each.collect::<Vec<String>>().join("; ")
}

/// Points of a distribution's curve at most; more than a screen can tell apart is left out.
const CURVE_POINTS: usize = 400;

/// Values in units of `unit_ns` and the share of all up to there, in percent.
pub(crate) fn cumulated(distribution: &Distribution, unit_ns: f64) -> Vec<(f64, f64)> {
    let all = distribution.count().max(1) as f64;
    let mut below = 0_u64;
    let points = distribution.value_counts().map(|(ns, count)| {
        below = below.saturating_add(count);
        (ns as f64 / unit_ns, below as f64 * 100.0 / all)
    });
    // A logarithmic axis has no place for 0.
    let points: Vec<(f64, f64)> = points.filter(|(value, _)| *value > 0.0).collect();
    thinned(&points, CURVE_POINTS).copied().collect()
}

/// At most `most` or so of the items, evenly chosen, the last among them.
pub(crate) fn thinned<T>(items: &[T], most: usize) -> impl Iterator<Item = &T> {
    let (step, last) = (items.len().div_ceil(most).max(1), items.len().saturating_sub(1));
    let kept = items.iter().enumerate().filter(move |(at, _)| at % step == 0 || *at == last);
    kept.map(|(_, item)| item)
}

/// A chart of curves over two axes.
#[derive(Clone, Debug)]
pub struct LineChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// Accessible description of the chart (SVG `desc`).
    pub description: String,
    /// The horizontal axis of the chart.
    pub x: Axis,
    /// The vertical axis of the chart.
    pub y: Axis,
    /// Curves in the order in which they are drawn.
    pub series: Vec<ChartSeries>,
    /// Room for names at the least, so that panels beside each other have axes of one length.
    pub room: f64,
}

/// Places of everything, before it is drawn.
pub(super) struct ChartLayout {
    pub(super) area: Area,
    pub(super) x: AxisScale,
    pub(super) y: AxisScale,
}

impl ChartLayout {
    /// Axes around these values, with `right` units beside the plot.
    pub(super) fn around_values(
        [x, y]: [&Axis; 2],
        xs: impl Iterator<Item = f64>,
        ys: impl Iterator<Item = f64>,
        right: f64,
    ) -> Option<Self> {
        let (x_domain, y_domain) = (domain(x, xs)?, domain(y, ys)?);
        let ticks = ticks_of(y, y_domain).into_iter().map(|(_, text)| text_width(&text));
        let (left, top) = (ticks.fold(24.0, f64::max) + 10.0, 3.2 * LINE_HEIGHT);
        let (left, bottom) = (left.min(120.0), top + PLOT_HEIGHT);
        let area = Area { left, top, right: WIDTH - right, bottom };
        // Room on both sides keeps markers clear of the axis.
        let x = AxisScale::new(x.kind, x_domain, (area.left + 8.0, area.right - 8.0));
        let y = AxisScale::new(y.kind, y_domain, (area.bottom, area.top));
        Some(Self { area, x, y })
    }
}

impl LineChart {
    /// A chart of these lines; its room follows from their names.
    pub fn new(
        title: impl Into<String>,
        description: impl Into<String>,
        [x, y]: [Axis; 2],
        series: Vec<ChartSeries>,
    ) -> Self {
        Self { title: title.into(), description: description.into(), x, y, series, room: 0.0 }
    }

    /// Draws the chart; lines of few points have a marker on each.
    pub(crate) fn svg(&self) -> Svg {
        self.draw_with_markers(MARKED_POINTS)
    }

    /// Draws the chart of formulas: only a line of very few points has markers, for it joins
    /// single results; the points of the others are no more than places at which it was computed.
    pub fn formula_svg(&self) -> Svg {
        self.draw_with_markers(SINGLE_RESULTS)
    }

    /// Lines of up to `marked` points have a marker on each.
    fn draw_with_markers(&self, marked: usize) -> Svg {
        let Some(layout) = self.layout() else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        draw_axes(&mut canvas, &layout, &self.x, &self.y);
        for series in &self.series {
            draw_series(&mut canvas, &layout, series, marked);
        }
        let bottom = layout.area.bottom + 3.0 * LINE_HEIGHT;
        let bottom = if self.is_named_beside() {
            self.draw_labels(&mut canvas, &layout);
            bottom
        } else {
            self.draw_key(&mut canvas, &layout, bottom)
        };
        canvas.finish(&self.title, &self.description, bottom)
    }

    /// The longest name, those of panels with the same axes among them.
    fn longest_name(&self) -> f64 {
        self.series.iter().map(|series| text_width(&series.label)).fold(self.room, f64::max)
    }

    /// True if names stand at the right ends of their lines. Longer names stand in a key below, so
    /// that none is cut.
    fn is_named_beside(&self) -> bool {
        self.longest_name() <= BESIDE_MOST
    }

    fn layout(&self) -> Option<ChartLayout> {
        let points = || self.series.iter().flat_map(|series| series.points.iter());
        let both = |point: &&(f64, f64)| {
            let has_place =
                |kind: AxisKind, v: f64| v.is_finite() && (kind == AxisKind::Linear || v > 0.0);
            has_place(self.x.kind, point.0) && has_place(self.y.kind, point.1)
        };
        let (xs, ys) = (
            points().filter(both).map(|point| point.0),
            points().filter(both).map(|point| point.1),
        );
        let right = match self.is_named_beside() {
            true => (self.longest_name() + 24.0).max(30.0),
            false => 16.0,
        };
        ChartLayout::around_values([&self.x, &self.y], xs, ys, right)
    }

    /// Names at the right ends, moved apart where they would cover each other.
    fn draw_labels(&self, canvas: &mut Canvas, layout: &ChartLayout) {
        let last = |series: &ChartSeries| {
            let places = series.points.iter().filter_map(|point| point_position(layout, *point));
            places.max_by(|a, b| a.0.total_cmp(&b.0))
        };
        let mut ends: Vec<(&ChartSeries, (f64, f64))> =
            self.series.iter().filter_map(|series| Some((series, last(series)?))).collect();
        ends.sort_by(|a, b| a.1.1.total_cmp(&b.1.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, end)| end.1).collect();
        let room = WIDTH - layout.area.right - 24.0;
        let left = layout.area.right + 22.0;
        for ((series, end), y) in
            ends.iter().zip(move_apart(&wanted, LINE_HEIGHT, layout.area.top, layout.area.bottom))
        {
            // From far away the sample alone says which line it is.
            if layout.area.right - end.0 <= NEAR_END {
                canvas.draw_line("link", (end.0 + 6.0, end.1), (layout.area.right + 6.0, y));
            }
            draw_sample(canvas, series, layout.area.right + 13.0, y);
            canvas.draw_text(left, y + 4.5, Anchor::Start, "name", &fitted(&series.label, room));
        }
    }

    /// Samples with names under the plot, from the line that ends highest down, as many on a line
    /// as there is room for; gives where they end.
    fn draw_key(&self, canvas: &mut Canvas, layout: &ChartLayout, top: f64) -> f64 {
        let height = |series: &ChartSeries| {
            let places = series.points.iter().filter_map(|point| point_position(layout, *point));
            places.max_by(|a, b| a.0.total_cmp(&b.0)).map(|at| at.1)
        };
        let mut ends: Vec<(&ChartSeries, f64)> =
            self.series.iter().filter_map(|series| Some((series, height(series)?))).collect();
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let (mut x, mut y) = (8.0, top + 0.6 * LINE_HEIGHT);
        for (series, _) in ends {
            let label = broken(&series.label, WIDTH - 24.0);
            let width = label.iter().map(|line| text_width(line)).fold(0.0, f64::max);
            if x > 8.0 && x + 12.0 + width > WIDTH {
                (x, y) = (8.0, y + LINE_HEIGHT + 2.0);
            }
            draw_sample(canvas, series, x, y - 4.5);
            for (below, line) in label.iter().enumerate() {
                y += if below == 0 { 0.0 } else { LINE_HEIGHT };
                canvas.draw_text(x + 12.0, y, Anchor::Start, "name", line);
            }
            x += 12.0 + width + 24.0;
        }
        y + LINE_HEIGHT
    }
}

/// The marker of a line beside its name, a dash of a dashed one.
fn draw_sample(canvas: &mut Canvas, series: &ChartSeries, x: f64, y: f64) {
    if !series.dashed {
        return canvas.push_markup(&marker(series.style, (x, y)));
    }
    canvas.push_markup(&format!(
        "<path class=\"s{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\" \
         stroke-dasharray=\"5 3\" d=\"M{} {}H{}\"/>",
        colour_class(series.style),
        light_colour(series.style),
        coordinate_text(x - 6.5),
        coordinate_text(y),
        coordinate_text(x + 6.5)
    ));
}

/// Both axes with their grid, ticks and labels.
pub(super) fn draw_axes(canvas: &mut Canvas, layout: &ChartLayout, x: &Axis, y: &Axis) {
    draw_y(canvas, layout, y);
    draw_x(canvas, layout, x);
}

pub(super) fn draw_y(canvas: &mut Canvas, layout: &ChartLayout, axis: &Axis) {
    let area = layout.area;
    canvas.draw_text(0.0, area.top - 12.0, Anchor::Start, "soft", &axis.label);
    for (value, text) in ticks_of(axis, layout.y.domain()) {
        if let Some(y) = layout.y.position_of(value) {
            canvas.draw_line("grid", (area.left, y), (area.right, y));
            canvas.draw_text(area.left - 6.0, y + 4.5, Anchor::End, "soft", &text);
        }
    }
}

pub(super) fn draw_x(canvas: &mut Canvas, layout: &ChartLayout, axis: &Axis) {
    let area = layout.area;
    canvas.draw_line("axis", (area.left, area.bottom), (area.right, area.bottom));
    let mut free_from = f64::MIN;
    for (value, text) in ticks_of(axis, layout.x.domain()) {
        let Some(x) = layout.x.position_of(value) else { continue };
        canvas.draw_line("axis", (x, area.bottom), (x, area.bottom + 4.0));
        let half = text_width(&text) / 2.0;
        if x - half >= free_from {
            let y = area.bottom + LINE_HEIGHT + 2.0;
            canvas.draw_text(x, y, Anchor::Middle, "soft", &text);
            free_from = x + half + 6.0;
        }
    }
    canvas.draw_axis_label(area, &axis.label);
}

/// Moves sorted heights apart to at least `gap`, and back within the area where they fit.
pub(super) fn move_apart(wanted: &[f64], gap: f64, top: f64, bottom: f64) -> Vec<f64> {
    let mut at: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        let lowest = at.last().map_or(top, |above| above + gap);
        at.push(y.max(lowest));
    }
    let mut limit = bottom;
    for y in at.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - gap;
    }
    at
}

fn domain(axis: &Axis, values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    let mut values = values.peekable();
    values.peek()?;
    axis.domain.or_else(|| match axis.kind {
        AxisKind::Log => log_domain(values),
        AxisKind::Linear => linear_domain(values, 0.0, 5),
    })
}

fn ticks_of(axis: &Axis, domain: (f64, f64)) -> Vec<(f64, String)> {
    if !axis.ticks.is_empty() {
        return axis.ticks.clone();
    }
    let values = match axis.kind {
        AxisKind::Linear => linear_ticks(domain, 6),
        AxisKind::Log => log_ticks(domain),
    };
    values.into_iter().map(|value| (value, (axis.show)(value))).collect()
}

/// The place on the canvas of a point of the data, held within the plot; none without one
/// on either axis (zero on a logarithmic one).
pub(super) fn point_position(layout: &ChartLayout, point: (f64, f64)) -> Option<(f64, f64)> {
    Some((layout.x.position_of(point.0)?, layout.y.position_of(point.1)?))
}

pub(super) fn draw_series(
    canvas: &mut Canvas,
    layout: &ChartLayout,
    series: &ChartSeries,
    most: usize,
) {
    let places: Vec<Option<(f64, f64)>> =
        series.points.iter().map(|point| point_position(layout, *point)).collect();
    let (n, stroke) = (colour_class(series.style), light_colour(series.style));
    let dash = if series.dashed { " stroke-dasharray=\"5 4\"" } else { "" };
    canvas.push_markup(&format!(
        "<path class=\"s{n}\" fill=\"none\" stroke=\"{stroke}\" stroke-width=\"2\"{dash} \
         d=\"{}\"><title>{}</title></path>",
        path_data(
            &without_unseen(&spread_out(&places, series, layout), series, most),
            series.steps
        ),
        escape::xml_escaped(&series.label)
    ));
    let marked = places.iter().flatten().rev().take(match series {
        ChartSeries { dashed: true, .. } => 0,
        // The last point shows which curve it is.
        ChartSeries { steps: true, .. } => 1,
        _ if places.len() > most => 0,
        _ => most,
    });
    marked.for_each(|point| canvas.push_markup(&marker(series.style, *point)));
    for (x, y) in series.rings.iter().filter_map(|point| point_position(layout, *point)) {
        canvas.push_markup(&format!(
            "<circle class=\"s{n}\" cx=\"{}\" cy=\"{}\" r=\"8.5\" fill=\"none\" \
             stroke=\"{stroke}\" stroke-width=\"1.8\"/>",
            coordinate_text(x),
            coordinate_text(y)
        ));
    }
}

/// A dashed line of one point is a short dash around it; a line of one point would be invisible.
fn spread_out(
    places: &[Option<(f64, f64)>],
    series: &ChartSeries,
    layout: &ChartLayout,
) -> Vec<Option<(f64, f64)>> {
    match places {
        [Some((x, y))] if series.dashed => {
            let (from, to) = (x - LONE_DASH, x + LONE_DASH);
            let ends = [from.max(layout.area.left), to.min(layout.area.right)];
            ends.map(|x| Some((x, *y))).to_vec()
        }
        _ => places.to_vec(),
    }
}

/// A line of more than `most` points without those that nobody would miss: those that lie on the
/// line between their neighbours (Ramer 1972, Douglas and Peucker 1973). Steps and gaps stay.
fn without_unseen(
    places: &[Option<(f64, f64)>],
    series: &ChartSeries,
    most: usize,
) -> Vec<Option<(f64, f64)>> {
    let points: Vec<(f64, f64)> = places.iter().copied().flatten().collect();
    if series.steps || points.len() <= most || points.len() < places.len() {
        return places.to_vec();
    }
    let mut kept = vec![false; points.len()];
    let last = points.len() - 1;
    (kept[0], kept[last]) = (true, true);
    // Each span is split at most once for every point in it, so the work has an end.
    let mut spans = vec![(0, last)];
    while let Some((from, to)) = spans.pop() {
        let farthest = (from + 1..to)
            .map(|at| (at, distance(points[at], points[from], points[to])))
            .max_by(|a, b| a.1.total_cmp(&b.1));
        if let Some((at, _)) = farthest.filter(|(_, distance)| *distance > UNSEEN) {
            kept[at] = true;
            spans.extend([(from, at), (at, to)]);
        }
    }
    points.into_iter().zip(kept).filter(|(_, kept)| *kept).map(|(point, _)| Some(point)).collect()
}

/// From a point to the line through two others; to the first of them when they are one.
fn distance(point: (f64, f64), from: (f64, f64), to: (f64, f64)) -> f64 {
    let (dx, dy) = (to.0 - from.0, to.1 - from.1);
    let (px, py) = (point.0 - from.0, point.1 - from.1);
    let length = dx.hypot(dy);
    if length == 0.0 { px.hypot(py) } else { (dx * py - dy * px).abs() / length }
}

/// Joins what has a place; a point without one ends the line, and the next begins another.
fn path_data(places: &[Option<(f64, f64)>], steps: bool) -> String {
    let mut out = String::new();
    let mut drawing = false;
    for point in places {
        let Some((x, y)) = point else {
            drawing = false;
            continue;
        };
        let (x, y) = (coordinate_text(*x), coordinate_text(*y));
        match (drawing, steps) {
            (false, _) => out.push_str(&format!("M{x} {y}")),
            (true, true) => out.push_str(&format!("H{x}V{y}")),
            (true, false) => out.push_str(&format!("L{x} {y}")),
        }
        drawing = true;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_chart(x: AxisKind, y: AxisKind, points: &[(f64, f64)]) -> LineChart {
        let series =
            ChartSeries { rings: points.to_vec(), ..ChartSeries::new("a", 0, points.to_vec()) };
        let axes = [("x", x), ("y", y)];
        let axes =
            axes.map(|(label, kind)| Axis { kind, ..Axis::linear(label, number::short_count) });
        LineChart::new("t", "d", axes, vec![series])
    }

    #[test]
    fn every_point_lies_inside_the_plot_area() {
        let sets: &[&[(f64, f64)]] = &[
            &[],
            &[(f64::NAN, 1.0)],
            &[(1.0, 1.0)],
            &[(0.0, 0.0)],
            &[(56.0, 90_909.0), (1460.0, 421.0), (1500.0, f64::INFINITY)],
            &[(1e-300, 1e-300), (1e300, 1e300)],
            &[(f64::MIN, f64::MAX), (f64::MAX, f64::MIN)],
            &[(-5.0, -7.0), (5.0, 7.0)],
        ];
        for points in sets {
            for (x, y) in [
                (AxisKind::Linear, AxisKind::Linear),
                (AxisKind::Linear, AxisKind::Log),
                (AxisKind::Log, AxisKind::Log),
            ] {
                let chart = sample_chart(x, y, points);
                let text = chart.svg().file_with_style();
                assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                let Some(layout) = chart.layout() else { continue };
                let area = layout.area;
                for (x, y) in points.iter().filter_map(|point| point_position(&layout, *point)) {
                    assert!(x >= area.left && x <= area.right && y >= area.top && y <= area.bottom);
                }
            }
        }
    }

    #[test]
    fn a_missing_sample_is_a_gap_and_not_a_bridge() {
        let places = [Some((0.0, 1.0)), Some((1.0, 2.0)), None, Some((3.0, 4.0))];
        assert_eq!(path_data(&places, false), "M0 1L1 2M3 4");
        assert_eq!(path_data(&places, true), "M0 1H1V2M3 4");
    }

    #[test]
    fn a_line_of_many_points_keeps_its_bends_alone() {
        let mut chart = sample_chart(AxisKind::Linear, AxisKind::Linear, &[]);
        let places: Vec<Option<(f64, f64)>> = (0..101)
            .map(f64::from)
            .map(|x| Some((x, if x < 50.0 { x } else { 100.0 - x })))
            .collect();
        let kept = without_unseen(&places, &chart.series[0], MARKED_POINTS);
        assert_eq!(kept, [Some((0.0, 0.0)), Some((50.0, 50.0)), Some((100.0, 0.0))]);
        // Few points have markers, and steps and gaps mean something.
        assert_eq!(without_unseen(&places[..40], &chart.series[0], MARKED_POINTS).len(), 40);
        chart.series[0].steps = true;
        assert_eq!(without_unseen(&places, &chart.series[0], MARKED_POINTS).len(), 101);
        chart.series[0].steps = false;
        let mut gap = places.clone();
        gap[10] = None;
        assert_eq!(without_unseen(&gap, &chart.series[0], MARKED_POINTS).len(), 101);
    }

    #[test]
    fn names_keep_their_distance_and_stay_inside() {
        let at = move_apart(&[10.0, 11.0, 12.0, 300.0], 16.0, 10.0, 310.0);
        assert_eq!(at, [10.0, 26.0, 42.0, 300.0]);
        let at = move_apart(&[290.0, 300.0, 305.0], 16.0, 10.0, 310.0);
        assert_eq!(at, [278.0, 294.0, 310.0]);
    }
}
