//! What a window allows on a path, and what a path needs of a window.
//!
//! Left out: loss, slow start, and what the kernel takes of a socket buffer before it advertises
//! the rest.

use std::time::Duration;

use crate::units::{BitRate, Bytes};

/// Largest window without scaling, bytes (RFC 9293 §3.1: a field of 16 bits).
pub const WINDOW_UNSCALED_MAX_BYTES: u64 = 65_535;

/// Largest shift of the window field (RFC 7323 §2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;

/// The most that a window lets through in each round trip: R = W / RTT, to the nearest bit/s.
/// `None` for a round trip of 0, which sets no bound, and for a rate that does not fit.
///
/// ```
/// # use std::time::Duration;
/// # use linerate_core::theory::window::window_rate;
/// # use linerate_core::units::Bytes;
/// let rate = window_rate(Bytes::new(65_535), Duration::from_millis(21)).expect("finite");
/// assert_eq!(rate.to_string(), "24.97 Mbit/s");
/// ```
/// # Source
/// RFC 6349 §3.3.
pub fn window_rate(window: Bytes, rtt: Duration) -> Option<BitRate> {
    BitRate::from_bytes_over(window, rtt)
}

/// Bytes in flight that fill a path, its bandwidth-delay product: rate × RTT / 8, rounded down.
/// `None` when they do not fit.
/// # Source
/// RFC 6349 §3.3; RFC 7323 §1.1.
pub fn bdp_bytes(rate: BitRate, rtt: Duration) -> Option<Bytes> {
    rate.bytes_in(rtt)
}

/// The smallest window scale that can advertise `window`; `None` above 65535 × 2^14, which no TCP
/// connection can have in flight.
/// # Source
/// RFC 7323 §2.2, §2.3.
pub fn window_scale(window: Bytes) -> Option<u8> {
    (0..=WINDOW_SCALE_MAX).find(|scale| WINDOW_UNSCALED_MAX_BYTES << scale >= window.count())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rate_of(bytes: u64, ms: u64) -> u64 {
        window_rate(Bytes::new(bytes), Duration::from_millis(ms)).expect("finite").bits_per_sec()
    }

    #[test]
    fn a_window_bounds_the_rate() {
        assert_eq!(rate_of(65_535, 21), 24_965_714); // 524,280 / 0.021 = 24,965,714.3
        assert_eq!(rate_of(65_536, 100), 5_242_880);
        assert_eq!(rate_of(3 << 20, 100), 251_658_240);
        assert_eq!(rate_of(3 << 20, 21), 1_198_372_571);
        assert_eq!(rate_of(4 << 20, 175), 191_739_611);
    }

    #[test]
    fn a_round_trip_of_zero_sets_no_bound() {
        assert_eq!(window_rate(Bytes::new(65_535), Duration::ZERO), None);
    }

    #[test]
    fn a_path_needs_its_bandwidth_delay_product() {
        let bdp = |rate: &str, ms| {
            let rate = rate.parse().expect("a rate");
            bdp_bytes(rate, Duration::from_millis(ms)).expect("it fits").count()
        };
        assert_eq!(bdp("1G", 21), 2_625_000);
        assert_eq!(bdp("10G", 100), 125_000_000);
        assert_eq!(bdp("100G", 100), 1_250_000_000);
        assert_eq!(bdp("599.04M", 45), 3_369_600);
    }

    #[test]
    fn the_scale_is_the_smallest_that_reaches_and_14_is_the_end() {
        let scale = |bytes| window_scale(Bytes::new(bytes));
        assert_eq!(scale(0), Some(0));
        assert_eq!(scale(65_535), Some(0));
        assert_eq!(scale(65_536), Some(1));
        assert_eq!(scale(2_625_000), Some(6));
        assert_eq!(scale(125_000_000), Some(11));
        // RFC 7323 §2.3: 65535 × 2^14 = 1,073,725,440 is the largest window.
        assert_eq!(scale(1_073_725_440), Some(14));
        assert_eq!(scale(1_073_725_441), None);
        assert_eq!(scale(1_250_000_000), None);
        assert_eq!(rate_of(1_073_725_440, 100), 85_898_035_200);
    }
}
