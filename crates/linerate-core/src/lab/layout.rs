//! From a plan to what is built: interfaces, segments, addresses and routes of every node.
//!
//! A segment is what one frame can reach: a link, or several joined by switches. The n-th segment,
//! from 1, is 10.x.y.0/24 with x.y = n, and fd00:0:0:n::/64 (unique local, RFC 4193). Its hosts
//! and then its routers, in the order of the plan, get the addresses from 1. Routes are in
//! `routes`.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::check::{Problem, Step};
use super::{DevicePlan, FilterShape, HostTcp, LabPlan, LinkPlan, Placement, RouterHow, routes};
use crate::path::PathPlan;
use crate::units::BitRate;

/// Length of an IPv4 segment's prefix.
pub const IPV4_PREFIX_LEN: u8 = 24;
/// Length of an IPv6 segment's prefix (RFC 4291 §2.5.1).
pub const IPV6_PREFIX_LEN: u8 = 64;
/// MTU of a link that names none (Ethernet, IEEE 802.3).
const MTU_BYTES_DEFAULT: u32 = 1500;
/// Below this MTU a link carries no IPv6 (RFC 8200 §5).
const IPV6_MTU_BYTES_MIN: u32 = 1280;

/// A laboratory with every choice made. Indexes point into its own lists.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// Nothing on the links but what is sent.
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
    /// Its name in the plan.
    pub name: String,
    /// What it does.
    pub role: Role,
    /// MTU of its loopback; the kernel's when absent.
    pub loopback_mtu_bytes: Option<u32>,
    /// Whether its loopback carries segments larger than its MTU.
    pub loopback_offload: bool,
    /// Settings of its TCP.
    pub tcp: HostTcp,
    /// How and where it forwards.
    pub forwarding: Forwarding,
    /// Its interfaces in the order of the links: `eth0`, `eth1`, …
    pub interfaces: Vec<Interface>,
    /// One static route for each segment that it reaches over a router.
    pub routes: Vec<Route>,
}

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Sends and receives.
    Host,
    /// Forwards packets.
    Router {
        /// Rules that each forwarded packet is held against.
        filters: u32,
    },
    /// Forwards frames.
    Switch,
    /// Hands frames from one of its two links to the other.
    Device,
}

impl Role {
    /// Whether it forwards frames as they are: without addresses, and one segment at all its links.
    pub const fn joins_links(self) -> bool {
        matches!(self, Self::Switch | Self::Device)
    }
}

/// How and where a node forwards; hosts do not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Forwarding {
    /// What forwards in a router.
    pub how: RouterHow,
    /// How a router keeps its rules.
    pub filter_shape: FilterShape,
    /// Where the work is done.
    pub placement: Placement,
    /// Processor of the node's kernel threads.
    pub cpu: Option<u32>,
    /// What a device is; none for other nodes.
    pub device: Option<DevicePlan>,
}

/// One end of a link, as its node sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name in the node.
    pub name: String,
    /// Its link.
    pub link: usize,
    /// Its IPv4 address; none on a switch.
    pub ipv4: Option<Ipv4Addr>,
    /// Its IPv6 address; none on a switch and where the MTU is below 1280 bytes.
    pub ipv6: Option<Ipv6Addr>,
}

/// A link between two interfaces.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its two ends.
    pub ends: [End; 2],
    /// Its segment.
    pub segment: usize,
    /// Largest IP packet.
    pub mtu_bytes: u32,
    /// Rate in each direction; as fast as the machine when absent.
    pub rate: Option<BitRate>,
    /// Whether super-packets of many segments may travel on it.
    pub offload: bool,
    /// The path that takes the place of the cable.
    pub path: Option<PathPlan>,
}

/// An interface of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// The node.
    pub node: usize,
    /// The interface among those of the node.
    pub interface: usize,
}

/// What one frame can reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Its IPv4 network.
    pub ipv4: Ipv4Addr,
    /// Its IPv6 network, where the MTU allows one.
    pub ipv6: Option<Ipv6Addr>,
    /// Interfaces with addresses in it, in the order of their addresses.
    pub members: Vec<End>,
}

/// A static route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The network it leads to.
    pub network: IpAddr,
    /// Length of the network's prefix.
    pub prefix_len: u8,
    /// The neighbour that knows the way.
    pub gateway: IpAddr,
}

