//! FQ-CoDel: flows in queues of their own, served in turn, each under CoDel (RFC 8290 §4).
//!
//! The flow's hash picks the queue, so two flows may share one, as on a real device.
//!
//! On request hosts come before flows: the quantum of a flow is divided by the number of flows that
//! its source or its destination has waiting, the larger of both, as CAKE does (Høiland-Jørgensen,
//! Täht, Morton 2018, §3.2, triple isolation).

use std::collections::VecDeque;

use super::codel::{CodelSettings, Control};
use super::queue::{Fifo, Queue};
use super::{Backlog, Limit, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;

/// Queues, as RFC 8290 §5.2.3 suggests.
pub const FLOW_QUEUES: usize = 1024;

/// Queue of one flow.
#[derive(Debug, Default)]
struct FlowQueue {
    fifo: Fifo,
    control: Control,
    /// Bytes that it may still send in this turn.
    credit: i64,
    /// True when the queue is on one of the two lists.
    listed: bool,
    /// Hosts of the packet that put the flow on a list.
    hosts: [u32; 2],
}

/// Number of flows of each host that are on the lists.
#[derive(Debug)]
struct HostFlowCounts([Vec<u32>; 2]);

impl HostFlowCounts {
    fn change(&mut self, hosts: [u32; 2], change: impl Fn(u32) -> u32) {
        for (counts, host) in self.0.iter_mut().zip(hosts) {
            let count = &mut counts[host as usize % FLOW_QUEUES];
            *count = change(*count);
        }
    }

    /// Flows of the busier of two hosts.
    fn busier_host_flows(&self, hosts: [u32; 2]) -> u32 {
        let counts =
            self.0.iter().zip(hosts).map(|(counts, host)| counts[host as usize % FLOW_QUEUES]);
        counts.max().unwrap_or(0).max(1)
    }
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
    /// Flows of each host, where hosts share the line before flows do.
    hosts: Option<HostFlowCounts>,
}

impl FqCodel {
    /// An empty set of queues that hold `limit` together. The quantum is the MTU of `settings`.
    pub fn new(settings: CodelSettings, limit: Limit) -> Self {
        let queues = (0..FLOW_QUEUES).map(|_| FlowQueue::default()).collect();
        let (new, old) = (VecDeque::new(), VecDeque::new());
        Self { settings, limit, queues, new, old, waiting: Backlog::default(), hosts: None }
    }

    /// The same with equal shares for hosts.
    pub fn fair_to_hosts(mut self) -> Self {
        self.hosts = Some(HostFlowCounts([vec![0; FLOW_QUEUES], vec![0; FLOW_QUEUES]]));
        self
    }

    /// Bytes that a flow may send in one turn.
    fn quantum(&self, hosts: [u32; 2]) -> i64 {
        let flows = self.hosts.as_ref().map_or(1, |counts| counts.busier_host_flows(hosts));
        i64::from((self.settings.mtu_bytes / flows).max(1))
    }

    /// Loses the oldest packet of the queue with the most bytes (RFC 8290 §4.1.2).
    fn make_room(&mut self, at: MonoTime, out: &mut Outlet) {
        let bytes = |queue: &FlowQueue| queue.fifo.backlog().bytes;
        let fattest = self.queues.iter_mut().max_by_key(|queue| bytes(queue));
        if let Some((_, packet)) = fattest.and_then(|queue| queue.fifo.pop()) {
            self.forget(&packet);
            out.record_loss(at, packet, PathLossCause::QueueFull);
        }
    }

    fn forget(&mut self, packet: &Packet) {
        self.waiting.packets -= 1;
        self.waiting.bytes -= u64::from(packet.ip_bytes);
    }

    /// Index of the queue that sends next, and whether it is on the list of new ones.
    fn next_queue(&self) -> Option<(usize, bool)> {
        let new = self.new.front().map(|&index| (index, true));
        new.or_else(|| self.old.front().map(|&index| (index, false)))
    }

    /// Removes the queue that sends next from its list and puts it last among the old ones, or on
    /// none.
    fn pass_on(&mut self, was_new: bool, keep: bool) {
        let list = if was_new { &mut self.new } else { &mut self.old };
        let Some(index) = list.pop_front() else { return };
        if keep {
            self.old.push_back(index);
        } else {
            self.queues[index].listed = false;
            if let Some(counts) = &mut self.hosts {
                counts.change(self.queues[index].hosts, |count| count.saturating_sub(1));
            }
        }
    }
}

impl Queue for FqCodel {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let index = packet.flow as usize % FLOW_QUEUES;
        let queue = &mut self.queues[index];
        queue.fifo.push(at, packet);
        if !queue.listed {
            (queue.listed, queue.hosts) = (true, packet.hosts);
            if let Some(counts) = &mut self.hosts {
                counts.change(packet.hosts, |count| count + 1);
            }
            self.queues[index].credit = self.quantum(packet.hosts);
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
        while let Some((index, was_new)) = self.next_queue() {
            let quantum = self.quantum(self.queues[index].hosts);
            let queue = &mut self.queues[index];
            if queue.credit <= 0 {
                queue.credit += quantum;
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
    use super::super::testing::{packet, time_at_ns};
    use super::*;

    #[test]
    fn a_sparse_flow_does_not_wait_behind_a_bulky_one() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(10_240));
        let mut out = Outlet::default();
        for number in 0..100 {
            queue.enqueue(time_at_ns(0), Packet { flow: 1, number, ..packet(1500) }, &mut out);
        }
        // The bulky flow's first turn makes it an old flow.
        assert_eq!(queue.get(time_at_ns(0), &mut out).map(|packet| packet.flow), Some(1));
        assert_eq!(queue.get(time_at_ns(0), &mut out).map(|packet| packet.flow), Some(1));
        queue.enqueue(time_at_ns(1), Packet { flow: 2, ..packet(100) }, &mut out);
        assert_eq!(queue.get(time_at_ns(1), &mut out).map(|packet| packet.flow), Some(2));
    }

    #[test]
    fn flows_share_by_bytes_and_not_by_packets() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(10_240));
        let mut out = Outlet::default();
        for _ in 0..2000 {
            queue.enqueue(time_at_ns(0), Packet { flow: 1, ..packet(1500) }, &mut out);
            queue.enqueue(time_at_ns(0), Packet { flow: 2, ..packet(500) }, &mut out);
        }
        let mut bytes = [0_u64; 3];
        for _ in 0..2000 {
            let packet = queue.get(time_at_ns(0), &mut out).expect("packets wait");
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
            queue.enqueue(time_at_ns(0), Packet { flow: 1, number, ..packet(1500) }, &mut out);
        }
        queue.enqueue(time_at_ns(0), Packet { flow: 2, ..packet(100) }, &mut out);
        assert_eq!(out.lost.len(), 1);
        assert_eq!((out.lost[0].packet.flow, out.lost[0].packet.number), (1, 0));
        assert_eq!(queue.backlog(), Backlog { packets: 10, bytes: 9 * 1500 + 100 });
    }

    /// Shares of the bytes that a line takes from one flow of host 1 and three of host 2, all to
    /// different hosts.
    fn shares(mut queue: FqCodel) -> [f64; 2] {
        let mut out = Outlet::default();
        for _ in 0..3000 {
            for flow in 1..=4 {
                let hosts = [if flow == 1 { 1 } else { 2 }, 10 + flow];
                queue.enqueue(time_at_ns(0), Packet { flow, hosts, ..packet(1500) }, &mut out);
            }
        }
        let mut bytes = [0_u64; 2];
        for _ in 0..3000 {
            let packet = queue.get(time_at_ns(0), &mut out).expect("packets wait");
            bytes[packet.hosts[0] as usize - 1] += u64::from(packet.ip_bytes);
        }
        bytes.map(|bytes| bytes as f64 / (3000.0 * 1500.0))
    }

    #[test]
    fn hosts_share_before_flows_where_asked_and_flows_alone_otherwise() {
        let plain = || FqCodel::new(CodelSettings::STANDARD, Limit::Packets(20_000));
        let close = |got: [f64; 2], expected: [f64; 2]| {
            (got[0] - expected[0]).abs() < 0.003 && (got[1] - expected[1]).abs() < 0.003
        };
        assert!(close(shares(plain()), [0.25, 0.75]), "{:?}", shares(plain()));
        let fair = shares(plain().fair_to_hosts());
        assert!(close(fair, [0.5, 0.5]), "{fair:?}");
    }

    #[test]
    fn a_host_counts_while_its_flows_wait_and_not_after() {
        let mut queue = FqCodel::new(CodelSettings::STANDARD, Limit::Packets(100)).fair_to_hosts();
        let mut out = Outlet::default();
        for flow in 1..=3 {
            let hosts = [7, 20 + flow];
            queue.enqueue(time_at_ns(0), Packet { flow, hosts, ..packet(1500) }, &mut out);
        }
        assert_eq!(queue.quantum([7, 21]), 1514 / 3);
        assert_eq!(queue.quantum([8, 9]), 1514);
        while queue.get(time_at_ns(0), &mut out).is_some() {}
        assert_eq!(queue.quantum([7, 21]), 1514);
    }
}
