//! What a TCP flow meets and one-way probes of its rate do not: loss at random takes the same share
//! of both, so that what is left depends on the other way, on the flow, or on its protocol.

use super::candidate::{Candidate, share_of};
use super::evidence::{Evidence, NO_QUEUE};
use super::mechanism::Findings;
use super::path::{LOSSY, payload_share};
use super::remedy;
use crate::record::{Cause, Confidence, Note, PathAdvice, RemedyLine, Sign, SignKind};
use crate::theory::ladder::Response;

/// Losses that probes would have, were each packet as likely to be lost as the flow's: six bursts
/// of five, so that none at all is seen once in four hundred times.
const EXPECTED_MIN: f64 = 30.0;
/// Probes lost over those: no more than this refutes loss at random.
const FOUND_MOST: f64 = 0.2;
/// Losses with the other way busy that say something, and the share of packets.
const BESIDE_MIN: u64 = 8;
const BESIDE_SHARE: f64 = 0.01;
/// Tenths of the time in which some of them are.
const TENTHS_MIN: u32 = 4;
/// The share lost alone over that.
const ALONE_SHARE: f64 = 0.1;
/// A queue of so many packets is no mismatch: what it drops is too much for the path.
const BESIDE_QUEUE: f64 = 20.0;
/// Packets that overtake one, of those that a sender takes for lost, and the share of late ones.
const DUPLICATES: u64 = 3;
const LATE_SHARE: f64 = 0.005;
/// Segments sent again of a flow that a meter holds: it drops what a window has above the rate.
const METER_LOSS: f64 = 0.02;
/// Rate over what losses at random of that ratio would leave.
const ABOVE_RANDOM: f64 = 2.5;
/// Standard deviation of the rate over its mean, of stretches of ten round trips.
const EVEN: f64 = 0.08;
/// Stretches for that, and the least length of one in seconds.
const STRETCHES_MIN: usize = 3;
const STRETCH_ROUNDS: f64 = 10.0;
const STRETCH_S: f64 = 0.25;
/// Share of a transfer that counts as its start: slow start, a full bucket, a quota.
const START_SHARE: f64 = 0.4;

/// True when probes at loads that pass lost too few packets for random loss to be the flow's.
pub(super) fn refutes_random(evidence: &Evidence, sent: u64, lost: u64) -> bool {
    let needless = evidence.loss.needless.unwrap_or(0.0);
    let again = evidence.loss.retransmits.unwrap_or(0.0);
    let of_flow = evidence.loss.ratio.unwrap_or(0.0) * (1.0 - needless / again.max(1.0)).max(0.0);
    let expected = of_flow * sent as f64;
    expected >= EXPECTED_MIN && lost as f64 <= FOUND_MOST * expected
}

/// Packets that pass one way are lost while the other way is busy, and no queue stands.
pub(super) fn duplex_mismatch(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let both = found.both_ways.filter(|both| both.lost >= BESIDE_MIN)?;
    let again = evidence.loss.ratio.filter(|again| *again >= LOSSY)?;
    let beside = share_of(Some(both.lost as f64), Some(both.sent as f64))?;
    let alone = share_of(Some(both.alone_lost as f64), Some(both.alone_sent as f64))?;
    let queue_ns = BESIDE_QUEUE * found.packet_ns(1500.0)?;
    // Collisions come all the time; what stood still for a moment lost in that moment.
    if both.tenths_with_loss < TENTHS_MIN {
        return None;
    }
    if beside < BESIDE_SHARE || alone > ALONE_SHARE * beside || both.delay_ns > queue_ns {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::ProbesLostBothWays, beside, BESIDE_SHARE),
        Sign::at_most(SignKind::ProbesLostOneWay, alone, ALONE_SHARE * beside),
        Sign::at_least(SignKind::SegmentsAgain, again, LOSSY),
    ];
    let remedy = vec![RemedyLine::on_path(PathAdvice::SameDuplex)];
    Some(Candidate::new(Cause::DuplexMismatch, Confidence::High, signs).mended_by(remedy))
}

