//! The expected rate by window, by round trip and by loss, with the asked point ringed.

use linerate_core::theory::ladder::{CeilingFacts, LadderError, Sweep, by_loss, by_rtt, by_window};

use crate::number;
use crate::svg::{Axis, ChartSeries, LineChart};

/// Names and contents of the plots; none for UDP or without a round trip.
/// # Errors
/// As [`linerate_core::theory::ladder::ladder_from_facts`].
pub fn svg_files(facts: &CeilingFacts) -> Result<Vec<(&'static str, String)>, LadderError> {
    let mut files = Vec::new();
    let sweeps: [(&str, PlotWords, Option<Sweep>); 3] = [
        ("rate-by-window.svg", WINDOW, by_window(facts)?),
        ("rate-by-rtt.svg", RTT, by_rtt(facts)?),
        ("rate-by-loss.svg", LOSS, by_loss(facts)?),
    ];
    for (name, words, sweep) in sweeps {
        files
            .extend(sweep.map(|sweep| (name, sweep_chart(&words, &sweep).svg().file_with_style())));
    }
    Ok(files)
}

/// The words of a plot: title, description, label of the horizontal axis.
struct PlotWords {
    title: &'static str,
    description: &'static str,
    x: &'static str,
    show: fn(f64) -> String,
}

const WINDOW: PlotWords = PlotWords {
    title: "Rate by window",
    description: "Expected payload rate over the receive window of each flow",
    x: "window of each flow, bytes",
    show: number::short_count,
};

const RTT: PlotWords = PlotWords {
    title: "Rate by round trip",
    description: "Expected payload rate over the round-trip time",
    x: "round trip, ms",
    show: number::short_time,
};

const LOSS: PlotWords = PlotWords {
    title: "Rate by loss",
    description: "Expected payload rate over the share of packets at which a loss begins",
    x: "loss events per packet",
    show: exponent,
};

fn sweep_chart(words: &PlotWords, sweep: &Sweep) -> LineChart {
    let mbps = |points: &[(f64, f64)]| points.iter().map(|(x, bps)| (*x, bps / 1e6)).collect();
    let curves = sweep.curves.iter().enumerate();
    let mut series: Vec<ChartSeries> = curves
        .map(|(style, curve)| ChartSeries::new(&curve.label, style, mbps(&curve.points)))
        .collect();
    let xs = || sweep.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let (low, high) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max));
    if let Some(bps) = sweep.ceiling_bps {
        let points = vec![(low, bps / 1e6), (high, bps / 1e6)];
        series.push(ChartSeries::new("ceiling", series.len(), points).dashed());
    }
    if let Some((x, bps)) = sweep.point.filter(|(x, _)| (low..=high).contains(x)) {
        let at = (x, bps / 1e6);
        let point = ChartSeries::new("asked", series.len(), vec![at]);
        series.push(ChartSeries { rings: vec![at], ..point });
    }
    let axes = [
        Axis::logarithmic(words.x, words.show),
        Axis::logarithmic("payload, Mbit/s", number::short_count),
    ];
    LineChart::new(words.title, words.description, axes, series)
}

/// A power of ten as such: `1e-4`.
fn exponent(value: f64) -> String {
    format!("{value:e}")
}
