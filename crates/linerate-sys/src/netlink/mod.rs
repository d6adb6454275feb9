//! Routing netlink (netlink(7), rtnetlink(7)): links, addresses, routes, queueing disciplines.
//!
//! Blocking requests on one socket; a socket stays in the network namespace of the thread that
//! opened it, also when another thread uses it. Left out: notifications, and protocols other than
//! IP over Ethernet-like links.

mod address;
mod filter;
mod generic;
mod link;
mod napi;
mod neighbour;
mod netem;
mod qdisc;
mod route;
mod socket;
mod tcp_metrics;

use std::net::IpAddr;

pub use filter::{FilterRuleVerdict, InputChain, InputRule, input_chains};
pub use link::{LinkCounters, LinkErrors, LinkFacts, VethEnd, VethPair};
pub use napi::{Napi, napi_contexts};
pub use neighbour::NeighbourEntry;
pub use qdisc::{QdiscCounters, Tbf};
pub use route::InitialWindows;
pub use socket::RouteSocket;
pub use tcp_metrics::cached_metrics;

use crate::Result;
use crate::ethtool;

/// Outgoing link of the route to an address, in the namespace of the calling thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteFacts {
    /// Index of the interface.
    pub ifindex: u32,
    /// Name of the interface.
    pub ifname: String,
    /// MTU: the largest IP packet.
    pub mtu_bytes: u32,
    /// Kind: `loopback`, `veth`, `bridge`, …; the driver's name for hardware; absent when unknown.
    pub kind: Option<String>,
    /// Speed of the lowest link, as its driver reports it; absent for virtual links, whose speed is
    /// not real.
    pub speed_bps: Option<u64>,
    /// Rate of the slowest token bucket filter at the root of this link or of a link under it, in
    /// frames without FCS.
    pub tbf_rate_bps: Option<u64>,
    /// Number of VLAN tags that are added to its frames.
    pub vlan_tags: u8,
    /// Name of the lowest link, where it is another one.
    pub lower: Option<String>,
}

/// Most stacked VLANs; more would be a loop in the kernel's answers.
const VLAN_TAGS_MAX: u8 = 8;

/// Finds the outgoing link of the route to `addr`.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn route_to(addr: IpAddr) -> Result<RouteFacts> {
    let mut socket = RouteSocket::open()?;
    let ifindex = socket.route_interface(addr)?;
    let link = socket.link_by_index(ifindex)?;
    let stack = VlanStack::from_link(&mut socket, link.clone())?;
    let lowest = &stack.lowest;
    let driver = || ethtool::driver(&link.name).ok();
    let speed = || ethtool::speed_bps(&lowest.name).ok().flatten();
    Ok(RouteFacts {
        ifindex,
        mtu_bytes: link.mtu_bytes,
        kind: link.kind.clone().or_else(driver),
        speed_bps: if lowest.kind.is_some() { None } else { speed() },
        tbf_rate_bps: stack.tbf_rate_bps,
        vlan_tags: stack.tags,
        lower: (lowest.index != link.index).then(|| lowest.name.clone()),
        ifname: link.name,
    })
}

/// A link with the VLANs down to its lowest link.
struct VlanStack {
    lowest: LinkFacts,
    tags: u8,
    tbf_rate_bps: Option<u64>,
}

impl VlanStack {
    fn from_link(socket: &mut RouteSocket, link: LinkFacts) -> Result<Self> {
        let tbf_rate_bps = socket.root_tbf(link.index)?.map(|tbf| tbf.rate_bps);
        let mut stack = Self { lowest: link, tags: 0, tbf_rate_bps };
        while stack.tags < VLAN_TAGS_MAX && stack.lowest.kind.as_deref() == Some("vlan") {
            stack.tags += 1;
            let Some(index) = stack.lowest.lower_index else { break };
            stack.lowest = socket.link_by_index(index)?;
            let shaper = socket.root_tbf(index)?.map(|tbf| tbf.rate_bps);
            stack.tbf_rate_bps = stack.tbf_rate_bps.into_iter().chain(shaper).min();
        }
        Ok(stack)
    }
}

