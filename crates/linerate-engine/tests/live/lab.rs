//! Laboratories on the kernel: what is planned is there, and carries packets.
//!
//! Needs the privilege to make network namespaces; says so and passes when it is absent. All
//! traffic stays in namespaces that the tests make. Waits are bounded by socket timeouts.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::lab::LabPlan;
use linerate_core::record::Fault;
use linerate_engine::lab::Lab;
use linerate_sys::netlink::{RouteFacts, RouteSocket, route_to};
use linerate_sys::{clock, netns, sysctl, userns};

/// No step of a test takes this long on a working machine; a busy one may take seconds.
const PATIENCE: Duration = Duration::from_secs(10);

const CABLE: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"] }]
"#;

const SWITCH: &str = r#"
host = [{ name = "a" }, { name = "b" }]
switch = [{ name = "s" }, { name = "t" }]
link = [{ ends = ["a", "s"] }, { ends = ["s", "t"] }, { ends = ["t", "b"] }]
"#;

/// A laboratory, or none where the host does not allow one.
fn lab(text: &str) -> Option<Lab> {
    crate::turn::take();
    if !userns::may_make_networks() {
        println!("skipped: CAP_SYS_ADMIN and CAP_NET_ADMIN are needed for network namespaces");
        return None;
    }
    Some(Lab::build_from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap())
}

/// The cable with more keys in its link.
fn cable_with(keys: &str) -> String {
    CABLE.replace("\"] }]", &format!("\"], {keys} }}]"))
}

fn router(filters: u32) -> String {
    format!(
        r#"
host = [{{ name = "a" }}, {{ name = "b" }}]
router = [{{ name = "r", filters = {filters} }}]
link = [{{ ends = ["a", "r"] }}, {{ ends = ["r", "b"] }}]
"#
    )
}

