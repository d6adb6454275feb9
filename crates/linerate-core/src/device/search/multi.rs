//! MLRsearch: several goals over one set of trials.
//!
//! The largest load comes first; what the device forwards there is the next guess. From there the
//! loads go down or up in steps that double until both bounds are known, then by halves. Goals are
//! taken in their order, so cheap ones first leave bounds for the dear ones. Everything follows
//! from the trials so far. Source: RFC 9971; the choice of loads, which it leaves open, is ours.

use super::goal::{Goal, GoalError};
use super::ledger::{RelevantBounds, TrialLedger};
use super::result::{GoalResult, Status};
use super::trial::LoadBound;
use super::trial::{FinishedTrial, LoadTrial, TrialOutcome, Why};
use super::{Controller, NextTrial, Range};

/// Trials after which a search ends in any case. A device whose outcomes change for ever would keep
/// it going.
const TRIALS_MAX: usize = 5_000;

/// Largest relative step down or up.
const STEP_MAX: f64 = 0.5;

/// MLRsearch for several goals at once (RFC 9971).
#[derive(Clone, Debug)]
pub struct MultiSearch {
    ledger: TrialLedger,
    warm_up_ns: u64,
}

impl MultiSearch {
    /// A search for `goals` in their order.
    /// # Errors
    /// No goal, an impossible one, an empty range.
    pub fn new(goals: Vec<Goal>, range: Range) -> Result<Self, GoalError> {
        Ok(Self { ledger: TrialLedger::new(goals, range)?, warm_up_ns: 0 })
    }

    /// The same with a first trial at the largest load that does not count.
    #[must_use]
    pub fn with_warm_up(self, warm_up_ns: u64) -> Self {
        Self { warm_up_ns, ..self }
    }

    /// Strict and typical side by side, the cheap one first.
    ///
    /// Each is judged by trials no longer than its own: a trial of 60 s meets stalls that a trial
    /// of 1 s mostly does not, and would decide against the typical goal by its length alone. By
    /// RFC 9971 longer trials count in full, and goals of different lengths are advised against
    /// for that reason.
    /// # Errors
    /// An empty range.
    pub fn side_by_side(typical: Goal, strict: Goal, range: Range) -> Result<Self, GoalError> {
        Ok(Self::new(vec![typical, strict], range)?.ignoring_long_trials())
    }

    /// The same where trials longer than a goal's do not count for it; see
    /// [`MultiSearch::side_by_side`].
    #[must_use]
    pub fn ignoring_long_trials(mut self) -> Self {
        self.ledger.ignores_long = true;
        self
    }

    /// All trials with their reasons.
    pub fn trials(&self) -> &[FinishedTrial] {
        &self.ledger.tried
    }

    /// Results so far, one for each goal in their order; final once [`Controller::next`] is done.
    pub fn results(&self) -> Vec<GoalResult> {
        let status = |goal: &Goal| match (self.final_status(goal), self.ledger.give_up_reason()) {
            (Some(status), _) => status,
            (None, Some(reason)) => Status::Invalid(reason),
            (None, None) => Status::Unfinished,
        };
        let goals = self.ledger.goals.iter().enumerate();
        goals
            .map(|(index, goal)| GoalResult::from_ledger(&self.ledger, index, status(goal)))
            .collect()
    }

    /// Status of a goal whose search has ended; none while it goes on.
    fn final_status(&self, goal: &Goal) -> Option<Status> {
        let RelevantBounds { lower_fps, upper_fps } = self.ledger.relevant(goal);
        let Range { min_fps, max_fps } = self.ledger.range;
        match (lower_fps, upper_fps) {
            (Some(lower), Some(upper)) if goal.is_close(lower, upper) => Some(Status::Regular),
            (Some(lower), None) if lower >= max_fps => Some(Status::AtMaximum),
            (None, Some(upper)) if upper <= min_fps => Some(Status::BelowMinimum),
            _ => None,
        }
    }

