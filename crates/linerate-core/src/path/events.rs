//! Loss and change of single packets, and times when the path is out.

use std::time::Duration;

use super::{Element, Outlet, Packet, PathLossCause, Random};
use crate::time::MonoTime;

/// Loses the packets whose numbers are listed, counted from 0 in this direction. Packets that hosts
/// send for themselves ([`Packet::UNNUMBERED`]) are not counted, and never lost here.
#[derive(Debug)]
pub struct ListedLoss {
    numbers: Vec<u64>,
}

impl ListedLoss {
    /// Loss of `numbers`, in any order.
    pub fn new(mut numbers: Vec<u64>) -> Self {
        numbers.sort_unstable();
        Self { numbers }
    }
}

impl Element for ListedLoss {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.numbers.binary_search(&packet.number).is_ok() {
            out.record_loss(at, packet, PathLossCause::Random);
        } else {
            out.forward(at, packet);
        }
    }
}

/// Loses everything within given times.
#[derive(Debug)]
pub struct Outages {
    /// Begin and end, in order.
    spans: Vec<(MonoTime, MonoTime)>,
}

impl Outages {
    /// Outages from `start` plus each begin until `start` plus its end.
    pub fn new(start: MonoTime, spans: &[(Duration, Duration)]) -> Self {
        let mut spans: Vec<_> =
            spans.iter().map(|&(begin, end)| (start + begin, start + end)).collect();
        spans.sort_unstable();
        Self { spans }
    }
}

impl Element for Outages {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.spans.iter().any(|&(begin, end)| begin <= at && at < end) {
            out.record_loss(at, packet, PathLossCause::Outage);
        } else {
            out.forward(at, packet);
        }
    }
}

/// Sends a share of the packets twice.
#[derive(Debug)]
pub struct Duplication {
    probability: f64,
    random: Random,
}

impl Duplication {
    /// An element that duplicates packets with `probability`.
    pub const fn new(probability: f64, random: Random) -> Self {
        Self { probability, random }
    }
}

impl Element for Duplication {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        out.forward(at, packet);
        if self.random.chance(self.probability) {
            out.forward_copy(at, packet);
        }
    }
}

/// Changes bits of a share of the packets, which go on: an error that no frame check detected.
#[derive(Debug)]
pub struct Corruption {
    probability: f64,
    random: Random,
}

impl Corruption {
    /// An element that corrupts packets with `probability`.
    pub const fn new(probability: f64, random: Random) -> Self {
        Self { probability, random }
    }
}

impl Element for Corruption {
    fn receive(&mut self, at: MonoTime, mut packet: Packet, out: &mut Outlet) {
        packet.corrupted |= self.random.chance(self.probability);
        out.forward(at, packet);
    }
}

/// Loses packets that are longer than the MTU of a link further on. The caller, which has the
/// packet's bytes, sends the ICMP message (RFC 1191, RFC 8201).
#[derive(Debug)]
pub struct MtuLimit {
    mtu_bytes: u32,
}

impl MtuLimit {
    /// A limit of `mtu_bytes` of IP packet.
    pub const fn new(mtu_bytes: u32) -> Self {
        Self { mtu_bytes }
    }
}

impl Element for MtuLimit {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if packet.ip_bytes > self.mtu_bytes {
            out.record_loss(at, packet, PathLossCause::TooLong);
        } else {
            out.forward(at, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{numbers, packet, send_packets, time_at_ns};
    use super::*;

    #[test]
    fn listed_packets_are_lost_and_no_others() {
        let out = send_packets(&mut ListedLoss::new(vec![7, 3]), 10, 100, 1);
        assert_eq!(numbers(&out.departures), [0, 1, 2, 4, 5, 6, 8, 9]);
    }

    #[test]
    fn an_outage_begins_and_ends_on_time() {
        let span = (Duration::from_nanos(3), Duration::from_nanos(6));
        let out = send_packets(&mut Outages::new(time_at_ns(0), &[span]), 10, 100, 1);
        assert_eq!(numbers(&out.departures), [0, 1, 2, 6, 7, 8, 9]);
        assert!(out.lost.iter().all(|lost| lost.cause == PathLossCause::Outage));
    }

    #[test]
    fn duplicates_follow_their_original() {
        let out = send_packets(&mut Duplication::new(1.0, Random::new(0, 0)), 3, 100, 1);
        assert_eq!(numbers(&out.departures), [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn corruption_and_duplication_keep_their_shares() {
        // 10^6 packets at 1 %: standard error 0.0001; five of them.
        let out = send_packets(&mut Corruption::new(0.01, Random::new(1, 0)), 1_000_000, 100, 1);
        let corrupted = out.departures.iter().filter(|left| left.packet.corrupted).count();
        assert!((corrupted as f64 / 1e6 - 0.01).abs() < 0.0005, "{corrupted}");
        let out = send_packets(&mut Duplication::new(0.01, Random::new(1, 0)), 1_000_000, 100, 1);
        let extra = out.departures.len() - 1_000_000;
        assert!((extra as f64 / 1e6 - 0.01).abs() < 0.0005, "{extra}");
    }

    #[test]
    fn a_packet_of_the_mtu_passes_and_one_byte_more_does_not() {
        let mut out = Outlet::default();
        let mut mtu = MtuLimit::new(1400);
        mtu.receive(time_at_ns(0), packet(1400), &mut out);
        mtu.receive(time_at_ns(0), packet(1401), &mut out);
        assert_eq!((out.departures.len(), out.lost.len()), (1, 1));
        assert_eq!(out.lost[0].cause, PathLossCause::TooLong);
    }
}
