//! Classifies received frames that are no test frames: the background traffic of hosts, routers and
//! switches. The counter checks trial and port of test frames itself.

use linerate_core::device::ForeignFrames;

use super::ether::{ARP, Ether, IPV6, LLDP, SLOW};

/// Kind of a frame that is no test frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ForeignKind {
    /// ARP of any operation.
    Arp,
    /// ICMPv6 types 130 to 137 and 143: discovery of neighbours, routers and listeners.
    NeighbourDiscovery,
    /// Spanning tree, LLDP, slow protocols: to 01:80:c2:00:00:00 to 0f, or of their types.
    LinkControl,
    /// PAUSE and priority flow control (IEEE 802.3 annex 31).
    Pause,
    /// Any other frame.
    Other,
}

impl ForeignKind {
    /// Classifies a frame by its headers.
    pub fn from_frame(frame: &[u8]) -> Self {
        if let Some([0x88, 0x08]) = frame.get(12..14) {
            return Self::Pause;
        }
        if let [1, 0x80, 0xc2, 0, 0, 0..=0x0f, ..] = frame {
            return Self::LinkControl;
        }
        let Some(ether) = Ether::parse(frame) else { return Self::Other };
        match ether.kind {
            ARP => Self::Arp,
            LLDP | SLOW => Self::LinkControl,
            IPV6 if is_discovery(ether.body) => Self::NeighbourDiscovery,
            // LLC of spanning tree, to any address.
            0..0x0600 if ether.body.starts_with(&[0x42, 0x42, 3]) => Self::LinkControl,
            _ => Self::Other,
        }
    }

    /// Counts one frame of this kind.
    pub const fn count_in(self, counts: &mut ForeignFrames) {
        match self {
            Self::Arp => counts.arp += 1,
            Self::NeighbourDiscovery => counts.neighbour_discovery += 1,
            Self::LinkControl => counts.link_control += 1,
            Self::Pause => counts.pause += 1,
            Self::Other => counts.other += 1,
        }
    }
}

/// True for neighbour discovery and multicast listener messages (RFC 4861 §4, RFC 2710 §3, RFC 3810
/// §5); listener reports have a hop-by-hop header.
fn is_discovery(packet: &[u8]) -> bool {
    let kind = match packet.get(6) {
        Some(58) => packet.get(40),
        Some(0) if packet.get(40) == Some(&58) => {
            packet.get(41).and_then(|units| packet.get(48 + 8 * usize::from(*units)))
        }
        _ => None,
    };
    matches!(kind, Some(130..=137 | 143))
}
