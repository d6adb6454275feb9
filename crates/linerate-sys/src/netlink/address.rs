//! Addresses of links (rtnetlink(7), RTM_NEWADDR).

use std::net::IpAddr;

use netlink_packet_core::{NLM_F_CREATE, NLM_F_EXCL};
use netlink_packet_route::address::{
    AddressAttribute, AddressFlags, AddressHeaderFlags, AddressMessage,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};

use super::socket::{Attempt, RouteSocket};
use crate::Result;

impl RouteSocket {
    /// Adds an address to a link. An IPv6 address is usable at once, because duplicate address
    /// detection (RFC 4862 §5.4), which takes a second, is off.
    /// # Errors
    /// When the link does not exist or has the address, or without CAP_NET_ADMIN.
    pub fn add_address(&mut self, index: u32, addr: IpAddr, prefix_len: u8) -> Result<()> {
        let mut message = AddressMessage::default();
        message.header.index = index;
        message.header.prefix_len = prefix_len;
        message.header.family = family(addr);
        message.attributes = vec![AddressAttribute::Local(addr), AddressAttribute::Address(addr)];
        if addr.is_ipv6() {
            message.header.flags = AddressHeaderFlags::Nodad;
            message.attributes.push(AddressAttribute::Flags(AddressFlags::Nodad));
        }
        let attempt = Attempt { call: "give a link the address", object: &addr };
        let flags = NLM_F_CREATE | NLM_F_EXCL;
        self.change(RouteNetlinkMessage::NewAddress(message), flags, &attempt)
    }
}

impl RouteSocket {
    /// Addresses of all links, each with the index of its link.
    /// # Errors
    /// When the kernel does not answer.
    pub fn addresses(&mut self) -> Result<Vec<(u32, IpAddr)>> {
        let message = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        let replies =
            self.dump_objects(message, &Attempt { call: "list", object: &"addresses" })?;
        let of_message = |reply: &RouteNetlinkMessage| {
            let RouteNetlinkMessage::NewAddress(it) = reply else { return None };
            // On a point-to-point link Address is the other end's, and Local this end's.
            let find = |local: bool| {
                it.attributes.iter().find_map(|attribute| match attribute {
                    AddressAttribute::Local(addr) if local => Some(*addr),
                    AddressAttribute::Address(addr) if !local => Some(*addr),
                    _ => None,
                })
            };
            Some((it.header.index, find(true).or_else(|| find(false))?))
        };
        Ok(replies.iter().filter_map(of_message).collect())
    }
}

/// Address family of an address, for message headers.
pub(super) fn family(addr: IpAddr) -> AddressFamily {
    if addr.is_ipv4() { AddressFamily::Inet } else { AddressFamily::Inet6 }
}