    /// The next load for a goal, and why.
    fn next_load(&self, goal: &Goal) -> (u64, Why) {
        let max_fps = self.ledger.range.max_fps;
        if self.ledger.duration_sums(goal, max_fps).is_empty() {
            return (max_fps, Why::Maximum);
        }
        let relevant = self.ledger.relevant(goal);
        if let Some(load) = self.open_load(goal, relevant) {
            return (load, Why::Repeat);
        }
        match (relevant.lower_fps, relevant.upper_fps) {
            (Some(lower_fps), Some(upper_fps)) => middle_load(lower_fps, upper_fps),
            (Some(lower), None) => self.load_above(goal, lower),
            (None, upper) => self.load_below(goal, upper),
        }
    }

    /// The load of the last trial, when it is still open and worth going on with.
    fn open_load(&self, goal: &Goal, relevant: RelevantBounds) -> Option<u64> {
        let last = self.ledger.last_counted()?.trial.load_fps;
        let is_within = relevant.lower_fps.is_none_or(|lower| last > lower)
            && relevant.upper_fps.is_none_or(|upper| last < upper);
        let is_open = self.ledger.load_bound(goal, last) == LoadBound::Undecided;
        // One bad trial at the maximum is enough to look further down first.
        let is_probe = last == self.ledger.range.max_fps
            && self.ledger.duration_sums(goal, last).has_bad()
            && relevant.lower_fps.is_none()
            && self.forwarded_fps(goal, last).is_some_and(|hint| hint < last);
        (is_within && is_open && !is_probe).then_some(last)
    }

    /// Rate that the device forwarded at a load, rounded down and within the range; `None` when no
    /// whole trial was bad there.
    fn forwarded_fps(&self, goal: &Goal, load_fps: u64) -> Option<u64> {
        let bad = |outcome: &&TrialOutcome| {
            outcome.loss_ratio() > goal.loss_ratio && !outcome.stopped_early
        };
        let rate =
            self.ledger.outcomes(goal, load_fps).filter(bad).map(TrialOutcome::forwarding_fps);
        let rate = rate.fold(f64::NAN, f64::max);
        // A goal that allows loss passes a little above what comes out.
        let rate = rate / (1.0 - goal.loss_ratio);
        let Range { min_fps, max_fps } = self.ledger.range;
        rate.is_finite().then(|| floor_fps(rate).clamp(min_fps, max_fps))
    }

    /// A load below the smallest that failed; with none, below the maximum.
    fn load_below(&self, goal: &Goal, upper: Option<u64>) -> (u64, Why) {
        let Range { min_fps, max_fps } = self.ledger.range;
        let from = upper.unwrap_or(max_fps);
        let steps =
            self.count_steps(goal, |why| matches!(why, Why::Lower { .. }), LoadBound::Upper);
        let next = floor_fps(from as f64 * (1.0 - step_width(goal, steps)))
            .min(from.saturating_sub(1))
            .max(min_fps);
        // A load that went well so far is the better guess, when it is near.
        let is_clean =
            |load: &u64| *load < from && !self.ledger.duration_sums(goal, *load).has_bad();
        let clean = self.ledger.tested_loads().rev().find(is_clean);
        let near = next as f64 * (1.0 - goal.width);
        if let Some(clean) = clean.filter(|clean| *clean as f64 >= near) {
            return (clean, Why::Verify);
        }
        match self.forwarded_fps(goal, from) {
            Some(hint) if hint < next => (hint, Why::Forwarded { at_fps: from }),
            Some(hint) if hint < from && upper.is_none() => (hint, Why::Forwarded { at_fps: from }),
            _ => (next, Why::Lower { than_fps: from }),
        }
    }

    /// A load above the largest that passed, while none failed.
    fn load_above(&self, goal: &Goal, lower: u64) -> (u64, Why) {
        let steps =
            self.count_steps(goal, |why| matches!(why, Why::Higher { .. }), LoadBound::Lower);
        let next = floor_fps(lower as f64 / (1.0 - step_width(goal, steps)));
        let next = next.max(lower + 1).min(self.ledger.range.max_fps);
        (next, Why::Higher { than_fps: lower })
    }

