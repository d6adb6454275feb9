//! The diagrams of one run: bytes by time, congestion windows, goodput by time.

use linerate_core::simulate::Point;

use crate::number;
use crate::svg::{Axis, Kind, LineChart, Series};

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
    let series = lines.take(FLOWS_DRAWN).enumerate().map(|(index, (label, points))| Series {
        label,
        ..plain(index, thin(points).map(line).collect())
    });
    LineChart {
        title: title.to_owned(),
        description: "Payload that was acknowledged, by time".to_owned(),
        x: Axis::plain("time, s", Kind::Linear, number::short_signed),
        y: Axis::plain("acknowledged payload, MB", Kind::Linear, number::short_signed),
        series: series.collect(),
        room: 0.0,
    }
}

fn windows(flows: &[Vec<Point>]) -> LineChart {
    let at = |point: &Point| point.at.nanos() as f64 / 1e9;
    let mut series = Vec::new();
    for (index, points) in drawn(flows) {
        let cwnd = |point: &Point| (at(point), point.cwnd_bytes as f64 / 1e6);
        let label = name(flows, index);
        series.push(Series { label, ..plain(index, thin(points).map(cwnd).collect()) });
        let ssthresh = |point: &Point| Some((at(point), point.ssthresh_bytes? as f64 / 1e6));
        let ssthresh: Vec<(f64, f64)> = thin(points).filter_map(ssthresh).collect();
        // The thresholds of several flows would hide their windows.
        if flows.len() == 1 && !ssthresh.is_empty() {
            let label = "ssthresh".to_owned();
            series.push(Series { label, dashed: true, ..plain(1, ssthresh) });
        }
    }
    LineChart {
        title: "Congestion window".to_owned(),
        description: "Payload in the congestion window, by time".to_owned(),
        x: Axis::plain("time, s", Kind::Linear, number::short_signed),
        y: Axis::plain("window, MB", Kind::Linear, number::short_signed),
        series,
        room: 0.0,
    }
}

fn goodput(samples: &[Sample], ceiling_bps: Option<f64>) -> LineChart {
    let rate = |pair: &[Sample]| {
        let span_ns = pair[1].at_ns.saturating_sub(pair[0].at_ns);
        let bytes = pair[1].acked_bytes.saturating_sub(pair[0].acked_bytes);
        (span_ns > 0).then(|| (pair[1].at_ns as f64 / 1e9, bytes as f64 * 8e3 / span_ns as f64))
    };
    let mut series = vec![Series {
        label: "all flows".to_owned(),
        ..plain(0, samples.windows(2).filter_map(rate).collect())
    }];
    if let (Some(bps), Some(last)) = (ceiling_bps, samples.last()) {
        let points = vec![(0.0, bps / 1e6), (last.at_ns as f64 / 1e9, bps / 1e6)];
        series.push(Series { label: "ceiling".to_owned(), dashed: true, ..plain(1, points) });
    }
    LineChart {
        title: "Goodput".to_owned(),
        description: "Payload acknowledged in each interval, by time".to_owned(),
        x: Axis::plain("time, s", Kind::Linear, number::short_signed),
        y: Axis::plain("goodput, Mbit/s", Kind::Linear, number::short_signed),
        series,
        room: 0.0,
    }
}

fn drawn(flows: &[Vec<Point>]) -> impl Iterator<Item = (usize, &[Point])> {
    flows.iter().take(FLOWS_DRAWN).map(Vec::as_slice).enumerate()
}

fn name(flows: &[Vec<Point>], index: usize) -> String {
    if flows.len() == 1 { "flow".to_owned() } else { format!("flow {}", index + 1) }
}

fn plain(style: usize, points: Vec<(f64, f64)>) -> Series {
    let (label, rings) = (String::new(), vec![]);
    Series { label, style, points, rings, dashed: false, steps: false }
}

/// At most [`POINTS_DRAWN`] points, the last among them.
fn thin(points: &[Point]) -> impl Iterator<Item = &Point> {
    let step = points.len().div_ceil(POINTS_DRAWN).max(1);
    let last = points.len().saturating_sub(1);
    points.iter().enumerate().filter(move |(n, _)| n % step == 0 || *n == last).map(|(_, p)| p)
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
        let thinned: Vec<&Point> = thin(&points).collect();
        assert!(thinned.len() <= POINTS_DRAWN + 1);
        assert_eq!(thinned.last().map(|point| point.acked_bytes), Some(12_344));
        for (name, svg) in plots(&[points, vec![]], &[], None) {
            assert!(name.ends_with(".svg") && !svg.contains("NaN"), "{name}");
        }
    }
}
