//! The diagrams of one run: bytes by time, congestion windows, goodput by time.

use linerate_core::simulate::SequencePoint;

use crate::number;
use crate::svg::{Axis, ChartSeries, LineChart, thinned};

/// Flows that are drawn; more lines than this are not told apart.
const FLOWS_DRAWN: usize = 8;
/// Points of a line; the chart is about 500 units wide.
const POINTS_DRAWN: usize = 1000;

/// How far a run was at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProgressSample {
    /// Virtual time, ns since the start.
    pub at_ns: u64,
    /// Payload of all flows that was acknowledged by then.
    pub acked_bytes: u64,
}

/// File names and SVG of the diagrams: points of each flow, and samples of all together.
pub fn diagram_files(
    flows: &[Vec<SequencePoint>],
    samples: &[ProgressSample],
    ceiling_bps: Option<f64>,
) -> Vec<(&'static str, String)> {
    let charts = charts(flows, samples, ceiling_bps).into_iter();
    charts.map(|(name, chart)| (name, chart.svg().file_with_style())).collect()
}

/// The same, to be drawn elsewhere.
pub(crate) fn charts(
    flows: &[Vec<SequencePoint>],
    samples: &[ProgressSample],
    ceiling_bps: Option<f64>,
) -> [(&'static str, LineChart); 3] {
    [
        ("time-sequence.svg", sequence(flows)),
        ("cwnd.svg", windows(flows)),
        ("goodput.svg", goodput(samples, ceiling_bps)),
    ]
}

fn sequence(flows: &[Vec<SequencePoint>]) -> LineChart {
    let lines = drawn_flows(flows).map(|(index, points)| (name(flows, index), points));
    sequences("Time and sequence", lines)
}

/// Acknowledged payload of each flow over time, of at most eight flows.
pub(crate) fn sequences<'a>(
    title: &str,
    lines: impl Iterator<Item = (String, &'a [SequencePoint])>,
) -> LineChart {
    let line =
        |point: &SequencePoint| (point.at.as_nanos() as f64 / 1e9, point.acked_bytes as f64 / 1e6);
    let series = lines.take(FLOWS_DRAWN).enumerate().map(|(index, (label, points))| {
        ChartSeries::new(label, index, thinned(points, POINTS_DRAWN).map(line).collect())
    });
    let description = "Payload that was acknowledged, by time";
    LineChart::new(title, description, time_axes("acknowledged payload, MB"), series.collect())
}

/// Time, and something else.
fn time_axes(y: &str) -> [Axis; 2] {
    ["time, s", y].map(|label| Axis::linear(label, number::short_signed))
}

fn windows(flows: &[Vec<SequencePoint>]) -> LineChart {
    let at = |point: &SequencePoint| point.at.as_nanos() as f64 / 1e9;
    let mut series = Vec::new();
    for (index, points) in drawn_flows(flows) {
        let cwnd = |point: &SequencePoint| (at(point), point.cwnd_bytes as f64 / 1e6);
        let windows = thinned(points, POINTS_DRAWN).map(cwnd).collect();
        series.push(ChartSeries::new(name(flows, index), index, windows));
        let ssthresh =
            |point: &SequencePoint| Some((at(point), point.ssthresh_bytes? as f64 / 1e6));
        let ssthresh: Vec<(f64, f64)> =
            thinned(points, POINTS_DRAWN).filter_map(ssthresh).collect();
        // The thresholds of several flows would hide their windows.
        if flows.len() == 1 && !ssthresh.is_empty() {
            series.push(ChartSeries::new("ssthresh", 1, ssthresh).dashed());
        }
    }
    let description = "Payload in the congestion window, by time";
    LineChart::new("Congestion window", description, time_axes("window, MB"), series)
}

fn goodput(samples: &[ProgressSample], ceiling_bps: Option<f64>) -> LineChart {
    let rate = |pair: &[ProgressSample]| {
        let span_ns = pair[1].at_ns.saturating_sub(pair[0].at_ns);
        let bytes = pair[1].acked_bytes.saturating_sub(pair[0].acked_bytes);
        (span_ns > 0).then(|| (pair[1].at_ns as f64 / 1e9, bytes as f64 * 8e3 / span_ns as f64))
    };
    let rates = samples.windows(2).filter_map(rate).collect();
    let mut series = vec![ChartSeries::new("all flows", 0, rates)];
    if let (Some(bps), Some(last)) = (ceiling_bps, samples.last()) {
        let points = vec![(0.0, bps / 1e6), (last.at_ns as f64 / 1e9, bps / 1e6)];
        series.push(ChartSeries::new("ceiling", 1, points).dashed());
    }
    let description = "Payload acknowledged in each interval, by time";
    LineChart::new("Goodput", description, time_axes("goodput, Mbit/s"), series)
}

fn drawn_flows(flows: &[Vec<SequencePoint>]) -> impl Iterator<Item = (usize, &[SequencePoint])> {
    flows.iter().take(FLOWS_DRAWN).map(Vec::as_slice).enumerate()
}

fn name(flows: &[Vec<SequencePoint>], index: usize) -> String {
    if flows.len() == 1 { "flow".to_owned() } else { format!("flow {}", index + 1) }
}

#[cfg(test)]
mod tests {
    use linerate_core::time::MonoTime;

    use super::*;

    #[test]
    fn the_goodput_of_an_interval_is_what_it_acknowledged() {
        // 1 MB in the first second, 3 MB in the next: 8 and 24 Mbit/s.
        let sample = |s: u64, mb: u64| ProgressSample {
            at_ns: s * 1_000_000_000,
            acked_bytes: mb * 1_000_000,
        };
        let chart = goodput(&[sample(0, 0), sample(1, 1), sample(2, 4)], Some(50e6));
        assert_eq!(chart.series[0].points, [(1.0, 8.0), (2.0, 24.0)]);
        assert_eq!(chart.series[1].points, [(0.0, 50.0), (2.0, 50.0)]);
    }

    #[test]
    fn long_runs_are_thinned_and_keep_their_end() {
        let point = |n: u64| SequencePoint {
            at: MonoTime::from_nanos(n),
            acked_bytes: n,
            cwnd_bytes: 1,
            ssthresh_bytes: Some(1),
        };
        let points: Vec<SequencePoint> = (0..12_345).map(point).collect();
        let thinned: Vec<&SequencePoint> = thinned(&points, POINTS_DRAWN).collect();
        assert!(thinned.len() <= POINTS_DRAWN + 1);
        assert_eq!(thinned.last().map(|point| point.acked_bytes), Some(12_344));
        for (name, svg) in diagram_files(&[points, vec![]], &[], None) {
            assert!(name.ends_with(".svg") && !svg.contains("NaN"), "{name}");
        }
    }
}
