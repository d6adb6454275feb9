//! Neighbours of a quiet laboratory: every host and router knows the hardware address of every
//! other in its segments, so that nobody asks while frames are counted and no entry expires.

use linerate_core::lab::{Layout, Segment};
use linerate_core::record::Failure;
use linerate_sys::netlink::NeighbourEntry;
use linerate_sys::sysctl;

use super::{LabNode, system};

/// Makes the neighbours of every segment known to each other.
pub(super) fn set_neighbours(nodes: &[LabNode], layout: &Layout) -> Result<(), Failure> {
    layout.segments.iter().try_for_each(|segment| set_segment(nodes, layout, segment))
}

fn set_segment(nodes: &[LabNode], layout: &Layout, segment: &Segment) -> Result<(), Failure> {
    let ipv6 = sysctl::exists("net/ipv6/conf/all/forwarding");
    for far in &segment.members {
        let plan = &layout.nodes[far.node];
        let interface = &plan.interfaces[far.interface];
        let facts =
            nodes[far.node].run_request(plan, |socket| socket.link_by_name(&interface.name))?;
        let mac = facts.mac.ok_or_else(|| {
            let object = format!("{} of {}", interface.name, plan.name);
            system("make known", object, "it has no hardware address")
        })?;
        let ipv4 = interface.ipv4.map(Into::into);
        let addresses = [ipv4, interface.ipv6.filter(|_| ipv6).map(Into::into)];
        for own in segment.members.iter().filter(|own| own.node != far.node) {
            let plan = &layout.nodes[own.node];
            let name = &plan.interfaces[own.interface].name;
            let index = nodes[own.node].index_of(plan, name)?;
            for addr in addresses.into_iter().flatten() {
                let neighbour = NeighbourEntry { index, addr, mac };
                nodes[own.node].run_request(plan, |socket| socket.set_neighbour(&neighbour))?;
            }
        }
    }
    Ok(())
}
