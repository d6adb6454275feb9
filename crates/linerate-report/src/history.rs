//! The lines of a list of stored results: of each the few figures by which it is told from the
//! others, for the terminal, JSON and CSV alike.
//!
//! Left out: how results are found; the store does that.

use std::collections::BTreeMap;
use std::net::IpAddr;

use linerate_core::record::{MetricId, Plan, Record, RecordStatus, Stat, Via};
use serde::Serialize;

use crate::document::ReportTable;
use crate::headline::{Headline, LimitedBy, part_in_words};
use crate::number::{self, NONE, or_dash};
use crate::{Align, csv, delay, words};

/// Frame rates of a device; the first that a record has is printed in the list.
const FRAME_RATES: [MetricId; 5] = [
    MetricId::ThroughputStrict,
    MetricId::ThroughputTypical,
    MetricId::ThroughputVerified,
    MetricId::FloodForwarded,
    MetricId::ForwardingRateMax,
];

/// One line of the list: a record, or a study run as a whole. The last word of a field is its unit;
/// an absent value is null in JSON and an empty field in CSV.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HistoryLine {
    /// Identifier of the record or of the run.
    pub id: String,
    /// Start, RFC 3339, UTC.
    pub started_at: String,
    /// `tcp`, `udp`, `ping`, `test`, `bench`, `simulate`, `study`.
    pub kind: String,
    /// Address of this host.
    pub from: Option<String>,
    /// The other end's host name or address, as the user gave it.
    pub to: Option<String>,
    /// `up`, `down` or `both`, seen from this host.
    pub direction: Option<&'static str>,
    /// True if the host that keeps the record was the server: then `up` is data that came to it.
    #[serde(skip)]
    pub serves: bool,
    /// Payload rate of the first direction.
    pub goodput_bps: Option<f64>,
    /// Payload rate of the second direction, where a test measured both.
    pub goodput_reverse_bps: Option<f64>,
    /// Highest IP capacity that a search found (RFC 5136).
    pub ip_capacity_max_bps: Option<f64>,
    /// Mean round trip of a ping with its first payload length.
    pub rtt_mean_ns: Option<f64>,
    /// Median round trip of a ping, the figure of its headline.
    pub rtt_median_ns: Option<f64>,
    /// Median delay of probes before the load.
    pub delay_idle_ns: Option<f64>,
    /// Median delay of probes under load, of the first direction.
    pub delay_loaded_ns: Option<f64>,
    /// Lost probes of a ping, lost datagrams of UDP.
    pub loss_ratio: Option<f64>,
    /// Throughput of a device by the strictest goal that was measured.
    pub throughput_frames_per_sec: Option<f64>,
    /// Number of stored measurements of a study run.
    pub measurements: Option<u64>,
    /// Share of the ceiling, of the first direction.
    pub ceiling_ratio: Option<f64>,
    /// `ok`, `partial`, `error` or `interrupted`; for a study run its state.
    pub status: String,
    /// Key of the limit: `link`, `path`, `window`, `pace`, `this_host`, `other_end`, `device`,
    /// `time`, `not_known`, `nothing`.
    pub limited_by: Option<&'static str>,
    /// `good`, `doubtful` or `bad`.
    pub quality: Option<String>,
    /// The limit in words, or the reason for which the measurement failed.
    pub verdict: String,
    /// Name that the user gave the record.
    pub name: Option<String>,
    /// Tags that the user gave the record.
    pub tags: BTreeMap<String, String>,
    /// Name of the study that the record belongs to.
    pub study: Option<String>,
    /// Identifier of the study run.
    pub run: Option<String>,
    /// Name of the topology in the study's grid.
    pub topology: Option<String>,
    /// Name of the test in the study's grid.
    pub test: Option<String>,
    /// Value of the parameter that the test varies.
    pub parameter: Option<u64>,
    /// Repetition of the cell, counted from 1.
    pub repetition: Option<u32>,
}

