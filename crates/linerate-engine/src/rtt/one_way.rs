//! The times of the probes of a STAMP run, and what they say of each direction.
//!
//! A probe has four times, each by the best source that all probes of the run have: T1 and T4 by
//! this host's kernel where it stamps, T3 as the next reply tells it where the reflector follows
//! up. A probe that lacks one of them is a sample less, never a loss.

use linerate_core::record::{
    ChangeCause, ClockAgreement, ClockKeeper, ClockState, DelayChange, Direction, Distribution,
    MetricId, Stat, Summary,
};
use linerate_core::stats::{
    ClockClaim, FourStamps, JitterRfc3550, Offset, PacketArrival as Arrived, clock_offset,
    ipdv_of_packets, pdv_of_packets, take_out_steps,
};
use linerate_core::time::MonoTime;
use linerate_proto::stamp::Reflected;

use super::stamps::CLOCK_SLACK_NS;

/// Probes whose times are kept: 88 MB.
const KEPT_MAX: usize = 1_000_000;
/// Replies whose follow-up may still come.
const FOLLOWED_MAX: usize = 4096;
/// T1 as it came back is ours when it agrees with the monotonic clock's round trip to this; a step
/// of civil time between send and receive makes it none.
const T1_SLACK_NS: u64 = 1_000_000;
/// A reply leaves not before the program gave it away, and not later than this after.
const LEAVES_WITHIN_NS: u64 = 1_000_000_000;
/// Changes of the local clock that are named.
const STEPS_MAX: usize = 64;
/// Share of the probes that must have the better source for it to be used.
const SHARE: f64 = 0.5;
/// A reply's number that falls so far back is that of a reflector that began anew.
const RESTART: i64 = 64;
/// So is one that falls back by more than packets overtake each other, to what was sent since.
const OVERTAKEN: i64 = 8;

/// The times of one probe that was answered, as far as they are known.
#[derive(Clone, Copy, Debug)]
struct ProbeTimes {
    sequence: u64,
    reply_sequence: u32,
    t1: Option<u64>,
    t1_kernel: Option<u64>,
    t2: Option<u64>,
    t3: Option<u64>,
    t3_left: Option<u64>,
    t4: u64,
    t4_kernel: Option<u64>,
    rtt_ns: u64,
    /// Civil time less monotonic time when the program had the answer.
    civil_ns: i64,
}

/// When the program had an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Had {
    /// The time by the monotonic clock.
    pub(crate) at: MonoTime,
    /// The civil time in ns.
    pub(crate) civil_ns: u64,
    /// The civil time in ns at which the kernel stamped the answer.
    pub(crate) kernel_ns: Option<u64>,
}

/// The facts about both ends that are known before a run.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OneWayEnds {
    /// Number on the wire of the run's first probe.
    pub(crate) first_on_wire: u32,
    /// This host is its own peer.
    pub(crate) one_clock: bool,
    /// Step of this host's clock: no delay is known better, also not with one clock for both.
    pub(crate) clock_step_ns: u64,
    /// Error of this host's civil time and who says so, where something keeps it right.
    pub(crate) local_error: Option<(u64, ClockKeeper)>,
}

/// The times of one run.
#[derive(Debug)]
pub(crate) struct TimesBook {
    /// In the order of arrival.
    answered: Vec<ProbeTimes>,
    /// Place in `answered` of each probe, plus 1.
    place: Vec<u32>,
    /// Number of a reply and the place of its probe.
    replies: Vec<Option<(u32, u32)>>,
    /// Times of leaving of probes that are not answered yet.
    leaving: Vec<Option<(u64, u64)>>,
    remote_error_ns: Option<u64>,
    remote_synchronised: bool,
    ends: OneWayEnds,
}

