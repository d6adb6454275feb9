//! Paths that carry small packets and lose large ones without a word (RFC 2923 §2.1): a black hole
//! of the MTU towards the server or back from it, by a packet filter in a laboratory. What got
//! nothing through is no success, and a result that was measured survives.
//!
//! Needs the privilege to make network namespaces, and nft(8); says so and passes without.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::process::{Command, Stdio};
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    Direction, Fault, Finish, MetricId, Record, RecordStatus, ServerPlan, Stat, TcpDirections,
    TcpPlan, TcpTest, Tool, Via,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;
use linerate_sys::userns;

/// Packets as they are on the wire: a filter would otherwise see several segments as one packet.
const LAB: &str = "host = [{ name = \"a\" }, { name = \"b\" }]\n\
                   link = [{ ends = [\"a\", \"b\"], rate = \"100 Mbit/s\", offload = false }]\n";

/// What arrives with more than 1400 bytes of IP packet is gone.
const HOLE: &str = "table inet hole {\n chain input {\n type filter hook input priority 0\n\
                    meta length > 1400 drop\n }\n }\n";

/// Two hosts; what goes to `host` and is large is lost.
fn lab_with_hole_to(host: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let plan = LabPlan::from_toml(LAB, "test.toml").expect("a plan");
    let lab = Lab::build_from_plan(&plan).expect("the laboratory stands");
    let filter = lab.run_on(host, || {
        let mut nft = Command::new("nft").args(["-f", "-"]).stdin(Stdio::piped()).spawn()?;
        nft.stdin.take().expect("a pipe").write_all(HOLE.as_bytes())?;
        nft.wait()
    });
    match filter.expect("the host runs it") {
        Ok(status) => assert!(status.success(), "nft: {status}"),
        Err(error) => {
            println!("skipped: nft is not installed ({error})");
            return None;
        }
    }
    Some(lab)
}

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

/// Serves on `b` and measures from `a` for a second.
fn measure(lab: &Lab, directions: TcpDirections) -> (Record, Duration) {
    measure_via(lab, directions, None)
}

/// The same in the protocol of another program.
fn measure_via(lab: &Lab, directions: TcpDirections, via: Option<Via>) -> (Record, Duration) {
    let address: IpAddr = lab.address_of("b").expect("it has a link");
    // ttcp comes to the port of iperf 2.
    let dialect = if via == Some(Via::Ttcp) { Some(Via::Iperf2) } else { via };
    let options = ServeOptions {
        local: SocketAddr::new(address, 0),
        limits: ServerLimits::default(),
        foreign: dialect.map_or_else(Foreign::without_ports, |via| Foreign::These(vec![(via, 0)])),
    };
    let server =
        lab.run_on("b", || MeasurementServer::bind(&options)).expect("runs").expect("binds");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let own = server.local_addr().expect("bound").port();
        let plan = TcpPlan {
            server: ServerPlan::new(
                via,
                address.to_string(),
                server.foreign().next().map_or(own, |(_, port)| port),
            ),
            test: TcpTest {
                directions,
                finish: Finish::TimeNs(1_000_000_000),
                interval_ns: 200_000_000,
                congestion_control: Some("cubic".to_owned()),
                ..TcpTest::default()
            },
            ..TcpPlan::default()
        };
        let begin = monotonic();
        let run = || {
            let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
            let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
            throughput::run_tcp(&plan, &mut context)
        };
        let record = lab.run_on("a", run).expect("the host runs it");
        (record, monotonic().duration_since(begin))
    })
}

fn check_nothing_arrived(record: &Record, took: Duration) {
    let failure = record.failure.as_ref().expect("nothing arrived");
    assert_eq!(
        (failure.fault, record.status),
        (Fault::Unreachable, RecordStatus::Error),
        "{failure}"
    );
    assert_eq!(record.exit_code(), 3);
    assert!(failure.reason.contains("nothing arrived"), "{failure}");
    // A second of sending and five of patience, and what a busy machine adds; a kernel's own
    // patience is minutes (tcp(7): tcp_retries2).
    assert!(took < Duration::from_secs(40), "{took:?}");
}

#[test]
fn a_test_of_which_nothing_arrived_has_failed_and_says_so_within_seconds() {
    let Some(lab) = lab_with_hole_to("b") else { return };
    let (record, took) = measure(&lab, TcpDirections::Up);
    check_nothing_arrived(&record, took);
    let Some(lab) = lab_with_hole_to("a") else { return };
    let (record, took) = measure(&lab, TcpDirections::Down);
    check_nothing_arrived(&record, took);
}

#[test]
fn in_the_protocols_of_others_too_a_test_of_which_nothing_arrived_has_failed() {
    use TcpDirections::{Down, Up};
    // Of several at a time each may be late by the others.
    let check = |lab: &Lab, via, directions| {
        let (record, took) = measure_via(lab, directions, Some(via));
        let failure = record.failure.as_ref().expect("nothing arrived");
        let of = format!("{via} {directions:?}: {failure}");
        assert_eq!(
            (failure.fault, record.status),
            (Fault::Unreachable, RecordStatus::Error),
            "{of}"
        );
        assert!(failure.reason.contains("nothing arrived"), "{of}");
        // A second of sending, up to 15 s of waiting for what is on the way, and as much again.
        assert!(took < Duration::from_secs(40), "{of}: {took:?}");
    };
    let Some(lab) = lab_with_hole_to("b") else { return };
    std::thread::scope(|scope| {
        for via in [Via::Iperf2, Via::Iperf3, Via::Ttcp] {
            let (lab, check) = (&lab, &check);
            scope.spawn(move || check(lab, via, Up));
        }
    });
    let Some(lab) = lab_with_hole_to("a") else { return };
    check(&lab, Via::Iperf3, Down);
}

#[test]
fn the_receivers_figures_come_through_a_hole_on_the_way_back() {
    let Some(lab) = lab_with_hole_to("a") else { return };
    let (record, _) = measure(&lab, TcpDirections::Up);
    assert_eq!(record.failure, None);
    assert_eq!(record.status, RecordStatus::Ok);
    let received = record.summary_value(MetricId::Bytes, Stat::Value, Some(Direction::Up));
    // A hundredth of what 100 Mbit/s carry in a second.
    assert!(received.is_some_and(|bytes| bytes > 125_000.0), "{received:?}");
    let receiver = record.flows[0].receiver.as_ref().expect("it reports");
    assert!(receiver.tcp_info.is_some(), "the whole report, not a sample");
}

#[test]
fn both_ways_at_once_one_that_carried_nothing_makes_the_test_a_part() {
    let Some(lab) = lab_with_hole_to("a") else { return };
    let (record, _) = measure(&lab, TcpDirections::Both);
    let failure = record.failure.as_ref().expect("nothing came down");
    assert!(failure.to_string().starts_with("move data from"), "{failure}");
    assert_eq!((record.status, record.exit_code()), (RecordStatus::Partial, 3));
}
