//! Hold and release: packets wait for the next of evenly spaced times and leave together, as they
//! do with the aggregates of Wi-Fi and the grants of DOCSIS.
//!
//! Left out: what an aggregate holds at most; a grant here takes all that waits.

use std::time::Duration;

use super::held::HeldPackets;
use super::{Backlog, Departure, Element, Outlet, Packet};
use crate::time::MonoTime;

/// Releases the packets that wait at every whole period after a start.
#[derive(Debug)]
pub struct Batch {
    start: MonoTime,
    period_ns: u64,
    held: HeldPackets,
}

impl Batch {
    /// Releases at `start` and each `period`, which is not 0, after it.
    pub fn new(start: MonoTime, period: Duration) -> Self {
        let period_ns = u64::try_from(period.as_nanos()).unwrap_or(u64::MAX).max(1);
        Self { start, period_ns, held: HeldPackets::new() }
    }

    /// The first release at or after `at`.
    fn release_time(&self, at: MonoTime) -> MonoTime {
        let periods = at.nanos_since(self.start).div_ceil(self.period_ns);
        self.start + Duration::from_nanos(periods.saturating_mul(self.period_ns))
    }
}

impl Element for Batch {
    fn receive(&mut self, at: MonoTime, packet: Packet, _: &mut Outlet) {
        self.held.push(Departure { at: self.release_time(at), packet });
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        self.held.release(now, out);
    }

    fn next(&self) -> Option<MonoTime> {
        self.held.next()
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        self.held.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{send_packets, time_at_ns};
    use super::*;

    #[test]
    fn packets_leave_together_at_whole_periods_after_the_start() {
        // One packet each ns from 0; released at 1, 5 and 9: two, four and four of them.
        let mut batch = Batch::new(time_at_ns(1), Duration::from_nanos(4));
        let out = send_packets(&mut batch, 10, 100, 1);
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos()).collect();
        assert_eq!(times, [1, 1, 5, 5, 5, 5, 9, 9, 9, 9]);
        assert_eq!(batch.backlog(time_at_ns(20)), Backlog::default());
    }

    #[test]
    fn the_mean_wait_is_half_a_period() {
        // 1000 packets evenly over each period of 10 ms: 0 to 9.99 ms, 5 ms in the mean.
        let out = send_packets(
            &mut Batch::new(time_at_ns(0), Duration::from_millis(10)),
            100_000,
            100,
            10_000,
        );
        let waits =
            out.departures.iter().map(|left| left.at.as_nanos() - left.packet.number * 10_000);
        assert_eq!(waits.sum::<u64>() / 100_000, 4_995_000);
    }
}
