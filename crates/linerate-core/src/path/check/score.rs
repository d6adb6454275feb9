//! Scores: how many standard errors a figure is off.

use super::Check;
use crate::stats::Moments;

/// Quantity that is checked, and the formula that foretells it.
#[derive(Clone, Copy)]
pub(super) struct CheckSubject {
    pub(super) name: &'static str,
    pub(super) closed_form: &'static str,
    pub(super) packets: u64,
}

impl CheckSubject {
    const fn scored_check(self, measured: f64, expected: f64, score: f64) -> Check {
        let Self { name, closed_form, packets } = self;
        Check { name, closed_form, packets, measured, expected, score }
    }

    /// A share of independent packets: binomial.
    pub(super) fn binomial_check(self, hits: u64, expected: f64) -> Check {
        self.share_spread(hits, expected, 1.0)
    }

    /// A share of packets whose spread is `factor` times that of independent ones (variance).
    pub(super) fn share_spread(self, hits: u64, expected: f64, factor: f64) -> Check {
        let n = self.packets as f64;
        let measured = hits as f64 / n;
        let error = (expected * (1.0 - expected) / n * factor).sqrt();
        self.scored_check(measured, expected, (measured - expected) / error)
    }

    /// A mean of figures that hang together, by the means of batches.
    pub(super) fn batches(self, figures: &[f64], expected: f64) -> Check {
        const BATCHES: usize = 50;
        let size = (figures.len() / BATCHES).max(1);
        let mut means = Moments::default();
        means.extend(
            figures.chunks_exact(size).map(|batch| batch.iter().sum::<f64>() / size as f64),
        );
        let measured = means.mean().unwrap_or(f64::NAN);
        let error = means.stddev().unwrap_or(f64::NAN) / (means.count() as f64).sqrt();
        self.scored_check(measured, expected, (measured - expected) / error)
    }

    /// Counts of classes beside their probabilities, with the means of both.
    pub(super) fn classes(self, counts: &[u64], shares: &[f64], means: [f64; 2]) -> Check {
        self.scored_check(means[0], means[1], chi_square_score(counts, shares))
    }

    /// A figure that may be off by `error` and no more: no chance is in it.
    pub(super) fn exact_check(self, measured: f64, expected: f64, error: f64) -> Check {
        self.scored_check(measured, expected, (measured - expected) / error)
    }
}

/// Normal score of Pearson's chi-square: E. B. Wilson, M. M. Hilferty, "The distribution of
/// chi-square", PNAS 17 (1931). The shares sum to 1.
fn chi_square_score(counts: &[u64], shares: &[f64]) -> f64 {
    let n = counts.iter().sum::<u64>() as f64;
    let term = |count: u64, share: f64| (count as f64 - n * share).powi(2) / (n * share);
    let chi_square: f64 =
        counts.iter().zip(shares).map(|(&count, &share)| term(count, share)).sum();
    let k = counts.len() as f64 - 1.0;
    let spread = 2.0 / (9.0 * k);
    ((chi_square / k).cbrt() - (1.0 - spread)) / spread.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_score_of_chi_square_is_that_of_its_tables() {
        // χ² of 16.919 with 9 degrees is exceeded in 5 % (score 1.645), 21.666 in 1 % (2.326):
        // ten classes of 100, of which two are off by d: 2 d² / 100.
        for (chi_square, score) in [(16.919_f64, 1.645), (21.666, 2.326)] {
            let scale = 1_000_000.0;
            let off = (chi_square * 100.0 * scale / 2.0).sqrt().round() as u64;
            let mut counts = [100_000_000_u64; 10];
            (counts[0], counts[1]) = (counts[0] + off, counts[1] - off);
            let got = chi_square_score(&counts, &[0.1; 10]);
            assert!((got - score).abs() < 0.01, "{got}");
        }
    }
}
