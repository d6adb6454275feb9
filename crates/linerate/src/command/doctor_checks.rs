//! The settings of this host that decide what can be measured, each with the line that mends it.
//! Nothing is changed here.

use std::path::Path;

use linerate_report::Align::{Left, Prose};
use linerate_report::Table;
use linerate_sys::{host, icmp, sysctl, userns};
use serde::Serialize;

/// A window of 4 MiB fills 1 Gbit/s at 33 ms; below it, long fast paths are out of reach.
const SOCKET_BUFFER_BYTES: u64 = 4 * 1024 * 1024;
/// Where distributions put nft, beyond the PATH of plain users.
const SYSTEM_FOLDERS: [&str; 2] = ["/usr/sbin", "/sbin"];
/// Bit of CAP_NET_RAW (capabilities(7), linux/capability.h).
const CAP_NET_RAW: u32 = 13;

/// One checked thing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Check {
    name: &'static str,
    found: String,
    pub(super) good: bool,
    /// The line that mends it; null when nothing is to be mended.
    remedy: Option<String>,
}

impl Check {
    /// A check with what was found; the remedy counts only when that is not good.
    pub(super) fn of(
        name: &'static str,
        found: String,
        good: bool,
        remedy: impl Into<String>,
    ) -> Self {
        Self { name, found, good, remedy: (!good).then(|| remedy.into()) }
    }
}

/// A row a check.
pub(super) fn table(checks: &[Check]) -> Table {
    let names = [("state", Left), ("check", Left), ("found", Prose)];
    let rows = checks.iter().map(|check| {
        let state = if check.good { "OK" } else { "WARN" };
        let remedy = check.remedy.as_ref().map_or_else(String::new, |line| format!("; {line}"));
        [state.to_owned(), check.name.to_owned(), format!("{}{remedy}", check.found)]
    });
    Table::of(names).rows(rows)
}

/// All checks, in the order of the manual.
pub(super) fn all() -> Vec<Check> {
    vec![
        ping_sockets(),
        buffer("receive buffers", "net/core/rmem_max"),
        buffer("send buffers", "net/core/wmem_max"),
        congestion_control(),
        filter_program(),
        networks(),
    ]
}

fn ping_sockets() -> Check {
    let datagram = icmp::ping_group_range().is_some_and(|range| in_range(range, &groups()));
    let raw = effective_capabilities().is_some_and(|bits| bits >> CAP_NET_RAW & 1 == 1);
    let found = match (datagram, raw) {
        (true, _) => "datagram, open to this user",
        (false, true) => "raw, by CAP_NET_RAW",
        (false, false) => "none open to this user",
    };
    let remedy = "sysctl -w net.ipv4.ping_group_range='0 2147483647'";
    Check::of("ICMP sockets", found.to_owned(), datagram || raw, remedy)
}

fn in_range((first, last): (u64, u64), groups: &[u64]) -> bool {
    groups.iter().any(|group| (first..=last).contains(group))
}

/// The groups of this process: the effective one and the supplementary ones (proc_pid_status(5)).
fn groups() -> Vec<u64> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    groups_of(&status)
}

fn groups_of(status: &str) -> Vec<u64> {
    let numbers = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("");
        line.split_whitespace().map_while(|text| text.parse().ok()).collect::<Vec<u64>>()
    };
    // Gid: real, effective, saved, file system.
    let effective = numbers("Gid:").get(1).copied();
    effective.into_iter().chain(numbers("Groups:")).collect()
}

fn effective_capabilities() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let hex = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    u64::from_str_radix(hex.trim(), 16).ok()
}

fn buffer(name: &'static str, setting: &str) -> Check {
    let Some(bytes) = host::read_number::<u64>(&format!("/proc/sys/{setting}")) else {
        return Check::of(name, "not visible in this namespace".to_owned(), true, "");
    };
    let found = format!("up to {bytes} bytes by request (-w)");
    let remedy = format!("sysctl -w {}={}", setting.replace('/', "."), 8 * SOCKET_BUFFER_BYTES);
    Check::of(name, found, bytes >= SOCKET_BUFFER_BYTES, remedy)
}

fn congestion_control() -> Check {
    let name = "congestion control";
    match sysctl::read("net/ipv4/tcp_congestion_control") {
        Ok(now) => {
            let others = sysctl::read("net/ipv4/tcp_available_congestion_control");
            let others = others.unwrap_or_else(|_| now.clone());
            Check::of(name, format!("{now} by default; there are {others}"), true, "")
        }
        Err(error) => Check::of(name, error.to_string(), false, "mount /proc"),
    }
}

fn filter_program() -> Check {
    let found = program("nft");
    let good = found.is_some();
    let text = found.unwrap_or_else(|| "nft is not installed".to_owned());
    Check::of("filter rules", text, good, "apt install nftables (for laboratories with filters)")
}

fn program(name: &str) -> Option<String> {
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

/// Laboratories need network namespaces: by privilege, or by a user namespace.
fn networks() -> Check {
    let name = "network namespaces";
    if userns::may_make_networks() {
        return Check::of(name, "by this user's privilege".to_owned(), true, "");
    }
    let forbidden = [
        ("user/max_user_namespaces", "0", "1000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ]
    .into_iter()
    .find(|(setting, bad, _)| sysctl::read(setting).is_ok_and(|now| now == *bad));
    match forbidden {
        None => Check::of(name, "by user namespaces".to_owned(), true, ""),
        Some((setting, bad, better)) => {
            let dotted = setting.replace('/', ".");
            let remedy = format!("sysctl -w {dotted}={better}, or run as root");
            Check::of(name, format!("{dotted} is {bad}"), false, remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_report::Document;

    use super::*;

    /// The rows under the heading.
    fn text(checks: &[Check]) -> String {
        let text = Document::list(table(checks)).text(None);
        text.split_once('\n').expect("a heading").1.to_owned()
    }

    #[test]
    fn groups_are_the_effective_and_the_supplementary_ones() {
        let status = "Name:\tx\nUid:\t1\t2\t3\t4\nGid:\t10\t11\t12\t13\nGroups:\t20 27 \n";
        assert_eq!(groups_of(status), [11, 20, 27]);
        assert_eq!(groups_of(""), Vec::<u64>::new());
        assert!(in_range((20, 20), &[11, 20]));
        assert!(!in_range((1, 0), &[0, 1]), "the kernel's default lets nobody");
    }

    #[test]
    fn a_remedy_is_printed_only_where_something_is_wrong() {
        let good = Check::of("a", "fine".to_owned(), true, "fix it");
        let bad = Check::of("b", "not fine".to_owned(), false, "fix it");
        assert_eq!(text(&[good, bad]), "OK     a      fine\nWARN   b      not fine; fix it\n");
    }

    #[test]
    fn every_check_finds_something_on_this_host() {
        for check in all() {
            assert!(!check.found.is_empty() && !check.found.contains('\n'), "{check:?}");
        }
    }
}
