//! What became of a numbered stream of packets: lost, doubled, reordered.
//!
//! Works on the complete list of arrivals; sequence numbers start at 0 and do not wrap. Packets
//! that came after the loss threshold are the caller's to leave out first (RFC 7680 §2).

use std::collections::HashSet;

use super::{Ipdv, PacketArrival, ipdv_of_packets, pdv_of_packets};
use crate::units::Ratio;

/// A run of consecutive packets that were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossPeriod {
    /// The first that was lost.
    pub first_sequence: u64,
    /// Number of packets lost in a row.
    pub length: u64,
}

/// A packet that arrived after one that was sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reordered {
    /// Number of the packet.
    pub sequence: u64,
    /// Arrival positions back to the earliest arrival with a larger number (RFC 4737 §4.2).
    pub extent: u64,
    /// Time of arrival after that earliest one (RFC 4737 §4.3).
    pub late_ns: u64,
    /// Number of arrivals immediately before it that all had larger numbers (RFC 4737 §5); at 3 or
    /// more TCP takes it for lost (RFC 5681 §3.2).
    pub n: u64,
}

/// The arrivals of one stream.
#[derive(Clone, Debug)]
pub struct StreamArrivals {
    sent: u64,
    duplicates: u64,
    /// First arrival of each number, in the order of arrival.
    in_order_of_arrival: Vec<PacketArrival>,
    /// Arrivals in the order of their numbers.
    in_order_of_sending: Vec<PacketArrival>,
}

impl StreamArrivals {
    /// Takes in `arrivals` of a stream of `sent` packets, in the order of arrival. Numbers that
    /// were never sent are passed over.
    pub fn new(sent: u64, arrivals: &[PacketArrival]) -> Self {
        let mut seen = HashSet::new();
        let mut duplicates = 0;
        let mut in_order_of_arrival = Vec::new();
        for arrival in arrivals.iter().filter(|arrival| arrival.sequence < sent) {
            if seen.insert(arrival.sequence) {
                in_order_of_arrival.push(*arrival);
            } else {
                duplicates += 1;
            }
        }
        let mut in_order_of_sending = in_order_of_arrival.clone();
        in_order_of_sending.sort_unstable_by_key(|arrival| arrival.sequence);
        Self { sent, duplicates, in_order_of_arrival, in_order_of_sending }
    }

    /// Packets that arrived, duplicates not counted.
    pub fn received(&self) -> u64 {
        self.in_order_of_arrival.len() as u64
    }

    /// First arrivals, in the order of arrival: the order for [`super::JitterRfc3550`].
    pub fn in_order_of_arrival(&self) -> &[PacketArrival] {
        &self.in_order_of_arrival
    }

    /// First arrivals, in the order of sending.
    pub fn in_order_of_sending(&self) -> &[PacketArrival] {
        &self.in_order_of_sending
    }

    /// Packets lost out of packets sent.
    /// # Source
    /// RFC 7680 §4.1 (loss ratio); RFC 6673 for round trips.
    pub fn loss_ratio(&self) -> Ratio {
        Ratio::new(self.sent - self.received(), self.sent)
    }

    /// Extra arrivals of a packet that had arrived before.
    /// # Source
    /// RFC 5560 (a packet's arrivals beyond the first).
    pub const fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Runs of lost packets, in the order of sending.
    /// # Source
    /// RFC 3357 (loss periods).
    pub fn loss_periods(&self) -> Vec<LossPeriod> {
        let mut expected = 0;
        let mut periods = Vec::new();
        let arrived = self.in_order_of_sending.iter().map(|arrival| arrival.sequence);
        for sequence in arrived.chain([self.sent]) {
            if sequence > expected {
                periods.push(LossPeriod { first_sequence: expected, length: sequence - expected });
            }
            expected = sequence + 1;
        }
        periods
    }

    /// Packets reordered out of packets received, duplicates removed first.
    /// # Source
    /// RFC 4737 §4.1 (reordered ratio).
    pub fn reordered_ratio(&self) -> Ratio {
        Ratio::new(self.reordered().len() as u64, self.received())
    }

