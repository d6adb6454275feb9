//! What an interleaved comparison says: by how much each candidate differs from the first, and
//! whether that is more than the first differs from itself.
//!
//! In each round every candidate is measured once and the first one twice, in an order drawn anew.
//! What drifts between rounds cancels in the differences of a round; what happens within rounds
//! shows in the difference of the first to itself, which is 0 but for what disturbs the
//! measurement (an A/A test). A difference counts where the interval of its median excludes 0 and
//! lies beyond that of the first to itself.

mod stored;

pub use stored::{TooFew, rounds_of};

use crate::path::Random;
use crate::record::{ComparePlan, MetricId, Plan, Record, Stat};
use crate::stats::{Interval, median, median_interval};

/// Confidence of all intervals here.
pub const CONFIDENCE: f64 = 0.95;
/// Least rounds: with fewer, the smallest and the largest difference do not make an interval of
/// that confidence.
pub const ROUNDS_MIN: u32 = 6;

/// The order in which a round measures `count` candidates: a permutation of 0 … count − 1, drawn
/// from the seed and the round (Fisher and Yates).
pub fn candidate_order(seed: u64, round: u32, count: usize) -> Vec<usize> {
    let mut random = Random::new(seed, round.into());
    let mut order: Vec<usize> = (0..count).collect();
    for last in (1..count).rev() {
        // Below last + 1, as unit() is below 1.
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "see above")]
        let other = (random.next_uniform() * (last + 1) as f64) as usize;
        order.swap(last, other.min(last));
    }
    order
}

/// Difference of a candidate from the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Median over the rounds.
    pub median: f64,
    /// Interval that covers the true median with [`CONFIDENCE`]; none with too few rounds.
    pub interval: Option<Interval>,
}

impl Difference {
    fn from_values(values: &[f64]) -> Option<Self> {
        let interval = median_interval(values, CONFIDENCE);
        Some(Self { median: median(values)?, interval })
    }

    /// The most by which the median may be wrong.
    fn half_width(&self) -> Option<f64> {
        let interval = self.interval?;
        Some((interval.high - self.median).max(self.median - interval.low))
    }

    /// The largest distance from 0 that the interval allows.
    fn max_distance(&self) -> Option<f64> {
        self.interval.map(|interval| interval.low.abs().max(interval.high.abs()))
    }
}

/// Verdict on a candidate beside the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The value is higher than the first one's.
    Higher,
    /// The value is lower than the first one's.
    Lower,
    /// The difference is not larger than the noise of the measurement.
    NotDistinguishable,
    /// Too few rounds were measured, or some have no value.
    NotKnown,
}

/// One candidate with its values and its difference from the first.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// Name as the user gave it.
    pub name: String,
    /// Median of its value over the rounds.
    pub value: Option<f64>,
    /// Difference to the first one; of the first one, to itself.
    pub difference: Option<Difference>,
    /// Verdict on each candidate but the first.
    pub verdict: Verdict,
}

impl Compared {
    /// The smallest difference to the first one that these rounds would have shown: the median's
    /// interval must leave out all that the first one differs from itself by.
    pub fn detectable(&self, floor: Option<f64>) -> Option<f64> {
        Some(self.difference?.half_width()? + floor?)
    }
}

/// A comparison as computed from its record.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// The metric that is compared.
    pub metric: MetricId,
    /// Statistic of each measurement.
    pub stat: Stat,
    /// The candidates, as planned.
    pub candidates: Vec<Compared>,
    /// Largest difference of the first candidate from itself (A/A), or the step of the clock where
    /// that is more; none with too few rounds.
    pub floor: Option<f64>,
    /// Whole rounds that were measured.
    pub rounds: usize,
}

/// The smallest difference that the rounds would have shown, and its share of the first one's
/// value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Missed {
    /// Value of the difference in the metric's unit.
    pub value: f64,
    /// Over the first one's value.
    pub share: f64,
}

impl Comparison {
    /// The difference that a candidate which shows none could have all the same.
    pub fn missed(&self, candidate: &Compared) -> Option<Missed> {
        if candidate.verdict != Verdict::NotDistinguishable {
            return None;
        }
        let value = candidate.detectable(self.floor).filter(|value| *value > 0.0)?;
        let first = self.candidates.first()?.value.filter(|first| *first > 0.0)?;
        Some(Missed { value, share: value / first })
    }

