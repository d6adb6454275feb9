//! Paced trains that went while the other way was busy, against those that went alone.
//!
//! A link whose ends are full and half duplex loses nothing of what goes one way, and what collides
//! of traffic both ways (Shalunov and Carlson 2005, "Detecting duplex mismatch on Ethernet"): the
//! acknowledgments of a TCP flow are enough, one-way probes never show it.

use super::fates::{Fates, TimedProbe};
use super::{PacedLoad, quantile};
use crate::record::{DatagramTrain, Direction};

/// Loss of paced trains with the other direction busy, and alone.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BothWays {
    /// Packets sent while the other way was busy.
    pub sent: u64,
    /// Packets that were lost with the other direction busy.
    pub lost: u64,
    /// Median delay of the others above the least, in nanoseconds.
    pub delay_ns: f64,
    /// Tenths of them in which something was lost.
    pub tenths_with_loss: u32,
    /// Packets sent alone, of the least load that offered as much.
    pub alone_sent: u64,
    /// Packets that were lost alone.
    pub alone_lost: u64,
}

/// A load that was planned as high is not always offered as high.
const AS_MUCH: f64 = 0.9;

/// The comparison for one direction; none without a train that went beside another.
pub(super) fn both_ways(
    trains: &[DatagramTrain],
    way: Direction,
    loads: &[PacedLoad],
) -> Option<BothWays> {
    let fates = Fates::from_opposed_trains(trains, way)?;
    let mut found = BothWays {
        sent: fates.probes.len() as u64,
        lost: fates.lost_count(),
        ..BothWays::default()
    };
    let mut delays: Vec<f64> = fates.probes.iter().filter_map(|probe| probe.delay).collect();
    delays.sort_unstable_by(f64::total_cmp);
    found.delay_ns = quantile(&delays, 0.5).unwrap_or(0.0);
    let lost_of = |part: &[TimedProbe]| part.iter().any(|probe| probe.delay.is_none());
    let tenth = fates.probes.len().div_ceil(10).max(1);
    found.tenths_with_loss = fates.probes.chunks(tenth).map(|part| u32::from(lost_of(part))).sum();
    // A policer loses of such a load alone as well, and passes one that is far below it.
    let offered = fates.runs.iter().filter_map(|run| run.offered_bps).fold(0.0, f64::max);
    let bytes = fates.runs.iter().map(|run| run.ip_bytes).max().unwrap_or(0);
    let as_much = loads
        .iter()
        .filter(|load| load.offered_bps >= AS_MUCH * offered && load.ip_bytes * 2 >= bytes);
    if let Some(load) = as_much.min_by(|a, b| a.offered_bps.total_cmp(&b.offered_bps)) {
        (found.alone_sent, found.alone_lost) = (load.sent, load.lost);
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::super::mechanism;
    use super::*;

    /// 500 packets of 1500 bytes in half a second from `started_ms` on, of which one in `lost` is.
    fn train_with_loss(direction: Direction, started_ms: u64, lost: usize) -> DatagramTrain {
        let arrived = |at: usize| {
            let kept = at % lost != lost - 1;
            kept.then(|| i64::try_from(at).expect("small") * 1_000_000 + 5_000_000)
        };
        DatagramTrain {
            direction,
            ip_bytes: 1500,
            offered_bps: Some(12e6),
            started_ns: started_ms * 1_000_000,
            sent_ns: (0..500).map(|at| at * 1_000_000).collect(),
            arrived_ns: (0..500).map(arrived).collect(),
            socket_drops: Some(0),
        }
    }

    #[test]
    fn what_went_beside_the_other_way_is_told_from_what_went_alone() {
        let (up, down) = (Direction::Up, Direction::Down);
        let trains = [
            train_with_loss(up, 0, 1000),
            train_with_loss(down, 700, 1000),
            train_with_loss(up, 1400, 4),
            train_with_loss(down, 1420, 10),
        ];
        let found = mechanism(&trains, up).expect("there are trains");
        let both = found.both_ways.expect("the last two went at once");
        assert_eq!((both.sent, both.lost), (500, 125));
        assert_eq!((both.alone_sent, both.alone_lost), (500, 0));
        // What is said of loss alone has none of it.
        assert_eq!((found.packets, found.lost, found.loads.len()), (500, 0, 1));
        assert_eq!(both.tenths_with_loss, 10);
        let found = mechanism(&trains[..2], up).expect("there are trains");
        assert_eq!(found.both_ways, None);
    }

    #[test]
    fn what_went_alone_offered_as_much_or_is_no_measure() {
        let (up, down) = (Direction::Up, Direction::Down);
        let mut trains = [
            train_with_loss(up, 0, 1000),
            train_with_loss(up, 700, 4),
            train_with_loss(up, 1400, 4),
        ];
        // Packets of 152 bytes are a tenth of the load, and pass a policer.
        trains[0].ip_bytes = 152;
        trains[0].offered_bps = Some(1.2e6);
        let beside = [trains.as_slice(), &[train_with_loss(down, 1420, 1000)]].concat();
        let both = mechanism(&beside, up)
            .and_then(|findings| findings.both_ways)
            .expect("they went at once");
        assert_eq!((both.alone_sent, both.alone_lost), (500, 125));
        let little = [beside[0].clone(), beside[2].clone(), beside[3].clone()];
        let both = mechanism(&little, up)
            .and_then(|findings| findings.both_ways)
            .expect("they went at once");
        assert_eq!((both.alone_sent, both.alone_lost), (0, 0));
    }
}
