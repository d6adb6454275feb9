//! Link-layer headers, up to the start of the IP header.
//!
//! ```text
//! Ethernet    0 destination (6)  6 source (6)  12 type or length (2)   IEEE 802.3 §3.1.1
//! VLAN tag    0 priority and identifier (2)  2 type or length (2)      IEEE 802.1Q §9
//! LLC/SNAP    0 aa aa 03  3 organisation (3)  6 type (2)               IEEE 802 §9, RFC 1042
//! MPLS        0 label (20 bits) class (3) bottom (1) TTL (8)           RFC 3032 §2.1
//! PPPoE       0 version, type  1 code  2 session (2)  4 length (2)     RFC 2516 §4
//! PPP         0 ff 03, if not compressed away, then protocol (1 or 2)  RFC 1661 §2, RFC 1662 §3
//! Cisco HDLC  0 address  1 control  2 type (2)
//! SLL         0 packet type (2)  2 ARPHRD (2)  4 address (10)  14 type (2)
//! SLL2        0 type (2)  2 zero (2)  4 interface (4)  8 ARPHRD (2)  10 packet type
//!             11 address (9)
//! ```

use super::super::{CaptureDirection, LinkType};
use super::ip::Version;
use super::{NoIp, Rest, Vlans, read_be_u16};

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const VLAN: u16 = 0x8100;
/// EtherTypes of service tags: IEEE 802.1ad, and those of switches before that standard.
const SERVICE_VLANS: [u16; 3] = [0x88a8, 0x9100, 0x9200];
const MPLS: [u16; 2] = [0x8847, 0x8848];
const PPPOE_SESSION: u16 = 0x8864;
/// Smallest EtherType; a smaller value is the length of an LLC frame (IEEE 802.3 §3.2.6).
const TYPE_MIN: u16 = 0x0600;

/// Most VLAN tags, and most MPLS labels, of a frame; real stacks have fewer than 8.
const STACK_MAX: u8 = 16;

/// A frame whose link layer is being parsed.
pub(super) struct Frame<'a> {
    /// Bytes that are not parsed yet; in the end the IP packet.
    pub(super) rest: Rest<'a>,
    pub(super) vlans: Vlans,
    pub(super) mpls_labels: u8,
    pub(super) direction: Option<CaptureDirection>,
}

