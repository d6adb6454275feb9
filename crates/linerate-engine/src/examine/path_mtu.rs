//! The search for the path MTU of both directions: several sizes at once, then those between the
//! largest that arrived and the smallest that did not.
//!
//! Both ends are ours, so silence is proof: a size is lost when none of its packets arrives while
//! smaller ones do. Loss alone never is (packetization layers mistake it: RFC 8899 §3 asks for
//! several probes of a size).

use linerate_core::record::{AboveMtu, Direction, PathMtu};
use linerate_proto::native::TrainPlan;

use crate::flow::trains::ObservedTrain;

/// IP packets of Ethernet and of what goes around or inside it: jumbo frames, FDDI (4352), Ethernet
/// (RFC 894), PPPoE (RFC 2516), tunnels (GRE, VXLAN, WireGuard, IPsec), IPv6's least (RFC 8200),
/// the least that every host takes whole (RFC 1122 §3.3.2).
const SIZES_BYTES: [u32; 17] = [
    576, 1006, 1200, 1280, 1340, 1380, 1400, 1420, 1440, 1450, 1460, 1476, 1480, 1492, 1500, 4352,
    9000,
];

/// Packets of each size, one after the other in this time.
const COPIES: u32 = 3;
const GAP_NS: u64 = 2_000_000;

/// Sizes of one round between two bounds.
const BETWEEN: u32 = 16;

/// Rounds of a search: 9000 against 4352 is found in two more.
const ROUNDS_MAX: u32 = 4;

/// The search so far.
#[derive(Clone, Debug)]
pub(super) struct MtuSearch {
    ways: [Way; 2],
    rounds: u32,
}

#[derive(Clone, Copy, Debug)]
struct Way {
    direction: Direction,
    /// The largest that arrived.
    passed: Option<u32>,
    /// The smallest above it that did not.
    lost: Option<u32>,
    /// The smallest that the sender's link refused.
    refused: Option<u32>,
    told: Option<u32>,
}

impl Default for MtuSearch {
    fn default() -> Self {
        let way =
            |direction| Way { direction, passed: None, lost: None, refused: None, told: None };
        Self { ways: [way(Direction::Up), way(Direction::Down)], rounds: 0 }
    }
}

impl MtuSearch {
    /// The next sizes to try; none when both directions are known to the byte.
    pub(super) fn next(&mut self, header_bytes: u32) -> Vec<TrainPlan> {
        if self.rounds >= ROUNDS_MAX {
            return Vec::new();
        }
        let first = self.rounds == 0;
        self.rounds += 1;
        let mut trains = Vec::new();
        for way in &self.ways {
            let sizes = if first { SIZES_BYTES.to_vec() } else { way.between() };
            trains.extend((0..).zip(sizes).map(|(place, ip_bytes)| TrainPlan {
                direction: way.direction,
                size_bytes: ip_bytes - header_bytes,
                count: COPIES,
                gap_ns: GAP_NS,
                at_ns: GAP_NS * u64::from(COPIES) * place,
            }));
        }
        trains
    }

    /// Takes the sizes of trains that arrived, were refused or were lost.
    pub(super) fn add_results(&mut self, seen: &[ObservedTrain]) {
        for way in &mut self.ways {
            let of_way = || seen.iter().filter(|seen| seen.train.direction == way.direction);
            let arrived = of_way().filter(|seen| seen.train.arrived_ns.iter().any(Option::is_some));
            let arrived = arrived.map(|seen| seen.train.ip_bytes).max();
            way.passed = way.passed.max(arrived);
            let above = |bytes: &u32| way.passed.is_some_and(|passed| *bytes > passed);
            // The link's own word is exact.
            let refused = of_way().filter(|seen| seen.refused);
            let refused =
                refused.map(|seen| seen.icmp_mtu_bytes.map_or(seen.train.ip_bytes, |mtu| mtu + 1));
            way.refused = way.refused.into_iter().chain(refused).filter(above).min();
            let silent = of_way().filter(|seen| !seen.refused).map(|seen| seen.train.ip_bytes);
            way.lost = way.lost.into_iter().chain(silent).filter(above).min();
            let told = of_way().filter_map(|seen| seen.icmp_mtu_bytes);
            way.told = way.told.into_iter().chain(told).min();
        }
    }

    /// The largest packet that arrived both ways.
    pub(super) fn both_ways(&self) -> Option<u32> {
        let [up, down] = self.ways.map(|way| way.passed);
        up.zip(down).map(|(up, down)| up.min(down))
    }

    /// The path MTU of each direction that was found.
    pub(super) fn path_mtus(&self) -> Vec<PathMtu> {
        self.ways.iter().filter_map(Way::path_mtu).collect()
    }
}

impl Way {
    /// Sizes strictly between the largest that arrived and the smallest that did not, evenly.
    fn between(&self) -> Vec<u32> {
        let above = self.lost.into_iter().chain(self.refused).min();
        let Some((passed, above)) = self.passed.zip(above) else { return Vec::new() };
        // What a router or the link names is tried itself, and one byte more.
        let told = self.told.into_iter().flat_map(|told| [told, told + 1]);
        let room = above - passed;
        let even = (1..=BETWEEN).map(|step| passed + room * step / (BETWEEN + 1));
        let mut sizes: Vec<u32> =
            even.chain(told).filter(|mtu| *mtu > passed && *mtu < above).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes
    }

