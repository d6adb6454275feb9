//! UDP datagrams, big-endian, in three layouts:
//!
//! ```text
//! iperf 2.0.13 and newer      iperf 2.0.10 to 2.0.13a      iperf 2.0.5 and older, lwIP
//!  0 number, low 32 bits       0 number, 31 bits            0 number, signed 32 bits
//!  4 seconds, 8 microseconds   4 seconds, 8 microseconds    4 seconds, 8 microseconds
//! 12 number, high 32 bits     12 pattern                   12 client header: flags, streams
//! 16 client header            16 client header
//! ```
//!
//! The first layout has the bit SEQNO64B in the flags at 16, or, from a server that sends and has
//! no header, the digits of its pattern. The second has the pattern at 12, the third flags there.
//! Numbers count from 1 (first layout) or from 0. A datagram whose number is negative ends the
//! test: it is the next number, negated; in the second layout the highest bit is set instead (as
//! 2.0.13a of July 2018 sends it).

use super::header::{UDP_START, wall_us};
use super::read_be_u32;
use super::{ClientHeader, Opening, opening};

/// Flag of the client header: numbers have 64 bits (SEQNO64B).
const NUMBERS_OF_64_BITS: u32 = 0x0800_0000;
/// Flags that new clients set in UDP tests.
const UDP_BITS: u32 = 0x2800_0000;
/// Bits of the flags that hold the header's length, and the bit that says so.
const LENGTH_BITS: u32 = 0x0001_01fe;
/// Bytes of the fields that every header has.
const FIRST_FORM_BYTES: usize = 24;
/// Payload at offset 16 of a server that sends: its pattern, from the digit 6 on.
const PATTERN: u32 = u32::from_be_bytes(*b"6789");
/// Payload at offset 12, which 2.0.10 to 2.0.13a leave as the pattern.
const PATTERN_BEFORE: u32 = u32::from_be_bytes(*b"2345");
/// Flags of headers with more fields; as a number of streams they would be too large.
const FORM_BITS: u32 = 0xe000_0000;
/// Bits that a header of a UDP test never has.
const UNKNOWN: u32 = 0x007e_fe00;

/// Layout of a client's datagrams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Iperf2DatagramLayout {
    /// 12 bytes before the header, with numbers of 32 bits (2.0.5 and older).
    Narrow,
    /// 16 bytes before the header, with numbers of 31 bits (2.0.10 to 2.0.13a).
    Early,
    /// 16 bytes before the header, with numbers of 64 bits (2.0.13 and newer).
    Wide,
}

impl Iperf2DatagramLayout {
    /// Detects the layout from a client's first datagram.
    pub fn from_first_datagram(datagram: &[u8]) -> Self {
        let flags = read_be_u32(datagram, 16).unwrap_or(0);
        let wide = flags & NUMBERS_OF_64_BITS != 0 && flags & UNKNOWN == 0;
        if wide || flags == PATTERN {
            return Self::Wide;
        }
        let before = read_be_u32(datagram, 12);
        let unwritten = before == Some(PATTERN_BEFORE);
        if unwritten && (flags == 0 || flags & FORM_BITS != 0) { Self::Early } else { Self::Narrow }
    }

    /// Bytes before the client header or the report.
    pub const fn header_offset(self) -> usize {
        match self {
            Self::Narrow => 12,
            Self::Early | Self::Wide => 16,
        }
    }
}

/// Number and time at the start of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Sequence number of the datagram; negative in the last one.
    pub number: i64,
    /// Time of sending by the sender's wall clock, in microseconds.
    pub sent_us: u64,
}

impl Stamp {
    /// Parses the start of a datagram; `None` when it is too short.
    pub fn parse(datagram: &[u8], layout: Iperf2DatagramLayout) -> Option<Self> {
        let low = read_be_u32(datagram, 0)?;
        let number = match layout {
            Iperf2DatagramLayout::Narrow => i64::from(low.cast_signed()),
            Iperf2DatagramLayout::Early => early_number(low),
            Iperf2DatagramLayout::Wide => {
                let high = read_be_u32(datagram, 12)?;
                (u64::from(high) << 32 | u64::from(low)).cast_signed()
            }
        };
        let sent_us = wall_us(read_be_u32(datagram, 4)?, read_be_u32(datagram, 8)?);
        Some(Self { number, sent_us })
    }

    /// Writes the fields into a datagram that has room for them, in the wide layout.
    pub fn write(self, datagram: &mut [u8]) {
        let number = self.number.cast_unsigned();
        let seconds = (self.sent_us / 1_000_000) as u32;
        let micros = (self.sent_us % 1_000_000) as u32;
        let words = [number as u32, seconds, micros, (number >> 32) as u32];
        for (field, word) in datagram.chunks_exact_mut(4).zip(words) {
            field.copy_from_slice(&word.to_be_bytes());
        }
    }
}

/// Sequence number of 31 bits, negative in the last datagram. Senders mark the last datagram by the
/// highest bit or by negating the number; of the two readings the one nearer to 0 is taken.
fn early_number(low: u32) -> i64 {
    let negated = i64::from(low.cast_signed());
    let marked = -i64::from(low & 0x7fff_ffff);
    if negated >= 0 { negated } else { negated.max(marked) }
}

/// The client header of a datagram, where it has a valid one. Fields that do not fit into a short
/// datagram count as 0.
pub(super) fn client_header(datagram: &[u8], layout: Iperf2DatagramLayout) -> Option<ClientHeader> {
    let bytes = datagram.get(layout.header_offset()..)?;
    // A header without options ends after its flags, where the pattern continues.
    if layout == Iperf2DatagramLayout::Early && read_be_u32(bytes, 0)? == 0 {
        return None;
    }
    // The length of a UDP header includes the bytes before it. Without the length and the bits of
    // UDP, the fields are those of TCP.
    let flags = read_be_u32(bytes, 0)? & !UDP_BITS & !LENGTH_BITS;
    let mut header = flags.to_be_bytes().to_vec();
    header.extend_from_slice(bytes.get(4..FIRST_FORM_BYTES)?);
    header.extend(bytes[FIRST_FORM_BYTES..].iter().chain(std::iter::repeat(&0)).take(36));
    let Ok(Opening::Header(mut found)) = opening(&header) else { return None };
    if let Some(start_us) = &mut found.trip_times {
        let at = |offset| read_be_u32(bytes, UDP_START + offset).unwrap_or(0);
        *start_us = wall_us(at(0), at(4));
    }
    Some(found)
}
