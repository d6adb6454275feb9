//! Stacks against hand sums, and what is refused.
//!
//! Left out: what each layer's own file tests. Expected rates are shares of bytes, named beside
//! them.

use proptest::prelude::*;

use super::*;
use crate::units::BitRate;

const V4: SegmentHeaders = SegmentHeaders { family: IpFamily::V4, transport: Transport::Tcp };
const V4_TS: SegmentHeaders = SegmentHeaders { transport: Transport::TcpWithTimestamps, ..V4 };
const V4_UDP: SegmentHeaders = SegmentHeaders { transport: Transport::Udp, ..V4 };
const V6_TS: SegmentHeaders = SegmentHeaders { family: IpFamily::V6, ..V4_TS };

/// A plan from `link carrier encapsulation…`; `-` is the link's own carrier.
fn plan(text: &str, mtu_bytes: u32, segment: SegmentHeaders) -> StackPlan {
    let mut words = text.split_whitespace();
    let link: LinkTechnology = words.next().expect("a link").parse().expect("a link");
    let carrier = match words.next() {
        None | Some("-") => link.default_carrier(),
        Some(carrier) => carrier.parse().expect("a carrier"),
    };
    let encapsulations = words.map(|word| word.parse().expect("an encapsulation")).collect();
    StackPlan { link, carrier, encapsulations, mtu_bytes, segment }
}

