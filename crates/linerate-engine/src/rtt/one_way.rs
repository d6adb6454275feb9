//! The times of the probes of a STAMP run, and what they say of each direction.
//!
//! A probe has four times, each by the best source that all probes of the run have: T1 and T4 by
//! this host's kernel where it stamps, T3 as the next reply tells it where the reflector follows
//! up. A probe that lacks one of them is a sample less, never a loss.

use linerate_core::record::{
    ClockAgreement, ClockState, Direction, Distribution, MetricId, Stat, Summary,
};
use linerate_core::stats::{
    Arrival as Arrived, ClockClaim, FourStamps, JitterRfc3550, Offset, clock_offset, ipdv, pdv,
};
use linerate_proto::stamp::Reflected;

/// Probes whose times are kept: 88 MB.
const KEPT_MAX: usize = 1_000_000;
/// Replies whose follow-up may still come.
const FOLLOWED_MAX: usize = 4096;
/// T1 as it came back is ours when it agrees with the monotonic clock's round trip to this; a step
/// of civil time between send and receive makes it none.
const T1_SLACK_NS: u64 = 1_000_000;
/// A reply leaves not before the program gave it away, and not later than this after.
const LEAVES_WITHIN_NS: u64 = 1_000_000_000;
/// Share of the probes that must have the better source for it to be used.
const SHARE: f64 = 0.5;
/// A reply's number that falls so far back is that of a reflector that began anew.
const RESTART: i64 = 64;

/// The times of one probe that was answered, as far as they are known.
#[derive(Clone, Copy, Debug)]
struct Times {
    sequence: u64,
    reply_sequence: u32,
    t1: Option<u64>,
    t1_kernel: Option<u64>,
    t2: Option<u64>,
    t3: Option<u64>,
    t3_left: Option<u64>,
    t4: u64,
    t4_kernel: Option<u64>,
}

/// What is known of both ends before a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ends {
    /// Number on the wire of the run's first probe.
    pub(crate) first_on_wire: u32,
    /// This host is its own peer.
    pub(crate) one_clock: bool,
    /// Error of this host's civil time, where something keeps it right.
    pub(crate) local_error_ns: Option<u64>,
}

/// The times of one run.
#[derive(Debug)]
pub(crate) struct TimesBook {
    /// In the order of arrival.
    answered: Vec<Times>,
    /// Place in `answered` of each probe, plus 1.
    place: Vec<u32>,
    /// Number of a reply and the place of its probe.
    replies: Vec<Option<(u32, u32)>>,
    /// Times of leaving of probes that are not answered yet.
    leaving: Vec<Option<(u64, u64)>>,
    remote_error_ns: Option<u64>,
    remote_synchronised: bool,
    ends: Ends,
}

impl TimesBook {
    pub(crate) fn new(ends: Ends) -> Self {
        Self {
            answered: Vec::new(),
            place: Vec::new(),
            replies: vec![None; FOLLOWED_MAX],
            leaving: vec![None; FOLLOWED_MAX],
            remote_error_ns: None,
            remote_synchronised: true,
            ends,
        }
    }

    /// Notes an answer: what it told, when the program had it by civil time and when the kernel,
    /// and the program's round trip.
    pub(crate) fn answered(
        &mut self,
        sequence: u64,
        (told, t4): (&Reflected, u64),
        t4_kernel: Option<u64>,
        rtt_ns: u64,
    ) {
        self.follow_up(told);
        if self.answered.len() >= KEPT_MAX {
            return;
        }
        self.remote_synchronised &= told.synchronised;
        self.remote_error_ns = self.remote_error_ns.max(told.error_ns);
        let ours = |t1: &u64| t4.saturating_sub(*t1).abs_diff(rtt_ns) <= T1_SLACK_NS;
        let place = self.answered.len() as u32;
        self.answered.push(Times {
            sequence,
            reply_sequence: told.reply_sequence,
            t1: told.t1_ns.filter(ours),
            t1_kernel: self.leaving[sequence as usize % FOLLOWED_MAX]
                .take_if(|(left, _)| *left == sequence)
                .map(|(_, at_ns)| at_ns),
            t2: told.t2_ns,
            t3: told.t3_ns,
            t3_left: None,
            t4,
            t4_kernel,
        });
        self.replies[told.reply_sequence as usize % FOLLOWED_MAX] =
            Some((told.reply_sequence, place));
        if let Ok(index) = usize::try_from(sequence)
            && index < 2 * KEPT_MAX
        {
            self.place.resize(self.place.len().max(index + 1), 0);
            self.place[index] = place + 1;
        }
    }

