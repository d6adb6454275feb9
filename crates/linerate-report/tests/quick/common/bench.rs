//! Hand-made records of device benchmarks: one with every test in it, a run that repeats what was
//! printed of a router of 1990, and a series of filters on a straight line.

use linerate_core::device::policer::compare;
use linerate_core::record::{
    BackToBack, BenchContract, BenchFrames, BenchGoal, BenchLatency, BenchPlan, BenchPort,
    BenchProtocol, BenchResult, BenchTest, BenchTimes, BenchTrial, BenchWay, BurstRun, Caching,
    Congestion, ContractFound, CounterKind, Distribution, GeneratorKind, GoalFound,
    InvalidTrialReason, LatencyKind, LatencyRepeats, LoadPoint, MetricId, Overload, OverloadKind,
    OverloadRecovery, Plan, PortCounts, PortFacts, RateFound, Record, Repeated, Reset, Soak,
    StudyCell, Tester, TrialPort, WorstSecond,
};
use linerate_core::study::{
    PublishedFigures, PublishedRouter, PublishedRows, PublishedTable, Streams, TableAbout,
};
use linerate_core::units::BitRate;

use super::bare_record;

const ROUTERS: &str = include_str!("../../../../../studies/data/bradner-1990-routers.csv");

const SECOND: u64 = 1_000_000_000;

/// What was printed in 1990.
pub fn published() -> Vec<PublishedRouter> {
    let about = TableAbout { id: "b", title: "", study: "bradner", year: 1990, source: "" };
    match PublishedTable::from_csv(about, ROUTERS).expect("the table fits its type").rows {
        PublishedRows::Routers(rows) => rows,
        other => panic!("no routers: {other:?}"),
    }
}

pub fn figures() -> PublishedFigures {
    PublishedFigures { routers: published(), ..PublishedFigures::default() }
}

pub fn plan(size_bytes: u32, filters: u32) -> BenchPlan {
    let port = |interface: &str, gateway: &str| BenchPort {
        interface: interface.to_owned(),
        gateway: Some(gateway.to_owned()),
        ..BenchPort::default()
    };
    BenchPlan {
        ports: vec![port("east", "198.18.0.1"), port("west", "198.19.0.1")],
        frames: BenchFrames { size_bytes, ..BenchFrames::default() },
        way: BenchWay::Single,
        tests: vec![BenchTest::Flood, BenchTest::Throughput],
        goals: vec![BenchGoal::strict(), BenchGoal::typical()],
        times: BenchTimes::default(),
        generator: None,
        counter: None,
        line: None,
        known: None,
        frames_per_sec_max: None,
        filters: Some(filters),
        contract: None,
        cell_contract: None,
        reset_command: None,
        seed: 1,
    }
}

pub fn goal(name: &str, lower: f64, upper: Option<f64>) -> GoalFound {
    GoalFound {
        goal: name.to_owned(),
        lower_fps: Some(lower),
        upper_fps: upper,
        conditional_fps: Some(lower),
        trials: 12,
        spent_ns: 45 * SECOND,
        tester_limited: false,
        loss_ratio_below: None,
        held_frames: None,
        scattered: None,
        unfinished: None,
    }
}

pub fn point(intended: Option<f64>, sent: u64, received: u64) -> LoadPoint {
    // Trials of one second.
    LoadPoint {
        intended_fps: intended,
        offered_fps: sent as f64,
        forwarded_fps: received as f64,
        loss_ratio: 1.0 - received as f64 / sent as f64,
        sent,
        received,
    }
}

pub fn tester(frames_per_sec: f64) -> Tester {
    Tester {
        generator: GeneratorKind::Live,
        counter: CounterKind::Xdp,
        frames_per_sec,
        over_own_cable: true,
        latency_p50_ns: Some(1504.0),
        rate_error: Some(1.2e-6),
        late_share: Some(0.0),
    }
}

pub fn record(index: usize, device: &str, plan: BenchPlan, result: BenchResult) -> Record {
    let mut record = bare_record(index, Plan::Bench(plan));
    record.duration_ns = 90 * SECOND;
    record.cell = Some(StudyCell {
        study: "bradner".to_owned(),
        run: "run-1".to_owned(),
        topology: device.to_owned(),
        test: "bench".to_owned(),
        parameter: 64,
        label: None,
        repetition: 1,
    });
    record.summary = result.summary();
    record.bench = Some(Box::new(result));
    record
}

