//! How long a benchmark will take, before it starts.
//!
//! Trials times sending and waiting, for a device that shows no whims and has its throughput
//! between half of the largest load and all of it. Trials that are made again, and waits that end
//! early because every frame came, are left out. Source: RFC 2544 §23 (waits).

use std::ops::Add;

use super::addresses::{ADDRESSES_MAX, GENTLE_FPS, RATE_STEPS};
use super::burst::{BURST_MAX, BURST_STEP};
use super::curve::{CURVE_CLEAN, CURVE_STEPS, OVERLOAD_PERCENT};
use super::search::Goal;
use crate::record::{BenchPlan, BenchTest};

/// The tester by itself, before the device: a flood and a paced trial, ns in all.
const SELF_TEST_NS: u64 = 600_000_000;

/// Loads at which latency is measured: the throughput and a low one.
const LATENCY_LOADS: u64 = 2;

/// Trials in each repetition of the back-to-back search but the first, which start at a guess.
const BURST_TRIALS: u64 = 3;

/// Steps of a contract: trains that show the bucket, and the steps of a service activation.
const CONTRACT_STEPS: u64 = 8;

/// Bursts are sent at this rate at least, frames per second.
const BURST_FPS: u64 = 1_000_000;

const SECOND_NS: u64 = 1_000_000_000;

/// Trials and time of a test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestTime {
    /// Number of trials that are expected.
    pub trials: u64,
    /// Sending and waiting, ns.
    pub time_ns: u64,
}

impl TestTime {
    /// Time of trials of one length, each with waits.
    pub const fn from_trials(trials: u64, duration_ns: u64, waits_ns: u64) -> Self {
        Self { trials, time_ns: trials.saturating_mul(duration_ns.saturating_add(waits_ns)) }
    }

    /// Several goals over one set of trials. The first takes the maximum, then a load that passes
    /// and one that fails, or as many halvings as its width; each further one both loads and two
    /// more. It is less where all goals are the same, and up to four times as much for a goal that
    /// stalls of the device pull far below the others.
    pub fn from_goals(goals: &[Goal], waits_ns: u64) -> Self {
        let mut goals: Vec<&Goal> = goals.iter().collect();
        goals.sort_by_key(|goal| goal.duration_sum_ns);
        let time_of = |index: usize, goal: &Goal| {
            let both = trials_to_decide(goal);
            let trials = if index == 0 { 1 + both.max(halvings_to(goal.width)) } else { both + 2 };
            Self::from_trials(trials, goal.final_duration_ns, waits_ns)
        };
        let times = goals.iter().enumerate().map(|(index, goal)| time_of(index, goal));
        times.fold(Self::default(), Self::add)
    }

    /// Time that a plan is expected to take, the self-test included.
    pub fn from_plan(plan: &BenchPlan) -> Self {
        let waits_ns = waits_ns(plan);
        let own = Self { trials: 2, time_ns: SELF_TEST_NS + 2 * waits_ns };
        plan.tests.iter().map(|test| test_time(plan, *test, waits_ns)).fold(own, Self::add)
    }
}

impl BenchPlan {
    /// Time that the benchmark is expected to take, ns: trials and waits for a device that behaves
    /// alike in every trial.
    pub fn expected_ns(&self) -> u64 {
        TestTime::from_plan(self).time_ns
    }
}

/// Time limit of a benchmark as a multiple of the expected time, and the allowance on top (twice
/// the expected time where that is less): spoilt trials are made again three times, and then a
/// search ends without a result.
const LONGEST: u64 = 4;
const LONGEST_MORE_NS: u64 = 30 * SECOND_NS;

/// The longest that a benchmark takes, ns.
pub fn longest_ns(plan: &BenchPlan) -> u64 {
    time_limit_ns(TestTime::from_plan(plan).time_ns)
}

/// The longest that a search for the throughput takes, ns.
pub fn longest_search_ns(plan: &BenchPlan) -> u64 {
    time_limit_ns(test_time(plan, BenchTest::Throughput, waits_ns(plan)).time_ns)
}

