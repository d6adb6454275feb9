//! What a sender knows of each segment between the acknowledged and the next new one.

use std::collections::VecDeque;

use crate::time::MonoTime;

/// One outstanding segment.
#[derive(Clone, Copy, Debug)]
struct Segment {
    sent: MonoTime,
    retransmitted: bool,
    sacked: bool,
    /// Taken for lost, and not sent again since.
    lost: bool,
}

/// Duplicate acknowledgements, or segments known to have arrived above one, that make it lost
/// (RFC 5681 §3.2, RFC 6675 §5).
pub(super) const THRESHOLD: u64 = 3;

/// Outstanding segments.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    first: u64,
    segments: VecDeque<Segment>,
    sacked: u64,
    lost: u64,
    /// One above the highest segment that is known to have arrived.
    highest_sacked: u64,
    /// All below it were judged.
    judged: u64,
    /// No lost segment is below it.
    repair_from: u64,
}

/// A segment that has just been acknowledged for good.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered {
    pub(super) sent: MonoTime,
    pub(super) retransmitted: bool,
}

impl Scoreboard {
    /// The first segment that is not acknowledged.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    /// The next new segment.
    pub(super) fn next(&self) -> u64 {
        self.first + self.segments.len() as u64
    }

    /// Segments that are on the way as far as the sender knows (RFC 6675 §4, pipe).
    pub(super) fn in_flight(&self) -> u64 {
        self.segments.len() as u64 - self.sacked - self.lost
    }

    pub(super) fn is_empty(&self) -> bool {
        self.segments.is_empty()
    }

    pub(super) fn send_new(&mut self, now: MonoTime) -> u64 {
        let number = self.next();
        self.segments.push_back(Segment {
            sent: now,
            retransmitted: false,
            sacked: false,
            lost: false,
        });
        number
    }

    /// Everything below `ack` has arrived; the newest of it.
    pub(super) fn acknowledge(&mut self, ack: u64) -> Option<Delivered> {
        let mut newest = None;
        while self.first < ack {
            let Some(segment) = self.segments.pop_front() else { break };
            self.sacked -= u64::from(segment.sacked);
            self.lost -= u64::from(segment.lost);
            self.first += 1;
            newest = Some(Delivered { sent: segment.sent, retransmitted: segment.retransmitted });
        }
        newest
    }

    /// Segments `from..to` have arrived.
    pub(super) fn sack(&mut self, from: u64, to: u64) {
        for number in from.max(self.first)..to.min(self.next()) {
            let segment = self.at(number);
            if !segment.sacked {
                segment.sacked = true;
                let lost = std::mem::take(&mut segment.lost);
                self.sacked += 1;
                self.lost -= u64::from(lost);
            }
        }
        self.highest_sacked = self.highest_sacked.max(to);
    }

    /// Takes for lost what has [`THRESHOLD`] arrived segments above it.
    pub(super) fn judge(&mut self) {
        let mut above = 0;
        let mut number = self.highest_sacked.min(self.next());
        let floor = self.judged.max(self.first);
        while number > floor {
            number -= 1;
            above += u64::from(self.at(number).sacked);
            if above == THRESHOLD {
                for below in floor..number {
                    self.lose(below);
                }
                self.judged = number;
                return;
            }
        }
    }

    /// Whether a segment is lost and waits to be sent again.
    pub(super) const fn has_lost(&self) -> bool {
        self.lost > 0
    }

    /// Takes one segment for lost.
    pub(super) fn lose(&mut self, number: u64) {
        if number < self.first || number >= self.next() {
            return;
        }
        let segment = self.at(number);
        if !segment.lost && !segment.sacked {
            segment.lost = true;
            self.lost += 1;
            self.repair_from = self.repair_from.min(number);
        }
    }

    /// The timer ran out: everything that is not known to have arrived is lost.
    pub(super) fn lose_all(&mut self) {
        for number in self.first..self.next() {
            self.lose(number);
        }
        self.judged = self.next();
    }

    /// Sends the first lost segment again.
    pub(super) fn retransmit(&mut self, now: MonoTime) -> Option<u64> {
        if self.lost == 0 {
            return None;
        }
        let mut number = self.repair_from.max(self.first);
        while number < self.next() && !self.at(number).lost {
            number += 1;
        }
        self.repair_from = number;
        if number == self.next() {
            return None;
        }
        let segment = self.at(number);
        segment.lost = false;
        segment.retransmitted = true;
        segment.sent = now;
        self.lost -= 1;
        Some(number)
    }

    fn at(&mut self, number: u64) -> &mut Segment {
        let index = usize::try_from(number - self.first).expect("a window fits into memory");
        &mut self.segments[index]
    }
}
