//! The early end of slow start: HyStart, as Linux's CUBIC has it (`net/ipv4/tcp_cubic.c`).
//!
//! Ha and Rhee 2011, "Taming the elephants": slow start ends when the round trip has risen by an
//! eighth (4 … 16 ms), or when the acknowledgements of one round come in a train that is half a
//! round trip long. Left out: the wider train of paced senders, and HyStart++ (RFC 9406).

use std::time::Duration;

use super::acked::Acked;
use crate::theory::slow_start::{
    HYSTART_DELAY_MAX, HYSTART_DELAY_MIN, HYSTART_RTT_DIVISOR, HYSTART_SAMPLES,
};
use crate::time::MonoTime;

/// Least window for an end of slow start (`hystart_low_window`).
const WINDOW_MIN: f64 = 16.0;
/// Acknowledgements this close together are of one train (`hystart_ack_delta_us`).
const TRAIN_GAP_NS: u64 = 2_000_000;

/// HyStart's state of a sender: acknowledgements and round trips of this round and before.
#[derive(Clone, Copy, Debug)]
pub(super) struct HyStart {
    /// The round ends when this segment is acknowledged.
    round_end: u64,
    round_start: MonoTime,
    train_end: MonoTime,
    samples: u32,
    rtt_min_of_round_ns: u64,
    rtt_min_ns: u64,
}

impl HyStart {
    pub(super) const fn new() -> Self {
        Self {
            round_end: 0,
            round_start: MonoTime::from_nanos(0),
            train_end: MonoTime::from_nanos(0),
            samples: 0,
            rtt_min_of_round_ns: u64::MAX,
            rtt_min_ns: u64::MAX,
        }
    }

    /// Takes an acknowledgement; true when slow start ends with it.
    pub(super) fn slow_start_ends(&mut self, acked: &Acked, cwnd: f64) -> bool {
        let Some(rtt_ns) = acked.sample_ns else { return false };
        self.rtt_min_ns = self.rtt_min_ns.min(rtt_ns);
        if acked.first > self.round_end {
            self.round_end = acked.next;
            self.round_start = acked.now;
            self.train_end = acked.now;
            self.samples = 0;
            self.rtt_min_of_round_ns = u64::MAX;
        }
        if cwnd < WINDOW_MIN {
            return false;
        }
        self.train_is_long(acked.now) || self.rtt_rose(rtt_ns)
    }

    fn train_is_long(&mut self, now: MonoTime) -> bool {
        if now.nanos_since(self.train_end) > TRAIN_GAP_NS {
            return false;
        }
        self.train_end = now;
        now.nanos_since(self.round_start) > self.rtt_min_ns / 2
    }

    fn rtt_rose(&mut self, rtt_ns: u64) -> bool {
        self.rtt_min_of_round_ns = self.rtt_min_of_round_ns.min(rtt_ns);
        if self.samples < HYSTART_SAMPLES {
            self.samples += 1;
            return false;
        }
        let rtt_min = Duration::from_nanos(self.rtt_min_ns);
        let rise = (rtt_min / HYSTART_RTT_DIVISOR).clamp(HYSTART_DELAY_MIN, HYSTART_DELAY_MAX);
        Duration::from_nanos(self.rtt_min_of_round_ns) > rtt_min + rise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The acknowledgement of segment `first` at `now_us` with a round trip of `rtt_us`.
    fn ack_of_segment(now_us: u64, first: u64, rtt_us: u64) -> Acked {
        Acked {
            now: MonoTime::from_nanos(now_us * 1000),
            segments: 1,
            first,
            next: first + 100,
            sample_ns: Some(rtt_us * 1000),
            rtt_s: 0.1,
        }
    }

    #[test]
    fn a_round_trip_that_rises_by_an_eighth_ends_slow_start_after_eight_samples() {
        // 100 ms: an eighth is 12.5 ms. Acknowledgements 3 ms apart make no train.
        for (rtt_us, ends) in [(112_400, false), (112_600, true)] {
            let mut hystart = HyStart::new();
            assert!(!hystart.slow_start_ends(&ack_of_segment(0, 1, 100_000), 100.0));
            let round = (0..20).map(|n| ack_of_segment(200_000 + 3000 * n, 102 + n, rtt_us));
            let ended: Vec<bool> =
                round.map(|acked| hystart.slow_start_ends(&acked, 100.0)).collect();
            assert_eq!(ended.iter().position(|ended| *ended), ends.then_some(8), "{rtt_us}");
        }
    }

    #[test]
    fn a_train_of_half_a_round_trip_ends_slow_start() {
        let mut hystart = HyStart::new();
        assert!(!hystart.slow_start_ends(&ack_of_segment(0, 1, 20_000), 100.0));
        let round = (0..20).map(|n| ack_of_segment(20_000 + 1000 * n, 102 + n, 20_000));
        let ended: Vec<bool> = round.map(|acked| hystart.slow_start_ends(&acked, 100.0)).collect();
        assert_eq!(ended.iter().position(|ended| *ended), Some(11), "after more than 10 ms");
    }
}
