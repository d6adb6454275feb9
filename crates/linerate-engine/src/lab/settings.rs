//! Kernel settings of a node: those that every laboratory has, and those of TCP that its plan
//! names.
//!
//! A common setting that cannot be had is a note where the node works without; one that the plan
//! asks for is an error, because figures measured without it would be another study's. Each is
//! read back.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::PoisonError;

use linerate_core::lab::{self, HostTcp, Role};
use linerate_core::record::Failure;
use linerate_sys::netlink::{InitialWindows, RouteSocket};
use linerate_sys::sysctl;

use super::{LabNode, system};
use crate::netns::run_inside;

/// One setting of the kernel, and what is lost without it.
struct KernelSetting {
    name: &'static str,
    value: &'static str,
    /// None: the node cannot do its work without.
    lost: Option<&'static str>,
}

const FORWARDING: [KernelSetting; 2] = [
    // Comes first: turning forwarding on sets other settings back (ip-sysctl).
    KernelSetting { name: "net/ipv4/ip_forward", value: "1", lost: None },
    KernelSetting {
        name: "net/ipv6/conf/all/forwarding",
        value: "1",
        lost: Some("routers forward no IPv6"),
    },
];

const COMMON: [KernelSetting; 6] = [
    KernelSetting {
        name: "net/ipv4/conf/all/rp_filter",
        value: "0",
        lost: Some("packets that come back another way are dropped"),
    },
    KernelSetting {
        name: "net/ipv4/conf/default/rp_filter",
        value: "0",
        lost: Some("packets that come back another way are dropped"),
    },
    KernelSetting {
        name: "net/ipv4/ping_group_range",
        value: "0 2147483647",
        lost: Some("ping needs CAP_NET_RAW"),
    },
    // Quiet links: nothing but the measurement's packets, as far as the kernel lets.
    KernelSetting {
        name: "net/ipv6/conf/default/accept_dad",
        value: "0",
        lost: Some("IPv6 link-local addresses come a second late"),
    },
    KernelSetting {
        name: "net/ipv6/conf/default/router_solicitations",
        value: "0",
        lost: Some("router solicitations are among the packets counted"),
    },
    KernelSetting {
        name: "net/ipv6/conf/default/accept_ra",
        value: "0",
        lost: Some("router advertisements are heeded"),
    },
];

/// A host that the plan tells nothing else. A new connection would start with the threshold, the
/// round trip and the reordering that the last one to the same peer ended with.
const HOST: [KernelSetting; 1] = [KernelSetting {
    name: "net/ipv4/tcp_no_metrics_save",
    value: "1",
    lost: Some("a connection inherits what the one before learnt of its peer"),
}];

/// Besides, where frames are counted.
const QUIET: [KernelSetting; 3] = [
    // No link-local address, for which nodes would join multicast groups and say so (RFC 3810).
    KernelSetting {
        name: "net/ipv6/conf/default/addr_gen_mode",
        value: "1",
        lost: Some("hosts announce their multicast groups"),
    },
    // The groups of their other addresses are announced once and at once (RFC 3810 §9.11), not
    // twice within seconds, in the first trial.
    KernelSetting {
        name: "net/ipv6/mld_qrv",
        value: "1",
        lost: Some("hosts announce their multicast groups twice"),
    },
    KernelSetting {
        name: "net/ipv6/conf/default/mldv2_unsolicited_report_interval",
        value: "1",
        lost: Some("hosts announce their multicast groups late"),
    },
];

/// A switch or device has no addresses of its own.
const SWITCH: [KernelSetting; 1] = [KernelSetting {
    name: "net/ipv6/conf/default/disable_ipv6",
    value: "1",
    lost: Some("switches send packets of their own"),
}];

/// Writes what every node of its role has; notes on what it can do without.
pub(super) fn common(
    node: &LabNode,
    plan: &lab::Node,
    quiet: bool,
) -> Result<Vec<String>, Failure> {
    let by_role: &'static [KernelSetting] = match plan.role {
        Role::Router { .. } => &FORWARDING,
        Role::Switch | Role::Device => &SWITCH,
        Role::Host => &HOST,
    };
    run_inside(&node.netns, &plan.name, || {
        let mut notes = Vec::new();
        let quiet: &[KernelSetting] = if quiet { &QUIET } else { &[] };
        for setting in by_role.iter().chain(&COMMON).chain(quiet) {
            let Err(error) = write(setting) else { continue };
            let Some(lost) = setting.lost else {
                return Err(system("let packets through", &plan.name, error)
                    .advise("a writable /proc/sys is needed; containers mount it read-only"));
            };
            // A kernel without IPv6 has none of its settings and misses none.
            if sysctl::exists(setting.name) {
                notes.push(format!("{lost} ({error})"));
            }
        }
        Ok(notes)
    })?
}

