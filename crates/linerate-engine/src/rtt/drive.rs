//! The loop of a run: when to send, what to take, when to give up. It knows no sockets.
//!
//! Cost per probe when flooding: two system calls (send, recv) and two clock readings; the system
//! calls with the kernel's work under them are 5 to 6 µs on loopback and veth, the loop's own
//! work must stay under 0.1 µs.

use linerate_core::poisson::Schedule;
use linerate_core::record::Failure;
use linerate_core::time::MonoTime;
use linerate_proto::echo::{Counts, EchoAnswerKind, EchoTrackerLimits, Tracker};
use linerate_sys::stop::Stop;
use std::time::Duration;

use super::wire::{ProbeAnswer, SendStamp, Wire};

/// How long to leave a kernel alone whose send queue is full.
const FULL_QUEUE_PAUSE: Duration = Duration::from_micros(100);
/// A run whose spacing is another's looks at it, and at the stop flag, as often at least.
const SPACING_LOOK: Duration = Duration::from_millis(50);
/// Probes sent one at a time leave at least this often, whether or not the last was answered.
const ALONE_MAX: Duration = Duration::from_secs(1);

/// When the next probe leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProbePace {
    /// A probe is sent as soon as fewer than this many are unanswered; 1 is stop and wait.
    Window(u64),
    /// A probe is sent in each interval of so many ns.
    Every(u64),
    /// After exponential intervals with this mean in ns (RFC 2330 §11.1.1), those of OWAMP's
    /// schedule for a seed (RFC 4656 §5).
    Poisson { mean_ns: u64, seed: u64 },
}

/// Says how far apart probes of [`ProbePace::Every`] are at least, anew for each; none is one at a
/// time.
pub(crate) type Spacing<'a> = &'a dyn Fn() -> Option<u64>;

/// The fixed bounds of a run.
#[derive(Clone, Copy)]
pub(crate) struct ProbeRunRules<'a> {
    pub(crate) pace: ProbePace,
    /// Probes to send, or `None` for no end.
    pub(crate) count: Option<u64>,
    /// When to stop at the latest.
    pub(crate) deadline: Option<MonoTime>,
    pub(crate) limits: EchoTrackerLimits,
    /// Where the pace has to leave room for others.
    pub(crate) spacing: Option<Spacing<'a>>,
}

/// Observer of everything that happens to a probe.
pub(crate) trait Sink {
    fn probe_sent(&mut self, sequence: u64, t1: MonoTime);
    /// A paced probe left so long after its time in a schedule of one each `interval_ns`.
    fn probe_sent_late(&mut self, _sequence: u64, _lateness_ns: u64, _interval_ns: u64) {}
    fn answered(&mut self, arrival: &ProbeAnswer, t1: MonoTime, rtt_ns: u64);
    fn duplicate(&mut self, arrival: &ProbeAnswer);
    fn probe_lost(&mut self, sequence: u64);
    fn departed(&mut self, sequence: u64, stamp_ns: u64);
    fn queued(&mut self, _sequence: u64, _stamp_ns: u64) {}
    /// True where send stamps are to be collected.
    fn wants_departures(&self) -> bool;
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ProbeRunEnd {
    /// All probes were sent and settled.
    Complete,
    /// Somebody asked to stop.
    Stopped,
    /// The deadline of the run came.
    Deadline,
    /// The run could not go on.
    Failed(Failure),
}

/// The counts of a run, and its end.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ProbeRun {
    pub(crate) counts: Counts,
    pub(crate) ended: ProbeRunEnd,
    /// Probes that left later than their place in the schedule allows.
    pub(crate) late_sends: u64,
    /// Probes that this host's own queues never took.
    pub(crate) unsent: u64,
}

