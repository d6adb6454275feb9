//! The host as facts, judged: each thing that decides what can be measured is fit, doubtful or
//! wrong, with the line that mends it. Pure.

use linerate_core::record::DEFAULT_PORT;
use linerate_report::Align::{Left, Prose};
use linerate_report::ReportTable;

use super::check::{HostCheck, State};
use super::facts::HostFacts;
use super::network;

/// A window of 4 MiB fills 1 Gbit/s at 33 ms; below it, long fast paths are out of reach.
const SOCKET_BUFFER_BYTES: u64 = 4 * 1024 * 1024;
/// Bits of capabilities(7), linux/capability.h.
const CAP_NET_ADMIN: u32 = 12;
const CAP_NET_RAW: u32 = 13;
/// A loop that only reads the clock, held up for longer than this, shares its CPU with others
/// or with other guests: 1 Gbit/s moves 2.5 Mbit in that part of 50 ms.
const STOLEN_WARN: f64 = 0.02;
const STOLEN_BAD: f64 = 0.05;

/// A row for each check, and the remedies on lines of their own, unbroken so that they can be
/// pasted.
pub(super) fn tables(checks: &[HostCheck]) -> Vec<ReportTable> {
    let rows = checks.iter().map(|check| {
        let state = match check.state {
            State::Ok => "OK",
            State::Warn => "WARN",
            State::Bad => "BAD",
        };
        [state.to_owned(), check.name.clone(), check.found.clone()]
    });
    let found = ReportTable::from_columns([("state", Left), ("check", Left), ("found", Prose)])
        .with_rows(rows);
    let mended: Vec<_> = checks
        .iter()
        .filter_map(|check| Some([check.name.clone(), check.remedy.clone()?]))
        .collect();
    let mends = ReportTable::from_columns([("to mend", Left), ("do this", Left)]);
    let mends = (!mended.is_empty()).then(|| mends.with_rows(mended));
    [found].into_iter().chain(mends).collect()
}

/// All checks of the facts, in the order of the manual.
pub(super) fn all_checks(facts: &HostFacts) -> Vec<HostCheck> {
    let mut checks = vec![HostCheck::with_ok_state("kernel", &facts.kernel)];
    checks.extend(governor(facts));
    checks.extend(network::interfaces(facts));
    checks.extend([
        network::autotuning(facts, "receive window", "net/ipv4/tcp_rmem"),
        network::autotuning(facts, "send buffer", "net/ipv4/tcp_wmem"),
        buffer(facts, "receive buffers", "net/core/rmem_max"),
        buffer(facts, "send buffers", "net/core/wmem_max"),
        network::tcp_options(facts),
        congestion_control(facts),
        network::firewall(facts, DEFAULT_PORT),
        network::check_server_ports(facts, DEFAULT_PORT),
        ping_sockets(facts),
        capabilities(facts),
        networks(facts),
        filter_program(facts),
    ]);
    checks
}

/// The part of the time that a loop which only reads the clock was held up.
pub(super) fn stolen(ratio: f64) -> HostCheck {
    let found = format!("{:.1} % of a CPU was held up or stolen", ratio * 100.0);
    let check = HostCheck::with_ok_state("CPU time", found);
    let remedy = "stop other work on this host (see top), or measure on hardware of its own";
    match ratio {
        ratio if ratio > STOLEN_BAD => check.with_state(State::Bad, remedy),
        ratio => check.or_warn(ratio <= STOLEN_WARN, remedy),
    }
}

fn governor(facts: &HostFacts) -> Option<HostCheck> {
    let name = facts.governor.as_ref()?;
    let check = HostCheck::with_ok_state("CPU frequency", format!("governor {name}"));
    Some(check.or_warn(name != "powersave", "cpupower frequency-set -g performance"))
}

fn ping_sockets(facts: &HostFacts) -> HostCheck {
    let datagram = facts.ping_groups.is_some_and(|(first, last)| {
        facts.groups.iter().any(|group| (first..=last).contains(group))
    });
    let raw = has_capability(facts, CAP_NET_RAW);
    let found = match (datagram, raw) {
        (true, _) => "datagram, open to this user",
        (false, true) => "raw, by CAP_NET_RAW",
        (false, false) => "none open to this user",
    };
    let remedy = "sysctl -w net.ipv4.ping_group_range='0 2147483647'";
    HostCheck::with_ok_state("ICMP sockets", found).or_warn(datagram || raw, remedy)
}

const fn has_capability(facts: &HostFacts, bit: u32) -> bool {
    facts.capabilities >> bit & 1 == 1
}

fn capabilities(facts: &HostFacts) -> HostCheck {
    let wanted = [(CAP_NET_RAW, "CAP_NET_RAW"), (CAP_NET_ADMIN, "CAP_NET_ADMIN")];
    let part = |there: bool| {
        let names = wanted.iter().filter(|(bit, _)| has_capability(facts, *bit) == there);
        names.map(|(_, name)| *name).collect::<Vec<_>>().join(", ")
    };
    let check = |found| HostCheck::with_ok_state("capabilities", found);
    match part(false) {
        missing if missing.is_empty() => check(part(true)),
        missing => {
            check(format!("without {missing}: no bench, no capture, no path between devices"))
                .with_state(
                    State::Warn,
                    format!("setcap cap_net_raw,cap_net_admin+ep {}", facts.program),
                )
        }
    }
}

