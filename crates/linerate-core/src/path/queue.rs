//! What waits before a line: the queue disciplines' common face, and tail drop.

use std::collections::VecDeque;

use super::{Backlog, Outlet, Packet, PathLossCause};
use crate::time::MonoTime;

/// A queue before a line. The packet on the line is not in it.
pub trait Queue: Send {
    /// Takes a packet that has to wait; this one or another may be lost, or marked, for it.
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet);

    /// The next packet for the line, which is free at `at`; packets may be lost on the way.
    fn get(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet>;

    /// Packets and bytes that wait.
    fn backlog(&self) -> Backlog;

    /// A packet found the queue empty and the line free, and waits for nothing: disciplines that
    /// average the queue's length count it as an arrival to an empty queue. Returns the packet,
    /// or `None` if it was dropped all the same.
    fn pass_through(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) -> Option<Packet> {
        let _ = (at, out);
        Some(packet)
    }
}

impl Queue for Box<dyn Queue> {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        (**self).enqueue(at, packet, out);
    }

    fn get(&mut self, at: MonoTime, out: &mut Outlet) -> Option<Packet> {
        (**self).get(at, out)
    }

    fn backlog(&self) -> Backlog {
        (**self).backlog()
    }

    fn pass_through(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) -> Option<Packet> {
        (**self).pass_through(at, packet, out)
    }
}

/// Limit of the bytes or packets that may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Bytes of IP packets.
    Bytes(u64),
    /// At most so many packets.
    Packets(u64),
}

impl Limit {
    /// True when one more packet fits beside those that wait.
    pub const fn admits(self, waiting: Backlog, packet: &Packet) -> bool {
        match self {
            Self::Bytes(bytes) => waiting.bytes + packet.ip_bytes as u64 <= bytes,
            Self::Packets(packets) => waiting.packets < packets,
        }
    }
}

/// Packets in order of arrival, with their count and bytes.
#[derive(Debug, Default)]
pub(super) struct Fifo {
    packets: VecDeque<(MonoTime, Packet)>,
    bytes: u64,
}

impl Fifo {
    pub(super) fn push(&mut self, at: MonoTime, packet: Packet) {
        self.bytes += u64::from(packet.ip_bytes);
        self.packets.push_back((at, packet));
    }

    /// The oldest packet and its time of arrival.
    pub(super) fn pop(&mut self) -> Option<(MonoTime, Packet)> {
        let (at, packet) = self.packets.pop_front()?;
        self.bytes -= u64::from(packet.ip_bytes);
        Some((at, packet))
    }

    /// Arrival time of the oldest packet.
    pub(super) fn oldest(&self) -> Option<MonoTime> {
        self.packets.front().map(|(came, _)| *came)
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.packets.len() as u64, bytes: self.bytes }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

/// First in, first out; a packet that arrives when the queue is full is lost.
#[derive(Debug)]
pub struct TailDrop {
    limit: Limit,
    fifo: Fifo,
}

impl TailDrop {
    /// An empty queue with room for `limit`.
    pub fn new(limit: Limit) -> Self {
        Self { limit, fifo: Fifo::default() }
    }
}

impl Queue for TailDrop {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.limit.admits(self.fifo.backlog(), &packet) {
            self.fifo.push(at, packet);
        } else {
            out.record_loss(at, packet, PathLossCause::QueueFull);
        }
    }

    fn get(&mut self, _: MonoTime, _: &mut Outlet) -> Option<Packet> {
        self.fifo.pop().map(|(_, packet)| packet)
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }
}
