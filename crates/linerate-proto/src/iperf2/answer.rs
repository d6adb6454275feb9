//! The server's answer to a header with an extension, big-endian, 28 bytes:
//!
//! ```text
//!  0 type (2) | 4 length (28) | 8 flags | 12 version (4 + 4) | 20 reserved (8)
//! ```
//!
//! With trip times 24 bytes of time stamps follow and the length is 52; they are not sent here.

use super::Iperf2Version;
use super::read_be_u32;

/// Bytes of the answer.
pub const ANSWER_BYTES: usize = 28;

const TYPE: u32 = 2;

/// The server's answer to a client's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Iperf2Answer {
    /// Version of the server.
    pub version: Iperf2Version,
}

impl Iperf2Answer {
    /// The 28 bytes on the wire.
    pub fn to_bytes(self) -> [u8; ANSWER_BYTES] {
        let mut bytes = [0; ANSWER_BYTES];
        let words = [TYPE, ANSWER_BYTES as u32, 0, self.version.upper, self.version.lower];
        for (field, word) in bytes.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_be_bytes());
        }
        bytes
    }

    /// Parses the start of a server's bytes; `None` where they are no answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let length = read_be_u32(bytes, 4)? as usize;
        let fits =
            read_be_u32(bytes, 0)? == TYPE && length >= ANSWER_BYTES && bytes.len() >= ANSWER_BYTES;
        let version =
            Iperf2Version { upper: read_be_u32(bytes, 12)?, lower: read_be_u32(bytes, 16)? };
        fits.then_some(Self { version })
    }
}
