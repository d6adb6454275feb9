//! From a captured packet to what a meter counts: lengths, addresses, ports.
//!
//! Only headers are read, and never more of them than were captured; the lengths are those that
//! the packet had before it was cut. Left out: checksums, reassembly, tunnels (the outer packet is
//! the one on the link), and everything behind the ports. Sources stand at each header's reader.

mod ip;
mod link;

use std::net::IpAddr;

use super::{Direction, LinkType, Packet};

/// What the headers of a packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// The frame from the link layer's first byte to its last, without frame check sequence,
    /// preamble and gap, in bytes. `None` where the capture has no link layer of its own (raw IP,
    /// loopback, Linux cooked). A frame captured on the host that sends it is not padded yet.
    pub frame_bytes: Option<u32>,
    /// IEEE 802.1Q and 802.1ad tags.
    pub vlans: Vlans,
    /// MPLS labels.
    pub mpls_labels: u8,
    /// Which way it went, where the capture tells.
    pub direction: Option<Direction>,
    /// The IP packet, or why there is none.
    pub ip: Result<IpPacket, NoIp>,
}

/// The VLAN tags of a frame, from the outside.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vlans {
    /// How many there are.
    pub count: u8,
    /// Identifiers of the first two; 0 is a tag that only has a priority.
    pub ids: [u16; 2],
}

/// What the headers of an IP packet say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket {
    /// The IP packet with its header, as it was before the capture cut it, in bytes.
    pub ip_bytes: u32,
    /// Where that length comes from.
    pub length_from: LengthFrom,
    /// Bytes that the header announces and the frame did not have; 0 in a sound packet.
    pub missing_bytes: u32,
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
    /// What the IP header and its extensions carry: 6 TCP, 17 UDP (IANA protocol numbers).
    pub protocol: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// True for a piece of a fragmented packet, the first among them.
    pub is_fragment: bool,
    /// IP header with options or extension headers, bytes.
    pub header_bytes: u32,
    /// TCP header with options, or UDP header, bytes. `None` for other protocols, for later
    /// fragments and where the capture ends before.
    pub transport_header_bytes: Option<u32>,
    /// Ports of TCP, UDP, UDP-Lite, SCTP or DCCP. `None` for other protocols, for later fragments
    /// and where the capture ends before.
    pub ports: Option<Ports>,
}

/// Ports of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Source port.
    pub source: u16,
    /// Destination port.
    pub destination: u16,
}

/// Where the length of an IP packet comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LengthFrom {
    /// The IP header: total length, or payload length and 40.
    Header,
    /// The jumbo payload option (RFC 2675).
    Jumbo,
    /// The frame, since the header says 0: the packet was captured on its way to an interface that
    /// cuts it into segments and fills the length in.
    Frame,
}

/// Packets on the wire that a captured packet stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnWire {
    /// How many.
    pub packets: u32,
    /// Their IP packets together, bytes: each has headers of its own.
    pub ip_bytes: u64,
}

