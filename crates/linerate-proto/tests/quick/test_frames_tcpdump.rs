//! Frames of every kind as `tcpdump` reads them. `testdata/test_frame/frames.pcap` holds them and
//! `frames.pcap.txt` what tcpdump 4.99.3 says; where tcpdump is there, it is asked again.
//!
//! After a change of layout: `WRITE_TEST_FRAMES=1 cargo test -p linerate-proto --test
//! test_frames_tcpdump`, then read what changed in the text.

use std::path::{Path, PathBuf};
use std::process::Command;

use linerate_core::device::Signature;
use linerate_core::units::FrameLen;
use linerate_proto::test_frame::{
    AppleTalkAddress, DecNetAddress, Field, Flows, IpxAddress, IpxFraming, IpxRouter, Mac,
    Neighbours, Stations, Tag, Tags, TestFrame, TestFrameContent, TestFrameProtocol,
    VirtualHostRange, address_request, fill_frame,
};

const ROUTER: Mac = Mac([2, 0, 0, 0, 0, 0x10]);
const TESTER: Mac = Mac([2, 0, 0, 0, 0, 0x20]);

fn test_frames() -> Vec<Vec<u8>> {
    let single = Tags::Single(Tag { id: 7, priority: 3, drop_eligible: false });
    let outer = Tag { id: 100, priority: 5, drop_eligible: true };
    let double = Tags::Double { outer, inner: Tag::from_id(7) };
    let mut frames = Vec::new();
    for protocol in TestFrameProtocol::ALL {
        for (tags, more) in [(Tags::None, 0), (single, 64), (double, 448)] {
            let bytes = TestFrame::shortest_bytes(protocol, tags) + more;
            let len = FrameLen::from_bytes(bytes).expect("a length");
            let mut frame =
                TestFrame::new(len, ROUTER, TESTER, TestFrameContent::from_protocol(protocol));
            frame.tags = tags;
            let fields = match protocol.has_transport_sum() {
                true => vec![Field::DestinationAddress, Field::SourcePort],
                false => vec![Field::SourceMac],
            };
            frame.flows = Flows::spread(100, &fields, true);
            match &mut frame.content {
                TestFrameContent::Ipv4(flow) => {
                    (flow.dscp, flow.ports) = (10, frame.flows.first_ports(flow.ports))
                }
                TestFrameContent::Ipv6(flow) => {
                    (flow.dscp, flow.ports) = (10, frame.flows.first_ports(flow.ports))
                }
                _ => {}
            }
            let template = frame.template().expect("a template");
            let signature =
                Signature { trial: 0xdead_beef, stream: 3, sequence: 41, stamp: 0x1234_5678 };
            frames.push(fill_frame(&template, signature));
        }
    }
    frames.push(TestFrame::broadcast(FrameLen::MIN, TESTER).template().expect("fits").bytes);
    frames
}

/// What the stations of a port send, and their answers to Linux's questions.
fn neighbour_frames() -> Vec<Vec<u8>> {
    let v6 = "2001:2:0:1::1".parse().expect("an address");
    let ipx = IpxRouter {
        framing: IpxFraming::EthernetII,
        address: IpxAddress { network: 0x1912, node: TESTER },
        networks: vec![0x1a01, 0x1a02],
    };
    let stations = Stations {
        hosts: vec![
            VirtualHostRange::single_host([198, 18, 1, 2].into(), TESTER),
            VirtualHostRange { first: v6, count: 2, mac: TESTER, own_macs: true },
        ],
        decnet: vec![DecNetAddress { area: 1, node: 2 }],
        appletalk: vec![(TESTER, AppleTalkAddress { network: 19, node: 2 })],
        ipx: Some(ipx),
        ..Stations::default()
    };
    let neighbours = Neighbours::new(stations);
    let mut frames: Vec<_> = neighbours.announcements().collect();
    for name in ["linux-arp-request", "linux-dad", "linux-solicitation"] {
        let asked = std::fs::read(folder().join(format!("{name}.bin"))).expect("recorded");
        frames.push(neighbours.answer(&asked).expect(name));
    }
    for target in ["198.18.1.1", "2001:2:0:1::9"] {
        let target: std::net::IpAddr = target.parse().expect("an address");
        let own = if target.is_ipv4() { [198, 18, 1, 2].into() } else { v6 };
        frames.push(address_request(TESTER, own, target, Tags::None).expect("one version"));
    }
    frames
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/test_frame")
}

/// A capture of the frames, one second apart.
fn pcap(frames: &[Vec<u8>]) -> Vec<u8> {
    // Magic, version 2.4, two zeros, the longest packet, Ethernet.
    let head = [0xa1b2_c3d4_u32, 0x0002_0004, 0, 0, 65_535, 1];
    let mut bytes: Vec<u8> = head.into_iter().flat_map(u32::to_be_bytes).collect();
    for (second, frame) in (0_u32..).zip(frames) {
        let len = frame.len() as u32;
        bytes.extend([second, 0, len, len].into_iter().flat_map(u32::to_be_bytes));
        bytes.extend(frame);
    }
    bytes
}

fn tcpdump(path: &Path) -> Option<String> {
    let path = path.to_str().expect("a path in ASCII");
    let output = Command::new("tcpdump").args(["-nn", "-e", "-vv", "-t", "-r", path]).output();
    let output = output.ok().filter(|output| output.status.success())?;
    Some(String::from_utf8(output.stdout).expect("ASCII"))
}

#[test]
fn frames_are_those_that_tcpdump_has_read() {
    let frames: Vec<_> = test_frames().into_iter().chain(neighbour_frames()).collect();
    let path = folder().join("frames.pcap");
    if std::env::var_os("WRITE_TEST_FRAMES").is_some() {
        std::fs::write(&path, pcap(&frames)).expect("writable");
        let text = tcpdump(&path).expect("tcpdump");
        std::fs::write(folder().join("frames.pcap.txt"), text).expect("writable");
    }
    assert_eq!(std::fs::read(path).expect("the capture"), pcap(&frames), "another layout");
}

#[test]
fn tcpdump_finds_nothing_wrong() {
    let text = std::fs::read_to_string(folder().join("frames.pcap.txt")).expect("the text");
    let again = tcpdump(&folder().join("frames.pcap"));
    if again.is_none() {
        eprintln!("skipped: tcpdump is not here to be asked again");
    }
    for text in [Some(text), again].into_iter().flatten() {
        for wrong in ["incorrect", "bad", "[|", "invalid", "missing", "malformed", "truncated"] {
            assert!(!text.contains(wrong), "{wrong} in\n{text}");
        }
        // 4 protocols over IP, three frames each.
        assert_eq!(text.matches("udp sum ok").count(), 6);
        assert_eq!(text.matches("(correct)").count(), 6);
    }
}