const fn time_limit_ns(expected_ns: u64) -> u64 {
    let twice_ns = expected_ns.saturating_mul(2);
    let more_ns = if twice_ns < LONGEST_MORE_NS { twice_ns } else { LONGEST_MORE_NS };
    expected_ns.saturating_mul(LONGEST).saturating_add(more_ns)
}

fn waits_ns(plan: &BenchPlan) -> u64 {
    plan.times.before_ns + plan.times.after_ns + plan.times.settle_ns
}

fn test_time(plan: &BenchPlan, test: BenchTest, waits_ns: u64) -> TestTime {
    let times = &plan.times;
    let repeats = u64::from(times.repetitions.max(1));
    let trials = |count, duration_ns| TestTime::from_trials(count, duration_ns, waits_ns);
    match test {
        BenchTest::Flood | BenchTest::Blocking => trials(1, times.trial_ns),
        BenchTest::Throughput => {
            let goals: Vec<Goal> = plan.goals.iter().map(|goal| goal.search_goal()).collect();
            TestTime::from_goals(&goals, waits_ns)
        }
        // Half of the way down, and the loads without loss that end it.
        BenchTest::LossCurve => trials(CURVE_STEPS / 2 + CURVE_CLEAN as u64, times.trial_ns),
        BenchTest::Overload => trials(OVERLOAD_PERCENT.len() as u64, times.trial_ns),
        BenchTest::Latency => trials(LATENCY_LOADS * repeats, times.latency_ns),
        BenchTest::BackToBack => {
            let count = halvings(BURST_MAX, BURST_STEP) + (repeats - 1) * BURST_TRIALS;
            trials(count, BURST_MAX * SECOND_NS / BURST_FPS)
        }
        BenchTest::Recovery | BenchTest::Reset => trials(repeats, 2 * times.trial_ns),
        BenchTest::Addresses => address_test_time(plan, waits_ns),
        BenchTest::Soak => trials(times.soak_seconds(), SECOND_NS),
        BenchTest::Contract => trials(CONTRACT_STEPS, times.trial_ns),
    }
}

/// Time of the address test: each number of addresses is learnt and tested; the largest is halved,
/// down to a quarter of it. Learning rates are tried with as many addresses as were found.
fn address_test_time(plan: &BenchPlan, waits_ns: u64) -> TestTime {
    let max = if plan.frames.flows > 1 { plan.frames.flows } else { ADDRESSES_MAX };
    let max = u64::from(max);
    let rest_ns = max / 4 * SECOND_NS / GENTLE_FPS;
    let first_ns = (max + max / 2) * SECOND_NS / GENTLE_FPS;
    let count = halvings(max, 1).saturating_sub(2) + halvings(RATE_STEPS, 1);
    let each = TestTime::from_trials(2 * count, rest_ns, waits_ns);
    each + TestTime { trials: 4, time_ns: 2 * first_ns + 4 * waits_ns }
}

/// Trials of a search for a whole number: the largest and the halvings down to a step.
fn halvings(max: u64, step: u64) -> u64 {
    let steps = (max / step.max(1)).max(1);
    1 + u64::from(steps.next_power_of_two().trailing_zeros())
}

impl Add for TestTime {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            trials: self.trials + other.trials,
            time_ns: self.time_ns.saturating_add(other.time_ns),
        }
    }
}

/// Trials that decide two loads, all good at one and all bad at the other.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small counts that are not negative; a cast keeps within the range of the type"
)]
fn trials_to_decide(goal: &Goal) -> u64 {
    let trials = goal.duration_sum_ns as f64 / goal.final_duration_ns.max(1) as f64;
    let good = (trials * (1.0 - goal.exceed_ratio)).ceil() as u64;
    let bad = (trials * goal.exceed_ratio).floor() as u64 + 1;
    good.max(1) + bad
}

