//! Datagrams of a UDP test (layout in spec/udp-throughput.md), without sockets and clocks.
//!
//! ```text
//!  0              8         10                16
//! | number        | tag     | time in ns      | payload up to the agreed size ...
//! ```
//!
//! All numbers are big-endian. The tag tells a stream's datagrams from strays on its ports; the
//! secret that opens a stream is the test's token, in three datagrams of fixed length before it.

use linerate_core::record::Direction;

use super::Token;

/// Length of the header of a datagram, and the shortest datagram.
pub const DATAGRAM_HEADER_BYTES: usize = 16;
/// Length of each datagram of the opening.
pub const OPENING_BYTES: usize = 48;
/// The number of a datagram that carries no data and says that its sender is there.
pub const ALIVE: u64 = u64::MAX;
/// Times in headers have 48 bits: 78 hours, longer than any test.
pub const STAMP_NS_MAX: u64 = (1 << 48) - 1;

const MAGIC: &[u8; 8] = b"LINERUDP";

/// What every datagram of a stream begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DatagramHeader {
    /// Counted from 0 in each stream, or [`ALIVE`].
    pub number: u64,
    /// The stream's.
    pub tag: u16,
    /// Time since the sender's start, at most [`STAMP_NS_MAX`].
    pub stamp_ns: u64,
}

impl DatagramHeader {
    /// The bytes of the header.
    #[inline]
    pub fn to_bytes(self) -> [u8; DATAGRAM_HEADER_BYTES] {
        let mut bytes = [0; DATAGRAM_HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        let rest = (u64::from(self.tag) << 48) | self.stamp_ns.min(STAMP_NS_MAX);
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        bytes
    }

    /// Reads the header of a datagram; `None` when it is too short for one.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (header, _) = datagram.split_first_chunk::<DATAGRAM_HEADER_BYTES>()?;
        let number = u64::from_be_bytes(*header.first_chunk()?);
        let rest = u64::from_be_bytes(*header.last_chunk()?);
        Some(Self { number, tag: (rest >> 48) as u16, stamp_ns: rest & STAMP_NS_MAX })
    }
}

/// Length of a sign of life with a grant; one without is a header alone.
pub const GRANT_BYTES: usize = DATAGRAM_HEADER_BYTES + 24;

/// How far the sender of a stream may go by the word of its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The number that the receiver expects: the highest that came, and 1.
    pub next: u64,
    /// Numbers below this one are welcome: as many as wait where they are soon taken in.
    pub limit: u64,
    /// Numbers below this one find room, not below `limit`: for a path that holds many.
    pub most: u64,
}

impl Grant {
    /// The bytes of a sign of life with this grant.
    pub fn to_bytes(self, tag: u16) -> [u8; GRANT_BYTES] {
        let mut bytes = [0; GRANT_BYTES];
        let header = DatagramHeader { number: ALIVE, tag, stamp_ns: 0 };
        bytes[..DATAGRAM_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        bytes[16..24].copy_from_slice(&self.next.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.limit.to_be_bytes());
        bytes[32..].copy_from_slice(&self.most.to_be_bytes());
        bytes
    }

    /// The grant of a sign of life; `None` when it has none, or one that takes back.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let grant = datagram.get(DATAGRAM_HEADER_BYTES..GRANT_BYTES)?;
        let next = u64::from_be_bytes(*grant.first_chunk()?);
        let limit = u64::from_be_bytes(*grant.get(8..)?.first_chunk()?);
        let most = u64::from_be_bytes(*grant.last_chunk()?);
        (limit >= next && most >= limit).then_some(Self { next, limit, most })
    }
}

/// A datagram of the opening of a stream.
///
/// The client says hello with the token; the server answers with a nonce; the client says it back,
/// which proves that what is sent to its address arrives there. All three have one length, so
/// nothing is amplified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// Which of the three.
    pub step: OpeningStep,
    /// The test.
    pub token: Token,
    /// Stream number within its direction.
    pub stream: u16,
    /// Which way its data goes.
    pub direction: Direction,
}

/// The three steps of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningStep {
    /// Client: this is my address.
    Hello,
    /// Server: say this number back.
    Challenge(u64),
    /// Client: the server's number.
    Answer(u64),
}

impl Opening {
    /// The bytes of the datagram.
    pub fn to_bytes(self) -> [u8; OPENING_BYTES] {
        let (kind, nonce) = match self.step {
            OpeningStep::Hello => (1, 0),
            OpeningStep::Challenge(nonce) => (2, nonce),
            OpeningStep::Answer(nonce) => (3, nonce),
        };
        let mut bytes = [0; OPENING_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8] = kind;
        bytes[9] = match self.direction {
            Direction::Up => 1,
            Direction::Down => 2,
        };
        bytes[10..12].copy_from_slice(&self.stream.to_be_bytes());
        bytes[16..32].copy_from_slice(&self.token.0);
        bytes[32..40].copy_from_slice(&u64::to_be_bytes(nonce));
        bytes
    }

    /// Reads a datagram; `None` when it is of no opening.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let bytes: &[u8; OPENING_BYTES] = datagram.try_into().ok()?;
        let reserved = [&bytes[12..16], &bytes[40..]];
        if &bytes[..8] != MAGIC || reserved.iter().any(|part| part.iter().any(|&byte| byte != 0)) {
            return None;
        }
        let nonce = u64::from_be_bytes(*bytes[32..].first_chunk()?);
        let step = match (bytes[8], nonce) {
            (1, 0) => OpeningStep::Hello,
            (2, nonce) => OpeningStep::Challenge(nonce),
            (3, nonce) => OpeningStep::Answer(nonce),
            _ => return None,
        };
        let direction = match bytes[9] {
            1 => Direction::Up,
            2 => Direction::Down,
            _ => return None,
        };
        let stream = u16::from_be_bytes([bytes[10], bytes[11]]);
        let token = Token(*bytes[16..].first_chunk()?);
        Some(Self { step, token, stream, direction })
    }
}

/// The tag of a stream: 16 bits of FNV-1a over token, direction and stream number. It keeps strays
/// apart, not attackers; those have to know the ports and the address as well.
pub fn stream_tag(token: Token, direction: Direction, stream: u16) -> u16 {
    let way = match direction {
        Direction::Up => 1,
        Direction::Down => 2,
    };
    let [high, low] = stream.to_be_bytes();
    let hash = token.0.into_iter().chain([way, high, low]).fold(0xcbf2_9ce4_8422_2325, fnv);
    (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) as u16
}

fn fnv(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}
