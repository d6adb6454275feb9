//! Novell's IPX on Ethernet and its routing information protocol, after Novell's IPX Router
//! Specification 1.30 (1996), chapters 1 and 2.
//!
//! ```text
//! IPX  0 checksum 0xffff  2 length  4 hops  5 type  6 destination: network (4), node (6),
//!     16 socket (2)  18 source: network, node, socket
//! RIP  0 operation: 1 request, 2 response; then each: network (4), hops (2), ticks (2)
//! ```
//!
//! Left out: 802.2 and SNAP framing, SAP, SPX. The checksum 0xffff means none.

use super::ether::{self, Ether, IPX, LENGTH_MAX};
use super::{Ends, Mac, Tags};

/// Framing of IPX on Ethernet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IpxFraming {
    /// Directly after the length field ("802.3 raw").
    Raw8023,
    /// After EtherType 0x8137.
    EthernetII,
}

/// Bytes of the IPX header.
pub(super) const HEADER_BYTES: usize = 30;
/// Socket of the test frames, of the dynamic range (0x4000 to 0x7fff).
pub(super) const SOCKET: u16 = 0x4000;
/// Socket of the routing information protocol.
pub(super) const RIP_SOCKET: u16 = 0x0453;
const RIP_TYPE: u8 = 1;
const REQUEST: u16 = 1;
const RESPONSE: u16 = 2;
/// Network number of a request for all networks.
const ALL_NETWORKS: u32 = u32::MAX;
/// Most networks in a packet (576 bytes with the header).
pub(super) const ENTRIES_MAX: usize = 50;

/// Address of an IPX node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpxAddress {
    /// Network number, not 0 and not all ones.
    pub network: u32,
    /// MAC address of the node.
    pub node: Mac,
}

impl IpxAddress {
    pub(super) const TEST: Ends<Self> = Ends {
        source: Self { network: 0x0000_1812, node: Mac([2, 0, 0, 0, 0, 1]) },
        destination: Self { network: 0x0000_1912, node: Mac([2, 0, 0, 0, 0, 2]) },
    };

    pub(super) const fn is_valid(self) -> bool {
        self.network != 0 && self.network != u32::MAX && !self.node.is_group()
    }
}

/// Addresses, sockets and type of an IPX header.
pub(super) struct Header {
    pub(super) ends: Ends<IpxAddress>,
    pub(super) sockets: Ends<u16>,
    pub(super) kind: u8,
}

impl Header {
    /// Writes the header of a packet of `rest` bytes.
    pub(super) fn write(&self, bytes: &mut Vec<u8>, rest: u16) {
        bytes.extend_from_slice(&[0xff, 0xff]);
        bytes.extend_from_slice(&rest.to_be_bytes());
        bytes.extend_from_slice(&[0, self.kind]);
        let to = (self.ends.destination, self.sockets.destination);
        for (address, socket) in [to, (self.ends.source, self.sockets.source)] {
            bytes.extend_from_slice(&address.network.to_be_bytes());
            bytes.extend_from_slice(&address.node.0);
            bytes.extend_from_slice(&socket.to_be_bytes());
        }
    }

    /// Parses the header of a packet; returns it and the data within its length.
    fn parse(packet: &[u8]) -> Option<(Self, &[u8])> {
        let head: &[u8; HEADER_BYTES] = packet.first_chunk()?;
        let body = packet.get(HEADER_BYTES..usize::from(u16::from_be_bytes([head[2], head[3]])))?;
        let word = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
        let address = |at: usize| {
            let network = u32::from(word(at)) << 16 | u32::from(word(at + 2));
            let node = head[at + 4..].first_chunk().copied().map(Mac)?;
            Some(IpxAddress { network, node })
        };
        let ends = Ends { source: address(18)?, destination: address(6)? };
        let sockets = Ends { source: word(28), destination: word(16) };
        Some((Self { ends, sockets, kind: head[5] }, body))
    }
}

/// Framing and packet of a frame that carries IPX.
pub(super) fn find_packet<'a>(ether: &Ether<'a>) -> Option<(IpxFraming, &'a [u8])> {
    if ether.kind == IPX {
        return Some((IpxFraming::EthernetII, ether.body));
    }
    let packet = ether.llc_bytes()?;
    packet.starts_with(&[0xff, 0xff]).then_some((IpxFraming::Raw8023, packet))
}

/// A virtual IPX router at a port of the tester, with the networks that it announces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpxRouter {
    /// Framing of its frames.
    pub framing: IpxFraming,
    /// Address of the router on the port's network.
    pub address: IpxAddress,
    /// Networks reachable through it, one hop away; at most 50.
    pub networks: Vec<u32>,
}

impl IpxRouter {
    /// RIP update with its networks, to be sent every 60 s.
    pub fn update(&self, tags: Tags) -> Vec<u8> {
        let to = IpxAddress { network: self.address.network, node: Mac::BROADCAST };
        self.rip_response(to, RIP_SOCKET, &self.networks, tags)
    }

    /// Answer to a RIP request for one of its networks, or for all.
    pub(super) fn answer(&self, ether: &Ether<'_>) -> Option<Vec<u8>> {
        let (framing, packet) = find_packet(ether)?;
        let (header, body) = Header::parse(packet)?;
        let (operation, entries) = ether::split_be_u16(body)?;
        let is_request = operation == REQUEST && header.sockets.destination == RIP_SOCKET;
        let from_here = header.ends.source.node == self.address.node;
        if framing != self.framing || !is_request || from_here {
            return None;
        }
        let (entries, _) = entries.as_chunks::<8>();
        let wanted: Vec<u32> = entries
            .iter()
            .take(ENTRIES_MAX)
            .map(|[a, b, c, d, ..]| u32::from_be_bytes([*a, *b, *c, *d]))
            .collect();
        let all = wanted.contains(&ALL_NETWORKS);
        let networks = self.networks.iter().copied();
        let networks = networks.filter(|network| all || wanted.contains(network));
        let known: Vec<u32> = networks.collect();
        let to = IpxAddress { network: self.address.network, node: ether.source };
        (!known.is_empty())
            .then(|| self.rip_response(to, header.sockets.source, &known, ether.tags))
    }

    fn rip_response(&self, to: IpxAddress, socket: u16, networks: &[u32], tags: Tags) -> Vec<u8> {
        let networks = &networks[..networks.len().min(ENTRIES_MAX)];
        // At most 30 + 2 + 50 x 8 bytes.
        let length = (HEADER_BYTES + 2 + 8 * networks.len()) as u16;
        let mut bytes = ether::frame_head(to.node, self.address.node, tags);
        let kind = match self.framing {
            IpxFraming::EthernetII => IPX,
            IpxFraming::Raw8023 => length.min(LENGTH_MAX),
        };
        bytes.extend_from_slice(&kind.to_be_bytes());
        let ends = Ends { source: self.address, destination: to };
        let sockets = Ends { source: RIP_SOCKET, destination: socket };
        Header { ends, sockets, kind: RIP_TYPE }.write(&mut bytes, length);
        bytes.extend_from_slice(&RESPONSE.to_be_bytes());
        for network in networks {
            bytes.extend_from_slice(&network.to_be_bytes());
            bytes.extend_from_slice(&[0, 1, 0, 2]);
        }
        ether::padded(bytes)
    }
}
