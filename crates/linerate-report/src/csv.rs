//! Results as comma-separated values, one value a line, keys and units from the metric table.
//!
//! Values are in the metric's stored unit and keep all digits; nothing is rounded here. What the
//! summary does not hold (series, distributions) stays in the JSON.

use std::borrow::Cow;

use linerate_core::record::{Ceiling, Plan, Record, Stat, Summary, TcpDirections};

use crate::escape::without_controls;

/// Begins of a formula.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];
/// Names of the columns of [`record`].
const HEAD: &str = "id,started_at,name,metric,stat,direction,flow,payload_bytes,n,value,unit,layer,\
    ceiling,ceiling_share,ceiling_unknown,kind,host,directions";

/// Every summary row of one record as a line; an absent qualifier is an empty field.
pub fn record(record: &Record) -> String {
    rows_with_head(HEAD, record_rows(record).into_iter())
}

/// The same of many records under one head.
pub fn records<'a>(records: impl Iterator<Item = &'a Record>) -> String {
    rows_with_head(HEAD, records.flat_map(record_rows))
}

fn record_rows(record: &Record) -> Vec<Vec<String>> {
    let id = record.id.to_string();
    let started_at = record.started_at.to_string();
    let name = record.name.as_deref().unwrap_or_default();
    let host = record.plan.host_names().next().unwrap_or_default().to_owned();
    let test_fields = [
        record.plan.kind_name().to_owned(),
        host,
        field_or_empty(directions(record).map(direction)),
    ];
    let rows = record.summary.iter().map(|row| {
        let [metric, stat, value, unit] = value_fields(row);
        let mut line = vec![
            id.clone(),
            started_at.clone(),
            name.to_owned(),
            metric,
            stat,
            field_or_empty(row.direction.map(variant_name)),
            field_or_empty(row.flow),
            field_or_empty(row.payload_bytes),
            field_or_empty(row.n),
            value,
            unit,
        ];
        line.extend(bound_fields(record, row));
        line.extend(test_fields.iter().cloned());
        line
    });
    rows.collect()
}

/// Directions of a test of throughput; none of other measurements.
pub(crate) const fn directions(record: &Record) -> Option<TcpDirections> {
    match &record.plan {
        Plan::Tcp(plan) => Some(plan.test.directions),
        Plan::Udp(plan) => Some(plan.test.directions),
        Plan::Test(_) => Some(TcpDirections::Both),
        Plan::Ping(_) | Plan::Simulate(_) | Plan::Bench(_) | Plan::Compare(_) | Plan::Trace(_) => {
            None
        }
    }
}

/// Their name, seen from the client.
pub(crate) const fn direction(directions: TcpDirections) -> &'static str {
    match directions {
        TcpDirections::Up => "up",
        TcpDirections::Down => "down",
        TcpDirections::Both => "both",
    }
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
        field_or_empty(ceiling.and_then(|ceiling| ceiling.value)),
        field_or_empty(ceiling.and_then(|ceiling| ceiling.share)),
        ceiling.map(unknown).unwrap_or_default(),
    ]
}

/// The layer of a row that nothing is known to bound.
pub(crate) fn layer_alone(row: &Summary) -> [String; 4] {
    let layer = row.metric.table_row().layer;
    [field_or_empty(layer.map(variant_name)), String::new(), String::new(), String::new()]
}

/// The name of a variant, as in JSON.
pub(crate) fn variant_name(variant: impl serde::Serialize) -> String {
    match linerate_core::tree::to_value(&variant) {
        Ok(serde_json::Value::String(name)) => name,
        other => unreachable!("{other:?} is not a variant without fields"),
    }
}

/// A value, or an empty field.
pub(crate) fn field_or_empty(value: Option<impl ToString>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

/// Metric, statistic, value and unit of a summary row.
pub(crate) fn value_fields(row: &Summary) -> [String; 4] {
    [
        row.metric.key().to_owned(),
        variant_name(row.stat),
        row.value.to_string(),
        row.metric.table_row().unit.to_owned(),
    ]
}

/// Text of a name from outside, as a spreadsheet shows it and a terminal does not run it: control
/// characters become the replacement character, and what would be read as a formula (OWASP, "CSV
/// injection": `=`, `+`, `-`, `@` at its begin) has an apostrophe before it. Numbers stay.
fn formula_safe_field(field: &str) -> Cow<'_, str> {
    let is_plain = !field.contains(char::is_control) && !field.starts_with(FORMULA);
    if is_plain || field.parse::<f64>().is_ok() {
        return Cow::Borrowed(field);
    }
    let field = without_controls(field);
    // A tab or a carriage return before a formula is passed over by some programs.
    let is_formula = field.trim_start_matches(['\u{fffd}', ' ']).starts_with(FORMULA);
    Cow::Owned(if is_formula { format!("'{field}") } else { field })
}

/// A head and its lines, quoted where RFC 4180 §2 asks for it; line ends are LF.
pub(crate) fn rows_with_head(head: &str, rows: impl Iterator<Item = Vec<String>>) -> String {
    let mut writer = ::csv::Writer::from_writer(Vec::new());
    writer.write_record(head.split(',')).expect("writing to memory does not fail");
    for row in rows {
        let row = row.iter().map(|field| formula_safe_field(field).into_owned());
        writer.write_record(row).expect("every row is as long as the head");
    }
    let bytes = writer.into_inner().expect("flushing memory does not fail");
    String::from_utf8(bytes).expect("fields are UTF-8")
}

#[cfg(test)]
mod tests {
    use linerate_core::record::MetricId;

    use super::*;

    #[test]
    fn a_name_from_outside_is_no_formula_and_no_escape_and_numbers_are_numbers() {
        for (field, shown) in [
            ("=HYPERLINK(\"http://evil.example\")", "'=HYPERLINK(\"http://evil.example\")"),
            ("+1+cmd", "'+1+cmd"),
            ("-2+3", "'-2+3"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\t=1+1", "'\u{fffd}=1+1"),
            ("\r=1+1", "'\u{fffd}=1+1"),
            ("a\u{1b}[31m", "a\u{fffd}[31m"),
            ("-12.5", "-12.5"),
            ("-1e-7", "-1e-7"),
            ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
            ("", ""),
        ] {
            assert_eq!(formula_safe_field(field), shown, "{field:?}");
        }
        let rows = [vec!["=1".to_owned(), "-1".to_owned()]];
        assert_eq!(rows_with_head("a,b", rows.into_iter()), "a,b\n'=1,-1\n");
    }

    #[test]
    fn values_keep_all_digits() {
        let row = Summary::from_value(MetricId::Rtt, Stat::Mean, 6_412.345_678_9);
        assert_eq!(value_fields(&row), ["rtt_ns", "mean", "6412.3456789", "ns"]);
    }
}
