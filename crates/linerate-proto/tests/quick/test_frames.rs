//! Templates of test frames: lengths, checksums, flows and refusals. Every frame is judged by
//! `intact::check`, which shares no code with what builds them; `tcpdump` judges the same in
//! `test_frames_tcpdump.rs`.

use linerate_core::device::{FrameTemplate, Signature};
use linerate_core::record::BenchProtocol;
use linerate_core::units::FrameLen;
use linerate_proto::test_frame::{
    AddressRule, Ends, Field, Flows, IPV4_RFC2544, Mac, PORTS_RFC4814, Tag, Tags, TestFrame,
    TestFrameContent, TestFrameProtocol, Vary, fill_frame,
};
use proptest::prelude::*;

use crate::intact::check;

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
const TESTER: Mac = Mac([2, 0, 0, 0, 0, 0x20]);
const SINGLE: Tags = Tags::Single(Tag { id: 7, priority: 3, drop_eligible: false });
const DOUBLE: Tags = Tags::Double { outer: Tag::from_id(100), inner: Tag::from_id(7) };

fn len(bytes: u32) -> FrameLen {
    FrameLen::from_bytes(bytes).expect("a frame length")
}

fn frame(protocol: TestFrameProtocol, bytes: u32) -> TestFrame {
    TestFrame::new(len(bytes), ROUTER, TESTER, TestFrameContent::from_protocol(protocol))
}

fn template(frame: &TestFrame) -> FrameTemplate {
    frame.template().expect("a template")
}

fn signature(sequence: u64) -> Signature {
    Signature { trial: 0xdead_beef, stream: 3, sequence, stamp: 0x1234_5678 }
}

/// Shortest lengths with FCS: headers, 2 for the balance where a transport checksum is, 16, 4.
///
/// IPv4/UDP 14+20+8+2+16+4 = 64, IPv6/UDP 14+40+8+22 = 84, IPv4/TCP 14+20+20+22 = 76, IPv6/TCP
/// 14+40+20+22 = 96, DECnet 14+2+21+7+16+4 = 64, AppleTalk 14+8+13+16+4 = 55, IPX 14+30+16+4 = 64.
const SHORTEST: [(TestFrameProtocol, u32); 9] = [
    (TestFrameProtocol::Ipv4Udp, 64),
    (TestFrameProtocol::Ipv6Udp, 84),
    (TestFrameProtocol::Ipv4Tcp, 76),
    (TestFrameProtocol::Ipv6Tcp, 96),
    (TestFrameProtocol::Ethernet, 64),
    (TestFrameProtocol::DecNet, 64),
    (TestFrameProtocol::AppleTalk, 64),
    (TestFrameProtocol::IpxRaw, 64),
    (TestFrameProtocol::Ipx, 64),
];

#[test]
fn the_shortest_frames_are_as_summed_up_by_hand() {
    for (protocol, shortest) in SHORTEST {
        for (tags, more) in [(Tags::None, 0), (SINGLE, 4), (DOUBLE, 8)] {
            assert_eq!(TestFrame::shortest_bytes(protocol, tags), shortest + more, "{protocol:?}");
            let frame = TestFrame { tags, ..frame(protocol, shortest + more) };
            assert_eq!(template(&frame).bytes.len() as u32, shortest + more - 4);
        }
    }
}

#[test]
fn a_short_frame_is_refused_with_the_shortest_length() {
    for (protocol, shortest) in SHORTEST {
        let frame = TestFrame { tags: SINGLE, ..frame(protocol, shortest.max(64)) };
        let error = frame.template().expect_err("too short").to_string();
        assert!(error.contains(&format!("the shortest has {}", shortest + 4)), "{error}");
    }
}

#[test]
fn a_long_frame_is_refused_where_the_protocol_ends() {
    // DDP: 14 + 8 + 599 + 4. A length field: 14 + 1500 + 4.
    for (protocol, longest) in [
        (TestFrameProtocol::AppleTalk, 625),
        (TestFrameProtocol::IpxRaw, 1518),
        (TestFrameProtocol::DecNet, 1518),
    ] {
        template(&frame(protocol, longest));
        let error = frame(protocol, longest + 1).template().expect_err("too long").to_string();
        assert!(error.contains(&format!("the longest has {longest}")), "{error}");
    }
}

