//! The score of the Internet2 Land Speed Record: rate times distance.
//!
//! Left out: the rules on who may enter. Figures as Internet2 announced them from 2003 to 2007.

use std::time::Duration;

use thiserror::Error;

use crate::units::{BitRate, Bytes};

/// Metres per kilometre over bits per terabit.
const TERABIT_METRES: f64 = 1e3 / 1e12;

/// Reason why a score cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SpeedRecordError {
    /// A rate of 0, which scores nothing.
    #[error("a rate of 0 scores nothing")]
    ZeroRate,
    /// A transfer of 0 bytes or in no time.
    #[error("a transfer of 0 bytes or in no time has no rate")]
    NoTransfer,
    /// A value that is no distance.
    #[error("{km} km is not a distance")]
    NotADistance {
        /// The value that was given.
        km: f64,
    },
    /// A value that is no score.
    #[error("{score_tbm_per_s} Tbit·m/s is not a score")]
    NotAScore {
        /// The value that was given.
        score_tbm_per_s: f64,
    },
}

/// The score, in terabit-metres per second: R d. 9.08 Gbit/s over 30,000 km: 272,400.
/// # Errors
/// A rate of 0, a distance not above 0.
/// # Source
/// Internet2 Land Speed Record, contest rules.
pub fn score_tbm_per_s(rate: BitRate, km: f64) -> Result<f64, SpeedRecordError> {
    if rate.bits_per_sec() == 0 {
        return Err(SpeedRecordError::ZeroRate);
    }
    Ok(rate.bits_per_sec() as f64 * distance(km)? * TERABIT_METRES)
}

/// The rate, in bit/s, that a score takes over a distance: score / d.
/// # Errors
/// A score or distance not above 0.
pub fn rate_for_score_bps(score_tbm_per_s: f64, km: f64) -> Result<f64, SpeedRecordError> {
    Ok(checked_score(score_tbm_per_s)? / (distance(km)? * TERABIT_METRES))
}

/// The distance, in kilometres, that a score implies at a rate: score / R.
/// # Errors
/// A rate of 0, a score not above 0.
pub fn distance_for_score_km(score_tbm_per_s: f64, rate: BitRate) -> Result<f64, SpeedRecordError> {
    Ok(checked_score(score_tbm_per_s)? / self::score_tbm_per_s(rate, 1.0)?)
}

/// The mean rate of a transfer, in bit/s: 8 S / T.
/// # Errors
/// 0 bytes, or no time.
pub fn mean_rate_bps(size: Bytes, time: Duration) -> Result<f64, SpeedRecordError> {
    if size.count() == 0 || time.is_zero() {
        return Err(SpeedRecordError::NoTransfer);
    }
    Ok(size.count() as f64 * 8.0 / time.as_secs_f64())
}

/// Seconds of a transfer at a rate: 8 S / R.
/// # Errors
/// A rate of 0.
pub fn transfer_s(size: Bytes, rate: BitRate) -> Result<f64, SpeedRecordError> {
    if rate.bits_per_sec() == 0 {
        return Err(SpeedRecordError::ZeroRate);
    }
    Ok(size.count() as f64 * 8.0 / rate.bits_per_sec() as f64)
}

fn distance(km: f64) -> Result<f64, SpeedRecordError> {
    if km > 0.0 && km.is_finite() { Ok(km) } else { Err(SpeedRecordError::NotADistance { km }) }
}

