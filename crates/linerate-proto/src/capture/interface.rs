//! An interface as a capture describes it, and the clock of its timestamps.

use super::link_type::LinkType;

/// An interface that packets were captured on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureInterface {
    /// Link-layer header type of its packets.
    pub link_type: LinkType,
    /// Longest captured length of a packet, bytes; `None` for no limit.
    pub snaplen: Option<u32>,
    /// Name on the capturing host, cut to 64 characters.
    pub name: Option<Box<str>>,
    /// Speed of the interface in bit/s.
    pub speed_bps: Option<u64>,
    /// Bytes of frame check sequence on each packet.
    pub fcs_bytes: Option<u8>,
    pub(super) clock: Clock,
}

impl CaptureInterface {
    /// Units of the timestamps in a second; `None` above 2^64.
    pub const fn stamps_per_s(&self) -> Option<u64> {
        match self.clock.resolution & 0x80 {
            0 => 10u64.checked_pow(self.clock.resolution as u32),
            _ => 2u64.checked_pow((self.clock.resolution & 0x7f) as u32),
        }
    }
}

/// Conversion of timestamps to nanoseconds (`if_tsresol` and `if_tsoffset` of pcapng).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Clock {
    /// Value of `if_tsresol`: the negated power of 10 of a unit in seconds, or of 2 with the top
    /// bit set.
    resolution: u8,
    scale: TimestampScale,
    offset_ns: i128,
}

/// Factor from units to nanoseconds, computed once for each interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimestampScale {
    /// Nanoseconds in a unit.
    Times(u64),
    /// Units in a nanosecond.
    Over(u128),
    /// Units of 2^-n seconds.
    Shift(u32),
}

impl Clock {
    /// Microseconds, the default of pcapng.
    pub(super) const DEFAULT: Self =
        Self { resolution: 6, scale: TimestampScale::Times(1000), offset_ns: 0 };

    /// A clock from `if_tsresol` and `if_tsoffset` (seconds).
    pub(super) fn new(resolution: u8, offset_s: i64) -> Self {
        let exponent = u32::from(resolution & 0x7f);
        let scale = if resolution & 0x80 != 0 {
            TimestampScale::Shift(exponent)
        } else if exponent <= 9 {
            TimestampScale::Times(10u64.pow(9 - exponent))
        } else {
            // Above 10^38 units in a nanosecond every timestamp of 64 bits rounds down to 0.
            TimestampScale::Over(10u128.checked_pow(exponent - 9).unwrap_or(u128::MAX))
        };
        Self { resolution, scale, offset_ns: i128::from(offset_s) * 1_000_000_000 }
    }

    /// Nanoseconds since 1970, rounded down; `None` before 1970 and after 2554.
    #[inline]
    pub(super) fn at_ns(&self, units: u64) -> Option<u64> {
        if let (TimestampScale::Times(ns), 0) = (self.scale, self.offset_ns) {
            return units.checked_mul(ns);
        }
        let units = u128::from(units);
        let ns = match self.scale {
            TimestampScale::Times(ns) => units * u128::from(ns),
            TimestampScale::Over(units_per_ns) => units / units_per_ns,
            // 64 bits times 10^9 have less than 94; the exponent is at most 127.
            TimestampScale::Shift(exponent) => (units * 1_000_000_000) >> exponent,
        };
        u64::try_from(i128::try_from(ns).ok()? + self.offset_ns).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expected by hand: 1 s and 1 unit more, in each resolution.
    #[test]
    fn resolutions_are_powers_of_ten_and_of_two() {
        let check = |resolution, units, expected| {
            assert_eq!(Clock::new(resolution, 0).at_ns(units), expected, "resolution {resolution}");
        };
        check(0, 1, Some(1_000_000_000));
        check(3, 1_001, Some(1_001_000_000));
        check(6, 1_000_001, Some(1_000_001_000));
        check(9, 1_000_000_001, Some(1_000_000_001));
        check(12, 1_000_000_001_999, Some(1_000_000_001));
        check(127, u64::MAX, Some(0));
        check(0x80, 7, Some(7_000_000_000));
        // 2^-10 s is 976 562.5 ns.
        check(0x80 | 10, 1_025, Some(1_000_976_562));
        // 2^-32 s, as NTP counts: 3 × 2^31 units are 1.5 s.
        check(0x80 | 32, 3 << 31, Some(1_500_000_000));
        check(0x80 | 127, u64::MAX, Some(0));
        check(0, u64::MAX, None);
    }

    #[test]
    fn an_offset_shifts_by_whole_seconds_both_ways() {
        assert_eq!(Clock::new(9, 1_000).at_ns(5), Some(1_000_000_000_005));
        assert_eq!(Clock::new(9, -1).at_ns(1_000_000_005), Some(5));
        assert_eq!(Clock::new(9, -1).at_ns(5), None);
        assert_eq!(Clock::new(9, i64::MAX).at_ns(5), None);
        assert_eq!(Clock::new(9, i64::MIN).at_ns(u64::MAX), None);
    }

    #[test]
    fn the_default_is_microseconds() {
        assert_eq!(Clock::DEFAULT, Clock::new(6, 0));
    }
}
