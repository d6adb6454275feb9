//! Builds the nodes of a layout: namespaces, settings, links, addresses, routes, filters.
//!
//! Everything goes over one netlink socket per namespace; a thread enters a namespace only for
//! what follows the calling thread: settings under /proc/sys, offloads, `nft`. What fails half-way
//! is removed when the nodes are dropped.

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use linerate_core::lab::{self, IPV4_PREFIX_LEN, IPV6_PREFIX_LEN, Layout, Link, Role};
use linerate_core::record::{Failure, Fault};
use linerate_sys::ethtool::Offload;
use linerate_sys::netlink::{RouteSocket, VethEnd, VethPair};
use linerate_sys::netns::Netns;
use linerate_sys::{clock, ethtool, sysctl, userns};

use super::devices::{self, ForwardingDevice};
use super::paths::{self, LabPath};
use super::{LabNode, filters, neighbours, settings, shaper, system};
use crate::netns::run_inside;
use crate::path::netem;

/// Index of the loopback link in every namespace (net/core/dev.c).
pub(super) const LOOPBACK: u32 = 1;
/// Index of a switch's bridge; links have 10 and up.
const BRIDGE: u32 = 2;
const LINK_INDEX_FIRST: u32 = 10;
/// Longest wait for carriers. They come within a millisecond on an idle host.
const CARRIER_WAIT: Duration = Duration::from_secs(5);

/// The hosts, devices and paths of a layout that was built.
pub(super) struct Built {
    pub(super) nodes: Vec<LabNode>,
    pub(super) paths: Vec<LabPath>,
    pub(super) devices: Vec<ForwardingDevice>,
    /// Facilities that this host does not have, one line each.
    pub(super) notes: Vec<String>,
}

/// The namespaces of a layout with their links, ready for use.
pub(super) fn build_layout(layout: &Layout) -> Result<Built, Failure> {
    if !userns::may_make_networks() {
        let reason = "CAP_SYS_ADMIN and CAP_NET_ADMIN are needed";
        return Err(system("build laboratory", "network namespaces", reason)
            .advise("run it as root, or where unprivileged user namespaces are allowed"));
    }
    if let Some(index) = layout.links.iter().position(paths::is_netem) {
        // Before anything is made, and never something else in its place.
        netem::check_netem_support(&layout.link_name(index))?;
    }
    let nodes = layout.nodes.iter().map(make_node).collect::<Result<Vec<_>, _>>()?;
    let mut notes = Vec::new();
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        notes.extend(settings::common(node, plan, layout.quiet)?);
        loopback(node, plan)?;
    }
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        make_bridge(node, plan)?;
    }
    let mut built_paths = Vec::new();
    for (index, link) in layout.links.iter().enumerate() {
        if paths::is_netem(link) {
            built_paths.push(add_netem(&nodes, layout, index)?);
        } else if link.path.is_some() {
            built_paths.push(add_path(&nodes, layout, index)?);
        } else {
            add_link(&nodes, layout, index)?;
        }
    }
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        add_ports(node, plan)?;
        add_addresses(node, plan)?;
    }
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        add_routes(node, plan)?;
        if let Role::Router { filters: count @ 1.. } = plan.role {
            filters::load_rules(&node.netns, &plan.name, count, plan.forwarding.filter_shape)?;
        }
    }
    if layout.quiet {
        neighbours::set_neighbours(&nodes, layout)?;
    }
    let devices = devices::start_devices(&nodes, layout, &mut notes)?;
    wait_for_carriers(&nodes, layout)?;
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        // Last, because the initial windows belong to routes.
        settings::apply_tcp_settings(node, &plan.name, &plan.tcp)?;
    }
    notes.sort();
    notes.dedup();
    Ok(Built { nodes, paths: built_paths, devices, notes })
}

fn make_node(plan: &lab::Node) -> Result<LabNode, Failure> {
    let netns = Netns::new().map_err(|error| {
        system("make node", &plan.name, error)
            .advise("check user.max_net_namespaces, and the container's seccomp profile")
    })?;
    let socket = run_inside(&netns, &plan.name, RouteSocket::open)?;
    let socket = socket.map_err(|error| system("make node", &plan.name, error))?;
    Ok(LabNode { netns: Arc::new(netns), socket: Mutex::new(socket) })
}

