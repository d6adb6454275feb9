//! Why a measurement did not end well, and whose turn it is.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::one_line;

/// Whose turn it is to fix things.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The caller: a flag, a file, a name.
    Usage,
    /// A fault of this host: privilege, memory, a missing facility.
    System,
    /// The other end could not be reached, or went away.
    Unreachable,
    /// The other end violated the protocol.
    PeerMisbehaved,
    /// The other end has another version or lacks a feature.
    PeerIncompatible,
    /// The other end refused, for good or for now.
    PeerRefused,
    /// Too little of the instrument's own machine was left for an honest number.
    Instrument,
    /// The path corrupted data: the bytes received are not those sent.
    Corrupted,
}

/// The failures that a program acts on. Texts are for people and may be reworded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// This host has no sockets of the kind or family that was asked for.
    OpenSocket,
    /// The name has no address, or no connection was opened.
    Connect,
    /// A local address could not be bound, or not be listened on.
    Listen,
    /// A socket could not be bound to an interface.
    BindDevice,
    /// The kernel does not have a congestion control.
    CongestionControl,
    /// No data arrived for longer than the user allows.
    NoData,
    /// The other end closed the control connection.
    Closed,
    /// The client aborted the test.
    Aborted,
    /// The server was interrupted.
    Interrupted,
    /// The disk has no room for the results.
    NoRoom,
    /// No stored result has the name.
    NoResult,
    /// The other end sent this error number of its protocol.
    Peer(i16),
}

/// One line: the operation, its object, the reason, and the next step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Failure {
    /// Whose turn it is.
    pub fault: Fault,
    /// The operation that failed: `connect`, `bind UDP`, `read plan`.
    pub attempt: String,
    /// Object of the operation: an address, a file, a flag.
    pub object: String,
    /// The reason of the failure.
    pub reason: String,
    /// Advice: the user's next step, where one is known.
    pub next_step: Option<String>,
    /// Time after which another try may succeed, where the other end is busy and says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// The kind of failure, for programs; not stored.
    #[serde(skip)]
    pub code: Option<FailureCode>,
}

impl Failure {
    /// A failure without advice. Whatever its parts hold, it is one line ([`one_line`]).
    pub fn new(
        fault: Fault,
        attempt: impl Into<String>,
        object: impl Into<String>,
        reason: impl fmt::Display,
    ) -> Self {
        Self {
            fault,
            attempt: one_line(&attempt.into()),
            object: one_line(&object.into()),
            reason: one_line(&reason.to_string()),
            next_step: None,
            retry_after_ms: None,
            code: None,
        }
    }

    /// The same failure with advice.
    #[must_use]
    pub fn advise(mut self, next_step: impl Into<String>) -> Self {
        self.next_step = Some(one_line(&next_step.into()));
        self
    }

    /// The same failure of an other end that is busy: another try may succeed after this long.
    #[must_use]
    pub const fn retry_after(mut self, ms: u64) -> Self {
        self.retry_after_ms = Some(ms);
        self
    }

    /// The same failure with a code that a program can act on.
    #[must_use]
    pub fn with_code(self, code: impl Into<Option<FailureCode>>) -> Self {
        Self { code: code.into(), ..self }
    }

    /// True when the other end was only busy: a later try may find a place.
    pub const fn is_busy(&self) -> bool {
        self.retry_after_ms.is_some()
    }

    /// The exit code of the program: 1 when the path corrupted data, 2 for the caller and this
    /// host, 3 for the other end, 4 when it refused, 6 when this host distorted the number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_peer_sent_cannot_break_the_line_or_reach_the_terminal() {
        let failure = Failure::new(Fault::PeerMisbehaved, "talk to", "h\n", "type `\u{1b}[2J\n`");
        assert_eq!(failure.to_string(), "talk to h\\n: type `\\u{1b}[2J\\n`");
        assert_eq!(failure.advise("a\rb").next_step.as_deref(), Some("a\\rb"));
    }

    #[test]
    fn a_failure_of_an_earlier_version_is_read_and_one_that_is_no_wait_is_written_as_before() {
        let json = r#"{"fault":"peer_refused","attempt":"a","object":"b","reason":"c",
            "next_step":null}"#;
        let failure: Failure = crate::tree::from_json(json).expect("a failure");
        assert!(!failure.is_busy());
        let text = crate::tree::to_json(&failure).expect("plain data");
        assert!(!text.contains("retry_after_ms"), "{text}");
        assert!(failure.retry_after(1000).is_busy());
    }
}
