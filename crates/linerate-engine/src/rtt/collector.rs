//! What a run leaves behind: samples, stamp pairs, times of the first send and the last answer,
//! and what is told while it goes on.

use linerate_core::record::{Direction, Event, MetricId, PingProgress, PingReply, Series};
use linerate_core::time::MonoTime;
use linerate_sys::clock;

use super::drive::Sink;
use super::one_way::{Had, OneWayEnds, TimesBook};
use super::outages::OutageTracker;
use super::samples::TimeSamples;
use super::stamps::{Answered, CivilOffset, RoundTripParts, StampBook};
use super::wire::ProbeAnswer;

/// Probes whose samples are kept in order on request: 48 MB.
const KEPT_MAX: usize = 1_000_000;

/// Probes of a paced run whose samples are kept in order without a request: enough for plots over
/// time, half a megabyte of a record.
const KEPT_UNASKED: usize = 10_000;

/// Paced probes whose lateness is remembered until their answer: 512 KiB. A probe whose place was
/// taken counts as sent in time.
const LATE_MAX: usize = 1 << 15;
/// Probes left out by one stall that are counted: a night at one each second.
const LEFT_OUT_MAX: u64 = 100_000;

/// Time between two progress events.
const PROGRESS_NS: u64 = 200_000_000;

/// The times that are kept of a probe, in the order of [`KeptProbe::times`].
const KEPT: [MetricId; 5] =
    [MetricId::Rtt, MetricId::RttSend, MetricId::RttQueue, MetricId::RttKernel, MetricId::RttWake];

/// Stands for no time in [`KeptProbe`]: an option would take twice the room.
const NONE: u64 = u64::MAX;

/// One probe in order of sending.
#[derive(Clone, Copy, Debug)]
struct KeptProbe {
    t_ns: u64,
    times: [u64; KEPT.len()],
}

/// The events that are told while a run goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Telling {
    /// No event: a warm-up.
    Nothing,
    /// Each answer and each loss.
    EachProbe,
    /// The state a few times a second.
    Progress,
}

/// Which samples are kept in order of sending.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SampleRetention {
    /// None: a warm-up, or a flood.
    Nothing,
    /// The first ones, for plots over time.
    Some,
    /// All that there is room for.
    All,
}

impl SampleRetention {
    const fn max_samples(self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Some => KEPT_UNASKED,
            Self::All => KEPT_MAX,
        }
    }
}

/// The tasks of the collector of one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wishes {
    pub(crate) payload_bytes: u32,
    pub(crate) count: Option<u64>,
    pub(crate) telling: Telling,
    pub(crate) stamps: bool,
    pub(crate) keep: SampleRetention,
    /// The ends of a STAMP run; none in other runs.
    pub(crate) four_times: Option<OneWayEnds>,
    /// Origin of times in kept samples.
    pub(crate) started: MonoTime,
}

/// Collects the samples of one run.
pub(crate) struct Collector<'a> {
    wishes: Wishes,
    watch: &'a mut dyn FnMut(&Event),
    pub(crate) rtt: TimeSamples,
    pub(crate) kernel: TimeSamples,
    /// This host's own parts of the probes whose split is whole: before the queueing discipline, in
    /// it, and between the arrival of the answer and the program.
    pub(crate) own_parts: [TimeSamples; 3],
    pub(crate) book: Option<StampBook>,
    pub(crate) civil: CivilOffset,
    /// From the planned times of paced probes.
    pub(crate) scheduled: TimeSamples,
    /// Number and lateness of the newest paced probes.
    late: Vec<(u64, u64)>,
    interval_ns: u64,
    pub(crate) outages: OutageTracker,
    /// Replies that a queue on the way marked (CE), where their class is told.
    pub(crate) marked: u64,
    pub(crate) times: Option<TimesBook>,
    kept: Option<Vec<KeptProbe>>,
    first_t1: Option<MonoTime>,
    last_at: MonoTime,
    next_progress: MonoTime,
    sent: u64,
    answered: u64,
}

