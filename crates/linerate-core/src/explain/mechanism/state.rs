//! Hidden states of a path before each packet, replayed with the fates that were seen.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::fates::{Fates, TimedProbe};

/// Preamble, header, frame check sequence and gap of Ethernet: 8 + 14 + 4 + 12 bytes.
pub(super) const LINK_BYTES: f64 = 38.0;
/// Losses longer ago than this say nothing more.
const MEMORY_PACKETS: f64 = 64.0;
/// Packets whose [`since_loss`] is below this come after no loss that counts.
pub(super) const FIRST_BELOW: f64 = 1.0 - MEMORY_PACKETS;

/// Cost of a packet: the tokens that it takes from a bucket, or its share of a server's time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Cost {
    /// Its bytes and those that a link adds.
    Bytes { added: f64 },
    /// One, however long it is.
    Packets,
}

impl Cost {
    pub(super) const fn cost_of(self, probe: &TimedProbe) -> f64 {
        match self {
            Self::Bytes { added } => probe.ip_bytes + added,
            Self::Packets => 1.0,
        }
    }
}

/// Excess over a sustained rate at each packet: a token bucket's deficit, or a queue without its
/// delays.
pub(super) fn excess_over_rate(fates: &Fates, cost: Cost, per_ns: f64) -> Vec<f64> {
    let (mut above, mut last) = (0.0_f64, 0.0);
    let mut state = Vec::with_capacity(fates.probes.len());
    for probe in &fates.probes {
        above = (above - (probe.at - last) * per_ns).max(0.0);
        last = probe.at;
        let with = above + cost.cost_of(probe);
        state.push(with);
        if probe.delay.is_some() {
            above = with;
        }
    }
    state
}

/// Packets that a link of a sustained rate has not sent yet, with each packet; of the one that it
/// sends, the part that is left.
pub(super) fn behind_link(fates: &Fates, bytes_per_ns: f64) -> Vec<f64> {
    let mut inside: VecDeque<(f64, f64)> = VecDeque::new();
    let of = |probe: &TimedProbe| {
        while inside.front().is_some_and(|&(leaves, _)| leaves <= probe.at) {
            inside.pop_front();
        }
        let sent = inside.front().map_or(0.0, |(leaves, takes)| 1.0 - (leaves - probe.at) / takes);
        let with = inside.len() as f64 + 1.0 - sent;
        if probe.delay.is_some() {
            let begins = inside.back().map_or(probe.at, |(leaves, _)| *leaves);
            let takes = (probe.ip_bytes + LINK_BYTES) / bytes_per_ns;
            inside.push_back((begins + takes, takes));
        }
        with
    };
    fates.probes.iter().map(of).collect()
}

/// Queue that each packet finds, inferred from the delays of those before it.
#[derive(Debug, Default)]
pub(super) struct QueueStates {
    /// Bytes of these trains.
    pub(super) own_bytes: Vec<f64>,
    /// Packets of these trains.
    pub(super) own_packets: Vec<f64>,
    /// Bytes of all traffic: time that the last one waits, at the link's rate.
    pub(super) all_bytes: Vec<f64>,
    /// Packets of all traffic, those of others as long ones.
    pub(super) all_packets: Vec<f64>,
}

/// A long packet of other traffic.
const OTHER_BYTES: f64 = 1500.0;

