//! The choice among the causes that agree with the evidence.

use super::candidate::Candidate;
use super::evidence::Evidence;
use super::{ends, gate, path};
use crate::record::{Cause, Outcome, Verdict};

/// What limited one direction.
pub fn judge(evidence: &Evidence) -> Verdict {
    if let Some(verdict) = gate::gate(evidence) {
        return Verdict { measured_bps: evidence.rate.mean_bps, ..verdict };
    }
    let candidates =
        [ends::own_pace(evidence), ends::receive_window(evidence), path::full_bottleneck(evidence)];
    let verdict = match candidates.into_iter().flatten().next() {
        Some(candidate) => of(evidence, candidate),
        None => Verdict::of(evidence.direction, Outcome::Undetermined),
    };
    Verdict { measured_bps: evidence.rate.mean_bps, unseen: evidence.unseen.clone(), ..verdict }
}

fn of(evidence: &Evidence, candidate: Candidate) -> Verdict {
    let full = candidate.cause == Cause::Link;
    let outcome = if full { Outcome::AtCeiling } else { Outcome::Limited };
    Verdict {
        cause: Some(candidate.cause),
        confidence: Some(candidate.confidence),
        ceiling_bps: candidate.bps.filter(|_| full),
        expected_bps: candidate.bps,
        evidence: candidate.signs,
        remedy: candidate.remedy,
        notes: candidate.notes,
        ..Verdict::of(evidence.direction, outcome)
    }
}
