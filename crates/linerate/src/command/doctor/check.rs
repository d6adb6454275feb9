//! One checked thing: how fit it is, what was found, and the line that mends it.

use serde::Serialize;

/// Result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// The host is fit.
    Ok,
    /// Some measurements are limited.
    Warn,
    /// Measurements on this host are spoiled.
    Bad,
}

/// One check, its finding and its remedy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct HostCheck {
    pub(super) name: String,
    pub(super) state: State,
    pub(super) found: String,
    pub(super) good: bool,
    /// The line that mends it; null when nothing is to be mended.
    pub(super) remedy: Option<String>,
}

impl HostCheck {
    /// A check whose finding is fit.
    pub(super) fn with_ok_state(name: impl Into<String>, found: impl Into<String>) -> Self {
        let (name, found) = (name.into(), found.into());
        Self { name, state: State::Ok, found, good: true, remedy: None }
    }

    /// The same check with a worse state and its remedy.
    pub(super) fn with_state(self, state: State, remedy: impl Into<String>) -> Self {
        Self { state, good: state == State::Ok, remedy: Some(remedy.into()), ..self }
    }

    /// The same, doubtful unless it is good.
    pub(super) fn or_warn(self, good: bool, remedy: impl Into<String>) -> Self {
        if good { self } else { self.with_state(State::Warn, remedy) }
    }
}
