//! Datagrams of a UDP test (layout in spec/udp-throughput.md), without sockets and clocks.
//!
//! ```text
//!  0              8         10                16
//! | number        | tag     | time in ns      | payload up to the agreed size ...
//! ```
//!
//! All numbers are big-endian. By the tag, datagrams of other streams are detected; the secret that
//! opens a stream is the test's token, in three datagrams of fixed length before the data.

use linerate_core::record::Direction;

use super::Token;

/// Bytes of the header, and of the shortest datagram.
pub const DATAGRAM_HEADER_BYTES: usize = 16;
/// Bytes of each datagram of the opening.
pub const OPENING_BYTES: usize = 48;
/// Number of a keepalive, a datagram without data.
pub const ALIVE: u64 = u64::MAX;
/// Largest time in a header: 48 bits are 78 hours, longer than any test.
pub const STAMP_NS_MAX: u64 = (1 << 48) - 1;

const MAGIC: &[u8; 8] = b"LINERUDP";

/// Header of a stream's datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NativeDatagramHeader {
    /// Sequence number from 0 in each stream, or [`ALIVE`].
    pub number: u64,
    /// Tag of the stream.
    pub tag: u16,
    /// Time since the sender's start, at most [`STAMP_NS_MAX`].
    pub stamp_ns: u64,
}

impl NativeDatagramHeader {
    /// Header bytes on the wire.
    #[inline]
    pub fn to_bytes(self) -> [u8; DATAGRAM_HEADER_BYTES] {
        let mut bytes = [0; DATAGRAM_HEADER_BYTES];
        bytes[..8].copy_from_slice(&self.number.to_be_bytes());
        let rest = (u64::from(self.tag) << 48) | self.stamp_ns.min(STAMP_NS_MAX);
        bytes[8..].copy_from_slice(&rest.to_be_bytes());
        bytes
    }

    /// Parses the header of a datagram; `None` when it is too short.
    #[inline]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let (header, _) = datagram.split_first_chunk::<DATAGRAM_HEADER_BYTES>()?;
        let number = u64::from_be_bytes(*header.first_chunk()?);
        let rest = u64::from_be_bytes(*header.last_chunk()?);
        Some(Self { number, tag: (rest >> 48) as u16, stamp_ns: rest & STAMP_NS_MAX })
    }
}

/// Bytes of a keepalive with a grant; a keepalive without one is a header only.
pub const GRANT_BYTES: usize = DATAGRAM_HEADER_BYTES + 24;

/// Flow control: the numbers up to which a receiver allows its sender to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Number that the receiver expects next: the highest that arrived, plus 1.
    pub next: u64,
    /// First number above the usual allowance: as many datagrams as fit into the receiver's queue
    /// with little delay.
    pub limit: u64,
    /// First number above the largest allowance, at least `limit`: as many as fit into the
    /// receiver's buffer, for paths with a large bandwidth-delay product.
    pub most: u64,
}

impl Grant {
    /// The bytes of a keepalive with this grant.
    pub fn to_bytes(self, tag: u16) -> [u8; GRANT_BYTES] {
        let mut bytes = [0; GRANT_BYTES];
        let header = NativeDatagramHeader { number: ALIVE, tag, stamp_ns: 0 };
        bytes[..DATAGRAM_HEADER_BYTES].copy_from_slice(&header.to_bytes());
        bytes[16..24].copy_from_slice(&self.next.to_be_bytes());
        bytes[24..32].copy_from_slice(&self.limit.to_be_bytes());
        bytes[32..].copy_from_slice(&self.most.to_be_bytes());
        bytes
    }

    /// The grant in a keepalive; `None` when it has none or its limits are out of order.
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
/// The client sends a hello with the token; the server answers with a nonce; the client returns it,
/// which proves that it receives at its address. All three have one length, so nothing is
/// amplified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpeningDatagram {
    /// Step of the opening.
    pub step: OpeningStep,
    /// Token of the test.
    pub token: Token,
    /// Stream number within its direction.
    pub stream: u16,
    /// Direction of the stream's data.
    pub direction: Direction,
}

/// The three steps of an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningStep {
    /// Client: first datagram from its address.
    Hello,
    /// Server: nonce to be returned.
    Challenge(u64),
    /// Client: the server's nonce.
    Answer(u64),
}

impl OpeningDatagram {
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

    /// Parses a datagram; `None` when it is none of an opening.
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

/// Tag of a stream: 16 bits of FNV-1a over token, direction and stream number. It detects stray
/// datagrams, but is too short to stop an attacker who knows ports and address.
pub fn stream_tag(token: Token, direction: Direction, stream: u16) -> u16 {
    let way = match direction {
        Direction::Up => 1,
        Direction::Down => 2,
    };
    let [high, low] = stream.to_be_bytes();
    let hash = token.0.into_iter().chain([way, high, low]).fold(0xcbf2_9ce4_8422_2325, fnv1a_step);
    (hash ^ (hash >> 16) ^ (hash >> 32) ^ (hash >> 48)) as u16
}

fn fnv1a_step(hash: u64, byte: u8) -> u64 {
    (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
}
