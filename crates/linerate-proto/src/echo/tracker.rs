//! The fate of each probe: answered, lost, late, duplicate, reordered. Times are arguments;
//! nothing is sent or received here.
//!
//! # Source
//! Loss and lateness RFC 7680 §2.8 (one time-out, fixed before the run), duplicates RFC 5560 §4,
//! reordering RFC 4737 §4.1 (NextExp; duplicates and late answers removed first).

use linerate_core::time::MonoTime;

/// Time-out and memory of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EchoTrackerLimits {
    /// Time-out: a probe whose answer takes longer counts as lost.
    pub timeout_ns: u64,
    /// Probes that are remembered, rounded up to a power of two. An answer to an older one
    /// counts as late.
    pub capacity: usize,
}

/// Totals of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Probes given to the kernel.
    pub sent: u64,
    /// Probes answered in time.
    pub answered: u64,
    /// Probes not answered in time.
    pub lost: u64,
    /// Answers to a probe that was already answered.
    pub duplicates: u64,
    /// Answers with a lower sequence than an answer before them (RFC 4737).
    pub reordered: u64,
    /// Answers after the time-out; their probes are among the lost.
    pub late: u64,
}

/// Classification of a received answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoAnswerKind {
    /// The first answer, in time.
    Answered {
        /// When its probe was sent.
        t1: MonoTime,
        /// Round-trip time.
        rtt_ns: u64,
    },
    /// The probe was already answered.
    Duplicate,
    /// The probe had already been counted as lost.
    Late,
    /// No such probe was sent.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Outstanding,
    GivenUp,
    Done,
}

/// State of the probes of one run. Probes are numbered from 0 in the order of sending.
#[derive(Clone, Debug)]
pub struct Tracker {
    timeout_ns: u64,
    mask: u64,
    t1: Vec<MonoTime>,
    state: Vec<State>,
    next: u64,
    /// Sequence below which no probe is outstanding.
    oldest: u64,
    next_expected: u64,
    counts: Counts,
}

impl Tracker {
    /// A tracker of a run before its first probe.
    pub fn new(limits: EchoTrackerLimits) -> Self {
        let capacity = limits.capacity.max(2).next_power_of_two();
        Self {
            timeout_ns: limits.timeout_ns,
            mask: capacity as u64 - 1,
            t1: vec![MonoTime::default(); capacity],
            state: vec![State::Done; capacity],
            next: 0,
            oldest: 0,
            next_expected: 0,
            counts: Counts::default(),
        }
    }

    /// Sequence of the next probe.
    #[inline]
    pub const fn next_sequence(&self) -> u64 {
        self.next
    }

    /// Count of probes that are neither answered nor lost.
    #[inline]
    pub const fn outstanding(&self) -> u64 {
        self.counts.sent - self.counts.answered - self.counts.lost
    }

    /// The totals so far.
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// Records that probe [`Self::next_sequence`] was sent at `t1`. When all `capacity` probes are
    /// outstanding, the oldest counts as lost; the caller sizes `capacity` to avoid that.
    #[inline]
    pub fn record_sent(&mut self, t1: MonoTime) {
        let slot = self.slot_index(self.next);
        if self.state[slot] == State::Outstanding {
            self.counts.lost += 1;
            self.oldest = self.next - self.mask;
        }
        self.t1[slot] = t1;
        self.state[slot] = State::Outstanding;
        self.next += 1;
        self.counts.sent += 1;
    }

    /// Records an answer to probe `sequence` that arrived at `at`.
    #[inline]
    pub fn arrived(&mut self, sequence: u64, at: MonoTime) -> EchoAnswerKind {
        if sequence >= self.next {
            return EchoAnswerKind::Unknown;
        }
        if self.next - sequence > self.mask + 1 {
            self.counts.late += 1;
            return EchoAnswerKind::Late;
        }
        let slot = self.slot_index(sequence);
        let before = std::mem::replace(&mut self.state[slot], State::Done);
        match before {
            State::Done => {
                self.counts.duplicates += 1;
                EchoAnswerKind::Duplicate
            }
            State::GivenUp => {
                self.counts.late += 1;
                EchoAnswerKind::Late
            }
            State::Outstanding => self.first_answer(sequence, at),
        }
    }

