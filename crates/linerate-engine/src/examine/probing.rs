//! Which trains a survey sends: sizes for the path MTU, packets back to back in two sizes, then
//! paced ones around the rate that these passed at, or that of TCP. Loads and times are bounded.

use std::time::Duration;

use linerate_core::explain::mechanism::mechanism;
use linerate_core::record::{DatagramTrain, Direction, PathMtu};
use linerate_proto::native::TrainPlan;

use super::path_mtu::MtuSearch;
use crate::flow::trains::{ObservedTrain, PathSeen, RoundPlan, Rounds};

const MS: u64 = 1_000_000;
const SECOND_NS: f64 = 1e9;

/// Packets of a train: enough to overrun the buffers and buckets that matter to a burst of TCP.
const TRAIN_PACKETS: u32 = 64;
/// Trains of each direction, every other one of small packets.
const TRAINS: u64 = 10;
/// Trains where paced probes, which tell more of losses, would else find no time.
const TRAINS_FEW: u64 = 6;
/// Time from one train of a direction to the next: a bucket fills again, a queue drains.
const SLOT_NS_MIN: u64 = 100 * MS;
const SLOT_NS_MAX: u64 = 300 * MS;
/// A train takes no longer on the path's slowest link than this.
const TRAIN_NS_MAX: f64 = 1e9;
/// The rate of a path that nobody knows.
const RATE_BPS_UNKNOWN: f64 = 10e6;

/// IP packets of most paths, and of voice and acknowledgments with payload.
const LARGE_BYTES: u32 = 1500;
const SMALL_BYTES: u32 = 228;

/// Rounds of paced probes, by the time that there is.
pub(super) const PACED_ROUNDS: [PacedRound; 5] = [
    PacedRound { each_ns: 1_000 * MS, probes: &PACED, trains: TRAINS },
    PacedRound { each_ns: 600 * MS, probes: &PACED, trains: TRAINS },
    PacedRound { each_ns: 300 * MS, probes: &PACED, trains: TRAINS },
    PacedRound { each_ns: 300 * MS, probes: &PACED_FEW, trains: TRAINS },
    PacedRound { each_ns: 300 * MS, probes: &PACED_FEW, trains: TRAINS_FEW },
];
/// The most packets of a paced probe: those of 1 s up to 48 Mbit/s in packets of 1500 bytes.
const PACED_PACKETS_MAX: f64 = 4000.0;
/// Fewest packets that say anything.
const PACED_PACKETS_MIN: f64 = 20.0;
/// Pause between two paced probes, in which the queue drains.
const PAUSE_NS: u64 = 150 * MS;
/// Paced probes in the order in which they are sent, overload last.
const PACED: [Paced; 5] = [
    Paced { share: 0.5, size: ProbePacketSize::Large },
    Paced { share: 0.9, size: ProbePacketSize::Large },
    Paced { share: 0.9, size: ProbePacketSize::SmallAtEqualPackets },
    Paced { share: 0.5, size: ProbePacketSize::SmallAtEqualBits },
    Paced { share: 1.1, size: ProbePacketSize::Large },
];
/// Paced probes of a survey that has time for three: many packets at half the rate, of which those
/// that are lost are lost at random; then what passes of a little less than the rate and of more.
const PACED_FEW: [Paced; 3] = [PACED[3], PACED[1], PACED[4]];
/// Share of both rates of the paced probes that go both ways at once, after all others: a medium
/// that both directions share carries them, a link of unlike duplex loses what collides.
const BOTH_SHARE: f64 = 0.4;
/// Their length, and the shortest round that has them.
const BOTH_NS: u64 = 600 * MS;
/// Packets per second of small ones at an equal bit rate: what a host sends evenly.
const PACKETS_PER_S_MAX: f64 = 50_000.0;

/// After the last packet and a round trip nothing comes.
const QUIET: Duration = Duration::from_millis(200);
const QUIET_MAX: Duration = Duration::from_secs(3);

