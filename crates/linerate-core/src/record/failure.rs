//! Why a measurement did not end well, and whose turn it is.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose turn it is to mend things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The caller: a flag, a file, a name.
    Usage,
    /// This host: privilege, memory, a missing facility.
    System,
    /// The other end could not be reached, or went away.
    Unreachable,
    /// The other end sent what the protocol does not allow.
    PeerMisbehaved,
    /// The other end speaks another version or lacks a feature.
    PeerIncompatible,
    /// The other end said no, or not now.
    PeerRefused,
    /// Too little of the instrument's own machine was left for an honest number.
    Instrument,
    /// The path: what came is not what was sent.
    Corrupted,
}

/// One line: what was attempted, on what, why it failed, what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failure {
    /// Whose turn it is.
    pub fault: Fault,
    /// What was attempted: `connect`, `bind UDP`, `read plan`.
    pub attempt: String,
    /// On what: an address, a file, a flag.
    pub object: String,
    /// Why it failed.
    pub reason: String,
    /// What to do about it, where that is known.
    pub next_step: Option<String>,
}

impl Failure {
    /// A failure without advice.
    pub fn new(
        fault: Fault,
        attempt: impl Into<String>,
        object: impl Into<String>,
        reason: impl fmt::Display,
    ) -> Self {
        Self {
            fault,
            attempt: attempt.into(),
            object: object.into(),
            reason: reason.to_string(),
            next_step: None,
        }
    }

    /// The same failure with advice.
    #[must_use]
    pub fn advise(mut self, next_step: impl Into<String>) -> Self {
        self.next_step = Some(next_step.into());
        self
    }

    /// The exit code of the program: 1 when the path spoiled what it carried, 2 for the caller and
    /// this host, 3 for the other end, 4 when it refused, 6 when this host spoiled the number.
    pub const fn exit_code(&self) -> u8 {
        match self.fault {
            Fault::Corrupted => 1,
            Fault::Usage | Fault::System => 2,
            Fault::Unreachable | Fault::PeerMisbehaved | Fault::PeerIncompatible => 3,
            Fault::PeerRefused => 4,
            Fault::Instrument => 6,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.attempt, self.object, self.reason)?;
        if let Some(next_step) = &self.next_step {
            write!(f, "; {next_step}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}
