//! What loses packets on a path, from trains of probes and the fate of every packet.
//!
//! The hidden state of each mechanism is replayed with the fates that were seen: bytes that wait,
//! packets that wait, tokens that lack at a sustained rate, packets ahead of a device that takes
//! the same time for each, the last loss, nothing. The chance of a loss is a histogram over the
//! state that only rises; the state whose histogram foretells the fates of packets that it was not
//! made from (cross-validated likelihood) explains the losses. Whether packets wait before they are
//! lost tells a queue from a policer. Left out: early drops of a managed queue as a mechanism of
//! their own, outages by time, loss of the tester's own socket.

mod both_ways;
mod capacity;
mod decide;
mod delay;
mod fates;
mod hazard;
mod held;
mod order;
mod state;
#[cfg(test)]
pub(super) mod trial_tests;

pub use both_ways::BothWays;
use capacity::quantile;
use fates::Fates;
pub use held::held_s;

use crate::record::{
    DatagramTrain, Direction, LossKind, LossMechanism, LossState as State, ProbeLoss,
    StateLikelihood,
};
use crate::stats::Interval;

/// Losses that a decision needs.
pub const LOSSES_MIN: u64 = 8;

/// Findings on the path from the trains of one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Findings {
    /// Packets of trains that were looked at.
    pub packets: u64,
    /// Packets that never arrived.
    pub lost: u64,
    /// Rate at which packets leave the bottleneck back to back, by the size of the packets, the
    /// largest first; of IP packets, without what a link adds.
    pub capacity: Vec<Capacity>,
    /// Rate of IP packets that passed while more was offered for long; absent where nothing was
    /// overloaded.
    pub sustained_bps: Option<f64>,
    /// A queue before a rate below the link's: short bursts pass at the link's rate.
    pub shaper: Option<Shaper>,
    /// Buffer or policer that drops packets when too much is offered.
    pub overflow: Option<Overflow>,
    /// Loss that comes at any load.
    pub background: Option<Background>,
    /// Log-likelihood in nats of each state above that of no state; the best first. Empty with
    /// fewer losses than [`LOSSES_MIN`], which is too few for any of the two above.
    pub states: Vec<(State, f64)>,
    /// The first loss in trains sent back to back, by size of their packets.
    pub first_lost: Vec<FirstLost>,
    /// Loss and delay at each load.
    pub loads: Vec<PacedLoad>,
    /// Reordering of the packets that arrived.
    pub reordering: Reordering,
    /// Loss with the other direction busy; `None` where no train was sent so.
    pub both_ways: Option<BothWays>,
}

impl Findings {
    /// Time that the bottleneck takes for a packet of this size, by those that were sent, in
    /// nanoseconds.
    pub fn packet_ns(&self, ip_bytes: f64) -> Option<f64> {
        let (long, short) = (self.capacity.first()?, self.capacity.last()?);
        let of = |found: &Capacity| (f64::from(found.ip_bytes), found.packet_ns());
        let ((long_bytes, long_ns), (short_bytes, short_ns)) = (of(long), of(short));
        if long_bytes <= short_bytes {
            return Some(long_ns * ip_bytes / long_bytes);
        }
        let slope = ((long_ns - short_ns) / (long_bytes - short_bytes)).max(0.0);
        Some(long_ns - slope * (long_bytes - ip_bytes))
    }

    /// True when the bottleneck takes about as long for a short packet as for a long one.
    pub fn is_per_packet(&self) -> bool {
        capacity::is_per_packet(&self.capacity)
    }

    /// The rate of IP packets of 1500 bytes on the link itself, where short trains show it before a
    /// shaper holds the rest back.
    pub fn link_bps(&self) -> Option<f64> {
        let line = 1500.0 / (1500.0 + state::LINK_BYTES);
        self.capacity.iter().all(|found| !found.at_least).then_some(())?;
        Some(capacity::link_bps(&self.capacity)? * line)
    }
}

impl Findings {
    /// The losses as a verdict states them.
    pub fn probe_loss(&self) -> ProbeLoss {
        let states = self.states.iter().map(|&(state, nats)| StateLikelihood { state, nats });
        ProbeLoss {
            sent: self.packets,
            lost: self.lost,
            overflow: self.overflow.map(Overflow::mechanism_kind),
            background: self.background.map(Background::mechanism_kind),
            states: states.collect(),
        }
    }
}

fn of_kind(kind: LossKind, found: Estimate, unit: &str) -> LossMechanism {
    LossMechanism { kind, size: found.value, unit: unit.to_owned() }
}

/// How fast packets of one size leave the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Capacity {
    /// Size of the packets.
    pub ip_bytes: u32,
    /// Bit/s of IP packets.
    pub bps: f64,
    /// Quartiles of the windows of packets that it is the median of.
    pub quartiles_bps: Interval,
    /// They arrived as fast as they were sent: the path may be faster.
    pub at_least: bool,
}

impl Capacity {
    /// Time that the bottleneck takes for one.
    fn packet_ns(&self) -> f64 {
        f64::from(self.ip_bytes) * 8e9 / self.bps
    }
}