/// Which paced probes are sent each way, and for how long each.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacedRound {
    each_ns: u64,
    probes: &'static [Paced],
    /// Trains back to back of each direction before them.
    trains: u64,
}

impl PacedRound {
    /// The same, with probes of another length.
    pub(super) const fn lasting(self, each_ns: u64) -> Self {
        Self { each_ns, ..self }
    }

    /// True where the round ends with probes that go both ways at once.
    const fn has_both(self) -> bool {
        self.each_ns >= BOTH_NS
    }

    /// Length of a probe.
    pub(super) const fn each_ns(self) -> u64 {
        self.each_ns
    }
}

fn trains_before(paced: Option<PacedRound>) -> u64 {
    paced.map_or(TRAINS, |round| round.trains)
}

/// One paced probe: its rate and the size of its packets.
#[derive(Clone, Copy, Debug)]
struct Paced {
    /// Share of the rate of TCP.
    share: f64,
    size: ProbePacketSize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbePacketSize {
    Large,
    /// Small packets, as many a second as large ones at that rate are.
    SmallAtEqualPackets,
    /// Small packets that make that rate.
    SmallAtEqualBits,
}

/// The kind of the next round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ProbingStage {
    Mtu,
    Trains,
    Paced,
    Over,
}

/// The trains of a survey, and what came of them.
#[derive(Debug)]
pub(super) struct Probing {
    stage: ProbingStage,
    mtu: MtuSearch,
    /// IP bit/s that TCP reached each way; none where that is unknown.
    rates_bps: [Option<f64>; 2],
    /// True where only the path MTU is searched.
    alone: bool,
    /// Paced probes, where there are any.
    paced: Option<PacedRound>,
    trains: Vec<DatagramTrain>,
}

impl Probing {
    /// Around these rates; without paced probes where there is no time for them.
    pub(super) fn new(rates_bps: [Option<f64>; 2], paced: Option<PacedRound>) -> Self {
        Self {
            stage: ProbingStage::Mtu,
            mtu: MtuSearch::default(),
            rates_bps,
            alone: false,
            paced,
            trains: Vec::new(),
        }
    }

    /// The path MTU alone, where TCP does not pass.
    pub(super) fn mtu_alone() -> Self {
        Self { alone: true, ..Self::new([None; 2], None) }
    }

    /// Every train that is worth keeping, and the path MTU of each direction.
    pub(super) fn into_results(self) -> (Vec<DatagramTrain>, Vec<PathMtu>) {
        (self.trains, self.mtu.path_mtus())
    }

    /// The time that a session of trains takes, with paced probes or without.
    pub(super) fn session_duration(
        rates_bps: [Option<f64>; 2],
        rtt: Duration,
        paced: Option<PacedRound>,
    ) -> Duration {
        // Connect, hellos, request, opening, start; sizes, trains, paced probes with their quiet.
        let rounds = if paced.is_some() { 3 } else { 2 };
        let around = (rtt * 2 + QUIET) * rounds + rtt * 5;
        let slots = Duration::from_nanos(slot_ns(rates_bps) * trains_before(paced));
        let of = |round: PacedRound| {
            let both = if round.has_both() { BOTH_NS + PAUSE_NS } else { 0 };
            Duration::from_nanos(round.each_ns + PAUSE_NS) * 2 * round.probes.len() as u32
                + Duration::from_nanos(both)
        };
        let paced = paced.map_or(Duration::ZERO, of);
        around + slots + paced + Duration::from_millis(400)
    }

    /// Trains that leave the path faster than TCP, which losses may hold far below it, set the
    /// load of what follows.
    fn follow_capacity(&mut self) {
        for (direction, rate) in
            [Direction::Up, Direction::Down].into_iter().zip(&mut self.rates_bps)
        {
            let found = mechanism(&self.trains, direction);
            let capacity = found.and_then(|found| found.capacity.first().copied());
            let capacity = capacity.filter(|capacity| !capacity.at_least);
            *rate = rate.map(|tcp| capacity.map_or(tcp, |capacity| capacity.bps.max(tcp)));
        }
    }

