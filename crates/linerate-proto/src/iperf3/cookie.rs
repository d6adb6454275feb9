//! The cookie: 36 characters and a zero byte, made by the client, that begin every connection of a
//! test. A server compares it and nothing else, so any visible ASCII is taken, not only the
//! alphabet `a-z2-7` that iperf3 itself uses.

use std::fmt;

use super::WireError;

/// Length of a cookie on the wire.
pub const COOKIE_BYTES: usize = 37;

const CHARACTERS: usize = COOKIE_BYTES - 1;
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// What ties the connections of a test together.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cookie([u8; CHARACTERS]);

impl Cookie {
    /// A cookie of random bytes, five bits of each.
    pub fn from_random(random: [u8; CHARACTERS]) -> Self {
        Self(random.map(|byte| ALPHABET[usize::from(byte & 31)]))
    }

    /// Reads the first bytes of a connection.
    /// # Errors
    /// [`WireError::Cookie`] when they are not 36 visible characters and a zero byte.
    pub fn parse(bytes: &[u8; COOKIE_BYTES]) -> Result<Self, WireError> {
        let mut start = [0; 8];
        start.copy_from_slice(&bytes[..8]);
        let (characters, end) = bytes.split_at(CHARACTERS);
        if end != [0] || !characters.iter().all(u8::is_ascii_graphic) {
            return Err(WireError::Cookie(start));
        }
        let mut cookie = [0; CHARACTERS];
        cookie.copy_from_slice(characters);
        Ok(Self(cookie))
    }

    /// Its bytes.
    pub fn to_bytes(self) -> [u8; COOKIE_BYTES] {
        let mut bytes = [0; COOKIE_BYTES];
        bytes[..CHARACTERS].copy_from_slice(&self.0);
        bytes
    }

    /// Its characters, as `-V` and `-J` print them.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl fmt::Debug for Cookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cookie(…)")
    }
}