impl HistoryLine {
    /// The line of one record.
    pub fn from_record(record: &Record) -> Self {
        let directions = csv::directions(record);
        let first = directions.map(|all| all.each_direction()[0]);
        let second = directions.and_then(|all| all.each_direction().get(1).copied());
        let value = |metric, direction| record.summary_value(metric, Stat::Value, direction);
        let reverse = second.and_then(|way| value(MetricId::Goodput, Some(way)));
        let size = match &record.plan {
            Plan::Ping(plan) => plan.sizes_bytes.first().copied(),
            _ => None,
        };
        let of_ping = |metric, stat| record.value_at(metric, stat, size?);
        let datagrams = value(MetricId::DatagramLossRatio, first);
        // A test by HTTP is kept by its server, and says so by its means.
        let serves = matches!(&record.plan, Plan::Tcp(plan) if plan.server.via == Some(Via::Http));
        let connected = || {
            let flow = record.flows.first()?;
            Some(host_of(if serves { &flow.server_addr } else { &flow.client_addr }))
        };
        let local = record.ends.first().and_then(|end| end.address.clone()).or_else(connected);
        let cell = record.cell.as_ref();
        let headline = Headline::from_record(record);
        Self {
            id: record.id.to_string(),
            started_at: record.started_at.to_string(),
            kind: record.plan.kind_name().to_owned(),
            from: local,
            to: record.plan.host_names().next().map(str::to_owned),
            direction: directions.map(csv::direction),
            serves,
            goodput_bps: value(MetricId::Goodput, first),
            goodput_reverse_bps: reverse,
            ip_capacity_max_bps: record.summary_value(MetricId::IpCapacity, Stat::Value, None),
            rtt_mean_ns: of_ping(MetricId::Rtt, Stat::Mean),
            rtt_median_ns: size.and_then(|size| Some(record.typical_round_trip(Some(size))?.value)),
            delay_idle_ns: record.summary_value(MetricId::DelayIdle, Stat::P50, None),
            delay_loaded_ns: record.summary_value(MetricId::DelayLoaded, Stat::P50, None),
            loss_ratio: of_ping(MetricId::LossRatio, Stat::Value).or(datagrams),
            throughput_frames_per_sec: FRAME_RATES.iter().find_map(|rate| value(*rate, None)),
            measurements: None,
            ceiling_ratio: headline.share,
            status: csv::variant_name(record.status),
            limited_by: Some(headline.limit.by.json_key()),
            quality: Some(headline.quality.to_string()),
            verdict: verdict(record, &headline),
            name: record.name.clone(),
            tags: record.tags.clone(),
            study: cell.map(|cell| cell.study.clone()),
            run: cell.map(|cell| cell.run.clone()),
            topology: cell.map(|cell| cell.topology.clone()),
            test: cell.map(|cell| cell.test.clone()),
            parameter: cell.map(|cell| cell.parameter),
            repetition: cell.map(|cell| cell.repetition),
        }
    }

    /// The main figure: capacity, goodput, round trip, frame rate or number of measurements.
    fn result(&self) -> String {
        let loss = self.loss_ratio.filter(|ratio| *ratio > 0.0);
        let loss = loss.map(|ratio| format!(", {} lost", number::percent(ratio)));
        let loss = loss.unwrap_or_default();
        let rates = (self.goodput_bps, self.goodput_reverse_bps);
        let rate = number::measured_rate;
        if let Some(bps) = self.ip_capacity_max_bps {
            return rate(bps);
        }
        match (rates, self.rtt_median_ns, self.throughput_frames_per_sec, self.measurements) {
            ((Some(one), Some(other)), ..) => {
                let (one, other) = (rate(one), rate(other));
                let unit = |text: &str| text.split_once(' ').map(|(_, unit)| unit.to_owned());
                let same = unit(&one).filter(|one_unit| unit(&other).as_ref() == Some(one_unit));
                let first = same.and_then(|unit| one.strip_suffix(&format!(" {unit}")));
                format!("{} / {other}", first.unwrap_or(&one))
            }
            ((Some(one), None), ..) => format!("{}{loss}", rate(one)),
            (_, Some(rtt), ..) => format!("{} ms{loss}", number::time_in_ms(rtt)),
            (_, _, Some(frames), _) => format!("{} frames/s", number::short_count(frames)),
            (.., Some(count)) => words::counted(count, "measurement"),
            _ if self.loss_ratio == Some(1.0) => "all lost".to_owned(),
            _ => NONE.to_owned(),
        }
    }

    /// Arrow in the direction of the data, and the other end or the study.
    fn towards(&self) -> String {
        let arrow = match (self.direction, self.serves) {
            (Some("down"), false) | (Some("up"), true) => "\u{2190}",
            (Some("both"), _) => "\u{2194}",
            _ => "\u{2192}",
        };
        match (&self.to, &self.study) {
            (Some(to), _) => format!("{arrow} {to}"),
            (None, study) => study.clone().unwrap_or_else(|| NONE.to_owned()),
        }
    }
}

