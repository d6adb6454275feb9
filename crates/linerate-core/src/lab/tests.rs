//! Plans, their mistakes, and layouts computed by hand.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use super::{LabPlan, Layout, Role};

const CABLE: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"] }]
"#;

const SWITCH: &str = r#"
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
switch = [{ name = "s" }, { name = "t" }]
link = [{ ends = ["a", "s"] }, { ends = ["s", "t"] }, { ends = ["t", "b"] }, { ends = ["c", "t"] }]
"#;

const ROUTER: &str = r#"
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r", filters = 10 }]
link = [{ ends = ["a", "r"] }, { ends = ["r", "b"], rate = "155.52 Mbit/s" }]
"#;

/// A square of routers with a host at two corners, and a tail behind one of them.
///
/// ```text
///   a ─0─ r1 ─1─ r2 ─2─ b        r1 ─3─ r3 ─4─ r2        r3 ─5─ c
/// ```
const SQUARE: &str = r#"
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
router = [{ name = "r1" }, { name = "r2" }, { name = "r3" }]
link = [
  { ends = ["a", "r1"] }, { ends = ["r1", "r2"] }, { ends = ["r2", "b"] },
  { ends = ["r1", "r3"] }, { ends = ["r3", "r2"] }, { ends = ["r3", "c"] },
]
"#;

fn layout(text: &str) -> Layout {
    Layout::from_plan(&LabPlan::from_toml(text, "test.toml").unwrap()).unwrap()
}

/// IPv4 routes of a node as `network gateway`.
fn ipv4_routes(layout: &Layout, name: &str) -> Vec<String> {
    let node = &layout.nodes[layout.node_index(name).unwrap()];
    let ipv4 = node.routes.iter().filter(|route| route.network.is_ipv4());
    ipv4.map(|route| format!("{}/{} {}", route.network, route.prefix_len, route.gateway)).collect()
}

fn addresses(layout: &Layout, name: &str) -> Vec<String> {
    let interfaces = &layout.nodes[layout.node_index(name).unwrap()].interfaces;
    let text = |interface: &super::Interface| {
        let ipv6 = interface.ipv6.map(|ipv6| format!(" {ipv6}")).unwrap_or_default();
        format!("{} {}{ipv6}", interface.name, interface.ipv4.unwrap())
    };
    interfaces.iter().map(text).collect()
}

fn ipv4(text: &str) -> Option<IpAddr> {
    Some(IpAddr::V4(text.parse::<Ipv4Addr>().unwrap()))
}

#[test]
fn a_cable_is_one_segment_without_routes() {
    let layout = layout(CABLE);
    assert_eq!(addresses(&layout, "a"), ["eth0 10.0.1.1 fd00:0:0:1::1"]);
    assert_eq!(addresses(&layout, "b"), ["eth0 10.0.1.2 fd00:0:0:1::2"]);
    assert!(layout.nodes.iter().all(|node| node.routes.is_empty()));
    assert_eq!(layout.links[0].mtu_bytes, 1500);
    assert_eq!(layout.address_of("b"), ipv4("10.0.1.2"));
    assert_eq!(layout.address_of("nobody"), None);
}

#[test]
fn links_joined_by_switches_are_one_segment() {
    let layout = layout(SWITCH);
    assert_eq!(layout.segments.len(), 1);
    assert_eq!(layout.address_of("a"), ipv4("10.0.1.1"));
    assert_eq!(layout.address_of("b"), ipv4("10.0.1.2"));
    assert_eq!(layout.address_of("c"), ipv4("10.0.1.3"));
    assert_eq!(layout.address_of("s"), None);
    let switch = &layout.nodes[layout.node_index("t").unwrap()];
    assert_eq!(switch.role, Role::Switch);
    let names: Vec<_> = switch.interfaces.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["eth0", "eth1", "eth2"]);
}

#[test]
fn a_router_stands_in_both_segments_and_hosts_route_over_it() {
    let layout = layout(ROUTER);
    assert_eq!(addresses(&layout, "a"), ["eth0 10.0.1.1 fd00:0:0:1::1"]);
    assert_eq!(addresses(&layout, "b"), ["eth0 10.0.2.1 fd00:0:0:2::1"]);
    let router = ["eth0 10.0.1.2 fd00:0:0:1::2", "eth1 10.0.2.2 fd00:0:0:2::2"];
    assert_eq!(addresses(&layout, "r"), router);
    assert_eq!(ipv4_routes(&layout, "a"), ["10.0.2.0/24 10.0.1.2"]);
    assert_eq!(ipv4_routes(&layout, "b"), ["10.0.1.0/24 10.0.2.2"]);
    assert_eq!(ipv4_routes(&layout, "r"), [] as [&str; 0]);
    assert_eq!(layout.nodes[0].routes[1].gateway, "fd00:0:0:1::2".parse::<IpAddr>().unwrap());
    assert_eq!(layout.links[1].rate.unwrap().bits_per_sec(), 155_520_000);
}

