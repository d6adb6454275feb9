//! The laboratory of a device that is made here: a sender, the device, a receiver, and nothing
//! else on the links.

use std::time::Duration;

use linerate_core::lab::{
    DeviceKind, DevicePlan, HostPlan, LabPlan, LinkPlan, Placement, RouterHow, RouterPlan,
    StallPlan, SwitchPlan,
};
use linerate_core::study::Topology;
use linerate_core::units::print_span;

use super::defaults;
use super::device::{DeviceArg, Planted};
use super::flags::{Args, DeviceContext};

/// Header and FCS around the packet of a frame, and a tag.
const AROUND_BYTES: u32 = 18;
const TAG_BYTES: u32 = 4;
/// Links take at least the longest frame of an MTU of 1500.
const MTU_BYTES: u32 = 1500;

const SENDER: &str = "sender";
const RECEIVER: &str = "receiver";
const DEVICE: &str = "device";

/// A device to make, with the flags for the networks around it.
pub(super) struct DeviceLab<'a> {
    pub(super) device: &'a DeviceArg,
    pub(super) args: &'a Args,
    /// Length of the longest frame that it is to carry.
    pub(super) longest_bytes: u32,
}

impl DeviceLab<'_> {
    /// One for each number of filters.
    pub(super) fn topologies(&self) -> Vec<Topology> {
        match self.args.made.filters.as_slice() {
            [] => vec![self.topology(0, self.device.name().to_owned())],
            some => {
                let of =
                    |&rules: &u32| self.topology(rules, format!("{}-{rules}", self.device.name()));
                some.iter().map(of).collect()
            }
        }
    }

    fn topology(&self, filters: u32, id: String) -> Topology {
        let name = self.device.name();
        let title = match (self.device.filters(), filters) {
            (false, _) => name.to_owned(),
            (true, 1) => format!("{name}, 1 filter"),
            (true, some) => format!("{name}, {some} filters"),
        };
        let bridges = matches!(self.device, DeviceArg::Bridge);
        Topology {
            title,
            class: name.to_owned(),
            lab: self.lab_plan(&id, filters),
            id,
            client: SENDER.to_owned(),
            server: RECEIVER.to_owned(),
            l2_hops: bridges.into(),
            l3_hops: self.device.routes().into(),
            published: None,
        }
    }

    fn lab_plan(&self, id: &str, filters: u32) -> LabPlan {
        let host = |name: &str| HostPlan { name: name.to_owned(), ..HostPlan::default() };
        let mut lab = LabPlan {
            name: Some(id.to_owned()),
            quiet: true,
            hosts: self.host_names().iter().map(|name| host(name)).collect(),
            ..LabPlan::default()
        };
        let (name, placement) = (DEVICE.to_owned(), self.placement());
        match self.device {
            DeviceArg::Cable => {
                lab.links = vec![self.link_plan([SENDER, RECEIVER])];
                return lab;
            }
            DeviceArg::Bridge => {
                lab.switches = vec![SwitchPlan { name, placement, ..SwitchPlan::default() }];
            }
            DeviceArg::Router | DeviceArg::XdpRouter => {
                let xdp = matches!(self.device, DeviceArg::XdpRouter);
                let how = if xdp { RouterHow::Xdp } else { RouterHow::Kernel };
                let router = RouterPlan { name, filters, how, placement, ..RouterPlan::default() };
                lab.routers = vec![router];
            }
            DeviceArg::Forwarder => {
                let device = DevicePlan::new(DEVICE, DeviceKind::Forwarder);
                lab.devices = vec![DevicePlan { placement, ..device }];
            }
            DeviceArg::Planted(planted) => {
                lab.devices = vec![DevicePlan { placement, ..self::planted(planted) }];
            }
        }
        lab.links = vec![self.link_plan([SENDER, DEVICE]), self.link_plan([DEVICE, RECEIVER])];
        let further = &self.host_names()[2..];
        lab.links.extend(further.iter().map(|name| self.link_plan([DEVICE, name])));
        lab
    }

    /// A host for each port.
    fn host_names(&self) -> Vec<String> {
        let further = (3..=defaults::port_count(self.args)).map(|number| format!("port{number}"));
        [SENDER, RECEIVER].map(str::to_owned).into_iter().chain(further).collect()
    }

    fn placement(&self) -> Placement {
        match self.args.made.placement {
            Some(DeviceContext::Inline) => Placement::Inline,
            Some(DeviceContext::Threaded) => Placement::Threaded,
            None => Placement::default(),
        }
    }

    fn link_plan(&self, ends: [&str; 2]) -> LinkPlan {
        let tags = TAG_BYTES * u32::try_from(self.args.frames.vlan.len()).unwrap_or(0);
        let packet = self.longest_bytes.saturating_sub(AROUND_BYTES + tags);
        LinkPlan {
            ends: ends.map(str::to_owned),
            mtu_bytes: Some(packet).filter(|bytes| *bytes > MTU_BYTES),
            rate: None,
            offload: None,
            path: None,
        }
    }
}

fn planted(planted: &Planted) -> DevicePlan {
    let text = |span: Duration| (!span.is_zero()).then(|| print_span(span));
    DevicePlan {
        frames_per_sec: planted.frames_per_sec,
        bits_per_sec: planted.bits_per_sec,
        buffer_frames: planted.buffer_frames,
        latency: text(planted.latency),
        loss_one_in: planted.loss_one_in,
        stall: planted.stall.map(|stall| StallPlan {
            every: print_span(stall.every),
            lasting: print_span(stall.length),
        }),
        ..DevicePlan::new(DEVICE, DeviceKind::Planted)
    }
}
