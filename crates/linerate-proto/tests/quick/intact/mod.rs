//! Says whether a test frame is intact: Ethernet, IP, UDP and TCP by etherparse, which shares no
//! code with what builds frames; DECnet, AppleTalk and IPX, which it does not know, by hand.
//!
//! Left out: addresses and ports are given back, not judged; hops may have gone down on the way.

use std::net::IpAddr;

use etherparse::checksum::Sum16BitWords;
use etherparse::{LinkExtSlice, LinkSlice, NetSlice, SlicedPacket, TransportSlice};
use linerate_core::device::{SIGNATURE_BYTES, Signature};
use linerate_proto::test_frame::{
    AppleTalkAddress, DecNetAddress, Ends, IpxAddress, Mac, Tag, Tags, TestFrameProtocol,
};

/// What is in an intact test frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intact {
    pub(crate) protocol: TestFrameProtocol,
    pub(crate) macs: Ends<Mac>,
    pub(crate) tags: Tags,
    pub(crate) addresses: Option<Ends<IpAddr>>,
    pub(crate) ports: Option<Ends<u16>>,
    pub(crate) dscp: Option<u8>,
    pub(crate) signature: Signature,
}

/// What is behind type or length.
struct Body {
    protocol: TestFrameProtocol,
    addresses: Option<Ends<IpAddr>>,
    ports: Option<Ends<u16>>,
    dscp: Option<u8>,
    header_bytes: usize,
}

impl Body {
    const fn of(protocol: TestFrameProtocol, header_bytes: usize) -> Self {
        Self { protocol, addresses: None, ports: None, dscp: None, header_bytes }
    }
}

/// Takes a frame without FCS apart.
/// # Errors
/// The first thing that does not hold.
pub(crate) fn check(frame: &[u8]) -> Result<Intact, String> {
    let packet = SlicedPacket::from_ethernet(frame).map_err(|error| error.to_string())?;
    same("frame below the minimum", frame.len() < 60, false)?;
    let signature = Signature::at_end_of(frame).ok_or("no signature")?;
    let payload = packet.ether_payload().ok_or("no payload")?;
    let (kind, body) = (payload.ether_type.0, payload.payload);
    let found = match kind {
        0x88b5 => Body::of(TestFrameProtocol::Ethernet, 0),
        0x0800 | 0x86dd => ip(&packet, body.len())?,
        0x6003 => decnet(body)?,
        0x8137 => ipx(body, TestFrameProtocol::Ipx)?,
        0..=1500 => {
            same("802.3 length", kind.into(), body.len())?;
            match body {
                [0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b, datagram @ ..] => appletalk(datagram)?,
                [0xff, 0xff, ..] => ipx(body, TestFrameProtocol::IpxRaw)?,
                _ => return Err(format!("{kind:#06x} with {body:02x?}")),
            }
        }
        _ => return Err(format!("type {kind:#06x}")),
    };
    if body.len() < found.header_bytes + SIGNATURE_BYTES {
        return Err("no room for the signature".to_owned());
    }
    let Some(LinkSlice::Ethernet2(ether)) = &packet.link else {
        return Err("no Ethernet header".to_owned());
    };
    let macs = Ends { source: Mac(ether.source()), destination: Mac(ether.destination()) };
    let Body { protocol, addresses, ports, dscp, .. } = found;
    Ok(Intact { protocol, macs, tags: tags(&packet)?, addresses, ports, dscp, signature })
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: T, wanted: T) -> Result<(), String> {
    if is == wanted { Ok(()) } else { Err(format!("{what}: {is:?}, not {wanted:?}")) }
}

fn tags(packet: &SlicedPacket<'_>) -> Result<Tags, String> {
    let tag = |ext: &LinkExtSlice<'_>| match ext {
        LinkExtSlice::Vlan(it) => Ok(Tag {
            id: it.vlan_identifier().value(),
            priority: it.priority_code_point().value(),
            drop_eligible: it.drop_eligible_indicator(),
        }),
        other => Err(format!("{other:?}")),
    };
    match &packet.link_exts[..] {
        [] => Ok(Tags::None),
        [only] => Ok(Tags::Single(tag(only)?)),
        [outer, inner] => Ok(Tags::Double { outer: tag(outer)?, inner: tag(inner)? }),
        more => Err(format!("{} tags", more.len())),
    }
}

