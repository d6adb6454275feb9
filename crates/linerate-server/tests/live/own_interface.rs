//! UDP tests between the engine and the server over links with a rate, the sender's own queue
//! before them: what it takes, what it drops, and where that is counted. The expected counts are
//! those of the kernel's queueing discipline, read beside the test.
//!
//! Laboratories need the privilege to make network namespaces; they say so and pass when it is
//! absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::net::{IpAddr, SocketAddr};

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    CaveatCode, DatagramTally, Direction, Finish, MetricId, Record, RecordStatus, SentDatagrams,
    ServerPlan, Stat, TcpDirections, Tool, UdpPlan, UdpTest,
};
use linerate_core::units::BitRate;
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::netlink::{EgressDrops, egress_drops_to};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

const SERVER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2));
const CLIENT: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 1));

/// Two hosts and a link of 100 Mbit/s between them: a token bucket at each end, with a queue of
/// 625,000 bytes (50 ms).
fn lab() -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    let text = "host = [{ name = \"a\" }, { name = \"b\" }]\n\
                link = [{ ends = [\"a\", \"b\"], rate = \"100M\" }]\n";
    let plan = LabPlan::from_toml(text, "test.toml").expect("a plan");
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

/// What the interface of the sender's host dropped so far.
fn drops(lab: &Lab, directions: TcpDirections) -> EgressDrops {
    let (host, peer) = match directions {
        TcpDirections::Down => ("b", CLIENT),
        _ => ("a", SERVER),
    };
    lab.run_on(host, move || egress_drops_to(peer)).expect("runs").expect("a route")
}

/// Serves on host `b` and measures from host `a`; also gives what the sender's interface dropped
/// meanwhile.
fn measure(plan: &UdpPlan) -> Option<(Record, u64)> {
    let lab = lab()?;
    let options = ServeOptions {
        local: SocketAddr::new(SERVER, 0),
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
            UdpPlan { server: ServerPlan::new(None, SERVER.to_string(), port), ..plan.clone() };
        let before = drops(&lab, plan.test.directions);
        let record = lab.run_on("a", || run(&plan)).expect("the host runs it");
        let dropped = drops(&lab, plan.test.directions).drops_since(&before);
        assert_eq!((record.status, &record.failure), (RecordStatus::Ok, &None));
        Some((record, dropped))
    })
}

fn plan(directions: TcpDirections) -> UdpPlan {
    let finish = Finish::TimeNs(1_000_000_000);
    UdpPlan {
        test: UdpTest { directions, finish, size_bytes: Some(1472), ..UdpTest::default() },
        ..UdpPlan::default()
    }
}

fn ends(record: &Record) -> (&SentDatagrams, DatagramTally) {
    let flow = &record.flows[0];
    let sent = flow.sender.as_ref().and_then(|end| end.sent_datagrams.as_ref());
    let received = flow.receiver.as_ref().and_then(|end| end.received_datagrams.as_ref());
    (sent.expect("both report"), received.expect("both report").measured)
}

fn told(record: &Record, metric: MetricId, directions: TcpDirections) -> Option<f64> {
    let way = match directions {
        TcpDirections::Down => Direction::Down,
        _ => Direction::Up,
    };
    record.summary_value(metric, Stat::Value, Some(way))
}

/// Below the link's rate less headers, whatever the host's other work takes of a second; half of
/// it at least.
fn is_the_links_rate(record: &Record, directions: TcpDirections) {
    let goodput = told(record, MetricId::Goodput, directions).expect("a rate");
    // 1472 of 1514 bytes. The bucket lends 4 ms beyond the rate, and a host that is busy may notice
    // the first arrival some milliseconds late.
    let ceiling = 100e6 * 1472.0 / 1514.0;
    assert!(goodput > ceiling / 2.0 && goodput < ceiling * 1.01, "{goodput} bit/s");
}

#[test]
fn as_fast_as_possible_and_above_the_links_rate_the_sender_waits_for_its_queue() {
    for directions in [TcpDirections::Up, TcpDirections::Down] {
        for pace in [None, Some(BitRate::from_bits_per_sec(400_000_000))] {
            let plan =
                UdpPlan { test: UdpTest { pace, ..plan(directions).test }, ..plan(directions) };
            let Some((record, dropped)) = measure(&plan) else { return };
            let (sent, tally) = ends(&record);
            assert_eq!(sent.measured, tally.received + tally.lost);
            // 92 datagrams of 1514 bytes that wait are less than the queue holds.
            assert_eq!((dropped, sent.refused), (0, Some(0)), "{directions:?} {pace:?}");
            assert!(tally.lost * 100 <= sent.measured, "{} of {}", tally.lost, sent.measured);
            is_the_links_rate(&record, directions);
            let said = record.caveats.iter().any(|it| it.code == CaveatCode::PaceNotKept);
            assert_eq!(said, pace.is_some(), "{:?}", record.caveats);
        }
    }
}

#[test]
fn what_the_own_queue_drops_is_counted_there_and_as_the_kernel_counts_it() {
    for directions in [TcpDirections::Up, TcpDirections::Down] {
        // A buffer of 8 MiB in the kernel's memory lets more wait than the queue has room for.
        let window_bytes = Some(4 << 20);
        let pace = Some(BitRate::from_bits_per_sec(300_000_000));
        let plan = UdpPlan {
            test: UdpTest { window_bytes, pace, joined: false, ..plan(directions).test },
            ..plan(directions)
        };
        let Some((record, dropped)) = measure(&plan) else { return };
        let (sent, tally) = ends(&record);
        if dropped < 1000 {
            println!("skipped: this host sent too little to fill its queue, or grants no window");
            continue;
        }
        assert_eq!(sent.measured, tally.received + tally.lost);
        let at_sender = told(&record, MetricId::DatagramsDroppedAtSender, directions);
        assert_eq!(at_sender, sent.refused.map(|count| count as f64), "each told by itself");
        // Beside datagrams, words of the control connection may have found no room.
        let refused = sent.refused.expect("the kernel was asked");
        assert!(refused <= dropped && dropped - refused <= 20, "{refused} of {dropped}");
        // The cable itself loses nothing.
        assert_eq!(tally.lost - tally.lost_here, refused, "{tally:?}");
        let code = CaveatCode::OwnInterfaceDrops;
        assert!(record.caveats.iter().any(|it| it.code == code), "{:?}", record.caveats);
        is_the_links_rate(&record, directions);
    }
}

#[test]
fn joined_datagrams_that_the_own_queue_drops_are_counted_each() {
    let window_bytes = Some(4 << 20);
    let pace = Some(BitRate::from_bits_per_sec(400_000_000));
    let plan = UdpPlan {
        test: UdpTest { window_bytes, pace, ..plan(TcpDirections::Up).test },
        ..plan(TcpDirections::Up)
    };
    let Some((record, dropped)) = measure(&plan) else { return };
    let (sent, tally) = ends(&record);
    if dropped < 10 {
        println!("skipped: this host sent too little to fill its queue, or grants no window");
        return;
    }
    assert_eq!(sent.measured, tally.received + tally.lost);
    let at_sender = told(&record, MetricId::DatagramsDroppedAtSender, TcpDirections::Up);
    let missing = tally.lost - tally.lost_here;
    assert_eq!(at_sender, Some(missing as f64), "{sent:?} {tally:?}, {dropped} by the kernel");
}
