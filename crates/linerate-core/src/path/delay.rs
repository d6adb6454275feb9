//! Fixed delay: propagation. Order is kept; jitter has an element of its own.

use std::collections::VecDeque;
use std::time::Duration;

use super::element::Backlog;
use super::{Departure, Element, Outlet, Packet};
use crate::time::MonoTime;

/// Holds every packet for the same span.
#[derive(Debug)]
pub struct Delay {
    span: Duration,
    held: VecDeque<Departure>,
    bytes: u64,
}

impl Delay {
    /// A delay of `span`.
    pub const fn new(span: Duration) -> Self {
        Self { span, held: VecDeque::new(), bytes: 0 }
    }
}

impl Element for Delay {
    fn take(&mut self, at: MonoTime, packet: Packet, _: &mut Outlet) {
        self.bytes += u64::from(packet.ip_bytes);
        self.held.push_back(Departure { at: at + self.span, packet });
    }

    fn due(&mut self, now: MonoTime, out: &mut Outlet) {
        while let Some(departure) = self.held.front().filter(|departure| departure.at <= now) {
            self.bytes -= u64::from(departure.packet.ip_bytes);
            out.departures.push(*departure);
            self.held.pop_front();
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.held.front().map(|departure| departure.at)
    }

    fn transit_min(&self) -> Duration {
        self.span
    }

    fn travels(&self) -> bool {
        true
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        Backlog { packets: self.held.len() as u64, bytes: self.bytes }
    }
}