impl Layout {
    /// Plans addresses and routes.
    /// # Errors
    /// The first problem of the plan.
    pub fn of(plan: &LabPlan) -> Result<Self, Problem> {
        plan.check()?;
        let mut layout = Self {
            quiet: plan.quiet,
            nodes: nodes_of(plan),
            links: Vec::new(),
            segments: Vec::new(),
        };
        for index in 0..plan.links.len() {
            layout.add_link(plan, index);
        }
        layout.add_segments(plan);
        routes::add(&mut layout);
        Ok(layout)
    }

    /// Index of the node of this name.
    pub fn node(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// The address at which others reach a host or router: the first of its first interface, or
    /// 127.0.0.1 when it has no link. Switches, devices and a name that is not there have none.
    pub fn address_of(&self, name: &str) -> Option<IpAddr> {
        let node = &self.nodes[self.node(name)?];
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

    fn add_link(&mut self, plan: &LabPlan, index: usize) {
        let link = &plan.links[index];
        let ends = [0, 1].map(|end| {
            let node = self.node(&link.ends[end]).expect("the check found every end");
            let interfaces = &mut self.nodes[node].interfaces;
            let interface = interfaces.len();
            let name = format!("eth{interface}");
            interfaces.push(Interface { name, link: index, ipv4: None, ipv6: None });
            End { node, interface }
        });
        self.links.push(Link {
            ends,
            segment: 0,
            mtu_bytes: link.mtu(),
            rate: link.bit_rate().ok().flatten(),
            offload: link.offload.unwrap_or(!plan.quiet),
            path: link.path.clone(),
        });
    }

    fn add_segments(&mut self, plan: &LabPlan) {
        let segment_of_link = segments_of_links(plan);
        let count = segment_of_link.iter().max().map_or(0, |last| last + 1);
        for segment in 0..count {
            let first = segment_of_link.iter().position(|&of| of == segment);
            let mtu_bytes = first.map_or(0, |link| self.links[link].mtu_bytes);
            self.segments.push(Segment::numbered(segment + 1, mtu_bytes));
        }
        for (link, &segment) in self.links.iter_mut().zip(&segment_of_link) {
            link.segment = segment;
        }
        for node in 0..self.nodes.len() {
            if !self.nodes[node].role.joins_links() {
                self.add_addresses(node);
            }
        }
    }

    fn add_addresses(&mut self, node: usize) {
        for (index, interface) in self.nodes[node].interfaces.iter_mut().enumerate() {
            let segment = &mut self.segments[self.links[interface.link].segment];
            segment.members.push(End { node, interface: index });
            let host = u8::try_from(segment.members.len()).expect("a segment has at most 64 nodes");
            interface.ipv4 = Some(ipv4_host(segment.ipv4, host));
            interface.ipv6 = segment.ipv6.map(|network| ipv6_host(network, host));
        }
    }
}

impl LinkPlan {
    /// Largest IP packet.
    /// Its MTU: as planned, or the usual one of its kind.
    pub(crate) fn mtu(&self) -> u32 {
        let usual = || self.path.as_ref().map_or(MTU_BYTES_DEFAULT, PathPlan::mtu_bytes_usual);
        self.mtu_bytes.unwrap_or_else(usual)
    }
}

impl Segment {
    fn numbered(number: usize, mtu_bytes: u32) -> Self {
        let number = u16::try_from(number).expect("there are at most 256 segments");
        let [high, low] = number.to_be_bytes();
        let ipv6 = Ipv6Addr::new(0xfd00, 0, 0, number, 0, 0, 0, 0);
        Self {
            ipv4: Ipv4Addr::new(10, high, low, 0),
            ipv6: (mtu_bytes >= IPV6_MTU_BYTES_MIN).then_some(ipv6),
            members: Vec::new(),
        }
    }
}

fn ipv4_host(network: Ipv4Addr, host: u8) -> Ipv4Addr {
    let [a, b, c, _] = network.octets();
    Ipv4Addr::new(a, b, c, host)
}

fn ipv6_host(network: Ipv6Addr, host: u8) -> Ipv6Addr {
    let mut segments = network.segments();
    segments[7] = u16::from(host);
    Ipv6Addr::from(segments)
}

fn nodes_of(plan: &LabPlan) -> Vec<Node> {
    let node = |name: &str, role| Node {
        name: name.to_owned(),
        role,
        loopback_mtu_bytes: None,
        loopback_offload: true,
        tcp: HostTcp::default(),
        forwarding: Forwarding::default(),
        interfaces: Vec::new(),
        routes: Vec::new(),
    };
    let hosts = plan.hosts.iter().map(|h| Node {
        loopback_mtu_bytes: h.loopback_mtu_bytes,
        loopback_offload: h.loopback_offload.unwrap_or(true),
        tcp: h.tcp.clone(),
        ..node(&h.name, Role::Host)
    });
    let routers = plan.routers.iter().map(|r| Node {
        forwarding: Forwarding {
            how: r.how,
            filter_shape: r.filter_shape,
            placement: r.placement,
            cpu: r.cpu,
            device: None,
        },
        ..node(&r.name, Role::Router { filters: r.filters })
    });
    let switches = plan.switches.iter().map(|s| Node {
        forwarding: Forwarding { placement: s.placement, cpu: s.cpu, ..Forwarding::default() },
        ..node(&s.name, Role::Switch)
    });
    let devices = plan.devices.iter().map(|d| Node {
        forwarding: Forwarding {
            placement: d.placement,
            cpu: d.cpu,
            device: Some(d.clone()),
            ..Forwarding::default()
        },
        ..node(&d.name, Role::Device)
    });
    hosts.chain(routers).chain(switches).chain(devices).collect()
}

/// The nodes that join the links that they have.
fn joining(plan: &LabPlan) -> Vec<&str> {
    let switches = plan.switches.iter().map(|switch| switch.name.as_str());
    let devices = plan.devices.iter().map(|device| device.name.as_str());
    switches.chain(devices).collect()
}

/// The segment of each link: links that meet in a switch or device share one.
fn segments_of_links(plan: &LabPlan) -> Vec<usize> {
    let mut segment: Vec<usize> = (0..plan.links.len()).collect();
    for node in joining(plan) {
        let ports: Vec<usize> = (0..plan.links.len())
            .filter(|&link| plan.links[link].ends.iter().any(|end| end == node))
            .collect();
        for pair in ports.windows(2) {
            join(&mut segment, pair[0], pair[1]);
        }
    }
    numbered_in_order(&segment)
}

/// Makes one group of the groups of two members; false when they were in one already.
fn join(group: &mut [usize], one: usize, other: usize) -> bool {
    let (kept, gone) = (group[one].min(group[other]), group[one].max(group[other]));
    group.iter_mut().filter(|of| **of == gone).for_each(|of| *of = kept);
    kept != gone
}

/// Gives the distinct values the numbers 0, 1, … in order of appearance.
fn numbered_in_order(values: &[usize]) -> Vec<usize> {
    let mut seen: Vec<usize> = Vec::new();
    let number_of = |value: &usize| {
        seen.iter().position(|known| known == value).unwrap_or_else(|| {
            seen.push(*value);
            seen.len() - 1
        })
    };
    values.iter().map(number_of).collect()
}

/// Checks what needs the segments: no loop of switches, one MTU, one link per node and segment.
pub(super) fn check_segments(plan: &LabPlan) -> Result<(), Problem> {
    let failed = |link, key, message| {
        let path = vec![Step::Key("link"), Step::Index(link), Step::Key(key)];
        Err(Problem { path, message })
    };
    if let Some(link) = switch_loop(plan) {
        let [left, right] = &plan.links[link].ends;
        let message = format!(
            "closes a loop of switches between `{left}` and `{right}`: frames would circle for ever"
        );
        return failed(link, "ends", message);
    }
    let segment = segments_of_links(plan);
    let mtu = |link: usize| plan.links[link].mtu();
    for (link, later) in segment.iter().enumerate() {
        for earlier in (0..link).filter(|&earlier| segment[earlier] == *later) {
            if mtu(earlier) != mtu(link) {
                let message = format!(
                    "{} and {} bytes in one segment; a switch cannot cut packets, so all its \
                     links need one MTU",
                    mtu(earlier),
                    mtu(link)
                );
                return failed(link, "mtu_bytes", message);
            }
            let shared = plan.links[link].ends.iter().find(|end| {
                !joining(plan).contains(&end.as_str()) && plan.links[earlier].ends.contains(end)
            });
            if let Some(end) = shared {
                let message = format!("a second link from `{end}` into the same segment");
                return failed(link, "ends", message);
            }
        }
    }
    Ok(())
}

/// The first link that joins two switches or devices which are joined already.
fn switch_loop(plan: &LabPlan) -> Option<usize> {
    let nodes = joining(plan);
    let mut group: Vec<usize> = (0..nodes.len()).collect();
    let switch = |name: &str| nodes.iter().position(|node| *node == name);
    for (index, link) in plan.links.iter().enumerate() {
        let (Some(left), Some(right)) = (switch(&link.ends[0]), switch(&link.ends[1])) else {
            continue;
        };
        if !join(&mut group, left, right) {
            return Some(index);
        }
    }
    None
}
