//! Causes that trains of probes tell apart, where TCP's own counters cannot.

use super::candidate::{Candidate, share};
use super::ends::NO_QUEUE;
use super::evidence::Evidence;
use super::mechanism::{Background, Findings, Overflow};
use super::path::payload_share;
use super::remedy;
use crate::record::{At, Cause, Confidence, RemedyLine, Sign};

/// The rate over what a bound allows, of a flow that this bound holds.
const REACHES: f64 = 0.8;
/// A flow below this share of a bound is held by something else, or by the losses that it makes.
const BELOW: f64 = 0.35;
/// And it does not pass the bound by more than this.
const PASSES: f64 = 1.15;
/// A buffer below this share of the BDP is small (a Reno flow needs one; RFC 3819 §13).
const SMALL: f64 = 0.15;

/// What the trains explain of a rate that no end holds.
pub(super) fn explained(evidence: &Evidence) -> Option<Candidate> {
    let found = evidence.trains.as_ref()?;
    policer(evidence, found)
        .or_else(|| packet_rate(evidence, found))
        .or_else(|| shaper(evidence, found))
        .or_else(|| full_link(evidence))
        .or_else(|| random(evidence, found))
        .or_else(|| small_buffer(evidence, found))
}

/// Payload that a bound of IP packets allows, and the share of it that was reached.
fn reached(evidence: &Evidence, ip_bps: f64) -> Option<(f64, f64)> {
    let bps = ip_bps * payload_share(evidence);
    Some((bps, share(evidence.steady_bps(), Some(bps))?))
}

fn policer(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let Some(Overflow::Policer { rate_bps, burst_bytes }) = found.overflow else { return None };
    let (bps, reached) = reached(evidence, rate_bps.value)?;
    if !(BELOW..=PASSES).contains(&reached) {
        return None;
    }
    let signs = vec![
        Sign::figure("rate that probes passed above, without a queue", rate_bps.value, "bit/s"),
        Sign::figure("its bucket", burst_bytes.value, "bytes"),
        Sign::at_most("rate over what that allows", reached, PASSES, "1"),
    ];
    let pace = format!("tc qdisc replace dev DEV root fq maxrate {:.0}kbit", bps * 0.95 / 1e3);
    let needs = evidence.rtt.base_s.map_or(0.0, |rtt| rate_bps.value * rtt / 8.0);
    let asks = format!(
        "ask for the contract's rate and burst: a burst of {needs:.0} bytes lets one flow fill it"
    );
    let remedy = vec![RemedyLine::command(At::Sender, pace), RemedyLine::advice(At::Path, asks)];
    Some(Candidate::new(Cause::Policer, Confidence::High, signs).allowing(bps).mended_by(remedy))
}

fn packet_rate(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let Some(Overflow::PacketRate { packets_per_s, .. }) = found.overflow else { return None };
    let bytes = f64::from(evidence.packet_bytes.unwrap_or(1500));
    let (bps, reached) = reached(evidence, packets_per_s.value * bytes * 8.0)?;
    if !(BELOW..=PASSES).contains(&reached) {
        return None;
    }
    let signs = vec![
        Sign::figure("packets that a device forwards", packets_per_s.value, "packets/s"),
        Sign::at_most("rate over what that allows", reached, PASSES, "1"),
    ];
    let text = "larger packets, or a device, a rule set or an offload that forwards more of them";
    let remedy = vec![RemedyLine::advice(At::Path, text)];
    let candidate = Candidate::new(Cause::PacketRate, Confidence::High, signs);
    Some(candidate.allowing(bps).mended_by(remedy))
}

fn shaper(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    found.shaper.as_ref()?;
    let sustained = found.sustained_bps?;
    let (bps, reached) = reached(evidence, sustained)?;
    if !(REACHES..=PASSES).contains(&reached) {
        return None;
    }
    let mut signs = vec![
        Sign::figure("rate that passes for long", sustained, "bit/s"),
        Sign::at_least("rate over what that allows", reached, REACHES, "1"),
    ];
    let line = evidence.capacity_bps.map(|bps| Sign::figure("rate of a short train", bps, "bit/s"));
    signs.extend(line);
    Some(Candidate::new(Cause::Shaper, Confidence::High, signs).allowing(bps))
}

fn full_link(evidence: &Evidence) -> Option<Candidate> {
    let (bps, reached) = reached(evidence, evidence.capacity_bps?)?;
    if !(REACHES..=PASSES).contains(&reached) {
        return None;
    }
    let signs = vec![
        Sign::figure("rate at which trains leave the bottleneck", bps, "bit/s"),
        Sign::at_least("rate over that", reached, REACHES, "1"),
    ];
    let confidence = if reached >= 0.9 { Confidence::High } else { Confidence::Medium };
    Some(Candidate::new(Cause::Link, confidence, signs).allowing(bps))
}

fn random(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let (ratio, burst) = match found.background? {
        Background::Random { ratio } => (ratio.value, None),
        Background::Bursts { ratio, burst_packets } => (ratio.value, Some(burst_packets)),
    };
    let lossy = evidence.loss.ratio.filter(|again| *again >= 0.2 * ratio)?;
    let inflation = evidence.inflation().filter(|times| *times <= NO_QUEUE)?;
    let mut signs = vec![
        Sign::figure("probes lost at any load", ratio, "1"),
        Sign::at_least("segments sent again", lossy, 0.2 * ratio, "1"),
        Sign::at_most("round trip under load over that at rest", inflation, NO_QUEUE, "1"),
    ];
    signs.extend(burst.map(|burst| Sign::figure("packets lost in a row", burst, "packets")));
    let candidate = Candidate::new(Cause::RandomLoss, Confidence::High, signs);
    Some(candidate.mended_by(remedy::random_loss()))
}

fn small_buffer(evidence: &Evidence, found: &Findings) -> Option<Candidate> {
    let bytes = match found.overflow? {
        Overflow::ByteBuffer { bytes } => bytes.value,
        Overflow::PacketBuffer { packets } => {
            packets.value * f64::from(evidence.packet_bytes.unwrap_or(1500))
        }
        _ => return None,
    };
    let bdp = evidence.bdp_bytes(evidence.capacity_bps?)?;
    let of_bdp = share(Some(bytes), Some(bdp)).filter(|it| *it <= SMALL)?;
    let signs = vec![
        Sign::figure("room of the queue", bytes, "bytes"),
        Sign::at_most("that over the bandwidth-delay product", of_bdp, SMALL, "1"),
    ];
    let room = format!("a buffer of {bdp:.0} bytes at the bottleneck, for one flow");
    let mut remedy = remedy::bursts();
    remedy.push(RemedyLine::advice(At::Path, room));
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
        Sign::figure("largest packet that passes", f64::from(mtu.ip_bytes), "bytes"),
        Sign::figure("packets of a full segment", f64::from(segment), "bytes"),
    ];
    let mss = mtu.ip_bytes.saturating_sub(40);
    let clamp =
        format!("nft add rule ip filter forward tcp flags syn tcp option maxseg size set {mss}");
    let mut remedy = remedy::black_hole();
    remedy.push(RemedyLine::command(At::Path, clamp));
    Some(Candidate::new(Cause::MtuBlackHole, Confidence::High, signs).mended_by(remedy))
}