fn write(setting: &KernelSetting) -> linerate_sys::Result<()> {
    let written = sysctl::write(setting.name, setting.value);
    if setting.name != "net/ipv4/ping_group_range" {
        return written;
    }
    // In a user namespace only the mapped groups are valid; there the user is in group 0.
    written.or_else(|_| sysctl::write(setting.name, "0 0"))
}

/// Sets TCP of a node as asked, and reads back what it got.
pub(super) fn apply_tcp_settings(node: &LabNode, name: &str, tcp: &HostTcp) -> Result<(), Failure> {
    run_inside(&node.netns, name, || {
        for (key, setting, value) in tcp.sysctls() {
            write_sysctl(name, key, setting, &value)?;
        }
        for (key, setting, max_bytes) in tcp.buffers() {
            let text =
                sysctl::read(&sysctl_path(setting)).map_err(|error| missing(name, key, &error))?;
            write_sysctl(name, key, setting, &capped(&text, max_bytes))?;
        }
        Ok(())
    })??;
    let windows = InitialWindows { send: tcp.initial_window, receive: tcp.initial_receive_window };
    if windows == InitialWindows::default() {
        return Ok(());
    }
    let mut socket = node.socket.lock().unwrap_or_else(PoisonError::into_inner);
    set_windows(&mut socket, windows, name)
}

fn sysctl_path(setting: &str) -> String {
    format!("net/ipv4/{setting}")
}

fn missing(host: &str, key: &str, error: &linerate_sys::Error) -> Failure {
    system("set", format!("tcp.{key} on host {host}"), error)
        .advise("omit the key, or use a kernel with this setting")
}

fn write_sysctl(host: &str, key: &str, setting: &str, value: &str) -> Result<(), Failure> {
    let path = sysctl_path(setting);
    let before = sysctl::read(&path).map_err(|error| missing(host, key, &error))?;
    let object = || format!("tcp.{key} = {value} on host {host}");
    sysctl::write(&path, value).map_err(|error| {
        let failure = system("set", object(), error);
        if setting == "tcp_congestion_control" {
            return failure.advise(congestion_controls());
        }
        failure.advise("a writable /proc/sys is needed; containers mount it read-only")
    })?;
    let now = sysctl::read(&path).map_err(|error| missing(host, key, &error))?;
    if now.split_whitespace().eq(value.split_whitespace()) {
        return Ok(());
    }
    let reason = format!("the kernel keeps {now}; it was {before}");
    Err(system("set", object(), reason))
}

/// The congestion controls that a namespace may have as its default: the kernel keeps the others
/// for sockets that ask.
fn congestion_controls() -> String {
    let allowed = sysctl::read(&sysctl_path("tcp_allowed_congestion_control")).unwrap_or_default();
    format!(
        "a namespace may have one of `{allowed}` as its default; a test can ask for others by name"
    )
}

/// A triple of minimum, default and maximum with a new maximum; the others stay below it.
fn capped(triple: &str, max_bytes: u64) -> String {
    let numbers = triple.split_whitespace().take(2).filter_map(|text| text.parse::<u64>().ok());
    let capped = numbers.map(|number| number.min(max_bytes)).chain([max_bytes]);
    capped.map(|number| number.to_string()).collect::<Vec<_>>().join("\t")
}

fn set_windows(
    socket: &mut RouteSocket,
    windows: InitialWindows,
    name: &str,
) -> Result<(), Failure> {
    let failed = |error| system("set initial window on host", name, error);
    socket.set_initial_windows(windows).map_err(failed)?;
    let got = socket.initial_windows(IpAddr::V4(Ipv4Addr::LOCALHOST)).map_err(failed)?;
    let kept = |asked: Option<u32>, got: Option<u32>| asked.is_none() || asked == got;
    if kept(windows.send, got.send) && kept(windows.receive, got.receive) {
        return Ok(());
    }
    let segments =
        |value: Option<u32>| value.map_or_else(|| "its own".to_owned(), |n| n.to_string());
    let (send, receive) = (segments(got.send), segments(got.receive));
    let reason = format!("the kernel keeps {send} to send and {receive} to receive");
    Err(system("set initial window on host", name, reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_maximum_takes_the_minimum_and_the_default_along() {
        assert_eq!(capped("4096\t131072\t33554432", 2_097_152), "4096\t131072\t2097152");
        assert_eq!(capped("4096 131072 33554432", 65_536), "4096\t65536\t65536");
        assert_eq!(capped("4608 131072 33554432", 4096), "4096\t4096\t4096");
    }
}