#[test]
fn every_protocol_length_and_tag_holds_together() {
    for (protocol, shortest) in SHORTEST {
        for tags in [Tags::None, SINGLE, DOUBLE] {
            let lengths = (shortest + 8..700).chain([1514, 1518, 2112, 4096, 9000, 9216, 9242]);
            for bytes in lengths.filter(|it| *it <= TestFrame::longest_bytes(protocol, tags)) {
                let frame = TestFrame { tags, ..frame(protocol, bytes) };
                let template = template(&frame);
                assert_eq!(template.bytes.len() as u32, bytes - 4);
                let zeros = check(&template.bytes).expect("signature of zeros");
                assert_eq!((zeros.protocol, zeros.tags), (protocol, tags));
                let filled = check(&fill_frame(&template, signature(77))).expect("a signature");
                assert_eq!(filled.signature, signature(77));
                assert_eq!(filled.macs, Ends { source: TESTER, destination: ROUTER });
            }
        }
    }
}

#[test]
fn a_frame_of_64_bytes_is_laid_out_as_the_standards_say() {
    let template = template(&frame(TestFrameProtocol::Ipv4Udp, 64));
    // 14 + 20 + 8 + 2 + 16 = 60. Header sum: 4500 + 002e + 0000 + 4000 + 0a11 + c612 + 0102 + c613
    // + 4102 = 25d68 -> 5d6a, complement a295. UDP: c612 + 0102 + c613 + 4102 + 0011 + 001a + c020
    // + 0007 + 001a = 28e95 -> 8e97, complement 7168.
    let mut wanted = vec![2, 0, 0, 0, 0, 0x10, 2, 0, 0, 0, 0, 0x20, 8, 0];
    wanted.extend([0x45, 0, 0, 46, 0, 0, 0x40, 0, 10, 17, 0xa2, 0x95]);
    wanted.extend([198, 18, 1, 2, 198, 19, 65, 2]);
    wanted.extend([0xc0, 0x20, 0, 7, 0, 26, 0x71, 0x68]);
    wanted.extend([0; 18]);
    assert_eq!(template.bytes, wanted);
    assert_eq!((template.signature_at(), template.balance_at), (44, Some(42)));
}

#[test]
fn a_frame_of_odd_length_has_a_byte_between_balance_and_signature() {
    let template = template(&frame(TestFrameProtocol::Ipv4Udp, 65));
    // 14 + 20 + 8 + 2 + 1 + 16 = 61.
    assert_eq!((template.signature_at(), template.balance_at), (45, Some(42)));
    assert!(check(&fill_frame(&template, signature(0x01_0203_0405))).is_ok());
}

#[test]
fn dscp_is_in_its_six_bits() {
    for protocol in [TestFrameProtocol::Ipv4Udp, TestFrameProtocol::Ipv6Tcp] {
        let mut frame = frame(protocol, 128);
        match &mut frame.content {
            TestFrameContent::Ipv4(flow) => flow.dscp = 46,
            TestFrameContent::Ipv6(flow) => flow.dscp = 46,
            _ => unreachable!("IP alone"),
        }
        let bytes = template(&frame).bytes;
        assert_eq!(check(&bytes).expect("intact").dscp, Some(46));
        // 46 is 101110: 0xb8 in the byte of IPv4, 0x6b 0x80 behind version 6.
        let head = [bytes[14], bytes[15]];
        assert_eq!(
            head,
            if protocol == TestFrameProtocol::Ipv4Udp { [0x45, 0xb8] } else { [0x6b, 0x80] }
        );
    }
}

#[test]
fn addresses_of_others_are_refused_unless_allowed() {
    let mut frame = frame(TestFrameProtocol::Ipv4Udp, 64);
    let TestFrameContent::Ipv4(flow) = &mut frame.content else { unreachable!("IPv4") };
    flow.ends.destination = [192, 0, 2, 1].into();
    let error = frame.template().expect_err("not a test network").to_string();
    assert!(error.starts_with("192.0.2.1 is not of a test network"), "{error}");
    frame.addresses = AddressRule::Any;
    assert!(check(&template(&frame).bytes).is_ok());
}