impl<'a> Collector<'a> {
    pub(crate) fn new(wishes: Wishes, watch: &'a mut dyn FnMut(&Event)) -> Self {
        let stamped = if wishes.stamps { wishes.count } else { Some(0) };
        Self {
            wishes,
            watch,
            rtt: TimeSamples::new(wishes.count),
            kernel: TimeSamples::new(stamped),
            own_parts: std::array::from_fn(|_| TimeSamples::new(stamped)),
            civil: CivilOffset::default(),
            scheduled: TimeSamples::new(Some(0)),
            late: Vec::new(),
            interval_ns: 0,
            outages: OutageTracker::default(),
            marked: 0,
            book: wishes.stamps.then(StampBook::new),
            times: wishes.four_times.map(TimesBook::new),
            kept: (wishes.keep != SampleRetention::Nothing).then(Vec::new),
            first_t1: None,
            last_at: MonoTime::default(),
            next_progress: MonoTime::default(),
            sent: 0,
            answered: 0,
        }
    }

    /// From the first send to the last answer.
    pub(crate) fn span_ns(&self) -> Option<u64> {
        Some(self.last_at.nanos_since(self.first_t1?)).filter(|span| *span > 0)
    }

    /// Probes that were kept of those sent, when not all were that somebody asked for.
    pub(crate) fn kept_short(&self) -> Option<u64> {
        if self.wishes.keep != SampleRetention::All {
            return None;
        }
        let kept = self.kept.as_ref()?.len() as u64;
        (kept < self.sent).then_some(kept)
    }

    /// The kept samples, probes in order of sending; a lost probe is null.
    pub(crate) fn series(&self) -> Vec<Series> {
        let Some(kept) = &self.kept else { return Vec::new() };
        let known = |ns: u64| (ns != NONE).then_some(ns as f64);
        let series = |place: usize, metric: MetricId| {
            let values: Vec<_> = kept.iter().map(|probe| known(probe.times[place])).collect();
            let any = metric == MetricId::Rtt || values.iter().any(Option::is_some);
            any.then(|| self.series_of(kept, metric, values))
        };
        KEPT.iter().enumerate().filter_map(|(place, metric)| series(place, *metric)).collect()
    }

    /// The same of the delays of each direction, where all samples were asked for.
    pub(crate) fn series_one_way(&self, delays: &[(Direction, Vec<(u64, i64)>)]) -> Vec<Series> {
        let Some(kept) = self.kept.as_ref().filter(|_| self.wishes.keep == SampleRetention::All)
        else {
            return Vec::new();
        };
        let series = |direction: Direction, probes: &[(u64, i64)]| {
            let mut values = vec![None; kept.len()];
            for (sequence, ns) in probes {
                let place = usize::try_from(*sequence).ok().and_then(|place| values.get_mut(place));
                place.into_iter().for_each(|value| *value = Some(*ns as f64));
            }
            let series = self.series_of(kept, MetricId::OneWayDelay, values);
            Series { direction: Some(direction), ..series }
        };
        delays.iter().map(|(direction, probes)| series(*direction, probes)).collect()
    }

    fn series_of(&self, kept: &[KeptProbe], metric: MetricId, values: Vec<Option<f64>>) -> Series {
        Series {
            metric,
            direction: None,
            flow: None,
            side: None,
            payload_bytes: Some(self.wishes.payload_bytes),
            t_ns: kept.iter().map(|probe| probe.t_ns).collect(),
            values,
        }
    }

    fn update_kept(&mut self, sequence: u64, change: impl FnOnce(&mut KeptProbe)) {
        let index = usize::try_from(sequence).unwrap_or(usize::MAX);
        if let Some(probe) = self.kept.as_mut().and_then(|kept| kept.get_mut(index)) {
            change(probe);
        }
    }

