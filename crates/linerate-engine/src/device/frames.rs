//! Which frames each port sends, from the plan and from what the ports are.

use std::net::IpAddr;

use linerate_core::device::FrameTemplate;
use linerate_core::record::{BenchFrames, BenchProtocol, Failure, Fault};
use linerate_core::units::FrameLen;
use linerate_proto::test_frame::{
    AddressRule, Ends, Field, Flows, IpFlow, Mac, Mix, Tag, Tags, TestFrame, TestFrameContent,
};

use super::setup::AddressSeries;

/// A sending or receiving station of test frames.
#[derive(Clone, Debug)]
pub(super) struct Station {
    /// The hardware address of the station.
    pub mac: Mac,
    /// The network address of the station, where the protocol has one.
    pub address: Option<IpAddr>,
    /// Where frames to others go: the device's hardware address on this port, when it routes.
    pub gateway: Option<Mac>,
}

/// Templates of frames from one port to others, and the order in which they are sent.
#[derive(Clone, Debug)]
pub(super) struct PortFrameSet {
    pub templates: Vec<FrameTemplate>,
    pub mix: Vec<u8>,
    /// Shortest and longest, without FCS.
    pub lengths: (usize, usize),
}

/// Frames from a port to `others`, each in turn.
pub(super) fn frame_set(
    frames: &BenchFrames,
    from: &Station,
    others: &[&Station],
) -> Result<PortFrameSet, Failure> {
    let (lengths, order) = lengths(frames)?;
    let mut templates = Vec::new();
    for other in others {
        for length in &lengths {
            templates.push(template(frames, *length, from, other)?);
        }
    }
    let mut mix = Vec::new();
    for entry in &order {
        for other in 0..others.len() {
            mix.push(u8::try_from(other * lengths.len() + usize::from(*entry)).unwrap_or(0));
        }
    }
    let bytes = templates.iter().map(|template| template.bytes.len());
    let shortest = bytes.clone().min().unwrap_or(0);
    Ok(PortFrameSet { lengths: (shortest, bytes.max().unwrap_or(0)), templates, mix })
}

/// Frames from each of many hardware addresses to one station, by which a switch learns them.
pub(super) fn learning(
    frames: &BenchFrames,
    learnt: AddressSeries,
    to: &Station,
) -> Result<PortFrameSet, Failure> {
    series_frames(frames, learnt, to.mac, first_address(learnt), Field::SourceMac)
}

/// Frames from one station to each of many hardware addresses.
pub(super) fn learnt(
    frames: &BenchFrames,
    learnt: AddressSeries,
    from: &Station,
) -> Result<PortFrameSet, Failure> {
    series_frames(frames, learnt, first_address(learnt), from.mac, Field::DestinationMac)
}

/// The first hardware address of a series; they are locally administered.
fn first_address(learnt: AddressSeries) -> Mac {
    Mac([0x02, 0xad, learnt.series, 0, 0, 1])
}

/// Ethernet frames, the destination before the source, one of them going through all addresses.
fn series_frames(
    frames: &BenchFrames,
    learnt: AddressSeries,
    destination: Mac,
    source: Mac,
    field: Field,
) -> Result<PortFrameSet, Failure> {
    let object = format!("{} hardware addresses", learnt.count);
    let length = FrameLen::from_bytes(frames.size_bytes)
        .map_err(|error| frame_usage_error(&object, &error))?;
    let mut frame = TestFrame::new(length, destination, source, TestFrameContent::Ethernet);
    frame.tags = vlan_tags(&frames.vlans)
        .ok_or_else(|| frame_usage_error(&object, &"two VLAN tags at most"))?;
    frame.flows = Flows::spread(learnt.count, &[field], false);
    let template = frame.template().map_err(|error| frame_usage_error(&object, &error))?;
    let bytes = template.bytes.len();
    Ok(PortFrameSet { templates: vec![template], mix: vec![0], lengths: (bytes, bytes) })
}

/// The longest frame of a plan, with FCS.
pub(super) fn longest_bytes(frames: &BenchFrames) -> Result<u32, Failure> {
    let (lengths, _) = lengths(frames)?;
    Ok(lengths.iter().map(|length| length.bytes()).max().unwrap_or(0))
}

