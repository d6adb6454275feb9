//! Bytes of the control connection: states of one byte, JSON behind a 4-byte big-endian length,
//! and the two numbers behind a server error.

use super::{ErrorCode, State};

/// What a peer sent that the protocol does not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A connection does not begin with a cookie.
    #[error("not an iperf3 peer: it begins with \"{}\"", .0.escape_ascii())]
    Cookie([u8; 8]),
    /// A control byte without a meaning.
    #[error("unknown control byte {0}")]
    State(i8),
    /// A control byte that does not belong here.
    #[error("unexpected {got} while waiting for {expected}")]
    Order {
        /// What came.
        got: &'static str,
        /// What would have been in order.
        expected: &'static str,
    },
    /// A document of length zero or beyond its limit.
    #[error("{what} of {bytes} bytes; at most {bytes_max} are allowed")]
    Length {
        /// Which document.
        what: &'static str,
        /// Its announced length.
        bytes: usize,
        /// The limit.
        bytes_max: usize,
    },
    /// A document that is no JSON object.
    #[error("malformed {what}: {reason}")]
    Json {
        /// Which document.
        what: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// A key with a value of the wrong type.
    #[error("malformed {what}: {key} is {value}")]
    Field {
        /// Which document.
        what: &'static str,
        /// The key.
        key: &'static str,
        /// What it is.
        value: String,
    },
}

/// A JSON text behind its length.
pub fn frame(json: &str) -> Vec<u8> {
    let length = u32::try_from(json.len()).unwrap_or(u32::MAX);
    let mut bytes = Vec::with_capacity(4 + json.len());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(json.as_bytes());
    bytes
}

/// What a server sends when it cannot go on: the state, iperf3's number and the kernel's.
pub fn server_error(code: ErrorCode, errno: i32) -> [u8; 9] {
    let mut bytes = [0; 9];
    bytes[0] = State::ServerError.to_byte();
    bytes[1..5].copy_from_slice(&code.0.to_be_bytes());
    bytes[5..9].copy_from_slice(&errno.to_be_bytes());
    bytes
}

/// What came and was not yet taken. Holds one document at most and what came with it.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    buffer: Vec<u8>,
}

impl Inbox {
    /// Takes bytes as they arrive.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next control byte.
    pub(super) fn state(&mut self) -> Result<Option<State>, WireError> {
        let Some(&byte) = self.buffer.first() else { return Ok(None) };
        self.buffer.drain(..1);
        let state = State::from_byte(byte).ok_or_else(|| WireError::State(byte.cast_signed()))?;
        Ok(Some(state))
    }

    /// The next document, once it is whole; its length is refused before its bytes come.
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

    /// The first number behind a server error.
    pub(super) fn error_number(&self) -> Option<ErrorCode> {
        self.buffer.first_chunk().map(|bytes| ErrorCode(i32::from_be_bytes(*bytes)))
    }

    /// The numbers behind a server error: iperf3's and the kernel's.
    pub(super) fn error_numbers(&mut self) -> Option<(ErrorCode, i32)> {
        let bytes = *self.buffer.first_chunk::<8>()?;
        self.buffer.drain(..8);
        let [a, b, c, d, errno @ ..] = bytes;
        Some((ErrorCode(i32::from_be_bytes([a, b, c, d])), i32::from_be_bytes(errno)))
    }
}