#[test]
fn a_switch_beside_a_router_has_no_routes() {
    let layout = layout(
        r#"
host = [{ name = "a" }, { name = "b" }]
switch = [{ name = "s" }]
router = [{ name = "r" }]
link = [{ ends = ["a", "s"] }, { ends = ["s", "r"] }, { ends = ["r", "b"] }]
"#,
    );
    assert_eq!(ipv4_routes(&layout, "a"), ["10.0.2.0/24 10.0.1.2"]);
    assert!(layout.nodes[layout.node_index("s").unwrap()].routes.is_empty());
}

#[test]
fn routes_take_the_fewest_routers_and_then_the_earlier_interface() {
    let layout = layout(SQUARE);
    // Segments 1..6 are links 0..5. Hosts come before routers in each.
    // r1: eth0 10.0.1.2, eth1 10.0.2.1, eth2 10.0.4.1
    // r2: eth0 10.0.2.2, eth1 10.0.3.2, eth2 10.0.5.1
    // r3: eth0 10.0.4.2, eth1 10.0.5.2, eth2 10.0.6.2
    let over_r1 = |n: u8| format!("10.0.{n}.0/24 10.0.1.2");
    assert_eq!(ipv4_routes(&layout, "a"), [2, 3, 4, 5, 6].map(over_r1));
    let r1 = [
        "10.0.3.0/24 10.0.2.2", // to b over r2
        "10.0.5.0/24 10.0.2.2", // r2 and r3 both stand in it: eth1 comes before eth2
        "10.0.6.0/24 10.0.4.2", // to c over r3
    ];
    assert_eq!(ipv4_routes(&layout, "r1"), r1);
    let r2 = ["10.0.1.0/24 10.0.2.1", "10.0.4.0/24 10.0.2.1", "10.0.6.0/24 10.0.5.2"];
    assert_eq!(ipv4_routes(&layout, "r2"), r2);
}

#[test]
fn a_host_without_a_link_is_reached_over_its_loopback() {
    let layout = layout("host = [{ name = \"alone\", loopback_mtu_bytes = 1500 }]");
    assert_eq!(layout.address_of("alone"), ipv4("127.0.0.1"));
    assert_eq!(layout.nodes[0].loopback_mtu_bytes, Some(1500));
    assert!(layout.nodes[0].loopback_offload, "on unless the plan says otherwise");
}

#[test]
fn what_no_router_joins_gets_no_route() {
    let text = r#"
host = [{ name = "a" }, { name = "b" }, { name = "c" }, { name = "d" }]
link = [{ ends = ["a", "b"] }, { ends = ["c", "d"] }, { ends = ["b", "c"] }]
"#;
    let layout = layout(text);
    // b and c stand in two segments each, but hosts do not forward.
    assert_eq!(ipv4_routes(&layout, "a"), [] as [&str; 0]);
    assert_eq!(addresses(&layout, "b").len(), 2);
}

#[test]
fn the_256th_segment_is_numbered_in_two_bytes_and_below_1280_bytes_there_is_no_ipv6() {
    let mut text = String::from("host = [{ name = \"a\" }, { name = \"b\" }]\nlink = [\n");
    for _ in 0..256 {
        text.push_str("{ ends = [\"a\", \"b\"], mtu_bytes = 1279 },\n");
    }
    text.push(']');
    let layout = layout(&text);
    assert_eq!(addresses(&layout, "b")[255], "eth255 10.1.0.2");
}

#[test]
fn the_name_is_the_stem_of_the_file_unless_the_plan_has_one() {
    let named = LabPlan::from_toml(CABLE, "studies/labs/cable.toml").unwrap();
    assert_eq!(named.name.as_deref(), Some("cable"));
    let own = format!("name = \"mine\"\n{CABLE}");
    assert_eq!(LabPlan::from_toml(&own, "cable.toml").unwrap().name.as_deref(), Some("mine"));
}

