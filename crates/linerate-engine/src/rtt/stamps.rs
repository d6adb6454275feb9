//! Puts the kernel's stamps of each probe together with the program's own times: where the round
//! trip passed.
//!
//! A pair of send and receive stamp counts only when it is possible: the answer after the probe,
//! and not longer apart than the program's own round trip, which encloses it. That catches stamps
//! of another probe and stamps made late (the kernel substitutes none silently here, but drivers
//! have been seen to). A missing stamp is a sample with fewer fields, never a loss.

use linerate_core::time::MonoTime;

/// Probes whose stamps may wait for each other.
const WAITING_MAX: usize = 4096;

/// The program's round trip is by CLOCK_MONOTONIC, the stamps by CLOCK_REALTIME; both run at the
/// same rate and differ in rounding only, so a microsecond is ample.
pub(super) const CLOCK_SLACK_NS: u64 = 1_000;

/// How long a comparison of the two clocks is used: a step of civil time then spoils the splits of
/// so long at most.
const OFFSET_NS: u64 = 1_000_000_000;

/// CLOCK_REALTIME, by which the kernel stamps, less CLOCK_MONOTONIC, by which the program's times
/// are. The offset changes only when civil time is set.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct CivilOffset {
    known: Option<(MonoTime, i64)>,
    /// The largest change seen, where one was more than [`CLOCK_SLACK_NS`].
    pub(crate) stepped_ns: Option<i64>,
}

impl CivilOffset {
    /// True where the offset is to be read anew.
    pub(crate) fn is_old(&self, now: MonoTime) -> bool {
        self.known.is_none_or(|(at, _)| now.nanos_since(at) > OFFSET_NS)
    }

    /// Notes what was read.
    pub(crate) fn note_offset(&mut self, now: MonoTime, offset_ns: i64) {
        if let Some((_, before)) = self.known.replace((now, offset_ns)) {
            let step_ns = offset_ns.wrapping_sub(before);
            let most = self.stepped_ns.map_or(CLOCK_SLACK_NS, i64::unsigned_abs);
            if step_ns.unsigned_abs() > most {
                self.stepped_ns = Some(step_ns);
            }
        }
    }

    /// The civil time of a monotonic one.
    pub(crate) fn civil_time_ns(&self, time: MonoTime) -> u64 {
        time.as_nanos().saturating_add_signed(self.known.map_or(0, |(_, offset)| offset))
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct StampSlot {
    sequence: u64,
    queued_ns: Option<u64>,
    departed_ns: Option<u64>,
    answered: Option<Answered>,
}

/// The times of a probe when its answer is there; all by CLOCK_REALTIME.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answered {
    /// Just before the send call.
    pub(crate) t1_ns: u64,
    /// Just after the receive call.
    pub(crate) t4_ns: u64,
    /// The kernel's stamp of the answer.
    pub(crate) arrived_ns: u64,
}

/// Where the round trip of one probe passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoundTripParts {
    /// From the driver to the arrival of the answer: the path and the peer.
    pub(crate) path_ns: u64,
    /// The rest, which with the path makes the program's round trip to the ns.
    pub(crate) own: Option<OwnParts>,
}

/// The times that this host adds to a round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OwnParts {
    /// From before the send call to the queueing discipline.
    pub(crate) send_ns: u64,
    /// From there to the driver.
    pub(crate) queue_ns: u64,
    /// From the arrival of the answer to after the receive call.
    pub(crate) wake_ns: u64,
}

/// Stamps that wait for the others of their probe.
#[derive(Clone, Debug)]
pub(crate) struct StampBook {
    slots: Vec<StampSlot>,
    /// Pairs that were possible.
    pub(crate) paired: u64,
    /// Pairs that were not.
    pub(crate) impossible: u64,
    /// Pairs with all parts of this host.
    pub(crate) split: u64,
}

impl StampBook {
    pub(crate) fn new() -> Self {
        Self { slots: vec![StampSlot::default(); WAITING_MAX], paired: 0, impossible: 0, split: 0 }
    }

    /// Notes a stamp before the queueing discipline, which comes before that of the driver.
    pub(crate) fn queued(&mut self, sequence: u64, queued_ns: u64) {
        self.probe_slot(sequence).queued_ns = Some(queued_ns);
    }

    /// Notes a send stamp; returns where the time passed when that completes a pair.
    pub(crate) fn departed(&mut self, sequence: u64, departed_ns: u64) -> Option<RoundTripParts> {
        self.probe_slot(sequence).departed_ns = Some(departed_ns);
        self.pair_stamps(sequence)
    }

    /// Notes an answer; returns as above.
    pub(crate) fn answered(&mut self, sequence: u64, answered: Answered) -> Option<RoundTripParts> {
        self.probe_slot(sequence).answered = Some(answered);
        self.pair_stamps(sequence)
    }

    fn probe_slot(&mut self, sequence: u64) -> &mut StampSlot {
        let slot = &mut self.slots[(sequence % WAITING_MAX as u64) as usize];
        if slot.sequence != sequence {
            *slot = StampSlot { sequence, ..StampSlot::default() };
        }
        slot
    }

