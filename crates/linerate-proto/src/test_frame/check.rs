//! Takes a test frame apart and says whether everything in it holds together: lengths, checksums,
//! fixed fields, signature. Shares no code with what builds frames, so that one checks the other.
//!
//! Left out: addresses and ports are given back, not judged; hops may have gone down on the way.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use linerate_core::device::{SIGNATURE_BYTES, Signature};
use thiserror::Error;

use super::ether::Ether;
use super::{AppleTalkAddress, DecNetAddress, Ends, IpxAddress, Mac, Protocol, Tags};

/// What is in an intact test frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checked {
    /// What it carries.
    pub protocol: Protocol,
    /// Hardware addresses.
    pub macs: Ends<Mac>,
    /// VLAN tags.
    pub tags: Tags,
    /// Addresses of the network.
    pub network: Network,
    /// Ports of UDP and TCP.
    pub ports: Option<Ends<u16>>,
    /// Code point of IP.
    pub dscp: Option<u8>,
    /// Time to live or hop limit of IP; hops so far of the others.
    pub hops: Option<u8>,
    /// What marks it.
    pub signature: Signature,
}

/// Addresses of the network layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Ethernet alone.
    None,
    /// IPv4 or IPv6.
    Ip(Ends<IpAddr>),
    /// DECnet.
    DecNet(Ends<DecNetAddress>),
    /// AppleTalk.
    AppleTalk(Ends<AppleTalkAddress>),
    /// IPX.
    Ipx(Ends<IpxAddress>),
}

/// What is wrong with a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum CheckError {
    /// It ends early.
    #[error("cut in the {0}")]
    Cut(&'static str),
    /// It carries something else.
    #[error("type or length {0:#06x} is not of a test frame")]
    Type(u16),
    /// A length disagrees with the frame.
    #[error("{what} says {says} bytes where there are {are}")]
    Length {
        /// Which length.
        what: &'static str,
        /// What it says.
        says: usize,
        /// What there is.
        are: usize,
    },
    /// A checksum disagrees with what it covers.
    #[error("{what} checksum is wrong: {found:#06x}")]
    Checksum {
        /// Which.
        what: &'static str,
        /// What it says.
        found: u16,
    },
    /// A field is not what test frames have there.
    #[error("{what} is {found:#x}")]
    Field {
        /// Which.
        what: &'static str,
        /// What it says.
        found: u16,
    },
}

type Result<T> = std::result::Result<T, CheckError>;

/// Takes a frame without FCS apart.
/// # Errors
/// The first thing that does not hold.
pub fn check(frame: &[u8]) -> Result<Checked> {
    let ether = Ether::parse(frame).ok_or(CheckError::Cut("Ethernet header"))?;
    if frame.len() < 60 {
        return Err(CheckError::Length { what: "Ethernet's minimum", says: 60, are: frame.len() });
    }
    let signature = Signature::at_end_of(frame).ok_or(CheckError::Cut("signature"))?;
    let found = match ether.kind {
        0x88b5 => Found::new(Protocol::Ethernet, Network::None, 0),
        0x0800 => ipv4(ether.body)?,
        0x86dd => ipv6(ether.body)?,
        0x6003 => decnet(ether.body)?,
        0x8137 => ipx(ether.body, Protocol::Ipx)?,
        0..=1500 => {
            equal("802.3 length", ether.kind.into(), ether.body.len())?;
            match ether.body {
                [0xaa, 0xaa, 3, 8, 0, 7, 0x80, 0x9b, rest @ ..] => appletalk(rest)?,
                [0xff, 0xff, ..] => ipx(ether.body, Protocol::IpxRaw)?,
                _ => return Err(CheckError::Type(ether.kind)),
            }
        }
        kind => return Err(CheckError::Type(kind)),
    };
    let header_bytes = frame.len() - ether.body.len() + found.header_bytes;
    if frame.len() < header_bytes + SIGNATURE_BYTES {
        return Err(CheckError::Cut("signature"));
    }
    let Found { protocol, network, ports, dscp, hops, .. } = found;
    let macs = Ends { source: ether.source, destination: ether.destination };
    Ok(Checked { protocol, macs, tags: ether.tags, network, ports, dscp, hops, signature })
}

