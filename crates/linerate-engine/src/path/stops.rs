//! How long an emulator stood still while there was something to do.
//!
//! A hypervisor takes the processor for milliseconds, another thread has it, or a turn of the
//! emulator's own takes too long: in any case nothing is read and nothing handed over meanwhile.
//! What senders could have sent in answer is lost, so the share of such time bounds what a run
//! lost by them. Left out: a sleeping emulator that is woken late by the first packet to come;
//! no clock of this host tells when that packet came.

use std::time::Duration;

use linerate_core::record::PathStops;
use linerate_core::stats::LogHistogram;
use linerate_core::time::MonoTime;

/// Beyond the release quantum, this much later than due counts as late, and that long without a
/// turn as a stop: ten times what a host that is not overloaded showed in the 99th percentile
/// without real-time priority.
pub const LATE: Duration = Duration::from_millis(1);

/// Stops since the start.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    lengths_ns: LogHistogram,
    total_ns: u64,
}

impl Stops {
    /// Notes that the emulator came to its work at `now` and should have at `expected`.
    pub(super) fn note(&mut self, expected: MonoTime, now: MonoTime) {
        let length = now.since(expected);
        if length > LATE {
            let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            self.lengths_ns.record(length_ns);
            self.total_ns = self.total_ns.saturating_add(length_ns);
        }
    }

    /// Those that came after `earlier`, a former state of them.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            lengths_ns: self.lengths_ns.since(&earlier.lengths_ns),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
        }
    }

    /// As a record has them, over the time that they were within.
    pub fn within(&self, span: Duration) -> PathStops {
        PathStops {
            count: self.lengths_ns.count(),
            total_ns: self.total_ns,
            longest_ns: self.lengths_ns.quantile(1.0).unwrap_or(0),
            share: self.total_ns as f64 / span.as_nanos().max(1) as f64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ns: u64) -> MonoTime {
        MonoTime::from_nanos(ns)
    }

    #[test]
    fn what_is_a_millisecond_late_or_early_is_no_stop() {
        let mut stops = Stops::default();
        stops.note(at(5 * MS), at(6 * MS));
        stops.note(at(5 * MS), at(MS));
        assert_eq!(stops.within(Duration::from_secs(1)), PathStops::default());
        stops.note(at(5 * MS), at(6 * MS + 1));
        assert_eq!(stops.within(Duration::from_secs(1)).count, 1);
    }

    #[test]
    fn stops_of_a_run_are_those_since_its_begin() {
        let mut stops = Stops::default();
        stops.note(at(0), at(50 * MS));
        let begin = stops.clone();
        for length in [20, 5] {
            stops.note(at(100 * MS), at((100 + length) * MS));
        }
        let run = stops.since(&begin).within(Duration::from_secs(10));
        assert_eq!((run.count, run.total_ns), (2, 25 * MS));
        // 25 ms of 10 s; the length within its bin of a thousandth.
        assert!((run.share - 0.0025).abs() < 1e-12, "{run:?}");
        assert!((20 * MS..20 * MS + 20_480).contains(&run.longest_ns), "{run:?}");
    }
}
