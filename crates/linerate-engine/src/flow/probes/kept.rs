//! What becomes of each probe of one run, in order of sending.

use linerate_core::record::Probes;
use linerate_core::time::MonoTime;
use linerate_proto::echo::PeerTimes;

use crate::rtt::{ProbeAnswer, Sink};

/// At the end of a run a probe without an answer is lost when it has been under way for so many
/// times the longest round trip, and so long at least; before that nobody knows.
const LOST_AFTER_TIMES: u64 = 2;
const LOST_AFTER_NS: u64 = 100_000_000;

/// The kernel's stamps are by CLOCK_REALTIME and the round trip by CLOCK_MONOTONIC, which differ in
/// rounding only.
const CLOCK_SLACK_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    UnderWay,
    Answered(u64),
    Lost,
}

/// One probe of the connection under load.
#[derive(Clone, Copy, Debug)]
struct Probe {
    t1: MonoTime,
    fate: Fate,
    /// Times of the kernel: before and behind the queueing discipline, and the arrival of the
    /// answer.
    queued_ns: Option<u64>,
    left_ns: Option<u64>,
    arrived_ns: Option<u64>,
    peer: Option<PeerTimes>,
    /// Traffic classes of the probe as it came there, and of its answer here.
    classes: [Option<u8>; 2],
}

/// Where the time of a probe passed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProbeDelays {
    own_queue_ns: Option<u64>,
    path_ns: Option<u64>,
    there_ns: Option<i64>,
    peer_ns: Option<u64>,
    back_ns: Option<i64>,
}

impl Probe {
    /// Stamps that cannot be this probe's count as none: an answer before the probe, or longer
    /// after it than the program's own round trip.
    fn places(&self) -> ProbeDelays {
        let Fate::Answered(rtt_ns) = self.fate else { return ProbeDelays::default() };
        let within = |from: Option<u64>, to: Option<u64>| {
            let span = to?.checked_sub(from?)?;
            (span <= rtt_ns + CLOCK_SLACK_NS).then_some(span)
        };
        let own_queue_ns = within(self.queued_ns, self.left_ns);
        let path_ns = within(self.left_ns, self.arrived_ns);
        let known = ProbeDelays { own_queue_ns, path_ns, ..ProbeDelays::default() };
        let outside = path_ns.zip(self.left_ns).zip(self.arrived_ns);
        let Some((((span, left), arrived), peer)) = outside.zip(self.peer) else { return known };
        let peer_ns = peer.sent_ns - peer.received_ns;
        if peer_ns > span {
            return known;
        }
        ProbeDelays {
            own_queue_ns,
            path_ns: Some(span - peer_ns),
            there_ns: Some(peer.received_ns.cast_signed().wrapping_sub(left.cast_signed())),
            peer_ns: Some(peer_ns),
            back_ns: Some(arrived.cast_signed().wrapping_sub(peer.sent_ns.cast_signed())),
        }
    }
}

/// The probes of one run.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    probes: Vec<Probe>,
    most: usize,
}

impl Kept {
    /// Keeps the first `most`.
    pub(super) const fn new(most: usize) -> Self {
        Self { probes: Vec::new(), most }
    }

    pub(super) fn has_answers(&self) -> bool {
        self.probes.iter().any(|probe| matches!(probe.fate, Fate::Answered(_)))
    }

    pub(super) fn probe_count(&self) -> usize {
        self.probes.len()
    }

    /// Decides on the probes that are under way when a run ends; where nothing was ever answered
    /// they are lost, all of them.
    pub(super) fn settle(&mut self, now: MonoTime) {
        let longest = self.probes.iter().filter_map(|probe| match probe.fate {
            Fate::Answered(rtt_ns) => Some(rtt_ns),
            _ => None,
        });
        let patience = longest.max().map_or(0, |ns| (LOST_AFTER_TIMES * ns).max(LOST_AFTER_NS));
        for probe in &mut self.probes {
            if probe.fate == Fate::UnderWay && now.nanos_since(probe.t1) >= patience {
                probe.fate = Fate::Lost;
            }
        }
    }

    /// From the first to behind the last, since `begin`.
    pub(super) fn time_span(&self, begin: MonoTime) -> Option<(i64, i64)> {
        let at = |probe: Option<&Probe>| probe.map(|probe| signed_ns_since(probe.t1, begin));
        Some((at(self.probes.first())?, at(self.probes.last())? + 1))
    }

