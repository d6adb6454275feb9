//! Records of pings, of a test with probes beside it and of a trace, with every part that a plot
//! draws.

use linerate_core::record::{
    Direction, Distribution, Hop, HopNode, HopSample, MeasurementEnd, MetricId, PingMode, PingPlan,
    PingTransport, Plan, ProbePhase, ProbeSpan, Probes, Record, RecordId, RecordedInterface,
    Series, Stat, Summary, TcpPlan, Tool, TracePhase, TracePlan, TraceResult,
};
use linerate_core::time::WallTime;

const MS: u64 = 1_000_000;

fn begin(plan: Plan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let (id, at) = (RecordId::from_parts(0, [0; 10]), WallTime::from_unix_nanos(0));
    let mut record = Record::from_plan(id, tool, plan, at);
    let interface = RecordedInterface { mtu_bytes: Some(1500), ..RecordedInterface::default() };
    let (address, interface) = (Some("10.0.0.1".to_owned()), Some(interface));
    record.ends = vec![MeasurementEnd { address, interface, ..MeasurementEnd::default() }];
    record
}

/// 200 bytes of round trips, the parts of a split and a distribution.
fn measured(record: &mut Record, size: u32, ns: f64) {
    let row = |metric, stat, value| Summary::from_value(metric, stat, value).at_payload(size);
    record.summary.extend([
        row(MetricId::Sent, Stat::Value, 1000.0),
        row(MetricId::Received, Stat::Value, 990.0),
        row(MetricId::Rtt, Stat::Min, ns),
        row(MetricId::Rtt, Stat::P50, 1.2 * ns),
        row(MetricId::Rtt, Stat::Mean, 1.3 * ns),
        row(MetricId::RttSend, Stat::Mean, 0.3 * ns),
        row(MetricId::RttQueue, Stat::Mean, 0.1 * ns),
        row(MetricId::RttKernel, Stat::Mean, 0.5 * ns),
        row(MetricId::RttWake, Stat::Mean, 0.4 * ns),
    ]);
    let values: Vec<u64> = (0..100).map(|n| ns as u64 + n * n * 50).collect();
    record.distributions.push(Distribution {
        metric: MetricId::Rtt,
        payload_bytes: Some(size),
        counts: vec![1; values.len()],
        values,
        exact: true,
    });
}

/// 1000 probes in 10 s, each hundredth lost, some slow.
pub fn paced() -> Record {
    let plan = PingPlan { host: "10.0.0.2".to_owned(), ..PingPlan::default() };
    let mut record = begin(Plan::Ping(plan));
    measured(&mut record, 56, 2e6);
    let of = |n: u64| (n % 100 != 50).then_some((2 * MS + n * 7919 % MS + n / 500 * 9 * MS) as f64);
    record.series = vec![Series {
        metric: MetricId::Rtt,
        direction: None,
        flow: None,
        side: None,
        payload_bytes: Some(56),
        t_ns: (0..1000).map(|n| n * 10 * MS).collect(),
        values: (0..1000).map(of).collect(),
    }];
    record
}

/// A flood of eight sizes, two of which travel in fragments.
pub fn by_size() -> Record {
    let sizes = [56, 250, 500, 1024, 1460, 1472, 1500, 2000];
    let plan = PingPlan {
        host: "10.0.0.2".to_owned(),
        sizes_bytes: sizes.to_vec(),
        mode: PingMode::Flood,
        ..PingPlan::default()
    };
    let mut record = begin(Plan::Ping(plan));
    for size in sizes {
        let fragments = if size > 1472 { 5e3 } else { 0.0 };
        measured(&mut record, size, 8e3 + 0.14 * f64::from(size) + fragments);
    }
    record
}

/// 4 s of load after 1 s without, probes of two kinds, two of them lost.
pub fn under_load() -> Record {
    let mut record = begin(Plan::Tcp(TcpPlan::default()));
    let at = |n: u64| n as i64 * 20 * MS as i64 - 1_000_000_000;
    let idle = ProbeSpan { phase: ProbePhase::Idle, from_ns: -1_000_000_000, to_ns: 0 };
    let loaded = ProbeSpan { phase: ProbePhase::Up, from_ns: 0, to_ns: 4_000_000_000 };
    let probes = |dscp, slow: u64| Probes {
        dscp: Some(dscp),
        phases: vec![idle, loaded],
        sent_ns: (0..250).map(at).collect(),
        rtt_ns: (0..250)
            .map(|n| (n != 100).then_some(if n < 50 { MS } else { slow * MS }))
            .collect(),
        ..Probes::new(PingTransport::Udp, "10.0.0.2:5210".to_owned(), 44)
    };
    record.probes = Some(Box::new(probes(0, 80)));
    record.probes_beside = vec![probes(46, 9)];
    record.summary = vec![
        Summary::from_value(MetricId::DelayIdle, Stat::P50, 1e6),
        Summary::from_value(MetricId::DelayLoaded, Stat::P50, 8e7),
    ];
    record.series = vec![Series {
        metric: MetricId::Goodput,
        direction: Some(Direction::Up),
        flow: Some(0),
        side: None,
        payload_bytes: None,
        t_ns: (1..=4).map(|s| s * 1000 * MS).collect(),
        values: [9.5e7, 9.4e7, 0.0, 9.5e7].map(Some).to_vec(),
    }];
    record
}

/// A path of so many hops.
pub fn traced(hops: u8) -> Record {
    let mut record = begin(Plan::Trace(TracePlan::default()));
    let hop = |ttl: u8| Hop {
        ttl,
        nodes: vec![HopNode { address: format!("10.0.{ttl}.1"), flows: vec![0], labels: vec![] }],
        samples: vec![HopSample {
            rtt_ns: Some(MS * u64::from(ttl)),
            phase: TracePhase::Idle,
            ..HopSample::default()
        }],
        ..Hop::default()
    };
    let hops = (1..=hops).map(hop).collect();
    record.trace = Some(Box::new(TraceResult { reached: true, hops, ..TraceResult::default() }));
    record
}
