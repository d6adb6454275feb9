//! The token by which a client shows a server's policy who it is. It stands beside a plan and is in
//! no record: it is neither stored, nor sent as it is, nor printed.

use std::fmt;
use std::sync::Arc;

/// A secret text of 1 to 256 bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct AccessToken(Arc<str>);

impl AccessToken {
    /// Longest token, in bytes.
    pub const BYTES_MAX: usize = 256;

    /// A token without the white space around it; `None` where nothing is left, where it is longer
    /// than [`Self::BYTES_MAX`], and where a line or a header field could not hold it.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        let plain = text.bytes().all(|byte| byte.is_ascii_graphic());
        (fits && plain).then(|| Self(text.into()))
    }

    /// Bytes of the token.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }
}

impl fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AccessToken(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Plan, ServerPlan, TcpPlan, TracePlan};

    #[test]
    fn a_token_is_one_word_and_stays_out_of_what_is_stored_and_printed() {
        let token = AccessToken::new(" s3cret\n").expect("one word");
        assert_eq!(token.as_bytes(), b"s3cret");
        let long = "x".repeat(257);
        for wrong in ["", " \n", "two words", "caf\u{e9}", long.as_str()] {
            assert!(AccessToken::new(wrong).is_none(), "{wrong:?}");
        }
        let server = ServerPlan { token: Some(token.clone()), ..ServerPlan::new(None, "h", 1) };
        let tcp = Plan::Tcp(TcpPlan { server, ..TcpPlan::default() });
        let trace = Plan::Trace(TracePlan { token: Some(token), ..TracePlan::default() });
        for plan in [tcp, trace] {
            let stored = crate::tree::to_json(&plan).expect("plain data");
            assert!(!stored.contains("s3cret") && !stored.contains("token"), "{stored}");
            assert!(!format!("{plan:?}").contains("s3cret"));
            let read: Plan = crate::tree::from_json(&stored).expect("as it was stored");
            assert_ne!(read, plan, "the token is gone");
        }
    }
}
