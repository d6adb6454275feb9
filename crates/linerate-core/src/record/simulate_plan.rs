//! What is to be simulated, with every default filled in: TCP flows over an emulated path, by a
//! model and in virtual time. A plan alone repeats the simulation to the bit, on every machine.

use serde::{Deserialize, Serialize};

use super::named::named;
use super::{Finish, PathPlan};
use crate::units::BitRate;

/// TCP flows from one end of a path to the other. All times are virtual.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SimulatePlan {
    /// The path, with the seed of all that is random. Data go forward, acknowledgements back.
    pub path: Box<PathPlan>,
    /// The path's place in a laboratory, the sender's end first: `a eth0 - b eth0`.
    pub place: Option<String>,
    /// The TCP of all flows.
    pub tcp: SimulatedTcp,
    /// Number of flows at once.
    pub streams: u32,
    /// End of the test: after a time, or when all flows together have sent so many bytes, each its
    /// part, rounded up.
    pub finish: Finish,
    /// Span at the start that is left out of the result.
    pub omit_ns: u64,
    /// The flows begin at random times within this span.
    pub start_spread_ns: u64,
    /// Time after which a transfer is given up.
    pub time_max_ns: u64,
    /// Payload bit/s of a constant flow of full packets against the data; null is none.
    #[serde(rename = "background_bps")]
    pub background: Option<BitRate>,
}

/// A model of TCP and its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SimulatedTcp {
    /// Algorithm of the congestion window: Reno by RFC 5681, CUBIC by RFC 9438, BBR as in Linux.
    pub congestion_control: ControlName,
    /// Algorithm that repairs losses.
    pub recovery: LossRecovery,
    /// Payload of a full segment.
    pub mss_bytes: u32,
    /// IP and TCP headers of each packet.
    pub header_bytes: u32,
    /// Segments in the first flight.
    pub initial_window_segments: u32,
    /// Most segments that one acknowledgement counts for when the window grows; null is all that it
    /// covers.
    pub growth_per_ack_segments: Option<u32>,
    /// Slow start ends early, before it has filled the queue.
    pub hystart: bool,
    /// Segments leave in pieces of a millisecond of the rate, as with segmentation offload.
    #[serde(default)]
    pub segmentation_offload: bool,
    /// Window that the receiver offers.
    pub window_bytes: u64,
    /// The sender's buffer; null is one that never binds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_buffer_bytes: Option<u64>,
    /// Segments after which an acknowledgement is sent.
    pub ack_every_segments: u32,
    /// Longest wait of an acknowledgement.
    pub ack_delay_ns: u64,
    /// Shortest retransmission time-out above the round trip.
    pub rto_min_ns: u64,
}

/// The congestion controls that the model has, each with the values of its standard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ControlName {
    /// Reno as of RFC 5681.
    Reno,
    /// CUBIC as of RFC 9438.
    Cubic,
    /// Version 1, as in Linux.
    Bbr,
}

named!(ControlName { Reno = "reno", Cubic = "cubic", Bbr = "bbr" });

/// Algorithm with which a sender repairs losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum LossRecovery {
    /// Fast retransmit of one segment; the next new acknowledgement ends it (RFC 2581 §3.2).
    Reno,
    /// One retransmission each round trip until all of a window is repaired (RFC 6582).
    NewReno,
    /// Selective acknowledgements report the missing segments (RFC 2018, RFC 6675).
    Sack,
    /// Losses are found by time, also those of retransmissions, and reordering is no loss: RACK-TLP
    /// (RFC 8985) with PRR (RFC 6937), as in Linux.
    Rack,
}

named!(LossRecovery { Reno = "reno", NewReno = "newreno", Sack = "sack", Rack = "rack" });