/// Sends a datagram from one host to another and back; the source that the far end saw.
fn udp_round_trip(lab: &Lab, from: &str, to: IpAddr, on: &str) -> String {
    let any = if to.is_ipv4() { [0; 4].into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let bind = |addr: IpAddr| {
        let socket = UdpSocket::bind(SocketAddr::new(addr, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    };
    let server = lab.run_on(on, || bind(to)).unwrap();
    let client = lab.run_on(from, || bind(any)).unwrap();
    client.send_to(b"there", server.local_addr().unwrap()).unwrap();
    let mut buffer = [0; 16];
    let (count, source) = server.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"there");
    server.send_to(b"and back", source).unwrap();
    let (count, _) = client.recv_from(&mut buffer).unwrap();
    assert_eq!(&buffer[..count], b"and back");
    source.ip().to_string()
}

/// Moves bytes by TCP from `a` to `b` and returns how many arrived.
fn tcp_bytes(lab: &Lab, bytes: usize) -> usize {
    let target = lab.address_of("b").unwrap();
    let listener = lab.run_on("b", || TcpListener::bind((target, 0)).unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let send = move || {
        let mut stream = TcpStream::connect_timeout(&address, PATIENCE).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(&vec![7; bytes]).unwrap();
    };
    let sender = lab.spawn_on("a", send).unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sender.join().unwrap();
    received.len()
}

fn has_ipv6() -> bool {
    sysctl::exists("net/ipv6/conf/all/forwarding")
}

#[test]
fn hosts_reach_each_other_over_a_cable_at_once_by_both_protocols() {
    let Some(lab) = lab(CABLE) else { return };
    let [ipv4, ipv6] = ["10.0.1.2", "fd00:0:0:1::2"].map(|text| text.parse::<IpAddr>().unwrap());
    assert_eq!(lab.address_of("b"), Some(ipv4));
    assert_eq!(udp_round_trip(&lab, "a", ipv4, "b"), "10.0.1.1");
    if has_ipv6() {
        assert_eq!(udp_round_trip(&lab, "a", ipv6, "b"), "fd00:0:0:1::1");
    }
    assert!(lab.build_notes().is_empty(), "{:?}", lab.build_notes());
}

#[test]
fn hosts_reach_each_other_through_two_switches() {
    let Some(lab) = lab(SWITCH) else { return };
    let target = lab.address_of("b").unwrap();
    assert_eq!(udp_round_trip(&lab, "a", target, "b"), "10.0.1.1");
    assert_eq!(tcp_bytes(&lab, 1_000_000), 1_000_000);
    assert_eq!(lab.link_facts("s", "br0").unwrap().kind.as_deref(), Some("bridge"));
}

#[test]
fn hosts_reach_each_other_through_a_router_with_0_10_and_1000_filters() {
    for filters in [0, 10, 1000] {
        let Some(lab) = lab(&router(filters)) else { return };
        let target = lab.address_of("b").unwrap();
        assert_eq!(target.to_string(), "10.0.2.1");
        assert_eq!(udp_round_trip(&lab, "a", target, "b"), "10.0.1.1");
        if has_ipv6() {
            let target = "fd00:0:0:2::1".parse().unwrap();
            assert_eq!(udp_round_trip(&lab, "a", target, "b"), "fd00:0:0:1::1");
        }
        let before = lab.counters("r", "eth1").unwrap();
        assert_eq!(tcp_bytes(&lab, 100_000), 100_000);
        let after = lab.counters("r", "eth1").unwrap();
        assert!(after.tx_bytes - before.tx_bytes >= 100_000, "the router forwards the bytes");
    }
}

#[test]
fn hosts_behind_two_routers_reach_each_other_and_each_router() {
    let Some(lab) = lab(include_str!("../../../../studies/labs/oc3.toml")) else { return };
    for (on, target) in [("b", "10.0.3.1"), ("r2", "10.0.2.2"), ("r2", "10.0.3.2")] {
        assert_eq!(udp_round_trip(&lab, "a", target.parse().unwrap(), on), "10.0.1.1");
    }
}

#[test]
fn a_host_alone_is_reached_over_its_loopback_with_the_mtu_of_the_plan() {
    let Some(lab) = lab("host = [{ name = \"a\", loopback_mtu_bytes = 1500 }]") else { return };
    let target = lab.address_of("a").unwrap();
    assert_eq!(udp_round_trip(&lab, "a", target, "a"), "127.0.0.1");
    assert_eq!(lab.link_facts("a", "lo").unwrap().mtu_bytes, 1500);
}

#[test]
fn mtu_kind_and_rate_are_those_of_the_plan_and_the_route_tells_them() {
    let text = cable_with("mtu_bytes = 9000, rate = \"155.52 Mbit/s\"");
    let Some(lab) = lab(&text) else { return };
    for (host, far) in [("a", "b"), ("b", "a")] {
        let far = lab.address_of(far).unwrap();
        let link = lab.link_facts(host, "eth0").unwrap();
        assert!(link.running);
        let facts = lab.run_on(host, || route_to(far).unwrap()).unwrap();
        let expected = RouteFacts {
            ifindex: link.index,
            ifname: "eth0".to_owned(),
            mtu_bytes: 9000,
            kind: Some("veth".to_owned()),
            speed_bps: None,
            tbf_rate_bps: Some(155_520_000),
            vlan_tags: 0,
            lower: None,
        };
        assert_eq!(facts, expected);
    }
    let own = lab.run_on("a", || route_to(lab.address_of("a").unwrap()).unwrap()).unwrap();
    assert_eq!(own.kind.as_deref(), Some("loopback"));
}

#[test]
fn a_rate_is_not_exceeded_whether_segments_travel_alone_or_in_super_packets() {
    for offload in [true, false] {
        let text = cable_with(&format!("rate = \"80 Mbit/s\", offload = {offload}"));
        let Some(lab) = lab(&text) else { return };
        let start = clock::monotonic();
        assert_eq!(tcp_bytes(&lab, 4_000_000), 4_000_000);
        let span = clock::monotonic().duration_since(start).as_secs_f64();
        // 4 MB with headers of 66 bytes per 1448 take 0.418 s at 10 MB/s; the bucket gives 4 ms.
        // A busy machine may take longer, never shorter.
        assert!(span > 0.41, "{span} s");
        if !offload {
            // 4,000,000 / 1448 is 2762.4: at least 2763 packets carry the data.
            let counters = lab.counters("a", "eth0").unwrap();
            assert!(counters.tx_packets >= 2763, "{counters:?}");
        }
    }
}

#[test]
fn two_laboratories_of_one_plan_run_at_once_with_the_same_addresses() {
    let Some(first) = lab(&router(1)) else { return };
    let Some(second) = lab(&router(1)) else { return };
    assert_eq!(first.address_of("b"), second.address_of("b"));
    let ids = |lab: &Lab| lab.namespace_ids().unwrap().into_iter().collect::<BTreeSet<_>>();
    assert!(ids(&first).is_disjoint(&ids(&second)));
    assert_eq!(tcp_bytes(&first, 10_000), 10_000);
    let quiet = second.counters("a", "eth0").unwrap();
    assert!(quiet.tx_bytes < 10_000, "nothing crosses over: {quiet:?}");
    assert_eq!(tcp_bytes(&second, 10_000), 10_000);
}

#[test]
fn nothing_appears_outside_and_nothing_is_left() {
    let names = || -> BTreeSet<String> {
        let links = RouteSocket::open().unwrap().list_links().unwrap();
        links.into_iter().map(|link| link.name).collect()
    };
    let before = names();
    let Some(lab) = lab(SWITCH) else { return };
    assert_eq!(names(), before);
    let ids = lab.namespace_ids().unwrap();
    drop(lab);
    assert_eq!(names(), before);
    assert!(netns::processes_inside(&ids).is_empty());
}

#[test]
fn work_that_panics_is_a_failure_with_its_message_and_the_laboratory_goes_on() {
    let Some(lab) = lab(CABLE) else { return };
    let failure = lab.run_on("a", || assert_eq!(1, 2, "one is not two")).unwrap_err();
    assert_eq!(failure.fault, Fault::System);
    assert!(failure.to_string().contains("one is not two"), "{failure}");
    assert_eq!(lab.run_on("a", || 5).unwrap(), 5);
    let failure = lab.run_on("c", || ()).unwrap_err();
    assert_eq!(failure.to_string(), "find host c: the laboratory has no such host; it has a, b");
}

#[test]
fn plain_users_may_ping_inside() {
    let Some(lab) = lab(CABLE) else { return };
    let range = lab.run_on("a", || sysctl::read("net/ipv4/ping_group_range").unwrap()).unwrap();
    // The kernel's own default is the empty range `1 0`.
    assert_eq!(range.split_whitespace().next(), Some("0"));
}
