//! Remedies of the causes, computed from this path: which, at which end, with which figures.
//!
//! Buffers are twice the bandwidth-delay product, because Linux offers about half of tcp_rmem as a
//! window (tcp_adv_win_scale, tcp(7)) and keeps bookkeeping beside the payload in tcp_wmem. Left
//! out: their words (`linerate-report`).

use super::evidence::{Evidence, HostEvidence};
use crate::record::{
    At, Cause, Confidence, HostAdvice, LimitVerdict, PathAdvice, RemedyCommand, RemedyLine,
    SHAPED_SHARE, SocketBuffer,
};
use crate::units::BitRate;

/// The rate that buffers are computed for where nothing tells how much the path carries.
const GOAL_BPS: f64 = 1e9;

/// The rate that remedies of windows aim at, and whether it is known rather than supposed.
pub(super) fn goal_bps(evidence: &Evidence) -> (f64, bool) {
    let speeds = [evidence.sender.speed_bps, evidence.receiver.speed_bps, evidence.stated_bps];
    let link = speeds.into_iter().flatten().reduce(f64::min);
    let capacity = evidence.capacity_bps.or(link);
    let far = evidence.steady_bps().unwrap_or(0.0) * 2.0;
    (capacity.unwrap_or_else(|| GOAL_BPS.max(far)), capacity.is_some())
}

/// A buffer for twice the BDP at the goal, rounded up to whole MiB.
fn needed_bytes(evidence: &Evidence) -> Option<(u64, f64)> {
    let (bps, _) = goal_bps(evidence);
    let needed = 2.0 * evidence.bdp_bytes(bps)?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 stays in the range"
    )]
    let mib = (needed / 1_048_576.0).ceil().clamp(1.0, 2047.0) as u64;
    Some((mib << 20, bps))
}

fn buffer_lines(
    evidence: &Evidence,
    host: &HostEvidence,
    at: At,
    buffer: SocketBuffer,
) -> Vec<RemedyLine> {
    let Some((bytes, bps)) = needed_bytes(evidence) else { return Vec::new() };
    let mut lines = Vec::new();
    if let Some(asked_bytes) = evidence.asked.window_bytes.or(host.buffer_asked_bytes) {
        lines.push(RemedyLine::advice(At::Test, HostAdvice::LeaveOutWindow { asked_bytes }));
        if host.core_max_bytes.is_some_and(|most| most < bytes) {
            lines.push(RemedyLine::command(at, RemedyCommand::RaiseAskedMax { buffer, bytes }));
        }
    }
    let [least_bytes, default_bytes, most] = host.tcp_mem_bytes.unwrap_or([4096, 131_072, 0]);
    if most < bytes {
        let raised = RemedyCommand::RaiseBuffer { buffer, least_bytes, default_bytes, bytes };
        lines.push(RemedyLine::command(at, raised));
        let rate = BitRate::from_nearest(bps).unwrap_or_default();
        let has_bytes = (most > 0).then_some(most);
        lines.push(RemedyLine::advice(at, HostAdvice::BufferNeeded { rate, bytes, has_bytes }));
    }
    lines
}

/// For a receive window.
pub(super) fn receive_window(evidence: &Evidence) -> Vec<RemedyLine> {
    let ends = [(&evidence.sender, At::Sender), (&evidence.receiver, At::Receiver)];
    let off = ends.into_iter().find(|(host, _)| host.window_scaling == Some(false));
    if let Some((_, at)) = off {
        return vec![RemedyLine::command(at, RemedyCommand::ScaleWindows)];
    }
    if evidence.scale_agreed() == Some(false) {
        return vec![RemedyLine::on_path(PathAdvice::KeepWindowScale)];
    }
    buffer_lines(evidence, &evidence.receiver, At::Receiver, SocketBuffer::Receive)
}

/// For a send buffer.
pub(super) fn send_buffer(evidence: &Evidence) -> Vec<RemedyLine> {
    buffer_lines(evidence, &evidence.sender, At::Sender, SocketBuffer::Send)
}

/// For a cause that was found by trying.
pub(super) fn for_cause(cause: Cause, evidence: &Evidence) -> Vec<RemedyLine> {
    match cause {
        Cause::ReceiveWindow => receive_window(evidence),
        Cause::SendBuffer => send_buffer(evidence),
        Cause::RandomLoss => random_loss(),
        Cause::SmallBuffer => bursts(),
        Cause::MtuBlackHole => black_hole(),
        Cause::ReceivingHost => for_host(At::Receiver),
        Cause::SendingHost => for_host(At::Sender),
        Cause::Outages => outages(),
        Cause::Reordering => reordering(),
        _ => Vec::new(),
    }
}

/// For losses that no load makes.
pub(super) fn random_loss() -> Vec<RemedyLine> {
    vec![RemedyLine::on_path(PathAdvice::FindDamage), bbr_remedy()]
}

/// For bursts that a queue has no room for.
pub(super) fn bursts() -> Vec<RemedyLine> {
    vec![RemedyLine::command(At::Sender, RemedyCommand::FairQueue), bbr_remedy()]
}

/// BBR, which does not answer each loss.
fn bbr_remedy() -> RemedyLine {
    RemedyLine::command(At::Sender, RemedyCommand::UseCongestionControl { name: "bbr".to_owned() })
}

/// A meter is not overrun at this share of its rate.
const PACED_SHARE: f64 = 0.95;

