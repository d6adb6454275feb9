//! Ceilings of hand-made records, held against sums over the bytes of one packet.

use linerate_core::record::{
    EmulatedPath, FlowEnd, KnownPath, MeasurementEnd, PathDirection, PathPlan, Plan, RecordId,
    Summary, SynOptions, TcpDirections, TcpInfo, TcpTest, Tool,
};
use linerate_core::time::WallTime;
use linerate_core::units::BitRate;

use super::*;

fn flow(direction: Direction, snd_mss_bytes: u32) -> Flow {
    let info = TcpInfo {
        options: Some(OPTION_TIMESTAMPS | 6),
        snd_mss_bytes: Some(snd_mss_bytes),
        pmtu_bytes: Some(1500),
        ..TcpInfo::default()
    };
    Flow {
        flow: 0,
        direction,
        client_addr: String::new(),
        server_addr: "192.0.2.1:5210".to_owned(),
        sender: Some(FlowEnd { tcp_info: Some(info), ..FlowEnd::default() }),
        receiver: None,
        syn: Some(SynOptions::default()),
    }
}

/// A test in both directions at 100 Mbit/s each, between two interfaces.
fn record(local: RecordedInterface, remote: RecordedInterface) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let id = RecordId::from_parts(0, [0; 10]);
    let plan = Plan::Tcp(plan());
    let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0));
    let end = |role: &str, interface| MeasurementEnd {
        role: role.to_owned(),
        interface: Some(interface),
        ..MeasurementEnd::default()
    };
    record.ends = vec![end("local", local), end("remote", remote)];
    record.flows = vec![flow(Direction::Up, 1448), flow(Direction::Down, 1448)];
    record.summary = [Direction::Up, Direction::Down]
        .map(|way| Summary::from_value(MetricId::Goodput, Stat::Value, 100e6).in_direction(way))
        .into();
    record
}

fn plan() -> TcpPlan {
    TcpPlan {
        test: TcpTest { directions: TcpDirections::Both, ..TcpTest::default() },
        ..TcpPlan::default()
    }
}

fn of(record: &Record, direction: Direction) -> Ceiling {
    ceiling(record, &plan(), direction, Sight::Plans).expect("a flow in each direction")
}

fn eth(speed_bps: u64) -> RecordedInterface {
    RecordedInterface {
        name: "eth0".to_owned(),
        speed_bps: Some(speed_bps),
        ..RecordedInterface::default()
    }
}

fn kind(name: &str, kind: &str) -> RecordedInterface {
    RecordedInterface {
        name: name.to_owned(),
        kind: Some(kind.to_owned()),
        ..RecordedInterface::default()
    }
}

fn close(got: Option<f64>, want: f64) {
    assert!(got.is_some_and(|got| (got / want - 1.0).abs() < 1e-6), "got {got:?}, want {want}");
}

#[test]
fn a_gigabit_interface_gives_941_48_megabit_and_the_share_of_it() {
    let ceiling = of(&record(eth(1_000_000_000), eth(10_000_000_000)), Direction::Up);
    // 1448 of 1538 bytes on the wire.
    close(ceiling.value, 941_482_444.7);
    close(ceiling.share, 100e6 / 941_482_444.7);
    assert!(ceiling.unknown.is_empty(), "{:?}", ceiling.unknown);
}

#[test]
fn the_ceiling_stands_at_every_layer() {
    let ceiling = of(&record(eth(1_000_000_000), eth(1_000_000_000)), Direction::Up);
    // Payload 1448, IP 1500, frame 1518 of 1538 bytes.
    let expected = [
        (HeaderLayer::Payload, 1448.0),
        (HeaderLayer::Ip, 1500.0),
        (HeaderLayer::Frame, 1518.0),
        (HeaderLayer::Wire, 1538.0),
    ];
    assert_eq!(ceiling.layers.len(), expected.len());
    for (at, (layer, bytes)) in ceiling.layers.iter().zip(expected) {
        assert_eq!(at.layer, layer);
        close(Some(at.bps), 1e9 * bytes / 1538.0);
    }
}

#[test]
fn each_direction_has_the_shaper_of_its_own_sender() {
    let shaped =
        |name: &str, bps| RecordedInterface { shaper_bps: Some(bps), ..kind(name, "veth") };
    let record = record(shaped("a-b", 155_520_000), shaped("b-a", 20_000_000));
    // The bucket counts 1514 bytes of a packet of 1500.
    close(of(&record, Direction::Up).value, 155_520_000.0 * 1448.0 / 1514.0);
    let down = of(&record, Direction::Down);
    close(down.value, 20_000_000.0 * 1448.0 / 1514.0);
    assert_eq!(down.direction, Some(Direction::Down));
    assert!(down.inputs[0].source.contains("b-a at the remote end"), "{:?}", down.inputs);
    assert!(down.unknown.is_empty(), "{:?}", down.unknown);
}

