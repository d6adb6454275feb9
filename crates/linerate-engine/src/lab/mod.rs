//! Laboratories: hosts, switches and routers in network namespaces.
//!
//! Each node is a namespace held by a descriptor of this process, with veth pairs as cables.
//! Nothing has a name outside and nothing is on disk, so a laboratory ends with the process
//! however it ends. Links with delay, loss and queues are paths of the emulator (`paths`).

mod bank;
mod build;
mod devices;
mod entry_socket;
mod filters;
mod neighbours;
mod paths;
mod privilege;
mod settings;
mod shaper;
mod sweep;

use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use linerate_core::lab::{HostTcp, LabPlan, Layout};
use linerate_core::record::{Failure, Fault};
use linerate_sys::netlink::{LinkCounters, LinkFacts, RouteSocket};
use linerate_sys::netns::Netns;

use crate::netns::{run_inside, start_failure};

pub use bank::Bank;
pub use devices::DeviceCounters;
pub use entry_socket::{Entry, EntrySocket, Running, running};
pub use paths::path_memory_bytes;
pub use privilege::{Privilege, enter_user_namespace_if_needed};
pub use sweep::end_processes_inside;

use crate::path::witness::{PathSite, Teller};
use build::Built;
use devices::ForwardingDevice;
use paths::LabPath;

/// A running laboratory. Dropping it removes everything that nobody else holds.
#[derive(Debug)]
pub struct Lab {
    name: String,
    layout: Layout,
    /// The teller of the paths; it and the paths end before the namespaces do.
    teller: Option<Teller>,
    paths: Vec<LabPath>,
    devices: Vec<ForwardingDevice>,
    nodes: Vec<LabNode>,
    notes: Vec<String>,
}

/// The namespace of one node. Indexes are those of the layout.
#[derive(Debug)]
struct LabNode {
    netns: Arc<Netns>,
    socket: Mutex<RouteSocket>,
}

impl Lab {
    /// Builds what the plan says; returns when every link carries packets.
    /// # Errors
    /// When the plan cannot be built, without the privilege to make network namespaces (see
    /// [`enter_user_namespace_if_needed`]), or when the kernel lacks a part.
    pub fn build_from_plan(plan: &LabPlan) -> Result<Self, Failure> {
        let name = plan.name.clone().unwrap_or_else(|| "lab".to_owned());
        let layout = Layout::from_plan(plan)
            .map_err(|problem| Failure::new(Fault::Usage, "build laboratory", &name, problem))?;
        let built = build::build_layout(&layout)?;
        let Built { nodes, paths, devices, notes } = built;
        let teller = paths::teller(&layout, &nodes, &paths)?;
        Ok(Self { name, layout, teller, paths, devices, nodes, notes })
    }

    /// The name of its plan.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The nodes, links, addresses and routes of the laboratory.
    pub const fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The emulated paths, in the order of their links.
    pub fn emulated_paths(&self) -> impl Iterator<Item = &PathSite> {
        self.paths.iter().map(|path| &*path.site)
    }

    /// True where measurements on its hosts learn what its paths did.
    pub const fn tells_of_paths(&self) -> bool {
        self.teller.is_some()
    }

    /// Facilities that this host does not have, one line each; the laboratory works without them.
    pub fn build_notes(&self) -> &[String] {
        &self.notes
    }

    /// The address at which others reach a host or router; 127.0.0.1 for one without links.
    pub fn address_of(&self, host: &str) -> Option<IpAddr> {
        self.layout.address_of(host)
    }

    /// Runs `work` on a thread inside a node and returns its value. Threads that it starts are
    /// inside too.
    /// # Errors
    /// When there is no such node, the namespace cannot be entered, or `work` panics.
    pub fn run_on<T: Send>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, Failure> {
        run_inside(&self.find_node(host)?.netns, host, work)
    }

