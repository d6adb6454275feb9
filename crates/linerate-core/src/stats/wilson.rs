//! How much a counted share can be trusted.

/// An interval of confidence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower end of the interval.
    pub low: f64,
    /// Upper end of the interval.
    pub high: f64,
}

/// Standard normal deviate of a two-sided 95 % interval.
pub const Z_95: f64 = 1.959_964;

/// The score interval of `part` successes in `whole` trials at deviate `z`; `None` without trials,
/// for a part above the whole, and for a `z` that is not a number at or above 0.
///
/// With p = part/whole, n = whole: (p + z²/2n ± z √(p(1−p)/n + z²/4n²)) / (1 + z²/n). It is right
/// at 0 losses too, where the interval of the normal approximation has no width: 0 of 10,000
/// lost means at most 0.0384 % at 95 %.
///
/// # Source
/// E. B. Wilson, "Probable inference, the law of succession, and statistical inference", Journal
/// of the American Statistical Association 22 (1927).
pub fn wilson_interval(part: u64, whole: u64, z: f64) -> Option<Interval> {
    if whole == 0 || part > whole || !(z.is_finite() && z >= 0.0) {
        return None;
    }
    let n = whole as f64;
    let p = part as f64 / n;
    let spread = z * z / n;
    let center = (p + spread / 2.0) / (1.0 + spread);
    let half = z * (p * (1.0 - p) / n + spread / (4.0 * n)).sqrt() / (1.0 + spread);
    // The ends are exactly 0 and 1 at the limits; rounding must not lift them off.
    let low = if part == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if part == whole { 1.0 } else { (center + half).min(1.0) };
    Some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn published_intervals_come_out() {
        // R. G. Newcombe, Statistics in Medicine 17 (1998) 857, table I, method 3 (score).
        let cases = [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ];
        for (part, whole, low, high) in cases {
            let interval = wilson_interval(part, whole, Z_95).expect("trials");
            assert!((interval.low - low).abs() < 5.1e-5, "{part}/{whole} {interval:?}");
            assert!((interval.high - high).abs() < 5.1e-5, "{part}/{whole} {interval:?}");
        }
    }

    #[test]
    fn no_loss_in_ten_thousand_still_leaves_384_in_a_million() {
        let interval = wilson_interval(0, 10_000, Z_95).expect("trials");
        // z² / (n + z²) = 3.841459 / 10003.841459.
        assert_eq!(interval.low, 0.0);
        assert!((interval.high - 0.000_384).abs() < 5e-8, "{interval:?}");
    }

    #[test]
    fn no_trials_or_more_losses_than_trials_have_no_interval() {
        assert_eq!(wilson_interval(0, 0, Z_95), None);
        assert_eq!(wilson_interval(2, 1, Z_95), None);
        assert_eq!(wilson_interval(1, 2, f64::NAN), None);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share_and_stays_within_0_and_1(part: u64, rest: u32) {
            let whole = part.saturating_add(u64::from(rest));
            if let Some(Interval { low, high }) = wilson_interval(part, whole, Z_95) {
                let p = part as f64 / whole as f64;
                prop_assert!(0.0 <= low && low <= p && p <= high && high <= 1.0);
            }
        }
    }
}
