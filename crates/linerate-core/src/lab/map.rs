//! A laboratory as a small map in text: one line per interface.

use super::layout::{Layout, Link, Node, Role};
use super::{DeviceKind, FilterShape, Placement, RouterHow};
use crate::units::BitRate;

/// Lines of text with a heading; columns are aligned with spaces.
pub fn map_lines(layout: &Layout) -> Vec<String> {
    let head = ["node", "role", "interface", "IPv4", "IPv6", "to", "MTU", "rate"];
    let mut rows = vec![head.map(str::to_owned)];
    for (index, node) in layout.nodes.iter().enumerate() {
        rows.extend(rows_of(layout, index, node));
    }
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..head.len()).map(|column| width(column).unwrap_or(0)).collect();
    rows.iter().map(|row| aligned(row, &widths)).collect()
}

fn rows_of(layout: &Layout, index: usize, node: &Node) -> Vec<[String; 8]> {
    let role = role_of(node);
    let loopback = || {
        let mtu = node.loopback_mtu_bytes.map_or_else(String::new, |mtu| mtu.to_string());
        ["lo", "127.0.0.1", "", "itself", &mtu, ""].map(str::to_owned)
    };
    let of_links = (0..node.interfaces.len()).map(|place| of_interface(layout, index, place));
    // The loopback is worth a line where it is the only way, or unlike the kernel's.
    let lo = node.interfaces.is_empty() && !node.role.joins_links();
    let lo = (lo || node.loopback_mtu_bytes.is_some()).then(loopback);
    let cells: Vec<[String; 6]> = of_links.chain(lo).collect();
    let cells = if cells.is_empty() { vec![std::array::from_fn(|_| String::new())] } else { cells };
    let with_node = |line: usize, cells: [String; 6]| {
        let (name, role) = if line == 0 { (node.name.as_str(), role.as_str()) } else { ("", "") };
        let [a, b, c, d, e, f] = cells;
        [name.to_owned(), role.to_owned(), a, b, c, d, e, f]
    };
    cells.into_iter().enumerate().map(|(line, cells)| with_node(line, cells)).collect()
}

fn role_of(node: &Node) -> String {
    let how = &node.forwarding;
    let mut words = vec![match (node.role, &how.device) {
        (Role::Host, _) => "host".to_owned(),
        (Role::Router { .. }, _) => "router".to_owned(),
        (Role::Switch, _) => "switch".to_owned(),
        (Role::Device, Some(plan)) if plan.kind == DeviceKind::Planted => "planted".to_owned(),
        (Role::Device, _) => "forwarder".to_owned(),
    }];
    match node.role {
        Role::Router { filters: filters @ 1.. } if how.filter_shape == FilterShape::Set => {
            words.push(format!("a set of {filters} filters"));
        }
        Role::Router { filters: filters @ 1.. } => words.push(format!("{filters} filters")),
        _ => {}
    }
    if how.how == RouterHow::Xdp {
        words.push("XDP".to_owned());
    }
    let device = how.device.as_ref();
    words.extend(
        device.and_then(|device| device.frames_per_sec).map(|rate| format!("{rate} frames/s")),
    );
    let rate = device.and_then(|device| device.bits_per_sec).map(BitRate::from_bits_per_sec);
    words.extend(rate.map(|rate| rate.to_string()));
    match (how.placement, how.cpu) {
        (Placement::Inline, _) => {}
        (Placement::Threaded, None) => words.push("threaded".to_owned()),
        (Placement::Threaded, Some(cpu)) => words.push(format!("threaded on CPU {cpu}")),
    }
    words.join(", ")
}

fn of_interface(layout: &Layout, node: usize, place: usize) -> [String; 6] {
    let interface = &layout.nodes[node].interfaces[place];
    let link = &layout.links[interface.link];
    let text = |addr: Option<String>| addr.unwrap_or_default();
    [
        interface.name.clone(),
        text(interface.ipv4.map(|addr| addr.to_string())),
        text(interface.ipv6.map(|addr| addr.to_string())),
        far_end(layout, link, node),
        link.mtu_bytes.to_string(),
        rate_text(link),
    ]
}

fn far_end(layout: &Layout, link: &Link, node: usize) -> String {
    let far = if link.ends[0].node == node { link.ends[1] } else { link.ends[0] };
    let far_node = &layout.nodes[far.node];
    format!("{} {}", far_node.name, far_node.interfaces[far.interface].name)
}

fn rate_text(link: &Link) -> String {
    let rate = match (&link.path, link.rate) {
        (Some(path), _) => path.outline(),
        (None, Some(rate)) => rate.to_string(),
        (None, None) => "unshaped".to_owned(),
    };
    if link.offload { rate } else { format!("{rate}, no offload") }
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:width$}"));
    cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
}