    fn path_mtu(&self) -> Option<PathMtu> {
        let ip_bytes = self.passed?;
        let lost_bytes = self.lost.into_iter().chain(self.refused).min();
        let above = match (self.lost, self.refused, self.told) {
            (None, None, _) => AboveMtu::Unknown,
            (lost, Some(refused), _) if lost.is_none_or(|lost| lost > refused) => AboveMtu::Link,
            // The link's own word about longer ones says nothing of those that left.
            (Some(lost), _, Some(told)) if told < lost => AboveMtu::Icmp,
            _ => AboveMtu::Silent,
        };
        let icmp_mtu_bytes = self.told.filter(|_| above != AboveMtu::Silent);
        Some(PathMtu { direction: self.direction, ip_bytes, lost_bytes, above, icmp_mtu_bytes })
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::DatagramTrain;

    use super::*;

    const HEADERS: u32 = 28;

    /// A path whose sender's link takes packets up to `link`, and that carries those up to `mtu`;
    /// a router tells, or none does.
    #[derive(Clone, Copy)]
    struct SimulatedMtuPath {
        link: u32,
        mtu: u32,
        tells: bool,
    }

    fn simulate_train(plan: &TrainPlan, path: SimulatedMtuPath) -> ObservedTrain {
        let ip_bytes = plan.size_bytes + HEADERS;
        let refused = ip_bytes > path.link;
        let count = if refused { 0 } else { plan.count as usize };
        let arrives = (ip_bytes <= path.mtu).then_some(1);
        let told = (refused.then_some(path.link))
            .or_else(|| (path.tells && ip_bytes > path.mtu).then_some(path.mtu));
        ObservedTrain {
            train: DatagramTrain {
                direction: plan.direction,
                ip_bytes,
                offered_bps: None,
                started_ns: 0,
                sent_ns: vec![0; count],
                arrived_ns: vec![arrives; count],
                socket_drops: None,
            },
            refused,
            icmp_mtu_bytes: told,
        }
    }

    /// The path MTUs found on a simulated path each way, and the number of rounds that it took.
    fn search(up: SimulatedMtuPath, down: SimulatedMtuPath) -> (Vec<PathMtu>, u32) {
        let mut search = MtuSearch::default();
        loop {
            let plans = search.next(HEADERS);
            if plans.is_empty() {
                return (search.path_mtus(), search.rounds);
            }
            let path = |plan: &TrainPlan| if plan.direction == Direction::Up { up } else { down };
            let seen: Vec<ObservedTrain> =
                plans.iter().map(|plan| simulate_train(plan, path(plan))).collect();
            search.add_results(&seen);
        }
    }

    #[test]
    fn the_mtu_of_each_direction_is_found_to_the_byte_with_what_becomes_of_larger_ones() {
        let ethernet = SimulatedMtuPath { link: 1500, mtu: 9000, tells: false };
        for (up, mtu, above) in [
            (ethernet, 1500, AboveMtu::Link),
            (SimulatedMtuPath { link: 1500, mtu: 1413, tells: false }, 1413, AboveMtu::Silent),
            (SimulatedMtuPath { link: 1500, mtu: 1413, tells: true }, 1413, AboveMtu::Icmp),
            (SimulatedMtuPath { link: 1500, mtu: 1492, tells: false }, 1492, AboveMtu::Silent),
            (SimulatedMtuPath { link: 9000, mtu: 1500, tells: false }, 1500, AboveMtu::Silent),
            (SimulatedMtuPath { link: 9000, mtu: 8973, tells: true }, 8973, AboveMtu::Icmp),
            (SimulatedMtuPath { link: 65_536, mtu: 65_536, tells: false }, 9000, AboveMtu::Unknown),
        ] {
            let (found, rounds) = search(up, ethernet);
            let [up, down] = found[..] else { panic!("{found:?}") };
            assert_eq!((up.direction, up.ip_bytes, up.above), (Direction::Up, mtu, above));
            assert!(up.lost_bytes.is_none_or(|lost| lost == mtu + 1), "{up:?}");
            assert_eq!((down.ip_bytes, down.above), (1500, AboveMtu::Link), "in {rounds}");
            assert!(rounds <= ROUNDS_MAX, "{rounds}");
        }
    }

    #[test]
    fn a_round_fits_into_the_protocol() {
        let mut search = MtuSearch::default();
        let trains = search.next(HEADERS);
        assert_eq!(trains.len(), 2 * SIZES_BYTES.len());
        let round = linerate_proto::native::TrainRound { round: 0, quiet_ns: 0, trains };
        assert_eq!(round.check_bounds(), Ok(()));
        // 17 sizes three times, and 16 gaps of 2 ms between the last two.
        assert_eq!(round.last_packet_time(Direction::Up).as_millis(), 100);
    }

    #[test]
    fn a_path_on_which_nothing_arrives_has_no_mtu() {
        let none = SimulatedMtuPath { link: 1500, mtu: 0, tells: false };
        assert_eq!(search(none, none).0, []);
    }
}
