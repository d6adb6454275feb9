//! A record as a data file of flent: TCP streams and the probes beside them, by flent's own names,
//! so that its plots and its comparisons of several files take it.
//!
//! Left out: compression and files. What flent would measure otherwise is said in the file's NOTE.
//!
//! # Source
//! flent 2.3.0: `resultset.py` (version 4 of the format), `aggregators.py` (the common time axis),
//! the data sets of the tests `rrul`, `rrul_be_nflows`, `tcp_nup` and `tcp_ndown`.

use std::collections::BTreeMap;

use linerate_core::record::{
    Direction, FlowSide, MetricId, PingTransport, Plan, Probes, Record, Series, Stat,
    TcpDirections, TcpPlan,
};
use serde_json::{Value, json};

use crate::words;

/// Version of the format.
const VERSION: u32 = 4;
/// Time that flent leaves without load before and behind it (DELAY), which its plots of
/// distributions cut off.
const DELAY_S: f64 = 5.0;
/// A value is no neighbour of a point of the axis that is farther away than so many steps.
const STEPS_MAX: f64 = 5.0;

/// Times in seconds since the first probe, with values in flent's unit.
type Points = Vec<(f64, f64)>;

/// The file of a record; none without TCP streams and answered probes beside them. Of a survey it
/// is that of the part to which the load added most delay.
pub fn document(record: &Record) -> Option<Value> {
    match &record.plan {
        Plan::Tcp(plan) => of_flows(record, plan),
        Plan::Test(_) => {
            let added = |part: &Record| part.summary_value(MetricId::DelayLoaded, Stat::P50, None);
            let parts = record.parts.iter().filter_map(|part| Some((added(part)?, part)));
            let (_, part) = parts.max_by(|(one, _), (other, _)| one.total_cmp(other))?;
            document(part)
        }
        _ => None,
    }
}

fn of_flows(record: &Record, plan: &TcpPlan) -> Option<Value> {
    let probes = record.probes.as_deref()?;
    let begin_s = -(*probes.sent_ns.first()? as f64).min(0.0) / 1e9;
    let mut raw = delays(record, plan, begin_s);
    if raw.is_empty() {
        return None;
    }
    raw.extend(stream_rates(record, plan, begin_s));
    let end_s = raw.values().flatten().map(|(t, _)| *t).fold(0.0, f64::max);
    let step_s = plan.test.interval_ns as f64 / 1e9;
    let count = (end_s / step_s) as usize + 1;
    let axis: Vec<f64> = (0..count).map(|place| place as f64 * step_s).collect();
    let mut results: BTreeMap<String, Vec<Option<f64>>> =
        raw.iter().map(|(name, points)| (name.clone(), on_axis(&axis, step_s, points))).collect();
    add_totals(&mut results);
    let started_s = record.started_at.unix_millis() as f64 / 1e3;
    let absolute = |points: &Points| -> Vec<Value> {
        points.iter().map(|(t, value)| json!({"t": started_s + t, "val": value})).collect()
    };
    let raw: BTreeMap<&String, Vec<Value>> =
        raw.iter().map(|(name, points)| (name, absolute(points))).collect();
    Some(json!({
        "version": VERSION,
        "metadata": metadata(record, plan, begin_s, end_s, step_s, &results),
        "x_values": axis,
        "results": results,
        "raw_values": raw,
    }))
}

/// flent's test whose data sets the record has.
fn test_name(plan: &TcpPlan) -> &'static str {
    match plan.test.directions {
        _ if !plan.test.dscps.is_empty() => "rrul",
        TcpDirections::Up => "tcp_nup",
        TcpDirections::Down => "tcp_ndown",
        TcpDirections::Both => "rrul_be_nflows",
    }
}

/// The round trips of each kind of probes, in ms.
fn delays(record: &Record, plan: &TcpPlan, begin_s: f64) -> BTreeMap<String, Points> {
    let all = record.probes.iter().map(AsRef::as_ref).chain(&record.probes_beside);
    let named = all.map(|probes| {
        let sent = probes.sent_ns.iter().map(|&ns| ns as f64 / 1e9 + begin_s);
        let points = sent.zip(&probes.rtt_ns);
        let points = points.filter_map(|(t, rtt)| Some((t, (*rtt)? as f64 / 1e6)));
        (probe_name(plan, probes), points.collect::<Points>())
    });
    named.filter(|(_, points)| !points.is_empty()).collect()
}

