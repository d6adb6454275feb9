//! One trial on real interfaces (RFC 2544 §23): counters on, learning frames, frames, a wait for
//! those on their way, counts, and whether they say anything about the device.

use std::time::Duration;

use linerate_core::device::{FrameLoad, Pace, Received, Sent, WhenLate};
use linerate_core::record::{
    BenchTest, BenchTrial, Event, Failure, Fault, GeneratorKind, Invalid, TrialPort,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{self, monotonic};
use linerate_sys::host;
use linerate_sys::stop::Stop;

use super::bed::{Ask, Bed, Ended, Length, Outcome, Way, What};
use super::check::{self, Seen};
use super::places::inside;
use super::reset::Job;
use super::tester::Tester;

/// Makes a trial, and makes it again where it says nothing about the device.
pub(super) fn repeated(
    ask: &Ask,
    mut once: impl FnMut(WhenLate) -> Result<Outcome, Ended>,
) -> Result<Outcome, Ended> {
    let mut tries = 0;
    loop {
        let outcome = once(when_late(ask))?;
        if is_nearly(&outcome.trial) {
            let made_up = once(WhenLate::KeepSchedule)?;
            let carried = made_up.trial.invalid.is_none() && is_clean(&made_up.trial);
            return Ok(if carried { made_up } else { outcome });
        }
        if outcome.trial.invalid.is_none() || tries >= again(&outcome.trial) {
            return Ok(outcome);
        }
        tries += 1;
    }
}

/// How often a trial that says nothing about the device is made again. A search takes a load that
/// the generator cannot send even without pauses for the tester's limit, and needs no other.
fn again(trial: &BenchTrial) -> u32 {
    let is_limit = trial.test == BenchTest::Throughput && is_clean(trial) && !keeps_its_rate(trial);
    if is_limit { 0 } else { 3 }
}

fn is_clean(trial: &BenchTrial) -> bool {
    trial.ports.iter().all(|port| port.lost() == 0)
}

/// Whether the generator keeps the load's rate when nothing holds it up: it does unless so many
/// frames without a pause between them were slower.
pub(super) fn keeps_its_rate(trial: &BenchTrial) -> bool {
    const FRAMES: f64 = 100.0;
    let intended = trial.intended_fps.unwrap_or(0.0);
    let is_slow = |port: &TrialPort| {
        port.steady_fps.is_some_and(|fps| {
            fps < intended * check::SHORT && fps * port.steady_ns as f64 / 1e9 >= FRAMES
        })
    };
    !trial.ports.iter().any(is_slow)
}

/// Whether a load was nearly offered, and nothing was lost. When the tester's pauses are made up
/// for in bursts it may be offered in full, and a device with room for these carries it.
fn is_nearly(trial: &BenchTrial) -> bool {
    let intended = trial.intended_fps.unwrap_or(f64::INFINITY);
    let nearly = trial.ports.iter().all(|port| port.offered_fps >= intended * check::NEARLY);
    trial.test == BenchTest::Throughput && trial.invalid.is_some() && is_clean(trial) && nearly
}

/// How often the trial's end is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// A generator that is behind may take this much longer, and this many ns, before it is stopped.
const OVERTIME: (u64, u64) = (8, 200_000_000);

/// Copper takes some seconds from link up to a carrier.
const LINK_WAIT_NS: u64 = 20_000_000_000;

/// A flood has no end of its own; more frames than 2^40 are not sent in any trial.
const ENDLESS: u64 = 1 << 40;

impl Bed for Tester<'_, '_> {
    fn trial(&mut self, ask: &Ask) -> Result<Outcome, Ended> {
        repeated(ask, |when_late| self.told_of(ask, when_late))
    }

    fn tell(&mut self, text: &str) {
        (self.context.watch)(&Event::BenchStep(text.to_owned()));
    }

    fn restart(&mut self, what: &What) -> Result<(), Ended> {
        Job::of(what, &self.ports).run(self.places, &self.context.stop)?;
        self.wait_for_links()
    }

    fn ports(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.name.clone()).collect()
    }
}

