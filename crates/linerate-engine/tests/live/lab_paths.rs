//! Laboratories whose links are emulated paths: delay and rate are there, counters are told to
//! measurements, nothing is left.
//!
//! Needs the privilege to make network namespaces and /dev/net/tun; says so and passes when they
//! are absent. Bounds are wide: other tests run at the same time.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::process::Command;
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CaveatCode, Direction, EmulatedPath, MetricId, PingPlan, PingTransport, Record, RecordStatus,
    Stat, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::rtt;
use linerate_sys::netlink::{RouteSocket, Tbf};
use linerate_sys::netns::Netns;
use linerate_sys::stop::Stop;
use linerate_sys::{clock, userns};

const PATIENCE: Duration = Duration::from_secs(10);

/// A laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if std::fs::metadata("/dev/net/tun").is_err() {
        println!("skipped: there is no /dev/net/tun");
        return None;
    }
    Some(Lab::build_from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap())
}

fn ping(lab: &Lab, from: &str, to: IpAddr, count: u64) -> Record {
    let plan = PingPlan {
        host: to.to_string(),
        transport: PingTransport::Icmp,
        count: Some(count),
        interval_ns: 5_000_000,
        warmup: 0,
        ..PingPlan::default()
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let run = move || {
        let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
        rtt::run(&plan, &mut context)
    };
    lab.run_on(from, run).unwrap()
}

fn rtt_ms(record: &Record) -> f64 {
    record.summary_value(MetricId::Rtt, Stat::Min, None).unwrap() / 1e6
}

const WAN: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], path = { rate = "100 Mbit/s", delay = "20 ms" } }]
"#;

#[test]
fn a_ping_over_a_path_takes_its_delay_and_keeps_its_counters() {
    let Some(lab) = lab(WAN) else { return };
    for to in ["10.0.1.2", "fd00:0:0:1::2"] {
        let record = ping(&lab, "a", to.parse().unwrap(), 20);
        // 20 ms each way and some 10 us for a packet at 100 Mbit/s; a busy host adds to it.
        let rtt = rtt_ms(&record);
        assert!((40.0..42.0).contains(&rtt), "{rtt} ms");
        assert_eq!(record.paths.len(), 1);
        let path = &record.paths[0];
        assert_eq!((path.name.as_str(), path.datapath.as_str()), ("a eth0 - b eth0", "tun"));
        assert_eq!(path.plan.delay.as_deref(), Some("20 ms"));
        let up = path.carrying(Direction::Up).unwrap();
        assert!(!up.backward && (20..25).contains(&up.delivered_packets), "{up:?}");
        assert_eq!(up.taken_packets, up.delivered_packets + up.lost_packets());
        assert!(up.lateness_p99_ns.is_some());
        assert!(!up.queue.bytes.is_empty());
    }
    let back = ping(&lab, "b", [10, 0, 1, 1].into(), 3);
    assert!(back.paths[0].carrying(Direction::Up).unwrap().backward);
}

#[test]
fn listed_losses_are_lost_and_counted_and_told() {
    let text = WAN.replace("delay = \"20 ms\"", "delay = \"1 ms\", forward = { lose = [3, 5] }");
    // Only the test's own packets are numbered: IPv6 sends some by itself.
    let text = text.replace("path =", "mtu_bytes = 1000, path =");
    let Some(lab) = lab(&text) else { return };
    let record = ping(&lab, "a", [10, 0, 1, 2].into(), 10);
    assert_eq!(record.summary_value(MetricId::Received, Stat::Value, None), Some(8.0));
    let up = record.paths[0].carrying(Direction::Up).unwrap();
    assert_eq!((up.taken_packets, up.delivered_packets, up.lost_packets()), (10, 8, 2));
    assert_eq!((up.lost[0].cause.as_str(), up.lost[0].packets), ("random", 2));
}

#[test]
fn paths_stand_between_routers_and_beside_switches_and_only_those_on_the_way_are_told() {
    let text = r#"
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
switch = [{ name = "s" }]
router = [{ name = "r" }]
[[link]]
ends = ["a", "s"]
path = { delay = "3 ms", rate = "100 Mbit/s" }
[[link]]
ends = ["s", "r"]
[[link]]
ends = ["r", "b"]
path = { delay = "4 ms", rate = "10 Mbit/s" }
[[link]]
ends = ["c", "s"]
path = { delay = "9 ms", rate = "10 Mbit/s" }
"#;
    let Some(lab) = lab(text) else { return };
    let to = lab.address_of("b").unwrap();
    let record = ping(&lab, "a", to, 5);
    assert_eq!(record.status, RecordStatus::Ok, "{:?}", record.failure);
    let rtt = rtt_ms(&record);
    assert!((14.0..17.0).contains(&rtt), "{rtt} ms");
    let names: Vec<&str> = record.paths.iter().map(|path| path.name.as_str()).collect();
    assert_eq!(names, ["a eth0 - s eth0", "r eth1 - b eth0"]);
    let datapaths: Vec<&str> = record.paths.iter().map(|path| path.datapath.as_str()).collect();
    assert_eq!(datapaths, ["tap", "tun"]);
}

/// From before the first of 200 datagrams is sent until the last has been read.
fn span_of_a_train_ms(sender: &UdpSocket, receiver: &UdpSocket, to: SocketAddr) -> f64 {
    let start = clock::monotonic();
    for _ in 0..200 {
        sender.send_to(&[0; 1472], to).unwrap();
    }
    let mut buffer = [0; 2048];
    for _ in 0..200 {
        receiver.recv(&mut buffer).unwrap();
    }
    clock::monotonic().duration_since(start).as_secs_f64() * 1e3
}

