//! What the elements know of a packet. Its bytes stay with the caller, under the tag.

/// One IP packet on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Number of the packet among those that entered this direction, from 0; the pipeline gives it.
    /// [`Packet::UNNUMBERED`] stays: the packet is not counted.
    pub number: u64,
    /// Length of the IP packet.
    pub ip_bytes: u32,
    /// Hash of addresses, protocol and ports: one flow, one value.
    pub flow: u32,
    /// Hashes of its source and destination address.
    pub hosts: [u32; 2],
    /// The ECN field of its IP header.
    pub ecn: Ecn,
    /// Not to be fragmented (IPv4 DF; always for IPv6).
    pub dont_fragment: bool,
    /// Bits of it were changed on the way.
    pub corrupted: bool,
    /// Key with which the caller finds the packet's bytes; [`Packet::CROSS`] for cross traffic,
    /// which has none.
    pub tag: u64,
}

impl Packet {
    /// Number of a packet that the host sends for itself: it is not counted in lists of packets.
    pub const UNNUMBERED: u64 = u64::MAX;

    /// Tag of cross traffic, which exists on the path alone and never leaves it.
    pub const CROSS: u64 = u64::MAX;

    /// True when this packet is cross traffic.
    pub const fn is_cross(&self) -> bool {
        self.tag == Self::CROSS
    }
}

/// The ECN field (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ecn {
    /// The sender is not ECN-capable.
    #[default]
    NotCapable,
    /// ECN-capable, codepoint ECT(1).
    Capable1,
    /// ECN-capable, codepoint ECT(0).
    Capable0,
    /// Congestion was experienced.
    Experienced,
}

impl Ecn {
    /// The field as it is in the two lowest bits of the traffic class (RFC 3168 §5).
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::Experienced,
        }
    }

    /// True when a queue may mark the packet instead of dropping it.
    pub const fn may_be_marked(self) -> bool {
        !matches!(self, Self::NotCapable)
    }
}
