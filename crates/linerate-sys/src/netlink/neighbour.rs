//! Neighbours that do not have to be asked for (rtnetlink(7), RTM_NEWNEIGH).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_REPLACE};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};

use super::address::family;
use super::socket::{Attempt, RouteSocket};
use crate::Result;

/// A neighbour on a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// The link that it is reached by.
    pub index: u32,
    /// Its address.
    pub addr: IpAddr,
    /// Its hardware address.
    pub mac: [u8; 6],
}

impl RouteSocket {
    /// Makes a neighbour known for good: it is never asked for, and its entry never expires.
    /// # Errors
    /// When the link does not exist, or without CAP_NET_ADMIN.
    pub fn set_neighbour(&mut self, neighbour: &Neighbour) -> Result<()> {
        let mut message = NeighbourMessage::default();
        message.header.family = family(neighbour.addr);
        message.header.ifindex = neighbour.index;
        message.header.state = NeighbourState::Permanent;
        let addr = match neighbour.addr {
            IpAddr::V4(addr) => NeighbourAddress::Inet(addr),
            IpAddr::V6(addr) => NeighbourAddress::Inet6(addr),
        };
        message.attributes = vec![
            NeighbourAttribute::Destination(addr),
            NeighbourAttribute::LinkLayerAddress(neighbour.mac.to_vec()),
        ];
        let attempt = Attempt { call: "set the neighbour", object: &neighbour.addr };
        let flags = NLM_F_CREATE | NLM_F_REPLACE;
        self.change(RouteNetlinkMessage::NewNeighbour(message), flags, &attempt)
    }
}