    #[inline]
    fn first_answer(&mut self, sequence: u64, at: MonoTime) -> EchoAnswerKind {
        let t1 = self.t1[self.slot_index(sequence)];
        let rtt_ns = at.nanos_since(t1);
        self.advance();
        if rtt_ns > self.timeout_ns {
            self.counts.lost += 1;
            self.counts.late += 1;
            return EchoAnswerKind::Late;
        }
        self.counts.answered += 1;
        if sequence < self.next_expected {
            self.counts.reordered += 1;
        } else {
            self.next_expected = sequence + 1;
        }
        EchoAnswerKind::Answered { t1, rtt_ns }
    }

    /// Counts every probe whose time-out has passed at `now` as lost and calls `lost` with its
    /// sequence.
    pub fn expire(&mut self, now: MonoTime, mut lost: impl FnMut(u64)) {
        self.advance();
        while self.oldest < self.next {
            let slot = self.slot_index(self.oldest);
            if now.nanos_since(self.t1[slot]) <= self.timeout_ns {
                return;
            }
            self.state[slot] = State::GivenUp;
            self.counts.lost += 1;
            lost(self.oldest);
            self.advance();
        }
    }

    /// Time at which the oldest outstanding probe becomes lost.
    pub fn next_expiry(&mut self) -> Option<MonoTime> {
        self.advance();
        let t1 = (self.oldest < self.next).then(|| self.t1[self.slot_index(self.oldest)])?;
        Some(MonoTime::from_nanos(t1.as_nanos().saturating_add(self.timeout_ns).saturating_add(1)))
    }

    /// Ends a stopped run: probes whose time-out has not passed are neither answered nor lost and
    /// are taken off the count of probes sent. If no probe was ever answered they count as lost,
    /// so that a dead path shows as one.
    pub fn close_run(&mut self) {
        let outstanding = self.outstanding();
        if self.counts.answered == 0 {
            self.counts.lost += outstanding;
        } else {
            self.counts.sent -= outstanding;
        }
    }

    #[inline]
    fn advance(&mut self) {
        while self.oldest < self.next
            && self.state[self.slot_index(self.oldest)] != State::Outstanding
        {
            self.oldest += 1;
        }
    }

