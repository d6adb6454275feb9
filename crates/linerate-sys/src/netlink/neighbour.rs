//! Neighbours: permanent entries, and resolution of a neighbour's MAC address (rtnetlink(7),
//! RTM_NEWNEIGH, RTM_GETNEIGH).

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourFlags, NeighbourMessage, NeighbourState,
};

use super::address::family;
use super::socket::{Attempt, RouteSocket};
use crate::{Result, clock};

/// Time-out of a neighbour's resolution, and the interval of checks.
const ASKING: Duration = Duration::from_secs(1);
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// A neighbour on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourEntry {
    /// Index of the link.
    pub index: u32,
    /// IP address of the neighbour.
    pub addr: IpAddr,
    /// MAC address of the neighbour.
    pub mac: [u8; 6],
}

impl RouteSocket {
    /// Adds a permanent neighbour entry, which needs no resolution and never expires.
    /// # Errors
    /// When the link does not exist, or without CAP_NET_ADMIN.
    pub fn set_neighbour(&mut self, neighbour: &NeighbourEntry) -> Result<()> {
        let mut message = neighbour_message(neighbour.index, neighbour.addr);
        message.header.state = NeighbourState::Permanent;
        message.attributes.push(NeighbourAttribute::LinkLayerAddress(neighbour.mac.to_vec()));
        let attempt = Attempt { call: "set the neighbour", object: &neighbour.addr };
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewNeighbour(message), flags, &attempt)
    }

    /// MAC address of a neighbour, which is resolved where it is not known; this takes up to a
    /// second.
    /// # Errors
    /// When the neighbour does not answer, when the link has no MAC addresses, or without
    /// CAP_NET_ADMIN.
    pub fn resolve_neighbour(&mut self, index: u32, addr: IpAddr) -> Result<[u8; 6]> {
        let attempt = Attempt { call: "ask for the hardware address of", object: &addr };
        let mut message = neighbour_message(index, addr);
        message.header.flags = NeighbourFlags::Use;
        self.change(RouteNetlinkMessage::NewNeighbour(message), NLM_F_CREATE, &attempt)?;
        let until = clock::monotonic() + ASKING;
        loop {
            if let Some(mac) = self.known_neighbour(index, addr)? {
                return Ok(mac);
            }
            if clock::monotonic() >= until {
                let reason = "nobody answers at that address on its link";
                return Err(attempt.failed(io::Error::new(io::ErrorKind::HostUnreachable, reason)));
            }
            clock::sleep(LOOK_AGAIN);
        }
    }

    /// Next hop towards `addr` if it answered neither ARP nor a neighbour solicitation; `None` if
    /// it did, or if the link has no neighbour resolution.
    /// # Errors
    /// When there is no route.
    pub fn silent_hop(&mut self, addr: IpAddr) -> Result<Option<IpAddr>> {
        let (index, hop) = self.next_hop(addr)?;
        let mut message = NeighbourMessage::default();
        message.header.family = family(hop);
        let attempt = Attempt { call: "list", object: &"neighbours" };
        let replies = self.dump_objects(RouteNetlinkMessage::GetNeighbour(message), &attempt)?;
        let theirs = NeighbourAttribute::Destination(neighbour_address(hop));
        let silent = replies.iter().any(|reply| {
            let RouteNetlinkMessage::NewNeighbour(it) = reply else { return false };
            it.header.ifindex == index
                && it.attributes.contains(&theirs)
                && matches!(it.header.state, NeighbourState::Failed | NeighbourState::Incomplete)
        });
        Ok(silent.then_some(hop))
    }

    fn known_neighbour(&mut self, index: u32, addr: IpAddr) -> Result<Option<[u8; 6]>> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(addr);
        let attempt = Attempt { call: "list", object: &"neighbours" };
        let replies = self.dump_objects(RouteNetlinkMessage::GetNeighbour(message), &attempt)?;
        let theirs = NeighbourAttribute::Destination(neighbour_address(addr));
        Ok(replies.iter().find_map(|reply| {
            let RouteNetlinkMessage::NewNeighbour(it) = reply else { return None };
            if it.header.ifindex != index || !it.attributes.contains(&theirs) {
                return None;
            }
            it.attributes.iter().find_map(|attribute| match attribute {
                NeighbourAttribute::LinkLayerAddress(mac) => mac.as_slice().try_into().ok(),
                _ => None,
            })
        }))
    }
}

/// A message with index and address of a neighbour.
fn neighbour_message(index: u32, addr: IpAddr) -> NeighbourMessage {
    let mut message = NeighbourMessage::default();
    message.header.family = family(addr);
    message.header.ifindex = index;
    message.attributes = vec![NeighbourAttribute::Destination(neighbour_address(addr))];
    message
}

const fn neighbour_address(addr: IpAddr) -> NeighbourAddress {
    match addr {
        IpAddr::V4(addr) => NeighbourAddress::Inet(addr),
        IpAddr::V6(addr) => NeighbourAddress::Inet6(addr),
    }
}
