//! What doctor looks at, read from the kernel once and not changed: settings, interfaces, filter
//! rules, ports, privileges. Each fact that the kernel does not tell is absent.

use std::collections::BTreeMap;
use std::path::Path;

use linerate_sys::netlink::{self, InputChain, RouteSocket};
use linerate_sys::{ethtool, host, icmp, interface_facts::InterfaceFacts, sysctl, userns};

/// Folders in which distributions put nft, beyond the PATH of plain users.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Interfaces that are looked at; a host of containers has hundreds.
const INTERFACES_MAX: usize = 8;
/// The kernel settings that are read.
const SETTINGS: [&str; 15] = [
    "net/core/rmem_max",
    "net/core/wmem_max",
    "net/ipv4/tcp_rmem",
    "net/ipv4/tcp_wmem",
    "net/ipv4/tcp_moderate_rcvbuf",
    "net/ipv4/tcp_window_scaling",
    "net/ipv4/tcp_sack",
    "net/ipv4/tcp_timestamps",
    "net/ipv4/tcp_congestion_control",
    "net/ipv4/tcp_available_congestion_control",
    "net/core/default_qdisc",
    "user/max_user_namespaces",
    "kernel/unprivileged_userns_clone",
    "kernel/apparmor_restrict_unprivileged_userns",
    "net/ipv4/ping_group_range",
];

/// Settings and state of the host, for the checks.
#[derive(Clone, Debug, Default)]
pub(super) struct HostFacts {
    /// Name and release of the kernel.
    pub(super) kernel: String,
    /// This program's file, for remedies.
    pub(super) program: String,
    /// Settings below /proc/sys by name.
    pub(super) settings: BTreeMap<&'static str, String>,
    /// Frequency governor of the first processor.
    pub(super) governor: Option<String>,
    /// Interfaces that are set up, loopback left out.
    pub(super) interfaces: Vec<ExaminedInterface>,
    /// Chains at the input hook, or the reason why they cannot be read.
    pub(super) filter: Option<Result<Vec<InputChain>, String>>,
    /// True when rules of legacy iptables are loaded.
    pub(super) legacy_filter: bool,
    /// Ports that are open: `tcp` or `udp`, and the number.
    pub(super) open_ports: Vec<(&'static str, u16)>,
    /// Capabilities of this process, a bit each.
    pub(super) capabilities: u64,
    /// Groups of this process: the effective one and the supplementary ones.
    pub(super) groups: Vec<u64>,
    /// The groups that may open ICMP sockets.
    pub(super) ping_groups: Option<(u64, u64)>,
    /// Path of the program nft.
    pub(super) nft: Option<String>,
    /// True when this user may make network namespaces without a user namespace.
    pub(super) makes_networks: bool,
}

/// An interface with its facts.
#[derive(Clone, Debug, Default)]
pub(super) struct ExaminedInterface {
    pub(super) facts: Option<InterfaceFacts>,
    /// Kinds of its queueing disciplines.
    pub(super) disciplines: Vec<String>,
    /// Rate of a token bucket filter at its root.
    pub(super) shaper_bps: Option<u64>,
}

impl HostFacts {
    /// Looks at this host, in the network namespace of the calling thread.
    pub(super) fn gather() -> Self {
        let status = host::read_text("/proc/self/status").unwrap_or_default();
        let program = std::env::current_exe();
        Self {
            kernel: host::kernel(),
            program: program
                .map_or_else(|_| "linerate".to_owned(), |path| path.display().to_string()),
            settings: SETTINGS
                .into_iter()
                .filter_map(|name| Some((name, sysctl::read(name).ok()?)))
                .collect(),
            governor: host::read_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
            interfaces: interfaces().unwrap_or_default(),
            filter: Some(netlink::input_chains().map_err(|error| error.to_string())),
            legacy_filter: ["ip_tables_names", "ip6_tables_names"].into_iter().any(|name| {
                let loaded = host::read_text(&format!("/proc/net/{name}"));
                loaded.is_some_and(|names| names.lines().any(|name| name == "filter"))
            }),
            open_ports: open_ports(),
            capabilities: capabilities_of(&status),
            groups: groups_of(&status),
            ping_groups: icmp::ping_group_range(),
            nft: program_in_path("nft"),
            makes_networks: userns::may_make_networks(),
        }
    }

    /// A setting as a number.
    pub(super) fn number(&self, name: &str) -> Option<u64> {
        self.settings.get(name)?.trim().parse().ok()
    }

