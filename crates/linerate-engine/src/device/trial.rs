//! One trial on real interfaces (RFC 2544 §23): counters on, learning frames, frames, a wait for
//! those on their way, counts, and whether they say anything about the device.

use std::time::Duration;

use linerate_core::device::{FrameLoad, FramePace, ReceiveCounts, SendCounts, WhenLate};
use linerate_core::record::{
    BenchTest, BenchTrial, Event, Failure, Fault, GeneratorKind, InvalidTrialReason, TrialPort,
};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{self, monotonic};
use linerate_sys::host;
use linerate_sys::stop::Stop;

use super::check::{self, TrialObservation};
use super::namespaces::inside;
use super::reset::RestartJob;
use super::retry;
use super::setup::{
    Length, RestartTarget, SenderResult, TestSetup, TrialAbort, TrialCounts, TrialSpec,
};
use super::tester::BenchTester;

/// How often the trial's end is looked for.
const LOOK: Duration = Duration::from_millis(2);

/// A generator that is behind may take this much longer, and this many ns, before it is stopped.
const OVERTIME: (u64, u64) = (8, 200_000_000);

/// Copper takes some seconds from link up to a carrier.
const LINK_WAIT_NS: u64 = 20_000_000_000;

/// A flood has no end of its own; more frames than 2^40 are not sent in any trial.
const ENDLESS: u64 = 1 << 40;

impl TestSetup for BenchTester<'_, '_> {
    fn run_trial(&mut self, spec: &TrialSpec) -> Result<TrialCounts, TrialAbort> {
        retry::with_retries(spec, |when_late| self.recorded(spec, when_late))
    }

    fn announce(&mut self, text: &str) {
        (self.context.watch)(&Event::BenchStep(text.to_owned()));
    }

    fn restart(&mut self, target: &RestartTarget) -> Result<(), TrialAbort> {
        RestartJob::from_target(target, &self.ports).run(self.namespaces, &self.context.stop)?;
        self.wait_for_links()
    }

    fn port_names(&self) -> Vec<String> {
        self.ports.iter().map(|port| port.name.clone()).collect()
    }
}

/// The sending ports' loads of one trial, in turn where the load changes.
struct Loads {
    parts: Vec<FrameLoad>,
    deadline_ns: u64,
}

impl Loads {
    /// The loads of a port that has its own mix.
    fn with_mix(&self, mix: &[u8]) -> Vec<FrameLoad> {
        let part = |part: &FrameLoad| FrameLoad { mix: mix.to_vec(), ..part.clone() };
        self.parts.iter().map(part).collect()
    }
}

impl BenchTester<'_, '_> {
    /// Makes a trial, keeps it and tells of it.
    fn recorded(
        &mut self,
        spec: &TrialSpec,
        when_late: WhenLate,
    ) -> Result<TrialCounts, TrialAbort> {
        let outcome = self.run_single_trial(spec, when_late)?;
        self.trials.push(outcome.trial.clone());
        (self.context.watch)(&Event::BenchTrial(Box::new(outcome.trial.clone())));
        Ok(outcome)
    }