#[test]
fn a_vlan_costs_a_tag_on_the_link_under_it() {
    let vlan = RecordedInterface {
        speed_bps: Some(1_000_000_000),
        vlan_tags: Some(1),
        lower: Some("eth0".to_owned()),
        ..kind("eth0.5", "vlan")
    };
    let ceiling = of(&record(vlan, eth(1_000_000_000)), Direction::Up);
    // 1448 of 1542 bytes: the tagged end is the slower one.
    close(ceiling.value, 1e9 * 1448.0 / 1542.0);
    assert_eq!(ceiling.find_input("vlan_tags").map(|input| input.value), Some(1.0));
    assert_eq!(ceiling.inputs[0].source, "speed of eth0 at the local end");
    // A shaper counts 1514 bytes, the wire carries 1542.
    let vlan = RecordedInterface {
        shaper_bps: Some(1_000_000),
        vlan_tags: Some(1),
        ..kind("eth0.5", "vlan")
    };
    let ceiling = of(&record(vlan, eth(1_000_000_000)), Direction::Up);
    close(ceiling.layers.last().map(|at| at.bps), 1e6 * 1542.0 / 1514.0);
}

#[test]
fn what_wraps_packets_is_told_as_unknown_rather_than_wrong() {
    for tunnel in ["wireguard", "gre", "vxlan", "ppp", "tun"] {
        // A figure that such an interface names counts other bytes.
        let wrapping = RecordedInterface { shaper_bps: Some(1), ..kind("t0", tunnel) };
        let ceiling = of(&record(wrapping, kind("b-a", "veth")), Direction::Up);
        assert_eq!((ceiling.value, ceiling.share), (None, None));
        let unknown = ceiling.unknown.join("; ");
        for part in
            [&format!("under t0 ({tunnel})"), "encapsulation", "b-a (veth) does not report one"]
        {
            assert!(unknown.contains(part), "{unknown}");
        }
    }
    // The other end's link bounds the path all the same, and the unknown is still told.
    let ceiling = of(&record(kind("wg0", "wireguard"), eth(1_000_000_000)), Direction::Up);
    close(ceiling.value, 941_482_444.7);
    assert_eq!(ceiling.unknown.len(), 1);
}

#[test]
fn loopback_has_no_link_and_says_so() {
    let ceiling = of(&record(kind("lo", "loopback"), kind("lo", "loopback")), Direction::Up);
    assert_eq!((ceiling.value, ceiling.unknown.len()), (None, 0));
    assert!(ceiling.no_link.is_some_and(|why| why.contains("lo is loopback")));
    // With a shaper it has one.
    let shaped = RecordedInterface { shaper_bps: Some(1_514_000), ..kind("lo", "loopback") };
    let ceiling = of(&record(shaped.clone(), shaped), Direction::Up);
    close(ceiling.value, 1_448_000.0);
}

#[test]
fn an_unknown_rate_is_named_and_no_share_is_made_up() {
    let ceiling = of(&record(kind("a-b", "veth"), kind("b-a", "veth")), Direction::Up);
    assert_eq!((ceiling.value, ceiling.share), (None, None));
    assert_eq!(ceiling.unknown, ["the link's rate: a-b (veth) and b-a (veth) do not report one"]);
}

#[test]
fn segments_below_the_mtu_stand_beside_it() {
    let mut record = record(eth(1_000_000_000), eth(1_000_000_000));
    let full = of(&record, Direction::Up);
    assert_eq!(
        full.find_input("packet_bytes").map(|it| it.source.as_str()),
        Some(
            "the MTU of the \
        sender's route"
        )
    );
    assert_eq!(full.find_input("mtu_bytes"), None);
    record.flows[0] = flow(Direction::Up, 988);
    let small = of(&record, Direction::Up);
    // 988 + 52 = 1040 bytes of IP, 1078 on the wire.
    close(small.value, 1e9 * 988.0 / 1078.0);
    assert_eq!(small.find_input("packet_bytes").map(|it| it.value), Some(1040.0));
    assert_eq!(small.find_input("mtu_bytes").map(|it| it.value), Some(1500.0));
}

#[test]
fn without_the_senders_account_the_segment_is_what_is_missing() {
    let mut record = record(eth(1_000_000_000), eth(1_000_000_000));
    record.flows[0].sender = None;
    let ceiling = of(&record, Direction::Up);
    assert_eq!(ceiling.value, None);
    assert_eq!(ceiling.unknown, ["the sender's segment size"]);
    assert_eq!(ceiling.find_input("link_rate_bps").map(|it| it.value), Some(1e9));
}

