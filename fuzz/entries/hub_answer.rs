//! Any bytes as what a hub answers its agent over HTTP: no panic, an answer that is as long as it
//! says, and none that is cut.

#[path = "../../crates/linerate-mesh/src/answer.rs"]
mod answer;
#[allow(clippy::duplicate_mod, reason = "an entry stands alone in its fuzz target")]
#[path = "../../crates/linerate-mesh/src/pack.rs"]
#[allow(dead_code, reason = "the answer takes the name of the encoding alone")]
mod pack;

use answer::HubAnswer;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Some(HubAnswer { status, is_packed, body }) = HubAnswer::parse(bytes) else { return };
    assert!(status < 1000);
    assert!(bytes.ends_with(body) && bytes.len() > body.len());
    if is_packed {
        assert!(String::from_utf8_lossy(bytes).to_ascii_lowercase().contains(pack::GZIP));
    }
    // Whatever is missing at the end, it is no answer.
    assert_eq!(HubAnswer::parse(&bytes[..bytes.len() - 1]), None);
    let head = bytes.len() - body.len();
    assert_eq!(HubAnswer::parse(&bytes[..head - 1]), None);
}
