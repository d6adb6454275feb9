//! What a metric includes, and whether more of it is better.

use serde::{Deserialize, Serialize};

/// Headers that a rate or size includes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum HeaderLayer {
    /// Bytes given to and taken from the application.
    Payload,
    /// IP packets, headers included.
    Ip,
    /// Ethernet frames, header and FCS included.
    Frame,
    /// Frames with preamble and inter-frame gap: all bits of the line.
    Wire,
}

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Better {
    /// More is better.
    Higher,
    /// Less is better.
    Lower,
    /// Neither: the metric describes, and is not judged.
    Neither,
}
