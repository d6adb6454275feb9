//! The table of a direction's streams, which TCP and UDP share.

use linerate_core::record::{Direction, Flow, FlowEnd, FlowSide, Record};

use crate::document::{ReportTable, RowKind};

/// Streams that a terminal shows one by one; of more it shows the sum, and the extremes where there
/// are some.
pub(super) const STREAMS_MAX: usize = 16;

/// A column: its heading, the cell of a stream, the cell of all of them.
pub(super) type Column<'a> = (&'a str, &'a dyn Fn(&Flow) -> String, String);

/// The flows of a direction.
pub(super) fn flows_in_direction(
    record: &Record,
    direction: Direction,
) -> impl Iterator<Item = &Flow> + Clone {
    record.flows.iter().filter(move |flow| flow.direction == direction)
}

/// Payload that an end counted, per second of its span.
pub(super) fn measured_bps(end: &FlowEnd) -> Option<f64> {
    (end.span_ns > 0).then(|| end.bytes_measured as f64 * 8e9 / end.span_ns as f64)
}

/// Processor time of an end's data threads over their span: of all of them together, in cores.
pub(super) fn cpu_cores(record: &Record, direction: Direction, side: FlowSide) -> Option<f64> {
    let ends = flows_in_direction(record, direction).map(|flow| match side {
        FlowSide::Sender => flow.sender.as_ref(),
        FlowSide::Receiver => flow.receiver.as_ref(),
    });
    let shares = ends.map(|end| {
        let end = end.filter(|end| end.span_ns > 0)?;
        let span = end.span_start_ns + end.span_ns;
        Some((end.cpu_user_ns? + end.cpu_system_ns?) as f64 / span as f64)
    });
    shares.sum::<Option<f64>>().filter(|sum| *sum > 0.0)
}

/// A row a stream, those streams once more that are named, and the sum of several.
pub(super) fn flows_table(
    flows: &[&Flow],
    named: &[(&str, &Flow)],
    columns: &[Column<'_>],
) -> ReportTable {
    let many = flows.len() > STREAMS_MAX;
    let kind = if many { RowKind::OneOfMany } else { RowKind::Measured };
    let cells =
        |flow: &Flow| columns.iter().map(|column| (column.1)(flow)).collect::<Vec<String>>();
    let mut table = ReportTable::new(columns.iter().map(|column| column.0));
    flows.iter().for_each(|flow| table.push(kind, cells(flow)));
    for (name, flow) in named {
        let mut row = cells(flow);
        row[0] = format!("{name} ({})", row[0]);
        table.add_measured_row(row);
    }
    if flows.len() != 1 {
        table.add_measured_row(columns.iter().map(|column| column.2.as_str()));
    }
    table
}
