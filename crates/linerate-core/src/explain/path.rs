//! Causes on the path: its rate, its queue, its losses, its way back.

use super::candidate::{Candidate, share_of};
use super::ends::WINDOW_FULL;
use super::evidence::{Evidence, NO_QUEUE};
use super::remedy;
use crate::record::{
    Cause, Confidence, FlowSide, Note, PathAdvice, RemedyLine, Sign, SignKind, TcpOption,
};
use crate::theory::ladder::{AT_CEILING, Response};

/// Round trip under load over that at rest: a queue stands from here on.
const QUEUE: f64 = 1.1;
/// And it is at least so much longer, in seconds.
const QUEUE_S: f64 = 0.001;
/// The rate over the highest rate of delivery, of a bottleneck that stays full.
const STAYS_FULL: f64 = 0.85;
/// The most that one flow's rate is over its highest rate of delivery: both are read at ends of
/// intervals.
const DELIVERY_APART: f64 = 1.1;
/// The rate over what trains leave the bottleneck at, of a flow that fills it.
const FILLS: (f64, f64) = (0.9, 1.1);
/// Above this share of segments sent again BBR's rate says nothing of a link: it does not slow down
/// for losses. 2.4 % were sent again over a link without fault.
const BBR_LOSS_MAX: f64 = 0.04;
/// From this share of segments sent again on, losses shape a rate that waits in no queue.
pub(super) const LOSSY: f64 = 1e-4;
/// Fewer losses than this decide nothing.
const LOSSES_MIN: f64 = 3.0;
/// Delay that the load adds on the way back over that on the way of the data.
const BACK_OVER_FORWARD: f64 = 2.0;
/// And the least that counts, in seconds.
const BACK_S: f64 = 0.005;
/// Stretches without an answer that are outages: of this length, in seconds.
const GAP_S: f64 = 0.2;
/// And together at least this share of the time.
const GAP_SHARE: f64 = 0.03;
/// Needless retransmissions over all: order, not loss.
const NEEDLESS: f64 = 0.3;
/// Less payload than this is nothing: an initial window and its repeats.
const NOTHING_BYTES: f64 = 65_536.0;

/// The rate of a link that is known: of an interface, of a discipline on it, or as stated.
pub(super) fn known_link(evidence: &Evidence) -> Option<Candidate> {
    let ends = [(FlowSide::Sender, &evidence.sender), (FlowSide::Receiver, &evidence.receiver)];
    let payload = payload_share(evidence);
    let speeds = ends.iter().filter_map(|(side, host)| {
        let (interface, frame) = (host.interface.clone(), 38.0);
        let mss = f64::from(evidence.mss_bytes?);
        let packet = f64::from(evidence.packet_bytes.unwrap_or(1500));
        let bps = host.speed_bps? * mss / (packet + frame);
        Some((SignKind::InterfaceCarries { interface, side: *side }, bps, Cause::Link))
    });
    let shapers = ends.iter().take(1).filter_map(|(side, host)| {
        let interface = host.interface.clone();
        let bps = host.shaper_bps? * payload;
        Some((SignKind::DisciplinePasses { interface, side: *side }, bps, Cause::Shaper))
    });
    let stated =
        evidence.stated_bps.map(|bps| (SignKind::StatedLinkCarries, bps * payload, Cause::Link));
    let lowest = speeds.chain(shapers).chain(stated).min_by(|a, b| a.1.total_cmp(&b.1))?;
    let (kind, bps, cause) = lowest;
    let least = if cause == Cause::Shaper { STAYS_FULL } else { 0.9 };
    let reached = share_of(evidence.steady_bps(), Some(bps)).filter(|share| *share >= least)?;
    let signs =
        vec![Sign::figure(kind, bps), Sign::at_least(SignKind::RateOverThat, reached, least)];
    let confidence = if reached >= AT_CEILING { Confidence::High } else { Confidence::Medium };
    let remedy = match cause {
        Cause::Shaper => remedy::own_shaper(evidence),
        _ => Vec::new(),
    };
    Some(Candidate::new(cause, confidence, signs).allowing(bps).mended_by(remedy))
}

/// IP packet of a full segment: the path's, or a smaller one where segments are kept small.
pub(super) fn packet_bytes(evidence: &Evidence) -> u32 {
    // No path has a smaller MTU than 68 bytes (RFC 791 §3.2).
    let packet = evidence.packet_bytes.filter(|bytes| *bytes >= 68).unwrap_or(1500);
    match evidence.mss_bytes.filter(|mss| *mss > 0) {
        // At most 60 bytes of IPv4 and 60 of TCP, and of these 52 as a rule.
        Some(mss) if mss.saturating_add(120) < packet => mss + 52,
        _ => packet,
    }
}