fn buffer(facts: &HostFacts, name: &'static str, setting: &str) -> HostCheck {
    let Some(bytes) = facts.number(setting) else {
        return HostCheck::with_ok_state(name, "not visible in this namespace");
    };
    let remedy = format!("sysctl -w {}={}", setting.replace('/', "."), 8 * SOCKET_BUFFER_BYTES);
    let check = HostCheck::with_ok_state(name, format!("up to {bytes} bytes by request (-w)"));
    check.or_warn(bytes >= SOCKET_BUFFER_BYTES, remedy)
}

fn congestion_control(facts: &HostFacts) -> HostCheck {
    let name = "congestion control";
    let Some(now) = facts.settings.get("net/ipv4/tcp_congestion_control") else {
        return HostCheck::with_ok_state(name, "not visible")
            .with_state(State::Warn, "mount -t proc proc /proc");
    };
    let others = facts.settings.get("net/ipv4/tcp_available_congestion_control").unwrap_or(now);
    HostCheck::with_ok_state(name, format!("{now} by default; there are {others}"))
}

fn filter_program(facts: &HostFacts) -> HostCheck {
    let found = facts.nft.clone().unwrap_or_else(|| "nft is not installed".to_owned());
    let remedy = "apt install nftables (for laboratories with filters)";
    HostCheck::with_ok_state("filter program", found).or_warn(facts.nft.is_some(), remedy)
}

/// Laboratories need network namespaces: by privilege, or by a user namespace.
fn networks(facts: &HostFacts) -> HostCheck {
    let name = "network namespaces";
    if facts.makes_networks {
        return HostCheck::with_ok_state(name, "by this user's privilege");
    }
    let forbidden = [
        ("user/max_user_namespaces", "0", "1000"),
        ("kernel/unprivileged_userns_clone", "0", "1"),
        ("kernel/apparmor_restrict_unprivileged_userns", "1", "0"),
    ]
    .into_iter()
    .find(|(setting, bad, _)| facts.settings.get(setting).is_some_and(|now| now == bad));
    match forbidden {
        None => HostCheck::with_ok_state(name, "by user namespaces"),
        Some((setting, bad, better)) => {
            let dotted = setting.replace('/', ".");
            HostCheck::with_ok_state(name, format!("{dotted} is {bad}"))
                .with_state(State::Warn, format!("sysctl -w {dotted}={better}, or run as root"))
        }
    }
}

#[cfg(test)]
mod tests {
    use linerate_report::{Block, Document};

    use super::*;

    fn state_of_check(checks: &[HostCheck], name: &str) -> State {
        checks.iter().find(|check| check.name == name).expect("it is checked").state
    }

    #[test]
    fn a_remedy_is_printed_only_where_something_is_wrong() {
        let good = HostCheck::with_ok_state("a", "fine").or_warn(true, "fix it");
        let bad = HostCheck::with_ok_state("b", "not fine").or_warn(false, "fix it");
        let worst = HostCheck::with_ok_state("c", "broken").with_state(State::Bad, "replace it");
        let blocks = tables(&[good, bad, worst]).into_iter().map(Block::Table);
        let text = Document::default().with_section(blocks).text(Some(80));
        for line in ["OK     a      fine", "WARN   b      not fine", "BAD    c      broken"] {
            assert!(text.contains(line), "{text}");
        }
        let (_, mends) = text.split_once("do this\n").expect("a table of remedies");
        assert_eq!(mends, "b        fix it\nc        replace it\n");
    }

    #[test]
    fn time_held_up_beyond_a_few_percent_is_a_fault() {
        assert_eq!(stolen(0.004).state, State::Ok);
        assert_eq!(stolen(0.03).state, State::Warn);
        assert_eq!(stolen(0.53).state, State::Bad);
        assert!(stolen(0.53).remedy.is_some());
    }

    #[test]
    fn a_plain_user_is_told_what_is_closed_to_him() {
        let mut facts =
            HostFacts { ping_groups: Some((1, 0)), groups: vec![0, 1], ..HostFacts::default() };
        facts.settings.insert("kernel/apparmor_restrict_unprivileged_userns", "1".to_owned());
        let checks = all_checks(&facts);
        for name in ["ICMP sockets", "capabilities", "network namespaces", "filter program"] {
            assert_eq!(state_of_check(&checks, name), State::Warn, "{name}");
        }
        facts.capabilities = 1 << CAP_NET_RAW | 1 << CAP_NET_ADMIN;
        facts.makes_networks = true;
        facts.nft = Some("/usr/sbin/nft".to_owned());
        let checks = all_checks(&facts);
        for name in ["ICMP sockets", "capabilities", "network namespaces", "filter program"] {
            assert_eq!(state_of_check(&checks, name), State::Ok, "{name}");
        }
    }

    #[test]
    fn every_check_finds_something_on_this_host() {
        for check in all_checks(&HostFacts::gather()) {
            assert!(!check.found.is_empty() && !check.found.contains('\n'), "{check:?}");
            assert_eq!(check.remedy.is_some(), check.state != State::Ok, "{check:?}");
        }
    }
}
