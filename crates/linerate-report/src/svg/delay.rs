//! A chart of delay over time: probes as dots or as bands of percentiles, lost ones as strokes
//! along the foot of the plot, and the load under it on the same time axis.

use linerate_core::stats::Sorted;

use super::axis::{AxisKind, AxisScale, linear_domain};
use super::line::{ChartLayout, draw_series, draw_x, draw_y, point_position};
use super::palette::{colour_class, light_colour, marker};
use super::{
    Anchor, Area, Axis, Canvas, ChartSeries, LINE_HEIGHT, Svg, WIDTH, coordinate_text, text_width,
};
use crate::{escape, number};

/// Up to this many probes are joined and have markers; more are dots.
const JOINED_PROBES: usize = 40;

/// Columns in which dots are thinned: about one a user unit of the plot.
const COLUMNS: f64 = 500.0;

/// Delays further apart than this are drawn on an axis of equal ratios.
const LOG_FROM: f64 = 30.0;

/// Height of the panel of the load, and room above it for its label, user units.
const LOAD_HEIGHT: f64 = 80.0;
const LOAD_GAP: f64 = 2.2 * LINE_HEIGHT;

/// Height of the stroke of a lost probe, user units, and the number of its colour.
const LOST_HEIGHT: f64 = 9.0;
const LOST_STYLE: usize = 1;

/// Windows of bands at least and at most.
const WINDOWS: (usize, usize) = (4, 60);

/// Answers that a window has on average: its 5 % and 95 % are answers of their own.
const PER_WINDOW: usize = 20;

/// Opacity of what 90 % and 50 % of the answers lie within.
const WIDE: f64 = 0.2;
const NARROW: f64 = 0.35;

/// The percentiles of bands.
const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// Probes of one kind.
#[derive(Clone, Debug)]
pub(crate) struct Trail {
    /// Name of the kind of probe.
    pub label: String,
    /// Number of their colour.
    pub style: usize,
    /// Second of the sending, and ns to the answer; none for a lost one.
    pub probes: Vec<(f64, Option<u64>)>,
}

/// The way in which probes are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbeDrawing {
    /// Each one; of very many the smallest and the largest of each moment.
    Probes,
    /// The median with what 50 % and 90 % of the answers lie within.
    Bands,
}

/// A chart of probe delays over time.
#[derive(Clone, Debug)]
pub(crate) struct DelayChart {
    /// Over the chart, and its accessible name.
    pub title: String,
    /// Accessible description of the chart (SVG `desc`).
    pub description: String,
    /// The moment from which the time axis counts.
    pub since: &'static str,
    /// Trails in the order in which they are drawn.
    pub trails: Vec<Trail>,
    /// The way in which the probes are drawn.
    pub shown: ProbeDrawing,
    /// Load in bit/s over seconds, under the delays; empty where there was none.
    pub load: Vec<ChartSeries>,
}

/// One window of time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct TimeWindow {
    /// Its begin and its end in s.
    x: (f64, f64),
    /// Percentiles of the answers in ms; none where nothing was answered.
    percentiles: Option<[f64; 5]>,
}

impl Trail {
    fn answers(&self) -> impl Iterator<Item = (f64, f64)> {
        self.probes.iter().filter_map(|(at, ns)| Some((*at, (*ns)? as f64 / 1e6)))
    }

    /// Percentiles in windows of equal length, `most` at most; none of too few answers.
    fn windows(&self, most: usize) -> Vec<TimeWindow> {
        let count = (self.answers().count() / PER_WINDOW).min(most);
        let ends = self.probes.first().zip(self.probes.last());
        let Some((from, to)) = ends.map(|(first, last)| (first.0, last.0)) else {
            return Vec::new();
        };
        if count < WINDOWS.0 || to <= from {
            return Vec::new();
        }
        let length = (to - from) / count as f64;
        let mut values: Vec<Vec<u64>> = vec![Vec::new(); count];
        for (at, ns) in &self.probes {
            // The last probe stands at the end of the last window.
            let index = (((at - from) / length) as usize).min(count - 1);
            values[index].extend(*ns);
        }
        let windows = values.into_iter().enumerate().map(|(index, values)| {
            let begin = from + index as f64 * length;
            let sorted = Sorted::new(values);
            let of = |share| sorted.quantile(share).map(|ns| ns as f64 / 1e6);
            let percentiles = SHARES.map(of).into_iter().collect::<Option<Vec<f64>>>();
            let percentiles = percentiles.and_then(|values| values.try_into().ok());
            TimeWindow { x: (begin, begin + length), percentiles }
        });
        windows.collect()
    }
}

