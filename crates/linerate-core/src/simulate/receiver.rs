//! The receiving end: what has arrived, and when it says so.

use std::collections::BTreeMap;

use super::TcpModel;
use super::delivery::Transmission;
use crate::time::MonoTime;

/// Blocks of one acknowledgement beside the timestamps option (RFC 2018 §3).
pub(super) const BLOCKS: usize = 3;
/// Ranges that are remembered for it.
const RECENT_MAX: usize = 16;

/// Fields of an acknowledgement, in segments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ack {
    /// The next segment that is expected.
    pub(super) next: u64,
    /// Arrived out of order: first and one past the last; empty blocks are 0..0.
    pub(super) blocks: [(u64, u64); BLOCKS],
    /// The segment that moved `next` on was a retransmission, by its timestamp (RFC 7323).
    pub(super) again: bool,
    /// A segment that had arrived before (RFC 2883).
    pub(super) duplicate: Option<u64>,
}

impl Ack {
    /// True when it reports only that all below `next` has arrived.
    pub(super) const fn is_plain(&self) -> bool {
        self.blocks[0].1 == 0 && !self.again && self.duplicate.is_none()
    }
}

/// State of one receiver.
#[derive(Clone, Debug, Default)]
pub(super) struct TcpReceiver {
    next: u64,
    /// Ranges above a gap.
    ranges: BTreeMap<u64, u64>,
    /// Starts of ranges, the latest change first (RFC 2018 §4): a few more than one acknowledgement
    /// has room for, as some of them grow together.
    recent: Vec<u64>,
    unacknowledged: u32,
    /// True when the first segment since the last acknowledgement that moved `next` on was a
    /// retransmission.
    again: Option<bool>,
    /// Time at which a delayed acknowledgement is due.
    pub(super) ack_due: Option<MonoTime>,
}

impl TcpReceiver {
    /// A segment arrives; the acknowledgement that it makes at once.
    pub(super) fn receive(
        &mut self,
        now: MonoTime,
        sent: Transmission,
        tcp: &TcpModel,
    ) -> Option<Ack> {
        let Transmission { number, again } = sent;
        let in_order = number == self.next;
        let had_gap = !self.ranges.is_empty();
        let mut duplicate = number < self.next;
        if in_order {
            self.again.get_or_insert(again);
            self.next += 1;
            self.close_gap();
        } else if number > self.next {
            duplicate = !self.insert(number);
        }
        if !in_order || had_gap {
            // RFC 5681 §4.2: at once when out of order, and when a gap is filled.
            let ack = self.acknowledge();
            return Some(Ack { duplicate: duplicate.then_some(number), ..ack });
        }
        self.unacknowledged += 1;
        if self.unacknowledged >= tcp.ack_every {
            return Some(self.acknowledge());
        }
        self.ack_due.get_or_insert(now + tcp.ack_delay);
        None
    }

    /// The acknowledgement of all that has arrived.
    pub(super) fn acknowledge(&mut self) -> Ack {
        self.unacknowledged = 0;
        self.ack_due = None;
        let again = self.again.take().unwrap_or_default();
        let mut ack = Ack { next: self.next, again, ..Ack::default() };
        for (block, start) in ack.blocks.iter_mut().zip(&self.recent) {
            *block = (*start, self.ranges[start]);
        }
        ack
    }

    fn close_gap(&mut self) {
        while let Some(entry) = self.ranges.first_entry() {
            if *entry.key() > self.next {
                break;
            }
            let start = *entry.key();
            self.next = self.next.max(entry.remove());
            self.recent.retain(|&recent| recent != start);
        }
    }

    /// Remembers a segment above a gap; whether it is new.
    fn insert(&mut self, number: u64) -> bool {
        let before = self.ranges.range(..=number).next_back().map(|(&start, &end)| (start, end));
        let (start, mut end) = match before {
            Some((_, end)) if number < end => return false,
            Some((start, end)) if number == end => (start, number + 1),
            _ => (number, number + 1),
        };
        if let Some(after) = self.ranges.remove(&end) {
            self.recent.retain(|&recent| recent != end);
            end = after;
        }
        self.ranges.insert(start, end);
        self.recent.retain(|&recent| recent != start);
        self.recent.insert(0, start);
        self.recent.truncate(RECENT_MAX);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(number: u64) -> Transmission {
        Transmission { number, again: false }
    }

    #[test]
    fn every_second_segment_is_acknowledged_and_a_gap_at_once() {
        let tcp = TcpModel::TODAY;
        let now = MonoTime::from_nanos(0);
        let mut receiver = TcpReceiver::default();
        assert_eq!(receiver.receive(now, original(0), &tcp), None);
        assert_eq!(receiver.ack_due, Some(now + tcp.ack_delay));
        assert_eq!(receiver.receive(now, original(1), &tcp).map(|ack| ack.next), Some(2));
        let ack = receiver.receive(now, original(4), &tcp).expect("out of order");
        assert_eq!((ack.next, ack.blocks[0]), (2, (4, 5)));
        let ack = receiver.receive(now, original(6), &tcp).expect("out of order");
        assert_eq!((ack.blocks[0], ack.blocks[1]), ((6, 7), (4, 5)));
        // 5 joins 4 and 6.
        let ack = receiver.receive(now, original(5), &tcp).expect("out of order");
        assert_eq!((ack.blocks[0], ack.blocks[1]), ((4, 7), (0, 0)));
        let ack = receiver.receive(now, original(2), &tcp).expect("a gap is there");
        assert_eq!(ack.next, 3);
        let ack = receiver.receive(now, original(3), &tcp).expect("the gap closes");
        assert_eq!((ack.next, ack.blocks[0]), (7, (0, 0)));
    }

    #[test]
    fn what_arrives_twice_and_what_filled_a_gap_is_told() {
        let (tcp, now) = (TcpModel::TODAY, MonoTime::from_nanos(0));
        let mut receiver = TcpReceiver::default();
        let mut take = |number, again| receiver.receive(now, Transmission { number, again }, &tcp);
        assert_eq!(take(0, false), None);
        assert_eq!(take(2, false).map(|ack| (ack.duplicate, ack.again)), Some((None, false)));
        assert_eq!(take(1, true).map(|ack| (ack.next, ack.again)), Some((3, true)));
        assert_eq!(take(1, false).map(|ack| (ack.duplicate, ack.again)), Some((Some(1), false)));
        assert_eq!(take(4, false).map(|ack| ack.duplicate), Some(None));
        assert_eq!(take(4, true).map(|ack| ack.duplicate), Some(Some(4)));
        assert_eq!(take(3, true).map(|ack| (ack.next, ack.again)), Some((5, true)));
    }
}
