//! Random early detection: drops, or marks, with a probability that grows with the average queue.
//!
//! The average, the chance of a drop and its spreading by the count since the last one are those
//! of the theory (Floyd and Jacobson 1993); here they meet packets. Thresholds and lengths are in
//! bytes of IP packets. Left out: the gentle slope above the upper threshold and self-tuning
//! (adaptive RED).

use super::queue::{Fifo, Queue};
use super::{Backlog, Limit, Outlet, Packet, PathLossCause, Random};
use crate::theory::red::{self, spread_chance};
use crate::time::MonoTime;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSettings {
    /// Thresholds in bytes, the chance between them, and the weight of a new length.
    pub law: red::RedParameters,
    /// Mark ECN-capable packets instead of dropping them (RFC 3168 §5).
    pub ecn: bool,
    /// Time that a typical packet takes on the line, for the average after an idle time.
    pub packet_time_ns: u64,
}

/// A RED queue.
#[derive(Debug)]
pub struct Red {
    settings: RedSettings,
    limit: Limit,
    fifo: Fifo,
    random: Random,
    average: f64,
    /// Packets since the last one that was dropped or marked; `None` while the average is low.
    since_last: Option<u32>,
    idle_since: Option<MonoTime>,
}

impl Red {
    /// An empty queue that holds `limit` at the most.
    pub fn new(settings: RedSettings, limit: Limit, random: Random) -> Self {
        Self {
            settings,
            limit,
            fifo: Fifo::default(),
            random,
            average: 0.0,
            since_last: None,
            idle_since: Some(MonoTime::default()),
        }
    }

    /// The average length of the queue.
    pub const fn average_bytes(&self) -> f64 {
        self.average
    }

    fn count_arrival(&mut self, at: MonoTime) {
        let law = &self.settings.law;
        if let Some(idle) = self.idle_since.take() {
            // As if small packets had come to an empty queue all the while.
            let packets = at.nanos_since(idle) as f64 / self.settings.packet_time_ns.max(1) as f64;
            self.average = law.averaged_after(self.average, 0.0, packets);
        }
        self.average = law.averaged(self.average, self.fifo.backlog().bytes as f64);
    }

    /// Draws whether to drop or mark this packet, by the average length of the queue.
    fn chosen(&mut self) -> bool {
        if self.average < self.settings.law.min {
            self.since_last = None;
            return false;
        }
        if self.average >= self.settings.law.max {
            self.since_last = Some(0);
            return true;
        }
        // The first packet above the threshold counts 0, the first after a drop 1.
        let count = self.since_last.map_or(0, |count| count.saturating_add(1));
        let alone = self.settings.law.mark_chance(self.average);
        let chance = alone.and_then(|chance| spread_chance(chance, count));
        let chosen = self.random.chance(chance.expect("averages of lengths are lengths"));
        self.since_last = Some(if chosen { 0 } else { count });
        chosen
    }

    /// The packet, marked perhaps; `None` when it was dropped early.
    fn mark_or_drop(
        &mut self,
        at: MonoTime,
        mut packet: Packet,
        out: &mut Outlet,
    ) -> Option<Packet> {
        self.count_arrival(at);
        if self.chosen() {
            let above = self.average >= self.settings.law.max;
            if !self.settings.ecn || above || !packet.ecn.may_be_marked() {
                out.record_loss(at, packet, PathLossCause::QueueEarly);
                return None;
            }
            packet.ecn = super::Ecn::Experienced;
        }
        Some(packet)
    }
}

impl Queue for Red {
    fn enqueue(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let Some(packet) = self.mark_or_drop(at, packet, out) else { return };
        if self.limit.admits(self.fifo.backlog(), &packet) {
            self.fifo.push(at, packet);
        } else {
            self.since_last = Some(0);
            out.record_loss(at, packet, PathLossCause::QueueFull);
        }
    }

    fn get(&mut self, at: MonoTime, _: &mut Outlet) -> Option<Packet> {
        let packet = self.fifo.pop().map(|(_, packet)| packet);
        if self.fifo.is_empty() {
            self.idle_since = Some(at);
        }
        packet
    }

    fn backlog(&self) -> Backlog {
        self.fifo.backlog()
    }

    fn pass_through(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) -> Option<Packet> {
        let packet = self.mark_or_drop(at, packet, out);
        self.idle_since = Some(at);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packet;
    use super::*;

    fn settings() -> RedSettings {
        let law = red::RedParameters::new(30_000.0, 90_000.0, red::MARK_MAX, red::WEIGHT)
            .expect("possible");
        RedSettings { law, ecn: false, packet_time_ns: 1000 }
    }

    #[test]
    fn the_average_after_a_thousand_packets_at_a_full_queue_is_1_less_0_998_to_the_1000() {
        let mut red = Red::new(settings(), Limit::Packets(1_000_000), Random::new(1, 0));
        red.fifo.push(MonoTime::default(), packet(20_000));
        red.idle_since = None;
        for _ in 0..1000 {
            red.count_arrival(MonoTime::default());
        }
        assert!((red.average_bytes() / 20_000.0 - 0.8649).abs() < 1e-4); // 1 - 0.998^1000
    }

    #[test]
    fn at_a_steady_average_the_gaps_between_drops_are_even_as_the_paper_says() {
        // Half-way between the thresholds the chance p alone is 0.01. The paper's algorithm adds
        // 1 to the count before it draws, so the n-th packet after a drop goes with p/(1 - np): a
        // gap is n with (1 - 2p)/(1 - p) … p/(1 - np) = p/(1 - p) for n of 1 … 1/p - 1, mean
        // 1/(2p) = 50. (§7 of the paper counts from 0 and has 1 … 1/p, mean 50.5.)
        let mut red = Red::new(settings(), Limit::Packets(9), Random::new(5, 0));
        red.average = 60_000.0;
        let (mut gaps, mut gap) = (Vec::new(), 0_u32);
        while gaps.len() < 20_000 {
            gap += 1;
            if red.chosen() {
                gaps.push(gap);
                gap = 0;
            }
        }
        let mean = gaps.iter().map(|&gap| f64::from(gap)).sum::<f64>() / 20_000.0;
        // Standard deviation of one of 99 is sqrt((99^2 - 1)/12) = 28.6, so 0.2 for the mean; five
        // of them would let 50.5 pass, two do not.
        assert!((mean - 50.0).abs() < 0.4, "{mean}");
        assert!(gaps.iter().all(|&gap| gap <= 99));
    }

    #[test]
    fn below_the_lower_threshold_nothing_and_above_the_upper_everything_is_dropped() {
        let mut red = Red::new(settings(), Limit::Packets(9), Random::new(5, 0));
        red.average = 29_999.0;
        assert!((0..1000).all(|_| !red.chosen()));
        red.average = 90_000.0;
        assert!((0..1000).all(|_| red.chosen()));
    }
}
