//! When what a sender wrote has arrived at the other end and been read there, as far as the sending
//! kernel tells.
//!
//! All is acknowledged when the peer's kernel has it, but acknowledgements of the last segments are
//! delayed, by 40 ms on Linux (RFC 9293 §3.8.6.3 allows 500 ms). So an undelayed acknowledgement of
//! the last byte is taken to be due one round trip after it left, if nothing was lost since, or
//! else when all was acknowledged. The receiver's span is shorter than that by one idle round trip:
//! the first byte took the way there, the acknowledgement the way back. The peer's program has
//! read everything once the offered window stands still.
//!
//! Where something stays on the way for good, the end is when the last of it was acknowledged.

use std::time::Duration;

use linerate_core::time::MonoTime;

use crate::flow::tcp::delivery::Outstanding;

/// The offered window stands still when it has not moved for this long: iperf3 reads 128 KiB at a
/// time, in microseconds on an idle machine.
const QUIET: Duration = Duration::from_millis(20);

/// Follows the end of a test.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ending {
    /// When senders were told to stop.
    pub(super) stopped: MonoTime,
    /// When the last byte would have been acknowledged at once, and the idle round trip.
    acknowledged: Option<(MonoTime, u64)>,
    /// When everything had left, and the retransmits until then.
    left: Option<(MonoTime, u64)>,
    /// The offered windows, and since when they are so.
    offered: Option<(u64, MonoTime)>,
    /// Bytes acknowledged, and since when no more are.
    progress: (u64, MonoTime),
}

impl Ending {
    /// Senders were told to stop.
    pub(super) const fn stopped_at(stopped: MonoTime) -> Self {
        let progress = (0, stopped);
        Self { stopped, acknowledged: None, left: None, offered: None, progress }
    }

    /// The time in which the bytes came that have been acknowledged, since the `begin` of the test.
    /// It is the receiver's from its first byte to its last; what is left of it after `omit_ns` has
    /// its begin and its end on the sender's clock.
    pub(super) fn span_ns(&self, begin: MonoTime, omit_ns: u64) -> u64 {
        let (at, rtt_min_ns) = self.acknowledged.unwrap_or((self.progress.1, 0));
        let trip_ns = if omit_ns == 0 { rtt_min_ns } else { 0 };
        at.nanos_since(begin).saturating_sub(trip_ns)
    }

    /// Takes note of how things stand at `now`; whether the peer has read all. Senders may still
    /// be writing, unless `written`.
    pub(super) fn note_progress(
        &mut self,
        now: MonoTime,
        outstanding: Outstanding,
        written: bool,
    ) -> bool {
        if outstanding.acknowledged_bytes != self.progress.0 {
            self.progress = (outstanding.acknowledged_bytes, now);
        }
        if !written || outstanding.unsent_bytes > 0 {
            return false;
        }
        let (left, retransmits) = *self.left.get_or_insert((now, outstanding.retransmits));
        if outstanding.unacknowledged > 0 {
            return false;
        }
        self.acknowledged.get_or_insert_with(|| {
            let one_trip_later = left + Duration::from_nanos(outstanding.rtt_ns);
            let nothing_lost = outstanding.retransmits == retransmits;
            let at = if nothing_lost { one_trip_later.min(now) } else { now };
            (at, outstanding.rtt_min_ns)
        });
        let offered = outstanding.offered_bytes;
        let (_, since) = *self.offered.insert(
            self.offered.filter(|(before, _)| *before == offered).unwrap_or((offered, now)),
        );
        now.duration_since(since) >= QUIET
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time_at_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * MS)
    }

    fn outstanding(unsent_bytes: u64, unacknowledged: u64, offered_bytes: u64) -> Outstanding {
        Outstanding {
            unsent_bytes,
            unacknowledged,
            offered_bytes,
            acknowledged_bytes: 1000 - unsent_bytes - unacknowledged,
            retransmits: 3,
            rtt_ns: 5 * MS,
            rtt_min_ns: 2 * MS,
        }
    }

    #[test]
    fn a_delayed_acknowledgement_does_not_delay_the_arrival() {
        let mut ending = Ending::stopped_at(time_at_ms(0));
        assert!(
            !ending.note_progress(time_at_ms(0), outstanding(0, 0, 100), false),
            "the last write is to come"
        );
        assert!(!ending.note_progress(time_at_ms(1), outstanding(10, 2, 100), true));
        assert!(!ending.note_progress(time_at_ms(3), outstanding(0, 2, 100), true));
        assert!(!ending.note_progress(time_at_ms(43), outstanding(0, 0, 100), true));
        // All had left at 3 ms; a round trip is 5 ms now, 2 ms when idle: 3 + 5 - 2.
        assert_eq!(ending.span_ns(time_at_ms(0), 0), 6 * MS);
        // Since the omitted span acknowledgements are counted at both of its ends.
        assert_eq!(ending.span_ns(time_at_ms(0), 1), 8 * MS);
        assert!(!ending.note_progress(time_at_ms(62), outstanding(0, 0, 100), true));
        assert!(ending.note_progress(time_at_ms(63), outstanding(0, 0, 100), true));
    }

    #[test]
    fn a_lost_last_segment_arrives_when_it_is_acknowledged() {
        let mut ending = Ending::stopped_at(time_at_ms(0));
        let before = Outstanding { retransmits: 2, ..outstanding(0, 2, 100) };
        assert!(!ending.note_progress(time_at_ms(3), before, true));
        assert!(!ending.note_progress(time_at_ms(210), outstanding(0, 0, 100), true));
        assert_eq!(ending.span_ns(time_at_ms(0), 0), 208 * MS);
    }

    #[test]
    fn a_window_that_still_grows_is_waited_for() {
        let mut ending = Ending::stopped_at(time_at_ms(0));
        for ms in 1..=50 {
            assert!(!ending.note_progress(time_at_ms(ms), outstanding(0, 0, ms), true), "{ms} ms");
        }
        assert!(ending.note_progress(time_at_ms(70), outstanding(0, 0, 50), true));
        assert_eq!(ending.span_ns(time_at_ms(1), 0), 0, "shorter than a round trip");
    }

    #[test]
    fn what_never_arrives_does_not_stretch_the_time() {
        let mut ending = Ending::stopped_at(time_at_ms(10));
        assert!(!ending.note_progress(time_at_ms(11), outstanding(500, 9, 100), true));
        for ms in 12..=400 {
            assert!(
                !ending.note_progress(time_at_ms(ms), outstanding(400, 9, 100), true),
                "{ms} ms"
            );
        }
        // The last acknowledgement was seen at 12 ms.
        assert_eq!(ending.span_ns(time_at_ms(0), 0), 12 * MS);
    }
}
