//! Seeded randomness: the same seed makes the same decisions on every machine and in every
//! version. The generator is xoshiro256++ (Blackman and Vigna 2021), whose output is fixed by its
//! publication.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers of one element.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream number `stream` of a seed. Every element has its own stream, so that one more
    /// element does not change the random numbers of the others.
    pub fn new(seed: u64, stream: u64) -> Self {
        // The golden ratio's fraction spreads neighbouring streams over all bits (Weyl sequence).
        let mixed = seed ^ stream.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self(Xoshiro256PlusPlus::seed_from_u64(mixed))
    }

    /// Evenly spread over [0, 1), with 53 bits.
    pub fn next_uniform(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// True with `probability`.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.next_uniform() < probability
    }

    /// Exponentially spread with a mean of 1.
    pub fn exponential(&mut self) -> f64 {
        -(1.0 - self.next_uniform()).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_seed_is_one_sequence_and_streams_differ() {
        let draw = |seed, stream| {
            let mut random = Random::new(seed, stream);
            [random.next_uniform(), random.next_uniform(), random.next_uniform()]
        };
        assert_eq!(draw(7, 0), draw(7, 0));
        assert_ne!(draw(7, 0), draw(7, 1));
        assert_ne!(draw(7, 0), draw(8, 0));
    }

    #[test]
    fn the_mean_and_variance_are_those_of_the_distributions() {
        // 10^6 draws: the standard error of the mean is 0.00029 (uniform) and 0.001 (exponential);
        // bounds are five of them.
        let mut random = Random::new(1, 0);
        let n = 1_000_000;
        let uniform = (0..n).map(|_| random.next_uniform()).sum::<f64>() / f64::from(n);
        let exponential = (0..n).map(|_| random.exponential()).sum::<f64>() / f64::from(n);
        assert!((uniform - 0.5).abs() < 0.0015, "{uniform}");
        assert!((exponential - 1.0).abs() < 0.005, "{exponential}");
    }
}