/// Runs one size to its end.
pub(crate) fn drive_probes<W: Wire, S: Sink>(
    wire: &mut W,
    rules: &ProbeRunRules<'_>,
    stop: &Stop,
    sink: &mut S,
) -> ProbeRun {
    let now = wire.now();
    let mut driver = Driver {
        wire,
        sink,
        rules: *rules,
        tracker: Tracker::new(rules.limits),
        schedule: now,
        planned: now,
        random: Schedule::from_seed(poisson_seed(rules.pace)),
        late_sends: 0,
        last_sent: now,
        unsent: 0,
        refused_since: None,
        now,
    };
    let ended = driver.run(stop).unwrap_or_else(ProbeRunEnd::Failed);
    driver.tracker.close_run();
    let Driver { tracker, late_sends, unsent, .. } = driver;
    ProbeRun { counts: tracker.counts(), ended, late_sends, unsent }
}

struct Driver<'a, W, S> {
    wire: &'a mut W,
    sink: &'a mut S,
    rules: ProbeRunRules<'a>,
    tracker: Tracker,
    /// When the next probe may leave: the pace's plan, or the end of a pause.
    schedule: MonoTime,
    /// The pace's plan for it, pauses or not.
    planned: MonoTime,
    random: Schedule,
    late_sends: u64,
    last_sent: MonoTime,
    unsent: u64,
    /// The kernel has had no room for the next probe since then.
    refused_since: Option<MonoTime>,
    now: MonoTime,
}

