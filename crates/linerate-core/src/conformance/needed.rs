//! What all of the traffic would have needed at the rates of a contract.

use super::envelope::{Vertex, burst_at};
use super::plan::Contract;
use super::result::Needed;
use crate::theory::atm::CELL_BYTES;
use crate::theory::gcra::{CELL_BITS, CellRate};
use crate::units::{BitRate, Bytes};

/// The parameters that a contract would need, one for each of its rates.
pub(super) fn needed(contract: &Contract, vertices: &[Vertex]) -> Vec<Needed> {
    let bytes = |name: &str, rate: BitRate, granted: Bytes| {
        let rate_bps = rate.bits_per_sec() as f64;
        Needed {
            parameter: name.to_owned(),
            rate_bps,
            value: burst_at(vertices, rate_bps).map_or(0.0, next_whole_byte),
            unit: "bytes".to_owned(),
            granted: granted.count() as f64,
        }
    };
    match contract {
        Contract::Gcra { peak, tolerance, sustained } => {
            let tolerance_ns = tolerance.as_nanos() as f64;
            let cdvt = Needed {
                parameter: "cdvt".to_owned(),
                rate_bps: rate_bps(*peak),
                value: least_limit_ns(*peak, vertices),
                unit: "ns".to_owned(),
                granted: tolerance_ns,
            };
            let mbs = sustained.map(|(rate, burst_cells)| {
                let spread_ns = rate.cell_time_ns() - peak.cell_time_ns();
                let excess_ns = least_limit_ns(rate, vertices) - tolerance_ns;
                let more =
                    if excess_ns > 0.0 { (excess_ns / spread_ns - 1e-9).ceil() } else { 0.0 };
                Needed {
                    parameter: "mbs".to_owned(),
                    rate_bps: rate_bps(rate),
                    value: 1.0 + more,
                    unit: "cells".to_owned(),
                    granted: burst_cells as f64,
                }
            });
            std::iter::once(cdvt).chain(mbs.filter(|mbs| mbs.value.is_finite())).collect()
        }
        Contract::TokenBucket { rate, burst } => vec![bytes("burst", *rate, *burst)],
        Contract::SrTcm { plan, .. } => vec![bytes("cbs", plan.committed, plan.committed_burst)],
        Contract::TrTcm { plan, .. } => vec![
            bytes("cbs", plan.committed, plan.committed_burst),
            bytes("pbs", plan.peak, plan.peak_burst),
        ],
    }
}

/// The limit of a GCRA with which a bucket of `burst_bytes` in cells lets all pass, ns: its depth
/// L + I less I.
pub(super) fn limit_ns(burst_bytes: f64, cells_per_s: f64) -> f64 {
    ((burst_bytes / f64::from(CELL_BYTES) - 1.0) * 1e9 / cells_per_s).max(0.0)
}

fn least_limit_ns(rate: CellRate, vertices: &[Vertex]) -> f64 {
    limit_ns(burst_at(vertices, rate_bps(rate)).unwrap_or(0.0), rate.per_second())
}

/// Bits of whole cells in a second, as [`Contract::rates_bps`] has them.
fn rate_bps(rate: CellRate) -> f64 {
    rate.per_second() * CELL_BITS as f64
}

/// The next whole byte, unless rounding alone is above it.
fn next_whole_byte(bytes: f64) -> f64 {
    (bytes - 1e-6).ceil()
}
