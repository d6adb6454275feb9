//! Link types: the link-layer headers with which captured packets start.
//!
//! Numbers: the list of link types kept by the Tcpdump Group (LINKTYPE_ values), and the DLT_RAW
//! values 12 and 14, which some systems wrote into files instead of 101.

use std::fmt;

/// Link-layer header type of packets, a LINKTYPE_ number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LinkType(pub u16);

impl LinkType {
    /// BSD loopback: an address family of four bytes in the order of the writing machine.
    pub const NULL: Self = Self(0);
    /// Ethernet, without preamble.
    pub const ETHERNET: Self = Self(1);
    /// PPP, with or without address and control bytes.
    pub const PPP: Self = Self(9);
    /// IP without a link layer, as most BSDs number it.
    pub const RAW_12: Self = Self(12);
    /// IP without a link layer, as OpenBSD numbers it.
    pub const RAW_14: Self = Self(14);
    /// PPP in HDLC-like framing (RFC 1662), or Cisco HDLC.
    pub const PPP_HDLC: Self = Self(50);
    /// IP without a link layer.
    pub const RAW: Self = Self(101);
    /// Cisco HDLC framing.
    pub const CISCO_HDLC: Self = Self(104);
    /// OpenBSD loopback: an address family of four bytes in network order.
    pub const LOOP: Self = Self(108);
    /// Linux "cooked" capture, 16 bytes.
    pub const LINUX_SLL: Self = Self(113);
    /// IPv4 without a link layer.
    pub const IPV4: Self = Self(228);
    /// IPv6 without a link layer.
    pub const IPV6: Self = Self(229);
    /// Linux "cooked" capture version 2, 20 bytes.
    pub const LINUX_SLL2: Self = Self(276);

    /// Name of the type, if [`super::CapturedPacket::decode`] supports it.
    pub const fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::NULL => "BSD loopback",
            Self::ETHERNET => "Ethernet",
            Self::PPP => "PPP",
            Self::RAW | Self::RAW_12 | Self::RAW_14 => "raw IP",
            Self::PPP_HDLC => "PPP in HDLC framing",
            Self::CISCO_HDLC => "Cisco HDLC",
            Self::LOOP => "OpenBSD loopback",
            Self::LINUX_SLL => "Linux cooked",
            Self::IPV4 => "raw IPv4",
            Self::IPV6 => "raw IPv6",
            Self::LINUX_SLL2 => "Linux cooked v2",
            _ => return None,
        })
    }

    /// True if the link-layer header is on the wire, and not only in the capture.
    pub(super) const fn has_frame(self) -> bool {
        matches!(self, Self::ETHERNET | Self::PPP | Self::PPP_HDLC | Self::CISCO_HDLC)
    }

    /// True if [`super::CapturedPacket::decode`] can find the IP header of such packets.
    pub const fn is_readable(self) -> bool {
        self.name().is_some()
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} (link type {})", self.0),
            None => write!(f, "link type {}", self.0),
        }
    }
}
