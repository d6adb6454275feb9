//! When the next datagrams of a paced stream leave, and how many at once.
//!
//! The schedule is absolute: the datagram n is due n gaps after the start, so late wake-ups do not
//! slow the stream down. A sender that is behind makes up for it at no more than 5/4 of the pace,
//! so that no burst follows a stall; what is more than [`DEBT_NS_MAX`] behind is forgiven and told.
//!
//! Batches span at most [`BATCH_NS`]: with batches of b and catching up at 5/4, a millisecond holds
//! at most 5/4 (1 ms + b) of the pace, 1.5 times the mean for b = 200 µs. At 1 Gbit/s and 1200
//! bytes that is 20 datagrams and 5200 wake-ups a second; below 48 Mbit/s each leaves alone.

use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

/// Longest span of the schedule that leaves at once.
const BATCH_NS: u128 = 200_000;

/// Longest delay that is made up for.
const DEBT_NS_MAX: u64 = 1_000_000_000;

/// The schedule of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Schedule {
    bits_per_datagram: u128,
    rate_bps: u128,
    /// When the datagram 0 was due, moved by what was forgiven.
    base: MonoTime,
    /// Datagrams that have left.
    sent: u64,
    /// The earliest time for the next batch, where the sender is behind.
    not_before: MonoTime,
    forgiven_ns: u64,
}

impl Schedule {
    /// A schedule whose first datagram is due now.
    pub(super) fn starting_at(rate: BitRate, size_bytes: usize, now: MonoTime) -> Self {
        Self {
            bits_per_datagram: size_bytes as u128 * 8,
            rate_bps: u128::from(rate.bits_per_sec().max(1)),
            base: now,
            sent: 0,
            not_before: now,
            forgiven_ns: 0,
        }
    }

    /// Datagrams of one batch, at most `capacity`.
    pub(super) fn batch(&self, capacity: usize) -> usize {
        let datagrams = self.rate_bps * BATCH_NS / (self.bits_per_datagram * 1_000_000_000);
        usize::try_from(datagrams).unwrap_or(usize::MAX).clamp(1, capacity.max(1))
    }

    /// When the next batch may leave.
    pub(super) fn due(&self) -> MonoTime {
        self.scheduled().max(self.not_before)
    }

    /// Where the schedule stands: the time that the datagrams so far take at the pace.
    pub(super) fn scheduled(&self) -> MonoTime {
        MonoTime::from_nanos(self.base.nanos().saturating_add(self.span_ns(self.sent)))
    }

    /// Takes note of `count` datagrams that left at `now`.
    pub(super) fn sent(&mut self, count: usize, now: MonoTime) {
        let debt_ns = now.nanos_since(self.scheduled());
        let excess_ns = debt_ns.saturating_sub(DEBT_NS_MAX);
        self.base = MonoTime::from_nanos(self.base.nanos().saturating_add(excess_ns));
        self.forgiven_ns = self.forgiven_ns.saturating_add(excess_ns);
        self.sent += count as u64;
        let hurried_ns = self.span_ns(count as u64) / 5 * 4;
        self.not_before = MonoTime::from_nanos(now.nanos().saturating_add(hurried_ns));
    }

    /// Time by which the schedule was set back.
    pub(super) const fn forgiven_ns(&self) -> u64 {
        self.forgiven_ns
    }

    /// What `count` datagrams take at the pace.
    fn span_ns(&self, count: u64) -> u64 {
        let bits = u128::from(count) * self.bits_per_datagram;
        let span = bits.saturating_mul(1_000_000_000) / self.rate_bps;
        u64::try_from(span).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> MonoTime = MonoTime::from_nanos;

    fn schedule(bps: u64, size: usize) -> Schedule {
        Schedule::starting_at(BitRate::from_bits_per_sec(bps), size, AT(0))
    }

    #[test]
    fn slow_streams_send_datagrams_alone_and_fast_ones_a_fifth_of_a_millisecond() {
        // 1200 bytes take 960 µs at 10 Mbit/s, 96 µs at 100 Mbit/s and 9.6 µs at 1 Gbit/s.
        for (bps, batch) in [(10_000_000, 1), (100_000_000, 2), (1_000_000_000, 20)] {
            assert_eq!(schedule(bps, 1200).batch(1000), batch, "{bps} bit/s");
        }
        assert_eq!(schedule(1_000_000_000, 1200).batch(7), 7);
        assert_eq!(schedule(1, 65_507).batch(7), 1);
    }

    #[test]
    fn after_any_number_of_datagrams_the_schedule_stands_where_the_pace_says() {
        let mut schedule = schedule(7_000_000, 1472);
        for _ in 0..1000 {
            schedule.sent(1, schedule.due());
        }
        // 1000 x 1472 x 8 / 7,000,000 s = 1.682285714 s.
        assert_eq!(schedule.due(), AT(1_682_285_714));
    }

    #[test]
    fn a_late_sender_catches_up_at_five_quarters_of_the_pace() {
        let mut schedule = schedule(8_000_000, 1000);
        // Each datagram takes 1 ms; the first leaves 3 ms late.
        let mut now = AT(3_000_000);
        let mut times = Vec::new();
        for _ in 0..14 {
            times.push(now.nanos());
            schedule.sent(1, now);
            now = schedule.due();
        }
        assert_eq!(times[..3], [3_000_000, 3_800_000, 4_600_000]);
        // 3 ms at a gain of 0.2 ms each are made up for after 15.
        assert_eq!(times[13], 13_400_000);
        assert_eq!(schedule.scheduled(), AT(14_000_000));
        assert_eq!(schedule.forgiven_ns(), 0);
    }

    #[test]
    fn a_stall_beyond_a_second_is_forgiven_and_told() {
        let mut schedule = schedule(8_000_000, 1000);
        schedule.sent(1, AT(5_000_000_000));
        assert_eq!(schedule.forgiven_ns(), 4_000_000_000);
        assert_eq!(schedule.scheduled(), AT(4_001_000_000));
    }

    #[test]
    fn extreme_paces_neither_divide_by_zero_nor_overflow() {
        for bps in [0, 1, u64::MAX] {
            let mut schedule = schedule(bps, 65_507);
            let batch = schedule.batch(1 << 20);
            schedule.sent(batch, AT(1));
            schedule.sent(usize::MAX >> 16, AT(2));
            assert!(schedule.due() >= AT(1));
        }
    }
}
