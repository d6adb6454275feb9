//! Base packets, before any TLV. Octets that are not named are 0.
//!
//! ```text
//!                          open, 44 octets           authenticated, 112 octets
//!                          sender     reflector      sender     reflector
//!  sequence number         0          0              0          0
//!  timestamp T1 / T3       4          4              16         16
//!  error estimate          12         12             24         24
//!  session identifier      14         14             26         26
//!  T2                                 16                        32
//!  sender's sequence                  24                        48
//!  sender's T1                        28                        64
//!  sender's error estimate            36                        72
//!  sender's time to live              40                        80
//!  HMAC, 16 octets                                   96         96
//! ```
//! # Source
//! RFC 8762 §4.2 and §4.3, RFC 8972 §3.

use super::time::{ErrorEstimate, TimeFormat};

/// Octets of an open base packet.
pub const BYTES_OPEN: usize = 44;
/// Octets of an authenticated base packet.
pub const BYTES_AUTHENTICATED: usize = 112;
/// Octets of the shortest open request, that of TWAMP-Test (RFC 5357 §4.1.2); the missing fields
/// count as 0.
pub const BYTES_REQUEST_MIN: usize = 14;
/// Octets of an open reply of TWAMP-Test (RFC 5357 §4.2.1), as STAMP's up to the time to live.
pub(super) const BYTES_TWAMP_REPLY: usize = 41;
/// Octets of the shortest open reply with all times; some reflectors send 36 to 43, without the
/// sender's error estimate or time to live.
pub const BYTES_REPLY_MIN: usize = 36;

const HMAC_AT: usize = 96;
pub(super) const HMAC_BYTES: usize = 16;

/// Shared secret of HMAC-SHA-256 truncated to 16 octets (RFC 8762 §4.4), not shown by its debug
/// format.
#[derive(Clone, PartialEq, Eq)]
pub struct StampKey(Vec<u8>);

impl std::fmt::Debug for StampKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

impl StampKey {
    /// Parses an even number of hexadecimal digits of at least 16 octets; white space at the ends
    /// is ignored.
    pub fn from_hex(text: &str) -> Option<Self> {
        let digits = text.trim().as_bytes();
        let nibble = |digit: &u8| char::from(*digit).to_digit(16);
        let (pairs, rest) = digits.as_chunks::<2>();
        let octet = |[high, low]: &[u8; 2]| Some((nibble(high)? << 4 | nibble(low)?) as u8);
        let octets = pairs.iter().map(octet).collect::<Option<Vec<u8>>>()?;
        (rest.is_empty() && octets.len() >= 16).then_some(Self(octets))
    }

    /// The first 16 octets of HMAC-SHA-256 over the concatenated `pieces`.
    pub(super) fn hmac_tag(&self, pieces: &[&[u8]]) -> [u8; HMAC_BYTES] {
        let mut mac = hmac_sha256::HMAC::new(&self.0);
        pieces.iter().for_each(|piece| mac.update(piece));
        *mac.finalize().first_chunk().expect("32 octets have 16")
    }

    /// True if `tag` is the HMAC of `pieces`, in constant time.
    pub(super) fn verifies(&self, pieces: &[&[u8]], tag: &[u8]) -> bool {
        let made = self.hmac_tag(pieces);
        let differing = made.iter().zip(tag).fold(0, |all, (one, other)| all | (one ^ other));
        tag.len() == HMAC_BYTES && std::hint::black_box(differing) == 0
    }

    /// Writes the HMAC of an authenticated base packet.
    pub(super) fn sign_packet(&self, packet: &mut [u8]) {
        let tag = self.hmac_tag(&[&packet[..HMAC_AT]]);
        packet[HMAC_AT..BYTES_AUTHENTICATED].copy_from_slice(&tag);
    }

    /// True if an authenticated base packet has the correct HMAC.
    pub(super) fn verifies_packet(&self, packet: &[u8]) -> bool {
        packet
            .get(HMAC_AT..BYTES_AUTHENTICATED)
            .is_some_and(|tag| self.verifies(&[&packet[..HMAC_AT]], tag))
    }
}

/// Offsets of the fields in one mode.
#[derive(Clone, Copy, Debug)]
struct StampLayout {
    time: usize,
    error: usize,
    ssid: usize,
    t2: usize,
    sender_sequence: usize,
    t1: usize,
    sender_error: usize,
    ttl: usize,
}

const OPEN: StampLayout = StampLayout {
    time: 4,
    error: 12,
    ssid: 14,
    t2: 16,
    sender_sequence: 24,
    t1: 28,
    sender_error: 36,
    ttl: 40,
};

const AUTHENTICATED: StampLayout = StampLayout {
    time: 16,
    error: 24,
    ssid: 26,
    t2: 32,
    sender_sequence: 48,
    t1: 64,
    sender_error: 72,
    ttl: 80,
};

const fn layout(authenticated: bool) -> &'static StampLayout {
    if authenticated { &AUTHENTICATED } else { &OPEN }
}

