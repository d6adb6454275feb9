//! What becomes of each probe of one run, in order of sending.

use linerate_core::record::Probes;
use linerate_core::time::MonoTime;

use crate::rtt::{Arrival, Sink};

/// At the end of a run a probe without an answer is lost when it has been under way for so many
/// times the longest round trip, and so long at least; before that nobody knows.
const LOST_AFTER_TIMES: u64 = 2;
const LOST_AFTER_NS: u64 = 100_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Answered(u64),
    Lost,
}

/// The probes of one run.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    probes: Vec<(MonoTime, Fate)>,
    most: usize,
}

impl Kept {
    /// Keeps the first `most`.
    pub(super) const fn new(most: usize) -> Self {
        Self { probes: Vec::new(), most }
    }

    pub(super) fn has_answers(&self) -> bool {
        self.probes.iter().any(|(_, fate)| matches!(fate, Fate::Answered(_)))
    }

    pub(super) fn count(&self) -> usize {
        self.probes.len()
    }

    /// Decides on the probes that are under way when a run ends; where nothing was ever answered
    /// they are lost, all of them.
    pub(super) fn settle(&mut self, now: MonoTime) {
        let longest = self.probes.iter().filter_map(|(_, fate)| match fate {
            Fate::Answered(rtt_ns) => Some(*rtt_ns),
            _ => None,
        });
        let patience = longest.max().map_or(0, |ns| (LOST_AFTER_TIMES * ns).max(LOST_AFTER_NS));
        for (t1, fate) in &mut self.probes {
            if *fate == Fate::UnderWay && now.nanos_since(*t1) >= patience {
                *fate = Fate::Lost;
            }
        }
    }

    /// From the first to behind the last, since `begin`.
    pub(super) fn span(&self, begin: MonoTime) -> Option<(i64, i64)> {
        let at = |place: Option<&(MonoTime, Fate)>| place.map(|(t1, _)| since(*t1, begin));
        Some((at(self.probes.first())?, at(self.probes.last())? + 1))
    }

    /// Adds every probe of which it is known what became of it.
    pub(super) fn fill(&self, begin: MonoTime, record: &mut Probes) {
        for (t1, fate) in &self.probes {
            let rtt_ns = match fate {
                Fate::Answered(rtt_ns) => Some(*rtt_ns),
                Fate::Lost => None,
                Fate::UnderWay => continue,
            };
            record.sent_ns.push(since(*t1, begin));
            record.rtt_ns.push(rtt_ns);
        }
    }

    fn set(&mut self, sequence: u64, fate: Fate) {
        let place = usize::try_from(sequence).unwrap_or(usize::MAX);
        if let Some(probe) = self.probes.get_mut(place) {
            probe.1 = fate;
        }
    }
}

/// Nanoseconds from `begin` to a time before or after it.
fn since(at: MonoTime, begin: MonoTime) -> i64 {
    let after = i64::try_from(at.nanos_since(begin)).unwrap_or(i64::MAX);
    after - i64::try_from(begin.nanos_since(at)).unwrap_or(i64::MAX)
}

impl Sink for Kept {
    fn sent(&mut self, _: u64, t1: MonoTime) {
        if self.probes.len() < self.most {
            self.probes.push((t1, Fate::UnderWay));
        }
    }

    fn answered(&mut self, arrival: &Arrival, _: MonoTime, rtt_ns: u64) {
        self.set(arrival.sequence, Fate::Answered(rtt_ns));
    }

    fn duplicate(&mut self, _: &Arrival) {}

    fn lost(&mut self, sequence: u64) {
        self.set(sequence, Fate::Lost);
    }

    fn departed(&mut self, _: u64, _: u64) {}

    fn wants_departures(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn at(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * MS)
    }

    fn arrival(sequence: u64) -> Arrival {
        Arrival { sequence, at: at(0), ttl: None, stamp_ns: None, reflected: None }
    }

    fn record() -> Probes {
        Probes {
            transport: linerate_core::record::PingTransport::Udp,
            target: String::new(),
            payload_bytes: 24,
            dscp: None,
            silent: None,
            phases: Vec::new(),
            sent_ns: Vec::new(),
            rtt_ns: Vec::new(),
        }
    }

    /// Probes at 0, 20, … 180 ms; the first five take 80 ms, the sixth is lost by its time-out, the
    /// others are under way at 270 ms. Twice 80 ms is 160: those sent by 110 are lost, which is
    /// none more; at 300 ms the limit is 140, and two more are.
    #[test]
    fn an_unanswered_probe_is_lost_once_it_is_twice_as_late_as_any_other() {
        let run = |end: u64| {
            let mut kept = Kept::new(100);
            (0..10).for_each(|it| kept.sent(it, at(20 * it)));
            (0..5).for_each(|it| kept.answered(&arrival(it), at(0), 80 * MS));
            kept.lost(5);
            kept.settle(at(end));
            let mut record = record();
            kept.fill(at(100), &mut record);
            (record.sent_ns.len(), record.rtt_ns.iter().flatten().count(), record.sent_ns[0])
        };
        assert_eq!(run(270), (6, 5, -100_000_000));
        assert_eq!(run(300), (8, 5, -100_000_000));
        assert_eq!(run(10_000), (10, 5, -100_000_000));
    }

    #[test]
    fn a_short_round_trip_leaves_a_tenth_of_a_second() {
        let mut kept = Kept::new(100);
        kept.sent(0, at(0));
        kept.sent(1, at(50));
        kept.answered(&arrival(0), at(0), MS);
        kept.settle(at(149));
        let mut record = record();
        kept.fill(at(0), &mut record);
        assert_eq!(record.rtt_ns, [Some(MS)]);
        assert_eq!(kept.span(at(10)), Some((-10_000_000, 40_000_001)));
    }

    #[test]
    fn without_any_answer_all_are_lost_and_beyond_the_most_none_is_kept() {
        let mut kept = Kept::new(2);
        (0..3).for_each(|it| kept.sent(it, at(it)));
        kept.settle(at(3));
        kept.answered(&arrival(2), at(0), MS);
        let mut record = record();
        kept.fill(at(0), &mut record);
        assert_eq!((record.rtt_ns, kept.has_answers()), (vec![None, None], false));
    }
}
