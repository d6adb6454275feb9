//! Any bytes as a frame at a port of the tester: no panic; what is answered is a whole frame to a
//! station, which is no question itself; every text of a mix of lengths ends in exact shares or an
//! error of one line.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_core::device::ForeignFrames;
use linerate_proto::test_frame::{
    AppleTalkAddress, ForeignKind, IpxAddress, IpxFraming, IpxRouter, MIX_FRAMES_MAX, Mac, Mix,
    Neighbours, Stations, VirtualHostRange, announced_mac,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let mut counts = ForeignFrames::default();
    ForeignKind::from_frame(bytes).count_in(&mut counts);
    let targets = [IpAddr::from(V4), IpAddr::from(V6)];
    for mac in targets.into_iter().filter_map(|target| announced_mac(bytes, target)) {
        assert!(!mac.is_group());
    }
    let neighbours = neighbours();
    if let Some(answer) = neighbours.answer(bytes) {
        assert!((60..1514).contains(&answer.len()));
        // Two testers do not keep each other busy.
        assert_eq!(neighbours.answer(&answer), None);
    }
    if let Ok(text) = std::str::from_utf8(bytes) {
        mix(text);
    }
}

fn mix(text: &str) {
    match Mix::parse(text, None) {
        Ok(mix) => {
            assert!((1..=MIX_FRAMES_MAX).contains(&mix.pattern().len()));
            let frames: usize = mix.shares().map(|(_, frames)| frames).sum();
            assert_eq!(frames, mix.pattern().len());
            assert!((64.0..=9242.0).contains(&mix.mean_bytes()));
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
    let _ = text.parse::<Mac>();
}

const V4: Ipv4Addr = Ipv4Addr::new(198, 18, 1, 0);
const V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 0);
const MAC: Mac = Mac([2, 0, 0, 0, 0, 0xbb]);

fn neighbours() -> Neighbours {
    let hosts = |first| VirtualHostRange { first, count: 256, mac: MAC, own_macs: true };
    let ipx = IpxRouter {
        framing: IpxFraming::EthernetII,
        address: IpxAddress { network: 0x1912, node: MAC },
        networks: vec![0x1a01, 0x1a02],
    };
    Neighbours::new(Stations {
        hosts: vec![hosts(V4.into()), hosts(V6.into())],
        appletalk: vec![(MAC, AppleTalkAddress { network: 19, node: 2 })],
        ipx: Some(ipx),
        ..Stations::default()
    })
}
