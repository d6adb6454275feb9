//! Devices of laboratories on the kernel: forwarders, planted devices, routers by XDP, work on
//! kernel threads, and links on which nothing else is.
//!
//! Needs the privilege to make network namespaces, and to load programs; says so and passes when it
//! is absent. No rate is judged: frames are counted.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::Duration;

use linerate_core::device::{
    FrameLoad, FramePace, FrameTemplate, ReceiveCounts, SendCounts, WhenLate,
};
use linerate_core::lab::LabPlan;
use linerate_engine::lab::Lab;
use linerate_sys::stop::Stop;
use linerate_sys::xdp::{
    Generator, GeneratorOptions, Sink, SinkExpected, SinkOptions, StreamExpected,
};
use linerate_sys::{bpf, clock, sched, userns};

/// No step of a test takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A quiet laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if let Err(error) = bpf::available() {
        println!("skipped: {error}");
        return None;
    }
    let text = format!("quiet = true\n{text}");
    Some(Lab::build_from_plan(&LabPlan::from_toml(&text, "test.toml").unwrap()).unwrap())
}

/// Two hosts with a node between them.
fn between(node: &str) -> String {
    format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"d\"] }}, {{ ends = [\"d\", \"b\"] }}]\n{node}"
    )
}

/// Sends datagrams from `a` to `b`, each only when the one before has come; how many came.
fn datagrams(lab: &Lab, count: u32) -> u32 {
    let target = lab.address_of("b").unwrap();
    let bind = |addr: IpAddr| UdpSocket::bind(SocketAddr::new(addr, 0)).unwrap();
    let server = lab.run_on("b", || bind(target)).unwrap();
    let client = lab.run_on("a", || bind([0, 0, 0, 0].into())).unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let one = |_: &u32| {
        client.send_to(&[7; 100], server.local_addr().unwrap()).unwrap();
        server.recv_from(&mut [0; 128]).is_ok()
    };
    u32::try_from((0..count).take_while(one).count()).unwrap()
}

#[test]
fn hosts_of_a_quiet_cable_know_each_other_for_good() {
    let Some(lab) =
        lab("host = [{ name = \"a\" }, { name = \"b\" }]\nlink = [{ ends = [\"a\", \"b\"] }]")
    else {
        return;
    };
    assert_eq!(datagrams(&lab, 10), 10);
    // Nobody has to ask for a hardware address: 0x6 is complete and permanent (linux/if_arp.h).
    let table = lab.run_on("a", || std::fs::read_to_string("/proc/thread-self/net/arp").unwrap());
    let table = table.unwrap();
    let line = table.lines().find(|line| line.starts_with("10.0.1.2 ")).unwrap();
    assert_eq!(line.split_whitespace().nth(2), Some("0x6"), "{table}");
    assert!(lab.build_notes().is_empty(), "{:?}", lab.build_notes());
}

#[test]
fn rules_as_a_list_and_as_a_set_let_packets_pass() {
    for shape in ["rules", "set"] {
        let router =
            format!("router = [{{ name = \"d\", filters = 1000, filter_shape = \"{shape}\" }}]");
        let Some(lab) = lab(&between(&router)) else { return };
        assert_eq!(datagrams(&lab, 10), 10, "{shape}");
        // The kernel forwards, and counts at its interfaces.
        let refused = lab.device_counters("d").unwrap_err().to_string();
        assert!(refused.contains("counts no frames of its own"), "{refused}");
        assert!(lab.counters("d", "eth1").unwrap().tx_packets >= 10);
    }
}

#[test]
fn routers_and_switches_work_on_threads_of_the_kernel() {
    let cpu = sched::allowed_cpus().last().copied().unwrap();
    for kind in ["router", "switch"] {
        let node = format!("{kind} = [{{ name = \"d\", placement = \"threaded\", cpu = {cpu} }}]");
        let Some(lab) = lab(&between(&node)) else { return };
        assert_eq!(datagrams(&lab, 10), 10, "{kind}");
    }
}

#[test]
fn a_processor_that_is_not_there_is_named() {
    let node = between("router = [{ name = \"d\", placement = \"threaded\", cpu = 1000 }]");
    if lab(&between("switch = [{ name = \"d\" }]")).is_none() {
        return;
    }
    let plan = LabPlan::from_toml(&node, "test.toml").unwrap();
    let line = Lab::build_from_plan(&plan).unwrap_err().to_string();
    assert!(line.starts_with("place device d: "), "{line}");
    assert!(line.contains("there is no CPU 1000") && !line.contains('\n'), "{line}");
}

