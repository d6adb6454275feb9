//! UDP tests between the engine and the server over emulated paths, whose planted losses, copies
//! and delays are counted to the last datagram.
//!
//! Laboratories need the privilege to make network namespaces and /dev/net/tun; they say so and
//! pass when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::net::{IpAddr, SocketAddr};

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CaveatCode, DatagramTally, Direction, Finish, MetricId, Record, RecordStatus, ServerPlan, Stat,
    TcpDirections, Tool, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2));

/// Two hosts with a cable between them.
fn cable() -> Option<Lab> {
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let text = "host = [{ name = \"a\" }, { name = \"b\" }]\nlink = [{ ends = [\"a\", \"b\"] }]\n";
    let plan = LabPlan::from_toml(text, "test.toml").expect("a plan");
    Some(Lab::build_from_plan(&plan).expect("the laboratory stands"))
}

/// Two hosts with a path between them; small packets keep IPv6 and its own packets away.
fn lab(path: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    if std::fs::metadata("/dev/net/tun").is_err() {
        println!("skipped: there is no /dev/net/tun");
        return None;
    }
    let text = format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"b\"], mtu_bytes = 1000, path = {{ {path} }} }}]\n"
    );
    let plan = LabPlan::from_toml(&text, "test.toml").expect("a plan");
    Some(Lab::build_from_plan(&plan).expect("the laboratory stands"))
}

struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

fn run(plan: &UdpPlan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    throughput::run_udp(plan, &mut context)
}

/// Serves on host `b` and measures from host `a`.
fn measure_in(lab: &Lab, plan: &UdpPlan) -> Record {
    measure_at(lab, ADDRESS, plan)
}

fn measure_at(lab: &Lab, address: IpAddr, plan: &UdpPlan) -> Record {
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
        let plan =
            UdpPlan { server: ServerPlan::new(None, address.to_string(), port), ..plan.clone() };
        lab.run_on("a", move || run(&plan)).expect("the host runs it")
    })
}

