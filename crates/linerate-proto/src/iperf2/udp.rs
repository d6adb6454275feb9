//! Both ends of a UDP test as machines: numbers, counts, the end and its report.
//!
//! Lost, out of order and jitter are counted as iperf 2 counts them, so that the report means what
//! its readers take it for: a duplicate is out of order, and one out of order makes up for one
//! lost.

use super::datagram::{Layout, Stamp, client_header, mark_for_udp};
use super::{ClientHeader, UdpReport};

/// Datagrams have at least the fields before the header and the header's flags.
const SHORTEST: usize = 12;
/// The first datagram of a client is padded to this, however short the others are.
pub const FIRST_BYTES_MIN: usize = 76;

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpTaken {
    /// Data.
    Data,
    /// The end: answer with [`UdpReceiver::report`]. It comes again until the report arrives.
    End,
    /// Too short to be a datagram of a test; it is not counted.
    Foreign,
}

/// Follows the datagrams of one client.
#[derive(Clone, Debug, Default)]
pub struct UdpReceiver {
    layout: Option<Layout>,
    header: Option<ClientHeader>,
    first_us: u64,
    last_us: u64,
    bytes: u64,
    highest: i64,
    missed: u64,
    out_of_order: u64,
    jitter_us: f64,
    /// Arrival minus sending of the datagram before.
    transit_us: Option<i64>,
    ended: bool,
}

impl UdpReceiver {
    /// Takes a datagram of `length` bytes, of which `bytes` are the beginning, that came at
    /// `now_us` on any clock.
    pub fn take(&mut self, bytes: &[u8], length: usize, now_us: u64) -> UdpTaken {
        if length < SHORTEST {
            return UdpTaken::Foreign;
        }
        let first = self.layout.is_none();
        let layout = *self.layout.get_or_insert_with(|| Layout::of(bytes));
        let Some(stamp) = Stamp::parse(bytes, layout) else { return UdpTaken::Foreign };
        if first {
            self.header = client_header(bytes, layout);
            self.first_us = now_us;
            // 2.0.5 counts from 0, newer ones from 1: the first number is in order, whichever.
            self.highest = stamp.number.saturating_sub(1).clamp(-1, 0);
        }
        if self.ended {
            return if stamp.number < 0 { UdpTaken::End } else { UdpTaken::Data };
        }
        self.last_us = now_us;
        self.bytes += length as u64;
        self.number(stamp.number.checked_abs().unwrap_or(i64::MAX));
        if stamp.number < 0 {
            self.ended = true;
            return UdpTaken::End;
        }
        self.jitter(stamp.sent_us, now_us);
        UdpTaken::Data
    }

    fn number(&mut self, number: i64) {
        if number > self.highest {
            let gap = number.saturating_sub(self.highest).saturating_sub(1);
            self.missed = self.missed.saturating_add(gap.cast_unsigned());
            self.highest = number;
        } else {
            self.out_of_order += 1;
        }
    }

    /// J += (|D| - J) / 16, D the change of transit (RFC 3550 §6.4.1).
    fn jitter(&mut self, sent_us: u64, now_us: u64) {
        let transit = now_us.wrapping_sub(sent_us).cast_signed();
        if let Some(before) = self.transit_us.replace(transit) {
            let change = transit.wrapping_sub(before).unsigned_abs() as f64;
            self.jitter_us += (change - self.jitter_us) / 16.0;
        }
    }

    /// The client's header, where its first datagram had one.
    pub const fn header(&self) -> Option<ClientHeader> {
        self.header
    }

    /// Whether the client has said that it is over.
    pub const fn ended(&self) -> bool {
        self.ended
    }

    /// The counts so far.
    pub fn counts(&self) -> UdpReport {
        UdpReport {
            bytes: self.bytes,
            span_us: self.last_us.saturating_sub(self.first_us),
            lost: self.missed.saturating_sub(self.out_of_order),
            out_of_order: self.out_of_order,
            datagrams: self.highest.max(0).cast_unsigned(),
            jitter_us: self.jitter_us as u64,
        }
    }

    /// The datagram that answers the end, in the client's layout.
    pub fn report(&self) -> Vec<u8> {
        self.counts().to_bytes(self.layout.unwrap_or(Layout::Wide))
    }
}

/// Numbers the datagrams of one client.
#[derive(Clone, Copy, Debug)]
pub struct UdpSender {
    header: ClientHeader,
    next: i64,
}

impl UdpSender {
    /// A client with this header.
    pub const fn new(header: ClientHeader) -> Self {
        Self { header, next: 1 }
    }

    /// A buffer for datagrams of `length` bytes, with the header where there is room for it.
    pub fn buffer(&self, length: usize) -> Vec<u8> {
        let mut buffer = super::pattern(length.max(SHORTEST));
        let mut header = self.header.to_bytes();
        mark_for_udp(&mut header);
        let room = buffer.len().saturating_sub(Layout::Wide.bytes()).min(header.len());
        let base = Layout::Wide.bytes().min(buffer.len());
        buffer[base..base + room].copy_from_slice(&header[..room]);
        buffer
    }

    /// Stamps the next datagram.
    pub fn stamp(&mut self, buffer: &mut [u8], sent_us: u64) {
        Stamp { number: self.next, sent_us }.write(buffer);
        self.next += 1;
    }

    /// Stamps an end; each repetition has the next number.
    pub fn stamp_end(&mut self, buffer: &mut [u8], sent_us: u64) {
        Stamp { number: -self.next, sent_us }.write(buffer);
        self.next += 1;
    }
}
