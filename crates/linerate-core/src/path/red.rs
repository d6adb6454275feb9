//! Random early detection: drops, or marks, with a probability that grows with the average queue.
//!
//! Floyd and Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance": the
//! average of §4 with its idle rule, the probability of §4 with the count since the last mark
//! (even spacing). Thresholds and lengths are in bytes of IP packets. Left out: the gentle slope
//! above the upper threshold and self-tuning (adaptive RED).

use super::queue::{Fifo, Queue};
use super::{Backlog, Limit, LossCause, Outlet, Packet, Random};
use crate::time::MonoTime;

/// Parameters of RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RedSettings {
    /// Below this average nothing is dropped.
    pub min_bytes: f64,
    /// At and above this average everything is.
    pub max_bytes: f64,
    /// Probability just below the upper threshold.
    pub max_probability: f64,
    /// Weight of a new length in the average; 0.002 in the paper.
    pub weight: f64,
    /// Mark packets that know ECN instead of dropping them (RFC 3168 §5).
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
    since_last: Option<u64>,
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
        let weight = self.settings.weight;
        if let Some(idle) = self.idle_since.take() {
            // As if small packets had come to an empty queue all the while.
            let packets = at.nanos_since(idle) as f64 / self.settings.packet_time_ns.max(1) as f64;
            self.average *= (1.0 - weight).powf(packets);
        }
        let length = self.fifo.backlog().bytes as f64;
        self.average += weight * (length - self.average);
    }

    /// Whether this packet is the one to drop or mark.
    fn chosen(&mut self) -> bool {
        let RedSettings { min_bytes, max_bytes, max_probability, .. } = self.settings;
        if self.average < min_bytes {
            self.since_last = None;
            return false;
        }
        if self.average >= max_bytes {
            self.since_last = Some(0);
            return true;
        }
        let count = self.since_last.map_or(0, |count| count + 1);
        let base = max_probability * (self.average - min_bytes) / (max_bytes - min_bytes);
        let spaced = 1.0 - count as f64 * base;
        let probability = if spaced > 0.0 { base / spaced } else { 1.0 };
        let chosen = self.random.chance(probability);
        self.since_last = Some(if chosen { 0 } else { count });
        chosen
    }

    /// The packet, marked perhaps; `None` when it was dropped early.
    fn admit(&mut self, at: MonoTime, mut packet: Packet, out: &mut Outlet) -> Option<Packet> {
        self.count_arrival(at);
        if self.chosen() {
            let above = self.average >= self.settings.max_bytes;
            if !self.settings.ecn || above || !packet.ecn.may_be_marked() {
                out.lose(at, packet, LossCause::QueueEarly);
                return None;
            }
            packet.ecn = super::Ecn::Experienced;
        }
        Some(packet)
    }
}

impl Queue for Red {
    fn put(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) {
        let Some(packet) = self.admit(at, packet, out) else { return };
        if self.limit.admits(self.fifo.backlog(), &packet) {
            self.fifo.push(at, packet);
        } else {
            self.since_last = Some(0);
            out.lose(at, packet, LossCause::QueueFull);
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

    fn pass(&mut self, at: MonoTime, packet: Packet, out: &mut Outlet) -> Option<Packet> {
        let packet = self.admit(at, packet, out);
        self.idle_since = Some(at);
        packet
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::packet;
    use super::*;

    fn settings() -> RedSettings {
        RedSettings {
            min_bytes: 30_000.0,
            max_bytes: 90_000.0,
            max_probability: 0.02,
            weight: 0.002,
            ecn: false,
            packet_time_ns: 1000,
        }
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
        // Half-way between the thresholds the base probability is 0.01. With the count the gap is
        // uniform on 1 … 1/p (§7 of the paper): mean (1/p + 1)/2 = 50.5, never above 100.
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
        // Standard deviation of a uniform gap is 28.9, so 0.2 for the mean; five of them.
        assert!((mean - 50.5).abs() < 1.1, "{mean}");
        assert!(gaps.iter().all(|&gap| gap <= 101));
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
