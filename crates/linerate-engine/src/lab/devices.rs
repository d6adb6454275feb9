//! What forwards raw frames: programs at the interfaces of routers and devices, and the processor
//! where a device does its work.
//!
//! A veth end takes frames that were sent or redirected in the kernel only while it has NAPI, which
//! a program on it gives. So in a quiet laboratory every interface of a router or switch has one
//! that passes all frames. What is on an interface is there until the laboratory ends.

use std::time::Duration;

use linerate_core::lab::{
    self, BUFFER_FRAMES_DEFAULT, DeviceKind, DevicePlan, Layout, Placement, Role, RouterHow,
};
use linerate_core::record::Failure;
use linerate_sys::bpf::{AttachMode, XdpLink};
use linerate_sys::xdp::{PlantedDevice, PlantedOptions, Router, Stall, Wire, hold_napi};
use linerate_sys::{bpf, napi};

use super::{LabNode, system};
use crate::netns::run_inside;

/// FCS, preamble, start delimiter and gap: 4 + 8 + 12 bytes (IEEE 802.3).
const AROUND_FRAME_BYTES: u32 = 24;

/// A node that forwards, with what does it.
#[derive(Debug)]
pub(super) struct ForwardingDevice {
    pub(super) node: usize,
    works: Works,
}

#[derive(Debug)]
enum Works {
    /// The kernel forwards; XDP programs on these links only pass frames up.
    Held {
        _links: Vec<XdpLink>,
    },
    Router(Router),
    /// A wire in each direction, the first from the node's first interface.
    Wires([Wire; 2]),
    Planted([PlantedDevice; 2]),
}

/// The frames that a device counted in one direction; a router by XDP in all directions together. A
/// planted device counts frames of trials since they began, the others all frames since they are
/// there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceCounters {
    /// Frames that came in: the sum of what was forwarded, passed and lost.
    pub frames_in: u64,
    /// Frames that went out.
    pub forwarded: u64,
    /// Frames that a router left to the kernel: those to itself, to unknown neighbours, and those
    /// that end there.
    pub passed: u64,
    /// Frames that found the buffer of a planted device full.
    pub dropped_by_queue: u64,
    /// Frames that a planted device lost at random.
    pub dropped_by_chance: u64,
    /// Frames that found the buffer of a planted device full while it stalled.
    pub dropped_in_stall: u64,
    /// Longest time that a frame waited for a planted device.
    pub longest_wait: Duration,
    /// Frames of no trial that went through a planted device.
    pub others: u64,
}

impl DeviceCounters {
    /// Frames that came in and did not go on.
    pub const fn lost_frames(&self) -> u64 {
        self.dropped_by_queue + self.dropped_by_chance + self.dropped_in_stall
    }
}