    /// Number of loads of a kind that were tried for a goal and became `bound`.
    fn count_steps(&self, goal: &Goal, is_kind: impl Fn(&Why) -> bool, bound: LoadBound) -> u32 {
        let is_step = |tried: &&FinishedTrial| {
            tried.counts()
                && is_kind(&tried.trial.why)
                && self.ledger.goals.get(tried.trial.goal) == Some(goal)
                && self.ledger.load_bound(goal, tried.trial.load_fps) == bound
        };
        let mut loads: Vec<u64> =
            self.ledger.tried.iter().filter(is_step).map(|tried| tried.trial.load_fps).collect();
        loads.sort_unstable();
        loads.dedup();
        u32::try_from(loads.len()).unwrap_or(u32::MAX)
    }

    /// Length of a trial: the first at a load may be short; the others have the full length.
    fn duration_ns(&self, goal: &Goal, load_fps: u64) -> u64 {
        match self.ledger.duration_sums(goal, load_fps).is_empty() {
            true => goal.initial_duration_ns.min(goal.final_duration_ns),
            false => goal.final_duration_ns,
        }
    }
}

impl Controller for MultiSearch {
    type Trial = LoadTrial;
    type Outcome = TrialOutcome;

    fn next(&self) -> NextTrial<LoadTrial> {
        let ledger = &self.ledger;
        if ledger.give_up_reason().is_some() || ledger.tried.len() >= TRIALS_MAX {
            return NextTrial::Done;
        }
        let is_cold = || !ledger.tried.iter().any(|tried| tried.outcome.invalidity().is_none());
        if self.warm_up_ns > 0 && is_cold() {
            let max_fps = ledger.range.max_fps;
            return NextTrial::Trial(ledger.trial_for_goal(
                0,
                max_fps,
                self.warm_up_ns,
                Why::WarmUp,
            ));
        }
        let mut open = ledger.goals.iter().enumerate();
        let Some((index, goal)) = open.find(|(_, goal)| self.final_status(goal).is_none()) else {
            return NextTrial::Done;
        };
        let (load, why) = self.next_load(goal);
        NextTrial::Trial(ledger.trial_for_goal(index, load, self.duration_ns(goal, load), why))
    }

    fn add_outcome(&mut self, outcome: TrialOutcome) {
        let asked = self.next().into_trial();
        self.ledger.add(asked, outcome);
    }
}

/// Relative step after so many in the same direction.
fn step_width(goal: &Goal, steps: u32) -> f64 {
    (goal.width * 2_f64.powi(i32::try_from(steps).unwrap_or(i32::MAX))).min(STEP_MAX)
}

/// The load in the middle, by ratio: both halves are then equally many widths wide.
fn middle_load(lower_fps: u64, upper_fps: u64) -> (u64, Why) {
    let middle = floor_fps((lower_fps as f64 * upper_fps as f64).sqrt());
    let load = middle.clamp(lower_fps + 1, upper_fps.max(lower_fps + 2) - 1);
    (load, Why::Between { lower_fps, upper_fps })
}

/// Whole frames per second of a rate that is not negative.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are not negative, and a cast keeps within the range of the type"
)]
fn floor_fps(rate: f64) -> u64 {
    rate.floor() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_between_two_is_their_geometric_mean_and_lies_between_wherever_one_does() {
        // 100 x 400 = 200^2; of 10 and 12, 10.95 rounds down to a bound, and 11 is between.
        for (lower_fps, upper_fps, load) in [(100, 400, 200), (10, 12, 11), (10, 11, 11), (0, 9, 1)]
        {
            assert_eq!(middle_load(lower_fps, upper_fps).0, load, "{lower_fps} {upper_fps}");
        }
    }
}