/// The sending ports' loads of one trial, in turn where the load changes.
struct Loads {
    parts: Vec<FrameLoad>,
    deadline_ns: u64,
}

impl Loads {
    /// Those of a port that has its own mix.
    fn of(&self, mix: &[u8]) -> Vec<FrameLoad> {
        let part = |part: &FrameLoad| FrameLoad { mix: mix.to_vec(), ..part.clone() };
        self.parts.iter().map(part).collect()
    }
}

impl Tester<'_, '_> {
    /// Makes a trial, keeps it and tells of it.
    fn told_of(&mut self, ask: &Ask, when_late: WhenLate) -> Result<Outcome, Ended> {
        let outcome = self.once(ask, when_late)?;
        self.trials.push(outcome.trial.clone());
        (self.context.watch)(&Event::BenchTrial(Box::new(outcome.trial.clone())));
        Ok(outcome)
    }

    /// One trial, which is not recorded.
    pub(super) fn once(&mut self, ask: &Ask, when_late: WhenLate) -> Result<Outcome, Ended> {
        if self.context.stop.asked() {
            return Err(Ended::Stopped);
        }
        let senders = ask.senders.clone().unwrap_or_else(|| self.senders.clone());
        let loads = self.loads(ask, when_late);
        self.load(ask.pattern.as_ref(), &senders)?;
        self.links_are_up()?;
        self.trial_number = self.trial_number.wrapping_add(1);
        let expected: u64 = loads.parts.iter().map(|part| part.frames).sum();
        self.counters_begin(expected)?;
        self.learn()?;
        self.rest(self.times.before_ns.max(ask.idle_ns))?;
        let before = self.facts_now()?;
        let (began, processor) = (monotonic(), host::processor_time());
        let restart = ask.restart.as_ref();
        let restart = restart.map(|it| (it.after_ns, Job::of(&it.what, &self.ports)));
        let parts = self.send(&senders, &loads, restart.as_ref())?;
        if restart.is_some() {
            self.wait_for_links()?;
        }
        let drops: Vec<Option<u64>> = parts.iter().map(|parts| drop_at(parts)).collect();
        let mut sent: Vec<Sent> = parts.iter().map(|parts| joined(parts)).collect();
        // A paced generator that had no processor fell short; a flood of nothing is broken.
        let flood = ask.fps.is_none();
        if let Some(at) = sent.iter().position(|it| flood && it.frames == 0) {
            return Err(nothing_sent(&self.ports[senders[at]].name, self.generator).into());
        }
        self.drain(sent.iter().map(|it| it.frames).sum())?;
        let stolen_ns = stolen_since(processor);
        let after = self.facts_now()?;
        let closed = self.account_for_refused(&senders, &mut sent)?;
        let (mut ways, counted) = self.read_ways(&senders, sent, ask.arrivals)?;
        for (way, drop) in ways.iter_mut().zip(drops) {
            way.drop_at = drop;
        }
        let ports = self.trial_ports(ask, when_late, &senders, &mut ways);
        let mut trial = BenchTrial {
            test: ask.test,
            at_ns: began.nanos_since(self.began),
            duration_ns: match ask.length {
                Length::Time(ns) => ns,
                Length::Frames(_) => monotonic().nanos_since(began),
            },
            intended_fps: ask.fps.map(|fps| fps as f64),
            ports,
            stolen_ns,
            pause_frames: Some(counted.iter().map(|(foreign, _)| foreign.pause).sum()),
            invalid: None,
            why: ask.why.clone(),
        };
        let seen = Seen { before: &before, after: &after, counted: &counted };
        check::fill_interfaces(&mut trial, &seen, &senders);
        // A load that drops has no one rate.
        let expected = ask.fps.filter(|_| ask.drop_to.is_none()).map(|_| expected);
        let invalid = check::invalid(&trial, &seen, expected);
        trial.invalid = or_closed(invalid.filter(|it| !ask.excuses(it)), closed);
        self.rest(self.times.settle_ns)?;
        Ok(Outcome { trial, ways })
    }

