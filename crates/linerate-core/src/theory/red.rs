//! Random early detection: the averaged queue and the chance of a mark.
//!
//! Left out: which packet is dropped, ECN, and the gentle and adaptive forms.
//! S. Floyd, V. Jacobson, "Random early detection gateways for congestion avoidance", IEEE/ACM
//! ToN 1(4), 1993.

use thiserror::Error;

/// Weight of a new queue length in the average, as in the paper's simulations (§V).
pub const WEIGHT: f64 = 0.002;
/// Largest early chance of a mark, as in the paper's simulations (§V).
pub const MARK_MAX: f64 = 0.02;

/// Settings of a queue. Lengths are in bytes or in packets, all alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedParameters {
    /// Averaged length below which nothing is marked.
    pub min: f64,
    /// Averaged length from which everything is marked.
    pub max: f64,
    /// Chance of a mark just below `max`.
    pub mark_max: f64,
    /// Weight of a new length in the average.
    pub weight: f64,
}

/// Reason why a mark's chance or an average cannot be computed.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum RedError {
    /// The thresholds do not follow each other.
    #[error("thresholds {min} and {max} are not 0 or more and one above the other")]
    Thresholds {
        /// The lower of the thresholds.
        min: f64,
        /// The upper of the thresholds.
        max: f64,
    },
    /// A value that is no probability.
    #[error("a chance of {chance} for a mark is not above 0 and at most 1")]
    Chance {
        /// The value that was given.
        chance: f64,
    },
    /// A value that is no weight.
    #[error("a weight of {weight} is not above 0 and at most 1")]
    Weight {
        /// The value that was given.
        weight: f64,
    },
    /// A value that is no length.
    #[error("a queue of {length} is not a length")]
    Length {
        /// The value that was given.
        length: f64,
    },
    /// A packet of no length.
    #[error("packets of 0 bytes fill no queue")]
    ZeroPacket,
}

impl RedParameters {
    /// Settings that can be.
    /// # Errors
    /// A negative threshold, `max` not above `min`, a chance or weight not above 0 and up to 1.
    pub fn new(min: f64, max: f64, mark_max: f64, weight: f64) -> Result<Self, RedError> {
        if !(min >= 0.0 && max > min && max.is_finite()) {
            return Err(RedError::Thresholds { min, max });
        }
        if !(mark_max > 0.0 && mark_max <= 1.0) {
            return Err(RedError::Chance { chance: mark_max });
        }
        Ok(Self { min, max, mark_max, weight: valid_weight(weight)? })
    }

    /// The average after a packet that found `length` in the queue:
    /// avg + w (q − avg).
    pub fn averaged(&self, average: f64, length: f64) -> f64 {
        average + self.weight * (length - average)
    }

    /// The average after `packets` that all found `length`: q + (avg − q) (1 − w)ⁿ. With a length
    /// of 0 it is the rule for an idle time, of which `packets` would have filled so many, and a
    /// part of one more.
    pub fn averaged_after(&self, average: f64, length: f64, packets: f64) -> f64 {
        length + (average - length) * (1.0 - self.weight).powf(packets)
    }

    /// The chance of a mark by the average alone: p_b = mark_max (avg − min) / (max − min), 0 below
    /// min and 1 from max.
    ///
    /// min 30 kB, max 90 kB, mark_max 0.02: 0.01 at 60 kB.
    /// # Errors
    /// An average that is negative or not finite.
    pub fn mark_chance(&self, average: f64) -> Result<f64, RedError> {
        if !(average >= 0.0 && average.is_finite()) {
            return Err(RedError::Length { length: average });
        }
        if average >= self.max {
            return Ok(1.0);
        }
        Ok((self.mark_max * (average - self.min) / (self.max - self.min)).max(0.0))
    }

    /// The average at which [`Self::mark_chance`] is `chance`.
    /// # Errors
    /// A chance not above 0 or above `mark_max`, which only the full queue exceeds.
    pub fn average_for(&self, chance: f64) -> Result<f64, RedError> {
        if !(chance > 0.0 && chance <= self.mark_max) {
            return Err(RedError::Chance { chance });
        }
        Ok(self.min + (self.max - self.min) * chance / self.mark_max)
    }
}

/// The chance of a mark `count` packets after the last one, which spreads the marks:
/// p_a = p_b / (1 − count p_b), 1 where that exceeds it. p_b 0.01, 50 packets: 0.02.
/// # Errors
/// p_b not from 0 to 1.
/// # Source
/// Floyd and Jacobson 1993 §VII: the gap between marks is then even over 1 to 1/p_b packets.
pub fn spread_chance(chance: f64, count: u32) -> Result<f64, RedError> {
    if !(0.0..=1.0).contains(&chance) {
        return Err(RedError::Chance { chance });
    }
    let rest = 1.0 - f64::from(count) * chance;
    Ok(if rest <= chance { 1.0 } else { chance / rest })
}

/// Share of a standing queue that the average has reached after `packets` from empty:
/// 1 − (1 − w)ⁿ. 86.5 % after 1000 packets at a weight of 0.002.
/// # Errors
/// A weight not above 0 and at most 1.
/// # Source
/// Floyd and Jacobson 1993 §VI.
pub fn average_reached(weight: f64, packets: u32) -> Result<f64, RedError> {
    Ok(1.0 - (1.0 - valid_weight(weight)?).powf(f64::from(packets)))
}

