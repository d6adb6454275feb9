//! The links that packets take from a node to an address, as the routes of a layout say.
//!
//! Leaves out links that are down: a laboratory has none.

use std::net::IpAddr;

use super::layout::{End, Layout};

/// A link on the way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// Index of the link.
    pub link: usize,
    /// True when it is crossed from its second end to its first.
    pub backward: bool,
}

impl Layout {
    /// The links from a node to an address, in order; empty for the node's own address and for
    /// one that the laboratory does not have.
    pub fn route_crossings(&self, node: usize, target: IpAddr) -> Vec<Crossing> {
        let Some(end) = self.address_owner(target) else { return Vec::new() };
        let mut way = Vec::new();
        let mut at = node;
        // A route never meets a node twice.
        for _ in 0..self.nodes.len() {
            if at == end.node {
                return way;
            }
            let Some((own, next)) = self.next_hop(at, target, end) else { return Vec::new() };
            way.extend(self.within_segment(own, next));
            at = next.node;
        }
        Vec::new()
    }

    /// The node that answers at an address of a host.
    pub fn node_at(&self, address: IpAddr) -> Option<usize> {
        self.address_owner(address).map(|end| end.node)
    }

    fn address_owner(&self, address: IpAddr) -> Option<End> {
        let members = self.segments.iter().flat_map(|segment| &segment.members);
        members.copied().find(|end| {
            let interface = &self.nodes[end.node].interfaces[end.interface];
            let own = [interface.ipv4.map(IpAddr::V4), interface.ipv6.map(IpAddr::V6)];
            own.contains(&Some(address))
        })
    }

    /// The interface that the packet leaves by and the one that it reaches next.
    fn next_hop(&self, node: usize, target: IpAddr, end: End) -> Option<(End, End)> {
        let direct = |to: End| {
            let segment = self.segment_of(to);
            let own = self.segments[segment].members.iter().find(|own| own.node == node)?;
            Some((*own, to))
        };
        if let Some(hop) = direct(end) {
            return Some(hop);
        }
        let segment = &self.segments[self.segment_of(end)];
        let network = match target {
            IpAddr::V4(_) => Some(IpAddr::V4(segment.ipv4)),
            IpAddr::V6(_) => segment.ipv6.map(IpAddr::V6),
        };
        let routes = &self.nodes[node].routes;
        let route = routes.iter().find(|route| Some(route.network) == network)?;
        direct(self.address_owner(route.gateway)?)
    }

    fn segment_of(&self, end: End) -> usize {
        self.links[self.nodes[end.node].interfaces[end.interface].link].segment
    }

    /// The links between two interfaces of a segment: one, or the only way through its switches.
    fn within_segment(&self, from: End, to: End) -> Vec<Crossing> {
        let first = self.crossing(from);
        let mut ways = vec![vec![first]];
        // Switches make a tree, so the first way that arrives is the only one.
        while let Some(way) = ways.pop() {
            let Some(last) = way.last() else { continue };
            let reached = self.far_end(*last);
            if reached == to {
                return way;
            }
            let ports = 0..self.nodes[reached.node].interfaces.len();
            let joins = self.nodes[reached.node].role.joins_links();
            let onward = ports.filter(|port| joins && *port != reached.interface);
            ways.extend(onward.map(|interface| {
                let next = self.crossing(End { node: reached.node, interface });
                [way.as_slice(), &[next]].concat()
            }));
        }
        Vec::new()
    }

    fn crossing(&self, from: End) -> Crossing {
        let link = self.nodes[from.node].interfaces[from.interface].link;
        Crossing { link, backward: self.links[link].ends[1] == from }
    }

    fn far_end(&self, crossing: Crossing) -> End {
        self.links[crossing.link].ends[usize::from(!crossing.backward)]
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabPlan;
    use super::*;

    fn crossings_between(text: &str, from: &str, to: &str) -> Vec<(usize, bool)> {
        let plan = LabPlan::from_toml(text, "x.toml").expect("a plan");
        let layout = Layout::from_plan(&plan).expect("a layout");
        let node = layout.node_index(from).expect("a node");
        let way = layout.route_crossings(node, to.parse().expect("an address"));
        way.iter().map(|crossing| (crossing.link, crossing.backward)).collect()
    }

    #[test]
    fn a_way_goes_over_routers_and_back_again() {
        let text = r#"
host = [{ name = "a" }, { name = "b" }]
router = [{ name = "r1" }, { name = "r2" }]
link = [{ ends = ["a", "r1"] }, { ends = ["r2", "r1"] }, { ends = ["r2", "b"] }]
"#;
        assert_eq!(crossings_between(text, "a", "10.0.3.1"), [(0, false), (1, true), (2, false)]);
        assert_eq!(crossings_between(text, "b", "10.0.1.1"), [(2, true), (1, false), (0, true)]);
        assert_eq!(
            crossings_between(text, "a", "fd00:0:0:3::1"),
            crossings_between(text, "a", "10.0.3.1")
        );
        assert_eq!(crossings_between(text, "a", "10.0.1.1"), []);
        assert_eq!(crossings_between(text, "a", "10.0.9.9"), []);
    }

    #[test]
    fn a_way_through_switches_takes_only_the_links_between() {
        let text = r#"
host = [{ name = "a" }, { name = "b" }, { name = "c" }]
switch = [{ name = "s" }, { name = "t" }]
link = [{ ends = ["a", "s"] }, { ends = ["s", "t"] }, { ends = ["t", "b"] }, { ends = ["c", "s"] }]
"#;
        assert_eq!(crossings_between(text, "a", "10.0.1.2"), [(0, false), (1, false), (2, false)]);
        assert_eq!(crossings_between(text, "b", "10.0.1.3"), [(2, true), (1, true), (3, true)]);
    }
}