/// Payload over IP packet of a full segment.
pub(super) fn payload_share(evidence: &Evidence) -> f64 {
    let packet = packet_bytes(evidence);
    let mss = evidence.mss_bytes.filter(|mss| *mss > 0 && *mss < packet).unwrap_or(packet - 52);
    f64::from(mss) / f64::from(packet)
}

/// A bottleneck that is full: a queue stands before it, and the rate keeps to what it delivers. A
/// rate of delivery over the same spans as the rate, or none, proves nothing.
pub(super) fn full_bottleneck(evidence: &Evidence) -> Option<Candidate> {
    let inflation = evidence.inflation().filter(|times| *times >= QUEUE)?;
    let added = evidence.rtt.loaded_s? - evidence.rtt.base_s?;
    let delivery = evidence.rate.delivery_bps?;
    let full =
        share_of(evidence.steady_bps(), Some(delivery)).filter(|share| *share >= STAYS_FULL)?;
    // Of one flow the rate is not above what was delivered: then one of the two is another's.
    let apart = evidence.flows <= 1 && full > DELIVERY_APART;
    if added < QUEUE_S || apart || below_capacity(evidence) || keeps_window_full(evidence) {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::Inflation, inflation, QUEUE),
        Sign::at_least(SignKind::RateOverDelivery, full, STAYS_FULL),
    ];
    // Of several flows the sender's rate of delivery is that of one.
    let bps = if evidence.flows > 1 { evidence.steady_bps()? } else { delivery };
    Some(link_candidate(evidence, bps, signs))
}

/// True for a flow that keeps its window full on a path of which nothing else was measured: the
/// queue that stands may then be that of others.
fn keeps_window_full(evidence: &Evidence) -> bool {
    let full = share_of(evidence.flight_bytes(), evidence.offered_bytes());
    !evidence.rtt.base_is_idle && full.is_some_and(|full| full >= WINDOW_FULL)
}

/// A queue stands on the path, and nothing that was seen tells whose it is: the flow's own, before
/// a link that it fills, or that of others.
pub(super) fn standing_queue(evidence: &Evidence) -> Option<(Vec<Sign>, Vec<Cause>)> {
    let times = evidence.inflation().filter(|times| *times > NO_QUEUE)?;
    // Less is what hosts do on a short path.
    if evidence.rtt.loaded_s? - evidence.rtt.base_s? < QUEUE_S {
        return None;
    }
    let name = SignKind::InflationOverLeast;
    let mut signs = vec![Sign::at_least(name, times, NO_QUEUE)];
    let mut between = vec![Cause::Link, Cause::Shaper, Cause::OtherTraffic];
    if keeps_window_full(evidence) {
        let full = share_of(evidence.flight_bytes(), evidence.offered_bytes())?;
        signs.push(Sign::at_least(SignKind::FlightOverWindow, full, WINDOW_FULL));
        between.insert(0, Cause::ReceiveWindow);
    }
    Some((signs, between))
}

/// True when trains passed faster than the flow: the flow does not fill a link.
pub(super) fn below_capacity(evidence: &Evidence) -> bool {
    let allowed = evidence.capacity_bps.map(|bps| bps * payload_share(evidence));
    share_of(evidence.steady_bps(), allowed).is_some_and(|reached| reached < 0.8)
}

/// True when one flow reaches the rate at which trains leave the bottleneck.
pub(super) fn fills_the_link(evidence: &Evidence) -> bool {
    let allowed = evidence.capacity_bps.map(|bps| bps * payload_share(evidence));
    let reached = share_of(evidence.steady_bps(), allowed);
    reached.is_some_and(|reached| (FILLS.0..=FILLS.1).contains(&reached))
}

