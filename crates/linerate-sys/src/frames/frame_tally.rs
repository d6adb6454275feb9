//! Counts the arrivals at one port of a trial: each stream's frames, duplicates, order, gaps and
//! latencies, and all other frames. Works on bytes and times, without calls to the kernel.
//!
//! The first arrival of a sequence number counts as the frame, each further one only as a
//! duplicate. Source: RFC 2544 §10 (frames to count), RFC 4737 §3.3 (reordered), RFC 1242 §3.8.

use std::collections::VecDeque;

use linerate_core::device::{ForeignFrames, ReceiveCounts, Signature, TimeHistogram};

pub use crate::xdp::{SinkExpected, StreamExpected};

/// Most sequence numbers that are remembered to detect duplicates: 256 MiB of bits, 144 s at 14.88
/// million frames a second.
const NUMBERS_MAX: u64 = 1 << 31;

/// Number of former trials whose late frames are recognised.
const FORMER_MAX: usize = 16;

/// Largest negative latency, from the error of clock conversion, in ns; it appears as a value just
/// below 2^32, which no real latency has.
const NEGATIVE_MAX: u32 = 1_000_000;

/// Counts of the arrivals at one port.
#[derive(Clone, Debug)]
pub struct FrameTally {
    expected: SinkExpected,
    former: VecDeque<u32>,
    streams: Vec<StreamTally>,
    foreign: ForeignFrames,
}

impl FrameTally {
    /// Counts of 0 for the first trial.
    pub fn new(expected: SinkExpected) -> Self {
        let streams = expected.streams.iter().copied().map(StreamTally::new).collect();
        Self { expected, former: VecDeque::new(), streams, foreign: ForeignFrames::default() }
    }

    /// Resets the counts for another trial.
    pub fn begin_trial(&mut self, expected: SinkExpected) {
        let mut former = std::mem::take(&mut self.former);
        former.push_back(self.expected.trial);
        if former.len() > FORMER_MAX {
            former.pop_front();
        }
        *self = Self { former, ..Self::new(expected) };
    }

    /// Counts a frame that ends with the signature, of length `len` (without FCS, including a VLAN
    /// tag that the kernel removed), which arrived at `arrival_ns` of the monotonic clock.
    pub fn add(&mut self, frame: &[u8], len: usize, arrival_ns: u64) {
        let signature = Signature::at_end_of(frame);
        let of_trial = |signature: &Signature| signature.trial == self.expected.trial;
        let Some(signature) = signature.filter(of_trial) else {
            *self.kind_of(frame, signature) += 1;
            return;
        };
        if self.expected.own_streams.contains(&signature.stream) {
            self.foreign.own += 1;
            return;
        }
        match self.streams.iter_mut().find(|tally| tally.stream == signature.stream) {
            Some(stream) => {
                let right = (self.expected.shortest..=self.expected.longest).contains(&len);
                stream.add(
                    signature,
                    SignedFrameArrival { len: len as u64, right, at_ns: arrival_ns },
                );
            }
            None => self.foreign.other_trial += 1,
        }
    }

    /// Frames of all streams so far, without duplicates.
    pub fn frames(&self) -> u64 {
        self.streams.iter().map(|tally| tally.received.frames).sum()
    }

    /// Counts of each stream, in the order of the expected streams.
    pub fn streams(&self) -> Vec<(u8, ReceiveCounts)> {
        self.streams.iter().map(|tally| (tally.stream, tally.received.clone())).collect()
    }

    /// Counts of all other frames.
    pub const fn foreign(&self) -> ForeignFrames {
        self.foreign
    }

    fn kind_of(&mut self, frame: &[u8], signature: Option<Signature>) -> &mut u64 {
        match kind_of(frame) {
            UnsignedFrameKind::Arp => &mut self.foreign.arp,
            UnsignedFrameKind::NeighbourDiscovery => &mut self.foreign.neighbour_discovery,
            UnsignedFrameKind::LinkControl => &mut self.foreign.link_control,
            UnsignedFrameKind::Pause => &mut self.foreign.pause,
            UnsignedFrameKind::Other
                if signature.is_some_and(|found| self.is_other_trial(found.trial)) =>
            {
                &mut self.foreign.other_trial
            }
            UnsignedFrameKind::Other => &mut self.foreign.other,
        }
    }

    fn is_other_trial(&self, trial: u32) -> bool {
        trial >> 16 == self.expected.trial >> 16 || self.former.contains(&trial)
    }
}

struct SignedFrameArrival {
    len: u64,
    right: bool,
    at_ns: u64,
}

#[derive(Clone, Debug)]
struct StreamTally {
    stream: u8,
    received: ReceiveCounts,
    /// Largest sequence number so far, plus 1.
    next: u64,
    seen: Vec<u64>,
}

