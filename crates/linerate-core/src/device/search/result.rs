//! What a search found for a goal.

use serde::{Deserialize, Serialize};

use super::classify::conditional_fps;
use super::goal::Goal;
use super::ledger::{RelevantBounds, TrialLedger};
use super::trial::{Invalid, TrialOutcome};

/// Status of a search for a goal at its end. Only `Regular` is a regular goal result of RFC 9971.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Both bounds were found, within the goal's width.
    Regular,
    /// The largest load passes: the device may be able to do more.
    AtMaximum,
    /// The smallest load fails.
    BelowMinimum,
    /// Trials were invalid again and again.
    Invalid(Invalid),
    /// The search was not finished.
    Unfinished,
}

/// The result for a goal. Loads are frames per second of each port.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GoalResult {
    /// Goal that was searched for.
    pub goal: Goal,
    /// End of the search for it.
    pub status: Status,
    /// Relevant lower bound: the throughput of this goal.
    pub lower_fps: Option<u64>,
    /// Relevant upper bound, the smallest load that fails.
    pub upper_fps: Option<u64>,
    /// Conditional throughput at the lower bound.
    pub conditional_fps: Option<f64>,
    /// Load really offered at the lower bound: the mean of its trials (RFC 2285 §3.5.2).
    pub offered_fps: Option<f64>,
    /// Frames of the trials without loss at the lower bound; with `zero_loss_bound` they show the
    /// precision of "no loss".
    pub clean_frames: u64,
    /// The upper bound failed because the tester did not send what was asked, and not because of
    /// lost frames: the limit is the tester's.
    pub is_tester_limit: bool,
    /// Trials for this goal in the first place; invalid ones too.
    pub trials: u64,
    /// Time of sending in those trials, ns.
    pub sending_ns: u64,
}

impl GoalResult {
    pub(super) fn from_ledger(ledger: &TrialLedger, index: usize, status: Status) -> Self {
        let goal = &ledger.goals[index];
        let RelevantBounds { lower_fps, upper_fps } = ledger.relevant(goal);
        let at = |load: Option<u64>| -> Vec<&TrialOutcome> {
            load.map_or_else(Vec::new, |load| ledger.outcomes(goal, load).collect())
        };
        let (lower, upper) = (at(lower_fps), at(upper_fps));
        let own = ledger.tried.iter().filter(|tried| tried.trial.goal == index);
        let clean = lower.iter().filter(|outcome| outcome.lost_frames() == 0);
        let mut failed =
            upper.iter().filter(|outcome| outcome.loss_ratio() > goal.loss_ratio).peekable();
        Self {
            goal: goal.clone(),
            status,
            lower_fps,
            upper_fps,
            conditional_fps: lower_fps.and_then(|load| conditional_fps(goal, load, &lower)),
            offered_fps: mean_of(lower.iter().filter_map(|outcome| outcome.offered_fps())),
            clean_frames: clean.map(|outcome| outcome.sent).sum(),
            is_tester_limit: failed.peek().is_some()
                && failed.all(|outcome| outcome.is_short() && outcome.lost_frames() == 0),
            trials: own.clone().count() as u64,
            sending_ns: own.map(|tried| tried.outcome.elapsed_ns).sum(),
        }
    }

    /// Largest loss ratio, at 95 %, that the clean frames at the lower bound leave possible; `None`
    /// without such frames.
    pub fn zero_loss_bound(&self) -> Option<f64> {
        super::super::poisson::zero_loss_bound(self.clean_frames)
    }
}

fn mean_of(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}
