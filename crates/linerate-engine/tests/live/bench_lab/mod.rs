//! Benchmarks between interfaces of a laboratory: what was sent is counted, and what goes wrong is
//! said.
//!
//! Needs the privilege to make network namespaces and, for frames in the kernel, to load programs
//! there; says so and passes when it is absent. No rate is held against anything: figures are
//! counts, and parameters of devices that were set before.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

mod policed;

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    BenchFrames, BenchGoal, BenchPlan, BenchPort, BenchProtocol, BenchResult, BenchTest,
    BenchTimes, BenchTrial, BenchWay, CaveatCode, CounterKind, Event, Fault, GeneratorKind,
    InvalidTrialReason, Record, RecordStatus, Tool, TrialPort,
};
use linerate_engine::context::Context;
use linerate_engine::device;
use linerate_engine::lab::Lab;
use linerate_sys::bpf::AttachMode;
use linerate_sys::netlink::RouteSocket;
use linerate_sys::raw_port::RawPort;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::Wire;
use linerate_sys::{bpf, clock, userns};

/// No wait takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(20);

const CABLE: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], offload = false }]
"#;

pub(crate) const SWITCH: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
switch = [{ name = "s" }]
link = [
  { ends = ["a", "s"], offload = false },
  { ends = ["b", "s"], offload = false },
  { ends = ["c", "s"], offload = false },
]
"#;

/// The host in the middle does not forward.
const BETWEEN: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
link = [{ ends = ["c", "a"], offload = false }, { ends = ["c", "b"], offload = false }]
"#;

const ROUTER: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r" }]
link = [{ ends = ["a", "r"], offload = false }, { ends = ["r", "b"], offload = false }]
"#;

/// A laboratory, or none where the host does not allow one.
pub(crate) fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    Some(Lab::build_from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap())
}

/// Whether programs may run in the kernel; says so when not.
fn may_run_in_kernel() -> bool {
    bpf::available().map_err(|error| println!("skipped: {error}")).is_ok()
}

pub(crate) fn ports(lab: &Lab, hosts: &[&str]) -> Vec<BenchPort> {
    let port = |host: &&str| BenchPort {
        interface: "eth0".to_owned(),
        host: Some((*host).to_owned()),
        address: lab.address_of(host).map(|it| it.to_string()),
        gateway: None,
    };
    hosts.iter().map(port).collect()
}

pub(crate) const MS: u64 = 1_000_000;

/// Short trials of few frames, so that a busy machine holds the rate too.
pub(crate) fn plan(ports: Vec<BenchPort>, tests: &[BenchTest]) -> BenchPlan {
    let goal = BenchGoal {
        final_trial_ns: 50 * MS,
        duration_sum_ns: 50 * MS,
        exceed_ratio: 0.0,
        width: 0.5,
        ..BenchGoal::strict()
    };
    BenchPlan {
        ports,
        frames: BenchFrames::default(),
        way: BenchWay::Single,
        tests: tests.to_vec(),
        goals: vec![goal],
        times: BenchTimes {
            trial_ns: 100 * MS,
            latency_ns: 100 * MS,
            soak_ns: 1000 * MS,
            after_ns: 1000 * MS,
            repetitions: 1,
            ..BenchTimes::default()
        },
        generator: None,
        counter: None,
        line: None,
        known: None,
        frames_per_sec_max: Some(2000),
        filters: None,
        contract: None,
        cell_contract: None,
        reset_command: None,
        seed: 1,
    }
}

fn measure(lab: &Lab, plan: &BenchPlan) -> Record {
    let mut watch = |event: &Event| {
        if let Event::BenchTrial(trial) = event {
            println!("{:?} {:?} {:?}", trial.why, trial.ports, trial.invalid);
        }
    };
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    device::run(plan, lab, &mut Context { tool, stop: Stop::new(), watch: &mut watch })
}

/// Measurements that a busy machine may spoil before the test fails.
const TRIES: u32 = 5;

