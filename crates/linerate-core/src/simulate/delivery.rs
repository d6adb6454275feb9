//! What acknowledgements say of the delivery: which segments arrived, and how fast.
//!
//! The rate is that of draft-ietf-ccwg-bbr and Linux (`net/ipv4/tcp_rate.c`): what was delivered
//! between a segment's sending and its acknowledgement, over the longer of the time in which it was
//! sent and the time in which it was acknowledged.

use std::time::Duration;

use crate::time::MonoTime;

/// Deliveries of a flow at the time when a segment was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct SendMark {
    /// Segments delivered by then.
    pub(super) delivered: u64,
    /// Time at which the last of them was acknowledged.
    pub(super) delivered_at: MonoTime,
    /// Time at which the first segment of this flight was sent.
    pub(super) first_sent: MonoTime,
}

/// A segment as it leaves.
#[derive(Clone, Copy, Debug)]
pub(super) struct Transmission {
    pub(super) number: u64,
    /// The segment was sent before.
    pub(super) again: bool,
}

/// A transmission of a segment, with its time.
#[derive(Clone, Copy, Debug)]
pub(super) struct SentSegment {
    pub(super) at: MonoTime,
    pub(super) number: u64,
    /// True for a retransmission.
    pub(super) again: bool,
    pub(super) mark: SendMark,
}

/// Arrivals that one acknowledgement newly reports.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct NewArrivals {
    pub(super) segments: u64,
    /// The transmission that left last of those that arrived.
    pub(super) newest: Option<SentSegment>,
    /// The lowest segment of which the only transmission arrived.
    pub(super) lowest_original: Option<u64>,
}

impl NewArrivals {
    pub(super) fn add_arrival(&mut self, sent: SentSegment) {
        self.segments += 1;
        let key = |sent: &SentSegment| (sent.at, sent.number);
        if self.newest.as_ref().is_none_or(|newest| key(&sent) > key(newest)) {
            self.newest = Some(sent);
        }
        if !sent.again && self.lowest_original.is_none_or(|lowest| sent.number < lowest) {
            self.lowest_original = Some(sent.number);
        }
    }
}

/// A sender's account of deliveries.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Deliveries {
    /// Segments known to have arrived.
    pub(super) total: u64,
    at: MonoTime,
    first_sent: MonoTime,
}

/// Delivery rate while a segment was under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct DeliveryRate {
    /// Deliveries when that segment was sent.
    pub(super) prior: u64,
    pub(super) segments: u64,
    pub(super) interval: Duration,
}

impl DeliveryRate {
    pub(super) fn per_second(&self) -> f64 {
        self.segments as f64 / self.interval.as_secs_f64()
    }
}

impl Deliveries {
    /// The mark of a segment that is sent now; nothing else is under way when `is_first`.
    pub(super) const fn send_mark(&mut self, now: MonoTime, is_first: bool) -> SendMark {
        if is_first {
            (self.at, self.first_sent) = (now, now);
        }
        SendMark { delivered: self.total, delivered_at: self.at, first_sent: self.first_sent }
    }

    /// Counts the arrivals of an acknowledgement; the rate, when it spans a round trip.
    pub(super) fn count_arrivals(
        &mut self,
        now: MonoTime,
        heard: &NewArrivals,
        rtt_min: Duration,
    ) -> Option<DeliveryRate> {
        self.total += heard.segments;
        let newest = heard.newest?;
        self.at = now;
        self.first_sent = newest.at;
        let sending = newest.at.duration_since(newest.mark.first_sent);
        let hearing = now.duration_since(newest.mark.delivered_at);
        let interval = sending.max(hearing);
        let segments = self.total - newest.mark.delivered;
        // A shorter interval is one of acknowledgements that were held back and came together.
        (interval >= rtt_min && !interval.is_zero()).then_some(DeliveryRate {
            prior: newest.mark.delivered,
            segments,
            interval,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time_from_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn the_rate_is_what_arrived_in_the_longer_of_the_two_times() {
        // Ten segments sent 1 ms apart from 0 on, 20 ms of round trip, acknowledged 2 ms apart (a
        // bottleneck of 500 segments a second): the tenth's is the first that sees a whole flight.
        let mut deliveries = Deliveries::default();
        let marks: Vec<(MonoTime, SendMark)> = (0..10)
            .map(|n| (time_from_ms(n), deliveries.send_mark(time_from_ms(n), n == 0)))
            .collect();
        let mut rates = Vec::new();
        for (n, &(at, mark)) in (0_u64..).zip(&marks) {
            let mut heard = NewArrivals::default();
            heard.add_arrival(SentSegment { at, number: n, again: false, mark });
            let rate = deliveries.count_arrivals(
                time_from_ms(20 + 2 * n),
                &heard,
                Duration::from_millis(20),
            );
            rates.push(rate.expect("it spans a round trip").per_second());
        }
        // The first: one segment in 20 ms. The tenth: ten in the 38 ms from 0 to 38.
        assert!((rates[0] - 50.0).abs() < 1e-9, "{rates:?}");
        assert!((rates[9] - 10.0 / 0.038).abs() < 1e-9, "{rates:?}");
        // A segment sent at 20 ms, when one was delivered, and acknowledged at 40 ms with ten more
        // known by then: ten in 20 ms, 500 a second, as the bottleneck has it.
        let mut heard = NewArrivals::default();
        let mark =
            SendMark { delivered: 1, delivered_at: time_from_ms(20), first_sent: time_from_ms(0) };
        heard.add_arrival(SentSegment { at: time_from_ms(20), number: 10, again: false, mark });
        let rate = deliveries
            .count_arrivals(time_from_ms(40), &heard, Duration::from_millis(20))
            .expect("a rate");
        assert!((rate.per_second() - 500.0).abs() < 1e-9, "{rate:?}");
    }

    #[test]
    fn acknowledgements_that_come_together_give_no_rate() {
        let mut deliveries = Deliveries::default();
        let mark = deliveries.send_mark(time_from_ms(0), true);
        let mut heard = NewArrivals::default();
        heard.add_arrival(SentSegment { at: time_from_ms(0), number: 0, again: false, mark });
        assert!(
            deliveries.count_arrivals(time_from_ms(5), &heard, Duration::from_millis(20)).is_none()
        );
        assert_eq!(deliveries.total, 1, "it is counted all the same");
    }
}
