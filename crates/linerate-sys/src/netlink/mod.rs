//! Routing netlink (netlink(7), rtnetlink(7)): links, addresses, routes, queueing disciplines.
//!
//! Blocking requests on one socket; a socket stays in the network namespace of the thread that
//! opened it, wherever it is used later. Leaves out notifications and everything but IP over
//! Ethernet-like links.

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

pub use filter::{InputChain, InputRule, Verdict, input_chains};
pub use link::{LinkCounters, LinkErrors, LinkFacts, VethEnd, VethPair};
pub use napi::{Napi, napis};
pub use neighbour::Neighbour;
pub use qdisc::{QdiscCounters, Tbf};
pub use route::InitialWindows;
pub use socket::RouteSocket;
pub use tcp_metrics::cached_metrics;

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
    /// Speed that the driver tells, of the lowest link; absent for virtual links, whose figure is
    /// fiction.
    pub speed_bps: Option<u64>,
    /// Rate of the slowest token bucket filter at its root or that of a link under it, counted in
    /// frames without FCS.
    pub tbf_rate_bps: Option<u64>,
    /// VLAN tags that its frames get on their way down.
    pub vlan_tags: u8,
    /// The lowest link, where it is another one.
    pub lower: Option<String>,
}

/// VLANs on top of each other that are followed down; more are a loop of the kernel's answers.
const VLAN_TAGS_MAX: u8 = 8;

/// Finds the link by which packets to `addr` leave.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn route_to(addr: IpAddr) -> Result<RouteFacts> {
    let mut socket = RouteSocket::open()?;
    let ifindex = socket.route_interface(addr)?;
    let link = socket.link_by_index(ifindex)?;
    let stack = Stack::under(&mut socket, link.clone())?;
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

/// A link with the VLANs down to what carries them.
struct Stack {
    lowest: LinkFacts,
    tags: u8,
    tbf_rate_bps: Option<u64>,
}

impl Stack {
    fn under(socket: &mut RouteSocket, link: LinkFacts) -> Result<Self> {
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

/// The kinds of the queueing disciplines of the link by which packets to `addr` leave, in the
/// namespace of the calling thread.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn disciplines_to(addr: IpAddr) -> Result<Vec<String>> {
    let mut socket = RouteSocket::open()?;
    let index = socket.route_interface(addr)?;
    socket.disciplines(index)
}

/// What the links under a route dropped of what was to leave by them, since they were made: of
/// every program's packets, joined ones as one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EgressDrops {
    /// By the queueing disciplines at their roots, which count what those under them drop; modulo
    /// 2^32, as the kernel counts.
    disciplines: u32,
    /// By the driver of the lowest link.
    driver: u64,
}

impl EgressDrops {
    /// Packets that were dropped since `before`.
    pub fn since(&self, before: &Self) -> u64 {
        let queued = self.disciplines.wrapping_sub(before.disciplines);
        u64::from(queued) + self.driver.saturating_sub(before.driver)
    }
}

/// What was dropped so far on the link by which packets to `addr` leave, and on the one under its
/// VLANs, in the namespace of the calling thread. A VLAN's own count of drops is that of the
/// discipline below it.
/// # Errors
/// When there is no route, or the kernel does not answer.
pub fn egress_drops_to(addr: IpAddr) -> Result<EgressDrops> {
    let mut socket = RouteSocket::open()?;
    let index = socket.route_interface(addr)?;
    let link = socket.link_by_index(index)?;
    let lowest = Stack::under(&mut socket, link)?.lowest;
    let mut drops = EgressDrops { disciplines: 0, driver: lowest.counters.tx_dropped };
    let links = [Some(index), Some(lowest.index).filter(|lower| *lower != index)];
    for link in links.into_iter().flatten() {
        let dropped = socket.root_counters(link)?.map_or(0, |counters| counters.drops);
        drops.disciplines = drops.disciplines.wrapping_add(dropped);
    }
    Ok(drops)
}

/// The counters of the link by which packets to an address leave.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Name of the link.
    pub ifname: String,
    /// What went through it, and what did not.
    pub link: LinkCounters,
    /// Its errors by kind, as /sys/class/net/*/statistics names them.
    pub errors: LinkErrors,
    /// How often its carrier came or went.
    pub carrier_changes: Option<u32>,
    /// What the queueing discipline at its root counted.
    pub root: Option<QdiscCounters>,
}

/// Reads the counters of the link by which packets to `addr` leave, in the namespace of the calling
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
        assert_eq!(now.since(&before), 30 + 2);
        assert_eq!(now.since(&now), 0);
        assert!(egress_drops_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).is_ok());
    }

    #[test]
    fn the_loopback_link_has_its_one_discipline() {
        let kinds = disciplines_to(IpAddr::V4(Ipv4Addr::LOCALHOST)).unwrap();
        assert_eq!(kinds, ["noqueue"], "as any link without a queue of its own (tc(8))");
    }
}
