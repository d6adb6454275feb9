//! Causes that trains of probes tell apart, where TCP's own counters cannot.

use super::candidate::{Candidate, share_of};
use super::evidence::{Evidence, NO_QUEUE};
use super::mechanism::{Background, Findings, Overflow, PacedLoad};
use super::path::{LOSSY, below_capacity, packet_bytes, payload_share};
use super::{remedy, unlike};
use crate::record::{
    At, Cause, Confidence, Note, PathAdvice, RemedyCommand, RemedyLine, Sign, SignKind,
};

/// The rate over what a bound allows, of a flow that this bound holds.
const REACHES: f64 = 0.8;
/// And of one that fills it.
const FULL: f64 = 0.9;
/// A flow that loses what a meter drops gets no less than this share of its rate, unless its bucket
/// is of a few packets.
const BELOW: f64 = 0.35;
/// Rates are not measured to more than this.
const PASSES: f64 = 1.1;
/// A buffer below this share of the BDP is small (a Reno flow needs one; RFC 3819 §13).
const SMALL: f64 = 0.15;
/// Short trains leave this much faster than long ones: a bucket lets their bytes pass.
const BUCKET: f64 = 1.33;
/// Growth of the received rate with the offered rate from which on a link is shared with other
/// traffic.
const SHARED: f64 = 1.08;
/// A queue of so many packets stands, where the path would pass the load alone.
const QUEUED_PACKETS: f64 = 5.0;
/// Below this share of the link's rate a load passes it.
const PASSED: f64 = 0.95;
/// Segments below this share of what the path takes were made small.
const CLAMPED: f64 = 0.75;
/// A load that leaves at least a quarter of what passes to nobody.
const BELOW_PASSED: f64 = 0.75;
/// Delays of a queue that stands are so far alike; those of jitter are not.
const STANDS: f64 = 0.25;
/// Trains back to back over what passes for long, of a link that carries others between them.
const MIXED: f64 = 0.85;
/// The rate over what probes pass at, of a flow that gets all of it.
const NEARLY: f64 = 0.95;
/// Delay that a queue which never empties adds, in seconds.
const NEVER_EMPTY_S: f64 = 0.001;

/// Packets sent evenly come so far apart where they are held back, in seconds; and over the least
/// round trip.
const HELD_S: f64 = 0.01;
const HELD_OF_BASE: f64 = 0.5;

/// Cause that the trains show for a rate that no end limits.
pub(super) fn cause_of_trains(evidence: &Evidence) -> Option<Candidate> {
    let found = evidence.trains.as_ref()?;
    packet_rate(evidence, found)
        .or_else(|| mismatched(evidence, found))
        .or_else(|| shared_load(evidence, found))
        .or_else(|| filled_by_others(evidence, found))
        .or_else(|| policer(evidence, found))
        .or_else(|| packet_meter(evidence, found))
        .or_else(|| shaper(evidence, found))
        .or_else(|| own_discipline(evidence, found))
        .or_else(|| unequal_paths(evidence, found))
        .or_else(|| full_link(evidence))
        .or_else(|| random(evidence, found))
        .or_else(|| small_buffer(evidence, found))
}

/// Causes that are left where neither the trains nor the flow itself show one.
pub(super) fn undecided_candidate(evidence: &Evidence) -> Option<Candidate> {
    let found = evidence.trains.as_ref()?;
    random_by_elimination(evidence, found).or_else(|| shared_queue(evidence, found))
}

/// A duplex mismatch, of a flow that is below what the link carries.
fn mismatched(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let (_, got) = reached(evidence, evidence.capacity_bps?)?;
    unlike::duplex_mismatch(evidence, found).filter(|_| got < REACHES)
}

/// Payload that a bound of IP packets allows, and the share of it that was reached.
fn reached(evidence: &Evidence, ip_bps: f64) -> Option<(f64, f64)> {
    let bps = ip_bps * payload_share(evidence);
    Some((bps, share_of(evidence.steady_bps(), Some(bps))?))
}

/// The most that a flow shows of a rate behind a bucket: what was in the bucket comes on top.
fn most_of(evidence: &Evidence, rate_bps: f64, burst_bytes: f64) -> f64 {
    let span = evidence.rate.span_s.filter(|span| *span > 0.0).unwrap_or(1.0);
    PASSES + 8.0 * burst_bytes / (rate_bps * span).max(1.0)
}

/// True when a flow below a policer's rate is limited by the policer: it loses the packets that the
/// policer drops, and nothing else loses any.
fn is_metered(evidence: &Evidence, found: &Findings, reached: f64) -> bool {
    let lossy = evidence.loss.ratio.is_some_and(|ratio| ratio >= LOSSY);
    reached >= BELOW || (lossy && found.background.is_none())
}

