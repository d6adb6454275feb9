//! Whether a load is a lower bound, an upper bound or undecided for a goal, from all trials at it.
//!
//! Bad trials that are short count only as far as they outweigh the good short ones; good short
//! ones never make a lower bound. Source: RFC 9971, the appendices on load classification and
//! conditional throughput, whose worked example is the test.

use super::goal::Goal;
use super::trial::{LoadBound, TrialOutcome};

/// Time of the trials at a load, by length and loss, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DurationSums {
    /// Full length, within the loss ratio.
    pub full_good_ns: u64,
    /// Full length, above it.
    pub full_bad_ns: u64,
    /// Short trials within the loss ratio.
    pub short_good_ns: u64,
    /// Short trials above the loss ratio.
    pub short_bad_ns: u64,
}

/// A load's classification with the shares that gave it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Classification {
    /// Class of the load: lower bound, upper bound or undecided.
    pub bound: LoadBound,
    /// Bad share if all that is missing were good.
    pub optimistic: f64,
    /// Bad share if all that is missing were bad.
    pub pessimistic: f64,
}

impl DurationSums {
    /// The sums of trials at one load. A trial counts with the duration that was asked, also when
    /// it stopped early: it had failed by then, as the whole of it would have.
    pub fn from_outcomes<'a>(
        goal: &Goal,
        outcomes: impl IntoIterator<Item = &'a TrialOutcome>,
    ) -> Self {
        let mut sums = Self::default();
        for outcome in outcomes {
            let is_good = outcome.loss_ratio() <= goal.loss_ratio;
            let is_full = outcome.duration_ns >= goal.final_duration_ns;
            let sum = match (is_full, is_good) {
                (true, true) => &mut sums.full_good_ns,
                (true, false) => &mut sums.full_bad_ns,
                (false, true) => &mut sums.short_good_ns,
                (false, false) => &mut sums.short_bad_ns,
            };
            *sum = sum.saturating_add(outcome.duration_ns);
        }
        sums
    }

    /// True without a single trial.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// True when a trial was above the loss ratio.
    pub const fn has_bad(&self) -> bool {
        self.full_bad_ns > 0 || self.short_bad_ns > 0
    }

    /// Class of the load for `goal`.
    pub fn classify(&self, goal: &Goal) -> Classification {
        let exceed = goal.exceed_ratio;
        let balancing = self.short_good_ns as f64 * (exceed / (1.0 - exceed));
        let excess = (self.short_bad_ns as f64 - balancing).max(0.0);
        let bad = self.full_bad_ns as f64 + excess;
        let good = self.full_good_ns as f64;
        let whole = (good + bad).max(goal.duration_sum_ns as f64);
        let allowed = whole * exceed;
        let bound = match (bad <= allowed, whole - good <= allowed) {
            (true, true) => LoadBound::Lower,
            (false, false) => LoadBound::Upper,
            _ => LoadBound::Undecided,
        };
        Classification { bound, optimistic: bad / whole, pessimistic: (whole - good) / whole }
    }
}

/// Conditional throughput at a load, frames per second: the load less the loss of the trial at
/// the quantile that the exceed ratio leaves, of full-length trials by rising loss; time that is
/// missing counts as lost. `None` without full-length trials.
pub(super) fn conditional_fps(
    goal: &Goal,
    load_fps: u64,
    outcomes: &[&TrialOutcome],
) -> Option<f64> {
    let is_full = |outcome: &&&TrialOutcome| outcome.duration_ns >= goal.final_duration_ns;
    let full = outcomes.iter().filter(is_full);
    let mut trials: Vec<_> =
        full.map(|outcome| (outcome.loss_ratio(), outcome.duration_ns as f64)).collect();
    trials.sort_by(|one, other| one.0.total_cmp(&other.0));
    let measured: f64 = trials.iter().map(|(_, duration)| duration).sum();
    let whole = measured.max(goal.duration_sum_ns as f64);
    let mut remaining = whole * (1.0 - goal.exceed_ratio);
    let mut loss = trials.first()?.0;
    for (ratio, duration) in &trials {
        if remaining <= 0.0 {
            break;
        }
        loss = *ratio;
        remaining -= duration;
    }
    // Half of a nanosecond's rounding is no missing time.
    if remaining > 0.5 {
        loss = 1.0;
    }
    Some(load_fps as f64 * (1.0 - loss))
}

#[cfg(test)]
mod tests {
    use super::super::trial::SECOND_NS;
    use super::*;

    const LOAD_FPS: u64 = 1_000_000;

    fn test_goal(final_s: u64, sum_s: u64, loss_ratio: f64, exceed_ratio: f64) -> Goal {
        Goal {
            final_duration_ns: final_s * SECOND_NS,
            initial_duration_ns: final_s * SECOND_NS,
            duration_sum_ns: sum_s * SECOND_NS,
            loss_ratio,
            exceed_ratio,
            ..Goal::strict()
        }
    }

    fn outcomes(count: usize, seconds: u64, permille: u64) -> Vec<TrialOutcome> {
        let sent = LOAD_FPS * seconds;
        let outcome = TrialOutcome {
            load_fps: LOAD_FPS,
            duration_ns: seconds * SECOND_NS,
            sent,
            received: sent - sent / 1000 * permille,
            elapsed_ns: seconds * SECOND_NS,
            stopped_early: false,
            loss_runs: None,
            invalid: None,
        };
        vec![outcome; count]
    }

    fn example_goals() -> [Goal; 4] {
        [
            test_goal(60, 60, 0.0, 0.0),
            test_goal(60, 120, 0.0, 0.5),
            test_goal(1, 120, 0.005, 0.5),
            { test_goal(60, 60, 0.005, 0.2) },
        ]
    }

