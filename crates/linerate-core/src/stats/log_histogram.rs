//! A histogram of bounded size for very many samples, with three significant digits.
//!
//! # Source
//! Gil Tene's HdrHistogram, by the crate of that name: values below 2048 are exact, larger ones
//! fall in bins no wider than 1/1024 of their value. A bin stands for its highest value.

use hdrhistogram::Histogram;

use super::Moments;
use super::quantile::weighted_quantile;

/// Significant decimal digits that the bins keep.
const DIGITS: u8 = 3;

/// Reason why no sample is refused.
const GROWS: &str = "the bins grow by themselves up to u64::MAX, some 55,000 of them";

/// A histogram over all of `u64` with bins of three significant digits. Count, extremes, mean and
/// standard deviation are exact; percentiles are at most 0.1 % above the true ones.
#[derive(Clone, Debug)]
pub struct LogHistogram {
    bins: Histogram<u64>,
    moments: Moments,
    max: u64,
}

impl Default for LogHistogram {
    fn default() -> Self {
        let bins = Histogram::new(DIGITS).expect("three digits are within the crate's 0 to 5");
        Self { bins, moments: Moments::default(), max: 0 }
    }
}

impl LogHistogram {
    /// Adds one sample.
    pub fn record(&mut self, sample: u64) {
        self.record_many(sample, 1);
    }

    /// Adds `times` samples of the same value.
    pub fn record_many(&mut self, sample: u64, times: u64) {
        if times > 0 {
            self.bins.record_n(sample, times).expect(GROWS);
            self.moments.record_many(sample as f64, times);
            self.max = self.max.max(sample);
        }
    }

    /// Adds all samples of `other`.
    pub fn merge(&mut self, other: &Self) {
        for (value, count) in other.raw_bins() {
            self.bins.record_n(value, count).expect(GROWS);
        }
        self.moments.merge(&other.moments);
        self.max = self.max.max(other.max);
    }

    /// The samples added after `earlier`, a former state of this histogram.
    pub fn samples_since(&self, earlier: &Self) -> Self {
        let mut since = Self::default();
        for (value, count) in self.raw_bins() {
            let before = earlier.bins.count_at(value);
            since.record_many(value.min(self.max), count.saturating_sub(before));
        }
        since
    }

    /// Number of samples.
    pub const fn count(&self) -> u64 {
        self.moments.count()
    }

    /// Count, extremes, mean and standard deviation, from the samples and not from the bins.
    pub const fn moments(&self) -> &Moments {
        &self.moments
    }

    /// The percentile of `share` (0.99 for the 99th), as RFC 2330 §11.3 defines it, in the
    /// resolution of the bins; `None` without samples and for a share outside 0 … 1.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        weighted_quantile(self.bin_counts(), self.count(), share)
    }

    /// Bins that hold samples, rising: the highest value of the bin (of the last bin, the largest
    /// sample) and its count.
    pub fn bin_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.raw_bins().map(|(value, count)| (value.min(self.max), count))
    }

    fn raw_bins(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.bins.iter_recorded().map(|bin| {
            let highest = self.bins.highest_equivalent(bin.value_iterated_to());
            // The crate places the end of the very last bin one too low.
            let highest = if highest == u64::MAX - 1 { u64::MAX } else { highest };
            (highest, bin.count_at_value())
        })
    }
}

impl Extend<u64> for LogHistogram {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, samples: I) {
        for sample in samples {
            self.record(sample);
        }
    }
}

impl FromIterator<u64> for LogHistogram {
    fn from_iter<I: IntoIterator<Item = u64>>(samples: I) -> Self {
        let mut histogram = Self::default();
        histogram.extend(samples);
        histogram
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::Sorted;

    #[test]
    fn what_came_since_is_the_difference_bin_by_bin() {
        let earlier: LogHistogram = [5, 5, 1_000_000].into_iter().collect();
        let mut later = earlier.clone();
        later.extend([5, 7, 2_000_000]);
        let bins: Vec<_> = later.samples_since(&earlier).bin_counts().collect();
        assert_eq!(bins, [(5, 1), (7, 1), (2_000_000, 1)]);
        assert_eq!(later.samples_since(&later).count(), 0);
    }

    #[test]
    fn small_values_are_exact() {
        let histogram: LogHistogram = (1..=1000).collect();
        for (share, value) in [(0.0, 1), (0.5, 500), (0.99, 990), (0.999, 999), (1.0, 1000)] {
            assert_eq!(histogram.quantile(share), Some(value));
        }
        // Mean (n + 1) / 2; variance n (n + 1) / 12 over n - 1.
        assert_eq!(histogram.moments().mean(), Some(500.5));
        let variance = histogram.moments().variance().expect("1000 samples");
        assert!((variance - 1000.0 * 1001.0 / 12.0).abs() < 1e-6, "{variance}");
    }

    #[test]
    fn many_of_one_value_are_as_many_samples() {
        let mut histogram = LogHistogram::default();
        histogram.record_many(5, 0);
        assert_eq!(histogram.quantile(1.0), None);
        histogram.record_many(10, 3);
        histogram.record(20);
        assert_eq!((histogram.count(), histogram.quantile(0.75)), (4, Some(10)));
        // (3 x 10 + 20) / 4.
        assert_eq!(histogram.moments().mean(), Some(12.5));
    }

    #[test]
    fn an_empty_histogram_has_no_percentile() {
        assert_eq!(LogHistogram::default().quantile(0.5), None);
        assert_eq!(LogHistogram::default().bin_counts().count(), 0);
    }

    #[test]
    fn the_largest_possible_sample_is_taken_in() {
        let histogram: LogHistogram = [0, u64::MAX].into_iter().collect();
        assert_eq!(histogram.count(), 2);
        assert_eq!(histogram.bin_counts().collect::<Vec<_>>(), [(0, 1), (u64::MAX, 1)]);
        assert_eq!(histogram.quantile(1.0), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn percentiles_are_at_most_a_thousandth_above_the_exact_ones(
            samples in prop::collection::vec(0_u64..10_000_000_000, 1..200),
            permille in 0_u64..=1000,
        ) {
            let share = permille as f64 / 1000.0;
            let histogram: LogHistogram = samples.iter().copied().collect();
            let exact = Sorted::new(samples).quantile(share).expect("there are samples");
            let binned = histogram.quantile(share).expect("there are samples");
            prop_assert!((exact..=exact + exact / 1000).contains(&binned), "{binned} {exact}");
        }

        #[test]
        fn merged_histograms_equal_one(
            left in prop::collection::vec(0..1_u64 << 40, 0..50),
            right in prop::collection::vec(0..1_u64 << 40, 0..50),
        ) {
            let mut merged: LogHistogram = left.iter().copied().collect();
            merged.merge(&right.iter().copied().collect());
            let whole: LogHistogram = left.into_iter().chain(right).collect();
            prop_assert_eq!(merged.count(), whole.count());
            prop_assert!(merged.bin_counts().eq(whole.bin_counts()));
        }
    }
}
