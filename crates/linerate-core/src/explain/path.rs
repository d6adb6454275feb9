//! Causes on the path: its rate, its queue, its losses.

use super::candidate::{Candidate, share};
use super::evidence::Evidence;
use crate::record::{Cause, Confidence, Sign};

/// Round trip under load over that at rest: a queue stands from here on.
const QUEUE: f64 = 1.1;
/// And it is at least so much longer, in seconds.
const QUEUE_S: f64 = 0.001;
/// The rate over the highest rate of delivery, of a bottleneck that stays full.
const STAYS_FULL: f64 = 0.85;

/// A bottleneck that is full: a queue stands before it, and the rate keeps to what it delivers.
pub(super) fn full_bottleneck(evidence: &Evidence) -> Option<Candidate> {
    let inflation = evidence.inflation().filter(|times| *times >= QUEUE)?;
    let added = evidence.rtt.loaded_s? - evidence.rtt.base_s?;
    let delivery = evidence.rate.delivery_bps?;
    let full = share(evidence.steady_bps(), Some(delivery)).filter(|it| *it >= STAYS_FULL)?;
    if added < QUEUE_S {
        return None;
    }
    let signs = vec![
        Sign::at_least("round trip under load over that at rest", inflation, QUEUE, "1"),
        Sign::at_least("rate over the highest rate of delivery", full, STAYS_FULL, "1"),
    ];
    Some(Candidate::new(Cause::Link, Confidence::Medium, signs).allowing(delivery))
}