impl Frame<'_> {
    /// Parses the link layer and returns the version of the IP header after it.
    #[inline]
    pub(super) fn parse_link(&mut self, link_type: LinkType) -> Result<Version, NoIp> {
        if link_type == LinkType::ETHERNET {
            let head = self.rest.split_header::<14>("Ethernet header")?;
            return match read_be_u16(head, 12) {
                IPV4 => Ok(Version::V4),
                other => self.ether_type(other),
            };
        }
        self.rare_link(link_type)
    }

    fn rare_link(&mut self, link_type: LinkType) -> Result<Version, NoIp> {
        match link_type {
            LinkType::RAW
            | LinkType::RAW_12
            | LinkType::RAW_14
            | LinkType::IPV4
            | LinkType::IPV6 => Ok(Version::Either),
            LinkType::NULL | LinkType::LOOP => self.loopback(),
            LinkType::LINUX_SLL => self.cooked(),
            LinkType::LINUX_SLL2 => self.cooked_v2(),
            LinkType::PPP | LinkType::PPP_HDLC => self.ppp_or_hdlc(),
            LinkType::CISCO_HDLC => self.cisco_hdlc(),
            other => Err(NoIp::LinkType(other)),
        }
    }

    /// Parses the bytes after a type field: VLAN tags, then IP or another protocol.
    fn ether_type(&mut self, mut ether_type: u16) -> Result<Version, NoIp> {
        while ether_type == VLAN || SERVICE_VLANS.contains(&ether_type) {
            let tag = self.rest.split_header::<4>("VLAN tag")?;
            self.add_vlan(read_be_u16(tag, 0) & 0x0fff)?;
            ether_type = read_be_u16(tag, 2);
        }
        match ether_type {
            IPV4 => Ok(Version::V4),
            IPV6 => Ok(Version::V6),
            PPPOE_SESSION => self.parse_pppoe(),
            other if MPLS.contains(&other) => self.parse_mpls(),
            length if length < TYPE_MIN => self.parse_llc(length),
            other => Err(NoIp::EtherType(other)),
        }
    }

    fn add_vlan(&mut self, id: u16) -> Result<(), NoIp> {
        let vlans = &mut self.vlans;
        if vlans.count == STACK_MAX {
            return Err(NoIp::Malformed("stack of VLAN tags"));
        }
        if let Some(place) = vlans.ids.get_mut(usize::from(vlans.count)) {
            *place = id;
        }
        vlans.count += 1;
        Ok(())
    }

    fn parse_llc(&mut self, length: u16) -> Result<Version, NoIp> {
        self.rest.shorten(length.into());
        let head = self.rest.split_header::<8>("LLC header")?;
        let snap = [0xaa, 0xaa, 0x03, 0, 0, 0];
        if head[..6] != snap {
            return Err(NoIp::Llc);
        }
        match read_be_u16(head, 6) {
            IPV4 => Ok(Version::V4),
            IPV6 => Ok(Version::V6),
            other => Err(NoIp::EtherType(other)),
        }
    }

    /// Parses the label stack. Labels do not name their payload; the first bits of the IP header
    /// are its version (RFC 4928 §2).
    fn parse_mpls(&mut self) -> Result<Version, NoIp> {
        loop {
            let label = self.rest.split_header::<4>("MPLS label")?;
            if self.mpls_labels == STACK_MAX {
                return Err(NoIp::Malformed("stack of MPLS labels"));
            }
            self.mpls_labels += 1;
            if label[2] & 1 != 0 {
                return Ok(Version::Either);
            }
        }
    }

    fn parse_pppoe(&mut self) -> Result<Version, NoIp> {
        let head = self.rest.split_header::<6>("PPPoE header")?;
        if head[0] != 0x11 || head[1] != 0 {
            return Err(NoIp::Malformed("PPPoE header"));
        }
        self.rest.shorten(read_be_u16(head, 4).into());
        self.parse_ppp()
    }

    fn ppp_or_hdlc(&mut self) -> Result<Version, NoIp> {
        match self.rest.data {
            // Unicast and multicast addresses of Cisco HDLC; PPP's is 0xff.
            [0x0f | 0x8f, 0, ..] => self.cisco_hdlc(),
            [0xff, 0x03, ..] => {
                self.rest.skip_bytes(2, "PPP header")?;
                self.parse_ppp()
            }
            _ => self.parse_ppp(),
        }
    }

    /// Parses the protocol field, of one byte when its lowest bit is set, else two (RFC 1661 §6.5).
    fn parse_ppp(&mut self) -> Result<Version, NoIp> {
        let [first] = *self.rest.split_header::<1>("PPP header")?;
        let protocol = if first & 1 == 1 {
            first.into()
        } else {
            let [second] = *self.rest.split_header::<1>("PPP header")?;
            u16::from_be_bytes([first, second])
        };
        match protocol {
            0x0021 => Ok(Version::V4),
            0x0057 => Ok(Version::V6),
            // RFC 3032 §4.3: labels, unicast and multicast.
            0x0281 | 0x0283 => self.parse_mpls(),
            other => Err(NoIp::PppProtocol(other)),
        }
    }

    fn cisco_hdlc(&mut self) -> Result<Version, NoIp> {
        let head = self.rest.split_header::<4>("Cisco HDLC header")?;
        self.ether_type(read_be_u16(head, 2))
    }

    /// Parses an address family of unknown byte order: families are below 256 in the right one.
    /// AF_INET is 2 on all systems; AF_INET6 differs between them.
    fn loopback(&mut self) -> Result<Version, NoIp> {
        let head = self.rest.split_header::<4>("loopback header")?;
        let family = u32::from_le_bytes(*head).min(u32::from_be_bytes(*head));
        match family {
            2 => Ok(Version::V4),
            // Linux 10; NetBSD, OpenBSD 24; FreeBSD 28; macOS 30; Windows 23.
            10 | 23 | 24 | 28 | 30 => Ok(Version::V6),
            other => Err(NoIp::Family(other)),
        }
    }

    fn cooked(&mut self) -> Result<Version, NoIp> {
        let head = self.rest.split_header::<16>("Linux cooked header")?;
        self.cooked_direction(read_be_u16(head, 0));
        self.cooked_type(read_be_u16(head, 14))
    }

    fn cooked_v2(&mut self) -> Result<Version, NoIp> {
        let head = self.rest.split_header::<20>("Linux cooked v2 header")?;
        self.cooked_direction(head[10].into());
        self.cooked_type(read_be_u16(head, 0))
    }

    /// Direction by the packet type of packet(7): 0 to this host, 1 broadcast, 2 multicast, 3 to
    /// another host, 4 sent by this host.
    fn cooked_direction(&mut self, packet_type: u16) {
        let told =
            if packet_type == 4 { CaptureDirection::Outgoing } else { CaptureDirection::Incoming };
        self.direction.get_or_insert(told);
    }

    /// Parses the bytes after a type; below 0x0600 the types are Linux's, among them 4 for LLC.
    fn cooked_type(&mut self, ether_type: u16) -> Result<Version, NoIp> {
        match ether_type {
            4 => {
                let room = u16::try_from(self.rest.room).unwrap_or(u16::MAX);
                self.parse_llc(room)
            }
            own if own < TYPE_MIN => Err(NoIp::EtherType(own)),
            other => self.ether_type(other),
        }
    }
}
