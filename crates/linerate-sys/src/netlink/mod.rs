//! Routing netlink (netlink(7), rtnetlink(7)): links, addresses, routes, queueing disciplines.
//!
//! Blocking requests on one socket; a socket stays in the network namespace of the thread that
//! opened it, wherever it is used later. Leaves out notifications and everything but IP over
//! Ethernet-like links.

mod address;
mod link;
mod qdisc;
mod route;
mod socket;

use std::net::IpAddr;

pub use link::{LinkCounters, LinkFacts, VethEnd, VethPair};
pub use qdisc::Tbf;
pub use socket::RouteSocket;

use crate::Result;
use crate::ethtool;

/// The link by which packets to an address leave, in the namespace of the calling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteFacts {
    /// Index of the interface.
    pub ifindex: u32,
    /// Its name.
    pub ifname: String,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// `loopback`, `veth`, `bridge`, …; the driver's name for hardware; absent when not told.
    pub kind: Option<String>,
    /// Speed that the driver tells; absent for virtual links, whose figure is fiction.
    pub speed_bps: Option<u64>,
    /// Rate of a token bucket filter at its root, counted in frames without FCS.
    pub tbf_rate_bps: Option<u64>,
}

/// Finds the link by which packets to `addr` leave.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn route_to(addr: IpAddr) -> Result<RouteFacts> {
    let mut socket = RouteSocket::open()?;
    let ifindex = socket.route_interface(addr)?;
    let link = socket.link_by_index(ifindex)?;
    let virtual_link = link.kind.is_some();
    let driver = || ethtool::driver(&link.name).ok();
    let speed = || ethtool::speed_bps(&link.name).ok().flatten();
    Ok(RouteFacts {
        ifindex,
        mtu_bytes: link.mtu_bytes,
        kind: link.kind.clone().or_else(driver),
        speed_bps: if virtual_link { None } else { speed() },
        tbf_rate_bps: socket.root_tbf(ifindex)?.map(|tbf| tbf.rate_bps),
        ifname: link.name,
    })
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    #[test]
    fn the_route_to_this_host_leaves_by_the_loopback_link() {
        let facts = route_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert_eq!(facts.ifname, "lo");
        assert_eq!(facts.kind.as_deref(), Some("loopback"));
        assert!(facts.mtu_bytes >= 1280);
        assert_eq!(facts.tbf_rate_bps, None);
        assert_eq!(facts.speed_bps, None);
    }
}
