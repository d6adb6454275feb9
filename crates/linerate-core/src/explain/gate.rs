//! Whether there is a measurement to explain at all.

use super::evidence::Evidence;
use crate::record::{Cause, Confidence, Outcome, Sign, Verdict};

/// A verdict without a diagnosis: the tester spoilt the measurement, or both ends are one host.
pub(super) fn gate(evidence: &Evidence) -> Option<Verdict> {
    if let Some(why) = &evidence.spoilt {
        let mut verdict = Verdict::of(evidence.direction, Outcome::NoVerdict);
        verdict.notes.push(why.clone());
        verdict.deciding_test = Some("the same test again on a quiet host".to_owned());
        return Some(verdict);
    }
    if evidence.loopback {
        let mut verdict = Verdict::of(evidence.direction, Outcome::Limited);
        verdict.cause = Some(Cause::Tester);
        verdict.confidence = Some(Confidence::High);
        let ends = [("sender", &evidence.sender), ("receiver", &evidence.receiver)];
        verdict.evidence = ends
            .into_iter()
            .filter_map(|(name, host)| Some((name, host.cpu?)))
            .map(|(name, cpu)| Sign::figure(format!("CPU of the {name}"), cpu, "1"))
            .collect();
        verdict.notes.push("both ends run on this host: there is no path".to_owned());
        return Some(verdict);
    }
    None
}
