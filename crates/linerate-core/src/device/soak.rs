//! A sustained run: hours at one load, in intervals.
//!
//! Source: the practice of RFC 2544 §24's long trials; events are loss runs, their rate has
//! Garwood's interval, the loss ratio Wilson's or the bound 3/n.

use super::poisson::{EventRate, zero_loss_bound};
use crate::record::{LoadPoint, RateFound, Soak, WorstSecond};
use crate::stats::{Z_95, wilson_interval};

/// One interval of a sustained run.
#[derive(Clone, Debug, PartialEq)]
pub struct SoakInterval {
    /// Load and loss of the interval.
    pub point: LoadPoint,
    /// Length of the interval, ns.
    pub duration_ns: u64,
    /// Runs of lost frames, and the longest of them.
    pub loss_runs: (u64, u64),
    /// The tester sent clearly less than it was asked for.
    pub is_short: bool,
    /// False when the tester was disturbed: the interval says nothing about the device.
    pub is_valid: bool,
}

/// Intervals of a sustained run so far.
#[derive(Clone, Debug, Default)]
pub struct SoakIntervals {
    valid: Vec<SoakInterval>,
    invalid: u64,
    worst: Option<WorstSecond>,
}

impl SoakIntervals {
    /// Adds the next interval.
    pub fn add(&mut self, interval: SoakInterval) {
        let number = self.valid.len() as u64 + self.invalid;
        if !interval.is_valid {
            self.invalid += 1;
            return;
        }
        let loss_ratio = interval.point.loss_ratio;
        if loss_ratio > self.worst.map_or(0.0, |worst| worst.loss_ratio) {
            self.worst = Some(WorstSecond { number, loss_ratio });
        }
        self.valid.push(interval);
    }

    /// The run so far; `None` without a valid interval.
    pub fn soak_result(&self) -> Option<Soak> {
        let first = self.valid.first()?;
        let count = |is: fn(&SoakInterval) -> bool| {
            self.valid.iter().filter(|interval| is(interval)).count()
        };
        let sum = |of: fn(&SoakInterval) -> u64| self.valid.iter().map(of).sum::<u64>();
        let mean = |of: fn(&LoadPoint) -> f64| {
            self.valid.iter().map(|interval| of(&interval.point)).sum::<f64>()
                / self.valid.len() as f64
        };
        let (sent, received) =
            (sum(|interval| interval.point.sent), sum(|interval| interval.point.received));
        let duration_ns = sum(|interval| interval.duration_ns);
        let lost = sent.saturating_sub(received);
        let loss_runs = sum(loss_runs);
        let rate = EventRate::new(loss_runs, duration_ns as f64 / 1e9);
        Some(Soak {
            point: LoadPoint {
                intended_fps: first.point.intended_fps,
                offered_fps: mean(|point| point.offered_fps),
                forwarded_fps: mean(|point| point.forwarded_fps),
                loss_ratio: if sent > 0 { lost as f64 / sent as f64 } else { 0.0 },
                sent,
                received,
            },
            duration_ns,
            errored_seconds: count(|interval| interval.point.received < interval.point.sent) as u64,
            loss_runs,
            longest_loss_run: self
                .valid
                .iter()
                .map(|interval| interval.loss_runs.1)
                .max()
                .unwrap_or(0),
            loss_ratio_high: match lost {
                0 => zero_loss_bound(sent),
                _ => wilson_interval(lost, sent, Z_95).map(|interval| interval.high),
            },
            loss_runs_per_sec: rate.map(|rate| RateFound {
                value: rate.per_second,
                low: rate.low_per_second,
                high: rate.high_per_second,
            }),
            worst: self.worst,
            short_seconds: count(|interval| interval.is_short) as u64,
            invalid_seconds: self.invalid,
        })
    }
}

/// Runs of losses. Frames missing at the end are in no run that the counter sees: there was one at
/// least.
fn loss_runs(interval: &SoakInterval) -> u64 {
    let is_errored = interval.point.received < interval.point.sent;
    interval.loss_runs.0.max(u64::from(is_errored))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interval(lost: u64, runs: u64) -> SoakInterval {
        let (sent, received) = (10_000, 10_000 - lost);
        SoakInterval {
            point: LoadPoint {
                intended_fps: Some(1_000.0),
                offered_fps: 1_000.0,
                forwarded_fps: received as f64 / 10.0,
                loss_ratio: lost as f64 / 10_000.0,
                sent,
                received,
            },
            duration_ns: 10_000_000_000,
            loss_runs: (runs, lost.min(15)),
            is_short: false,
            is_valid: true,
        }
    }

    #[test]
    fn events_and_the_worst_interval_are_kept() {
        let mut all = SoakIntervals::default();
        all.add(interval(0, 0));
        all.add(SoakInterval { is_valid: false, ..interval(9_000, 1) });
        all.add(interval(20, 2));
        // The end of the interval is missing: no later frame shows that there was a run.
        all.add(interval(10, 0));
        let found = all.soak_result().expect("intervals");
        assert_eq!((found.duration_ns, found.errored_seconds), (30_000_000_000, 2));
        assert_eq!((found.point.sent, found.point.received), (30_000, 29_970));
        assert_eq!((found.point.loss_ratio, found.point.forwarded_fps), (0.001, 999.0));
        assert_eq!(found.worst, Some(WorstSecond { number: 2, loss_ratio: 0.002 }));
        assert_eq!((found.loss_runs, found.longest_loss_run), (3, 15));
        assert_eq!((found.invalid_seconds, found.short_seconds), (1, 0));
        assert_eq!(found.loss_runs_per_sec.map(|rate| rate.value), Some(0.1));
        // Wilson at 30 of 30,000: (0.001 + z2/2n + z sqrt(p q / n + z2/4n2)) / (1 + z2/n).
        assert!((found.loss_ratio_high.expect("frames") - 0.001_427).abs() < 1e-6);
    }

    #[test]
    fn no_loss_at_all_has_a_bound_and_no_interval_at_all_no_figure() {
        let mut all = SoakIntervals::default();
        all.add(SoakInterval { is_valid: false, ..interval(0, 0) });
        assert_eq!(all.soak_result(), None);
        all.add(interval(0, 0));
        let found = all.soak_result().expect("an interval");
        assert_eq!((found.loss_ratio_high, found.worst), (Some(3e-4), None));
    }

    #[test]
    fn a_tester_that_sends_clearly_less_is_told() {
        let mut all = SoakIntervals::default();
        all.add(SoakInterval { is_short: true, ..interval(0, 0) });
        all.add(interval(0, 0));
        assert_eq!(all.soak_result().map(|soak| soak.short_seconds), Some(1));
    }
}
