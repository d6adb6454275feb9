//! A search for the capacity of a path at the IP layer: what it goes by, what came back at each
//! status, and what arrived in each sub-interval.
//!
//! Source: RFC 9097 (definitions §5 and §6, load rate adjustment §8.1 and appendix A). What one end
//! of a test cannot see alone is absent here until the other end has told.

use serde::{Deserialize, Serialize};

use super::Direction;
use crate::units::BitRate;

/// The parameters of the load rate adjustment; the defaults are those of RFC 9097 §8.1, table 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchPlan {
    /// Interval of the receiver's status messages, 5 to 250 ms.
    pub feedback_ns: u64,
    /// Delay that is compared with the two thresholds.
    pub delay: SearchDelay,
    /// Delay above the smallest one below which the rate may rise.
    pub delay_low_ns: u64,
    /// Delay above the smallest one above which the rate falls.
    pub delay_high_ns: u64,
    /// Numbers lost, reordered or duplicate in a status that are still taken for none.
    pub sequence_errors_max: u32,
    /// Statuses with errors or delay after which congestion is taken as confirmed.
    pub congested_after: u32,
    /// Rows of the table of rates by which the rate rises before that; three times as many are
    /// taken back once, when it is confirmed.
    pub fast_rows: u16,
    /// Most that is offered, in bit/s of IP packets; null is the last row of the table.
    #[serde(default)]
    pub rate_max: Option<BitRate>,
}

impl Default for SearchPlan {
    fn default() -> Self {
        Self {
            feedback_ns: 50_000_000,
            delay: SearchDelay::RoundTrip,
            delay_low_ns: 30_000_000,
            delay_high_ns: 90_000_000,
            sequence_errors_max: 10,
            congested_after: 3,
            fast_rows: 10,
            rate_max: None,
        }
    }
}

/// The delay by which a search adjusts the rate; either is counted above the smallest of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchDelay {
    /// Time from sending the newest datagram until its status is back, without the time that the
    /// receiver held it (RFC 9097 appendix A).
    RoundTrip,
    /// Mean one-way delay of the datagrams since the last status; the way back does not matter.
    OneWay,
}

/// Change of the rate after a status message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SearchStep {
    /// Several rows up: no congestion was confirmed yet.
    Fast,
    /// One row up in the table.
    Up,
    /// The delay is between its thresholds, or nothing is known of it.
    Hold,
    /// One row down in the table.
    Down,
    /// Congestion is confirmed: three times the rows of a fast step down, once.
    Back,
}

/// One status, as the sender took it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchTrial {
    /// Time at which the status came, since the sender's start.
    pub t_ns: u64,
    /// Status messages before it that were lost; the losses that they would have reported are in
    /// this one.
    pub missed: u32,
    /// Numbers lost, reordered or duplicate since the status before.
    pub sequence_errors: u64,
    /// The delay that was compared with the thresholds, above the smallest of the test.
    pub delay_ns: Option<u64>,
    /// Round-trip time of the newest datagram.
    pub rtt_ns: Option<u64>,
    /// Datagrams sent so far.
    pub sent: u64,
    /// Change of the rate that followed.
    pub step: SearchStep,
    /// True when congestion had been confirmed by now, once or more.
    pub confirmed: bool,
    /// The row of the table from here on.
    pub row: u16,
    /// Rate in bit/s of IP packets.
    pub offered_bps: u64,
}

/// Results that an end of a search has yet to report: the receiver's sub-intervals, the sender's
/// statuses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchNews {
    /// Sub-intervals that have ended.
    pub spans: Vec<SearchSpan>,
    /// Status messages that arrived since the last report.
    pub trials: Vec<SearchTrial>,
}

impl SearchNews {
    /// True when there is nothing to report.
    pub const fn is_empty(&self) -> bool {
        self.spans.is_empty() && self.trials.is_empty()
    }
}

/// Datagrams that the receiver read during one sub-interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SearchSpan {
    /// Index of the sub-interval, from 0.
    pub index: u32,
    /// Length of the sub-interval; all have the same.
    pub length_ns: u64,
    /// Different datagrams that arrived in it, by the kernel's time of arrival where it reported.
    pub received: u64,
    /// Numbers that were passed over; negative when some of them arrived after all.
    pub lost: i64,
    /// Arrivals below a number that had arrived before.
    pub reordered: u64,
    /// Arrivals of a datagram that had arrived before.
    pub duplicates: u64,
    /// Smallest one-way delay in it above the smallest of the test until then.
    pub delay_min_ns: Option<u64>,
    /// Mean of the delays in it.
    pub delay_mean_ns: Option<u64>,
    /// Largest delay; largest less smallest is the range of RFC 9097 §6.
    pub delay_max_ns: Option<u64>,
}

/// One sub-interval, by both ends.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SubInterval {
    /// Datagrams that the receiver read in it. It begins `index` times `length_ns` after the first
    /// arrival.
    #[serde(flatten)]
    pub span: SearchSpan,
    /// Bits of the IP packets that arrived over its length.
    pub ip_bps: f64,
    /// Lost over lost and received.
    pub loss_ratio: Option<f64>,
    /// Mean rate offered, by the statuses of its time; null where the sender reported nothing.
    pub offered_bps: Option<f64>,
    /// Smallest round-trip time of a status in it.
    pub rtt_min_ns: Option<u64>,
    /// Largest round trip in it.
    pub rtt_max_ns: Option<u64>,
}

/// A search for the capacity and its result.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct CapacitySearch {
    /// Direction of the data.
    pub direction: Direction,
    /// Length of the IP packets: payload, UDP and IP headers without options.
    pub packet_bytes: u32,
    /// Whole sub-intervals, in order.
    pub sub_intervals: Vec<SubInterval>,
    /// Index of the one with the highest rate, the first of equals: its rate is the maximum
    /// IP-layer capacity (RFC 9097 §6).
    pub best: Option<u32>,
    /// Time at which congestion was confirmed, since the sender's start; null when it never was.
    pub confirmed_ns: Option<u64>,
    /// Every status that the sender took.
    pub trials: Vec<SearchTrial>,
    /// Statuses beyond the most that are kept.
    #[serde(default)]
    pub trials_left_out: u64,
}

impl CapacitySearch {
    /// The sub-interval that is the result.
    pub fn best_interval(&self) -> Option<&SubInterval> {
        let best = self.best?;
        self.sub_intervals.iter().find(|sub_interval| sub_interval.span.index == best)
    }
}

impl SearchSpan {
    /// Start of the sub-interval, since the first arrival.
    pub const fn start_ns(&self) -> u64 {
        self.length_ns.saturating_mul(self.index as u64)
    }

    /// End of the sub-interval, since the first arrival.
    pub const fn end_ns(&self) -> u64 {
        self.start_ns().saturating_add(self.length_ns)
    }
}

impl SubInterval {
    /// Largest less smallest one-way delay.
    pub fn delay_range_ns(&self) -> Option<u64> {
        Some(self.span.delay_max_ns?.saturating_sub(self.span.delay_min_ns?))
    }
}