    /// What each sender did, and what came of it.
    fn trial_ports(
        &self,
        ask: &Ask,
        when_late: WhenLate,
        senders: &[usize],
        ways: &mut [Way],
    ) -> Vec<TrialPort> {
        let of = |(port, way): (&usize, &mut Way)| {
            let mut found = trial_port(*port, way, ask.outputs.as_deref());
            self.explain(*port, &mut found, way, ask.fps);
            if when_late == WhenLate::KeepSchedule {
                // Pauses were made up for: the rate was kept for the whole of it.
                found.steady_ns = way.sent.last_ns.saturating_sub(way.sent.first_ns);
                found.steady_fps = way.sent.frames_per_sec();
                if ask.test == BenchTest::Throughput {
                    way.sent.watched.pauses.clear();
                }
            }
            found
        };
        senders.iter().zip(ways).map(of).collect()
    }

    /// Frames that the device's ring had no room for are the device's losses. Those of a port that
    /// takes none any more are the tester's: says which, and why.
    fn account_for_refused(
        &mut self,
        senders: &[usize],
        sent: &mut [Sent],
    ) -> Result<Option<Failure>, Failure> {
        let mut closed = None;
        for (sent, &at) in sent.iter_mut().zip(senders) {
            let port = &mut self.ports[at];
            if sent.refused == 0 || !port.refusals_are_losses() {
                continue;
            }
            match port.closed(self.places)? {
                Some(failure) => closed = Some(failure),
                None => sent.frames += sent.refused,
            }
        }
        Ok(closed)
    }

    /// Which lost frames the send times explain, where the counter tells which they are: pauses
    /// are shared with a device that is on this machine.
    fn explain(&self, at: usize, port: &mut TrialPort, way: &Way, fps: Option<u64>) {
        let watched = &way.sent.watched;
        let Some(fps) = fps.filter(|_| port.lost() > 0) else { return };
        let sent = usize::try_from(way.sent.frames).unwrap_or(usize::MAX);
        let kept = sent.min(way.arrivals.len());
        let came: Vec<bool> = way.arrivals[..kept].iter().map(Option::is_some).collect();
        let shares = self.ports[at].is_virtual;
        port.lost_explained = watched.explained(&came, fps as f64, shares).min(port.lost());
        if kept > 0 && watched.tells_each_of(kept as u64) {
            // Of frames beyond those that are kept one by one the number is all that is known.
            let beyond = 1.0 - kept as f64 / sent as f64;
            port.could_lose = (watched.could_lose as f64 * beyond) as u64;
        }
    }

    fn loads(&self, ask: &Ask, when_late: WhenLate) -> Loads {
        let rate = |fps| Pace::Rate { frames_per_sec: fps };
        let pace = ask.fps.map_or(Pace::Flood, rate);
        let frames_in =
            |fps: u64, ns: u64| (u128::from(fps) * u128::from(ns) / 1_000_000_000) as u64;
        let part = |frames: u64, pace| FrameLoad {
            frames: frames.max(1),
            pace,
            when_late,
            burst: self.frames.burst.max(1),
            mix: Vec::new(),
        };
        let within = |ns: u64| ns + ns / OVERTIME.0 + OVERTIME.1;
        let (parts, deadline_ns) = match (ask.length, ask.fps) {
            (Length::Frames(frames), fps) => {
                let ns = fps.map_or(0, |fps| frames.saturating_mul(1_000_000_000) / fps.max(1));
                (vec![part(frames, pace)], within(ns) + 2_000_000_000)
            }
            (Length::Time(ns), None) => (vec![part(ENDLESS, pace)], ns),
            (Length::Time(ns), Some(fps)) => (vec![part(frames_in(fps, ns), pace)], within(ns)),
        };
        let Some((to, first_ns)) = ask.drop_to else { return Loads { parts, deadline_ns } };
        let first = part(frames_in(ask.fps.unwrap_or(to), first_ns), pace);
        let Length::Time(ns) = ask.length else { return Loads { parts, deadline_ns } };
        let second = part(frames_in(to, ns.saturating_sub(first_ns)), rate(to));
        Loads { parts: vec![first, second], deadline_ns }
    }

