//! Theory beside published figures: the same figure computed, or the ceiling above a
//! measured one. Rows of which theory says nothing have `None`.
//!
//! Where the two differ by more than the printed rounding, the reason is beside them; the reader
//! of a table need not find it again.

use std::time::Duration;

use super::printed::rounding;
use super::{Printed, PublishedItem, PublishedRouter, PublishedRows, PublishedTable, PublishedTcp};
use crate::record::IpFamily;
use crate::theory::atm::{CELL_BYTES, CELL_PAYLOAD_BYTES};
use crate::theory::framing::{SegmentHeaders, Transport, whole_frame_rate};
use crate::theory::slow_start::flat_time_s;
use crate::theory::sonet::{Pdh, Sonet};
use crate::theory::stack::{LayerRates, StackPlan, layer_rates};
use crate::units::{BitRate, Bytes, FrameLen};

/// A computed figure beside a published one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Theory {
    /// In the unit of the published figure.
    pub value: f64,
    /// How it stands to the published figure.
    pub relation: Relation,
    /// From which inputs.
    pub rule: &'static str,
    /// Why they differ by more than the printed rounding.
    pub remark: Option<&'static str>,
    /// The formula of the sheet that says more about it.
    pub formula: Option<&'static str>,
}

/// How a computed figure stands to a published one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// The study computed it too: the two are one figure.
    Same,
    /// The study measured: the published figure is at most this.
    Ceiling,
}

/// How a published figure compares with theory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TheoryComparison {
    /// Equal within the printed rounding.
    Equal,
    /// Published less computed.
    Differs(f64),
    /// Published over computed, for a ceiling.
    Share(f64),
}

impl Theory {
    const fn exact_value(value: f64, rule: &'static str) -> Self {
        Self { value, relation: Relation::Same, rule, remark: None, formula: None }
    }

    const fn ceiling(value: f64, rule: &'static str) -> Self {
        Self { value, relation: Relation::Ceiling, rule, remark: None, formula: None }
    }

    const fn because(self, remark: &'static str) -> Self {
        Self { remark: Some(remark), ..self }
    }

    const fn with_formula(self, formula: &'static str) -> Self {
        Self { formula: Some(formula), ..self }
    }

    /// Compares with a published figure that is good to `rounding`.
    pub fn compare(&self, published: f64, rounding: f64) -> TheoryComparison {
        let difference = published - self.value;
        match self.relation {
            Relation::Ceiling => TheoryComparison::Share(published / self.value),
            // The small term is for halves that binary fractions miss.
            Relation::Same if difference.abs() <= rounding * (1.0 + 1e-9) => {
                TheoryComparison::Equal
            }
            Relation::Same => TheoryComparison::Differs(difference),
        }
    }
}

/// Theory for a row of a table, counted from 0.
pub(super) fn row_theory(table: &PublishedTable, row: usize) -> Option<Theory> {
    match &table.rows {
        PublishedRows::Routers(rows) => of_router(rows.get(row)?),
        PublishedRows::Tcp(rows) => of_tcp(rows.get(row)?),
        PublishedRows::Items(rows) => of_item(table.about.id, rows.get(row)?),
        PublishedRows::Ping(_) | PublishedRows::Milestones(_) => None,
    }
}

/// The published figure that theory stands beside, and what it is good to. A ceiling is held
/// against the upper end of a range.
pub(super) fn published(table: &PublishedTable, row: usize) -> Option<(f64, f64)> {
    match &table.rows {
        PublishedRows::Routers(rows) => Some((rows.get(row)?.theoretical_fps? as f64, 0.5)),
        PublishedRows::Tcp(rows) => {
            let column = table.columns.iter().position(|name| name == "throughput_mbit_s")?;
            let printed = table.cells.get(row)?.get(column)?;
            Some((rows.get(row)?.throughput_mbit_s?, rounding(printed)))
        }
        PublishedRows::Items(rows) => {
            let printed = rows.get(row)?.value.as_ref()?;
            let of_range = |printed: &Printed| {
                let relation = row_theory(table, row)?.relation;
                printed.upper_end().filter(|_| relation == Relation::Ceiling)
            };
            Some((printed.single_value().or_else(|| of_range(printed))?, printed.rounding()))
        }
        PublishedRows::Ping(_) | PublishedRows::Milestones(_) => None,
    }
}

