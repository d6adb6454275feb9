//! Frames a second that fill each Ethernet, and packets and cells a second on each SONET/SDH line:
//! the tables beside which measured forwarding rates stand.
//!
//! The frame sizes are those of RFC 2544 and RFC 5180; S. Bradner's measurements of routers in 1990
//! print six of them for 10 Mbit/s.

use serde::{Deserialize, Serialize};

use crate::record::IpFamily;
use crate::theory::atm::Aal5;
use crate::theory::carrier::Carrier;
use crate::theory::framing::{FRAME_SIZES_BYTES, SegmentHeaders, Transport};
use crate::theory::link::LinkTechnology;
use crate::theory::stack::{StackError, StackPlan, layer_rates};

/// The schema that [`FrameRates`] is written in. Additions keep it; a rename or removal raises it.
pub const FRAME_RATES_SCHEMA: &str = "linerate.frame-rates/2";

/// IP packets of the table of SONET/SDH lines, bytes: a TCP acknowledgement, the least that every
/// IPv4 host takes in (RFC 791), the MTU of Ethernet, that of packets on SONET, and that of IP in
/// cells (RFC 2225).
const OPTICAL_PACKETS_BYTES: [u32; 5] = [40, 576, 1500, 4470, 9180];

/// Packet rates of Ethernet and of SONET/SDH.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameRates {
    /// Always [`FRAME_RATES_SCHEMA`] when written by this version.
    pub schema: String,
    /// Sizes of frames, FCS included: the columns of `ethernet`.
    pub frame_bytes: Vec<u32>,
    /// Rows of the Ethernet links, slowest first.
    pub ethernet: Vec<FrameRow>,
    /// Sizes of IP packets: the columns of `optical`.
    pub packet_bytes: Vec<u32>,
    /// Rows of the optical lines, slowest first.
    pub optical: Vec<OpticalRow>,
}

/// Frame rates of an Ethernet link.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct FrameRow {
    /// Name of the link.
    pub link: String,
    /// Rate of the link.
    pub rate_bps: u64,
    /// Whole frames per second, one for each size.
    #[serde(rename = "frames_per_sec")]
    pub frames_per_s: Vec<u64>,
}

/// Cell and packet rates of a SONET/SDH line.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpticalRow {
    /// Name of the link.
    pub link: String,
    /// Title of the line, for people.
    pub title: String,
    /// Rate of the line.
    pub rate_bps: u64,
    /// Rate of the SONET payload.
    pub payload_bps: f64,
    /// Cells per second that fill it.
    #[serde(rename = "cells_per_sec")]
    pub cells_per_s: f64,
    /// Columns of the carriers, one for each.
    pub carriers: Vec<OpticalColumn>,
}

/// Packet rates of a SONET/SDH line with one carrier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OpticalColumn {
    /// Name of the link-layer protocol.
    pub carrier: String,
    /// Packets per second, one for each size.
    #[serde(rename = "packets_per_sec")]
    pub packets_per_s: Vec<f64>,
}

/// Both tables for every link that has a name.
/// # Errors
/// When a line and a carrier of the table do not go together, which none does.
pub fn frame_rates() -> Result<FrameRates, StackError> {
    let links = || LinkTechnology::NAMED.iter().map(|known| known.link);
    let ethernet = links().filter_map(|link| {
        Some(FrameRow {
            link: link.to_string(),
            rate_bps: link.bit_rate().bits_per_sec(),
            frames_per_s: link.frame_rates()?.to_vec(),
        })
    });
    let lines = links().filter(|link| matches!(link, LinkTechnology::Sonet(_)));
    Ok(FrameRates {
        schema: FRAME_RATES_SCHEMA.to_owned(),
        frame_bytes: FRAME_SIZES_BYTES.to_vec(),
        ethernet: ethernet.collect(),
        packet_bytes: OPTICAL_PACKETS_BYTES.to_vec(),
        optical: lines.map(optical_row).collect::<Result<_, _>>()?,
    })
}

fn optical_row(link: LinkTechnology) -> Result<OpticalRow, StackError> {
    let carriers = [Carrier::Aal5(Aal5::LlcSnap), Carrier::Pos { stuffed: false }];
    let columns = carriers.into_iter().map(|carrier| {
        let packets = OPTICAL_PACKETS_BYTES.into_iter();
        let packets_per_s = packets.map(|mtu_bytes| packets_per_s(link, carrier, mtu_bytes));
        Ok(OpticalColumn {
            carrier: carrier.to_string(),
            packets_per_s: packets_per_s.collect::<Result<_, StackError>>()?,
        })
    });
    // An IP packet of 40 bytes takes two cells with LLC/SNAP (RFC 2684 §5.1: 40 + 8 + 8 bytes).
    let cells_per_s = 2.0 * packets_per_s(link, Carrier::Aal5(Aal5::LlcSnap), 40)?;
    Ok(OpticalRow {
        link: link.to_string(),
        title: link.display_title(),
        rate_bps: link.bit_rate().bits_per_sec(),
        payload_bps: cells_per_s * 424.0,
        cells_per_s,
        carriers: columns.collect::<Result<_, StackError>>()?,
    })
}

/// UDP's headers are the shortest, so that the smallest packet has a payload.
fn packets_per_s(
    link: LinkTechnology,
    carrier: Carrier,
    mtu_bytes: u32,
) -> Result<f64, StackError> {
    let segment = SegmentHeaders { family: IpFamily::V4, transport: Transport::Udp };
    let plan = StackPlan { link, carrier, encapsulations: Vec::new(), mtu_bytes, segment };
    Ok(layer_rates(&plan)?.packets_per_s)
}
