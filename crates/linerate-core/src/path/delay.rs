//! Propagation delay, fixed or with steps where a route changes. Order is kept, also when a step
//! shortens it; jitter has an element of its own.

use std::time::Duration;

use super::element::Backlog;
use super::held::HeldPackets;
use super::{Departure, Element, Outlet, Packet};
use crate::time::MonoTime;

/// Holds every packet for the same span until a step changes it.
#[derive(Debug)]
pub struct Delay {
    span: Duration,
    /// Further delays with their times, the earliest last.
    steps: Vec<(MonoTime, Duration)>,
    /// The latest departure so far.
    last: MonoTime,
    held: HeldPackets,
}

impl Delay {
    /// A delay of `span`.
    pub const fn new(span: Duration) -> Self {
        let last = MonoTime::from_nanos(0);
        Self { span, steps: Vec::new(), last, held: HeldPackets::new() }
    }

    /// The same with other delays from given times on, for the packets that arrive then.
    pub fn with_steps(mut self, mut steps: Vec<(MonoTime, Duration)>) -> Self {
        steps.sort_unstable_by_key(|&(from, _)| std::cmp::Reverse(from));
        self.steps = steps;
        self
    }
}

impl Element for Delay {
    fn receive(&mut self, at: MonoTime, packet: Packet, _: &mut Outlet) {
        while let Some((_, span)) = self.steps.pop_if(|(from, _)| *from <= at) {
            self.span = span;
        }
        self.last = self.last.max(at + self.span);
        self.held.push(Departure { at: self.last, packet });
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        self.held.release(now, out);
    }

    fn next(&self) -> Option<MonoTime> {
        self.held.next()
    }

    fn transit_min(&self) -> Duration {
        self.steps.iter().map(|(_, span)| *span).fold(self.span, Duration::min)
    }

    fn travels(&self) -> bool {
        true
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        self.held.backlog()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{packet, time_at_ns};
    use super::*;

    #[test]
    fn a_route_change_holds_for_packets_that_come_after_it_and_none_overtakes() {
        let ns = Duration::from_nanos;
        let steps = vec![(time_at_ns(20), ns(5)), (time_at_ns(10), ns(60))];
        let mut delay = Delay::new(ns(20)).with_steps(steps);
        assert_eq!(delay.transit_min(), ns(5));
        let mut out = Outlet::default();
        for now in [0, 9, 10, 19, 20, 80] {
            delay.receive(time_at_ns(now), packet(100), &mut out);
        }
        delay.release(time_at_ns(u64::MAX), &mut out);
        // 0 + 20, 9 + 20, 10 + 60, 19 + 60; 20 + 5 waits for that one; 80 + 5.
        let times: Vec<_> = out.departures.iter().map(|left| left.at.as_nanos()).collect();
        assert_eq!(times, [20, 29, 70, 79, 79, 85]);
    }
}
