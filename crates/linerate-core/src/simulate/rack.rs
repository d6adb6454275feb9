//! Loss by time: RACK (RFC 8985 §6), with the window for reordering as Linux has it
//! (`net/ipv4/tcp_recovery.c`).
//!
//! A segment is lost when one that was sent later has arrived, and a round trip and the reordering
//! window have passed since it was sent. So a retransmission that is lost is found, too, and
//! reordering within the window costs nothing.

use std::collections::VecDeque;
use std::time::Duration;

use super::delivery::NewArrivals;
use super::scoreboard::{Scoreboard, THRESHOLD};
use crate::time::MonoTime;

/// Recoveries after which a window that was widened is forgotten (RFC 8985 §6.2, step 4).
const PERSIST: u32 = 16;
/// Widest window, in quarters of a round trip.
const STEPS_MAX: u32 = 255;

/// RACK's state of a sender.
#[derive(Debug)]
pub(super) struct Rack {
    /// Transmissions in the order of time. Those of segments that have arrived, were taken for
    /// lost or were sent again since stay until they come to the front.
    order: VecDeque<(MonoTime, u64)>,
    /// The latest transmission that is known to have arrived, and its round trip.
    newest: (MonoTime, u64),
    rtt: Duration,
    reordered: bool,
    /// Width of the reordering window in quarters of the smallest round trip.
    steps: u32,
    persist: u32,
    /// Deliveries until which duplicates are from before the last widening.
    widened_at: u64,
}

/// The round trips that the reordering window follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct RackRoundTrips {
    pub(super) smallest: Duration,
    pub(super) smoothed: Duration,
}

impl Rack {
    pub(super) fn new() -> Self {
        Self {
            order: VecDeque::new(),
            newest: (MonoTime::default(), 0),
            rtt: Duration::ZERO,
            reordered: false,
            steps: 1,
            persist: 0,
            widened_at: 0,
        }
    }

    pub(super) fn note_sent(&mut self, now: MonoTime, number: u64) {
        self.order.push_back((now, number));
    }

    /// Notes the arrivals that an acknowledgement reports; `highest` was known to have arrived
    /// before.
    pub(super) fn note_arrivals(
        &mut self,
        now: MonoTime,
        heard: &NewArrivals,
        highest: u64,
        smallest: Duration,
    ) {
        self.reordered |= heard.lowest_original.is_some_and(|number| number + 1 < highest);
        let Some(newest) = heard.newest else { return };
        let rtt = now.duration_since(newest.at);
        // Less than the path allows: the acknowledgement is of an earlier transmission.
        if newest.again && rtt < smallest {
            return;
        }
        self.rtt = rtt;
        self.newest = self.newest.max((newest.at, newest.number));
    }

    /// The receiver had a segment twice, so the window was too narrow; `prior` were delivered when
    /// the segment was sent, `total` are by now.
    pub(super) fn duplicate(&mut self, prior: u64, total: u64) {
        // Once in a round trip.
        if prior < self.widened_at {
            return;
        }
        self.steps = (self.steps + 1).min(STEPS_MAX);
        self.widened_at = total;
        self.persist = PERSIST;
    }

    pub(super) const fn recovery_ended(&mut self) {
        self.persist = self.persist.saturating_sub(1);
        if self.persist == 0 {
            self.steps = 1;
        }
    }

    /// Reordering window: lateness that a segment may have before it is taken for lost.
    fn window(&self, repairing: bool, sacked: u64, rtts: RackRoundTrips) -> Duration {
        // As long as nothing came out of order, three arrivals above a gap are proof enough.
        if !self.reordered && (repairing || sacked >= THRESHOLD) {
            return Duration::ZERO;
        }
        (rtts.smallest / 4 * self.steps).min(rtts.smoothed)
    }

    /// Takes late segments for lost. Number of segments lost, and time of the next check.
    pub(super) fn mark_lost(
        &mut self,
        now: MonoTime,
        board: &mut Scoreboard,
        repairing: bool,
        rtts: RackRoundTrips,
    ) -> (u64, Option<MonoTime>) {
        let late = self.rtt + self.window(repairing, board.sacked(), rtts);
        let mut lost = 0;
        while let Some(&(at, number)) = self.order.front() {
            let waits = board.is_under_way(number, at);
            if waits && (at, number) > self.newest {
                break;
            }
            if waits && at + late > now {
                // All that were sent before the newest arrival are late by then.
                return (lost, Some(self.newest.0.max(at) + late));
            }
            self.order.pop_front();
            if waits {
                board.mark_segment_lost(number);
                lost += 1;
            }
        }
        (lost, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulate::delivery::SendMark;

    const RTTS: RackRoundTrips =
        RackRoundTrips { smallest: Duration::from_millis(40), smoothed: Duration::from_millis(40) };

    fn time_from_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * 1_000_000)
    }

