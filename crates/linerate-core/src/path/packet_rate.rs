//! A device that handles so many packets a second, however long they are.

use super::queue::Queue;
use super::{Backlog, Element, Outlet, Packet};
use crate::time::MonoTime;

const NANOS_PER_SECOND: u64 = 1_000_000_000;

/// A server with one time per packet and a queue.
pub struct PacketRate {
    packets_per_s: u64,
    queue: Box<dyn Queue>,
    serving: Option<(MonoTime, Packet)>,
    /// What was left of the last division, so that the rate is exact.
    remainder: u64,
}

impl PacketRate {
    /// A device of `packets_per_s`, which must not be 0.
    pub fn new(packets_per_s: u64, queue: impl Queue + 'static) -> Self {
        Self { packets_per_s, queue: Box::new(queue), serving: None, remainder: 0 }
    }

    fn serve(&mut self, at: MonoTime, packet: Packet) {
        let work = NANOS_PER_SECOND + self.remainder;
        self.remainder = work % self.packets_per_s;
        let ready = at.nanos().saturating_add(work / self.packets_per_s);
        self.serving = Some((MonoTime::from_nanos(ready), packet));
    }
}

impl Element for PacketRate {
    fn take(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if self.serving.is_some() {
            self.queue.put(at, packet, out);
        } else if let Some(packet) = self.queue.pass(at, packet, out) {
            self.remainder = 0;
            self.serve(at, packet);
        }
    }

    fn due(&mut self, now: MonoTime, out: &mut Outlet) {
        while let Some((ready, packet)) = self.serving.filter(|(ready, _)| *ready <= now) {
            out.forward(ready, packet);
            self.serving = None;
            if let Some(next) = self.queue.get(ready, out) {
                self.serve(ready, next);
            }
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.serving.map(|(ready, _)| ready)
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        self.queue.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::drive;
    use super::*;
    use crate::path::{Limit, TailDrop};

    #[test]
    fn long_and_short_packets_pass_at_one_rate() {
        for ip_bytes in [64, 9000] {
            // 3000 packets/s offered at 10,000: one second's worth leaves in one second.
            let queue = TailDrop::new(Limit::Packets(8));
            let out = drive(&mut PacketRate::new(3000, queue), 10_000, ip_bytes, 100_000);
            let second = |left: &&super::super::Departure| left.at.nanos() <= 1_000_000_000;
            assert_eq!(out.departures.iter().filter(second).count(), 3000);
            // The first 9 find room, so 9 more than the rate were taken by then.
            assert_eq!(out.departures.len() + out.lost.len(), 10_000);
        }
    }
}