    /// Comparison of a record's parts: round by round those of the candidates as planned, then the
    /// second one of the first. None of another record.
    pub fn from_record(record: &Record) -> Option<Self> {
        let Plan::Compare(plan) = &record.plan else { return None };
        let (metric, stat) = measure(plan, &record.parts);
        let value = |part: &Record| {
            part.summary.iter().find_map(|row| {
                let whole = row.metric == metric && row.stat == stat && row.flow.is_none();
                whole.then_some(row.value)
            })
        };
        let rounds = record.parts.chunks_exact(plan.candidates.len() + 1);
        // A round in which a candidate has no value, as no probe was answered, says nothing.
        let rounds: Vec<Vec<f64>> =
            rounds.filter_map(|round| round.iter().map(value).collect()).collect();
        let names = plan.candidates.iter().map(|candidate| candidate.name.as_str());
        Some(Self { metric, stat, ..Self::between(names, &rounds) })
    }

    /// Comparison from the values of each round: one for each name, then another one of the first.
    fn between<'a>(names: impl Iterator<Item = &'a str>, rounds: &[Vec<f64>]) -> Self {
        let names: Vec<&str> = names.collect();
        let of = |index: usize| rounds.iter().map(|round| round[index]).collect::<Vec<f64>>();
        let to_first = |index: usize| {
            let each: Vec<f64> = rounds.iter().map(|round| round[index] - round[0]).collect();
            Difference::from_values(&each)
        };
        let itself = to_first(names.len()).filter(|_| !rounds.is_empty());
        let floor = itself
            .and_then(|itself| itself.max_distance())
            .map(|reach| reach.max(smallest_step(rounds)));
        let candidates = names.iter().enumerate().map(|(index, name)| {
            let difference = if index == 0 { itself } else { to_first(index) };
            let interval = difference.and_then(|difference| difference.interval);
            let verdict = match (interval, floor) {
                _ if index == 0 => Verdict::NotDistinguishable,
                (Some(interval), Some(floor)) if interval.low > floor => Verdict::Higher,
                (Some(interval), Some(floor)) if interval.high < -floor => Verdict::Lower,
                (Some(_), Some(_)) => Verdict::NotDistinguishable,
                _ => Verdict::NotKnown,
            };
            Compared { name: (*name).to_owned(), value: median(&of(index)), difference, verdict }
        });
        let candidates = candidates.collect();
        Self { metric: MetricId::Rtt, stat: Stat::P50, candidates, floor, rounds: rounds.len() }
    }
}

/// The smallest step between values: the step of a clock with a tick of 10 ns, also where all other
/// values are equal.
fn smallest_step(rounds: &[Vec<f64>]) -> f64 {
    let mut values: Vec<f64> = rounds.iter().flatten().copied().collect();
    values.sort_unstable_by(f64::total_cmp);
    let steps = values.windows(2).map(|pair| pair[1] - pair[0]).filter(|step| *step > 0.0);
    steps.reduce(f64::min).unwrap_or(0.0)
}

