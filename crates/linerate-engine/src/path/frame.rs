//! What is read off a packet with its virtio header, once for all of its segments.
//!
//! A super-packet is a TCP or UDP packet of up to 64 KiB that stands for segments of `gso_size`
//! payload bytes each. Sources: virtio 1.2 §5.1.6 (header), RFC 791 §3.1, RFC 8200 §3, RFC 9293
//! §3.1. Extension headers of IPv6 are looked through only where the kernel says where the
//! transport header is; VLAN tags are not known.

use linerate_core::path::{Ecn, Packet};
use linerate_sys::tun::{HEADER_BYTES, TunKind};

/// virtio header: the checksum is left to the receiver.
pub(super) const NEEDS_CSUM: u8 = 1;
/// Kinds of super-packets in the virtio header (Linux virtio_net.h).
const GSO_TCPV4: u8 = 1;
const GSO_TCPV6: u8 = 4;
const GSO_UDP: u8 = 5;
/// With GSO_TCP*: the first segment has CWR.
pub(super) const GSO_ECN: u8 = 0x80;

const TCP: u8 = 6;
/// Group membership of IPv4 (RFC 3376 §4).
const IGMP: u8 = 2;
const ICMPV6: u8 = 58;
/// Types of ICMPv6 by which hosts and routers find each other and tell groups: RFC 4861 §4, RFC
/// 3810 §5.
const OF_HOSTS: [u8; 9] = [130, 131, 132, 133, 134, 135, 136, 137, 143];
const UDP: u8 = 17;

/// The transport by which a super-packet is cut into segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentedTransport {
    /// Sequence numbers count bytes.
    Tcp,
    /// Every segment is a datagram.
    Udp,
}

impl SegmentedTransport {
    /// Where the checksum is in the transport header.
    pub(super) const fn checksum_at(self) -> usize {
        match self {
            Self::Tcp => 16,
            Self::Udp => 6,
        }
    }

    const fn header_bytes_min(self) -> usize {
        match self {
            Self::Tcp => 20,
            Self::Udp => 8,
        }
    }

    /// The number in the IP header.
    pub(super) const fn protocol(self) -> u8 {
        match self {
            Self::Tcp => TCP,
            Self::Udp => UDP,
        }
    }
}

/// A super-packet's parts. Offsets are from the start of the virtio header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Super {
    pub(super) transport: SegmentedTransport,
    /// Where the transport header begins.
    pub(super) transport_at: u16,
    /// Where the payload begins.
    pub(super) payload_at: u16,
    /// Payload of each segment but the last.
    pub(super) segment_bytes: u16,
}

/// The headers of a packet as the emulator needs them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EmulatedFrame {
    /// Bytes with the virtio header.
    pub(super) length: u32,
    /// Where the IP header begins.
    pub(super) ip_at: u16,
    /// 4, 6, or 0 for what is not IP.
    pub(super) version: u8,
    /// The parts of a super-packet; none for one packet.
    pub(super) super_packet: Option<Super>,
    pub(super) segments: u16,
    pub(super) flow: u32,
    pub(super) hosts: [u32; 2],
    pub(super) ecn: Ecn,
    pub(super) dont_fragment: bool,
    /// The host sends it for itself: it finds neighbours or tells groups. Programs cannot know when
    /// it does, so a list of packets does not count it.
    pub(super) is_housekeeping: bool,
}

impl EmulatedFrame {
    /// Reads a packet with its virtio header. What is not understood is one packet.
    pub(super) fn read(bytes: &[u8], kind: TunKind) -> Self {
        let ip_at = HEADER_BYTES + kind.link_bytes();
        let mut frame = Self {
            length: bytes.len() as u32,
            ip_at: ip_at as u16,
            version: 0,
            super_packet: None,
            segments: 1,
            flow: 0,
            hosts: [0; 2],
            ecn: Ecn::NotCapable,
            dont_fragment: true,
            // ARP, and what else is no IP.
            is_housekeeping: true,
        };
        let ip = bytes.get(ip_at..).unwrap_or_default();
        let is_ip = match kind {
            TunKind::Ip => true,
            TunKind::Ethernet => matches!(read_be16(bytes, ip_at - 2), Some(0x0800 | 0x86dd)),
        };
        let version = ip.first().map_or(0, |first| first >> 4);
        match version {
            4 if is_ip && ip.len() >= 20 => frame.read_ipv4(ip),
            6 if is_ip && ip.len() >= 40 => frame.read_ipv6(ip),
            _ => return frame,
        }
        frame.read_super_packet(bytes);
        frame
    }

    fn read_ipv4(&mut self, ip: &[u8]) {
        let fragment = u16::from_be_bytes([ip[6], ip[7]]);
        self.version = 4;
        self.ecn = Ecn::from_bits(ip[1]);
        self.dont_fragment = fragment & 0x4000 != 0;
        // More fragments, or an offset: the ports are in the first alone, behind a whole header.
        let header = usize::from(ip[0] & 15) * 4;
        let ports = if fragment & 0x3fff == 0 && header >= 20 { header } else { ip.len() };
        self.flow = flow_hash(&ip[12..20], ip[9], ip.get(ports..));
        self.hosts = [&ip[12..16], &ip[16..20]].map(address_hash);
        self.is_housekeeping = ip[9] == IGMP;
    }

