//! Routes: static ones, and the kernel's answer to "which way?" (rtnetlink(7), RTM_*ROUTE).

use std::io;
use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteHeader, RouteMessage, RouteProtocol, RouteScope, RouteType,
};

use super::address::family;
use super::socket::{Attempt, RouteSocket};
use crate::Result;

impl RouteSocket {
    /// Adds a static route: packets to `network`/`prefix_len` go to the neighbour `gateway`.
    /// # Errors
    /// When the gateway is on no link of the namespace, or without CAP_NET_ADMIN.
    pub fn add_route(&mut self, network: IpAddr, prefix_len: u8, gateway: IpAddr) -> Result<()> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(network);
        message.header.destination_prefix_length = prefix_len;
        message.header.table = RouteHeader::RT_TABLE_MAIN;
        message.header.protocol = RouteProtocol::Static;
        message.header.scope = RouteScope::Universe;
        message.header.kind = RouteType::Unicast;
        message.attributes = vec![
            RouteAttribute::Destination(route_address(network)),
            RouteAttribute::Gateway(route_address(gateway)),
        ];
        let attempt = Attempt { call: "add route to", object: &network };
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewRoute(message), flags, &attempt)
    }

    /// Index of the interface by which packets to `addr` leave.
    /// # Errors
    /// When there is no route.
    pub fn route_interface(&mut self, addr: IpAddr) -> Result<u32> {
        let mut message = RouteMessage::default();
        message.header.address_family = family(addr);
        message.header.destination_prefix_length = if addr.is_ipv4() { 32 } else { 128 };
        message.attributes = vec![RouteAttribute::Destination(route_address(addr))];
        let attempt = Attempt { call: "look up route to", object: &addr };
        let replies = self.get(RouteNetlinkMessage::GetRoute(message), &attempt)?;
        let interface = replies.iter().find_map(outgoing_interface);
        interface.ok_or_else(|| attempt.failed(io::Error::other("no route names an interface")))
    }
}

fn outgoing_interface(reply: &RouteNetlinkMessage) -> Option<u32> {
    let RouteNetlinkMessage::NewRoute(route) = reply else { return None };
    route.attributes.iter().find_map(|attribute| match attribute {
        RouteAttribute::Oif(index) => Some(*index),
        _ => None,
    })
}

fn route_address(addr: IpAddr) -> RouteAddress {
    match addr {
        IpAddr::V4(addr) => RouteAddress::Inet(addr),
        IpAddr::V6(addr) => RouteAddress::Inet6(addr),
    }
}