/// The flow sends again, no probe is lost, and probes are overtaken by more packets than a sender
/// without RACK waits for (RFC 5681: three duplicates).
pub(super) fn reordered(evidence: &Evidence, found: &Findings, lost: u64) -> Option<Candidate> {
    let order = found.reordering;
    let late = share_of(Some(order.reordered as f64), Some(order.arrived as f64))?;
    let overtaken = order.extent_packets >= DUPLICATES && late >= LATE_SHARE;
    let again = evidence.loss.ratio?;
    if lost > 0 || !overtaken {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::ProbesLate, late, LATE_SHARE),
        Sign::at_least(SignKind::PacketsOvertaking, order.extent_packets as f64, 3.0),
        Sign::figure(SignKind::SegmentsAgain, again),
        Sign::figure(SignKind::ProbesLost, lost as f64),
    ];
    Some(
        Candidate::new(Cause::Reordering, Confidence::Medium, signs)
            .mended_by(remedy::reordering()),
    )
}

/// A flow alone shows a meter: no queue, and a rate that is even while much is lost, far above what
/// losses at random of that share would leave. The meter is the clock: what passes is its rate.
/// (On policers in traces of servers: Flach and others 2016, "An Internet-Wide Analysis of Traffic
/// Policing"; the thresholds here are not theirs.)
pub(super) fn metered(evidence: &Evidence) -> Option<Candidate> {
    let again = evidence.loss.ratio.filter(|again| *again >= METER_LOSS)?;
    let inflation = evidence.inflation_without_queue()?;
    if !matches!(evidence.loss.response, Some(Response::Cubic | Response::Reno)) {
        return None;
    }
    let (rate, spread) = stretches(evidence)?;
    let random = random_bps(evidence, again)?;
    let above = share_of(Some(rate), Some(random)).filter(|above| *above >= ABOVE_RANDOM)?;
    if spread > EVEN {
        return None;
    }
    let signs = vec![
        Sign::at_least(SignKind::SegmentsAgain, again, METER_LOSS),
        Sign::at_most(SignKind::Inflation, inflation, NO_QUEUE),
        Sign::at_most(SignKind::RateSpread, spread, EVEN),
        Sign::at_least(SignKind::RateOverRandomLoss, above, ABOVE_RANDOM),
    ];
    let mut candidate = Candidate::new(Cause::Policer, Confidence::Medium, signs).allowing(rate);
    if evidence.trains.as_ref().is_some_and(|found| passes_more(found, rate)) {
        candidate.notes.push(Note::HeldForTcp);
    }
    Some(candidate.mended_by(remedy::policer(evidence, rate, rate / payload_share(evidence))))
}

fn passes_more(found: &Findings, rate: f64) -> bool {
    found.loads.iter().any(|load| load.passes() && load.offered_bps > 1.5 * rate)
}

/// Reno's rate for losses at random (Mathis and others 1997): (MSS / RTT) sqrt(3 / 2 p). CUBIC's is
/// the same or a little above it for windows of so many losses (RFC 9438, section 5.1).
fn random_bps(evidence: &Evidence, ratio: f64) -> Option<f64> {
    let mss = f64::from(evidence.mss_bytes.filter(|mss| *mss > 0)?);
    let rtt = evidence.rtt.loaded_s.filter(|rtt| *rtt > 0.0)?;
    Some(8.0 * mss / rtt * (1.5 / ratio).sqrt())
}

/// The median rate of stretches of ten round trips once the start was over, and their standard
/// deviation over the mean.
fn stretches(evidence: &Evidence) -> Option<(f64, f64)> {
    let rates = &evidence.rate.intervals_bps;
    let interval = evidence.rate.interval_s.filter(|interval| *interval > 0.0)?;
    let length = (STRETCH_ROUNDS * evidence.rtt.loaded_s?).max(STRETCH_S);
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small, positive")]
    let (start, size) =
        ((rates.len() as f64 * START_SHARE) as usize, (length / interval).ceil().max(1.0) as usize);
    let late = rates.get(start..)?.chunks_exact(size);
    let mut means: Vec<f64> =
        late.map(|part| part.iter().sum::<f64>() / part.len() as f64).collect();
    if means.len() < STRETCHES_MIN {
        return None;
    }
    let mean = means.iter().sum::<f64>() / means.len() as f64;
    let squares: f64 = means.iter().map(|rate| (rate - mean) * (rate - mean)).sum();
    means.sort_unstable_by(f64::total_cmp);
    let spread = (squares / means.len() as f64).sqrt() / mean.max(f64::MIN_POSITIVE);
    Some((means[means.len() / 2], spread))
}
