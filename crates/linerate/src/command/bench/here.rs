//! The interfaces that the user named, as this host has them: there, up, long enough, and none by
//! which the host reaches the rest of the world.

use std::collections::BTreeMap;

use linerate_core::record::{BenchPlan, Failure, Fault, Plan};
use linerate_core::study::{StudyPlan, Topology};
use linerate_sys::host;
use linerate_sys::netlink::{LinkFacts, RouteSocket};
use linerate_sys::userns::may_send_frames;

/// Holds a study's plan against this host, where its ports are interfaces of the host itself.
pub(super) fn check_interfaces(plan: &StudyPlan, force: bool) -> Result<(), Failure> {
    let cells = plan.cell_plans();
    let plans = cells.iter().filter_map(|cell| match &cell.plan {
        Plan::Bench(plan) => Some(plan),
        _ => None,
    });
    let mut longest: BTreeMap<&str, (u32, usize)> = BTreeMap::new();
    for plan in plans {
        let ports = plan.ports.iter().filter(|port| port.host.is_none());
        let (bytes, tags) = (longest_bytes(plan), plan.frames.vlans.len());
        for port in ports {
            let most = longest.entry(&port.interface).or_default();
            *most = (most.0.max(bytes), tags);
        }
    }
    if longest.is_empty() {
        return Ok(());
    }
    let (links, routes) = (list_links()?, default_route_interfaces());
    for (name, (bytes, tags)) in &longest {
        let link = find_link(&links, name)?;
        if !force && routes.iter().any(|route| route == name) {
            return Err(in_use(name));
        }
        usable(link)?;
        check_frame_fits(link, *bytes, *tags)?;
    }
    Ok(())
}

/// Checks that raw frames can be sent, where the ports are interfaces of the host itself.
pub(super) fn check_privilege(plan: &StudyPlan) -> Result<(), Failure> {
    let is_made = |topology: &Topology| !topology.lab.hosts.is_empty();
    if plan.topologies.iter().all(is_made) || may_send_frames() {
        return Ok(());
    }
    let reason = "raw frames need CAP_NET_RAW and CAP_NET_ADMIN";
    Err(Failure::new(Fault::System, "bench", "the ports", reason)
        .advise("run as root, or use --device, which makes a virtual network"))
}

fn in_use(interface: &str) -> Failure {
    let reason = "it carries this host's default route, and floods belong on isolated networks \
                  (RFC 6815)";
    refused(interface, reason).advise("name another interface, or add --force-interface")
}

fn refused(interface: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::Usage, "bench", interface, reason)
}

fn list_links() -> Result<Vec<LinkFacts>, Failure> {
    let failed =
        |error: linerate_sys::Error| Failure::new(Fault::System, "list", "interfaces", error);
    RouteSocket::open().and_then(|mut socket| socket.list_links()).map_err(failed)
}

fn find_link<'a>(links: &'a [LinkFacts], name: &str) -> Result<&'a LinkFacts, Failure> {
    links.iter().find(|link| link.name == name).ok_or_else(|| {
        let others = links.iter().filter(|link| link.kind.as_deref() != Some("loopback"));
        let names: Vec<&str> = others.map(|link| link.name.as_str()).collect();
        let advice = match names.as_slice() {
            [] => "this host has none but the loopback".to_owned(),
            some => format!("there are {}", some.join(", ")),
        };
        refused(name, "this host has no such interface").advise(advice)
    })
}

fn usable(link: &LinkFacts) -> Result<(), Failure> {
    if link.kind.as_deref() == Some("loopback") || link.name == "lo" {
        return Err(refused(&link.name, "the loopback has no device behind it")
            .advise("name interfaces at the device, or --device cable for the tester alone"));
    }
    if !link.up {
        return Err(refused(&link.name, "it is set down")
            .advise(format!("set it up: ip link set {} up", link.name)));
    }
    if !link.running {
        return Err(refused(&link.name, "its link is down")
            .advise("connect it, and check that the port of the device is up"));
    }
    Ok(())
}