    fn placed(&mut self, sequence: u64, placed: Option<RoundTripParts>) {
        let Some(RoundTripParts { path_ns, own }) = placed else { return };
        self.kernel.record(path_ns);
        self.update_kept(sequence, |probe| probe.times[3] = path_ns);
        let Some(own) = own else { return };
        let parts = [own.send_ns, own.queue_ns, own.wake_ns];
        self.own_parts.iter_mut().zip(parts).for_each(|(samples, ns)| samples.record(ns));
        self.update_kept(sequence, |probe| {
            [probe.times[1], probe.times[2], probe.times[4]] = parts;
        });
    }

    /// Counts the time since the plan, and that of the probes that the same stall left out.
    fn by_schedule(&mut self, sequence: u64, rtt_ns: u64) {
        let Some(&(probe, lateness_ns)) = self.late.get(sequence as usize % LATE_MAX) else {
            return;
        };
        let lateness_ns = if probe == sequence { lateness_ns } else { 0 };
        let left_out = lateness_ns.checked_div(self.interval_ns).unwrap_or(0).min(LEFT_OUT_MAX);
        for place in 0..=left_out {
            self.scheduled.record(rtt_ns + lateness_ns - place * self.interval_ns);
        }
    }

    fn tell_reply(&mut self, arrival: &ProbeAnswer, rtt_ns: Option<u64>, duplicate: bool) {
        (self.watch)(&Event::Reply(PingReply {
            sequence: arrival.sequence,
            payload_bytes: self.wishes.payload_bytes,
            rtt_ns,
            ttl: arrival.ttl,
            duplicate,
        }));
    }

    #[cold]
    fn tell_progress(&mut self, now: MonoTime) {
        self.next_progress = MonoTime::from_nanos(now.as_nanos() + PROGRESS_NS);
        (self.watch)(&Event::Progress(PingProgress {
            payload_bytes: self.wishes.payload_bytes,
            sent: self.sent,
            answered: self.answered,
            count: self.wishes.count,
            elapsed_ns: self.first_t1.map_or(0, |first| now.nanos_since(first)),
        }));
    }
}