    /// Starts `work` on a thread inside a node, for work that goes on beside other work. It keeps
    /// the node's namespace until it ends.
    /// # Errors
    /// When there is no such node, the namespace cannot be entered, or no thread can be started.
    pub fn spawn_on<T: Send + 'static>(
        &self,
        host: &str,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<JoinHandle<T>, Failure> {
        let netns = &self.find_node(host)?.netns;
        let keep = Arc::clone(netns);
        // Enters on a thread that ends at once: what it starts begins where it is.
        let thread = run_inside(netns, host, move || {
            thread::Builder::new().name("lab".to_owned()).spawn(move || {
                let value = work();
                drop(keep);
                value
            })
        })?;
        thread.map_err(|source| start_failure(host, &source))
    }

    /// Sets TCP on a host; what the settings leave out stays, and so do connections that stand.
    /// # Errors
    /// When there is no such host, this kernel lacks a setting, or does not take its value.
    pub fn set_tcp(&self, host: &str, tcp: &HostTcp) -> Result<(), Failure> {
        settings::apply_tcp_settings(self.find_node(host)?, host, tcp)
    }

    /// Counters of an interface of a node: `eth0`, `lo`.
    /// # Errors
    /// When there is no such node or interface.
    pub fn counters(&self, host: &str, ifname: &str) -> Result<LinkCounters, Failure> {
        self.link_facts(host, ifname).map(|link| link.counters)
    }

    /// The kernel's facts about an interface of a node.
    /// # Errors
    /// When there is no such node or interface.
    pub fn link_facts(&self, host: &str, ifname: &str) -> Result<LinkFacts, Failure> {
        let mut socket =
            self.find_node(host)?.socket.lock().unwrap_or_else(PoisonError::into_inner);
        let object = format!("{ifname} of {host}");
        socket.link_by_name(ifname).map_err(|error| system("look at interface", object, error))
    }

    /// The frames that a device counted, from its first link to its second and back; a router by
    /// XDP counts all its directions together.
    /// # Errors
    /// When there is no such node, or the kernel forwards there, which counts at its interfaces.
    pub fn device_counters(&self, name: &str) -> Result<Vec<DeviceCounters>, Failure> {
        self.find_node(name)?;
        let node = self.layout.node_index(name);
        let device = self.devices.iter().find(|device| Some(device.node) == node);
        device.and_then(ForwardingDevice::counters).ok_or_else(|| {
            system("look at device", name, "it counts no frames of its own")
                .advise("check the counters of its interfaces")
        })
    }

    /// Starts planted devices anew for trials whose numbers share the upper 16 bits of `trial`:
    /// counts at 0, nothing waiting, stalls from now on. Before that, and for other frames, they
    /// are wires.
    pub fn begin_devices(&self, trial: u32) {
        self.devices.iter().for_each(|device| device.begin_trials(trial));
    }

    /// Numbers of the nodes' network namespaces, as in `readlink /proc/PID/ns/net`.
    /// # Errors
    /// When the kernel does not answer.
    pub fn namespace_ids(&self) -> Result<Vec<u64>, Failure> {
        let ids = self.nodes.iter().map(|node| node.netns.inode_number());
        ids.collect::<Result<_, _>>().map_err(|error| system("identify", &self.name, error))
    }

    fn find_node(&self, host: &str) -> Result<&LabNode, Failure> {
        let index = self.layout.node_index(host).ok_or_else(|| {
            let names: Vec<&str> =
                self.layout.nodes.iter().map(|node| node.name.as_str()).collect();
            Failure::new(Fault::Usage, "find host", host, "the laboratory has no such host")
                .advise(format!("it has {}", names.join(", ")))
        })?;
        Ok(&self.nodes[index])
    }
}

/// Runs `work` inside a namespace, or right here, and returns its value.
/// # Errors
/// When the namespace cannot be entered or `work` panics.
pub fn inside<T: Send>(
    netns: Option<&Netns>,
    name: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    match netns {
        Some(netns) => run_inside(netns, name, work),
        None => Ok(work()),
    }
}

/// Sets up the loopback of the calling thread's namespace.
/// # Errors
/// Without CAP_NET_ADMIN there.
pub fn loopback_up() -> Result<(), Failure> {
    let up = RouteSocket::open().and_then(|mut socket| socket.set_up(build::LOOPBACK));
    up.map_err(|error| crate::failure::system(&error))
}

/// A failure of this host.
fn system(attempt: &str, object: impl Into<String>, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::System, attempt, object, reason)
}
