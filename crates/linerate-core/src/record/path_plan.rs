//! A path as data: what a user writes.
//!
//! ```toml
//! link = "oc12"
//! carrier = "aal5-llcsnap"
//! delay = "22.5 ms"
//! buffer = "1 BDP"
//! backward = { loss = "0.1%" }
//! ```
//!
//! Keys hold for both directions; `forward` and `backward` override them for one. A packet meets
//! the elements in one fixed order: outages, MTU, policer, shaper, device, cross traffic, link
//! with its queue, damage on the line, loss, duplication, corruption, batches, delay, jitter,
//! reordering.

use serde::{Deserialize, Serialize};

/// A path, or the settings of one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct PathPlan {
    /// Seed of all random decisions; 1 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Emulator that carries the packets of a laboratory's link; `linerate` when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub emulator: Option<Datapath>,
    /// Elements that the first end's packets cross besides, or instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forward: Option<Box<Self>>,
    /// Elements that the second end's packets cross besides, or instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backward: Option<Box<Self>>,

    /// A link by name, with the rate and framing of its kind: `1g`, `oc12`, `ds3`, `vdsl2:50M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Carrier of the packets on the link: `ethernet`, `aal5-llcsnap`, `pos`; the link's usual one
    /// when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carrier: Option<String>,
    /// The rate of an Ethernet link, instead of `link`: `100 Mbit/s`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// Later rates of the link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<RateStep>,
    /// A recorded link instead of a rate: times in ms at which 1504 bytes may leave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<String>,
    /// Rates of the members of a trunk, instead of one rate; a flow's hash picks its member.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunk: Vec<String>,
    /// Share of packets that each member of the trunk loses, in their order; those that are not
    /// listed lose none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trunk_loss: Vec<String>,
    /// Both directions share the link's time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub half_duplex: Option<bool>,

    /// The end of the link that is half duplex while the other one is full duplex: it waits while
    /// it senses the other's carrier, and frames that the other sends meanwhile collide. For the
    /// whole path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplex_mismatch: Option<PathEnd>,

    /// Room before the link: `250 kB`, `100 packets`, `20 ms`, `1 BDP`; one bandwidth-delay
    /// product, and 100 packets at the least, when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffer: Option<String>,
    /// The discipline of the queue; tail drop when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<QueuePlan>,
    /// The queue marks ECN-capable packets instead of dropping them early.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,

    /// One-way propagation delay: `22.5 ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delay: Option<String>,
    /// Later propagation delays, where the route changes; no packet overtakes another.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub delay_steps: Vec<DelayStep>,
    /// Packets wait for the next multiple of this time and leave together, as with the aggregates
    /// of Wi-Fi and the grants of DOCSIS: `10 ms`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<String>,
    /// Delay that varies from packet to packet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<JitterPlan>,
    /// Some packets are late and overtaken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reorder: Option<ReorderPlan>,

    /// Share of packets lost, independently: `1e-4`, `0.01%`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// Loss of packets in bursts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst_loss: Option<BurstLossPlan>,
    /// Share of bits in error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bit_errors: Option<String>,
    /// Loss of ATM cells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cell_loss: Option<CellLossPlan>,
    /// Numbers of packets to lose, from 0. What hosts send for themselves has none: ARP, group
    /// membership, neighbour and router discovery.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lose: Vec<u64>,
    /// Times during which nothing passes, from the start of the path.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// Share of packets that are duplicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duplicate: Option<String>,
    /// Share of packets in which a bit is changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub corrupt: Option<String>,

    /// Largest IP packet that passes, 68 bytes or more. Senders of longer ones that may not be
    /// fragmented get an ICMP message with it (not in virtual time); others are lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_bytes: Option<u32>,
    /// Longer packets vanish without an ICMP message: a black hole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mtu_silent: Option<bool>,
    /// Policer: loses packets that exceed a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policer: Option<BucketPlan>,
    /// Shaper: delays packets that exceed a rate, in its own queue of 1000 packets (1.5 MB of full
    /// ones).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shaper: Option<BucketPlan>,
    /// A device on the way that handles so many packets per second.
    #[serde(alias = "packets_per_s", default, skip_serializing_if = "Option::is_none")]
    pub packets_per_sec: Option<u64>,
    /// Other traffic on the link.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cross: Vec<CrossPlan>,
}

/// Emulator that carries packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Datapath {
    /// linerate's own emulator, with every element.
    Linerate,
    /// The kernel's netem, where it has one: delay, even jitter, rate, independent loss,
    /// duplicates and corruption.
    Netem,
}

/// Another rate from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RateStep {
    /// Time from the start of the path.
    pub at: String,
    /// The link's rate from then on.
    pub rate: String,
}

/// Another delay from a time on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct DelayStep {
    /// Time from the start of the path.
    pub at: String,
    /// The propagation delay from then on, one way.
    pub delay: String,
}

/// An end of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PathEnd {
    /// The end whose packets go forward.
    First,
    /// The end whose packets go backward.
    Second,
}