/// Rows of one router of 1990 as if they had been measured now, over the medium of then.
pub fn as_printed(device: &str, protocol: &str, streams: Streams) -> Vec<Record> {
    let of = |row: &&PublishedRouter| {
        row.device == device
            && row.protocol == protocol
            && row.streams == streams
            && row.stream == 1
            && row.cards == linerate_core::study::Cards::Between
    };
    let rows = published();
    let records = rows.iter().filter(of).enumerate().map(|(index, row)| {
        let mut plan = plan(row.frame_bytes, row.filters);
        plan.line = Some(BitRate::from_bits_per_sec(10_000_000));
        plan.frames.protocol = match protocol {
            "decnet" => BenchProtocol::Decnet,
            _ => BenchProtocol::Udp4,
        };
        if streams == Streams::Dual {
            plan.way = BenchWay::Dual;
        }
        let ports = if streams == Streams::Dual { 2 } else { 1 };
        // Of two streams at once the flood alone was printed.
        let max = row.max_rate_fps.map(|fps| fps as f64);
        let goals = max.map(|max| vec![goal("strict", max, None), goal("typical", max, None)]);
        let flood = row.flood_rate_fps.expect("printed") * ports;
        let test = row.offered_max_fps.expect("printed");
        let result = BenchResult {
            tester: Some(tester(test as f64)),
            // Preamble and gap are 20 bytes.
            theoretical_fps: Some(10e6 / 8.0 / f64::from(row.frame_bytes + 20)),
            flood: Some(point(None, test * ports, flood)),
            goals: goals.unwrap_or_default(),
            ..BenchResult::default()
        };
        let name = match row.filters {
            0 => "AGS".to_owned(),
            filters => format!("AGS-{filters}"),
        };
        record(index, &name, plan, result)
    });
    records.collect()
}

/// A router whose frames take 2000 ns and 15 ns/filter; `off_ns` is added to the first of two
/// runs and taken from the second.
pub fn on_a_line(off_ns: f64) -> Vec<Record> {
    let mut records = Vec::new();
    for filters in [0_u32, 1, 10, 100, 1000] {
        for sign in [1.0, -1.0] {
            let ns = 2000.0 + 15.0 * f64::from(filters) + sign * off_ns;
            let fps = 1e9 / ns;
            let result = BenchResult {
                goals: vec![goal("typical", fps, Some(fps * 1.005))],
                ..BenchResult::default()
            };
            records.push(record(
                records.len(),
                &format!("router-{filters}"),
                plan(64, filters),
                result,
            ));
        }
    }
    records
}

fn repeated(ns: u64) -> Repeated {
    Repeated { median_ns: ns as f64, p1_ns: ns, p99_ns: ns }
}

fn latency(offered_fps: f64) -> BenchLatency {
    let pairs = [(2688_u64, 10_u64), (2880, 60), (3328, 20), (4224, 9), (39_936, 1)];
    BenchLatency {
        kind: LatencyKind::StoreAndForward,
        offered_fps,
        distribution: Distribution {
            metric: MetricId::FrameLatency,
            payload_bytes: None,
            values: pairs.iter().map(|pair| pair.0).collect(),
            counts: pairs.iter().map(|pair| pair.1).collect(),
            exact: false,
        },
        min_ns: 2688,
        mean_ns: 3400.0,
        p50_ns: 2880.0,
        p90_ns: 3328.0,
        p99_ns: 4224.0,
        p999_ns: 39_936.0,
        max_ns: 39_936,
        pdv_ns: 37_248.0,
        p50_range_ns: Some((2860.0, 2900.0)),
        repeated: Some(LatencyRepeats {
            repeats: 20,
            typical: repeated(2880),
            worst: repeated(39_900),
            pdv: repeated(37_200),
            is_complete: true,
        }),
        frames: 100,
    }
}

fn trial(at_s: u64, intended: f64, sent: u64, received: u64) -> BenchTrial {
    BenchTrial {
        test: BenchTest::Throughput,
        at_ns: at_s * SECOND,
        duration_ns: SECOND,
        intended_fps: Some(intended),
        ports: vec![TrialPort {
            sent,
            received,
            offered_fps: intended,
            duplicates: Some(0),
            latency_p50_ns: Some(2880),
            ..TrialPort::default()
        }],
        stolen_ns: Some(0),
        pause_frames: Some(0),
        invalid: None,
        why: Some("middle of the bounds".to_owned()),
    }
}

fn trials() -> Vec<BenchTrial> {
    let mut short = trial(3, 500_000.0, 480_000, 480_000);
    short.invalid = Some(InvalidTrialReason::GeneratorShort {
        detail: "480000 of 500000 frames left".to_owned(),
    });
    short.why = None;
    vec![
        trial(1, 1_000_000.0, 1_000_000, 900_000),
        trial(2, 500_000.0, 500_000, 500_000),
        short,
        trial(4, 750_000.0, 750_000, 750_000),
        trial(5, 875_000.0, 875_000, 874_999),
    ]
}

