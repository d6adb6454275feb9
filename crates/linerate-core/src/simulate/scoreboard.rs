//! What a sender knows of each segment between the acknowledged and the next new one.

use std::collections::VecDeque;

use super::delivery::{NewArrivals, SendMark, SentSegment};
use crate::time::MonoTime;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
struct OutstandingSegment {
    sent: MonoTime,
    /// Deliveries at the time when it was sent.
    mark: SendMark,
    /// 0 until it is known to have arrived; then all that are less than this far above it are
    /// known to have arrived, too, so that a long run is passed in a few steps.
    skip: u32,
    retransmitted: bool,
    /// Taken for lost, and not sent again since.
    lost: bool,
}

impl OutstandingSegment {
    const fn as_sent(&self, number: u64) -> SentSegment {
        SentSegment { at: self.sent, number, again: self.retransmitted, mark: self.mark }
    }
}

/// Duplicate acknowledgements, or segments known to have arrived above one, that make it lost
/// (RFC 5681 §3.2, RFC 6675 §5).
pub(super) const THRESHOLD: u64 = 3;

/// Segments that are sent and not acknowledged.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    first: u64,
    segments: VecDeque<OutstandingSegment>,
    sacked: u64,
    lost: u64,
    /// One above the highest segment that is known to have arrived.
    highest_sacked: u64,
    /// Segment below which all were judged.
    judged: u64,
    /// No lost segment is below it.
    repair_from: u64,
}

/// The newest segment that has just been acknowledged for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) sent: MonoTime,
    /// Its acknowledgement gives a round trip: it was sent once, and was not known to have arrived
    /// before (RFC 6298 §3).
    pub(super) is_sample: bool,
}

impl Scoreboard {
    /// The first segment that is not acknowledged.
    pub(super) const fn first_unacked(&self) -> u64 {
        self.first
    }

    /// The next new segment.
    pub(super) fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// Segments on the way by the sender's knowledge (RFC 6675 §4, pipe).
    pub(super) fn in_flight(&self) -> u64 {
        self.segments.len() as u64 - self.sacked - self.lost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    /// Time at which the first segment that is not acknowledged was last sent.
    pub(super) fn oldest(&self) -> Option<MonoTime> {
        self.segments.front().map(|segment| segment.sent)
    }

    /// Segments above the first gap that are known to have arrived.
    pub(super) const fn sacked(&self) -> u64 {
        self.sacked
    }

    /// One above the highest segment that is known to have arrived.
    pub(super) fn highest(&self) -> u64 {
        self.highest_sacked.max(self.first)
    }

    /// True when the segment is on its way since `sent`: neither arrived, nor lost, nor
    /// sent again.
    pub(super) fn is_under_way(&mut self, number: u64, sent: MonoTime) -> bool {
        if number < self.first || number >= self.next() {
            return false;
        }
        let segment = self.segment_mut(number);
        segment.skip == 0 && !segment.lost && segment.sent == sent
    }

    pub(super) fn send_new(&mut self, now: MonoTime, mark: SendMark) -> u64 {
        let number = self.next();
        let segment =
            OutstandingSegment { sent: now, mark, skip: 0, retransmitted: false, lost: false };
        self.segments.push_back(segment);
        number
    }

    /// Everything below `ack` has arrived; the newest of it.
    pub(super) fn acknowledge(&mut self, ack: u64, heard: &mut NewArrivals) -> Option<Delivered> {
        let mut newest = None;
        while self.first < ack {
            let Some(segment) = self.segments.pop_front() else { break };
            let sacked = segment.skip > 0;
            if !sacked {
                heard.add_arrival(segment.as_sent(self.first));
            }
            self.sacked -= u64::from(sacked);
            self.lost -= u64::from(segment.lost);
            self.first += 1;
            let is_sample = !segment.retransmitted && !sacked;
            newest = Some(Delivered { sent: segment.sent, is_sample });
        }
        newest
    }

    /// Segments `from..to` have arrived.
    pub(super) fn mark_sacked(&mut self, from: u64, to: u64, heard: &mut NewArrivals) {
        let to = to.min(self.next());
        let mut number = self.next_unsacked(from.max(self.first));
        while number < to {
            let segment = self.segment_mut(number);
            segment.skip = 1;
            let lost = std::mem::take(&mut segment.lost);
            heard.add_arrival(segment.as_sent(number));
            self.sacked += 1;
            self.lost -= u64::from(lost);
            number = self.next_unsacked(number + 1);
        }
        self.highest_sacked = self.highest_sacked.max(to);
    }

    /// The first segment from `number` on that is not known to have arrived. Shortens the skips on
    /// its way, as union-find does, for the next search.
    fn next_unsacked(&mut self, mut number: u64) -> u64 {
        let end = self.next();
        while number < end {
            let skip = self.segment_mut(number).skip;
            if skip == 0 {
                return number;
            }
            let over = number + u64::from(skip);
            if over < end {
                let further = skip + self.segment_mut(over).skip;
                self.segment_mut(number).skip = further;
                number += u64::from(further);
            } else {
                number = over;
            }
        }
        end
    }

    /// Takes for lost all segments with [`THRESHOLD`] arrived ones above them.
    pub(super) fn mark_lost(&mut self) {
        if self.sacked < THRESHOLD {
            return;
        }
        let mut above = 0;
        let mut number = self.highest_sacked.min(self.next());
        let floor = self.judged.max(self.first);
        while number > floor {
            number -= 1;
            above += u64::from(self.segment_mut(number).skip > 0);
            if above == THRESHOLD {
                for below in floor..number {
                    self.mark_segment_lost(below);
                }
                self.judged = number;
                return;
            }
        }
    }

    /// Segments taken for lost that wait to be sent again.
    pub(super) const fn lost_segments(&self) -> u64 {
        self.lost
    }

    /// True when a segment is lost and waits to be sent again.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Takes one segment for lost.
    pub(super) fn mark_segment_lost(&mut self, number: u64) {
        if number < self.first || number >= self.next() {
            return;
        }
        let segment = self.segment_mut(number);
        if !segment.lost && segment.skip == 0 {
            segment.lost = true;
            self.lost += 1;
            self.repair_from = self.repair_from.min(number);
        }
    }

    /// The timer ran out: everything that is not known to have arrived is lost.
    pub(super) fn lose_all(&mut self) {
        for number in self.first..self.next() {
            self.mark_segment_lost(number);
        }
        self.judged = self.next();
    }

    /// Undoes all losses: the segments taken for lost are under way.
    pub(super) fn lose_none(&mut self) {
        for segment in self.segments.iter_mut().filter(|segment| segment.lost) {
            segment.lost = false;
        }
        self.lost = 0;
    }

    /// Sends the first lost segment again.
    pub(super) fn retransmit(&mut self, now: MonoTime, mark: SendMark) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let mut number = self.repair_from.max(self.first);
        while number < self.next() && !self.segment_mut(number).lost {
            number += 1;
        }
        self.repair_from = number;
        if number == self.next() {
            return None;
        }
        let segment = self.segment_mut(number);
        segment.lost = false;
        segment.retransmitted = true;
        (segment.sent, segment.mark) = (now, mark);
        self.lost -= 1;
        Some(number)
    }

