//! A flow at its receiver's window while a queue of others comes and goes on its path.
//!
//! A window that is full moves its bytes once in each round trip, so the rate of each interval
//! times its round trip is the window (Little's law), whatever makes the round trip long. Where one
//! of the intervals had the least round trip, no queue of the flow's own stood then: the window
//! held it.

use super::candidate::Candidate;
use super::evidence::{Evidence, NO_QUEUE};
use super::remedy;
use crate::record::{Cause, Confidence, Note, Sign, SignKind};

/// Intervals of which the rate and the round trip are known, at the least.
const INTERVALS_MIN: usize = 5;
/// Share of them that kept the window full.
const KEPT: f64 = 0.8;
/// Rate times round trip over the window, at the least and at the most: round trips are read once
/// an interval (0.80 to 0.97 of iperf3 at its window).
const FULL: f64 = 0.8;
const ABOVE: f64 = 1.2;
/// The longest round trip of the intervals over the shortest: a queue came or went.
const VARIES: f64 = 1.15;

/// The receiver's window, full in each interval while the round trip changes.
pub(super) fn receive_window(evidence: &Evidence) -> Option<Candidate> {
    if evidence.flows > 1 {
        return None;
    }
    let (window, base) = (evidence.offered_bytes()?, evidence.rtt.base_s?);
    let rates = &evidence.rate.intervals_bps;
    let pairs: Vec<(f64, f64)> = rates
        .iter()
        .zip(&evidence.rtt.intervals_s)
        .map(|(bps, rtt)| (*rtt, bps * rtt / 8.0 / window))
        .filter(|(rtt, _)| *rtt > 0.0)
        .collect();
    if pairs.len() < INTERVALS_MIN {
        return None;
    }
    let is_full = |full: f64| (FULL..=ABOVE).contains(&full);
    let kept = pairs.iter().filter(|(_, full)| is_full(*full)).count();
    let at_rest = pairs.iter().any(|(rtt, full)| *rtt <= NO_QUEUE * base && is_full(*full));
    let rtts = || pairs.iter().map(|(rtt, _)| *rtt);
    let varies = rtts().fold(0.0, f64::max) / rtts().fold(f64::INFINITY, f64::min);
    let share = kept as f64 / pairs.len() as f64;
    if share < KEPT || varies < VARIES || !at_rest {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::WindowOffered, window),
        Sign::at_least(SignKind::IntervalsAtWindow, share, KEPT),
        Sign::at_least(SignKind::RoundTripVaries, varies, VARIES),
    ];
    let mut candidate = Candidate::new(Cause::ReceiveWindow, Confidence::Medium, signs);
    candidate.notes.push(Note::QueueOfOthers);
    let bps = evidence.rtt.loaded_s.map(|rtt| 8.0 * window / rtt);
    let candidate = candidate.mended_by(remedy::receive_window(evidence));
    Some(match bps {
        Some(bps) => candidate.allowing(bps),
        None => candidate,
    })
}
