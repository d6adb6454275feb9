//! The refusal of a text that names no link, carrier or encapsulation.

use thiserror::Error;

/// A text that names no link, carrier or encapsulation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{input:?} is not {kind}: {reason}; write {accepted}")]
pub struct ParseNameError {
    pub(super) input: String,
    pub(super) kind: &'static str,
    pub(super) reason: String,
    pub(super) accepted: &'static str,
}

impl ParseNameError {
    pub(super) fn new(input: &str, kind: &'static str, accepted: &'static str) -> Self {
        let reason = "there is none of that name".to_owned();
        Self { input: shortened(input), kind, reason, accepted }
    }

    pub(super) fn because(self, reason: String) -> Self {
        Self { reason, ..self }
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