    fn read_ipv6(&mut self, ip: &[u8]) {
        self.version = 6;
        self.ecn = Ecn::from_bits(ip[1] >> 4);
        self.flow = flow_hash(&ip[8..40], ip[6], ip.get(40..));
        self.hosts = [&ip[8..24], &ip[24..40]].map(address_hash);
        self.is_housekeeping = is_housekeeping_v6(ip);
    }

    fn read_super_packet(&mut self, bytes: &[u8]) {
        let transport = match bytes[1] & !GSO_ECN {
            GSO_TCPV4 | GSO_TCPV6 => SegmentedTransport::Tcp,
            GSO_UDP => SegmentedTransport::Udp,
            _ => return,
        };
        let segment_bytes = read_ne16(bytes, 4);
        let transport_at = HEADER_BYTES + usize::from(read_ne16(bytes, 6));
        let header = match transport {
            SegmentedTransport::Tcp => {
                bytes.get(transport_at + 12).map(|at| usize::from(at >> 4) * 4)
            }
            SegmentedTransport::Udp => Some(8),
        };
        let Some(payload_at) = header.map(|header| transport_at + header) else { return };
        let ip_header = if self.version == 6 { 40 } else { 20 };
        let usable = segment_bytes > 0
            && bytes[0] & NEEDS_CSUM != 0
            && transport_at >= usize::from(self.ip_at) + ip_header
            && payload_at >= transport_at + transport.header_bytes_min()
            && payload_at <= MAX_HEADER_BYTES
            && payload_at < bytes.len();
        if !usable {
            return;
        }
        let segments = (bytes.len() - payload_at).div_ceil(usize::from(segment_bytes));
        let Ok(segments) = u16::try_from(segments) else { return };
        self.segments = segments;
        self.super_packet = Some(Super {
            transport,
            transport_at: transport_at as u16,
            payload_at: payload_at as u16,
            segment_bytes,
        });
    }

    /// Length of segment `index` as an IP packet.
    pub(super) fn ip_bytes(&self, index: u16) -> u32 {
        let Some(parts) = self.super_packet else {
            return self.length.saturating_sub(self.ip_at.into());
        };
        let payload = self.payload(&parts, index, index);
        u32::from(parts.payload_at - self.ip_at) + payload.len() as u32
    }

    /// Where the payload of the segments `first` to `last` is.
    pub(super) fn payload(&self, parts: &Super, first: u16, last: u16) -> std::ops::Range<usize> {
        let start = usize::from(parts.payload_at);
        let size = usize::from(parts.segment_bytes);
        let end = start + (usize::from(last) + 1) * size;
        start + usize::from(first) * size..end.min(self.length as usize)
    }

    /// Segment `index` as the elements see it.
    pub(super) fn packet(&self, index: u16, tag: u64) -> Packet {
        Packet {
            number: if self.is_housekeeping { Packet::UNNUMBERED } else { 0 },
            ip_bytes: self.ip_bytes(index),
            flow: self.flow,
            hosts: self.hosts,
            ecn: self.ecn,
            dont_fragment: self.dont_fragment,
            corrupted: false,
            tag,
        }
    }
}

/// Most bytes of virtio, Ethernet, IP and TCP headers: 10 + 14 + 60 + 60, and room for extension
/// headers of IPv6.
pub(super) const MAX_HEADER_BYTES: usize = 256;

/// True for the messages of an IPv6 host for itself; `ip` has at least 40 bytes. Messages on groups
/// have a hop-by-hop header of 8 bytes (RFC 3810 §5).
fn is_housekeeping_v6(ip: &[u8]) -> bool {
    let (protocol, at) = match ip[6] {
        0 => (ip.get(40).copied(), 48),
        protocol => (Some(protocol), 40),
    };
    protocol == Some(ICMPV6) && ip.get(at).is_some_and(|kind| OF_HOSTS.contains(kind))
}

/// A hash of an address.
fn address_hash(address: &[u8]) -> u32 {
    let words = address.chunks_exact(4);
    words.fold(0, |hash: u32, word| {
        let word = u32::from_be_bytes(word.try_into().expect("chunks of four"));
        // As below, with 32 bits; the highest bits are the best mixed ones.
        (hash ^ word).wrapping_mul(0x9e37_79b9).rotate_right(16)
    })
}

/// A hash of addresses, protocol and ports: multiplicative mixing, eight bytes at a time.
fn flow_hash(addresses: &[u8], protocol: u8, transport: Option<&[u8]>) -> u32 {
    let mut hash = u64::from(protocol);
    let mut mix = |word: u64| {
        // The golden ratio's fraction, as in Fibonacci hashing.
        hash = (hash ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash ^= hash >> 32;
    };
    for eight in addresses.chunks_exact(8) {
        mix(u64::from_be_bytes(eight.try_into().expect("chunks of eight")));
    }
    let ports = transport.filter(|_| matches!(protocol, TCP | UDP)).and_then(|all| all.get(..4));
    if let Some(ports) = ports {
        mix(u64::from(u32::from_be_bytes(ports.try_into().expect("four bytes"))));
    }
    hash as u32
}

fn read_be16(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A field of the virtio header, in the byte order of this host.
pub(super) fn read_ne16(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes([bytes[at], bytes[at + 1]])
}
