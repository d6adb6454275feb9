//! Cross traffic: packets that come onto the path at this place and leave it with the next link
//! or at the end, but compete on the way.

use std::time::Duration;

use super::{Ecn, Element, Outlet, Packet, Random};
use crate::time::MonoTime;

/// Arrival process of the packets of a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// One packet each `gap`.
    Constant {
        /// Time from packet to packet.
        gap: Duration,
    },
    /// Poisson: gaps are exponential with this mean.
    Poisson {
        /// Mean gap between packets.
        gap: Duration,
    },
    /// Bursts of constant gaps; the lengths of bursts and pauses are exponential.
    OnOff {
        /// Time from packet to packet within a burst.
        gap: Duration,
        /// Mean length of a burst.
        on: Duration,
        /// Mean length of a pause.
        off: Duration,
    },
}

/// A source of other traffic on the path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CrossSettings {
    /// Length of its IP packets.
    pub ip_bytes: u32,
    /// Arrival process of the packets.
    pub arrivals: Arrivals,
    /// Flow of the packets, for queues and trunks that tell flows apart.
    pub flow: u32,
}

/// Mixes a source's packets into those of the path.
#[derive(Debug)]
pub struct CrossTraffic {
    settings: CrossSettings,
    random: Random,
    next: MonoTime,
    burst_end: MonoTime,
    sent: u64,
}

impl CrossTraffic {
    /// A source that begins at `start`.
    pub fn new(settings: CrossSettings, start: MonoTime, mut random: Random) -> Self {
        let (next, burst_end) = match settings.arrivals {
            Arrivals::Constant { .. } => (start, start),
            Arrivals::Poisson { gap } => (start + gap.mul_f64(random.exponential()), start),
            Arrivals::OnOff { on, .. } => (start, start + on.mul_f64(random.exponential())),
        };
        Self { settings, random, next, burst_end, sent: 0 }
    }

    fn schedule_next(&mut self) {
        // A gap of zero would never let the clock go on.
        let least = Duration::from_nanos(1);
        let next = match self.settings.arrivals {
            Arrivals::Constant { gap } => self.next + gap.max(least),
            Arrivals::Poisson { gap } => {
                self.next + gap.mul_f64(self.random.exponential()).max(least)
            }
            Arrivals::OnOff { gap, on, off } => {
                let next = self.next + gap.max(least);
                if next < self.burst_end {
                    next
                } else {
                    let begin = self.burst_end.max(next) + off.mul_f64(self.random.exponential());
                    self.burst_end = begin + on.mul_f64(self.random.exponential());
                    begin
                }
            }
        };
        self.next = next;
    }
}

impl Element for CrossTraffic {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        out.forward(at, packet);
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while self.next <= now {
            let packet = Packet {
                number: self.sent,
                ip_bytes: self.settings.ip_bytes,
                flow: self.settings.flow,
                hosts: [self.settings.flow; 2],
                ecn: Ecn::NotCapable,
                dont_fragment: true,
                corrupted: false,
                tag: Packet::CROSS,
            };
            out.forward(self.next, packet);
            self.sent += 1;
            self.schedule_next();
        }
    }

    fn next(&self) -> Option<MonoTime> {
        Some(self.next)
    }
}

/// The place where cross traffic leaves the path.
#[derive(Clone, Copy, Debug)]
pub struct CrossEnd;

impl Element for CrossEnd {
    fn receive(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        if !packet.is_cross() {
            out.forward(at, packet);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::time_at_ns;
    use super::*;
    use crate::path::{Framing, Limit, Pipeline, QueuedLink, TailDrop};
    use crate::units::BitRate;

    const SECOND: u64 = 1_000_000_000;

    fn source(arrivals: Arrivals) -> CrossTraffic {
        let settings = CrossSettings { ip_bytes: 1500, arrivals, flow: 9 };
        CrossTraffic::new(settings, time_at_ns(0), Random::new(21, 0))
    }

    fn packets_in(arrivals: Arrivals, seconds: u64) -> usize {
        let mut out = Outlet::default();
        source(arrivals).release(time_at_ns(seconds * SECOND - 1), &mut out);
        out.departures.len()
    }

    #[test]
    fn each_kind_of_source_keeps_its_rate() {
        let gap = Duration::from_micros(100);
        assert_eq!(packets_in(Arrivals::Constant { gap }, 10), 100_000);
        // Poisson: a mean of 10^6 with a standard deviation of 1000; four of them.
        let poisson = packets_in(Arrivals::Poisson { gap }, 100);
        assert!(poisson.abs_diff(1_000_000) < 4000, "{poisson}");
        // On a quarter of the time: 250,000 in 100 s; 1250 bursts of 20 ms, whose lengths spread
        // as much as their mean: 1/sqrt(1250) x sqrt(2) = 4 % at one standard error; four allowed.
        let (on, off) = (Duration::from_millis(20), Duration::from_millis(60));
        let on_off = packets_in(Arrivals::OnOff { gap, on, off }, 100);
        assert!(on_off.abs_diff(250_000) < 40_000, "{on_off}");
    }

    #[test]
    fn cross_traffic_competes_and_never_leaves_the_path() {
        let gap = Duration::from_micros(24);
        let rate = BitRate::from_bits_per_sec(SECOND);
        let link = QueuedLink::new(rate, Framing::Ip, TailDrop::new(Limit::Packets(10)));
        let elements: [Box<dyn Element>; 2] =
            [Box::new(source(Arrivals::Constant { gap })), Box::new(link)];
        let mut pipeline = Pipeline::new(elements.into());
        let mut out = Outlet::default();
        let packet = super::super::testing::packet(1500);
        // Offered 1 Gbit/s beside 0.5 Gbit/s: about half the link is left.
        for index in 0..100_000 {
            pipeline.receive(time_at_ns(index * 12_000), packet, &mut out);
        }
        let share = out.departures.len() as f64 / 100_000.0;
        assert!(out.departures.iter().all(|left| !left.packet.is_cross()));
        assert!((0.5..0.72).contains(&share), "{share}");
    }
}
