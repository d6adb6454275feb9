//! Pings of several targets under each other.

use linerate_core::record::{MetricId, PingPlan, Plan, Record, Stat};
use linerate_core::time::decimals_of_ms;

use super::ping_split::value_for_payload;
use crate::document::{Align, Block, Document, ReportSection, ReportTable};
use crate::number::{self, or_dash};

/// The times of a row.
const TIMES: [(&str, Stat); 6] = [
    ("min ms", Stat::Min),
    ("median ms", Stat::P50),
    ("avg ms", Stat::Mean),
    ("99 % ms", Stat::P99),
    ("max ms", Stat::Max),
    ("stddev ms", Stat::Stddev),
];

/// A row a target, of several sizes one for each of them; what was not measured is a dash.
pub fn targets_document(records: &[Record]) -> Document {
    let pings = records.iter().filter_map(|record| match &record.plan {
        Plan::Ping(plan) => Some((record, plan)),
        _ => None,
    });
    let pings: Vec<(&Record, &PingPlan)> = pings.collect();
    let has_sizes = pings.iter().any(|(_, plan)| plan.sizes_bytes.len() > 1);
    let mut columns = vec![("target", Align::Left)];
    columns.extend(has_sizes.then_some(("bytes", Align::Right)));
    columns.extend([("sent", Align::Right), ("lost %", Align::Right)]);
    columns.extend(TIMES.iter().map(|(name, _)| (*name, Align::Right)));
    let mut table = ReportTable::from_columns(columns);
    for (record, plan) in pings {
        let step = record.ends.first().and_then(|end| end.clock_tick_ns).unwrap_or(1.0);
        for &size in &plan.sizes_bytes {
            let of = |metric, stat| value_for_payload(record, metric, stat, size);
            let mut row = vec![plan.host.clone()];
            row.extend(has_sizes.then(|| size.to_string()));
            let sent = of(MetricId::Sent, Stat::Value);
            row.push(or_dash(sent, |count| format!("{count:.0}")));
            let lost = of(MetricId::LossRatio, Stat::Value);
            row.push(or_dash(lost, |ratio| number::significant(100.0 * ratio, 2)));
            let ms = |ns| number::ms_of_clock(ns, decimals_of_ms(step));
            row.extend(TIMES.iter().map(|(_, stat)| or_dash(of(MetricId::Rtt, *stat), ms)));
            table.add_measured_row(row);
        }
    }
    let sections = vec![ReportSection::without_blank_line("", [Block::Table(table)])];
    Document { sections, ..Document::default() }
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{RecordId, Summary, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(host: &str, rows: &[(MetricId, Stat, f64)]) -> Record {
        let plan = PingPlan { host: host.to_owned(), ..PingPlan::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
        let mut record = Record::from_plan(id, tool, Plan::Ping(plan), at);
        let row = |&(metric, stat, value)| Summary::from_value(metric, stat, value).at_payload(56);
        record.summary = rows.iter().map(row).collect();
        record
    }

    #[test]
    fn each_target_has_a_row_and_one_that_was_silent_has_dashes() {
        let answered = [
            (MetricId::Sent, Stat::Value, 8.0),
            (MetricId::LossRatio, Stat::Value, 0.125),
            (MetricId::Rtt, Stat::Min, 1.5e6),
            (MetricId::Rtt, Stat::P50, 2e6),
        ];
        let silent = [(MetricId::Sent, Stat::Value, 8.0), (MetricId::LossRatio, Stat::Value, 1.0)];
        let text =
            targets_document(&[record("near", &answered), record("far", &silent)]).text(None);
        let rows: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let dash = number::NONE;
        let near = ["near", "8", "13", "1.500", "2.000", dash, dash, dash, dash];
        let far = ["far", "8", "100", dash, dash, dash, dash, dash, dash];
        assert!(rows.contains(&near.to_vec()) && rows.contains(&far.to_vec()), "{text}");
    }
}
