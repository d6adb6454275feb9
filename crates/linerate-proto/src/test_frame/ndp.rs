//! Neighbour discovery of IPv6 (RFC 4861), as far as hosts need it to be found.
//!
//! ```text
//! IPv6 with hop limit 255, ICMPv6:  0 type  1 code 0  2 checksum
//! solicitation  135  4 reserved  8 target (16)  24 options, 1: source's hardware address
//! advertisement 136  4 flags R S O  8 target (16)  24 options, 2: target's hardware address
//! ```
//!
//! Left out: routers, redirects, SEND.

use std::net::Ipv6Addr;

use super::ether::{self, Ether, IPV6};
use super::{Mac, Tags};
use crate::frame::checksum::Sum;

const ICMPV6: u8 = 58;
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
const SOLICITED: u8 = 0x40;
const OVERRIDE: u8 = 0x20;
const ALL_NODES: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1);

/// A message of neighbour discovery whose checksum and hop limit are right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Neighbour {
    kind: u8,
    source: Ipv6Addr,
    target: Ipv6Addr,
    /// Hardware address of the option that belongs to the message.
    option: Option<Mac>,
}

impl Neighbour {
    pub(super) fn parse(ether: &Ether<'_>) -> Option<Self> {
        let (header, rest) =
            (ether.kind == IPV6).then(|| ether.body.split_first_chunk::<40>())??;
        let message = rest.get(..usize::from(u16::from_be_bytes([header[4], header[5]])))?;
        let (head, options) = message.split_first_chunk::<24>()?;
        let is_whole = header[0] >> 4 == 6 && header[6] == ICMPV6 && header[7] == 255;
        let is_known = matches!(head[0], SOLICITATION | ADVERTISEMENT) && head[1] == 0;
        // RFC 4861 §7.1.1 and §7.1.2.
        if !is_whole || !is_known || sum(header, message).folded() != 0xffff {
            return None;
        }
        let address = |bytes: &[u8]| bytes.first_chunk::<16>().copied().map(Ipv6Addr::from);
        let (source, destination) = (address(&header[8..])?, address(&header[24..])?);
        let target = address(&head[8..])?;
        let option = option(options, if head[0] == SOLICITATION { 1 } else { 2 })?;
        let from_nobody = source.is_unspecified() && head[0] == SOLICITATION;
        let is_right = !from_nobody || option.is_none() && destination == group(target);
        let neighbour = Self { kind: head[0], source, target, option };
        (is_right && !target.is_multicast()).then_some(neighbour)
    }

    /// The address that a solicitation asks for.
    pub(super) fn asked(&self) -> Option<Ipv6Addr> {
        (self.kind == SOLICITATION).then_some(self.target)
    }

    /// Whether an advertisement says who has `address`.
    pub(super) fn tells(&self, address: Ipv6Addr) -> Option<Mac> {
        (self.kind == ADVERTISEMENT && self.target == address).then_some(self.option)?
    }
}

/// The hardware address of the option `kind`, if it is there; `None` when options are malformed.
fn option(mut options: &[u8], kind: u8) -> Option<Option<Mac>> {
    let mut found = None;
    while let [this, units, ..] = *options {
        let (option, rest) = options.split_at_checked(8 * usize::from(units))?;
        // An option of length 0 makes the message void (RFC 4861 §4.6).
        let body = option.get(2..)?;
        if this == kind {
            found = body.first_chunk().copied().map(Mac);
        }
        options = rest;
    }
    options.is_empty().then_some(found)
}

/// Where solicitations for an address go (RFC 4291 §2.7.1).
fn group(address: Ipv6Addr) -> Ipv6Addr {
    let [.., a, b, c] = address.octets();
    Ipv6Addr::from([0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, a, b, c])
}

/// The hardware address of a group (RFC 2464 §7).
const fn group_mac(group: Ipv6Addr) -> Mac {
    let [.., a, b, c, d] = group.octets();
    Mac([0x33, 0x33, a, b, c, d])
}

fn sum(header: &[u8; 40], message: &[u8]) -> Sum {
    // Payload length and next header stand for those of the pseudo-header (RFC 8200 §8.1).
    Sum::of(&header[8..])
        .plus(Sum::of_u64(message.len() as u64))
        .plus(Sum::of_u16(ICMPV6.into()))
        .plus(Sum::of(message))
}

/// A message between two stations.
struct Message {
    kind: u8,
    flags: u8,
    from: (Mac, Ipv6Addr),
    to: (Mac, Ipv6Addr),
    target: Ipv6Addr,
}

impl Message {
    fn frame(&self, tags: Tags) -> Vec<u8> {
        let option = if self.kind == SOLICITATION { 1 } else { 2 };
        let mut message = vec![self.kind, 0, 0, 0, self.flags, 0, 0, 0];
        message.extend_from_slice(&self.target.octets());
        message.extend_from_slice(&[option, 1]);
        message.extend_from_slice(&self.from.0.0);
        let mut header = [0; 40];
        (header[0], header[5], header[6], header[7]) = (0x60, message.len() as u8, ICMPV6, 255);
        header[8..24].copy_from_slice(&self.from.1.octets());
        header[24..].copy_from_slice(&self.to.1.octets());
        let checksum = sum(&header, &message).checksum();
        message[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut bytes = ether::head(self.to.0, self.from.0, tags);
        bytes.extend_from_slice(&IPV6.to_be_bytes());
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(&message);
        bytes
    }
}

/// The advertisement of the host `mac` that answers a solicitation; to all nodes when the asker
/// has no address yet (RFC 4861 §7.2.4).
pub(super) fn answer(asked: &Neighbour, ether: &Ether<'_>, mac: Mac) -> Vec<u8> {
    let from = (mac, asked.target);
    let (flags, to) = if asked.source.is_unspecified() {
        (OVERRIDE, (group_mac(ALL_NODES), ALL_NODES))
    } else {
        (SOLICITED | OVERRIDE, (asked.option.unwrap_or(ether.source), asked.source))
    };
    Message { kind: ADVERTISEMENT, flags, from, to, target: asked.target }.frame(ether.tags)
}

/// Says to all nodes where `address` is (RFC 4861 §7.2.6).
pub(super) fn announcement(mac: Mac, address: Ipv6Addr, tags: Tags) -> Vec<u8> {
    let to = (group_mac(ALL_NODES), ALL_NODES);
    let from = (mac, address);
    Message { kind: ADVERTISEMENT, flags: OVERRIDE, from, to, target: address }.frame(tags)
}

/// Asks who has `target`.
pub(super) fn request(from: (Mac, Ipv6Addr), target: Ipv6Addr, tags: Tags) -> Vec<u8> {
    let to = (group_mac(group(target)), group(target));
    Message { kind: SOLICITATION, flags: 0, from, to, target }.frame(tags)
}
