//! From a plan to its layout: numbers interfaces and segments, gives addresses, adds routes.
//!
//! The n-th segment, from 1, is 10.x.y.0/24 with x.y = n, and fd00:0:0:n::/64 (unique local,
//! RFC 4193). Its hosts and then its routers, in the order of the plan, get the addresses from 1.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::problem::Problem;
use super::segments::segments_of_links;
use super::{
    End, Forwarding, HostTcp, Interface, LabPlan, Layout, Link, LinkPlan, Node, Role, Segment,
    routes,
};
use crate::record::PathPlan;

/// MTU of a link that names none (Ethernet, IEEE 802.3).
const MTU_BYTES_DEFAULT: u32 = 1500;
/// Least MTU with which a link carries IPv6 (RFC 8200 §5).
const IPV6_MTU_BYTES_MIN: u32 = 1280;

impl Layout {
    /// Plans addresses and routes.
    /// # Errors
    /// The first problem of the plan.
    pub fn from_plan(plan: &LabPlan) -> Result<Self, Problem> {
        plan.check_buildable()?;
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

    fn add_link(&mut self, plan: &LabPlan, index: usize) {
        let link = &plan.links[index];
        let ends = [0, 1].map(|end| {
            let node = self.node_index(&link.ends[end]).expect("the check found every end");
            let interfaces = &mut self.nodes[node].interfaces;
            let interface = interfaces.len();
            let name = format!("eth{interface}");
            interfaces.push(Interface { name, link: index, ipv4: None, ipv6: None });
            End { node, interface }
        });
        self.links.push(Link {
            ends,
            segment: 0,
            mtu_bytes: link.effective_mtu(),
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
    pub(crate) fn effective_mtu(&self) -> u32 {
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
