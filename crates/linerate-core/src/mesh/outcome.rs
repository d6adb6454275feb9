//! Outcomes of runs, a few: reasons are sentences, and a count needs a bound.

use crate::record::named;
use crate::schedule::RunState;

/// Outcome of a run: its state, and of a gap its cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RunOutcome {
    /// It brought a result.
    Ok,
    /// It ended without one.
    Failed,
    /// It was not over when its slot was.
    Late,
    /// The agent did not run at its time.
    NotRunning,
    /// Another run or a survey went on.
    Busy,
    /// The agent's clock was too far from the hub's.
    Clock,
    /// The agent was killed during it.
    Killed,
    /// Its result was dropped from a full spool.
    SpoolFull,
    /// It could not be written down.
    DiskFull,
    /// Its booking was refused, or came too late.
    Booking,
    /// Another program with the agent's secret was to make it.
    Double,
    /// The hub's store had it and was restored from an older copy.
    SetBack,
}

named!(RunOutcome {
    Ok = "ok",
    Failed = "failed",
    Late = "late",
    NotRunning = "not_running",
    Busy = "busy",
    Clock = "clock",
    Killed = "killed",
    SpoolFull = "spool_full",
    DiskFull = "disk_full",
    Booking = "booking",
    Double = "double",
    SetBack = "set_back",
});

/// Begins of reasons as agents give them, with the outcome of each.
const REASONS: [(&str, RunOutcome); 10] = [
    ("the schedule did not run then", RunOutcome::NotRunning),
    ("a run of ", RunOutcome::Busy),
    ("the survey of ", RunOutcome::Busy),
    ("the clock was ", RunOutcome::Clock),
    (SPOOL_FULL, RunOutcome::SpoolFull),
    (DISK_FULL, RunOutcome::DiskFull),
    ("the booking was ", RunOutcome::Booking),
    (DOUBLE, RunOutcome::Double),
    (SET_BACK, RunOutcome::SetBack),
    ("it was not over when its slot was", RunOutcome::Late),
];

/// The reason of a run whose result was dropped from a full spool.
pub const SPOOL_FULL: &str = "the spool was full";
/// The reason of a run that could not be written down.
pub const DISK_FULL: &str = "the disk was full";

/// The reason of a run that another program with the agent's secret was to make.
pub const DOUBLE: &str = "another program was this agent";
/// The reason of a run whose result was dropped here, and which the hub's store does not know any
/// more.
pub const SET_BACK: &str = "the hub's store was set back";

impl RunOutcome {
    /// The outcome of a run that ended in a state, for a reason.
    pub fn from_end(state: RunState, reason: Option<&str>) -> Self {
        if state == RunState::Ok {
            return Self::Ok;
        }
        let known = |text: &str| REASONS.iter().find(|(begin, _)| text.starts_with(begin));
        match (reason.and_then(known), state) {
            (Some((_, outcome)), _) => *outcome,
            (None, RunState::Lost) => Self::Killed,
            (None, _) => Self::Failed,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::booking::UNHEARD;
    use super::*;
    use RunState::{Failed, Lost, Missed, Ok};

    #[test]
    fn each_reason_of_an_agent_has_its_word_and_any_other_is_a_failure() {
        for (state, reason, word) in [
            (Ok, None, "ok"),
            (Missed, Some("the schedule did not run then"), "not_running"),
            (Missed, Some("a run of rate/b went on"), "busy"),
            (Missed, Some("the clock was +3.1 s from the hub's"), "clock"),
            (Lost, Some("the schedule was killed during it"), "killed"),
            (Lost, Some("the spool was full: its result was dropped"), "spool_full"),
            (Lost, Some("the disk was full"), "disk_full"),
            (Missed, Some("the booking was refused: its hour is spent"), "booking"),
            (Missed, Some(UNHEARD), "booking"),
            (Missed, Some(DOUBLE), "double"),
            (Lost, Some("the hub's store was set back: its result was dropped"), "set_back"),
            (Failed, Some("it was not over when its slot was"), "late"),
            (Failed, Some("connect 192.0.2.1: refused"), "failed"),
            (Failed, None, "failed"),
        ] {
            let outcome = RunOutcome::from_end(state, reason);
            assert_eq!(outcome.name(), word, "{state}: {reason:?}");
            assert_eq!(word.parse(), Result::Ok(outcome));
        }
    }
}
