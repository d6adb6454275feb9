//! A device in virtual time for tests of the tests: what was planted in it is what they have to
//! find.

use std::collections::VecDeque;

use linerate_core::device::{
    FrameLoad, FramePace, ReceiveCounts, SendCounts, SendTiming, SendWatch, WatchRule, WhenLate,
};
use linerate_core::record::{
    BenchPlan, BenchTest, BenchTimes, BenchTrial, InvalidTrialReason, TrialPort,
};
use linerate_core::theory::token_bucket::TokenBucket;

use super::check::{self, TrialObservation};
use super::retry;
use super::setup::{
    AddressSeries, FramePattern, Length, RestartTarget, SenderResult, TestSetup, TrialAbort,
    TrialCounts, TrialSpec,
};

const SECOND_NS: u64 = 1_000_000_000;

/// A simulated device with planted limits; the default forwards everything at once.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// Frames per second that it can forward.
    pub(super) capacity_fps: u64,
    /// Frames that it holds, the one that goes out included.
    pub(super) buffer: usize,
    /// The device loses each frame whose number, over all trials, is a multiple of this.
    pub(super) lose_every: Option<u64>,
    /// The device forwards nothing between these times after a trial's first frame, in ns.
    pub(super) outage: Option<(u64, u64)>,
    /// The device stands still at each multiple of the first time for the second, in ns.
    pub(super) stall: Option<(u64, u64)>,
    /// Frames of 64 bytes beyond any of them are dropped.
    pub(super) policers: Vec<TokenBucket>,
    /// Addresses that it remembers, and how many it learns in a second.
    pub(super) table: (u32, u64),
    /// Every so many frames to a free output is lost behind a full one.
    pub(super) held_up_every: Option<u64>,
}

impl Default for Device {
    fn default() -> Self {
        Self {
            capacity_fps: 1_000_000_000,
            buffer: 1 << 20,
            lose_every: None,
            outage: None,
            stall: None,
            policers: Vec::new(),
            table: (1000, 5000),
            held_up_every: None,
        }
    }
}

/// How the tester is off its times.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Late {
    pub(super) seed: u64,
    /// A frame leaves up to so many ns late.
    pub(super) jitter_ns: u64,
    /// Pauses of a length between these, after a time between those.
    pub(super) pause_ns: (u64, u64),
    pub(super) every_ns: (u64, u64),
    /// The device stands still with the tester, and up to so long after it, at most twice as long
    /// in all.
    pub(super) skew_ns: u64,
}

impl Late {
    /// A number from 0 to 2^64, one after the other (splitmix64, Steele et al. 2014).
    fn next(&mut self) -> u64 {
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.seed;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// Begins and ends of pauses until a time.
    fn pauses(&mut self, until_ns: u64) -> Vec<(u64, u64)> {
        let mut pauses = Vec::new();
        let mut at = 0;
        while self.every_ns.1 > 0 && at < until_ns {
            at += self.between(self.every_ns.0, self.every_ns.1);
            let length = self.between(self.pause_ns.0, self.pause_ns.1);
            pauses.push((at, at + length));
            at += length;
        }
        pauses
    }
}

/// When frames leave a generator that is off its times, as the real ones pace themselves.
fn departures(load: &FrameLoad, late: &mut Late, pauses: &[(u64, u64)]) -> (Vec<u64>, SendTiming) {
    /// The least time between two frames of a generator, in ns.
    const LEAST_NS: u64 = 250;
    let FramePace::Rate { frames_per_sec } = load.pace else { panic!("a rate") };
    let rule = WatchRule::from_load(load, 1).expect("a rate");
    let (step, part) = (SECOND_NS / frames_per_sec, SECOND_NS % frames_per_sec);
    let (mut due, mut rest, mut free) = (0, 0, 0);
    let mut watch = SendWatch::new(rule);
    let mut pauses = pauses.iter().peekable();
    let times = (0..load.frames).map(|number| {
        let mut at = due.max(free) + late.between(0, late.jitter_ns);
        while let Some((_, end)) = pauses.next_if(|(begin, _)| *begin <= at) {
            at = at.max(*end);
        }
        let behind = at - due;
        watch.add_departure(number, at, behind);
        if behind > 0 && behind >= load.when_late.moves_from_ns(rule.pause_ns) {
            due = at;
        }
        due += step + (rest + part) / frames_per_sec;
        rest = (rest + part) % frames_per_sec;
        free = at + LEAST_NS;
        at
    });
    let times = times.collect();
    (times, watch.finish())
}

/// A tester on such a device.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) device: Device,
    /// The most frames per second that the tester can send.
    pub(super) ceiling_fps: u64,
    pub(super) ports: usize,
    /// One trial of so many is spoilt, and loses half of its frames.
    pub(super) spoil_every: Option<usize>,
    /// How it is off its times, if it is.
    pub(super) late: Option<Late>,
    /// Pauses of the device in the trial under way.
    pub(super) standing: Vec<(u64, u64)>,
    /// Loads of all trials.
    pub(super) loads: Vec<Option<u64>>,
    pub(super) now_ns: u64,
    pub(super) frames: u64,
    pub(super) known: Option<(AddressSeries, u32)>,
}