    /// Adds every probe of which it is known what became of it.
    pub(super) fn fill_record(&self, begin: MonoTime, record: &mut Probes) {
        for probe in &self.probes {
            let rtt_ns = match probe.fate {
                Fate::Answered(rtt_ns) => Some(rtt_ns),
                Fate::Lost => None,
                Fate::UnderWay => continue,
            };
            record.sent_ns.push(signed_ns_since(probe.t1, begin));
            record.rtt_ns.push(rtt_ns);
            let ProbeDelays { own_queue_ns, path_ns, there_ns, peer_ns, back_ns } = probe.places();
            record.own_queue_ns.push(own_queue_ns);
            record.path_ns.push(path_ns);
            record.there_ns.push(there_ns);
            record.peer_ns.push(peer_ns);
            record.back_ns.push(back_ns);
            // The lowest two bits of the traffic class (RFC 3168 §5).
            let [there, back] = probe.classes.map(|class| class.map(|class| class & 3));
            record.ecn_there.push(there);
            record.ecn_back.push(back);
        }
    }

    fn change(&mut self, sequence: u64, change: impl FnOnce(&mut Probe)) {
        let place = usize::try_from(sequence).unwrap_or(usize::MAX);
        if let Some(probe) = self.probes.get_mut(place) {
            change(probe);
        }
    }
}

/// Empties the columns in which nothing is known.
pub(super) fn leave_out_unknown(record: &mut Probes) {
    fn clear_if_unknown<T>(column: &mut Vec<Option<T>>) {
        if column.iter().all(Option::is_none) {
            column.clear();
        }
    }
    clear_if_unknown(&mut record.own_queue_ns);
    clear_if_unknown(&mut record.path_ns);
    clear_if_unknown(&mut record.there_ns);
    clear_if_unknown(&mut record.peer_ns);
    clear_if_unknown(&mut record.back_ns);
    clear_if_unknown(&mut record.ecn_there);
    clear_if_unknown(&mut record.ecn_back);
}

/// Nanoseconds from `begin` to a time before or after it.
fn signed_ns_since(at: MonoTime, begin: MonoTime) -> i64 {
    let after = i64::try_from(at.nanos_since(begin)).unwrap_or(i64::MAX);
    after - i64::try_from(begin.nanos_since(at)).unwrap_or(i64::MAX)
}

impl Sink for Kept {
    fn probe_sent(&mut self, _: u64, t1: MonoTime) {
        if self.probes.len() < self.most {
            let fate = Fate::UnderWay;
            let (queued_ns, left_ns, arrived_ns, peer) = (None, None, None, None);
            self.probes.push(Probe {
                t1,
                fate,
                queued_ns,
                left_ns,
                arrived_ns,
                peer,
                classes: [None; 2],
            });
        }
    }

    fn answered(&mut self, arrival: &ProbeAnswer, _: MonoTime, rtt_ns: u64) {
        self.change(arrival.sequence, |probe| {
            probe.fate = Fate::Answered(rtt_ns);
            (probe.arrived_ns, probe.peer) = (arrival.stamp_ns, arrival.peer);
            probe.classes = arrival.classes;
        });
    }

    fn duplicate(&mut self, _: &ProbeAnswer) {}

    fn probe_lost(&mut self, sequence: u64) {
        self.change(sequence, |probe| probe.fate = Fate::Lost);
    }

    fn departed(&mut self, sequence: u64, stamp_ns: u64) {
        self.change(sequence, |probe| probe.left_ns = Some(stamp_ns));
    }

    fn queued(&mut self, sequence: u64, stamp_ns: u64) {
        self.change(sequence, |probe| probe.queued_ns = Some(stamp_ns));
    }

