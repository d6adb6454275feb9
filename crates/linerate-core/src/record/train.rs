//! Trains of probe datagrams and what became of every packet.
//!
//! Left out: which trains a diagnosis sends; what they say.

use serde::{Deserialize, Serialize};

use super::Direction;

/// A train of datagrams of one size, sent without waiting for answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct DatagramTrain {
    /// Direction of the packets.
    pub direction: Direction,
    /// Bytes of each packet with its IP header.
    pub ip_bytes: u32,
    /// Offered load at that layer; null for packets back to back.
    pub offered_bps: Option<f64>,
    /// Time at which the first packet left, since the test began, by the client's clock.
    pub started_ns: u64,
    /// Time at which each packet left, since the first, by the sender's clock.
    pub sent_ns: Vec<u64>,
    /// Time at which each packet arrived, since the first left; null: it never did. The clocks of
    /// two hosts differ by an unknown offset, which is the same for all packets of all trains of a
    /// direction, but for drift.
    pub arrived_ns: Vec<Option<i64>>,
    /// Datagrams that the receiver's socket dropped, which the path did not lose; null: unknown.
    pub socket_drops: Option<u64>,
}

/// The largest IP packet that passes a path whole, found by datagrams that must not be fragmented
/// and the other end's word of which arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PathMtu {
    /// Direction of the packets.
    pub direction: Direction,
    /// The largest packet that arrived, with its IP header.
    pub ip_bytes: u32,
    /// The smallest that did not; null where nothing larger was sent.
    pub lost_bytes: Option<u32>,
    /// Fate of packets above the MTU.
    pub above: AboveMtu,
    /// The MTU that a router, or the sender's own host, named for them.
    pub icmp_mtu_bytes: Option<u32>,
}

/// Fate of packets above a path's MTU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum AboveMtu {
    /// The sender's own link takes none: they never left.
    Link,
    /// A router reported that they are too big (ICMP), as in front of a tunnel: TCP learns the MTU.
    Icmp,
    /// Packets vanish without a message: a black hole.
    Silent,
    /// No larger packets were sent.
    Unknown,
}
