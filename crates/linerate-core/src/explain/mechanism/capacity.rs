//! Rates of the path: how fast packets leave the bottleneck back to back, and what passes for long.
//!
//! Packets sent back to back leave a bottleneck one after the other. A receiver gives several the
//! same stamp when it is woken once for them, and stalls at times: half a train at a time is looked
//! at, and the median of all halves taken.

use super::fates::Fates;
use super::state::LINK_BYTES;
use super::{Capacity, PacedLoad};
use crate::stats::Interval;

/// Arrivals of a train that it takes.
const ARRIVALS_MIN: usize = 4;
/// Arrivals this much slower than the packets were sent, or less, are the sender's rate.
const SENDER_SHARE: f64 = 1.1;
/// Share of the offered rate below which the received rate shows overload.
const OVERLOADED_BELOW: f64 = 0.95;

/// The rate for each size of packets that trains back to back were sent of, the largest first.
pub(super) fn by_size(fates: &Fates) -> Vec<Capacity> {
    fates.packet_sizes().into_iter().filter_map(|ip_bytes| of_size(fates, ip_bytes)).collect()
}

fn of_size(fates: &Fates, ip_bytes: u32) -> Option<Capacity> {
    let (mut gaps, mut sent_gaps) = (Vec::new(), Vec::new());
    for run in fates.back_to_back(ip_bytes) {
        let probes = fates.probes_of(run);
        let mut arrivals: Vec<f64> =
            probes.iter().filter_map(|probe| Some(probe.at + probe.delay?)).collect();
        if arrivals.len() < ARRIVALS_MIN {
            continue;
        }
        arrivals.sort_unstable_by(f64::total_cmp);
        let half = arrivals.len() / 2;
        let gap = |window: &[f64]| (window[half] - window[0]) / half as f64;
        gaps.extend(arrivals.windows(half + 1).map(gap).filter(|gap| *gap > 0.0));
        let (first, last) = (probes.first()?.at, probes.last()?.at);
        sent_gaps.push((last - first) / (probes.len() - 1) as f64);
    }
    gaps.sort_unstable_by(f64::total_cmp);
    sent_gaps.sort_unstable_by(f64::total_cmp);
    let bps = |share: f64| Some(f64::from(ip_bytes) * 8e9 / quantile(&gaps, share)?);
    Some(Capacity {
        ip_bytes,
        bps: bps(0.5)?,
        quartiles_bps: Interval { low: bps(0.75)?, high: bps(0.25)? },
        at_least: quantile(&gaps, 0.5)? <= SENDER_SHARE * quantile(&sent_gaps, 0.5)?,
    })
}

/// Rate received at the highest load of the largest packets, if more was offered than passes.
pub(super) fn sustained(loads: &[PacedLoad]) -> Option<f64> {
    let largest = loads.iter().map(|load| load.ip_bytes).max()?;
    let of_size = || loads.iter().filter(move |load| load.ip_bytes == largest);
    let top = of_size().max_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps))?;
    let least = of_size().min_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps))?;
    // Loss at random takes the same part of every load.
    let more = least.received_bps * top.offered_bps / least.offered_bps;
    let alone = least.offered_bps >= top.offered_bps;
    (is_overloaded(top) && (alone || top.received_bps < OVERLOADED_BELOW * more))
        .then_some(top.received_bps)
}

/// The link's rate of its own framing, by the size that it sends the most of.
pub(super) fn link_bps(capacity: &[Capacity]) -> Option<f64> {
    let of = |found: &Capacity| {
        let bytes = f64::from(found.ip_bytes);
        found.bps * (bytes + LINK_BYTES) / bytes
    };
    capacity.iter().map(of).max_by(f64::total_cmp)
}

/// Time of a short packet over that of a long one, from where on packets are counted and not
/// bytes: a device of so many packets a second takes as long for either, and a link with the same
/// time for each packet as its bytes take 0.59 of it.
const PER_PACKET: f64 = 0.75;

/// True when short packets take about as long as long ones.
pub(super) fn is_per_packet(capacity: &[Capacity]) -> bool {
    let (Some(long), Some(short)) = (capacity.first(), capacity.last()) else { return false };
    long.ip_bytes > 2 * short.ip_bytes
        && !short.at_least
        && short.packet_ns() > PER_PACKET * long.packet_ns()
}

/// True when less arrived than was offered.
pub(super) fn is_overloaded(load: &PacedLoad) -> bool {
    load.received_bps < OVERLOADED_BELOW * load.offered_bps
}

/// The value of a share of `sorted`, by nearest rank.
pub(super) fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to the length")]
    let rank = (share * sorted.len() as f64) as usize;
    sorted.get(rank.min(sorted.len().saturating_sub(1))).copied()
}