/// What was found, by a record without failure. What the tester's machine spoilt is measured again
/// some times; every other failure is one of the test.
pub(crate) fn found(lab: &Lab, plan: &BenchPlan) -> BenchResult {
    for _ in 0..TRIES {
        let record = measure(lab, plan);
        match record.failure {
            Some(failure) if failure.fault == Fault::Instrument => println!("again: {failure}"),
            other => {
                assert_eq!((record.status, other), (RecordStatus::Ok, None));
                return *record.bench.unwrap();
            }
        }
    }
    panic!("this machine spoilt {TRIES} measurements one after the other");
}

fn sent_and_received(trial: &BenchTrial) -> (u64, u64) {
    let ports = trial.ports.iter();
    ports.fold((0, 0), |(sent, came), port| (sent + port.sent, came + port.received))
}

#[test]
fn every_frame_over_a_cable_is_counted_whatever_sends_and_counts() {
    if !may_run_in_kernel() {
        return;
    }
    for generator in [GeneratorKind::Live, GeneratorKind::Xdp, GeneratorKind::Packet] {
        for counter in [CounterKind::Xdp, CounterKind::Packet] {
            // A veth takes frames of a program only where another one is at its far end.
            if (generator, counter) == (GeneratorKind::Live, CounterKind::Packet) {
                continue;
            }
            let Some(lab) = lab(CABLE) else { return };
            let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Latency]);
            (plan.generator, plan.counter) = (Some(generator), Some(counter));
            let found = found(&lab, &plan);
            assert!(!found.trials.is_empty());
            for trial in &found.trials {
                let (sent, received) = sent_and_received(trial);
                assert_eq!(sent, received, "{generator:?} {counter:?}");
                assert_eq!(trial.ports[0].duplicates, Some(0), "{generator:?} {counter:?}");
            }
        }
    }
}

#[test]
fn both_ways_of_a_cable_at_once_are_counted_each() {
    let Some(lab) = lab(CABLE) else { return };
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Soak]);
    plan.way = BenchWay::Dual;
    let found = found(&lab, &plan);
    let trial = &found.trials[0];
    assert_eq!(trial.ports.len(), 2);
    assert!(trial.ports.iter().all(|port| port.sent > 0 && port.sent == port.received));
}

#[test]
fn every_port_of_a_mesh_sends_to_every_other() {
    let Some(lab) = lab(SWITCH) else { return };
    let mut plan = plan(ports(&lab, &["a", "b", "c"]), &[BenchTest::Soak]);
    plan.way = BenchWay::Mesh;
    let found = found(&lab, &plan);
    let trial = found.trials.last().unwrap();
    assert_eq!(trial.ports.len(), 3);
    assert!(trial.ports.iter().all(|port| port.sent > 0 && port.sent == port.received));
}

#[test]
fn frames_of_ipv6_go_through_a_router() {
    let Some(lab) = lab(ROUTER) else { return };
    let ports = lab.layout().bench_ports("a", "b", BenchProtocol::Udp6).unwrap();
    let mut plan = plan(ports, &[BenchTest::Soak]);
    plan.frames.protocol = BenchProtocol::Udp6;
    plan.frames.size_bytes = 84;
    let point = found(&lab, &plan).soak.unwrap().point;
    assert!(point.sent > 0 && point.sent == point.received, "{point:?}");
}

#[test]
fn a_switch_remembers_all_addresses_that_are_tried_and_its_third_port_is_silent() {
    let Some(lab) = lab(SWITCH) else { return };
    let mut plan = plan(ports(&lab, &["a", "b", "c"]), &[BenchTest::Addresses]);
    plan.frames.flows = 100;
    let caching = found(&lab, &plan).caching.unwrap();
    assert_eq!((caching.addresses, caching.unbounded), (100, true));
    // A busy machine may not hold the rate at which they are learnt.
    println!("learnt at {:?} frames/s", caching.learning_fps);
}

#[test]
fn a_free_output_of_a_switch_gets_half_of_the_first_ports_frames() {
    let Some(lab) = lab(SWITCH) else { return };
    let plan = plan(ports(&lab, &["a", "b", "c"]), &[BenchTest::Blocking]);
    let found = found(&lab, &plan);
    let free = found.blocking.unwrap();
    let trial = found.trials.last().unwrap();
    assert_eq!(free.sent, trial.ports[0].sent.div_ceil(2));
    assert_eq!(free.received, free.sent);
    assert!(trial.ports.iter().all(|port| port.sent == port.received), "{trial:?}");
    assert!(!found.congestion.unwrap().has_head_of_line_blocking);
}

