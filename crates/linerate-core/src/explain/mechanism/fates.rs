//! The packets of all trains of a direction on one time line, with their delays above the least
//! that the path has.
//!
//! Clocks of two hosts differ by an offset and drift apart: the line below all delays that touches
//! those before and after the middle of the test is both (Moon, Skelly and Towsley 1999, by the
//! lower convex hull).

use std::ops::Range;

use crate::record::{DatagramTrain, Direction};

/// Clocks drift less than this; a steeper line is a queue that grew.
const DRIFT_MAX: f64 = 200e-6;
/// Share of a train's losses that the receiver's socket may have dropped; above it is not used.
const SOCKET_SHARE_MAX: f64 = 0.1;

/// One packet; times in nanoseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct TimedProbe {
    pub(super) at: f64,
    pub(super) ip_bytes: f64,
    /// Above the least; absent when it was lost.
    pub(super) delay: Option<f64>,
    /// The train that it belongs to.
    pub(super) run: usize,
}

/// One train of probes.
#[derive(Clone, Debug)]
pub(super) struct ProbeTrain {
    pub(super) ip_bytes: u32,
    pub(super) offered_bps: Option<f64>,
    pub(super) probes: Range<usize>,
}

/// All packets of a direction in the order in which they were sent.
#[derive(Clone, Debug, Default)]
pub(super) struct Fates {
    pub(super) probes: Vec<TimedProbe>,
    pub(super) runs: Vec<ProbeTrain>,
}

impl Fates {
    /// Packets of the trains that had the path for themselves.
    pub(super) fn from_lone_trains(trains: &[DatagramTrain], direction: Direction) -> Option<Self> {
        Self::from_trains(trains, direction, false)
    }

    /// Packets of the paced trains that went while the other direction was busy.
    pub(super) fn from_opposed_trains(
        trains: &[DatagramTrain],
        direction: Direction,
    ) -> Option<Self> {
        Self::from_trains(trains, direction, true)
    }

    fn from_trains(trains: &[DatagramTrain], direction: Direction, beside: bool) -> Option<Self> {
        let wanted = |train: &&DatagramTrain| {
            train.direction == direction
                && is_lost_on_path(train)
                && is_opposed(train, trains) == beside
        };
        let mut trains: Vec<&DatagramTrain> = trains.iter().filter(wanted).collect();
        trains.sort_by_key(|train| train.started_ns);
        let mut fates = Self::default();
        for train in trains {
            fates.add(train);
        }
        fates.subtract_base_delay();
        (!fates.probes.is_empty()).then_some(fates)
    }

    fn add(&mut self, train: &DatagramTrain) {
        let first = self.probes.len();
        let started = train.started_ns as f64;
        for (&sent, &arrived) in train.sent_ns.iter().zip(&train.arrived_ns) {
            let sent = sent as f64;
            self.probes.push(TimedProbe {
                at: started + sent,
                ip_bytes: f64::from(train.ip_bytes),
                delay: arrived.map(|arrived| arrived as f64 - sent),
                run: self.runs.len(),
            });
        }
        self.runs.push(ProbeTrain {
            ip_bytes: train.ip_bytes,
            offered_bps: train.offered_bps,
            probes: first..self.probes.len(),
        });
    }

    fn subtract_base_delay(&mut self) {
        let points: Vec<(f64, f64)> =
            self.probes.iter().filter_map(|probe| Some((probe.at, probe.delay?))).collect();
        let base = base_line(&points);
        for probe in &mut self.probes {
            let at = probe.at;
            probe.delay = probe.delay.map(|delay| (delay - base(at)).max(0.0));
        }
    }

    pub(super) fn lost_count(&self) -> u64 {
        self.probes.iter().filter(|probe| probe.delay.is_none()).count() as u64
    }

    pub(super) fn probes_of(&self, run: &ProbeTrain) -> &[TimedProbe] {
        &self.probes[run.probes.clone()]
    }

    /// Sizes of packets, the largest first.
    pub(super) fn packet_sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.runs.iter().map(|run| run.ip_bytes).collect();
        sizes.sort_unstable_by_key(|&bytes| std::cmp::Reverse(bytes));
        sizes.dedup();
        sizes
    }

    /// Trains of one size that were sent back to back.
    pub(super) fn back_to_back(&self, ip_bytes: u32) -> impl Iterator<Item = &ProbeTrain> {
        self.runs.iter().filter(move |run| run.offered_bps.is_none() && run.ip_bytes == ip_bytes)
    }
}