    fn wants_departures(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    fn time_at_ms(ms: u64) -> MonoTime {
        MonoTime::from_nanos(ms * MS)
    }

    fn arrival(sequence: u64) -> ProbeAnswer {
        ProbeAnswer {
            sequence,
            at: time_at_ms(0),
            ttl: None,
            stamp_ns: None,
            peer: None,
            classes: [None; 2],
            reflected: None,
        }
    }

    fn record() -> Probes {
        Probes::new(linerate_core::record::PingTransport::Udp, String::new(), 40)
    }

    /// The other clock is an hour ahead. Queued at 10 µs, left at 2010, there at 12,010 of this
    /// host's clock, answered at 12,510, back at 20,510; the program sees 20,560.
    #[test]
    fn the_places_of_a_probe_sum_to_its_round_trip_by_whatever_clock_the_other_end_has() {
        const HOUR: u64 = 3_600_000_000_000;
        let us = |us: u64| HOUR + us * 1000;
        let mut kept = Kept::new(9);
        kept.probe_sent(0, time_at_ms(0));
        kept.queued(0, us(10));
        kept.departed(0, us(2010));
        let peer = PeerTimes { received_ns: HOUR + us(12_010), sent_ns: HOUR + us(12_510) };
        let answer = ProbeAnswer { stamp_ns: Some(us(20_510)), peer: Some(peer), ..arrival(0) };
        Sink::answered(&mut kept, &answer, time_at_ms(0), 20_560_000);
        let expected = ProbeDelays {
            own_queue_ns: Some(2_000_000),
            path_ns: Some(18_000_000),
            there_ns: Some((HOUR + 10_000_000).cast_signed()),
            peer_ns: Some(500_000),
            back_ns: Some(8_000_000 - HOUR.cast_signed()),
        };
        assert_eq!(kept.probes[0].places(), expected);
        // Without the other end's times the path has them all; stamps of another probe are none.
        kept.probes[0].peer = None;
        let own_queue_ns = Some(2_000_000);
        let path_ns = Some(18_500_000);
        assert_eq!(
            kept.probes[0].places(),
            ProbeDelays { own_queue_ns, path_ns, ..ProbeDelays::default() }
        );
        kept.probes[0].arrived_ns = Some(us(22_572));
        assert_eq!(kept.probes[0].places(), ProbeDelays { own_queue_ns, ..ProbeDelays::default() });
    }

    /// Probes at 0, 20, … 180 ms; the first five take 80 ms, the sixth is lost by its time-out, the
    /// others are under way at 270 ms. Twice 80 ms is 160: those sent by 110 are lost, which is
    /// none more; at 300 ms the limit is 140, and two more are.
    #[test]
    fn an_unanswered_probe_is_lost_once_it_is_twice_as_late_as_any_other() {
        let run = |end: u64| {
            let mut kept = Kept::new(100);
            (0..10).for_each(|number| kept.probe_sent(number, time_at_ms(20 * number)));
            (0..5).for_each(|number| kept.answered(&arrival(number), time_at_ms(0), 80 * MS));
            kept.probe_lost(5);
            kept.settle(time_at_ms(end));
            let mut record = record();
            kept.fill_record(time_at_ms(100), &mut record);
            (record.sent_ns.len(), record.rtt_ns.iter().flatten().count(), record.sent_ns[0])
        };
        assert_eq!(run(270), (6, 5, -100_000_000));
        assert_eq!(run(300), (8, 5, -100_000_000));
        assert_eq!(run(10_000), (10, 5, -100_000_000));
    }

    #[test]
    fn a_short_round_trip_leaves_a_tenth_of_a_second() {
        let mut kept = Kept::new(100);
        kept.probe_sent(0, time_at_ms(0));
        kept.probe_sent(1, time_at_ms(50));
        kept.answered(&arrival(0), time_at_ms(0), MS);
        kept.settle(time_at_ms(149));
        let mut record = record();
        kept.fill_record(time_at_ms(0), &mut record);
        assert_eq!(record.rtt_ns, [Some(MS)]);
        assert_eq!(kept.time_span(time_at_ms(10)), Some((-10_000_000, 40_000_001)));
    }

    #[test]
    fn without_any_answer_all_are_lost_and_beyond_the_most_none_is_kept() {
        let mut kept = Kept::new(2);
        (0..3).for_each(|number| kept.probe_sent(number, time_at_ms(number)));
        kept.settle(time_at_ms(3));
        kept.answered(&arrival(2), time_at_ms(0), MS);
        let mut record = record();
        kept.fill_record(time_at_ms(0), &mut record);
        assert_eq!((record.rtt_ns, kept.has_answers()), (vec![None, None], false));
    }
}
