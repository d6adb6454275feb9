//! A run of a schedule or of a mesh: what asked for it, how far it came, what it left. Stores,
//! messages, files and pages have it by the same words.

use serde::{Deserialize, Serialize};

use crate::record::named;

/// A run of a plan, which names it together with its task and its begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRun {
    /// Its task; in a mesh with the other agent: `rate/b`.
    pub task: String,
    /// Its begin, seconds since 1970-01-01 UTC.
    pub start_s: i64,
    /// Its cause.
    pub why: RunWhy,
    /// How far it came.
    pub state: RunState,
    /// Why there is no result.
    pub reason: Option<String>,
    /// Identifier of the record that it left.
    pub record: Option<String>,
}

/// Progress of a run, and its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Begun and not ended.
    #[default]
    Running,
    /// Ended with a result.
    Ok,
    /// Ended without one.
    Failed,
    /// Not begun at its time.
    Missed,
    /// Not begun, because a survey of its task took its place.
    Displaced,
    /// Begun, and its end or its result is gone.
    Lost,
}

named!(RunState {
    Running = "running",
    Ok = "ok",
    Failed = "failed",
    Missed = "missed",
    Displaced = "displaced",
    Lost = "lost",
});

/// Cause of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunWhy {
    /// The calendar.
    #[default]
    Calendar,
    /// A change that is suspected.
    Confirm,
    /// A change that was found: its survey tells what limits the path now.
    Survey,
    /// A booking beside the calendar of a mesh.
    Booked,
}

named!(RunWhy {
    Calendar = "calendar",
    Confirm = "confirm",
    Survey = "survey",
    Booked = "booked",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_the_same_in_text_and_json_and_another_is_refused_with_those_that_are_known() {
        for state in RunState::ALL {
            assert_eq!(state.name().parse(), Ok(*state));
            let json = crate::tree::to_json(state).expect("JSON");
            assert_eq!(json, format!("\"{state}\""));
            assert_eq!(crate::tree::from_json::<RunState>(&json).expect("the same"), *state);
        }
        for why in RunWhy::ALL {
            assert_eq!(why.name().parse(), Ok(*why));
            assert_eq!(crate::tree::to_json(why).expect("JSON"), format!("\"{why}\""));
        }
        let refused = "one of running, ok, failed, missed, displaced, lost";
        assert_eq!("done".parse::<RunState>(), Err(refused.to_owned()));
        assert!(crate::tree::from_json::<RunWhy>("\"done\"").is_err());
    }
}
