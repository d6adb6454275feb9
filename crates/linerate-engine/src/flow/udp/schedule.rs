//! When the next datagrams of a paced stream leave, and how many at once.
//!
//! The schedule is absolute: the datagram n is due n gaps after the start, so late wake-ups do not
//! slow the stream down. A sender that is up to [`GENTLE_NS`] behind makes up for it at no more
//! than 11/10 of the pace, so that no burst follows a short stall. What it is later than that
//! leaves at once, as other programs' senders do: on a host whose processors are all busy every
//! sleep ends milliseconds late, and a sender that spread what it owes would never have sent it.
//! What is more than [`DEBT_NS_MAX`] behind is forgiven and told.
//!
//! Batches of b = [`BATCH_NS`] at most, each at least 10/11 of its span after the one before; how
//! late a thread woke counts up to t = [`LATE_NS`]. So a millisecond holds less than
//! 11/10 (1 ms + t) + b = 1.495 ms of the pace where the sender is never later than [`GENTLE_NS`];
//! 1.36 where it is never late.
//! At 1 Gbit/s and 1200 bytes a batch is 35 datagrams and a second has 2980 wake-ups; below
//! 56 Mbit/s each leaves alone. Where the kernel paces (SO_TXTIME over fq), it holds back buffers
//! of [`BUFFER_NS`] that are handed over up to [`LEAD_NS`] early, in 500 wake-ups a second.

use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

/// Longest span of the schedule that leaves at once.
const BATCH_NS: u128 = 340_000;

/// Lateness of a batch that does not move the next one.
const LATE_NS: u64 = 50_000;

/// Where the kernel paces: the span of the schedule that is handed over at once, how long before
/// its time, and the longest span of one buffer, which leaves at once.
pub(super) const LEAD_NS: u64 = 2_000_000;
const BUFFER_NS: u128 = 125_000;

/// Longest delay that is made up for at little more than the pace: above the few milliseconds for
/// which a virtual machine or another thread stops one on an idle host, and half a hundredth of a
/// test of one second.
const GENTLE_NS: u64 = 5_000_000;

/// Longest delay that is made up for.
const DEBT_NS_MAX: u64 = 1_000_000_000;

/// Longest delay that is made up for across a change of the rate.
const OWED_NS_MAX: u64 = 10_000_000;

/// The schedule of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct SendSchedule {
    bits_per_datagram: u128,
    rate_bps: u128,
    /// When the datagram 0 was due, moved by what was forgiven.
    base: MonoTime,
    /// Datagrams that have left.
    sent: u64,
    /// The earliest time for the next batch, where the sender is behind.
    not_before: MonoTime,
    forgiven_ns: u64,
    /// The kernel holds each buffer back until its time.
    kernel_paces: bool,
    /// Datagrams that leave at once, where that was asked.
    burst: Option<u64>,
    /// Longest delay that is made up for at little more than the pace.
    gentle_ns: u64,
}

impl SendSchedule {
    /// A schedule whose first datagram is due now.
    pub(super) fn starting_at(rate: BitRate, size_bytes: usize, now: MonoTime) -> Self {
        Self {
            bits_per_datagram: size_bytes as u128 * 8,
            rate_bps: u128::from(rate.bits_per_sec().max(1)),
            base: now,
            sent: 0,
            not_before: now,
            forgiven_ns: 0,
            kernel_paces: false,
            burst: None,
            gentle_ns: GENTLE_NS,
        }
    }

    /// The same schedule, for a pace that is steered by what becomes of it: nothing leaves at
    /// much more than the pace, however late the sender is.
    pub(super) const fn always_gentle(self) -> Self {
        Self { gentle_ns: u64::MAX, ..self }
    }

    /// The same schedule, kept by the kernel.
    pub(super) const fn kept_by_kernel(self) -> Self {
        Self { kernel_paces: true, ..self }
    }

    /// The same schedule, kept by the sender.
    pub(super) const fn kept_by_sender(self) -> Self {
        Self { kernel_paces: false, ..self }
    }

    /// True where the kernel keeps the schedule.
    pub(super) const fn is_kept_by_kernel(&self) -> bool {
        self.kernel_paces
    }

    /// The same, in bursts of so many datagrams.
    pub(super) fn in_bursts(self, burst: Option<u32>) -> Self {
        Self { burst: burst.map(|count| u64::from(count.max(1))), ..self }
    }

