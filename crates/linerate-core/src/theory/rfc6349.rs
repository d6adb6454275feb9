//! The three metrics of RFC 6349: transfer time ratio, efficiency and buffer delay.
//!
//! Left out: the order of the tests and the windows to use (`window`), and the ideal rate, which
//! is a ceiling of the link (`framing`).

use std::time::Duration;

use thiserror::Error;

use crate::units::Bytes;

/// Reason why a metric cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum MetricError {
    /// An ideal time of 0, with which nothing compares.
    #[error("an ideal transfer of 0 s compares with nothing")]
    ZeroIdeal,
    /// A value that is no rate.
    #[error("an ideal rate of {bps} bit/s is not above 0")]
    NotARate {
        /// The value that was given.
        bps: f64,
    },
    /// A base round trip of 0, with which nothing compares.
    #[error("a base round trip of 0 compares with nothing")]
    ZeroBase,
    /// No bytes sent, of which to take a share.
    #[error("0 bytes were sent")]
    NothingSent,
    /// The counters contradict each other.
    #[error("{retransmitted} bytes were sent again of {sent} in all")]
    MoreRetransmitted {
        /// All bytes sent, first and again.
        sent: u64,
        /// Number of bytes sent again.
        retransmitted: u64,
    },
}

/// Seconds in which `size` passes at the ideal rate: 8 S / R. 100 MB at 94.9285 Mbit/s take
/// 8.427 s.
/// # Errors
/// A rate not above 0.
/// # Source
/// RFC 6349 §4.1.2.
pub fn ideal_transfer_s(size: Bytes, payload_bps: f64) -> Result<f64, MetricError> {
    if !(payload_bps > 0.0 && payload_bps.is_finite()) {
        return Err(MetricError::NotARate { bps: payload_bps });
    }
    Ok(size.count() as f64 * 8.0 / payload_bps)
}

/// Time of a transfer over the time at the ideal rate: actual / ideal. 12 s for 8 s: 1.5.
pub fn transfer_time_ratio(actual: Duration, ideal: Duration) -> Result<f64, MetricError> {
    if ideal.is_zero() {
        return Err(MetricError::ZeroIdeal);
    }
    Ok(actual.as_secs_f64() / ideal.as_secs_f64())
}

/// Share of the bytes sent that were not sent again: (sent − retransmitted) / sent. `sent` counts
/// the first and every further time. 102,000 and 2,000: 98.04 %.
/// # Errors
/// Nothing sent, or more sent again than sent.
/// # Source
/// RFC 6349 §4.2, whose example cuts it to 98.03 %.
pub fn efficiency(sent: Bytes, retransmitted: Bytes) -> Result<f64, MetricError> {
    let (sent, retransmitted) = (sent.count(), retransmitted.count());
    if sent == 0 {
        return Err(MetricError::NothingSent);
    }
    let kept = sent
        .checked_sub(retransmitted)
        .ok_or(MetricError::MoreRetransmitted { sent, retransmitted })?;
    Ok(kept as f64 / sent as f64)
}

/// Rise of the mean round trip of a transfer above the base, as a share of the base: (mean − base)
/// / base. 25 to 32 ms: 28 %. Below 0 when the base was measured too high.
pub fn buffer_delay(mean: Duration, base: Duration) -> Result<f64, MetricError> {
    if base.is_zero() {
        return Err(MetricError::ZeroBase);
    }
    Ok(mean.as_secs_f64() / base.as_secs_f64() - 1.0)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn assert_close(got: Result<f64, MetricError>, want: f64, tolerance: f64) {
        let got = got.expect("possible");
        assert!((got - want).abs() <= tolerance, "got {got}, want {want}");
    }

    #[test]
    fn the_examples_of_the_rfc_come_out() {
        // §4.1.2: five transfers of 100 MB share 500 Mbit/s: 8 s, and took 12.
        assert_close(ideal_transfer_s(Bytes::new(500_000_000), 500e6), 8.0, 1e-12);
        let seconds = Duration::from_secs;
        assert_close(transfer_time_ratio(seconds(12), seconds(8)), 1.5, 1e-12);
        // §4.2.1: 100/102.
        assert_close(efficiency(Bytes::new(102_000), Bytes::new(2_000)), 0.980_392, 1e-6);
        // §4.3.1: 7/25.
        let ms = Duration::from_millis;
        assert_close(buffer_delay(ms(32), ms(25)), 0.28, 1e-12);
    }

    #[test]
    fn a_transfer_over_fast_ethernet_comes_out_by_hand() {
        // 100 Mbit/s · 1460/1538 = 94.9285 Mbit/s; 800e6 / 94.9285e6 = 8.4274 s; 15 / 8.4274.
        assert_close(ideal_transfer_s(Bytes::new(100_000_000), 94.9285e6), 8.4274, 5e-5);
        let ideal = Duration::from_micros(8_427_400);
        assert_close(transfer_time_ratio(Duration::from_secs(15), ideal), 1.7799, 5e-5);
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let second = Duration::from_secs(1);
        assert_eq!(transfer_time_ratio(second, Duration::ZERO), Err(MetricError::ZeroIdeal));
        assert_eq!(buffer_delay(second, Duration::ZERO), Err(MetricError::ZeroBase));
        assert_eq!(efficiency(Bytes::new(0), Bytes::new(0)), Err(MetricError::NothingSent));
        let error = efficiency(Bytes::new(1), Bytes::new(2)).expect_err("more again than at all");
        assert_eq!(error.to_string(), "2 bytes were sent again of 1 in all");
        assert!(ideal_transfer_s(Bytes::new(1), 0.0).is_err());
        assert!(ideal_transfer_s(Bytes::new(1), f64::NAN).is_err());
    }

    proptest! {
        #[test]
        fn metrics_stay_in_their_ranges(
            sent in 1_u64..1 << 50,
            percent in 0_u64..=100,
            base_us in 1_u64..1_000_000,
            more_us in 0_u64..1_000_000,
        ) {
            let again = Bytes::new(sent / 100 * percent);
            let share = efficiency(Bytes::new(sent), again)?;
            prop_assert!((0.0..=1.0).contains(&share));
            let back = sent as f64 * (1.0 - share);
            prop_assert!((back - again.count() as f64).abs() <= sent as f64 * 1e-12 + 1e-9);
            let all_us = base_us + more_us;
            let rise = buffer_delay(Duration::from_micros(all_us), Duration::from_micros(base_us))?;
            let more = rise * base_us as f64;
            prop_assert!((more - more_us as f64).abs() < 1e-6 * all_us as f64, "{more}");
        }
    }
}
