//! Lasting changes of the smallest delays, found without any clock that is right.
//!
//! A longer way there moves T2 − T1 alone, a longer way back T4 − T3 alone, and a clock that is set
//! moves both by as much in opposite directions. Probes are gathered to points of 50 ms, so that a
//! change has lasted for 0.8 s or for 16 probes when it is found.

use super::four_stamps::{FourStamps, signed_difference};

/// Probes of one point of the series: its smallest delays in both directions count.
const POINT_NS: f64 = 50e6;
/// Points that a change has lasted when it is named.
const AFTER: usize = 16;
/// Points before a change that it is compared with.
const BEFORE_MIN: usize = 24;
const BEFORE_MAX: usize = 64;
/// Number of groups of points, whose smallest delays differ by queues, which is no change.
const GROUPS: usize = 8;
const GROUP_MIN: usize = 4;
/// A change is beyond so many times these differences, and beyond `LEAST_NS`.
const BEYOND: f64 = 5.0;
/// Least change of a delay: smaller ones are due to caches, interrupts and sleeping processors.
const LEAST_NS: f64 = 20_000.0;
/// Changes that are named of one series.
const CHANGES_MAX: usize = 64;
/// Drift of a clock beyond which it is no drift: crystals are within 100 ppm, and NTP slews by
/// 500 ppm at most.
pub(super) const DRIFT_MAX: f64 = 600e-6;
/// Least growth of the delays by a drift, over the differences that queues make.
const DRIFT_BEYOND: f64 = 2.0;
/// And by more than clocks' steps may.
const DRIFT_LEAST_NS: f64 = 100.0;

/// A lasting change of the smallest delays.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinDelayChange {
    /// The first probe after it, by its place in the series.
    pub first: usize,
    /// Growth of T2 − T1; 0 where it is within the differences that queues make.
    pub there_ns: f64,
    /// Growth of T4 − T3; 0 where it is within the differences that queues make.
    pub back_ns: f64,
    /// Both delays moved by as much in opposite directions: the remote clock moved by `there_ns`
    /// against the local one.
    pub clock: bool,
}

/// The smallest delays of the probes of a short time, with the offset of the clocks in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct MinDelayPoint {
    first: usize,
    t: f64,
    there: f64,
    back: f64,
}

impl MinDelayPoint {
    fn without_drift(self, slope: f64) -> Self {
        let drifted = slope * self.t;
        Self { there: self.there - drifted, back: self.back + drifted, ..self }
    }
}

/// The series of probes in the order of sending, gathered to points.
pub(super) fn points(probes: &[FourStamps]) -> Vec<MinDelayPoint> {
    let Some(start_ns) = probes.first().map(|probe| probe.t1_ns) else { return Vec::new() };
    let mut points: Vec<MinDelayPoint> = Vec::new();
    for (first, probe) in probes.iter().enumerate() {
        let t = signed_difference(probe.t1_ns, start_ns) as f64;
        let (there, back) = (probe.forward_ns() as f64, probe.backward_ns() as f64);
        match points.last_mut().filter(|point| t - point.t < POINT_NS) {
            Some(point) => {
                point.there = point.there.min(there);
                point.back = point.back.min(back);
            }
            None => points.push(MinDelayPoint { first, t, there, back }),
        }
    }
    points
}

/// Sum of the smallest delays of both directions once a drift is taken out. It is largest at the
/// true drift, where lines along the lower hulls of both directions are furthest apart.
fn min_delay_sum(points: &[MinDelayPoint], slope: f64) -> f64 {
    let (there, back) = min_delays(points, slope);
    there + back
}

fn min_delays(points: &[MinDelayPoint], slope: f64) -> (f64, f64) {
    points
        .iter()
        .map(|point| point.without_drift(slope))
        .fold((f64::MAX, f64::MAX), |least, point| {
            (least.0.min(point.there), least.1.min(point.back))
        })
}

/// The drift, in ns per ns, that leaves the largest delays: the search by golden section of a
/// function that is concave, to 0.0001 ppm.
pub(super) fn steepness(points: &[MinDelayPoint]) -> f64 {
    const GOLDEN: f64 = 0.618_033_988_749_895;
    let (mut low, mut high) = (-DRIFT_MAX, DRIFT_MAX);
    let (left, right) = (high - GOLDEN * (high - low), low + GOLDEN * (high - low));
    let (mut left, mut right) =
        ((left, min_delay_sum(points, left)), (right, min_delay_sum(points, right)));
    for _ in 0..33 {
        if left.1 < right.1 {
            (low, left) = (left.0, right);
            let at = low + GOLDEN * (high - low);
            right = (at, min_delay_sum(points, at));
        } else {
            (high, right) = (right.0, left);
            let at = high - GOLDEN * (high - low);
            left = (at, min_delay_sum(points, at));
        }
    }
    f64::midpoint(low, high)
}

/// The drift where it is beyond the differences that queues make; else `None`.
pub(super) fn significant_drift(points: &[MinDelayPoint]) -> Option<f64> {
    let (first, last) = (points.first()?, points.last()?);
    let slope = steepness(points);
    let spreads = spreads(points, slope);
    let moved = slope.abs() * (last.t - first.t);
    (moved > DRIFT_LEAST_NS + DRIFT_BEYOND * spreads.0.max(spreads.1)).then_some(slope)
}

/// Largest differences between the smallest delays of groups, in both directions.
fn spreads(points: &[MinDelayPoint], slope: f64) -> (f64, f64) {
    let size = (points.len() / GROUPS).max(GROUP_MIN);
    let groups = || points.chunks_exact(size).map(|group| min_delays(group, slope));
    let lowest = groups().fold((f64::MAX, f64::MAX), |a, b| (a.0.min(b.0), a.1.min(b.1)));
    let highest = groups().fold((f64::MIN, f64::MIN), |a, b| (a.0.max(b.0), a.1.max(b.1)));
    ((highest.0 - lowest.0).max(0.0), (highest.1 - lowest.1).max(0.0))
}