    /// Datagrams of one batch, at most `capacity`.
    pub(super) fn batch_size(&self, capacity: usize) -> usize {
        let span_ns = if self.kernel_paces { LEAD_NS.into() } else { BATCH_NS };
        self.within(span_ns, capacity)
    }

    /// Datagrams of one buffer of a batch, at most `capacity`.
    pub(super) fn buffer(&self, capacity: usize) -> usize {
        let span_ns = if self.kernel_paces { BUFFER_NS } else { BATCH_NS };
        self.within(span_ns, capacity)
    }

    fn within(&self, span_ns: u128, capacity: usize) -> usize {
        if let Some(burst) = self.burst {
            let left = burst - self.sent % burst;
            return usize::try_from(left).unwrap_or(usize::MAX).clamp(1, capacity.max(1));
        }
        let datagrams = self.rate_bps * span_ns / (self.bits_per_datagram * 1_000_000_000);
        usize::try_from(datagrams).unwrap_or(usize::MAX).clamp(1, capacity.max(1))
    }

    /// When the next batch may leave.
    pub(super) fn next_due(&self) -> MonoTime {
        let scheduled = self.scheduled();
        let latest = MonoTime::from_nanos(scheduled.as_nanos().saturating_add(self.gentle_ns));
        scheduled.max(self.not_before.min(latest))
    }

    /// When the next batch is to be handed over.
    pub(super) fn wake_time(&self) -> MonoTime {
        let lead_ns = if self.kernel_paces { LEAD_NS } else { 0 };
        MonoTime::from_nanos(self.next_due().as_nanos().saturating_sub(lead_ns))
    }

    /// Where the schedule stands: the time that the datagrams so far take at the pace, those of
    /// an unfinished burst left out.
    pub(super) fn scheduled(&self) -> MonoTime {
        let whole = self.burst.map_or(self.sent, |burst| self.sent - self.sent % burst);
        MonoTime::from_nanos(self.base.as_nanos().saturating_add(self.span_ns(whole)))
    }

    /// Takes note of `count` datagrams that left at `now`.
    pub(super) fn note_sent(&mut self, count: usize, now: MonoTime) {
        let due = self.next_due();
        let debt_ns = now.nanos_since(self.scheduled());
        let excess_ns = debt_ns.saturating_sub(DEBT_NS_MAX);
        self.base = MonoTime::from_nanos(self.base.as_nanos().saturating_add(excess_ns));
        self.forgiven_ns = self.forgiven_ns.saturating_add(excess_ns);
        self.sent += count as u64;
        let finished = match self.burst {
            Some(burst) if !self.sent.is_multiple_of(burst) => return,
            Some(burst) => burst,
            None => count as u64,
        };
        let left = due.as_nanos().max(now.as_nanos().saturating_sub(LATE_NS));
        let hurried_ns = self.span_ns(finished) / 11 * 10;
        self.not_before = MonoTime::from_nanos(left.saturating_add(hurried_ns));
    }

    /// Goes on at another rate. Of what is owed at `now`, no more than [`OWED_NS_MAX`] is kept: a
    /// sender that could not hold the old rate does not make up for it at the new one.
    pub(super) fn set_rate(&mut self, rate: BitRate, now: MonoTime) {
        let rate_bps = u128::from(rate.bits_per_sec().max(1));
        if rate_bps == self.rate_bps {
            return;
        }
        let scheduled = self.scheduled();
        let base = scheduled.as_nanos().max(now.as_nanos().saturating_sub(OWED_NS_MAX));
        self.base = MonoTime::from_nanos(base);
        self.forgiven_ns = self.forgiven_ns.saturating_add(self.base.nanos_since(scheduled));
        (self.sent, self.rate_bps, self.not_before) = (0, rate_bps, now);
    }

    /// Time by which the schedule was set back.
    pub(super) const fn forgiven_ns(&self) -> u64 {
        self.forgiven_ns
    }

    /// The time that `count` datagrams take at the pace.
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

    fn schedule(bps: u64, size: usize) -> SendSchedule {
        SendSchedule::starting_at(BitRate::from_bits_per_sec(bps), size, AT(0))
    }

    #[test]
    fn slow_streams_send_datagrams_alone_and_fast_ones_a_third_of_a_millisecond() {
        // 1200 bytes take 960 µs at 10 Mbit/s, 96 µs at 100 Mbit/s and 9.6 µs at 1 Gbit/s.
        for (bps, batch) in [(10_000_000, 1), (100_000_000, 3), (1_000_000_000, 35)] {
            assert_eq!(schedule(bps, 1200).batch_size(1000), batch, "{bps} bit/s");
            assert_eq!(schedule(bps, 1200).buffer(1000), batch, "{bps} bit/s");
        }
        assert_eq!(schedule(1_000_000_000, 1200).batch_size(7), 7);
        assert_eq!(schedule(1, 65_507).batch_size(7), 1);
    }

