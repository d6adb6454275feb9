//! All trials of a search, by load, with the bounds that they give for each goal.

use std::collections::BTreeMap;

use super::classify::DurationSums;
use super::goal::{Goal, GoalError};
use super::trial::LoadBound;
use super::trial::{EARLY_STOP_MIN_NS, FinishedTrial, Invalid, LoadTrial, TrialOutcome, Why};
use super::{INVALID_MAX, Range};

/// Trials of a search, with the bounds that follow from them.
#[derive(Clone, Debug)]
pub(super) struct TrialLedger {
    pub(super) goals: Vec<Goal>,
    pub(super) range: Range,
    pub(super) tried: Vec<FinishedTrial>,
    /// Trials longer than a goal's final duration do not count for it.
    pub(super) ignores_long: bool,
    by_load: BTreeMap<u64, Vec<usize>>,
}

/// The two loads that matter for a goal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RelevantBounds {
    /// Largest lower bound below the relevant upper bound: a load that passed above one that
    /// failed does not count (loss inversion).
    pub(super) lower_fps: Option<u64>,
    /// Smallest load that fails the goal.
    pub(super) upper_fps: Option<u64>,
}

impl TrialLedger {
    pub(super) fn new(goals: Vec<Goal>, range: Range) -> Result<Self, GoalError> {
        if goals.is_empty() {
            return Err(GoalError::NoGoal);
        }
        goals.iter().try_for_each(Goal::check_attributes)?;
        let Range { min_fps, max_fps } = range;
        if min_fps == 0 || min_fps > max_fps {
            return Err(GoalError::Range { min_fps, max_fps });
        }
        Ok(Self { goals, range, tried: Vec::new(), ignores_long: false, by_load: BTreeMap::new() })
    }

    /// Adds an outcome. `asked` is the trial that was due; one of another load or duration counts
    /// all the same, for no reason of the search's.
    pub(super) fn add(&mut self, asked: Option<LoadTrial>, outcome: TrialOutcome) {
        let is_asked = |trial: &LoadTrial| {
            (trial.load_fps, trial.duration_ns) == (outcome.load_fps, outcome.duration_ns)
        };
        let trial = asked.filter(is_asked).unwrap_or(LoadTrial {
            load_fps: outcome.load_fps,
            duration_ns: outcome.duration_ns,
            stop_at_lost: None,
            goal: 0,
            why: Why::Unasked,
        });
        let load = trial.load_fps;
        let mut tried = FinishedTrial { trial, outcome, bounds: Vec::new() };
        if !tried.counts() {
            self.tried.push(tried);
            return;
        }
        self.by_load.entry(load).or_default().push(self.tried.len());
        self.tried.push(tried.clone());
        tried.bounds = self.goals.iter().map(|goal| self.load_bound(goal, load)).collect();
        if let Some(last) = self.tried.last_mut() {
            *last = tried;
        }
    }

    /// Outcomes at a load that count for a goal.
    pub(super) fn outcomes(
        &self,
        goal: &Goal,
        load_fps: u64,
    ) -> impl Iterator<Item = &TrialOutcome> {
        let longest = if self.ignores_long { goal.final_duration_ns } else { u64::MAX };
        let indices = self.by_load.get(&load_fps).map_or(&[][..], Vec::as_slice);
        let outcomes = indices.iter().map(|index| &self.tried[*index].outcome);
        outcomes.filter(move |outcome| outcome.duration_ns <= longest)
    }

    /// Loads with trials, rising.
    pub(super) fn tested_loads(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.by_load.keys().copied()
    }

    pub(super) fn duration_sums(&self, goal: &Goal, load_fps: u64) -> DurationSums {
        DurationSums::from_outcomes(goal, self.outcomes(goal, load_fps))
    }

    pub(super) fn load_bound(&self, goal: &Goal, load_fps: u64) -> LoadBound {
        self.duration_sums(goal, load_fps).classify(goal).bound
    }

    pub(super) fn relevant(&self, goal: &Goal) -> RelevantBounds {
        let upper_fps =
            self.tested_loads().find(|load| self.load_bound(goal, *load) == LoadBound::Upper);
        let below = |load: &u64| upper_fps.is_none_or(|upper| *load < upper);
        let mut lower = self.tested_loads().rev().filter(below);
        let lower_fps = lower.find(|load| self.load_bound(goal, *load) == LoadBound::Lower);
        RelevantBounds { lower_fps, upper_fps }
    }

    /// Reason why the search cannot go on: too many invalid trials in a row.
    pub(super) fn give_up_reason(&self) -> Option<Invalid> {
        let mut last = self.tried.iter().rev().map(|tried| tried.outcome.invalidity());
        let reason = last.next()??;
        let more = last.take(INVALID_MAX - 1).filter(Option::is_some).count();
        (more == INVALID_MAX - 1).then_some(reason)
    }

    /// The trial counted last.
    pub(super) fn last_counted(&self) -> Option<&FinishedTrial> {
        self.tried.iter().rev().find(|tried| tried.counts())
    }

    /// A trial for a goal, with the number of lost frames that decides it for every goal.
    pub(super) fn trial_for_goal(
        &self,
        goal: usize,
        load_fps: u64,
        duration_ns: u64,
        why: Why,
    ) -> LoadTrial {
        let trial = LoadTrial { load_fps, duration_ns, stop_at_lost: None, goal, why };
        // What comes out at the maximum is a hint for the next load: that needs the whole trial.
        if duration_ns < EARLY_STOP_MIN_NS || matches!(why, Why::Maximum | Why::WarmUp) {
            return trial;
        }
        let loss = self.goals.iter().map(|goal| goal.loss_ratio).fold(0.0, f64::max);
        let allowed = loss * trial.frames() as f64;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share below 1 of a number of frames"
        )]
        let allowed = allowed as u64;
        LoadTrial { stop_at_lost: Some(allowed.saturating_add(1)), ..trial }
    }
}
