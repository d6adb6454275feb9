//! What a simulated connection is, and what it did.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionControl, PointsPlan};
use crate::time::MonoTime;

/// How a sender repairs losses.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Recovery {
    /// Fast retransmit of one segment; the next new acknowledgement ends it (RFC 2581 §3.2).
    Reno,
    /// One retransmission each round trip until all of a window is repaired (RFC 6582).
    NewReno,
    /// Selective acknowledgements tell what is missing (RFC 2018, RFC 6675).
    Sack,
}

impl Recovery {
    /// Its name, as in plans and records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Reno => "reno",
            Self::NewReno => "newreno",
            Self::Sack => "sack",
        }
    }
}

/// A TCP and its host.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TcpModel {
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// IP and TCP headers of each packet.
    pub header_bytes: u32,
    /// How the window grows and shrinks.
    pub congestion_control: CongestionControl,
    /// How losses are repaired.
    pub recovery: Recovery,
    /// Segments in the first flight (10 in RFC 6928, 2 in RFC 2581).
    pub initial_window: u32,
    /// Most segments that one acknowledgement counts for when the window grows: 1 counts
    /// acknowledgements (RFC 5681 §3.1), more counts what they cover (RFC 3465).
    pub growth_per_ack: u32,
    /// Slow start ends early, before it has filled the queue.
    pub hystart: bool,
    /// The receiver's window.
    pub window_bytes: u64,
    /// Segments after which an acknowledgement is sent (2 in RFC 5681 §4.2).
    pub ack_every: u32,
    /// Longest wait of an acknowledgement (RFC 5681 §4.2: below 500 ms).
    pub ack_delay: Duration,
    /// Shortest retransmission time-out (1 s in RFC 6298 §2.4, 200 ms in Linux).
    pub rto_min: Duration,
}

impl TcpModel {
    /// Linux of today with CUBIC and HyStart: RFC 6928, RFC 3465 without limit, 200 ms.
    pub const TODAY: Self = Self {
        mss_bytes: 1448,
        header_bytes: 52,
        congestion_control: CongestionControl::CUBIC,
        recovery: Recovery::Sack,
        initial_window: 10,
        growth_per_ack: u32::MAX,
        hystart: true,
        window_bytes: 1 << 30,
        ack_every: 2,
        ack_delay: Duration::from_millis(40),
        rto_min: Duration::from_millis(200),
    };

    /// A host of 1999: Reno, two segments at first, a window of 2 MB, a second to time out,
    /// acknowledgements counted, packets of 9180 bytes with timestamps.
    pub const OF_1999: Self = Self {
        mss_bytes: 9128,
        congestion_control: CongestionControl::RENO,
        recovery: Recovery::Reno,
        initial_window: 2,
        growth_per_ack: 1,
        hystart: false,
        window_bytes: 2_000_000,
        ack_delay: Duration::from_millis(200),
        rto_min: Duration::from_secs(1),
        ..Self::TODAY
    };
}

/// One connection of a simulation.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlowPlan {
    /// Its TCP.
    pub tcp: TcpModel,
    /// When it begins to send.
    pub start: MonoTime,
    /// What it sends; without an end when absent. Rounded up to whole segments.
    pub bytes: Option<u64>,
    /// What queues and trunks tell flows apart by.
    pub hash: u32,
    /// Which points of its time-sequence diagram are kept; none when absent.
    pub points: Option<PointsPlan>,
}

/// A point of the time-sequence diagram.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// When.
    pub at: MonoTime,
    /// Payload that was acknowledged by then.
    pub acked_bytes: u64,
    /// Payload in the congestion window.
    pub cwnd_bytes: u64,
    /// Payload below which the window grows by slow start; absent before the first loss.
    pub ssthresh_bytes: Option<u64>,
}

/// What a connection did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowResult {
    /// Payload that was acknowledged.
    pub acked_bytes: u64,
    /// Segments sent, retransmissions among them.
    pub segments_sent: u64,
    /// Retransmissions.
    pub retransmitted: u64,
    /// Times that the sender entered fast recovery: loss events.
    pub recoveries: u64,
    /// Times that the timer ran out.
    pub timeouts: u64,
    /// From its start until all was acknowledged; absent when it has no end or did not reach it.
    pub finished_after: Option<Duration>,
    /// The largest congestion window.
    pub cwnd_bytes_max: u64,
    /// Its time-sequence diagram.
    pub points: Vec<Point>,
}
