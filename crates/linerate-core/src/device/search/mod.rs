//! Searches over trials: which load comes next, and what the trials together say.
//!
//! A search is a machine without clock and interface: [`Controller::next`] names the next trial,
//! [`Controller::add_outcome`] takes its outcome. The proposals of a search depend on the outcomes
//! alone, so giving a new one the same outcomes in the same order brings it to the same state: that
//! is how a run is resumed.
//!
//! Sources: RFC 2544 §23, §24 and §26; RFC 9971 (MLRsearch); ETSI GS NFV-TST 009 §12.3.

mod binary;
mod classify;
mod goal;
mod integer;
mod ledger;
mod multi;
mod result;
mod step_down;
mod trial;

pub use binary::BinarySearch;
pub use classify::{Classification, DurationSums};
pub use goal::{Goal, GoalError, WIDTH};
pub use integer::IntegerSearch;
pub use multi::MultiSearch;
pub use result::{GoalResult, Status};
pub use step_down::StepDown;
pub use trial::{FinishedTrial, Invalid, LoadBound, LoadTrial, SHORTFALL_MAX, TrialOutcome, Why};

/// Invalid trials in a row after which a search gives up.
pub const INVALID_MAX: usize = 3;

/// Next move of a search.
#[derive(Clone, Debug, PartialEq)]
pub enum NextTrial<T> {
    /// Run this trial and report its outcome.
    Trial(T),
    /// The search has ended; the results are final.
    Done,
}

impl<T> NextTrial<T> {
    /// The trial, unless all is done.
    pub fn into_trial(self) -> Option<T> {
        match self {
            Self::Trial(trial) => Some(trial),
            Self::Done => None,
        }
    }
}

/// A machine that asks for trials.
///
/// ```
/// # use linerate_core::device::search::{Controller, Goal, MultiSearch, Range, TrialOutcome};
/// // A device that forwards 1,000 frames per second and loses the rest.
/// let range = Range { min_fps: 10, max_fps: 2_000 };
/// let mut search = MultiSearch::new(vec![Goal::typical()], range).expect("goals");
/// while let Some(trial) = search.next().into_trial() {
///     let sent = trial.frames();
///     let received = sent.min(1_000 * trial.duration_ns / 1_000_000_000);
///     search.add_outcome(TrialOutcome::complete(&trial, sent, received));
/// }
/// let result = &search.results()[0];
/// assert!(result.lower_fps.is_some_and(|fps| (995..=1_000).contains(&fps)));
/// ```
pub trait Controller {
    /// Trial that the search asks for.
    type Trial;
    /// Outcome of such a trial.
    type Outcome;

    /// The next trial; the same one until [`Controller::add_outcome`] is called.
    fn next(&self) -> NextTrial<Self::Trial>;

    /// Adds the outcome of a trial, an invalid one too.
    fn add_outcome(&mut self, outcome: Self::Outcome);

    /// Takes outcomes of an earlier run in their order.
    fn replay(&mut self, outcomes: impl IntoIterator<Item = Self::Outcome>)
    where
        Self: Sized,
    {
        outcomes.into_iter().for_each(|outcome| self.add_outcome(outcome));
    }
}

/// Loads that a search may ask for, frames per second of each port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The smallest, above 0.
    pub min_fps: u64,
    /// The largest: the medium's rate or the tester's own ceiling.
    pub max_fps: u64,
}