impl DelayChart {
    /// True if there is at least one value to draw.
    pub(crate) fn has_any(&self) -> bool {
        self.trails.iter().any(|trail| match self.shown {
            ProbeDrawing::Probes => trail.answers().next().is_some(),
            ProbeDrawing::Bands => !trail.windows(self.windows_most()).is_empty(),
        })
    }

    /// Draws the chart as SVG.
    pub(crate) fn svg(&self) -> Svg {
        let (x, y) = self.time_and_delay_axes();
        let Some(layout) = self.layout([&x, &y]) else {
            return Canvas::nothing(&self.title, &self.description);
        };
        let mut canvas = Canvas::new();
        canvas.draw_title(&self.title);
        draw_y(&mut canvas, &layout, &y);
        for trail in &self.trails {
            match self.shown {
                ProbeDrawing::Probes => draw_probes(&mut canvas, &layout, trail),
                ProbeDrawing::Bands => {
                    let windows = trail.windows(self.windows_most());
                    draw_bands(&mut canvas, &layout, trail.style, &windows);
                }
            }
        }
        self.draw_lost(&mut canvas, &layout);
        let lowest = match self.load_layout(&layout) {
            Some((below, axis)) => {
                let foot = layout.area;
                canvas.draw_line("axis", (foot.left, foot.bottom), (foot.right, foot.bottom));
                draw_y(&mut canvas, &below, &axis);
                self.load.iter().for_each(|load| draw_load(&mut canvas, &below, load));
                below
            }
            None => layout,
        };
        draw_x(&mut canvas, &lowest, &x);
        let bottom = self.draw_key(&mut canvas, lowest.area.bottom + 3.0 * LINE_HEIGHT);
        canvas.finish(&self.title, &self.description, bottom)
    }

    /// Seconds, and the delay: by ratios where that is what keeps the most of it apart.
    fn time_and_delay_axes(&self) -> (Axis, Axis) {
        let x = Axis::linear(format!("seconds since {}", self.since), number::short_signed);
        // Time ends where the measurement does.
        let ends =
            self.drawn_times().map(|at| (at, at)).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        let x = Axis { domain: ends.map(|(from, to)| (from.min(0.0), to)), ..x };
        let (mut least, mut most) = (f64::MAX, 0.0_f64);
        self.values().for_each(|ms| (least, most) = (least.min(ms), most.max(ms)));
        let wide = least > 0.0 && most > LOG_FROM * least;
        let axis = if wide { Axis::logarithmic } else { Axis::linear };
        (x, axis("round trip, ms", number::short_time))
    }

    /// Windows of one trail: all of them share the width.
    fn windows_most(&self) -> usize {
        (WINDOWS.1 / self.trails.len().max(1)).max(WINDOWS.0)
    }

    /// Times of all that is drawn, in s.
    fn drawn_times(&self) -> impl Iterator<Item = f64> {
        let sent = self.trails.iter().flat_map(|trail| trail.probes.iter().map(|probe| probe.0));
        let loaded = self.load.iter().flat_map(|load| load.points.iter().map(|point| point.0));
        sent.chain(loaded).filter(|at| at.is_finite())
    }

