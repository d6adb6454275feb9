//! Header and opening words of the datagrams of a UDP stream.
//!
//! ```text
//!  0             4             8              12             16
//! | seconds (BE) | microsec BE | sequence (BE)                  |  32-bit counter: bytes 8 … 12
//!                              | sequence (BE), 64 bits         |  with udp_counters_64bit
//! ```
//!
//! Sequence numbers start at 1. The time is of the sender's monotonic clock (since 3.7), so it is
//! of use for jitter only. A stream opens with one datagram of four bytes in each direction, whose
//! content no server reads.

/// Bytes of the datagrams that open a UDP stream.
pub const CONNECT_BYTES: usize = 4;
/// Datagram with which a client opens a stream.
pub const CONNECT_REQUEST: [u8; CONNECT_BYTES] = *b"9876";
/// The server's answer to it.
pub const CONNECT_REPLY: [u8; CONNECT_BYTES] = *b"6789";
/// Opening word of older clients, in the byte order of their host (3.1 to 3.13).
const LEGACY_REQUEST: u32 = 123_456_789;
/// Answer of older servers, in the byte order of their host.
const LEGACY_REPLY: u32 = 987_654_321;

/// Opening datagrams of clients of all versions and byte orders.
pub const CONNECT_REQUESTS: [[u8; CONNECT_BYTES]; 4] =
    [CONNECT_REQUEST, CONNECT_REPLY, LEGACY_REQUEST.to_le_bytes(), LEGACY_REQUEST.to_be_bytes()];

/// True for a server's answer to the opening, of any version and byte order. Data that arrives
/// first in a reverse test is longer.
pub fn is_connect_reply(datagram: &[u8]) -> bool {
    let known = [
        CONNECT_REPLY,
        // A host of the other byte order writes the bytes of the same number in reverse.
        CONNECT_REQUEST,
        LEGACY_REPLY.to_le_bytes(),
        LEGACY_REPLY.to_be_bytes(),
    ];
    known.iter().any(|word| datagram == word)
}

/// Width of the sequence number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterWidth {
    /// 32 bits, the default; wraps after 4,294,967,295.
    Bits32,
    /// 64 bits, with `udp_counters_64bit`.
    Bits64,
}

impl CounterWidth {
    /// Bytes of a header with this width.
    pub const fn header_bytes(self) -> usize {
        match self {
            Self::Bits32 => 12,
            Self::Bits64 => 16,
        }
    }
}

/// Header of a datagram of data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Seconds of the sender's clock.
    pub seconds: u32,
    /// Microseconds of the sender's clock.
    pub microseconds: u32,
    /// Sequence number, from 1.
    pub sequence: u64,
}

impl DatagramHeader {
    /// Parses the header; `None` when the datagram is too short.
    pub fn parse(datagram: &[u8], width: CounterWidth) -> Option<Self> {
        let word = |at: usize| Some(u32::from_be_bytes(*datagram.get(at..)?.first_chunk()?));
        let sequence = match width {
            CounterWidth::Bits32 => u64::from(word(8)?),
            CounterWidth::Bits64 => u64::from(word(8)?) << 32 | u64::from(word(12)?),
        };
        Some(Self { seconds: word(0)?, microseconds: word(4)?, sequence })
    }

    /// Writes the header at the start of a datagram and returns its length; `None` when it does not
    /// fit. A sequence beyond a 32-bit counter wraps, as in iperf3.
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