impl Simulated {
    pub(super) fn new(device: Device) -> Self {
        Self {
            device,
            ceiling_fps: 1_000_000,
            ports: 2,
            spoil_every: None,
            late: None,
            standing: Vec::new(),
            loads: Vec::new(),
            now_ns: 0,
            frames: 0,
            known: None,
        }
    }

    /// When each frame of a port arrives at the device, ns from the first, and the number of the
    /// first one after a drop of the load.
    fn arrival_times(&self, spec: &TrialSpec) -> (Vec<u64>, Option<u64>) {
        let fps = spec.fps.unwrap_or(self.ceiling_fps).min(self.ceiling_fps);
        let at = |number: u64, fps: u64| number * SECOND_NS / fps;
        let within = |ns: u64, fps: u64| ns * fps / SECOND_NS;
        match (spec.length, spec.drop_to) {
            (Length::Frames(frames), _) => {
                ((0..frames).map(|frame| at(frame, fps)).collect(), None)
            }
            (Length::Time(ns), None) => {
                ((0..within(ns, fps)).map(|frame| at(frame, fps)).collect(), None)
            }
            (Length::Time(ns), Some((to, first_ns))) => {
                let first = within(first_ns, fps);
                let second = within(ns - first_ns, to);
                let before = (0..first).map(|frame| at(frame, fps));
                let after = (0..second).map(|frame| first_ns + at(frame, to));
                (before.chain(after).collect(), Some(first))
            }
        }
    }

    /// When each frame leaves the device, if it does.
    fn forward(&mut self, spec: &TrialSpec, times: &[u64]) -> Vec<Option<u64>> {
        let service_ns = SECOND_NS / self.device.capacity_fps;
        let down = match spec.restart.as_ref().map(|restart| (restart.after_ns, &restart.target)) {
            Some((after_ns, RestartTarget::Link(_, down_ns))) => {
                Some((after_ns, after_ns + down_ns))
            }
            _ => self.device.outage,
        };
        let mut policers = self.device.policers.clone();
        let standing = self.standing.clone();
        let mut standing_at = 0;
        let mut waiting: VecDeque<u64> = VecDeque::new();
        let mut forward = |at: u64| {
            self.frames += 1;
            let is_down = down.is_some_and(|(from, until)| (from..until).contains(&at));
            if is_down
                || self.device.lose_every.is_some_and(|every| self.frames.is_multiple_of(every))
            {
                return None;
            }
            // What comes while the device stands still waits before its policers.
            let stands = standing.iter().find(|(begin, end)| (*begin..*end).contains(&at));
            let policed_at = stands.map_or(at, |(_, end)| *end);
            if policers.iter_mut().any(|bucket| bucket.arrive(policed_at, 64).is_some()) {
                return None;
            }
            while waiting.front().is_some_and(|left| *left <= at) {
                waiting.pop_front();
            }
            if waiting.len() >= self.device.buffer {
                return None;
            }
            let mut from = waiting.back().map_or(at, |last| at.max(*last));
            if let Some((every, length)) = self.device.stall {
                let into = (self.now_ns + from) % every;
                from += length.saturating_sub(into);
            }
            while let Some((begin, end)) = standing.get(standing_at) {
                if from < *begin {
                    break;
                }
                from = from.max(*end);
                standing_at += 1;
            }
            waiting.push_back(from + service_ns);
            Some(from + service_ns)
        };
        times.iter().map(|at| forward(*at)).collect()
    }