/// The host of a socket address: `192.0.2.1` of `192.0.2.1:5210`, `2001:db8::1` of
/// `[2001:db8::1]:5210`.
fn host_of(socket: &str) -> String {
    let host = socket.rsplit_once(':').map_or(socket, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    // A listener of both families names IPv4 hosts as mapped addresses.
    host.parse::<IpAddr>().map_or_else(|_| host.to_owned(), |ip| ip.to_canonical().to_string())
}

fn verdict(record: &Record, headline: &Headline) -> String {
    let why = || record.failure.as_ref().map(|failure| failure.reason.clone()).unwrap_or_default();
    match (record.status, headline.limit.by) {
        (RecordStatus::Error, _) => format!("failed: {}", why()),
        (RecordStatus::Partial, _) => format!("ended early: {}", why()),
        (RecordStatus::Interrupted, _) => "interrupted".to_owned(),
        (RecordStatus::Ok, _) if record.failure.is_some() => why(),
        (RecordStatus::Ok, LimitedBy::Nothing) => headline.quality.to_string(),
        (RecordStatus::Ok, LimitedBy::NotKnown) => "limit not known".to_owned(),
        (RecordStatus::Ok, by) if headline.limit.is_busy_host() => {
            format!("limited by {}'s busy CPU", part_in_words(by))
        }
        (RecordStatus::Ok, by) => format!("limited by {}", part_in_words(by)),
    }
}

/// The list as a table for terminals. Below [`WIDE`] columns it drops the year and the part of the
/// identifiers that all lines share, and cuts long verdicts.
pub fn terminal_table(
    lines: &[HistoryLine],
    width: Option<usize>,
    short_id_chars: usize,
) -> ReportTable {
    let narrow = width.is_some_and(|width| width < WIDE);
    let names =
        ["started", "kind", "from", "to", "result", "of ceiling", "delay", "limited by", "name"];
    let names = names.into_iter().chain(["tags", "id"]);
    let right = |name: &&str| matches!(*name, "result" | "of ceiling" | "delay");
    let columns = names.map(|name| {
        let align = if right(&name) { Align::Right } else { Align::Left };
        (if narrow && name == "of ceiling" { "of max" } else { name }, align)
    });
    let cell = |text: Option<String>| text.unwrap_or_else(|| NONE.to_owned());
    let rows = lines.iter().map(|line| {
        let tags: Vec<String> =
            line.tags.iter().map(|(key, value)| format!("{key}={value}")).collect();
        let started = line.started_at.get(if narrow { 5..16 } else { 0..16 });
        [
            started.unwrap_or(&line.started_at).replace('T', " "),
            line.kind.clone(),
            cell(line.from.clone()),
            ellipsized(&line.towards(), if narrow { 17 } else { 40 }),
            line.result(),
            or_dash(line.ceiling_ratio, number::whole_percent),
            or_dash(line.delay_loaded_ns, |ns| format!("{} ms", delay::ms_three_digits(ns))),
            ellipsized(
                line.verdict.strip_prefix(LIMITED).unwrap_or(&line.verdict),
                if narrow { 16 } else { 60 },
            ),
            cell(line.name.clone()),
            cell((!tags.is_empty()).then(|| tags.join(" "))),
            line.id.chars().take(short_id_chars).collect(),
        ]
    });
    ReportTable::from_columns(columns).with_rows(rows).dropping(&[9, 2, 8, 5, 6])
}

/// Words that begin a verdict and stand in the column's heading already.
const LIMITED: &str = "limited by ";

/// Width in columns from which on the list is not shortened.
const WIDE: usize = 100;

/// A text cut to at most `chars` characters, with an ellipsis where something was cut.
fn ellipsized(text: &str, chars: usize) -> String {
    if text.chars().count() <= chars {
        return text.to_owned();
    }
    text.chars().take(chars - 1).chain(['\u{2026}']).collect()
}

/// The lines as CSV, with all fields named as in JSON; tags are `KEY=VALUE` with spaces between.
pub fn comma_separated(lines: &[HistoryLine]) -> String {
    let fields = |line: &HistoryLine| match linerate_core::tree::to_value(line) {
        Ok(serde_json::Value::Object(fields)) => fields,
        other => unreachable!("{other:?} is not a struct"),
    };
    let head: Vec<&str> = HEAD.to_vec();
    let rows = lines.iter().map(|line| {
        let fields = fields(line);
        let text = |name: &&str| match &fields[*name] {
            serde_json::Value::Null => String::new(),
            serde_json::Value::String(text) => text.clone(),
            serde_json::Value::Object(tags) => {
                let each = tags
                    .iter()
                    .map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
                each.collect::<Vec<_>>().join(" ")
            }
            other => other.to_string(),
        };
        HEAD.iter().map(text).collect()
    });
    csv::rows_with_head(&head.join(","), rows)
}

/// The fields of [`HistoryLine`] in its order.
const HEAD: [&str; 29] = [
    "id",
    "started_at",
    "kind",
    "from",
    "to",
    "direction",
    "goodput_bps",
    "goodput_reverse_bps",
    "ip_capacity_max_bps",
    "rtt_mean_ns",
    "rtt_median_ns",
    "delay_idle_ns",
    "delay_loaded_ns",
    "loss_ratio",
    "throughput_frames_per_sec",
    "measurements",
    "ceiling_ratio",
    "status",
    "limited_by",
    "quality",
    "verdict",
    "name",
    "tags",
    "study",
    "run",
    "topology",
    "test",
    "parameter",
    "repetition",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// A busy host: the program saw a median of 24.84 ms and a mean of 81.02, the kernel a median
    /// of 20.35.
    #[test]
    fn a_ping_has_one_round_trip_in_its_headline_in_lists_and_in_schedules() {
        use linerate_core::record::{PingPlan, RecordId, Summary, Tool};
        let plan = PingPlan { sizes_bytes: vec![56], ..PingPlan::default() };
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let at = linerate_core::time::WallTime::from_unix_nanos(0);
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::from_plan(id, tool, Plan::Ping(plan), at);
        let row =
            |metric, stat, ms: f64| Summary::from_value(metric, stat, ms * 1e6).at_payload(56);
        record.summary = vec![
            row(MetricId::Rtt, Stat::Mean, 81.02),
            row(MetricId::Rtt, Stat::P50, 24.84),
            row(MetricId::RttKernel, Stat::Mean, 20.9),
            row(MetricId::RttKernel, Stat::P50, 20.35),
        ];
        let line = HistoryLine::from_record(&record);
        assert_eq!((line.rtt_median_ns, line.result()), (Some(20.35e6), "20.35 ms".to_owned()));
        let headline = Headline::from_record(&record).result;
        assert!(headline.starts_with("RTT 20.35"), "{headline}");
        assert!(headline.contains(" ms (median, kernel's clock) to "), "{headline}");
        let followed = linerate_core::schedule::followed(&record);
        assert_eq!(followed.first().map(|(_, value)| *value), line.rtt_median_ns);
        // Without the kernel's all have the program's median.
        record.summary.retain(|row| row.metric == MetricId::Rtt);
        assert_eq!(HistoryLine::from_record(&record).rtt_median_ns, Some(24.84e6));
        let followed = linerate_core::schedule::followed(&record);
        assert_eq!(followed.first().map(|(_, value)| *value), Some(24.84e6));
    }

    #[test]
    fn a_host_that_was_too_busy_is_listed_by_its_cpu() {
        use linerate_core::record::{
            Caveat, CaveatCode, Direction, Flow, FlowEnd, RecordId, Summary, TcpPlan, Tool,
        };
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let at = linerate_core::time::WallTime::from_unix_nanos(0);
        let id = RecordId::from_parts(0, [0; 10]);
        let mut record = Record::from_plan(id, tool, Plan::Tcp(TcpPlan::default()), at);
        let goodput = Summary::from_value(MetricId::Goodput, Stat::Value, 84.8e6);
        record.summary = vec![goodput.in_direction(Direction::Up)];
        let end = |waited_ns| FlowEnd {
            span_ns: 5_000_000_000,
            run_queue_wait_ns: Some(waited_ns),
            ..FlowEnd::default()
        };
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: "192.0.2.1:1".to_owned(),
            server_addr: "192.0.2.2:2".to_owned(),
            sender: Some(end(0)),
            receiver: Some(end(1_550_000_000)),
            syn: None,
        }];
        record.caveats = vec![Caveat::new(CaveatCode::RunQueueWait, "waited", "stop other work")];
        assert_eq!(
            HistoryLine::from_record(&record).verdict,
            "limited by the other end's busy CPU"
        );
    }

    #[test]
    fn a_test_by_http_goes_between_its_server_and_the_client() {
        let line = |direction, serves| HistoryLine {
            to: Some("198.51.100.1".to_owned()),
            direction: Some(direction),
            serves,
            ..HistoryLine::default()
        };
        // `down` is what the client receives; its server keeps the result.
        assert_eq!(line("down", true).towards(), "\u{2192} 198.51.100.1");
        assert_eq!(line("up", true).towards(), "\u{2190} 198.51.100.1");
        assert_eq!(line("down", false).towards(), "\u{2190} 198.51.100.1");
        assert_eq!(host_of("[::ffff:192.0.2.2]:5210"), "192.0.2.2");
        assert_eq!(host_of("[2001:db8::1]:5210"), "2001:db8::1");
        assert_eq!(host_of("localhost:7"), "localhost");
    }

    #[test]
    fn rates_of_both_directions_share_their_unit_where_it_is_one() {
        let of = |up, down| {
            let rates = HistoryLine {
                goodput_bps: up,
                goodput_reverse_bps: down,
                ..HistoryLine::default()
            };
            rates.result()
        };
        assert_eq!(of(Some(42.06e9), Some(48.9e9)), "42.06 / 48.90 Gbit/s");
        assert_eq!(of(Some(941.5e6), Some(2e9)), "941.5 Mbit/s / 2.000 Gbit/s");
        assert_eq!(of(Some(50e6), None), "50.00 Mbit/s");
        assert_eq!(of(None, None), NONE);
    }
}