impl LabNode {
    /// Makes a request on the node's socket; its failure is named after the node.
    pub(super) fn run_request<T>(
        &self,
        plan: &lab::Node,
        request: impl FnOnce(&mut RouteSocket) -> linerate_sys::Result<T>,
    ) -> Result<T, Failure> {
        let mut socket = self.socket.lock().unwrap_or_else(PoisonError::into_inner);
        request(&mut socket).map_err(|error| {
            let failure = system("build node", &plan.name, &error);
            match error.source.kind() {
                std::io::ErrorKind::Unsupported => {
                    failure.advise("this kernel lacks that kind of link or queue (CONFIG_*)")
                }
                _ => failure,
            }
        })
    }

    /// The number of an interface.
    pub(super) fn index_of(&self, plan: &lab::Node, ifname: &str) -> Result<u32, Failure> {
        self.run_request(plan, |socket| socket.link_by_name(ifname)).map(|facts| facts.index)
    }
}

fn loopback(node: &LabNode, plan: &lab::Node) -> Result<(), Failure> {
    if !plan.loopback_offload {
        offloads_off(node, plan, "lo")?;
    }
    node.run_request(plan, |socket| {
        if let Some(mtu_bytes) = plan.loopback_mtu_bytes {
            socket.set_mtu(LOOPBACK, mtu_bytes)?;
        }
        socket.set_up(LOOPBACK)
    })
}

/// Index of one end of a link: different at the two ends, see [`VethEnd::index`].
fn link_index(link: usize, end: usize) -> u32 {
    let index = u32::try_from(2 * link + end).expect("there are at most 256 links");
    LINK_INDEX_FIRST + index
}

fn add_link(nodes: &[LabNode], layout: &Layout, index: usize) -> Result<(), Failure> {
    let link = &layout.links[index];
    let plan = |end: usize| &layout.nodes[link.ends[end].node];
    let interface = |end: usize| &plan(end).interfaces[link.ends[end].interface];
    let end = |end: usize| VethEnd {
        name: &interface(end).name,
        index: link_index(index, end),
        netns: nodes[link.ends[end].node].netns.as_fd(),
    };
    let super_packets = super_packets(link);
    let pair = VethPair { ends: [end(0), end(1)], mtu_bytes: link.mtu_bytes, super_packets };
    nodes[link.ends[0].node].run_request(plan(0), |socket| socket.add_veth(&pair))?;
    for end in [0, 1] {
        let node = &nodes[link.ends[end].node];
        if layout.quiet || layout.nodes.iter().any(has_program) {
            set_offload(node, plan(end), &interface(end).name, Offload::SendChecksum, false)?;
        }
        set_up_end(node, plan(end), &interface(end).name, link, link_index(index, end))?;
        if has_program(plan(1 - end)) && !has_program(plan(end)) {
            // A veth takes frames that are redirected in the kernel by NAPI alone.
            set_offload(node, plan(end), &interface(end).name, Offload::Receive, true)?;
        }
    }
    Ok(())
}

/// True where super-packets may be on a cable. netem would delay and lose them whole.
fn super_packets(link: &Link) -> bool {
    link.offload && !paths::is_netem(link)
}

/// A cable whose ends shape what enters it.
fn add_netem(nodes: &[LabNode], layout: &Layout, index: usize) -> Result<LabPath, Failure> {
    let link = &layout.links[index];
    let name = layout.link_name(index);
    let plan = link.path.clone().unwrap_or_default();
    let directions = plan
        .netem_settings(link.mtu_bytes)
        .map_err(|problem| Failure::new(Fault::Usage, "build path", &name, problem))?;
    add_link(nodes, layout, index)?;
    let shaped = |end: usize| {
        let node = &nodes[link.ends[end].node];
        let (plan, own) = (&layout.nodes[link.ends[end].node], link_index(index, end));
        node.run_request(plan, |socket| socket.set_netem(own, &directions[end]))?;
        let socket = run_inside(&node.netns, &plan.name, RouteSocket::open)?;
        let socket = socket.map_err(|error| system("watch netem of", &name, error))?;
        Ok::<_, Failure>((socket, own))
    };
    Ok(paths::of_netem(layout, index, [shaped(0)?, shaped(1)?]))
}