/// A queue discipline before the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum QueuePlan {
    /// Drop-tail: a packet that arrives while the buffer is full is lost.
    Tail,
    /// Random early detection with thresholds at a sixth and a half of the buffer, 0.1 at the most,
    /// weight 0.002.
    Red,
    /// CoDel with RFC 8289's values.
    Codel,
    /// FQ-CoDel with RFC 8290's values.
    FqCodel,
    /// FQ-CoDel in which hosts have equal shares, and the flows of a host those of its share, as in
    /// CAKE; nothing else of CAKE.
    Cake,
    /// DualPI2 for L4S with RFC 9332's values and a step of 1 ms.
    Dualpi2,
}

/// Delay that varies from packet to packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct JitterPlan {
    /// The longest, evenly spread from 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<String>,
    /// The mean of an exponential spread, instead of `most`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<String>,
    /// Packets may overtake each other.
    #[serde(default)]
    pub reorder: bool,
}

/// Reordering: a share of the packets is late.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct ReorderPlan {
    /// Share of the packets that are late.
    pub share: String,
    /// Extra delay of those packets.
    pub extra: String,
}

/// Loss in bursts (Gilbert), by the observed rate and length of bursts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BurstLossPlan {
    /// Share of packets lost in the long run.
    pub ratio: String,
    /// Mean length of a burst in packets, 1 or more.
    pub burst_packets: f64,
}

/// Loss of ATM cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CellLossPlan {
    /// Probability that a burst begins at a cell.
    pub probability: String,
    /// Cells lost in a row; 1 when absent.
    #[serde(default = "one_cell")]
    pub burst_cells: u32,
}

const fn one_cell() -> u32 {
    1
}

/// A time during which nothing passes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// Begin of the outage, from the start of the path.
    pub from: String,
    /// End of the outage.
    pub to: String,
}

/// A token bucket: policer or shaper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct BucketPlan {
    /// Rate of IP packets.
    pub rate: String,
    /// Depth of the bucket.
    pub burst: String,
}

/// Traffic of other hosts on the path.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CrossPlan {
    /// Mean rate of IP packets, within bursts for `on` and `off`.
    pub rate: String,
    /// Length of its IP packets; 1500 when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet_bytes: Option<u32>,
    /// Gaps are exponential instead of constant.
    #[serde(default)]
    pub poisson: bool,
    /// Mean length of its bursts; then `off` belongs to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<String>,
    /// Mean length of its pauses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<String>,
    /// Flow hash of the packets: on a trunk of n members they take member `flow` modulo n.
    #[serde(default)]
    pub flow: u32,
}

impl PathPlan {
    /// Names of the keys of a plan that are set, those of one direction over those of both.
    pub fn direction(&self, backward: bool) -> Self {
        let own = if backward { &self.backward } else { &self.forward };
        let Some(own) = own.as_deref().cloned() else {
            return Self { forward: None, backward: None, ..self.clone() };
        };
        let both = self.clone();
        // A rate, a trace or a trunk of one direction takes the place of the link of both.
        let has_line = own.link.is_some() || own.rate.is_some() || own.trace.is_some();
        let line = if has_line || !own.trunk.is_empty() { Self::default() } else { self.clone() };
        Self {
            seed: self.seed,
            emulator: self.emulator,
            forward: None,
            backward: None,
            link: own.link.or(line.link),
            carrier: own.carrier.or(line.carrier),
            rate: own.rate.or(line.rate),
            steps: or_list(own.steps, line.steps),
            trace: own.trace.or(line.trace),
            trunk: or_list(own.trunk, line.trunk),
            trunk_loss: or_list(own.trunk_loss, line.trunk_loss),
            half_duplex: own.half_duplex.or(both.half_duplex),
            duplex_mismatch: self.duplex_mismatch,
            buffer: own.buffer.or(both.buffer),
            queue: own.queue.or(both.queue),
            ecn: own.ecn.or(both.ecn),
            delay: own.delay.or(both.delay),
            delay_steps: or_list(own.delay_steps, both.delay_steps),
            batch: own.batch.or(both.batch),
            jitter: own.jitter.or(both.jitter),
            reorder: own.reorder.or(both.reorder),
            loss: own.loss.or(both.loss),
            burst_loss: own.burst_loss.or(both.burst_loss),
            bit_errors: own.bit_errors.or(both.bit_errors),
            cell_loss: own.cell_loss.or(both.cell_loss),
            lose: or_list(own.lose, both.lose),
            outages: or_list(own.outages, both.outages),
            duplicate: own.duplicate.or(both.duplicate),
            corrupt: own.corrupt.or(both.corrupt),
            mtu_bytes: own.mtu_bytes.or(both.mtu_bytes),
            mtu_silent: own.mtu_silent.or(both.mtu_silent),
            policer: own.policer.or(both.policer),
            shaper: own.shaper.or(both.shaper),
            packets_per_sec: own.packets_per_sec.or(both.packets_per_sec),
            cross: or_list(own.cross, both.cross),
        }
    }
}

fn or_list<T>(own: Vec<T>, both: Vec<T>) -> Vec<T> {
    if own.is_empty() { both } else { own }
}
