//! The header of a client, big-endian, and the detection of the client's program by the first
//! bytes of a connection.
//!
//! ```text
//!  0 flags | 4 threads | 8 listen port | 12 buffer bytes | 16 window | 20 amount        24 bytes
//! 24 type, length (both 0) | 32 upper flags (2), lower flags (2) | 36 version (4 + 4)
//! 44 reserved (2), service type (2) | 48 rate (4, 4) | 56 write prefetch            60 bytes
//! 60 reserved | 64 start seconds, microseconds | 72 reserved (8)     80 bytes, with trip times
//! ```
//!
//! The length stands in the flags where bit 16 is set; without it a header has 24 bytes. iperf 2.2
//! has 64. Isochronous settings, which may follow, are ignored.

use super::bounce::{Bounce, is_bounce};
use super::read_be_u32;

/// Flag: fields of the first form are valid, and the server sends too (`-d`, `-r`).
const VERSION1: u32 = 0x8000_0000;
/// Flag: an extension follows the first 24 bytes.
const EXTEND: u32 = 0x4000_0000;
/// Flag: fields of the second form are valid, and the mode is in the upper flags.
const VERSION2: u32 = 0x0400_0000;
/// Flag: the client asks for the server's answer.
const DETECT: u32 = 0x0200_0000;
/// Flag: bits 1 to 8 hold the length of the header.
const LENGTH_SET: u32 = 0x0001_0000;
const LENGTH: u32 = 0x0000_01fe;
/// With [`VERSION1`]: the server sends at once rather than afterwards.
const RUN_NOW: u32 = 0x0000_0001;
/// All flags with a meaning; the first bytes of text have other bits set.
const KNOWN: u32 = 0xff80_0000 | LENGTH_SET | LENGTH | RUN_NOW;

/// Bytes of the fields of a latency request with the length of the reply.
const BOUNCE_FIELDS: usize = 64;

/// Upper flag: the client wants no report at the end of a UDP test.
const UPPER_NO_END: u16 = 0x0008;
/// Upper flag: a start time follows (`--trip-times`).
const UPPER_TRIP_TIMES: u16 = 0x0010;
const UPPER_REVERSE: u16 = 0x0400;
const UPPER_FULL_DUPLEX: u16 = 0x0800;

const FIRST_FORM_BYTES: usize = 24;
/// Bytes of the header up to the write prefetch, as in iperf 2.1.8.
const EXTENDED_BYTES: usize = 60;
/// Bytes of the header with the start time.
const TIMED_BYTES: usize = 80;
/// Length field of the header with a start time in a datagram, including isochronous settings.
const UDP_TIMED_BYTES: usize = 92;
/// Offset of the start time in a datagram's header: after that length and a word of zeros.
pub(super) const UDP_START: usize = UDP_TIMED_BYTES + 4;
/// Bytes of the longest header that the length field can express.
pub const HEADER_BYTES_MAX: usize = 255;

/// A version of iperf 2 as headers carry it: 2.1.8 is 0x0002_0001, 0x0008_0003.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iperf2Version {
    /// Major and minor version.
    pub upper: u32,
    /// Patch version, and the state of the release.
    pub lower: u32,
}

/// Version of iperf 2 that this module speaks: 2.1.8.
pub const WIRE_VERSION: Iperf2Version = Iperf2Version { upper: 0x0002_0001, lower: 0x0008_0003 };

impl std::fmt::Display for Iperf2Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (major, minor) = (self.upper >> 16, self.upper & 0xffff);
        write!(f, "{major}.{minor}.{}", self.lower >> 16)
    }
}

/// Direction of the data, and the order of both directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The client sends (the default).
    Forward,
    /// The client sends, and the server at the same time on a connection to the client (`-d`).
    Dual,
    /// The client sends, then the server on a connection to the client (`-r`).
    TradeOff,
    /// The server sends on the client's connection (`-R`).
    Reverse,
    /// Both send on the client's connection (`--full-duplex`).
    FullDuplex,
}

/// Amount or time after which the sender ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iperf2Amount {
    /// Bytes of each stream.
    Bytes(u32),
    /// Time in hundredths of a second.
    Centiseconds(u32),
}

