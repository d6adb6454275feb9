//! FQ-CoDel: flows in queues of their own, served in turn, each under CoDel (RFC 8290 §4).
//!
//! The flow's hash picks the queue, so two flows may share one, as on a real device.

use std::collections::VecDeque;

use super::codel::{CodelSettings, Control};
use super::queue::{Fifo, Queue};
use super::{Backlog, Limit, LossCause, Outlet, Packet};
use crate::time::MonoTime;

/// Queues, as RFC 8290 §5.2.3 suggests.
pub const FLOW_QUEUES: usize = 1024;

/// One flow's queue.
#[derive(Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// On one of the two lists.
    listed: bool,
}

/// An FQ-CoDel queue.
#[derive(Debug)]
pub struct FqCodel {
    settings: CodelSettings,
    limit: Limit,
    queues: Vec<FlowQueue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    waiting: Backlog,
}

impl FqCodel {
    /// An empty set of queues that hold `limit` together. The quantum is the MTU of `settings`.
    pub fn new(settings: CodelSettings, limit: Limit) -> Self {
        let queues = (0..FLOW_QUEUES).map(|_| FlowQueue::default()).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { settings, limit, queues, new, old, waiting: Backlog::default() }
    }

    /// Loses the oldest packet of the queue with the most bytes (RFC 8290 §4.1.2).
    fn make_room(&mut self, at: MonoTime, out: &mut Outlet) {
        let bytes = |queue: &FlowQueue| queue.fifo.backlog().bytes;
        let fattest = self.queues.iter_mut().max_by_key(|queue| bytes(queue));
        if let Some((_, packet)) = fattest.and_then(|queue| queue.fifo.pop()) {
            self.forget(&packet);
            out.lose(at, packet, LossCause::QueueFull);
        }
    }

    fn forget(&mut self, packet: &Packet) {
        self.waiting.packets -= 1;
        self.waiting.bytes -= u64::from(packet.ip_bytes);
    }

    /// The queue whose turn it is, and whether it is on the list of new ones.
    fn turn(&self) -> Option<(usize, bool)> {
        let new = self.new.front().map(|&index| (index, true));
        new.or_else(|| self.old.front().map(|&index| (index, false)))
    }

    /// Takes the queue whose turn it is off its list and puts it last among the old ones, or on
    /// none.
    fn pass_on(&mut self, was_new: bool, keep: bool) {
        let list = if was_new { &mut self.new } else { &mut self.old };
        let Some(index) = list.pop_front() else { return };
        if keep {
            self.old.push_back(index);
        } else {
            self.queues[index].listed = false;
        }
    }
}

impl Queue for FqCodel {
    fn put(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let index = packet.flow as usize % FLOW_QUEUES;
        let queue = &mut self.queues[index];
        queue.fifo.push(at, packet);
        if !queue.listed {
            queue.listed = true;
            queue.credit = i64::from(self.settings.mtu_bytes);
            self.new.push_back(index);
        }
        let fits = self.limit.admits(self.waiting, &packet);
        self.waiting.packets += 1;
        self.waiting.bytes += u64::from(packet.ip_bytes);
        if !fits {
            self.make_room(at, out);
        }
    }

    fn get(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        while let Some((index, was_new)) = self.turn() {
            let queue = &mut self.queues[index];
            if queue.credit <= 0 {
                queue.credit += i64::from(self.settings.mtu_bytes);
                self.pass_on(was_new, true);
                continue;
            }
            let before = queue.fifo.backlog();
            let packet = queue.control.get(&self.settings, &mut queue.fifo, at, out);
            let after = queue.fifo.backlog();
            self.waiting.packets -= before.packets - after.packets;
            self.waiting.bytes -= before.bytes - after.bytes;
            if let Some(packet) = packet {
                queue.credit -= i64::from(packet.ip_bytes);
                return Some(packet);
            }
            // An empty new queue goes behind the old ones once, so that a flow cannot stay new by
            // being empty (RFC 8290 §4.2).
            let keep = was_new && !self.old.is_empty();
            self.pass_on(was_new, keep);
        }
        None
    }

    fn backlog(&self) -> Backlog {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{at, packet};
    use super::*;

    #[test]
    fn a_sparse_flow_does_not_wait_behind_a_bulky_one() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(10_240));
        let mut out = Outlet::default();
        for number in 0..100 {
            queue.put(at(0), Packet { flow: 1, number, ..packet(1500) }, &mut out);
        }
        // The bulky flow's first turn makes it an old flow.
        assert_eq!(queue.get(at(0), &mut out).map(|packet| packet.flow), Some(1));
        assert_eq!(queue.get(at(0), &mut out).map(|packet| packet.flow), Some(1));
        queue.put(at(1), Packet { flow: 2, ..packet(100) }, &mut out);
        assert_eq!(queue.get(at(1), &mut out).map(|packet| packet.flow), Some(2));
    }

    #[test]
    fn flows_share_by_bytes_and_not_by_packets() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(10_240));
        let mut out = Outlet::default();
        for _ in 0..2000 {
            queue.put(at(0), Packet { flow: 1, ..packet(1500) }, &mut out);
            queue.put(at(0), Packet { flow: 2, ..packet(500) }, &mut out);
        }
        let mut bytes = [0_u64; 3];
        for _ in 0..2000 {
            let packet = queue.get(at(0), &mut out).expect("packets wait");
            bytes[packet.flow as usize] += u64::from(packet.ip_bytes);
        }
        // Shares differ by less than two quanta.
        assert!(bytes[1].abs_diff(bytes[2]) < 2 * 1514, "{bytes:?}");
    }

    #[test]
    fn a_full_queue_takes_from_the_flow_that_has_the_most() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(10));
        let mut out = Outlet::default();
        for number in 0..10 {
            queue.put(at(0), Packet { flow: 1, number, ..packet(1500) }, &mut out);
        }
        queue.put(at(0), Packet { flow: 2, ..packet(100) }, &mut out);
        assert_eq!(out.lost.len(), 1);
        assert_eq!((out.lost[0].packet.flow, out.lost[0].packet.number), (1, 0));
        assert_eq!(queue.backlog(), Backlog { packets: 10, bytes: 9 * 1500 + 100 });
    }
}
