//! When the next buffer may be written, for a stream with a pace.
//!
//! Deadlines are absolute, so that a late wake-up does not slow the stream; a stall longer than
//! [`CATCH_UP_NS`] is forgiven instead of made up for by a burst.

use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;

/// Longest backlog that is made up for.
const CATCH_UP_NS: u64 = 10_000_000;

/// Span that one write fills at the asked pace: 1 ms keeps bursts small, and a sleeping thread
/// wakes often enough.
const WRITE_SPAN_NS: u128 = 1_000_000;

/// The schedule of one paced stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    rate: BitRate,
    next: MonoTime,
    /// Whole buffers that are written at once.
    burst: Option<u32>,
    /// Bytes and buffers of the burst that is being written.
    written: (usize, u32),
}

impl Pacer {
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
    pub(super) const fn due(&self) -> MonoTime {
        self.next
    }

    /// Takes note of `bytes` written at `now`.
    pub(super) fn wrote(&mut self, bytes: usize, now: MonoTime) {
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
        let earliest = MonoTime::from_nanos(now.nanos().saturating_sub(CATCH_UP_NS));
        let from = self.next.max(earliest);
        self.next = MonoTime::from_nanos(from.nanos().saturating_add(span));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: fn(u64) -> MonoTime = MonoTime::from_nanos;

    #[test]
    fn ten_megabit_is_1250_bytes_a_millisecond() {
        // 10^7 bit/s / 8 / 1000 = 1250 bytes.
        let mut pacer = Pacer::starting_at(BitRate::from_bits_per_sec(10_000_000), AT(0));
        assert_eq!(pacer.write_bytes(524_288), 1250);
        for step in 1..=1000 {
            pacer.wrote(1250, pacer.due());
            assert_eq!(pacer.due(), AT(step * 1_000_000));
        }
    }

    #[test]
    fn a_burst_leaves_at_once_and_then_waits_for_its_whole_time() {
        let rate = BitRate::from_bits_per_sec(8_000_000);
        let mut pacer = Pacer::starting_at(rate, AT(0)).in_bursts(Some(3));
        assert_eq!(pacer.write_bytes(1000), 1000);
        for step in 1..=10 {
            for _ in 0..3 {
                assert_eq!(pacer.due(), AT((step - 1) * 3_000_000));
                pacer.wrote(1000, pacer.due());
            }
            // 3 x 1000 bytes x 8 / 8,000,000 bit/s are 3 ms.
            assert_eq!(pacer.due(), AT(step * 3_000_000));
        }
    }

    #[test]
    fn a_late_write_does_not_shift_the_schedule() {
        let mut pacer = Pacer::starting_at(BitRate::from_bits_per_sec(8_000_000), AT(0));
        pacer.wrote(1000, AT(400_000));
        assert_eq!(pacer.due(), AT(1_000_000));
    }

    #[test]
    fn a_long_stall_is_forgiven() {
        let mut pacer = Pacer::starting_at(BitRate::from_bits_per_sec(8_000_000), AT(0));
        pacer.wrote(1000, AT(5_000_000_000));
        // 10 ms of backlog are kept, then one write's millisecond.
        assert_eq!(pacer.due(), AT(5_000_000_000 - 10_000_000 + 1_000_000));
    }

    #[test]
    fn extreme_paces_neither_divide_by_zero_nor_overflow() {
        for bps in [1, 7, u64::MAX] {
            let mut pacer = Pacer::starting_at(BitRate::from_bits_per_sec(bps), AT(0));
            let bytes = pacer.write_bytes(1000);
            assert!((1..=1000).contains(&bytes));
            pacer.wrote(bytes, AT(1));
        }
    }
}
