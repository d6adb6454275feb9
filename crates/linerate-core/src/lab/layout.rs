//! What is built of a plan: interfaces, segments, addresses and routes of every node.
//!
//! A segment is what one frame can reach: a link, or several joined by switches. How a plan becomes
//! a layout is in `lay_out`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::{DevicePlan, FilterShape, HostTcp, Placement, RouterHow};
use crate::record::PathPlan;
use crate::units::BitRate;

/// Length of an IPv4 segment's prefix.
pub const IPV4_PREFIX_LEN: u8 = 24;
/// Length of an IPv6 segment's prefix (RFC 4291 §2.5.1).
pub const IPV6_PREFIX_LEN: u8 = 64;

/// A laboratory with every default filled in. Indexes point into its own lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// No traffic on the links but the test's.
    pub quiet: bool,
    /// Hosts, then routers, then switches, then devices, each in the order of the plan.
    pub nodes: Vec<Node>,
    /// Links in the order of the plan.
    pub links: Vec<Link>,
    /// Segments in the order of their first link.
    pub segments: Vec<Segment>,
}

/// A host, router, switch or device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Name of the node in the plan.
    pub name: String,
    /// Role of the node: host, router, switch, device.
    pub role: Role,
    /// MTU of its loopback; the kernel's when absent.
    pub loopback_mtu_bytes: Option<u32>,
    /// True when its loopback carries segments larger than its MTU.
    pub loopback_offload: bool,
    /// Settings of its TCP.
    pub tcp: HostTcp,
    /// Engine, rules and placement of its forwarding.
    pub forwarding: Forwarding,
    /// Interfaces in the order of the links: `eth0`, `eth1`, …
    pub interfaces: Vec<Interface>,
    /// One static route for each segment that it reaches over a router.
    pub routes: Vec<Route>,
}

/// Role of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// End system: sends and receives.
    Host,
    /// Router: forwards packets by their addresses.
    Router {
        /// Rules that each forwarded packet is held against.
        filters: u32,
    },
    /// Learning bridge: forwards frames.
    Switch,
    /// Hands frames from one of its two links to the other.
    Device,
}

impl Role {
    /// True when it forwards frames as they are: without addresses, and one segment at all its
    /// links.
    pub const fn joins_links(self) -> bool {
        matches!(self, Self::Switch | Self::Device)
    }
}

/// Engine, rules and placement of a node's forwarding; hosts do not forward.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// Forwarding engine of a router.
    pub how: RouterHow,
    /// Form in which a router keeps its rules.
    pub filter_shape: FilterShape,
    /// Context in which it forwards.
    pub placement: Placement,
    /// Processor of the node's kernel threads.
    pub cpu: Option<u32>,
    /// Kind of the device; none for other nodes.
    pub device: Option<DevicePlan>,
}

/// One end of a link, at its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Name of the interface in the node.
    pub name: String,
    /// Index of the interface's link.
    pub link: usize,
    /// IPv4 address; none on a switch.
    pub ipv4: Option<Ipv4Addr>,
    /// IPv6 address; none on a switch and where the MTU is below 1280 bytes.
    pub ipv6: Option<Ipv6Addr>,
}

/// A link between two interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The two ends of the link.
    pub ends: [End; 2],
    /// Index of the link's segment.
    pub segment: usize,
    /// Largest IP packet on the link.
    pub mtu_bytes: u32,
    /// Rate in each direction; as fast as the machine when absent.
    pub rate: Option<BitRate>,
    /// True when super-packets of many segments may travel on it.
    pub offload: bool,
    /// The path that takes the place of the cable.
    pub path: Option<PathPlan>,
}

/// An interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Index of the node.
    pub node: usize,
    /// The interface among those of the node.
    pub interface: usize,
}

/// Ends that one frame can reach: a broadcast domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// IPv4 network of the segment.
    pub ipv4: Ipv4Addr,
    /// IPv6 network of the segment, where the MTU allows one.
    pub ipv6: Option<Ipv6Addr>,
    /// Interfaces with addresses in it, in the order of their addresses.
    pub members: Vec<End>,
}

/// A static route of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network it leads to.
    pub network: IpAddr,
    /// Length of the network's prefix.
    pub prefix_len: u8,
    /// Address of the next hop.
    pub gateway: IpAddr,
}

impl Layout {
    /// Index of the node of this name.
    pub fn node_index(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The address at which others reach a host or router: the first of its first interface, or
    /// 127.0.0.1 when it has no link. Switches, devices and a name that is not there have none.
    pub fn address_of(&self, name: &str) -> Option<IpAddr> {
        let node = &self.nodes[self.node_index(name)?];
        match (node.role, node.interfaces.first()) {
            (role, _) if role.joins_links() => None,
            (_, None) => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            (_, Some(interface)) => interface.ipv4.map(IpAddr::V4),
        }
    }

    /// A link for messages: `a eth0 - r eth1`.
    pub fn link_name(&self, link: usize) -> String {
        let end = |end: &End| {
            let node = &self.nodes[end.node];
            format!("{} {}", node.name, node.interfaces[end.interface].name)
        };
        let [one, other] = &self.links[link].ends;
        format!("{} - {}", end(one), end(other))
    }
}
