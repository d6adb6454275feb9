//! What a conformance run found, as text and JSON show it.
//!
//! Absent is null; counts are of packets that passed the filter unless their name says otherwise.

use serde::{Deserialize, Serialize};

use super::line::CellMapping;
use super::meter::Lack;
use super::plan::Layer;
use crate::theory::token_bucket::Colour;

/// The schema that [`Conformance`] is written in. Additions keep it; a rename or removal raises it.
pub const SCHEMA: &str = "linerate.conform/2";

/// Everything that one run found.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Conformance {
    /// Always [`SCHEMA`] when written by this version.
    pub schema: String,
    /// File or interface of the packets.
    pub source: String,
    /// The filter as given; `all` without one.
    pub only: String,
    /// The layer whose bytes count.
    pub layer: Layer,
    /// Mapping of packets to cells; null when bytes count.
    pub cells: Option<CellMapping>,
    /// Cells per second of their line; null when bytes count.
    #[serde(rename = "line_cells_per_sec")]
    pub line_cells_per_s: Option<f64>,
    /// Count of all packets that were metered.
    pub total: Count,
    /// Packets that were not metered, by reason.
    pub unused: Unused,
    /// Time of the first packet, ns since 1970; null without packets.
    pub first_at_ns: Option<u64>,
    /// Time from the first packet to the last, ns.
    pub span_ns: u64,
    /// Bytes over that span; null for a single moment.
    pub mean_bps: Option<f64>,
    /// Longest packet at the layer that counts, bytes.
    pub packet_bytes_max: u32,
    /// Results of the contracts, in their order.
    pub contracts: Vec<ContractResult>,
    /// The smallest burst at each rate.
    pub inverse: Vec<BurstAtRate>,
    /// The busiest windows of each length.
    pub peaks: Vec<Peak>,
    /// Straight stretches of the arrival curve's hull.
    pub stretches: Vec<Stretch>,
    /// The bucket that seems to have shaped the traffic.
    pub bucket: Option<BucketFound>,
    /// The way in which the run ended.
    pub ended: Ended,
    /// The failure that ended it early, in one line.
    pub failure: Option<String>,
}

impl Conformance {
    /// True when every packet that was metered kept every contract.
    pub fn all_conform(&self) -> bool {
        self.contracts.iter().all(|contract| contract.red.packets == 0)
    }
}

/// The way in which a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// The capture came to its end.
    Complete,
    /// The limit of packets or time was reached.
    Limit,
    /// The user stopped it.
    Interrupted,
    /// The source of packets failed.
    Failed,
}

/// An amount of traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Count {
    /// Number of packets counted.
    pub packets: u64,
    /// Bytes at the layer that counts.
    pub bytes: u64,
    /// Cells; null when bytes count.
    pub cells: Option<u64>,
}

impl Count {
    /// Adds a packet of `bytes`.
    #[inline]
    pub fn add(&mut self, bytes: u32, cells: Option<u32>) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
        if let Some(cells) = cells {
            *self.cells.get_or_insert(0) += u64::from(cells);
        }
    }
}

/// Packets that were not metered, by reason; and two kinds that were metered with reservations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Unused {
    /// No IP packet, or one whose header is damaged.
    pub without_ip: u64,
    /// Captured too short to read their length or the fields of the filter.
    pub cut: u64,
    /// Packets without a time of arrival.
    pub without_time: u64,
    /// Left out by the filter.
    pub filtered: u64,
    /// Lost before they were captured, as the capturing kernel reports; null when it does not.
    pub dropped: Option<u64>,
    /// Stamped earlier than a packet before them; metered at the latest time seen.
    pub out_of_order: u64,
    /// Longer than the link's MTU (9216 bytes where that is not known): segments that offload
    /// joined before the capture. Metered as they are, which makes bursts look larger.
    pub joined: u64,
}

