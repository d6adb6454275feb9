//! One-way delays in a record, and the label that each of them stands with.

use linerate_core::record::{ClockAgreement, ClockState, Direction, MetricId, Record, Stat};

use crate::number;

/// How the clocks agreed while a size was measured.
pub(crate) fn clocks_of(record: &Record, size: u32) -> Option<&ClockAgreement> {
    record.clocks.iter().find(|clocks| clocks.payload_bytes == size)
}

/// The label that every one-way delay stands with.
pub(crate) fn label(clocks: &ClockAgreement, decimals: usize) -> String {
    let error = clocks.error_ns.map_or_else(String::new, |ns| {
        format!(" ±{} ms", number::ms_of_clock(ns as f64, decimals))
    });
    match clocks.state {
        ClockState::Synchronised => format!("synchronised{error}"),
        ClockState::OffsetEstimated => format!("offset estimated (symmetric minima){error}"),
        ClockState::Unsynchronised => "unsynchronised: differences only".to_owned(),
    }
}

/// A value of one direction and size.
pub(crate) fn one_way(
    record: &Record,
    (metric, stat): (MetricId, Stat),
    way: Option<Direction>,
    size: u32,
) -> Option<f64> {
    let mut rows = record.summary.iter().filter(|row| row.payload_bytes == Some(size));
    rows.find(|row| row.metric == metric && row.stat == stat && row.direction == way)
        .map(|row| row.value)
}
