//! Loss and forwarding over load: the frame loss curve, and what a device does under overload.
//!
//! Sources: RFC 2544 §26.3; RFC 1242 (overload behavior); RFC 2285 §3.6 and RFC 2889 §5.6
//! (forwarding rate, at maximum offered load and at its maximum).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::search::{Controller, LoadTrial, Step, TrialOutcome, Why};

/// Share of the best forwarding rate that a device keeps at the largest load and is said to hold.
const HOLDS_FROM: f64 = 0.95;
/// And below which it is said to collapse.
const COLLAPSES_BELOW: f64 = 0.5;

/// Trials at a list of loads, one after another.
#[derive(Clone, Debug)]
pub struct ListedLoads {
    loads_fps: Vec<u64>,
    duration_ns: u64,
    outcomes: Vec<TrialOutcome>,
    invalid: usize,
}

impl ListedLoads {
    /// A trial at each of the loads, in their order.
    pub fn new(loads_fps: Vec<u64>, duration_ns: u64) -> Self {
        Self { loads_fps, duration_ns, outcomes: Vec::new(), invalid: 0 }
    }

    /// From the largest load down to the throughput in equal steps, both ends included.
    pub fn overload(throughput_fps: u64, max_fps: u64, points: u64, duration_ns: u64) -> Self {
        let steps = points.max(2) - 1;
        let range = max_fps.saturating_sub(throughput_fps);
        let mut loads: Vec<u64> = (0..=steps).map(|step| max_fps - range / steps * step).collect();
        if let Some(last) = loads.last_mut() {
            *last = throughput_fps.min(max_fps);
        }
        loads.dedup();
        Self::new(loads, duration_ns)
    }

    /// Outcomes that count, in the order of the loads.
    pub fn outcomes(&self) -> &[TrialOutcome] {
        &self.outcomes
    }
}

impl Controller for ListedLoads {
    type Trial = LoadTrial;
    type Outcome = TrialOutcome;

    fn next(&self) -> Step<LoadTrial> {
        match self.loads_fps.get(self.outcomes.len()) {
            Some(load) if self.invalid < super::search::INVALID_MAX => Step::Trial(LoadTrial {
                load_fps: *load,
                duration_ns: self.duration_ns,
                stop_at_lost: None,
                goal: 0,
                why: Why::Listed,
            }),
            _ => Step::Done,
        }
    }

    fn take(&mut self, outcome: TrialOutcome) {
        if outcome.invalidity().is_some() {
            self.invalid += 1;
        } else {
            self.invalid = 0;
            self.outcomes.push(outcome);
        }
    }
}

/// A point of the curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadPoint {
    /// Intended load, frames per second.
    pub load_fps: u64,
    /// Load that was put on the wire.
    pub offered_fps: f64,
    /// Frames that came out, per second of sending.
    pub forwarded_fps: f64,
    /// Lost share of the frames sent (RFC 1242 §3.6, there in percent).
    pub loss_ratio: f64,
}

/// The points of valid trials, rising by load; trials at one load are taken together.
pub fn points<'a>(outcomes: impl IntoIterator<Item = &'a TrialOutcome>) -> Vec<LoadPoint> {
    let mut sums: std::collections::BTreeMap<u64, (u64, u64, u64)> = Default::default();
    for outcome in outcomes {
        if outcome.invalidity().is_none() && outcome.elapsed_ns > 0 && outcome.sent > 0 {
            let sum = sums.entry(outcome.load_fps).or_default();
            sum.0 += outcome.sent;
            sum.1 += outcome.received;
            sum.2 += outcome.elapsed_ns;
        }
    }
    let point = |(load_fps, (sent, received, elapsed_ns)): (u64, (u64, u64, u64))| {
        let per_second = |frames: u64| frames as f64 * 1e9 / elapsed_ns as f64;
        LoadPoint {
            load_fps,
            offered_fps: per_second(sent),
            forwarded_fps: per_second(received),
            loss_ratio: (sent - received) as f64 / sent as f64,
        }
    };
    sums.into_iter().map(point).collect()
}

