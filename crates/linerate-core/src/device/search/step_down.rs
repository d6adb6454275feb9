//! From the maximum down in equal steps until nothing is lost any more: the frame loss curve, and
//! the way in which Bradner turned the gap by hand in 1990.
//!
//! Source: RFC 2544 §26.3: steps of at most 10 % of the maximum, until two trials in a row lose
//! nothing.

use super::goal::{Goal, GoalError};
use super::ledger::TrialLedger;
use super::trial::{FinishedTrial, Invalid, LoadTrial, TrialOutcome, Why};
use super::{Controller, NextTrial, Range};

/// The series of trials.
#[derive(Clone, Debug)]
pub struct StepDown {
    ledger: TrialLedger,
    step_fps: u64,
    clean_needed: usize,
}

impl StepDown {
    /// Steps from the top of `range` by `step_share` of it, down to the bottom of the range or
    /// until `clean_needed` trials in a row lost nothing (2 for RFC 2544, 1 for Bradner's way).
    pub fn new(
        range: Range,
        step_share: f64,
        duration_ns: u64,
        clean_needed: usize,
    ) -> Result<Self, GoalError> {
        let goal = Goal { name: "loss curve".to_owned(), ..Goal::strict() };
        let goal = Goal { width: step_share, ..goal }.with_trial_duration(duration_ns);
        let ledger = TrialLedger::new(vec![goal], range)?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share between 0 and 1 of a whole number"
        )]
        let step_fps = (range.max_fps as f64 * step_share).round() as u64;
        Ok(Self { ledger, step_fps: step_fps.max(1), clean_needed: clean_needed.max(1) })
    }

    /// All trials with their reasons.
    pub fn trials(&self) -> &[FinishedTrial] {
        &self.ledger.tried
    }

    /// Outcomes that count, from the largest load down.
    pub fn outcomes(&self) -> Vec<&TrialOutcome> {
        self.ledger
            .tried
            .iter()
            .filter(|tried| tried.counts())
            .map(|tried| &tried.outcome)
            .collect()
    }

    /// The largest load from which on down `clean_needed` trials lost nothing: what stepping down
    /// by hand gives for a throughput, to the step.
    pub fn throughput_fps(&self) -> Option<u64> {
        let outcomes = self.outcomes();
        let clean = outcomes.iter().rev().take_while(|outcome| outcome.loss_ratio() == 0.0).count();
        (clean >= self.clean_needed).then(|| outcomes[outcomes.len() - clean].load_fps)
    }

    /// Reason why the series ended early, if it did.
    pub fn give_up_reason(&self) -> Option<Invalid> {
        self.ledger.give_up_reason()
    }
}

impl Controller for StepDown {
    type Trial = LoadTrial;
    type Outcome = TrialOutcome;

    fn next(&self) -> NextTrial<LoadTrial> {
        if self.ledger.give_up_reason().is_some() || self.throughput_fps().is_some() {
            return NextTrial::Done;
        }
        let Range { min_fps, max_fps } = self.ledger.range;
        let (load, why) = match self.ledger.last_counted() {
            None => (max_fps, Why::Maximum),
            Some(last) if last.trial.load_fps <= min_fps => return NextTrial::Done,
            Some(last) => {
                let next = last.trial.load_fps.saturating_sub(self.step_fps);
                (next.max(min_fps), Why::Listed)
            }
        };
        let duration_ns = self.ledger.goals[0].final_duration_ns;
        NextTrial::Trial(LoadTrial {
            load_fps: load,
            duration_ns,
            stop_at_lost: None,
            goal: 0,
            why,
        })
    }

    fn add_outcome(&mut self, outcome: TrialOutcome) {
        let asked = self.next().into_trial();
        self.ledger.add(asked, outcome);
    }
}
