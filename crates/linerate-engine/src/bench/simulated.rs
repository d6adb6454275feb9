//! A device in virtual time for tests of the tests: what was planted in it is what they have to
//! find.

use std::collections::VecDeque;

use linerate_core::bench::{Received, Sent};
use linerate_core::record::{
    BenchFrames, BenchPlan, BenchTest, BenchTimes, BenchTrial, BenchWay, Invalid, TrialPort,
};
use linerate_core::theory::token_bucket::TokenBucket;

use super::bed::{Ask, Bed, Ended, Learnt, Length, Outcome, Pattern, Way, What};

const SECOND_NS: u64 = 1_000_000_000;

/// What is planted; the default forwards everything at once.
#[derive(Clone, Debug)]
pub(super) struct Device {
    /// Frames per second that it can forward.
    pub(super) capacity_fps: u64,
    /// Frames that it holds, the one that goes out included.
    pub(super) buffer: usize,
    /// It loses each frame whose number, over all trials, is a multiple of this.
    pub(super) lose_every: Option<u64>,
    /// It forwards nothing from so many ns after a trial's first frame until then.
    pub(super) outage: Option<(u64, u64)>,
    /// It stands still at each multiple of the first for the second, ns.
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

/// A tester on such a device.
#[derive(Debug)]
pub(super) struct Simulated {
    pub(super) device: Device,
    /// What the tester can send.
    pub(super) ceiling_fps: u64,
    pub(super) ports: usize,
    /// Of so many trials one is spoilt, and loses half of its frames.
    pub(super) spoil_every: Option<usize>,
    /// Loads of all trials.
    pub(super) loads: Vec<Option<u64>>,
    pub(super) now_ns: u64,
    pub(super) frames: u64,
    pub(super) known: Option<(Learnt, u32)>,
}

impl Simulated {
    pub(super) fn new(device: Device) -> Self {
        Self {
            device,
            ceiling_fps: 1_000_000,
            ports: 2,
            spoil_every: None,
            loads: Vec::new(),
            now_ns: 0,
            frames: 0,
            known: None,
        }
    }

    /// When each frame of a port arrives at the device, ns from the first, and the number of the
    /// first one after a drop of the load.
    fn times(&self, ask: &Ask) -> (Vec<u64>, Option<u64>) {
        let fps = ask.fps.unwrap_or(self.ceiling_fps).min(self.ceiling_fps);
        let at = |number: u64, fps: u64| number * SECOND_NS / fps;
        let within = |ns: u64, fps: u64| ns * fps / SECOND_NS;
        match (ask.length, ask.drop_to) {
            (Length::Frames(frames), _) => ((0..frames).map(|it| at(it, fps)).collect(), None),
            (Length::Time(ns), None) => {
                ((0..within(ns, fps)).map(|it| at(it, fps)).collect(), None)
            }
            (Length::Time(ns), Some((to, first_ns))) => {
                let first = within(first_ns, fps);
                let second = within(ns - first_ns, to);
                let before = (0..first).map(|it| at(it, fps));
                let after = (0..second).map(|it| first_ns + at(it, to));
                (before.chain(after).collect(), Some(first))
            }
        }
    }