fn checked_score(score_tbm_per_s: f64) -> Result<f64, SpeedRecordError> {
    if score_tbm_per_s > 0.0 && score_tbm_per_s.is_finite() {
        Ok(score_tbm_per_s)
    } else {
        Err(SpeedRecordError::NotAScore { score_tbm_per_s })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse_rate(text: &str) -> BitRate {
        text.parse().expect("a rate")
    }

    /// `got` is within a share `relative` of `want`.
    fn assert_within_share(got: Result<f64, SpeedRecordError>, want: f64, relative: f64) {
        let got = got.expect("possible");
        assert!(((got - want) / want).abs() <= relative, "got {got}, want {want}");
    }

    #[test]
    fn the_announced_scores_come_out() {
        // Announced rate, kilometres and score; the rate has three digits, so half of its last
        // and of the distance's is what they may differ.
        let check = |text, km, tbm, relative| {
            assert_within_share(score_tbm_per_s(parse_rate(text), km), tbm, relative)
        };
        // The entry of 2003 itself says 23,888.06.
        check("2.38G", 10_037.0, 23_888.06, 1e-6);
        check("6.25G", 10_949.0, 68_431.0, 1e-5);
        check("4.23G", 16_250.0, 68_737.5, 1e-9);
        check("6.63G", 15_766.0, 104_529.0, 1e-4);
        check("7.21G", 30_000.0, 216_300.0, 1e-9);
        // 264,147 over 30,000 km is 8.8049 Gbit/s, announced as 8.80.
        check("8.80G", 30_000.0, 264_147.0, 1e-3);
        check("9.08G", 30_000.0, 272_400.0, 1e-9);
    }

    #[test]
    fn the_record_of_sunet_and_sprint_implies_its_distance() {
        // Announced 2004-09-30: 1830 GB at 4.31 Gbit/s in about 60 minutes over nearly 29,000 km,
        // more than 124,900 Tbit·m/s. 14.64e12 bit / 4.31e9 = 3396.75 s.
        let record = parse_rate("4.31G");
        assert_within_share(transfer_s(Bytes::new(1_830_000_000_000), record), 3396.75, 1e-5);
        assert_within_share(distance_for_score_km(124_900.0, record), 28_979.1, 1e-5);
        // April 2004: 840 GB at 4.23 Gbit/s take 1588.65 s, 26.5 minutes.
        assert_within_share(
            transfer_s(Bytes::new(840_000_000_000), parse_rate("4.23G")),
            1588.65,
            1e-5,
        );
    }

    #[test]
    fn the_last_record_moved_its_bytes_in_its_time() {
        // 20.42 TB in about 300 minutes at 9.08 Gbit/s.
        let time = Duration::from_secs(300 * 60);
        assert_within_share(mean_rate_bps(Bytes::new(20_420_000_000_000), time), 9.08e9, 1e-3);
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        assert_eq!(score_tbm_per_s(parse_rate("0"), 1.0), Err(SpeedRecordError::ZeroRate));
        let error = score_tbm_per_s(parse_rate("1G"), -1.0).expect_err("not a distance");
        assert_eq!(error.to_string(), "-1 km is not a distance");
        assert!(score_tbm_per_s(parse_rate("1G"), f64::NAN).is_err());
        assert!(rate_for_score_bps(0.0, 1.0).is_err());
        assert!(distance_for_score_km(f64::INFINITY, parse_rate("1G")).is_err());
        assert_eq!(transfer_s(Bytes::new(1), parse_rate("0")), Err(SpeedRecordError::ZeroRate));
        let nothing = mean_rate_bps(Bytes::new(0), Duration::from_secs(1));
        assert_eq!(nothing, Err(SpeedRecordError::NoTransfer));
    }

    proptest! {
        #[test]
        fn score_rate_and_distance_give_each_other_back(
            bps in 1_000_u64..1_000_000_000_000,
            km in 1.0_f64..40_000.0,
        ) {
            let rate = BitRate::from_bits_per_sec(bps);
            let score = score_tbm_per_s(rate, km)?;
            prop_assert!((rate_for_score_bps(score, km)? / bps as f64 - 1.0).abs() < 1e-12);
            prop_assert!((distance_for_score_km(score, rate)? / km - 1.0).abs() < 1e-12);
            prop_assert!(score_tbm_per_s(rate, km * 2.0)? > score);
        }
    }
}