fn policer(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let Some(Overflow::Policer { rate_bps, burst_bytes }) = found.overflow else { return None };
    let (bps, reached) = reached(evidence, rate_bps.value)?;
    let most = most_of(evidence, rate_bps.value, burst_bytes.value);
    if reached > most || !is_metered(evidence, found, reached) {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::RateOfMeter, rate_bps.value),
        Sign::figure(SignKind::Bucket, burst_bytes.value),
        Sign::at_most(SignKind::RateOverAllowed, reached, most),
    ];
    let remedy = remedy::policer(evidence, bps, rate_bps.value);
    Some(Candidate::new(Cause::Policer, Confidence::High, signs).allowing(bps).mended_by(remedy))
}

/// Short packets leave no faster than long ones: packets are counted, and the flow gets as many.
fn packet_rate(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    if !found.is_per_packet() {
        return None;
    }
    let bytes = f64::from(packet_bytes(evidence));
    let per_s = 1e9 / found.packet_ns(bytes)?;
    let (bps, reached) = reached(evidence, per_s * bytes * 8.0)?;
    if !(REACHES..=PASSES).contains(&reached) {
        return None;
    }
    let mut signs = vec![
        Sign::figure(SignKind::PacketsLeave, per_s),
        Sign::at_least(SignKind::RateOverAllowed, reached, REACHES),
    ];
    Some(match clamped(evidence, found) {
        Some(more) => {
            signs.extend(more);
            made_small(evidence, signs).allowing(bps)
        }
        None => counted(signs, bps),
    })
}

/// A device that drops packets above a number of them, without a queue.
fn packet_meter(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let Some(Overflow::PacketRate { packets_per_s, depth_packets }) = found.overflow else {
        return None;
    };
    let bytes = f64::from(packet_bytes(evidence));
    let ip_bps = packets_per_s.value * bytes * 8.0;
    let (bps, reached) = reached(evidence, ip_bps)?;
    let most = most_of(evidence, ip_bps, depth_packets.value * bytes);
    if reached > most || !is_metered(evidence, found, reached) {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::PacketsForwarded, packets_per_s.value),
        Sign::figure(SignKind::PacketsAtOnce, depth_packets.value),
        Sign::at_most(SignKind::RateOverAllowed, reached, most),
    ];
    Some(counted(signs, bps))
}

fn counted(signs: Vec<Sign>, bps: f64) -> Candidate {
    let remedy = vec![RemedyLine::on_path(PathAdvice::ForwardMore)];
    let candidate = Candidate::new(Cause::PacketRate, Confidence::High, signs);
    candidate.allowing(bps).mended_by(remedy)
}

/// Segments that something on the way made small, where that costs.
fn clamped(evidence: &Evidence, found: &Findings) -> Option<[Sign; 2]> {
    let packet = f64::from(packet_bytes(evidence));
    let passes = f64::from(evidence.mtu?.ip_bytes);
    if evidence.asked.mss_bytes.is_some() || packet > CLAMPED * passes {
        return None;
    }
    let gain = (passes / found.packet_ns(passes)?) / (packet / found.packet_ns(packet)?);
    (gain > 1.25).then(|| {
        [
            Sign::figure(SignKind::LargestPassing, passes),
            Sign::at_most(SignKind::FlowPackets, packet, CLAMPED * passes),
        ]
    })
}

fn made_small(evidence: &Evidence, signs: Vec<Sign>) -> Candidate {
    let mut candidate = Candidate::new(Cause::Middlebox, Confidence::High, signs);
    let mss_bytes = evidence.mss_bytes.unwrap_or(0);
    candidate.notes.push(Note::SegmentsMadeSmall { mss_bytes });
    candidate.mended_by(vec![RemedyLine::on_path(PathAdvice::LiftClamp)])
}

fn shaper(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let held = found.shaper.as_ref().map(|shaper| (shaper.rate_bps, shaper.burst_bytes));
    let long = found.capacity.first().filter(|long| !long.at_least)?;
    let link = found.link_bps();
    let steady = long.quartiles_bps.high < 1.2 * long.quartiles_bps.low;
    let faster = link.filter(|link| steady && *link > BUCKET * long.bps);
    let (rate, burst) = held.or_else(|| faster.map(|_| (long.bps, 0.0)))?;
    let (bps, reached) = reached(evidence, rate)?;
    let most = most_of(evidence, rate, burst);
    if !(REACHES..=most).contains(&reached) {
        return None;
    }
    let mut signs = vec![
        Sign::figure(SignKind::RatePassing, rate),
        Sign::at_least(SignKind::RateOverAllowed, reached, REACHES),
    ];
    signs.extend(link.map(|bps| Sign::figure(SignKind::ShortTrainRate, bps)));
    let confidence = if held.is_some() { Confidence::High } else { Confidence::Medium };
    Some(Candidate::new(Cause::Shaper, confidence, signs).allowing(bps))
}