#[test]
fn every_mistake_is_named_with_line_and_column() {
    let ab = "host = [{ name = \"a\" }, { name = \"b\" }]\n";
    let cases: &[(&str, &str, &str)] = &[
        ("host = [", "1:9", "array"),
        ("[[host]]\nname = \"a\"\nspeed = 3\n", "3:1", "unknown field `speed`"),
        ("[[host]]\nname = 5\n", "2:8", "expected a string"),
        ("[[host]]\nname = \"ä\"\n", "2:8", "`ä` is no name"),
        ("[[host]]\nname = \"a\"\n[[router]]\nname = \"a\"\n", "4:8", "already the name of a host"),
        ("[[switch]]\nname = \"s\"\n", "", "no [[host]]"),
        ("[[link]]\nends = [\"a\", \"c\"]\n", "3:14", "named `c`"),
        ("[[link]]\nends = [\"a\", \"a\"]\n", "3:8", "to itself"),
        ("[[link]]\nends = [\"a\"]\n", "3:8", "2"),
        ("[[link]]\nends = [\"a\", \"b\"]\nmtu_bytes = 575\n", "4:13", "576 to 65535"),
        ("[[link]]\nends = [\"a\", \"b\"]\nmtu_bytes = 65536\n", "4:13", "576 to 65535"),
        ("[[link]]\nends = [\"a\", \"b\"]\nrate = \"fast\"\n", "4:8", "fast"),
        ("[[link]]\nends = [\"a\", \"b\"]\nrate = \"0\"\n", "4:8", "below 1 kbit/s"),
        ("[[router]]\nname = \"r\"\nfilters = 10001\n", "4:11", "at most 10000"),
        ("[[router]]\nname = \"r\"\nfilters = -1\n", "4:11", "-1"),
    ];
    for (text, place, words) in cases {
        let own_host = text.contains("host") || text.contains("switch");
        let text = if own_host { (*text).to_owned() } else { format!("{ab}{text}") };
        let line = LabPlan::from_toml(&text, "x.toml").unwrap_err().to_string();
        let colon = if place.is_empty() { "" } else { ":" };
        let start = format!("read laboratory x.toml{colon}{place}: ");
        assert!(line.starts_with(&start), "{text}\n{line}\nwanted {start}");
        assert!(line.contains(words), "{text}\n{line}\nwanted {words}");
        assert!(!line.contains('\n'));
    }
}

#[test]
fn loops_of_switches_second_links_and_two_mtus_in_a_segment_are_refused() {
    let base = "host = [{ name = \"a\" }, { name = \"b\" }]\n\
                switch = [{ name = \"s\" }, { name = \"t\" }]\n";
    let cases = [
        ("[\"s\", \"t\"], [\"t\", \"s\"]", "closes a loop of switches"),
        ("[\"a\", \"s\"], [\"a\", \"s\"]", "a second link from `a`"),
        ("[\"a\", \"s\"], [\"s\", \"t\"], [\"a\", \"t\"]", "a second link from `a`"),
    ];
    for (ends, words) in cases {
        let links = ends.replace("], [", "] },\n{ ends = [");
        let text = format!("{base}link = [\n{{ ends = {links} }}]");
        let line = LabPlan::from_toml(&text, "x.toml").unwrap_err().to_string();
        assert!(line.contains(words), "{line}");
    }
    let mtus = format!(
        "{base}link = [{{ ends = [\"a\", \"s\"], mtu_bytes = 9000 }}, {{ ends = [\"s\", \"b\"] }}]"
    );
    let line = LabPlan::from_toml(&mtus, "x.toml").unwrap_err().to_string();
    assert!(line.contains("9000 and 1500 bytes in one segment"), "{line}");
}

#[test]
fn more_than_64_nodes_and_more_than_256_links_are_refused() {
    let hosts = |count: usize| -> String {
        let tables = (0..count).map(|n| format!("[[host]]\nname = \"h{n}\"\n"));
        tables.collect()
    };
    assert!(LabPlan::from_toml(&hosts(64), "x").is_ok());
    let line = LabPlan::from_toml(&hosts(65), "x").unwrap_err().to_string();
    assert!(line.contains("65 nodes; at most 64"), "{line}");
    let links = "[[link]]\nends = [\"h0\", \"h1\"]\n".repeat(257);
    let line = LabPlan::from_toml(&(hosts(2) + &links), "x").unwrap_err().to_string();
    assert!(line.contains("257 links; at most 256"), "{line}");
}