    fn segment_mut(&mut self, number: u64) -> &mut OutstandingSegment {
        let index = usize::try_from(number - self.first).expect("a window fits into memory");
        &mut self.segments[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board_with_sent(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|_| _ = board.send_new(MonoTime::default(), SendMark::default()));
        board
    }

    #[test]
    fn what_has_three_arrived_above_it_is_lost_and_sent_again_from_below() {
        let mut board = board_with_sent(20);
        board.mark_sacked(5, 7, &mut NewArrivals::default());
        board.mark_lost();
        assert!(!board.has_lost(), "two above are no proof");
        board.mark_sacked(9, 10, &mut NewArrivals::default());
        board.mark_lost();
        // Three above 0 … 4; 7 and 8 have one.
        assert_eq!(board.in_flight(), 20 - 3 - 5);
        let again: Vec<u64> =
            std::iter::from_fn(|| board.retransmit(MonoTime::default(), SendMark::default()))
                .collect();
        assert_eq!(again, [0, 1, 2, 3, 4]);
        assert_eq!(board.in_flight(), 20 - 3);
    }

    #[test]
    fn blocks_that_overlap_in_any_order_count_every_segment_once() {
        // Against a plain set, for a few thousand blocks of a fixed sequence.
        let (mut board, mut plain) = (board_with_sent(500), [false; 500]);
        let index = |number: u64| usize::try_from(number).expect("below 500");
        let mut state = 1_u64;
        let mut draw = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..2000 {
            let from = draw(500);
            let to = (from + draw(12)).min(500);
            board.mark_sacked(from, to, &mut NewArrivals::default());
            (from..to).for_each(|number| plain[index(number)] = true);
            assert_eq!(board.sacked, plain.iter().filter(|arrived| **arrived).count() as u64);
            let ask = draw(500);
            let free = (ask..500).find(|&number| !plain[index(number)]).unwrap_or(500);
            assert_eq!(board.next_unsacked(ask), free);
        }
    }
}