/// The delays before a change.
#[derive(Clone, Copy, Debug)]
struct Level {
    slope: f64,
    least: (f64, f64),
    spreads: (f64, f64),
    first_t: f64,
    last_t: f64,
}

/// Growth of the smallest delays, as far as it is beyond that of queues.
#[derive(Clone, Copy, Debug)]
struct LevelShift {
    there: f64,
    back: f64,
    clock: bool,
}

impl Level {
    fn from_points(points: &[MinDelayPoint]) -> Option<Self> {
        let slope = significant_drift(points).unwrap_or(0.0);
        Some(Self {
            slope,
            least: min_delays(points, slope),
            spreads: spreads(points, slope),
            first_t: points.first()?.t,
            last_t: points.last()?.t,
        })
    }

    fn shift_to(&self, after: &[MinDelayPoint]) -> Option<LevelShift> {
        let (there, back) = min_delays(after, self.slope);
        let (there, back) = (there - self.least.0, back - self.least.1);
        // How far the line along the hull was drawn on.
        let known = (self.last_t - self.first_t).max(1.0);
        let drawn_on = 1.0 + 2.0 * (after.last()?.t - self.last_t) / known;
        let bound = |spread: f64| LEAST_NS + BEYOND * spread * drawn_on;
        let bounds = (bound(self.spreads.0), bound(self.spreads.1));
        let both = there.abs() > bounds.0 && back.abs() > bounds.1;
        let clock = both && (there + back).abs() <= bounds.0.max(bounds.1);
        let beyond = |grown: f64, bound: f64| if grown.abs() > bound { grown } else { 0.0 };
        let moved =
            LevelShift { there: beyond(there, bounds.0), back: beyond(back, bounds.1), clock };
        (moved.there != 0.0 || moved.back != 0.0).then_some(moved)
    }

    /// The first of `points` that has changed: behind the last that is below a grown delay, else
    /// the first that is below what was the smallest.
    fn first_of(&self, moved: LevelShift, points: &[MinDelayPoint]) -> Option<usize> {
        let grown = |point: &MinDelayPoint| {
            let level = point.without_drift(self.slope);
            (level.there - self.least.0, level.back - self.least.1)
        };
        if moved.there > 0.0 || moved.back > 0.0 {
            let before = points.iter().rposition(|point| {
                let (there, back) = grown(point);
                (moved.there > 0.0 && there < moved.there / 2.0)
                    || (moved.back > 0.0 && back < moved.back / 2.0)
            });
            return Some(before.map_or(0, |before| before + 1));
        }
        points.iter().position(|point| {
            let (there, back) = grown(point);
            (moved.there < 0.0 && there < moved.there / 2.0)
                || (moved.back < 0.0 && back < moved.back / 2.0)
        })
    }
}

/// The lasting changes among probes in the order of sending.
pub fn delay_changes(probes: &[FourStamps]) -> Vec<MinDelayChange> {
    let points = points(probes);
    let mut changes = Vec::new();
    let (mut start, mut at) = (0, BEFORE_MIN);
    while at + AFTER <= points.len() && changes.len() < CHANGES_MAX {
        let before = &points[start.max(at.saturating_sub(BEFORE_MAX))..at];
        match change(probes, &points, before, at) {
            Some((change, cut)) => {
                changes.push(change);
                start = cut;
                at = cut + BEFORE_MIN;
            }
            None => at += 1,
        }
    }
    changes
}

/// The change between `before` and the points from `at`, and the first point that it changed.
fn change(
    probes: &[FourStamps],
    points: &[MinDelayPoint],
    before: &[MinDelayPoint],
    at: usize,
) -> Option<(MinDelayChange, usize)> {
    let after = |at: usize| points.get(at..at + AFTER);
    // The drift takes longer to find than what this leaves out.
    let raw = (min_delays(before, 0.0), min_delays(after(at)?, 0.0));
    if (raw.0.0 - raw.1.0).abs() <= LEAST_NS && (raw.0.1 - raw.1.1).abs() <= LEAST_NS {
        return None;
    }
    let level = Level::from_points(before)?;
    let seen = level.shift_to(after(at)?)?;
    let cut = at + level.first_of(seen, after(at)?)?;
    // A queue before it may have looked like it, so that its size is that of the later half.
    let seen = level.shift_to(&after(cut)?[AFTER / 2..])?;
    let cut = cut + level.first_of(seen, after(cut)?)?;
    // Its first point may have probes from before it.
    let end = points.len().min(cut + AFTER);
    let moved = level.shift_to(points.get(cut + 1..end)?)?;
    // To the probe: it lies in the point that changed, or in the one before.
    let from = points[cut - 1].first;
    let until = points.get(cut + 1).map_or(probes.len(), |point| point.first);
    let start_ns = probes.first()?.t1_ns;
    let each: Vec<MinDelayPoint> = (from..until)
        .map(|first| MinDelayPoint {
            first,
            t: signed_difference(probes[first].t1_ns, start_ns) as f64,
            there: probes[first].forward_ns() as f64,
            back: probes[first].backward_ns() as f64,
        })
        .collect();
    let first = from + level.first_of(moved, &each)?;
    let LevelShift { there, back, clock } = moved;
    Some((
        MinDelayChange { first: first.min(until - 1), there_ns: there, back_ns: back, clock },
        cut,
    ))
}
