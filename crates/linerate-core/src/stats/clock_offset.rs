//! What probes prove of the offset between two clocks.
//!
//! # Source
//! RFC 7679 (one-way delay). That delays are not negative bounds the offset θ of the remote clock:
//! −(T4 − T3) ≤ θ ≤ T2 − T1 for every probe; halfway between the tightest of these bounds is the
//! estimate of NTP (RFC 5905 §8), half their distance its error, whatever the path's asymmetry.

use super::delay_changes::{self, DRIFT_MAX, MinDelayChange, delay_changes};
use super::four_stamps::{FourStamps, signed_difference};
use crate::record::ClockState;

/// Errors that both ends claim for their clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockClaim {
    /// Largest error of both together, where both claim to be synchronised.
    pub error_ns: Option<u64>,
    /// True when both clocks are one, for both ends are one host.
    pub one_clock: bool,
}

impl ClockClaim {
    fn error_bound_ns(self) -> Option<u64> {
        if self.one_clock { Some(0) } else { self.error_ns }
    }
}

/// Offset of two clocks as the packets bound it.
#[derive(Clone, Debug, PartialEq)]
pub struct Offset {
    /// State of the offset.
    pub state: ClockState,
    /// Error of a one-way delay; `None` when unsynchronised.
    pub error_ns: Option<u64>,
    /// The claim was wrong.
    pub refuted: bool,
    /// Offsets that were subtracted, from each change of the clocks to the next; empty where
    /// nothing was.
    pub pieces: Vec<Piece>,
    /// Lasting changes of the smallest delays.
    pub changes: Vec<MinDelayChange>,
}

/// Remote less local clock while neither was set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Piece {
    /// First probe of the piece, by its place in the series.
    pub first: usize,
    /// The offset at that probe: to be taken from forward delays and added to backward ones.
    pub offset_ns: f64,
    /// Growth of the offset in ns per ns.
    pub drift: f64,
    error_ns: f64,
    first_ns: u64,
}

impl Offset {
    /// Offset that is to be subtracted for a probe of the series at its local time.
    pub fn offset_at(&self, probe: usize, local_ns: u64) -> f64 {
        let behind = self.pieces.partition_point(|piece| piece.first <= probe);
        self.pieces[..behind].last().map_or(0.0, |piece| {
            piece.offset_ns + piece.drift * signed_difference(local_ns, piece.first_ns) as f64
        })
    }
}

/// Probes of a window at least: the smallest delay of fewer is often no small one.
const WINDOW_MIN: usize = 16;
const WINDOWS_MAX: usize = 8;

/// Range of offsets that the probes of a time allow, once a drift is taken out.
#[derive(Clone, Copy, Debug)]
struct OffsetBounds {
    low: f64,
    high: f64,
}

impl OffsetBounds {
    fn from_probes(probes: &[FourStamps], first_ns: u64, drift: f64) -> Self {
        let all = Self { low: f64::MIN, high: f64::MAX };
        probes.iter().fold(all, |bounds, probe| {
            let drifted = |at_ns: u64| drift * signed_difference(at_ns, first_ns) as f64;
            Self {
                low: bounds.low.max(-probe.backward_ns() as f64 - drifted(probe.t4_ns)),
                high: bounds.high.min(probe.forward_ns() as f64 - drifted(probe.t1_ns)),
            }
        })
    }
}

fn windows(probes: &[FourStamps]) -> impl Iterator<Item = &[FourStamps]> {
    let count = (probes.len() / WINDOW_MIN).clamp(1, WINDOWS_MAX);
    let edge = move |window: usize| probes.len() * window / count;
    (0..count).map(move |window| &probes[edge(window)..edge(window + 1)])
}

