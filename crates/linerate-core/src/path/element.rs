//! The three questions that every element answers, and where its packets go.

use std::time::Duration;

use super::Packet;
use crate::time::MonoTime;

/// One element of a path. The pipeline keeps the order: before [`Element::receive`] at a time it
/// calls [`Element::release`] for that time, and times never go back.
pub trait Element: Send {
    /// Takes a packet that arrives at `at`. Packets that leave at once, and those lost, go to
    /// `out`.
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet);

    /// Puts out every packet that leaves at or before `now`, in order of time, each with the time
    /// at which it leaves.
    /// An element that holds nothing has nothing to add to what [`Element::receive`] did.
    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        let _ = (now, out);
    }

    /// Time at which the next packet leaves, as far as is known now; `None` while nothing waits.
    fn next(&self) -> Option<MonoTime> {
        None
    }

    /// The shortest time that a packet spends here. Elements behind this one may be run ahead of
    /// those before it by that time.
    fn transit_min(&self) -> Duration {
        Duration::ZERO
    }

    /// True when packets travel here instead of waiting: they are no part of a queue.
    fn travels(&self) -> bool {
        false
    }

    /// True when it shares its time with an element of another pipeline, so that the two must be
    /// asked in order of time.
    fn is_shared(&self) -> bool {
        false
    }

    /// Packets and bytes that wait here at `now`, for a plot of the queue.
    fn backlog(&self, now: MonoTime) -> Backlog {
        let _ = now;
        Backlog::default()
    }
}

/// Packets and bytes that wait in an element.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Backlog {
    /// Number of packets that wait.
    pub packets: u64,
    /// Bytes of IP packets.
    pub bytes: u64,
}

/// A packet that leaves an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Departure {
    /// Time at which it leaves.
    pub at: MonoTime,
    /// The packet that leaves.
    pub packet: Packet,
}

/// A packet that the path lost, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Time of the loss.
    pub at: MonoTime,
    /// The packet that is lost.
    pub packet: Packet,
    /// Reason of the loss.
    pub cause: PathLossCause,
}

/// Reason why a packet was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PathLossCause {
    /// The queue was full.
    QueueFull,
    /// An active queue management dropped it early.
    QueueEarly,
    /// A policer found it out of its contract.
    Policed,
    /// Random loss, a burst or a listed packet.
    Random,
    /// Bit errors that a frame check sequence catches, or a lost cell of it.
    Damaged,
    /// Longer than the MTU and not to be fragmented.
    TooLong,
    /// The path was out.
    Outage,
    /// The kernel's netem gives no reason.
    Untold,
}

/// Output of an element: packets that leave, are lost, or are copied.
#[derive(Debug, Default)]
pub struct Outlet {
    /// Packets that leave, in order of time.
    pub departures: Vec<Departure>,
    /// Packets that are lost.
    pub lost: Vec<Lost>,
    /// Packets of which the path made one more: the caller keeps their bytes for that one too.
    pub copied: Vec<Packet>,
}

impl Outlet {
    /// A packet leaves at `at`.
    pub fn forward(&mut self, at: MonoTime, packet: Packet) {
        self.departures.push(Departure { at, packet });
    }

    /// A copy of a packet leaves at `at`.
    pub fn forward_copy(&mut self, at: MonoTime, packet: Packet) {
        self.copied.push(packet);
        self.forward(at, packet);
    }

    /// A packet is lost at `at`.
    pub fn record_loss(&mut self, at: MonoTime, packet: Packet, cause: PathLossCause) {
        self.lost.push(Lost { at, packet, cause });
    }
}
