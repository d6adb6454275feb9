//! The true step of a clock, from readings of it. clock_getres(2) says 1 ns whatever the step is,
//! and the greatest common divisor of readings says 1 ns because they are rounded to whole ns.
//!
//! # Source
//! Readings are multiples of the step g, rounded; so the phases 2π d/g of the differences d point
//! the same way: the length of their mean vector is near 1 at the true step. Rounding both ends
//! of a difference leaves an error of about 0.41 ns (two uniform errors of 1 ns, 2·1/12), which
//! shortens the vector to exp(−(2π·0.41/g)²/2): 0.97 at 10 ns, 0.88 at 5 ns, 0.4 at 2 ns.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

/// Vectors shorter than this are no step: 0.8 is reached by true steps from about 4 ns on.
const SCORE_MIN: f64 = 0.8;
/// Below this the rounding to whole ns hides any step.
const STEP_MIN_NS: f64 = 2.0;
/// Steps are tried this much apart, as a ratio.
const TRY_RATIO: f64 = 1.0 + 1.0 / 512.0;
/// Differences beyond so many smallest ones would smear: phase errors grow with the difference.
const DIFFERENCE_MAX: u64 = 16;
/// A clock whose smallest difference is so coarse shows its step directly.
const COARSE_NS: u64 = 1_000;

/// The step of a clock, as its readings show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tick {
    /// The step, in ns; 1 when there is none coarser than the unit of the readings.
    pub step_ns: f64,
    /// Length of the mean phase vector at that step, 0 … 1.
    pub score: f64,
}

/// Finds the step behind differences of successive readings, which should vary by more than one
/// step. `None` when there are fewer than 16 that are not 0.
pub fn find_tick(differences_ns: &[u64]) -> Option<Tick> {
    let smallest = differences_ns.iter().copied().filter(|d| *d > 0).min()?;
    let limit = smallest.saturating_mul(DIFFERENCE_MAX);
    let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
    for difference in differences_ns.iter().filter(|d| (1..=limit).contains(*d)) {
        *counts.entry(*difference).or_default() += 1;
    }
    if counts.values().sum::<u64>() < 16 {
        return None;
    }
    if smallest >= COARSE_NS {
        return Some(Tick {
            step_ns: smallest as f64,
            score: periodicity_score(&counts, smallest as f64),
        });
    }
    let mut best = Tick { step_ns: 1.0, score: 0.0 };
    // A little above the smallest difference, which rounding may have made 1 ns too short.
    let mut step_ns = smallest as f64 + 1.0;
    while step_ns >= STEP_MIN_NS {
        let score = periodicity_score(&counts, step_ns);
        if score > best.score {
            best = Tick { step_ns, score };
        }
        step_ns /= TRY_RATIO;
    }
    let none = Tick { step_ns: 1.0, score: 1.0 };
    Some(if best.score >= SCORE_MIN && counts.len() > 1 { best } else { none })
}

/// Length of the mean of exp(2πi d/g).
fn periodicity_score(counts: &BTreeMap<u64, u64>, step_ns: f64) -> f64 {
    let (mut re, mut im, mut total) = (0.0, 0.0, 0.0);
    for (difference, count) in counts {
        let (sin, cos) = (TAU * (*difference as f64) / step_ns).sin_cos();
        re += cos * (*count as f64);
        im += sin * (*count as f64);
        total += *count as f64;
    }
    re.hypot(im) / total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Readings of a clock with step `step` at times that a small generator makes irregular.
    fn readings(step: f64, count: usize) -> Vec<u64> {
        let mut time = 0.0f64;
        let mut state = 1u64;
        let mut shown = Vec::new();
        for _ in 0..=count {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            time += 23.0 + ((state >> 33) % 97) as f64;
            shown.push(((time / step).floor() * step) as u64);
        }
        shown.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    #[test]
    fn the_step_of_a_made_clock_is_found() {
        for step in [5.0, 8.0, 10.0, 10.05, 13.3, 20.0] {
            let tick = find_tick(&readings(step, 4000)).expect("enough readings");
            assert!((tick.step_ns / step - 1.0).abs() < 0.02, "{step}: {tick:?}");
            assert!(tick.score > SCORE_MIN, "{step}: {tick:?}");
        }
    }

    #[test]
    fn a_clock_without_a_coarser_step_says_1_ns() {
        let tick = find_tick(&readings(1.0, 4000)).expect("enough readings");
        assert!((tick.step_ns - 1.0).abs() < f64::EPSILON, "{tick:?}");
    }

    #[test]
    fn a_coarse_clock_shows_its_step_directly() {
        let differences = [0, 0, 4_000_000].repeat(20);
        let tick = find_tick(&differences).expect("enough readings");
        assert!((tick.step_ns - 4_000_000.0).abs() < 1.0, "{tick:?}");
    }

    #[test]
    fn too_few_readings_tell_nothing() {
        assert_eq!(find_tick(&[]), None);
        assert_eq!(find_tick(&[0; 100]), None);
        assert_eq!(find_tick(&[10; 15]), None);
    }
}
