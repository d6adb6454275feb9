//! Bytes of the control connection: states of one byte, JSON after a 4-byte big-endian length,
//! and the two numbers after a server error.

use super::{ErrorCode, State};

/// Violation of the protocol by a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A connection does not begin with a cookie.
    #[error("not an iperf3 peer: it begins with \"{}\"", .0.escape_ascii())]
    Cookie([u8; 8]),
    /// An unknown control byte.
    #[error("unknown control byte {0}")]
    State(i8),
    /// A control byte out of order.
    #[error("unexpected {got} while waiting for {expected}")]
    Order {
        /// The received state.
        got: &'static str,
        /// The message that the current step expects.
        expected: &'static str,
    },
    /// A document of length zero or beyond its limit.
    #[error("{what} of {bytes} bytes; at most {bytes_max} are allowed")]
    Length {
        /// Name of the document.
        what: &'static str,
        /// Announced length of the document.
        bytes: usize,
        /// Largest allowed length.
        bytes_max: usize,
    },
    /// A document that is no JSON object.
    #[error("malformed {what}: {reason}")]
    Json {
        /// Name of the document.
        what: &'static str,
        /// Text of the parser's error.
        reason: String,
    },
    /// A key with a value of the wrong type.
    #[error("malformed {what}: {key} is {value}")]
    Field {
        /// Name of the document.
        what: &'static str,
        /// Key with the invalid value.
        key: &'static str,
        /// The value, or its type.
        value: String,
    },
}

/// Prefixes a JSON text with its length.
pub fn frame_json(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + json.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(json.as_bytes());
    bytes
}

/// Bytes of a server error: the state, iperf3's number and the kernel's errno.
pub fn server_error(code: ErrorCode, errno: i32) -> [u8; 9] {
    let mut bytes = [0; 9];
    bytes[0] = State::ServerError.to_byte();
    bytes[1..5].copy_from_slice(&code.0.to_be_bytes());
    bytes[5..9].copy_from_slice(&errno.to_be_bytes());
    bytes
}

/// Received bytes that have not been parsed: at most one document and the bytes after it.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
}

impl Inbox {
    /// Adds received bytes.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next control byte.
    pub(super) fn next_state(&mut self) -> Result<Option<State>, WireError> {
        let Some(&byte) = self.buffer.first() else { return Ok(None) };
        self.buffer.drain(..1);
        let state = State::from_byte(byte).ok_or_else(|| WireError::State(byte.cast_signed()))?;
        Ok(Some(state))
    }

    /// The next document, once it is complete; too large a length is refused before its bytes
    /// arrive.
    pub(super) fn document(
        &mut self,
        what: &'static str,
        bytes_max: usize,
    ) -> Result<Option<Vec<u8>>, WireError> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let bytes = u32::from_be_bytes(*prefix) as usize;
        if bytes == 0 || bytes > bytes_max {
            return Err(WireError::Length { what, bytes, bytes_max });
        }
        let Some(text) = self.buffer.get(4..4 + bytes) else { return Ok(None) };
        let text = text.to_vec();
        self.buffer.drain(..4 + bytes);
        Ok(Some(text))
    }

    /// The first number after a server error.
    pub(super) fn error_number(&self) -> Option<ErrorCode> {
        self.buffer.first_chunk().map(|bytes| ErrorCode(i32::from_be_bytes(*bytes)))
    }

    /// The numbers after a server error: iperf3's and the kernel's.
    pub(super) fn error_numbers(&mut self) -> Option<(ErrorCode, i32)> {
        let bytes = *self.buffer.first_chunk::<8>()?;
        self.buffer.drain(..8);
        let [a, b, c, d, errno @ ..] = bytes;
        Some((ErrorCode(i32::from_be_bytes([a, b, c, d])), i32::from_be_bytes(errno)))
    }
}
