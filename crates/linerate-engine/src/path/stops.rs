//! How long an emulator stood still while there was something to do.
//!
//! A hypervisor takes the processor for milliseconds, another thread has it, or a turn of the
//! emulator's own takes too long: in any case nothing is read and nothing handed over meanwhile.
//! What senders could have sent in answer is lost, so the share of such time bounds what a run
//! lost by them: the share of the time in which there was a conversation, since a path that lay
//! idle before it served nobody meanwhile.

use std::time::Duration;

use linerate_core::record::PathStops;
use linerate_core::stats::LogHistogram;
use linerate_core::time::MonoTime;

/// Beyond the release quantum, this much later than due counts as late, and that long without a
/// turn as a stop: ten times what a host that is not overloaded showed in the 99th percentile
/// without real-time priority.
pub const LATE: Duration = Duration::from_millis(1);

/// A conversation ends this long after its last packet: a sender that gets no answer waits a
/// second before it sends again (RFC 6298 §2).
pub(super) const CONVERSATION_GAP: Duration = Duration::from_secs(1);

/// Stops since the start.
#[derive(Clone, Debug, Default)]
pub struct Stops {
    lengths_ns: LogHistogram,
    total_ns: u64,
    conversed: Duration,
    /// The last packet, and up to when its conversation is in `conversed`.
    last: Option<MonoTime>,
    counted_to: MonoTime,
}

impl Stops {
    /// Notes that the emulator came to its work at `now` and should have at `expected`.
    pub(super) fn note_wakeup(&mut self, expected: MonoTime, now: MonoTime) {
        let length = now.duration_since(expected);
        if length > LATE {
            let length_ns = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
            self.lengths_ns.record(length_ns);
            self.total_ns = self.total_ns.saturating_add(length_ns);
        }
    }

    /// Notes that packets of programs were read at `now`, the first of which came at `came`.
    pub(super) fn note_conversation(&mut self, came: MonoTime, now: MonoTime) {
        self.count_conversation(came);
        // After a pause the time in between is none of a conversation.
        self.counted_to = self.counted_to.max(came);
        self.last = Some(now);
        self.count_conversation(now);
    }

    /// Counts the conversation up to `now`, or to its end where that was before.
    pub(super) fn count_conversation(&mut self, now: MonoTime) {
        let Some(last) = self.last else { return };
        let until = now.min(last + CONVERSATION_GAP);
        self.conversed += until.duration_since(self.counted_to);
        self.counted_to = self.counted_to.max(until);
    }

    /// The stops after `earlier`, a former state of them.
    #[must_use]
    pub fn difference_since(&self, earlier: &Self) -> Self {
        Self {
            lengths_ns: self.lengths_ns.samples_since(&earlier.lengths_ns),
            total_ns: self.total_ns.saturating_sub(earlier.total_ns),
            conversed: self.conversed.saturating_sub(earlier.conversed),
            ..*self
        }
    }

    /// The stops as a record has them, over the conversation within a span; over all of the span
    /// when there was none.
    pub fn within(&self, span: Duration) -> PathStops {
        let whole = if self.conversed.is_zero() { span } else { self.conversed.min(span) };
        let whole_ns = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
        PathStops {
            count: self.lengths_ns.count(),
            total_ns: self.total_ns,
            longest_ns: self.lengths_ns.quantile(1.0).unwrap_or(0),
            share: (self.total_ns as f64 / whole_ns.max(1) as f64).min(1.0),
            conversed_ns: whole_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time_at_ns(ns: u64) -> MonoTime {
        MonoTime::from_nanos(ns)
    }

    #[test]
    fn what_is_a_millisecond_late_or_early_is_no_stop() {
        let mut stops = Stops::default();
        stops.note_wakeup(time_at_ns(5 * MS), time_at_ns(6 * MS));
        stops.note_wakeup(time_at_ns(5 * MS), time_at_ns(MS));
        let second = Duration::from_secs(1);
        let none = PathStops { conversed_ns: 1000 * MS, ..PathStops::default() };
        assert_eq!(stops.within(second), none);
        stops.note_wakeup(time_at_ns(5 * MS), time_at_ns(6 * MS + 1));
        assert_eq!(stops.within(Duration::from_secs(1)).count, 1);
    }

    #[test]
    fn a_path_that_lay_idle_before_its_traffic_is_judged_by_the_traffic() {
        let mut stops = Stops::default();
        // 45 s idle; 4 s with a packet each 10 ms; two stops of 80 ms in them.
        for sent in 0..400 {
            let came = time_at_ns((45_000 + 10 * sent) * MS);
            let late = if sent == 100 || sent == 300 { 80 * MS } else { 0 };
            let now = time_at_ns(came.as_nanos() + late);
            stops.note_wakeup(came, now);
            stops.note_conversation(came, now);
        }
        stops.count_conversation(time_at_ns(48_990 * MS));
        let run = stops.within(Duration::from_millis(48_990));
        // 160 ms of 3.99 s, 4.01 %; of 48.99 s they are 0.33 %.
        assert_eq!((run.count, run.total_ns, run.conversed_ns), (2, 160 * MS, 3_990 * MS));
        assert!((run.share - 160.0 / 3990.0).abs() < 1e-12, "{run:?}");
        assert!(crate::path::report::fell_behind(&run).is_some());
        // Its end comes a second after the last packet, and a pause of a minute is none of it.
        let begin = stops.clone();
        stops.count_conversation(time_at_ns(60_000 * MS));
        stops.note_conversation(time_at_ns(120_000 * MS), time_at_ns(120_001 * MS));
        let later = stops.difference_since(&begin).within(Duration::from_secs(71));
        assert_eq!((later.count, later.conversed_ns), (0, 1_001 * MS));
    }

    #[test]
    fn stops_of_a_run_are_those_since_its_begin() {
        let mut stops = Stops::default();
        stops.note_wakeup(time_at_ns(0), time_at_ns(50 * MS));
        let begin = stops.clone();
        for length in [20, 5] {
            stops.note_wakeup(time_at_ns(100 * MS), time_at_ns((100 + length) * MS));
        }
        let run = stops.difference_since(&begin).within(Duration::from_secs(10));
        assert_eq!((run.count, run.total_ns), (2, 25 * MS));
        // 25 ms of 10 s; the length within its bin of a thousandth.
        assert!((run.share - 0.0025).abs() < 1e-12, "{run:?}");
        assert!((20 * MS..20 * MS + 20_480).contains(&run.longest_ns), "{run:?}");
    }
}