/// Halvings of a range to a share of it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a small count that is not negative; a cast keeps within the range of the type"
)]
fn halvings_to(share: f64) -> u64 {
    (1.0 / share.clamp(1e-9, 1.0)).log2().ceil() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{BenchGoal, BenchTimes};

    const SECOND: u64 = SECOND_NS;

    fn bench_plan(tests: &[BenchTest]) -> BenchPlan {
        BenchPlan {
            tests: tests.to_vec(),
            goals: vec![BenchGoal::strict()],
            times: BenchTimes::rfc2544(),
            ..BenchPlan::default()
        }
    }

    /// The time of a test of RFC 2544's lengths, without the self-test.
    fn seconds(test: BenchTest) -> f64 {
        let own = TestTime::from_plan(&bench_plan(&[])).time_ns;
        (bench_plan(&[test]).expected_ns() - own) as f64 / 1e9
    }

    #[test]
    fn typical_loads_are_decided_by_eleven_trials() {
        assert_eq!(trials_to_decide(&Goal::typical()), 11 + 11);
        assert_eq!(trials_to_decide(&Goal::strict()), 1 + 1);
        assert_eq!(trials_to_decide(&Goal::verified()), 1 + 2);
        // The maximum and 22 trials of 1 s.
        assert_eq!(
            TestTime::from_goals(&[Goal::typical()], 0),
            TestTime { trials: 23, time_ns: 23 * SECOND }
        );
        // The maximum and log2(1 / 0.005) = 7.6: 8 halvings.
        assert_eq!(TestTime::from_goals(&[Goal::strict()], 0).trials, 9);
        // With waits of 9 s: 23 x 10 s, and 4 x 69 s.
        let both = [Goal::strict(), Goal::typical()];
        assert_eq!(TestTime::from_goals(&both, 9 * SECOND).time_ns, (230 + 276) * SECOND);
    }

    #[test]
    fn a_short_benchmark_does_not_wait_half_a_minute_for_its_end() {
        // 4 x 1 s and twice that; 4 x 60 s and half a minute.
        assert_eq!([time_limit_ns(SECOND), time_limit_ns(60 * SECOND)], [6 * SECOND, 270 * SECOND]);
    }

    #[test]
    fn each_trial_has_the_waits_of_rfc_2544() {
        // 2 s, 2 s and 5 s around 60 s.
        assert_eq!(seconds(BenchTest::Flood), 69.0);
        assert_eq!(seconds(BenchTest::Throughput), 9.0 * 69.0);
        // 20 repetitions of 120 s at two loads.
        assert_eq!(seconds(BenchTest::Latency), 40.0 * 129.0);
        // Five tenths on the way down and two without loss.
        assert_eq!(seconds(BenchTest::LossCurve), 7.0 * 69.0);
        assert_eq!(seconds(BenchTest::Overload), 5.0 * 69.0);
        // Both parts of 60 s.
        assert_eq!(seconds(BenchTest::Recovery), 20.0 * 129.0);
        // 3600 trials of a second.
        assert_eq!(seconds(BenchTest::Soak), 36_000.0);
    }

    #[test]
    fn whole_numbers_are_found_by_halves() {
        // 65,536 down to 4: 14 halvings; 100: 7.
        assert_eq!((halvings(65_536, 4), halvings(100, 1), halvings(1, 1)), (15, 8, 1));
        // 65,536 down to 1 are 16 halvings: 17 and 19 x 3 bursts of 65.536 ms.
        assert!((seconds(BenchTest::BackToBack) - 74.0 * 9.065_536).abs() < 1e-6);
        // 65,536 at 10,000 a second and the half of it, learnt and asked for: 2 x 9.8304 s; then
        // 15 numbers of addresses and 8 rates, 1.6384 s each way.
        let sending = 2.0 * 9.8304 + 46.0 * 1.6384;
        assert!((seconds(BenchTest::Addresses) - (sending + 50.0 * 9.0)).abs() < 1e-6);
    }
}