    /// Runs one trial without recording it.
    pub(super) fn run_single_trial(
        &mut self,
        spec: &TrialSpec,
        when_late: WhenLate,
    ) -> Result<TrialCounts, TrialAbort> {
        if self.context.stop.is_requested() {
            return Err(TrialAbort::Stopped);
        }
        let senders = spec.senders.clone().unwrap_or_else(|| self.senders.clone());
        let loads = self.plan_loads(spec, when_late);
        self.load_pattern(spec.pattern.as_ref(), &senders)?;
        self.links_are_up()?;
        self.trial_number = self.trial_number.wrapping_add(1);
        let expected: u64 = loads.parts.iter().map(|part| part.frames).sum();
        self.counters_begin(expected)?;
        self.send_learning_frames()?;
        self.sleep_unless_stopped(self.times.before_ns.max(spec.idle_ns))?;
        let before = self.facts_now()?;
        let (began, processor) = (monotonic(), host::processor_time());
        let restart = spec.restart.as_ref();
        let restart = restart.map(|restart| {
            (restart.after_ns, RestartJob::from_target(&restart.target, &self.ports))
        });
        let parts = self.send_from_ports(&senders, &loads, restart.as_ref())?;
        if restart.is_some() {
            self.wait_for_links()?;
        }
        let drops: Vec<Option<u64>> = parts.iter().map(|parts| drop_at(parts)).collect();
        let mut sent: Vec<SendCounts> = parts.iter().map(|parts| joined(parts)).collect();
        // A paced generator that had no processor fell short; a flood of nothing is broken.
        let flood = spec.fps.is_none();
        if let Some(at) = sent.iter().position(|counts| flood && counts.frames == 0) {
            return Err(nothing_sent(&self.ports[senders[at]].name, self.generator).into());
        }
        self.await_arrivals(sent.iter().map(|counts| counts.frames).sum())?;
        let stolen_ns = stolen_since(processor);
        let after = self.facts_now()?;
        let closed = self.account_for_refused(&senders, &mut sent)?;
        let (mut results, counted) = self.read_results(&senders, sent, spec.arrivals)?;
        for (result, drop) in results.iter_mut().zip(drops) {
            result.drop_at = drop;
        }
        let ports = self.trial_ports(spec, when_late, &senders, &mut results);
        let mut trial = BenchTrial {
            test: spec.test,
            at_ns: began.nanos_since(self.began),
            duration_ns: match spec.length {
                Length::Time(ns) => ns,
                Length::Frames(_) => monotonic().nanos_since(began),
            },
            intended_fps: spec.fps.map(|fps| fps as f64),
            ports,
            stolen_ns,
            pause_frames: Some(counted.iter().map(|(foreign, _)| foreign.pause).sum()),
            invalid: None,
            why: spec.why.clone(),
        };
        let seen = TrialObservation { before: &before, after: &after, counted: &counted };
        check::fill_interfaces(&mut trial, &seen, &senders);
        // A load that drops has no one rate.
        let expected = spec.fps.filter(|_| spec.drop_to.is_none()).map(|_| expected);
        let invalid = check::invalid(&trial, &seen, expected);
        trial.invalid = or_port_closed(invalid.filter(|reason| !spec.excuses(reason)), closed);
        self.sleep_unless_stopped(self.times.settle_ns)?;
        Ok(TrialCounts { trial, results })
    }

    /// The record's account of each sending port, with whose its loss is.
    fn trial_ports(
        &self,
        spec: &TrialSpec,
        when_late: WhenLate,
        senders: &[usize],
        results: &mut [SenderResult],
    ) -> Vec<TrialPort> {
        let account = |port: usize, result: &mut SenderResult| {
            let mut found = trial_port(port, result, spec.outputs.as_deref());
            self.explain(port, &mut found, result, spec.fps);
            if when_late == WhenLate::KeepSchedule {
                // Pauses were made up for: the rate was kept for the whole of it.
                found.steady_ns = result.sent.last_ns.saturating_sub(result.sent.first_ns);
                found.steady_fps = result.sent.frames_per_sec();
                if spec.test == BenchTest::Throughput {
                    result.sent.timing.pauses.clear();
                }
            }
            found
        };
        senders.iter().zip(results).map(|(port, result)| account(*port, result)).collect()
    }

    /// Frames that the device's ring had no room for are the device's losses. Those of a port that
    /// takes none any more are the tester's: says which, and why.
    fn account_for_refused(
        &mut self,
        senders: &[usize],
        sent: &mut [SendCounts],
    ) -> Result<Option<Failure>, Failure> {
        let mut closed = None;
        for (sent, &at) in sent.iter_mut().zip(senders) {
            let port = &mut self.ports[at];
            if sent.refused == 0 || !port.refusals_are_losses() {
                continue;
            }
            match port.closed(self.namespaces)? {
                Some(failure) => closed = Some(failure),
                None => sent.frames += sent.refused,
            }
        }
        Ok(closed)
    }

