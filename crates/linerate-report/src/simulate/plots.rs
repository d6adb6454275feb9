//! The diagrams of one run: bytes by time, congestion windows, goodput by time.

use linerate_core::simulate::Point;

use crate::number;
use crate::svg::{Axis, LineChart, Series, thinned};

/// Flows that are drawn; more lines than this are not told apart.
const FLOWS_DRAWN: usize = 8;
/// Points of a line; the chart is about 500 units wide.
const POINTS_DRAWN: usize = 1000;

/// How far a run was at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Virtual time.
    pub at_ns: u64,
    /// Payload of all flows that was acknowledged by then.
    pub acked_bytes: u64,
}

/// File names and SVG of the diagrams: points of each flow, and samples of all together.
pub fn plots(
    flows: &[Vec<Point>],
    samples: &[Sample],
    ceiling_bps: Option<f64>,
) -> Vec<(&'static str, String)> {
    let charts = charts(flows, samples, ceiling_bps).into_iter();
    charts.map(|(name, chart)| (name, chart.svg().file())).collect()
}

/// The same, to be drawn elsewhere.
pub(crate) fn charts(
    flows: &[Vec<Point>],
    samples: &[Sample],
    ceiling_bps: Option<f64>,
) -> [(&'static str, LineChart); 3] {
    [
        ("time-sequence.svg", sequence(flows)),
        ("cwnd.svg", windows(flows)),
        ("goodput.svg", goodput(samples, ceiling_bps)),
    ]
}

fn sequence(flows: &[Vec<Point>]) -> LineChart {
    let lines = drawn(flows).map(|(index, points)| (name(flows, index), points));
    sequences("Time and sequence", lines)
}

/// What each of several flows had acknowledged by when, at most eight of them.
pub(crate) fn sequences<'a>(
    title: &str,
    lines: impl Iterator<Item = (String, &'a [Point])>,
) -> LineChart {
    let line = |point: &Point| (point.at.nanos() as f64 / 1e9, point.acked_bytes as f64 / 1e6);
    let series = lines.take(FLOWS_DRAWN).enumerate().map(|(index, (label, points))| {
        Series::new(label, index, thinned(points, POINTS_DRAWN).map(line).collect())
    });
    let description = "Payload that was acknowledged, by time";
    LineChart::new(title, description, axes("acknowledged payload, MB"), series.collect())
}

/// Time, and something else.
fn axes(y: &str) -> [Axis; 2] {
    ["time, s", y].map(|label| Axis::linear(label, number::short_signed))
}

fn windows(flows: &[Vec<Point>]) -> LineChart {
    let at = |point: &Point| point.at.nanos() as f64 / 1e9;
    let mut series = Vec::new();
    for (index, points) in drawn(flows) {
        let cwnd = |point: &Point| (at(point), point.cwnd_bytes as f64 / 1e6);
        let windows = thinned(points, POINTS_DRAWN).map(cwnd).collect();
        series.push(Series::new(name(flows, index), index, windows));
        let ssthresh = |point: &Point| Some((at(point), point.ssthresh_bytes? as f64 / 1e6));
        let ssthresh: Vec<(f64, f64)> =
            thinned(points, POINTS_DRAWN).filter_map(ssthresh).collect();
        // The thresholds of several flows would hide their windows.
        if flows.len() == 1 && !ssthresh.is_empty() {
            series.push(Series::new("ssthresh", 1, ssthresh).dashed());
        }
    }
    let description = "Payload in the congestion window, by time";
    LineChart::new("Congestion window", description, axes("window, MB"), series)
}

fn goodput(samples: &[Sample], ceiling_bps: Option<f64>) -> LineChart {
    let rate = |pair: &[Sample]| {
        let span_ns = pair[1].at_ns.saturating_sub(pair[0].at_ns);
        let bytes = pair[1].acked_bytes.saturating_sub(pair[0].acked_bytes);
        (span_ns > 0).then(|| (pair[1].at_ns as f64 / 1e9, bytes as f64 * 8e3 / span_ns as f64))
    };
    let rates = samples.windows(2).filter_map(rate).collect();
    let mut series = vec![Series::new("all flows", 0, rates)];
    if let (Some(bps), Some(last)) = (ceiling_bps, samples.last()) {
        let points = vec![(0.0, bps / 1e6), (last.at_ns as f64 / 1e9, bps / 1e6)];
        series.push(Series::new("ceiling", 1, points).dashed());
    }
    let description = "Payload acknowledged in each interval, by time";
    LineChart::new("Goodput", description, axes("goodput, Mbit/s"), series)
}

fn drawn(flows: &[Vec<Point>]) -> impl Iterator<Item = (usize, &[Point])> {
    flows.iter().take(FLOWS_DRAWN).map(Vec::as_slice).enumerate()
}

fn name(flows: &[Vec<Point>], index: usize) -> String {
    if flows.len() == 1 { "flow".to_owned() } else { format!("flow {}", index + 1) }
}

#[cfg(test)]
mod tests {
    use linerate_core::time::MonoTime;

    use super::*;

    #[test]
    fn the_goodput_of_an_interval_is_what_it_acknowledged() {
        // 1 MB in the first second, 3 MB in the next: 8 and 24 Mbit/s.
        let sample =
            |s: u64, mb: u64| Sample { at_ns: s * 1_000_000_000, acked_bytes: mb * 1_000_000 };
        let chart = goodput(&[sample(0, 0), sample(1, 1), sample(2, 4)], Some(50e6));
        assert_eq!(chart.series[0].points, [(1.0, 8.0), (2.0, 24.0)]);
        assert_eq!(chart.series[1].points, [(0.0, 50.0), (2.0, 50.0)]);
    }

    #[test]
    fn long_runs_are_thinned_and_keep_their_end() {
        let point = |n: u64| Point {
            at: MonoTime::from_nanos(n),
            acked_bytes: n,
            cwnd_bytes: 1,
            ssthresh_bytes: Some(1),
        };
        let points: Vec<Point> = (0..12_345).map(point).collect();
        let thinned: Vec<&Point> = thinned(&points, POINTS_DRAWN).collect();
        assert!(thinned.len() <= POINTS_DRAWN + 1);
        assert_eq!(thinned.last().map(|point| point.acked_bytes), Some(12_344));
        for (name, svg) in plots(&[points, vec![]], &[], None) {
            assert!(name.ends_with(".svg") && !svg.contains("NaN"), "{name}");
        }
    }
}
