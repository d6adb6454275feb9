//! Count, mean, extremes and sample standard deviation, in one pass and without cancellation.
//!
//! # Source
//! B. P. Welford, "Note on a method for calculating corrected sums of squares and products",
//! Technometrics 4 (1962); the merge is that of Chan, Golub and LeVeque (1979).

/// Running moments of finite samples. Nothing is known of an empty set: its values are `None`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// Sum of the squared distances from the mean.
    squares: f64,
    min: f64,
    max: f64,
}

impl Default for Moments {
    fn default() -> Self {
        Self { count: 0, mean: 0.0, squares: 0.0, min: f64::INFINITY, max: f64::NEG_INFINITY }
    }
}

impl Moments {
    /// Adds one sample.
    pub fn record(&mut self, sample: f64) {
        self.record_many(sample, 1);
    }

    /// Adds `times` samples of the same value.
    pub fn record_many(&mut self, sample: f64, times: u64) {
        if times > 0 {
            let same = Self { count: times, mean: sample, squares: 0.0, min: sample, max: sample };
            self.merge(&same);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        if other.count == 0 {
            return;
        }
        let (own, others) = (self.count as f64, other.count as f64);
        let total = own + others;
        let distance = other.mean - self.mean;
        self.mean += distance * (others / total);
        self.squares += other.squares + distance * distance * (own * (others / total));
        self.count += other.count;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Arithmetic mean.
    pub fn mean(&self) -> Option<f64> {
        (self.count > 0).then_some(self.mean)
    }

    /// Smallest sample.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.min)
    }

    /// Largest sample.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.max)
    }

    /// Sample variance, over n − 1; `None` below two samples.
    pub fn variance(&self) -> Option<f64> {
        (self.count > 1).then(|| self.squares / (self.count - 1) as f64)
    }

    /// Sample standard deviation, the root of [`Moments::variance`]; `None` below two samples.
    pub fn stddev(&self) -> Option<f64> {
        self.variance().map(f64::sqrt)
    }

    /// Standard deviation over n, which `ping` prints as `mdev`; `None` without samples.
    pub fn stddev_population(&self) -> Option<f64> {
        (self.count > 0).then(|| (self.squares / self.count as f64).sqrt())
    }
}

impl Extend<f64> for Moments {
    fn extend<I: IntoIterator<Item = f64>>(&mut self, samples: I) {
        for sample in samples {
            self.record(sample);
        }
    }
}

impl FromIterator<f64> for Moments {
    fn from_iter<I: IntoIterator<Item = f64>>(samples: I) -> Self {
        let mut moments = Self::default();
        moments.extend(samples);
        moments
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check_moments(
        samples: impl IntoIterator<Item = f64>,
        mean: f64,
        stddev: f64,
        tolerance: f64,
    ) {
        let moments: Moments = samples.into_iter().collect();
        let near = |got: f64, want: f64| ((got - want) / want).abs() <= tolerance;
        let (got_mean, got_stddev) = (moments.mean().expect("n"), moments.stddev().expect("n"));
        assert!(near(got_mean, mean), "mean {got_mean:e} {mean:e}");
        assert!(near(got_stddev, stddev), "stddev {got_stddev:e} {stddev:e}");
    }

    /// The shape of NIST NumAcc2, 3 and 4: `first`, then 500 pairs around it.
    fn num_acc(first: f64, low: f64, high: f64) -> impl Iterator<Item = f64> {
        let pairs = (0..500).flat_map(move |_| [low, high]);
        std::iter::once(first).chain(pairs)
    }

    #[test]
    fn the_certified_values_of_nist_are_met() {
        // NIST StRD, univariate summary statistics: certified mean and standard deviation.
        // https://www.itl.nist.gov/div898/strd/univ/homepage.html
        let exact = 1e-14;
        // NumAcc1 to NumAcc4, in this order.
        check_moments([10_000_001.0, 10_000_003.0, 10_000_002.0], 10_000_002.0, 1.0, exact);
        check_moments(num_acc(1.2, 1.1, 1.3), 1.2, 0.1, 1e-12);
        // The data themselves are not binary fractions: 10^7 in a double leaves 2e-9 to a tenth.
        check_moments(num_acc(1_000_000.2, 1_000_000.1, 1_000_000.3), 1_000_000.2, 0.1, 2e-9);
        check_moments(num_acc(10_000_000.2, 10_000_000.1, 10_000_000.3), 10_000_000.2, 0.1, 2e-8);
    }

    #[test]
    fn nothing_is_known_of_no_samples_and_no_deviation_of_one() {
        let mut moments = Moments::default();
        assert_eq!((moments.count(), moments.mean(), moments.stddev()), (0, None, None));
        assert_eq!((moments.min(), moments.max(), moments.stddev_population()), (None, None, None));
        moments.record(7.0);
        assert_eq!((moments.count(), moments.mean(), moments.stddev()), (1, Some(7.0), None));
        assert_eq!((moments.min(), moments.max()), (Some(7.0), Some(7.0)));
        assert_eq!(moments.stddev_population(), Some(0.0));
    }

    #[test]
    fn the_two_deviations_divide_by_n_minus_1_and_by_n() {
        // Sum of squares about the mean 5: 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32.
        let moments: Moments = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0].into_iter().collect();
        assert_eq!(moments.stddev_population(), Some(2.0));
        let variance = moments.variance().expect("eight samples");
        assert!((variance - 32.0 / 7.0).abs() < 1e-14, "{variance}");
    }

    #[test]
    fn repeated_samples_may_be_added_at_once() {
        let mut at_once = Moments::default();
        at_once.record_many(3.0, 2);
        at_once.record_many(9.0, 0);
        at_once.record_many(6.0, 1);
        // Mean 4, squares 1 + 1 + 4 = 6, over 2.
        assert_eq!((at_once.count(), at_once.mean(), at_once.max()), (3, Some(4.0), Some(6.0)));
        assert!((at_once.variance().expect("three samples") - 3.0).abs() < 1e-15);
    }

    proptest! {
        #[test]
        fn merged_halves_equal_the_whole(
            samples in prop::collection::vec(-1e9_f64..1e9, 2..200),
            cut in 0_usize..200,
        ) {
            let (left, right) = samples.split_at(cut.min(samples.len()));
            let mut merged: Moments = left.iter().copied().collect();
            merged.merge(&right.iter().copied().collect());
            let whole: Moments = samples.iter().copied().collect();
            prop_assert_eq!(merged.count(), whole.count());
            prop_assert_eq!((merged.min(), merged.max()), (whole.min(), whole.max()));
            let near = |a: Option<f64>, b: Option<f64>, scale: f64| {
                (a.unwrap_or(0.0) - b.unwrap_or(0.0)).abs() <= 1e-9 * scale
            };
            prop_assert!(near(merged.mean(), whole.mean(), 1e9));
            prop_assert!(near(merged.stddev(), whole.stddev(), 1e9));
        }
    }
}