#[test]
fn tests_of_three_ports_say_so_when_there_are_two() {
    for test in [BenchTest::Addresses, BenchTest::Blocking] {
        let Some(lab) = lab(CABLE) else { return };
        let failure = measure(&lab, &plan(ports(&lab, &["a", "b"]), &[test])).failure.unwrap();
        assert!(
            failure.to_string().contains("third port") || failure.to_string().contains("three")
        );
        assert!(!failure.to_string().contains('\n'));
    }
}

/// Ports of hosts with a router between them.
fn routed(lab: &Lab) -> Vec<BenchPort> {
    lab.layout().bench_ports("a", "b", BenchProtocol::Udp4).unwrap()
}

/// Runs a program on a host; whether it is there and said that all went well.
fn run_on(lab: &Lab, host: &str, program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments);
    match lab.run_on(host, || command.output()).unwrap() {
        Ok(output) if output.status.success() => true,
        Ok(output) => {
            println!("skipped: {program}: {}", String::from_utf8_lossy(&output.stderr));
            false
        }
        Err(error) => {
            println!("skipped: {program}: {error}");
            false
        }
    }
}

#[test]
fn a_router_forwards_and_its_lost_frames_are_its_own() {
    let Some(lab) = lab(ROUTER) else { return };
    let rules = "add table ip tenth; \
                 add chain ip tenth forward { type filter hook forward priority 0; }; \
                 add rule ip tenth forward ip protocol udp numgen inc mod 10 0 drop";
    if !run_on(&lab, "r", "nft", &[rules]) {
        return;
    }
    let soak = found(&lab, &plan(routed(&lab), &[BenchTest::Soak])).soak.unwrap();
    // Every tenth, to within the one at each end.
    let expected = soak.point.sent - soak.point.sent / 10;
    assert!(soak.point.received.abs_diff(expected) <= 1, "{soak:?}");
    assert_eq!(soak.longest_loss_run, 1);
}

#[test]
fn frames_that_come_back_to_their_port_are_a_loop_and_no_figure() {
    if !may_run_in_kernel() {
        return;
    }
    let Some(lab) = lab(BETWEEN) else { return };
    // The host in the middle sends back what comes from the first, out of the same interface.
    let looped = lab.run_on("c", || {
        let index = RouteSocket::open()?.link_by_name("eth0")?.index;
        Wire::attach(index, index, AttachMode::Native)
    });
    let _looped = looped.unwrap().unwrap();
    let plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Soak]);
    let record = measure(&lab, &plan);
    let found = record.bench.unwrap();
    let trial = found.trials.last().unwrap();
    assert!(matches!(trial.invalid, Some(InvalidTrialReason::Loop { .. })), "{:?}", trial.invalid);
    assert!(record.caveats.iter().any(|it| it.code == CaveatCode::TesterDisturbed));
}

/// PAUSE for the longest time, from a bridge's port (IEEE 802.3 annex 31B).
fn pause() -> Vec<u8> {
    let head = [0x01, 0x80, 0xc2, 0, 0, 1, 2, 0, 0, 0, 0, 9, 0x88, 8, 0, 1, 0xff, 0xff];
    [&head[..], &[0; 42]].concat()
}

