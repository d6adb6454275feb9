//! Causes in words.

use linerate_core::record::Cause;

use crate::words;

/// A cause in words, by the table of causes.
pub(crate) const fn name(cause: Cause) -> &'static str {
    cause.name()
}

/// Causes as a list in words.
pub(crate) fn listed(causes: &[Cause]) -> String {
    words::listed(&causes.iter().map(|cause| name(*cause).to_owned()).collect::<Vec<_>>())
}