/// BBR keeps no queue: its rate is what its own model found, where few segments were sent again
/// and neither window holds it.
pub(super) fn bbr_found(evidence: &Evidence) -> Option<Candidate> {
    if evidence.loss.response != Some(Response::Bbr) || below_capacity(evidence) {
        return None;
    }
    let delivery = evidence.rate.delivery_bps?;
    let full = share_of(evidence.steady_bps(), Some(delivery)).filter(|share| *share >= 0.9)?;
    let ratio = evidence.loss.ratio.filter(|ratio| *ratio <= BBR_LOSS_MAX)?;
    let room = share_of(evidence.flight_bytes(), evidence.window.cwnd_bytes)
        .filter(|share| *share < 0.9)?;
    let signs = vec![
        Sign::at_least(SignKind::RateOverDelivery, full, 0.9),
        Sign::at_most(SignKind::SegmentsAgain, ratio, BBR_LOSS_MAX),
        Sign::at_most(SignKind::FlightOverCwnd, room, 0.9),
    ];
    Some(link_candidate(evidence, delivery, signs))
}

/// The bottleneck's own rate, with what it looks like.
fn link_candidate(evidence: &Evidence, bps: f64, signs: Vec<Sign>) -> Candidate {
    let mut candidate = Candidate::new(Cause::Link, Confidence::Medium, signs).allowing(bps);
    candidate.notes.extend(fall_back(evidence, bps));
    candidate
}

/// The payload rate of a slower Ethernet than the hosts' own interfaces: a link that fell back.
fn fall_back(evidence: &Evidence, bps: f64) -> Option<Note> {
    let packet = f64::from(evidence.packet_bytes.unwrap_or(1500));
    let mss = f64::from(evidence.mss_bytes?);
    let [ten, hundred] = [10e6, 100e6].map(|line: f64| line * mss / (packet + 38.0));
    let faster = |line: f64| {
        let speeds = [evidence.sender.speed_bps, evidence.receiver.speed_bps];
        speeds.into_iter().flatten().all(|speed| speed > line)
    };
    let is = |line: f64, rate: f64| (bps / rate - 1.0).abs() < 0.01 && faster(line);
    let slower = |mbits_per_s| Some(Note::SlowerEthernet { mbits_per_s });
    if is(10e6, ten) {
        slower(10)
    } else if is(100e6, hundred) {
        slower(100)
    } else {
        None
    }
}

/// Nothing moved, though the connection opened: full packets vanish, or the window was rewritten.
pub(super) fn nothing_moved(evidence: &Evidence) -> Option<Candidate> {
    let moved = evidence.rate.bytes.unwrap_or(0.0);
    if moved >= NOTHING_BYTES || evidence.asked.bytes.is_some_and(|asked| asked < 100_000) {
        return None;
    }
    if let Some(why) = super::ends::changed_window(evidence) {
        let signs = vec![Sign::at_most(SignKind::PayloadArrived, moved, NOTHING_BYTES)];
        let mut candidate = Candidate::new(Cause::Middlebox, Confidence::High, signs);
        candidate.notes.push(why);
        return Some(candidate.mended_by(remedy::receive_window(evidence)));
    }
    let timeouts = evidence.loss.timeouts.unwrap_or(0.0);
    let answered = evidence.probes.lost.filter(|lost| *lost < 0.5)?;
    let mut signs = vec![
        Sign::at_most(SignKind::PayloadArrived, moved, NOTHING_BYTES),
        Sign::at_most(SignKind::ProbesLostMeanwhile, answered, 0.5),
    ];
    if timeouts >= 1.0 {
        signs.push(Sign::at_least(SignKind::RetransmitTimeouts, timeouts, 1.0));
    }
    let candidate = Candidate::new(Cause::MtuBlackHole, Confidence::Medium, signs);
    Some(candidate.mended_by(remedy::black_hole()))
}

/// Time-outs that ended when segments became smaller (RFC 4821).
pub(super) fn smaller_segments(evidence: &Evidence) -> Option<Candidate> {
    let probing = evidence.sender.mtu_probing.filter(|setting| *setting > 0)?;
    let agreed = evidence.syn.arrived.and_then(|syn| syn.mss_bytes).map(f64::from)?;
    let used = f64::from(evidence.mss_bytes?);
    let timeouts = evidence.loss.timeouts.filter(|count| *count >= 2.0)?;
    if used > 0.95 * agreed || evidence.asked.mss_bytes.is_some() {
        return None;
    }
    let signs = vec![
        Sign::at_most(SignKind::SegmentSizeUsed, used, 0.95 * agreed),
        Sign::at_least(SignKind::RetransmitTimeouts, timeouts, 2.0),
        Sign::figure(SignKind::MtuProbing, probing as f64),
    ];
    let candidate = Candidate::new(Cause::MtuBlackHole, Confidence::Medium, signs);
    Some(candidate.mended_by(remedy::black_hole()))
}

