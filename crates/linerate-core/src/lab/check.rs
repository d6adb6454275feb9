//! What a plan of a laboratory must hold before anything is built: names, ends, limits.
//!
//! Finds the first problem and where it is; the text of a file turns that into line and column.
//! Leaves out what only the machine can tell: privilege, a kernel without bridges, no `nft`.

use std::collections::BTreeMap;

use super::problem::{Checked, Problem, Step, problem};
use super::segments::check_segments;
use super::{LabPlan, LinkPlan, RouterHow};
use crate::record::PathPlan;
use crate::time::MonoTime;
use crate::units::BitRate;

/// Nodes of a laboratory: each is a network namespace, about 1 MB of kernel memory.
pub const NODES_MAX: usize = 64;
/// Links of a laboratory: every pair of a dozen nodes, or four for each of the most nodes.
pub const LINKS_MAX: usize = 256;
/// Filter rules of a router.
pub const FILTERS_MAX: u32 = 10_000;
/// Smallest MTU: every IPv4 host takes packets of 576 bytes (RFC 791 §3.1).
pub const MTU_BYTES_MIN: u32 = 576;
/// Largest MTU: the length field of an IPv4 packet has 16 bits (RFC 791 §3.1).
pub const MTU_BYTES_MAX: u32 = 65_535;
/// The kernel's own loopback MTU is one more than IPv4 can fill.
const LOOPBACK_MTU_BYTES_MAX: u32 = 65_536;
/// Longest name of a node, which messages have; interfaces have names of their own.
const NAME_BYTES_MAX: usize = 32;
/// Slower than any modem; the kernel counts whole bytes per second.
const RATE_BPS_MIN: u64 = 1_000;

impl LabPlan {
    /// Checks that the plan can be built on a machine that allows it.
    pub fn check_buildable(&self) -> Checked {
        self.check_counts()?;
        self.check_names()?;
        self.check_nodes()?;
        for index in 0..self.links.len() {
            self.check_link(index)?;
        }
        self.check_device_links()?;
        check_segments(self)
    }

    fn check_counts(&self) -> Checked {
        if self.hosts.is_empty() {
            return problem(&[], "no [[host]]: a laboratory has at least one");
        }
        let nodes = self.hosts.len() + self.switches.len() + self.routers.len();
        let nodes = nodes + self.devices.len();
        if nodes > NODES_MAX {
            return problem(&[], format!("{nodes} nodes; at most {NODES_MAX} are allowed"));
        }
        let links = self.links.len();
        if links > LINKS_MAX {
            let path = [Step::Key("link"), Step::Index(LINKS_MAX)];
            return problem(&path, format!("{links} links; at most {LINKS_MAX} are allowed"));
        }
        Ok(())
    }

    fn check_names(&self) -> Checked {
        let hosts = self.hosts.iter().map(|host| host.name.as_str());
        let switches = self.switches.iter().map(|switch| switch.name.as_str());
        let routers = self.routers.iter().map(|router| router.name.as_str());
        let all = hosts.enumerate().map(|(index, name)| ("host", index, name));
        let all = all.chain(switches.enumerate().map(|(index, name)| ("switch", index, name)));
        let all = all.chain(routers.enumerate().map(|(index, name)| ("router", index, name)));
        let devices = self.devices.iter().map(|device| device.name.as_str());
        let all = all.chain(devices.enumerate().map(|(index, name)| ("device", index, name)));
        let mut seen = BTreeMap::new();
        for (kind, index, name) in all {
            let path = [Step::Key(kind), Step::Index(index), Step::Key("name")];
            if !is_name(name) {
                let message = format!(
                    "`{name}` is no name: 1 to {NAME_BYTES_MAX} of the letters a-z A-Z, digits, \
                     `.`, `_` and `-`, a letter or digit first"
                );
                return problem(&path, message);
            }
            if let Some(first) = seen.insert(name, kind) {
                return problem(&path, format!("`{name}` is already the name of a {first}"));
            }
        }
        Ok(())
    }

    fn check_nodes(&self) -> Checked {
        for (index, host) in self.hosts.iter().enumerate() {
            let at = |key| [Step::Key("host"), Step::Index(index), Step::Key(key)];
            host.tcp.check_ranges(&at("tcp"))?;
            let Some(mtu) = host.loopback_mtu_bytes else { continue };
            check_mtu(mtu, LOOPBACK_MTU_BYTES_MAX, &at("loopback_mtu_bytes"))?;
        }
        for (index, router) in self.routers.iter().enumerate() {
            let filters = router.filters;
            if filters > FILTERS_MAX {
                let path = [Step::Key("router"), Step::Index(index), Step::Key("filters")];
                let message = format!("{filters} filters; at most {FILTERS_MAX} are allowed");
                return problem(&path, message);
            }
            router.check_device(&[Step::Key("router"), Step::Index(index)])?;
        }
        for (index, switch) in self.switches.iter().enumerate() {
            switch.check_device(&[Step::Key("switch"), Step::Index(index)])?;
        }
        for (index, device) in self.devices.iter().enumerate() {
            device.check_settings(&[Step::Key("device"), Step::Index(index)])?;
        }
        Ok(())
    }