    /// Ten segments, 1 ms apart from 0 on.
    fn ten_sent_segments() -> (Rack, Scoreboard) {
        let (mut rack, mut board) = (Rack::new(), Scoreboard::default());
        for n in 0..10 {
            let number = board.send_new(time_from_ms(n), SendMark::default());
            rack.note_sent(time_from_ms(n), number);
        }
        (rack, board)
    }

    /// Segments of one block arrive at `now`; those lost, and the time of the next check.
    fn sack_block(
        rack: &mut Rack,
        board: &mut Scoreboard,
        now: MonoTime,
        block: (u64, u64),
    ) -> (u64, Option<MonoTime>) {
        let (highest, mut heard) = (board.highest(), NewArrivals::default());
        board.mark_sacked(block.0, block.1, &mut heard);
        rack.note_arrivals(now, &heard, highest, RTTS.smallest);
        rack.mark_lost(now, board, false, RTTS)
    }

    #[test]
    fn one_arrival_above_a_gap_waits_a_quarter_of_a_round_trip_and_three_do_not() {
        // RFC 8985 §6.2 step 5: 1 was sent at 1 ms; with 2 arrived at 42 ms it is late a round trip
        // of 40 ms and 10 ms after the sending of 2.
        let (mut rack, mut board) = ten_sent_segments();
        let mut heard = NewArrivals::default();
        board.acknowledge(1, &mut heard);
        rack.note_arrivals(time_from_ms(40), &heard, 0, RTTS.smallest);
        assert_eq!(rack.mark_lost(time_from_ms(40), &mut board, false, RTTS), (0, None));
        assert_eq!(
            sack_block(&mut rack, &mut board, time_from_ms(42), (2, 3)),
            (0, Some(time_from_ms(52)))
        );
        assert_eq!(
            sack_block(&mut rack, &mut board, time_from_ms(43), (3, 4)),
            (0, Some(time_from_ms(53)))
        );
        assert_eq!(sack_block(&mut rack, &mut board, time_from_ms(44), (4, 5)), (1, None));
        assert_eq!(board.retransmit(time_from_ms(44), SendMark::default()), Some(1));
    }

    #[test]
    fn after_reordering_the_window_stays_and_duplicates_widen_it() {
        let (mut rack, mut board) = ten_sent_segments();
        sack_block(&mut rack, &mut board, time_from_ms(43), (3, 4));
        // 2 arrives below 3, and was sent once: reordering, so three arrivals prove nothing.
        sack_block(&mut rack, &mut board, time_from_ms(44), (2, 3));
        let (lost, due) = sack_block(&mut rack, &mut board, time_from_ms(47), (4, 8));
        assert_eq!((lost, due), (0, Some(time_from_ms(57))));
        // One step more a round trip: 20 ms, and not by the second duplicate of the same.
        rack.duplicate(0, 6);
        rack.duplicate(3, 7);
        assert_eq!(rack.window(false, 9, RTTS), Duration::from_millis(20));
        (0..16).for_each(|_| rack.recovery_ended());
        assert_eq!(rack.window(false, 9, RTTS), Duration::from_millis(10));
    }

    #[test]
    fn a_retransmission_that_is_lost_is_found_by_what_was_sent_after_it() {
        let (mut rack, mut board) = ten_sent_segments();
        assert_eq!(sack_block(&mut rack, &mut board, time_from_ms(44), (1, 5)).0, 1);
        let number =
            board.retransmit(time_from_ms(44), SendMark::default()).expect("the first is lost");
        rack.note_sent(time_from_ms(44), number);
        let next = board.send_new(time_from_ms(45), SendMark::default());
        rack.note_sent(time_from_ms(45), next);
        // 5 to 9 were sent before the retransmission, and say nothing about it.
        assert_eq!(sack_block(&mut rack, &mut board, time_from_ms(49), (5, 10)).0, 0);
        assert_eq!(sack_block(&mut rack, &mut board, time_from_ms(85), (10, 11)).0, 1);
        assert_eq!(board.retransmit(time_from_ms(85), SendMark::default()), Some(0));
    }
}