/// Lengths of frames and their order.
fn lengths(frames: &BenchFrames) -> Result<(Vec<FrameLen>, Vec<u8>), Failure> {
    let Some(mix) = &frames.mix else {
        let length = FrameLen::from_bytes(frames.size_bytes).map_err(|error| {
            frame_usage_error(&format!("frames of {} bytes", frames.size_bytes), &error)
        })?;
        return Ok((vec![length], vec![0]));
    };
    let mix = Mix::parse(mix, None)
        .map_err(|error| frame_usage_error(&format!("mix '{mix}'"), &error))?;
    Ok((mix.lengths().to_vec(), mix.pattern().to_vec()))
}

fn frame_usage_error(object: &str, reason: &dyn std::fmt::Display) -> Failure {
    Failure::new(Fault::Usage, "make frames", object, reason)
}

fn template(
    frames: &BenchFrames,
    length: FrameLen,
    from: &Station,
    to: &Station,
) -> Result<FrameTemplate, Failure> {
    let object = format!("{} frames of {} bytes", frames.protocol, length.bytes());
    let content = content(frames, from, to).ok_or_else(|| {
        frame_usage_error(&object, &"both ports need an address of the protocol's family")
    })?;
    let mut frame = TestFrame::new(length, from.gateway.unwrap_or(to.mac), from.mac, content);
    frame.addresses = AddressRule::Any;
    frame.tags = vlan_tags(&frames.vlans)
        .ok_or_else(|| frame_usage_error(&object, &"two VLAN tags at most"))?;
    if frames.flows > 1 {
        frame.flows = Flows::spread(frames.flows, &fields(frames), frames.shuffled);
        frame.content = with_ports(frame.content, &frame.flows);
    }
    frame.template().map_err(|error| frame_usage_error(&object, &error))
}

/// The fields that differ from flow to flow: ports, and addresses where the plan has many hosts;
/// hardware addresses of frames without either.
fn fields(frames: &BenchFrames) -> Vec<Field> {
    let ip = matches!(
        frames.protocol,
        BenchProtocol::Udp4 | BenchProtocol::Udp6 | BenchProtocol::Tcp4 | BenchProtocol::Tcp6
    );
    match (ip, frames.many_hosts) {
        (true, true) => vec![Field::SourceAddress, Field::DestinationAddress],
        (true, false) => vec![Field::SourcePort, Field::DestinationPort],
        (false, _) => vec![Field::SourceMac],
    }
}

fn content(frames: &BenchFrames, from: &Station, to: &Station) -> Option<TestFrameContent> {
    Some(
        match (TestFrameContent::from_protocol(frames.protocol.into()), from.address, to.address) {
            (
                TestFrameContent::Ipv4(flow),
                Some(IpAddr::V4(source)),
                Some(IpAddr::V4(destination)),
            ) => {
                let ends = Ends { source, destination };
                TestFrameContent::Ipv4(IpFlow { ends, dscp: frames.dscp, ..flow })
            }
            (
                TestFrameContent::Ipv6(flow),
                Some(IpAddr::V6(source)),
                Some(IpAddr::V6(destination)),
            ) => {
                let ends = Ends { source, destination };
                TestFrameContent::Ipv6(IpFlow { ends, dscp: frames.dscp, ..flow })
            }
            (TestFrameContent::Ipv4(_) | TestFrameContent::Ipv6(_), ..) => return None,
            (other, ..) => other,
        },
    )
}

fn vlan_tags(vlans: &[u16]) -> Option<Tags> {
    match *vlans {
        [] => Some(Tags::None),
        [id] => Some(Tags::Single(Tag::from_id(id))),
        [outer, inner] => {
            Some(Tags::Double { outer: Tag::from_id(outer), inner: Tag::from_id(inner) })
        }
        _ => None,
    }
}

/// Ports from where the ranges of RFC 4814 §4.5 begin, where flows go through them.
fn with_ports(content: TestFrameContent, flows: &Flows) -> TestFrameContent {
    match content {
        TestFrameContent::Ipv4(flow) => {
            TestFrameContent::Ipv4(IpFlow { ports: flows.first_ports(flow.ports), ..flow })
        }
        TestFrameContent::Ipv6(flow) => {
            TestFrameContent::Ipv6(IpFlow { ports: flows.first_ports(flow.ports), ..flow })
        }
        other => other,
    }
}