/// Counts and violations of one contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ContractResult {
    /// The contract in words.
    pub contract: String,
    /// Within the committed rate; of cells contracts, packets of which every cell conforms.
    pub green: Count,
    /// Packets above it, within what the contract tolerates as excess; null for contracts without
    /// excess.
    pub yellow: Option<Count>,
    /// Packets outside of the contract.
    pub red: Count,
    /// Cells that conform; null when bytes count.
    pub cells_conforming: Option<u64>,
    /// Cells that do not; null when bytes count.
    pub cells_outside: Option<u64>,
    /// The first packet outside.
    pub first: Option<Violation>,
    /// The packet that lacked most.
    pub worst: Option<Violation>,
    /// The longest run of packets outside without one inside between them.
    pub longest_run: Option<Run>,
    /// Parameters that this traffic would have needed at the contract's own rates.
    pub needed: Vec<Needed>,
}

/// A packet outside its contract.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Violation {
    /// Number of the packet in the capture, from 1.
    pub packet: u64,
    /// Arrival after the first metered packet, ns.
    pub at_ns: u64,
    /// Length of the packet, bytes.
    pub bytes: u32,
    /// Time or tokens that it lacked.
    pub lack: Lack,
    /// Colour of the packet.
    pub colour: Colour,
}

/// Packets outside in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Run {
    /// The first of them, its place in the capture.
    pub first_packet: u64,
    /// Number of packets in the run.
    pub packets: u64,
    /// Bytes of those packets.
    pub bytes: u64,
    /// Time from the first packet to the last, ns.
    pub span_ns: u64,
}

/// The parameter that would have made all packets conform.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Needed {
    /// Name of the parameter in contracts: `burst`, `cbs`, `pbs`, `cdvt`, `mbs`.
    pub parameter: String,
    /// The rate that it goes with, bit/s.
    pub rate_bps: f64,
    /// The value that was needed.
    pub value: f64,
    /// Unit of the values: `bytes`, `ns` or `cells`.
    pub unit: String,
    /// The value that the contract grants.
    pub granted: f64,
}

/// The smallest burst at one rate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BurstAtRate {
    /// The rate, bit/s; with cells of the whole cell.
    pub rate_bps: f64,
    /// The depth of the smallest bucket, bytes; with cells 53 for each.
    pub burst_bytes: f64,
    /// The length of the interval that needs it, ns.
    pub span_ns: f64,
    /// The rate in cells per second; null when bytes count.
    #[serde(rename = "cells_per_sec")]
    pub cells_per_s: Option<f64>,
    /// The smallest CDVT at that cell rate, ns; null when bytes count.
    pub cdvt_ns: Option<f64>,
}

/// The busiest window of one length.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Peak {
    /// Length of the window, ns; it moves by a tenth of it.
    pub window_ns: u64,
    /// The most bytes in one.
    pub bytes: u64,
    /// Rate of those bytes over the window, bit/s.
    pub bps: f64,
}

/// A straight stretch of the arrival curve: in no time t did more than `burst_bytes` + `rate_bps` t
/// arrive, and for times between the two limits that much did arrive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Stretch {
    /// Slope of the stretch, bit/s.
    pub rate_bps: f64,
    /// Height of the stretch's line at 0, bytes.
    pub burst_bytes: f64,
    /// Start of the stretch, ns.
    pub from_ns: f64,
    /// End of the stretch, ns.
    pub to_ns: f64,
    /// Bytes at its end.
    pub bytes: f64,
}

/// A bucket that seems to have shaped the traffic while packets always waited for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct BucketFound {
    /// Rate of the bucket (CIR), bit/s.
    pub rate_bps: f64,
    /// The burst that passed (CBS), bytes; the bucket is deeper when it was not full before.
    pub burst_bytes: f64,
    /// The longest time over which the rate held, ns.
    pub held_ns: f64,
    /// Share of the later packets that arrive when such a bucket is nearly empty, 0 to 1.
    pub empty_share: f64,
}
