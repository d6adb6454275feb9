//! IPv4 (RFC 791 §3.1) and IPv6 (RFC 8200 §3 and §4) headers, and the first bytes after them.
//!
//! ```text
//! IPv4  0 version, header words  1 class  2 total length (2)  6 flags, offset (2)
//!       9 protocol  12 source (4)  16 destination (4)
//! IPv6  0 version, class, label (4)  4 payload length (2)  6 next header
//!       8 source (16)  24 destination (16)
//! ```

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{IpPacket, LengthFrom, NoIp, Ports, Rest, read_be_u16};

const V4_HEADER_BYTES: u32 = 20;
const V6_HEADER_BYTES: u32 = 40;

pub(super) const TCP: u8 = 6;
const UDP: u8 = 17;
/// Other protocols that start with ports: DCCP, SCTP, UDP-Lite (RFC 4340, 9260, 3828).
const WITH_PORTS: [u8; 3] = [33, 132, 136];

const HOP_BY_HOP: u8 = 0;
const ROUTING: u8 = 43;
const FRAGMENT: u8 = 44;
const AUTHENTICATION: u8 = 51;
const DESTINATION_OPTIONS: u8 = 60;
const MOBILITY: u8 = 135;

/// Bytes of a hop-by-hop header with only the jumbo payload option (RFC 2675 §2).
pub(super) const JUMBO_HEADER_BYTES: u32 = 8;

/// Most extension headers that are parsed; RFC 8200 §4.1 has eight positions.
const EXTENSIONS_MAX: usize = 16;

/// Version of the expected IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Version {
    V4,
    V6,
    /// Version in the first four bits of the header.
    Either,
}

/// Decodes the IP packet at the start of `rest`.
#[inline]
pub(super) fn decode(rest: Rest<'_>, version: Version) -> Result<IpPacket, NoIp> {
    match version {
        Version::V4 => decode_v4(rest),
        Version::V6 => decode_v6(rest),
        Version::Either => match rest.data.first().map(|first| first >> 4) {
            Some(4) => decode_v4(rest),
            Some(6) => decode_v6(rest),
            Some(_) => Err(NoIp::Malformed("IP version")),
            None => Err(NoIp::Cut("IP header")),
        },
    }
}

#[inline]
fn decode_v4(mut rest: Rest<'_>) -> Result<IpPacket, NoIp> {
    let room = rest.room;
    let head = rest.split_header::<20>("IPv4 header")?;
    let header_bytes = u32::from(head[0] & 0x0f) * 4;
    if head[0] >> 4 != 4 || header_bytes < V4_HEADER_BYTES {
        return Err(NoIp::Malformed("IPv4 header"));
    }
    let (ip_bytes, length_from) = match read_be_u16(head, 2) {
        0 => (room, LengthFrom::Frame),
        length => (u32::from(length), LengthFrom::Header),
    };
    if ip_bytes < header_bytes {
        return Err(NoIp::Malformed("IPv4 total length"));
    }
    let fragment = read_be_u16(head, 6) & 0x3fff;
    let is_first = fragment & 0x1fff == 0;
    let options = (header_bytes - V4_HEADER_BYTES) as usize;
    let payload = rest.data.get(options..).filter(|_| is_first).unwrap_or(&[]);
    let [a, b, c, d] = [head[12], head[13], head[14], head[15]];
    let [e, f, g, h] = [head[16], head[17], head[18], head[19]];
    Ok(IpPacket {
        ip_bytes,
        length_from,
        missing_bytes: ip_bytes.saturating_sub(room),
        source: IpAddr::V4(Ipv4Addr::new(a, b, c, d)),
        destination: IpAddr::V4(Ipv4Addr::new(e, f, g, h)),
        protocol: head[9],
        dscp: head[1] >> 2,
        is_fragment: fragment != 0,
        header_bytes,
        transport_header_bytes: transport_header_bytes(head[9], payload),
        ports: parse_ports(head[9], payload),
    })
}