/// The data set of some probes: the only one that the tests of one direction have is called after
/// ICMP, whatever it is.
fn probe_name(plan: &TcpPlan, probes: &Probes) -> String {
    let class = class_name(probes.dscp.unwrap_or(0));
    match (plan.test.directions, probes.transport) {
        (TcpDirections::Both, PingTransport::Udp) => format!("Ping (ms) UDP {class}"),
        (TcpDirections::Both, _) | (_, PingTransport::Icmp) => "Ping (ms) ICMP".to_owned(),
        _ if class == "BE" => "Ping (ms) ICMP".to_owned(),
        _ => format!("Ping (ms) UDP {class}"),
    }
}

/// flent's word for a class; CS1 is its background.
fn class_name(dscp: u8) -> String {
    if dscp == 8 { "BK".to_owned() } else { words::class_name(dscp) }
}

/// The goodput of each stream in Mbit/s.
fn stream_rates(record: &Record, plan: &TcpPlan, begin_s: f64) -> BTreeMap<String, Points> {
    let of_receivers = |series: &&Series| {
        series.metric == MetricId::Goodput && series.side != Some(FlowSide::Sender)
    };
    let each = record.series.iter().filter(of_receivers);
    let named = each.filter_map(|series| {
        let (way, flow) = (series.direction?, series.flow?);
        let way = if way == Direction::Up { "upload" } else { "download" };
        let name = match (plan.test.directions, plan.test.dscps.is_empty()) {
            (_, false) => format!("TCP {way} {}", class_name(plan.test.dscp_of(flow).unwrap_or(0))),
            (TcpDirections::Both, _) => format!("TCP {way} BE::{}", flow + 1),
            _ => format!("TCP {way}::{}", flow + 1),
        };
        let points = series.t_ns.iter().zip(&series.values);
        let points = points
            .filter_map(|(&ns, bps)| Some((ns as f64 / 1e9 + begin_s, (*bps)? / 1e6)))
            .collect();
        Some((name, points))
    });
    named.collect()
}

/// The values at the points of an axis, between the neighbours in time.
fn on_axis(axis: &[f64], step_s: f64, points: &Points) -> Vec<Option<f64>> {
    let at = |&t: &f64| {
        let next = points.partition_point(|(at, _)| *at <= t);
        let after = points.get(next).copied();
        let before = next.checked_sub(1).map(|place| points[place]);
        match (before, after) {
            (Some((from, one)), Some((to, other))) if to - from <= STEPS_MAX * step_s => {
                Some(one + (other - one) * (t - from) / (to - from))
            }
            (Some((at, value)), _) if t - at <= step_s / 2.0 => Some(value),
            (_, Some((at, value))) if at - t <= step_s / 2.0 => Some(value),
            _ => None,
        }
    };
    axis.iter().map(at).collect()
}

fn sum(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum())
}

fn mean_value(values: &[f64]) -> Option<f64> {
    sum(values).map(|sum| sum / values.len() as f64)
}

/// The means and sums that flent makes of its data sets.
fn add_totals(results: &mut BTreeMap<String, Vec<Option<f64>>>) {
    let of = |results: &BTreeMap<String, Vec<Option<f64>>>, prefix: &str| {
        let all = results.iter().filter(|(name, _)| name.starts_with(prefix));
        all.map(|(_, values)| values.clone()).collect::<Vec<_>>()
    };
    let fold = |all: &[Vec<Option<f64>>], fold: fn(&[f64]) -> Option<f64>| {
        let count = all.first().map_or(0, Vec::len);
        let at = |place: usize| {
            let present: Vec<f64> = all.iter().filter_map(|values| values[place]).collect();
            fold(&present)
        };
        (0..count).map(at).collect::<Vec<Option<f64>>>()
    };
    let pings = of(results, "Ping (ms)");
    let ways = ["TCP upload", "TCP download"].map(|prefix| (prefix, of(results, prefix)));
    results.insert("Ping (ms) avg".to_owned(), fold(&pings, mean_value));
    let both: Vec<_> = ways.iter().flat_map(|(_, streams)| streams.clone()).collect();
    results.insert("TCP totals".to_owned(), fold(&both, sum));
    for (prefix, streams) in ways {
        if !streams.is_empty() {
            results.insert(format!("{prefix} avg"), fold(&streams, mean_value));
            results.insert(format!("{prefix} sum"), fold(&streams, sum));
        }
    }
}

