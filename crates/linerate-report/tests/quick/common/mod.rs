//! Results made from the published tables of the PREN study: an outside oracle for every figure
//! that a report prints.
#![allow(dead_code, missing_docs, unreachable_pub)]

pub mod bench;
pub mod round_trips;
pub mod svg_text;
pub mod wan;

use linerate_core::lab::{HostPlan, LabPlan, LinkPlan, RouterPlan};
use linerate_core::record::{
    Caveat, CaveatCode, Ceiling, CeilingInput, Direction, Distribution, MeasurementEnd, MetricId,
    Plan, Record, RecordId, Series, Stat, StudyCell, Summary, Tool,
};
use linerate_core::study::{
    PublishedAs, PublishedFigures, PublishedTable, StudyPlan, TableAbout, TcpSweep, Test, TestKind,
    Topology,
};
use linerate_core::time::WallTime;
use linerate_report::study::StudyResults;

const PING: &str = include_str!("../../../../../studies/data/pren-2000-ping.csv");
const TCP: &str = include_str!("../../../../../studies/data/pren-2000-ttcp.csv");

/// 2026-02-01T00:00:00Z in seconds.
const START_S: u128 = 1_769_904_000;

pub fn published() -> PublishedFigures {
    let about = TableAbout { id: "pren", title: "", study: "pren", year: 2000, source: "" };
    let table = |text| PublishedTable::from_csv(about, text).expect("the tables fit their types");
    PublishedFigures::from_tables([PING, TCP].map(table))
}

/// The study's plan as far as a report reads it: one topology per published test and MTU.
pub fn plan() -> StudyPlan {
    let figures = published();
    let mut topologies: Vec<Topology> = Vec::new();
    for row in &figures.tcp {
        let id = match row.mtu_bytes {
            1500 => row.test.clone(),
            mtu => format!("{}-{mtu}", row.test),
        };
        if topologies.iter().any(|topology| topology.id == id) {
            continue;
        }
        let local = row.topology == "localhost";
        let host = |name: &str| HostPlan {
            name: name.to_owned(),
            loopback_mtu_bytes: local.then_some(row.mtu_bytes),
            ..HostPlan::default()
        };
        let link = LinkPlan {
            ends: ["a".to_owned(), "b".to_owned()],
            mtu_bytes: None,
            rate: (row.class == "man").then(|| "155.52 Mbit/s".to_owned()),
            offload: None,
            path: None,
        };
        topologies.push(Topology {
            id,
            title: match row.mtu_bytes {
                1500 => row.topology.clone(),
                mtu => format!("{}, MTU {mtu}", row.topology),
            },
            class: row.class.clone(),
            lab: LabPlan {
                hosts: vec![host("a"), host("b")],
                routers: (row.l3_hops == Some(1))
                    .then(|| RouterPlan { name: "r".to_owned(), ..RouterPlan::default() })
                    .into_iter()
                    .collect(),
                links: vec![link],
                ..LabPlan::default()
            },
            client: "a".to_owned(),
            server: if local { "a" } else { "b" }.to_owned(),
            l2_hops: row.l2_hops.unwrap_or(3),
            l3_hops: row.l3_hops.unwrap_or(2),
            published: Some(PublishedAs { test: row.test.clone(), mtu_bytes: Some(row.mtu_bytes) }),
        });
    }
    StudyPlan {
        name: "pren".to_owned(),
        title: "A campus and metropolitan network, then and now".to_owned(),
        source: Some("\"High-speed network measurements\", PREN, Portland 2000".to_owned()),
        purpose: Some("Delay and TCP throughput from localhost to an OC-3 link.".to_owned()),
        shuffle_seed: None,
        retries: None,
        topologies,
        tests: tests(1),
        questions: vec![],
    }
}

pub fn tests(repetitions: u32) -> Vec<Test> {
    vec![
        Test {
            id: "ping".to_owned(),
            on: None,
            kind: TestKind::ping(vec![56, 250, 500, 1024, 1460, 1500], 10_000),
            repetitions: 1,
        },
        Test {
            id: "tcp".to_owned(),
            on: None,
            kind: TestKind::Tcp(TcpSweep {
                windows_bytes: Some(vec![16_384, 32_768, 65_536, 131_072]),
                seconds: Some(2.0),
                ..TcpSweep::default()
            }),
            repetitions,
        },
    ]
}

/// The published figures as if they had been measured now.
pub fn as_published() -> StudyResults {
    let plan = plan();
    let figures = published();
    let mut records = Vec::new();
    for cell in plan.cell_plans() {
        let topology =
            plan.topologies.iter().find(|it| it.id == cell.cell.topology).expect("its own plan");
        let rows = topology.published.as_ref().expect("every topology has one");
        let summary = match &cell.plan {
            Plan::Ping(_) => {
                let size = u32::try_from(cell.cell.parameter).expect("a payload");
                let row =
                    figures.ping.iter().find(|p| p.test == rows.test && p.payload_bytes == size);
                let Some(ms) = row.and_then(|row| row.rtt_avg_ms) else { continue };
                ping_summary(size, ms * 1e6)
            }
            _ => {
                let row = figures.tcp.iter().find(|t| {
                    t.test == rows.test
                        && Some(t.mtu_bytes) == rows.mtu_bytes
                        && t.window_bytes == cell.cell.parameter
                });
                let Some(mbit) = row.and_then(|row| row.throughput_mbit_s) else { continue };
                tcp_summary(mbit * 1e6)
            }
        };
        records.push(record(records.len(), cell.cell, cell.plan, summary));
    }
    StudyResults { plan, run: "run-1".to_owned(), records, published: figures }
}