/// Fields of a client's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientHeader {
    /// Direction of the data.
    pub mode: Mode,
    /// Number of the client's streams.
    pub threads: u32,
    /// Port on which the client listens, for [`Mode::Dual`] and [`Mode::TradeOff`].
    pub listen_port: u16,
    /// Bytes of one write; 0 where the user set none.
    pub buffer_bytes: u32,
    /// Bytes of the socket buffer; 0 where the user set none. In the first form, the rate of a UDP
    /// test.
    pub window: u32,
    /// Amount or time that ends the test.
    pub amount: Iperf2Amount,
    /// Version of the client; `None` in the first form.
    pub version: Option<Iperf2Version>,
    /// The client reads the server's answer.
    pub wants_answer: bool,
    /// Rate of the client, which a sending server also uses; 0 where it is not limited.
    pub rate_bps: u64,
    /// Type of service octet.
    pub service_type: u8,
    /// Start of the test by the client's wall clock in microseconds, if it sends the times of its
    /// writes (`--trip-times`).
    pub trip_times: Option<u64>,
    /// Bytes of the header.
    pub length: usize,
}

/// Client program, as the first bytes of a connection show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opening {
    /// Not decided: this many bytes are needed.
    Needs(usize),
    /// No header: ttcp, PCATTCP, or an iperf 2 without options.
    Plain,
    /// An iperf 2 client's header.
    Header(ClientHeader),
    /// The first request of a latency test.
    Bounce(Bounce),
}

/// Reason for which a header is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// The header is shorter than the fields its flags announce.
    #[error("a header of {0} bytes; its flags ask for {1}")]
    Length(usize, usize),
    /// A latency request is shorter than its fields.
    #[error("a bounce-back request that is shorter than its fields")]
    Bounce,
    /// The port to which the server is to connect is 0 or has more than 16 bits.
    #[error("port {0}")]
    Port(u32),
}

/// Detects the client program by the first bytes of a connection.
/// # Errors
/// [`HeaderError`] when the flags are those of a header, but its fields are invalid.
pub fn opening(bytes: &[u8]) -> Result<Opening, HeaderError> {
    let Some(flags) = read_be_u32(bytes, 0) else { return Ok(Opening::Needs(4)) };
    if is_bounce(flags) {
        return match Bounce::parse(bytes) {
            Some(first) => Ok(Opening::Bounce(first)),
            None if bytes.len() < BOUNCE_FIELDS => Ok(Opening::Needs(BOUNCE_FIELDS)),
            None => Err(HeaderError::Bounce),
        };
    }
    if flags & !KNOWN != 0 || flags & (VERSION1 | EXTEND | VERSION2 | DETECT) == 0 {
        return Ok(Opening::Plain);
    }
    let least = if flags & (EXTEND | VERSION2) == 0 { FIRST_FORM_BYTES } else { EXTENDED_BYTES };
    let length = match flags & LENGTH_SET {
        0 => least,
        _ => ((flags & LENGTH) >> 1) as usize,
    };
    if length < least {
        return Err(HeaderError::Length(length, least));
    }
    match bytes.get(..length) {
        None => Ok(Opening::Needs(length)),
        Some(header) => parse(flags, header).map(Opening::Header),
    }
}

fn parse(flags: u32, header: &[u8]) -> Result<ClientHeader, HeaderError> {
    let at = |offset| read_be_u32(header, offset).unwrap_or(0);
    let extended = flags & (EXTEND | VERSION2) != 0;
    let upper = if extended { (at(32) >> 16) as u16 } else { 0 };
    let second = flags & VERSION2 != 0;
    let mode = match (flags & VERSION1 != 0, flags & RUN_NOW != 0) {
        (true, true) => Mode::Dual,
        (true, false) => Mode::TradeOff,
        _ if second && upper & UPPER_REVERSE != 0 => Mode::Reverse,
        _ if second && upper & UPPER_FULL_DUPLEX != 0 => Mode::FullDuplex,
        _ => Mode::Forward,
    };
    let listens = matches!(mode, Mode::Dual | Mode::TradeOff);
    let listen_port = u16::try_from(at(8)).ok();
    if listens && listen_port.is_none_or(|port| port == 0) {
        return Err(HeaderError::Port(at(8)));
    }
    let version = extended.then(|| Iperf2Version { upper: at(36), lower: at(40) });
    Ok(ClientHeader {
        mode,
        threads: at(4),
        listen_port: listen_port.unwrap_or(0),
        buffer_bytes: at(12),
        window: at(16),
        amount: amount(at(20)),
        version,
        wants_answer: flags & DETECT != 0 || (flags & EXTEND != 0 && !second),
        rate_bps: if extended { u64::from(at(52) >> 8) << 32 | u64::from(at(48)) } else { 0 },
        service_type: if extended { at(44) as u8 } else { 0 },
        trip_times: (upper & UPPER_TRIP_TIMES != 0).then(|| wall_us(at(64), at(68))),
        length: header.len(),
    })
}

