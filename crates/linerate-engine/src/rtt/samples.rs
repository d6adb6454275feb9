//! Round-trip times of one size: all of them up to a bound, then a histogram of three digits.

use linerate_core::record::{Distribution, MetricId, Stat, Summary};
use linerate_core::stats::{LogHistogram, Moments};

/// Samples kept one by one: 16 MB. A flood of 150,000/s reaches it in 13 s.
const EXACT_MAX: usize = 2_000_000;

/// Room made beforehand when no count is given.
const EXPECTED_MAX: u64 = 65_536;

/// Times of one kind.
#[derive(Clone, Debug)]
pub(crate) struct TimeSamples {
    exact: Vec<u64>,
    binned: Option<LogHistogram>,
    exact_max: usize,
}

impl TimeSamples {
    /// Room for `expected` samples, or for a start when the number is open.
    pub(crate) fn new(expected: Option<u64>) -> Self {
        let room = expected.unwrap_or(EXPECTED_MAX).min(EXACT_MAX as u64) as usize;
        Self { exact: Vec::with_capacity(room), binned: None, exact_max: EXACT_MAX }
    }

    /// Adds one sample: a push, or a record of the histogram (about 10 ns).
    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        if let Some(histogram) = &mut self.binned {
            histogram.record(ns);
            return;
        }
        self.exact.push(ns);
        if self.exact.len() >= self.exact_max {
            self.binned = Some(self.exact.drain(..).collect());
            self.exact = Vec::new();
        }
    }

    /// The distribution, exact as long as all samples are kept; `None` without samples.
    pub(crate) fn distribution(&self, metric: MetricId) -> Option<Distribution> {
        let distribution = match &self.binned {
            Some(histogram) => Distribution::from_histogram(metric, histogram),
            None => Distribution::from_samples(metric, &self.exact),
        };
        (!distribution.values.is_empty()).then_some(distribution)
    }

    /// The rows of `distribution`, which is this set's own. Moments are exact also when the
    /// distribution is binned.
    pub(crate) fn summary(&self, distribution: &Distribution) -> Vec<Summary> {
        let mut rows = distribution.summary();
        if let Some(histogram) = &self.binned {
            for row in &mut rows {
                if let Some(value) = exact_stat(histogram.moments(), row.stat) {
                    row.value = value;
                }
            }
        }
        rows
    }
}

fn exact_stat(moments: &Moments, stat: Stat) -> Option<f64> {
    match stat {
        Stat::Min => moments.min(),
        Stat::Mean => moments.mean(),
        Stat::Max => moments.max(),
        Stat::Stddev => moments.stddev(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn summary_values(exact_max: usize) -> Vec<(Stat, f64)> {
        let mut samples = TimeSamples { exact_max, ..TimeSamples::new(Some(1000)) };
        (1..=1000).for_each(|us| samples.record(us * 1000));
        let distribution = samples.distribution(MetricId::Rtt).expect("samples");
        assert_eq!((distribution.exact, distribution.count()), (exact_max > 1000, 1000));
        samples.summary(&distribution).into_iter().map(|row| (row.stat, row.value)).collect()
    }

    /// Samples of 1 … 1000 µs have the mean 500.5 and the sample variance n(n+1)/12 = 83416.67, so
    /// 288.819 µs.
    #[test]
    fn moments_stay_exact_when_samples_are_binned() {
        for exact_max in [2000, 500] {
            let rows = summary_values(exact_max);
            let value = |stat| rows.iter().find(|row| row.0 == stat).expect("a row").1;
            assert!((value(Stat::Mean) - 500_500.0).abs() < 1e-6);
            assert!((value(Stat::Stddev) - 288_819.436).abs() < 0.01);
            assert!((value(Stat::Min) - 1000.0).abs() < 1e-9);
            assert!((value(Stat::Max) - 1_000_000.0).abs() < 1e-9);
            let p99 = value(Stat::P99);
            assert!((990_000.0..=990_990.0).contains(&p99), "{p99}");
        }
    }

    /// An endless ping: what is kept stops growing where the histogram begins.
    #[test]
    fn a_hundred_times_as_many_samples_take_no_more_room() {
        let mut samples = TimeSamples { exact_max: 10_000, ..TimeSamples::new(None) };
        let size_after = |samples: &mut TimeSamples, count: u64| {
            (0..count).for_each(|number| samples.record(1_000 + number * 7919 % 1_000_000));
            let bins = samples.distribution(MetricId::Rtt).expect("samples").values.len();
            (samples.exact.capacity(), bins)
        };
        let (exact, bins) = size_after(&mut samples, 100_000);
        assert_eq!(exact, 0);
        // Three digits of 1 µs to 1 ms: no more than 1000 bins for each power of two.
        assert!(bins <= 10 * 1024, "{bins}");
        let (_, later) = size_after(&mut samples, 3_000_000);
        assert!(later <= 10 * 1024, "{later} after {bins}");
    }

    #[test]
    fn no_samples_have_no_distribution() {
        assert!(TimeSamples::new(None).distribution(MetricId::Rtt).is_none());
    }
}