struct Found {
    protocol: Protocol,
    network: Network,
    ports: Option<Ends<u16>>,
    dscp: Option<u8>,
    hops: Option<u8>,
    /// Behind type or length.
    header_bytes: usize,
}

impl Found {
    const fn new(protocol: Protocol, network: Network, header_bytes: usize) -> Self {
        Self { protocol, network, ports: None, dscp: None, hops: None, header_bytes }
    }
}

fn equal(what: &'static str, says: usize, are: usize) -> Result<()> {
    if says == are { Ok(()) } else { Err(CheckError::Length { what, says, are }) }
}

fn field(what: &'static str, found: u16, wanted: u16) -> Result<()> {
    if found == wanted { Ok(()) } else { Err(CheckError::Field { what, found }) }
}

fn head<'a, const N: usize>(bytes: &'a [u8], what: &'static str) -> Result<&'a [u8; N]> {
    bytes.first_chunk().ok_or(CheckError::Cut(what))
}

const fn be(high: u8, low: u8) -> u16 {
    (high as u16) << 8 | low as u16
}

/// RFC 1071 word by word, carries at once; the pieces have even lengths but for the last.
fn sum(pieces: &[&[u8]]) -> u16 {
    let mut sum = 0_u16;
    for word in pieces.iter().flat_map(|piece| piece.chunks(2)) {
        let word = be(word[0], word.get(1).copied().unwrap_or(0));
        let (next, carry) = sum.overflowing_add(word);
        sum = next + u16::from(carry);
    }
    sum
}

/// RFC 791 §3.1 without options or fragments.
fn ipv4(packet: &[u8]) -> Result<Found> {
    let header: &[u8; 20] = head(packet, "IPv4 header")?;
    field("IPv4 version and header length", header[0].into(), 0x45)?;
    equal("IPv4 total length", be(header[2], header[3]).into(), packet.len())?;
    field("IPv4 fragment offset", be(header[6], header[7]) & 0xbfff, 0)?;
    if sum(&[header]) != 0xffff {
        let found = be(header[10], header[11]);
        return Err(CheckError::Checksum { what: "IPv4 header", found });
    }
    let [.., a, b, c, d, e, f, g, h] = *header;
    let source = Ipv4Addr::new(a, b, c, d).into();
    let ends = Ends { source, destination: Ipv4Addr::new(e, f, g, h).into() };
    let segment = &packet[20..];
    let (is_tcp, ports, bytes) = transport(header[9], &header[12..], segment)?;
    let protocol = if is_tcp { Protocol::Ipv4Tcp } else { Protocol::Ipv4Udp };
    let (dscp, hops) = (Some(header[1] >> 2), Some(header[8]));
    Ok(Found { ports, dscp, hops, ..Found::new(protocol, Network::Ip(ends), 20 + bytes) })
}

/// RFC 8200 §3 without extension headers.
fn ipv6(packet: &[u8]) -> Result<Found> {
    let header: &[u8; 40] = head(packet, "IPv6 header")?;
    field("IP version", (header[0] >> 4).into(), 6)?;
    equal("IPv6 payload length", be(header[4], header[5]).into(), packet.len() - 40)?;
    let address = |at: usize| {
        let octets: &[u8; 16] = head(&header[at..], "IPv6 header")?;
        Ok(IpAddr::from(Ipv6Addr::from(*octets)))
    };
    let ends = Ends { source: address(8)?, destination: address(24)? };
    let (is_tcp, ports, bytes) = transport(header[6], &header[8..], &packet[40..])?;
    let protocol = if is_tcp { Protocol::Ipv6Tcp } else { Protocol::Ipv6Udp };
    let dscp = Some((be(header[0], header[1]) >> 6) as u8 & 0x3f);
    let hops = Some(header[7]);
    Ok(Found { ports, dscp, hops, ..Found::new(protocol, Network::Ip(ends), 40 + bytes) })
}