#[test]
fn what_the_user_knows_of_the_path_is_its_ceiling_and_says_so() {
    let told = |link: Option<&str>, capacity: Option<u64>, end: RecordedInterface| {
        let mut record = record(end.clone(), end);
        let known = KnownPath {
            link: link.map(str::to_owned),
            capacity_bps: capacity.map(BitRate::from_bits_per_sec),
            source: "--link".to_owned(),
        };
        let Plan::Tcp(plan) = &mut record.plan else { panic!("made above") };
        plan.server.known = Some(known);
        of(&record, Direction::Up)
    };
    let veth = || kind("a-b", "veth");
    // 1448 of 1538 bytes; AAL5 with LLC/SNAP: 1500 + 16 bytes in 32 cells of 155.52 x 26/27 Mbit/s.
    let gigabit = told(Some("1g"), None, veth());
    close(gigabit.value, 941_482_444.7);
    assert_eq!(gigabit.inputs[0].source, "1g, as told by --link");
    assert!(gigabit.unknown.is_empty(), "{:?}", gigabit.unknown);
    // The frame is without preamble and gap: 1518 of 1538.
    let frame = gigabit.layers.iter().find(|at| at.layer == HeaderLayer::Frame);
    close(frame.map(|at| at.bps), 1e9 * 1518.0 / 1538.0);
    close(told(Some("oc3-atm"), None, veth()).value, 149.76e6 * 1448.0 / (32.0 * 53.0));
    // IP packets: 1448 of 1500 bytes, and nothing is said of frames.
    let capacity = told(None, Some(100_000_000), veth());
    close(capacity.value, 100e6 * 1448.0 / 1500.0);
    assert_eq!(capacity.layers.iter().map(|at| at.layer).max(), Some(HeaderLayer::Ip));
    // The slower of what the card and the user tell; loopback has what the user says.
    close(told(Some("10g"), None, eth(1_000_000_000)).value, 941_482_444.7);
    close(told(Some("100m"), None, eth(1_000_000_000)).value, 94_148_244.47);
    close(told(Some("1g"), None, kind("lo", "loopback")).value, 941_482_444.7);
    close(told(Some("1g"), None, kind("wg0", "wireguard")).value, 941_482_444.7);
}

#[test]
fn an_emulated_path_tells_the_rate_that_its_devices_do_not() {
    let mut record = record(kind("eth0", "tun"), kind("eth0", "tun"));
    let way = |backward, direction| PathDirection {
        backward,
        direction: Some(direction),
        ..PathDirection::default()
    };
    record.paths = vec![EmulatedPath {
        name: "b eth0 - a eth0".to_owned(),
        plan: PathPlan {
            link: Some("oc12-atm".to_owned()),
            forward: Some(Box::new(PathPlan {
                rate: Some("1 Gbit/s".to_owned()),
                ..PathPlan::default()
            })),
            ..PathPlan::default()
        },
        directions: vec![way(false, Direction::Down), way(true, Direction::Up)],
        ..EmulatedPath::default()
    }];
    // 1500 + 16 bytes in 32 cells; 149.76 Mbit/s x 4 of cells.
    let up = of(&record, Direction::Up);
    assert_close(up.value, 599.04e6 * 1448.0 / (32.0 * 53.0));
    assert_eq!(up.unknown, [] as [&str; 0]);
    let source = &up.find_input("link_rate_bps").expect("it is known").source;
    assert_eq!(source, "laboratory link b eth0 - a eth0, oc12 aal5-llcsnap");
    let down = of(&record, Direction::Down);
    assert_close(down.value, 1e9 * 1448.0 / 1538.0);
    // What explains does not read the plan: the devices tell no rate, and the share goes too.
    replace_ceilings(&mut record, Sight::Ends);
    let blind = record.ceiling.as_ref().expect("of the first direction");
    assert_eq!((blind.value, blind.share), (None, None));
    assert!(blind.unknown[0].contains("under eth0 (tun)"), "{:?}", blind.unknown);
    assert_eq!(record.paths.len(), 1, "what the path did is still told");
    replace_ceilings(&mut record, Sight::Plans);
    assert_eq!(record.ceiling, Some(up));
}

#[track_caller]
fn assert_close(value: Option<f64>, expected: f64) {
    let value = value.expect("a ceiling");
    assert!((value / expected - 1.0).abs() < 1e-6, "{value} and not {expected}");
}