    /// Checks the links of devices: a device joins two links, and a program at an interface (XDP)
    /// meets neither queue nor path.
    fn check_device_links(&self) -> Checked {
        for (index, device) in self.devices.iter().enumerate() {
            let links = self.links.iter().filter(|link| link.ends.contains(&device.name)).count();
            if links != 2 {
                let path = [Step::Key("device"), Step::Index(index), Step::Key("name")];
                let message = format!("`{}` has {links} links; a device joins two", device.name);
                return problem(&path, message);
            }
        }
        let xdp = |name: &String| {
            let router = self.routers.iter().find(|router| router.name == *name);
            router.is_some_and(|router| router.how == RouterHow::Xdp)
                || self.devices.iter().any(|device| device.name == *name)
        };
        for (index, link) in self.links.iter().enumerate() {
            let Some(end) = link.ends.iter().find(|end| xdp(end)) else { continue };
            let key = match (&link.path, &link.rate) {
                (Some(_), _) => "path",
                (None, Some(_)) => "rate",
                (None, None) => continue,
            };
            let path = [Step::Key("link"), Step::Index(index), Step::Key(key)];
            let message = format!(
                "frames from `{end}` meet no queue, so its link has no {key}; a planted device \
                 has frames_per_sec and bits_per_sec"
            );
            return problem(&path, message);
        }
        Ok(())
    }

    fn check_link(&self, index: usize) -> Checked {
        let link = &self.links[index];
        let at = |key| [Step::Key("link"), Step::Index(index), Step::Key(key)];
        for (place, end) in link.ends.iter().enumerate() {
            if !self.has_node(end) {
                let path = [at("ends").as_slice(), &[Step::Index(place)]].concat();
                return problem(
                    &path,
                    format!("no host, switch, router or device is named `{end}`"),
                );
            }
        }
        if link.ends[0] == link.ends[1] {
            return problem(&at("ends"), format!("a link from `{}` to itself", link.ends[0]));
        }
        if let Some(mtu) = link.mtu_bytes {
            check_mtu(mtu, MTU_BYTES_MAX, &at("mtu_bytes"))?;
        }
        if let Some(path) = &link.path {
            if link.rate.is_some() {
                let message = "a link with a path has its rate there: path = { rate = … }";
                return problem(&at("rate"), message);
            }
            check_path(path, &at("path"))?;
        }
        match link.bit_rate() {
            Ok(Some(rate)) if rate.bits_per_sec() < RATE_BPS_MIN => {
                problem(&at("rate"), "a rate below 1 kbit/s")
            }
            Ok(_) => Ok(()),
            Err(reason) => problem(&at("rate"), reason),
        }
    }

    fn has_node(&self, name: &str) -> bool {
        self.hosts.iter().any(|host| host.name == name)
            || self.switches.iter().any(|switch| switch.name == name)
            || self.routers.iter().any(|router| router.name == name)
            || self.devices.iter().any(|device| device.name == name)
    }
}

impl LinkPlan {
    /// The rate as a number; none when the link is as fast as the machine.
    /// # Errors
    /// Why the text is no rate.
    pub fn bit_rate(&self) -> Result<Option<BitRate>, String> {
        let rate = self.rate.as_deref().map(str::parse::<BitRate>).transpose();
        rate.map_err(|error| error.to_string())
    }
}

/// Checks that the path can be built; the place is that of the key that is wrong.
fn check_path(path: &PathPlan, at: &[Step]) -> Checked {
    // A trial build: the elements check what belongs to them.
    let built = path.build_pipelines(MonoTime::default()).map(|_| ());
    let told =
        || if path.is_netem() { path.netem_settings(MTU_BYTES_MAX).map(|_| ()) } else { Ok(()) };
    built.and_then(|()| told()).map_err(|problem| {
        let keys = problem.key.split('.').map(|key| Step::Named(key.to_owned()));
        let path = at.iter().cloned().chain(keys).collect();
        Problem { path, message: format!("{}: {}", problem.key, problem.reason) }
    })
}

fn check_mtu(mtu: u32, largest: u32, path: &[Step]) -> Checked {
    if (MTU_BYTES_MIN..=largest).contains(&mtu) {
        return Ok(());
    }
    problem(path, format!("an MTU of {mtu} bytes; {MTU_BYTES_MIN} to {largest} are allowed"))
}

fn is_name(name: &str) -> bool {
    let first = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    let rest = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte));
    first && rest && name.len() <= NAME_BYTES_MAX
}
