//! What this host is, for the record.

use std::net::IpAddr;

use linerate_core::record::{End, Interface};
use linerate_sys::{host, netlink};

/// The local end; with a peer also the interface that its route leaves by.
pub fn local_end(peer: Option<IpAddr>) -> End {
    End {
        role: "local".to_owned(),
        address: None,
        clock_tick_ns: None,
        kernel: Some(host::kernel()),
        cpu_model: host::cpu_model(),
        cpus: host::cpus(),
        version: Some(env!("CARGO_PKG_VERSION").to_owned()),
        clocksource: host::read_line(
            "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        congestion_control_default: host::read_line("/proc/sys/net/ipv4/tcp_congestion_control"),
        tcp_rmem_bytes: host::read_triple("/proc/sys/net/ipv4/tcp_rmem"),
        tcp_wmem_bytes: host::read_triple("/proc/sys/net/ipv4/tcp_wmem"),
        rmem_max_bytes: host::read_number("/proc/sys/net/core/rmem_max"),
        wmem_max_bytes: host::read_number("/proc/sys/net/core/wmem_max"),
        interface: peer.and_then(interface_to),
    }
}

fn interface_to(peer: IpAddr) -> Option<Interface> {
    let route = netlink::route_to(peer.to_canonical()).ok()?;
    Some(Interface {
        name: route.ifname,
        kind: route.kind,
        mtu_bytes: Some(route.mtu_bytes),
        speed_bps: route.speed_bps,
        shaper_bps: route.tbf_rate_bps,
    })
}
