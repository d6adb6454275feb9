//! Plain binary search: the maximum, then always the middle of what is left.
//!
//! With [`Goal::strict`] it is what RFC 2544 §26.1 is commonly taken to mean, with
//! [`Goal::verified`] the search with loss verification of ETSI GS NFV-TST 009 §12.3.3. The
//! bottom of the range is taken to pass and is never tried.

use super::goal::{Goal, GoalError};
use super::ledger::{RelevantBounds, TrialLedger};
use super::result::{GoalResult, Status};
use super::trial::LoadBound;
use super::trial::{FinishedTrial, LoadTrial, TrialOutcome, Why};
use super::{Controller, NextTrial, Range};

/// Binary search for one goal.
#[derive(Clone, Debug)]
pub struct BinarySearch {
    ledger: TrialLedger,
}

impl BinarySearch {
    /// A search for one goal.
    /// # Errors
    /// An impossible goal or an empty range.
    pub fn new(goal: Goal, range: Range) -> Result<Self, GoalError> {
        Ok(Self { ledger: TrialLedger::new(vec![goal], range)? })
    }

    /// All trials with their reasons.
    pub fn trials(&self) -> &[FinishedTrial] {
        &self.ledger.tried
    }

    /// Result so far; final once [`Controller::next`] is done.
    pub fn result(&self) -> GoalResult {
        let status = match (self.next_load(), self.ledger.give_up_reason()) {
            (Err(status), _) => status,
            (Ok(_), Some(reason)) => Status::Invalid(reason),
            (Ok(_), None) => Status::Unfinished,
        };
        GoalResult::from_ledger(&self.ledger, 0, status)
    }

    fn single_goal(&self) -> &Goal {
        &self.ledger.goals[0]
    }

    /// The next load and why, or how the search ended.
    fn next_load(&self) -> Result<(u64, Why), Status> {
        let goal = self.single_goal();
        let Range { min_fps, max_fps } = self.ledger.range;
        let RelevantBounds { lower_fps, upper_fps } = self.ledger.relevant(goal);
        if let Some(last) = self.ledger.last_counted().map(|tried| tried.trial.load_fps)
            && self.ledger.load_bound(goal, last) == LoadBound::Undecided
        {
            return Ok((last, Why::Repeat));
        }
        let Some(upper) = upper_fps else {
            let is_passed = lower_fps.is_some_and(|lower| lower >= max_fps);
            return if is_passed { Err(Status::AtMaximum) } else { Ok((max_fps, Why::Maximum)) };
        };
        let lower = lower_fps.unwrap_or(min_fps);
        if goal.is_close(lower, upper) {
            return Err(if lower_fps.is_some() { Status::Regular } else { Status::BelowMinimum });
        }
        let why = Why::Between { lower_fps: lower, upper_fps: upper };
        Ok((lower + (upper - lower) / 2, why))
    }
}

impl Controller for BinarySearch {
    type Trial = LoadTrial;
    type Outcome = TrialOutcome;

    fn next(&self) -> NextTrial<LoadTrial> {
        if self.ledger.give_up_reason().is_some() {
            return NextTrial::Done;
        }
        let Ok((load, why)) = self.next_load() else { return NextTrial::Done };
        let goal = self.single_goal();
        let is_first = self.ledger.duration_sums(goal, load).is_empty();
        let duration_ns = if is_first { goal.initial_duration_ns } else { goal.final_duration_ns };
        NextTrial::Trial(self.ledger.trial_for_goal(0, load, duration_ns, why))
    }

    fn add_outcome(&mut self, outcome: TrialOutcome) {
        let asked = self.next().into_trial();
        self.ledger.add(asked, outcome);
    }
}
