//! The server's report on a UDP test, big-endian, after the 12 or 16 first bytes of a datagram:
//!
//! ```text
//!  0 flags | 4 bytes (high, low) | 12 seconds, microseconds | 20 lost | 24 out of order
//! 28 datagrams | 32 jitter (seconds, microseconds)                              40 bytes
//! 40 transit: least, most, sum, mean (seconds, microseconds each), squares (whole, millionths), 0
//! 88 transits | 92 gaps | 96 their sum | 100 lost, out of order, datagrams: high 32 bits
//! ```
//!
//! From 2.0.10 to 2.0.13a the datagrams are followed by their high 32 bits, later fields are moved
//! by 4 bytes, and the three words at the end are absent. These clients print no report shorter
//! than its 104 bytes.
//!
//! Squares are the sum of squared distances from the mean in microseconds squared. Transit times
//! are valid only between hosts with synchronised clocks, and present only with trip times. Old
//! clients read the first 40 bytes and are sent no more.

use super::read_be_u32;
use super::{Iperf2DatagramLayout, Transit};

/// Bytes of a datagram with the report of 2.0.13 and newer: 16 + 112.
pub const REPORT_BYTES: usize = 128;

/// Words of transit times at the end of the report of 2.0.10 to 2.0.13a.
const EARLY_TRANSIT_WORDS: usize = 15;

/// Flags of a report: fields are valid, counts have 64 bits, transit times are present.
const VALID: u32 = 0x8000_0000;
const WIDE: u32 = 0x0800_0000;
const TIMED: u32 = 0x4000_0000;

/// Counters of a UDP test as the server reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UdpReport {
    /// Bytes received, including those of the last datagram.
    pub bytes: u64,
    /// Time from the first datagram to the last, in microseconds.
    pub span_us: u64,
    /// Datagrams that did not arrive.
    pub lost: u64,
    /// Datagrams whose number was not the highest so far, including duplicates.
    pub out_of_order: u64,
    /// Highest sequence number received.
    pub datagrams: u64,
    /// Jitter in microseconds (RFC 3550 §6.4.1).
    pub jitter_us: u64,
    /// One-way delays by the clocks of both ends, where the client asked for trip times.
    pub transit: Option<Transit>,
}

impl UdpReport {
    /// The datagram that carries the report.
    pub fn to_bytes(self, layout: Iperf2DatagramLayout) -> Vec<u8> {
        let (wide, early) =
            (layout == Iperf2DatagramLayout::Wide, layout == Iperf2DatagramLayout::Early);
        let transit = self.transit.filter(|_| wide);
        let (seconds, micros) = (self.span_us / 1_000_000, self.span_us % 1_000_000);
        let flags = VALID | if wide { WIDE } else { 0 } | if transit.is_some() { TIMED } else { 0 };
        let first = [
            u64::from(flags),
            self.bytes >> 32,
            self.bytes,
            seconds,
            micros,
            self.lost,
            self.out_of_order,
            self.datagrams,
            self.jitter_us / 1_000_000,
            self.jitter_us % 1_000_000,
        ];
        let mut bytes = vec![0; layout.header_offset()];
        let mut push = |word: u64| bytes.extend_from_slice(&(word as u32).to_be_bytes());
        let (counts, jitter) = first.split_at(8);
        counts.iter().copied().for_each(&mut push);
        if early {
            push(self.datagrams >> 32);
        }
        jitter.iter().copied().for_each(&mut push);
        if early {
            (0..EARLY_TRANSIT_WORDS).for_each(|_| push(0));
        }
        if wide {
            let words =
                transit.map(|transit| transit.report_words(self.span_us)).unwrap_or_default();
            words.into_iter().map(u64::from).for_each(&mut push);
            let high = [self.lost, self.out_of_order, self.datagrams];
            high.into_iter().for_each(|word| push(word >> 32));
        }
        bytes
    }

    /// Parses a server's datagram of any layout; `None` when it is no report.
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        // The field at 16 of a narrow report is the high half of its bytes: never with this bit.
        let flags_at = |offset| read_be_u32(datagram, offset).filter(|flags| flags & VALID != 0);
        // A datagram whose number ends the test has all ones there: a busy 2.1.8 may send it back.
        let narrow = || flags_at(12).filter(|flags| *flags != u32::MAX);
        let base = if flags_at(16).is_some() { 16 } else { narrow().map(|_| 12)? };
        let at = |offset: usize| read_be_u32(datagram, base + offset).map(u64::from);
        let flags = read_be_u32(datagram, base)?;
        let high = |offset| match flags & WIDE {
            0 => 0,
            _ => at(offset).unwrap_or(0) << 32,
        };
        let micros = |offset| at(offset).filter(|micros| *micros < 1_000_000);
        let early = base == 16 && flags & WIDE == 0;
        let jitter = if early { 36 } else { 32 };
        Some(Self {
            bytes: at(4)? << 32 | at(8)?,
            span_us: at(12)? * 1_000_000 + micros(16)?,
            lost: high(100) | at(20)?,
            out_of_order: high(104) | at(24)?,
            datagrams: high(108) | at(28)? | if early { at(32)? << 32 } else { 0 },
            jitter_us: at(jitter)? * 1_000_000 + micros(jitter + 4)?,
            transit: datagram
                .get(base + 40..)
                .filter(|_| flags & TIMED != 0)
                .and_then(Transit::parse),
        })
    }
}