/// Trains back to back leave the sender evenly at the rate that TCP reaches: something of its own
/// holds both back before the path does.
fn own_discipline(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let long = found.capacity.first().filter(|long| long.at_least)?;
    let (bps, reached) = reached(evidence, long.bps)?;
    let even = long.quartiles_bps.high < 1.02 * long.quartiles_bps.low;
    let slower = evidence.sender.speed_bps.is_none_or(|speed| speed > BUCKET * long.bps);
    if !even || !slower || !(FULL..=PASSES).contains(&reached) {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::TrainsLeaveSender, bps),
        Sign::at_least(SignKind::RateOverThat, reached, FULL),
    ];
    let candidate = Candidate::new(Cause::Shaper, Confidence::Medium, signs).allowing(bps);
    Some(candidate.mended_by(remedy::own_shaper(evidence)))
}

/// Several flows together pass what one link carries: each has a link of its own.
fn unequal_paths(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let long = found.capacity.first().filter(|long| !long.at_least)?;
    let (bps, reached) = reached(evidence, long.bps)?;
    let together = evidence.together?;
    let times = share_of(Some(together.bps), Some(bps)).filter(|times| *times > BUCKET)?;
    let even = long.quartiles_bps.high < 1.05 * long.quartiles_bps.low;
    if !even || !(REACHES..=PASSES).contains(&reached) || found.shaper.is_some() {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::TrainsLeaveBottleneck, bps),
        Sign::at_least(SignKind::OneFlowOverThat, reached, REACHES),
        Sign::at_least(SignKind::SeveralFlowsOverThat, times, BUCKET),
    ];
    let candidate = Candidate::new(Cause::UnequalPaths, Confidence::Medium, signs).allowing(bps);
    Some(candidate.mended_by(vec![RemedyLine::on_path(PathAdvice::UseSeveralFlows)]))
}

fn full_link(evidence: &Evidence) -> Option<Candidate> {
    let (bps, reached) = reached(evidence, evidence.capacity_bps?)?;
    if !(REACHES..=PASSES).contains(&reached) {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::TrainsLeaveBottleneck, bps),
        Sign::at_least(SignKind::RateOverThat, reached, REACHES),
    ];
    // A member of a trunk, or a share that a fair queue leaves, looks like a link to one flow:
    // several reach more.
    let alone = evidence.together.is_some_and(|together| together.bps <= BUCKET * bps);
    let sure = alone && reached >= FULL;
    let confidence = if sure { Confidence::High } else { Confidence::Medium };
    Some(Candidate::new(Cause::Link, confidence, signs).allowing(bps))
}

/// Probes below the link's rate do not all pass, and of more of them more pass: others send too. A
/// shaper and a policer pass the same of every load.
fn shared_load(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let capacity = evidence.capacity_bps?;
    let (bps, got) = reached(evidence, capacity)?;
    let mut loads = largest_packet_loads(found).filter(|load| !load.passes());
    let least = loads.next().filter(|load| load.offered_bps < PASSED * capacity)?;
    let top = largest_packet_loads(found).next_back()?;
    // A buffer of a few packets drops what a burst of the sender's brings, and is empty else.
    let queue_ns = QUEUED_PACKETS * found.packet_ns(f64::from(least.ip_bytes))?;
    if least.delay_ns[1] < queue_ns {
        return None;
    }
    let grows = share_of(Some(top.received_bps), Some(least.received_bps))?;
    if got >= REACHES || grows < SHARED || top.offered_bps < 1.15 * least.offered_bps {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::TrainsLeaveBottleneck, bps),
        Sign::at_most(SignKind::RateOverThat, got, REACHES),
        Sign::figure(SignKind::OfferedBelow, least.offered_bps),
        Sign::figure(SignKind::PassedOfIt, least.received_bps),
        Sign::at_least(SignKind::DelayOfThose, least.delay_ns[1], queue_ns),
        Sign::at_least(SignKind::MorePassedOverThat, grows, SHARED),
    ];
    Some(others(Confidence::High, signs))
}

