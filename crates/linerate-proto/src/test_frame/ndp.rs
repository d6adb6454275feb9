//! Neighbour discovery of IPv6 (RFC 4861): solicitations and advertisements of hosts.
//! Left out: routers, redirects, SEND.

use std::net::Ipv6Addr;

use etherparse::icmpv6::{
    Icmpv6PayloadSlice, NdpOptionSlice, NdpOptionType, NeighborAdvertisementHeader,
};
use etherparse::{Icmpv6Slice, Icmpv6Type, IpNumber, Ipv6Header, PacketBuilder};

use super::ether::{self, Ether, IPV6};
use super::{Mac, Tags};

/// Hop limit of every message, which proves that no router forwarded it (RFC 4861 §3.1).
const HOP_LIMIT: u8 = 255;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A neighbour discovery message with valid checksum and hop limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    is_solicitation: bool,
    source: Ipv6Addr,
    target: Ipv6Addr,
    /// MAC address in the source or target link-layer address option.
    option: Option<Mac>,
}

impl Neighbour {
    pub(super) fn parse(ether: &Ether<'_>) -> Option<Self> {
        let (ip, rest) =
            (ether.kind == IPV6).then(|| Ipv6Header::from_slice(ether.body).ok())??;
        let message = Icmpv6Slice::from_slice(rest.get(..ip.payload_length.into())?).ok()?;
        let is_whole = ip.next_header == IpNumber::IPV6_ICMP && ip.hop_limit == HOP_LIMIT;
        // RFC 4861 §7.1.1 and §7.1.2.
        if !is_whole || !message.is_checksum_valid(ip.source, ip.destination) {
            return None;
        }
        use Icmpv6PayloadSlice::{NeighborAdvertisement, NeighborSolicitation};
        let (is_solicitation, target, options) = match message.payload_slice().ok()? {
            NeighborSolicitation(slice) => (true, slice.target_address(), slice.options_iterator()),
            NeighborAdvertisement(slice) => {
                (false, slice.target_address(), slice.options_iterator())
            }
            _ => return None,
        };
        let mut option = None;
        for parsed in options {
            // One malformed option makes the message invalid (RFC 4861 §4.6).
            let address = match parsed.ok()? {
                NdpOptionSlice::SourceLinkLayerAddress(slice) if is_solicitation => {
                    slice.link_layer_address()
                }
                NdpOptionSlice::TargetLinkLayerAddress(slice) if !is_solicitation => {
                    slice.link_layer_address()
                }
                _ => continue,
            };
            option = address.first_chunk().copied().map(Mac);
        }
        let source = ip.source_addr();
        let from_nobody = source.is_unspecified() && is_solicitation;
        let is_right =
            !from_nobody || option.is_none() && ip.destination_addr() == solicited_node(target);
        let neighbour = Self { is_solicitation, source, target, option };
        (is_right && !target.is_multicast()).then_some(neighbour)
    }

    /// Target address of a solicitation.
    pub(super) fn requested(&self) -> Option<Ipv6Addr> {
        self.is_solicitation.then_some(self.target)
    }

    /// MAC address of `address`, if this is its advertisement.
    pub(super) fn owner_mac(&self, address: Ipv6Addr) -> Option<Mac> {
        (!self.is_solicitation && self.target == address).then_some(self.option)?
    }
}

/// Solicited-node multicast address of an address (RFC 4291 §2.7.1).
fn solicited_node(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// MAC address of a multicast group (RFC 2464 §7).
const fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

/// A message between two stations.
struct NdpMessage {
    kind: Icmpv6Type,
    from: (Mac, Ipv6Addr),
    to: (Mac, Ipv6Addr),
    target: Ipv6Addr,
}

impl NdpMessage {
    fn frame_bytes(self, tags: Tags) -> Vec<u8> {
        let option = match self.kind {
            Icmpv6Type::NeighborSolicitation => NdpOptionType::SOURCE_LINK_LAYER_ADDRESS,
            _ => NdpOptionType::TARGET_LINK_LAYER_ADDRESS,
        };
        let mut bytes = ether::frame_head(self.to.0, self.from.0, tags);
        bytes.extend_from_slice(&IPV6.to_be_bytes());
        // The option's length is in units of 8 bytes.
        let body = [&self.target.octets()[..], &[option.0, 1], &self.from.0.0].concat();
        PacketBuilder::ipv6(self.from.1.octets(), self.to.1.octets(), HOP_LIMIT)
            .icmpv6(self.kind)
            .write_to_vec(&mut bytes, &body)
            .expect("24 bytes fit into a packet");
        bytes
    }
}

fn advertisement(solicited: bool) -> Icmpv6Type {
    let header = NeighborAdvertisementHeader { router: false, solicited, r#override: true };
    Icmpv6Type::NeighborAdvertisement(header)
}

/// Advertisement of the host `mac` that answers a solicitation; sent to all nodes when the
/// soliciting host has no address yet (RFC 4861 §7.2.4).
pub(super) fn solicited_advertisement(asked: &Neighbour, ether: &Ether<'_>, mac: Mac) -> Vec<u8> {
    if asked.source.is_unspecified() {
        return announcement(mac, asked.target, ether.tags);
    }
    let from = (mac, asked.target);
    let to = (asked.option.unwrap_or(ether.source), asked.source);
    NdpMessage { kind: advertisement(true), from, to, target: asked.target }.frame_bytes(ether.tags)
}

/// Unsolicited advertisement of `address` to all nodes (RFC 4861 §7.2.6).
pub(super) fn announcement(mac: Mac, address: Ipv6Addr, tags: Tags) -> Vec<u8> {
    let to = (group_mac(ALL_NODES), ALL_NODES);
    let from = (mac, address);
    NdpMessage { kind: advertisement(false), from, to, target: address }.frame_bytes(tags)
}

/// Solicitation for the MAC address of `target`.
pub(super) fn request(from: (Mac, Ipv6Addr), target: Ipv6Addr, tags: Tags) -> Vec<u8> {
    let to = (group_mac(solicited_node(target)), solicited_node(target));
    NdpMessage { kind: Icmpv6Type::NeighborSolicitation, from, to, target }.frame_bytes(tags)
}