    /// Sends from all `senders` at once, each on a thread of its own, until all are through or
    /// their time is over.
    fn send(
        &mut self,
        senders: &[usize],
        loads: &Loads,
        restart: Option<&(u64, Job)>,
    ) -> Result<Vec<Vec<Sent>>, Ended> {
        let (trial, places, user) = (self.trial_number, self.places, self.context.stop.clone());
        let halt = Stop::new();
        let mixes = &self.mixes;
        let began = monotonic();
        let sent: Vec<Result<Vec<Sent>, Failure>> = std::thread::scope(|scope| {
            let ports = self.ports.iter_mut().enumerate().filter(|(at, _)| senders.contains(at));
            let threads: Vec<_> = ports
                .map(|(at, port)| {
                    let halt = &halt;
                    let parts = loads.of(&mixes[at]);
                    scope.spawn(move || {
                        let host = port.host.clone();
                        inside(places, host.as_deref(), || port.send(trial, &parts, halt))?
                    })
                })
                .collect();
            let stop = &user;
            let job = restart
                .map(|(after_ns, job)| scope.spawn(|| job.run_after(*after_ns, places, stop)));
            while threads.iter().any(|thread| !thread.is_finished()) {
                let over = monotonic().nanos_since(began) >= loads.deadline_ns;
                if over || user.asked() {
                    halt.ask();
                }
                clock::sleep(LOOK);
            }
            let parts = threads.into_iter();
            let parts = parts.map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            let parts: Vec<_> = parts.collect();
            let done = job.map(|job| job.join().unwrap_or_else(|_| Err(panicked())));
            parts.into_iter().chain(done.and_then(Result::err).map(Err)).collect()
        });
        if user.asked() {
            return Err(Ended::Stopped);
        }
        Ok(sent.into_iter().collect::<Result<_, _>>()?)
    }

    /// Waits until all links are up, or for as long as an interface may need to agree on its rate.
    fn wait_for_links(&self) -> Result<(), Ended> {
        let began = monotonic();
        while monotonic().nanos_since(began) < LINK_WAIT_NS {
            if self.context.stop.asked() {
                return Err(Ended::Stopped);
            }
            if self.facts_now()?.iter().all(|port| port.running) {
                return Ok(());
            }
            clock::sleep(LOOK);
        }
        // The next trial says which one is down.
        Ok(())
    }

    /// Waits for frames on their way: until all came, or for the plan's time.
    fn drain(&mut self, total: u64) -> Result<(), Ended> {
        let began = monotonic();
        while monotonic().nanos_since(began) < self.times.after_ns {
            let mut came = 0;
            for port in &mut self.ports {
                came += port.received_so_far()?;
            }
            if came >= total {
                return Ok(());
            }
            if self.context.stop.asked() {
                return Err(Ended::Stopped);
            }
            clock::sleep(LOOK);
        }
        Ok(())
    }

    /// Rests, and looks up for Ctrl-C.
    fn rest(&self, ns: u64) -> Result<(), Ended> {
        let began: MonoTime = monotonic();
        loop {
            if self.context.stop.asked() {
                return Err(Ended::Stopped);
            }
            let left = ns.saturating_sub(monotonic().nanos_since(began));
            if left == 0 {
                return Ok(());
            }
            clock::sleep(Duration::from_nanos(left.min(50_000_000)));
        }
    }
}

/// A trial at a constant load keeps its pace and loses the time of a pause: the burst after it
/// would be a load that nobody asked for. Where frames are numbered in time, as in trains and when
/// a device is away, the schedule counts.
const fn when_late(ask: &Ask) -> WhenLate {
    match ask.test {
        BenchTest::Throughput
        | BenchTest::LossCurve
        | BenchTest::Latency
        | BenchTest::Overload
        | BenchTest::Soak => WhenLate::Steady,
        BenchTest::Contract if matches!(ask.length, Length::Time(_)) => WhenLate::Steady,
        BenchTest::Flood
        | BenchTest::BackToBack
        | BenchTest::Recovery
        | BenchTest::Reset
        | BenchTest::Addresses
        | BenchTest::Blocking
        | BenchTest::Contract => WhenLate::KeepSchedule,
    }
}

