//! The changes that can be tried, one at a time: where each can be made, what the rate does then
//! where a cause holds it, what that means, and the change as a remedy.
//!
//! Left out: whether runs show what a change did, and what that leaves of the causes.

use super::evidence::Evidence;
use super::path::payload_share;
use super::unlike;
use crate::record::{
    At, Cause, Change, HostAdvice, IpFamily, LimitVerdict, LossShift, Note, PathAdvice, Remedy,
    RemedyCommand, RemedyLine, ShortRun,
};
use crate::theory::ladder::Response;
use crate::units::BitRate;

/// The rate rises: from this factor on. Four streams of equal windows have 4, of a policer 2, and
/// of a full link up to 1.4 of a short run that has not recovered from its first loss.
pub(super) const RISES: f64 = 1.5;
/// So much more is lost: the change overruns a queue or a policer.
const MORE_LOST: f64 = 3.0;
/// No more is lost than before.
pub(super) const AS_LOST: f64 = 2.0;
/// The pace that is tried, of what the path carries.
const PACED_SHARE: f64 = 0.9;
const STREAMS: u16 = 4;
/// Segments that pass tunnels and stay below every offload's mistakes with full ones.
const SEGMENT_BYTES: u32 = 1200;
/// Bytes of a write whose calls cost nothing beside the bytes, and writes that are well below that.
const WRITE_BYTES: u32 = 1 << 20;
const SMALL_WRITE_BYTES: u64 = 64 << 10;

/// Settings at the two ends that a short run can change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Choices<'a> {
    /// Congestion controls that the sender may use, where they are known.
    pub controls: Option<&'a [String]>,
    /// The server takes streams at another port.
    pub other_port: bool,
    /// The server has an address of this family too, which no run used.
    pub other_family: Option<IpFamily>,
}

/// Effect of a change on the rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RateShift {
    Rises,
    Stays,
    Falls,
}

/// Expected effect of a change: on the rate, and whether more is lost.
pub(super) type Prediction = (Option<RateShift>, Option<bool>);

/// Effect expected of a change where a cause holds the rate, and whether more is lost then; `None`
/// where it could be either.
pub(super) fn predict_effect(change: &Change, cause: Cause) -> Prediction {
    use Cause as C;
    // Of those that can be tried BBR alone does not answer each loss.
    let bbr = matches!(change, Change::CongestionControl(name) if name.starts_with("bbr"));
    let moved = match change {
        Change::Streams(_) => match cause {
            C::ReceiveWindow | C::SendBuffer | C::RandomLoss | C::SmallBuffer | C::Policer => {
                Some(RateShift::Rises)
            }
            C::OtherTraffic | C::Reordering | C::CongestionControl => Some(RateShift::Rises),
            C::Link | C::LinkFallback | C::Shaper | C::SendingHost | C::ReceivingHost => {
                Some(RateShift::Stays)
            }
            _ => None,
        },
        Change::CongestionControl(_) => match cause {
            C::ReceiveWindow | C::Link | C::LinkFallback | C::Shaper | C::ReceivingHost => {
                Some(RateShift::Stays)
            }
            C::RandomLoss | C::SmallBuffer | C::Policer | C::CongestionControl if bbr => {
                Some(RateShift::Rises)
            }
            _ => None,
        },
        Change::Pace(_) => match cause {
            C::SmallBuffer | C::Policer => Some(RateShift::Rises),
            C::RandomLoss | C::ReceiveWindow | C::SendBuffer => Some(RateShift::Stays),
            _ => None,
        },
        Change::Segments(_) => match cause {
            C::MtuBlackHole | C::Offload | C::TunnelMtu => Some(RateShift::Rises),
            C::Outages | C::ReceiveWindow | C::Link => Some(RateShift::Stays),
            _ => None,
        },
        Change::Buffers(_) => match cause {
            C::ReceiveWindow | C::SendBuffer => Some(RateShift::Rises),
            C::Link | C::Shaper | C::RandomLoss | C::Policer => Some(RateShift::Stays),
            _ => None,
        },
        // A device may hold one port back by a meter or by a queue, or send it another way.
        Change::OtherPort => {
            let both = matches!(cause, C::Link | C::RandomLoss | C::SmallBuffer | C::OtherTraffic);
            (both || at_an_end(cause)).then_some(RateShift::Stays)
        }
        // The other family may have another path, but it has the same ends.
        Change::Family(_) => at_an_end(cause).then_some(RateShift::Stays),
        // Calls are what a sender has fewer of; quotas and other work stay.
        Change::Writes(_) => (cause != C::SendingHost).then_some(RateShift::Stays),
    };
    let more_lost = match cause {
        C::RandomLoss | C::OtherTraffic if bbr => Some(false),
        C::SmallBuffer | C::Policer | C::PacketRate if bbr => Some(true),
        _ => None,
    };
    (moved, more_lost)
}