    fn large_bytes(&self) -> u32 {
        self.mtu.both_ways().unwrap_or(LARGE_BYTES).min(LARGE_BYTES)
    }

    fn trains(&self, header_bytes: u32) -> Vec<TrainPlan> {
        let slot_ns = slot_ns(self.rates_bps);
        let mut trains = Vec::new();
        for train in 0..trains_before(self.paced) {
            for (place, direction) in (0..).zip([Direction::Up, Direction::Down]) {
                let ip_bytes = if train % 2 == 0 { self.large_bytes() } else { SMALL_BYTES };
                let rate = self.rates_bps[place as usize].unwrap_or(RATE_BPS_UNKNOWN);
                let most = rate * TRAIN_NS_MAX / SECOND_NS / (f64::from(ip_bytes) * 8.0);
                trains.push(TrainPlan {
                    direction,
                    size_bytes: ip_bytes - header_bytes,
                    count: (most as u32).clamp(8, TRAIN_PACKETS),
                    gap_ns: 0,
                    // The directions take turns.
                    at_ns: slot_ns * train + slot_ns / 2 * place,
                });
            }
        }
        trains
    }

    /// A probe each way at the same time, where both rates are known.
    fn both_at_once(&self, header_bytes: u32, round: PacedRound, at_ns: u64) -> Vec<TrainPlan> {
        let [Some(up), Some(down)] = self.rates_bps else { return Vec::new() };
        if !round.has_both() {
            return Vec::new();
        }
        let of = |(direction, rate)| {
            let paced = Paced { share: BOTH_SHARE, size: ProbePacketSize::Large };
            let (ip_bytes, packets_per_s) = paced.packet_size_and_rate(rate, self.large_bytes());
            let size_bytes = ip_bytes - header_bytes;
            TrainPlan {
                direction,
                size_bytes,
                at_ns,
                ..evenly_spaced_train(packets_per_s, BOTH_NS)
            }
        };
        [(Direction::Up, up), (Direction::Down, down)].map(of).into()
    }

    /// The trains of a round with paced probes: one direction after the other, so that neither the
    /// ends nor a half-duplex link carry both; then both at once.
    fn paced_trains(&self, header_bytes: u32, round: PacedRound) -> Vec<TrainPlan> {
        let mut at_ns = 0;
        let mut trains = Vec::new();
        for (direction, rate) in [Direction::Up, Direction::Down].into_iter().zip(self.rates_bps) {
            let Some(rate) = rate else { continue };
            for paced in round.probes {
                let (ip_bytes, packets_per_s) =
                    paced.packet_size_and_rate(rate, self.large_bytes());
                let size_bytes = ip_bytes - header_bytes;
                let plan = TrainPlan {
                    direction,
                    size_bytes,
                    at_ns,
                    ..evenly_spaced_train(packets_per_s, round.each_ns)
                };
                at_ns = plan.end_ns() + PAUSE_NS;
                trains.push(plan);
            }
        }
        trains.extend(self.both_at_once(header_bytes, round, at_ns));
        // The bounds of a round are those of the slowest paths: what is beyond them is left out.
        trains.retain(|plan| plan.end_ns() < 30_000 * MS);
        trains
    }
}

impl Paced {
    /// Length of its packets, and how many a second.
    fn packet_size_and_rate(self, rate_bps: f64, large_bytes: u32) -> (u32, f64) {
        let large = self.share * rate_bps / (f64::from(large_bytes) * 8.0);
        let (ip_bytes, packets) = match self.size {
            ProbePacketSize::Large => (large_bytes, large),
            ProbePacketSize::SmallAtEqualPackets => (SMALL_BYTES, large),
            ProbePacketSize::SmallAtEqualBits => {
                (SMALL_BYTES, large * f64::from(large_bytes) / f64::from(SMALL_BYTES))
            }
        };
        // Slower than one a second is none.
        (ip_bytes, packets.clamp(1.0, PACKETS_PER_S_MAX.max(large)))
    }
}

