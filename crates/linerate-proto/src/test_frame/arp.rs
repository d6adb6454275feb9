//! ARP for IPv4 on Ethernet (RFC 826, RFC 5227).
//!
//! ```text
//!  0 hardware 1  2 protocol 0x0800  4 lengths 6, 4  6 operation: 1 request, 2 reply
//!  8 sender hardware (6)  14 sender (4)  18 target hardware (6)  24 target (4)
//! ```

use std::net::Ipv4Addr;

use super::ether::{self, ARP, Ether};
use super::{Mac, Tags};

const REQUEST: u16 = 1;
const REPLY: u16 = 2;

/// A message of ARP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arp {
    operation: u16,
    pub(super) sender: (Mac, Ipv4Addr),
    target: (Mac, Ipv4Addr),
}

impl Arp {
    pub(super) fn parse(ether: &Ether<'_>) -> Option<Self> {
        let body: &[u8; 28] = (ether.kind == ARP).then(|| ether.body.first_chunk())??;
        (body[..6] == [0, 1, 8, 0, 6, 4]).then_some(())?;
        let mac = |at: usize| body[at..].first_chunk().copied().map(Mac);
        let address = |at: usize| body[at..].first_chunk::<4>().copied().map(Ipv4Addr::from);
        Some(Self {
            operation: u16::from_be_bytes([body[6], body[7]]),
            sender: (mac(8)?, address(14)?),
            target: (mac(18)?, address(24)?),
        })
    }

    /// The address that a request asks for. A probe (sender 0.0.0.0) asks as well.
    pub(super) fn asked(&self) -> Option<Ipv4Addr> {
        (self.operation == REQUEST).then_some(self.target.1)
    }

    /// Whether it says who has `address`: a reply, or a request of that host.
    pub(super) fn tells(&self, address: Ipv4Addr) -> Option<Mac> {
        let is_known = matches!(self.operation, REQUEST | REPLY);
        (is_known && self.sender.1 == address && !self.sender.0.is_group()).then_some(self.sender.0)
    }

    fn frame(self, to: Mac, tags: Tags) -> Vec<u8> {
        let mut bytes = ether::head(to, self.sender.0, tags);
        bytes.extend_from_slice(&ARP.to_be_bytes());
        bytes.extend_from_slice(&[0, 1, 8, 0, 6, 4]);
        bytes.extend_from_slice(&self.operation.to_be_bytes());
        for (mac, address) in [self.sender, self.target] {
            bytes.extend_from_slice(&mac.0);
            bytes.extend_from_slice(&address.octets());
        }
        ether::padded(bytes)
    }
}

/// The reply of the host `mac` to a request from `to`.
pub(super) fn reply(request: &Arp, mac: Mac, tags: Tags) -> Vec<u8> {
    let sender = (mac, request.target.1);
    Arp { operation: REPLY, sender, target: request.sender }.frame(request.sender.0, tags)
}

/// Says to all stations where `address` is (RFC 5227 §1.1: a request for the own address).
pub(super) fn announcement(mac: Mac, address: Ipv4Addr, tags: Tags) -> Vec<u8> {
    let target = (Mac::default(), address);
    Arp { operation: REQUEST, sender: (mac, address), target }.frame(Mac::BROADCAST, tags)
}

/// Asks all stations who has `target`.
pub(super) fn request(sender: (Mac, Ipv4Addr), target: Ipv4Addr, tags: Tags) -> Vec<u8> {
    let target = (Mac::default(), target);
    Arp { operation: REQUEST, sender, target }.frame(Mac::BROADCAST, tags)
}