    /// Which lost frames the send times explain, where the counter tells which they are: pauses
    /// are shared with a device that is on this machine.
    fn explain(&self, at: usize, port: &mut TrialPort, result: &SenderResult, fps: Option<u64>) {
        let watched = &result.sent.timing;
        let Some(fps) = fps.filter(|_| port.lost_frames() > 0) else { return };
        let sent = usize::try_from(result.sent.frames).unwrap_or(usize::MAX);
        let kept = sent.min(result.arrivals.len());
        let came: Vec<bool> = result.arrivals[..kept].iter().map(Option::is_some).collect();
        let shares = self.ports[at].is_virtual;
        port.lost_explained =
            watched.count_explained(&came, fps as f64, shares).min(port.lost_frames());
        if kept > 0 && watched.can_attribute_losses(kept as u64) {
            // Of frames beyond those that are kept one by one the number is all that is known.
            let beyond = 1.0 - kept as f64 / sent as f64;
            port.could_lose = (watched.could_lose as f64 * beyond) as u64;
        }
    }

    fn plan_loads(&self, spec: &TrialSpec, when_late: WhenLate) -> Loads {
        let rate = |fps| FramePace::Rate { frames_per_sec: fps };
        let pace = spec.fps.map_or(FramePace::Flood, rate);
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
        let (parts, deadline_ns) = match (spec.length, spec.fps) {
            (Length::Frames(frames), fps) => {
                let ns = fps.map_or(0, |fps| frames.saturating_mul(1_000_000_000) / fps.max(1));
                (vec![part(frames, pace)], within(ns) + 2_000_000_000)
            }
            (Length::Time(ns), None) => (vec![part(ENDLESS, pace)], ns),
            (Length::Time(ns), Some(fps)) => (vec![part(frames_in(fps, ns), pace)], within(ns)),
        };
        let Some((to, first_ns)) = spec.drop_to else { return Loads { parts, deadline_ns } };
        let first = part(frames_in(spec.fps.unwrap_or(to), first_ns), pace);
        let Length::Time(ns) = spec.length else { return Loads { parts, deadline_ns } };
        let second = part(frames_in(to, ns.saturating_sub(first_ns)), rate(to));
        Loads { parts: vec![first, second], deadline_ns }
    }

    /// Sends from all `senders` at once, each on a thread of its own, until all are through or
    /// their time is over.
    fn send_from_ports(
        &mut self,
        senders: &[usize],
        loads: &Loads,
        restart: Option<&(u64, RestartJob)>,
    ) -> Result<Vec<Vec<SendCounts>>, TrialAbort> {
        let (trial, namespaces, user) =
            (self.trial_number, self.namespaces, self.context.stop.clone());
        let halt = Stop::new();
        let mixes = &self.mixes;
        let began = monotonic();
        let sent: Vec<Result<Vec<SendCounts>, Failure>> = std::thread::scope(|scope| {
            let ports = self.ports.iter_mut().enumerate().filter(|(at, _)| senders.contains(at));
            let threads: Vec<_> = ports
                .map(|(at, port)| {
                    let halt = &halt;
                    let parts = loads.with_mix(&mixes[at]);
                    scope.spawn(move || {
                        let host = port.host.clone();
                        inside(namespaces, host.as_deref(), || {
                            port.send_loads(trial, &parts, halt)
                        })?
                    })
                })
                .collect();
            let stop = &user;
            let job = restart
                .map(|(after_ns, job)| scope.spawn(|| job.run_after(*after_ns, namespaces, stop)));
            while threads.iter().any(|thread| !thread.is_finished()) {
                let over = monotonic().nanos_since(began) >= loads.deadline_ns;
                if over || user.is_requested() {
                    halt.request_stop();
                }
                clock::sleep(LOOK);
            }
            let parts = threads.into_iter();
            let parts = parts.map(|thread| thread.join().unwrap_or_else(|_| Err(panicked())));
            let parts: Vec<_> = parts.collect();
            let done = job.map(|job| job.join().unwrap_or_else(|_| Err(panicked())));
            parts.into_iter().chain(done.and_then(Result::err).map(Err)).collect()
        });
        if user.is_requested() {
            return Err(TrialAbort::Stopped);
        }
        Ok(sent.into_iter().collect::<Result<_, _>>()?)
    }

