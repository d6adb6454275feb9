//! A simulated device: a capacity, a buffer, stalls, scattered loss, collapse under overload, and
//! the tester in front of it.

use linerate_core::device::search::{
    BinarySearch, Controller, Goal, Invalid, LoadTrial, MultiSearch, Range, TrialOutcome,
};
use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

pub(crate) const CAPACITY_FPS: u64 = 1_000_000;
pub(crate) const RUNS: u64 = 200;

/// Each stall stops forwarding for 2 ms; the device then has room for what comes in 2 ms at 0.6
/// of its capacity, so only higher loads lose frames.
const STALL_S: f64 = 0.002;
const STALL_HARMLESS: f64 = 0.6;

#[derive(Clone, Debug)]
pub(crate) struct Device {
    pub(crate) capacity_fps: u64,
    /// Frames that it holds back when more come than it forwards.
    pub(crate) buffer: u64,
    /// Mean time between stalls.
    pub(crate) stall_every_s: Option<f64>,
    /// Share of frames lost for no reason.
    pub(crate) loss_ratio: f64,
    /// Frames forwarded less for each one above the capacity.
    pub(crate) collapse: f64,
    /// What the tester can send at most.
    pub(crate) tester_fps: u64,
    /// Each so many-th trial finds a link down.
    pub(crate) invalid_every: Option<u64>,
    /// Takes the hint to stop.
    pub(crate) stops_early: bool,
    pub(crate) trials: u64,
    pub(crate) random: Xoshiro256PlusPlus,
}

impl Device {
    pub(crate) fn with_capacity(capacity_fps: u64) -> Self {
        Self {
            capacity_fps,
            buffer: 0,
            stall_every_s: None,
            loss_ratio: 0.0,
            collapse: 0.0,
            tester_fps: u64::MAX,
            invalid_every: None,
            stops_early: false,
            trials: 0,
            random: Xoshiro256PlusPlus::seed_from_u64(0),
        }
    }

    pub(crate) fn stalling(stall_every_s: Option<f64>, seed: u64) -> Self {
        Self { stall_every_s, ..Self::with_capacity(CAPACITY_FPS) }.seeded(seed)
    }

    #[must_use]
    pub(crate) fn seeded(self, seed: u64) -> Self {
        Self { random: Xoshiro256PlusPlus::seed_from_u64(seed), ..self }
    }

    /// Above 0, at most 1.
    fn uniform(&mut self) -> f64 {
        ((self.random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Events of a Poisson process with such a mean: exponential gaps until the time is over.
    fn events(&mut self, mean: f64) -> u64 {
        let mut at = 0.0;
        let mut events = 0;
        loop {
            at -= self.uniform().ln();
            if at > mean {
                return events;
            }
            events += 1;
        }
    }

    pub(crate) fn run(&mut self, trial: &LoadTrial) -> TrialOutcome {
        self.trials += 1;
        let seconds = trial.duration_ns as f64 / 1e9;
        let load = trial.load_fps.min(self.tester_fps) as f64;
        let sent = if trial.load_fps <= self.tester_fps {
            trial.frames()
        } else {
            (load * seconds) as u64
        };
        let capacity = self.capacity_fps as f64;
        let mut lost = 0.0;
        if load > capacity {
            let forwarded = (capacity - self.collapse * (load - capacity)).max(0.0);
            lost += ((load - forwarded) * seconds - self.buffer as f64).ceil().max(0.0);
        }
        let mut runs = u64::from(lost > 0.0);
        if let Some(every) = self.stall_every_s {
            let each = (load - STALL_HARMLESS * capacity) * STALL_S;
            let events = self.events(seconds / every);
            if each > 0.0 {
                lost += events as f64 * each.ceil();
                runs += events;
            }
        }
        if self.loss_ratio > 0.0 {
            let events = self.events(sent as f64 * self.loss_ratio);
            lost += events as f64;
            runs += events;
        }
        let received = sent - (lost as u64).min(sent);
        let mut outcome = TrialOutcome::complete(trial, sent, received);
        outcome.loss_runs = Some(runs);
        if self.invalid_every.is_some_and(|every| self.trials.is_multiple_of(every)) {
            outcome.invalid = Some(Invalid::LinkDown);
        }
        match trial.stop_at_lost {
            Some(limit) if self.stops_early && outcome.lost_frames() >= limit => {
                stopped(&outcome, limit)
            }
            _ => outcome,
        }
    }
}

/// Frames are lost evenly: a trial that loses `limit` of them stops at that share of its time.
fn stopped(outcome: &TrialOutcome, limit: u64) -> TrialOutcome {
    let share = limit as f64 / outcome.lost_frames() as f64;
    let sent = (outcome.sent as f64 * share) as u64;
    TrialOutcome {
        sent,
        received: sent.saturating_sub(limit),
        elapsed_ns: (outcome.elapsed_ns as f64 * share) as u64,
        stopped_early: true,
        ..outcome.clone()
    }
}

/// A result as a share of the capacity, and what it took.
pub(crate) struct Found {
    pub(crate) share: f64,
    pub(crate) seconds: f64,
}

const RANGE: Range = Range { min_fps: 1, max_fps: CAPACITY_FPS / 2 * 3 };

pub(crate) fn run_binary(goal: &Goal, device: &mut Device) -> Found {
    let mut search = BinarySearch::new(goal.clone(), RANGE).expect("a goal");
    while let Some(trial) = search.next().into_trial() {
        search.add_outcome(device.run(&trial));
    }
    found(search.result().lower_fps, search.result().sending_ns)
}

pub(crate) fn run_multi(goal: &Goal, device: &mut Device) -> Found {
    let mut search = MultiSearch::new(vec![goal.clone()], RANGE).expect("a goal");
    while let Some(trial) = search.next().into_trial() {
        search.add_outcome(device.run(&trial));
    }
    let result = search.results().remove(0);
    found(result.lower_fps, result.sending_ns)
}

fn found(lower_fps: Option<u64>, sending_ns: u64) -> Found {
    let share = lower_fps.map_or(0.0, |fps| fps as f64 / CAPACITY_FPS as f64);
    Found { share, seconds: sending_ns as f64 / 1e9 }
}

/// Share of results below a value.
pub(crate) fn share_below(results: &[f64], value: f64) -> f64 {
    results.iter().filter(|result| **result < value).count() as f64 / results.len() as f64
}
