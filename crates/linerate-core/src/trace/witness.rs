//! What a hop was sent and did not answer, and how well a share of losses explains that.

use crate::stats::{Z_95, wilson_interval};

/// A step must explain the answers better than none by this much, as chi-squared with one degree
/// of freedom: a chance of 0.0005 at one place, which there are up to 30 of.
pub(super) const STEP_MIN: f64 = 12.0;

/// Probes sent to a hop, and those that it did not answer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Witness {
    pub(super) ttl: u8,
    pub(super) sent: u64,
    pub(super) lost: u64,
}

/// True when each later witness may well lose as much as all of them together. Without the end two
/// must do so: the last router alone may limit its answers in a way that no bucket explains.
pub(super) fn later_show(later: &[Witness], all: Witness, sure: bool) -> bool {
    let Some(together) = wilson_interval(all.lost, all.sent, Z_95) else { return false };
    let shows = |witness: &Witness| {
        wilson_interval(witness.lost, witness.sent, Z_95)
            .is_some_and(|own| own.high >= together.low)
    };
    (sure || later.len() > 1) && later.iter().all(shows)
}

pub(super) fn loss_share(of: Witness) -> Option<f64> {
    (of.sent > 0).then(|| of.lost as f64 / of.sent as f64)
}

pub(super) fn likelihood(of: Witness) -> f64 {
    let term = |part: u64| {
        let part = part as f64;
        if part == 0.0 { 0.0 } else { part * (part / of.sent as f64).ln() }
    };
    term(of.lost) + term(of.sent - of.lost)
}