fn stacked(text: &str, mtu_bytes: u32, segment: SegmentHeaders) -> LayerRates {
    layer_rates(&plan(text, mtu_bytes, segment)).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn refused(text: &str, mtu_bytes: u32, segment: SegmentHeaders) -> String {
    layer_rates(&plan(text, mtu_bytes, segment)).expect_err(text).to_string()
}

/// `got` is within 1e-4 of `want`, or within half of its last printed digit.
fn close(what: &str, got: f64, want: f64) {
    assert!((got - want).abs() <= want * 1e-5 + 0.000_51, "{what}: got {got}, want {want}");
}

/// Packets per second, Mbit/s of IP, of TCP without and with timestamps.
fn check(text: &str, mtu: u32, packets: f64, ip: f64, tcp: Option<f64>, timestamps: Option<f64>) {
    let plain = stacked(text, mtu, V4);
    assert!((plain.packets_per_s - packets).abs() < 0.06, "{text} {}", plain.packets_per_s);
    close(text, plain.ip_bps / 1e6, ip);
    if let Some(want) = tcp {
        close(text, plain.payload_bps / 1e6, want);
    }
    if let Some(want) = timestamps {
        close(text, stacked(text, mtu, V4_TS).payload_bps / 1e6, want);
    }
}

#[test]
fn cells_on_sonet_come_out_by_hand() {
    // 149.76 and 599.04 Mbit/s over 8 × 1696 (32 cells) and 8 × 10176 (192 cells).
    let aal5 = "aal5-llcsnap";
    check(&format!("oc3 {aal5}"), 1500, 11_037.74, 132.453, Some(128.921), Some(127.861));
    check(&format!("stm1 {aal5}"), 9180, 1_839.62, 135.102, Some(134.513), Some(134.337));
    check(&format!("oc12 {aal5}"), 1500, 44_150.94, 529.811, Some(515.683), Some(511.445));
    check(&format!("oc12 {aal5}"), 9180, 7_358.49, 540.408, Some(538.053), Some(537.346));
}

#[test]
fn packets_on_sonet_come_out_by_hand() {
    // 599.04, 2396.16 and 9584.64 Mbit/s over 8 × (MTU + 9).
    check("oc12 pos", 1500, 49_622.3, 595.467, None, Some(574.824));
    check("oc48", 4470, 66_872.1, 2_391.345, None, Some(2_363.526));
    check("oc192", 1500, 793_956.3, 9_527.475, None, Some(9_197.189));
}

#[test]
fn the_descent_of_the_oc12_study_has_a_row_for_each_layer() {
    let stack = stacked("oc12 aal5-llcsnap", 9180, V4);
    let rows: Vec<(&str, &str)> =
        stack.layers.iter().map(|layer| (layer.name.as_str(), layer.rule.as_str())).collect();
    let want = [
        ("OC-12c (STM-4)", "1080 columns of 9 bytes, 8000 times a second"),
        (
            "SONET payload",
            "40 of every 1080 columns: section and line overhead 36, path overhead 1, fixed stuff 3",
        ),
        ("cell payload", "5 of every 53 bytes: cell header"),
        ("AAL5 payload", "28 of 9216 bytes: trailer 8, padding 20 to fill 192 cells"),
        ("IP packets", "8 of 9188 bytes: LLC 3 and SNAP 5"),
        ("TCP payload", "40 of 9180 bytes: IPv4 20, TCP 20"),
    ];
    assert_eq!(rows, want);
    // 622.08; × 26/27; × 48/53; × 9188/9216; × 9180/9188; × 9140/9180.
    let mbps = [622.08, 599.04, 542.527, 540.879, 540.408, 538.053];
    for (layer, want) in stack.layers.iter().zip(mbps) {
        close(&layer.name, layer.bps / 1e6, want);
    }
    close("bytes in cells", stack.layers[1].bytes_per_packet, 10_176.0);
}

#[test]
fn older_lines_come_out_by_hand() {
    let ip = |text| stacked(text, 1500, V4).ip_bps / 1e6;
    // HDLC takes 7 bytes: 1.536, 1.984, 34.0995 and 44.209694 × 1500/1507.
    close("ds1", ip("ds1"), 1.528_865);
    close("e1", ip("e1"), 1.974_784);
    close("e3", ip("e3"), 33.941_108);
    close("ds3", ip("ds3"), 44.004_341);
    // Cells: × 1500/1696; DS3 44.209694, with the convergence protocol 40.704; E3 33.92, E1 1.92.
    close("ds3 cells", ip("ds3 aal5-llcsnap"), 39.100_555);
    close("ds3 plcp", ip("ds3-plcp aal5-llcsnap"), 36.0);
    close("e3 cells", ip("e3 aal5-llcsnap"), 30.0);
    close("e1 cells", ip("e1 aal5-llcsnap"), 1.698_113);
}

#[test]
fn the_wan_phy_frames_at_its_own_rate() {
    // 9,584.64 × 64/66 = 9,294.196 Mbit/s with preamble and gap, × 1500/1538.
    let stack = stacked("10gbase-w", 1500, V4);
    let names: Vec<&str> = stack.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(names[1..4], ["SONET payload", "Ethernet with preamble and gap", "Ethernet frames"]);
    close("MAC", stack.layers[2].bps / 1e6, 9_294.196);
    close("IP", stack.ip_bps / 1e6, 9_064.560);
}

#[test]
fn ethernet_gives_the_shares_of_its_framing() {
    // 1448, 1460, 1428 and 1472 of 1538.
    for (segment, want) in [(V4_TS, 941.482), (V4, 949.285), (V6_TS, 928.479), (V4_UDP, 957.087)] {
        close("1g", stacked("1g", 1500, segment).payload_bps / 1e6, want);
    }
    close("800g", stacked("800g", 9000, V4_TS).payload_bps / 1e6, 792_033.6);
    let rules: Vec<String> =
        stacked("1g", 1500, V4_TS).layers.into_iter().map(|layer| layer.rule).collect();
    assert_eq!(
        rules,
        [
            "the rate counts preamble and gap",
            "20 of 1538 bytes: preamble 8, gap 12",
            "18 of 1518 bytes: header 14, check sequence 4",
            "52 of 1500 bytes: IPv4 20, TCP 20, timestamps 12",
        ]
    );
}

#[test]
fn encapsulations_at_one_gigabit_come_out_by_hand() {
    let table = [
        ("vlan", 1500, 1500, 939.040),                // 1448/1542
        ("qinq", 1500, 1500, 936.611),                // 1448/1546
        ("vlan vlan", 1500, 1500, 936.611),           //
        ("mpls:2", 1500, 1500, 936.611),              //
        ("pppoe-rfc4638", 1500, 1500, 936.611),       //
        ("pppoe", 1500, 1492, 936.281),               // 1440/1538
        ("ipip", 1500, 1480, 928.479),                // 1428/1538
        ("gre", 1500, 1476, 925.878),                 // 1424/1538
        ("gre-key", 1500, 1472, 923.277),             // 1420/1538
        ("vxlan", 1500, 1450, 908.973),               // 1398/1538
        ("geneve", 1500, 1450, 908.973),              //
        ("vxlan", 1550, 1500, 911.839),               // 1448/1588
        ("wireguard mtu:1420", 1500, 1420, 901.186),  // 1368/1518
        ("wireguard", 1500, 1440, 902.471),           // 1388/1538
        ("esp-gcm", 1500, 1446, 906.372),             // 1394/1538
        ("esp-cbc-sha256", 1500, 1438, 901.170),      // 1386/1538
        ("esp-gcm-natt", 1500, 1438, 901.170),        // 20 + 8 + 16 + 1440 + 16 = 1500
        ("esp-cbc-sha256-natt", 1500, 1422, 895.425), // 1370/1530: 1492 outside
    ];
    for (text, mtu, inner, want) in table {
        let stack = stacked(&format!("1g - {text}"), mtu, V4_TS);
        assert_eq!(stack.payload_bytes + 52, inner, "{text}");
        assert!((stack.payload_bps / 1e6 - want).abs() < want * 1e-4, "{text}");
    }
}

#[test]
fn the_shorter_check_of_sha1_leaves_four_bytes_of_the_mtu_empty() {
    // 1438 + 2 fill 90 blocks of 16: 20 + 8 + 16 + 1440 + 12 = 1496, 1534 on the wire; one block
    // more would make 1512.
    let stack = stacked("1g - esp-cbc-sha1", 1500, V4_TS);
    assert_eq!(stack.payload_bytes, 1386);
    close("wire", stack.layers[0].bytes_per_packet, 1534.0);
    close("payload", stack.payload_bps / 1e6, 903.520); // 1386/1534
}

#[test]
fn quic_takes_its_packet_from_the_datagram() {
    let stack = stacked("1g - quic", 1500, V4_UDP);
    assert_eq!(stack.payload_bytes, 1435);
    close("quic", stack.payload_bps / 1e6, 933.030); // 1435/1538
    assert_eq!(
        stack.layers.last().expect("rows").rule,
        "37 of 1472 bytes: short header 11, STREAM 10, tag 16"
    );
}

#[test]
fn access_lines_come_out_by_hand() {
    let share = |text: &str, mtu| stacked(text, mtu, V4_TS).payload_bps / 1e8;
    let ip = |text: &str, mtu| stacked(text, mtu, V4_TS).ip_bps / 1e8;
    let table = [
        ("docsis", share("docsis:100m", 1500), 0.953_89), // 1448/1518
        ("bridged", share("vdsl2:100m", 1500), 0.936_74), // 1448/1522 × 64/65
        ("pppoe", share("vdsl2:100m ptm-pppoe", 1500), 0.931_57), // 1440/1522 × 64/65
        ("pppoe in cells", ip("adsl:100m pppoe-llcsnap", 1500), 0.879_72), // 1492/1696
        ("31 cells", ip("adsl:100m pppoa-vcmux", 1478), 1478.0 / 1643.0),
        ("32 cells", ip("adsl:100m pppoa-vcmux", 1500), 0.884_43), // 1500/1696
        ("ipoa", ip("adsl:100m ipoa-vcmux", 1480), 1480.0 / 1643.0), // 1488 is 31 cells
        ("bridged cells", ip("adsl:100m bridged-llcsnap", 1500), 0.884_43),
        ("shaped", share("shaped:100m", 1500), 1448.0 / 1514.0),
    ];
    for (what, got, want) in table {
        assert!(((got - want) / want).abs() < 1e-4, "{what}: got {got}, want {want}");
    }
}

#[test]
fn estimates_are_marked_and_nothing_else_is() {
    for (text, mtu) in [
        ("wifi:866.7m", 1500),
        ("wifi-legacy:54m", 1500),
        ("oc12 pos-stuffed", 1500),
        ("ds3 hdlc-stuffed", 1500),
    ] {
        let stack = stacked(text, mtu, V4);
        assert!(stack.estimate, "{text}");
        assert_eq!(stack.layers.iter().filter(|layer| layer.estimate).count(), 1, "{text}");
    }
    for known in LinkTechnology::NAMED {
        assert!(!stacked(known.name, 1500, V4).estimate, "{}", known.name);
    }
}

#[test]
fn stuffing_and_wifi_come_out_by_hand() {
    // 1509 + 1504/128 = 1520.75; 599.04 × 1500/1520.75.
    close("pos", stacked("oc12 pos-stuffed", 1500, V4).ip_bps / 1e6, 590.866);
    // 12,000 bits in 393.5 µs; and five eighths of the physical rate.
    close("802.11a", stacked("wifi-legacy:54m", 1500, V4).ip_bps / 1e6, 30.495_55);
    close("aggregated", stacked("wifi:866.7m", 1500, V4).ip_bps / 1e6, 541.6875);
}

#[test]
fn a_tunnel_may_carry_frames_with_tags_of_their_own() {
    // 1500 − 50 − 4 = 1446 inside, 1500 outside and an outer tag beyond it: 1542 on the wire.
    let stack = stacked("1g - vlan vxlan vlan", 1500, V4_TS);
    assert_eq!(stack.payload_bytes, 1446 - 52);
    close("wire", stack.layers[0].bytes_per_packet, 1542.0);
    let names: Vec<&str> = stack.layers.iter().map(|layer| layer.name.as_str()).collect();
    assert_eq!(
        names[2..],
        ["Ethernet payload", "inside 802.1Q tag", "inside VXLAN", "IP packets", "TCP payload"]
    );
}

#[test]
fn the_pppoe_of_a_carrier_stands_inside_of_the_tags() {
    // 1492 + 8 + 4 + 22 = 1526 before the code, 1526 × 65/64 on the line.
    let stack = stacked("vdsl2:50m ptm-pppoe vlan", 1500, V4);
    assert_eq!(stack.payload_bytes, 1452);
    close("line", stack.layers[0].bytes_per_packet, 1526.0 * 65.0 / 64.0);
    let rules: Vec<&str> = stack.layers.iter().map(|layer| layer.rule.as_str()).collect();
    assert_eq!(rules[4..6], ["4 of 1504 bytes: 802.1Q tag", "8 of 1500 bytes: PPPoE 6, PPP 2"]);
}

#[test]
fn short_frames_are_padded() {
    // 41 + 18 = 59, padded to 64, 84 on the wire; 1 byte of payload.
    let stack = stacked("1g", 41, V4);
    close("payload", stack.payload_bps / 1e6, 1000.0 / 84.0);
    assert_eq!(stack.layers[2].rule, "23 of 64 bytes: header 14, check sequence 4, padding 5");
}

#[test]
fn impossible_stacks_are_refused_in_one_line() {
    let cases = [
        (refused("0", 1500, V4), "the link's rate is 0"),
        (refused("1g", 40, V4), "an MTU of 40 bytes leaves no payload after 40 bytes of headers"),
        (refused("1g", 65_536, V4), "an MTU of 65536 bytes is above 65535, the longest IP packet"),
        (refused("1g - vlan vlan vlan", 1500, V4), "3 VLAN tags on one frame are more than 2"),
        (refused("1g - qinq qinq", 1500, V4), "4 VLAN tags on one frame are more than 2"),
        (
            refused("1g aal5-llcsnap", 1500, V4),
            "aal5-llcsnap does not run on 1g; the link's own is ethernet",
        ),
        (
            refused("oc12 - vlan", 1500, V4),
            "vlan needs an Ethernet frame right outside of it, and there is none",
        ),
        (
            refused("oc12 - pppoe", 1500, V4),
            "pppoe needs an Ethernet frame right outside of it, and there is none",
        ),
        (
            refused("1g - gre vlan", 1500, V4),
            "vlan needs an Ethernet frame right outside of it, and there is none",
        ),
        (
            refused("1g - vxlan", 49, V4),
            "vxlan does not fit into the 49 bytes that are left of the MTU",
        ),
        (
            refused("1g - vxlan", 90, V4),
            "an MTU of 40 bytes leaves no payload after 40 bytes of headers",
        ),
        (
            refused("1g - wireguard mtu:1500", 1500, V4),
            "mtu:1500 does not fit into the 1440 bytes that are left of the MTU",
        ),
        (
            refused("1g - quic", 1500, V4),
            "quic comes last and needs UDP: give it as the last encapsulation of a UDP flow",
        ),
        (
            refused("1g - quic", 65, V4_UDP),
            "quic does not fit into the 37 bytes that are left of the MTU",
        ),
        (
            refused("oc3 aal5-llcsnap", 65_528, V4),
            "aal5-llcsnap carries packets of at most 65527 bytes, and this one has 65528",
        ),
        (
            refused("wifi-legacy:11m", 1500, V4),
            "802.11a and g know 6, 9, 12, 18, 24, 36, 48 and 54 Mbit/s, and wifi-legacy:11m is none of them",
        ),
        (
            refused("wifi:1g", 9000, V4),
            "ethernet carries packets of at most 2296 bytes, and this one has 9000",
        ),
    ];
    for (got, want) in cases {
        assert_eq!(got, want);
    }
    let many = vec!["mpls"; 17].join(" ");
    assert_eq!(refused(&format!("1g - {many}"), 1500, V4), "17 encapsulations are more than 16");
    let zero = StackPlan {
        encapsulations: vec![Encapsulation::Mpls { labels: 0 }],
        ..plan("1g", 1500, V4)
    };
    assert!(layer_rates(&zero).is_err());
}

/// Links of every kind at a rate.
fn any_link(kind: usize, bps: u64) -> LinkTechnology {
    let rate = BitRate::from_bits_per_sec(bps);
    let made = [
        LinkTechnology::Ethernet,
        LinkTechnology::Docsis,
        LinkTechnology::Vdsl2,
        LinkTechnology::Adsl,
        LinkTechnology::Shaped,
        LinkTechnology::Wifi,
        LinkTechnology::WifiLegacy,
    ];
    match made.get(kind) {
        Some(of_rate) => of_rate(rate),
        None => LinkTechnology::NAMED[kind % LinkTechnology::NAMED.len()].link,
    }
}

proptest! {
    #[test]
    fn no_layer_has_more_than_the_one_before_it(
        kind in 0_usize..40, bps: u64, carrier in 0..Carrier::ALL.len(), mtu in 0_u32..70_000,
        wraps in proptest::collection::vec(0_usize..20, 0..5), v6: bool, transport in 0_usize..3,
    ) {
        let names = ["vlan", "qinq", "mpls", "mpls:3", "pppoe", "pppoe-rfc4638", "ipip", "gre",
            "gre-key", "vxlan", "geneve", "geneve:8", "wireguard", "esp-gcm", "esp-cbc-sha1",
            "esp-cbc-sha256-natt", "wireguard-v6", "mtu:1280", "quic", "quic:0"];
        let link = any_link(kind, bps);
        let carrier = Carrier::ALL[carrier];
        let carrier = if link.supports_carrier(carrier) { carrier } else { link.default_carrier() };
        let transports = [Transport::Tcp, Transport::TcpWithTimestamps, Transport::Udp];
        let plan = StackPlan {
            link,
            carrier,
            encapsulations: wraps.into_iter().map(|at| names[at].parse().expect("known")).collect(),
            mtu_bytes: mtu,
            segment: SegmentHeaders {
                family: if v6 { IpFamily::V6 } else { IpFamily::V4 },
                transport: transports[transport],
            },
        };
        if let Ok(stack) = layer_rates(&plan) {
            let rates: Vec<f64> = stack.layers.iter().map(|layer| layer.bps).collect();
            prop_assert!(rates.is_sorted_by(|above, below| above >= below), "{plan:?} {rates:?}");
            prop_assert_eq!(rates[0], link.bit_rate().bits_per_sec() as f64);
            prop_assert!(stack.payload_bps > 0.0 && stack.payload_bps <= stack.ip_bps);
            for layer in &stack.layers {
                let bps = stack.packets_per_s * 8.0 * layer.bytes_per_packet;
                prop_assert!((bps - layer.bps).abs() <= layer.bps * 1e-9);
                prop_assert!(!layer.rule.is_empty() && !layer.name.is_empty());
            }
        }
    }

    #[test]
    fn no_plan_panics(mtu: u32, bps: u64, labels: u8, options_bytes: u8, bytes: u32) {
        let outer = IpFamily::V6;
        let plan = StackPlan {
            encapsulations: vec![Encapsulation::Mpls { labels },
                Encapsulation::Geneve { outer, options_bytes }, Encapsulation::Mtu { bytes }],
            ..plan("1g", mtu, V4)
        };
        for kind in 0..40 {
            let _ = layer_rates(&StackPlan { link: any_link(kind, bps), ..plan.clone() });
        }
    }
}