    /// Waits until all links are up, or for as long as an interface may need to agree on its rate.
    fn wait_for_links(&self) -> Result<(), TrialAbort> {
        let began = monotonic();
        while monotonic().nanos_since(began) < LINK_WAIT_NS {
            if self.context.stop.is_requested() {
                return Err(TrialAbort::Stopped);
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
    fn await_arrivals(&mut self, total: u64) -> Result<(), TrialAbort> {
        let began = monotonic();
        while monotonic().nanos_since(began) < self.times.after_ns {
            let mut came = 0;
            for port in &mut self.ports {
                came += port.received_so_far()?;
            }
            if came >= total {
                return Ok(());
            }
            if self.context.stop.is_requested() {
                return Err(TrialAbort::Stopped);
            }
            clock::sleep(LOOK);
        }
        Ok(())
    }

    /// Rests, and looks up for Ctrl-C.
    fn sleep_unless_stopped(&self, ns: u64) -> Result<(), TrialAbort> {
        let began: MonoTime = monotonic();
        loop {
            if self.context.stop.is_requested() {
                return Err(TrialAbort::Stopped);
            }
            let left = ns.saturating_sub(monotonic().nanos_since(began));
            if left == 0 {
                return Ok(());
            }
            clock::sleep(Duration::from_nanos(left.min(50_000_000)));
        }
    }
}

/// Loads in turn as one: from the first one's first frame to the last one's last.
fn joined(parts: &[SendCounts]) -> SendCounts {
    let mut all = SendCounts::default();
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
        all.timing.append(&sent.timing);
    }
    all
}

/// A port that takes no frames has not offered the load; a link that is down is the reason of both.
fn or_port_closed(
    invalid: Option<InvalidTrialReason>,
    closed: Option<Failure>,
) -> Option<InvalidTrialReason> {
    match (invalid, closed) {
        (
            Some(invalid @ (InvalidTrialReason::LinkDown { .. } | InvalidTrialReason::Loop { .. })),
            _,
        ) => Some(invalid),
        (_, Some(failure)) => {
            Some(InvalidTrialReason::GeneratorShort { detail: failure.to_string() })
        }
        (invalid, None) => invalid,
    }
}

fn drop_at(parts: &[SendCounts]) -> Option<u64> {
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

/// The account of one sending port, from what came at its outputs; none is every other port.
fn trial_port(port: usize, result: &SenderResult, outputs: Option<&[usize]>) -> TrialPort {
    let is_output = |at: usize| outputs.is_none_or(|outputs| outputs.contains(&at));
    let received = || result.received.iter().filter(|(at, _)| is_output(*at)).map(|(_, it)| it);
    let sum = |of: fn(&ReceiveCounts) -> u64| received().map(of).sum::<u64>();
    let duplicates: Option<Vec<u64>> = received().map(|counts| counts.duplicates).collect();
    let best = received().max_by_key(|counts| counts.frames);
    TrialPort {
        port: u8::try_from(port).unwrap_or(u8::MAX),
        sent: result.sent.frames,
        offered_fps: result.sent.frames_per_sec().unwrap_or(0.0),
        late: result.sent.late,
        worst_late_ns: result.sent.worst_late_ns,
        could_lose: result.sent.timing.could_lose,
        lost_explained: 0,
        away_ns: result.sent.timing.away_ns,
        steady_ns: result.sent.timing.steady_ns,
        steady_fps: result.sent.timing.steady_fps(),
        refused: result.sent.refused,
        received: sum(|counts| counts.frames),
        other_length: Some(sum(|counts| counts.wrong_length)),
        duplicates: duplicates.map(|all| all.into_iter().sum()),
        reordered: sum(|counts| counts.reordered),
        loss_runs: sum(|counts| counts.loss_runs),
        latency_p50_ns: best.and_then(|counts| counts.latency.bins.quantile(0.5)),
        interface_sent: None,
        interface_received: None,
    }
}