/// Probes far below what passes wait in a queue that does not empty: what they leave of the link is
/// taken by others, who give way to more.
fn filled_by_others(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let passing = || largest_packet_loads(found).filter(|load| load.passes());
    let passed = passing().map(|load| load.received_bps).fold(0.0, f64::max);
    let packet_ns = found.packet_ns(f64::from(packet_bytes(evidence)))?;
    let stands = |load: &&PacedLoad| {
        let [least, _, most] = load.delay_ns;
        least >= (QUEUED_PACKETS * packet_ns).max(NEVER_EMPTY_S * 1e9) && least >= STANDS * most
    };
    let quiet = passing().find(|load| load.offered_bps <= BELOW_PASSED * passed && stands(load))?;
    let (bps, got) = reached(evidence, passed)?;
    // Packets back to back leave further apart than paced ones for long: others lie between them.
    let between = found.capacity.first().is_some_and(|trains| trains.bps < MIXED * passed);
    if got >= NEARLY || !between {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::LoadPassed, passed),
        Sign::at_most(SignKind::RateOverThat, got, NEARLY),
        Sign::at_most(SignKind::LoadBelow, quiet.offered_bps, BELOW_PASSED * passed),
        Sign::at_least(SignKind::DelayOfMost, quiet.delay_ns[0], 1e6),
    ];
    Some(others(Confidence::Medium, signs).allowing(bps))
}

/// Paced loads of the largest packets, the lowest first.
fn largest_packet_loads(found: &Findings) -> impl DoubleEndedIterator<Item = &PacedLoad> {
    let largest = found.loads.iter().map(|load| load.ip_bytes).max().unwrap_or(0);
    let mut loads: Vec<&PacedLoad> =
        found.loads.iter().filter(|load| load.ip_bytes == largest).collect();
    loads.sort_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps));
    loads.into_iter()
}

/// A queue that never empties keeps its link busy: what the flow does not get, others do.
fn shared_queue(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let (bps, got) = reached(evidence, evidence.capacity_bps?)?;
    // Where more than the flow gets passes without waiting nobody else's packets wait.
    if passes_at_once(evidence, found) {
        return None;
    }
    let added = evidence.rtt.loaded_p10_s? - evidence.rtt.base_s?;
    if !evidence.rtt.base_is_idle || added < NEVER_EMPTY_S.max(0.05 * evidence.rtt.base_s?) {
        return None;
    }
    (got < REACHES).then_some(())?;
    let signs = vec![
        Sign::figure(SignKind::TrainsLeaveBottleneck, bps),
        Sign::at_most(SignKind::RateOverThat, got, REACHES),
        Sign::at_least(SignKind::DelayAlwaysAdded, added * 1e9, NEVER_EMPTY_S * 1e9),
    ];
    Some(others(Confidence::Medium, signs))
}

/// True when a paced load above the flow's rate passes without a queue.
pub(super) fn passes_at_once(evidence: &Evidence, found: &Findings) -> bool {
    let above = evidence.steady_bps().map(|bps| 1.2 * bps / payload_share(evidence));
    let at_once = |load: &PacedLoad| {
        let packet_ns = found.packet_ns(f64::from(load.ip_bytes));
        packet_ns.is_some_and(|ns| load.passes() && load.delay_ns[1] < QUEUED_PACKETS * ns)
    };
    above.is_some_and(|above| {
        largest_packet_loads(found).any(|load| load.offered_bps > above && at_once(load))
    })
}

/// The way back holds packets and lets them go together: acknowledgments come in lumps, each lets a
/// window go at once, and the round trip is as long as the holding. The way of the data is free.
pub(super) fn acks_held(evidence: &Evidence) -> Option<Candidate> {
    let held = evidence.back_held_s.filter(|held| *held >= HELD_S)?;
    let base = evidence.rtt.base_s?;
    let found = evidence.trains.as_ref()?;
    let far = below_capacity(evidence) && passes_at_once(evidence, found);
    if held < HELD_OF_BASE * base || !far {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::WayBackGap, held * 1e9, HELD_S * 1e9),
        Sign::figure(SignKind::RoundTripLeast, base * 1e9),
    ];
    Some(Candidate::new(Cause::AckPath, Confidence::Medium, signs).mended_by(remedy::ack_path()))
}

fn others(confidence: Confidence, signs: Vec<Sign>) -> Candidate {
    let remedy = vec![RemedyLine::on_path(PathAdvice::QueuePerFlow)];
    Candidate::new(Cause::OtherTraffic, confidence, signs).mended_by(remedy)
}