/// Microseconds since 1970 of a wall clock's seconds and microseconds. The latter are capped below
/// one second, because a damaged packet can hold more.
pub(super) fn wall_us(seconds: u32, micros: u32) -> u64 {
    u64::from(seconds) * 1_000_000 + u64::from(micros.min(999_999))
}

/// Parses the amount field: a negative value is a time in units of 10 ms.
const fn amount(field: u32) -> Iperf2Amount {
    if field >> 31 == 0 {
        Iperf2Amount::Bytes(field)
    } else {
        Iperf2Amount::Centiseconds(field.wrapping_neg())
    }
}

impl ClientHeader {
    /// Header of a test by this program, with the extension of 2.1.8.
    pub const fn new(mode: Mode, amount: Iperf2Amount) -> Self {
        Self {
            mode,
            threads: 1,
            listen_port: 0,
            buffer_bytes: 0,
            window: 0,
            amount,
            version: Some(WIRE_VERSION),
            wants_answer: matches!(mode, Mode::Forward | Mode::Dual | Mode::TradeOff),
            rate_bps: 0,
            service_type: 0,
            trip_times: None,
            length: EXTENDED_BYTES,
        }
    }

    /// The bytes on the wire: 60, or 80 with trip times; `length` is not used.
    pub fn to_bytes(self) -> Vec<u8> {
        let mode = match self.mode {
            Mode::Forward => 0,
            Mode::Dual => VERSION1 | RUN_NOW,
            Mode::TradeOff => VERSION1,
            Mode::Reverse | Mode::FullDuplex => VERSION2,
        };
        let upper = match self.mode {
            Mode::Reverse => UPPER_REVERSE,
            Mode::FullDuplex => UPPER_FULL_DUPLEX,
            _ => 0,
        };
        let timed = if self.trip_times.is_some() { UPPER_TRIP_TIMES } else { 0 };
        let amount = match self.amount {
            Iperf2Amount::Bytes(bytes) => bytes & 0x7fff_ffff,
            Iperf2Amount::Centiseconds(count) => count.clamp(1, 1 << 31).wrapping_neg(),
        };
        let version = self.version.unwrap_or_default();
        let length = if self.trip_times.is_some() { TIMED_BYTES } else { EXTENDED_BYTES };
        let start_us = self.trip_times.unwrap_or(0);
        let words = [
            EXTEND | LENGTH_SET | (length as u32) << 1 | mode,
            self.threads,
            self.listen_port.into(),
            self.buffer_bytes,
            self.window,
            amount,
            0,
            0,
            u32::from(upper | timed) << 16,
            version.upper,
            version.lower,
            self.service_type.into(),
            self.rate_bps as u32,
            // The high word stands 8 bits further up (2.1.8).
            ((self.rate_bps >> 32) as u32) << 8,
            0,
            0,
            (start_us / 1_000_000) as u32,
            (start_us % 1_000_000) as u32,
            0,
            0,
        ];
        words.into_iter().take(length / 4).flat_map(u32::to_be_bytes).collect()
    }
}

/// Sets the flags of a UDP test in a header of [`ClientHeader::to_bytes`] that stands in a datagram
/// after `before` bytes, which its length includes.
pub(super) fn mark_for_udp(header: &mut [u8], before: usize) {
    /// Flag: numbers have 64 bits.
    const WIDE_NUMBERS: u32 = 0x0800_0000;
    /// Flag: the upper flags are those of a UDP test.
    const UDP_TEST: u32 = 0x2000_0000;
    let (Some(flags), Some(upper)) = (read_be_u32(header, 0), read_be_u32(header, 32)) else {
        return;
    };
    let timed = upper >> 16 & u32::from(UPPER_TRIP_TIMES) != 0;
    let full_duplex = upper >> 16 & u32::from(UPPER_FULL_DUPLEX) != 0;
    let test = if timed || flags & VERSION2 != 0 { UDP_TEST } else { 0 };
    let length = before + if timed { UDP_TIMED_BYTES } else { EXTENDED_BYTES };
    let flags = (flags & !LENGTH) | ((length as u32) << 1 & LENGTH) | WIDE_NUMBERS | test;
    header[..4].copy_from_slice(&flags.to_be_bytes());
    let no_end = if full_duplex { u32::from(UPPER_NO_END) << 16 } else { 0 };
    header[32..36].copy_from_slice(&(upper | no_end).to_be_bytes());
}