/// What a device does when more comes in than it can forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverloadKind {
    /// It goes on at 95 % of its best or more.
    Holds,
    /// It forwards clearly less.
    Sags,
    /// It forwards less than half of its best: receive livelock.
    Collapses,
}

/// The overload curve in four figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Overload {
    /// Maximum forwarding rate of all loads (RFC 2285 §3.6.3), frames per second.
    pub best_fps: f64,
    /// The load at which it was reached.
    pub best_load_fps: u64,
    /// Largest load that was put on the wire (RFC 2285 §3.5.3), frames per second.
    pub largest_offered_fps: f64,
    /// Forwarding rate at it (RFC 2285 §3.6.2).
    pub at_largest_fps: f64,
    /// At the largest load over best.
    pub kept: f64,
    /// The kind.
    pub kind: OverloadKind,
}

impl Overload {
    /// The figures of a curve; `None` when nothing was forwarded.
    pub fn of(points: &[LoadPoint]) -> Option<Self> {
        let by = |one: &&LoadPoint, other: &&LoadPoint| {
            one.forwarded_fps.total_cmp(&other.forwarded_fps)
        };
        let best = points.iter().max_by(by).filter(|best| best.forwarded_fps > 0.0)?;
        let largest = points.iter().max_by(|a, b| a.offered_fps.total_cmp(&b.offered_fps))?;
        let kept = largest.forwarded_fps / best.forwarded_fps;
        let kind = match kept {
            kept if kept >= HOLDS_FROM => OverloadKind::Holds,
            kept if kept < COLLAPSES_BELOW => OverloadKind::Collapses,
            _ => OverloadKind::Sags,
        };
        Some(Self {
            best_fps: best.forwarded_fps,
            best_load_fps: best.load_fps,
            largest_offered_fps: largest.offered_fps,
            at_largest_fps: largest.forwarded_fps,
            kept,
            kind,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(load_fps: u64, received: u64) -> TrialOutcome {
        let trial = LoadTrial {
            load_fps,
            duration_ns: 10_000_000_000,
            stop_at_lost: None,
            goal: 0,
            why: Why::Listed,
        };
        TrialOutcome::complete(&trial, trial.frames(), received)
    }

    #[test]
    fn a_livelocked_router_collapses() {
        // 5,000 frames/s at its best, 200 at 14,880.
        let outcomes = [outcome(14_880, 2_000), outcome(10_000, 20_000), outcome(5_000, 50_000)];
        let points = points(&outcomes);
        assert_eq!(points[0].load_fps, 5_000);
        assert_eq!((points[1].forwarded_fps, points[1].loss_ratio), (2_000.0, 0.8));
        let overload = Overload::of(&points).expect("points");
        assert_eq!((overload.best_fps, overload.best_load_fps), (5_000.0, 5_000));
        assert_eq!((overload.at_largest_fps, overload.kept), (200.0, 0.04));
        assert_eq!(overload.kind, OverloadKind::Collapses);
    }

    #[test]
    fn a_switch_holds() {
        let points = points(&[outcome(10_000, 90_000), outcome(9_000, 90_000)]);
        assert_eq!(Overload::of(&points).map(|it| it.kind), Some(OverloadKind::Holds));
        assert_eq!(Overload::of(&[]), None);
    }

    #[test]
    fn listed_loads_go_from_the_largest_to_the_throughput() {
        let mut list = ListedLoads::overload(1_000, 2_000, 5, 1_000_000_000);
        let mut loads = Vec::new();
        while let Some(trial) = list.next().trial() {
            loads.push(trial.load_fps);
            list.take(TrialOutcome::complete(&trial, trial.frames(), 1_000));
        }
        assert_eq!(loads, [2_000, 1_750, 1_500, 1_250, 1_000]);
        assert_eq!(list.outcomes().len(), 5);
    }
}
