//! A sustained run: hours at one load, in intervals.
//!
//! Source: the practice of RFC 2544 §24's long trials; events are loss runs, their rate has
//! Garwood's interval, the loss ratio Wilson's or the bound 3/n.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::poisson::{EventRate, zero_loss_bound};
use super::search::{Invalid, TrialOutcome};
use crate::stats::{Z_95, wilson_interval};

/// Intervals so far.
#[derive(Clone, Debug, Default)]
pub struct Soak {
    sent: u64,
    received: u64,
    elapsed_ns: u64,
    intervals: u64,
    clean: u64,
    short: u64,
    events: u64,
    worst: Option<(u64, f64)>,
    invalid: Vec<(u64, Invalid)>,
}

/// The summary of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SoakSummary {
    /// Time of the valid intervals, s.
    pub seconds: f64,
    /// Valid intervals.
    pub intervals: u64,
    /// Those without loss.
    pub clean_intervals: u64,
    /// Those in which the tester sent clearly less than asked.
    pub short_intervals: u64,
    /// Frames sent.
    pub sent: u64,
    /// Frames lost.
    pub lost: u64,
    /// Lost share; `None` when nothing was sent.
    pub loss_ratio: Option<f64>,
    /// The loss ratio may be as high as this, at 95 %.
    pub loss_ratio_high: Option<f64>,
    /// Loss runs over time.
    pub events: Option<EventRate>,
    /// Number, from 0, of the interval that lost most, and its loss ratio.
    pub worst: Option<(u64, f64)>,
    /// Intervals that do not count, by number, with the reason.
    pub invalid: Vec<(u64, Invalid)>,
}

impl Soak {
    /// Adds the next interval.
    pub fn add(&mut self, outcome: &TrialOutcome) {
        let number = self.intervals + self.invalid.len() as u64;
        if let Some(reason) = outcome.invalidity() {
            self.invalid.push((number, reason));
            return;
        }
        let lost = outcome.lost();
        self.intervals += 1;
        self.clean += u64::from(lost == 0);
        self.short += u64::from(outcome.is_short());
        self.sent += outcome.sent;
        self.received += outcome.received;
        self.elapsed_ns += outcome.elapsed_ns;
        self.events += if lost > 0 { outcome.loss_runs.unwrap_or(1).max(1) } else { 0 };
        let ratio = lost as f64 / outcome.sent.max(1) as f64;
        if lost > 0 && self.worst.is_none_or(|(_, worst)| ratio > worst) {
            self.worst = Some((number, ratio));
        }
    }

    /// The summary so far.
    pub fn summary(&self) -> SoakSummary {
        let lost = self.sent - self.received;
        let seconds = self.elapsed_ns as f64 / 1e9;
        let high = match lost {
            0 => zero_loss_bound(self.sent),
            _ => wilson_interval(lost, self.sent, Z_95).map(|interval| interval.high),
        };
        SoakSummary {
            seconds,
            intervals: self.intervals,
            clean_intervals: self.clean,
            short_intervals: self.short,
            sent: self.sent,
            lost,
            loss_ratio: (self.sent > 0).then(|| lost as f64 / self.sent as f64),
            loss_ratio_high: high,
            events: EventRate::new(self.events, seconds),
            worst: self.worst,
            invalid: self.invalid.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::search::{LoadTrial, Why};
    use super::*;

    fn outcome(lost: u64, runs: u64) -> TrialOutcome {
        let trial = LoadTrial {
            load_fps: 1_000,
            duration_ns: 10_000_000_000,
            stop_at_lost: None,
            goal: 0,
            why: Why::Listed,
        };
        let outcome = TrialOutcome::complete(&trial, 10_000, 10_000 - lost);
        TrialOutcome { loss_runs: Some(runs), ..outcome }
    }

    #[test]
    fn events_and_the_worst_interval_are_kept() {
        let mut soak = Soak::default();
        soak.add(&outcome(0, 0));
        soak.add(&TrialOutcome { invalid: Some(Invalid::LinkDown), ..outcome(0, 0) });
        soak.add(&outcome(20, 2));
        soak.add(&outcome(10, 1));
        let summary = soak.summary();
        assert_eq!((summary.seconds, summary.intervals, summary.clean_intervals), (30.0, 3, 1));
        assert_eq!((summary.sent, summary.lost), (30_000, 30));
        assert_eq!(summary.loss_ratio, Some(0.001));
        assert_eq!(summary.worst, Some((2, 0.002)));
        assert_eq!(summary.invalid, [(1, Invalid::LinkDown)]);
        assert_eq!(summary.events.map(|rate| (rate.events, rate.per_second)), Some((3, 0.1)));
        // Wilson at 30 of 30,000: (0.001 + z2/2n + z sqrt(p q / n + z2/4n2)) / (1 + z2/n).
        assert!((summary.loss_ratio_high.expect("frames") - 0.001_427).abs() < 1e-6);
    }

    #[test]
    fn no_loss_at_all_has_a_bound() {
        let mut soak = Soak::default();
        assert_eq!(soak.summary().loss_ratio, None);
        soak.add(&outcome(0, 0));
        assert_eq!(soak.summary().loss_ratio_high, Some(3e-4));
    }
}
