//! Stretches of successive probes without an answer, in the order of sending, however late and in
//! whatever order it shows that they are lost.

use std::collections::VecDeque;

use linerate_core::record::LostStretch;
use linerate_core::time::MonoTime;

/// One lost probe is a loss; an outage is more than one in succession.
const PROBES_MIN: u64 = 2;
/// Outages that are kept with their times.
const KEPT_MAX: usize = 1_000;

#[derive(Clone, Copy, Debug)]
struct UndecidedProbe {
    t1: MonoTime,
    lost: Option<bool>,
}

/// The outages of a run so far.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutageTracker {
    /// Probes of which one at least of those before is not decided; as many as can be in flight.
    waiting: VecDeque<UndecidedProbe>,
    /// Number of the first of them.
    first: u64,
    run: Option<(MonoTime, u64)>,
    last: MonoTime,
    found: Vec<LostStretch>,
    /// All, also those that are not kept.
    count: u64,
    longest_ns: u64,
    began: Option<MonoTime>,
}

impl OutageTracker {
    #[inline]
    pub(crate) fn probe_sent(&mut self, t1: MonoTime) {
        self.began.get_or_insert(t1);
        self.waiting.push_back(UndecidedProbe { t1, lost: None });
    }

    /// Notes that a probe is lost, or answered.
    #[inline]
    pub(crate) fn settled(&mut self, sequence: u64, lost: bool) {
        let place = sequence.checked_sub(self.first).and_then(|place| usize::try_from(place).ok());
        if let Some(probe) = place.and_then(|place| self.waiting.get_mut(place)) {
            probe.lost = Some(lost);
        }
        while let Some(UndecidedProbe { t1, lost: Some(lost) }) = self.waiting.front().copied() {
            self.waiting.pop_front();
            self.first += 1;
            self.last = t1;
            match (lost, &mut self.run) {
                (true, Some((_, probes))) => *probes += 1,
                (true, none) => *none = Some((t1, 1)),
                (false, _) => self.end_stretch(t1),
            }
        }
    }

    fn end_stretch(&mut self, until: MonoTime) {
        let Some((from, probes_lost)) = self.run.take() else { return };
        if probes_lost < PROBES_MIN {
            return;
        }
        let length_ns = until.nanos_since(from);
        self.count += 1;
        self.longest_ns = self.longest_ns.max(length_ns);
        if self.found.len() < KEPT_MAX {
            let start_ns = self.began.map_or(0, |began| from.nanos_since(began));
            self.found.push(LostStretch { payload_bytes: 0, start_ns, length_ns, probes_lost });
        }
    }

    /// The outages with their number and the longest; one that lasts goes to the last probe of
    /// which it is known.
    pub(crate) fn stretches_and_totals(&self) -> (Vec<LostStretch>, u64, u64) {
        let mut all = self.clone();
        all.end_stretch(self.last);
        (all.found, all.count, all.longest_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One probe each 10 ms; `lost` of the first `count` have no answer.
    fn outages_after(count: u64, lost: &[u64]) -> OutageTracker {
        let mut outages = OutageTracker::default();
        (0..count).for_each(|number| {
            outages.probe_sent(MonoTime::from_nanos(5_000 + number * 10_000_000))
        });
        // Answers come first, and losses show by their time-outs.
        (0..count)
            .filter(|number| !lost.contains(number))
            .for_each(|number| outages.settled(number, false));
        lost.iter().for_each(|number| outages.settled(*number, true));
        outages
    }

    fn stretches_in_ms(outages: &OutageTracker) -> Vec<(u64, u64, u64)> {
        let (found, count, longest_ns) = outages.stretches_and_totals();
        assert_eq!(count, found.len() as u64);
        assert_eq!(longest_ns, found.iter().map(|stretch| stretch.length_ns).max().unwrap_or(0));
        let ms = |ns: u64| ns / 1_000_000;
        found
            .iter()
            .map(|stretch| (ms(stretch.start_ns), ms(stretch.length_ns), stretch.probes_lost))
            .collect()
    }

    #[test]
    fn an_outage_goes_from_its_first_lost_probe_to_the_next_that_is_answered() {
        // Three lost from 20 ms on: as of fping -o, 3 times the interval.
        assert_eq!(stretches_in_ms(&outages_after(10, &[2, 3, 4])), [(20, 30, 3)]);
        assert_eq!(
            stretches_in_ms(&outages_after(10, &[0, 1, 5, 7, 8])),
            [(0, 20, 2), (70, 20, 2)]
        );
        assert_eq!(stretches_in_ms(&outages_after(10, &[3, 6])), [], "single losses are none");
        // One that lasts is known to the last lost probe.
        assert_eq!(stretches_in_ms(&outages_after(10, &[7, 8, 9])), [(70, 20, 3)]);
        assert_eq!(stretches_in_ms(&outages_after(0, &[])), []);
    }

    #[test]
    fn an_endless_ping_keeps_what_is_in_flight_and_no_more() {
        let mut outages = OutageTracker::default();
        for sequence in 0..3_000_000u64 {
            outages.probe_sent(MonoTime::from_nanos(sequence * 1000));
            outages.settled(sequence, sequence % 3 != 0);
        }
        let (found, count, longest_ns) = outages.stretches_and_totals();
        assert_eq!((found.len(), count, longest_ns), (KEPT_MAX, 1_000_000, 2000));
        assert!(outages.waiting.capacity() <= 8, "{}", outages.waiting.capacity());
    }
}