    /// Forwards frames to and from many addresses as a learning switch does: the output port of
    /// each of `count` frames, and how many came out there.
    fn switched(&mut self, spec: &TrialSpec, count: u64) -> Vec<(usize, u64)> {
        match spec.pattern.as_ref() {
            Some(FramePattern::Learning(learnt, to)) => {
                let (room, rate) = self.device.table;
                let learnable = u64::from(learnt.count) * rate / spec.fps.unwrap_or(1).max(1);
                let learnable = u32::try_from(learnable).unwrap_or(u32::MAX);
                self.known = Some((*learnt, learnt.count.min(room).min(learnable)));
                vec![(*to, count)]
            }
            Some(FramePattern::Learnt(learnt)) => {
                let known = self.known.filter(|(it, _)| it == learnt).map_or(0, |(_, known)| known);
                vec![(1, count), (2, u64::from(learnt.count - known))]
            }
            Some(FramePattern::Towards(_)) | None => vec![(1, count)],
        }
    }

    fn towards(&self, outputs: &[usize], sent: u64) -> Vec<(usize, u64)> {
        let [free, full] = *outputs else { return vec![(outputs[0], sent)] };
        let to_free = sent.div_ceil(2);
        let held_up = self.device.held_up_every.map_or(0, |every| to_free / every);
        vec![(free, to_free - held_up), (full, sent / 2)]
    }

    fn result(&mut self, sender: usize, spec: &TrialSpec, when_late: WhenLate) -> SenderResult {
        let (mut times, drop_at) = self.arrival_times(spec);
        let mut watched = SendTiming::default();
        self.standing.clear();
        if let (Some(mut late), Some(fps), None) = (self.late, spec.fps, spec.drop_to) {
            let pace = FramePace::Rate { frames_per_sec: fps.min(self.ceiling_fps) };
            let frames = times.len() as u64;
            let load = FrameLoad { frames, pace, when_late, burst: 1, mix: vec![0] };
            let pauses = late.pauses(4 * times.last().copied().unwrap_or(0) + SECOND_NS);
            (times, watched) = departures(&load, &mut late, &pauses);
            if late.skew_ns > 0 {
                let mut skewed_end =
                    |begin: u64, end: u64| end + late.between(0, late.skew_ns.min(end - begin));
                let skewed = pauses.iter().map(|&(begin, end)| (begin, skewed_end(begin, end)));
                self.standing = skewed.collect();
            }
            self.late = Some(late);
        }
        let left = self.forward(spec, &times);
        let sent = SendCounts {
            frames: times.len() as u64,
            first_ns: self.now_ns,
            last_ns: self.now_ns + times.last().copied().unwrap_or(0),
            timing: watched,
            ..SendCounts::default()
        };
        let mut received = received(&times, &left, self.now_ns);
        if self.spoil_every.is_some_and(|every| self.loads.len().is_multiple_of(every)) {
            received.frames /= 2;
        }
        let received = match &spec.pattern {
            None => vec![(1, received)],
            Some(pattern) => {
                let counts = match pattern {
                    FramePattern::Towards(outputs) => self.towards(&outputs[sender], sent.frames),
                    _ => self.switched(spec, received.frames),
                };
                let counted = |frames| ReceiveCounts { frames, ..ReceiveCounts::default() };
                counts.into_iter().map(|(port, frames)| (port, counted(frames))).collect()
            }
        };
        let arrivals = if spec.arrivals { left } else { Vec::new() };
        SenderResult { sent, received, drop_at, arrivals }
    }
}

/// A counter's figures of frames sent at `times` that left the device at `left`.
fn received(times: &[u64], left: &[Option<u64>], now_ns: u64) -> ReceiveCounts {
    let mut all = ReceiveCounts { duplicates: Some(0), ..ReceiveCounts::default() };
    let mut last: Option<(usize, u64)> = None;
    for (number, (at, left)) in times.iter().zip(left).enumerate() {
        let Some(left) = left else { continue };
        let missing = last.map_or(number, |(former, _)| number - former - 1) as u64;
        all.loss_runs += u64::from(missing > 0);
        all.longest_loss_run = all.longest_loss_run.max(missing);
        if let Some((_, former)) = last {
            all.gap.max_ns = all.gap.max_ns.max(left - former);
        }
        let delay = left - at;
        all.latency.min_ns = if all.frames == 0 { delay } else { all.latency.min_ns.min(delay) };
        all.latency.max_ns = all.latency.max_ns.max(delay);
        all.latency.sum_ns += delay;
        all.latency.bins.record(delay);
        all.frames += 1;
        all.last_ns = now_ns + left;
        last = Some((number, *left));
    }
    all
}

