//! The expected rate while one input changes and all others stay: the curves of the plots.

use std::time::Duration;

use super::climb::{LadderError, ladder_from_facts};
use super::facts::{CeilingFacts, Known, Response};
use crate::theory::window::WINDOW_MAX_BYTES;
use crate::units::{Bytes, Fraction};

/// Points of a curve: enough for a smooth bend.
const POINTS: u32 = 160;

/// One curve of a plot.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Name beside the curve.
    pub label: String,
    /// Points in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

/// The expected rate over one input.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// Expected payload in bit/s, the steady rate of the ladder, over the input.
    pub curves: Vec<Curve>,
    /// Rate that the path could carry, bit/s.
    pub ceiling_bps: Option<f64>,
    /// Point of the facts on the curves.
    pub point: Option<(f64, f64)>,
}

/// The rate by window in bytes, up to eight bandwidth-delay products and at least twice the
/// present one; `None` without a round trip or for UDP.
/// # Errors
/// As [`ladder_from_facts`].
pub fn by_window(facts: &CeilingFacts) -> Result<Option<Sweep>, LadderError> {
    let (true, Some(rtt)) = (facts.packet.is_tcp(), &facts.rtt) else { return Ok(None) };
    let ladder = ladder_from_facts(facts)?;
    let ceiling_bps = ladder.ceiling().map(|rung| rung.payload_bps);
    let present = facts.window.as_ref().map(|window| window.value.count() as f64);
    let flight =
        ceiling_bps.map_or(0.0, |bps| bps * rtt.value.as_secs_f64() / 8.0 / f64::from(facts.flows));
    let high = (8.0 * flight).max(2.0 * present.unwrap_or(65_536.0));
    let low = (flight / 64.0).min(present.unwrap_or(f64::MAX) / 2.0).clamp(1024.0, high / 4.0);
    let with = |bytes: f64| CeilingFacts {
        window: Some(Known::new(Bytes::new(whole_window(bytes)), "the axis")),
        ..facts.clone()
    };
    let curve = steady_rate_curve("expected", low, high.min(WINDOW_MAX_BYTES as f64), with)?;
    let point = present.zip(ladder.steady_bps());
    Ok(Some(Sweep { curves: vec![curve], ceiling_bps, point }))
}

/// The rate by round trip in milliseconds, from a hundredth of the present one to ten times it;
/// `None` without one or for UDP.
/// # Errors
/// As [`ladder_from_facts`].
pub fn by_rtt(facts: &CeilingFacts) -> Result<Option<Sweep>, LadderError> {
    let (true, Some(rtt)) = (facts.packet.is_tcp(), &facts.rtt) else { return Ok(None) };
    let ladder = ladder_from_facts(facts)?;
    let ms = rtt.value.as_secs_f64() * 1e3;
    let with = |ms: f64| CeilingFacts {
        rtt: Some(Known::new(Duration::from_secs_f64(ms / 1e3), "the axis")),
        ..facts.clone()
    };
    let curve = steady_rate_curve("expected", ms / 100.0, ms * 10.0, with)?;
    Ok(Some(Sweep {
        curves: vec![curve],
        ceiling_bps: ladder.ceiling().map(|rung| rung.payload_bps),
        point: ladder.steady_bps().map(|bps| (ms, bps)),
    }))
}

/// The rate by loss, from 10^-8 to a tenth, for each congestion control; `None` without a round
/// trip or for UDP.
/// # Errors
/// As [`ladder_from_facts`].
pub fn by_loss(facts: &CeilingFacts) -> Result<Option<Sweep>, LadderError> {
    if !facts.packet.is_tcp() || facts.rtt.is_none() {
        return Ok(None);
    }
    let ladder = ladder_from_facts(facts)?;
    let present = facts.loss.as_ref().map(|loss| loss.value.as_f64());
    let low = present.map_or(1e-8, |p| (p / 10.0).min(1e-8));
    let high = present.map_or(0.1, |p| (p * 2.0).clamp(0.1, 0.2));
    let mut curves = Vec::new();
    for response in Response::ALL {
        let with = |p: f64| CeilingFacts {
            loss: Fraction::from_value(p).map(|share| Known::new(share, "the axis")),
            response,
            ..facts.clone()
        };
        let label = match response {
            Response::Reno => "Reno",
            Response::Cubic => "CUBIC",
            Response::Bbr => "BBR",
        };
        curves.push(steady_rate_curve(label, low, high, with)?);
    }
    let ceiling_bps = ladder.ceiling().map(|rung| rung.payload_bps);
    Ok(Some(Sweep { curves, ceiling_bps, point: present.zip(ladder.steady_bps()) }))
}

/// The steady rate at [`POINTS`] values from `low` to `high`, equally far on a logarithmic axis.
fn steady_rate_curve(
    label: &str,
    low: f64,
    high: f64,
    with: impl Fn(f64) -> CeilingFacts,
) -> Result<Curve, LadderError> {
    let mut points = Vec::new();
    for index in 0..POINTS {
        let x = low * (high / low).powf(f64::from(index) / f64::from(POINTS - 1));
        let ladder = ladder_from_facts(&with(x))?;
        points.extend(ladder.steady_bps().map(|bps| (x, bps)));
    }
    Ok(Curve { label: label.to_owned(), points })
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from f64 stays in the range"
)]
fn whole_window(bytes: f64) -> u64 {
    (bytes.round().max(1.0) as u64).min(WINDOW_MAX_BYTES)
}