/// A rate below the link's, above which packets wait.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shaper {
    /// Rate of IP packets.
    pub rate_bps: f64,
    /// Bytes that pass at the link's rate.
    pub burst_bytes: f64,
}

/// Buffer or policer that drops packets when too much is offered, with its size and the interval of
/// that.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Overflow {
    /// A queue with room for so many bytes.
    ByteBuffer {
        /// Room of the buffer, IP bytes.
        bytes: Estimate,
    },
    /// A queue with room for so many packets.
    PacketBuffer {
        /// Room of the buffer, packets.
        packets: Estimate,
    },
    /// Loss above a rate, without a queue.
    Policer {
        /// Rate of IP packets.
        rate_bps: Estimate,
        /// Depth of its bucket, IP bytes.
        burst_bytes: Estimate,
    },
    /// A device that forwards so many packets each second, however long they are.
    PacketRate {
        /// Packets that pass each second.
        packets_per_s: Estimate,
        /// Packets that it has room for.
        depth_packets: Estimate,
    },
}

impl Overflow {
    fn mechanism_kind(self) -> LossMechanism {
        match self {
            Self::ByteBuffer { bytes } => of_kind(LossKind::ByteQueue, bytes, "bytes"),
            Self::PacketBuffer { packets } => of_kind(LossKind::PacketQueue, packets, "packets"),
            Self::Policer { rate_bps, .. } => of_kind(LossKind::Policer, rate_bps, "bit/s"),
            Self::PacketRate { packets_per_s, .. } => {
                of_kind(LossKind::PacketRate, packets_per_s, "packets/s")
            }
        }
    }
}

/// Loss that does not depend on the load.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Background {
    /// Each packet is lost independently.
    Random {
        /// Share of packets that are lost.
        ratio: Estimate,
    },
    /// Several in a row.
    Bursts {
        /// Share of packets that are lost.
        ratio: Estimate,
        /// Mean length of a burst.
        burst_packets: f64,
    },
}

impl Background {
    fn mechanism_kind(self) -> LossMechanism {
        match self {
            Self::Random { ratio } => of_kind(LossKind::Random, ratio, "1"),
            Self::Bursts { ratio, .. } => of_kind(LossKind::Bursts, ratio, "1"),
        }
    }
}

/// A value and the interval in which it lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Most likely value.
    pub value: f64,
    /// The interval: 95 % for shares and rates, the inner four fifths of what was seen for room.
    pub interval: Interval,
}

/// The first packet that trains of one size lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FirstLost {
    /// Size of the packets.
    pub ip_bytes: u32,
    /// Trains of this size that were sent back to back.
    pub trains: u64,
    /// Trains that lost a packet.
    pub with_loss: u64,
    /// Median place of the first lost packet in those, counted from 0.
    pub index: Option<u64>,
}

/// Offered load of one paced train and its outcome.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PacedLoad {
    /// Bit/s of IP packets that were offered, of the train's second half: as they left, which is
    /// not the pace that was asked for where the sender was late.
    pub offered_bps: f64,
    /// Size of the packets.
    pub ip_bytes: u32,
    /// Packets that were sent.
    pub sent: u64,
    /// Packets that were lost.
    pub lost: u64,
    /// Bit/s of IP packets that arrived, of the train's second half.
    pub received_bps: f64,
    /// Delay above the least of the path: 5th, 50th and 95th percentile, in nanoseconds.
    pub delay_ns: [f64; 3],
    /// Median delay of the train's last eighth less that of its first: a queue that grows.
    pub growth_ns: f64,
}

/// A load that the path passes: this share of it arrives.
const PASSED: f64 = 0.95;

impl PacedLoad {
    /// True when the path passes the load.
    pub fn passes(&self) -> bool {
        self.received_bps >= PASSED * self.offered_bps
    }
}

/// Packets that arrived after one that was sent later (RFC 4737).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reordering {
    /// Packets that arrived in time or late.
    pub arrived: u64,
    /// Packets that arrived after one with a higher number.
    pub reordered: u64,
    /// Largest number of packets sent later that arrived before one (its extent).
    pub extent_packets: u64,
    /// Longest time between the first of them and the packet that they overtook.
    pub extent_ns: f64,
}

/// Findings on the path from the trains of one direction; `None` without a packet.
pub fn mechanism(trains: &[DatagramTrain], direction: Direction) -> Option<Findings> {
    let fates = Fates::from_lone_trains(trains, direction)?;
    let capacity = capacity::by_size(&fates);
    let loads = delay::paced_loads(&fates);
    let sustained_bps = capacity::sustained(&loads);
    let verdict = decide::decide(&fates, &capacity, &loads);
    Some(Findings {
        packets: fates.probes.len() as u64,
        lost: fates.lost_count(),
        shaper: delay::shaper(&fates, &capacity, sustained_bps),
        capacity,
        sustained_bps,
        overflow: verdict.overflow,
        background: verdict.background,
        states: verdict.states,
        first_lost: order::first_lost(&fates),
        both_ways: both_ways::both_ways(trains, direction, &loads),
        loads,
        reordering: order::reordering(&fates),
    })
}