#[test]
fn flows_beyond_their_fields_are_refused() {
    let vary = |field, count| Vary { field, count };
    let flows = |count, vary: &[Vary]| Flows { count, vary: vary.to_vec(), shuffled: false };
    let source_ports = [vary(Field::SourcePort, 64_512)];
    for (protocol, flows, says) in [
        (TestFrameProtocol::Ipv4Udp, flows(0, &[]), "from 1 to 1000000"),
        (TestFrameProtocol::Ipv4Udp, flows(1_000_001, &[]), "from 1 to 1000000"),
        (TestFrameProtocol::Ipv4Udp, flows(2, &[]), "have 1 together"),
        (
            TestFrameProtocol::Ipv4Udp,
            flows(7, &[vary(Field::SourcePort, 2), vary(Field::SourceMac, 3)]),
            "have 6",
        ),
        (TestFrameProtocol::Ipv4Udp, flows(64_512, &source_ports), "49184 to 113695"),
        (
            TestFrameProtocol::Ethernet,
            flows(2, &[vary(Field::SourcePort, 2)]),
            "ethernet has no source ports",
        ),
        (
            TestFrameProtocol::DecNet,
            flows(2, &[vary(Field::SourceAddress, 2)]),
            "no source addresses",
        ),
        // 198.18.1.2 to 198.19.255.255 are 131,072 - 258 = 130,814 addresses.
        (
            TestFrameProtocol::Ipv4Tcp,
            flows(130_815, &[vary(Field::SourceAddress, 130_815)]),
            "beyond their range",
        ),
        (
            TestFrameProtocol::Ipv4Udp,
            flows(4, &[vary(Field::SourceMac, 2), vary(Field::SourceMac, 2)]),
            "twice",
        ),
    ] {
        let frame = TestFrame { flows, ..frame(protocol, 128) };
        let error = frame.template().expect_err(says).to_string();
        assert!(error.contains(says) && !error.contains('\n'), "{error}");
    }
}

#[test]
fn a_million_flows_are_all_different() {
    let mut frame = frame(TestFrameProtocol::Ipv4Udp, 64);
    frame.flows = Flows::spread(1_000_000, &[Field::SourcePort, Field::DestinationAddress], false);
    let TestFrameContent::Ipv4(flow) = &mut frame.content else { unreachable!("IPv4") };
    flow.ports = frame.flows.first_ports(flow.ports);
    assert_eq!(flow.ports, Ends { source: PORTS_RFC4814.source, destination: 7 });
    let template = template(&frame);
    assert_eq!(template.varying.iter().map(|it| it.count).collect::<Vec<_>>(), [1000, 1000]);
    let values = |flow| {
        template.varying.iter().fold(0_u64, |all, it| all << 32 | u64::from(it.value_in_flow(flow)))
    };
    let mut all: Vec<u64> = (0..1_000_000).map(values).collect();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 1_000_000);
}

#[test]
fn flow_n_has_the_nth_value_of_each_field() {
    let mut frame = frame(TestFrameProtocol::Ipv4Udp, 64);
    let vary = |field, count| Vary { field, count };
    frame.flows.count = 6;
    frame.flows.vary = vec![vary(Field::DestinationAddress, 3), vary(Field::SourcePort, 2)];
    let template = template(&frame);
    let seen = |sequence| {
        let checked = check(&fill_frame(&template, signature(sequence))).expect("intact");
        let ends = checked.addresses.expect("IP");
        (ends.destination.to_string(), checked.ports.expect("ports").source)
    };
    // Addresses first, then the port moves on.
    for (sequence, address, port) in [
        (0, 2, 49_184),
        (1, 3, 49_184),
        (2, 4, 49_184),
        (3, 2, 49_185),
        (5, 4, 49_185),
        (6, 2, 49_184),
    ] {
        assert_eq!(seen(sequence), (format!("198.19.65.{address}"), port), "frame {sequence}");
    }
}

#[test]
fn the_way_back_exchanges_the_ends() {
    let TestFrameContent::Ipv4(flow) =
        TestFrameContent::from_protocol(TestFrameProtocol::Ipv4Udp).reversed()
    else {
        unreachable!("IPv4")
    };
    assert_eq!(
        flow.ends,
        Ends { source: IPV4_RFC2544.destination, destination: IPV4_RFC2544.source }
    );
    assert_eq!(flow.ports, Ends { source: 7, destination: 0xc020 });
}