/// Octets of the base packet of a mode.
pub(super) const fn base_bytes(authenticated: bool) -> usize {
    if authenticated { BYTES_AUTHENTICATED } else { BYTES_OPEN }
}

fn read_field<const N: usize>(packet: &[u8], at: usize) -> [u8; N] {
    packet.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
}

fn write_field<const N: usize>(packet: &mut [u8], at: usize, octets: [u8; N]) {
    packet[at..at + N].copy_from_slice(&octets);
}

/// Fields of a sender's packet. Timestamps keep their format, because the reply repeats them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StampRequest {
    /// Sequence number of the packet.
    pub sequence: u32,
    /// Time T1 of sending.
    pub t1: [u8; 8],
    /// Error estimate of T1.
    pub error: ErrorEstimate,
    /// Session identifier; 0 where there is none.
    pub ssid: u16,
}

impl StampRequest {
    /// Parses a packet; missing fields of an open one count as 0. `None` when it is too short. The
    /// HMAC is not checked.
    pub fn read(authenticated: bool, packet: &[u8]) -> Option<Self> {
        let least = if authenticated { BYTES_AUTHENTICATED } else { BYTES_REQUEST_MIN };
        let at = layout(authenticated);
        (packet.len() >= least).then(|| Self {
            sequence: u32::from_be_bytes(read_field(packet, 0)),
            t1: read_field(packet, at.time),
            error: ErrorEstimate::read(read_field(packet, at.error)),
            ssid: u16::from_be_bytes(read_field(packet, at.ssid)),
        })
    }

    /// Writes all fields but the HMAC into a packet of at least the base packet's length.
    pub fn write(&self, authenticated: bool, packet: &mut [u8]) {
        let at = layout(authenticated);
        packet[..base_bytes(authenticated)].fill(0);
        write_field(packet, 0, self.sequence.to_be_bytes());
        write_field(packet, at.time, self.t1);
        write_field(packet, at.error, self.error.octets());
        write_field(packet, at.ssid, self.ssid.to_be_bytes());
    }
}

/// Fields of a reflector's packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Sequence number of the reply: the reflector's counter or, if stateless, the sender's number.
    pub sequence: u32,
    /// Time T3 of the reply.
    pub t3: [u8; 8],
    /// Error estimate of T2 and T3.
    pub error: ErrorEstimate,
    /// Session identifier, repeated by reflectors that support it.
    pub ssid: u16,
    /// Time T2 of the request's arrival.
    pub t2: [u8; 8],
    /// Fields of the request, copied.
    pub request: StampRequest,
    /// Time to live of the request on arrival; `None` in a reply too short for it.
    pub ttl: Option<u8>,
}

impl Reply {
    /// Parses a packet; `None` when it is too short for the times. The HMAC is not checked.
    pub fn read(authenticated: bool, packet: &[u8]) -> Option<Self> {
        let least = if authenticated { BYTES_AUTHENTICATED } else { BYTES_REPLY_MIN };
        let at = layout(authenticated);
        let ssid = u16::from_be_bytes(read_field(packet, at.ssid));
        (packet.len() >= least).then(|| Self {
            sequence: u32::from_be_bytes(read_field(packet, 0)),
            t3: read_field(packet, at.time),
            error: ErrorEstimate::read(read_field(packet, at.error)),
            ssid,
            t2: read_field(packet, at.t2),
            request: StampRequest {
                sequence: u32::from_be_bytes(read_field(packet, at.sender_sequence)),
                t1: read_field(packet, at.t1),
                error: ErrorEstimate::read(read_field(packet, at.sender_error)),
                ssid,
            },
            ttl: packet.get(at.ttl).copied(),
        })
    }

    /// Writes all fields but the HMAC into a packet of at least the base packet's length.
    pub fn write(&self, authenticated: bool, packet: &mut [u8]) {
        let at = layout(authenticated);
        packet[..base_bytes(authenticated)].fill(0);
        write_field(packet, 0, self.sequence.to_be_bytes());
        write_field(packet, at.time, self.t3);
        write_field(packet, at.error, self.error.octets());
        write_field(packet, at.ssid, self.ssid.to_be_bytes());
        write_field(packet, at.t2, self.t2);
        write_field(packet, at.sender_sequence, self.request.sequence.to_be_bytes());
        write_field(packet, at.t1, self.request.t1);
        write_field(packet, at.sender_error, self.request.error.octets());
        packet[at.ttl] = self.ttl.unwrap_or(0);
    }
}

/// Writes the timestamp into a complete packet: T1 of a request, T3 of a reply.
pub(super) fn write_timestamp(
    authenticated: bool,
    packet: &mut [u8],
    format: TimeFormat,
    unix_ns: u64,
) {
    write_field(packet, layout(authenticated).time, format.encode(unix_ns));
}

/// Writes the sequence number into a complete packet.
pub(super) fn write_sequence(packet: &mut [u8], sequence: u32) {
    write_field(packet, 0, sequence.to_be_bytes());
}