    /// All delays that are drawn, in ms.
    fn values(&self) -> Box<dyn Iterator<Item = f64> + '_> {
        match self.shown {
            ProbeDrawing::Probes => {
                Box::new(self.trails.iter().flat_map(|trail| trail.answers().map(|at| at.1)))
            }
            ProbeDrawing::Bands => {
                let windows =
                    self.trails.iter().flat_map(|trail| trail.windows(self.windows_most()));
                Box::new(windows.filter_map(|window| window.percentiles).flatten())
            }
        }
    }

    fn layout(&self, axes: [&Axis; 2]) -> Option<ChartLayout> {
        let layout = ChartLayout::around_values(axes, self.drawn_times(), self.values(), 16.0)?;
        // Both panels begin where the longer texts of their ticks end.
        let ticks = self.load_axis().into_iter().flat_map(|axis| axis.ticks);
        let widest = ticks.map(|(_, text)| text_width(&text)).fold(0.0, f64::max);
        let area = Area { left: layout.area.left.max(widest + 10.0), ..layout.area };
        let range = (area.left + 8.0, area.right - 8.0);
        let x = AxisScale::new(AxisKind::Linear, layout.x.domain(), range);
        Some(ChartLayout { area, x, ..layout })
    }

    /// From 0 to the highest load; none without a load.
    fn load_axis(&self) -> Option<Axis> {
        let values = self.load.iter().flat_map(|load| load.points.iter().map(|point| point.1));
        let domain = linear_domain(values, 0.0, 2)?;
        let ticks = [domain.0, domain.1].map(|bps| (bps, number::short_count(bps))).to_vec();
        let axis = Axis::linear("load, bit/s", number::short_count);
        Some(Axis { ticks, domain: Some(domain), ..axis })
    }

    /// The panel of the load under that of the delays.
    fn load_layout(&self, above: &ChartLayout) -> Option<(ChartLayout, Axis)> {
        let axis = self.load_axis()?;
        let top = above.area.bottom + LOAD_GAP;
        let area = Area { top, bottom: top + LOAD_HEIGHT, ..above.area };
        let y = AxisScale::new(AxisKind::Linear, axis.domain?, (area.bottom, area.top));
        Some((ChartLayout { area, x: above.x, y }, axis))
    }

    /// When a probe was sent that nobody answered.
    fn draw_lost(&self, canvas: &mut Canvas, layout: &ChartLayout) {
        let bottom = layout.area.bottom;
        let mut strokes = String::new();
        let mut last = String::new();
        for (at, _) in
            self.trails.iter().flat_map(|trail| &trail.probes).filter(|probe| probe.1.is_none())
        {
            let Some(x) = layout.x.position_of(*at).map(coordinate_text).filter(|x| *x != last)
            else {
                continue;
            };
            strokes.push_str(&format!(
                "M{x} {}V{}",
                coordinate_text(bottom),
                coordinate_text(bottom - LOST_HEIGHT)
            ));
            last = x;
        }
        if !strokes.is_empty() {
            canvas.push_markup(&stroke(LOST_STYLE, 1.6, &strokes));
        }
    }

    /// The key: each colour or shape, drawn around 0, with its name.
    fn key_entries(&self) -> Vec<(String, String)> {
        let of_trail = |trail: &Trail| {
            let style = trail.style;
            let band = |half: f64, opacity| {
                filled(style, opacity, &[(-7.0, -half), (7.0, -half), (7.0, half), (-7.0, half)])
            };
            match self.shown {
                ProbeDrawing::Probes => (marker(style, (0.0, 0.0)), trail.label.clone()),
                ProbeDrawing::Bands => {
                    let sample =
                        [band(7.0, WIDE), band(4.0, NARROW), stroke(style, 2.0, "M-7 0H7")];
                    (sample.concat(), trail.label.clone())
                }
            }
        };
        let mut key: Vec<(String, String)> = self.trails.iter().map(of_trail).collect();
        let probes = self.trails.iter().flat_map(|trail| &trail.probes);
        let lost = probes.filter(|(_, ns)| ns.is_none()).count();
        if lost > 0 {
            let mark = stroke(LOST_STYLE, 1.6, "M-2 4.5V-4.5M2 4.5V-4.5");
            key.push((mark, format!("{lost} lost")));
        }
        for load in &self.load {
            let corners = [(-6.0, -5.0), (6.0, -5.0), (6.0, 5.0), (-6.0, 5.0)];
            key.push((filled(load.style, NARROW, &corners), load.label.clone()));
        }
        key
    }

    /// The key under the chart, as many on a line as there is room for; gives where it ends.
    fn draw_key(&self, canvas: &mut Canvas, top: f64) -> f64 {
        let (mut x, mut y) = (8.0, top + 0.6 * LINE_HEIGHT);
        for (sample, label) in self.key_entries() {
            let width = text_width(&label);
            if x > 8.0 && x + 14.0 + width > WIDTH {
                (x, y) = (8.0, y + LINE_HEIGHT + 2.0);
            }
            let at = format!("translate({} {})", coordinate_text(x), coordinate_text(y - 4.5));
            canvas.push_markup(&format!("<g transform=\"{at}\">{sample}</g>"));
            canvas.draw_text(x + 14.0, y, Anchor::Start, "name", &label);
            x += 14.0 + width + 24.0;
        }
        y + LINE_HEIGHT
    }
}

/// Probes at their places: joined where they are few, else as dots.
fn draw_probes(canvas: &mut Canvas, layout: &ChartLayout, trail: &Trail) {
    let points: Vec<(f64, f64)> = trail
        .probes
        .iter()
        .map(|(at, ns)| (*at, ns.map_or(f64::NAN, |ns| ns as f64 / 1e6)))
        .collect();
    if points.len() <= JOINED_PROBES {
        let series = ChartSeries::new(trail.label.as_str(), trail.style, points);
        return draw_series(canvas, layout, &series, JOINED_PROBES);
    }
    let mut dots = String::new();
    for (x, y) in
        thinned(points.iter().filter_map(|point| point_position(layout, *point)), layout.area)
    {
        // A line of no length with round ends is a dot (SVG 1.1 §11.4).
        dots.push_str(&format!("M{} {}h0", coordinate_text(x), coordinate_text(y)));
    }
    let (n, colour) = (colour_class(trail.style), light_colour(trail.style));
    canvas.push_markup(&format!(
        "<path class=\"s{n}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2.6\" \
         stroke-linecap=\"round\" d=\"{dots}\"><title>{}</title></path>",
        escape::xml_escaped(&trail.label)
    ));
}