/// Queue before a link that sends `bytes_per_ns`, at each packet.
pub(super) fn queue_before_link(fates: &Fates, bytes_per_ns: f64) -> QueueStates {
    let mut waiting = QueueStates::default();
    // Nanoseconds as integers, so that they have an order: when each leaves the queue, and bytes.
    let mut inside: BinaryHeap<Reverse<(u64, u32)>> = BinaryHeap::new();
    let (mut bytes, mut last) = (0.0, 0.0_f64);
    for probe in &fates.probes {
        while inside.peek().is_some_and(|front| front.0.0 as f64 <= probe.at) {
            let Some(Reverse((_, left))) = inside.pop() else { break };
            bytes -= f64::from(left);
        }
        let packets = inside.len() as f64;
        let all = ((last - probe.at) * bytes_per_ns).max(0.0);
        let line = bytes + packets * LINK_BYTES;
        let others = ((all - line) / (OTHER_BYTES + LINK_BYTES)).max(0.0);
        waiting.own_bytes.push(bytes + probe.ip_bytes);
        waiting.own_packets.push(packets + 1.0);
        waiting.all_bytes.push(all.max(line) + probe.ip_bytes);
        waiting.all_packets.push(packets + others + 1.0);
        if let Some(delay) = probe.delay {
            let leaves = probe.at + delay;
            last = last.max(leaves);
            inside.push(Reverse((whole_ns(leaves), whole_bytes(probe.ip_bytes))));
            bytes += probe.ip_bytes;
        }
    }
    waiting
}

/// Packets since the last loss in the same train, less for more: a chance that falls with it rises
/// with this.
pub(super) fn since_loss(fates: &Fates) -> Vec<f64> {
    let mut since = MEMORY_PACKETS;
    let mut run = usize::MAX;
    fates
        .probes
        .iter()
        .map(|probe| {
            if probe.run != run {
                (run, since) = (probe.run, MEMORY_PACKETS);
            }
            let state = -since;
            since = if probe.delay.is_none() { 1.0 } else { (since + 1.0).min(MEMORY_PACKETS) };
            state
        })
        .collect()
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole_ns(value: f64) -> u64 {
    value as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a cast saturates")]
const fn whole_bytes(value: f64) -> u32 {
    value as u32
}

#[cfg(test)]
mod tests {
    use super::super::fates::ProbeTrain;
    use super::*;

    fn fates_of(packets: &[(f64, Option<f64>)]) -> Fates {
        let probe =
            |&(at, delay): &(f64, Option<f64>)| TimedProbe { at, ip_bytes: 1000.0, delay, run: 0 };
        let probes: Vec<TimedProbe> = packets.iter().map(probe).collect();
        let run = ProbeTrain { ip_bytes: 1000, offered_bps: None, probes: 0..probes.len() };
        Fates { probes, runs: vec![run] }
    }

    #[test]
    fn a_bucket_lacks_what_passed_and_not_what_was_lost() {
        // One byte each nanosecond; 1000 bytes at 0, at 500 (lost), at 1500.
        let fates = fates_of(&[(0.0, Some(0.0)), (500.0, None), (1500.0, Some(0.0))]);
        let cost = Cost::Bytes { added: 0.0 };
        assert_eq!(excess_over_rate(&fates, cost, 1.0), [1000.0, 1500.0, 1000.0]);
        assert_eq!(excess_over_rate(&fates, Cost::Packets, 1e-3), [1.0, 1.5, 1.0]);
        // The first takes 1038 ns of the link; half of 2076 are left of it at half that rate.
        assert_eq!(behind_link(&fates, 1.0)[2], 1.0);
        let fates = fates_of(&[(0.0, Some(0.0)), (1038.0, Some(0.0))]);
        assert_eq!(behind_link(&fates, 0.5), [1.0, 1.5]);
    }

    #[test]
    fn what_waits_is_what_was_sent_and_has_not_left() {
        // Leave at 1038, 2076 and never: the line takes 1038 bytes of each, one in a nanosecond.
        let fates = fates_of(&[
            (0.0, Some(1038.0)),
            (0.0, Some(2076.0)),
            (1100.0, None),
            (3000.0, Some(0.0)),
        ]);
        let waiting = queue_before_link(&fates, 1.0);
        assert_eq!(waiting.own_packets, [1.0, 2.0, 2.0, 1.0]);
        assert_eq!(waiting.own_bytes, [1000.0, 2000.0, 2000.0, 1000.0]);
        assert_eq!(waiting.all_packets, [1.0, 2.0, 2.0, 1.0]);
        assert_eq!(since_loss(&fates), [-64.0, -64.0, -64.0, -1.0]);
    }
}