const fn at_an_end(cause: Cause) -> bool {
    matches!(
        cause,
        Cause::ReceiveWindow
            | Cause::SendBuffer
            | Cause::SendingHost
            | Cause::SendingApplication
            | Cause::ReceivingHost
            | Cause::ReceivingApplication
    )
}

/// Information expected from a change, in nats, over causes with these chances.
pub(super) fn entropy(change: &Change, causes: &[(Cause, f64)]) -> f64 {
    let mut outcomes: Vec<(Prediction, f64)> = Vec::new();
    for (cause, weight) in causes {
        let outcome = predict_effect(change, *cause);
        match outcomes.iter_mut().find(|(known, _)| *known == outcome) {
            Some((_, sum)) => *sum += weight,
            None => outcomes.push((outcome, *weight)),
        }
    }
    // Causes whose outcome nobody knows are not separated from any other.
    let of_known = outcomes.iter().filter(|(outcome, _)| *outcome != (None, None));
    of_known.map(|(_, chance)| -chance * chance.ln()).sum()
}

/// Changes that can be made here, the usual ones first.
pub(super) fn possible(evidence: &Evidence, choices: Choices<'_>) -> Vec<Change> {
    let other = match evidence.loss.response {
        Some(Response::Bbr) => "cubic",
        _ => "bbr",
    };
    let has = choices.controls.is_none_or(|names| names.iter().any(|name| name == other));
    let known = evidence.loss.control.is_some();
    let mut changes = Vec::new();
    if evidence.flows <= 1 {
        changes.push(Change::Streams(STREAMS));
    }
    if has && known {
        changes.push(Change::CongestionControl(other.to_owned()));
    }
    if choices.other_port {
        changes.push(Change::OtherPort);
    }
    changes.extend(pace_below_capacity(evidence).map(Change::Pace));
    changes.extend(buffers(evidence).map(Change::Buffers));
    if evidence.mss_bytes.is_none_or(|mss| mss > SEGMENT_BYTES) {
        changes.push(Change::Segments(SEGMENT_BYTES));
    }
    changes.extend(choices.other_family.map(Change::Family));
    if evidence.asked.write_bytes.is_some_and(|bytes| bytes <= SMALL_WRITE_BYTES) {
        changes.push(Change::Writes(WRITE_BYTES));
    }
    changes
}

/// True when the flow loses packets and probes at other ports do not: something treats the flow
/// apart.
pub(super) fn is_apart(evidence: &Evidence) -> bool {
    let Some(found) = &evidence.trains else { return false };
    let passed = found.loads.iter().filter(|load| load.passes());
    let (sent, lost) = passed.fold((0, 0), |sum, it| (sum.0 + it.sent, sum.1 + it.lost));
    unlike::refutes_random(evidence, sent, lost)
}

