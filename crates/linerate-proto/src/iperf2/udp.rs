//! Sequence numbers and counters of both ends of a UDP test, the last datagram and the report.
//!
//! Lost, out of order and jitter are counted as in iperf 2, so that users can compare reports: a
//! duplicate counts as out of order, and each datagram out of order reduces the lost by one.

use super::datagram::{Iperf2DatagramLayout, Stamp, client_header};
use super::header::{UDP_START, mark_for_udp};
use super::{ClientHeader, Transit, UdpReport};

/// Bytes of the shortest datagram: number and time of the narrow layout.
const SHORTEST: usize = 12;
/// Bytes to which the first datagram of a client is padded at least.
pub const FIRST_BYTES_MIN: usize = 76;
/// Largest credible jump of the number: more than a minute at 100 million datagrams a second.
const AHEAD_MAX: i64 = 1 << 33;
/// Bytes of the shortest datagram with trip times, which also holds the start time.
pub const TIMED_BYTES_MIN: usize = 120;
/// Difference of the client's start time and the receiver's clock from which the clocks count as
/// not synchronised.
const CLOCKS_APART_MAX_US: u64 = 600_000_000;

/// Kind of a received datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UdpDatagramKind {
    /// A datagram of data.
    Data,
    /// The end, to be answered with [`UdpReceiver::report`]; repeated until the report arrives.
    End,
    /// No datagram of the test: too short, or its number too far ahead; not counted.
    Foreign,
}

/// Counters of the datagrams of one client.
#[derive(Clone, Debug, Default)]
pub struct UdpReceiver {
    layout: Option<Iperf2DatagramLayout>,
    header: Option<ClientHeader>,
    first_us: u64,
    last_us: u64,
    bytes: u64,
    highest: i64,
    missed: u64,
    out_of_order: u64,
    jitter_us: f64,
    /// Transit time of the previous datagram (arrival minus sending), and its time of sending.
    transit_us: Option<(i64, u64)>,
    delays: Option<Transit>,
    ended: bool,
}

impl UdpReceiver {
    /// Counts a datagram of `length` bytes that begins with `bytes` and arrived at `now_us`
    /// of any clock; with trip times, of the wall clock.
    pub fn count_datagram(&mut self, bytes: &[u8], length: usize, now_us: u64) -> UdpDatagramKind {
        if length < SHORTEST {
            return UdpDatagramKind::Foreign;
        }
        let first = self.layout.is_none();
        let layout =
            self.layout.unwrap_or_else(|| Iperf2DatagramLayout::from_first_datagram(bytes));
        let Some(stamp) = Stamp::parse(bytes, layout) else { return UdpDatagramKind::Foreign };
        let number = stamp.number.checked_abs().unwrap_or(i64::MAX);
        if number.saturating_sub(self.highest) > AHEAD_MAX {
            return UdpDatagramKind::Foreign;
        }
        self.layout = Some(layout);
        if first {
            self.header = client_header(bytes, layout);
            self.first_us = now_us;
            let start_us = self.header.and_then(|header| header.trip_times);
            let agree = start_us.filter(|us| us.abs_diff(now_us) <= CLOCKS_APART_MAX_US);
            self.delays = agree.map(|_| Transit::default());
            // 2.0.5 counts from 0, newer versions from 1: either first number is in order.
            self.highest = stamp.number.saturating_sub(1).clamp(-1, 0);
        }
        if self.ended {
            return if stamp.number < 0 { UdpDatagramKind::End } else { UdpDatagramKind::Data };
        }
        self.last_us = now_us;
        self.bytes += length as u64;
        self.count_sequence(number);
        if stamp.number < 0 {
            self.ended = true;
            return UdpDatagramKind::End;
        }
        self.update_jitter(stamp.sent_us, now_us);
        UdpDatagramKind::Data
    }

    fn count_sequence(&mut self, number: i64) {
        if number > self.highest {
            let gap = number.saturating_sub(self.highest).saturating_sub(1);
            self.missed = self.missed.saturating_add(gap.cast_unsigned());
            self.highest = number;
        } else {
            self.out_of_order += 1;
        }
    }

    /// Updates the jitter: J += (|D| - J) / 16, D the change of transit (RFC 3550 §6.4.1). Of
    /// datagrams with the same time, sent in one call, only the first is used; datagrams with time
    /// 0, as the header before full-duplex data, are not.
    fn update_jitter(&mut self, sent_us: u64, now_us: u64) {
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

    /// True once the client's end has arrived.
    pub const fn has_ended(&self) -> bool {
        self.ended
    }

    /// Counters so far, as a report has them.
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
        self.counts().to_bytes(self.layout.unwrap_or(Iperf2DatagramLayout::Wide))
    }
}

/// Header and sequence numbers of one sender's datagrams.
#[derive(Clone, Copy, Debug)]
pub struct UdpSender {
    header: ClientHeader,
    next: i64,
}

impl UdpSender {
    /// A sender whose datagrams carry this header.
    pub const fn new(header: ClientHeader) -> Self {
        Self { header, next: 1 }
    }

    /// A buffer for datagrams of `length` bytes, with the header where there is room for it.
    pub fn buffer(&self, length: usize) -> Vec<u8> {
        let mut buffer = super::pattern(length.max(SHORTEST));
        let head = self.first_bytes();
        let room = buffer.len().min(head.len());
        buffer[..room].copy_from_slice(&head[..room]);
        buffer
    }

    /// First bytes of every datagram: number and time, still 0, and the header.
    pub fn first_bytes(&self) -> Vec<u8> {
        let mut head = vec![0; Iperf2DatagramLayout::Wide.header_offset()];
        let mut header = self.header.to_bytes();
        mark_for_udp(&mut header, Iperf2DatagramLayout::Wide.header_offset());
        if let Some(start_us) = self.header.trip_times {
            header.truncate(FIRST_BYTES_MIN - Iperf2DatagramLayout::Wide.header_offset());
            header.resize(UDP_START, 0);
            let words = [(start_us / 1_000_000) as u32, (start_us % 1_000_000) as u32];
            header.extend(words.into_iter().flat_map(u32::to_be_bytes));
        }
        head.extend(header);
        head
    }

    /// Header that the datagrams carry.
    pub const fn header(&self) -> ClientHeader {
        self.header
    }

    /// Writes number and time of the next datagram.
    pub fn stamp_datagram(&mut self, buffer: &mut [u8], sent_us: u64) {
        Stamp { number: self.next, sent_us }.write(buffer);
        self.next += 1;
    }

    /// Writes number and time of an end; each repetition has the next number.
    pub fn stamp_end(&mut self, buffer: &mut [u8], sent_us: u64) {
        Stamp { number: -self.next, sent_us }.write(buffer);
        self.next += 1;
    }
}