/// 256 frames at 4 M/s are 64 us; what 820 k/s take away of it leaves 79.5 %.
fn bursts() -> BackToBack {
    BackToBack {
        runs: [256, 250, 262].map(|frames| BurstRun { frames, trials: 9 }).to_vec(),
        mean_frames: 256.0,
        min_frames: 250,
        max_frames: 262,
        stddev_frames: 6.0,
        unbounded: false,
        burst_fps: 4_000_000.0,
        implied_buffer_ns: 64_000.0,
        corrected_buffer_ns: Some(50_880.0),
        buffer_frames: Some(203.5),
    }
}

/// A minute that lost 100 frames in three of its seconds.
fn soak() -> Soak {
    Soak {
        point: LoadPoint {
            offered_fps: 820e3,
            forwarded_fps: 819_998.3,
            ..point(Some(820e3), 49_200_000, 49_199_900)
        },
        duration_ns: 60 * SECOND,
        errored_seconds: 3,
        loss_runs: 4,
        longest_loss_run: 70,
        loss_ratio_high: Some(2.5e-6),
        loss_runs_per_sec: Some(RateFound { value: 0.067, low: 0.018, high: 0.171 }),
        worst: Some(WorstSecond { number: 7, loss_ratio: 8.5e-5 }),
        short_seconds: 0,
        invalid_seconds: 0,
    }
}

/// Two senders of 200,000 frames: half of the first's go to the free output.
fn congestion() -> Congestion {
    Congestion::from_counts(
        PortCounts { intended: 100_000, sent: 100_000, received: 100_000 },
        PortCounts { intended: 300_000, sent: 300_000, received: 200_000 },
        200_000,
    )
}

/// A policer with the rate that was ordered.
fn half_the_burst() -> ContractFound {
    let rate = RateFound { value: 10e6, low: 9.99e6, high: 10.01e6 };
    let burst = RateFound { value: 8000.0, low: 7936.0, high: 8064.0 };
    ContractFound {
        cir_bps: Some(rate),
        cbs_bytes: Some(burst),
        compared: vec![
            compare(10e6, rate, 0.01).with_parameter("cir", "bit/s"),
            compare(16_000.0, burst, 0.01).with_parameter("cbs", "bytes"),
        ],
        as_ordered: Some(false),
        findings: vec!["the burst is half of what was ordered".to_owned()],
        steps: vec![],
    }
}

/// Every test in one record: a software router that stalls, over links without a medium.
pub fn full() -> Record {
    let mut plan = plan(64, 10);
    plan.contract = Some(BenchContract {
        cir: BitRate::from_bits_per_sec(10_000_000),
        cbs_bytes: 16_000,
        eir: None,
        ebs_bytes: None,
    });
    let strict = GoalFound { loss_ratio_below: Some(3.3e-7), ..goal("strict", 150e3, Some(151e3)) };
    let result = BenchResult {
        tester: Some(tester(4_800_000.0)),
        flood: Some(point(None, 4_500_000, 700_000)),
        goals: vec![strict, goal("typical", 820e3, Some(824e3))],
        stalls_per_sec: Some(RateFound { value: 0.05, low: 0.02, high: 0.104 }),
        loss_curve: vec![
            point(Some(2e6), 2_000_000, 1_060_000),
            point(Some(1e6), 1_000_000, 900_000),
            point(Some(500e3), 500_000, 500_000),
        ],
        latency: vec![latency(820e3), latency(410e3)],
        back_to_back: Some(bursts()),
        recovery: Some(OverloadRecovery {
            overload_fps: 902e3,
            after_fps: 451e3,
            times_ns: vec![1_200_000, 900_000, 1_500_000],
            not_recovered_ns: vec![5_000_000],
            without_overload: 0,
        }),
        reset: Some(Reset {
            what: "link west".to_owned(),
            by_loss_ns: vec![12_000_000],
            by_stamps_ns: vec![12_100_000],
            outages: vec![1],
            partial: 0,
        }),
        caching: Some(Caching { addresses: 4096, unbounded: false, learning_fps: Some(10e3) }),
        overload: vec![point(Some(900e3), 900_000, 850_000)],
        overloaded: Some(Overload {
            best_fps: 800e3,
            largest_offered_fps: 900e3,
            at_largest_fps: 100e3,
            kept: 0.125,
            kind: OverloadKind::Collapses,
        }),
        blocking: Some(point(Some(100e3), 100_000, 100_000)),
        congestion: Some(congestion()),
        soak: Some(soak()),
        contract: Some(half_the_burst()),
        trials: trials(),
        ports: vec![PortFacts {
            interface: "east".to_owned(),
            driver: Some("veth".to_owned()),
            mtu_bytes: 1500,
            hardware_address: "02:00:00:00:00:01".to_owned(),
            notes: vec!["the device's NAPI thread is on CPU 1".to_owned()],
            ..PortFacts::default()
        }],
        ..BenchResult::default()
    };
    record(0, "router-10", plan, result)
}