impl<W: Wire, S: Sink> Driver<'_, W, S> {
    fn run(&mut self, stop: &Stop) -> Result<ProbeRunEnd, Failure> {
        loop {
            if stop.is_requested() {
                return Ok(ProbeRunEnd::Stopped);
            }
            if self.rules.deadline.is_some_and(|deadline| self.now >= deadline) {
                return Ok(ProbeRunEnd::Deadline);
            }
            self.send_what_is_due()?;
            match self.wire.receive()? {
                Some(arrival) => self.settle(&arrival),
                None => self.pass_time(),
            }
            if self.finished() {
                return Ok(ProbeRunEnd::Complete);
            }
        }
    }

    fn finished(&self) -> bool {
        self.all_sent() && self.tracker.outstanding() == 0
    }

    fn all_sent(&self) -> bool {
        self.rules.count.is_some_and(|count| self.tracker.next_sequence() + self.unsent >= count)
    }

    fn send_what_is_due(&mut self) -> Result<(), Failure> {
        match self.rules.pace {
            ProbePace::Window(window) => {
                while self.tracker.outstanding() < window
                    && !self.all_sent()
                    && self.now >= self.schedule
                {
                    if self.send_next_probe()?.is_none() {
                        self.schedule = self.now + FULL_QUEUE_PAUSE;
                        self.give_up_after(self.rules.limits.timeout_ns);
                    }
                }
            }
            ProbePace::Every(interval_ns) | ProbePace::Poisson { mean_ns: interval_ns, .. } => {
                if self.now >= self.schedule && self.may_send_more() {
                    let interval_ns = self.spaced(interval_ns);
                    match self.send_next_probe()? {
                        Some(t1) => self.plan_next(t1, interval_ns),
                        None => {
                            self.schedule = self.now + FULL_QUEUE_PAUSE;
                            if self.give_up_after(self.rules.limits.timeout_ns.min(interval_ns)) {
                                self.schedule = self.planned + self.span_to_next(interval_ns);
                                self.planned = self.schedule;
                            }
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// The planned interval, or what the spacing asks for where that is more.
    fn spaced(&self, interval_ns: u64) -> u64 {
        let spacing = self.rules.spacing.and_then(|spacing| spacing());
        spacing.map_or(interval_ns, |spacing_ns| spacing_ns.max(interval_ns))
    }

    /// True where a paced probe may go when its time has come.
    fn may_send_more(&self) -> bool {
        let alone = self.rules.spacing.is_some_and(|spacing| spacing().is_none());
        let waits = self.tracker.outstanding() > 0 && self.now < self.last_sent + ALONE_MAX;
        !(self.all_sent() || alone && waits)
    }

    #[inline]
    fn send_next_probe(&mut self) -> Result<Option<MonoTime>, Failure> {
        let sequence = self.tracker.next_sequence();
        let Some(t1) = self.wire.send_probe(sequence)? else { return Ok(None) };
        self.tracker.record_sent(t1);
        self.refused_since = None;
        self.sink.probe_sent(sequence, t1);
        (self.now, self.last_sent) = (t1, t1);
        Ok(Some(t1))
    }

    /// Counts the next probe as not sent where the kernel has refused it for so long: a queue that
    /// is shorter than its fragments never takes it (ENOBUFS of a full qdisc, ip(7)).
    fn give_up_after(&mut self, patience_ns: u64) -> bool {
        let since = *self.refused_since.get_or_insert(self.now);
        let gives_up = self.now.nanos_since(since) >= patience_ns;
        if gives_up {
            self.unsent += 1;
            self.refused_since = None;
        }
        gives_up
    }

    fn span_to_next(&mut self, interval_ns: u64) -> Duration {
        Duration::from_nanos(match self.rules.pace {
            ProbePace::Poisson { mean_ns, .. } => self.random.span_ns(mean_ns),
            _ => interval_ns,
        })
    }

    /// Keeps to the schedule without drift; after a stall it starts anew rather than send the
    /// missed probes in a burst.
    fn plan_next(&mut self, t1: MonoTime, interval_ns: u64) {
        let sequence = self.tracker.next_sequence() - 1;
        self.sink.probe_sent_late(sequence, t1.nanos_since(self.planned), interval_ns);
        let lateness_ns = t1.nanos_since(self.schedule);
        if lateness_ns > lateness_allowed_ns(interval_ns) {
            self.late_sends += 1;
        }
        let from = if lateness_ns > interval_ns { t1 } else { self.schedule };
        self.schedule = from + self.span_to_next(interval_ns);
        self.planned = self.schedule;
    }

    #[inline]
    fn settle(&mut self, arrival: &ProbeAnswer) {
        self.now = arrival.at;
        match self.tracker.arrived(arrival.sequence, arrival.at) {
            EchoAnswerKind::Answered { t1, rtt_ns } => self.sink.answered(arrival, t1, rtt_ns),
            EchoAnswerKind::Duplicate => self.sink.duplicate(arrival),
            EchoAnswerKind::Late | EchoAnswerKind::Unknown => {}
        }
        if self.sink.wants_departures() {
            self.wire.stamps(&mut |sequence, stamp| match stamp {
                SendStamp::Queued(at_ns) => self.sink.queued(sequence, at_ns),
                SendStamp::Left(at_ns) => self.sink.departed(sequence, at_ns),
            });
        }
    }

    fn pass_time(&mut self) {
        self.now = self.wire.now();
        self.tracker.expire(self.now, |sequence| self.sink.probe_lost(sequence));
        if self.finished() {
            return;
        }
        let until = self.next_event();
        if until > self.now {
            self.wire.wait_until(self.now, until);
            self.now = self.wire.now();
        }
    }

    fn next_event(&mut self) -> MonoTime {
        let may_send = match self.rules.pace {
            ProbePace::Window(window) => !self.all_sent() && self.tracker.outstanding() < window,
            ProbePace::Every(_) | ProbePace::Poisson { .. } => self.may_send_more(),
        };
        let schedule = may_send.then_some(self.schedule);
        let look = self.rules.spacing.map(|_| self.now + SPACING_LOOK);
        [schedule, look, self.tracker.next_expiry(), self.rules.deadline]
            .into_iter()
            .flatten()
            .min()
            .unwrap_or(self.now)
    }
}

const fn poisson_seed(pace: ProbePace) -> u64 {
    match pace {
        ProbePace::Poisson { seed, .. } => seed,
        ProbePace::Window(_) | ProbePace::Every(_) => 0,
    }
}

/// A probe counts as late beyond a tenth of the interval, and never below 100 µs, which a
/// sleeping thread cannot promise.
const fn lateness_allowed_ns(interval_ns: u64) -> u64 {
    if interval_ns / 10 > 100_000 { interval_ns / 10 } else { 100_000 }
}

#[cfg(test)]
#[path = "drive_tests.rs"]
mod tests;