/// Why no IP packet was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum NoIp {
    /// The captured bytes end within the headers.
    #[error("the capture cut the {0}")]
    Cut(&'static str),
    /// The frame carries another protocol.
    #[error("EtherType {0:#06x} is not IP")]
    EtherType(u16),
    /// PPP carries another protocol.
    #[error("PPP protocol {0:#06x} is not IP")]
    PppProtocol(u16),
    /// A loopback capture with another address family.
    #[error("address family {0} is not IP")]
    Family(u32),
    /// An LLC frame that is not SNAP: spanning tree, IS-IS, NetBEUI.
    #[error("the LLC frame is not IP")]
    Llc,
    /// A link type that is not read.
    #[error("{0} is not read")]
    LinkType(LinkType),
    /// A header that contradicts itself.
    #[error("malformed {0}")]
    Malformed(&'static str),
}

impl IpPacket {
    /// True when the packet is longer than a link with this MTU carries: an offload made one of
    /// several received packets (GRO, LRO), or will make several of it (TSO, GSO), and the capture
    /// shows neither their number nor their times.
    pub const fn is_offloaded(&self, mtu_bytes: u32) -> bool {
        self.ip_bytes > mtu_bytes
    }

    /// The packets on a link with this MTU that this one stands for, each but the last as long as
    /// the MTU allows. `None` when that cannot be told: a long packet that is not TCP, or whose TCP
    /// header the capture cut. A sender whose peer announced a smaller segment sends more packets.
    pub fn on_wire(&self, mtu_bytes: u32) -> Option<OnWire> {
        if !self.is_offloaded(mtu_bytes) {
            return Some(OnWire { packets: 1, ip_bytes: self.ip_bytes.into() });
        }
        if self.protocol != ip::TCP || self.is_fragment {
            return None;
        }
        // BIG TCP's jumbo header exists within the host only.
        let ip_header_bytes = match self.length_from {
            LengthFrom::Jumbo => self.header_bytes.checked_sub(ip::JUMBO_HEADER_BYTES)?,
            LengthFrom::Header | LengthFrom::Frame => self.header_bytes,
        };
        let headers = ip_header_bytes + self.transport_header_bytes?;
        let payload =
            self.ip_bytes.checked_sub(self.header_bytes + self.transport_header_bytes?)?;
        let segment = mtu_bytes.checked_sub(headers).filter(|segment| *segment > 0)?;
        let packets = payload.div_ceil(segment).max(1);
        let ip_bytes = u64::from(payload) + u64::from(packets) * u64::from(headers);
        Some(OnWire { packets, ip_bytes })
    }
}

/// Takes the headers of a packet apart.
#[inline]
pub fn decode(packet: &Packet<'_>) -> Decoded {
    // Tools exist that tell an original length below the captured one.
    let told = packet.original_len.max(u32::try_from(packet.data.len()).unwrap_or(u32::MAX));
    let frame = told.saturating_sub(packet.fcs_bytes.unwrap_or(0).into());
    let data = &packet.data[..packet.data.len().min(frame as usize)];
    let mut reader = link::Frame {
        rest: Rest { data, room: frame },
        vlans: Vlans::default(),
        mpls_labels: 0,
        direction: packet.direction,
    };
    let ip = match reader.link(packet.link_type) {
        Ok(version) => ip::decode(reader.rest, version),
        Err(reason) => Err(reason),
    };
    Decoded {
        frame_bytes: packet.link_type.has_frame().then_some(frame),
        vlans: reader.vlans,
        mpls_labels: reader.mpls_labels,
        direction: reader.direction,
        ip,
    }
}

/// What is left of a packet behind the headers read so far.
#[derive(Clone, Copy)]
struct Rest<'a> {
    /// Captured bytes.
    data: &'a [u8],
    /// Bytes that the packet had.
    room: u32,
}

impl<'a> Rest<'a> {
    /// Takes `N` bytes of a header off.
    #[inline]
    fn take<const N: usize>(&mut self, header: &'static str) -> Result<&'a [u8; N], NoIp> {
        let (head, data) = self.data.split_first_chunk().ok_or(NoIp::Cut(header))?;
        *self = Self { data, room: self.room - N as u32 };
        Ok(head)
    }

    /// Takes off `bytes` more that are not looked at.
    fn skip(&mut self, bytes: usize, header: &'static str) -> Result<(), NoIp> {
        let data = self.data.get(bytes..).ok_or(NoIp::Cut(header))?;
        *self = Self { data, room: self.room - bytes as u32 };
        Ok(())
    }

    /// The packet ends after `room` bytes; what follows is padding.
    fn shorten(&mut self, room: u32) {
        self.room = self.room.min(room);
        self.data = &self.data[..self.data.len().min(self.room as usize)];
    }
}

/// A word in network order.
const fn word<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
