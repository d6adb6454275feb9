//! Results as comma-separated values, one value a line, keys and units from the metric table.
//!
//! Values are in the metric's stored unit and keep all digits; nothing is rounded here. What the
//! summary does not hold (series, distributions) stays in the JSON.

use linerate_core::record::{Ceiling, Record, Stat, Summary};

/// Head of [`record`].
const HEAD: &str = "id,started_at,name,metric,stat,direction,flow,payload_bytes,n,value,unit,layer,\
    ceiling,ceiling_share,ceiling_unknown";

/// Every summary row of one record as a line; an absent qualifier is an empty field.
pub fn record(record: &Record) -> String {
    lines(HEAD, rows(record).into_iter())
}

/// The same of many records under one head.
pub fn records<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    lines(HEAD, records.flat_map(rows))
}

fn rows(record: &Record) -> Vec<Vec<String>> {
    let id = record.id.to_string();
    let started_at = record.started_at.to_string();
    let name = record.name.as_deref().unwrap_or_default();
    let rows = record.summary.iter().map(|row| {
        let [metric, stat, value, unit] = value_fields(row);
        let mut line = vec![
            id.clone(),
            started_at.clone(),
            name.to_owned(),
            metric,
            stat,
            text(row.direction.map(key)),
            text(row.flow),
            text(row.payload_bytes),
            text(row.n),
            value,
            unit,
        ];
        line.extend(bound_fields(record, row));
        line
    });
    rows.collect()
}

/// The layer of a summary row, and for the value that a ceiling bounds also that ceiling, the
/// share of it, and its inputs that are not known (or why there is none).
pub(crate) fn bound_fields(record: &Record, row: &Summary) -> [String; 4] {
    let [layer, ..] = layer_alone(row);
    let bounded = |ceiling: &&Ceiling| {
        ceiling.metric == row.metric && row.stat == Stat::Value && row.flow.is_none()
    };
    let ceiling = row.direction.and_then(|way| record.ceiling_of(way)).filter(bounded);
    let unknown =
        |ceiling: &Ceiling| ceiling.no_link.clone().unwrap_or_else(|| ceiling.unknown.join("; "));
    [
        layer,
        text(ceiling.and_then(|it| it.value)),
        text(ceiling.and_then(|it| it.share)),
        ceiling.map(unknown).unwrap_or_default(),
    ]
}

/// The layer of a row that nothing is known to bound.
pub(crate) fn layer_alone(row: &Summary) -> [String; 4] {
    let layer = row.metric.row().layer;
    [text(layer.map(key)), String::new(), String::new(), String::new()]
}

/// The name of a variant, as in JSON.
pub(crate) fn key(variant: impl serde::Serialize) -> String {
    match serde_json::to_value(variant) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("{other:?} is not a variant without fields"),
    }
}

/// A value, or an empty field.
pub(crate) fn text(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Metric, statistic, value and unit of a summary row.
pub(crate) fn value_fields(row: &Summary) -> [String; 4] {
    [
        row.metric.key().to_owned(),
        key(row.stat),
        row.value.to_string(),
        row.metric.row().unit.to_owned(),
    ]
}

/// A head and its lines, quoted where RFC 4180 §2 asks for it; line ends are LF.
pub(crate) fn lines(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(head.split(',')).expect("writing to memory does not fail");
    for row in rows {
        writer.write_record(&row).expect("every row is as long as the head");
    }
    let bytes = writer.into_inner().expect("flushing memory does not fail");
    String::from_utf8(bytes).expect("fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use linerate_core::record::MetricId;

    use super::*;

    #[test]
    fn values_keep_all_digits() {
        let row = Summary::of(MetricId::Rtt, Stat::Mean, 6_412.345_678_9);
        assert_eq!(value_fields(&row), ["rtt_ns", "mean", "6412.3456789", "ns"]);
    }
}