/// 2000 datagrams of 500 bytes in 0.4 s: nothing else goes their way meanwhile, so the packets of a
/// direction with numbers from 100 to 1900 are all of the test's data.
fn plan(directions: TcpDirections) -> UdpPlan {
    UdpPlan {
        test: UdpTest {
            directions,
            finish: Finish::Buffers(2000),
            size_bytes: Some(500),
            pace: Some(BitRate::from_bits_per_sec(20_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    }
}

/// The tally of the only stream, whose end was a good one and whose account is closed.
fn tally(record: &Record) -> DatagramTally {
    assert_eq!(record.failure, None);
    assert_eq!(record.status, RecordStatus::Ok);
    let flow = &record.flows[0];
    let sender = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    let receiver = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
    let (sender, receiver) = (sender.expect("both report"), receiver.expect("both report"));
    assert_eq!(receiver.all.sent, Some(sender.count), "by the words of both ends");
    assert_eq!(sender.count, receiver.all.received + receiver.all.lost);
    assert_eq!(receiver.strays, 0);
    receiver.all
}

#[test]
fn planted_losses_are_counted_exactly_as_the_path_counts_them_in_both_directions() {
    let lose = "lose = [100, 101, 102, 500, 777, 1200, 1900]";
    let Some(lab) = lab(&format!("delay = \"2 ms\", {lose}")) else { return };
    // The list is of the path's life, so each direction sees it once.
    for (directions, way) in
        [(TcpDirections::Up, Direction::Up), (TcpDirections::Down, Direction::Down)]
    {
        let record = measure_in(&lab, &plan(directions));
        let tally = tally(&record);
        assert_eq!((tally.sent, tally.lost), (Some(2000), 7), "{way:?}");
        assert_eq!((tally.lost_here, tally.duplicates, tally.reordered), (0, 0, 0));
        let path = record.paths[0].carrying(way).expect("the direction that carries data");
        assert_eq!(path.lost_packets(), 7, "the path's own count");
        assert_eq!(
            record.summary_value(MetricId::DatagramsLost, Stat::Value, Some(way)),
            Some(7.0)
        );
    }
}

#[test]
fn planted_copies_are_duplicates_and_no_gain() {
    let Some(lab) = lab("delay = \"1 ms\", duplicate = \"100%\"") else { return };
    let record = measure_in(&lab, &plan(TcpDirections::Up));
    let tally = tally(&record);
    assert_eq!((tally.sent, tally.lost, tally.duplicates), (Some(2000), 0, 2000));
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    assert_eq!(path.copied_packets, path.taken_packets);
    let bytes = record.summary_value(MetricId::Bytes, Stat::Value, Some(Direction::Up));
    assert_eq!(bytes, Some(1_000_000.0), "2000 of 500 bytes, each once");
}

#[test]
fn planted_delays_reorder_and_lose_nothing() {
    let path = "delay = \"1 ms\", reorder = { share = \"5%\", extra = \"2 ms\" }";
    let Some(lab) = lab(path) else { return };
    let record = measure_in(&lab, &plan(TcpDirections::Up));
    let tally = tally(&record);
    assert_eq!((tally.lost, tally.duplicates), (0, 0));
    // 5 % of 2000 are 100 with a deviation of 10; each is overtaken by those of 2 ms behind it.
    // The last few may have nobody behind them. Five deviations either way.
    assert!((50..=150).contains(&tally.reordered), "{tally:?}");
    let delay = record.flows[0]
        .receiver
        .as_ref()
        .and_then(|end| end.received_datagrams.as_ref().and_then(|datagrams| datagrams.delay));
    let delay = delay.expect("2000 arrivals");
    assert_eq!(delay.n, 2000);
    // One in twenty is 2 ms above the smallest, so the 99th percentile is, and the median is not.
    assert!(delay.pdv_p99_ns >= Some(1_900_000), "{delay:?}");
    assert!(delay.pdv_p50_ns < Some(1_900_000), "{delay:?}");
}

#[test]
fn a_bottleneck_bounds_what_arrives_and_its_drops_are_the_paths() {
    let path = "rate = \"10 Mbit/s\", delay = \"1 ms\", buffer = \"20 packets\"";
    let Some(lab) = lab(path) else { return };
    let plan = UdpPlan {
        test: UdpTest {
            finish: Finish::TimeNs(1_000_000_000),
            size_bytes: Some(972),
            pace: Some(BitRate::from_bits_per_sec(20_000_000)),
            ..UdpTest::default()
        },
        ..UdpPlan::default()
    };
    let record = measure_in(&lab, &plan);
    let tally = tally(&record);
    let path = record.paths[0].carrying(Direction::Up).expect("it carries data");
    let queue = path.lost.iter().find(|loss| loss.cause == "queue_full").map(|it| it.packets);
    // The control connection may lose packets of its own at the full queue.
    let control = queue.expect("twice the rate overflows it") - tally.lost;
    assert!(control < 20, "{control} beside {}", tally.lost);
    assert_eq!(tally.lost_here, 0);
    // Ethernet takes 18 + 20 bytes more than the packet of 1000: 972 of 1038, 9.364 Mbit/s.
    let ceiling = record.ceiling.as_ref().expect("the path tells its rate");
    let value = ceiling.value.expect("and its framing");
    assert!((value - 10e6 * 972.0 / 1038.0).abs() < 1.0, "{value}");
    let goodput = record.summary_value(MetricId::Goodput, Stat::Value, Some(Direction::Up));
    assert!(goodput.is_some_and(|bps| bps <= value * 1.01), "{goodput:?}");
}

#[test]
fn datagrams_are_joined_as_long_as_each_fits_a_packet_and_travel_as_fragments_beyond() {
    let Some(lab) = cable() else { return };
    let v6: IpAddr = "fd00:0:0:1::2".parse().expect("an address");
    // 1500 less 20 + 8, and less 40 + 8.
    for (address, usual) in [(ADDRESS, 1472), (v6, 1452)] {
        let paced = UdpPlan {
            test: UdpTest {
                finish: Finish::Buffers(600),
                pace: Some(BitRate::from_bits_per_sec(400_000_000)),
                ..UdpTest::default()
            },
            ..UdpPlan::default()
        };
        let record = measure_at(&lab, address, &paced);
        let tally = tally(&record);
        assert_eq!((tally.sent, tally.lost), (Some(600), 0));
        let sent = |record: &Record| {
            let sender = record.flows[0].sender.as_ref().expect("it reports");
            sender.sent_datagrams.clone().expect("it sent")
        };
        assert_eq!(sent(&record).size_bytes, usual);
        // 400 Mbit/s for 340 µs are 17,000 bytes: 11 of either size.
        assert_eq!(sent(&record).joined_max, 11, "{address}");
        let longer =
            UdpPlan { test: UdpTest { size_bytes: Some(usual + 1), ..paced.test }, ..paced };
        let record = measure_at(&lab, address, &longer);
        assert_eq!(record.failure, None);
        assert_eq!(sent(&record).joined, 0, "{address}");
        let codes: Vec<CaveatCode> = record.caveats.iter().map(|caveat| caveat.code).collect();
        assert!(codes.contains(&CaveatCode::Fragmented), "{codes:?}");
    }
}
