//! The receiver's count held against the byte counters of its interface: a witness that is not
//! ours. Counting only, so a slow machine changes nothing.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent.
#![allow(clippy::print_stdout, reason = "a skipped test is to be seen")]

use std::net::{IpAddr, SocketAddr};

use linerate_core::lab::LabPlan;
use linerate_core::record::{
    Direction, Finish, MetricId, ServerPlan, Stat, TcpPlan, TcpTest, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::lab::Lab;
use linerate_engine::throughput;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{MeasurementServer, ServeOptions};
use linerate_sys::stop::Stop;
use linerate_sys::userns;

/// Without offload every segment is a packet of its own, as the counters then have it.
const CABLE: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], offload = false }]
"#;

/// Ethernet 14 (no FCS), IPv4 20, TCP with timestamps 32 bytes.
const HEADER_BYTES: u64 = 14 + 20 + 32;

#[test]
fn the_bytes_told_are_those_that_the_interface_counted() {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return;
    }
    let plan = LabPlan::from_toml(CABLE, "test.toml").expect("a plan");
    let lab = Lab::build_from_plan(&plan).expect("the laboratory stands");
    let target = lab.address_of("b").expect("it has an address");
    let local = SocketAddr::new(target, 0);
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let server =
        lab.run_on("b", || MeasurementServer::bind(&options)).expect("runs").expect("binds");
    let port = server.local_addr().expect("bound").port();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| lab.run_on("b", || server.run(&stop, &|_| {})));
        let _ends = AskOnDrop(&stop);
        let before = lab.counters("b", "eth0").expect("counters");
        let record = lab.run_on("a", || measure(target, port)).expect("runs");
        let after = lab.counters("b", "eth0").expect("counters");
        assert_eq!(record.failure, None);
        let told = record.summary_value(MetricId::Bytes, Stat::Value, Some(Direction::Up));
        assert_eq!(told, Some(20_000_000.0));
        let info = record.flows[0].sender.as_ref().and_then(|end| end.tcp_info);
        let again = info.and_then(|info| info.bytes_retrans).expect("kernel 4.19");
        let packets = after.rx_packets - before.rx_packets;
        let counted = after.rx_bytes - before.rx_bytes - HEADER_BYTES * packets;
        // Half a percent leaves room for the control connection and the handshakes.
        let expected = 20_000_000 + again;
        assert!(counted.abs_diff(expected) < 100_000, "counted {counted}, told {expected}");
    });
}

/// Ends the server also when the test ends by a panic.
struct AskOnDrop<'a>(&'a Stop);

impl Drop for AskOnDrop<'_> {
    fn drop(&mut self) {
        self.0.request_stop();
    }
}

fn measure(target: IpAddr, port: u16) -> linerate_core::record::Record {
    let plan = TcpPlan {
        server: ServerPlan::new(None, target.to_string(), port),
        test: TcpTest {
            finish: Finish::Bytes(20_000_000),
            congestion_control: Some("cubic".to_owned()),
            ..TcpTest::default()
        },
        ..TcpPlan::default()
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_| {} };
    throughput::run_tcp(&plan, &mut context)
}