/// A run of today: faster hosts, five repetitions with a spread, a link that is still an OC-3.
/// The figures are made up; only their shape is like that of a run.
pub fn as_today() -> StudyResults {
    let mut results = as_published();
    results.plan.tests = tests(5);
    let mut records = Vec::new();
    for mut cell in results.plan.cell_plans() {
        let index = results.plan.topologies.iter().position(|it| it.id == cell.cell.topology);
        let index = index.expect("its own plan");
        let limited = results.plan.topologies[index].class == "man";
        let step = records.len();
        cell.cell.run = results.run.clone();
        let summary = match &cell.plan {
            Plan::Ping(_) => {
                let size = u32::try_from(cell.cell.parameter).expect("a payload");
                let slow = if limited { 0.14 * f64::from(size) } else { 0.002 * f64::from(size) };
                ping_summary(size, 1e3 * (6.0 + 2.5 * index as f64 + slow))
            }
            _ => {
                let window = cell.cell.parameter as f64 / 16_384.0;
                let best = if limited { 141e6 } else { 19e9 / (1.0 + 0.45 * index as f64) };
                let grown = best * (1.0 - 0.42 / window.powi(2));
                let spread = 0.07 * f64::from((cell.cell.repetition * 7 + index as u32) % 5) / 4.0;
                tcp_summary(grown * (1.0 - spread))
            }
        };
        let mut record = record(step, cell.cell, cell.plan, summary);
        if limited && matches!(record.plan, Plan::Tcp(_)) {
            record.ceiling = Some(ceiling(record.summary[0].value));
        }
        record.caveats.push(Caveat::new(
            CaveatCode::SameHost,
            "both ends run on one kernel",
            "read it as the cost of the path's software, not of wires",
        ));
        records.push(record);
    }
    results.records = records;
    results
}

fn ceiling(goodput: f64) -> Ceiling {
    // tbf counts frames without FCS: 1514 bytes for 1448 of payload.
    let value = 155.52e6 * 1448.0 / 1514.0;
    let input = |name: &str, value: f64, source: &str| CeilingInput {
        name: name.to_owned(),
        value,
        source: source.to_owned(),
    };
    Ceiling {
        value: Some(value),
        inputs: vec![
            input("link_rate_bps", 155.52e6, "tbf qdisc on veth-a"),
            input("mtu_bytes", 1500.0, "interface"),
            input("tcp_header_bytes", 32.0, "SYN options"),
        ],
        share: Some(goodput / value),
        ..Ceiling::of_goodput(Direction::Up)
    }
}

pub fn ping_summary(size: u32, mean_ns: f64) -> Vec<Summary> {
    let row = |metric, stat, value| Summary::from_value(metric, stat, value).at_payload(size);
    vec![
        row(MetricId::Rtt, Stat::Min, mean_ns * 0.9),
        row(MetricId::Rtt, Stat::Mean, mean_ns),
        row(MetricId::Rtt, Stat::Max, mean_ns * 3.0),
        row(MetricId::Rtt, Stat::Stddev, mean_ns * 0.05),
        row(MetricId::Rtt, Stat::P50, mean_ns * 0.98),
        row(MetricId::Pps, Stat::Value, 0.93e9 / mean_ns),
        row(MetricId::Sent, Stat::Value, 10_000.0),
        row(MetricId::Received, Stat::Value, 10_000.0),
    ]
}

pub fn tcp_summary(bps: f64) -> Vec<Summary> {
    vec![Summary::from_value(MetricId::Goodput, Stat::Value, bps).in_direction(Direction::Up)]
}

pub fn record(index: usize, cell: StudyCell, plan: Plan, summary: Vec<Summary>) -> Record {
    let mut record = bare_record(index, plan);
    record.cell = Some(cell);
    record.duration_ns = 2_000_000_000;
    record.summary = summary;
    record.ends = vec![MeasurementEnd {
        role: "local".to_owned(),
        kernel: Some("Linux 6.12.9".to_owned()),
        cpu_model: Some("Example CPU 3000".to_owned()),
        cpus: Some(2),
        congestion_control_default: Some("cubic".to_owned()),
        ..MeasurementEnd::default()
    }];
    record
}

pub fn bare_record(index: usize, plan: Plan) -> Record {
    let index = u64::try_from(index).expect("a small number");
    let tool = Tool { name: "linerate".to_owned(), version: "0.1.0".to_owned() };
    let at = WallTime::from_unix_nanos((START_S + u128::from(index) * 3) * 1_000_000_000);
    Record::from_plan(RecordId::from_parts(at.unix_millis(), [7; 10]), tool, plan, at)
}

/// Goodput of ten intervals.
pub fn intervals(direction: Direction, bps: f64) -> Series {
    Series {
        metric: MetricId::Goodput,
        direction: Some(direction),
        flow: None,
        side: None,
        payload_bytes: None,
        t_ns: (1..=10).map(|second| second * 1_000_000_000).collect(),
        values: (0..10).map(|i| (i != 4).then(|| bps * (1.0 - 0.02 * f64::from(i % 3)))).collect(),
    }
}

/// Ten values around a mean.
pub fn distribution(size: u32, mean_ns: u64) -> Distribution {
    Distribution {
        metric: MetricId::Rtt,
        payload_bytes: Some(size),
        values: (0..10).map(|i| mean_ns * (90 + 3 * i) / 100).collect(),
        counts: vec![5, 40, 200, 300, 200, 120, 80, 40, 10, 5],
        exact: true,
    }
}
