//! The largest whole number that passes, when all below it pass too: burst lengths, numbers of
//! addresses, learning rates.
//!
//! Without a guess the largest comes first and the middle of what is left after it. With one, the
//! guess comes first, then steps that double away from it, then the middle: a repeat near the last
//! result costs a few trials.

/// Search for the largest whole number that passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IntegerSearch {
    max: u64,
    resolution: u64,
    guess: Option<u64>,
    /// Largest that passed; 0 passes.
    lower: u64,
    /// Smallest number that failed.
    upper: Option<u64>,
    /// Steps away from the guess.
    steps: u32,
}

impl IntegerSearch {
    /// A search from 0, which is taken to pass, to `max`, to within `resolution` (1 or more).
    pub fn new(max: u64, resolution: u64, guess: Option<u64>) -> Self {
        let guess = guess.map(|guess| guess.clamp(1, max.max(1)));
        Self { max, resolution: resolution.max(1), guess, lower: 0, upper: None, steps: 0 }
    }

    /// The next number to try; `None` when the search is over.
    pub fn next(&self) -> Option<u64> {
        let Some(guess) = self.guess else {
            return match self.upper {
                None => (self.lower < self.max).then_some(self.max),
                Some(upper) => self.middle(upper),
            };
        };
        let step =
            self.resolution.saturating_mul(1_u64.checked_shl(self.steps).unwrap_or(u64::MAX));
        match (self.lower, self.upper) {
            (0, None) => Some(guess),
            (lower, None) => (lower < self.max).then(|| lower.saturating_add(step).min(self.max)),
            (0, Some(upper)) if upper > step.max(self.resolution) => Some(upper - step),
            (_, Some(upper)) => self.middle(upper),
        }
    }

    fn middle(&self, upper: u64) -> Option<u64> {
        let gap = upper - self.lower;
        (gap > self.resolution).then(|| self.lower + gap / 2)
    }

    /// Adds the result of a trial with `number`.
    pub fn add_result(&mut self, number: u64, passed: bool) {
        if passed {
            self.lower = self.lower.max(number);
        } else {
            self.upper = Some(self.upper.map_or(number, |upper| upper.min(number)));
        }
        // A number that failed below one that passed: the one that failed decides.
        if let Some(upper) = self.upper
            && self.lower >= upper
        {
            self.lower = 0;
        }
        if self.guess != Some(number) {
            self.steps = self.steps.saturating_add(1).min(62);
        }
    }

    /// The largest number that passed below any that failed; 0 when none did.
    pub const fn largest_passed(&self) -> u64 {
        self.lower
    }

    /// True when the largest number allowed passed: more may be possible.
    pub const fn is_at_max(&self) -> bool {
        self.upper.is_none() && self.lower >= self.max
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run(truth: u64, max: u64, resolution: u64, guess: Option<u64>) -> (IntegerSearch, u32) {
        let mut search = IntegerSearch::new(max, resolution, guess);
        let mut trials = 0;
        while let Some(number) = search.next() {
            search.add_result(number, number <= truth);
            trials += 1;
            assert!(trials < 200, "{search:?}");
        }
        (search, trials)
    }

    #[test]
    fn a_number_is_found_by_halves() {
        // 1024 fails, then ten halvings: 512, 768, ...
        let (search, trials) = run(700, 1024, 1, None);
        assert_eq!((search.largest_passed(), trials), (700, 11));
        let (search, trials) = run(5000, 1024, 1, None);
        assert_eq!((search.largest_passed(), search.is_at_max(), trials), (1024, true, 1));
        assert_eq!(run(0, 1024, 1, None).0.largest_passed(), 0);
    }

    #[test]
    fn a_good_guess_costs_a_few_trials() {
        let (search, trials) = run(700, 30_000, 1, Some(700));
        assert_eq!((search.largest_passed(), trials), (700, 2));
        // 700, 701, 703, 707 go up by 1, 2, 4 until one fails; 705 and 704 are between.
        assert_eq!(run(703, 30_000, 1, Some(700)).1, 6);
        // 700, 699, 697 go down until one passes; 698 is between.
        assert_eq!(run(697, 30_000, 1, Some(700)).1, 4);
    }

    proptest! {
        #[test]
        fn every_number_is_found_from_every_guess(
            truth in 0_u64..5000,
            resolution in 1_u64..20,
            guess in prop::option::of(0_u64..6000),
        ) {
            let max = 4096;
            let (search, _) = run(truth, max, resolution, guess);
            let truth = truth.min(max);
            prop_assert!(search.largest_passed() <= truth);
            prop_assert!(truth - search.largest_passed() < resolution);
        }
    }
}