#[test]
fn a_forwarder_counts_every_frame_of_both_directions() {
    let Some(lab) = lab(&between("device = [{ name = \"d\", kind = \"forwarder\" }]")) else {
        return;
    };
    assert_eq!(datagrams(&lab, 50), 50);
    let [there, back] = lab.device_counters("d").unwrap()[..] else { panic!("two directions") };
    // Announcements of multicast groups may be among them.
    assert!(there.frames_in >= 50, "{there:?}");
    assert_eq!((there.forwarded, there.lost_frames()), (there.frames_in, 0));
    assert_eq!(back.lost_frames(), 0);
}

#[test]
fn a_router_by_xdp_forwards_and_counts() {
    let Some(lab) = lab(&between("router = [{ name = \"d\", how = \"xdp\" }]")) else { return };
    assert_eq!(datagrams(&lab, 50), 50);
    let [counts] = lab.device_counters("d").unwrap()[..] else { panic!("one for all") };
    assert_eq!((counts.forwarded, counts.lost_frames()), (50, 0));
    assert_eq!(counts.frames_in, counts.forwarded + counts.passed);
}

/// Sends test frames of one trial from `a` to `b` in one flood, and counts those that come.
fn flooded(lab: &Lab, frames: u64) -> (SendCounts, ReceiveCounts) {
    const TRIAL: u32 = 5 << 16;
    let index = |host: &str| lab.link_facts(host, "eth0").unwrap().index;
    let [from, to] =
        ["a", "b"].map(|host| (index(host), lab.link_facts(host, "eth0").unwrap().mac));
    let mut bytes = to.1.unwrap().to_vec();
    bytes.extend(from.1.unwrap());
    bytes.extend([0x88, 0xb5]);
    bytes.resize(60, 0);
    let template = FrameTemplate {
        bytes,
        varying: Vec::new(),
        flows: 1,
        shuffled: false,
        header_sum: None,
        balance_at: None,
    };
    let streams = vec![StreamExpected { stream: 0, frames }];
    let expected =
        SinkExpected { trial: TRIAL, streams, own_streams: Vec::new(), shortest: 60, longest: 60 };
    let sink = lab.run_on("b", || {
        let mut sink = Sink::attach(to.0, SinkOptions::default()).unwrap();
        sink.begin_trial(&expected).unwrap();
        sink
    });
    let sink = sink.unwrap();
    lab.begin_devices(TRIAL);
    let load = FrameLoad {
        frames,
        pace: FramePace::Rate { frames_per_sec: 20_000 },
        when_late: WhenLate::KeepSchedule,
        burst: 1,
        mix: vec![0],
    };
    let send = || {
        let options = GeneratorOptions::new(from.0, 0, TRIAL, vec![template]);
        Generator::open(options).unwrap().run(&load, &Stop::new()).unwrap()
    };
    let sent = lab.run_on("a", send).unwrap();
    // A frame is through the programs when the call that sent it is back, or soon after.
    let end = clock::monotonic() + PATIENCE;
    let through = || {
        let there = lab.device_counters("d").unwrap()[0];
        there.frames_in == sent.frames && there.forwarded == sink.frames()
    };
    while !through() && clock::monotonic() < end {
        clock::sleep(Duration::from_millis(1));
    }
    let received = sink.read().streams.into_iter().find(|(stream, _)| *stream == 0);
    (sent, received.unwrap().1)
}

#[test]
fn a_planted_device_accounts_for_every_frame() {
    // Half of what is offered is more than it can carry, and some of the rest is lost by chance.
    let keys = [
        "frames_per_sec = 10000, buffer_frames = 16, loss_one_in = 50, seed = 3",
        "bits_per_sec = 10000000, stall = { every = \"100ms\", lasting = \"10ms\" }",
        "latency = \"100us\", cut_through = true, placement = \"threaded\"",
    ];
    for keys in keys {
        let device = format!("device = [{{ name = \"d\", kind = \"planted\", {keys} }}]");
        let Some(lab) = lab(&between(&device)) else { return };
        let (sent, received) = flooded(&lab, 20_000);
        let [there, back] = lab.device_counters("d").unwrap()[..] else { panic!("two ways") };
        assert_eq!(there.frames_in, sent.frames, "{keys}");
        assert_eq!(there.forwarded, received.frames, "{keys}");
        assert_eq!(there.frames_in, there.forwarded + there.lost_frames(), "{keys}");
        assert_eq!((back.frames_in, there.passed), (0, 0));
        // By chance: 400 are expected; none in 20,000 would be by a chance of 10^-175.
        assert_eq!(there.dropped_by_chance > 0, keys.contains("loss_one_in"), "{there:?}");
        if keys.contains("latency") {
            assert_eq!(there.lost_frames(), 0, "it has no capacity to exceed: {there:?}");
            assert!(received.latency.min_ns >= 100_000, "{:?}", received.latency);
        }
    }
}
