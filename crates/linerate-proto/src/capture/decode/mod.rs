//! Decodes a captured packet: lengths, addresses, ports.
//!
//! Only captured headers are read; the lengths are those of the packet before the capture cut it.
//! Left out: checksums, reassembly, tunnels (the outer packet is the one on the link), and all
//! bytes after the ports. Each header's parser names its source.

mod ip;
mod link;

use std::net::IpAddr;

use super::{CaptureDirection, CapturedPacket, LinkType};

/// Decoded headers of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decoded {
    /// Length of the frame from the link layer's first byte to its last, without frame check
    /// sequence, preamble and gap. `None` where the capture has no real link layer (raw IP,
    /// loopback, Linux cooked). A frame captured on its sender is not padded yet.
    pub frame_bytes: Option<u32>,
    /// VLAN tags (IEEE 802.1Q and 802.1ad).
    pub vlans: Vlans,
    /// Number of MPLS labels.
    pub mpls_labels: u8,
    /// Direction at the capturing host, where the capture states it.
    pub direction: Option<CaptureDirection>,
    /// The IP packet, or the reason for which there is none.
    pub ip: Result<IpPacket, NoIp>,
}

/// VLAN tags of a frame, the outermost first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vlans {
    /// Number of tags.
    pub count: u8,
    /// Identifiers of the first two tags; 0 is a priority tag.
    pub ids: [u16; 2],
}

/// Decoded headers of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket {
    /// Length of the IP packet with its header, before the capture cut it.
    pub ip_bytes: u32,
    /// Source of that length.
    pub length_from: LengthFrom,
    /// Bytes by which the frame was shorter than the header's length; 0 in a valid packet.
    pub missing_bytes: u32,
    /// Source address of the packet.
    pub source: IpAddr,
    /// Destination address of the packet.
    pub destination: IpAddr,
    /// IANA protocol number after the IP header and its extensions: 6 TCP, 17 UDP.
    pub protocol: u8,
    /// Differentiated services code point.
    pub dscp: u8,
    /// True for a fragment, including the first.
    pub is_fragment: bool,
    /// Length of the IP header with options or extension headers.
    pub header_bytes: u32,
    /// Length of the TCP header with options, or of the UDP header. `None` for other protocols, for
    /// later fragments and where the capture ends before.
    pub transport_header_bytes: Option<u32>,
    /// Ports of TCP, UDP, UDP-Lite, SCTP or DCCP. `None` for other protocols, for later fragments
    /// and where the capture ends before.
    pub ports: Option<Ports>,
}

/// Ports of a transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ports {
    /// Source port of the packet.
    pub source: u16,
    /// Destination port of the packet.
    pub destination: u16,
}

/// Source of the length of an IP packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LengthFrom {
    /// The IP header: total length, or payload length plus 40.
    Header,
    /// The jumbo payload option (RFC 2675).
    Jumbo,
    /// The frame, since the header has 0: the packet was captured before the NIC segmented it and
    /// filled in the length (TSO).
    Frame,
}

/// Packets on the wire for one captured packet of an offload (TSO, GRO).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnWire {
    /// Number of packets.
    pub packets: u32,
    /// Sum of the lengths of their IP packets, each with its headers.
    pub ip_bytes: u64,
}

/// Reason for which no IP packet was found.
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
    /// An unsupported link type.
    #[error("{0} is not read")]
    LinkType(LinkType),
    /// A header that contradicts itself.
    #[error("malformed {0}")]
    Malformed(&'static str),
}

impl IpPacket {
    /// True when the packet is longer than this MTU: an offload merged several received packets
    /// (GRO, LRO), or will segment it (TSO, GSO), so that the capture shows neither their number
    /// nor their times.
    pub const fn is_offloaded(&self, mtu_bytes: u32) -> bool {
        self.ip_bytes > mtu_bytes
    }

    /// Packets of this one on a link with this MTU, each but the last as long as the MTU allows.
    /// `None` when unknown: a long packet that is not TCP, or whose TCP header the capture cut. A
    /// sender whose peer announced a smaller segment size sends more packets.
    pub fn on_wire(&self, mtu_bytes: u32) -> Option<OnWire> {
        if !self.is_offloaded(mtu_bytes) {
            return Some(OnWire { packets: 1, ip_bytes: self.ip_bytes.into() });
        }
        if self.protocol != ip::TCP || self.is_fragment {
            return None;
        }
        // The jumbo header of BIG TCP is not on the wire.
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

/// Decodes the headers of a packet.
#[inline]
pub fn decode(packet: &CapturedPacket<'_>) -> Decoded {
    // Some tools write an original length below the captured one.
    let length = packet.original_len.max(u32::try_from(packet.data.len()).unwrap_or(u32::MAX));
    let frame = length.saturating_sub(packet.fcs_bytes.unwrap_or(0).into());
    let data = &packet.data[..packet.data.len().min(frame as usize)];
    let mut reader = link::Frame {
        rest: Rest { data, room: frame },
        vlans: Vlans::default(),
        mpls_labels: 0,
        direction: packet.direction,
    };
    let ip = match reader.parse_link(packet.link_type) {
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

/// Rest of a packet after the headers parsed so far.
#[derive(Clone, Copy)]
struct Rest<'a> {
    /// Captured bytes of the rest.
    data: &'a [u8],
    /// Length of the rest before the capture cut it.
    room: u32,
}

impl<'a> Rest<'a> {
    /// Returns the first `N` bytes, a header, and removes them.
    #[inline]
    fn split_header<const N: usize>(&mut self, header: &'static str) -> Result<&'a [u8; N], NoIp> {
        let (head, data) = self.data.split_first_chunk().ok_or(NoIp::Cut(header))?;
        *self = Self { data, room: self.room - N as u32 };
        Ok(head)
    }

    /// Skips `bytes` of the rest.
    fn skip_bytes(&mut self, bytes: usize, header: &'static str) -> Result<(), NoIp> {
        let data = self.data.get(bytes..).ok_or(NoIp::Cut(header))?;
        *self = Self { data, room: self.room - bytes as u32 };
        Ok(())
    }

    /// Cuts the rest to `room` bytes; the bytes after them are padding.
    fn shorten(&mut self, room: u32) {
        self.room = self.room.min(room);
        self.data = &self.data[..self.data.len().min(self.room as usize)];
    }
}

/// The 16-bit word at `at`, in network byte order.
const fn read_be_u16<const N: usize>(bytes: &[u8; N], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}
