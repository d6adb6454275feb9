//! What a survey changed for a while, and what that did to the rate.
//!
//! Left out: which changes are worth trying and what they decide (`explain`).

use serde::{Deserialize, Serialize};

use super::{Direction, IpFamily};
use crate::units::BitRate;

/// Short runs of one stream, every other one with a single thing changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Intervention {
    /// Direction of the data.
    pub direction: Direction,
    /// The setting that was changed.
    pub change: Change,
    /// Runs without the change, in the order made: each just before the run with the change at the
    /// same index. Their spread is the difference of equal runs here.
    pub plain: Vec<ShortRun>,
    /// Runs with the change.
    pub changed: Vec<ShortRun>,
    /// The reason why no more runs were made.
    pub ended: InterventionEnd,
}

/// The one thing that a run does differently.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// So many streams in place of one.
    Streams(u16),
    /// Another congestion control at the sender.
    CongestionControl(String),
    /// A pace for each stream, payload bit/s.
    #[serde(rename = "pace_bps")]
    Pace(BitRate),
    /// Segments of no more than so many bytes.
    #[serde(rename = "mss_bytes")]
    Segments(u32),
    /// Socket buffers of so many bytes asked for at both ends.
    #[serde(rename = "window_bytes")]
    Buffers(u64),
    /// Another port of the server for the data.
    OtherPort,
    /// The other address family.
    Family(IpFamily),
    /// Writes of so many bytes.
    #[serde(rename = "buffer_bytes")]
    Writes(u32),
}

/// Figures of one short run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ShortRun {
    /// The receiver's payload rate, all streams together.
    pub goodput_bps: f64,
    /// Segments sent again over segments sent.
    #[serde(default)]
    pub retransmit_ratio: Option<f64>,
    /// Median round trip by TCP.
    #[serde(default)]
    pub rtt_ns: Option<f64>,
}

/// The reason why short runs ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum InterventionEnd {
    /// Their difference is clear.
    Clear,
    /// The most runs that are made.
    Runs,
    /// No time was left for two more.
    Time,
    /// A run with the change failed, as where the sender's kernel does not have it.
    Failed,
}
