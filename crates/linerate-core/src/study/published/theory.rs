//! What theory says of published figures: the same figure computed, or the ceiling above a
//! measured one. Rows of which theory says nothing have `None`.
//!
//! Where the two differ by more than the printed rounding, the reason is beside them; the reader
//! of a table need not find it again.

use super::printed::rounding;
use super::{PublishedItem, PublishedRouter, PublishedRows, PublishedTable, PublishedTcp};
use crate::record::Family;
use crate::theory::framing::{EthernetLink, Segment, Transport, ceiling, whole_frame_rate};
use crate::units::{BitRate, FrameLen};

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
pub enum Comparison {
    /// Equal within the printed rounding.
    Equal,
    /// Published less computed.
    Differs(f64),
    /// Published over computed, for a ceiling.
    Share(f64),
}

impl Theory {
    const fn same(value: f64, rule: &'static str) -> Self {
        Self { value, relation: Relation::Same, rule, remark: None }
    }

    const fn ceiling(value: f64, rule: &'static str) -> Self {
        Self { value, relation: Relation::Ceiling, rule, remark: None }
    }

    const fn because(self, remark: &'static str) -> Self {
        Self { remark: Some(remark), ..self }
    }

    /// Compares with a published figure that is good to `rounding`.
    pub fn compare(&self, published: f64, rounding: f64) -> Comparison {
        let difference = published - self.value;
        match self.relation {
            Relation::Ceiling => Comparison::Share(published / self.value),
            // The small term is for halves that binary fractions miss.
            Relation::Same if difference.abs() <= rounding * (1.0 + 1e-9) => Comparison::Equal,
            Relation::Same => Comparison::Differs(difference),
        }
    }
}

/// Theory for a row of a table, counted from 0.
pub(super) fn of(table: &PublishedTable, row: usize) -> Option<Theory> {
    match &table.rows {
        PublishedRows::Routers(rows) => of_router(rows.get(row)?),
        PublishedRows::Tcp(rows) => of_tcp(rows.get(row)?),
        PublishedRows::Items(rows) => of_item(table.about.id, rows.get(row)?),
        PublishedRows::Ping(_) | PublishedRows::Milestones(_) => None,
    }
}

/// The published figure that theory stands beside, and what it is good to.
pub(super) fn published(table: &PublishedTable, row: usize) -> Option<(f64, f64)> {
    match &table.rows {
        PublishedRows::Routers(rows) => Some((rows.get(row)?.theoretical_fps? as f64, 0.5)),
        PublishedRows::Tcp(rows) => {
            let column = table.columns.iter().position(|name| name == "throughput_mbit_s")?;
            let printed = table.cells.get(row)?.get(column)?;
            Some((rows.get(row)?.throughput_mbit_s?, rounding(printed)))
        }
        PublishedRows::Items(rows) => {
            let value = rows.get(row)?.value.as_ref()?;
            Some((value.value()?, value.rounding()))
        }
        PublishedRows::Ping(_) | PublishedRows::Milestones(_) => None,
    }
}

/// Ethernet of 10 Mbit/s, as the routers of 1990 had it.
fn of_router(row: &PublishedRouter) -> Option<Theory> {
    let len = FrameLen::from_bytes(row.frame_bytes).ok()?;
    let fps = whole_frame_rate(BitRate::from_bits_per_sec(10_000_000), len);
    let rule = "whole frames a second at 10 Mbit/s, preamble and gap counted";
    let theory = Theory::same(fps as f64, rule);
    let measured = [row.max_rate_fps, row.flood_rate_fps];
    if measured.into_iter().flatten().any(|rate| rate > fps) {
        return Some(theory.because(
            "the posting prints a measured rate above what the link carries; it is kept as printed",
        ));
    }
    Some(theory)
}

const GIGABIT: BitRate = BitRate::from_bits_per_sec(1_000_000_000);

/// TCP over IPv4 without options at 1 Gbit/s.
fn gigabit_mbit(mtu_bytes: u32) -> Option<f64> {
    let link =
        EthernetLink { rate: BitRate::from_bits_per_sec(1_000_000_000), mtu_bytes, vlan_tags: 0 };
    let segment = Segment { family: Family::V4, transport: Transport::Tcp };
    Some(ceiling(&link, &segment).ok()?.payload_bps / 1e6)
}

/// Calibration and backbone paths were gigabit Ethernet; localhost has no link.
fn of_tcp(row: &PublishedTcp) -> Option<Theory> {
    let gigabit = matches!(row.class.as_str(), "calibration" | "backbone");
    if !gigabit || row.topology == "localhost" {
        return None;
    }
    let rule = "TCP over IPv4 without options, gigabit Ethernet";
    Some(Theory::ceiling(gigabit_mbit(row.mtu_bytes)?, rule))
}

fn of_item(table: &str, row: &PublishedItem) -> Option<Theory> {
    match (table, row.item.as_str()) {
        ("gigasunet-2004", "throughput") => Some(
            Theory::ceiling(
                gigabit_mbit(1500)?,
                "TCP over IPv4 without options, gigabit Ethernet, MTU 1500",
            )
            .because(
                "the text does not tell the MTU; 1500 bytes carry at most 949.28 Mbit/s, so \
                 longer packets must have been in use (an MTU of 2291 or more has room for 966.5)",
            ),
        ),
        ("gigasunet-2004", "packet_rate") => Some(
            Theory::ceiling(
                whole_frame_rate(GIGABIT, FrameLen::from_bytes(1518).ok()?) as f64,
                "whole frames of 1518 bytes a second at 1 Gbit/s",
            )
            .because(
                "the text says about 83000: 1 Gbit/s over packets of 1500 bytes is 83333, without \
                 the 38 bytes that Ethernet adds to each",
            ),
        ),
        _ => None,
    }
}