impl StreamTally {
    fn new(expected: StreamExpected) -> Self {
        let numbers = if expected.frames > NUMBERS_MAX { 0 } else { expected.frames };
        // Pages of zeros take no memory before they are written.
        let seen = vec![0; numbers.div_ceil(64) as usize];
        let received = ReceiveCounts { duplicates: Some(0), ..ReceiveCounts::default() };
        Self { stream: expected.stream, received, next: 0, seen }
    }

    fn add(&mut self, signature: Signature, arrival: SignedFrameArrival) {
        let number = signature.sequence;
        let received = &mut self.received;
        match self.seen.get_mut((number / 64) as usize) {
            Some(bits) => {
                let bit = 1 << (number % 64);
                if *bits & bit != 0 {
                    received.duplicates = received.duplicates.map(|count| count + 1);
                    return;
                }
                *bits |= bit;
            }
            None => received.duplicates = None,
        }
        received.wrong_length += u64::from(!arrival.right);
        if number < self.next {
            received.reordered += 1;
        } else {
            let missing = number - self.next;
            received.loss_runs += u64::from(missing > 0);
            received.longest_loss_run = received.longest_loss_run.max(missing);
            self.next = number + 1;
        }
        if received.frames == 0 {
            received.first_ns = arrival.at_ns;
        } else {
            spread(&mut received.gap, arrival.at_ns.saturating_sub(received.last_ns));
        }
        received.last_ns = arrival.at_ns;
        received.frames += 1;
        received.bytes += arrival.len;
        spread(&mut received.latency, latency_ns(arrival.at_ns, signature.stamp));
    }
}

/// Latency: arrival minus timestamp, of which only the low 32 bits are known.
const fn latency_ns(arrival_ns: u64, stamp: u32) -> u64 {
    let span = (arrival_ns as u32).wrapping_sub(stamp);
    if span > u32::MAX - NEGATIVE_MAX { 0 } else { span as u64 }
}

fn spread(spread: &mut TimeHistogram, ns: u64) {
    spread.min_ns = if spread.bins.count() == 0 { ns } else { spread.min_ns.min(ns) };
    spread.max_ns = spread.max_ns.max(ns);
    spread.sum_ns = spread.sum_ns.saturating_add(ns);
    spread.bins.record(ns);
}

enum UnsignedFrameKind {
    Arp,
    NeighbourDiscovery,
    LinkControl,
    Pause,
    Other,
}

/// Classifies a frame without a signature of the trial.
fn kind_of(frame: &[u8]) -> UnsignedFrameKind {
    if read_be_u16(frame, 12) == Some(0x8808) {
        return UnsignedFrameKind::Pause;
    }
    // IEEE 802.1Q §8.6.3: addresses that bridges do not forward.
    if matches!(frame, [0x01, 0x80, 0xc2, 0, 0, last, ..] if *last < 16) {
        return UnsignedFrameKind::LinkControl;
    }
    let mut at = 12;
    let mut ether_type = read_be_u16(frame, at);
    while matches!(ether_type, Some(0x8100 | 0x88a8)) {
        at += 4;
        ether_type = read_be_u16(frame, at);
    }
    match ether_type {
        Some(0x0806) => UnsignedFrameKind::Arp,
        // Slow protocols and LLDP.
        Some(0x8809 | 0x88cc) => UnsignedFrameKind::LinkControl,
        Some(0x86dd) if is_neighbour_discovery(&frame[at + 2..]) => {
            UnsignedFrameKind::NeighbourDiscovery
        }
        _ => UnsignedFrameKind::Other,
    }
}

/// True for ICMPv6 133 to 137 (RFC 4861 §4), and multicast listener reports or queries 130 to 132
/// and 143 (RFC 9777 §5), which have a hop-by-hop header.
fn is_neighbour_discovery(packet: &[u8]) -> bool {
    let icmp = match packet.get(6) {
        Some(58) => 40,
        Some(0) if packet.get(40) == Some(&58) => {
            40 + 8 * (1 + usize::from(packet.get(41).copied().unwrap_or(0)))
        }
        _ => return false,
    };
    matches!(packet.get(icmp), Some(130..=137 | 143))
}

