//! Ceilings of real tests: each direction's own shaper, a VLAN on top of a link, loopback. Rates
//! are held against a bound only, so a slow machine changes nothing.
//!
//! All but loopback need the privilege to make network namespaces, and the VLAN a kernel that has
//! them; they say so and pass when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::Command;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    Ceiling, Direction, Finish, Record, ServerPlan, TcpDirections, TcpPlan, TcpTest, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::netlink::{RouteSocket, Tbf};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

/// Both ends shape to this rate.
const CABLE: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], rate = "40 Mbit/s" }]
"#;

/// TCP payload of a packet of 1500 bytes over IPv4 with timestamps, and what a token bucket counts
/// of it: 1500 - 20 - 32, and 1500 + 14.
const PAYLOAD_SHARE: f64 = 1448.0 / 1514.0;

fn lab() -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let plan = LabPlan::from_toml(CABLE, "test.toml").expect("a plan");
    Some(Lab::build_from_plan(&plan).expect("the laboratory stands"))
}

fn both_ways() -> TcpPlan {
    TcpPlan {
        test: TcpTest {
            directions: TcpDirections::Both,
            finish: Finish::TimeNs(1_000_000_000),
            interval_ns: 200_000_000,
            congestion_control: Some("cubic".to_owned()),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    }
}

/// Serves at `address` on host `b` and measures from host `a`.
fn measure_in(lab: &Lab, address: IpAddr, plan: &TcpPlan) -> Record {
    let options = ServeOptions {
        local: SocketAddr::new(address, 0),
        limits: ServerLimits::default(),
        foreign: Foreign::without_ports(),
    };
    let server =
        lab.run_on("b", || MeasurementServer::bind(&options)).expect("runs").expect("binds");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let port = server.local_addr().expect("bound").port();
        lab.run_on("a", || run(address, port, plan)).expect("the host runs it")
    })
}

fn run(address: IpAddr, port: u16, plan: &TcpPlan) -> Record {
    let plan = TcpPlan { server: ServerPlan::new(None, address.to_string(), port), ..plan.clone() };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    let record = throughput::run_tcp(&plan, &mut context);
    assert_eq!(record.failure, None);
    record
}

/// Ends the server also when the test ends by a panic.
struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

/// The ceiling has this value; a second of cubic stays below it but for the bucket's burst.
#[track_caller]
fn check(ceiling: Option<&Ceiling>, bps: f64) {
    let ceiling = ceiling.expect("each direction has one");
    let value = ceiling.value.unwrap_or_default();
    assert!((value / bps - 1.0).abs() < 1e-6, "got {value}, want {bps}: {ceiling:?}");
    let share = ceiling.share.expect("something was measured");
    assert!(share > 0.0 && share < 1.1, "{share}");
    assert!(ceiling.unknown.is_empty(), "{:?}", ceiling.unknown);
}

#[test]
fn each_direction_is_held_against_the_shaper_of_its_sender() {
    let Some(lab) = lab() else { return };
    // The way back is made slower than the plan has it.
    let slow = Tbf { rate_bps: 16_000_000, burst_bytes: 20_000, limit_bytes: 200_000 };
    let index = lab.link_facts("b", "eth0").expect("its link").index;
    let set = move || RouteSocket::open()?.set_tbf(index, &slow);
    lab.run_on("b", set).expect("runs").expect("a token bucket");
    let target = lab.address_of("b").expect("it has an address");
    let record = measure_in(&lab, target, &both_ways());
    check(record.ceiling_of(Direction::Up), 40e6 * PAYLOAD_SHARE);
    check(record.ceiling_of(Direction::Down), 16e6 * PAYLOAD_SHARE);
    for direction in [Direction::Up, Direction::Down] {
        let ceiling = record.ceiling_of(direction).expect("checked above");
        let kinds: Vec<&str> = ceiling.rungs.iter().map(|rung| rung.kind.as_str()).collect();
        assert_eq!(kinds, ["receive_window"]);
        assert!(ceiling.rungs[0].value.is_some(), "{:?}", ceiling.rungs);
    }
}

#[test]
fn segments_below_the_mtu_lower_the_ceiling_and_are_told() {
    let Some(lab) = lab() else { return };
    let target = lab.address_of("b").expect("it has an address");
    let plan = TcpPlan {
        test: TcpTest { mss_bytes: Some(1000), directions: TcpDirections::Up, ..both_ways().test },
        ..both_ways()
    };
    let record = measure_in(&lab, target, &plan);
    // TCP_MAXSEG counts the timestamps in: 988 of payload, 1040 of IP, 1054 for the bucket.
    check(record.ceiling.as_ref(), 40e6 * 988.0 / 1054.0);
    let input =
        |name| record.ceiling.as_ref().and_then(|it| it.find_input(name)).map(|it| it.value);
    assert_eq!((input("packet_bytes"), input("mtu_bytes")), (Some(1040.0), Some(1500.0)));
    assert_eq!(record.ceiling_reverse, None);
}

#[test]
fn a_vlan_shows_its_tag_and_the_shaper_of_the_link_under_it() {
    let Some(lab) = lab() else { return };
    let configure = |host: &str, address: &'static str| {
        let commands = [
            "link add link eth0 name eth0.5 type vlan id 5".to_owned(),
            format!("address add {address}/24 dev eth0.5"),
            "link set eth0.5 up".to_owned(),
        ];
        let run = move || {
            commands.iter().all(|words| {
                let done = Command::new("ip").args(words.split(' ')).output();
                done.is_ok_and(|output| output.status.success())
            })
        };
        lab.run_on(host, run).expect("the host runs it")
    };
    if !(configure("a", "10.5.0.1") && configure("b", "10.5.0.2")) {
        println!("skipped: this kernel makes no VLAN interfaces");
        return;
    }
    let record = measure_in(&lab, IpAddr::V4(Ipv4Addr::new(10, 5, 0, 2)), &both_ways());
    let interface = record.ends[0].interface.as_ref().expect("its route has one");
    assert_eq!(interface.kind.as_deref(), Some("vlan"));
    assert_eq!((interface.vlan_tags, interface.lower.as_deref()), (Some(1), Some("eth0")));
    assert_eq!(interface.shaper_bps, Some(40_000_000));
    check(record.ceiling_of(Direction::Up), 40e6 * PAYLOAD_SHARE);
    let ceiling = record.ceiling_of(Direction::Up).expect("checked above");
    assert_eq!(ceiling.find_input("vlan_tags").map(|it| it.value), Some(1.0));
}

#[test]
fn loopback_has_no_link_and_no_share() {
    let address = IpAddr::V4(Ipv4Addr::LOCALHOST);
    let options = ServeOptions {
        local: SocketAddr::new(address, 0),
        limits: ServerLimits::default(),
        foreign: Foreign::without_ports(),
    };
    let server = MeasurementServer::bind(&options).expect("binds");
    let stop = Stop::new();
    let record = std::thread::scope(|scope| {
        scope.spawn(|| server.run(&stop, &|_| {}));
        let _ends = AskOnDrop(&stop);
        let port = server.local_addr().expect("bound").port();
        let finish = Finish::Bytes(1_000_000);
        run(address, port, &TcpPlan { test: TcpTest { finish, ..both_ways().test }, ..both_ways() })
    });
    for direction in [Direction::Up, Direction::Down] {
        let ceiling = record.ceiling_of(direction).expect("each direction has one");
        assert_eq!((ceiling.value, ceiling.share), (None, None));
        assert!(ceiling.no_link.as_ref().is_some_and(|why| why.contains("lo is loopback")));
    }
}
