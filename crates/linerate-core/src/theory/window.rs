//! What a window allows on a path, and what a path needs of a window.
//!
//! Left out: loss (`loss`), start-up (`slow_start`), and what the kernel takes of a socket buffer
//! before it advertises the rest.

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Largest window without scaling, bytes (RFC 9293 §3.1: a field of 16 bits).
pub const WINDOW_UNSCALED_MAX_BYTES: u64 = 65_535;

/// Largest shift of the window field (RFC 7323 §2.3).
pub const WINDOW_SCALE_MAX: u8 = 14;

/// Largest window of any connection, bytes: 65535 × 2^14 (RFC 7323 §2.3).
pub const WINDOW_MAX_BYTES: u64 = WINDOW_UNSCALED_MAX_BYTES << WINDOW_SCALE_MAX;

/// Reason why a window or rate cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WindowError {
    /// Every rate divides by it.
    #[error("a round trip of 0 sets no bound on the rate")]
    ZeroRtt,
    /// A window of 0 bytes, with which nothing is ever in flight.
    #[error("a window of 0 bytes carries nothing")]
    ZeroWindow,
    /// Any window allows it.
    #[error("a rate of 0 needs no window")]
    ZeroRate,
    /// A window scale above that of RFC 7323.
    #[error("a window scale of {scale} is above 14, the largest (RFC 7323)")]
    ScaleTooLarge {
        /// The shift asked for.
        scale: u8,
    },
    /// No scale reaches it.
    #[error("{bytes} bytes in flight are above 1073725440, the largest TCP window; use more flows")]
    WindowTooLarge {
        /// The window asked for.
        bytes: u64,
    },
    /// A window too large to count.
    #[error("the bytes in flight at {rate} over {seconds} s are too many to count")]
    TooLarge {
        /// The rate that was given.
        rate: BitRate,
        /// The round trip, whole seconds.
        seconds: u64,
    },
}

/// The most that a window lets through, in bit/s: R = 8 W / RTT.
///
/// ```
/// # use std::time::Duration;
/// # use linerate_core::theory::window::window_rate;
/// # use linerate_core::units::Bytes;
/// let bps = window_rate(Bytes::new(65_535), Duration::from_millis(21)).expect("possible");
/// assert_eq!((bps / 1e4).round(), 2497.0); // 24.97 Mbit/s
/// ```
/// # Errors
/// A window or round trip of 0.
/// # Source
/// RFC 6349 §3.3.1: 16 kB each 5 ms are 25.6 Mbit/s.
pub fn window_rate(window: Bytes, rtt: Duration) -> Result<f64, WindowError> {
    if rtt.is_zero() {
        return Err(WindowError::ZeroRtt);
    }
    if window.count() == 0 {
        return Err(WindowError::ZeroWindow);
    }
    Ok(window.count() as f64 * 8.0 / rtt.as_secs_f64())
}

/// Whole bytes in flight that a path holds, its bandwidth-delay product: C RTT / 8, rounded down.
/// # Errors
/// A product above 2^64.
/// # Source
/// RFC 6349 §3.3.1; RFC 7323 §1.1.
pub fn bdp_bytes(rate: BitRate, rtt: Duration) -> Result<Bytes, WindowError> {
    rate.bytes_in(rtt).ok_or(WindowError::TooLarge { rate, seconds: rtt.as_secs() })
}

/// The smallest window whose [`window_rate`] is `rate` or more: R RTT / 8, rounded up.
/// # Errors
/// A rate or round trip of 0, a window above 65535 × 2^14, which no connection can have.
/// # Source
/// RFC 6349 §3.3.1.
pub fn window_for(rate: BitRate, rtt: Duration) -> Result<Bytes, WindowError> {
    if rate.bits_per_sec() == 0 {
        return Err(WindowError::ZeroRate);
    }
    if rtt.is_zero() {
        return Err(WindowError::ZeroRtt);
    }
    // The bits come in parts of 10^-9.
    let parts = u128::from(rate.bits_per_sec()).checked_mul(rtt.as_nanos());
    let bytes = parts.map(|parts| parts.div_ceil(8_000_000_000));
    let too_large = WindowError::TooLarge { rate, seconds: rtt.as_secs() };
    let bytes = bytes.and_then(|bytes| u64::try_from(bytes).ok()).ok_or(too_large)?;
    if bytes > WINDOW_MAX_BYTES {
        return Err(WindowError::WindowTooLarge { bytes });
    }
    Ok(Bytes::new(bytes))
}