/// True when a paced train went, for half of its time at least, while another one went the other
/// way.
fn is_opposed(train: &DatagramTrain, trains: &[DatagramTrain]) -> bool {
    let span = |train: &DatagramTrain| {
        (train.started_ns, train.started_ns + train.sent_ns.last().copied().unwrap_or(0))
    };
    let (begin, end) = span(train);
    let shared = |other: &DatagramTrain| {
        let (from, until) = span(other);
        until.min(end).saturating_sub(from.max(begin))
    };
    let mut others = trains.iter().filter(|other| {
        other.direction != train.direction && other.offered_bps.is_some() && other.sent_ns.len() > 1
    });
    let is_paced = train.offered_bps.is_some() && end > begin;
    is_paced && others.any(|other| shared(other) * 2 > end - begin)
}

/// True when a train's losses are the path's and not the receiving socket's: a full socket drops
/// many in a row. The kernel counts packets with a wrong checksum among its drops too, and those
/// are single ones.
fn is_lost_on_path(train: &DatagramTrain) -> bool {
    let lost = train.arrived_ns.iter().filter(|arrived| arrived.is_none()).count();
    let after_another =
        train.arrived_ns.windows(2).filter(|pair| pair[0].is_none() && pair[1].is_none()).count();
    let few = |drops: u64| drops as f64 <= SOCKET_SHARE_MAX * lost as f64;
    train.socket_drops.is_none_or(few) || after_another * 5 <= lost
}

/// The line below all points, which are in order of time.
fn base_line(points: &[(f64, f64)]) -> impl Fn(f64) -> f64 + use<> {
    let least = points.iter().map(|point| point.1).fold(f64::INFINITY, f64::min);
    let (from, slope) = spanning_edge(points)
        .filter(|(_, slope)| slope.abs() <= DRIFT_MAX)
        .unwrap_or(((0.0, least), 0.0));
    move |at| from.1 + slope * (at - from.0)
}

/// The edge of the lower hull above the middle of the time, and its slope.
fn spanning_edge(points: &[(f64, f64)]) -> Option<((f64, f64), f64)> {
    let mut hull: Vec<(f64, f64)> = Vec::new();
    for &point in points {
        while let [.., a, b] = hull[..] {
            let turns = (b.0 - a.0) * (point.1 - a.1) - (b.1 - a.1) * (point.0 - a.0);
            if turns > 0.0 {
                break;
            }
            hull.pop();
        }
        hull.push(point);
    }
    let middle = f64::midpoint(points.first()?.0, points.last()?.0);
    let edge = hull.windows(2).find(|edge| edge[0].0 <= middle && middle <= edge[1].0)?;
    let slope = (edge[1].1 - edge[0].1) / (edge[1].0 - edge[0].0).max(1.0);
    Some((edge[0], slope))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_and_a_drift_of_the_clocks_are_taken_off() {
        // Clocks 5 s apart that drift by 50 ppm; a queue of 1 ms on two packets of three.
        let sent_ns: Vec<u64> = (0..3000).map(|number| number * 1_000_000).collect();
        let arrived = |&sent: &u64| {
            let queue = if sent / 1_000_000 % 3 == 0 { 0 } else { 1_000_000 };
            i64::try_from(sent + sent / 20_000 + 20_000_000 + queue)
                .ok()
                .map(|at| at - 5_000_000_000)
        };
        let train = DatagramTrain {
            direction: Direction::Up,
            ip_bytes: 1500,
            offered_bps: Some(12e6),
            started_ns: 1_000_000,
            arrived_ns: sent_ns.iter().map(arrived).collect(),
            sent_ns,
            socket_drops: None,
        };
        let fates = Fates::from_lone_trains(&[train], Direction::Up).expect("packets");
        for (number, probe) in fates.probes.iter().enumerate() {
            let queue = if number % 3 == 0 { 0.0 } else { 1e6 };
            assert!((probe.delay.expect("it arrived") - queue).abs() < 100.0, "{probe:?}");
        }
    }
}