#[test]
fn names_are_read_back() {
    for protocol in TestFrameProtocol::ALL {
        assert_eq!(TestFrameProtocol::from_name(protocol.name()), Some(protocol));
        assert_eq!(TestFrameContent::from_protocol(protocol).protocol(), protocol);
    }
}

#[test]
fn each_flipped_bit_under_a_checksum_is_seen() {
    let good = fill_frame(&template(&frame(TestFrameProtocol::Ipv4Udp, 64)), signature(5));
    for bit in 14 * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(check(&bad).is_err(), "bit {bit}");
    }
}

#[test]
fn a_udp_checksum_is_never_0() {
    let mut sums = Vec::new();
    for port in 0..=u16::MAX {
        let mut frame = frame(TestFrameProtocol::Ipv4Udp, 64);
        let TestFrameContent::Ipv4(flow) = &mut frame.content else { unreachable!("IPv4") };
        flow.ports.source = port;
        let bytes = template(&frame).bytes;
        assert!(check(&bytes).is_ok(), "port {port}");
        sums.push(u16::from_be_bytes([bytes[40], bytes[41]]));
    }
    // One port after the other takes one from the sum: some come to 0, which is sent as ffff.
    assert!(!sums.contains(&0) && sums.contains(&0xffff));
}

fn tags() -> impl Strategy<Value = Tags> {
    let tag = (0_u16..4095, 0_u8..8, any::<bool>());
    let tag = tag.prop_map(|(id, priority, drop_eligible)| Tag { id, priority, drop_eligible });
    prop_oneof![
        Just(Tags::None),
        tag.clone().prop_map(Tags::Single),
        (tag.clone(), tag).prop_map(|(outer, inner)| Tags::Double { outer, inner }),
    ]
}

fn fields() -> impl Strategy<Value = Vec<Field>> {
    let all = vec![
        Field::SourceMac,
        Field::DestinationMac,
        Field::SourceAddress,
        Field::DestinationAddress,
        Field::SourcePort,
        Field::DestinationPort,
    ];
    prop::sample::subsequence(all, 1..=4).prop_shuffle()
}

#[test]
fn plans_know_the_shortest_frame_of_every_protocol() {
    // 14 of Ethernet, headers, 2 of balance under a checksum, 16 of signature, 4 of FCS.
    for (protocol, shortest) in [
        (BenchProtocol::Udp4, 64),
        (BenchProtocol::Udp6, 84),
        (BenchProtocol::Tcp4, 76),
        (BenchProtocol::Tcp6, 96),
        (BenchProtocol::Ethernet, 64),
        (BenchProtocol::Decnet, 64),
        (BenchProtocol::Appletalk, 64),
        (BenchProtocol::Ipx, 64),
    ] {
        for (tags, number) in [(Tags::None, 0), (SINGLE, 1), (DOUBLE, 2)] {
            let bytes = protocol.shortest_frame_bytes(number);
            assert_eq!(bytes, shortest + 4 * number as u32, "{protocol}");
            assert_eq!(bytes, TestFrame::shortest_bytes(protocol.into(), tags), "{protocol}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200,
        failure_persistence: None,
        ..Default::default()
    })]

    /// Any numbers, stamps and flows leave lengths and checksums right.
    #[test]
    fn any_frame_of_any_flow_holds_together(
        protocol in prop::sample::select(TestFrameProtocol::ALL[..4].to_vec()),
        bytes in 104_u32..9243,
        tags in tags(),
        fields in fields(),
        count in 1_u32..=20_000,
        shuffled in any::<bool>(),
        signatures in prop::collection::vec(
            (any::<u32>(), any::<u8>(), 0_u64..1 << 56, any::<u32>()), 1..20),
    ) {
        let mut frame = TestFrame { tags, ..frame(protocol, bytes) };
        frame.flows = Flows::spread(count, &fields, shuffled);
        match &mut frame.content {
            TestFrameContent::Ipv4(flow) => flow.ports = frame.flows.first_ports(flow.ports),
            TestFrameContent::Ipv6(flow) => flow.ports = frame.flows.first_ports(flow.ports),
            _ => unreachable!("IP alone"),
        }
        let template = template(&frame);
        for (trial, stream, sequence, stamp) in signatures {
            let signature = Signature { trial, stream, sequence, stamp };
            let checked = check(&fill_frame(&template, signature)).map_err(TestCaseError::fail)?;
            prop_assert_eq!(checked.signature, signature);
        }
    }
}
