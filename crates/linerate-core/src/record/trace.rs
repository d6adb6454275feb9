//! What a trace found: each hop with every probe to it, and what follows.
//!
//! Findings are made of the samples by [`crate::trace`], so that a later version may judge anew.

use serde::{Deserialize, Serialize};

use super::Direction;

/// Hops, samples and findings of a trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TraceResult {
    /// The address that was traced.
    pub target: String,
    /// True when an answer came from the end of the path.
    pub reached: bool,
    /// The routers in order, the end last where it was reached.
    pub hops: Vec<Hop>,
    /// ICMP echo requests to the target beside UDP probes: hosts limit their error messages, but
    /// not these answers.
    #[serde(default)]
    pub echoes: Vec<HopSample>,
    /// True when headers quoted by routers could be read, which takes CAP_NET_RAW.
    pub reads_quotes: bool,
    /// The DSCP that probes for marks left with; null where none were sent.
    #[serde(default)]
    pub dscp_sent: Option<u8>,
    /// ECN field of the probes.
    #[serde(default)]
    pub ecn_sent: Option<u8>,
    /// Largest packet that arrived at the end unfragmented.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
    /// Hops beyond which packets above a size do not go.
    #[serde(default)]
    pub size_limits: Vec<SizeLimit>,
    /// Step of the clock, or the noise of the kernel's stamps where that is more.
    #[serde(default)]
    pub floor_ns: Option<u64>,
    /// Rounds of probes that were put off, whole or their rest, because this host was late: sent at
    /// once, they would have met routers that limit their answers per second. Absent where there
    /// were none.
    #[serde(default, skip_serializing_if = "super::path::is_zero")]
    pub late_rounds: u64,
    /// The path back, as the target traced it, where it runs `linerate serve`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back: Option<Box<Self>>,
    /// The reason why a server there did not trace it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_refused: Option<String>,
    /// Ports that the measured flows leave from, by their number, where there are several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flow_ports: Vec<u16>,
    /// Findings that follow from the hops and samples.
    pub findings: Vec<Finding>,
}

/// A place where packets above a size do not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SizeLimit {
    /// Last hop that larger ones reach; 0 is this host.
    pub after: u8,
    /// First hop that they do not reach.
    pub at: u8,
    /// Largest that goes on.
    pub bytes: u32,
    /// True when a router reports the limit to senders; else larger packets vanish.
    pub reported: bool,
}

/// One distance on the path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop {
    /// Time to live that ends here.
    pub ttl: u8,
    /// Nodes that answered, the most frequent of the measured flow first; empty for a silent
    /// router.
    pub nodes: Vec<HopNode>,
    /// True for the end of the path.
    pub is_end: bool,
    /// Every probe to here, in the order sent.
    pub samples: Vec<HopSample>,
    /// Header fields as they arrived here, where the answer showed them.
    #[serde(default)]
    pub arrived: Option<ArrivedMarks>,
    /// Largest packet that is known to arrive here in one piece.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
    /// Round trip to here beyond that to the hop before, where that shows.
    #[serde(default)]
    pub added: Option<AddedDelay>,
}

/// A router or host at one distance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopNode {
    /// The address that it answers from.
    pub address: String,
    /// Flows on which the node answered.
    pub flows: Vec<u16>,
    /// The label stack that a probe arrived with (RFC 4950).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub labels: Vec<MplsLabel>,
}

/// An entry of an MPLS label stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct MplsLabel {
    /// 20 bits.
    pub label: u32,
    /// Traffic class, 3 bits.
    pub traffic_class: u8,
    /// Time to live of the label.
    pub ttl: u8,
}

/// A probe and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct HopSample {
    /// Time at which the probe was sent, since the start of the trace.
    pub at_ns: u64,
    /// Number of the probe's flow.
    pub flow: u16,
    /// Index of the hop's node that answered; null for none.
    pub node: Option<u16>,
    /// Round-trip time; null without an answer.
    pub rtt_ns: Option<u64>,
    /// Phase of the trace in which it was sent.
    pub phase: TracePhase,
}

/// Phase of a trace in which a probe was sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum TracePhase {
    /// Finds hops, paths and sizes: sent in bunches.
    #[default]
    Search,
    /// A round without load.
    Idle,
    /// A round under load.
    Loaded,
}

/// Fields of a probe's header as a router quoted them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ArrivedMarks {
    /// DSCP.
    pub dscp: u8,
    /// ECN field.
    pub ecn: u8,
    /// Source address or port, or destination, are not those that the probe left with.
    pub translated: bool,
}

/// A difference of medians with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct AddedDelay {
    /// Difference of the medians.
    pub median_ns: f64,
    /// Lower end of an interval that holds it with 95 % or more.
    pub low_ns: f64,
    /// Upper end of its interval, as `low_ns`.
    pub high_ns: f64,
}

/// A finding about the path. `after` is the last hop without it (0 is this host), `at` the first
/// with it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Finding {
    /// Packets are lost: all later hops show it.
    Loss {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
        /// Share that is lost there and back.
        ratio: f64,
        /// Lower end of its interval, 95 %.
        low: f64,
        /// Upper end of its interval, as `low`.
        high: f64,
        /// Probes that it rests on.
        sent: u64,
    },
    /// Some flows lose packets and others do not: on a path of their own.
    FlowLoss {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
        /// The flows that lose.
        flows: Vec<u16>,
        /// Flows that were measured.
        of: u16,
        /// Routers that these flows alone pass, at the first hop with it or else the last without;
        /// empty where others pass them too.
        routers: Vec<String>,
        /// Share that these flows lose there and back.
        ratio: f64,
        /// Lower end of its interval, 95 %.
        low: f64,
        /// Upper end of its interval, as `low`.
        high: f64,
        /// Probes that it rests on.
        sent: u64,
    },
    /// Packets go round between routers.
    Loop {
        /// Hop at which the router that comes again is seen first.
        at: u8,
        /// Address of the router.
        address: String,
    },
    /// Under load the round trip rises from here on: packets queue between these hops.
    Queue {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
        /// Rise of the round trip to the end.
        rise_ns: f64,
        /// The way that the load went.
        direction: Direction,
    },
    /// A router limits its answers: no loss.
    RateLimited {
        /// Number of the hop.
        at: u8,
        /// Answers per second that it keeps to, where a token bucket explains them.
        per_second: Option<f64>,
        /// Number of probes sent to it.
        sent: u64,
        /// Number of its answers.
        answered: u64,
    },
    /// Flows are spread over several routers.
    Spread {
        /// Last hop that all flows share.
        after: u8,
        /// First hop with several.
        at: u8,
        /// Most routers at one distance.
        width: u16,
        /// First hop that all flows share again; null where they do not.
        until: Option<u8>,
    },
    /// Packets above a size do not go on.
    Mtu(SizeLimit),
    /// The DSCP is changed.
    Dscp {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
        /// Value before the hop.
        from: u8,
        /// Value after the hop.
        to: u8,
    },
    /// The ECN field is changed.
    Ecn {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
        /// Value before the hop.
        from: u8,
        /// Value after the hop.
        to: u8,
    },
    /// Addresses or ports are changed.
    Translated {
        /// Last hop without it.
        after: u8,
        /// First hop with it.
        at: u8,
    },
}