/// Metric and statistic that are compared: the kernel's round trip where every part has it, else
/// that of the program; the goodput of a flow test.
fn measure(plan: &ComparePlan, parts: &[Record]) -> (MetricId, Stat) {
    let pings = plan.candidates.iter().all(|candidate| matches!(candidate.plan, Plan::Ping(_)));
    let kernel = |part: &Record| part.summary.iter().any(|row| row.metric == MetricId::RttKernel);
    match pings {
        true if !parts.is_empty() && parts.iter().all(kernel) => (MetricId::RttKernel, Stat::P50),
        true => (MetricId::Rtt, Stat::P50),
        false => (MetricId::Goodput, Stat::Value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on b where each round has these values: a, b, and a again.
    fn verdict(rounds: &[[f64; 3]]) -> (Verdict, Option<f64>) {
        let rounds: Vec<Vec<f64>> = rounds.iter().map(|round| round.to_vec()).collect();
        let comparison = Comparison::between(["a", "b"].into_iter(), &rounds);
        (comparison.candidates[1].verdict, comparison.floor)
    }

    /// Sixteen rounds whose level drifts by a hundred times what is to be found.
    fn rounds(b: f64, a_again: impl Fn(u32) -> f64) -> Vec<[f64; 3]> {
        let of = |round: u32| {
            let level = 1000.0 + 100.0 * f64::from(round);
            [level, level + b + f64::from(round % 3), level + a_again(round)]
        };
        (0..16).map(of).collect()
    }

    #[test]
    fn a_difference_counts_where_it_is_more_than_that_of_the_first_to_itself() {
        let steady = |round: u32| f64::from(round % 3) - 1.0;
        // Of -1, 0, 1 in turn the 4th smallest is -1 and the 4th largest 1.
        assert_eq!(verdict(&rounds(20.0, steady)), (Verdict::Higher, Some(1.0)));
        assert_eq!(verdict(&rounds(-20.0, steady)), (Verdict::Lower, Some(1.0)));
        // b is 0 to 2 above a: its interval lies within what a differs from itself.
        assert_eq!(verdict(&rounds(0.0, steady)).0, Verdict::NotDistinguishable);
        // The second of two always reads 30 more, whatever it is: 20 says nothing then.
        let order_matters = |_| 30.0;
        assert_eq!(
            verdict(&rounds(20.0, order_matters)),
            (Verdict::NotDistinguishable, Some(30.0))
        );
        assert_eq!(verdict(&rounds(20.0, steady)[..5]), (Verdict::NotKnown, None));
        assert_eq!(verdict(&[]), (Verdict::NotKnown, None));
        // A clock that steps by 10 reads b one step higher in each round, and a never differs.
        let ticks = [[1000.0, 1010.0, 1000.0]; 16];
        assert_eq!(verdict(&ticks), (Verdict::NotDistinguishable, Some(10.0)));
        let ticks = [[1000.0, 1020.0, 1000.0], [1010.0, 1030.0, 1010.0]].repeat(8);
        assert_eq!(verdict(&ticks), (Verdict::Higher, Some(10.0)));
    }

    /// b reads 0, 1 or 2 above a in turn: its median is 1 ± 1, and a differs from itself by 1. What
    /// moves b by more than 2 shows, and less does not.
    #[test]
    fn the_smallest_difference_that_would_have_shown_is_known() {
        let steady = |round: u32| f64::from(round % 3) - 1.0;
        let of = |b: f64| {
            let rounds: Vec<Vec<f64>> =
                rounds(b, steady).iter().map(|round| round.to_vec()).collect();
            Comparison::between(["a", "b"].into_iter(), &rounds)
        };
        let none = of(-1.0);
        let detectable = none.candidates[1].detectable(none.floor).expect("16 rounds");
        assert_eq!((none.candidates[1].verdict, detectable), (Verdict::NotDistinguishable, 2.0));
        assert_eq!(of(-1.0 + detectable + 0.1).candidates[1].verdict, Verdict::Higher);
        assert_eq!(of(-1.0 + detectable - 0.1).candidates[1].verdict, Verdict::NotDistinguishable);
        assert_eq!(none.candidates[1].detectable(None), None);
    }

    #[test]
    fn every_order_is_a_permutation_and_all_come_up() {
        let mut seen = std::collections::BTreeSet::new();
        for round in 0..200 {
            let order = candidate_order(7, round, 3);
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2]);
            seen.insert(order);
        }
        assert_eq!(seen.len(), 6, "{seen:?}");
        assert_eq!(candidate_order(7, 3, 4), candidate_order(7, 3, 4));
    }

    #[test]
    fn among_equals_hardly_anyone_is_accused() {
        // Two targets that are the same, 500 comparisons of 16 rounds with noise of a few large
        // values: at 95 % at most about 5 in 100 intervals leave out 0, fewer lie beyond the floor.
        let mut random = Random::new(11, 0);
        let mut noise = || {
            let unit = random.next_uniform();
            unit + if unit > 0.9 { 50.0 * unit } else { 0.0 }
        };
        let accused = (0..500).filter(|_| {
            let rounds: Vec<[f64; 3]> = (0..16).map(|_| [noise(), noise(), noise()]).collect();
            matches!(verdict(&rounds).0, Verdict::Higher | Verdict::Lower)
        });
        let accused = accused.count();
        assert!(accused <= 10, "{accused} of 500");
    }
}