#[test]
fn pause_frames_are_counted_and_make_a_caveat() {
    for counter in [CounterKind::Packet, CounterKind::Xdp] {
        if counter == CounterKind::Xdp && !may_run_in_kernel() {
            return;
        }
        let Some(lab) = lab(CABLE) else { return };
        let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Soak]);
        (plan.generator, plan.counter) = (Some(GeneratorKind::Packet), Some(counter));
        let (lab, ended) = (&lab, &AtomicBool::new(false));
        let record = thread::scope(|scope| {
            scope.spawn(move || {
                let began = clock::monotonic();
                let send = || RawPort::open("eth0")?.send_frame(&pause());
                let waits = || clock::monotonic().duration_since(began) < 3 * PATIENCE;
                while !ended.load(Ordering::Relaxed) && waits() {
                    lab.run_on("a", send).unwrap().unwrap();
                    clock::sleep(Duration::from_millis(5));
                }
            });
            let record = measure(lab, &plan);
            ended.store(true, Ordering::Relaxed);
            record
        });
        let found = record.bench.unwrap();
        let trial = found.trials.last().unwrap();
        assert!(trial.pause_frames > Some(0), "{counter:?} {trial:?}");
        let caveat = record.caveats.iter().find(|it| it.code == CaveatCode::FlowControl).unwrap();
        assert!(caveat.detail.ends_with("its throughput is that of flow control"), "{caveat}");
    }
}

#[test]
fn a_port_without_a_link_is_said_before_anything_is_sent() {
    let Some(lab) = lab(CABLE) else { return };
    lab.run_on("b", || {
        let mut links = RouteSocket::open().unwrap();
        let index = links.link_by_name("eth0").unwrap().index;
        links.set_down(index).unwrap();
    })
    .unwrap();
    let record = measure(&lab, &plan(ports(&lab, &["a", "b"]), &[BenchTest::Flood]));
    let failure = record.failure.unwrap();
    assert!(failure.to_string().contains("link is down"), "{failure}");
    assert!(record.bench.unwrap().trials.is_empty());
}

#[test]
fn frames_longer_than_the_mtu_are_refused_in_one_line() {
    let Some(lab) = lab(CABLE) else { return };
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Flood]);
    plan.frames.size_bytes = 9018;
    let failure = measure(&lab, &plan).failure.unwrap();
    assert!(failure.to_string().contains("need an MTU of 9000"), "{failure}");
}

#[test]
fn a_link_that_goes_down_midway_spoils_its_trial() {
    let Some(lab) = lab(SWITCH) else { return };
    // Long enough that the link goes down within the first trial on the ports.
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Flood]);
    plan.frames_per_sec_max = None;
    plan.times.trial_ns = 3000 * MS;
    let down = || {
        let mut links = RouteSocket::open().unwrap();
        let index = links.link_by_name("eth0").unwrap().index;
        links.set_down(index).unwrap();
    };
    let has_begun =
        |event: &Event| matches!(event, Event::BenchStep(text) if text.starts_with("flood"));
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let (lab, mut trials) = (&lab, Vec::new());
    let record = thread::scope(|scope| {
        let mut watch = |event: &Event| match event {
            Event::BenchTrial(trial) => trials.push(trial.clone()),
            event if has_begun(event) => {
                scope.spawn(move || {
                    let came = || lab.counters("b", "eth0").unwrap().rx_packets;
                    let (before, began) = (came(), clock::monotonic());
                    while came() < before + 1000
                        && clock::monotonic().duration_since(began) < PATIENCE
                    {
                        clock::sleep(Duration::from_millis(1));
                    }
                    lab.run_on("b", down).unwrap();
                });
            }
            _ => {}
        };
        device::run(&plan, lab, &mut Context { tool, stop: Stop::new(), watch: &mut watch })
    });
    // The second try finds the link still down, and says so.
    let failure = record.failure.unwrap().to_string();
    assert!(failure.contains("its link is down"), "{failure}");
    let spoilt = trials.last().unwrap().invalid.clone();
    assert!(matches!(spoilt, Some(InvalidTrialReason::LinkDown { .. })), "{spoilt:?}");
}

const JUMBO_BRIDGE: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
switch = [{ name = "s" }]
link = [
  { ends = ["a", "s"], offload = false, mtu_bytes = 9198 },
  { ends = ["b", "s"], offload = false, mtu_bytes = 9198 },
]
"#;

/// The ports take frames of 9216 bytes, and what is between them does not.
const NARROW: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r" }, { name = "t" }]
link = [
  { ends = ["a", "r"], offload = false, mtu_bytes = 9198 },
  { ends = ["r", "t"], offload = false },
  { ends = ["t", "b"], offload = false, mtu_bytes = 9198 },
]
"#;

