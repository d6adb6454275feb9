//! Delay that varies from packet to packet, with or without reordering.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::Duration;

use super::{Backlog, Departure, Element, Outlet, Packet, Random};
use crate::time::MonoTime;

/// Distribution of the extra delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Spread {
    /// Evenly over 0 … `most`.
    Uniform {
        /// The longest extra delay.
        most: Duration,
    },
    /// Exponentially: many short, few long.
    Exponential {
        /// Mean of the extra delay.
        mean: Duration,
    },
    /// `extra` for a share of the packets, 0 for the others: they are overtaken.
    Some {
        /// Share of packets, 0 … 1.
        share: f64,
        /// Extra delay of those packets.
        extra: Duration,
    },
}

impl Spread {
    fn draw_delay(self, random: &mut Random) -> Duration {
        match self {
            Self::Uniform { most } => most.mul_f64(random.next_uniform()),
            Self::Exponential { mean } => mean.mul_f64(random.exponential()),
            Self::Some { share, extra } => {
                if random.chance(share) {
                    extra
                } else {
                    Duration::ZERO
                }
            }
        }
    }
}

/// Adds a random delay to each packet.
#[derive(Debug)]
pub struct Jitter {
    spread: Spread,
    keep_order: bool,
    random: Random,
    held: BinaryHeap<Reverse<JitteredPacket>>,
    bytes: u64,
    /// The latest departure so far, where order is kept.
    last: MonoTime,
    taken: u64,
}

/// A packet that waits, ordered by departure and then by arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct JitteredPacket {
    departure: Departure,
    arrival: u64,
}

impl JitteredPacket {
    const fn departure_key(&self) -> (MonoTime, u64) {
        (self.departure.at, self.arrival)
    }
}

impl PartialOrd for JitteredPacket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for JitteredPacket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.departure_key().cmp(&other.departure_key())
    }
}

impl Jitter {
    /// Extra delay by `spread`. With `keep_order`, a packet never leaves before one that arrived
    /// earlier; it waits for it.
    pub const fn new(spread: Spread, keep_order: bool, random: Random) -> Self {
        let held = BinaryHeap::new();
        let last = MonoTime::from_nanos(0);
        Self { spread, keep_order, random, held, bytes: 0, last, taken: 0 }
    }
}

impl Element for Jitter {
    fn receive(&mut self, at: MonoTime, packet: Packet, _: &mut Outlet) {
        let mut leaves = at + self.spread.draw_delay(&mut self.random);
        if self.keep_order {
            leaves = leaves.max(self.last);
            self.last = leaves;
        }
        self.bytes += u64::from(packet.ip_bytes);
        let departure = Departure { at: leaves, packet };
        self.held.push(Reverse(JitteredPacket { departure, arrival: self.taken }));
        self.taken += 1;
    }

    fn release(&mut self, now: MonoTime, out: &mut Outlet) {
        while self.held.peek().is_some_and(|held| held.0.departure.at <= now) {
            let Some(Reverse(held)) = self.held.pop() else { break };
            self.bytes -= u64::from(held.departure.packet.ip_bytes);
            out.departures.push(held.departure);
        }
    }

    fn next(&self) -> Option<MonoTime> {
        self.held.peek().map(|held| held.0.departure.at)
    }

    fn travels(&self) -> bool {
        true
    }

    fn backlog(&self, _: MonoTime) -> Backlog {
        Backlog { packets: self.held.len() as u64, bytes: self.bytes }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{numbers, send_packets};
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_share_of_packets_is_overtaken_by_those_that_come_within_its_extra_delay() {
        // A packet each 1 ms, one in ten is 2.5 ms later: the two after it overtake it, unless
        // they are late themselves. Reordered by RFC 4737 §3: a number below one seen before; that
        // is a late packet with at least one of the next two on time: 0.1 (1 - 0.1^2) = 0.099.
        let spread = Spread::Some { share: 0.1, extra: MS * 5 / 2 };
        let mut jitter = Jitter::new(spread, false, Random::new(9, 0));
        let out = send_packets(&mut jitter, 200_000, 1500, 1_000_000);
        let mut highest = 0;
        let late = |number: u64| {
            let reordered = number < highest;
            highest = highest.max(number);
            reordered
        };
        let reordered = numbers(&out.departures).into_iter().map(late).filter(|&late| late).count();
        // Standard error sqrt(0.099 x 0.9 / 200,000) = 0.00067; four of them.
        assert!((reordered as f64 / 2e5 - 0.099).abs() < 0.0027, "{reordered}");
    }

    #[test]
    fn kept_order_is_kept_and_delays_stay_within_their_bounds() {
        let spread = Spread::Uniform { most: 10 * MS };
        let mut jitter = Jitter::new(spread, true, Random::new(9, 0));
        let out = send_packets(&mut jitter, 100_000, 1500, 100_000);
        assert!(numbers(&out.departures).is_sorted());
        assert!(out.departures.iter().all(|left| {
            let delay = left.at.as_nanos() - left.packet.number * 100_000;
            delay <= 10_000_000
        }));
    }
}
