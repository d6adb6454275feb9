//! Packets whose times of departure are known, in the order in which they came: what elements that
//! hold packets without choosing among them have in common.

use std::collections::VecDeque;

use super::{Backlog, Departure, Outlet};
use crate::time::MonoTime;

/// Departures in order of time: none is before the one that was put in last.
#[derive(Debug, Default)]
pub(super) struct HeldPackets {
    departures: VecDeque<Departure>,
    bytes: u64,
}

impl HeldPackets {
    pub(super) const fn new() -> Self {
        Self { departures: VecDeque::new(), bytes: 0 }
    }

    pub(super) fn push(&mut self, departure: Departure) {
        self.bytes += u64::from(departure.packet.ip_bytes);
        self.departures.push_back(departure);
    }

    /// Puts out the packets that leave at or before `now`.
    pub(super) fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while self.departures.front().is_some_and(|departure| departure.at <= now) {
            let Some(departure) = self.departures.pop_front() else { break };
            self.bytes -= u64::from(departure.packet.ip_bytes);
            out.departures.push(departure);
        }
    }

    pub(super) fn next(&self) -> Option<MonoTime> {
        self.departures.front().map(|departure| departure.at)
    }

    pub(super) fn backlog(&self) -> Backlog {
        Backlog { packets: self.departures.len() as u64, bytes: self.bytes }
    }
}
