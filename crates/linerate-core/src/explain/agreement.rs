//! A diagnosis made to agree with the limit that was decided: where the diagnosis alone found less,
//! what the record states beside it names the cause.

use super::evidence::Evidence;
use super::limitation::{Ground, Limitation};
use super::{counters, remedy};
use crate::record::{Cause, Confidence, FlowSide, LimitVerdict, Outcome, Sign, SignKind, SignUnit};

/// A cause that a known bound or a counter names.
struct Stated {
    cause: Cause,
    confidence: Confidence,
    sign: Sign,
}

/// The verdict with the limit that was decided.
pub(super) fn agreeing(
    verdict: LimitVerdict,
    limitation: &Limitation,
    evidence: &Evidence,
) -> LimitVerdict {
    let by = limitation.by;
    let verdict = LimitVerdict { limited_by: by, ..verdict };
    match &limitation.ground {
        Ground::Queue { least_ns, loaded_ns } => {
            let sign = Sign::figure(SignKind::Inflation, loaded_ns / least_ns);
            undetermined_between(verdict, &QUEUES, sign)
        }
        Ground::SentAgain(ratio) => {
            let sign = Sign::at_least(SignKind::SegmentsAgain, *ratio, counters::LOSSY_FROM);
            undetermined_between(verdict, &LOSSES, sign)
        }
        ground => match stated(ground).filter(|implied| verdict.cause != Some(implied.cause)) {
            Some(stated) => naming(verdict, stated, evidence),
            None => verdict,
        },
    }
}

/// Causes of a queue that stands, and of losses without one.
const QUEUES: [Cause; 4] = [Cause::Link, Cause::Shaper, Cause::OtherTraffic, Cause::AckPath];
const LOSSES: [Cause; 5] =
    [Cause::RandomLoss, Cause::Policer, Cause::SmallBuffer, Cause::PacketRate, Cause::OtherTraffic];

/// A verdict that stays undetermined, with the causes of what was seen.
fn undetermined_between(mut verdict: LimitVerdict, causes: &[Cause], sign: Sign) -> LimitVerdict {
    if verdict.between.is_empty() {
        verdict.between = causes.to_vec();
        verdict.confidence = Some(Confidence::Low);
    }
    if !verdict.evidence.iter().any(|known| known.kind == sign.kind) {
        verdict.evidence.insert(0, sign);
    }
    verdict
}

/// The cause that a known bound or a counter names.
pub(super) fn cause_of(ground: &Ground) -> Option<Cause> {
    stated(ground).map(|stated| stated.cause)
}

fn stated(ground: &Ground) -> Option<Stated> {
    let of = |cause, confidence, sign| Some(Stated { cause, confidence, sign });
    let host = |side| match side {
        FlowSide::Sender => Cause::SendingHost,
        FlowSide::Receiver => Cause::ReceivingHost,
    };
    let (medium, low) = (Confidence::Medium, Confidence::Low);
    match ground {
        Ground::LinkFull { ratio } => {
            let sign = Sign::at_least(SignKind::RateOverLink, *ratio, counters::FULL_FROM);
            of(Cause::Link, Confidence::High, sign)
        }
        Ground::Pace(bps) => {
            let sign = Sign::figure(SignKind::PaceAsked, *bps);
            of(Cause::SendingApplication, medium, sign)
        }
        Ground::Window { kind, bps, .. } => match kind.as_str() {
            "send_buffer" => {
                of(Cause::SendBuffer, medium, Sign::figure(SignKind::SendBufferAllows, *bps))
            }
            _ => {
                let sign = Sign::figure(SignKind::WindowAllows, *bps);
                of(Cause::ReceiveWindow, medium, sign)
            }
        },
        Ground::Computed(side, share) => {
            of(host(*side), low, Sign::figure(SignKind::ThreadComputed(*side), *share))
        }
        Ground::WaitedForCore(side, share) => {
            of(host(*side), low, Sign::figure(SignKind::ThreadWaited(*side), *share))
        }
        Ground::WaitedForWindow(share) => {
            let sign = Sign::figure(SignKind::SenderWaitedForWindow, *share);
            of(Cause::ReceiveWindow, low, sign)
        }
        Ground::WaitedForBuffer(share) => {
            let sign = Sign::figure(SignKind::SenderWaitedForBuffer, *share);
            of(Cause::SendBuffer, low, sign)
        }
        Ground::Caveat(_) => of(Cause::Tester, low, Sign::figure(SignKind::BusyEnds, 1.0)),
        _ => None,
    }
}

/// The verdict with a cause that the diagnosis alone did not find.
fn naming(verdict: LimitVerdict, stated: Stated, evidence: &Evidence) -> LimitVerdict {
    let Stated { cause, confidence, sign } = stated;
    let full = cause == Cause::Link;
    let allowed = (sign.kind.unit() == SignUnit::BitsPerSecond).then_some(sign.value);
    let carried = verdict.measured_bps.map(|bps| bps / sign.value).filter(|_| full);
    // Why there was no verdict is news beside one; notes on another cause are not.
    let notes = if verdict.outcome == Outcome::NoVerdict { verdict.notes } else { Vec::new() };
    let mut verdict = LimitVerdict {
        outcome: if full { Outcome::AtCeiling } else { Outcome::Limited },
        cause: Some(cause),
        confidence: Some(confidence),
        ceiling_bps: carried.or(verdict.ceiling_bps),
        expected_bps: allowed,
        evidence: vec![sign],
        notes,
        next: None,
        remedy: remedy::for_cause(cause, evidence),
        between: Vec::new(),
        deciding_test: verdict.deciding_test.filter(|_| confidence == Confidence::Low),
        ..verdict
    };
    verdict.innocent.retain(|innocent| innocent.cause != cause);
    verdict
}

/// The verdict of a survey with the cause that its best transfer shows.
pub(super) fn as_of(verdict: LimitVerdict, part: &LimitVerdict) -> LimitVerdict {
    let mut verdict = LimitVerdict {
        outcome: part.outcome,
        limited_by: part.limited_by,
        cause: part.cause,
        confidence: part.confidence,
        expected_bps: part.expected_bps,
        evidence: part.evidence.clone(),
        next: part.next,
        remedy: part.remedy.clone(),
        // Trains leave fewer causes than a transfer does.
        between: match verdict.between.is_empty() || part.cause.is_some() {
            true => part.between.clone(),
            false => verdict.between,
        },
        ..verdict
    };
    verdict.innocent.retain(|innocent| part.cause != Some(innocent.cause));
    verdict
}
