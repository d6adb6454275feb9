//! Whether a receiving stream may sleep until a good piece has arrived.
//!
//! A reader that is woken for every arrival spends its time waking up. At high rates it asks the
//! kernel to wait for the largest of [`MARKS`] that fills within [`FILL_NS`] (socket(7),
//! SO_RCVLOWAT): on loopback, one stream, CUBIC, 128 KiB gave 1.24 times the rate of iperf3 instead
//! of 1.18 (Linux 6.18, two cores, November 2026); where both ends shared a core, 512 KiB cost 15 %
//! less processor time than 128, and on two cores the same. Bytes are copied as before. At lower
//! rates the mark is one byte, so that no byte waits for others longer than [`FILL_NS`]. Where the
//! kernel drops the bytes unread, the larger mark cost rate, and is not set.

use linerate_core::time::MonoTime;

/// The marks at high rates, the largest first.
pub(super) const MARKS: [u32; 2] = [512 << 10, MARK_UNREAD];

/// The one mark where nothing is copied.
pub(super) const MARK_UNREAD: u32 = 128 << 10;

/// A mark is set when this is time enough for it to fill.
const FILL_NS: u64 = 250_000;

/// How long a rate is observed before the mark follows it.
const WATCH_NS: u64 = 10_000_000;

/// Follows the rate of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowWater {
    since: MonoTime,
    bytes: u64,
    /// The largest mark that may be set.
    mark_max: u32,
    mark: u32,
    used: bool,
}

impl LowWater {
    pub(super) const fn starting_at(now: MonoTime, mark_max: u32) -> Self {
        Self { since: now, bytes: 0, mark_max, mark: 1, used: false }
    }

    /// Takes note of `count` bytes read at `now`; the mark to set, when it changes.
    #[inline]
    pub(super) fn read(&mut self, now: MonoTime, count: usize) -> Option<u32> {
        self.bytes += count as u64;
        let span_ns = now.nanos_since(self.since);
        if span_ns < WATCH_NS {
            return None;
        }
        let in_fill_time = u128::from(self.bytes) * u128::from(FILL_NS) / u128::from(span_ns);
        let fills = |mark: &u32| *mark <= self.mark_max && in_fill_time >= u128::from(*mark);
        let mark = MARKS.into_iter().find(fills).unwrap_or(1);
        let changed = mark != self.mark;
        *self = Self { since: now, bytes: 0, mark, used: self.used || mark > 1, ..*self };
        changed.then_some(mark)
    }

    /// True where a mark above one byte was ever set.
    pub(super) const fn was_raised(self) -> bool {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of `bytes` every `gap_us` for 15 ms; the marks that are set.
    fn marks_after_reads(
        low_water: &mut LowWater,
        from_ms: u64,
        bytes: usize,
        gap_us: u64,
    ) -> Vec<u32> {
        let at = |us: u64| MonoTime::from_nanos(from_ms * 1_000_000 + us * 1000);
        (1..=15_000 / gap_us).filter_map(|n| low_water.read(at(n * gap_us), bytes)).collect()
    }

    #[test]
    fn the_mark_follows_the_rate_up_and_down() {
        // 128 KiB in 250 us are 4.19 Gbit/s, 512 KiB 16.8: 64 KiB every 100 us (5.2 Gbit/s) raise
        // the mark, 64 KiB every 25 us (21 Gbit/s) raise it further, every 200 us (2.6) lower it.
        let mut low_water = LowWater::starting_at(MonoTime::from_nanos(0), MARKS[0]);
        assert_eq!(marks_after_reads(&mut low_water, 0, 65_536, 100), [131_072]);
        assert!(low_water.was_raised());
        assert_eq!(marks_after_reads(&mut low_water, 15, 65_536, 100), Vec::<u32>::new());
        assert_eq!(marks_after_reads(&mut low_water, 30, 65_536, 25), [524_288]);
        // The watch of 10 ms that the change falls into is 5 ms of each: 11.8 Gbit/s.
        assert_eq!(marks_after_reads(&mut low_water, 45, 65_536, 200), [131_072, 1]);
    }

    #[test]
    fn bytes_that_nobody_reads_have_the_smaller_mark_at_any_rate() {
        let mut low_water = LowWater::starting_at(MonoTime::from_nanos(0), MARK_UNREAD);
        assert_eq!(marks_after_reads(&mut low_water, 0, 65_536, 10), [131_072]);
    }

    #[test]
    fn a_slow_stream_never_waits_for_more() {
        let mut low_water = LowWater::starting_at(MonoTime::from_nanos(0), MARKS[0]);
        assert_eq!(marks_after_reads(&mut low_water, 0, 1448, 100), Vec::<u32>::new());
        assert!(!low_water.was_raised());
    }
}