/// Loads in turn as one: from the first one's first frame to the last one's last.
fn joined(parts: &[Sent]) -> Sent {
    let mut all = Sent::default();
    for sent in parts.iter().filter(|sent| sent.frames + sent.refused > 0) {
        if all.frames == 0 {
            all.first_ns = sent.first_ns;
        }
        all.last_ns = all.last_ns.max(sent.last_ns);
        all.frames += sent.frames;
        all.bytes += sent.bytes;
        all.refused += sent.refused;
        all.late += sent.late;
        all.worst_late_ns = all.worst_late_ns.max(sent.worst_late_ns);
        all.watched.join(&sent.watched);
    }
    all
}

/// A port that takes no frames has not offered the load; a link that is down is the reason of both.
fn or_closed(invalid: Option<Invalid>, closed: Option<Failure>) -> Option<Invalid> {
    match (invalid, closed) {
        (Some(invalid @ (Invalid::LinkDown { .. } | Invalid::Loop { .. })), _) => Some(invalid),
        (_, Some(failure)) => Some(Invalid::GeneratorShort { detail: failure.to_string() }),
        (invalid, None) => invalid,
    }
}

fn drop_at(parts: &[Sent]) -> Option<u64> {
    (parts.len() > 1).then(|| parts[0].frames + parts[0].refused)
}

fn nothing_sent(name: &str, kind: GeneratorKind) -> Failure {
    let reason = format!("not one frame was taken from the generator ({kind})");
    Failure::new(Fault::Instrument, "send frames on", name, reason)
        .advise("check that the link is up, or try another --generator")
}

fn panicked() -> Failure {
    Failure::new(Fault::System, "send frames", "a port", "its thread ended early")
}

/// Time that a virtual machine's host took since, ns of all processors together; the kernel counts
/// in ticks of 10 ms.
fn stolen_since(before: Option<host::ProcessorTime>) -> Option<u64> {
    let ticks = host::processor_time()?.stolen_ticks.saturating_sub(before?.stolen_ticks);
    Some(ticks * 10_000_000)
}

/// What came at its outputs; none is every other port.
fn trial_port(port: usize, way: &Way, outputs: Option<&[usize]>) -> TrialPort {
    let is_output = |at: usize| outputs.is_none_or(|outputs| outputs.contains(&at));
    let received = || way.received.iter().filter(|(at, _)| is_output(*at)).map(|(_, it)| it);
    let sum = |of: fn(&Received) -> u64| received().map(of).sum::<u64>();
    let duplicates: Option<Vec<u64>> = received().map(|it| it.duplicates).collect();
    let best = received().max_by_key(|it| it.frames);
    TrialPort {
        port: u8::try_from(port).unwrap_or(u8::MAX),
        sent: way.sent.frames,
        offered_fps: way.sent.frames_per_sec().unwrap_or(0.0),
        late: way.sent.late,
        worst_late_ns: way.sent.worst_late_ns,
        could_lose: way.sent.watched.could_lose,
        lost_explained: 0,
        away_ns: way.sent.watched.away_ns,
        steady_ns: way.sent.watched.steady_ns,
        steady_fps: way.sent.watched.steady_fps(),
        refused: way.sent.refused,
        received: sum(|it| it.frames),
        other_length: Some(sum(|it| it.wrong_length)),
        duplicates: duplicates.map(|all| all.into_iter().sum()),
        reordered: sum(|it| it.reordered),
        loss_runs: sum(|it| it.loss_runs),
        latency_p50_ns: best.and_then(|it| it.latency.bins.quantile(0.5)),
        interface_sent: None,
        interface_received: None,
    }
}