/// Packets of a burst that Linux's `tc … red` should be told to allow:
/// (2 min + max) / (3 avpkt), rounded up, in bytes.
/// # Errors
/// Packets of 0 bytes.
/// # Source
/// tc-red(8).
pub fn tc_burst_packets(min: u64, max: u64, packet_bytes: u32) -> Result<u64, RedError> {
    if packet_bytes == 0 {
        return Err(RedError::ZeroPacket);
    }
    let bytes = u128::from(min) * 2 + u128::from(max);
    // Three lengths over at least three bytes fit again.
    Ok(u64::try_from(bytes.div_ceil(u128::from(packet_bytes) * 3)).unwrap_or(u64::MAX))
}

fn valid_weight(weight: f64) -> Result<f64, RedError> {
    if weight > 0.0 && weight <= 1.0 { Ok(weight) } else { Err(RedError::Weight { weight }) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn example_red() -> RedParameters {
        RedParameters::new(30e3, 90e3, MARK_MAX, WEIGHT).expect("possible settings")
    }

    fn assert_close(got: Result<f64, RedError>, want: f64) {
        let got = got.expect("possible");
        assert!((got - want).abs() < 1e-12, "got {got}, want {want}");
    }

    #[test]
    fn the_chance_grows_between_the_thresholds() {
        for (average, want) in [(0.0, 0.0), (30e3, 0.0), (60e3, 0.01), (90e3, 1.0), (2e5, 1.0)] {
            assert_close(example_red().mark_chance(average), want);
        }
        assert_close(example_red().average_for(0.01), 60e3);
    }

    #[test]
    fn marks_are_spread() {
        assert_close(spread_chance(0.01, 0), 0.01);
        assert_close(spread_chance(0.01, 50), 0.02);
        assert_close(spread_chance(0.01, 99), 1.0);
        assert_close(spread_chance(0.01, 1000), 1.0);
        assert_close(spread_chance(0.0, 1000), 0.0);
        // Each of the 100 places of the next mark has the same chance.
        let mut none_yet = 1.0;
        for count in 0..100 {
            let chance = spread_chance(0.01, count).expect("a chance");
            assert!((none_yet * chance - 0.01).abs() < 1e-9, "{count}");
            none_yet *= 1.0 - chance;
        }
    }

    #[test]
    fn the_average_follows_slowly() {
        // 1 − 0.998^1000 = 0.8649.
        let reached = average_reached(WEIGHT, 1000).expect("a weight");
        assert!((reached - 0.8649).abs() < 5e-5, "{reached}");
        let after = example_red().averaged_after(0.0, 80e3, 1000.0);
        assert!((after - 80e3 * reached).abs() < 1e-6, "{after}");
        let stepped = (0..1000).fold(0.0, |average, _| example_red().averaged(average, 80e3));
        assert!((after - stepped).abs() < 1e-6, "{after} {stepped}");
    }

    #[test]
    fn the_burst_of_tc_comes_out() {
        // (2 · 30000 + 90000) / (3 · 1000) = 50; one byte more needs another packet.
        assert_eq!(tc_burst_packets(30_000, 90_000, 1000), Ok(50));
        assert_eq!(tc_burst_packets(30_000, 90_001, 1000), Ok(51));
        assert!(tc_burst_packets(u64::MAX, u64::MAX, 1).is_ok());
    }

    #[test]
    fn what_cannot_be_gets_a_line() {
        let cases = [
            (RedParameters::new(2.0, 1.0, 0.1, 0.1), RedError::Thresholds { min: 2.0, max: 1.0 }),
            (RedParameters::new(-1.0, 1.0, 0.1, 0.1), RedError::Thresholds { min: -1.0, max: 1.0 }),
            (RedParameters::new(1.0, 2.0, 0.0, 0.1), RedError::Chance { chance: 0.0 }),
            (RedParameters::new(1.0, 2.0, 0.1, 1.5), RedError::Weight { weight: 1.5 }),
        ];
        for (got, want) in cases {
            assert_eq!(got, Err(want));
            assert!(!want.to_string().contains('\n'));
        }
        assert!(RedParameters::new(1.0, f64::NAN, 0.1, 0.1).is_err());
        assert!(example_red().mark_chance(f64::NAN).is_err());
        assert!(example_red().average_for(0.5).is_err());
        assert!(spread_chance(1.5, 0).is_err());
        assert!(average_reached(0.0, 1).is_err());
        assert_eq!(tc_burst_packets(1, 2, 0), Err(RedError::ZeroPacket));
    }

    proptest! {
        #[test]
        fn the_average_for_a_chance_is_the_inverse(chance in 1e-6_f64..0.0199) {
            let back = example_red().mark_chance(example_red().average_for(chance)?)?;
            prop_assert!((back - chance).abs() < 1e-12);
        }

        #[test]
        fn a_longer_queue_is_never_marked_less(average in 0.0_f64..2e5, more in 0.0_f64..1e5) {
            let (longer, shorter) = (average + more, average);
            let red = example_red();
            prop_assert!(red.mark_chance(longer)? >= red.mark_chance(shorter)?);
        }
    }
}
