//! A laboratory as data: hosts, switches, routers and links, and the addresses they get.
//!
//! ```toml
//! [[host]]
//! name = "a"
//! [[host]]
//! name = "b"
//! [[router]]
//! name = "r"
//! filters = 1000
//! [[link]]
//! ends = ["a", "r"]
//! [[link]]
//! ends = ["r", "b"]
//! rate = "155.52 Mbit/s"
//! mtu_bytes = 1500
//! ```

pub mod bank;
mod bench_ports;
mod check;
mod device;
mod host_tcp;
mod lay_out;
mod layout;
mod map;
mod problem;
mod routes;
mod segments;
#[cfg(test)]
mod tests;
mod text;
mod way;

pub use check::{FILTERS_MAX, LINKS_MAX, MTU_BYTES_MAX, MTU_BYTES_MIN, NODES_MAX};
pub use device::{
    BUFFER_FRAMES_DEFAULT, BUFFER_FRAMES_MAX, DeviceKind, DevicePlan, FilterShape, Placement,
    RouterHow, StallPlan,
};
pub use host_tcp::HostTcp;
pub(crate) use host_tcp::is_congestion_control;
pub use layout::{
    End, Forwarding, IPV4_PREFIX_LEN, IPV6_PREFIX_LEN, Interface, Layout, Link, Node, Role, Route,
    Segment,
};
pub use map::map_lines;
pub use problem::{Problem, Step};
pub use text::line_and_column;
pub(crate) use text::{one_line, place_of};
pub use way::Crossing;

use serde::{Deserialize, Serialize};

use crate::record::PathPlan;

/// A laboratory on one machine.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LabPlan {
    /// Name for messages; a file's stem where the file gives none.
    #[serde(default)]
    pub name: Option<String>,
    /// No traffic on the links but the test's: no neighbour discovery while frames are counted, no
    /// announcements, no offloads. Benchmarks of devices need it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub quiet: bool,
    /// End systems, which run programs.
    #[serde(default, rename = "host")]
    pub hosts: Vec<HostPlan>,
    /// Learning bridges between the links.
    #[serde(default, rename = "switch")]
    pub switches: Vec<SwitchPlan>,
    /// Hosts that forward packets.
    #[serde(default, rename = "router")]
    pub routers: Vec<RouterPlan>,
    /// Devices between two links, without a network stack.
    #[serde(default, rename = "device", skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DevicePlan>,
    /// Cables between two nodes.
    #[serde(default, rename = "link")]
    pub links: Vec<LinkPlan>,
}

/// An end system of the laboratory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    /// Name, unique among the nodes.
    pub name: String,
    /// MTU of its loopback interface; the kernel's 65536 when absent.
    #[serde(default)]
    pub loopback_mtu_bytes: Option<u32>,
    /// Segmentation offload of its loopback interface; on when absent. Off makes every segment a
    /// real packet.
    #[serde(default)]
    pub loopback_offload: Option<bool>,
    /// Settings of its TCP.
    #[serde(default)]
    pub tcp: HostTcp,
}

/// A learning bridge of the laboratory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SwitchPlan {
    /// Name, unique among the nodes.
    pub name: String,
    /// Context in which it forwards.
    #[serde(default, skip_serializing_if = "is_default")]
    pub placement: Placement,
    /// CPU of its kernel threads, where it has its own; the kernel's choice when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

/// A host that forwards.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RouterPlan {
    /// Name, unique among the nodes.
    pub name: String,
    /// Filter rules that every forwarded packet is compared with and none matches.
    #[serde(default)]
    pub filters: u32,
    /// Form in which the rules are kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub filter_shape: FilterShape,
    /// Forwarding engine of the router.
    #[serde(default, skip_serializing_if = "is_default")]
    pub how: RouterHow,
    /// Context in which it forwards.
    #[serde(default, skip_serializing_if = "is_default")]
    pub placement: Placement,
    /// CPU of its kernel threads, where it has its own; the kernel's choice when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<u32>,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A cable between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LinkPlan {
    /// Names of the two nodes.
    pub ends: [String; 2],
    /// Largest IP packet at both ends; 1500 when absent, and what is usual for the path's link.
    #[serde(default)]
    pub mtu_bytes: Option<u32>,
    /// Rate in both directions as text with a unit; as fast as the machine when absent.
    #[serde(default)]
    pub rate: Option<String>,
    /// Segmentation offload at both ends; on when absent. Off makes every segment a real packet.
    #[serde(default)]
    pub offload: Option<bool>,
    /// An emulated path instead of a cable: rate, delay, loss, queues. Forward is from the first
    /// end to the second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPlan>,
}