impl Simulated {
    fn run_single_trial(&mut self, spec: &TrialSpec, when_late: WhenLate) -> TrialCounts {
        self.loads.push(spec.fps);
        let senders = spec.senders.clone().unwrap_or_else(|| vec![0]);
        // Times of arrival are kept where frames are lost while the tester is away.
        let with_arrivals =
            TrialSpec { arrivals: spec.arrivals || self.late.is_some(), ..spec.clone() };
        let result = |sender: &usize| self.result(*sender, &with_arrivals, when_late);
        let results: Vec<SenderResult> = senders.iter().map(result).collect();
        let is_output =
            |at: usize| spec.outputs.as_ref().is_none_or(|outputs| outputs.contains(&at));
        let trial_port = |port: usize, result: &SenderResult| {
            let came = || result.received.iter().filter(|(at, _)| is_output(*at)).map(|(_, it)| it);
            let watched = &result.sent.timing;
            let mut found = TrialPort {
                port: port as u8,
                sent: result.sent.frames,
                offered_fps: result.sent.frames_per_sec().unwrap_or(0.0),
                received: came().map(|counts| counts.frames).sum(),
                loss_runs: came().map(|counts| counts.loss_runs).sum(),
                could_lose: watched.could_lose,
                away_ns: watched.away_ns,
                steady_ns: watched.steady_ns,
                steady_fps: watched.steady_fps(),
                ..TrialPort::default()
            };
            if let Some(fps) = spec.fps {
                let came: Vec<bool> = result.arrivals.iter().map(Option::is_some).collect();
                found.lost_explained = watched.count_explained(&came, fps as f64, true);
                if watched.can_attribute_losses(result.sent.frames) {
                    found.could_lose = 0;
                }
            }
            if when_late == WhenLate::KeepSchedule {
                found.steady_ns = result.sent.last_ns - result.sent.first_ns;
                found.steady_fps = result.sent.frames_per_sec();
            }
            found
        };
        let is_spoilt =
            self.spoil_every.is_some_and(|every| self.loads.len().is_multiple_of(every));
        let mut trial = BenchTrial {
            test: spec.test,
            at_ns: self.now_ns,
            duration_ns: if let Length::Time(ns) = spec.length { ns } else { 0 },
            intended_fps: spec.fps.map(|fps| fps as f64),
            ports: senders
                .iter()
                .zip(&results)
                .map(|(port, result)| trial_port(*port, result))
                .collect(),
            stolen_ns: None,
            pause_frames: None,
            invalid: is_spoilt
                .then(|| InvalidTrialReason::CounterDrops { detail: "a full ring".to_owned() }),
            why: spec.why.clone(),
        };
        if self.late.is_some() && !is_spoilt {
            let seen = TrialObservation { before: &[], after: &[], counted: &[] };
            let expected = spec.fps.map(|_| trial.ports[0].sent);
            let invalid = check::invalid(&trial, &seen, expected);
            trial.invalid = invalid.filter(|reason| !spec.excuses(reason));
        }
        let mut results = results;
        if when_late == WhenLate::KeepSchedule && spec.test == BenchTest::Throughput {
            results.iter_mut().for_each(|result| result.sent.timing.pauses.clear());
        }
        // A rest of a second lets every queue run empty.
        self.now_ns += results[0].sent.last_ns - results[0].sent.first_ns + SECOND_NS;
        TrialCounts { trial, results }
    }
}

impl TestSetup for Simulated {
    fn run_trial(&mut self, spec: &TrialSpec) -> Result<TrialCounts, TrialAbort> {
        if self.late.is_none() {
            return Ok(self.run_single_trial(spec, WhenLate::KeepSchedule));
        }
        retry::with_retries(spec, |when_late| Ok(self.run_single_trial(spec, when_late)))
    }

    fn announce(&mut self, _: &str) {}

    fn restart(&mut self, _: &RestartTarget) -> Result<(), TrialAbort> {
        self.known = None;
        Ok(())
    }

    fn port_names(&self) -> Vec<String> {
        (0..self.ports).map(|port| format!("eth{port}")).collect()
    }
}

/// A plan with trials of this length.
pub(super) fn bench_plan(trial_ns: u64) -> BenchPlan {
    BenchPlan {
        tests: vec![BenchTest::Throughput],
        times: BenchTimes {
            trial_ns,
            latency_ns: trial_ns,
            repetitions: 3,
            ..BenchTimes::default()
        },
        ..BenchPlan::default()
    }
}