/// Frames of these lengths through a bridge, all counted.
fn check_lengths(counter: CounterKind, sizes: &[u32]) {
    for &size_bytes in sizes {
        let Some(lab) = lab(JUMBO_BRIDGE) else { return };
        let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Latency]);
        plan.frames.size_bytes = size_bytes;
        plan.counter = Some(counter);
        let found = found(&lab, &plan);
        assert!(!found.trials.is_empty());
        for trial in &found.trials {
            let (sent, received) = sent_and_received(trial);
            assert!(sent == received || trial.invalid.is_some(), "{size_bytes}: {trial:?}");
            assert_eq!(trial.ports[0].duplicates, Some(0), "{size_bytes}");
        }
    }
}

#[test]
fn frames_of_3000_and_of_9216_bytes_are_counted_by_a_program() {
    if may_run_in_kernel() {
        check_lengths(CounterKind::Xdp, &[3000, 9216]);
    }
}

#[test]
fn frames_of_1518_and_of_9216_bytes_are_counted_by_a_packet_socket() {
    check_lengths(CounterKind::Packet, &[1518, 9216]);
}

#[test]
fn lengths_of_a_mix_are_held_against_the_mtu_too() {
    let Some(lab) = lab(CABLE) else { return };
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Flood]);
    plan.frames.mix = Some("64:7,9216:1".to_owned());
    let failure = measure(&lab, &plan).failure.unwrap().to_string();
    assert!(failure.contains("frames of 9216 bytes need an MTU of 9198"), "{failure}");
}

#[test]
fn frames_that_are_too_long_for_a_link_behind_the_device_are_told_before_any_trial() {
    let Some(lab) = lab(NARROW) else { return };
    let mut plan = plan(routed(&lab), &[BenchTest::Flood]);
    plan.frames.size_bytes = 9216;
    let record = measure(&lab, &plan);
    let failure = record.failure.unwrap().to_string();
    assert!(failure.starts_with("find frames of 9216 bytes again at eth0 of a, eth0 of b: none "));
    assert!(failure.contains("MTU") && !failure.contains('\n'), "{failure}");
    assert!(record.bench.unwrap().trials.is_empty());
    // What fits goes through.
    plan.frames.size_bytes = 1518;
    let flood = found(&lab, &plan).flood.unwrap();
    assert!(flood.received > 0, "{flood:?}");
}

const OVERLOADED: &str = r#"
quiet = true
host = [{ name = "a" }, { name = "b" }]
device = [{ name = "d", kind = "planted", frames_per_sec = 100000, buffer_frames = 64 }]
link = [{ ends = ["a", "d"], offload = false }, { ends = ["d", "b"], offload = false }]
"#;

#[test]
fn what_a_device_lost_in_a_flood_is_what_the_device_says_to_the_frame() {
    if !may_run_in_kernel() {
        return;
    }
    let Some(lab) = lab(OVERLOADED) else { return };
    let mut plan = plan(ports(&lab, &["a", "b"]), &[BenchTest::Flood]);
    plan.generator = Some(GeneratorKind::Live);
    plan.counter = Some(CounterKind::Xdp);
    plan.times.trial_ns = 500 * MS;
    let found = found(&lab, &plan);
    let [there, _] = lab.device_counters("d").unwrap()[..] else { panic!("two directions") };
    // Frames that one of the device's rings had no room for are its losses too.
    let way_out = lab.counters("d", "eth1").unwrap().tx_dropped;
    let all = |of: fn(&TrialPort) -> u64| found.trials.iter().map(|it| of(&it.ports[0])).sum();
    let [sent, refused, received, lost]: [u64; 4] = [
        all(|it| it.sent),
        all(|it| it.refused),
        all(|it| it.received),
        all(TrialPort::lost_frames),
    ];
    println!("{sent} sent, {received} received, {refused} refused, {way_out} at the way out");
    println!("{there:?}");
    assert_eq!(there.frames_in, sent - refused);
    assert_eq!(there.forwarded, received + way_out);
    assert_eq!(lost, refused + there.lost_frames() + way_out);
    assert_eq!(all(|it| it.duplicates.unwrap_or(1)), 0);
}