/// Ethernet of 10 Mbit/s, as the routers of 1990 had it.
fn of_router(row: &PublishedRouter) -> Option<Theory> {
    let len = FrameLen::from_bytes(row.frame_bytes).ok()?;
    let fps = whole_frame_rate(BitRate::from_bits_per_sec(10_000_000), len);
    let rule = "whole frames a second at 10 Mbit/s, preamble and gap counted";
    let theory = Theory::exact_value(fps as f64, rule).with_formula("published-bradner-1990");
    let measured = [row.max_rate_fps, row.flood_rate_fps];
    if measured.into_iter().flatten().any(|rate| rate > fps) {
        return Some(theory.because(
            "the posting prints a measured rate above what the link carries; it is kept as printed",
        ));
    }
    Some(theory)
}

/// A flow of TCP over IPv4 without options on a link with its carrier.
fn stacked(link: &str, carrier: &str, mtu_bytes: u32) -> Option<LayerRates> {
    let plan = StackPlan {
        link: link.parse().ok()?,
        carrier: carrier.parse().ok()?,
        encapsulations: Vec::new(),
        mtu_bytes,
        segment: SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp },
    };
    layer_rates(&plan).ok()
}

fn gigabit_mbit(mtu_bytes: u32) -> Option<f64> {
    Some(stacked("1g", "ethernet", mtu_bytes)?.payload_bps / 1e6)
}

/// Calibration and backbone paths were gigabit Ethernet, metropolitan ones OC-3 without cells;
/// localhost has no link.
fn of_tcp(row: &PublishedTcp) -> Option<Theory> {
    match row.class.as_str() {
        _ if row.topology == "localhost" => None,
        "calibration" | "backbone" => {
            let rule = "TCP over IPv4 without options, gigabit Ethernet";
            Some(Theory::ceiling(gigabit_mbit(row.mtu_bytes)?, rule))
        }
        "man" => {
            let mbit = stacked("oc3", "pos", row.mtu_bytes)?.payload_bps / 1e6;
            let rule = "TCP over IPv4 without options, packets over the SONET of an OC-3";
            Some(Theory::ceiling(mbit, rule).with_formula("published-pren-2000"))
        }
        _ => None,
    }
}

fn of_item(table: &str, row: &PublishedItem) -> Option<Theory> {
    match table {
        "nap-1995" => of_nap(&row.item),
        "oc12-1999" => of_oc12(&row.item).or_else(|| of_oc12_transfer(&row.item)),
        "gigasunet-2004" => of_gigasunet(&row.item),
        _ => None,
    }
}

/// The exchange point had cells on DS3, the backbone packets; no MTU is told, so the ceilings are
/// those of the line.
fn of_nap(item: &str) -> Option<Theory> {
    let cells = f64::from(CELL_PAYLOAD_BYTES) / f64::from(CELL_BYTES);
    let theory = match item {
        "pacbell_1to1" => {
            let mbit = Pdh::Ds3Plcp.cell_bps() * cells / 1e6;
            Theory::ceiling(mbit, "payload of the cells of a DS3 behind PLCP")
        }
        "goodput_1_to_8_flows" => {
            Theory::ceiling(Pdh::Ds3.packet_bps() / 1e6, "what a DS3 leaves for packets")
        }
        _ => return None,
    };
    Some(theory.with_formula("published-nap-1995"))
}

