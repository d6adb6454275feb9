//! The ladder of theory filled from evidence: what to expect, and what limits next.

use std::time::Duration;

use super::evidence::Evidence;
use super::mechanism::{Findings, Overflow};
use super::path::payload_share;
use crate::record::{Cause, IpFamily, NextBound, NextLimit};
use crate::theory::framing::{SegmentHeaders, Transport};
use crate::theory::ladder::{
    CeilingFacts, FullPacketLengths, Known, Ladder, LinkFact, RungKind, ladder_from_facts,
};
use crate::units::{BitRate, Bytes};

/// Every bound that the evidence knows, with one cause taken away.
pub(super) fn without(evidence: &Evidence, cause: Option<Cause>) -> Option<Ladder> {
    ladder_from_facts(&path_facts(evidence, cause)?).ok()
}

/// More than this no flow of TCP carries between two hosts of today, bit/s: a window or a buffer
/// over a round trip of microseconds bounds nothing above it.
const FLOW_BPS_MAX: f64 = 100e9;

/// The next limit once a cause is gone, where one is known.
pub(super) fn next(evidence: &Evidence, cause: Cause) -> Option<NextLimit> {
    let ladder = without(evidence, Some(cause))?;
    let rung = *ladder.by_height().first()?;
    let is_window = matches!(rung.kind, RungKind::ReceiveWindow | RungKind::SendBuffer);
    if is_window && rung.payload_bps > FLOW_BPS_MAX * f64::from(evidence.flows.max(1)) {
        return None;
    }
    Some(NextLimit { bound: bound_of(rung.kind), bps: rung.payload_bps })
}

/// The bound that a rung of the ladder is.
const fn bound_of(kind: RungKind) -> NextBound {
    match kind {
        RungKind::LocalLink => NextBound::EndLink,
        RungKind::PathCapacity => NextBound::PathLink,
        RungKind::SustainedRate => NextBound::RegulatedRate,
        RungKind::PacketRate => NextBound::PacketRate,
        RungKind::ReceiveWindow => NextBound::ReceiveWindow,
        RungKind::SendBuffer => NextBound::SendBuffer,
        RungKind::Loss => NextBound::Loss,
        RungKind::SenderHost => NextBound::SendingHost,
        RungKind::ReceiverHost => NextBound::ReceivingHost,
        RungKind::StartUp => NextBound::StartUp,
        RungKind::Application => NextBound::Pace,
        RungKind::ReversePath => NextBound::WayBack,
    }
}

fn path_facts(evidence: &Evidence, gone: Option<Cause>) -> Option<CeilingFacts> {
    let payload_bytes = evidence.mss_bytes.filter(|mss| *mss > 0)?;
    let ip_bytes = evidence.packet_bytes.unwrap_or(payload_bytes + 52);
    let timestamps = evidence.syn.sender_agreed.is_none_or(|agreed| agreed.timestamps);
    let transport = if timestamps { Transport::TcpWithTimestamps } else { Transport::Tcp };
    let segment = SegmentHeaders { family: IpFamily::V4, transport };
    let mut facts =
        CeilingFacts::from_packet(FullPacketLengths { payload_bytes, ip_bytes, segment });
    facts.flows = evidence.flows.max(1);
    let speeds = [evidence.sender.speed_bps, evidence.receiver.speed_bps];
    let packet = f64::from(ip_bytes);
    facts.link = speeds.into_iter().flatten().reduce(f64::min).map(|bps| LinkFact {
        name: "interface".to_owned(),
        line_bps: bps,
        ip_bps: bps * packet / (packet + 38.0),
        payload_bps: bps * f64::from(payload_bytes) / (packet + 38.0),
        estimate: false,
    });
    let known =
        |bps: Option<f64>, source: &str| Some(Known::new(BitRate::from_nearest(bps?)?, source));
    let share = payload_share(evidence);
    facts.capacity = known(capacity(evidence, gone).or(evidence.stated_bps), "trains of probes");
    if !matches!(gone, Some(Cause::Shaper | Cause::Policer)) {
        let held = evidence.trains.as_ref().and_then(regulated_bps);
        facts.sustained =
            known(evidence.sender.shaper_bps.or(held), "a queueing discipline or the probes");
    }
    // A full bottleneck shows its rate while it is the limit.
    if facts.capacity.is_none() && gone.is_none() {
        facts.capacity = known(evidence.rate.delivery_bps.map(|bps| bps / share), "delivery");
    }
    // What a file says may be longer than any time is.
    let base = evidence.rtt.base_s.filter(|base| *base > 0.0);
    if let Some(base) = base.and_then(|base| Duration::try_from_secs_f64(base).ok()) {
        facts.rtt = Some(Known::new(base, "at rest"));
    }
    if !matches!(gone, Some(Cause::ReceiveWindow | Cause::Middlebox)) {
        facts.window = window_possible(evidence, gone).map(|bytes| Known::new(bytes, "receiver"));
    }
    if gone != Some(Cause::SendBuffer) {
        // Without -w both buffers are the kernel's again.
        let asked = evidence.asked.window_bytes.filter(|_| gone.is_none());
        let most = asked.or_else(|| evidence.sender.tcp_mem_bytes.map(|memory| memory[2]));
        let most = most.filter(|bytes| *bytes > 0).map(Bytes::new);
        facts.send_buffer = most.map(|bytes| Known::new(bytes, "tcp_wmem or -w"));
    }
    if gone != Some(Cause::SendingApplication) {
        let pace = evidence.asked.pace_bps.map(|bps| bps / f64::from(facts.flows));
        facts.application = known(pace, "-b");
    }
    Some(facts)
}

