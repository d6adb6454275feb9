//! The cookie: 36 characters and a zero byte, made by the client, that begin every connection of a
//! test. A server compares it and nothing else, so any visible ASCII is taken, not only the
//! alphabet `a-z2-7` that iperf3 itself uses, and a 37th character in place of the zero byte.

use std::fmt;

use super::WireError;

/// Length of a cookie on the wire.
pub const COOKIE_BYTES: usize = 37;

/// Characters of an own cookie.
const CHARACTERS: usize = COOKIE_BYTES - 1;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What ties the connections of a test together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A cookie of random bytes, five bits of each.
    pub fn from_random(random: [u8; CHARACTERS]) -> Self {
        let mut cookie = [0; COOKIE_BYTES];
        let characters = random.map(|byte| ALPHABET[usize::from(byte & 31)]);
        cookie[..CHARACTERS].copy_from_slice(&characters);
        Self(cookie)
    }

    /// Reads the first bytes of a connection.
    /// # Errors
    /// [`WireError::Cookie`] when they are not 36 visible characters and another or a zero byte.
    pub fn parse(bytes: &[u8; COOKIE_BYTES]) -> Result<Self, WireError> {
        let mut start = [0; 8];
        start.copy_from_slice(&bytes[..8]);
        let (characters, end) = bytes.split_at(CHARACTERS);
        let ends = end == [0] || end[0].is_ascii_graphic();
        if !ends || !characters.iter().all(u8::is_ascii_graphic) {
            return Err(WireError::Cookie(start));
        }
        Ok(Self(*bytes))
    }

    /// Its bytes.
    pub const fn to_bytes(self) -> [u8; COOKIE_BYTES] {
        self.0
    }

    /// Its characters, as `-V` and `-J` print them.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end_matches('\0').to_owned()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}
