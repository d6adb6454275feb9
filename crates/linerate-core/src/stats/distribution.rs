//! From samples to the distribution that a record stores, and back to the summary.

use std::collections::BTreeMap;

use super::quantile::weighted_quantile;
use super::{LogHistogram, Moments};
use crate::record::{Distribution, MetricId, Stat, Summary};

/// Percentiles of a summary.
const PERCENTILES: [(Stat, f64); 5] =
    [(Stat::P50, 0.5), (Stat::P90, 0.9), (Stat::P95, 0.95), (Stat::P99, 0.99), (Stat::P999, 0.999)];

impl Distribution {
    /// The distribution of `samples`, every value kept.
    pub fn from_samples(metric: MetricId, samples: &[u64]) -> Self {
        let mut occurrences: BTreeMap<u64, u64> = BTreeMap::new();
        for sample in samples {
            *occurrences.entry(*sample).or_default() += 1;
        }
        Self::from_pairs(metric, occurrences, true)
    }

    /// The distribution that `histogram` holds, in its bins of three digits.
    pub fn from_histogram(metric: MetricId, histogram: &LogHistogram) -> Self {
        Self::from_pairs(metric, histogram.bin_counts(), false)
    }

    fn from_pairs(
        metric: MetricId,
        pairs: impl IntoIterator<Item = (u64, u64)>,
        exact: bool,
    ) -> Self {
        let (values, counts) = pairs.into_iter().unzip();
        Self { metric, payload_bytes: None, values, counts, exact }
    }

    /// The same distribution for one ping payload size.
    #[must_use]
    pub fn at_payload(self, payload_bytes: u32) -> Self {
        Self { payload_bytes: Some(payload_bytes), ..self }
    }

    /// Number of samples.
    pub fn count(&self) -> u64 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// Values and their occurrences, rising.
    pub fn value_counts(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.values.iter().copied().zip(self.counts.iter().copied())
    }

    /// The percentile of `share` (0.99 for the 99th), as RFC 2330 §11.3 defines it; `None` without
    /// samples and for a share outside 0 … 1.
    pub fn quantile(&self, share: f64) -> Option<u64> {
        weighted_quantile(self.value_counts(), self.count(), share)
    }

    /// Count, extremes, mean and standard deviation; of the bins when not `exact`, and then off by
    /// up to 0.1 %.
    pub fn moments(&self) -> Moments {
        let mut moments = Moments::default();
        for (value, count) in self.value_counts() {
            moments.record_many(value as f64, count);
        }
        moments
    }

    /// The rows of a summary: min, mean, max, standard deviation from two samples on, and
    /// percentiles, each with its number of samples. Empty without samples.
    pub fn summary(&self) -> Vec<Summary> {
        let moments = self.moments();
        let row = |stat, value: Option<f64>| {
            let row = Summary::from_value(self.metric, stat, value?).with_n(moments.count());
            Some(Summary { payload_bytes: self.payload_bytes, ..row })
        };
        let plain = [
            row(Stat::Min, moments.min()),
            row(Stat::Mean, moments.mean()),
            row(Stat::Max, moments.max()),
            row(Stat::Stddev, moments.stddev()),
        ];
        let percentiles = PERCENTILES
            .map(|(stat, share)| row(stat, self.quantile(share).map(|value| value as f64)));
        plain.into_iter().chain(percentiles).flatten().collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::Sorted;

    fn stat_value(rows: &[Summary], stat: Stat) -> f64 {
        rows.iter().find(|row| row.stat == stat).expect("a row of each").value
    }

    #[test]
    fn distinct_values_are_kept_with_their_counts() {
        let distribution = Distribution::from_samples(MetricId::Rtt, &[30, 10, 20, 10, 10]);
        assert_eq!(distribution.values, [10, 20, 30]);
        assert_eq!(distribution.counts, [3, 1, 1]);
        assert!(distribution.exact);
        assert_eq!(distribution.count(), 5);
    }

    #[test]
    fn the_summary_of_a_hand_sum_comes_out() {
        // 1 … 100: mean 50.5, variance 100 * 101 / 12 over n - 1, percentiles are the ranks.
        let samples: Vec<u64> = (1..=100).collect();
        let rows = Distribution::from_samples(MetricId::Rtt, &samples).at_payload(56).summary();
        assert_eq!(stat_value(&rows, Stat::Min), 1.0);
        assert_eq!(stat_value(&rows, Stat::Mean), 50.5);
        assert_eq!(stat_value(&rows, Stat::Max), 100.0);
        assert!(
            (stat_value(&rows, Stat::Stddev) - (100.0_f64 * 101.0 / 12.0).sqrt()).abs() < 1e-12
        );
        assert_eq!(stat_value(&rows, Stat::P50), 50.0);
        assert_eq!(stat_value(&rows, Stat::P99), 99.0);
        assert_eq!(stat_value(&rows, Stat::P999), 100.0);
        assert!(rows.iter().all(|row| row.n == Some(100) && row.payload_bytes == Some(56)));
    }

    #[test]
    fn no_samples_give_no_rows_and_one_gives_no_deviation() {
        assert!(Distribution::from_samples(MetricId::Rtt, &[]).summary().is_empty());
        let rows = Distribution::from_samples(MetricId::Rtt, &[7]).summary();
        assert!(rows.iter().all(|row| row.stat != Stat::Stddev && row.value == 7.0));
        assert_eq!(rows.len(), 8);
    }

    proptest! {
        #[test]
        fn the_summary_survives_json(samples in prop::collection::vec(0..1_u64 << 50, 1..200)) {
            let stored = Distribution::from_samples(MetricId::Rtt, &samples);
            let json = crate::tree::to_json(&stored).expect("a distribution serialises");
            let read: Distribution = crate::tree::from_json(&json).expect("and parses");
            prop_assert_eq!(read.summary(), stored.summary());
            let direct: Moments = samples.iter().map(|&sample| sample as f64).collect();
            let again = read.moments();
            prop_assert_eq!((again.min(), again.max()), (direct.min(), direct.max()));
            let relative = |a: Option<f64>, b: Option<f64>| {
                let (a, b) = (a.unwrap_or(0.0), b.unwrap_or(0.0));
                (a - b).abs() / a.abs().max(1.0)
            };
            prop_assert!(relative(again.mean(), direct.mean()) < 1e-12);
            prop_assert!(relative(again.stddev(), direct.stddev()) < 1e-9);
            let sorted = Sorted::new(samples);
            for (_, share) in PERCENTILES {
                prop_assert_eq!(read.quantile(share), sorted.quantile(share));
            }
        }

        #[test]
        fn a_stored_histogram_keeps_its_percentiles(
            samples in prop::collection::vec(0..1_u64 << 40, 1..200),
        ) {
            let histogram: LogHistogram = samples.into_iter().collect();
            let stored = Distribution::from_histogram(MetricId::Rtt, &histogram);
            prop_assert!(!stored.exact);
            prop_assert_eq!(stored.count(), histogram.count());
            for (_, share) in PERCENTILES {
                prop_assert_eq!(stored.quantile(share), histogram.quantile(share));
            }
            prop_assert_eq!(stored.moments().max(), histogram.moments().max());
        }
    }
}
