//! What the sections are written with: symbols, and curves from a function.
//!
//! Left out: the text of any formula.

use std::time::Duration;

use super::{Curve, Symbol};
use crate::units::{BitRate, Bytes};

/// One line of a list of symbols.
pub(super) const fn symbol(
    symbol: &'static str,
    meaning: &'static str,
    unit: &'static str,
) -> Symbol {
    Symbol { symbol, meaning, unit }
}

/// Values from `from` to `to`, evenly spaced on a logarithmic axis.
pub(super) fn decades(from: f64, to: f64, steps: u32) -> impl Iterator<Item = f64> {
    evenly(from.ln(), to.ln(), steps).map(f64::exp)
}

/// Values from `from` to `to`, evenly spaced.
pub(super) fn evenly(from: f64, to: f64, steps: u32) -> impl Iterator<Item = f64> {
    (0..=steps).map(move |step| from + (to - from) * f64::from(step) / f64::from(steps))
}

/// A curve through every point at which the function has an answer.
pub(super) fn curve<E>(
    label: impl Into<String>,
    xs: impl Iterator<Item = f64>,
    y: impl Fn(f64) -> Result<f64, E>,
) -> Curve {
    let points = xs.filter_map(|x| y(x).ok().map(|y| (x, y))).collect();
    Curve { label: label.into(), points, steps: false }
}

/// What an example computes, as a number: not one when the formula has no answer, so that its
/// test fails.
pub(super) fn number<E>(result: Result<f64, E>) -> f64 {
    result.unwrap_or(f64::NAN)
}

/// A rate in Mbit/s, to the nearest bit/s; 0 when there is none such.
pub(super) fn mbps(rate: f64) -> BitRate {
    BitRate::from_nearest(rate * 1e6).unwrap_or_default()
}

/// A round trip or time in milliseconds.
pub(super) fn ms(time: f64) -> Duration {
    Duration::from_secs_f64(time / 1e3)
}

/// A size to the nearest byte.
pub(super) fn bytes(size: f64) -> Bytes {
    // The nearest whole number of a rate is that of a size.
    Bytes::new(BitRate::from_nearest(size).unwrap_or_default().bits_per_sec())
}