impl Sink for Collector<'_> {
    #[inline]
    fn probe_sent(&mut self, _sequence: u64, t1: MonoTime) {
        self.sent += 1;
        self.outages.probe_sent(t1);
        if self.first_t1.is_none() {
            self.first_t1 = Some(t1);
            self.next_progress = MonoTime::from_nanos(t1.as_nanos() + PROGRESS_NS);
        }
        if let Some(kept) = &mut self.kept
            && kept.len() < self.wishes.keep.max_samples()
        {
            let t_ns = t1.nanos_since(self.wishes.started);
            kept.push(KeptProbe { t_ns, times: [NONE; KEPT.len()] });
        }
    }

    fn probe_sent_late(&mut self, sequence: u64, lateness_ns: u64, interval_ns: u64) {
        self.interval_ns = interval_ns;
        self.late.resize(LATE_MAX, (u64::MAX, 0));
        self.late[sequence as usize % LATE_MAX] = (sequence, lateness_ns);
    }

    #[inline]
    fn answered(&mut self, arrival: &ProbeAnswer, t1: MonoTime, rtt_ns: u64) {
        self.answered += 1;
        self.last_at = arrival.at;
        self.rtt.record(rtt_ns);
        self.marked += u64::from(arrival.classes[1].is_some_and(|class| class & 3 == 3));
        self.outages.settled(arrival.sequence, false);
        self.by_schedule(arrival.sequence, rtt_ns);
        if self.kept.is_some() {
            self.update_kept(arrival.sequence, |probe| probe.times[0] = rtt_ns);
        }
        if let (Some(book), Some(stamp)) = (&mut self.book, arrival.stamp_ns) {
            if self.civil.is_old(arrival.at) {
                self.civil.note_offset(arrival.at, clock::realtime_offset_to_a_step_ns());
            }
            let answered = Answered {
                t1_ns: self.civil.civil_time_ns(t1),
                t4_ns: self.civil.civil_time_ns(arrival.at),
                arrived_ns: stamp,
            };
            let placed = book.answered(arrival.sequence, answered);
            self.placed(arrival.sequence, placed);
        }
        if let (Some(times), Some((told, civil_ns))) = (&mut self.times, &arrival.reflected) {
            let (at, kernel_ns) = (arrival.at, arrival.stamp_ns);
            let had = Had { at, civil_ns: *civil_ns, kernel_ns };
            times.answered(arrival.sequence, told, had, rtt_ns);
        }
        match self.wishes.telling {
            Telling::Nothing => {}
            Telling::EachProbe => self.tell_reply(arrival, Some(rtt_ns), false),
            Telling::Progress if arrival.at >= self.next_progress => self.tell_progress(arrival.at),
            Telling::Progress => {}
        }
    }

    fn duplicate(&mut self, arrival: &ProbeAnswer) {
        if self.wishes.telling == Telling::EachProbe {
            self.tell_reply(arrival, None, true);
        }
    }

    fn probe_lost(&mut self, sequence: u64) {
        self.outages.settled(sequence, true);
        if self.wishes.telling == Telling::EachProbe {
            let nobody = ProbeAnswer {
                sequence,
                at: self.last_at,
                ttl: None,
                stamp_ns: None,
                peer: None,
                classes: [None; 2],
                reflected: None,
            };
            self.tell_reply(&nobody, None, false);
        }
    }

    fn departed(&mut self, sequence: u64, stamp_ns: u64) {
        if let Some(book) = &mut self.book {
            let placed = book.departed(sequence, stamp_ns);
            self.placed(sequence, placed);
        }
        if let Some(times) = &mut self.times {
            times.departed(sequence, stamp_ns);
        }
    }

    fn queued(&mut self, sequence: u64, stamp_ns: u64) {
        if let Some(book) = &mut self.book {
            book.queued(sequence, stamp_ns);
        }
    }

    #[inline]
    fn wants_departures(&self) -> bool {
        self.book.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// One each 10 ms. The prober sends the second 35 ms late and leaves out the three that were
    /// due meanwhile; every answer takes 1 ms. From the plan the late one took 36 ms, and those
    /// left out 26, 16 and 6, had they left with it.
    #[test]
    fn a_stall_of_the_prober_weighs_as_much_as_it_lasted() {
        let wishes = Wishes {
            payload_bytes: 56,
            count: Some(3),
            telling: Telling::Nothing,
            stamps: false,
            keep: SampleRetention::Nothing,
            four_times: None,
            started: MonoTime::default(),
        };
        let mut nobody = |_: &Event| {};
        let mut collector = Collector::new(wishes, &mut nobody);
        for (sequence, late_ms) in [(0, 0), (1, 35), (2, 0)] {
            let t1 = MonoTime::from_nanos((100 + 10 * sequence + late_ms) * MS);
            collector.probe_sent(sequence, t1);
            collector.probe_sent_late(sequence, late_ms * MS, 10 * MS);
            let at = MonoTime::from_nanos(t1.as_nanos() + MS);
            let arrival = ProbeAnswer {
                sequence,
                at,
                ttl: None,
                stamp_ns: None,
                peer: None,
                classes: [None, Some(3)],
                reflected: None,
            };
            collector.answered(&arrival, t1, MS);
        }
        let values = |samples: &TimeSamples, metric| {
            let distribution = samples.distribution(metric).expect("samples");
            distribution.values.iter().map(|ns| *ns / MS).collect::<Vec<u64>>()
        };
        assert_eq!(collector.marked, 3);
        assert_eq!(values(&collector.rtt, MetricId::Rtt), [1]);
        assert_eq!(values(&collector.scheduled, MetricId::RttScheduled), [1, 6, 16, 26, 36]);
    }
}
