//! Any bytes as replies of a mail server: no panic, a bounded part of them read for each, and a
//! text that breaks no line.

#[path = "../../crates/linerate-mesh/src/alert/reply.rs"]
mod reply;

use reply::SmtpReply;

/// What is read of one reply: lines times their length.
const REPLY_BYTES_MAX: usize = 100 * 1024;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let mut rest = bytes;
    loop {
        let before = rest.len();
        let read = SmtpReply::read(&mut rest);
        assert!(before - rest.len() <= REPLY_BYTES_MAX);
        let Ok(SmtpReply { code, text }) = read else { return };
        assert!(code < 1000 && before > rest.len());
        assert!(!text.contains(|c: char| c.is_control()), "{text:?}");
    }
}