    /// Packets whose number is below one that came before, in the order of arrival.
    /// # Source
    /// RFC 4737 §3 (singleton), §4.2 (extent), §4.3 (late time), §5 (n-reordering).
    pub fn reordered(&self) -> Vec<Reordered> {
        let arrivals = &self.in_order_of_arrival;
        // Positions at which the largest number so far grew. Their numbers rise, so the earliest
        // arrival with a number above a given one is found by bisection among them.
        let mut records: Vec<usize> = Vec::new();
        // Positions of numbers that rise to the last arrival: on top is always the nearest earlier
        // arrival with a smaller number.
        let mut smaller: Vec<usize> = Vec::new();
        let mut reordered = Vec::new();
        for (position, arrival) in arrivals.iter().enumerate() {
            let sequence = arrival.sequence;
            while smaller.last().is_some_and(|&last| arrivals[last].sequence > sequence) {
                smaller.pop();
            }
            let index = records.partition_point(|&record| arrivals[record].sequence < sequence);
            match records.get(index) {
                None => records.push(position),
                Some(&earliest) => reordered.push(Reordered {
                    sequence,
                    extent: (position - earliest) as u64,
                    late_ns: arrival.received_ns.saturating_sub(arrivals[earliest].received_ns),
                    n: (position - smaller.last().map_or(0, |last| last + 1)) as u64,
                }),
            }
            smaller.push(position);
        }
        reordered
    }

    /// IPDV of the consecutive packets that arrived, by [`ipdv_of_packets`].
    pub fn ipdv_values(&self) -> Vec<Ipdv> {
        ipdv_of_packets(&self.in_order_of_sending)
    }

