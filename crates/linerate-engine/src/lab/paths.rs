//! Links that are emulated paths: devices in the two namespaces, a thread between them.
//!
//! Between hosts and routers they carry IP (TUN); where an end is a switch, both are Ethernet
//! devices (TAP). The threads are those of this process and end with it, and the devices with
//! them, so nothing passes unshaped.

use std::sync::Mutex;

use linerate_core::lab::{Layout, Role};
use linerate_core::record::Failure;
use linerate_sys::tun::TunKind;

use super::Node;
use crate::path::{Direction, Emulator, EmulatorPlan, End, directions};

/// A link of the layout that is an emulated path.
#[derive(Debug)]
pub(super) struct LabPath {
    /// Index of the link.
    pub(super) link: usize,
    pub(super) emulator: Mutex<Emulator>,
}

/// Makes the devices of a link and carries packets between them.
pub(super) fn start(nodes: &[Node], layout: &Layout, index: usize) -> Result<LabPath, Failure> {
    let link = &layout.links[index];
    let is_switch = |end: usize| layout.nodes[link.ends[end].node].role == Role::Switch;
    let kind = if is_switch(0) || is_switch(1) { TunKind::Ethernet } else { TunKind::Ip };
    let end = |end: usize| {
        let place = link.ends[end];
        let name = layout.nodes[place.node].interfaces[place.interface].name.clone();
        let netns = Some(&*nodes[place.node].netns);
        End { netns, name, kind, mtu_bytes: link.mtu_bytes, addresses: Vec::new() }
    };
    let plan = EmulatorPlan::new([end(0), end(1)], directions_of(layout, index)?);
    let emulator = Mutex::new(Emulator::start(plan)?);
    Ok(LabPath { link: index, emulator })
}

fn directions_of(layout: &Layout, index: usize) -> Result<[Direction; 2], Failure> {
    let link = &layout.links[index];
    let path = link.path.clone().unwrap_or_default();
    directions(&path, link.mtu_bytes, &layout.link_name(index))
}

/// Memory that all paths of a laboratory take at most, in bytes.
/// # Errors
/// When a path cannot be built.
pub fn path_memory_bytes(layout: &Layout) -> Result<u64, Failure> {
    let paths = (0..layout.links.len()).filter(|&index| layout.links[index].path.is_some());
    let bytes = paths.map(|index| {
        let directions = directions_of(layout, index)?;
        Ok(directions.iter().map(Direction::memory_bytes).fold(0, u64::saturating_add))
    });
    bytes.sum()
}
