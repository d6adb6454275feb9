//! An interval of the median that assumes nothing of the distribution.

use super::Interval;

/// Which of `count` samples in rising order bound an interval that covers the median with at least
/// this `confidence`, counted from 1: the k-th smallest and the k-th largest, with the greatest k
/// that does. None where even the smallest and the largest do not cover it, as with five samples
/// at 95 %.
///
/// A sample lies below the median with a chance of one half, so the k-th smallest lies above it
/// where fewer than k do, a sum of binomial terms. The interval is exact for any continuous
/// distribution and takes no resampling.
///
/// # Source
/// W. J. Conover, Practical Nonparametric Statistics, section 3.2; the interval is that of the sign
/// test.
fn rank(count: usize, confidence: f64) -> Option<usize> {
    let tail = (1.0 - confidence) / 2.0;
    // C(n, 0) / 2^n, then each term from the one before.
    let mut term = (-(count as f64) * std::f64::consts::LN_2).exp();
    let (mut below, mut rank) = (0.0, 0);
    for index in 0..count.div_ceil(2) {
        below += term;
        if below > tail {
            break;
        }
        rank = index + 1;
        term *= (count - index) as f64 / (index + 1) as f64;
    }
    (rank > 0).then_some(rank)
}

/// The interval that covers the median of what `values` were drawn from with at least
/// `confidence`; none for too few of them.
pub fn median_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let rank = rank(values.len(), confidence)?;
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    Some(Interval { low: sorted[rank - 1], high: sorted[sorted.len() - rank] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_are_those_of_the_printed_tables() {
        // Critical values of the sign test, two-sided 5 %, plus one: n = 6: 0, 8: 0, 9: 1, 12: 2,
        // 15: 3, 16: 3, 17: 4, 20: 5, 25: 7, 30: 9, 50: 17, 100: 39.
        let table = [
            (6, 1),
            (8, 1),
            (9, 2),
            (12, 3),
            (15, 4),
            (16, 4),
            (17, 5),
            (20, 6),
            (25, 8),
            (30, 10),
            (50, 18),
            (100, 40),
        ];
        for (count, expected) in table {
            assert_eq!(rank(count, 0.95), Some(expected), "{count}");
        }
        assert_eq!(rank(5, 0.95), None);
        // At 99 %: n = 8: 0, 20: 3, 50: 15.
        assert_eq!([8, 20, 50].map(|count| rank(count, 0.99)), [Some(1), Some(4), Some(16)]);
    }

    #[test]
    fn the_ends_are_samples() {
        let values: Vec<f64> = (1..=16).rev().map(f64::from).collect();
        assert_eq!(median_interval(&values, 0.95), Some(Interval { low: 4.0, high: 13.0 }));
        assert_eq!(median_interval(&values[..5], 0.95), None);
    }
}
