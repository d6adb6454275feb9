//! Static routes by the fewest routers on the way.
//!
//! For each segment, routers that stand in it are at distance 0, their neighbours among the routers
//! at 1, and so on. A node sends to the neighbour router of the least distance; between equals, to
//! the one over its earlier interface, then to the one with the lower address.

use std::net::IpAddr;

use super::layout::{End, IPV4_PREFIX_LEN, IPV6_PREFIX_LEN, Interface, Layout, Role, Route};

/// Adds to every host and router one route for each segment that it reaches over a router.
pub(super) fn add(layout: &mut Layout) {
    for segment in 0..layout.segments.len() {
        let distance = distances_to(layout, segment);
        for node in 0..layout.nodes.len() {
            // What joins links has no address, so it reaches no gateway.
            if layout.nodes[node].role.joins_links() || stands_in(layout, node, segment) {
                continue;
            }
            let Some(gateway) = next_hop(layout, node, &distance) else { continue };
            let routes = routes_to(layout, segment, gateway);
            layout.nodes[node].routes.extend(routes);
        }
    }
}

/// Routers between each node and the segment, the node itself not counted; none where no way
/// leads, and for hosts and switches, which do not forward packets.
fn distances_to(layout: &Layout, segment: usize) -> Vec<Option<usize>> {
    let is_router = |node: usize| matches!(layout.nodes[node].role, Role::Router { .. });
    let mut distance = vec![None; layout.nodes.len()];
    let mut ring: Vec<usize> = (0..layout.nodes.len())
        .filter(|&node| is_router(node) && stands_in(layout, node, segment))
        .collect();
    for steps in 0..layout.nodes.len() {
        for &node in &ring {
            distance[node] = Some(steps);
        }
        let mut next = Vec::new();
        for &node in &ring {
            let beyond = neighbours(layout, node).map(|end| end.node);
            next.extend(beyond.filter(|&other| is_router(other) && distance[other].is_none()));
        }
        ring = next;
    }
    distance
}

fn next_hop(layout: &Layout, node: usize, distance: &[Option<usize>]) -> Option<End> {
    let candidates = neighbours(layout, node);
    let reachable = candidates.filter_map(|end| distance[end.node].map(|steps| (steps, end)));
    // `min_by_key` keeps the first of equals: the order of interfaces, then of addresses.
    reachable.min_by_key(|(steps, _)| *steps).map(|(_, end)| end)
}

/// The interfaces of other nodes in the segments of a node.
fn neighbours(layout: &Layout, node: usize) -> impl Iterator<Item = End> {
    let segments = layout.nodes[node].interfaces.iter().map(|interface| {
        let link = &layout.links[interface.link];
        &layout.segments[link.segment]
    });
    let members = segments.flat_map(|segment| segment.members.iter().copied());
    members.filter(move |end| end.node != node)
}

fn stands_in(layout: &Layout, node: usize, segment: usize) -> bool {
    layout.segments[segment].members.iter().any(|end| end.node == node)
}

fn routes_to(layout: &Layout, segment: usize, gateway: End) -> Vec<Route> {
    let segment = &layout.segments[segment];
    let Interface { ipv4, ipv6, .. } = &layout.nodes[gateway.node].interfaces[gateway.interface];
    let ipv4 = ipv4.map(|gateway| Route {
        network: IpAddr::V4(segment.ipv4),
        prefix_len: IPV4_PREFIX_LEN,
        gateway: IpAddr::V4(gateway),
    });
    let ipv6 = segment.ipv6.zip(*ipv6).map(|(network, gateway)| Route {
        network: IpAddr::V6(network),
        prefix_len: IPV6_PREFIX_LEN,
        gateway: IpAddr::V6(gateway),
    });
    ipv4.into_iter().chain(ipv6).collect()
}
