//! When the next buffer may be written, for a stream with a pace.
//!
//! Deadlines are absolute: what a late wake-up, a stop of any length or a slow path kept back is
//! written as soon as it can be, as iperf3's sender does, which compares all that it has written
//! with all the time that has passed (iperf 3.12, iperf_check_throttle). The path then gets it as
//! fast as the congestion control lets it: TCP needs no gentler catching up, as UDP does.

use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

/// Span that one write fills at the asked pace: 1 ms keeps bursts small, and a sleeping thread
/// wakes often enough.
const WRITE_SPAN_NS: u128 = 1_000_000;

/// The schedule of one paced stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamPacer {
    rate: BitRate,
    next: MonoTime,
    /// Whole buffers that are written at once.
    burst: Option<u32>,
    /// Bytes and buffers of the burst that is being written.
    written: (usize, u32),
}

impl StreamPacer {
    /// A schedule that begins now.
    pub(super) const fn starting_at(rate: BitRate, now: MonoTime) -> Self {
        Self { rate, next: now, burst: None, written: (0, 0) }
    }

    /// The same, in bursts of so many buffers.
    pub(super) const fn in_bursts(self, burst: Option<u32>) -> Self {
        Self { burst, ..self }
    }

    /// Bytes for one write: what the pace gives in a millisecond, at least 1 and at most
    /// `buffer_bytes`.
    pub(super) fn write_bytes(&self, buffer_bytes: usize) -> usize {
        if self.burst.is_some() {
            return buffer_bytes;
        }
        let bits = u128::from(self.rate.bits_per_sec()) * WRITE_SPAN_NS / 1_000_000_000;
        usize::try_from(bits / 8).unwrap_or(usize::MAX).clamp(1, buffer_bytes)
    }

    /// When the next write is due.
    pub(super) const fn next_due(&self) -> MonoTime {
        self.next
    }

    /// Takes note of `bytes` written.
    pub(super) fn note_written(&mut self, bytes: usize) {
        let bytes = match self.burst {
            Some(burst) => {
                self.written = (self.written.0 + bytes, self.written.1 + 1);
                if self.written.1 < burst {
                    return;
                }
                std::mem::take(&mut self.written).0
            }
            None => bytes,
        };
        let span = bytes as u128 * 8 * 1_000_000_000 / u128::from(self.rate.bits_per_sec().max(1));
        let span = u64::try_from(span).unwrap_or(u64::MAX);
        self.next = MonoTime::from_nanos(self.next.as_nanos().saturating_add(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> MonoTime = MonoTime::from_nanos;

    #[test]
    fn ten_megabit_is_1250_bytes_a_millisecond() {
        // 10^7 bit/s / 8 / 1000 = 1250 bytes.
        let mut pacer = StreamPacer::starting_at(BitRate::from_bits_per_sec(10_000_000), AT(0));
        assert_eq!(pacer.write_bytes(524_288), 1250);
        for step in 1..=1000 {
            pacer.note_written(1250);
            assert_eq!(pacer.next_due(), AT(step * 1_000_000));
        }
    }

    #[test]
    fn a_burst_leaves_at_once_and_then_waits_for_its_whole_time() {
        let rate = BitRate::from_bits_per_sec(8_000_000);
        let mut pacer = StreamPacer::starting_at(rate, AT(0)).in_bursts(Some(3));
        assert_eq!(pacer.write_bytes(1000), 1000);
        for step in 1..=10 {
            for _ in 0..3 {
                assert_eq!(pacer.next_due(), AT((step - 1) * 3_000_000));
                pacer.note_written(1000);
            }
            // 3 x 1000 bytes x 8 / 8,000,000 bit/s are 3 ms.
            assert_eq!(pacer.next_due(), AT(step * 3_000_000));
        }
    }

    /// Bytes that a sender at 8 Mbit/s, 1000 bytes a millisecond, has written by 4 s where it may
    /// not run from `stop_ms` on for `length_ms`, and a write takes 0.1 ms.
    fn written_in_4_s(stop_ms: u64, length_ms: u64) -> usize {
        let mut pacer = StreamPacer::starting_at(BitRate::from_bits_per_sec(8_000_000), AT(0));
        let (mut now, mut bytes) = (0, 0);
        loop {
            now = pacer.next_due().as_nanos().max(now + 100_000);
            if (stop_ms..stop_ms + length_ms).contains(&(now / 1_000_000)) {
                now = (stop_ms + length_ms) * 1_000_000;
            }
            if now >= 4_000_000_000 {
                return bytes;
            }
            pacer.note_written(1000);
            bytes += 1000;
        }
    }

    #[test]
    fn a_stop_of_any_length_that_the_test_outlasts_is_made_up_for() {
        assert_eq!(written_in_4_s(0, 0), 4_000_000);
        for (stop_ms, length_ms) in [(1000, 5), (1000, 400), (0, 3000), (3500, 400)] {
            let bytes = written_in_4_s(stop_ms, length_ms);
            assert_eq!(bytes, 4_000_000, "{length_ms} ms from {stop_ms} ms on");
        }
        // Of a stop that lasts until 3.8 s, 0.2 s at 10 times the pace make up for 2 s.
        assert_eq!(written_in_4_s(800, 3000), 2_800_000);
    }

    #[test]
    fn extreme_paces_neither_divide_by_zero_nor_overflow() {
        for bps in [1, 7, u64::MAX] {
            let mut pacer = StreamPacer::starting_at(BitRate::from_bits_per_sec(bps), AT(0));
            let bytes = pacer.write_bytes(1000);
            assert!((1..=1000).contains(&bytes));
            pacer.note_written(bytes);
        }
    }
}
