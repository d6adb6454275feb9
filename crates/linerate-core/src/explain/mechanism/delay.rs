//! What became of each paced train: loss, rate and delay at its load; and whether what is above a
//! rate waits.

use super::capacity::{link_bps, quantile};
use super::fates::{Fates, ProbeTrain, TimedProbe};
use super::state::{Cost, LINK_BYTES, excess_over_rate};
use super::{Capacity, PacedLoad, Shaper};

/// Part of a train, at its begin and its end, between which delays are compared.
const PART: usize = 8;

/// Each paced train, in the order in which they were sent.
pub(super) fn paced_loads(fates: &Fates) -> Vec<PacedLoad> {
    fates.runs.iter().filter_map(|run| of_run(run, fates.probes_of(run))).collect()
}

fn of_run(run: &ProbeTrain, probes: &[TimedProbe]) -> Option<PacedLoad> {
    let offered_bps = run.offered_bps?;
    let delays = sorted(probes);
    let part = (probes.len() / PART).max(1);
    let median = |probes: &[TimedProbe]| quantile(&sorted(probes), 0.5);
    let (first, last) = (probes.get(..part)?, probes.get(probes.len() - part..)?);
    let late = &probes[probes.len() / 2..];
    Some(PacedLoad {
        offered_bps: left_bps(late).unwrap_or(offered_bps),
        ip_bytes: run.ip_bytes,
        sent: probes.len() as u64,
        lost: (probes.len() - delays.len()) as u64,
        received_bps: received_bps(late),
        delay_ns: [0.05, 0.5, 0.95].map(|share| quantile(&delays, share).unwrap_or(0.0)),
        growth_ns: median(last).zip(median(first)).map_or(0.0, |(last, first)| last - first),
    })
}

fn sorted(probes: &[TimedProbe]) -> Vec<f64> {
    rising(probes.iter().filter_map(|probe| probe.delay))
}

/// Rate at which packets left; none where the pace is that of one packet.
fn left_bps(probes: &[TimedProbe]) -> Option<f64> {
    let (first, last) = (probes.first()?, probes.last()?);
    let bytes = first.ip_bytes * (probes.len() - 1) as f64;
    (last.at > first.at).then(|| bytes * 8e9 / (last.at - first.at))
}

/// Rate of the arrivals; 0 with fewer than two.
fn received_bps(probes: &[TimedProbe]) -> f64 {
    let arrivals = probes.iter().filter_map(|probe| Some((probe.at + probe.delay?, probe)));
    let (mut first, mut last, mut bytes) = (f64::INFINITY, f64::NEG_INFINITY, 0.0);
    for (at, probe) in arrivals {
        (first, last) = (first.min(at), last.max(at));
        bytes += probe.ip_bytes;
    }
    let one = probes.first().map_or(0.0, |probe| probe.ip_bytes);
    if last > first { (bytes - one) * 8e9 / (last - first) } else { 0.0 }
}

/// Share of the link's rate below which a rate that passes for long shows a shaper. Other traffic
/// of a fifth leaves 0.87 of the link to an offer of 1.3.
const SHAPED_BELOW: f64 = 0.75;
/// Part of what is above the rate that waits, and not in the bucket.
const WAITING_SHARE: f64 = 0.2;
/// A packet that waits so long is held back.
const HELD_NS: f64 = 0.5e6;

/// A rate below that of trains back to back, above which packets wait.
pub(super) fn shaper(
    fates: &Fates,
    capacity: &[Capacity],
    sustained_bps: Option<f64>,
) -> Option<Shaper> {
    let rate_bps = sustained_bps?;
    let largest = capacity.first()?.ip_bytes;
    let line = f64::from(largest) / (f64::from(largest) + LINK_BYTES);
    link_bps(capacity).filter(|link_bps| rate_bps < SHAPED_BELOW * link_bps * line)?;
    let per_ns = rate_bps / 8e9;
    let above = excess_over_rate(fates, Cost::Bytes { added: 0.0 }, per_ns);
    let of = |run: &ProbeTrain| {
        let at = |index: usize| Some((above[index], fates.probes[index].delay? * per_ns));
        run.probes.clone().filter_map(at).collect::<Vec<(f64, f64)>>()
    };
    let is_above = |run: &&ProbeTrain| {
        run.ip_bytes == largest && run.offered_bps.is_some_and(|bps| bps > 1.05 * rate_bps)
    };
    let mut packets: Vec<(f64, f64)> = fates.runs.iter().filter(is_above).flat_map(of).collect();
    packets.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let top = packets.get(packets.len() * 3 / 4..)?;
    let shares: Vec<f64> = rising(top.iter().map(|(above, waits)| waits / above));
    if quantile(&shares, 0.5)? < WAITING_SHARE {
        return None;
    }
    let held = packets.iter().filter(|(_, waits)| *waits > HELD_NS * per_ns);
    let bursts = rising(held.map(|(above, waits)| (above - waits).max(0.0)));
    Some(Shaper { rate_bps, burst_bytes: quantile(&bursts, 0.5)? })
}

fn rising(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

#[cfg(test)]
mod tests {
    use super::super::mechanism;
    use crate::record::{DatagramTrain, Direction};

    /// A load of 48 Mbit/s of which the sender stood still for half of the time of its second half.
    #[test]
    fn what_was_offered_is_what_left_and_not_what_was_asked_for() {
        let at = |number: u64| number * 250_000 + if number >= 3000 { 500_000_000 } else { 0 };
        let train = DatagramTrain {
            direction: Direction::Up,
            ip_bytes: 1500,
            offered_bps: Some(48e6),
            started_ns: 0,
            sent_ns: (0..4000).map(at).collect(),
            arrived_ns: (0..4000)
                .map(|number| i64::try_from(at(number) + 20_000_000).ok())
                .collect(),
            socket_drops: Some(0),
        };
        let found = mechanism(&[train], Direction::Up).expect("packets");
        // 2000 packets in a second: half of the pace, and all of it arrived.
        assert!((found.loads[0].offered_bps / 24e6 - 1.0).abs() < 1e-3, "{:?}", found.loads);
        assert!(found.loads[0].passes());
        assert_eq!(found.sustained_bps, None);
    }
}
