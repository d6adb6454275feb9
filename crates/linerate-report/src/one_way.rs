//! One-way delays in a record, and the label that each of them stands with.

use linerate_core::record::{ClockAgreement, ClockState, Direction, MetricId, Record, Stat};

use crate::number;

/// How the clocks agreed while a size was measured.
pub(crate) fn clocks_of(record: &Record, size: u32) -> Option<&ClockAgreement> {
    record.clocks.iter().find(|clocks| clocks.payload_bytes == size)
}

/// The label that every one-way delay stands with.
pub(crate) fn clock_label(clocks: &ClockAgreement, decimals: usize) -> String {
    let error = clocks.error_ns.map_or_else(String::new, |ns| {
        format!(" ±{} ms", number::ms_of_clock(ns as f64, decimals))
    });
    match clocks.state {
        ClockState::Synchronised => format!("synchronised{error}"),
        ClockState::OffsetEstimated => format!("offset estimated (symmetric minima){error}"),
        ClockState::Unsynchronised => "unsynchronised: differences only".to_owned(),
    }
}

/// A statistic of a metric for one direction and payload size.
pub(crate) fn one_way(
    record: &Record,
    metric: MetricId,
    stat: Stat,
    way: Option<Direction>,
    size: u32,
) -> Option<f64> {
    let mut rows = record.summary.iter().filter(|row| row.payload_bytes == Some(size));
    rows.find(|row| row.metric == metric && row.stat == stat && row.direction == way)
        .map(|row| row.value)
}

/// A delay of one direction and size, where the clocks say more of it than the round trip does.
pub(crate) fn known_delay(record: &Record, stat: Stat, way: Direction, size: u32) -> Option<f64> {
    let clocks = clocks_of(record, size)?;
    let median = one_way(record, MetricId::OneWayDelay, Stat::P50, Some(way), size)?;
    let value = one_way(record, MetricId::OneWayDelay, stat, Some(way), size)?;
    clocks.resolves_delay(median).then_some(value)
}

/// The typical delays of both directions with the label that belongs to them, for a line; empty
/// where no clocks were looked at.
pub(crate) fn each_way(record: &Record, size: u32, decimals: usize) -> String {
    let Some(clocks) = clocks_of(record, size) else { return String::new() };
    let at = |way| {
        let ns = known_delay(record, Stat::P50, way, size)?;
        Some(format!("{} ms", number::ms_of_clock(ns, decimals)))
    };
    match [at(Direction::Up), at(Direction::Down)] {
        [None, None] => ", each way not known: clocks are not compared".to_owned(),
        both => {
            let [there, back] = both.map(|text| text.unwrap_or_else(|| "not known".to_owned()));
            format!(", there {there}, back {back}, {}", clock_label(clocks, decimals))
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{PingPlan, Plan, RecordId, Summary, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    /// A path of 23 ms there and 4 ms back, its clocks not compared: the smallest round trip is
    /// 27 ms, half of it is what an estimated offset gives each way, as its error too.
    fn measured(state: ClockState, median_ms: [f64; 2], error_ms: f64) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let (id, began) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), began);
        record.clocks = vec![ClockAgreement {
            payload_bytes: 44,
            state,
            error_ns: Some((error_ms * 1e6) as u64),
            offset_ns: None,
            drift_ns_per_s: None,
            claimed_error_ns: None,
            claimed_by: None,
            claim_refuted: false,
            kernel_stamps: true,
            follow_up: true,
            stateful: true,
            restarts: 0,
            samples: 100,
            changes: Vec::new(),
        }];
        for (way, ms) in [Direction::Up, Direction::Down].into_iter().zip(median_ms) {
            let row = Summary::from_value(MetricId::OneWayDelay, Stat::P50, ms * 1e6);
            record.summary.push(row.in_direction(way).at_payload(44));
        }
        record
    }

    #[test]
    fn half_a_round_trip_is_no_delay_of_one_way() {
        let said =
            |state, median_ms, error_ms| each_way(&measured(state, median_ms, error_ms), 44, 2);
        let not_known = ", each way not known: clocks are not compared";
        assert_eq!(said(ClockState::OffsetEstimated, [13.57, 13.56], 13.55), not_known);
        assert_eq!(said(ClockState::Unsynchronised, [13.57, 13.56], 0.0), not_known);
        // A queue of 500 ms on the way there is known to 13.55 ms, whatever the path is.
        let queued = said(ClockState::OffsetEstimated, [513.6, 13.56], 13.55);
        assert!(queued.starts_with(", there 513.60 ms, back not known, offset est"), "{queued}");
        let one = said(ClockState::Synchronised, [23.0, 4.0], 0.01);
        assert_eq!(one, ", there 23.00 ms, back 4.00 ms, synchronised ±0.01 ms");
        let plain =
            Record { clocks: Vec::new(), ..measured(ClockState::Synchronised, [1.0; 2], 0.0) };
        assert_eq!(each_way(&plain, 44, 2), "");
    }
}
