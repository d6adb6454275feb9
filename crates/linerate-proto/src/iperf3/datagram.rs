//! Datagrams of a UDP stream.
//!
//! ```text
//!  0             4             8              12             16
//! | seconds (BE) | microsec BE | sequence (BE)                  |  32-bit counter: bytes 8 … 12
//!                              | sequence (BE), 64 bits         |  with udp_counters_64bit
//! ```
//!
//! Numbers begin at 1. The time is the sender's own monotonic clock (since 3.7), good for jitter
//! alone. A stream opens with one datagram of four bytes each way, which no server looks into.

/// Length of the words that open a UDP stream.
pub const CONNECT_BYTES: usize = 4;
/// What a client sends to open a stream.
pub const CONNECT_REQUEST: [u8; CONNECT_BYTES] = *b"9876";
/// What a server answers.
pub const CONNECT_REPLY: [u8; CONNECT_BYTES] = *b"6789";
/// What older versions send, in the byte order of their host (3.1 to 3.13).
const LEGACY_REQUEST: u32 = 123_456_789;
/// What older versions answer, in the byte order of their host.
const LEGACY_REPLY: u32 = 987_654_321;

/// All that clients of any version and byte order send to open a stream.
pub const CONNECT_REQUESTS: [[u8; CONNECT_BYTES]; 4] =
    [CONNECT_REQUEST, CONNECT_REPLY, LEGACY_REQUEST.to_le_bytes(), LEGACY_REQUEST.to_be_bytes()];

/// Whether a datagram is a server's answer: of this or an older version, of a host of either byte
/// order. Data that comes first in a reverse test is longer.
pub fn is_connect_reply(datagram: &[u8]) -> bool {
    let known = [
        CONNECT_REPLY,
        // A host of the other byte order writes the same number the other way around.
        CONNECT_REQUEST,
        LEGACY_REPLY.to_le_bytes(),
        LEGACY_REPLY.to_be_bytes(),
    ];
    known.iter().any(|word| datagram == word)
}

/// Width of the sequence number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterWidth {
    /// Unless agreed otherwise; it wraps after 4,294,967,295.
    Bits32,
    /// With `udp_counters_64bit`.
    Bits64,
}

impl CounterWidth {
    /// Length of the header with it.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Bits32 => 12,
            Self::Bits64 => 16,
        }
    }
}

/// The head of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Seconds of the sender's clock.
    pub seconds: u32,
    /// Microseconds of the sender's clock.
    pub microseconds: u32,
    /// From 1.
    pub sequence: u64,
}

impl DatagramHeader {
    /// Reads the head; `None` when the datagram is too short for one.
    pub fn parse(datagram: &[u8], width: CounterWidth) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*datagram.get(at..)?.first_chunk()?));
        let sequence = match width {
            CounterWidth::Bits32 => u64::from(word(8)?),
            CounterWidth::Bits64 => u64::from(word(8)?) << 32 | u64::from(word(12)?),
        };
        Some(Self { seconds: word(0)?, microseconds: word(4)?, sequence })
    }

    /// Writes the head at the start of a datagram; its length, or `None` when it does not fit. The
    /// upper bits of a number beyond a narrow counter are lost, as everywhere.
    pub fn write(&self, datagram: &mut [u8], width: CounterWidth) -> Option<usize> {
        let length = width.header_bytes();
        let head = datagram.get_mut(..length)?;
        head[..4].copy_from_slice(&self.seconds.to_be_bytes());
        head[4..8].copy_from_slice(&self.microseconds.to_be_bytes());
        let sequence = self.sequence.to_be_bytes();
        head[8..].copy_from_slice(match width {
            CounterWidth::Bits32 => &sequence[4..],
            CounterWidth::Bits64 => &sequence,
        });
        Some(length)
    }
}
