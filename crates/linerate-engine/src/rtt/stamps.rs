//! Pairs the kernel's send and receive stamps of each probe.
//!
//! A pair counts only when it is possible: the answer after the probe, and not longer apart than
//! the program's own round trip, which encloses it. That catches stamps of another probe and
//! stamps made late (the kernel substitutes none silently here, but drivers have been seen to).
//! A missing stamp is a sample with fewer fields, never a loss.

/// Probes whose halves may wait for each other.
const WAITING_MAX: usize = 4096;

/// The program's round trip is by CLOCK_MONOTONIC, the stamps by CLOCK_REALTIME; both run at the
/// same rate and differ in rounding only, so a microsecond is ample.
pub(super) const CLOCK_SLACK_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    sequence: u64,
    departed_ns: Option<u64>,
    answered: Option<Answered>,
}

#[derive(Clone, Copy, Debug)]
struct Answered {
    arrived_ns: u64,
    rtt_ns: u64,
}

/// Halves of stamp pairs, waiting for the other half.
#[derive(Clone, Debug)]
pub(crate) struct StampBook {
    slots: Vec<Slot>,
    /// Pairs that were possible.
    pub(crate) paired: u64,
    /// Pairs that were not.
    pub(crate) impossible: u64,
}

impl StampBook {
    pub(crate) fn new() -> Self {
        Self { slots: vec![Slot::default(); WAITING_MAX], paired: 0, impossible: 0 }
    }

    /// Notes a send stamp; returns the kernel's round-trip time when that completes a pair.
    pub(crate) fn departed(&mut self, sequence: u64, departed_ns: u64) -> Option<u64> {
        self.slot(sequence).departed_ns = Some(departed_ns);
        self.pair(sequence)
    }

    /// Notes a receive stamp with the program's round-trip time; returns as above.
    pub(crate) fn answered(&mut self, sequence: u64, arrived_ns: u64, rtt_ns: u64) -> Option<u64> {
        self.slot(sequence).answered = Some(Answered { arrived_ns, rtt_ns });
        self.pair(sequence)
    }

    fn slot(&mut self, sequence: u64) -> &mut Slot {
        let slot = &mut self.slots[(sequence % WAITING_MAX as u64) as usize];
        if slot.sequence != sequence {
            *slot = Slot { sequence, ..Slot::default() };
        }
        slot
    }

    fn pair(&mut self, sequence: u64) -> Option<u64> {
        let slot = self.slot(sequence);
        let (departed_ns, answered) = (slot.departed_ns?, slot.answered?);
        *slot = Slot { sequence, ..Slot::default() };
        let span = answered.arrived_ns.checked_sub(departed_ns);
        let possible = span.filter(|span| *span <= answered.rtt_ns + CLOCK_SLACK_NS);
        match possible {
            Some(_) => self.paired += 1,
            None => self.impossible += 1,
        }
        possible
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_pair_in_either_order() {
        let mut book = StampBook::new();
        assert_eq!(book.departed(1, 100_000), None);
        assert_eq!(book.answered(2, 205_000, 9_000), None);
        assert_eq!(book.answered(1, 102_000, 7_000), Some(2_000));
        assert_eq!(book.departed(2, 200_000), Some(5_000));
        assert_eq!((book.paired, book.impossible), (2, 0));
    }

    #[test]
    fn a_pair_that_cannot_be_is_left_out() {
        let mut book = StampBook::new();
        book.departed(1, 100_000);
        assert_eq!(book.answered(1, 99_999, 7_000), None, "answer before the probe");
        book.departed(2, 100_000);
        assert_eq!(book.answered(2, 108_001, 7_000), None, "longer than the program's own");
        assert_eq!((book.paired, book.impossible), (0, 2));
    }

    #[test]
    fn an_old_half_does_not_pair_with_a_new_probe_in_its_place() {
        let mut book = StampBook::new();
        book.departed(5, 100_000);
        let later = 5 + WAITING_MAX as u64;
        assert_eq!(book.answered(later, 100_500, 7_000), None);
        assert_eq!(book.departed(later, 100_100), Some(400));
    }
}
