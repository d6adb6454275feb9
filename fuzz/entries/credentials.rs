//! Any bytes as credentials of iperf3's clients, decrypted, and as a file of its users: no panic,
//! credentials that survive being written again, and base64 that is what was packed.

use linerate_proto::iperf3::{Credentials, Users, from_base64, to_base64, token_bytes};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    assert_eq!(from_base64(&to_base64(bytes)).as_deref(), Some(bytes));
    if let Some(credentials) = Credentials::parse(bytes) {
        let text = credentials.to_text();
        assert_eq!(Credentials::parse(text.as_bytes()).as_ref(), Some(&credentials));
        let _ = (credentials.is_timely(0, 10), credentials.is_timely(i64::MIN, u64::MAX));
        assert!(credentials.salted().len() >= credentials.password.len() + 2);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Some(token) = token_bytes(text) {
        assert!(token.len() <= text.len() / 4 * 3);
    }
    match Users::parse(text) {
        Ok(users) => {
            assert!(users.len() <= text.lines().count());
            assert!(!users.has_digest("nobody of that name", &[0; 32]));
        }
        Err(error) => assert!(error.0 >= 1 && error.0 <= text.lines().count()),
    }
}
