//! Links that are emulated paths: devices in the two namespaces, a thread between them.
//!
//! Where a plan asks for netem, the link is a cable, and the kernel shapes what enters it at each
//! end. Between hosts and routers they carry IP (TUN); where an end is a switch, both are Ethernet
//! devices (TAP). The threads are those of this process and end with it, and the devices with
//! them, so nothing passes unshaped.

use std::net::IpAddr;
use std::sync::Arc;

use linerate_core::lab::{Layout, Link};
use linerate_core::record::{self, Failure, PathPlan};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::tun::TunKind;

use super::LabNode;
use crate::path::netem::NetemLink;
use crate::path::witness::{OnWay, PathFacts, PathSite, Site, Teller};
use crate::path::{EmulatedDirection as Lane, EmulatedEnd, Emulator, EmulatorPlan, directions};

/// A link of the layout that is an emulated path.
#[derive(Clone, Debug)]
pub(super) struct LabPath {
    /// Index of the link.
    pub(super) link: usize,
    pub(super) site: Arc<PathSite>,
}

/// Makes the devices of a link and carries packets between them.
pub(super) fn start_path(
    nodes: &[LabNode],
    layout: &Layout,
    index: usize,
) -> Result<LabPath, Failure> {
    let link = &layout.links[index];
    let joins = |end: usize| layout.nodes[link.ends[end].node].role.joins_links();
    let kind = if joins(0) || joins(1) { TunKind::Ethernet } else { TunKind::Ip };
    let end = |end: usize| {
        let place = link.ends[end];
        let name = layout.nodes[place.node].interfaces[place.interface].name.clone();
        let netns = Some(&*nodes[place.node].netns);
        EmulatedEnd { netns, name, kind, mtu_bytes: link.mtu_bytes, addresses: Vec::new() }
    };
    let plan = EmulatorPlan::new([end(0), end(1)], directions_of(layout, index)?);
    let emulator = Emulator::start(plan)?;
    let site = PathSite::new(path_facts(layout, index, kind), emulator);
    Ok(LabPath { link: index, site: Arc::new(site) })
}

/// A link on which the kernel's netem is at work, by sockets in the namespaces of its ends and its
/// indices there.
pub(super) fn of_netem(layout: &Layout, index: usize, ends: [(RouteSocket, u32); 2]) -> LabPath {
    let facts = path_facts(layout, index, TunKind::Ethernet);
    LabPath { link: index, site: Arc::new(PathSite::of_netem(facts, NetemLink::new(ends))) }
}

/// True where the kernel's netem is to carry a link.
pub(super) fn is_netem(link: &Link) -> bool {
    link.path.as_ref().is_some_and(PathPlan::is_netem)
}

fn path_facts(layout: &Layout, index: usize, kind: TunKind) -> PathFacts {
    let link = &layout.links[index];
    PathFacts {
        name: layout.link_name(index),
        kind,
        plan: link.path.clone().unwrap_or_default(),
        mtu_bytes: link.mtu_bytes,
    }
}

/// Tells measurements on hosts and routers about the paths that they go over; none without paths.
pub(super) fn teller(
    layout: &Layout,
    nodes: &[LabNode],
    paths: &[LabPath],
) -> Result<Option<Teller>, Failure> {
    if paths.is_empty() {
        return Ok(None);
    }
    let layout = Arc::new(layout.clone());
    let sites =
        nodes.iter().enumerate().filter(|(node, _)| !layout.nodes[*node].role.joins_links());
    let sites = sites.map(|(node, inside)| {
        let (layout, paths) = (Arc::clone(&layout), paths.to_vec());
        Site {
            netns: Some(Arc::clone(&inside.netns)),
            name: layout.nodes[node].name.clone(),
            ways: Arc::new(move |target| on_way(&layout, &paths, node, target)),
        }
    });
    Teller::open_sockets(sites.collect()).map(Some)
}

/// The paths from a node to an address and back.
fn on_way(layout: &Layout, paths: &[LabPath], node: usize, target: IpAddr) -> Vec<OnWay> {
    let there = layout.route_crossings(node, target);
    let own = there.first().and_then(|first| {
        let end = layout.links[first.link].ends[usize::from(first.backward)];
        let interface = &layout.nodes[node].interfaces[end.interface];
        if target.is_ipv4() {
            interface.ipv4.map(IpAddr::V4)
        } else {
            interface.ipv6.map(IpAddr::V6)
        }
    });
    let back = own.zip(layout.node_at(target)).map(|(own, far)| layout.route_crossings(far, own));
    let back = back.unwrap_or_default();
    let crossed = |path: &LabPath| {
        let mut directions = [None; 2];
        for (way, carried) in [(&there, record::Direction::Up), (&back, record::Direction::Down)] {
            for crossing in way.iter().filter(|crossing| crossing.link == path.link) {
                directions[usize::from(crossing.backward)] = Some(carried);
            }
        }
        directions
            .iter()
            .any(Option::is_some)
            .then(|| OnWay { path: Arc::clone(&path.site), directions })
    };
    paths.iter().filter_map(crossed).collect()
}

fn directions_of(layout: &Layout, index: usize) -> Result<[Lane; 2], Failure> {
    let link = &layout.links[index];
    let path = link.path.clone().unwrap_or_default();
    directions(&path, link.mtu_bytes, &layout.link_name(index))
}

/// Memory that all paths of a laboratory take at most, in bytes.
/// # Errors
/// When a path cannot be built.
pub fn path_memory_bytes(layout: &Layout) -> Result<u64, Failure> {
    let own = |link: &Link| link.path.is_some() && !is_netem(link);
    let paths = (0..layout.links.len()).filter(|&index| own(&layout.links[index]));
    let bytes = paths.map(|index| {
        let directions = directions_of(layout, index)?;
        Ok(directions.iter().map(Lane::memory_bytes).fold(0, u64::saturating_add))
    });
    bytes.sum()
}