    #[test]
    fn where_the_kernel_paces_two_milliseconds_are_handed_over_in_smaller_buffers() {
        for (bps, batch, buffer) in [(10_000_000, 2, 1), (100_000_000, 20, 1), (1 << 30, 223, 13)] {
            let schedule = schedule(bps, 1200).kept_by_kernel();
            assert_eq!(
                (schedule.batch_size(1000), schedule.buffer(1000)),
                (batch, buffer),
                "{bps}"
            );
        }
        let mut schedule = schedule(8_000_000, 1000).kept_by_kernel();
        (0..10).for_each(|_| schedule.note_sent(1, schedule.next_due()));
        assert_eq!((schedule.next_due(), schedule.wake_time()), (AT(10_000_000), AT(8_000_000)));
    }

    /// The busiest millisecond over the mean one, of a sender that wakes as late as it is told.
    fn busiest(bps: u64, size: usize, late_ns: impl Fn(u64) -> u64) -> f64 {
        let mut schedule = schedule(bps, size);
        let mut left: std::collections::VecDeque<(u64, usize)> = Default::default();
        let (mut now, mut most) = (0, 0);
        for turn in 0..3000 {
            now = schedule.next_due().as_nanos().max(now) + late_ns(turn);
            let count = schedule.batch_size(100_000);
            schedule.note_sent(count, AT(now));
            left.push_back((now, count));
            while left.front().is_some_and(|(at, _)| at + 1_000_000 <= now) {
                left.pop_front();
            }
            most = most.max(left.iter().map(|(_, count)| count).sum());
        }
        most as f64 / (bps as f64 / (size as f64 * 8e3))
    }

    #[test]
    fn no_millisecond_has_more_than_one_and_a_half_of_the_pace_after_a_short_stall() {
        let never = |_: u64| 0;
        // 3 ms late at times, and even again before the next: 150 batches gain 4.6 ms.
        let sometimes = |turn: u64| if turn.is_multiple_of(150) { 3_000_000 } else { 20_000 };
        let unevenly = |turn: u64| turn.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 47;
        for bps in (1..20).map(|n| n * 190_000_000) {
            for size in [200, 1200, 1472] {
                let worst = [busiest(bps, size, never), busiest(bps, size, sometimes)];
                let worst = worst[0].max(worst[1]).max(busiest(bps, size, unevenly));
                let one = size as f64 * 8e3 / bps as f64;
                assert!(worst <= 1.5 + one, "{worst} at {bps} bit/s of {size} bytes");
            }
        }
        // At 10 Mbit/s and 1200 bytes the mean is 1.0417: one with 2 has 1.92 times that.
        assert_eq!(busiest(10_000_000, 1200, sometimes), 1.92);
    }

    #[test]
    fn a_burst_leaves_at_once_and_then_waits_for_its_whole_time() {
        let mut schedule = schedule(8_000_000, 1000).in_bursts(Some(10));
        for burst in 1..=5 {
            let begin = AT((burst - 1) * 10_000_000);
            for (capacity, count) in [(4, 4), (4, 4), (4, 2)] {
                assert_eq!((schedule.next_due(), schedule.batch_size(capacity)), (begin, count));
                schedule.note_sent(count, begin);
            }
            // Ten datagrams of 1 ms.
            assert_eq!(schedule.next_due(), AT(burst * 10_000_000));
        }
    }

    #[test]
    fn after_any_number_of_datagrams_the_schedule_stands_where_the_pace_says() {
        let mut schedule = schedule(7_000_000, 1472);
        for _ in 0..1000 {
            schedule.note_sent(1, schedule.next_due());
        }
        // 1000 x 1472 x 8 / 7,000,000 s = 1.682285714 s.
        assert_eq!(schedule.next_due(), AT(1_682_285_714));
    }

