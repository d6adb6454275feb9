//! Causes at the ends: windows, buffers, applications, processors.

use super::candidate::{Candidate, share};
use super::evidence::Evidence;
use crate::record::{At, Cause, Confidence, RemedyLine, Sign};

/// In flight over a window: full from here on (0.96 to 1.00 measured with CUBIC and BBR).
pub(super) const WINDOW_FULL: f64 = 0.85;
/// Round trip under load over that at rest: no queue stands up to here.
pub(super) const NO_QUEUE: f64 = 1.25;
/// A pace counts as kept from this share of it on.
const PACE_KEPT: f64 = 0.95;
/// The most that a window varies while nobody tunes it.
const WINDOW_CONSTANT: f64 = 1.2;

/// The receiver's window: full, while no queue stands on the path.
pub(super) fn receive_window(evidence: &Evidence) -> Option<Candidate> {
    let (window, flight) = (evidence.offered_bytes()?, evidence.flight_bytes()?);
    let full = share(Some(flight), Some(window)).filter(|full| *full >= WINDOW_FULL)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let mut signs = vec![
        Sign::figure("window the receiver offered", window, "bytes"),
        Sign::at_least("in flight over that window", full, WINDOW_FULL, "1"),
        Sign::at_most("round trip under load over that at rest", inflation, NO_QUEUE, "1"),
    ];
    let varies = evidence.window.offered_range.filter(|it| it.0 > 0.0).map(|it| it.1 / it.0);
    if let Some(varies) = varies.filter(|varies| *varies <= WINDOW_CONSTANT) {
        signs.push(Sign::at_most("largest over smallest window", varies, WINDOW_CONSTANT, "1"));
    }
    let bps = 8.0 * window * f64::from(evidence.flows.max(1)) / evidence.rtt.base_s?;
    Some(Candidate::new(Cause::ReceiveWindow, Confidence::High, signs).allowing(bps))
}

/// A pace that was asked for and kept.
pub(super) fn own_pace(evidence: &Evidence) -> Option<Candidate> {
    let (pace, rate) = (evidence.asked.pace_bps?, evidence.steady_bps()?);
    let kept = share(Some(rate), Some(pace)).filter(|kept| *kept >= PACE_KEPT)?;
    let signs = vec![
        Sign::figure("pace that was asked for", pace, "bit/s"),
        Sign::at_least("rate over that pace", kept, PACE_KEPT, "1"),
    ];
    let candidate = Candidate::new(Cause::SendingApplication, Confidence::High, signs);
    let remedy = vec![RemedyLine::advice(At::Test, "leave out -b (--bitrate), or raise it")];
    Some(candidate.allowing(pace).mended_by(remedy))
}