#[test]
fn packets_pass_at_the_rate_of_the_link_and_wait_in_its_queue() {
    let text = WAN.replace("100 Mbit/s\", delay = \"20 ms\"", "10 Mbit/s\", buffer = \"1 MB\"");
    let Some(lab) = lab(&text) else { return };
    let receiver = lab.run_on("b", || UdpSocket::bind("10.0.1.2:0").unwrap()).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let to: SocketAddr = receiver.local_addr().unwrap();
    let sender = lab.run_on("a", || UdpSocket::bind("10.0.1.1:0").unwrap()).unwrap();
    let spans: Vec<f64> = (0..5).map(|_| span_of_a_train_ms(&sender, &receiver, to)).collect();
    // 200 frames of 1538 bytes on the wire at 10 Mbit/s: 246.08 ms from the first word to the
    // last. A late thread can only lengthen a train, so none may be shorter and one must fit.
    let shortest = spans.iter().copied().fold(f64::INFINITY, f64::min);
    assert!((246.0..275.0).contains(&shortest), "{spans:?} ms");
}

#[test]
fn a_path_that_needs_more_memory_than_is_allowed_is_refused_before_it_is_built() {
    let text = WAN.replace("100 Mbit/s\", delay = \"20 ms\"", "100 Gbit/s\", delay = \"10 s\"");
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let plan = LabPlan::from_toml(&text, "test.toml").unwrap();
    let line = Lab::build_from_plan(&plan).unwrap_err().to_string();
    assert!(line.contains("of memory") && line.contains("are allowed"), "{line}");
    assert!(!line.contains('\n'));
}

#[test]
fn a_device_deleted_under_a_measurement_makes_its_record_say_so() {
    let Some(lab) = lab(WAN) else { return };
    let record = std::thread::scope(|scope| {
        let pinging = scope.spawn(|| ping(&lab, "a", [10, 0, 1, 2].into(), 60));
        clock::sleep(Duration::from_millis(100));
        let delete = || Command::new("ip").args(["link", "delete", "eth0"]).status();
        let deleted = lab.run_on("b", delete).unwrap();
        let record = pinging.join().unwrap();
        deleted.is_ok_and(|status| status.success()).then_some(record)
    });
    let Some(record) = record else {
        println!("skipped: ip(8) is needed to delete a link");
        return;
    };
    let path = &record.paths[0];
    assert!(path.late && path.faults.iter().any(|fault| fault == "the emulator ended"), "{path:?}");
    let caveat = record.caveats.iter().find(|caveat| caveat.code == CaveatCode::EmulatorLate);
    assert!(caveat.unwrap().detail.contains("the emulator ended"), "{caveat:?}");
}

#[test]
fn a_path_for_netem_goes_over_netem_or_nothing_is_built_with_one_line() {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let text = WAN.replace("path = {", "path = { emulator = \"netem\",");
    let lab = match Lab::build_from_plan(&LabPlan::from_toml(&text, "test.toml").unwrap()) {
        Ok(lab) => lab,
        Err(failure) => {
            let line = "emulate with netem a eth0 - b eth0: this kernel has no netem; load \
                        sch_netem (CONFIG_NET_SCH_NETEM), or omit `emulator`";
            assert_eq!((failure.to_string().as_str(), failure.exit_code()), (line, 2));
            println!("skipped: netem itself, which this kernel lacks; its refusal is tested");
            return;
        }
    };
    let record = ping(&lab, "a", [10, 0, 1, 2].into(), 20);
    assert!((40.0..42.0).contains(&rtt_ms(&record)));
    let path = &record.paths[0];
    assert_eq!((path.datapath.as_str(), path.late), ("netem", false));
    assert!(path.carrying(Direction::Up).unwrap().delivered_packets >= 20);
}

#[test]
fn a_plan_that_netem_cannot_follow_is_refused_at_its_key() {
    let text = WAN.replace("path = {", "path = { emulator = \"netem\", queue = \"codel\",");
    let line = LabPlan::from_toml(&text, "test.toml").unwrap_err().to_string();
    assert!(line.contains("queue: netem does not know it"), "{line}");
}

#[test]
fn a_discipline_tells_what_left_it_and_what_it_dropped() {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let netns = Netns::new().unwrap();
    let counters = std::thread::scope(|scope| {
        let inside = || {
            netns.enter().unwrap();
            let mut socket = RouteSocket::open().unwrap();
            socket.set_up(1).unwrap();
            // 1 kbit/s: the burst lets one of 1000 bytes pass, two wait, the others are dropped.
            let tbf = Tbf { rate_bps: 8000, burst_bytes: 1100, limit_bytes: 2100 };
            socket.set_tbf(1, &tbf).unwrap();
            let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
            for _ in 0..10 {
                // A full queue is an error to some kernels.
                let _ = udp.send_to(&[0; 958], udp.local_addr().unwrap());
            }
            socket.root_counters(1).unwrap().unwrap()
        };
        scope.spawn(inside).join().unwrap()
    });
    // 958 + 8 + 20 + 14 = 1000 bytes each.
    assert_eq!((counters.packets, counters.bytes), (1, 1000));
    assert_eq!((counters.queued_packets, counters.queued_bytes, counters.drops), (2, 2000, 7));
}

#[test]
fn a_measurement_that_goes_over_no_path_is_told_of_none() {
    let text =
        WAN.replace("link = [", "router = [{ name = \"r\" }]\nlink = [{ ends = [\"a\", \"r\"] }, ");
    let Some(lab) = lab(&text) else { return };
    let record = ping(&lab, "a", [10, 0, 1, 2].into(), 2);
    assert_eq!(record.paths, [] as [EmulatedPath; 0]);
}