    #[inline]
    const fn slot_index(&self, sequence: u64) -> usize {
        (sequence & self.mask) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time_at_ns(ns: u64) -> MonoTime {
        MonoTime::from_nanos(ns)
    }

    fn tracker(timeout_ns: u64) -> Tracker {
        Tracker::new(EchoTrackerLimits { timeout_ns, capacity: 16 })
    }

    /// Ten probes every 10 ms with delays in ms {0: 5.0, 1: 5.2, 3: 25.0, 4: 5.1, 5: 4.9,
    /// 6: 5.3 and again 0.6 later, 9: 6.0}; 2, 7 and 8 do not return. By hand: arrivals in the
    /// order 0 1 4 5 3 6 6' 9 (3 at 55.0, after 5 at 54.9 and before 6 at 65.3), so loss 3/10,
    /// one duplicate, one reordered (3 after 4 and 5).
    #[test]
    fn loss_duplicates_and_reordering_are_counted_as_by_hand() {
        let mut tracker = tracker(1000 * MS);
        (0..10).for_each(|i| tracker.record_sent(time_at_ns(i * 10 * MS)));
        let arrivals =
            [(0, 50), (1, 152), (4, 451), (5, 549), (3, 550), (6, 653), (6, 659), (9, 960)];
        let mut rtts = Vec::new();
        for (sequence, tenths) in arrivals {
            match tracker.arrived(sequence, time_at_ns(tenths * MS / 10)) {
                EchoAnswerKind::Answered { rtt_ns, .. } => rtts.push(rtt_ns / (MS / 10)),
                verdict => assert_eq!((sequence, verdict), (6, EchoAnswerKind::Duplicate)),
            }
        }
        assert_eq!(rtts, [50, 52, 51, 49, 250, 53, 60]);
        let mut lost = Vec::new();
        tracker.expire(time_at_ns(10_000 * MS), |sequence| lost.push(sequence));
        assert_eq!(lost, [2, 7, 8]);
        let expected =
            Counts { sent: 10, answered: 7, lost: 3, duplicates: 1, reordered: 1, late: 0 };
        assert_eq!(tracker.counts(), expected);
    }

    #[test]
    fn an_answer_at_the_time_out_counts_and_one_after_it_is_late() {
        let mut tracker = tracker(100);
        tracker.record_sent(time_at_ns(0));
        tracker.record_sent(time_at_ns(0));
        tracker.record_sent(time_at_ns(0));
        assert_eq!(tracker.next_expiry(), Some(time_at_ns(101)));
        assert!(matches!(
            tracker.arrived(0, time_at_ns(100)),
            EchoAnswerKind::Answered { rtt_ns: 100, .. }
        ));
        assert_eq!(tracker.arrived(1, time_at_ns(101)), EchoAnswerKind::Late);
        tracker.expire(time_at_ns(101), |sequence| assert_eq!(sequence, 2));
        assert_eq!(tracker.arrived(2, time_at_ns(102)), EchoAnswerKind::Late);
        assert_eq!(tracker.arrived(2, time_at_ns(103)), EchoAnswerKind::Duplicate);
        let expected =
            Counts { sent: 3, answered: 1, lost: 2, duplicates: 1, reordered: 0, late: 2 };
        assert_eq!(tracker.counts(), expected);
        assert_eq!((tracker.outstanding(), tracker.next_expiry()), (0, None));
    }

    #[test]
    fn a_number_that_was_never_sent_is_unknown_and_counts_nowhere() {
        let mut tracker = tracker(100);
        assert_eq!(tracker.arrived(0, time_at_ns(1)), EchoAnswerKind::Unknown);
        tracker.record_sent(time_at_ns(1));
        assert_eq!(tracker.arrived(1, time_at_ns(2)), EchoAnswerKind::Unknown);
        assert_eq!(tracker.arrived(u64::MAX, time_at_ns(2)), EchoAnswerKind::Unknown);
        assert_eq!(tracker.counts(), Counts { sent: 1, ..Counts::default() });
    }

    #[test]
    fn a_run_of_many_rounds_of_the_ring_keeps_its_counts() {
        let mut tracker = tracker(1000);
        for i in 0..200_000 {
            tracker.record_sent(time_at_ns(i * 10));
            assert!(matches!(
                tracker.arrived(i, time_at_ns(i * 10 + 5)),
                EchoAnswerKind::Answered { .. }
            ));
        }
        assert_eq!(
            tracker.arrived(0, time_at_ns(3_000_000)),
            EchoAnswerKind::Late,
            "older than the memory"
        );
        let expected = Counts { sent: 200_000, answered: 200_000, late: 1, ..Counts::default() };
        assert_eq!(tracker.counts(), expected);
    }

    #[test]
    fn a_full_memory_gives_up_the_oldest_probe() {
        let mut tracker = tracker(u64::MAX);
        (0..20).for_each(|i| tracker.record_sent(time_at_ns(i)));
        assert_eq!((tracker.counts().lost, tracker.outstanding()), (4, 16));
        assert!(matches!(tracker.arrived(19, time_at_ns(30)), EchoAnswerKind::Answered { .. }));
        assert!(matches!(tracker.arrived(5, time_at_ns(30)), EchoAnswerKind::Answered { .. }));
        assert_eq!(tracker.counts().reordered, 1);
    }

    #[test]
    fn a_stopped_run_leaves_out_what_is_under_way_unless_nothing_ever_came() {
        let mut answered = tracker(100);
        answered.record_sent(time_at_ns(0));
        answered.record_sent(time_at_ns(1));
        answered.arrived(0, time_at_ns(2));
        answered.close_run();
        assert_eq!(answered.counts(), Counts { sent: 1, answered: 1, ..Counts::default() });
        let mut dead = tracker(100);
        dead.record_sent(time_at_ns(0));
        dead.close_run();
        assert_eq!(dead.counts(), Counts { sent: 1, lost: 1, ..Counts::default() });
    }
}