/// For each column of the plot the highest, the lowest and the last place, so that spikes stay
/// visible.
fn thinned(places: impl Iterator<Item = (f64, f64)>, area: Area) -> Vec<(f64, f64)> {
    let mut kept: Vec<(usize, [(f64, f64); 3])> = Vec::new();
    let width = (area.right - area.left) / COLUMNS;
    for at in places {
        let column = ((at.0 - area.left) / width) as usize;
        match kept.last_mut() {
            Some((last, [high, low, newest])) if *last == column => {
                *high = if at.1 < high.1 { at } else { *high };
                *low = if at.1 > low.1 { at } else { *low };
                *newest = at;
            }
            _ => kept.push((column, [at; 3])),
        }
    }
    let mut places: Vec<(f64, f64)> = kept.into_iter().flat_map(|(_, places)| places).collect();
    places.dedup();
    places
}

/// Bands with their median; a window without answers is a gap.
fn draw_bands(canvas: &mut Canvas, layout: &ChartLayout, style: usize, windows: &[TimeWindow]) {
    let mut median = String::new();
    for run in windows.chunk_by(|a, b| a.percentiles.is_some() == b.percentiles.is_some()) {
        // In the middle of its window, but the ends of a run at theirs.
        let last = run.len() - 1;
        let columns = run.iter().enumerate().filter_map(|(index, window)| {
            let x = match index {
                0 => window.x.0,
                _ if index == last => window.x.1,
                _ => f64::midpoint(window.x.0, window.x.1),
            };
            let heights = window.percentiles?.map(|ms| layout.y.position_of(ms));
            Some((layout.x.position_of(x)?, heights.into_iter().collect::<Option<Vec<f64>>>()?))
        });
        let mut columns: Vec<(f64, Vec<f64>)> = columns.collect();
        if let ([only], [window]) = (&columns[..], run) {
            let end = layout.x.position_of(window.x.1).map(|x| (x, only.1.clone()));
            columns.extend(end);
        }
        for (low, high, opacity) in [(0, 4, WIDE), (1, 3, NARROW)] {
            let there = columns.iter().map(|(x, heights)| (*x, heights[low]));
            let back = columns.iter().rev().map(|(x, heights)| (*x, heights[high]));
            let corners: Vec<(f64, f64)> = there.chain(back).collect();
            if !corners.is_empty() {
                canvas.push_markup(&filled(style, opacity, &corners));
            }
        }
        for (index, (x, heights)) in columns.iter().enumerate() {
            let verb = if index == 0 { 'M' } else { 'L' };
            median.push_str(&format!(
                "{verb}{} {}",
                coordinate_text(*x),
                coordinate_text(heights[2])
            ));
        }
    }
    if !median.is_empty() {
        canvas.push_markup(&stroke(style, 2.0, &median));
    }
}

/// The load as a filled area from 0 up; a missing sample is a gap.
fn draw_load(canvas: &mut Canvas, layout: &ChartLayout, load: &ChartSeries) {
    for run in load.points.split(|point| !point.1.is_finite()) {
        let mut corners: Vec<(f64, f64)> =
            run.iter().filter_map(|point| point_position(layout, *point)).collect();
        let ends = corners.first().zip(corners.last()).map(|(first, last)| (first.0, last.0));
        if let Some((first, last)) = ends {
            corners.extend([(last, layout.area.bottom), (first, layout.area.bottom)]);
            canvas.push_markup(&filled(load.style, NARROW, &corners));
        }
    }
}

/// A filled polygon without an outline.
fn filled(style: usize, opacity: f64, corners: &[(f64, f64)]) -> String {
    let corners: Vec<String> = corners
        .iter()
        .map(|(x, y)| format!("{},{}", coordinate_text(*x), coordinate_text(*y)))
        .collect();
    format!(
        "<polygon class=\"f{}\" fill=\"{}\" fill-opacity=\"{opacity}\" points=\"{}\"/>",
        colour_class(style),
        light_colour(style),
        corners.join(" ")
    )
}