/// The longest frame of a plan, with FCS.
fn longest_bytes(plan: &BenchPlan) -> u32 {
    let mixed = plan.frames.mix.iter().flat_map(|mix| mix.split(','));
    let lengths = mixed.filter_map(|part| part.split(':').next()?.parse().ok());
    lengths.chain([plan.frames.size_bytes]).max().unwrap_or(0)
}

/// Checks that an interface carries the frame: a packet of its MTU, a header of 14 bytes and tags
/// before it, an FCS after.
fn check_frame_fits(link: &LinkFacts, frame_bytes: u32, tags: usize) -> Result<(), Failure> {
    let around = 18 + 4 * u32::try_from(tags).unwrap_or(0);
    let packet = frame_bytes.saturating_sub(around);
    if packet <= link.mtu_bytes {
        return Ok(());
    }
    let reason = format!(
        "its MTU is {}, and a frame of {frame_bytes} bytes carries {packet}",
        link.mtu_bytes
    );
    let advice = format!(
        "ip link set {} mtu {packet}, there and at the device, or smaller --sizes",
        link.name
    );
    Err(refused(&link.name, reason).advise(advice))
}

/// The interfaces by which default routes leave.
fn default_route_interfaces() -> Vec<String> {
    let read = |path| host::read_text(path).unwrap_or_default();
    let mut names = ipv4_defaults(&read("/proc/net/route"));
    names.extend(ipv6_defaults(&read("/proc/net/ipv6_route")));
    names
}

/// Interfaces of the default routes in /proc/net/route (proc_pid_net(5)): interface, destination,
/// …, mask as the eighth.
fn ipv4_defaults(table: &str) -> Vec<String> {
    let rows = table.lines().skip(1).map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(1) == Some(&"00000000") && row.get(7) == Some(&"00000000"))
        .filter_map(|row| row.first().map(|name| (*name).to_owned()))
        .collect()
}

/// Interfaces of the default routes in /proc/net/ipv6_route: destination, its length, …, interface
/// as the tenth. The unreachable route of every host is on `lo`.
fn ipv6_defaults(table: &str) -> Vec<String> {
    let rows = table.lines().map(|line| line.split_ascii_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.first().is_some_and(|destination| destination.bytes().all(|c| c == b'0')))
        .filter(|row| row.get(1) == Some(&"00"))
        .filter_map(|row| row.get(9).map(|name| (*name).to_owned()))
        .filter(|name| name != "lo")
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interfaces_of_default_routes_are_found() {
        // Linux 6.18.
        let ipv4 = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\
                    \tIRTT\neth0\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                    eth1\t0001A8C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
        assert_eq!(ipv4_defaults(ipv4), ["eth0"]);
        let zero = "00000000000000000000000000000000";
        let ipv6 = format!(
            "{zero} 00 {zero} 00 fe800000000000000000000000000001 00000400 1 0 00000003 eth2\n\
             {zero} 00 {zero} 00 {zero} ffffffff 1 0 00200200 lo\n\
             fe800000000000000000000000000000 40 {zero} 00 {zero} 00000100 1 0 00000001 eth1\n"
        );
        assert_eq!(ipv6_defaults(&ipv6), ["eth2"]);
        assert_eq!(ipv4_defaults(""), Vec::<String>::new());
    }

    #[test]
    fn a_frame_fits_by_what_the_mtu_counts() {
        let link = LinkFacts { name: "p".to_owned(), mtu_bytes: 1500, ..LinkFacts::default() };
        assert_eq!(check_frame_fits(&link, 1518, 0), Ok(()));
        assert_eq!(check_frame_fits(&link, 1522, 1), Ok(()));
        let line = check_frame_fits(&link, 1519, 0).expect_err("a byte too long").to_string();
        assert!(line.contains("carries 1501") && line.contains("mtu 1501"), "{line}");
    }
}