/// The smallest window scale that can advertise `window`: the least s with 65535 × 2^s ≥ W.
/// # Errors
/// A window above 65535 × 2^14.
/// # Source
/// RFC 7323 §2.2, §2.3.
pub fn window_scale(window: Bytes) -> Result<u8, WindowError> {
    let bytes = window.count();
    (0..=WINDOW_SCALE_MAX)
        .find(|scale| WINDOW_UNSCALED_MAX_BYTES << scale >= bytes)
        .ok_or(WindowError::WindowTooLarge { bytes })
}

/// The largest window that a scale can advertise: 65535 × 2^s.
/// # Errors
/// A scale above 14.
/// # Source
/// RFC 7323 §2.2, §2.3.
pub fn scaled_window_max(scale: u8) -> Result<Bytes, WindowError> {
    if scale > WINDOW_SCALE_MAX {
        return Err(WindowError::ScaleTooLarge { scale });
    }
    Ok(Bytes::new(WINDOW_UNSCALED_MAX_BYTES << scale))
}

/// The most that one TCP connection carries over a round trip, in bit/s, whatever its buffers:
/// 8 × 65535 × 2^14 / RTT. At 100 ms 85.9 Gbit/s.
/// # Errors
/// A round trip of 0.
/// # Source
/// RFC 7323 §2.3.
pub fn single_flow_rate_max(rtt: Duration) -> Result<f64, WindowError> {
    window_rate(Bytes::new(WINDOW_MAX_BYTES), rtt)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rate_of(bytes: u64, ms: u64) -> f64 {
        window_rate(Bytes::new(bytes), Duration::from_millis(ms)).expect("finite")
    }

    fn parse_rate(text: &str) -> BitRate {
        text.parse().expect("a rate")
    }

    /// `got` rounds to `want`, whose last digit stands for `unit`.
    fn assert_rounds_to(got: f64, want: f64, unit: f64) {
        assert!((got - want).abs() <= unit * 0.501, "got {got}, want {want}");
    }

    #[test]
    fn a_window_bounds_the_rate() {
        assert_rounds_to(rate_of(65_535, 21), 24_965_714.3, 0.1); // 524,280 / 0.021
        assert_rounds_to(rate_of(65_536, 100), 5_242_880.0, 0.1);
        assert_rounds_to(rate_of(3 << 20, 100), 251_658_240.0, 0.1);
        assert_rounds_to(rate_of(3 << 20, 21), 1_198_372_571.4, 0.1);
        assert_rounds_to(rate_of(4 << 20, 175), 191_739_611.4, 0.1);
        // RFC 6349 §3.3.1: 16 kB over 5 and 10 ms.
        assert_rounds_to(rate_of(16_000, 5), 25.6e6, 0.1);
        assert_rounds_to(rate_of(16_000, 10), 12.8e6, 0.1);
    }

    #[test]
    fn a_path_needs_its_bandwidth_delay_product() {
        let bdp = |text, ms| {
            bdp_bytes(parse_rate(text), Duration::from_millis(ms)).expect("it fits").count()
        };
        assert_eq!(bdp("1G", 21), 2_625_000);
        assert_eq!(bdp("10G", 100), 125_000_000);
        assert_eq!(bdp("100G", 100), 1_250_000_000);
        assert_eq!(bdp("599.04M", 45), 3_369_600);
        assert_eq!(bdp("1G", 0), 0);
        let error = bdp_bytes(BitRate::from_bits_per_sec(u64::MAX), Duration::from_secs(9));
        assert!(
            error.expect_err("too large").to_string().ends_with("over 9 s are too many to count")
        );
    }

    #[test]
    fn the_windows_of_rfc_6349_come_out() {
        // RFC 6349 §3.3.1: Mbit/s, ms, kB of window.
        let table = [
            ("1.536M", 20.0, 3_840),
            ("1.536M", 50.0, 9_600),
            ("1.536M", 100.0, 19_200),
            ("44.21M", 10.0, 55_263),
            ("44.21M", 15.0, 82_894),
            ("44.21M", 25.0, 138_157),
            ("100M", 1.0, 12_500),
            ("100M", 2.0, 25_000),
            ("100M", 5.0, 62_500),
            ("1G", 0.1, 12_500),
            ("1G", 0.5, 62_500),
            ("1G", 1.0, 125_000),
            ("10G", 0.05, 62_500),
            ("10G", 0.3, 375_000),
        ];
        for (text, ms, want) in table {
            let rtt = Duration::from_secs_f64(ms / 1e3);
            let got = window_for(parse_rate(text), rtt).expect("a possible window").count();
            assert_eq!(got, want, "{text} {ms} ms");
        }
    }

    #[test]
    fn the_scale_is_the_smallest_that_reaches_and_14_is_the_end() {
        let scale = |bytes| window_scale(Bytes::new(bytes));
        assert_eq!(scale(0), Ok(0));
        assert_eq!(scale(65_535), Ok(0));
        assert_eq!(scale(65_536), Ok(1));
        assert_eq!(scale(2_625_000), Ok(6));
        assert_eq!(scale(125_000_000), Ok(11));
        // RFC 7323 §2.3: 65535 × 2^14 = 1,073,725,440 is the largest window.
        assert_eq!(WINDOW_MAX_BYTES, 1_073_725_440);
        assert_eq!(scale(1_073_725_440), Ok(14));
        assert_eq!(scale(1_073_725_441), Err(too_large(1_073_725_441)));
        assert_eq!(scale(1_250_000_000), Err(too_large(1_250_000_000)));
    }

    fn too_large(bytes: u64) -> WindowError {
        WindowError::WindowTooLarge { bytes }
    }

    #[test]
    fn one_flow_has_an_end_at_any_rate() {
        let rtt = Duration::from_millis(100);
        // 100 Gbit/s over 100 ms would need a scale of 15.
        assert_eq!(window_for(parse_rate("100G"), rtt), Err(too_large(1_250_000_000)));
        assert_rounds_to(single_flow_rate_max(rtt).expect("possible"), 85_898_035_200.0, 0.1);
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let ms = Duration::from_millis(1);
        let cases = [
            (window_rate(Bytes::new(1), Duration::ZERO), WindowError::ZeroRtt),
            (window_rate(Bytes::new(0), ms), WindowError::ZeroWindow),
            (single_flow_rate_max(Duration::ZERO), WindowError::ZeroRtt),
        ];
        for (got, want) in cases {
            assert_eq!(got, Err(want));
        }
        assert_eq!(window_for(parse_rate("0"), ms), Err(WindowError::ZeroRate));
        assert_eq!(window_for(parse_rate("1G"), Duration::ZERO), Err(WindowError::ZeroRtt));
        let error = scaled_window_max(15).expect_err("above 14");
        let text = "a window scale of 15 is above 14, the largest (RFC 7323)";
        assert_eq!(error.to_string(), text);
        assert_eq!(
            too_large(1_250_000_000).to_string(),
            "1250000000 bytes in flight are above 1073725440, the largest TCP window; use more flows"
        );
        assert!(window_for(parse_rate("18E"), Duration::MAX).is_err());
    }

    proptest! {
        #[test]
        fn the_window_for_a_rate_gives_the_rate_back(
            bps in 10_000_u64..80_000_000_000,
            rtt_us in 10_u64..100_000,
        ) {
            let rate = BitRate::from_bits_per_sec(bps);
            let rtt = Duration::from_micros(rtt_us);
            let window = window_for(rate, rtt)?;
            let back = window_rate(window, rtt)?;
            let step = 8.0 / rtt.as_secs_f64();
            prop_assert!(back >= bps as f64 * (1.0 - 1e-12), "{back} {bps}");
            prop_assert!(back < bps as f64 + step * 1.001, "{back} {bps}");
            let scale = window_scale(window)?;
            prop_assert!(scaled_window_max(scale)? >= window);
            prop_assert!(scale == 0 || scaled_window_max(scale - 1)? < window);
            prop_assert!(window_rate(window, rtt * 2)? < back);
        }
    }
}