/// Puts the devices of a layout to work, last of all; notes on programs that could not be had where
/// the kernel forwards without.
pub(super) fn start_devices(
    nodes: &[LabNode],
    layout: &Layout,
    notes: &mut Vec<String>,
) -> Result<Vec<ForwardingDevice>, Failure> {
    let mut devices = Vec::new();
    for (index, (node, plan)) in nodes.iter().zip(&layout.nodes).enumerate() {
        if !has_program(plan, layout.quiet) {
            continue;
        }
        let works = match run_inside(&node.netns, &plan.name, || works_of(node, plan))? {
            Ok(works) => works,
            Err(failure) if is_plain(plan) => {
                notes.push(format!("frames made in the kernel do not get through: {failure}"));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        if plan.forwarding.placement == Placement::Threaded {
            run_inside(&node.netns, &plan.name, || threads(plan))??;
        }
        devices.push(ForwardingDevice { node: index, works });
    }
    Ok(devices)
}

/// True where a program belongs on the interfaces of a node.
fn has_program(plan: &lab::Node, quiet: bool) -> bool {
    let forwarding = &plan.forwarding;
    match plan.role {
        Role::Host => false,
        Role::Device => true,
        Role::Router { .. } | Role::Switch => {
            quiet || forwarding.how == RouterHow::Xdp || forwarding.placement == Placement::Threaded
        }
    }
}

/// True where a node forwards what sockets send without a program of its own.
fn is_plain(plan: &lab::Node) -> bool {
    let forwarding = &plan.forwarding;
    plan.role != Role::Device
        && forwarding.how == RouterHow::Kernel
        && forwarding.placement == Placement::Inline
}

fn works_of(node: &LabNode, plan: &lab::Node) -> Result<Works, Failure> {
    let failed = |error| {
        system("start device", &plan.name, error)
            .advise("XDP needs CAP_BPF and CAP_NET_ADMIN on the host; run it as root")
    };
    bpf::available().map_err(failed)?;
    let indexes = indexes(node, plan)?;
    let works = match (&plan.forwarding.device, plan.forwarding.how) {
        (Some(device), _) => of_device(device, &indexes).map_err(failed)?,
        (None, RouterHow::Xdp) => {
            Works::Router(Router::attach(&indexes, AttachMode::Native).map_err(failed)?)
        }
        (None, RouterHow::Kernel) => {
            let links = indexes.iter().map(|index| hold_napi(*index));
            Works::Held { _links: links.collect::<Result<_, _>>().map_err(failed)? }
        }
    };
    Ok(works)
}

fn of_device(plan: &DevicePlan, indexes: &[u32]) -> linerate_sys::Result<Works> {
    let &[left, right] = indexes else { unreachable!("the check found two links") };
    Ok(match plan.kind {
        DeviceKind::Forwarder => Works::Wires([
            Wire::attach(left, right, AttachMode::Native)?,
            Wire::attach(right, left, AttachMode::Native)?,
        ]),
        DeviceKind::Planted => Works::Planted([
            PlantedDevice::attach(left, right, options(plan))?,
            PlantedDevice::attach(right, left, options(plan))?,
        ]),
    })
}

/// A planted device as its program takes it.
fn options(plan: &DevicePlan) -> PlantedOptions {
    let stall = plan.stall.as_ref().and_then(lab::StallPlan::period_and_length);
    PlantedOptions {
        frames_per_sec: plan.frames_per_sec,
        bytes_per_sec: plan.bits_per_sec.map(|bits| bits / 8),
        frame_overhead_bytes: AROUND_FRAME_BYTES,
        buffer_frames: plan.buffer_frames.unwrap_or(BUFFER_FRAMES_DEFAULT),
        loss_one_in: plan.loss_one_in,
        seed: plan.seed.unwrap_or(1),
        stall: stall.map(|(every, length)| Stall { every, length }),
        latency: plan.latency(),
        store_and_forward: !plan.cut_through.unwrap_or(false),
        mode: AttachMode::Native,
    }
}

fn indexes(node: &LabNode, plan: &lab::Node) -> Result<Vec<u32>, Failure> {
    let of = |interface: &lab::Interface| node.index_of(plan, &interface.name);
    plan.interfaces.iter().map(of).collect()
}

/// Moves the receive work of a node's interfaces to kernel threads.
fn threads(plan: &lab::Node) -> Result<(), Failure> {
    for interface in &plan.interfaces {
        let ran = napi::run_on_threads(&interface.name, plan.forwarding.cpu);
        ran.map_err(|error| {
            system("place device", &plan.name, error)
                .advise("run it as root, or omit placement: the device then runs inline")
        })?;
    }
    Ok(())
}

impl ForwardingDevice {
    /// The device's counters, by direction; none where the kernel forwards.
    pub(super) fn counters(&self) -> Option<Vec<DeviceCounters>> {
        match &self.works {
            Works::Held { .. } => None,
            Works::Router(router) => Some(vec![of_router(router)]),
            Works::Wires(wires) => Some(wires.iter().map(of_wire).collect()),
            Works::Planted(planted) => Some(planted.iter().map(of_planted).collect()),
        }
    }

    /// Starts a planted device anew for the trials that share the upper 16 bits of `trial`.
    pub(super) fn begin_trials(&self, trial: u32) {
        if let Works::Planted(planted) = &self.works {
            planted.iter().for_each(|direction| direction.begin_trials(trial));
        }
    }
}

fn of_router(router: &Router) -> DeviceCounters {
    let counts = router.counts();
    DeviceCounters {
        frames_in: counts.frames_in,
        forwarded: counts.forwarded,
        passed: counts.passed,
        ..DeviceCounters::default()
    }
}

fn of_wire(wire: &Wire) -> DeviceCounters {
    let frames = wire.frames();
    DeviceCounters { frames_in: frames, forwarded: frames, ..DeviceCounters::default() }
}

fn of_planted(direction: &PlantedDevice) -> DeviceCounters {
    let counts = direction.counts();
    DeviceCounters {
        frames_in: counts.frames_in,
        forwarded: counts.forwarded,
        passed: 0,
        dropped_by_queue: counts.dropped_by_queue,
        dropped_by_chance: counts.dropped_by_chance,
        dropped_in_stall: counts.dropped_in_stall,
        longest_wait: counts.waited_max,
        others: counts.others,
    }
}