impl TimesBook {
    pub(crate) fn new(ends: OneWayEnds) -> Self {
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

    /// Notes an answer: what it told, when it was there, and the program's round trip.
    pub(crate) fn answered(&mut self, sequence: u64, told: &Reflected, had: Had, rtt_ns: u64) {
        self.follow_up(told);
        if self.answered.len() >= KEPT_MAX {
            return;
        }
        self.remote_synchronised &= told.synchronised;
        self.remote_error_ns = self.remote_error_ns.max(told.error_ns);
        let t4 = had.civil_ns;
        let ours = |t1: &u64| t4.saturating_sub(*t1).abs_diff(rtt_ns) <= T1_SLACK_NS;
        let place = self.answered.len() as u32;
        self.answered.push(ProbeTimes {
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
            t4_kernel: had.kernel_ns,
            rtt_ns,
            civil_ns: t4.wrapping_sub(had.at.as_nanos()).cast_signed(),
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

    /// The one-way figures of the run; none where too few probes have all four times.
    pub(crate) fn figures(&self, payload_bytes: u32) -> Option<OneWayFigures> {
        let has = |count: usize| count > 0 && count as f64 >= self.answered.len() as f64 * SHARE;
        let count =
            |which: fn(&ProbeTimes) -> bool| self.answered.iter().filter(|t| which(t)).count();
        let kernel = has(count(|t| t.by_kernel().is_some()));
        let follow_up = has(count(|t| t.t3_left.is_some()));
        let FourStampSeries { probes, arrivals, steps } = self.series(kernel, follow_up);
        let four: Vec<FourStamps> = probes.iter().map(|(_, four)| *four).collect();
        let claim = self.clock_claim();
        let mut offset = clock_offset(&four, claim)?;
        // A clock that was set by more than both claims was not within them before and after.
        let within = |step: i64| claim.error_ns.is_none_or(|ns| step.unsigned_abs() <= 2 * ns);
        if offset.state == ClockState::Synchronised && !steps.iter().all(|step| within(step.1)) {
            offset = Offset { refuted: true, ..clock_offset(&four, ClockClaim::default())? };
        }
        let counts = self.losses();
        let first = offset.pieces.first();
        let clocks = ClockAgreement {
            payload_bytes,
            state: offset.state,
            error_ns: offset.error_ns.map(|error| error.max(self.ends.clock_step_ns)),
            offset_ns: first.map(|piece| piece.offset_ns.round() as i64),
            drift_ns_per_s: first.map(|piece| piece.drift * 1e9).filter(|drift| *drift != 0.0),
            claimed_error_ns: claim.error_ns,
            claimed_by: self.ends.local_error.map(|(_, keeper)| keeper),
            claim_refuted: offset.refuted,
            kernel_stamps: kernel,
            follow_up,
            stateful: counts.is_some(),
            restarts: counts.map_or(0, |counts| counts.parts.saturating_sub(1)),
            samples: four.len() as u64,
            changes: changes(&probes, &offset, &steps),
        };
        let mut figures = OneWayFigures {
            clocks,
            rows: Vec::new(),
            distributions: Vec::new(),
            delays: Vec::new(),
        };
        figures.add_paths(&four);
        figures.add_direction(Direction::Up, &probes, &arrivals, &offset);
        figures.add_direction(Direction::Down, &probes, &arrivals, &offset);
        figures.rows.extend(counts.iter().flat_map(Losses::summary_rows));
        Some(figures)
    }

    /// The claims of both ends for their clocks.
    fn clock_claim(&self) -> ClockClaim {
        let remote_error_ns = self.remote_error_ns.filter(|_| self.remote_synchronised);
        let both = self.ends.local_error.zip(remote_error_ns);
        let error_ns = both.map(|((local, _), remote)| local.saturating_add(remote));
        ClockClaim { error_ns, one_clock: self.ends.one_clock }
    }

    fn series(&self, kernel: bool, follow_up: bool) -> FourStampSeries {
        let timed =
            self.answered.iter().filter_map(|t| Some((t.four_stamps(kernel, follow_up)?, t)));
        let mut timed: Vec<((u64, FourStamps), i64)> =
            timed.map(|(four, t)| (four, t.civil_ns)).collect();
        let arrivals = timed.iter().map(|((sequence, _), _)| *sequence).collect();
        timed.sort_unstable_by_key(|((sequence, _), _)| *sequence);
        let (mut probes, civil): (Vec<_>, Vec<_>) = timed.into_iter().unzip();
        // A step of the one clock of both ends is in none of their differences.
        let steps = if self.ends.one_clock {
            Vec::new()
        } else {
            let mut four: Vec<FourStamps> = probes.iter().map(|(_, four)| *four).collect();
            let steps = take_out_steps(&mut four, &civil);
            probes.iter_mut().zip(four).for_each(|(probe, four)| probe.1 = four);
            steps
        };
        FourStampSeries { probes, arrivals, steps }
    }

    /// Losses of each direction between the first and the last answered probe; `None` where the
    /// reflector repeats our numbers instead of counting, or packets were doubled on the way there.
    fn losses(&self) -> Option<Losses> {
        let on_wire = |sequence: u64| self.ends.first_on_wire.wrapping_add(sequence as u32);
        let counts = |t: &ProbeTimes| t.reply_sequence != on_wire(t.sequence);
        if !self.answered.iter().any(counts) {
            return None;
        }
        let answered = self.answered.iter().enumerate();
        let mut by_probe: Vec<Numbers> =
            answered.map(|(at, t)| Numbers::from_times(at, t)).collect();
        by_probe.sort_unstable();
        let mut all = Losses::default();
        for part in by_probe.chunk_by_mut(|a, b| !reflector_restarted(*a, *b)) {
            let (first, last) = (*part.first()?, *part.last()?);
            let numbers =
                || part.iter().map(|numbers| serial_difference(numbers.reply, first.reply));
            let taken = (numbers().max()? - numbers().min()? + 1).cast_unsigned();
            let sent = last.probe - first.probe + 1;
            all.parts += 1;
            all.sent += sent;
            all.there += sent.checked_sub(taken)?;
            all.back += taken.checked_sub(part.len() as u64)?;
            part.sort_unstable_by_key(|numbers| serial_difference(numbers.reply, first.reply));
            all.reordered_there += count_reordered(part.iter().map(|numbers| numbers.probe));
            part.sort_unstable_by_key(|numbers| numbers.arrival);
            all.reordered_back += count_reordered(
                part.iter().map(|numbers| serial_difference(numbers.reply, first.reply)),
            );
        }
        Some(all)
    }
}

/// The probes with all four times, as if the local clock had not been set.
struct FourStampSeries {
    /// In the order of sending.
    probes: Vec<(u64, FourStamps)>,
    /// In the order of arrival.
    arrivals: Vec<u64>,
    /// The steps by which the local clock was set, in ns, each with the index of its probe.
    steps: Vec<(usize, i64)>,
}

/// All changes in the order in which they came.
fn changes(
    probes: &[(u64, FourStamps)],
    offset: &Offset,
    steps: &[(usize, i64)],
) -> Vec<DelayChange> {
    let whole = |ns: f64| ns.round() as i64;
    let found = offset.changes.iter().map(|change| {
        let cause = if change.clock { ChangeCause::RemoteClock } else { ChangeCause::Path };
        (change.first, cause, whole(change.there_ns), whole(change.back_ns))
    });
    let set = steps.iter().take(STEPS_MAX);
    let set = set.map(|(first, step)| (*first, ChangeCause::LocalClock, -step, *step));
    let mut all: Vec<_> = found.chain(set).collect();
    all.sort_unstable_by_key(|(first, ..)| *first);
    all.into_iter()
        .filter_map(|(first, cause, there_ns, back_ns)| {
            let (probe, four) = *probes.get(first)?;
            // As that host's clock showed it.
            let set = steps.iter().take_while(|(at, _)| *at <= first);
            let ahead: i64 = set.map(|(_, step)| step).sum();
            let at_unix_ns = four.t1_ns.saturating_add_signed(ahead);
            Some(DelayChange { probe, at_unix_ns, cause, there_ns, back_ns })
        })
        .collect()
}

/// The numbers of an answered probe; in order by that of the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Numbers {
    probe: u64,
    reply: u32,
    arrival: usize,
}

impl Numbers {
    const fn from_times(arrival: usize, times: &ProbeTimes) -> Self {
        Self { probe: times.sequence, reply: times.reply_sequence, arrival }
    }
}

/// True where the reflector began its count anew between two neighbours.
fn reflector_restarted(a: Numbers, b: Numbers) -> bool {
    let back = -serial_difference(b.reply, a.reply);
    back >= RESTART || (back > OVERTAKEN && u64::from(b.reply) <= b.probe - a.probe)
}

/// How many come after a greater one (RFC 4737 §3.3).
fn count_reordered<T: Copy + Ord>(numbers: impl Iterator<Item = T>) -> u64 {
    let mut greatest = None;
    let mut is_late = |number: T| {
        let late = Some(number) < greatest;
        greatest = greatest.max(Some(number));
        late
    };
    numbers.filter(|number| is_late(*number)).count() as u64
}

/// How far `number` lies ahead of `of`, both of 32 bits that wrap.
const fn serial_difference(number: u32, of: u32) -> i64 {
    number.wrapping_sub(of).cast_signed() as i64
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Losses {
    /// The reflector began to count so many times.
    parts: u64,
    sent: u64,
    there: u64,
    back: u64,
    reordered_there: u64,
    reordered_back: u64,
}

impl Losses {
    /// Loss and order of each direction.
    fn summary_rows(&self) -> [Summary; 4] {
        let answers = self.sent.saturating_sub(self.there);
        let received = answers.saturating_sub(self.back);
        let lost = |direction, lost: u64, of: u64| {
            let ratio = lost as f64 / of.max(1) as f64;
            Summary::from_value(MetricId::LossOneWay, Stat::Value, ratio)
                .with_n(of)
                .in_direction(direction)
        };
        // Of a probe whose answer was lost nothing is known but that it came.
        let late = |direction, count: u64| {
            let row = Summary::from_value(MetricId::ReorderedOneWay, Stat::Value, count as f64);
            row.with_n(received).in_direction(direction)
        };
        [
            lost(Direction::Up, self.there, self.sent),
            lost(Direction::Down, self.back, answers),
            late(Direction::Up, self.reordered_there),
            late(Direction::Down, self.reordered_back),
        ]
    }
}

impl ProbeTimes {
    /// The kernel's pair, which lies within the program's own round trip.
    fn by_kernel(&self) -> Option<(u64, u64)> {
        let (t1, t4) = self.t1_kernel.zip(self.t4_kernel)?;
        let span = t4.checked_sub(t1)?;
        (span <= self.rtt_ns + CLOCK_SLACK_NS && t4 <= self.t4).then_some((t1, t4))
    }

    fn four_stamps(&self, kernel: bool, follow_up: bool) -> Option<(u64, FourStamps)> {
        let by_program = || self.t1.map(|t1| (t1, self.t4));
        let (t1_ns, t4_ns) = if kernel { self.by_kernel() } else { by_program() }?;
        let t3 = if follow_up { self.t3_left } else { self.t3 };
        let four = FourStamps { t1_ns, t2_ns: self.t2?, t3_ns: t3?, t4_ns };
        // Times that no path can have: of another probe, or made late.
        (four.t1_ns <= four.t4_ns && four.residence_ns() >= 0 && four.path_ns() >= 0)
            .then_some((self.sequence, four))
    }
}

/// The one-way figures that go into a record.
#[derive(Debug)]
pub(crate) struct OneWayFigures {
    pub(crate) clocks: ClockAgreement,
    pub(crate) rows: Vec<Summary>,
    pub(crate) distributions: Vec<Distribution>,
    /// Delay of each probe by its number, rising, of the directions in which it is known.
    pub(crate) delays: Vec<(Direction, Vec<(u64, i64)>)>,
}

impl OneWayFigures {
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
        let delay = |place: usize, four: &FourStamps| match direction {
            Direction::Up => four.forward_ns() - offset.offset_at(place, four.t1_ns).round() as i64,
            Direction::Down => {
                four.backward_ns() + offset.offset_at(place, four.t4_ns).round() as i64
            }
        };
        let by_probe: Vec<Arrived> = probes
            .iter()
            .enumerate()
            .map(|(place, (sequence, four))| {
                let received_ns = if direction == Direction::Up { four.t2_ns } else { four.t4_ns };
                Arrived { sequence: *sequence, received_ns, delay_ns: delay(place, four) }
            })
            .collect();
        let Some(least) = by_probe.iter().map(|probe| probe.delay_ns).min() else { return };
        let above = pdv_of_packets(&by_probe);
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
            let each = by_probe.iter().map(|probe| (probe.sequence, probe.delay_ns)).collect();
            self.delays.push((direction, each));
        }
        add(Distribution::from_samples(MetricId::Pdv, &above).summary());
        let steps: Vec<u64> =
            ipdv_of_packets(&by_probe).iter().map(|step| step.ns.unsigned_abs()).collect();
        add(Distribution::from_samples(MetricId::Ipdv, &steps).summary());
        let mut jitter = JitterRfc3550::default();
        for sequence in arrivals {
            let place = by_probe.binary_search_by_key(sequence, |probe| probe.sequence);
            place.iter().for_each(|place| jitter.record(by_probe[*place].delay_ns));
        }
        let row = |ns| Summary::from_value(MetricId::JitterRfc3550, Stat::Value, ns);
        add(jitter.jitter_ns().map(row).into_iter().collect());
    }
}

#[cfg(test)]
#[path = "one_way_tests.rs"]
mod tests;