/// The OC-12 study's descent through the layers, and what it measured below each.
fn of_oc12(item: &str) -> Option<Theory> {
    let sonet = Sonet::Oc12.payload_bps() as f64 / 1e6;
    let cells = sonet * f64::from(CELL_PAYLOAD_BYTES) / f64::from(CELL_BYTES);
    let stack = stacked("oc12", "aal5-llcsnap", 9180)?;
    let ip = stack.ip_bps / 1e6;
    let layers = "published-oc12-1999-layers";
    Some(match item {
        "after_sonet" => {
            Theory::exact_value(sonet, "26 of 27 columns of the line").with_formula(layers)
        }
        "after_atm" => Theory::exact_value(cells, "48 of 53 bytes of a cell")
            .with_formula(layers)
            .because("the study rounds the share of cell headers to 9.43 % before it takes it off"),
        "after_aal5_snap" => Theory::exact_value(ip, "9180 of the 9216 bytes that 192 cells carry")
            .with_formula("published-oc12-1999-ip")
            .because(
                "the study takes off 8 of 9180 bytes; trailer, LLC/SNAP and padding are 36 of 9216",
            ),
        "analyzer_atm_level" => Theory::ceiling(sonet, "every cell of the line"),
        "ip_available" => {
            Theory::exact_value(572.0 * ip / sonet, "IP in 572 Mbit/s of cells, MTU 9180")
                .with_formula("published-oc12-1999-measured")
                .because(
                    "the study takes the ATM overhead off 572 and does not say how it gets 527",
                )
        }
        "local_max_tcp_udp" => {
            Theory::ceiling(ip, "IP at an MTU of 9180").with_formula("published-oc12-1999-measured")
        }
        tcp if tcp.starts_with("tcp_") || tcp.starts_with("bulk_") => {
            let rule = "TCP over IPv4 without options, MTU 9180";
            Theory::ceiling(stack.payload_bps / 1e6, rule)
        }
        _ => return None,
    })
}

/// Round trip of the OC-12 study.
const OC12_RTT: Duration = Duration::from_millis(45);

/// Round trips that its slow start took.
const OC12_ROUNDS: u32 = 12;

/// The study's times of transfers: at the rate that it must have used, which it does not print.
fn of_oc12_transfer(item: &str) -> Option<Theory> {
    let rate = BitRate::from_bits_per_sec(451_900_000);
    let size = match item {
        "slow_start_waste" => 0,
        "transfer_10GB" => 10_000_000_000,
        "transfer_1GB" => 1_000_000_000,
        "transfer_100MB" => 100_000_000,
        _ => return None,
    };
    let time_s = flat_time_s(Bytes::new(size), rate, OC12_RTT, OC12_ROUNDS).ok()?;
    let rule = match size {
        0 => "12 round trips of 45 ms",
        _ => "12 round trips of 45 ms, then 451.9 Mbit/s",
    };
    Some(Theory::exact_value(time_s, rule).with_formula("flat-start-rate"))
}

/// Gigabit Ethernet; the text tells no MTU.
fn of_gigasunet(item: &str) -> Option<Theory> {
    Some(match item {
        "throughput" => {
            let rule = "TCP over IPv4 without options, gigabit Ethernet, MTU 1500";
            Theory::ceiling(gigabit_mbit(1500)?, rule)
                .with_formula("published-gigasunet-2004-rate")
                .because(
                    "either the packets were longer, at an MTU of 2291 or more, which the text \
                          does not say, or 921.7 Mbit/s were corrected for an error that they did \
                          not have; the text does not allow to decide",
                )
        }
        "packet_rate" => {
            let gigabit = BitRate::from_bits_per_sec(1_000_000_000);
            let fps = whole_frame_rate(gigabit, FrameLen::from_bytes(1518).ok()?) as f64;
            Theory::ceiling(fps, "whole frames of 1518 bytes a second at 1 Gbit/s")
                .with_formula("published-gigasunet-2004-packets")
                .because(
                    "it was calculated and not counted: 1 Gbit/s over 1500 bytes, without the 38 \
                     that Ethernet adds, and 966.5 Mbit/s over 1460 bytes are both about 83,000",
                )
        }
        _ => return None,
    })
}