fn decode_v6(mut rest: Rest<'_>) -> Result<IpPacket, NoIp> {
    let room = rest.room;
    let head = rest.split_header::<40>("IPv6 header")?;
    if head[0] >> 4 != 6 {
        return Err(NoIp::Malformed("IPv6 header"));
    }
    let payload_bytes = u32::from(read_be_u16(head, 4));
    let mut packet = IpPacket {
        ip_bytes: V6_HEADER_BYTES + payload_bytes,
        length_from: LengthFrom::Header,
        missing_bytes: 0,
        source: IpAddr::V6(address_v6(head, 8)),
        destination: IpAddr::V6(address_v6(head, 24)),
        protocol: head[6],
        dscp: ((read_be_u16(head, 0) >> 4 & 0xff) >> 2) as u8,
        is_fragment: false,
        header_bytes: V6_HEADER_BYTES,
        transport_header_bytes: None,
        ports: None,
    };
    let jumbo = extensions(&mut packet, rest.data);
    if payload_bytes == 0 {
        (packet.ip_bytes, packet.length_from) = match jumbo {
            Some(length) => (length.saturating_add(V6_HEADER_BYTES), LengthFrom::Jumbo),
            // Without a next header, a payload length of 0 means no payload (RFC 8200 §4.7).
            None if packet.protocol == TCP || packet.protocol == UDP => (room, LengthFrom::Frame),
            None => (V6_HEADER_BYTES, LengthFrom::Header),
        };
    }
    packet.missing_bytes = packet.ip_bytes.saturating_sub(room);
    Ok(packet)
}

fn address_v6(head: &[u8; 40], at: usize) -> Ipv6Addr {
    let mut octets = [0; 16];
    octets.copy_from_slice(&head[at..at + 16]);
    Ipv6Addr::from(octets)
}

/// Parses the extension headers up to the payload. Returns the jumbo payload length, if present.
fn extensions(packet: &mut IpPacket, mut data: &[u8]) -> Option<u32> {
    let mut jumbo = None;
    for _ in 0..EXTENSIONS_MAX {
        let bytes = match (packet.protocol, data) {
            (HOP_BY_HOP | ROUTING | DESTINATION_OPTIONS | MOBILITY, [_, words, ..]) => {
                8 + usize::from(*words) * 8
            }
            (AUTHENTICATION, [_, words, ..]) => 8 + usize::from(*words) * 4,
            (FRAGMENT, [_, _, high, low, ..]) => {
                let place = u16::from_be_bytes([*high, *low]);
                packet.is_fragment = true;
                if place >> 3 != 0 {
                    packet.header_bytes += 8;
                    packet.protocol = data[0];
                    return jumbo;
                }
                8
            }
            _ => break,
        };
        let Some(header) = data.get(..bytes) else { return jumbo };
        if packet.protocol == HOP_BY_HOP {
            jumbo = jumbo_length(&header[2..]);
        }
        packet.header_bytes += bytes as u32;
        packet.protocol = header[0];
        data = &data[bytes..];
    }
    packet.ports = parse_ports(packet.protocol, data);
    packet.transport_header_bytes = transport_header_bytes(packet.protocol, data);
    jumbo
}

/// Length in the jumbo payload option (0xc2) of a hop-by-hop header (RFC 2675 §2, RFC 8200 §4.2).
fn jumbo_length(mut options: &[u8]) -> Option<u32> {
    loop {
        options = match options {
            [0xc2, 4, a, b, c, d, ..] => return Some(u32::from_be_bytes([*a, *b, *c, *d])),
            // One byte of padding has no length.
            [0, rest @ ..] => rest,
            [_, len, rest @ ..] => rest.get(usize::from(*len)..)?,
            _ => return None,
        };
    }
}

/// Ports of a payload, where the protocol has them and they were captured.
#[inline]
fn parse_ports(protocol: u8, payload: &[u8]) -> Option<Ports> {
    if protocol != TCP && protocol != UDP && !WITH_PORTS.contains(&protocol) {
        return None;
    }
    let head = payload.first_chunk::<4>()?;
    Some(Ports { source: read_be_u16(head, 0), destination: read_be_u16(head, 2) })
}

/// Length of the transport header, as far as it was captured.
#[inline]
fn transport_header_bytes(protocol: u8, payload: &[u8]) -> Option<u32> {
    match protocol {
        UDP if payload.len() >= 8 => Some(8),
        TCP => payload.get(12).map(|offset| u32::from(offset >> 4) * 4).filter(|n| *n >= 20),
        _ => None,
    }
}