fn random(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let (ratio, burst) = match found.background? {
        Background::Random { ratio } => (ratio.value, None),
        Background::Bursts { ratio, burst_packets } => (ratio.value, Some(burst_packets)),
    };
    let lossy = evidence.loss.ratio.filter(|again| *again >= 0.2 * ratio)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let mut signs = vec![
        Sign::figure(SignKind::ProbesLostAtAnyLoad, ratio),
        Sign::at_least(SignKind::SegmentsAgain, lossy, 0.2 * ratio),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
    ];
    signs.extend(burst.map(|burst| Sign::figure(SignKind::LostInARow, burst)));
    Some(loss_candidate(Confidence::High, signs))
}

/// Losses without a queue of a flow that is far below what loads and trains of probes pass: not a
/// meter, not a device, not a buffer.
fn random_by_elimination(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let lossy = evidence.loss.ratio.filter(|again| *again >= LOSSY)?;
    // The losses of one window are those of one queue that ran over, or of one fault.
    evidence.loss.events.or(evidence.loss.retransmits).filter(|count| *count >= 3.0)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let (_, got) = reached(evidence, evidence.capacity_bps?)?;
    let above = 1.2 * evidence.steady_bps()? / payload_share(evidence);
    let passed =
        largest_packet_loads(found).rfind(|load| load.passes() && load.offered_bps > above)?;
    let first = found.first_lost.first().filter(|first| first.trains >= 3)?;
    if got >= REACHES || first.with_loss * 2 > first.trains {
        return None;
    }
    let below = || largest_packet_loads(found).filter(|load| load.passes());
    let (lost_below, sent) = below().fold((0, 0), |sum, it| (sum.0 + it.lost, sum.1 + it.sent));
    if unlike::refutes_random(evidence, sent, lost_below) {
        return None;
    }
    if let Some(order) = unlike::reordered(evidence, found, lost_below) {
        return Some(order);
    }
    let signs = vec![
        Sign::at_least(SignKind::SegmentsAgain, lossy, LOSSY),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
        Sign::at_least(SignKind::LoadPassed, passed.received_bps, above),
        Sign::figure(SignKind::ProbesLostOfThose, lost_below as f64 / sent.max(1) as f64),
    ];
    Some(loss_candidate(if lost_below >= 2 { Confidence::High } else { Confidence::Medium }, signs))
}

fn loss_candidate(confidence: Confidence, signs: Vec<Sign>) -> Candidate {
    Candidate::new(Cause::RandomLoss, confidence, signs).mended_by(remedy::random_loss())
}

fn small_buffer(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let bytes = match found.overflow? {
        Overflow::ByteBuffer { bytes } => bytes.value,
        Overflow::PacketBuffer { packets } => packets.value * f64::from(packet_bytes(evidence)),
        _ => return None,
    };
    let bdp = evidence.bdp_bytes(evidence.capacity_bps?)?;
    let of_bdp = share_of(Some(bytes), Some(bdp)).filter(|share| *share <= SMALL)?;
    let signs = vec![
        Sign::figure(SignKind::QueueRoom, bytes),
        Sign::at_most(SignKind::RoomOverBdp, of_bdp, SMALL),
    ];
    let mut remedy = remedy::bursts();
    remedy.push(RemedyLine::on_path(PathAdvice::Buffer { bytes: bdp }));
    Some(Candidate::new(Cause::SmallBuffer, Confidence::High, signs).mended_by(remedy))
}

/// Packets that do not leave full: what the search for the path MTU found.
pub(super) fn black_hole(evidence: &Evidence) -> Option<Candidate> {
    let mtu = evidence.mtu.filter(|mtu| mtu.above == crate::record::AboveMtu::Silent)?;
    let segment = evidence.mss_bytes.map_or(1500, |mss| mss + 52);
    let held = mtu.ip_bytes < segment.max(evidence.sender.mtu_bytes.unwrap_or(0));
    let stalled = evidence.rate.bytes.is_none_or(|bytes| bytes < 65_536.0)
        || evidence.loss.timeouts.is_some_and(|count| count >= 2.0);
    if !held || !stalled {
        return None;
    }
    let signs = vec![
        Sign::figure(SignKind::LargestPassing, f64::from(mtu.ip_bytes)),
        Sign::figure(SignKind::FullSegmentPackets, f64::from(segment)),
    ];
    let mss_bytes = mtu.ip_bytes.saturating_sub(40);
    let mut remedy = remedy::black_hole();
    remedy.push(RemedyLine::command(At::Path, RemedyCommand::ClampSegments { mss_bytes }));
    Some(Candidate::new(Cause::MtuBlackHole, Confidence::High, signs).mended_by(remedy))
}
