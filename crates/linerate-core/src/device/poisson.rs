//! Rates of rare events, and what no event at all leaves possible.
//!
//! Sources: F. Garwood, "Fiducial limits for the Poisson distribution", Biometrika 28 (1936); the
//! bound 3/n is Hanley and Lippman-Hand, "If nothing goes wrong, is everything all right?", JAMA
//! 249 (1983).

use serde::{Deserialize, Serialize};

/// Probability of each tail outside a 95 % interval.
const TAIL: f64 = 0.025;

/// A rate of events with its exact 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct EventRate {
    /// Number of events that were observed.
    pub events: u64,
    /// Time of the observation, s.
    pub seconds: f64,
    /// Events per second, the estimate.
    pub per_second: f64,
    /// Lower end of the interval.
    pub low_per_second: f64,
    /// Upper end of the interval.
    pub high_per_second: f64,
}

impl EventRate {
    /// The rate of `events` in `seconds`; `None` without time.
    pub fn new(events: u64, seconds: f64) -> Option<Self> {
        if !(seconds.is_finite() && seconds > 0.0) {
            return None;
        }
        let (low, high) = interval(events);
        Some(Self {
            events,
            seconds,
            per_second: events as f64 / seconds,
            low_per_second: low / seconds,
            high_per_second: high / seconds,
        })
    }
}

/// The exact 95 % interval of the mean of a Poisson distribution of which `events` were seen.
///
/// Its ends are the means at which so many events or more, or so many or fewer, come with a
/// probability of 2.5 %. 10 events give 4.795 to 18.390.
pub fn interval(events: u64) -> (f64, f64) {
    let n = events as f64;
    // From two thousand events on the cube-root approximation (Wilson and Hilferty) is good to
    // 1e-6 and the sums of the exact one grow long.
    if events > 2_000 {
        let end = |n: f64, z: f64| n * (1.0 - 1.0 / (9.0 * n) + z / (3.0 * n.sqrt())).powi(3);
        return (end(n, -crate::stats::Z_95), end(n + 1.0, crate::stats::Z_95));
    }
    let low =
        if events == 0 { 0.0 } else { mean_for(|mean| at_most(events - 1, mean), 1.0 - TAIL) };
    (low, mean_for(|mean| at_most(events, mean), TAIL))
}

/// P(N <= events) for a mean.
fn at_most(events: u64, mean: f64) -> f64 {
    let mut log_term = -mean;
    let mut sum = log_term.exp();
    for k in 1..=events {
        log_term += (mean / k as f64).ln();
        sum += log_term.exp();
    }
    sum
}

/// The mean at which a falling function has a value.
fn mean_for(function: impl Fn(f64) -> f64, value: f64) -> f64 {
    let (mut low, mut high) = (0.0, 4_096.0);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if function(middle) > value { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

/// Largest loss ratio, at 95 %, that `frames` without a loss leave possible: 3 / n; `None` for no
/// frames.
///
/// 60 s at 1,000,000 frames/s leave 5e-8.
pub fn zero_loss_bound(frames: u64) -> Option<f64> {
    (frames > 0).then(|| (3.0 / frames as f64).min(1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_limits_come_out() {
        // Garwood's limits as tabulated, for example by Ulm (Am. J. Epidemiology 131, 1990) and
        // in Pearson and Hartley's Biometrika tables: 0.025 and 0.975 quantiles of chi-squared
        // over 2 with 2n and 2n + 2 degrees of freedom.
        let cases = [
            (0, 0.0, 3.689),
            (1, 0.0253, 5.572),
            (2, 0.2422, 7.225),
            (3, 0.6187, 8.767),
            (5, 1.6235, 11.668),
            (10, 4.7954, 18.390),
            (20, 12.217, 30.888),
            (50, 37.111, 65.919),
            (100, 81.364, 121.627),
        ];
        for (events, low, high) in cases {
            let got = interval(events);
            let close = |got: f64, want: f64| (got - want).abs() <= 5e-4 * want.max(1.0);
            assert!(close(got.0, low) && close(got.1, high), "{events}: {got:?}");
        }
    }

    #[test]
    fn many_events_meet_the_approximation() {
        // At the seam both ways agree.
        let (exact, near) = (interval(2_000), interval(2_001));
        assert!((near.0 - exact.0 - 1.0).abs() < 0.05, "{exact:?} {near:?}");
        assert!((near.1 - exact.1 - 1.0).abs() < 0.05, "{exact:?} {near:?}");
    }

    #[test]
    fn three_over_n_bounds_the_loss_of_a_clean_trial() {
        assert_eq!(zero_loss_bound(60_000_000), Some(5e-8));
        assert_eq!(zero_loss_bound(0), None);
        assert_eq!(zero_loss_bound(1), Some(1.0));
    }

    #[test]
    fn a_rate_is_events_over_time() {
        let rate = EventRate::new(10, 100.0).expect("time passed");
        assert_eq!(rate.per_second, 0.1);
        assert!((rate.low_per_second - 0.047_954).abs() < 1e-5);
        assert!((rate.high_per_second - 0.183_90).abs() < 1e-5);
        assert_eq!(EventRate::new(1, 0.0), None);
    }
}