    /// The last of a setting's three numbers: the limit of an automatic buffer.
    pub(super) fn buffer_limit(&self, name: &str) -> Option<u64> {
        self.settings.get(name)?.split_whitespace().nth(2)?.parse().ok()
    }
}

fn interfaces() -> linerate_sys::Result<Vec<ExaminedInterface>> {
    let mut socket = RouteSocket::open()?;
    let links = socket.list_links()?.into_iter().filter(|link| link.up && link.name != "lo");
    let mut all = Vec::new();
    for link in links.take(INTERFACES_MAX) {
        all.push(ExaminedInterface {
            facts: InterfaceFacts::from_ifindex(link.index).ok(),
            disciplines: socket.disciplines(link.index).unwrap_or_default(),
            shaper_bps: socket.root_tbf(link.index).ok().flatten().map(|tbf| tbf.rate_bps),
        });
    }
    Ok(all)
}

/// Letters of the offload in ethtool(8).
pub(super) const fn letters(offload: ethtool::Offload) -> Option<&'static str> {
    match offload {
        ethtool::Offload::TcpSegmentation => Some("tso"),
        ethtool::Offload::Segmentation => Some("gso"),
        ethtool::Offload::Receive => Some("gro"),
        _ => None,
    }
}

/// Ports with a listener (TCP) or a socket without a peer (UDP), by proc_net_tcp(5).
fn open_ports() -> Vec<(&'static str, u16)> {
    // State 0A is LISTEN, 07 a UDP socket that is not connected.
    let tables =
        [("tcp", "tcp", "0A"), ("tcp", "tcp6", "0A"), ("udp", "udp", "07"), ("udp", "udp6", "07")];
    let listeners = |protocol: &'static str, table: &str, state: &str| {
        let text = host::read_text(&format!("/proc/net/{table}")).unwrap_or_default();
        ports_of(&text, state).into_iter().map(|port| (protocol, port)).collect::<Vec<_>>()
    };
    let all = tables.into_iter();
    all.flat_map(|(protocol, table, state)| listeners(protocol, table, state)).collect()
}

fn ports_of(table: &str, state: &str) -> Vec<u16> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace().skip(1);
        let (local, now) = (words.next()?, words.nth(1)?);
        let port = local.rsplit(':').next()?;
        (now == state).then(|| u16::from_str_radix(port, 16).ok())?
    };
    table.lines().filter_map(of_line).collect()
}

fn groups_of(status: &str) -> Vec<u64> {
    let numbers = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
        line.split_whitespace().map_while(|text| text.parse().ok()).collect::<Vec<u64>>()
    };
    // Gid: real, effective, saved, file system (proc_pid_status(5)).
    let effective = numbers("Gid:").get(1).copied();
    effective.into_iter().chain(numbers("Groups:")).collect()
}

fn capabilities_of(status: &str) -> u64 {
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("0");
    u64::from_str_radix(hex.trim(), 16).unwrap_or(0)
}

fn program_in_path(name: &str) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(SYSTEM_FOLDERS.map(Into::into));
    folders
        .map(|folder| folder.join(name))
        .find(|file| is_program(file))
        .map(|file| file.display().to_string())
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_the_effective_and_the_supplementary_ones() {
        let status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t10\t11\t12\t13\nGroups:\t20 27 \n";
        assert_eq!(groups_of(status), [11, 20, 27]);
        assert_eq!(groups_of(""), Vec::<u64>::new());
        assert_eq!(capabilities_of("CapEff:\t0000000000003000\n"), 0x3000);
    }

    #[test]
    fn a_port_is_open_where_somebody_listens() {
        // proc_net_tcp(5): a listener on 5210 (145A) and a connection from 40000 (9C40).
        let table = "  sl  local_address rem_address   st tx_queue\n\
            \x20  0: 00000000:145A 00000000:0000 0A 00000000:00000000\n\
            \x20  1: 0100007F:9C40 0100007F:145A 01 00000000:00000000\n";
        assert_eq!(ports_of(table, "0A"), [5210]);
    }

    #[test]
    fn this_host_tells_its_kernel_and_settings() {
        let facts = HostFacts::gather();
        assert!(facts.kernel.starts_with("Linux"), "{facts:?}");
        assert!(facts.buffer_limit("net/ipv4/tcp_rmem") > Some(0), "{facts:?}");
        assert!(facts.filter.is_some());
    }
}
