//! The expected rate by window, by round trip and by loss, with the asked point ringed.

use linerate_core::theory::ladder::{Facts, LadderError, Sweep, by_loss, by_rtt, by_window};

use crate::number;
use crate::svg::{Axis, LineChart, Series};

/// Names and contents of the plots; none for UDP or without a round trip.
/// # Errors
/// As [`linerate_core::theory::ladder::climb`].
pub fn svgs(facts: &Facts) -> Result<Vec<(&'static str, String)>, LadderError> {
    let mut files = Vec::new();
    let sweeps: [(&str, Words, Option<Sweep>); 3] = [
        ("rate-by-window.svg", WINDOW, by_window(facts)?),
        ("rate-by-rtt.svg", RTT, by_rtt(facts)?),
        ("rate-by-loss.svg", LOSS, by_loss(facts)?),
    ];
    for (name, words, sweep) in sweeps {
        files.extend(sweep.map(|sweep| (name, chart(&words, &sweep).svg().file())));
    }
    Ok(files)
}

/// What a plot says about itself.
struct Words {
    title: &'static str,
    description: &'static str,
    x: &'static str,
    show: fn(f64) -> String,
}

const WINDOW: Words = Words {
    title: "Rate by window",
    description: "Expected payload rate over the receive window of each flow",
    x: "window of each flow, bytes",
    show: number::short,
};

const RTT: Words = Words {
    title: "Rate by round trip",
    description: "Expected payload rate over the round-trip time",
    x: "round trip, ms",
    show: number::short_time,
};

const LOSS: Words = Words {
    title: "Rate by loss",
    description: "Expected payload rate over the share of packets at which a loss begins",
    x: "loss events per packet",
    show: exponent,
};

fn chart(words: &Words, sweep: &Sweep) -> LineChart {
    let mbps = |points: &[(f64, f64)]| points.iter().map(|(x, bps)| (*x, bps / 1e6)).collect();
    let curves = sweep.curves.iter().enumerate();
    let mut series: Vec<Series> = curves
        .map(|(style, curve)| Series::new(&curve.label, style, mbps(&curve.points)))
        .collect();
    let xs = || sweep.curves.iter().flat_map(|curve| curve.points.iter().map(|point| point.0));
    let (low, high) = (xs().fold(f64::MAX, f64::min), xs().fold(f64::MIN, f64::max));
    if let Some(bps) = sweep.ceiling_bps {
        let points = vec![(low, bps / 1e6), (high, bps / 1e6)];
        series.push(Series::new("ceiling", series.len(), points).dashed());
    }
    if let Some((x, bps)) = sweep.point.filter(|(x, _)| (low..=high).contains(x)) {
        let at = (x, bps / 1e6);
        let point = Series::new("asked", series.len(), vec![at]);
        series.push(Series { rings: vec![at], ..point });
    }
    let axes = [Axis::log(words.x, words.show), Axis::log("payload, Mbit/s", number::short)];
    LineChart::new(words.title, words.description, axes, series)
}

/// A power of ten as such: `1e-4`.
fn exponent(value: f64) -> String {
    format!("{value:e}")
}