/// Offset of two clocks from probes in the order of sending; `None` without probes. The error is
/// never below what the probes prove: a claim that they contradict is void. So is one that a clock
/// left which was set by more than it.
pub fn clock_offset(probes: &[FourStamps], claim: ClockClaim) -> Option<Offset> {
    probes.first()?;
    let changes = delay_changes(probes);
    let set = || changes.iter().filter(|change| change.clock);
    let agreed = claim.error_bound_ns().filter(|claimed| {
        let all = OffsetBounds::from_probes(probes, 0, 0.0);
        let claimed = *claimed as f64;
        let kept = set().all(|change| change.there_ns.abs() <= 2.0 * claimed);
        kept && all.low <= claimed && all.high >= -claimed
    });
    let refuted = claim.error_bound_ns().is_some() && agreed.is_none();
    let known = Offset {
        state: ClockState::Synchronised,
        error_ns: agreed,
        refuted,
        pieces: Vec::new(),
        changes: Vec::new(),
    };
    if agreed.is_some() {
        return Some(Offset { changes, ..known });
    }
    let mut edges = vec![0];
    edges.extend(set().map(|change| change.first));
    edges.push(probes.len());
    let pieces: Option<Vec<Piece>> = edges
        .windows(2)
        .filter(|edges| edges[0] < edges[1])
        .map(|edges| Piece::from_probes(probes, edges[0], edges[1]))
        .collect();
    let Some(pieces) = pieces else {
        return Some(Offset { state: ClockState::Unsynchronised, changes, ..known });
    };
    let error = pieces.iter().map(|piece| piece.error_ns).fold(0.0, f64::max);
    let state = ClockState::OffsetEstimated;
    Some(Offset { state, error_ns: Some(rounded_up(error)), pieces, changes, ..known })
}

impl Piece {
    /// `None` where no offset with a steady drift is possible.
    fn from_probes(all: &[FourStamps], first: usize, end: usize) -> Option<Self> {
        let probes = &all[first..end];
        let first_ns = probes.first()?.t1_ns;
        let points = delay_changes::points(probes);
        let seen = delay_changes::significant_drift(&points);
        let forced = || [0.0, delay_changes::steepness(&points)].into_iter();
        let drifts = seen.into_iter().chain(forced()).filter(|drift| drift.abs() < DRIFT_MAX);
        drifts.into_iter().find_map(|drift| {
            let bounds: Vec<OffsetBounds> = windows(probes)
                .map(|window| OffsetBounds::from_probes(window, first_ns, drift))
                .collect();
            let low = bounds.iter().map(|b| b.low).fold(f64::MIN, f64::max);
            let high = bounds.iter().map(|b| b.high).fold(f64::MAX, f64::min);
            let offset_ns = (low <= high).then_some(f64::midpoint(low, high))?;
            // Of each window, for a clock that drifts unnoticed is still within the bounds of each.
            let error = bounds.iter().map(|b| (b.high - offset_ns).max(offset_ns - b.low));
            let error_ns = error.fold(0.0, f64::max);
            Some(Self { first, offset_ns, drift, error_ns, first_ns })
        })
    }
}

/// Rounded up.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "an error is not negative, and one of centuries may saturate"
)]
fn rounded_up(ns: f64) -> u64 {
    ns.ceil() as u64
}

/// Readings on either side of a step of the local clock that have it.
const READINGS: usize = 5;
/// Smaller differences are due to interrupts between two readings.
const STEP_MIN_NS: i64 = 20_000;

/// Takes the steps of the local clock out of `probes`, as if it had not been set: `civil_ns` is
/// civil time less monotonic time at the arrival of each, which changes when civil time is set and
/// not when it is slewed. What was set at which probe.
pub fn take_out_steps(probes: &mut [FourStamps], civil_ns: &[i64]) -> Vec<(usize, i64)> {
    let middle = |readings: &[i64]| {
        let mut sorted = readings.to_vec();
        sorted.sort_unstable();
        sorted.get(sorted.len() / 2).copied()
    };
    let mut steps = Vec::new();
    let mut at = 3;
    while at + 3 <= civil_ns.len() {
        let (before, after) = civil_ns.split_at(at);
        let before = middle(&before[before.len().saturating_sub(READINGS)..]);
        let after = middle(&after[..after.len().min(READINGS)]);
        let step = after.zip(before).map_or(0, |(after, before)| after - before);
        let here = civil_ns[at] - civil_ns[at - 1];
        if step.abs() > STEP_MIN_NS && (here - step).abs() < step.abs() / 2 {
            steps.push((at, step));
            at += 3;
        } else {
            at += 1;
        }
    }
    let mut ahead = 0;
    let mut left = steps.iter().peekable();
    for (place, probe) in probes.iter_mut().enumerate() {
        while let Some((_, step)) = left.next_if(|(first, _)| *first <= place) {
            ahead += step;
        }
        probe.t1_ns = probe.t1_ns.wrapping_add_signed(-ahead);
        probe.t4_ns = probe.t4_ns.wrapping_add_signed(-ahead);
    }
    steps
}

#[cfg(test)]
#[path = "clock_offset_tests.rs"]
#[allow(clippy::cast_possible_truncation, reason = "the spans are of seconds")]
mod tests;
