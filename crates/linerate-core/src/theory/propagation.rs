//! How long light takes through fibre, and how long a packet takes to leave.
//!
//! Left out: equipment and queues on the way. A route is longer than the map says: fibre follows
//! railways and roads. Rules: distance over speed; the index is that of ITU-T G.652 fibre.

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Speed of light in vacuum, m/s (BIPM, SI Brochure §2.3.1).
pub const LIGHT_M_PER_S: f64 = 299_792_458.0;
/// Group index of single-mode fibre at 1550 nm (data sheets of ITU-T G.652 fibre).
pub const FIBRE_INDEX: f64 = 1.468;

/// Reason why a time or distance cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum PropagationError {
    /// Negative, or not a number.
    #[error("a distance is 0 km or more")]
    Distance,
    /// A rate of 0, at which bits never leave.
    #[error("the link's rate is 0")]
    ZeroRate,
}

/// Time of light through `km` of fibre, one way, in seconds: t = n d / c, 4.897 µs a kilometre.
///
/// ```
/// # use linerate_core::theory::propagation::fibre_delay_s;
/// let there_and_back_ms = 2e3 * fibre_delay_s(1000.0)?;
/// assert!((there_and_back_ms - 9.79).abs() < 0.005);
/// # Ok::<(), linerate_core::theory::propagation::PropagationError>(())
/// ```
/// # Errors
/// A negative distance, or none.
pub fn fibre_delay_s(km: f64) -> Result<f64, PropagationError> {
    if !km.is_finite() || km < 0.0 {
        return Err(PropagationError::Distance);
    }
    Ok(km * 1000.0 * FIBRE_INDEX / LIGHT_M_PER_S)
}

/// Kilometres of fibre, one way, that explain a round trip: d = RTT c / (2 n). The route is no
/// longer than this, for everything else on it takes time too.
///
/// 21 ms are 2144 km.
pub fn fibre_km(rtt: Duration) -> f64 {
    rtt.as_secs_f64() * LIGHT_M_PER_S / (2.0 * FIBRE_INDEX * 1000.0)
}

/// Time that `size` takes to leave at `rate`, in seconds: t = 8 L / R. `size` counts what `rate`
/// counts: on Ethernet the frame with preamble and gap.
///
/// 1538 bytes at 100 Mbit/s take 123.04 µs.
/// # Errors
/// A rate of 0.
/// # Source
/// What a rate is.
pub fn serialisation_s(size: Bytes, rate: BitRate) -> Result<f64, PropagationError> {
    match rate.bits_per_sec() {
        0 => Err(PropagationError::ZeroRate),
        bps => Ok(size.count() as f64 * 8.0 / bps as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `got` is within 1e-4 of `want`.
    fn assert_near(got: f64, want: f64) {
        assert!(((got - want) / want).abs() < 1e-4, "got {got}, want {want}");
    }

    #[test]
    fn light_takes_almost_five_microseconds_for_a_kilometre() {
        assert_near(fibre_delay_s(1.0).expect("a distance") * 1e6, 4.896_72); // 1468 / 299.792458
        assert_near(fibre_delay_s(1000.0).expect("a distance") * 2e3, 9.793_44);
        assert_eq!(fibre_delay_s(0.0), Ok(0.0));
    }

    #[test]
    fn a_round_trip_of_21_ms_is_more_than_a_thousand_kilometres() {
        assert_near(fibre_km(Duration::from_millis(21)), 2_144.29); // 0.021 × 299,792.458 / 2.936
        assert_near(21.0 / (fibre_delay_s(1000.0).expect("a distance") * 2e3), 2.144_3);
    }

    #[test]
    fn packets_leave_at_the_rate_of_the_link() {
        let us = |bytes, rate: &str| {
            let rate = rate.parse().expect("a rate");
            serialisation_s(Bytes::new(bytes), rate).expect("a rate") * 1e6
        };
        assert_near(us(1538, "100M"), 123.04);
        assert_near(us(1538, "1G"), 12.304);
        assert_near(us(9180, "599.04M"), 122.596);
    }

    #[test]
    fn impossible_inputs_are_refused() {
        for km in [-1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(fibre_delay_s(km), Err(PropagationError::Distance));
        }
        let zero = BitRate::from_bits_per_sec(0);
        assert_eq!(serialisation_s(Bytes::new(1), zero), Err(PropagationError::ZeroRate));
        assert!(fibre_km(Duration::MAX).is_finite());
    }
}