fn metadata(
    record: &Record,
    plan: &TcpPlan,
    begin_s: f64,
    end_s: f64,
    step_s: f64,
    results: &BTreeMap<String, Vec<Option<f64>>>,
) -> Value {
    let began = record.started_at.format_utc("%Y-%m-%dT%H:%M:%S%.3fZ");
    let streams = plan.test.streams.to_string();
    let of_series = |name: &str, values: &[Option<f64>]| {
        let present: Vec<f64> = values.iter().copied().flatten().collect();
        let units = if name.starts_with("Ping") { "ms" } else { "Mbits/s" };
        json!({"UNITS": units, "MEAN_VALUE": mean_value(&present)})
    };
    let series: BTreeMap<&String, Value> =
        results.iter().map(|(name, values)| (name, of_series(name, values))).collect();
    let first = record.flows.first();
    let version = first.map(|flow| if flow.client_addr.starts_with('[') { 6 } else { 4 });
    let here = first.and_then(|flow| flow.client_addr.rsplit_once(':'));
    let local = here.map(|(address, _)| address.trim_matches(['[', ']']));
    let load_s = plan.test.planned_span().map_or(end_s - begin_s, |span| span.as_secs_f64());
    let first = record.probes.as_deref();
    let by = first.map_or("", |probes| words::transport(probes.transport));
    json!({
        "NAME": test_name(plan),
        "TITLE": record.name,
        "HOST": plan.server.host,
        "HOSTS": [plan.server.host],
        "LOCAL_HOST": local,
        "TIME": began,
        "T0": began,
        "LENGTH": load_s,
        "TOTAL_LENGTH": begin_s + load_s + DELAY_S,
        "STEP_SIZE": step_s,
        "IP_VERSION": version,
        "TEST_PARAMETERS": {"upload_streams": streams, "download_streams": streams},
        "SERIES_META": series,
        "NOTE": format!(
            "linerate {} {}, probes by {by}, {begin_s:.1} s before the load",
            record.tool.version, record.id,
        ),
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{ProbePhase, ProbeSpan, RecordId, Summary, TcpTest, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    /// Probes every 100 ms from half a second before the load, which takes a second; streams of
    /// 10 Mbit/s each way with samples every 500 ms.
    fn record(test: TcpTest) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let test = TcpTest { interval_ns: 500_000_000, ..test };
        let plan = TcpPlan { test: test.clone(), ..TcpPlan::default() };
        let at = WallTime::from_unix_nanos(1_700_000_000_250_000_000);
        let mut record =
            Record::from_plan(RecordId::from_parts(0, [0; 10]), tool, Plan::Tcp(plan), at);
        for (direction, flow) in test.places() {
            record.series.push(Series {
                metric: MetricId::Goodput,
                direction: Some(direction),
                flow: Some(flow),
                side: Some(FlowSide::Receiver),
                payload_bytes: None,
                t_ns: vec![500_000_000, 1_000_000_000],
                values: vec![Some(10e6), Some(20e6)],
            });
        }
        let kind = |transport, dscp| Probes {
            dscp: Some(dscp),
            phases: vec![ProbeSpan { phase: ProbePhase::Both, from_ns: 0, to_ns: 1_000_000_000 }],
            sent_ns: (-5..10).map(|index| index * 100_000_000).collect(),
            rtt_ns: (-5..10).map(|index| (index != 3).then_some(20_000_000)).collect(),
            ..Probes::new(transport, "192.0.2.1:5210".to_owned(), 40)
        };
        record.probes = Some(Box::new(kind(PingTransport::Udp, 0)));
        record.probes_beside = vec![
            kind(PingTransport::Udp, 8),
            kind(PingTransport::Udp, 46),
            kind(PingTransport::Icmp, 0),
        ];
        record
    }

    fn result_names(file: &Value) -> Vec<&str> {
        file["results"].as_object().expect("results").keys().map(String::as_str).collect()
    }

    #[test]
    fn a_test_of_four_classes_has_the_data_sets_of_rrul() {
        let test = TcpTest {
            directions: TcpDirections::Both,
            streams: 4,
            dscps: vec![0, 8, 40, 46],
            ..TcpTest::default()
        };
        let file = document(&record(test)).expect("a file");
        assert_eq!((&file["version"], &file["metadata"]["NAME"]), (&4.into(), &"rrul".into()));
        // Those of rrul.conf of flent 2.3.0.
        let mut expected: Vec<String> = ["upload", "download"]
            .iter()
            .flat_map(|way| {
                let all = ["BE", "BK", "CS5", "EF", "avg", "sum"];
                all.map(|name| format!("TCP {way} {name}"))
            })
            .collect();
        expected.push("TCP totals".to_owned());
        expected.extend(
            ["UDP EF", "UDP BK", "UDP BE", "ICMP", "avg"].map(|class| format!("Ping (ms) {class}")),
        );
        expected.sort();
        assert_eq!(result_names(&file), expected);
        // Samples at 0.5 and 1 s of the load, which begins at 0.5 of the file: 10 at 1, 20 at 1.5.
        assert_eq!(file["x_values"], json!([0.0, 0.5, 1.0, 1.5]));
        assert_eq!(file["results"]["TCP upload EF"], json!([null, null, 10.0, 20.0]));
        assert_eq!(file["results"]["TCP totals"], json!([null, null, 80.0, 160.0]));
        assert_eq!(file["results"]["Ping (ms) avg"], json!([20.0, 20.0, 20.0, 20.0]));
        let raw = &file["raw_values"]["Ping (ms) ICMP"];
        assert_eq!(raw.as_array().map(Vec::len), Some(14), "the lost one is left out");
        assert_eq!(raw[1], json!({"t": 1_700_000_000.35, "val": 20.0}));
        assert_eq!(file["metadata"]["TIME"], "2023-11-14T22:13:20.250Z");
    }

    #[test]
    fn a_test_of_one_class_has_those_of_its_directions() {
        let of = |directions| {
            let test = TcpTest { directions, streams: 2, ..TcpTest::default() };
            let file = document(&record(test)).expect("a file");
            (file["metadata"]["NAME"].clone(), result_names(&file)[5..].join(", "))
        };
        let (name, series) = of(TcpDirections::Up);
        assert_eq!(name, "tcp_nup");
        assert!(series.ends_with("TCP upload avg, TCP upload sum, TCP upload::1, TCP upload::2"));
        assert_eq!(of(TcpDirections::Down).0, "tcp_ndown");
        let (name, series) = of(TcpDirections::Both);
        assert_eq!(name, "rrul_be_nflows");
        assert!(series.contains("TCP upload BE::1, TCP upload BE::2"), "{series}");
    }

    #[test]
    fn values_lie_between_their_neighbours_and_gaps_stay() {
        let axis: Vec<f64> = (0..9).map(f64::from).collect();
        let points = vec![(0.4, 10.0), (2.4, 30.0), (8.0, 1.0)];
        let expected =
            [Some(10.0), Some(16.0), Some(26.0), None, None, None, None, None, Some(1.0)];
        let got = on_axis(&axis, 1.0, &points);
        let close = |(got, expected): (&Option<f64>, &Option<f64>)| match (got, expected) {
            (Some(got), Some(expected)) => (got - expected).abs() < 1e-9,
            (got, expected) => got == expected,
        };
        assert!(got.iter().zip(&expected).all(close), "{got:?}");
    }

    #[test]
    fn of_a_survey_the_part_with_the_longest_queue_is_written() {
        let mut whole = record(TcpTest::default());
        let mut parts = [TcpDirections::Up, TcpDirections::Down].map(|directions| {
            let mut part = record(TcpTest { directions, ..TcpTest::default() });
            let ns = if directions == TcpDirections::Up { 1e6 } else { 9e6 };
            part.summary = vec![Summary::from_value(MetricId::DelayLoaded, Stat::P50, ns)];
            part
        });
        let server = linerate_core::record::ServerPlan::default();
        whole.plan = Plan::Test(linerate_core::record::TestPlan {
            server,
            tcp_time_ns: None,
            congestion_control: None,
            ping_count: 1,
            within_ns: None,
            goal: None,
        });
        whole.parts = parts.to_vec();
        assert_eq!(document(&whole).expect("a file")["metadata"]["NAME"], "tcp_ndown");
        parts[1].probes = None;
        assert_eq!(document(&parts[1]), None);
    }
}
