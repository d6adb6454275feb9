//! Counts of the datagrams of a round, one way: lost, duplicated, reordered, jitter.

use linerate_core::record::{Direction, PageDatagrams, ProbePhase};
use linerate_core::stats::{JitterRfc3550, PacketArrival, StreamArrivals};
use serde::Serialize;

/// Counts of one way. Lost is what had not come when the round was over, a second after its last.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct OneWayCounts {
    /// Datagrams that the sender sent.
    pub(crate) sent: u64,
    /// Datagrams among `sent` that never came (RFC 7680 §4.1).
    pub(crate) lost: u64,
    /// Datagrams that came again (RFC 5560).
    pub(crate) duplicates: u64,
    /// Datagrams that came behind one that left later (RFC 4737 §3).
    pub(crate) reordered: u64,
    /// Interarrival jitter in microseconds (RFC 3550 §6.4.1); none below two arrivals.
    pub(crate) jitter_us: Option<f64>,
}

impl OneWayCounts {
    /// Counts `sent` datagrams by their `arrivals`, which are in the order in which they came.
    pub(crate) fn from_arrivals(sent: u64, arrivals: &[PacketArrival]) -> Self {
        let arrivals = StreamArrivals::new(sent, arrivals);
        let mut jitter = JitterRfc3550::default();
        for arrival in arrivals.in_order_of_arrival() {
            jitter.record(arrival.delay_ns);
        }
        Self {
            sent,
            lost: sent - arrivals.received(),
            duplicates: arrivals.duplicates(),
            reordered: arrivals.reordered().len() as u64,
            jitter_us: jitter.jitter_ns().map(|ns| (ns / 100.0).round() / 10.0),
        }
    }
}

impl OneWayCounts {
    /// As a record keeps it.
    pub(super) fn to_page_datagrams(
        self,
        phase: ProbePhase,
        direction: Direction,
    ) -> PageDatagrams {
        let Self { sent, lost, duplicates, reordered, jitter_us } = self;
        let jitter_ns = jitter_us.map(|us| (us * 1000.0).round() as u64);
        PageDatagrams { phase, direction, sent, lost, duplicates, reordered, jitter_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(sequence: u64, sent_ms: i64, came_ms: i64) -> PacketArrival {
        let received_ns = came_ms as u64 * 1_000_000;
        PacketArrival { sequence, received_ns, delay_ns: (came_ms - sent_ms) * 1_000_000 }
    }

    /// Counted by hand: 6 left every 10 ms. 0, 2, 1, 2 and 5 came; 3 and 4 did not; 2 came twice,
    /// and 1 behind 2. Delays in the order of arrival are 5, 5, 21, 9 ms (the second 2 left out),
    /// so that |D| = 0, 16, 12 and J = 0; 16/16 = 1; 1 + (12 − 1)/16 = 1.6875 ms.
    #[test]
    fn a_round_is_counted_as_by_hand() {
        let arrivals = [
            arrival(0, 0, 5),
            arrival(2, 20, 25),
            arrival(1, 10, 31),
            arrival(2, 20, 40),
            arrival(5, 50, 59),
        ];
        let fate = OneWayCounts::from_arrivals(6, &arrivals);
        let jitter_us = Some(1687.5);
        assert_eq!(fate, OneWayCounts { sent: 6, lost: 2, duplicates: 1, reordered: 1, jitter_us });
    }

    #[test]
    fn nothing_that_came_is_no_jitter_and_not_0() {
        let fate = OneWayCounts::from_arrivals(4, &[]);
        assert_eq!((fate.lost, fate.jitter_us), (4, None));
        // A number that was never sent is no arrival.
        assert_eq!(OneWayCounts::from_arrivals(4, &[arrival(4, 0, 1)]).lost, 4);
    }
}