    #[test]
    fn the_example_search_of_rfc_9971_comes_out_at_every_point() {
        use LoadBound::{Lower, Undecided, Upper};
        // RFC 9971, appendix "Example Search": trials added at each point, then for each of the
        // four goals the optimistic and the pessimistic exceed ratio in percent and the result.
        let points = [
            (
                outcomes(59, 1, 0),
                [
                    (0.0, 100.0, Undecided),
                    (0.0, 100.0, Undecided),
                    (0.0, 50.833, Undecided),
                    (0.0, 100.0, Undecided),
                ],
            ),
            (
                outcomes(1, 1, 10),
                [
                    (1.667, 100.0, Upper),
                    (0.0, 100.0, Undecided),
                    (0.833, 50.833, Undecided),
                    (0.0, 100.0, Undecided),
                ],
            ),
            (
                outcomes(59, 1, 10),
                [
                    (100.0, 100.0, Upper),
                    (0.833, 100.0, Undecided),
                    (50.0, 50.833, Undecided),
                    (75.417, 100.0, Upper),
                ],
            ),
            (
                outcomes(1, 1, 0),
                [
                    (100.0, 100.0, Upper),
                    (0.0, 100.0, Undecided),
                    (50.0, 50.0, Lower),
                    (75.0, 100.0, Upper),
                ],
            ),
            (
                outcomes(1, 60, 1),
                [
                    (100.0, 100.0, Upper),
                    (50.0, 100.0, Undecided),
                    (33.333, 33.333, Lower),
                    (42.857, 42.857, Lower),
                ],
            ),
            (
                outcomes(1, 60, 0),
                [
                    (66.667, 66.667, Upper),
                    (50.0, 50.0, Lower),
                    (25.0, 25.0, Lower),
                    (27.273, 27.273, Lower),
                ],
            ),
        ];
        let goals = example_goals();
        let mut trials = Vec::new();
        for (point, (added, expected)) in points.into_iter().enumerate() {
            trials.extend(added);
            for (goal, (optimistic, pessimistic, bound)) in goals.iter().zip(expected) {
                let got = DurationSums::from_outcomes(goal, &trials).classify(goal);
                let close = |got: f64, want: f64| (got * 100.0 - want).abs() < 5e-4;
                let at = point + 1;
                // The RFC's table has the loads of the goal "20% exceed" at points 5 and 6 as
                // lower bounds although 42.857 % and 27.273 % are above 20 %; see the next test.
                let is_disputed = point >= 4 && goal.exceed_ratio == 0.2;
                assert!(is_disputed || got.bound == bound, "point {at}: {goal:?} {got:?}");
                assert!(close(got.optimistic, optimistic), "point {at}: {goal:?} {got:?}");
                assert!(close(got.pessimistic, pessimistic), "point {at}: {goal:?} {got:?}");
            }
        }
    }

    #[test]
    fn a_bad_share_above_the_exceed_ratio_fails_by_the_rule_of_rfc_9971() {
        // 60 s and then 120 s good of full length, 60 s bad and 60 s good of 1 s: excess 60 -
        // 60 / 4 = 45 s. 45 > 0.2 * 105 = 21 and 45 > 0.2 * 165 = 33: the code of the RFC's
        // appendix gives an upper bound both times.
        let goal = test_goal(60, 60, 0.005, 0.2);
        let mut trials = outcomes(60, 1, 0);
        trials.extend(outcomes(60, 1, 10));
        for permille in [1, 0] {
            trials.extend(outcomes(1, 60, permille));
            assert_eq!(
                DurationSums::from_outcomes(&goal, &trials).classify(&goal).bound,
                LoadBound::Upper
            );
        }
    }

    #[test]
    fn conditional_throughputs_of_rfc_9971_come_out() {
        // The end of the same example: 1,000,000, 1,000,000 and 999,000 frames/s.
        let mut trials = outcomes(60, 1, 0);
        trials.extend(outcomes(60, 1, 10));
        trials.extend(outcomes(1, 60, 1));
        trials.extend(outcomes(1, 60, 0));
        let trials: Vec<_> = trials.iter().collect();
        let expected = [1_000_000.0, 1_000_000.0, 999_000.0];
        for (goal, expected) in example_goals()[1..].iter().zip(expected) {
            let got = conditional_fps(goal, LOAD_FPS, &trials).expect("full-length trials");
            assert!((got - expected).abs() < 1e-6, "{goal:?}: {got}");
        }
    }

    #[test]
    fn without_trials_nothing_is_decided() {
        let goal = Goal::typical();
        assert_eq!(DurationSums::default().classify(&goal).bound, LoadBound::Undecided);
        assert_eq!(conditional_fps(&goal, 1000, &[]), None);
    }

    #[test]
    fn one_good_trial_of_two_passes_with_verification() {
        // 60 of 120 s good is just half; 60 s bad alone is undecided.
        let goal = test_goal(60, 120, 0.0, 0.5);
        let bound = |trials: &[TrialOutcome]| {
            DurationSums::from_outcomes(&goal, trials).classify(&goal).bound
        };
        let (good, bad) = (outcomes(1, 60, 0), outcomes(1, 60, 10));
        assert_eq!(bound(&good), LoadBound::Lower);
        assert_eq!(bound(&bad), LoadBound::Undecided);
        assert_eq!(bound(&[bad.clone(), good].concat()), LoadBound::Lower);
        assert_eq!(bound(&[bad.clone(), bad].concat()), LoadBound::Upper);
    }
}
