//! Whether there is a measurement to explain at all.

use super::evidence::{Evidence, HostEvidence};
use crate::record::{
    Cause, Confidence, DecidingTest, FlowSide, LimitVerdict, Note, Outcome, Sign, SignKind,
};

/// A tester that is its own limit computes for more than this share of the time: over loopback
/// nothing else takes any.
const IDLE_CPU: f64 = 0.1;

/// Both ends of a transfer over loopback wait for each other: together they compute for this share
/// of a core at least where nothing but computing holds them.
const BUSY_TOGETHER: f64 = 0.8;

/// A verdict without a diagnosis: the tester spoilt the measurement, or both ends are one host.
pub(super) fn failure_verdict(evidence: &Evidence) -> Option<LimitVerdict> {
    if let Some(caveat) = &evidence.spoilt {
        let mut verdict = LimitVerdict::from_outcome(evidence.direction, Outcome::NoVerdict);
        verdict.notes.push(Note::Spoilt(caveat.clone()));
        verdict.deciding_test = Some(DecidingTest::QuietHost);
        return Some(verdict);
    }
    let ends = [&evidence.sender, &evidence.receiver];
    let known: Vec<f64> = ends.iter().filter_map(|end| end.cpu).collect();
    if evidence.loopback && known.iter().all(|cpu| *cpu < IDLE_CPU) {
        let cpu_most = known.iter().copied().reduce(f64::max);
        let mut verdict = LimitVerdict::from_outcome(evidence.direction, Outcome::NoVerdict);
        verdict.notes.push(Note::OneHostIdle { cpu_most });
        verdict.deciding_test = Some(DecidingTest::AnotherHost);
        return Some(verdict);
    }
    if evidence.loopback {
        let mut verdict = LimitVerdict::from_outcome(evidence.direction, Outcome::Limited);
        verdict.cause = Some(Cause::Tester);
        let busy = known.iter().sum::<f64>() >= BUSY_TOGETHER;
        verdict.confidence = Some(if busy { Confidence::High } else { Confidence::Low });
        let cpu_of = |side: FlowSide, host: &HostEvidence| {
            host.cpu.map(|cpu| Sign::figure(SignKind::CpuUsed(side), cpu))
        };
        verdict.evidence.extend(cpu_of(FlowSide::Sender, &evidence.sender));
        verdict.evidence.extend(cpu_of(FlowSide::Receiver, &evidence.receiver));
        verdict.notes.push(Note::OneHost);
        return Some(verdict);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn over_loopback(sender: Option<f64>, receiver: Option<f64>) -> LimitVerdict {
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
            let idle = matches!(verdict.notes[..], [Note::OneHostIdle { .. }]);
            assert!(idle, "{:?}", verdict.notes);
        }
        for (sender, receiver) in
            [(Some(0.9), None), (Some(0.02), Some(0.8)), (Some(0.37), Some(0.5))]
        {
            let verdict = over_loopback(sender, receiver);
            assert_eq!((verdict.outcome, verdict.cause), (Outcome::Limited, Some(Cause::Tester)));
            assert_eq!(verdict.confidence, Some(Confidence::High));
        }
        // A window of 8 KiB holds two ends that compute for 0.2 and 0.4 of a core.
        let verdict = over_loopback(Some(0.2), Some(0.4));
        assert_eq!(
            (verdict.cause, verdict.confidence),
            (Some(Cause::Tester), Some(Confidence::Low))
        );
        // The text of iperf3 has no CPU, and a pace that was asked for is not in it either.
        let verdict = over_loopback(None, None);
        assert_eq!((verdict.outcome, verdict.cause), (Outcome::NoVerdict, None));
        assert_eq!(failure_verdict(&Evidence::default()), None);
    }

    #[test]
    fn over_loopback_a_pace_that_was_kept_is_the_limit() {
        let mut evidence = Evidence { loopback: true, ..Evidence::default() };
        (evidence.sender.cpu, evidence.receiver.cpu) = (Some(0.03), Some(0.01));
        evidence.rate.mean_bps = Some(19.98e6);
        evidence.asked.pace_bps = Some(20e6);
        let verdict = super::super::judge::judge_direction(&evidence);
        assert_eq!(verdict.cause, Some(Cause::SendingApplication));
        // Half of what was asked for is no pace that was kept.
        evidence.asked.pace_bps = Some(40e6);
        let verdict = super::super::judge::judge_direction(&evidence);
        assert_eq!((verdict.outcome, verdict.cause), (Outcome::NoVerdict, None));
    }
}
