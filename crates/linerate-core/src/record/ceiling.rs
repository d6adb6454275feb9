//! The best that theory allows for a measurement, at which layer, from which inputs.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Layer, MetricId};

/// An upper bound of one metric, with the inputs it was computed from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ceiling {
    /// What is bounded.
    pub metric: MetricId,
    /// At which layer.
    pub layer: Layer,
    /// The bound in the metric's unit; null when an input is unknown.
    pub value: Option<f64>,
    /// What it was computed from.
    pub inputs: Vec<CeilingInput>,
    /// Inputs that this host could not tell.
    pub unknown: Vec<String>,
    /// Measured over bound, 0 … 1.
    pub share: Option<f64>,
}

/// One input of a ceiling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CeilingInput {
    /// What it is: `link_rate_bps`, `mtu_bytes`, `tcp_header_bytes`.
    pub name: String,
    /// Its value in the unit that the name ends in.
    pub value: f64,
    /// Where it came from: `tbf qdisc on veth-a`, `ethtool speed of eth0`, `SYN options`.
    pub source: String,
}