/// Packets at an even distance for a time, within the bounds of a paced probe.
fn evenly_spaced_train(packets_per_s: f64, span_ns: u64) -> TrainPlan {
    let count = packets_per_s * span_ns as f64 / SECOND_NS;
    let gap_ns = ((SECOND_NS / packets_per_s) as u64).min(SECOND_NS as u64);
    TrainPlan {
        direction: Direction::Up,
        size_bytes: 0,
        count: count.clamp(PACED_PACKETS_MIN, PACED_PACKETS_MAX) as u32,
        gap_ns,
        at_ns: 0,
    }
}

/// Time from one train of a direction to the next: twice what it takes at the rate of TCP.
fn slot_ns(rates_bps: [Option<f64>; 2]) -> u64 {
    let slowest = rates_bps.into_iter().flatten().fold(f64::INFINITY, f64::min);
    let rate = if slowest.is_finite() { slowest } else { RATE_BPS_UNKNOWN };
    let bits = f64::from(TRAIN_PACKETS * LARGE_BYTES) * 8.0;
    ((2.0 * bits * SECOND_NS / rate.max(1.0)) as u64).clamp(SLOT_NS_MIN, SLOT_NS_MAX)
}

impl Rounds for Probing {
    fn next(&mut self, path: PathSeen) -> Option<RoundPlan> {
        let quiet = (path.rtt + QUIET).min(QUIET_MAX);
        if self.stage == ProbingStage::Mtu {
            let trains = self.mtu.next(path.header_bytes);
            if !trains.is_empty() {
                return Some(RoundPlan { trains, quiet });
            }
            self.stage = if self.alone { ProbingStage::Over } else { ProbingStage::Trains };
        }
        let trains = match self.stage {
            // A path on which no datagram arrives has no trains to see.
            ProbingStage::Trains if self.mtu.both_ways().is_some() => {
                self.trains(path.header_bytes)
            }
            ProbingStage::Paced => self
                .paced
                .map(|round| self.paced_trains(path.header_bytes, round))
                .unwrap_or_default(),
            _ => Vec::new(),
        };
        (!trains.is_empty()).then_some(RoundPlan { trains, quiet })
    }

    fn take_round(&mut self, seen: Vec<ObservedTrain>) {
        match self.stage {
            ProbingStage::Mtu => {
                self.mtu.add_results(&seen);
                return;
            }
            ProbingStage::Trains => self.stage = ProbingStage::Paced,
            ProbingStage::Paced | ProbingStage::Over => self.stage = ProbingStage::Over,
        }
        let sent =
            seen.into_iter().map(|seen| seen.train).filter(|train| !train.sent_ns.is_empty());
        self.trains.extend(sent);
        self.follow_capacity();
    }
}

#[cfg(test)]
mod tests {
    use linerate_proto::native::TrainRound;

    use super::*;

    fn assert_round_valid(trains: Vec<TrainPlan>) {
        let round = TrainRound { round: 0, quiet_ns: 0, trains };
        assert_eq!(round.check_bounds(), Ok(()));
    }

