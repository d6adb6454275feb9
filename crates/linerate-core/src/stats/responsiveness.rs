//! Responsiveness in round trips per minute.
//!
//! # Source
//! draft-ietf-ippm-responsiveness-08: delays are summed up by a mean of the lowest 95 %, and
//! 60 000 ms over it is the number of round trips that fit into a minute one after another.

use super::quantile::rank_of;

/// Share of the samples that the mean is of; those above it are outliers.
const TRIMMED_AT: f64 = 0.95;

/// The mean of the samples up to their 95th percentile; `None` without samples.
///
/// ```
/// # use linerate_core::stats::trimmed_mean;
/// // Nineteen of 10 and one of 1000: the 95th percentile is the 19th.
/// let mut samples = vec![10; 19];
/// samples.push(1000);
/// assert_eq!(trimmed_mean(&samples), Some(10.0));
/// ```
pub fn trimmed_mean(samples: &[u64]) -> Option<f64> {
    let kept = usize::try_from(rank_of(TRIMMED_AT, samples.len() as u64)?).ok()?;
    let mut rising = samples.to_vec();
    rising.sort_unstable();
    let sum: u128 = rising.iter().take(kept).map(|&sample| u128::from(sample)).sum();
    Some(sum as f64 / kept as f64)
}

/// Round trips per minute of delays in ns; `None` without samples, and for delays of nothing.
pub fn round_trips_per_minute(delays_ns: &[u64]) -> Option<f64> {
    trimmed_mean(delays_ns).filter(|mean| *mean > 0.0).map(|mean| 60e9 / mean)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sixty_thousand_milliseconds_over_the_mean_of_the_lowest_95_percent() {
        // 1 … 100 ms: the lowest 95 have the mean 48 ms, so 60 000 / 48 = 1250.
        let delays: Vec<u64> = (1..=100).rev().map(|ms| ms * 1_000_000).collect();
        assert_eq!(trimmed_mean(&delays), Some(48e6));
        assert_eq!(round_trips_per_minute(&delays), Some(1250.0));
        // One round trip of 100 ms: 600 in a minute. One sample is not trimmed away.
        assert_eq!(round_trips_per_minute(&[100_000_000]), Some(600.0));
        assert_eq!(round_trips_per_minute(&[]), None);
    }
}