/// Interruptions: probes went unanswered in long stretches.
pub(super) fn outages(evidence: &Evidence) -> Option<Candidate> {
    let (count, longest) = evidence.probes.gaps.filter(|(_, longest)| *longest >= GAP_S)?;
    let of_time = count as f64 * longest / evidence.rate.span_s?;
    // Probes can be refused while data flows: a flow without a time-out whose rate stood all the
    // while saw no outage.
    let stood = share_of(evidence.steady_bps(), evidence.rate.delivery_bps);
    let unharmed =
        evidence.loss.timeouts == Some(0.0) && stood.is_some_and(|share| share >= STAYS_FULL);
    if of_time < GAP_SHARE || unharmed {
        return None;
    }
    let mut signs = vec![
        Sign::at_least(SignKind::ProbeGaps, count as f64, 1.0),
        Sign::at_least(SignKind::LongestGap, longest * 1e9, GAP_S * 1e9),
    ];
    signs.extend(evidence.loss.timeouts.map(|timeouts| Sign::figure(SignKind::Timeouts, timeouts)));
    Some(Candidate::new(Cause::Outages, Confidence::Medium, signs).mended_by(remedy::outages()))
}

/// The way back: the load delays acknowledgements, not data.
pub(super) fn ack_path(evidence: &Evidence) -> Option<Candidate> {
    let back = evidence.probes.added_back_s.filter(|added| *added >= BACK_S)?;
    let forward = evidence.probes.added_forward_s?.max(0.0);
    let base = evidence.rtt.base_s?;
    // A flow that has all of its link is held by that, whatever its acknowledgments wait for.
    if back < BACK_OVER_FORWARD * forward || back < 0.2 * base || fills_the_link(evidence) {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::DelayAddedBack, back * 1e9, BACK_S * 1e9),
        Sign::at_most(SignKind::DelayAddedForward, forward * 1e9, back * 5e8),
    ];
    // Of a test of both ways at once the other way's own load is there too.
    let confidence = if evidence.asked.both_ways { Confidence::Medium } else { Confidence::High };
    Some(Candidate::new(Cause::AckPath, confidence, signs).mended_by(remedy::ack_path()))
}

/// Order that TCP takes for loss: most retransmissions were not needed.
pub(super) fn reordering(evidence: &Evidence) -> Option<Candidate> {
    let again = evidence.loss.retransmits.filter(|count| *count >= 10.0)?;
    evidence.inflation_without_queue()?;
    let needless =
        share_of(evidence.loss.needless, Some(again)).filter(|share| *share >= NEEDLESS)?;
    let signs = vec![Sign::at_least(SignKind::RetransmitsNeedless, needless, NEEDLESS)];
    Some(
        Candidate::new(Cause::Reordering, Confidence::Medium, signs)
            .mended_by(remedy::reordering()),
    )
}

/// Losses are repaired one round trip each: both hosts have SACK, and the connection does not.
pub(super) fn sack_stripped(evidence: &Evidence) -> Option<Candidate> {
    let agreed = evidence.syn.sender_agreed?.sack;
    let both = evidence.sender.sack == Some(true) && evidence.receiver.sack == Some(true);
    let ratio = evidence.loss.ratio.filter(|ratio| *ratio >= 1e-3)?;
    if agreed || !both {
        return None;
    }
    let signs = vec![Sign::at_least(SignKind::SegmentsAgain, ratio, 1e-3)];
    let mut candidate = Candidate::new(Cause::Middlebox, Confidence::Medium, signs);
    let removed_from = evidence.removed(TcpOption::Sack);
    candidate.notes.push(Note::SackLost { removed_from });
    Some(candidate.mended_by(vec![RemedyLine::on_path(PathAdvice::KeepSack)]))
}

