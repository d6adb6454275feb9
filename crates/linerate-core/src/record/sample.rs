//! Samples over time, distributions, and the rows of a summary.

use serde::{Deserialize, Serialize};

use super::MetricId;

/// Direction of data, seen from the client that asked for the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// End of a flow to which a value belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum FlowSide {
    /// The end that sends the data.
    Sender,
    /// The end that receives the data.
    Receiver,
}

/// Statistic by which a summary value was made from the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Stat {
    /// One value for the whole measurement: a total, or a total over its span.
    Value,
    /// Smallest sample.
    Min,
    /// Arithmetic mean.
    Mean,
    /// Largest sample.
    Max,
    /// Sample standard deviation (n − 1).
    Stddev,
    /// 50th percentile by nearest rank: a value that was measured.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P999,
}

/// One summary value of a metric.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Summary {
    /// The metric, from the one table.
    pub metric: MetricId,
    /// The statistic over the samples.
    pub stat: Stat,
    /// Value in the metric's unit.
    pub value: f64,
    /// Number of samples behind it.
    pub n: Option<u64>,
    /// Data direction, where the metric has one.
    pub direction: Option<Direction>,
    /// Stream number, or null for all streams together.
    pub flow: Option<u16>,
    /// Ping payload, where the plan varies it.
    pub payload_bytes: Option<u32>,
}

impl Summary {
    /// A row about the whole measurement.
    pub const fn from_value(metric: MetricId, stat: Stat, value: f64) -> Self {
        Self { metric, stat, value, n: None, direction: None, flow: None, payload_bytes: None }
    }

    /// The row with its sample count.
    pub const fn with_n(self, n: u64) -> Self {
        Self { n: Some(n), ..self }
    }

    /// The row for one direction.
    pub const fn in_direction(self, direction: Direction) -> Self {
        Self { direction: Some(direction), ..self }
    }

    /// The row for one stream.
    pub const fn of_flow(self, flow: u16) -> Self {
        Self { flow: Some(flow), ..self }
    }

    /// The row for one ping payload size.
    pub const fn at_payload(self, payload_bytes: u32) -> Self {
        Self { payload_bytes: Some(payload_bytes), ..self }
    }
}

/// Successive probes without an answer, two at least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct LostStretch {
    /// Payload of the probes.
    pub payload_bytes: u32,
    /// Time at which the first of them was sent, since the first probe of that size.
    pub start_ns: u64,
    /// Time from there to the sending of the next probe that was answered, or of the last one.
    pub length_ns: u64,
    /// Number of probes lost.
    pub probes_lost: u64,
}

/// Values of one metric over time, from one end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Series {
    /// The metric of the samples.
    pub metric: MetricId,
    /// Data direction, where the metric has one.
    pub direction: Option<Direction>,
    /// Stream number, or null for all streams together.
    pub flow: Option<u16>,
    /// The end that took the samples.
    pub side: Option<FlowSide>,
    /// Ping payload, where the plan varies it.
    pub payload_bytes: Option<u32>,
    /// End of each interval, or time of each sample, since that end's start of the test.
    pub t_ns: Vec<u64>,
    /// One value per time; null where the sample is missing.
    pub values: Vec<Option<f64>>,
}

/// Number of occurrences of each value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Distribution {
    /// The metric; its unit is the unit of `values`.
    pub metric: MetricId,
    /// Ping payload, where the plan varies it.
    pub payload_bytes: Option<u32>,
    /// Distinct values, rising; the highest equivalent value of a bin when not `exact`.
    pub values: Vec<u64>,
    /// Occurrences of each value.
    pub counts: Vec<u64>,
    /// True when every value is kept to the nanosecond.
    pub exact: bool,
}
