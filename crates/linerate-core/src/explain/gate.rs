//! Whether there is a measurement to explain at all.

use super::evidence::Evidence;
use crate::record::{Cause, Confidence, Outcome, Sign, Verdict};

/// A tester that is its own limit computes for more than this share of the time: over loopback
/// nothing else takes any.
const IDLE_CPU: f64 = 0.1;

/// A verdict without a diagnosis: the tester spoilt the measurement, or both ends are one host.
pub(super) fn failure_verdict(evidence: &Evidence) -> Option<Verdict> {
    if let Some(why) = &evidence.spoilt {
        let mut verdict = Verdict::of(evidence.direction, Outcome::NoVerdict);
        verdict.notes.push(why.clone());
        verdict.deciding_test = Some("the same test again on a quiet host".to_owned());
        return Some(verdict);
    }
    let ends = [&evidence.sender, &evidence.receiver];
    let idle = |cpu: f64| cpu < IDLE_CPU;
    let known: Vec<f64> = ends.iter().filter_map(|end| end.cpu).collect();
    if evidence.loopback && !known.is_empty() && known.iter().all(|cpu| idle(*cpu)) {
        let mut verdict = Verdict::of(evidence.direction, Outcome::NoVerdict);
        let most = known.iter().copied().fold(0.0, f64::max) * 100.0;
        verdict.notes.push(format!(
            "both ends run on this host, so there is no path, and the CPU of no end that is known is \
             its limit ({most:.0} %)"
        ));
        verdict.deciding_test = Some("the same test from another host".to_owned());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn over_loopback(sender: Option<f64>, receiver: Option<f64>) -> Verdict {
        let mut evidence = Evidence { loopback: true, ..Evidence::default() };
        (evidence.sender.cpu, evidence.receiver.cpu) = (sender, receiver);
        failure_verdict(&evidence).expect("loopback is never explained as a path")
    }

    #[test]
    fn over_loopback_the_tester_is_the_limit_unless_no_known_end_computes() {
        // A server of HTTP knows its own CPU alone: 2 % of it limits nothing.
        for (sender, receiver) in [(Some(0.02), None), (None, Some(0.02)), (Some(0.02), Some(0.09))]
        {
            let verdict = over_loopback(sender, receiver);
            assert_eq!((verdict.outcome, verdict.cause), (Outcome::NoVerdict, None));
            assert!(verdict.notes[0].contains("no path"), "{:?}", verdict.notes);
        }
        for (sender, receiver) in
            [(Some(0.9), None), (Some(0.02), Some(0.4)), (Some(0.37), Some(0.5)), (None, None)]
        {
            let verdict = over_loopback(sender, receiver);
            assert_eq!((verdict.outcome, verdict.cause), (Outcome::Limited, Some(Cause::Tester)));
        }
        assert_eq!(failure_verdict(&Evidence::default()), None);
    }
}