    fn pair_stamps(&mut self, sequence: u64) -> Option<RoundTripParts> {
        let slot = self.probe_slot(sequence);
        let (queued_ns, departed_ns, answered) =
            (slot.queued_ns, slot.departed_ns?, slot.answered?);
        *slot = StampSlot { sequence, ..StampSlot::default() };
        let Answered { t1_ns, t4_ns, arrived_ns } = answered;
        let whole_ns = t4_ns.saturating_sub(t1_ns);
        let path_ns = arrived_ns.checked_sub(departed_ns);
        let Some(path_ns) = path_ns.filter(|span| *span <= whole_ns + CLOCK_SLACK_NS) else {
            self.impossible += 1;
            return None;
        };
        self.paired += 1;
        // Never a negative part, nor one that was made 0: then none of them is known.
        let own = queued_ns.and_then(|queued_ns| {
            Some(OwnParts {
                send_ns: queued_ns.checked_sub(t1_ns)?,
                queue_ns: departed_ns.checked_sub(queued_ns)?,
                wake_ns: t4_ns.checked_sub(arrived_ns)?,
            })
        });
        self.split += u64::from(own.is_some());
        Some(RoundTripParts { path_ns, own })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A probe whose program had the answer at a time, `rtt_ns` after it sent it.
    fn answered_at(t4_ns: u64, rtt_ns: u64, arrived_ns: u64) -> Answered {
        Answered { t1_ns: t4_ns - rtt_ns, t4_ns, arrived_ns }
    }

    fn path_without_own(path_ns: u64) -> Option<RoundTripParts> {
        Some(RoundTripParts { path_ns, own: None })
    }

    #[test]
    fn halves_pair_in_either_order() {
        let mut book = StampBook::new();
        assert_eq!(book.departed(1, 100_000), None);
        assert_eq!(book.answered(2, answered_at(206_000, 9_000, 205_000)), None);
        assert_eq!(book.answered(1, answered_at(103_000, 7_000, 102_000)), path_without_own(2_000));
        assert_eq!(book.departed(2, 200_000), path_without_own(5_000));
        assert_eq!((book.paired, book.impossible, book.split), (2, 0, 0));
    }

    /// The table of the prototype that this follows, in ns: 1850 to the queueing discipline, 410
    /// in it, 2130 path and peer, 2650 until the program has the answer; 7040 in all.
    #[test]
    fn the_parts_of_each_probe_sum_to_its_round_trip() {
        let mut book = StampBook::new();
        let now = 1_700_000_000_000_000_000;
        for sequence in 0..10_000u64 {
            let t1_ns = now + 20_000 * sequence;
            // Each part grows by its own small amount, so that no two probes have the same split.
            let parts = [1850 + sequence % 7, 410 + sequence % 5, 2130 + sequence % 11, 2650];
            let [send_ns, queue_ns, path_ns, wake_ns] = parts;
            let queued_ns = t1_ns + send_ns;
            let departed_ns = queued_ns + queue_ns;
            let arrived_ns = departed_ns + path_ns;
            let t4_ns = arrived_ns + wake_ns;
            book.queued(sequence, queued_ns);
            let answered = Answered { t1_ns, t4_ns, arrived_ns };
            let placed = if sequence.is_multiple_of(2) {
                book.departed(sequence, departed_ns);
                book.answered(sequence, answered)
            } else {
                book.answered(sequence, answered);
                book.departed(sequence, departed_ns)
            };
            let placed = placed.expect("a pair");
            let own = placed.own.expect("all stamps");
            assert_eq!(own, OwnParts { send_ns, queue_ns, wake_ns });
            let sum_ns = own.send_ns + own.queue_ns + placed.path_ns + own.wake_ns;
            assert_eq!(sum_ns, t4_ns - t1_ns);
        }
        assert_eq!((book.paired, book.split), (10_000, 10_000));
    }

    #[test]
    fn a_stamp_that_lies_outside_its_neighbours_leaves_the_path_alone() {
        let mut book = StampBook::new();
        // Before the send call, behind the driver, and an arrival after the receive call.
        for (sequence, queued_ns, arrived_ns) in
            [(1, 99_000, 104_000), (2, 102_001, 104_000), (3, 101_000, 107_001)]
        {
            book.queued(sequence, queued_ns);
            book.departed(sequence, 102_000);
            let answered = Answered { t1_ns: 100_000, t4_ns: 107_000, arrived_ns };
            assert_eq!(book.answered(sequence, answered), path_without_own(arrived_ns - 102_000));
        }
        assert_eq!((book.paired, book.impossible, book.split), (3, 0, 0));
    }

    #[test]
    fn civil_time_that_is_set_meanwhile_is_seen_and_a_rounding_is_not() {
        let mut civil = CivilOffset::default();
        let at = |ms: u64| MonoTime::from_nanos(ms * 1_000_000);
        assert!(civil.is_old(at(0)));
        civil.note_offset(at(1), 500);
        assert_eq!(civil.civil_time_ns(at(2)), 2_000_500);
        assert!(!civil.is_old(at(1001)) && civil.is_old(at(1002)));
        civil.note_offset(at(1002), 510);
        assert_eq!(civil.stepped_ns, None);
        civil.note_offset(at(2003), -3_000_000);
        civil.note_offset(at(3004), -3_100_000);
        assert_eq!(civil.stepped_ns, Some(-3_000_510));
        assert_eq!(civil.civil_time_ns(at(3005)), 3_005_000_000 - 3_100_000);
    }

    #[test]
    fn a_pair_that_cannot_be_is_left_out() {
        let mut book = StampBook::new();
        book.departed(1, 100_000);
        let early = answered_at(103_000, 7_000, 99_999);
        assert_eq!(book.answered(1, early), None, "answer before the probe");
        book.departed(2, 100_000);
        let long = answered_at(108_001, 7_000, 108_001);
        assert_eq!(book.answered(2, long), None, "longer than the program's own");
        assert_eq!((book.paired, book.impossible), (0, 2));
    }

    #[test]
    fn an_old_half_does_not_pair_with_a_new_probe_in_its_place() {
        let mut book = StampBook::new();
        book.departed(5, 100_000);
        let later = 5 + WAITING_MAX as u64;
        assert_eq!(book.answered(later, answered_at(100_600, 7_000, 100_500)), None);
        assert_eq!(book.departed(later, 100_100), path_without_own(400));
    }
}