    #[test]
    fn loads_and_times_are_bounded_at_every_rate() {
        for rate in [10e3, 100e3, 1e6, 10e6, 100e6, 1e9, 10e9, 100e9] {
            let probing = Probing::new([Some(rate), Some(rate)], Some(PACED_ROUNDS[0]));
            let trains = probing.trains(28);
            // Two directions, and the last train of the second begins half a slot later.
            assert_eq!(trains.len(), 20);
            assert!(trains.iter().all(|plan| plan.at_ns < 3_000 * MS), "{rate}");
            let packets: u32 = trains.iter().map(|plan| plan.count).sum();
            assert!(packets <= 20 * 64);
            assert_round_valid(trains);
            let paced = probing.paced_trains(28, PACED_ROUNDS[0]);
            assert!(paced.iter().all(|plan| plan.count <= 4000), "{rate}");
            // Ten probes of a second with pauses; 20 packets of slow paths take longer.
            let end = paced.iter().map(TrainPlan::end_ns).max().unwrap_or(0);
            assert!(end < if rate < 1e6 { 30_000 * MS } else { 12_300 * MS }, "{rate}: {end}");
            assert_round_valid(paced);
        }
    }

    #[test]
    fn paced_probes_are_shares_of_the_rate_of_tcp() {
        let of = |paced: Paced| paced.packet_size_and_rate(48e6, 1500);
        // 48 Mbit/s in packets of 12,000 bits: 4,000 a second.
        assert_eq!(of(PACED[0]), (1500, 2000.0));
        assert_eq!(of(PACED[1]), (1500, 3600.0));
        assert_eq!(of(PACED[2]), (228, 3600.0));
        // 24 Mbit/s in packets of 1824 bits.
        let (size, packets) = of(PACED[3]);
        assert!(size == 228 && (packets - 13_157.9).abs() < 0.1, "{packets}");
        assert!((of(PACED[4]).1 - 4400.0).abs() < 1e-9);
    }

    /// Packets of 1500 bytes that leave a link of 50 Mbit/s every 240 us, sent ten times as fast.
    #[test]
    fn paced_probes_follow_trains_that_are_faster_than_tcp() {
        let mut probing = Probing::new([Some(2e6), None], Some(PACED_ROUNDS[0]));
        probing.trains = (0..5)
            .map(|train| DatagramTrain {
                direction: Direction::Up,
                ip_bytes: 1500,
                offered_bps: None,
                started_ns: train * 300 * MS,
                sent_ns: (0..64).map(|at| at * 24_000).collect(),
                arrived_ns: (0..64).map(|at| Some(20_000_000 + at * 240_000)).collect(),
                socket_drops: Some(0),
            })
            .collect();
        probing.follow_capacity();
        let rate = probing.rates_bps[0].expect("there was one");
        assert!((rate / 50e6 - 1.0).abs() < 0.02, "{rate}");
        assert_eq!(probing.rates_bps[1], None);
        // A slower train says nothing against what TCP reached.
        probing.rates_bps[0] = Some(90e6);
        probing.follow_capacity();
        assert_eq!(probing.rates_bps[0], Some(90e6));
    }

    #[test]
    fn probes_go_both_ways_at_once_at_the_end_where_there_is_time() {
        let rates = [Some(48e6), Some(24e6)];
        let long = Probing::new(rates, Some(PACED_ROUNDS[1])).paced_trains(28, PACED_ROUNDS[1]);
        let [.., up, down] = long[..] else { panic!("too few: {long:?}") };
        assert_eq!((up.direction, down.direction), (Direction::Up, Direction::Down));
        assert_eq!(up.at_ns, down.at_ns);
        // 0.4 of 4,000 and of 2,000 packets a second for 0.6 s.
        assert_eq!((up.count, down.count), (960, 480));
        assert!(long[..long.len() - 2].iter().all(|plan| plan.end_ns() < up.at_ns));
        let short = Probing::new(rates, Some(PACED_ROUNDS[2])).paced_trains(28, PACED_ROUNDS[2]);
        assert_eq!(short.len(), 2 * PACED.len());
    }

    #[test]
    fn a_direction_without_a_rate_has_no_paced_probes() {
        let probing = Probing::new([None, Some(50e6)], Some(PACED_ROUNDS[0]));
        let paced = probing.paced_trains(28, PACED_ROUNDS[0]);
        assert_eq!(paced.len(), PACED.len());
        assert!(paced.iter().all(|plan| plan.direction == Direction::Down));
    }
}
