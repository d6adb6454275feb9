//! Figures of a benchmark that several trials give together: overload, congestion, repeated
//! latencies, and a contract against what was ordered. How they come about stands in `device`.

use serde::{Deserialize, Serialize};

/// Frames towards one port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct PortCounts {
    /// Frames that the tester meant to send there.
    pub intended: u64,
    /// Frames that it could send: fewer when the device held it back.
    pub sent: u64,
    /// Frames received there from the device.
    pub received: u64,
}

/// Result of the congestion test: head-of-line blocking and back pressure (RFC 2889 §5.5).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Congestion {
    /// Frames to the free port were lost: head-of-line blocking.
    pub has_head_of_line_blocking: bool,
    /// The load for the congested port exceeded its rate, and no frame that was sent was lost: the
    /// device held the senders back.
    pub has_back_pressure: bool,
    /// The congested port was offered no more than it can carry, or carried more than that: the
    /// test says nothing about it.
    pub is_uncongested: bool,
    /// Loss ratio of frames to the free port.
    pub free_loss_ratio: f64,
    /// Loss ratio of frames to the congested port.
    pub congested_loss_ratio: f64,
    /// Frames to the free port.
    #[serde(default)]
    pub free: Option<PortCounts>,
    /// Frames to the congested port.
    #[serde(default)]
    pub congested: Option<PortCounts>,
}

/// Behaviour of a device when more frames arrive than it can forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum OverloadKind {
    /// It forwards at 95 % of its best or more.
    Holds,
    /// It forwards less than 95 % of its best.
    Sags,
    /// It forwards less than half of its best: receive livelock.
    Collapses,
}

/// The overload curve in four figures.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Overload {
    /// Maximum forwarding rate of all loads (RFC 2285 §3.6.3), frames per second.
    #[serde(rename = "best_frames_per_sec")]
    pub best_fps: f64,
    /// Largest load that was put on the wire (RFC 2285 §3.5.3), frames per second.
    #[serde(rename = "largest_offered_frames_per_sec")]
    pub largest_offered_fps: f64,
    /// Forwarding rate at it (RFC 2285 §3.6.2).
    #[serde(rename = "at_largest_frames_per_sec")]
    pub at_largest_fps: f64,
    /// Forwarding rate at the largest load over the best one.
    pub kept: f64,
    /// Kind of the overload's effect.
    pub kind: OverloadKind,
}

/// One figure over repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Repeated {
    /// Median of the repetitions, ns.
    pub median_ns: f64,
    /// 1st percentile of the repetitions.
    pub p1_ns: u64,
    /// 99th percentile of the repetitions.
    pub p99_ns: u64,
}

/// The latency of RFC 8219: each figure of each repetition, and these taken together.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LatencyRepeats {
    /// Number of repetitions.
    pub repeats: u64,
    /// Typical latency: the median of a repetition.
    pub typical: Repeated,
    /// Worst case latency: the 99.9th percentile of a repetition.
    pub worst: Repeated,
    /// Packet delay variation: worst less smallest.
    pub pdv: Repeated,
    /// 20 repetitions of 500 frames or more (RFC 8219).
    pub is_complete: bool,
}

/// Comparison of a parameter of the shaper with the ordered one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Holds {
    /// The ordered value, within the tolerance, is among the values that fit.
    Kept,
    /// The device grants less: it drops frames that the contract allows.
    Less,
    /// The device grants more than was ordered.
    More,
}

/// A parameter that was ordered and found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ComparedParameter {
    /// Name of the parameter: `cir`, `cbs`, `pcr`, `cdvt`, `scr`, `mbs`.
    pub parameter: String,
    /// Unit of both values.
    pub unit: String,
    /// The ordered value, from the contract.
    pub ordered: f64,
    /// The measured value, from the trials.
    pub found: f64,
    /// Smallest value that fits.
    pub low: f64,
    /// Largest value that fits.
    pub high: f64,
    /// Comparison of both values.
    pub holds: Holds,
}
