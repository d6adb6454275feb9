//! Both ends of a UDP test as machines: numbers, counts, the end and its report.
//!
//! Lost, out of order and jitter are counted as iperf 2 counts them, so that the report means what
//! its readers take it for: a duplicate is out of order, and one out of order makes up for one
//! lost.

use super::datagram::{Layout, Stamp, client_header};
use super::header::{UDP_START, mark_for_udp};
use super::{ClientHeader, Transit, UdpReport};

/// Datagrams have at least the fields before the header and the header's flags.
const SHORTEST: usize = 12;
/// The first datagram of a client is padded to this, however short the others are.
pub const FIRST_BYTES_MIN: usize = 76;
/// A number further ahead than this is not believed: more than a minute at 100 million a second.
const AHEAD_MAX: i64 = 1 << 33;
/// Datagrams with trip times hold the start time, too.
pub const TIMED_BYTES_MIN: usize = 120;
/// A start further from the receiver's clock than this tells of clocks that do not agree.
const CLOCKS_APART_MAX_US: u64 = 600_000_000;

/// What a datagram was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpTaken {
    /// Data.
    Data,
    /// The end: answer with [`UdpReceiver::report`]. It comes again until the report arrives.
    End,
    /// Too short to be a datagram of a test, or its number too far ahead; it is not counted.
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
    /// Arrival minus sending of the datagram before, and when that was sent.
    transit_us: Option<(i64, u64)>,
    delays: Option<Transit>,
    ended: bool,
}

impl UdpReceiver {
    /// Takes a datagram of `length` bytes, of which `bytes` are the beginning, that came at
    /// `now_us` on any clock; with trip times on the wall clock.
    pub fn take(&mut self, bytes: &[u8], length: usize, now_us: u64) -> UdpTaken {
        if length < SHORTEST {
            return UdpTaken::Foreign;
        }
        let first = self.layout.is_none();
        let layout = self.layout.unwrap_or_else(|| Layout::of(bytes));
        let Some(stamp) = Stamp::parse(bytes, layout) else { return UdpTaken::Foreign };
        let number = stamp.number.checked_abs().unwrap_or(i64::MAX);
        if number.saturating_sub(self.highest) > AHEAD_MAX {
            return UdpTaken::Foreign;
        }
        self.layout = Some(layout);
        if first {
            self.header = client_header(bytes, layout);
            self.first_us = now_us;
            let start_us = self.header.and_then(|header| header.trip_times);
            let agree = start_us.filter(|us| us.abs_diff(now_us) <= CLOCKS_APART_MAX_US);
            self.delays = agree.map(|_| Transit::default());
            // 2.0.5 counts from 0, newer ones from 1: the first number is in order, whichever.
            self.highest = stamp.number.saturating_sub(1).clamp(-1, 0);
        }
        if self.ended {
            return if stamp.number < 0 { UdpTaken::End } else { UdpTaken::Data };
        }
        self.last_us = now_us;
        self.bytes += length as u64;
        self.number(number);
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

    /// J += (|D| - J) / 16, D the change of transit (RFC 3550 §6.4.1). Of datagrams that were sent
    /// at one time, in one call, the first counts; one without a time, as the header that comes
    /// ahead of the data of both ways, tells nothing.
    fn jitter(&mut self, sent_us: u64, now_us: u64) {
        if sent_us == 0 {
            return;
        }
        if self.transit_us.is_some_and(|(_, sent)| sent == sent_us) {
            return;
        }
        let transit = now_us.wrapping_sub(sent_us).cast_signed();
        if let Some((before, _)) = self.transit_us.replace((transit, sent_us)) {
            let change = transit.wrapping_sub(before).unsigned_abs() as f64;
            self.jitter_us += (change - self.jitter_us) / 16.0;
        }
        if let Some(delays) = &mut self.delays {
            delays.record(transit);
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
            transit: self.delays.filter(|delays| delays.n > 0),
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
        let head = self.head();
        let room = buffer.len().min(head.len());
        buffer[..room].copy_from_slice(&head[..room]);
        buffer
    }

    /// What every datagram begins with, its numbers and time still 0.
    pub fn head(&self) -> Vec<u8> {
        let mut head = vec![0; Layout::Wide.bytes()];
        let mut header = self.header.to_bytes();
        mark_for_udp(&mut header, Layout::Wide.bytes());
        if let Some(start_us) = self.header.trip_times {
            header.truncate(FIRST_BYTES_MIN - Layout::Wide.bytes());
            header.resize(UDP_START, 0);
            let words = [(start_us / 1_000_000) as u32, (start_us % 1_000_000) as u32];
            header.extend(words.into_iter().flat_map(u32::to_be_bytes));
        }
        head.extend(header);
        head
    }

    /// The header.
    pub const fn header(&self) -> ClientHeader {
        self.header
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