/// Without options, fragments or extension headers; `bytes` are behind the type.
fn ip(packet: &SlicedPacket<'_>, bytes: usize) -> Result<Body, String> {
    let (addresses, dscp, header_bytes) = match &packet.net {
        Some(NetSlice::Ipv4(it)) => {
            let header = it.header();
            same("IPv4 header", header.slice().len(), 20)?;
            same("IPv4 total length", header.total_len().into(), bytes)?;
            same("IPv4 fragment", header.is_fragmenting_payload(), false)?;
            let sum = Sum16BitWords::new().add_slice(header.slice()).ones_complement();
            same("IPv4 header checksum", sum, 0)?;
            let (source, destination) = (header.source_addr(), header.destination_addr());
            let ends = Ends { source: source.into(), destination: destination.into() };
            (ends, header.dcp().value(), 20)
        }
        Some(NetSlice::Ipv6(it)) => {
            let header = it.header();
            same("IPv6 payload length", usize::from(header.payload_length()) + 40, bytes)?;
            let (source, destination) = (header.source_addr(), header.destination_addr());
            let ends = Ends { source: source.into(), destination: destination.into() };
            (ends, header.dscp().value(), 40)
        }
        other => return Err(format!("no IP header: {other:?}")),
    };
    let (protocol, ports, transport_bytes) = transport(packet, bytes - header_bytes)?;
    Ok(Body {
        addresses: Some(addresses),
        ports: Some(ports),
        dscp: Some(dscp),
        ..Body::of(protocol, header_bytes + transport_bytes)
    })
}

/// The protocol, the ports and the bytes of the header.
fn transport(
    packet: &SlicedPacket<'_>,
    bytes: usize,
) -> Result<(TestFrameProtocol, Ends<u16>, usize), String> {
    let net = packet.net.as_ref().ok_or("no IP header")?;
    match (&packet.transport, net) {
        (Some(TransportSlice::Udp(udp)), net) => {
            same("UDP length", udp.length().into(), bytes)?;
            let header = udp.to_header();
            let (sum, protocol) = match net {
                NetSlice::Ipv4(ip) => {
                    let ip = ip.header().to_header();
                    (header.calc_checksum_ipv4(&ip, udp.payload()), TestFrameProtocol::Ipv4Udp)
                }
                NetSlice::Ipv6(ip) => {
                    let ip = ip.header().to_header();
                    (header.calc_checksum_ipv6(&ip, udp.payload()), TestFrameProtocol::Ipv6Udp)
                }
                NetSlice::Arp(_) => return Err("UDP over ARP".to_owned()),
            };
            // 0 says that there is none (RFC 768).
            same("UDP checksum", Ok(udp.checksum()), sum)?;
            let ports = Ends { source: udp.source_port(), destination: udp.destination_port() };
            Ok((protocol, ports, 8))
        }
        (Some(TransportSlice::Tcp(tcp)), net) => {
            same("TCP header", tcp.header_slice().len(), 20)?;
            let (sum, protocol) = match net {
                NetSlice::Ipv4(ip) => {
                    let (from, to) = (ip.header().source(), ip.header().destination());
                    (tcp.calc_checksum_ipv4(from, to), TestFrameProtocol::Ipv4Tcp)
                }
                NetSlice::Ipv6(ip) => {
                    let (from, to) = (ip.header().source(), ip.header().destination());
                    (tcp.calc_checksum_ipv6(from, to), TestFrameProtocol::Ipv6Tcp)
                }
                NetSlice::Arp(_) => return Err("TCP over ARP".to_owned()),
            };
            same("TCP checksum", Ok(tcp.checksum()), sum)?;
            let ports = Ends { source: tcp.source_port(), destination: tcp.destination_port() };
            Ok((protocol, ports, 20))
        }
        (other, _) => Err(format!("neither UDP nor TCP: {other:?}")),
    }
}

fn head<const N: usize>(bytes: &[u8]) -> Result<&[u8; N], String> {
    bytes.first_chunk().ok_or_else(|| format!("{} bytes of a header of {N}", bytes.len()))
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn decnet(body: &[u8]) -> Result<Body, String> {
    let all: &[u8; 30] = head(body)?;
    same("DECnet length", u16::from_le_bytes([all[0], all[1]]).into(), body.len() - 2)?;
    // Long data packet; whether it came from the same Ethernet a router changes.
    same("DECnet flags", all[2] & 0x07, 6)?;
    same("NSP flags", all[23], 0x60)?;
    for at in [5, 13] {
        let mac = Mac(*head(&all[at..])?);
        DecNetAddress::from_mac(mac).ok_or_else(|| format!("DECnet identifier {mac}"))?;
    }
    Ok(Body::of(TestFrameProtocol::DecNet, 30))
}

fn appletalk(datagram: &[u8]) -> Result<Body, String> {
    let header: &[u8; 13] = head(datagram)?;
    same("DDP length", (word(header, 0) & 0x3ff).into(), datagram.len())?;
    same("DDP checksum", word(header, 2), 0)?;
    let source = AppleTalkAddress { network: word(header, 6), node: header[9] };
    same("source node", (1..=253).contains(&source.node), true)?;
    Ok(Body::of(TestFrameProtocol::AppleTalk, 8 + 13))
}

fn ipx(packet: &[u8], protocol: TestFrameProtocol) -> Result<Body, String> {
    let header: &[u8; 30] = head(packet)?;
    same("IPX checksum", word(header, 0), 0xffff)?;
    same("IPX length", word(header, 2).into(), packet.len())?;
    let [a, b, c, d, node @ ..] = *head::<10>(&header[18..])?;
    let source = IpxAddress { network: u32::from_be_bytes([a, b, c, d]), node: Mac(node) };
    same("source network is 0", source.network == 0, false)?;
    Ok(Body::of(protocol, 30))
}
