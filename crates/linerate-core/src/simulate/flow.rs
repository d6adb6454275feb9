//! What a simulated connection is, and what it did.

use std::time::Duration;

use super::{PointsPlan, SequencePoint, TcpModel};
use crate::time::MonoTime;

/// One connection of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPlan {
    /// Parameters of the flow's TCP.
    pub tcp: TcpModel,
    /// Time at which it begins to send.
    pub start: MonoTime,
    /// Bytes that it sends; without an end when absent. Rounded up to whole segments.
    pub bytes: Option<u64>,
    /// Hash by which queues and trunks tell flows apart.
    pub hash: u32,
    /// Rule for the points of its time-sequence diagram that are kept; none when absent.
    pub points: Option<PointsPlan>,
}

/// Counters of a connection at its end.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Payload that was acknowledged.
    pub acked_bytes: u64,
    /// Segments sent, retransmissions among them.
    pub segments_sent: u64,
    /// Number of segments sent again.
    pub retransmitted: u64,
    /// Times that the sender entered fast recovery: loss events.
    pub recoveries: u64,
    /// Times that the timer ran out.
    pub timeouts: u64,
    /// Time from its start until all was acknowledged; absent when it has no end or did not reach
    /// it.
    pub finished_after: Option<Duration>,
    /// The largest congestion window.
    pub cwnd_bytes_max: u64,
    /// Points of its time-sequence diagram.
    pub points: Vec<SequencePoint>,
}