    fn follow_up(&mut self, told: &Reflected) {
        let Some((number, left)) = told.follow_up else { return };
        let found = self.replies[number as usize % FOLLOWED_MAX];
        let Some((_, place)) = found.filter(|(reply, _)| *reply == number) else { return };
        let times = &mut self.answered[place as usize];
        // A record of a session before shows as one that cannot be.
        let possible = |t3: u64| (t3..t3.saturating_add(LEAVES_WITHIN_NS)).contains(&left);
        if times.t3.is_some_and(possible) {
            times.t3_left = Some(left);
        }
    }

    /// Notes when the kernel gave a probe to the interface, before or after its answer came.
    pub(crate) fn departed(&mut self, sequence: u64, at_ns: u64) {
        let place = usize::try_from(sequence).ok().and_then(|index| self.place.get(index));
        match place.filter(|place| **place > 0) {
            Some(place) => self.answered[*place as usize - 1].t1_kernel = Some(at_ns),
            None => self.leaving[sequence as usize % FOLLOWED_MAX] = Some((sequence, at_ns)),
        }
    }

    /// What the run says of its directions.
    pub(crate) fn figures(&self, payload_bytes: u32) -> Option<Figures> {
        let has = |count: usize| count > 0 && count as f64 >= self.answered.len() as f64 * SHARE;
        let count = |which: fn(&Times) -> bool| self.answered.iter().filter(|t| which(t)).count();
        let kernel = has(count(|t| {
            t.t1_kernel.zip(t.t4_kernel).is_some_and(|(t1, t4)| t1 <= t4 && t4 <= t.t4)
        }));
        let follow_up = has(count(|t| t.t3_left.is_some()));
        let mut probes: Vec<(u64, FourStamps)> =
            self.answered.iter().filter_map(|t| t.four(kernel, follow_up)).collect();
        let arrivals: Vec<u64> = probes.iter().map(|(sequence, _)| *sequence).collect();
        probes.sort_unstable_by_key(|(sequence, _)| *sequence);
        let four: Vec<FourStamps> = probes.iter().map(|(_, four)| *four).collect();
        let remote_error_ns = self.remote_error_ns.filter(|_| self.remote_synchronised);
        let claim = ClockClaim {
            error_ns: self
                .ends
                .local_error_ns
                .zip(remote_error_ns)
                .map(|(a, b)| a.saturating_add(b)),
            one_clock: self.ends.one_clock,
        };
        let offset = clock_offset(&four, claim)?;
        let counts = self.losses();
        let estimated = offset.state == ClockState::OffsetEstimated;
        let clocks = ClockAgreement {
            payload_bytes,
            state: offset.state,
            error_ns: offset.error_ns,
            offset_ns: estimated.then(|| offset.at_first_ns.round() as i64),
            drift_ns_per_s: (offset.drift != 0.0).then_some(offset.drift * 1e9),
            claimed_error_ns: claim.error_ns,
            claim_refuted: offset.refuted,
            kernel_stamps: kernel,
            follow_up,
            stateful: counts.is_some(),
            samples: four.len() as u64,
        };
        let mut figures = Figures { clocks, rows: Vec::new(), distributions: Vec::new() };
        figures.add_paths(&four);
        figures.add_direction(Direction::Up, &probes, &arrivals, &offset);
        figures.add_direction(Direction::Down, &probes, &arrivals, &offset);
        if let Some(Losses { sent, there, back }) = counts {
            let ratio = |lost: u64, of: u64| lost as f64 / of.max(1) as f64;
            for (direction, lost, of) in
                [(Direction::Up, there, sent), (Direction::Down, back, sent.saturating_sub(there))]
            {
                let row = Summary::of(MetricId::LossOneWay, Stat::Value, ratio(lost, of));
                figures.rows.push(row.with_n(of).in_direction(direction));
            }
        }
        Some(figures)
    }

    /// Losses of each direction between the first and the last answered probe; `None` where the
    /// reflector repeats our numbers instead of counting, or packets were doubled on the way there.
    fn losses(&self) -> Option<Losses> {
        let on_wire = |sequence: u64| self.ends.first_on_wire.wrapping_add(sequence as u32);
        let counts = |t: &Times| t.reply_sequence != on_wire(t.sequence);
        if !self.answered.iter().any(counts) {
            return None;
        }
        let mut by_probe: Vec<(u64, u32)> =
            self.answered.iter().map(|t| (t.sequence, t.reply_sequence)).collect();
        by_probe.sort_unstable();
        let mut all = Losses::default();
        for part in by_probe.chunk_by(|a, b| ahead(b.1, a.1) > -RESTART) {
            let (first, last) = (part.first()?, part.last()?);
            let numbers = || part.iter().map(|(_, reply)| ahead(*reply, first.1));
            let taken = (numbers().max()? - numbers().min()? + 1).cast_unsigned();
            let sent = last.0 - first.0 + 1;
            all.sent += sent;
            all.there += sent.checked_sub(taken)?;
            all.back += taken.checked_sub(part.len() as u64)?;
        }
        Some(all)
    }
}