/// For a meter that lets `bps` of payload through, in IP packets of `ip_bps`.
pub(super) fn policer(evidence: &Evidence, bps: f64, ip_bps: f64) -> Vec<RemedyLine> {
    let interface = evidence.sender.interface.clone();
    let pace = RemedyCommand::Pace { interface, bps: bps * PACED_SHARE };
    let bytes = evidence.bdp_bytes(ip_bps).unwrap_or(0.0);
    vec![
        RemedyLine::command(At::Sender, pace),
        RemedyLine::on_path(PathAdvice::AskForBurst { bytes }),
    ]
}

/// For a host that can do no more.
pub(super) fn for_host(at: At) -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(at, RemedyCommand::FullClock),
        RemedyLine::command(at, RemedyCommand::CheckHost),
        RemedyLine::advice(at, HostAdvice::FreeTheCpu),
    ]
}

/// For an application that reads late.
pub(super) fn reader() -> Vec<RemedyLine> {
    vec![RemedyLine::advice(At::Receiver, HostAdvice::ReadSooner)]
}

/// For a transfer that is all start.
pub(super) fn start_up() -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(At::Sender, RemedyCommand::KeepWindowWhenIdle),
        RemedyLine::command(At::Sender, RemedyCommand::ForgetMetrics),
        RemedyLine::advice(At::Test, HostAdvice::TestLonger),
        RemedyLine::advice(At::Sender, HostAdvice::KeepConnections),
    ]
}

/// For a queueing discipline of the sender's own.
pub(super) fn own_shaper(evidence: &Evidence) -> Vec<RemedyLine> {
    let interface = evidence.sender.interface.clone();
    vec![RemedyLine::command(At::Sender, RemedyCommand::ReplaceShaper { interface })]
}

/// For packets that vanish above a size.
pub(super) fn black_hole() -> Vec<RemedyLine> {
    vec![
        RemedyLine::command(At::Sender, RemedyCommand::ProbeMtu),
        RemedyLine::on_path(PathAdvice::LetTooBigPass),
    ]
}

/// Remedy for interruptions of the path.
pub(super) fn outages() -> Vec<RemedyLine> {
    vec![RemedyLine::on_path(PathAdvice::FindInterruption)]
}

/// For a way back that is too thin.
pub(super) fn ack_path() -> Vec<RemedyLine> {
    vec![RemedyLine::on_path(PathAdvice::ExamineWayBack)]
}

/// Remedy for reordering on the path.
pub(super) fn reordering() -> Vec<RemedyLine> {
    vec![RemedyLine::on_path(PathAdvice::ShareByFlow)]
}

/// For a queue that stands: a shaper below the bottleneck's rate moves it to where it is managed. A
/// figure is given only where the bottleneck's rate is known.
pub(super) fn standing_queue(evidence: &Evidence, verdict: &LimitVerdict) -> Vec<RemedyLine> {
    let full = matches!(verdict.cause, Some(Cause::Link | Cause::LinkFallback | Cause::Shaper))
        && verdict.confidence >= Some(Confidence::Medium);
    let payload = evidence.steady_bps().filter(|_| full);
    let wire = payload.map(|bps| bps / PAYLOAD_OF_WIRE);
    let shaped_bps = wire.or(evidence.capacity_bps).map(|bps| SHAPED_SHARE * bps);
    vec![RemedyLine::on_path(PathAdvice::ManageQueue { shaped_bps })]
}

/// Payload over frame of a full segment of 1500 bytes with timestamps.
const PAYLOAD_OF_WIRE: f64 = 1448.0 / 1514.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::evidence::{RateEvidence, RoundTrips};
    use crate::record::{Outcome, Remedy};

    fn filled(bps: f64) -> Evidence {
        Evidence {
            rate: RateEvidence { steady_bps: Some(bps), ..RateEvidence::default() },
            rtt: RoundTrips { base_s: Some(0.6), ..RoundTrips::default() },
            ..Evidence::default()
        }
    }

    #[test]
    fn a_queue_is_shaped_below_the_rate_on_the_wire_where_that_is_known() {
        let link = LimitVerdict {
            cause: Some(Cause::Link),
            confidence: Some(Confidence::Medium),
            ..LimitVerdict::from_outcome(None, Outcome::AtCeiling)
        };
        // 53,550 of payload in segments of 1448 bytes are 53,550 × 1514 / 1448 = 55,990.8 in
        // frames; 0.95 of that is 53,191.3. So with 489,650 and 794,750.
        let shaped =
            |evidence: &Evidence, verdict: &LimitVerdict| match standing_queue(evidence, verdict)
                .remove(0)
                .remedy
            {
                Remedy::OnPath(PathAdvice::ManageQueue { shaped_bps }) => shaped_bps,
                other => panic!("{other:?}"),
            };
        let rates = [(53.55e3, 53_191.3), (489.65e3, 486_369.9), (794.75e3, 789_426.1)];
        for (payload, bps) in rates {
            let found = shaped(&filled(payload), &link).expect("the link is full");
            assert!((found - bps).abs() < 0.1, "{found}");
        }
        let open = LimitVerdict::from_outcome(None, Outcome::Undetermined);
        assert_eq!(shaped(&filled(53.55e3), &open), None);
        // tcp_rmem for 831 kbit/s: nothing is rounded to whole Mbit/s.
        let evidence = Evidence { capacity_bps: Some(831e3), ..filled(400e3) };
        let why = receive_window(&evidence).pop().expect("a reason").remedy;
        let Remedy::Advice(HostAdvice::BufferNeeded { rate, .. }) = why else { panic!("{why:?}") };
        assert_eq!(rate, BitRate::from_bits_per_sec(831_000));
    }
}