fn add_path(nodes: &[LabNode], layout: &Layout, index: usize) -> Result<LabPath, Failure> {
    let path = paths::start_path(nodes, layout, index)?;
    let link = &layout.links[index];
    for end in &link.ends {
        let plan = &layout.nodes[end.node];
        if !link.offload {
            offloads_off(&nodes[end.node], plan, &plan.interfaces[end.interface].name)?;
        }
    }
    Ok(path)
}

fn set_up_end(
    node: &LabNode,
    plan: &lab::Node,
    ifname: &str,
    link: &Link,
    index: u32,
) -> Result<(), Failure> {
    if !super_packets(link) {
        offloads_off(node, plan, ifname)?;
    }
    node.run_request(plan, |socket| {
        if let Some(rate) = link.rate {
            socket.set_tbf(index, &shaper::token_bucket(rate, link.mtu_bytes))?;
        }
        socket.set_up(index)
    })
}

/// True where a program passes frames on: without the sums that the sender's driver would have
/// made.
fn has_program(node: &lab::Node) -> bool {
    node.role == Role::Device || node.forwarding.how == lab::RouterHow::Xdp
}

fn set_offload(
    node: &LabNode,
    plan: &lab::Node,
    ifname: &str,
    offload: Offload,
    on: bool,
) -> Result<(), Failure> {
    let set = || ethtool::set_offload(ifname, offload, on);
    let set = run_inside(&node.netns, &plan.name, set)?;
    set.map_err(|error| system("build node", &plan.name, error))
}

fn offloads_off(node: &LabNode, plan: &lab::Node, ifname: &str) -> Result<(), Failure> {
    let off = run_inside(&node.netns, &plan.name, || ethtool::offloads_off(ifname))?;
    off.map_err(|error| system("build node", &plan.name, error))
}

/// Comes before the links: the kernel numbers the devices of paths by itself.
fn make_bridge(node: &LabNode, plan: &lab::Node) -> Result<(), Failure> {
    if plan.role != Role::Switch {
        return Ok(());
    }
    node.run_request(plan, |socket| socket.add_bridge("br0", BRIDGE))
}

fn add_ports(node: &LabNode, plan: &lab::Node) -> Result<(), Failure> {
    if plan.role != Role::Switch {
        return Ok(());
    }
    node.run_request(plan, |socket| {
        for interface in &plan.interfaces {
            let port = socket.link_by_name(&interface.name)?.index;
            socket.set_master(port, BRIDGE)?;
        }
        socket.set_up(BRIDGE)
    })
}

fn add_addresses(node: &LabNode, plan: &lab::Node) -> Result<(), Failure> {
    node.run_request(plan, |socket| {
        for interface in &plan.interfaces {
            let index = socket.link_by_name(&interface.name)?.index;
            if let Some(ipv4) = interface.ipv4 {
                socket.add_address(index, IpAddr::V4(ipv4), IPV4_PREFIX_LEN)?;
            }
            if let Some(ipv6) = interface.ipv6 {
                without_ipv6_is_fine(socket.add_address(index, IpAddr::V6(ipv6), IPV6_PREFIX_LEN))?;
            }
        }
        Ok(())
    })
}

fn add_routes(node: &LabNode, plan: &lab::Node) -> Result<(), Failure> {
    node.run_request(plan, |socket| {
        for route in &plan.routes {
            let added = socket.add_route(route.network, route.prefix_len, route.gateway);
            if route.network.is_ipv6() { without_ipv6_is_fine(added)? } else { added? }
        }
        Ok(())
    })
}

/// A kernel without IPv6 gives a laboratory without IPv6.
fn without_ipv6_is_fine(outcome: linerate_sys::Result<()>) -> linerate_sys::Result<()> {
    if sysctl::exists("net/ipv6/conf/all/forwarding") { outcome } else { Ok(()) }
}

/// Waits until every interface is running: before that its packets are lost.
fn wait_for_carriers(nodes: &[LabNode], layout: &Layout) -> Result<(), Failure> {
    let end = clock::monotonic() + CARRIER_WAIT;
    for (node, plan) in nodes.iter().zip(&layout.nodes) {
        for interface in &plan.interfaces {
            while !node.run_request(plan, |socket| socket.link_by_name(&interface.name))?.running {
                if clock::monotonic() > end {
                    let object = format!("{} of {}", interface.name, plan.name);
                    let reason = "no carrier after 5 s";
                    return Err(system("set up interface", object, reason));
                }
                clock::sleep(Duration::from_millis(1));
            }
        }
    }
    Ok(())
}
