//! Bytes of the native protocol: hellos of fixed length, then length-prefixed JSON.
//!
//! Every connection starts with a hello from the client, big-endian:
//!
//! ```text
//!  0        8         10     11      12         16
//! | "LINERATE" | version | kind | zero | zero      |   control: 16 bytes, echoed by the server
//! | token (16 bytes)                              |   data only, 16 … 32
//! | stream (2) | direction (1) | zero (5)         |   data only, 32 … 40
//! ```
//!
//! A control message is a 4-byte length (of the JSON, 1 … 1,048,576) and that JSON.

use linerate_core::record::Direction;
use linerate_core::tree;

use super::{Message, VERSION};

/// Bytes of the hello of a control connection, in both directions.
pub const CONTROL_HELLO_BYTES: usize = 16;
/// Bytes of the hello of a data connection.
pub const DATA_HELLO_BYTES: usize = 40;
/// Bytes of the longest JSON text of a message: the final reports of 128 streams are shorter.
pub const MAX_MESSAGE_BYTES: usize = 1 << 20;

const MAGIC: &[u8; 8] = b"LINERATE";

/// Violation of the protocol by a peer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NativeWireError {
    /// The first bytes are of another protocol.
    #[error("not a linerate peer: it begins with \"{}\"", .0.escape_ascii())]
    Magic([u8; 8]),
    /// The peer speaks another version of this protocol.
    #[error("the peer speaks version {0} of the protocol, this program version {VERSION}")]
    Version(u16),
    /// A hello of an unknown kind or direction, or with reserved bits set.
    #[error("malformed hello")]
    Hello,
    /// A message of length zero or beyond the limit.
    #[error("a message of {0} bytes; at most {MAX_MESSAGE_BYTES} are allowed")]
    Length(usize),
    /// A message that is no JSON of this protocol.
    #[error("malformed message: {0}")]
    Json(String),
    /// A message out of order.
    #[error("unexpected {got} while waiting for {expected}")]
    State {
        /// Name of the received message.
        got: &'static str,
        /// The message that the current step expects.
        expected: &'static str,
    },
}

/// Secret of a test that its data connections present.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub [u8; 16]);

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

impl Token {
    /// The 32 hexadecimal digits of the token, as in JSON.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Parses 32 hexadecimal digits.
    pub fn from_hex(text: &str) -> Option<Self> {
        let mut bytes = [0; 16];
        if text.len() != 32 || !text.is_ascii() {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(bytes))
    }
}

/// Purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelloKind {
    /// The control connection of a test.
    Control,
    /// A data connection; 24 more bytes follow.
    Data,
    /// A connection for a trace of the path to the client; messages follow at once.
    Trace,
}

/// The first 16 bytes of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Protocol version of the sender.
    pub version: u16,
    /// Purpose of the connection.
    pub kind: HelloKind,
}

impl Hello {
    /// A hello of this program's newest version.
    pub const fn new(kind: HelloKind) -> Self {
        Self { version: VERSION, kind }
    }

    /// The 16 bytes on the wire.
    pub fn to_bytes(self) -> [u8; CONTROL_HELLO_BYTES] {
        let mut bytes = [0; CONTROL_HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..10].copy_from_slice(&self.version.to_be_bytes());
        bytes[10] = match self.kind {
            HelloKind::Control => 1,
            HelloKind::Data => 2,
            HelloKind::Trace => 3,
        };
        bytes
    }

    /// Parses a hello of any version, so that the ends can agree on one.
    /// # Errors
    /// [`NativeWireError::Magic`] or [`NativeWireError::Hello`].
    pub fn parse(bytes: &[u8; CONTROL_HELLO_BYTES]) -> Result<Self, NativeWireError> {
        let mut magic = [0; 8];
        magic.copy_from_slice(&bytes[..8]);
        if &magic != MAGIC {
            return Err(NativeWireError::Magic(magic));
        }
        let kind = match bytes[10] {
            1 => HelloKind::Control,
            2 => HelloKind::Data,
            3 => HelloKind::Trace,
            _ => return Err(NativeWireError::Hello),
        };
        if bytes[11..].iter().any(|&byte| byte != 0) {
            return Err(NativeWireError::Hello);
        }
        Ok(Self { version: u16::from_be_bytes([bytes[8], bytes[9]]), kind })
    }
}

