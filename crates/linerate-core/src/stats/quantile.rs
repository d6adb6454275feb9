//! Percentiles of samples that are all kept.
//!
//! # Source
//! RFC 2330 §11.3: the percentile of a share is the smallest x with F(x) at or above the share,
//! where F is the empirical distribution function. It is type 1 of Hyndman and Fan, "Sample
//! quantiles in statistical packages", The American Statistician 50 (1996), also called nearest
//! rank. Interpolated types are left out: they give delays that no packet had.

/// Samples in rising order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sorted(Vec<u64>);

impl Sorted {
    /// Sorts `samples`.
    pub fn new(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        Self(samples)
    }

    /// The samples, rising.
    pub fn samples(&self) -> &[u64] {
        &self.0
    }

    /// The percentile of `share` (0.99 for the 99th); `None` without samples and for a share
    /// outside 0 … 1. The share 0 gives the smallest sample.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        let rank = rank_of(share, self.0.len() as u64)?;
        // A rank is at most the length, so it fits the length's type.
        self.0.get(usize::try_from(rank - 1).ok()?).copied()
    }
}

/// Rank, counted from 1, of the percentile of `share` among `count` samples.
pub(super) fn rank_of(share: f64, count: u64) -> Option<u64> {
    if count == 0 || !(0.0..=1.0).contains(&share) {
        return None;
    }
    // A decimal share and the product are each off by half a unit in the last place at most; that
    // is taken off before rounding up, so that 0.999 of 1000 is rank 999 and not 1000.
    let exact = share * count as f64 * (1.0 - f64::EPSILON);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the value is within 0 and count"
    )]
    let rank = exact.ceil() as u64;
    Some(rank.clamp(1, count))
}

/// The value of the percentile of `share` in a histogram of rising `(value, count)` pairs that
/// hold `total` samples together.
pub(super) fn weighted_quantile(
    pairs: impl IntoIterator<Item = (u64, u64)>,
    total: u64,
    share: f64,
) -> Option<u64> {
    let rank = rank_of(share, total)?;
    let mut below = 0_u64;
    pairs.into_iter().find_map(|(value, count)| {
        below = below.saturating_add(count);
        (below >= rank).then_some(value)
    })
}

/// The median as RFC 2330 §11.3 defines it, apart from the 50th percentile: the middle sample, or
/// the mean of the two middle ones; `None` without samples. For results of repeated measurements,
/// where it needs not be a value that was measured. Values that are not numbers sort last.
///
/// ```
/// # use linerate_core::stats::median;
/// assert_eq!(median(&[3.0, 1.0, 2.0, 10.0]), Some(2.5));
/// ```
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        1 => Some(upper),
        _ => Some(sorted[sorted.len() / 2 - 1].midpoint(upper)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_example_of_rfc_2330_comes_out() {
        // RFC 2330 §11.3: of -2, 7, 7, 4, 18, -5 the 50th percentile is 4, the 25th is -2, the
        // 100th is 18, the 15th is -5. Shifted up by 5, as samples here are not negative.
        let sorted = Sorted::new([-2_i64, 7, 7, 4, 18, -5].map(|x| x.abs_diff(-5)).to_vec());
        for (share, value) in [(0.15, -5_i64), (0.25, -2), (0.50, 4), (1.0, 18)] {
            assert_eq!(sorted.quantile(share), Some(value.abs_diff(-5)), "{share}");
        }
        // The median of the same six is the mean of the two central values, 4 and 7.
        assert_eq!(median(&[-2.0, 7.0, 7.0, 4.0, 18.0, -5.0]), Some(5.5));
    }

    #[test]
    fn nearest_ranks_of_a_textbook_list() {
        // Five samples: the ranks are ceil(5 p).
        let sorted = Sorted::new(vec![50, 15, 40, 20, 35]);
        for (share, value) in [(0.05, 15), (0.3, 20), (0.4, 20), (0.5, 35), (1.0, 50), (0.0, 15)] {
            assert_eq!(sorted.quantile(share), Some(value), "{share}");
        }
    }

    #[test]
    fn round_shares_of_round_counts_are_not_pushed_up_by_rounding() {
        for (share, count, rank) in [
            (0.999, 1_000, 999),
            (0.99, 100, 99),
            (0.9, 10, 9),
            (0.95, 20, 19),
            (0.07, 100, 7), // 0.07 * 100 is 7.000000000000001 in binary
            (0.55, 100, 55),
            (0.999, 1_000_000_000, 999_000_000),
            (0.5, 1, 1),
            (0.501, 1_000, 501),
        ] {
            assert_eq!(rank_of(share, count), Some(rank), "{share} of {count}");
        }
    }

    #[test]
    fn no_samples_and_impossible_shares_have_no_percentile() {
        assert_eq!(Sorted::default().quantile(0.5), None);
        assert_eq!(median(&[]), None);
        for share in [-0.1, 1.1, f64::NAN] {
            assert_eq!(Sorted::new(vec![1]).quantile(share), None);
        }
    }

    proptest! {
        #[test]
        fn a_percentile_meets_its_definition(
            samples in prop::collection::vec(0_u64..50, 1..100),
            permille in 1_u64..=1000,
        ) {
            let value = Sorted::new(samples.clone()).quantile(permille as f64 / 1000.0);
            let value = value.expect("there are samples");
            let at_or_below = |x| samples.iter().filter(|&&sample| sample <= x).count() as u64;
            let needed = permille * samples.len() as u64;
            prop_assert!(at_or_below(value) * 1000 >= needed);
            prop_assert!(value == 0 || at_or_below(value - 1) * 1000 < needed);
        }
    }
}
