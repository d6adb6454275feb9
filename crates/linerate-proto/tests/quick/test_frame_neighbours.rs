//! What a port of the tester answers and sends by itself. Questions are those that Linux 6.18 sent
//! over a veth (`testdata/test_frame`), or laid out by hand after the standard.

use std::collections::HashSet;
use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use linerate_core::device::{ForeignFrames, Signature};
use linerate_core::time::MonoTime;
use linerate_core::units::FrameLen;
use linerate_proto::test_frame::{
    ANNOUNCEMENTS_MAX, AppleTalkAddress, DECNET_ALL_ROUTERS, DecNetAddress, Field, Flows,
    ForeignKind, IpxAddress, IpxFraming, IpxRouter, Mac, Neighbours, Stations, Tag, Tags,
    TestFrame, TestFrameContent, TestFrameProtocol, VirtualHostRange, aarp_probe, address_request,
    announced_mac,
};

use crate::intact::check;

const TESTER: Mac = Mac([2, 0, 0, 0, 0, 0xbb]);
const LINUX: Mac = Mac([2, 0, 0, 0, 0, 0xaa]);

fn recorded(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/test_frame");
    std::fs::read(folder.join(format!("{name}.bin"))).expect("recorded")
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

/// 198.18.1.2 to .11 and 2001:2:0:1::1 to ::a, each with a hardware address of its own.
fn hosts() -> Neighbours {
    let hosts =
        |first| VirtualHostRange { first: address(first), count: 10, mac: TESTER, own_macs: true };
    let hosts = vec![hosts("198.18.1.2"), hosts("2001:2:0:1::1")];
    Neighbours::new(Stations { hosts, ..Stations::default() })
}

#[test]
fn linux_is_told_where_198_18_1_2_is() {
    let reply = hosts().answer(&recorded("linux-arp-request")).expect("an answer");
    // RFC 826: reply, our pair, then theirs; padded to 60.
    let mut wanted = [LINUX.0, TESTER.0].concat();
    wanted.extend([8, 6, 0, 1, 8, 0, 6, 4, 0, 2]);
    wanted.extend([&TESTER.0[..], &[198, 18, 1, 2], &LINUX.0, &[198, 18, 1, 1]].concat());
    wanted.resize(60, 0);
    assert_eq!(reply, wanted);
    assert_eq!(announced_mac(&reply, address("198.18.1.2")), Some(TESTER));
    assert_eq!(announced_mac(&reply, address("198.18.1.3")), None);
}

#[test]
fn linux_is_told_where_2001_2_0_1_2_is() {
    // ::2 is the second host: ...:bc.
    let solicitation = recorded("linux-solicitation");
    let answer = hosts().answer(&solicitation).expect("an answer");
    assert_eq!(announced_mac(&answer, address("2001:2:0:1::2")), Some(TESTER.plus_offset(1)));
    assert_eq!(answer[..12], [LINUX.0, TESTER.plus_offset(1).0].concat());
    // Solicited and override (RFC 4861 §4.4).
    assert_eq!((answer[54], answer[58]), (136, 0x60));
    // The target is the source, and the asker the destination.
    assert_eq!((&answer[22..38], &answer[38..54]), (&solicitation[62..78], &solicitation[22..38]));
}

#[test]
fn an_address_is_defended_against_one_who_wants_it() {
    // Linux tries 2001:2:0:1::1: from ::, with a nonce (RFC 7527).
    let answer = hosts().answer(&recorded("linux-dad")).expect("an answer");
    assert_eq!(answer[..6], [0x33, 0x33, 0, 0, 0, 1]);
    // Not solicited: there is nobody to answer to (RFC 4861 §7.2.4).
    assert_eq!((answer[54], answer[58]), (136, 0x20));
}

#[test]
fn what_is_no_question_to_a_host_has_no_answer() {
    for name in [
        "linux-arp-reply",
        "linux-advertisement",
        "linux-mld-report",
        "linux-router-solicitation",
        "linux-spanning-tree",
    ] {
        assert_eq!(hosts().answer(&recorded(name)), None, "{name}");
    }
    // The address before the first host, and the one after the last.
    for (last, answered) in [(1, false), (2, true), (11, true), (12, false)] {
        let mut request = recorded("linux-arp-request");
        request[41] = last;
        assert_eq!(hosts().answer(&request).is_some(), answered, ".{last}");
    }
}

#[test]
fn a_damaged_solicitation_has_no_answer() {
    let good = recorded("linux-solicitation");
    // From the hop limit to the end every bit is under the checksum or checked itself; the traffic
    // class before it is not.
    for bit in 18 * 8..good.len() * 8 {
        let mut bad = good.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(hosts().answer(&bad), None, "bit {bit}");
    }
}

#[test]
fn an_answer_has_the_tags_of_the_question() {
    let mut tagged = recorded("linux-arp-request");
    tagged.splice(12..12, [0x81, 0, 0x60, 7]);
    let answer = hosts().answer(&tagged).expect("an answer");
    assert_eq!(answer[12..18], [0x81, 0, 0x60, 7, 8, 6]);
}

#[test]
fn linux_says_where_it_is() {
    assert_eq!(announced_mac(&recorded("linux-arp-reply"), address("198.18.1.1")), Some(LINUX));
    assert_eq!(
        announced_mac(&recorded("linux-advertisement"), address("2001:2:0:1::1")),
        Some(LINUX)
    );
    assert_eq!(announced_mac(&recorded("linux-solicitation"), address("2001:2:0:1::2")), None);
}

#[test]
fn the_tester_asks_as_linux_does() {
    // Linux's request of 198.18.1.1 for .2 has no padding.
    let asked = address_request(LINUX, address("198.18.1.1"), address("198.18.1.2"), Tags::None);
    assert_eq!(asked.expect("a question")[..42], recorded("linux-arp-request"));
    let (own, target) = (address("2001:2:0:1::1"), address("2001:2:0:1::2"));
    let asked = address_request(LINUX, own, target, Tags::None).expect("a question");
    assert_eq!(asked, recorded("linux-solicitation"));
    assert_eq!(address_request(LINUX, own, address("198.18.1.2"), Tags::None), None);
}

#[test]
fn foreign_frames_are_told_apart() {
    let mut counts = ForeignFrames::default();
    for name in [
        "linux-arp-request",
        "linux-arp-reply",
        "linux-mld-report",
        "linux-dad",
        "linux-solicitation",
        "linux-advertisement",
        "linux-router-solicitation",
        "linux-spanning-tree",
    ] {
        ForeignKind::from_frame(&recorded(name)).count_in(&mut counts);
    }
    let wanted = ForeignFrames {
        arp: 2,
        neighbour_discovery: 5,
        link_control: 1,
        ..ForeignFrames::default()
    };
    assert_eq!(counts, wanted);
    // LLDP to its nearest bridge, and a pause frame; a test frame is none of them.
    let to = |last: u8, kind: [u8; 2]| {
        [&[1, 0x80, 0xc2, 0, 0, last, 2, 0, 0, 0, 0, 1], &kind[..]].concat()
    };
    assert_eq!(ForeignKind::from_frame(&to(0x0e, [0x88, 0xcc])), ForeignKind::LinkControl);
    assert_eq!(ForeignKind::from_frame(&to(0x01, [0x88, 0x08])), ForeignKind::Pause);
    assert_eq!(ForeignKind::from_frame(&to(0x10, [0x88, 0xb5])), ForeignKind::Other);
    assert_eq!(ForeignKind::from_frame(&[]), ForeignKind::Other);
}

/// A router of IPX with two networks, a node of AppleTalk, one of DECnet.
fn bradner() -> Neighbours {
    Neighbours::new(Stations {
        decnet: vec![DecNetAddress { area: 1, node: 2 }],
        appletalk: vec![(TESTER, AppleTalkAddress { network: 19, node: 2 })],
        ipx: Some(IpxRouter {
            framing: IpxFraming::Raw8023,
            address: IpxAddress { network: 0x1912, node: TESTER },
            networks: vec![0x1a01, 0x1a02],
        }),
        ..Stations::default()
    })
}

/// AARP by hand: length 36, LLC, hardware 1, protocol 0x809b, lengths, function, two pairs.
fn aarp(function: u8, node: u8) -> Vec<u8> {
    let mut frame = [&[9, 0, 7, 0xff, 0xff, 0xff][..], &LINUX.0, &[0, 36]].concat();
    frame.extend([0xaa, 0xaa, 3, 0, 0, 0, 0x80, 0xf3, 0, 1, 0x80, 0x9b, 6, 4, 0, function]);
    frame.extend([&LINUX.0[..], &[0, 0, 19, 1], &[0; 6], &[0, 0, 19, node]].concat());
    frame.resize(60, 0);
    frame
}

#[test]
fn aarp_requests_and_probes_are_answered() {
    for function in [1, 3] {
        let answer = bradner().answer(&aarp(function, 2)).expect("an answer");
        assert_eq!(answer[..12], [LINUX.0, TESTER.0].concat());
        // Response, our pair, their pair.
        let wanted = [&[0, 2], &TESTER.0[..], &[0, 0, 19, 2], &LINUX.0, &[0, 0, 19, 1]].concat();
        assert_eq!(answer[28..50], wanted);
    }
    assert_eq!(bradner().answer(&aarp(2, 2)), None);
    assert_eq!(bradner().answer(&aarp(1, 3)), None);
    let probe = aarp_probe(LINUX, AppleTalkAddress { network: 19, node: 2 }, Tags::None);
    assert!(bradner().answer(&probe).is_some());
}

/// RIP request by hand, raw 802.3: header of 30, operation 1, one network with hops and ticks -1.
fn rip_request(network: u32) -> Vec<u8> {
    let mut frame = [&[0xff; 6], &LINUX.0[..], &[0, 40]].concat();
    frame.extend([0xff, 0xff, 0, 40, 0, 1, 0, 0, 0x19, 0x12]);
    frame.extend([&[0xff; 6][..], &[4, 0x53], &[0, 0, 0x19, 0x12], &LINUX.0, &[0x40, 1]].concat());
    frame.extend([&[0, 1][..], &network.to_be_bytes(), &[0xff; 4]].concat());
    frame.resize(60, 0);
    frame
}

#[test]
fn networks_of_ipx_are_told_to_one_who_asks() {
    let answer = bradner().answer(&rip_request(0x1a02)).expect("an answer");
    assert_eq!(answer[..14], [&LINUX.0[..], &TESTER.0, &[0, 40]].concat());
    // Response, network, 1 hop, 2 ticks; to the socket that asked.
    assert_eq!(answer[44..54], [0, 2, 0, 0, 0x1a, 2, 0, 1, 0, 2]);
    assert_eq!(answer[30..32], [0x40, 1]);
    // All networks: two entries, 48 bytes.
    let answer = bradner().answer(&rip_request(u32::MAX)).expect("an answer");
    assert_eq!(answer[12..14], [0, 48]);
    assert_eq!(bradner().answer(&rip_request(0x1b01)), None);
}

fn at(seconds: u64) -> MonoTime {
    MonoTime::from_nanos(seconds * 1_000_000_000)
}

#[test]
fn hellos_come_every_10_s_and_updates_every_60_s() {
    let mut neighbours = bradner();
    let (mut hellos, mut updates) = (Vec::new(), Vec::new());
    for second in 0..=120 {
        for frame in neighbours.keep_alives(at(second)) {
            let is_hello = frame[..6] == DECNET_ALL_ROUTERS.0;
            if is_hello { &mut hellos } else { &mut updates }.push(second);
        }
    }
    assert_eq!(hellos, (0..=12).map(|it| 10 * it).collect::<Vec<_>>());
    assert_eq!(updates, [0, 60, 120]);
    // A hello: flags, version 2.0.0, aa:00:04:00 and 1.2 = 1024 + 2 as low byte, high byte.
    let hello = &neighbours.keep_alives(at(130))[0];
    assert_eq!(hello[12..26], [0x60, 3, 34, 0, 0x0d, 2, 0, 0, 0xaa, 0, 4, 0, 2, 4]);
}

#[test]
fn many_hosts_take_turns_to_announce_themselves() {
    let hosts =
        VirtualHostRange { first: address("198.18.1.0"), count: 200, mac: TESTER, own_macs: false };
    let mut neighbours = Neighbours::new(Stations {
        hosts: vec![hosts],
        announce_every: Some(Duration::from_secs(40)),
        ..Stations::default()
    });
    // 200 hosts in turns of 64: 4 turns in 40 s.
    let mut announced = HashSet::new();
    for second in 0..40 {
        let frames = neighbours.keep_alives(at(second));
        let wanted = if second % 10 == 0 { ANNOUNCEMENTS_MAX as usize } else { 0 };
        assert_eq!(frames.len(), wanted, "second {second}");
        announced.extend(frames);
    }
    assert_eq!(announced.len(), 200);
    assert_eq!(neighbours.announcements().count(), 200);
}

#[test]
fn every_host_announces_itself_so_that_linux_takes_it() {
    // As it is told: the announcement names the host's pair.
    for (index, frame) in hosts().announcements().enumerate() {
        let number = index as u32 % 10;
        let target = match index < 10 {
            true => address(&format!("198.18.1.{}", 2 + number)),
            false => address(&format!("2001:2:0:1::{:x}", 1 + number)),
        };
        assert_eq!(announced_mac(&frame, target), Some(TESTER.plus_offset(number)), "{target}");
        assert_eq!(hosts().answer(&frame), None, "its own announcement is no question");
    }
}

#[test]
fn a_bridge_learns_each_destination_of_a_stream_once() {
    let len = FrameLen::from_bytes(128).expect("a length");
    let mut frame = TestFrame::new(
        len,
        TESTER,
        LINUX,
        TestFrameContent::from_protocol(TestFrameProtocol::Ethernet),
    );
    frame.tags = Tags::Single(Tag::from_id(7));
    frame.flows = Flows::spread(100, &[Field::DestinationMac, Field::SourceMac], true);
    let template = frame.template().expect("a template");
    let wanted: HashSet<Vec<u8>> = (0..1000)
        .map(|sequence| {
            let signature = Signature { trial: 1, stream: 0, sequence, stamp: 0 };
            linerate_proto::test_frame::fill_frame(&template, signature)[..6].to_vec()
        })
        .collect();
    let learning: Vec<_> = frame.learning_frames().collect();
    let learnt: HashSet<_> = learning.iter().map(|frame| frame[6..12].to_vec()).collect();
    assert_eq!((learning.len(), learnt), (10, wanted));
    for frame in &learning {
        let checked = check(frame).expect("a test frame");
        assert_eq!((checked.signature.trial, checked.macs.destination), (0, Mac::BROADCAST));
        assert_eq!(checked.tags, Tags::Single(Tag::from_id(7)));
    }
    let broadcast = TestFrame::broadcast(FrameLen::MIN, TESTER);
    assert_eq!(broadcast.learning_frames().count(), 0);
}