/// Range of protocol versions that an end speaks.
///
/// A client starts with its newest version. The server answers with the lower of the client's and
/// its own newest, and both use that one; an end ignores unknown fields. An end whose oldest
/// version is newer than the other's newest sends its own version and closes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// Oldest supported version.
    pub oldest: u16,
    /// Newest supported version.
    pub newest: u16,
}

impl Versions {
    /// Version that a server uses with a client whose hello has version `asked`.
    /// # Errors
    /// [`NativeWireError::Version`] when the client is too old.
    pub const fn with_client(self, asked: u16) -> Result<u16, NativeWireError> {
        match asked {
            asked if asked < self.oldest => Err(NativeWireError::Version(asked)),
            asked if asked < self.newest => Ok(asked),
            _ => Ok(self.newest),
        }
    }

    /// Version that a client uses with a server that `answered` its hello.
    /// # Errors
    /// [`NativeWireError::Version`] when the client does not speak that version.
    pub const fn with_server(self, answered: u16) -> Result<u16, NativeWireError> {
        if answered < self.oldest || answered > self.newest {
            return Err(NativeWireError::Version(answered));
        }
        Ok(answered)
    }
}

/// Hello of a data connection: its test and stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHello {
    /// Token of the test.
    pub token: Token,
    /// Stream number within its direction.
    pub stream: u16,
    /// Direction of the stream's data.
    pub direction: Direction,
}

impl DataHello {
    /// The 40 bytes on the wire.
    pub fn to_bytes(self) -> [u8; DATA_HELLO_BYTES] {
        let mut bytes = [0; DATA_HELLO_BYTES];
        bytes[..16].copy_from_slice(&Hello::new(HelloKind::Data).to_bytes());
        bytes[16..32].copy_from_slice(&self.token.0);
        bytes[32..34].copy_from_slice(&self.stream.to_be_bytes());
        bytes[34] = match self.direction {
            Direction::Up => 1,
            Direction::Down => 2,
        };
        bytes
    }

    /// Parses the 24 bytes after the common hello.
    /// # Errors
    /// [`NativeWireError::Hello`] when the direction is unknown or reserved bytes are not zero.
    pub fn parse_rest(
        bytes: &[u8; DATA_HELLO_BYTES - CONTROL_HELLO_BYTES],
    ) -> Result<Self, NativeWireError> {
        let mut token = [0; 16];
        token.copy_from_slice(&bytes[..16]);
        let direction = match bytes[18] {
            1 => Direction::Up,
            2 => Direction::Down,
            _ => return Err(NativeWireError::Hello),
        };
        if bytes[19..].iter().any(|&byte| byte != 0) {
            return Err(NativeWireError::Hello);
        }
        let stream = u16::from_be_bytes([bytes[16], bytes[17]]);
        Ok(Self { token: Token(token), stream, direction })
    }
}

/// Encodes a message with its length before it.
/// # Errors
/// [`NativeWireError::Length`] when the message is too long to send.
pub fn encode(message: &Message) -> Result<Vec<u8>, NativeWireError> {
    let json = tree::to_json(message).map_err(|error| NativeWireError::Json(error.to_string()))?;
    let length = json.len();
    if length > MAX_MESSAGE_BYTES {
        return Err(NativeWireError::Length(length));
    }
    let prefix = u32::try_from(length).map_err(|_| NativeWireError::Length(length))?;
    Ok([&prefix.to_be_bytes(), json.as_bytes()].concat())
}

/// Splits a byte stream into messages. Buffers at most one message and the bytes after it.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
}

impl Decoder {
    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next complete message; `None` when more bytes are needed.
    /// # Errors
    /// [`NativeWireError::Length`] as soon as a length is out of bounds, [`NativeWireError::Json`].
    pub fn next_message(&mut self) -> Result<Option<Message>, NativeWireError> {
        let Some(prefix) = self.buffer.first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length == 0 || length > MAX_MESSAGE_BYTES {
            return Err(NativeWireError::Length(length));
        }
        let Some(json) = self.buffer.get(4..4 + length) else { return Ok(None) };
        let message = tree::from_json_bytes(json)
            .map_err(|error| NativeWireError::Json(error.to_string()))?;
        self.buffer.drain(..4 + length);
        Ok(Some(message))
    }
}
