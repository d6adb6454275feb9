//! Why a text is not a quantity: one line that names the input and what is accepted.

use thiserror::Error;

/// A text that is not the quantity it should be.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{input:?} is not {quantity}: {reason}; write {accepted}")]
pub struct ParseUnitError {
    input: String,
    quantity: &'static str,
    reason: UnitErrorReason,
    accepted: &'static str,
}

/// The error in the text.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum UnitErrorReason {
    #[error("it is empty")]
    Empty,
    #[error("it is negative")]
    Negative,
    #[error("it does not start with a number")]
    NotANumber,
    #[error("it is too large")]
    TooLarge,
    #[error("it rounds to zero")]
    RoundsToZero,
    #[error("unknown unit {0:?}")]
    UnknownUnit(String),
    #[error("{0}")]
    Other(String),
}

impl UnitErrorReason {
    pub(super) fn unknown_unit(unit: &str) -> Self {
        Self::UnknownUnit(shortened(unit))
    }
}

/// Name of a type's quantity and the texts that it accepts, for its messages.
#[derive(Clone, Copy)]
pub(super) struct QuantityInfo {
    /// Name with its article: `a rate`.
    pub(super) name: &'static str,
    /// Examples: `155.52 Mbit/s, 10G or 64kbps`.
    pub(super) accepted: &'static str,
}

impl QuantityInfo {
    pub(super) fn refuse(self, input: &str, reason: UnitErrorReason) -> ParseUnitError {
        ParseUnitError {
            input: shortened(input),
            quantity: self.name,
            reason,
            accepted: self.accepted,
        }
    }
}

/// Characters of a refused input that a message repeats.
const SHOWN_CHARS: usize = 40;

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