#[test]
fn the_map_has_a_line_for_every_interface() {
    let text = format!("{ROUTER}[[switch]]\nname = \"idle\"\n");
    let expected = "\
node  role                interface  IPv4      IPv6           to      MTU   rate
a     host                eth0       10.0.1.1  fd00:0:0:1::1  r eth0  1500  unshaped
b     host                eth0       10.0.2.1  fd00:0:0:2::1  r eth1  1500  155.52 Mbit/s
r     router, 10 filters  eth0       10.0.1.2  fd00:0:0:1::2  a eth0  1500  unshaped
                          eth1       10.0.2.2  fd00:0:0:2::2  b eth0  1500  155.52 Mbit/s
idle  switch";
    assert_eq!(super::map_lines(&layout(&text)).join("\n"), expected);
}

const PATH: &str = r#"
host = [{ name = "a" }, { name = "b" }]
link = [{ ends = ["a", "b"], path = { link = "oc12-atm", delay = "22.5 ms" } }]
"#;

#[test]
fn a_path_has_the_mtu_of_its_link_unless_the_plan_gives_one() {
    // RFC 2225: 9180 bytes for IP in AAL5.
    assert_eq!(layout(PATH).links[0].mtu_bytes, 9180);
    let own = PATH.replace("path =", "mtu_bytes = 1500, path =");
    assert_eq!(layout(&own).links[0].mtu_bytes, 1500);
    let map = super::map_lines(&layout(PATH)).join("\n");
    assert!(map.contains("9180  622.08 Mbit/s oc12 aal5-llcsnap, 22.5 ms"), "{map}");
}

#[test]
fn a_mistake_in_a_path_is_named_at_its_own_key() {
    let base = "host = [{ name = \"a\" }, { name = \"b\" }]\n[[link]]\nends = [\"a\", \"b\"]\n";
    let cases = [
        ("[link.path]\nrate = \"5x\"\n", "5:8", "rate: \"5x\" is not a rate"),
        ("[link.path]\nloss = \"2\"\n", "5:8", "loss: "),
        ("path = { delay = \"1 ms\", backward = { loss = \"x\" } }\n", "4:46", "backward.loss: "),
        ("path = { rat = \"1M\" }\n", "4:10", "unknown field `rat`"),
        ("rate = \"1M\"\npath = { delay = \"1 ms\" }\n", "4:8", "has its rate there"),
    ];
    for (text, place, words) in cases {
        let text = format!("{base}{text}");
        let line = LabPlan::from_toml(&text, "x.toml").unwrap_err().to_string();
        assert!(line.starts_with(&format!("read laboratory x.toml:{place}: ")), "{text}\n{line}");
        assert!(line.contains(words) && !line.contains('\n'), "{line}");
    }
}

/// A laboratory with a device `d` between two hosts.
fn with_device(keys: &str) -> String {
    format!(
        "host = [{{ name = \"a\" }}, {{ name = \"b\" }}]\n\
         link = [{{ ends = [\"a\", \"d\"] }}, {{ ends = [\"d\", \"b\"] }}]\n\
         [[device]]\nname = \"d\"\n{keys}"
    )
}

#[test]
fn a_device_joins_its_two_links_into_one_segment_without_addresses() {
    let layout = layout(&with_device("kind = \"forwarder\""));
    assert_eq!(layout.segments.len(), 1);
    assert_eq!(addresses(&layout, "a"), ["eth0 10.0.1.1 fd00:0:0:1::1"]);
    assert_eq!(addresses(&layout, "b"), ["eth0 10.0.1.2 fd00:0:0:1::2"]);
    let device = &layout.nodes[layout.node_index("d").unwrap()];
    assert_eq!((device.role, device.interfaces.len()), (Role::Device, 2));
    assert_eq!(layout.address_of("d"), None);
    assert!(device.routes.is_empty());
}

#[test]
fn every_key_of_a_planted_device_is_read_and_written() {
    let text = with_device(
        "kind = \"planted\"\nframes_per_sec = 2000\nbits_per_sec = 10000000\n\
         buffer_frames = 64\nlatency = \"20us\"\ncut_through = true\nloss_one_in = 100000\n\
         seed = 7\nstall = { every = \"20s\", lasting = \"50ms\" }\n\
         placement = \"threaded\"\ncpu = 1",
    );
    let plan = LabPlan::from_toml(&text, "x").unwrap();
    let device = &plan.devices[0];
    assert_eq!(device.latency(), Duration::from_micros(20));
    let stall = device.stall.as_ref().and_then(super::StallPlan::period_and_length);
    assert_eq!(stall, Some((Duration::from_secs(20), Duration::from_millis(50))));
    let again = LabPlan::from_toml(&crate::tree::to_toml(&plan).unwrap(), "x").unwrap();
    assert_eq!(again, plan);
    let map = super::map_lines(&layout(&text)).join("\n");
    assert!(map.contains("planted, 2000 frames/s, 10 Mbit/s, threaded on CPU 1"), "{map}");
}