    /// When each frame leaves the device, if it does.
    fn forward(&mut self, ask: &Ask, times: &[u64]) -> Vec<Option<u64>> {
        let service_ns = SECOND_NS / self.device.capacity_fps;
        let down = match ask.restart.as_ref().map(|it| (it.after_ns, &it.what)) {
            Some((after_ns, What::Link(_, down_ns))) => Some((after_ns, after_ns + down_ns)),
            _ => self.device.outage,
        };
        let mut policers = self.device.policers.clone();
        let mut waiting: VecDeque<u64> = VecDeque::new();
        let mut forward = |at: u64| {
            self.frames += 1;
            let is_down = down.is_some_and(|(from, until)| (from..until).contains(&at));
            if is_down
                || self.device.lose_every.is_some_and(|every| self.frames.is_multiple_of(every))
            {
                return None;
            }
            if policers.iter_mut().any(|it| it.arrive(at, 64).is_some()) {
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
            waiting.push_back(from + service_ns);
            Some(from + service_ns)
        };
        times.iter().map(|at| forward(*at)).collect()
    }

    /// What a switch does with frames to and from many addresses: where each of `count` came out.
    fn switched(&mut self, ask: &Ask, count: u64) -> Vec<(usize, u64)> {
        match ask.pattern.as_ref() {
            Some(Pattern::Learning(learnt, to)) => {
                let (room, rate) = self.device.table;
                let learnable = u64::from(learnt.count) * rate / ask.fps.unwrap_or(1).max(1);
                let learnable = u32::try_from(learnable).unwrap_or(u32::MAX);
                self.known = Some((*learnt, learnt.count.min(room).min(learnable)));
                vec![(*to, count)]
            }
            Some(Pattern::Learnt(learnt)) => {
                let known = self.known.filter(|(it, _)| it == learnt).map_or(0, |(_, known)| known);
                vec![(1, count), (2, u64::from(learnt.count - known))]
            }
            Some(Pattern::Towards(_)) | None => vec![(1, count)],
        }
    }

    fn towards(&self, outputs: &[usize], sent: u64) -> Vec<(usize, u64)> {
        let [free, full] = *outputs else { return vec![(outputs[0], sent)] };
        let to_free = sent.div_ceil(2);
        let held_up = self.device.held_up_every.map_or(0, |every| to_free / every);
        vec![(free, to_free - held_up), (full, sent / 2)]
    }

    fn way(&mut self, sender: usize, ask: &Ask) -> Way {
        let (times, drop_at) = self.times(ask);
        let left = self.forward(ask, &times);
        let sent = Sent {
            frames: times.len() as u64,
            first_ns: self.now_ns,
            last_ns: self.now_ns + times.last().copied().unwrap_or(0),
            ..Sent::default()
        };
        let mut received = received(&times, &left, self.now_ns);
        if self.spoil_every.is_some_and(|every| self.loads.len().is_multiple_of(every)) {
            received.frames /= 2;
        }
        let received = match &ask.pattern {
            None => vec![(1, received)],
            Some(pattern) => {
                let counts = match pattern {
                    Pattern::Towards(outputs) => self.towards(&outputs[sender], sent.frames),
                    _ => self.switched(ask, received.frames),
                };
                let counted = |frames| Received { frames, ..Received::default() };
                counts.into_iter().map(|(port, frames)| (port, counted(frames))).collect()
            }
        };
        let arrivals = if ask.arrivals { left } else { Vec::new() };
        Way { sent, received, drop_at, arrivals }
    }
}

/// A counter's figures of frames sent at `times` that left the device at `left`.
fn received(times: &[u64], left: &[Option<u64>], now_ns: u64) -> Received {
    let mut all = Received { duplicates: Some(0), ..Received::default() };
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

impl Bed for Simulated {
    fn trial(&mut self, ask: &Ask) -> Result<Outcome, Ended> {
        self.loads.push(ask.fps);
        let senders = ask.senders.clone().unwrap_or_else(|| vec![0]);
        let ways: Vec<Way> = senders.iter().map(|sender| self.way(*sender, ask)).collect();
        let is_output = |at: usize| ask.outputs.as_ref().is_none_or(|it| it.contains(&at));
        let port = |(port, way): (&usize, &Way)| {
            let came = || way.received.iter().filter(|(at, _)| is_output(*at)).map(|(_, it)| it);
            TrialPort {
                port: *port as u8,
                sent: way.sent.frames,
                offered_fps: way.sent.frames_per_sec().unwrap_or(0.0),
                received: came().map(|it| it.frames).sum(),
                loss_runs: came().map(|it| it.loss_runs).sum(),
                ..TrialPort::default()
            }
        };
        let is_spoilt =
            self.spoil_every.is_some_and(|every| self.loads.len().is_multiple_of(every));
        let trial = BenchTrial {
            test: ask.test,
            at_ns: self.now_ns,
            duration_ns: if let Length::Time(ns) = ask.length { ns } else { 0 },
            intended_fps: ask.fps.map(|fps| fps as f64),
            ports: senders.iter().zip(&ways).map(port).collect(),
            stolen_ns: None,
            pause_frames: None,
            invalid: is_spoilt.then(|| Invalid::CounterDrops { detail: "a full ring".to_owned() }),
            why: ask.why.clone(),
        };
        // A rest of a second lets every queue run empty.
        self.now_ns += ways[0].sent.last_ns - ways[0].sent.first_ns + SECOND_NS;
        Ok(Outcome { trial, ways })
    }

    fn tell(&mut self, _: &str) {}

    fn restart(&mut self, _: &What) -> Result<(), Ended> {
        self.known = None;
        Ok(())
    }

    fn ports(&self) -> Vec<String> {
        (0..self.ports).map(|port| format!("eth{port}")).collect()
    }
}

/// A plan with trials of this length.
pub(super) fn plan(trial_ns: u64) -> BenchPlan {
    BenchPlan {
        ports: Vec::new(),
        frames: BenchFrames::default(),
        way: BenchWay::Single,
        tests: vec![BenchTest::Throughput],
        goals: Vec::new(),
        times: BenchTimes {
            trial_ns,
            latency_ns: trial_ns,
            repetitions: 3,
            ..BenchTimes::default()
        },
        generator: None,
        counter: None,
        line: None,
        frames_per_sec_max: None,
        filters: None,
        contract: None,
        cell_contract: None,
        reset_command: None,
        seed: 1,
    }
}
