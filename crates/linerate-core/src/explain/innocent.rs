//! What is there and costs nothing, and what was looked at and is not the cause.
//!
//! Measured with CUBIC over 50 Mbit/s and 40 ms: 10 % of the packets reordered by 20 ms, 10 % of
//! the acknowledgements lost and 10 ms of jitter left 46 to 47 of 48.3 Mbit/s.

use super::candidate::share_of;
use super::ends::WINDOW_FULL;
use super::evidence::{Evidence, HostEvidence};
use super::path::LOSSY;
use crate::record::{Cause, Harmless, Innocent, LimitVerdict, Outcome};

/// CPU and waiting below this share of the time hold nobody.
const IDLE_ENOUGH: f64 = 0.7;
/// From this share of segments out of order on there is reordering to speak of.
const OUT_OF_ORDER: f64 = 0.005;
/// Spread of probes at rest that is jitter, in seconds.
const JITTER_S: f64 = 0.003;

/// Findings beside a verdict.
pub(super) fn findings(evidence: &Evidence, verdict: &LimitVerdict) -> Vec<Innocent> {
    let mut found = Vec::new();
    let mut add = |cause: Cause, seen: Option<Harmless>| {
        if let Some(seen) = seen.filter(|_| verdict.cause != Some(cause)) {
            found.push(Innocent { cause, seen });
        }
    };
    let reached = verdict.outcome == Outcome::AtCeiling;
    let explained = reached || verdict.cause.is_some_and(|cause| !is_loss(cause));
    add(Cause::Reordering, explained.then(|| reordering(evidence)).flatten());
    add(Cause::RandomLoss, explained.then(|| losses(evidence, reached)).flatten());
    add(Cause::OtherTraffic, reached.then(|| jitter(evidence)).flatten());
    add(Cause::ReceiveWindow, window(evidence));
    add(Cause::SendingHost, idle_cpu(&evidence.sender));
    add(Cause::ReceivingHost, idle_cpu(&evidence.receiver));
    found
}

/// Causes of which retransmissions are a sign.
const fn is_loss(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::RandomLoss
            | Cause::Policer
            | Cause::SmallBuffer
            | Cause::PacketRate
            | Cause::Outages
            | Cause::Reordering
            | Cause::DuplexMismatch
            | Cause::UnequalPaths
    )
}

fn reordering(evidence: &Evidence) -> Option<Harmless> {
    let ratio = evidence.loss.out_of_order?;
    let events = evidence.loss.reordered_events.unwrap_or(0.0);
    (ratio >= OUT_OF_ORDER && events >= 1.0).then_some(Harmless::OutOfOrder(ratio))
}

fn losses(evidence: &Evidence, reached: bool) -> Option<Harmless> {
    let (count, ratio) = (evidence.loss.retransmits?, evidence.loss.ratio?);
    if count < 1.0 {
        return Some(Harmless::NoRetransmit);
    }
    match (reached, ratio < LOSSY) {
        (true, _) => Some(Harmless::RetransmitsOfFullPath { count, ratio }),
        (false, true) => Some(Harmless::FewRetransmits { count, ratio }),
        (false, false) => None,
    }
}

fn jitter(evidence: &Evidence) -> Option<Harmless> {
    evidence.probes.idle_spread_s.filter(|spread| *spread >= JITTER_S).map(Harmless::Jitter)
}

fn window(evidence: &Evidence) -> Option<Harmless> {
    let (window, flight) = (evidence.offered_bytes()?, evidence.flight_bytes()?);
    let used = share_of(Some(flight), Some(window)).filter(|used| *used < WINDOW_FULL);
    used.map(Harmless::WindowUsed)
}

fn idle_cpu(host: &HostEvidence) -> Option<Harmless> {
    let cpu = host.cpu?;
    let used = cpu + host.waited.unwrap_or(0.0);
    let quiet = used < IDLE_ENOUGH && host.throttled.is_none_or(|share| share < 0.01);
    quiet.then_some(Harmless::Cpu(cpu))
}