/// 0.9 of what the path carries, where that is known and well above the rate.
fn pace_below_capacity(evidence: &Evidence) -> Option<BitRate> {
    let bounds = [evidence.sustained_bps, evidence.capacity_bps].into_iter().flatten();
    let bound = bounds.reduce(f64::min).map(|ip_bps| ip_bps * payload_share(evidence));
    let reached = evidence
        .interventions
        .iter()
        .filter(|made| matches!(made.change, Change::CongestionControl(_) | Change::Streams(_)));
    let reached = reached.filter_map(|made| mean_of(&made.changed, |run| Some(run.goodput_bps)));
    let bps = PACED_SHARE * bound.or_else(|| reached.reduce(f64::max))?;
    let far = evidence.steady_bps().is_some_and(|rate| bps >= RISES * rate);
    BitRate::from_nearest(bps).filter(|_| far)
}

/// The largest buffers that both hosts give, where they are twice what is in flight.
fn buffers(evidence: &Evidence) -> Option<u64> {
    let most = evidence.sender.core_max_bytes?.min(evidence.receiver.core_max_bytes?);
    let flight = evidence.flight_bytes()?;
    (most as f64 >= 2.0 * flight && evidence.asked.window_bytes.is_none()).then_some(most)
}

pub(super) fn mean_of(runs: &[ShortRun], of: impl Fn(&ShortRun) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = runs.iter().map(of).collect();
    mean_value(&values?)
}

pub(super) fn mean_value(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Note on a change that moved the rate by this factor, or left it; `lost` are the shares sent
/// again before and after.
pub(super) fn effect_note(
    change: &Change,
    moved: RateShift,
    factor: f64,
    lost: Option<(f64, f64)>,
) -> Option<Note> {
    let lost = lost.filter(|(before, _)| *before > 0.0);
    let as_lost = lost.is_some_and(|(before, after)| after <= AS_LOST * before);
    let more = lost.is_some_and(|(before, after)| after >= MORE_LOST * before);
    let losses = match (as_lost, more) {
        (true, _) => LossShift::Same,
        (false, true) => LossShift::More,
        (false, false) => LossShift::Unclear,
    };
    match (change, moved) {
        (_, RateShift::Rises) => Some(Note::RateRose { change: change.clone(), factor, losses }),
        (Change::Segments(_), RateShift::Stays) | (_, RateShift::Falls) => None,
        (_, RateShift::Stays) => Some(Note::RateStayed(change.clone())),
    }
}

/// True when a verdict's remedy prescribes the change.
pub(super) fn is_remedy(change: &Change, verdict: &LimitVerdict) -> bool {
    verdict.remedy.iter().any(|line| is_line(change, line))
}

pub(super) fn is_line(change: &Change, line: &RemedyLine) -> bool {
    let Remedy::Line(command) = &line.remedy else { return false };
    match (change, command) {
        (Change::CongestionControl(tried), RemedyCommand::UseCongestionControl { name }) => {
            tried == name
        }
        (Change::Pace(_), RemedyCommand::Pace { .. }) => true,
        _ => false,
    }
}

/// The change as something to do.
pub(super) fn line_of(change: &Change) -> RemedyLine {
    match change {
        Change::Streams(count) => {
            RemedyLine::advice(At::Test, HostAdvice::SeveralStreams { count: *count })
        }
        Change::CongestionControl(name) => {
            let command = RemedyCommand::UseCongestionControl { name: name.clone() };
            RemedyLine::command(At::Sender, command)
        }
        Change::Pace(pace) => {
            let bps = pace.bits_per_sec() as f64;
            RemedyLine::command(At::Sender, RemedyCommand::Pace { interface: None, bps })
        }
        Change::Segments(bytes) => {
            RemedyLine::advice(At::Test, HostAdvice::SmallerSegments { bytes: *bytes })
        }
        Change::Buffers(bytes) => {
            RemedyLine::advice(At::Test, HostAdvice::AskForBuffers { bytes: *bytes })
        }
        Change::OtherPort => RemedyLine::on_path(PathAdvice::FindPortRule),
        Change::Family(family) => RemedyLine::on_path(PathAdvice::UseFamily { family: *family }),
        Change::Writes(bytes) => {
            RemedyLine::advice(At::Sender, HostAdvice::WriteMore { bytes: *bytes })
        }
    }
}