#[test]
fn a_quiet_laboratory_has_no_offloads_unless_a_link_asks_for_them() {
    let quiet = layout(&format!("quiet = true\n{CABLE}"));
    assert!(quiet.quiet && !quiet.links[0].offload);
    let asked = CABLE.replace("\"] }]", "\"], offload = true }]");
    assert!(layout(&format!("quiet = true\n{asked}")).links[0].offload);
    assert!(layout(CABLE).links[0].offload);
}

#[test]
fn what_a_router_does_by_itself_is_in_the_layout_and_the_map() {
    let text = ROUTER.replace(
        "filters = 10",
        "filters = 10, filter_shape = \"set\", placement = \"threaded\", cpu = 1",
    );
    let map = super::map_lines(&layout(&text)).join("\n");
    assert!(map.contains("router, a set of 10 filters, threaded on CPU 1"), "{map}");
    let text = ROUTER.replace("filters = 10", "how = \"xdp\"").replace(", rate", ", offload");
    let text = text.replace("\"155.52 Mbit/s\"", "false");
    assert!(super::map_lines(&layout(&text)).join("\n").contains("router, XDP"));
}

#[test]
fn what_a_device_cannot_be_is_named_with_its_place() {
    let planted = |keys: &str| with_device(&format!("kind = \"planted\"\n{keys}"));
    // The device begins in line 3; what a case adds to a planted one, in line 6.
    let cases = [
        (with_device("kind = \"hub\""), "5:8", "unknown variant `hub`"),
        (with_device("kind = \"forwarder\"\nseed = 1"), "6:8", "a forwarder has no key 'seed'"),
        (planted("frames_per_sec = 0"), "6:18", "forwards nothing"),
        (planted("bits_per_sec = 999"), "6:16", "below 1 kbit/s"),
        (planted("buffer_frames = 0"), "6:17", "1 to 65536"),
        (planted("latency = \"long\""), "6:11", "long"),
        (planted("latency = \"2s\""), "6:11", "above 1 s"),
        (planted("loss_one_in = 1"), "6:15", "every frame"),
        (planted("seed = 1"), "6:8", "without loss_one_in"),
        (planted("stall = { every = \"1s\", lasting = \"1s\" }"), "6:19", "without a pause"),
        (planted("stall = { every = \"1s\" }"), "6:9", "lasting"),
        (planted("cpu = 1"), "6:7", "belongs to placement"),
        (planted("placement = \"threaded\"\ncpu = 1024"), "7:7", "0 to 1023"),
        (planted("speed = 1"), "6:1", "unknown field `speed`"),
    ];
    for (text, place, words) in cases {
        let line = LabPlan::from_toml(&text, "x.toml").unwrap_err().to_string();
        let start = format!("read laboratory x.toml:{place}: ");
        assert!(line.starts_with(&start), "{text}\n{line}\nwanted {start}");
        assert!(line.contains(words), "{text}\n{line}\nwanted {words}");
        assert!(!line.contains('\n'));
    }
}

#[test]
fn what_works_at_the_interface_needs_plain_cables_and_two_of_them() {
    let refused = |text: &str, words: &str| {
        let line = LabPlan::from_toml(text, "x.toml").unwrap_err().to_string();
        assert!(line.contains(words), "{line}");
    };
    let device = with_device("kind = \"forwarder\"");
    let alone = device.replace(", { ends = [\"d\", \"b\"] }", "");
    refused(&alone, "`d` has 1 links; a device joins two");
    let shaped = device.replace("\"b\"] }", "\"b\"], rate = \"1M\" }");
    refused(&shaped, "frames from `d` meet no queue, so its link has no rate");
    let filters = ROUTER.replace("filters = 10", "filters = 10, how = \"xdp\"");
    refused(&filters, "forwards before any filter");
    let xdp = ROUTER.replace("filters = 10", "how = \"xdp\"");
    refused(&xdp, "frames from `r` meet no queue, so its link has no rate");
    refused(&ROUTER.replace("filters = 10", "filter_shape = \"set\""), "without filters");
    refused(&ROUTER.replace("filters = 10", "cpu = 0"), "belongs to placement");
}