/// How far `number` lies ahead of `of`, both of 32 bits that wrap.
const fn ahead(number: u32, of: u32) -> i64 {
    number.wrapping_sub(of).cast_signed() as i64
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    sent: u64,
    there: u64,
    back: u64,
}

impl Times {
    fn four(&self, kernel: bool, follow_up: bool) -> Option<(u64, FourStamps)> {
        let (t1, t4) =
            if kernel { (self.t1_kernel, self.t4_kernel) } else { (self.t1, Some(self.t4)) };
        let t3 = if follow_up { self.t3_left } else { self.t3 };
        let four = FourStamps { t1_ns: t1?, t2_ns: self.t2?, t3_ns: t3?, t4_ns: t4? };
        // Times that no path can have: of another probe, or made late.
        (four.t1_ns <= four.t4_ns && four.residence_ns() >= 0 && four.path_ns() >= 0)
            .then_some((self.sequence, four))
    }
}

/// What goes into a record.
#[derive(Debug)]
pub(crate) struct Figures {
    pub(crate) clocks: ClockAgreement,
    pub(crate) rows: Vec<Summary>,
    pub(crate) distributions: Vec<Distribution>,
}

impl Figures {
    fn add_paths(&mut self, four: &[FourStamps]) {
        let of = |metric, value: fn(FourStamps) -> i64| {
            let values: Vec<u64> = four.iter().map(|four| value(*four).cast_unsigned()).collect();
            Distribution::from_samples(metric, &values)
        };
        let both = [
            of(MetricId::RttPath, FourStamps::path_ns),
            of(MetricId::Residence, FourStamps::residence_ns),
        ];
        self.rows.extend(both.iter().flat_map(Distribution::summary));
        self.distributions.extend(both);
    }

    fn add_direction(
        &mut self,
        direction: Direction,
        probes: &[(u64, FourStamps)],
        arrivals: &[u64],
        offset: &Offset,
    ) {
        let known = offset.state != ClockState::Unsynchronised;
        let delay = |four: &FourStamps| match direction {
            Direction::Up => four.forward_ns() - offset.at(four.t1_ns).round() as i64,
            Direction::Down => four.backward_ns() + offset.at(four.t4_ns).round() as i64,
        };
        let by_probe: Vec<Arrived> = probes
            .iter()
            .map(|(sequence, four)| {
                let received_ns = if direction == Direction::Up { four.t2_ns } else { four.t4_ns };
                Arrived { sequence: *sequence, received_ns, delay_ns: delay(four) }
            })
            .collect();
        let Some(least) = by_probe.iter().map(|probe| probe.delay_ns).min() else { return };
        let above = pdv(&by_probe);
        let mut add = |rows: Vec<Summary>| {
            self.rows.extend(rows.into_iter().map(|row| row.in_direction(direction)));
        };
        if known {
            // Delays may be negative, and a distribution has none: it is shifted and back.
            let delays = Distribution::from_samples(MetricId::OneWayDelay, &above).summary();
            let back = |row: Summary| match row.stat {
                Stat::Stddev => row,
                _ => Summary { value: row.value + least as f64, ..row },
            };
            add(delays.into_iter().map(back).collect());
        }
        add(Distribution::from_samples(MetricId::Pdv, &above).summary());
        let steps: Vec<u64> = ipdv(&by_probe).iter().map(|step| step.ns.unsigned_abs()).collect();
        add(Distribution::from_samples(MetricId::Ipdv, &steps).summary());
        let mut jitter = JitterRfc3550::default();
        for sequence in arrivals {
            let place = by_probe.binary_search_by_key(sequence, |probe| probe.sequence);
            place.iter().for_each(|place| jitter.record(by_probe[*place].delay_ns));
        }
        let row = |ns| Summary::of(MetricId::JitterRfc3550, Stat::Value, ns);
        add(jitter.ns().map(row).into_iter().collect());
    }
}

#[cfg(test)]
#[path = "one_way_tests.rs"]
mod tests;