/// A line in the colour of a series.
fn stroke(style: usize, width: f64, path: &str) -> String {
    format!(
        "<path class=\"s{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{width}\" d=\"{path}\"/>",
        colour_class(style),
        light_colour(style)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample_chart(shown: ProbeDrawing, probes: Vec<(f64, Option<u64>)>) -> DelayChart {
        DelayChart {
            title: "t".to_owned(),
            description: "d".to_owned(),
            since: "the start",
            trails: vec![Trail { label: "a<b".to_owned(), style: 0, probes }],
            shown,
            load: Vec::new(),
        }
    }

    /// 400 probes in 40 s, 20 windows of 2 s and 20 probes at most: those of the window k have
    /// 100 k + 1 … 100 k + 20 ms. By nearest rank 5 % of 20 is the first, 25 % the fifth, 50 % the
    /// tenth, 75 % the 15th, 95 % the 19th.
    #[test]
    fn percentiles_are_those_of_each_window() {
        let probe = |n: u64| (n as f64 * 0.1, Some((100 * (n / 20) + n % 20 + 1) * 1_000_000));
        let chart = sample_chart(ProbeDrawing::Bands, (0..=400).map(probe).take(400).collect());
        let windows = chart.trails[0].windows(60);
        assert_eq!(windows.len(), 20);
        // The last probe leaves at 39.9 s, so windows are 1.995 s long: the first has 20.
        assert!((windows[0].x.1 - 1.995).abs() < 1e-9);
        assert_eq!(windows[0].percentiles, Some([1.0, 5.0, 10.0, 15.0, 19.0]));
    }

    #[test]
    fn a_window_without_answers_is_a_gap_and_few_answers_are_no_bands() {
        let silent = 30.0..60.0;
        let probe = |n: u32| {
            let at = f64::from(n) * 0.1;
            (at, (!silent.contains(&at)).then_some(1_000_000))
        };
        let whole = sample_chart(ProbeDrawing::Bands, (0..1000).map(probe).collect());
        let text = whole.svg().file_with_style();
        // Two runs of two bands each, with two of the key.
        assert_eq!(text.matches("<polygon").count(), 6, "{text}");
        assert!(text.contains("300 lost"), "{text}");
        assert!(!sample_chart(ProbeDrawing::Bands, (0..70).map(probe).collect()).has_any());
        assert!(!sample_chart(ProbeDrawing::Probes, vec![(0.0, None)]).has_any());
    }

    #[test]
    fn of_many_probes_the_highest_and_the_lowest_of_each_moment_stay() {
        let area = Area { left: 0.0, top: 0.0, right: 500.0, bottom: 100.0 };
        let places = (0..10_000).map(|n| (f64::from(n) / 20.0, f64::from(n % 20)));
        let kept = thinned(places, area);
        assert!(kept.len() <= 3 * 500, "{}", kept.len());
        assert_eq!(kept.iter().filter(|at| at.1 == 19.0).count(), 500);
        assert_eq!(kept.iter().filter(|at| at.1 == 0.0).count(), 500);
    }

    #[test]
    fn a_lost_probe_is_a_stroke_at_its_time_and_no_time_of_0() {
        let probes = vec![(0.0, Some(1_000_000)), (5.0, None), (10.0, Some(2_000_000))];
        let text = sample_chart(ProbeDrawing::Probes, probes).svg().file_with_style();
        // Neither neighbour is joined over the gap: two moves, no line.
        let line = text.lines().find(|line| line.contains("<title>a&lt;b")).expect("the line");
        assert_eq!((line.matches('M').count(), line.matches('L').count()), (2, 0), "{line}");
        assert!(text.contains("1 lost"), "{text}");
    }

    #[test]
    fn odd_values_break_nothing() {
        for shown in [ProbeDrawing::Probes, ProbeDrawing::Bands] {
            for ns in [None, Some(0), Some(u64::MAX)] {
                for at in [0.0, -5.0, 1e300, f64::NAN] {
                    let text = sample_chart(shown, vec![(at, ns); 90]).svg().file_with_style();
                    assert!(!text.contains("NaN") && !text.contains("inf"), "{text}");
                }
            }
        }
        let mut loaded = sample_chart(ProbeDrawing::Probes, vec![(0.0, Some(1))]);
        let points = vec![(0.0, 1e9), (1.0, f64::NAN), (2.0, 2e9), (3.0, 1e9)];
        loaded.load = vec![ChartSeries::new("up", 2, points)];
        // Two areas and the sample of the key.
        assert_eq!(loaded.svg().file_with_style().matches("<polygon").count(), 3);
    }
}
