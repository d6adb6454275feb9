//! Whether a receiving stream may sleep until a good piece has arrived.
//!
//! A reader that is woken for every arrival spends its time waking up. At high rates it asks the
//! kernel to wait for [`MARK_BYTES`] (socket(7), SO_RCVLOWAT): on loopback, one stream, CUBIC,
//! that gave 1.24 times the rate of iperf3 instead of 1.18 (Linux 6.18, two cores, November 2026).
//! Bytes are copied as before. At lower rates the mark is one byte, so that no byte waits for
//! others longer than [`FILL_NS`].

use linerate_core::time::MonoTime;

/// The mark at high rates.
pub(super) const MARK_BYTES: u32 = 128 << 10;

/// The same where nothing is copied: there is no cache to stay in.
pub(super) const MARK_UNTOUCHED_BYTES: u32 = 256 << 10;

/// The mark is raised when this is time enough for it to fill.
const FILL_NS: u64 = 250_000;

/// How long a rate is observed before the mark follows it.
const WATCH_NS: u64 = 10_000_000;

/// Follows the rate of one stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct LowWater {
    since: MonoTime,
    bytes: u64,
    mark_bytes: u32,
    raised: bool,
    used: bool,
}

impl LowWater {
    pub(super) const fn starting_at(now: MonoTime, mark_bytes: u32) -> Self {
        Self { since: now, bytes: 0, mark_bytes, raised: false, used: false }
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
        let raise = in_fill_time >= u128::from(self.mark_bytes);
        let changed = raise != self.raised;
        *self = Self { since: now, bytes: 0, raised: raise, used: self.used || raise, ..*self };
        changed.then_some(if raise { self.mark_bytes } else { 1 })
    }

    /// Whether the mark was ever raised.
    pub(super) const fn used(self) -> bool {
        self.used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads of `bytes` every `gap_us` for 15 ms; the marks that are set.
    fn marks(low_water: &mut LowWater, from_ms: u64, bytes: usize, gap_us: u64) -> Vec<u32> {
        let at = |us: u64| MonoTime::from_nanos(from_ms * 1_000_000 + us * 1000);
        (1..=15_000 / gap_us).filter_map(|n| low_water.read(at(n * gap_us), bytes)).collect()
    }

    #[test]
    fn the_mark_follows_the_rate_up_and_down() {
        // 128 KiB in 250 us are 4.19 Gbit/s: 64 KiB every 100 us (5.2 Gbit/s) raise the mark,
        // 64 KiB every 200 us (2.6 Gbit/s) lower it.
        let mut low_water = LowWater::starting_at(MonoTime::from_nanos(0), MARK_BYTES);
        assert_eq!(marks(&mut low_water, 0, 65_536, 100), [MARK_BYTES]);
        assert!(low_water.used());
        assert_eq!(marks(&mut low_water, 15, 65_536, 100), Vec::<u32>::new());
        assert_eq!(marks(&mut low_water, 30, 65_536, 200), [1]);
    }

    #[test]
    fn a_slow_stream_never_waits_for_more() {
        let mut low_water = LowWater::starting_at(MonoTime::from_nanos(0), MARK_BYTES);
        assert_eq!(marks(&mut low_water, 0, 1448, 100), Vec::<u32>::new());
        assert!(!low_water.used());
    }
}