fn read_be_u16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRIAL: u32 = 0x1234_0007;

    fn expected(trial: u32) -> SinkExpected {
        SinkExpected {
            trial,
            streams: vec![StreamExpected { stream: 1, frames: 100 }],
            own_streams: vec![2],
            shortest: 60,
            longest: 64,
        }
    }

    fn signed_frame(trial: u32, stream: u8, sequence: u64, stamp: u32) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.resize(44, 0);
        frame.extend(Signature { trial, stream, sequence, stamp }.to_bytes());
        frame
    }

    fn received(numbers: &[u64]) -> ReceiveCounts {
        let mut tally = FrameTally::new(expected(TRIAL));
        for (at, number) in numbers.iter().enumerate() {
            tally.add(&signed_frame(TRIAL, 1, *number, 0), 60, 1000 * at as u64);
        }
        tally.streams().remove(0).1
    }

    #[test]
    fn copies_order_and_missing_runs_are_told_apart() {
        // 2 is missing before 3, 5 and 6 before 7; 2 comes behind 3; 3 comes twice again.
        let it = received(&[0, 1, 3, 2, 3, 4, 7, 3]);
        assert_eq!((it.frames, it.duplicates, it.reordered), (6, Some(2), 1));
        assert_eq!((it.loss_runs, it.longest_loss_run, it.bytes), (2, 2, 360));
        // The first frame may be missing, too.
        assert_eq!(received(&[3]).longest_loss_run, 3);
    }

    #[test]
    fn a_number_beyond_the_expected_leaves_copies_unknown() {
        let it = received(&[0, 1 << 55, 1]);
        assert_eq!((it.frames, it.duplicates, it.reordered), (3, None, 1));
    }

    #[test]
    fn gaps_and_latencies_are_of_every_frame() {
        let mut tally = FrameTally::new(expected(TRIAL));
        // Sent at 2^32 - 100, 300 and 500 ns (modulo 2^32); each arrives 1,000 ns later, but the
        // last 2,000 ns.
        let wrap = 1u64 << 32;
        for (number, sent, latency) in [(0, wrap - 100, 1000), (1, wrap + 300, 1000)] {
            tally.add(&signed_frame(TRIAL, 1, number, sent as u32), 60, sent + latency);
        }
        tally.add(&signed_frame(TRIAL, 1, 2, 500), 60, wrap + 2500);
        let it = &tally.streams()[0].1;
        assert_eq!((it.latency.min_ns, it.latency.max_ns, it.latency.sum_ns), (1000, 2000, 4000));
        assert_eq!((it.gap.min_ns, it.gap.max_ns, it.gap.sum_ns), (400, 1200, 1600));
        assert_eq!((it.latency.bins.count(), it.gap.bins.count()), (3, 2));
        assert_eq!((it.first_ns, it.last_ns), (wrap + 900, wrap + 2500));
    }

    #[test]
    fn an_arrival_just_before_its_stamp_is_no_latency_of_four_seconds() {
        assert_eq!(latency_ns(1000, 1040), 0);
        assert_eq!(latency_ns(1000, 1000u32.wrapping_sub(4_000_000_000)), 4_000_000_000);
    }

    #[test]
    fn a_wrong_length_is_told_and_the_frame_counted() {
        let mut tally = FrameTally::new(expected(TRIAL));
        for (number, len) in [(0, 59), (1, 60), (2, 64), (3, 65)] {
            tally.add(&signed_frame(TRIAL, 1, number, 0), len, 0);
        }
        let it = &tally.streams()[0].1;
        assert_eq!((it.frames, it.wrong_length), (4, 2));
    }

    #[test]
    fn what_is_not_of_the_trial_is_told_apart() {
        let mut tally = FrameTally::new(expected(0x5678_0001));
        tally.begin_trial(expected(TRIAL));
        let typed = |ether_type: [u8; 2], rest: &[u8]| {
            let mut frame = vec![0xff; 12];
            frame.extend(ether_type);
            frame.extend(rest);
            frame.resize(100, 0);
            frame
        };
        // A solicitation, a report behind hop-by-hop options (type, length 0, 6 bytes), an echo.
        let ipv6 = |next: u8, rest: &[u8]| {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, next, 255];
            packet.resize(40, 0);
            packet.extend(rest);
            typed([0x86, 0xdd], &packet)
        };
        let frames = [
            typed([8, 6], &[]),
            typed([0x81, 0], &[0, 5, 8, 6]),
            ipv6(58, &[135]),
            ipv6(0, &[58, 0, 5, 2, 0, 0, 1, 0, 143]),
            ipv6(58, &[128]),
            typed([0x88, 0xcc], &[]),
            [&[0x01, 0x80, 0xc2, 0, 0, 0][..], &[0; 54]].concat(),
            [&[0x01, 0x80, 0xc2, 0, 0, 1][..], &[2; 6], &[0x88, 8, 0, 1], &[0; 44]].concat(),
            signed_frame(TRIAL + 1, 1, 0, 0),
            signed_frame(0x5678_0001, 1, 0, 0),
            signed_frame(0x9999_0001, 1, 0, 0),
            signed_frame(TRIAL, 2, 0, 0),
            vec![0; 10],
        ];
        for frame in &frames {
            tally.add(frame, frame.len(), 0);
        }
        let expected = ForeignFrames {
            arp: 2,
            neighbour_discovery: 2,
            link_control: 2,
            pause: 1,
            other_trial: 2,
            own: 1,
            other: 3,
        };
        assert_eq!(tally.foreign(), expected);
        assert_eq!(tally.frames(), 0);
    }
}