/// Kinds of the queueing disciplines of the outgoing link of the route to `addr`, in the namespace
/// of the calling thread.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn disciplines_to(addr: IpAddr) -> Result<Vec<String>> {
    let mut socket = RouteSocket::open()?;
    let index = socket.route_interface(addr)?;
    socket.disciplines(index)
}

/// Counts of outgoing packets that the links of a route dropped since they were created, of all
/// programs; a super-packet counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressDrops {
    /// Drops of the queueing disciplines at the roots, including those under them, modulo 2^32 as
    /// in the kernel.
    disciplines: u32,
    /// Drops of the driver of the lowest link.
    driver: u64,
}

impl EgressDrops {
    /// Packets dropped since the reading `before`.
    pub fn drops_since(&self, before: &Self) -> u64 {
        let queued = self.disciplines.wrapping_sub(before.disciplines);
        u64::from(queued) + self.driver.saturating_sub(before.driver)
    }
}

/// Counts of packets dropped at the outgoing link of the route to `addr`, and at the link under its
/// VLANs, in the namespace of the calling thread. A VLAN's drop counter is that of the discipline
/// below it, so it is not added.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn egress_drops_to(addr: IpAddr) -> Result<EgressDrops> {
    let mut socket = RouteSocket::open()?;
    let index = socket.route_interface(addr)?;
    let link = socket.link_by_index(index)?;
    let lowest = VlanStack::from_link(&mut socket, link)?.lowest;
    let mut drops = EgressDrops { disciplines: 0, driver: lowest.counters.tx_dropped };
    let links = [Some(index), Some(lowest.index).filter(|lower| *lower != index)];
    for link in links.into_iter().flatten() {
        let dropped = socket.root_counters(link)?.map_or(0, |counters| counters.drops);
        drops.disciplines = drops.disciplines.wrapping_add(dropped);
    }
    Ok(drops)
}

/// Counters of the outgoing link of the route to an address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Name of the link.
    pub ifname: String,
    /// Packets, bytes, drops and errors of the link.
    pub link: LinkCounters,
    /// Errors by kind, with the names of /sys/class/net/*/statistics.
    pub errors: LinkErrors,
    /// Count of carrier changes.
    pub carrier_changes: Option<u32>,
    /// Counters of the queueing discipline at the root.
    pub root: Option<QdiscCounters>,
}

/// Reads the counters of the outgoing link of the route to `addr`, in the namespace of the calling
/// thread.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn counters_to(addr: IpAddr) -> Result<RouteCounters> {
    let mut socket = RouteSocket::open()?;
    let index = socket.route_interface(addr)?;
    let LinkFacts { name, counters, errors, carrier_changes, .. } = socket.link_by_index(index)?;
    let root = socket.root_counters(index)?;
    Ok(RouteCounters { ifname: name, link: counters, errors, carrier_changes, root })
}

/// The initial windows of connections to `addr`, in the namespace of the calling thread.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn initial_windows(addr: IpAddr) -> Result<InitialWindows> {
    RouteSocket::open()?.initial_windows(addr)
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

    #[test]
    fn drops_are_counted_from_before_also_where_the_kernels_count_began_anew() {
        let before = EgressDrops { disciplines: u32::MAX - 9, driver: 5 };
        let now = EgressDrops { disciplines: 20, driver: 7 };
        assert_eq!(now.drops_since(&before), 30 + 2);
        assert_eq!(now.drops_since(&now), 0);
        assert!(egress_drops_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).is_ok());
    }

    #[test]
    fn the_loopback_link_has_its_one_discipline() {
        let kinds = disciplines_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert_eq!(kinds, ["noqueue"], "as any link without a queue of its own (tc(8))");
    }
}