    /// PDV of the packets that arrived, in the order of sending, by [`pdv_of_packets`].
    pub fn pdv_values(&self) -> Vec<u64> {
        pdv_of_packets(&self.in_order_of_sending)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::stats::{JitterRfc3550, Moments};

    /// Ten packets, one each 10 ms, with these delays: 0: 5.0, 1: 5.2, 3: 25.0, 4: 5.1, 5: 4.9,
    /// 6: 5.3 and again 0.6 ms later, 9: 6.0 ms; 2, 7 and 8 never arrive.
    fn example() -> StreamArrivals {
        let at = |sequence: u64, delay_us: u32| PacketArrival {
            sequence,
            received_ns: sequence * 10_000_000 + u64::from(delay_us) * 1_000,
            delay_ns: i64::from(delay_us) * 1_000,
        };
        let mut arrivals = vec![
            at(0, 5_000),
            at(1, 5_200),
            at(3, 25_000),
            at(4, 5_100),
            at(5, 4_900),
            at(6, 5_300),
            at(6, 5_900),
            at(9, 6_000),
        ];
        arrivals.sort_by_key(|arrival| arrival.received_ns);
        let order: Vec<u64> = arrivals.iter().map(|arrival| arrival.sequence).collect();
        assert_eq!(order, [0, 1, 4, 5, 3, 6, 6, 9]);
        StreamArrivals::new(10, &arrivals)
    }

    #[test]
    fn lost_and_doubled_packets_are_counted_apart() {
        let arrivals = example();
        assert_eq!(arrivals.loss_ratio(), Ratio::new(3, 10));
        assert_eq!(arrivals.duplicates(), 1);
        assert_eq!(
            arrivals.loss_periods(),
            [
                LossPeriod { first_sequence: 2, length: 1 },
                LossPeriod { first_sequence: 7, length: 2 },
            ]
        );
    }

    #[test]
    fn delays_of_first_arrivals_make_the_moments() {
        // Sum 56.5 ms over 7; squares about the mean 335.114286, over 6 and over 7.
        let delays = example();
        let delays =
            delays.in_order_of_sending().iter().map(|arrival| arrival.delay_ns as f64 / 1e6);
        let moments: Moments = delays.collect();
        let near = |got: Option<f64>, want: f64| (got.expect("samples") - want).abs() < 5e-7;
        assert_eq!((moments.min(), moments.max()), (Some(4.9), Some(25.0)));
        assert!(near(moments.mean(), 8.071_429));
        assert!(near(moments.stddev(), 7.473_445));
        assert!(near(moments.stddev_population(), 6.919_066));
    }

    #[test]
    fn a_packet_behind_two_later_ones_is_reordered_by_two() {
        let arrivals = example();
        // Packet 3 arrives at 55.0 ms, packet 4, the first larger one, at 45.1 ms.
        assert_eq!(
            arrivals.reordered(),
            [Reordered { sequence: 3, extent: 2, late_ns: 9_900_000, n: 2 }]
        );
        assert_eq!(arrivals.reordered_ratio(), Ratio::new(1, 7));
    }

    #[test]
    fn delay_variation_skips_lost_neighbours() {
        let arrivals = example();
        let ipdv: Vec<_> =
            arrivals.ipdv_values().iter().map(|ipdv| (ipdv.sequence, ipdv.ns)).collect();
        assert_eq!(ipdv, [(1, 200_000), (4, -19_900_000), (5, -200_000), (6, 400_000)]);
        assert_eq!(
            arrivals.pdv_values(),
            [100_000, 300_000, 20_100_000, 200_000, 0, 400_000, 1_100_000]
        );
    }

    #[test]
    fn rtp_jitter_follows_the_order_of_arrival() {
        let mut jitter = JitterRfc3550::default();
        let mut series_ms = Vec::new();
        for arrival in example().in_order_of_arrival() {
            jitter.record(arrival.delay_ns);
            series_ms.extend(jitter.jitter_ns().map(|ns| ns / 1e6));
        }
        let expected = [0.0125, 0.017_969, 0.029_346, 1.283_762, 2.434_776, 2.326_353];
        assert_eq!(series_ms.len(), expected.len());
        for (got, want) in series_ms.iter().zip(expected) {
            assert!((got - want).abs() < 5.1e-7, "{got} {want}");
        }
    }

    fn of_sequence(sent: u64, order: &[u64]) -> StreamArrivals {
        let arrivals: Vec<PacketArrival> = order
            .iter()
            .zip(0..)
            .map(|(&sequence, received_ns)| PacketArrival { sequence, received_ns, delay_ns: 0 })
            .collect();
        StreamArrivals::new(sent, &arrivals)
    }

    #[test]
    fn three_packets_held_back_together_have_growing_extents() {
        // The arrival order 1 2 3 7 8 9 10 4 5 6 11 of RFC 4737 §7 (here from 0). By hand: all
        // three go back to the arrival of 7, so 4, 5 and 6 places; right before 4 came four larger
        // numbers, right before 5 and 6 a smaller one, so that these are not n-reordered at all.
        let reordered = of_sequence(11, &[0, 1, 2, 6, 7, 8, 9, 3, 4, 5, 10]).reordered();
        let seen: Vec<_> = reordered
            .iter()
            .map(|reordered| (reordered.sequence, reordered.extent, reordered.n))
            .collect();
        assert_eq!(seen, [(3, 4, 4), (4, 5, 0), (5, 6, 0)]);
    }

    #[test]
    fn nothing_sent_and_nothing_received_are_not_the_same() {
        let silent = of_sequence(5, &[]);
        assert_eq!(silent.loss_ratio().as_f64(), Some(1.0));
        assert_eq!(silent.loss_periods(), [LossPeriod { first_sequence: 0, length: 5 }]);
        assert_eq!(silent.reordered_ratio().as_f64(), None);
        let unsent = of_sequence(0, &[]);
        assert_eq!((unsent.loss_ratio().as_f64(), unsent.loss_periods().len()), (None, 0));
    }

    #[test]
    fn numbers_that_were_never_sent_do_not_count() {
        let arrivals = of_sequence(3, &[0, 99, 1, u64::MAX, 2]);
        assert_eq!((arrivals.received(), arrivals.loss_ratio()), (3, Ratio::new(0, 3)));
        assert!(arrivals.reordered().is_empty());
    }

    proptest! {
        #[test]
        fn the_fast_reordering_equals_its_definition(
            order in prop::collection::vec(0_u64..60, 0..60),
        ) {
            let arrivals = of_sequence(60, &order);
            let numbers: Vec<u64> =
                arrivals.in_order_of_arrival().iter().map(|arrival| arrival.sequence).collect();
            let mut expected = Vec::new();
            let mut next_expected = 0;
            for (i, &s) in numbers.iter().enumerate() {
                if s >= next_expected {
                    next_expected = s + 1;
                    continue;
                }
                let j = numbers.iter().position(|&earlier| earlier > s).expect("reordered");
                let n = numbers[..i].iter().rev().take_while(|&&earlier| earlier > s).count();
                expected.push((s, (i - j) as u64, n as u64));
            }
            let fields = |packet: &Reordered| (packet.sequence, packet.extent, packet.n);
            let got: Vec<_> = arrivals.reordered().iter().map(fields).collect();
            prop_assert_eq!(got, expected);
        }

        #[test]
        fn every_packet_is_received_or_in_a_loss_period(
            order in prop::collection::vec(0_u64..60, 0..80),
        ) {
            let arrivals = of_sequence(50, &order);
            let lost: u64 = arrivals.loss_periods().iter().map(|period| period.length).sum();
            prop_assert_eq!(lost, arrivals.loss_ratio().part);
            prop_assert_eq!(lost + arrivals.received(), 50);
        }
    }
}
