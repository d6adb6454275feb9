//! Any bytes as the answer to what is handed on by POST: no panic, and a status that is the same
//! however much of the answer has come by then.

#[path = "../../crates/linerate-outbound/src/status.rs"]
mod status;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let found = status::status(bytes);
    assert!(found.is_none_or(|status| status < 100 || (200..1000).contains(&status)));
    for cut in [bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(1)] {
        // Of bytes that are no text a cut may make other ones: they become replacements.
        let is_text = std::str::from_utf8(bytes).is_ok();
        let before = status::status(&bytes[..cut]);
        assert!(!is_text || before.is_none() || before == found, "{before:?} and {found:?}");
    }
}