/// The rate of packets of this size on the path's slowest link. What a shaper or a device of few
/// packets a second leaves says nothing of the link behind it.
fn capacity(evidence: &Evidence, gone: Option<Cause>) -> Option<f64> {
    let Some(found) = &evidence.trains else { return evidence.capacity_bps };
    match gone {
        Some(Cause::Shaper | Cause::UnequalPaths) => {
            let link = found.link_bps()?;
            evidence.capacity_bps.filter(|bps| link > 1.2 * bps).map(|_| link)
        }
        Some(Cause::PacketRate) if found.is_per_packet() => None,
        _ => evidence.capacity_bps,
    }
}

/// Rate that a shaper or a policer lets through. Without one, a rate that passes for long is the
/// link's.
fn regulated_bps(found: &Findings) -> Option<f64> {
    let policed = match found.overflow {
        Some(Overflow::Policer { rate_bps, .. }) => Some(rate_bps.value),
        _ => None,
    };
    found.shaper.map(|shaper| shaper.rate_bps).or(policed)
}

/// The window that bounds: the one that was offered, while it is the limit; else the one up to
/// which the receiver tunes it, half of tcp_rmem.
fn window_possible(evidence: &Evidence, gone: Option<Cause>) -> Option<Bytes> {
    let offered = evidence.offered_bytes();
    let tuned = evidence.receiver.tcp_mem_bytes.map(|memory| memory[2] as f64 / 2.0);
    let fixed = evidence.scale_agreed() == Some(false);
    let bytes = match gone {
        Some(_) if !fixed => tuned.or(offered),
        _ => offered,
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from f64 stays in the range"
    )]
    bytes.filter(|bytes| *bytes >= 1.0).map(|bytes| Bytes::new(bytes.min(1_073_725_440.0) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_over_a_round_trip_of_microseconds_is_no_next_limit() {
        let next_at = |base_s: f64| {
            let mut evidence = Evidence { mss_bytes: Some(1448), flows: 1, ..Evidence::default() };
            evidence.sender.tcp_mem_bytes = Some([4096, 16_384, 4_194_304]);
            evidence.rtt.base_s = Some(base_s);
            next(&evidence, Cause::ReceiveWindow).map(|limit| limit.bound)
        };
        // 4 MiB in 24.7 us are 1.36 Tbit/s, in 40 ms 839 Mbit/s.
        assert_eq!(next_at(24.7e-6), None);
        assert_eq!(next_at(0.04), Some(NextBound::SendBuffer));
    }
}