/// Whether it is TCP, the ports, and the bytes of the header.
fn transport(
    number: u8,
    addresses: &[u8],
    segment: &[u8],
) -> Result<(bool, Option<Ends<u16>>, usize)> {
    let (what, is_tcp, header_bytes) = match number {
        6 => ("TCP", true, 20),
        17 => ("UDP", false, 8),
        other => return Err(CheckError::Field { what: "IP protocol", found: other.into() }),
    };
    let header = segment.get(..header_bytes).ok_or(CheckError::Cut("transport header"))?;
    let found = if is_tcp {
        field("TCP header length", (header[12] >> 4).into(), 5)?;
        be(header[16], header[17])
    } else {
        equal("UDP length", be(header[4], header[5]).into(), segment.len())?;
        be(header[6], header[7])
    };
    let length = u32::try_from(segment.len()).unwrap_or(u32::MAX).to_be_bytes();
    let is_missing = !is_tcp && found == 0;
    if is_missing || sum(&[addresses, &length, &[0, number], segment]) != 0xffff {
        return Err(CheckError::Checksum { what, found });
    }
    let (source, destination) = (be(header[0], header[1]), be(header[2], header[3]));
    Ok((is_tcp, Some(Ends { source, destination }), header_bytes))
}

fn decnet(body: &[u8]) -> Result<Found> {
    let all: &[u8; 30] = head(body, "DECnet headers")?;
    equal("DECnet length", u16::from_le_bytes([all[0], all[1]]).into(), body.len() - 2)?;
    // Long data packet; whether it came from the same Ethernet a router changes.
    field("DECnet flags", (all[2] & 0x07).into(), 6)?;
    field("NSP flags", all[23].into(), 0x60)?;
    let node = |at: usize| {
        let mac: &[u8; 6] = head(&all[at..], "DECnet headers")?;
        let error = CheckError::Field { what: "DECnet identifier", found: be(mac[0], mac[1]) };
        DecNetAddress::from_mac(Mac(*mac)).ok_or(error)
    };
    let ends = Ends { destination: node(5)?, source: node(13)? };
    let found = Found::new(Protocol::DecNet, Network::DecNet(ends), 30);
    Ok(Found { hops: Some(all[20] & 0x3f), ..found })
}

fn appletalk(datagram: &[u8]) -> Result<Found> {
    let header: &[u8; 13] = head(datagram, "DDP header")?;
    let first = be(header[0], header[1]);
    equal("DDP length", usize::from(first & 0x3ff), datagram.len())?;
    field("DDP checksum", be(header[2], header[3]), 0)?;
    let address =
        |at: usize, node: u8| AppleTalkAddress { network: be(header[at], header[at + 1]), node };
    let ends = Ends { destination: address(4, header[8]), source: address(6, header[9]) };
    let found = Found::new(Protocol::AppleTalk, Network::AppleTalk(ends), 8 + 13);
    Ok(Found { hops: Some((first >> 10) as u8 & 0x0f), ..found })
}

fn ipx(packet: &[u8], protocol: Protocol) -> Result<Found> {
    let header: &[u8; 30] = head(packet, "IPX header")?;
    field("IPX checksum", be(header[0], header[1]), 0xffff)?;
    equal("IPX length", be(header[2], header[3]).into(), packet.len())?;
    let address = |at: usize| {
        let bytes: &[u8; 10] = head(&header[at..], "IPX header")?;
        let [a, b, c, d, node @ ..] = *bytes;
        Ok(IpxAddress { network: u32::from_be_bytes([a, b, c, d]), node: Mac(node) })
    };
    let ends = Ends { destination: address(6)?, source: address(18)? };
    let found = Found::new(protocol, Network::Ipx(ends), 30);
    Ok(Found { hops: Some(header[4]), ..found })
}