/// Losses without a queue, which TCP's own counters cannot tell apart: random loss, a policer, a
/// small buffer and a packet rate gave 5.5 to 30 Mbit/s with 0.2 to 0.8 % at the same round trip.
pub(super) fn unexplained_loss(evidence: &Evidence) -> Option<(Vec<Sign>, Vec<Cause>)> {
    let ratio = evidence.loss.ratio.filter(|ratio| *ratio >= LOSSY)?;
    evidence.loss.retransmits.filter(|count| *count >= LOSSES_MIN)?;
    let mut signs = vec![Sign::at_least(SignKind::SegmentsAgain, ratio, LOSSY)];
    let mut between =
        vec![Cause::RandomLoss, Cause::Policer, Cause::SmallBuffer, Cause::PacketRate];
    let queue = evidence.inflation().is_some_and(|times| times > NO_QUEUE);
    match evidence.inflation_without_queue() {
        Some(times) => {
            let name = SignKind::Inflation;
            signs.push(Sign::at_most(name, times, NO_QUEUE));
        }
        // A queue or none: without round trips a full link is among them.
        None if queue => return None,
        None => between.insert(0, Cause::Link),
    }
    if evidence.loss.response != Some(Response::Bbr) {
        between.push(Cause::OtherTraffic);
    }
    Some((signs, between))
}

/// A steady rate that is what an Ethernet of the usual speeds carries, where round trips are not
/// known that would show its queue.
pub(super) fn fingerprint(evidence: &Evidence) -> Option<Candidate> {
    // Without a loss the window of a flow that fills a link grows.
    let held = held_by_an_end(evidence).is_some();
    if evidence.rtt.base_is_idle || held || below_capacity(evidence) {
        return None;
    }
    let (rate, line) = (evidence.steady_bps()?, ethernet(evidence)?);
    let signs = vec![
        Sign::figure(SignKind::EthernetCarries, line),
        Sign::at_least(SignKind::RateOverThat, rate / line, 0.994),
    ];
    Some(link_candidate(evidence, line, signs))
}

/// Payload of the Ethernet whose rate a flow has.
fn ethernet(evidence: &Evidence) -> Option<f64> {
    let rate = evidence.steady_bps()?;
    let mss = f64::from(evidence.mss_bytes.unwrap_or(1448));
    let packet = f64::from(evidence.packet_bytes.unwrap_or(1500));
    let lines = [10e6, 100e6, 1e9, 2.5e9, 10e9, 25e9];
    let payload = lines.into_iter().map(|line| line * mss / (packet + 38.0));
    payload.into_iter().find(|bps| (rate / bps - 1.0).abs() < 0.006)
}

/// Neither losses nor a queue nor the congestion window hold the sender: an end does, and what was
/// seen does not tell which.
pub(super) fn held_by_an_end(evidence: &Evidence) -> Option<(Vec<Sign>, Vec<Cause>)> {
    let again = evidence.loss.ratio.filter(|ratio| *ratio < LOSSY)?;
    let mut signs = vec![Sign::at_most(SignKind::SegmentsAgain, again, LOSSY)];
    if let Some(times) = evidence.inflation() {
        let held = share_of(evidence.flight_bytes(), evidence.window.cwnd_bytes)?;
        if times > NO_QUEUE || held >= 0.8 {
            return None;
        }
        signs.push(Sign::at_most(SignKind::FlightOverCwnd, held, 0.8));
        signs.push(Sign::at_most(SignKind::InflationOverLeast, times, NO_QUEUE));
    } else {
        // A congestion window that stands still without losses is not what holds the sender.
        let (first, last) = evidence.window.cwnd_ends.filter(|ends| ends.0 > 0.0)?;
        if last > 1.05 * first {
            return None;
        }
        signs.push(Sign::at_most(SignKind::CwndGrowth, last / first, 1.05));
    }
    let mut between = vec![Cause::SendBuffer, Cause::SendingApplication, Cause::ReceivingHost];
    // A window that was seen is ruled out where what was in flight is known.
    if evidence.window.offered_bytes.is_none() || evidence.flight_bytes().is_none() {
        between.insert(0, Cause::ReceiveWindow);
    }
    // A sender that its own queue holds back grows no window either.
    if ethernet(evidence).is_some() {
        between.push(Cause::Link);
    }
    Some((signs, between))
}

/// Hardly anything moves and the congestion window is a segment or two: full segments vanish, by
/// their size or by a fault of offloading.
pub(super) fn starved(evidence: &Evidence) -> Option<(Vec<Sign>, Vec<Cause>)> {
    let rates = &evidence.rate.intervals_bps;
    let still = rates.iter().filter(|bps| **bps == 0.0).count();
    let again = evidence.loss.retransmits.filter(|count| *count >= 1.0)?;
    if rates.len() < 4 || still * 3 < rates.len() {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::StillIntervals, still as f64, 2.0),
        Sign::at_least(SignKind::SegmentsAgainCount, again, 1.0),
    ];
    Some((signs, vec![Cause::MtuBlackHole, Cause::Offload, Cause::Outages]))
}
