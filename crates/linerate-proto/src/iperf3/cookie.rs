//! The cookie: 36 characters and a zero byte, made by the client, that begin every connection of a
//! test. A server only compares it, so any visible ASCII is accepted, not only the alphabet
//! `a-z2-7` that iperf3 itself uses, and a 37th character in place of the zero byte.

use std::fmt;

use super::WireError;

/// Bytes of a cookie on the wire.
pub const COOKIE_BYTES: usize = 37;

/// Characters of a cookie without the zero byte.
const CHARACTERS: usize = COOKIE_BYTES - 1;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Random text that identifies the connections of a test.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A cookie made of the low five bits of each random byte.
    pub fn from_random(random: [u8; CHARACTERS]) -> Self {
        let mut cookie = [0; COOKIE_BYTES];
        let characters = random.map(|byte| ALPHABET[usize::from(byte & 31)]);
        cookie[..CHARACTERS].copy_from_slice(&characters);
        Self(cookie)
    }

    /// Parses the first bytes of a connection.
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

    /// The 37 bytes on the wire.
    pub const fn to_bytes(self) -> [u8; COOKIE_BYTES] {
        self.0
    }

    /// The characters, as `-V` and `-J` print them.
    pub fn printable_text(&self) -> String {
        String::from_utf8_lossy(&self.0).trim_end_matches('\0').to_owned()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}