    #[test]
    fn a_late_sender_catches_up_at_eleven_tenths_of_the_pace() {
        let mut schedule = schedule(8_800_000, 1100);
        // Each datagram takes 1 ms; the first leaves 3.05 ms late, of which 50 µs do not count.
        let mut now = AT(3_050_000);
        let mut times = Vec::new();
        for _ in 0..40 {
            times.push(now.as_nanos());
            schedule.note_sent(1, now);
            now = schedule.next_due();
        }
        // 1,000,000 / 11 x 10, in whole nanoseconds.
        assert_eq!(times[1..3], [3_909_090, 4_818_180]);
        // 3 ms at a gain of 1/11 ms each are made up for after 33.
        assert_eq!(times[33..36], [33_000_000, 34_000_000, 35_000_000]);
        assert_eq!(schedule.scheduled(), AT(40_000_000));
        assert_eq!(schedule.forgiven_ns(), 0);
    }

    #[test]
    fn on_a_busy_host_every_sleep_ends_late_and_the_pace_is_kept_all_the_same() {
        for (bps, size) in [(5_000_000, 1472), (100_000_000, 1472), (1_000_000_000, 1200)] {
            let mut schedule = schedule(bps, size);
            let mut now = 0;
            loop {
                if schedule.next_due().as_nanos() > now {
                    if now > 2_000_000_000 {
                        break;
                    }
                    // Four threads share a processor in turns of 3 ms.
                    now = schedule.next_due().as_nanos() + 9_000_000;
                }
                schedule.note_sent(schedule.batch_size(1000), AT(now));
            }
            let behind_ns = now - schedule.scheduled().as_nanos().min(now);
            assert!(behind_ns <= GENTLE_NS, "{behind_ns} ns behind at {bps} bit/s");
            assert_eq!(schedule.forgiven_ns(), 0);
        }
    }

    #[test]
    fn a_steered_pace_is_not_made_up_for_at_once() {
        let mut schedule = schedule(8_000_000, 1000).always_gentle();
        schedule.note_sent(1, AT(50_000_000));
        // 50 µs of the lateness do not count.
        assert_eq!(schedule.next_due(), AT(50_000_000 - 50_000 + 909_090));
    }

    #[test]
    fn usual_lateness_neither_slows_the_stream_down_nor_adds_up() {
        let mut schedule = schedule(1_000_000_000, 1200);
        for _ in 0..10_000 {
            let now = AT(schedule.next_due().as_nanos() + 75_000);
            schedule.note_sent(schedule.batch_size(1000), now);
        }
        // 350,000 datagrams of 9.6 µs.
        assert!(
            schedule.next_due().as_nanos() <= 3_360_000_000 + 75_000,
            "{:?}",
            schedule.next_due()
        );
    }

    #[test]
    fn a_stall_beyond_a_second_is_forgiven_and_told() {
        let mut schedule = schedule(8_000_000, 1000);
        schedule.note_sent(1, AT(5_000_000_000));
        assert_eq!(schedule.forgiven_ns(), 4_000_000_000);
        assert_eq!(schedule.scheduled(), AT(4_001_000_000));
    }

    #[test]
    fn another_rate_goes_on_from_where_the_schedule_stands_and_forgives_a_stall() {
        // Each datagram takes 1 ms at first, and 100 µs later.
        let mut schedule = schedule(8_000_000, 1000).always_gentle();
        schedule.note_sent(1, AT(0));
        schedule.set_rate(BitRate::from_bits_per_sec(80_000_000), AT(400_000));
        assert_eq!(schedule.next_due(), AT(1_000_000), "the gap that was begun ends");
        schedule.note_sent(1, AT(1_000_000));
        assert_eq!(schedule.next_due(), AT(1_100_000));
        // 50 ms behind: 10 ms of them are kept, at the lower rate.
        schedule.set_rate(BitRate::from_bits_per_sec(8_000_000), AT(51_100_000));
        assert_eq!((schedule.scheduled(), schedule.forgiven_ns()), (AT(41_100_000), 40_000_000));
        assert_eq!(schedule.next_due(), AT(51_100_000));
        let same = schedule;
        schedule.set_rate(BitRate::from_bits_per_sec(8_000_000), AT(90_000_000));
        assert_eq!(schedule.next_due(), same.next_due(), "the same rate changes nothing");
    }

    #[test]
    fn extreme_paces_neither_divide_by_zero_nor_overflow() {
        for bps in [0, 1, u64::MAX] {
            let mut schedule = schedule(bps, 65_507);
            let batch = schedule.batch_size(1 << 20);
            schedule.note_sent(batch, AT(1));
            schedule.note_sent(usize::MAX >> 16, AT(2));
            assert!(schedule.next_due() >= AT(1));
        }
    }
}
