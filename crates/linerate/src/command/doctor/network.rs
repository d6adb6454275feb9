//! Interfaces, the limits of TCP's windows, filter rules and ports, judged from facts. Pure.

use linerate_core::record::Via;
use linerate_core::units::BitRate;
use linerate_sys::ethtool::Offload;
use linerate_sys::netlink::{FilterRuleVerdict, InputChain, InputRule};

use super::check::{HostCheck, State};
use super::facts::{ExaminedInterface, HostFacts, letters};

/// The path that automatic windows should fill: this rate, or that of the fastest interface, with
/// this round trip.
const RATE_BPS: u64 = 1_000_000_000;
const RTT_MS: u64 = 100;
/// Size of a buffer over its payload: the kernel counts its bookkeeping, too (tcp_adv_win_scale of
/// 1, Documentation/networking/ip-sysctl.rst; since Linux 6.6 the kernel estimates the factor).
const PAYLOAD_SHARE: u64 = 2;
/// TCP and UDP as IP numbers them.
const PROTOCOLS: [(u8, &str); 2] = [(6, "TCP"), (17, "UDP")];

/// A line for each interface that is set up.
pub(super) fn interfaces(facts: &HostFacts) -> Vec<HostCheck> {
    facts.interfaces.iter().filter_map(interface).collect()
}

fn interface(of: &ExaminedInterface) -> Option<HostCheck> {
    let facts = of.facts.as_ref()?;
    let name = &facts.link.name;
    let kind = facts.driver.clone().or_else(|| facts.link.kind.clone());
    let speed = facts.speed_bps.map_or_else(
        || "speed unknown (give it by --link)".to_owned(),
        |bps| BitRate::from_bits_per_sec(bps).to_string(),
    );
    let duplex = match facts.full_duplex {
        Some(true) => " full duplex",
        Some(false) => " half duplex",
        None => "",
    };
    let on: Vec<&str> = facts.offloads.iter().filter_map(|offload| letters(*offload)).collect();
    let parts = [
        kind.unwrap_or_else(|| "unknown driver".to_owned()),
        format!("{speed}{duplex}"),
        format!("MTU {}", facts.link.mtu_bytes),
        format!("queue {}", of.disciplines.first().map_or("unknown", String::as_str)),
        if on.is_empty() { "no tso, gso, gro".to_owned() } else { on.join(" ") },
    ];
    let check = HostCheck::with_ok_state(format!("interface {name}"), parts.join(", "));
    let hardware = facts.link.kind.is_none();
    let off: Vec<String> = [Offload::TcpSegmentation, Offload::Segmentation, Offload::Receive]
        .into_iter()
        .filter(|offload| !facts.offloads.contains(offload))
        .filter_map(|offload| letters(offload).map(|letter| format!("{letter} on")))
        .collect();
    Some(if facts.link.carrier == Some(false) {
        check.with_state(State::Warn, "no carrier: plug in the cable, or set the other end up")
    } else if facts.full_duplex == Some(false) {
        check.with_state(State::Bad, format!("ethtool -s {name} autoneg on (at both ends)"))
    } else if let Some(bps) = of.shaper_bps {
        let rate = BitRate::from_bits_per_sec(bps);
        let remedy = format!("shaped to {rate}; if not on purpose: tc qdisc del dev {name} root");
        check.with_state(State::Warn, remedy)
    } else if hardware && facts.speed_bps.is_some_and(|bps| bps < RATE_BPS) {
        check.with_state(
            State::Warn,
            "slow for its age: look at the cable and at the other end's port",
        )
    } else if hardware && facts.link.mtu_bytes < 1500 {
        check.with_state(
            State::Warn,
            format!("if the path carries it: ip link set dev {name} mtu 1500"),
        )
    } else if hardware && !off.is_empty() {
        check.with_state(State::Warn, format!("ethtool -K {name} {}", off.join(" ")))
    } else {
        check
    })
}

/// Checks that an automatic buffer grows to the size that the usual long path needs.
pub(super) fn autotuning(
    facts: &HostFacts,
    name: &'static str,
    setting: &'static str,
) -> HostCheck {
    let name = format!("automatic {name}");
    let Some(limit) = facts.buffer_limit(setting) else {
        return HostCheck::with_ok_state(name, "not visible in this namespace");
    };
    if setting.ends_with("rmem") && facts.number("net/ipv4/tcp_moderate_rcvbuf") == Some(0) {
        return HostCheck::with_ok_state(name, "switched off")
            .with_state(State::Bad, "sysctl -w net.ipv4.tcp_moderate_rcvbuf=1");
    }
    let speeds =
        facts.interfaces.iter().filter_map(|interface| interface.facts.as_ref()?.speed_bps);
    let rate_bps = speeds.max().unwrap_or(RATE_BPS).max(RATE_BPS);
    let wanted = rate_bps / 8 / 1000 * RTT_MS * PAYLOAD_SHARE;
    let reach_bps = limit / PAYLOAD_SHARE * 8 * 1000 / RTT_MS;
    let found = format!(
        "up to {limit} bytes, about {} at {RTT_MS} ms a stream",
        BitRate::from_bits_per_sec(reach_bps)
    );
    let now = facts.settings.get(setting).map(|text| text.split_whitespace().take(2));
    let kept = now.into_iter().flatten().collect::<Vec<_>>().join(" ");
    let remedy = format!("sysctl -w {}='{kept} {wanted}'", setting.replace('/', "."));
    HostCheck::with_ok_state(name, found).or_warn(limit >= wanted, remedy)
}

/// The options without which TCP is slow on long paths.
pub(super) fn tcp_options(facts: &HostFacts) -> HostCheck {
    let options =
        [("window_scaling", State::Bad), ("sack", State::Warn), ("timestamps", State::Warn)];
    let off = options.into_iter().filter(|(name, _)| {
        let setting = format!("net/ipv4/tcp_{name}");
        facts.number(&setting) == Some(0)
    });
    let off: Vec<(&str, State)> = off.collect();
    let names = |of: &[(&str, State)]| of.iter().map(|row| row.0).collect::<Vec<_>>().join(", ");
    let Some(worst) = off.iter().map(|(_, state)| *state).max() else {
        return HostCheck::with_ok_state("TCP options", format!("{} on", names(&options)));
    };
    let set: Vec<String> = off.iter().map(|(name, _)| format!("net.ipv4.tcp_{name}=1")).collect();
    HostCheck::with_ok_state("TCP options", format!("{} off", names(&off)))
        .with_state(worst, format!("sysctl -w {}", set.join(" ")))
}

/// Fate of new packets to a port by the filter rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum FilterFate {
    Open,
    /// A set or another chain decides.
    Unclear,
    Closed,
}

/// Checks that clients reach the server's port through this host's own filter rules.
pub(super) fn firewall(facts: &HostFacts, port: u16) -> HostCheck {
    let name = "firewall";
    let open = |chain: &InputChain| {
        let at = format!("{} {} {}", chain.family, chain.table, chain.name);
        let rule = |protocol| format!("nft insert rule {at} {protocol} dport {port} accept");
        (format!("chain {at}"), format!("{}; {}", rule("tcp"), rule("udp")))
    };
    let Some(Ok(chains)) = &facts.filter else {
        return HostCheck::with_ok_state(name, "rules not visible to this user")
            .with_state(State::Warn, format!("sudo {} doctor", facts.program));
    };
    let fates = chains.iter().flat_map(|chain| {
        let families =
            PROTOCOLS.map(|(number, protocol)| (filter_fate(chain, number, port), protocol));
        families.map(|(fate, protocol)| (fate, protocol, chain))
    });
    let worst = fates.max_by_key(|(fate, ..)| *fate);
    match worst {
        Some((FilterFate::Closed, protocol, chain)) => {
            let (at, rules) = open(chain);
            let found = format!("{at} drops {protocol} to port {port}");
            HostCheck::with_ok_state(name, found).with_state(State::Bad, rules)
        }
        Some((FilterFate::Unclear, protocol, chain)) => {
            let (at, rules) = open(chain);
            let found = format!("{at} may drop {protocol} to port {port}");
            HostCheck::with_ok_state(name, found).with_state(State::Warn, rules)
        }
        _ if facts.legacy_filter => HostCheck::with_ok_state(
            name,
            format!("legacy iptables is loaded; port {port} may be closed"),
        )
        .with_state(State::Warn, format!("iptables -I INPUT -p tcp --dport {port} -j ACCEPT")),
        Some(_) => HostCheck::with_ok_state(name, format!("lets port {port} in")),
        None => HostCheck::with_ok_state(name, "no rules for incoming packets"),
    }
}

/// The first rule that decides, else the chain's policy.
fn filter_fate(chain: &InputChain, protocol: u8, port: u16) -> FilterFate {
    let mut unclear = false;
    for rule in &chain.rules {
        match (matched(rule, protocol, port), rule.verdict) {
            (Some(true), FilterRuleVerdict::Accept) => return FilterFate::Open,
            (Some(true), FilterRuleVerdict::Drop) if unclear => return FilterFate::Unclear,
            (Some(true), FilterRuleVerdict::Drop) => return FilterFate::Closed,
            (Some(true) | None, FilterRuleVerdict::Elsewhere) => unclear = true,
            (None, FilterRuleVerdict::Accept) => unclear = true,
            // A set of ports, or a map with verdicts.
            (None, FilterRuleVerdict::None)
                if rule.expressions.iter().any(|expression| expression == "lookup") =>
            {
                unclear = true;
            }
            _ => {}
        }
    }
    match (chain.drops, unclear) {
        (false, _) => FilterFate::Open,
        (true, true) => FilterFate::Unclear,
        (true, false) => FilterFate::Closed,
    }
}

/// True when a rule fits every new packet to a port; `None` where a set or a range decides.
fn matched(rule: &InputRule, protocol: u8, port: u16) -> Option<bool> {
    const PLAIN: [&str; 8] =
        ["meta", "payload", "cmp", "immediate", "reject", "counter", "log", "limit"];
    if rule.expressions.iter().any(|expression| expression == "lookup" || expression == "range") {
        return None;
    }
    // States, marks and the like fit some packets, which are not those of a new client.
    let plain = rule.expressions.iter().all(|expression| PLAIN.contains(&expression.as_str()));
    let fits = |value: &Vec<u8>| match value.as_slice() {
        [number] => *number == protocol,
        [high, low] => u16::from_be_bytes([*high, *low]) == port,
        // An interface or an address.
        _ => false,
    };
    Some(plain && rule.equals.iter().all(fits))
}

/// Checks that the server's ports are free, or taken by a server.
pub(super) fn check_server_ports(facts: &HostFacts, port: u16) -> HostCheck {
    let taken = |protocol, port| facts.open_ports.contains(&(protocol, port));
    let name = "ports";
    let others = [Via::Iperf3, Via::Iperf2, Via::Nuttcp];
    let busy: Vec<String> = others
        .into_iter()
        .filter(|via| taken("tcp", via.default_port()))
        .map(|via| format!("{} ({via})", via.default_port()))
        .collect();
    let others = match busy.as_slice() {
        [] => String::new(),
        busy => format!("; in use: {}", busy.join(", ")),
    };
    match (taken("tcp", port), taken("udp", port)) {
        (true, true) => HostCheck::with_ok_state(
            name,
            format!("a server listens on {port}, TCP and UDP{others}"),
        ),
        (false, false) => {
            HostCheck::with_ok_state(name, format!("{port} is free, TCP and UDP{others}"))
        }
        (true, false) => HostCheck::with_ok_state(
            name,
            format!("{port} is taken over TCP, not over UDP{others}"),
        )
        .with_state(State::Warn, format!("ss -lntp sport = {port} (who has it?)")),
        (false, true) => HostCheck::with_ok_state(
            name,
            format!("{port} is taken over UDP, so there is no UDP echo{others}"),
        )
        .with_state(State::Warn, format!("ss -lnup sport = {port} (who has it?)")),
    }
}

#[cfg(test)]
mod tests {
    use linerate_sys::interface_facts::InterfaceFacts;
    use linerate_sys::netlink::LinkFacts;

    use super::*;

    fn judge_eth0(change: impl Fn(&mut InterfaceFacts, &mut ExaminedInterface)) -> HostCheck {
        let link = LinkFacts {
            name: "eth0".to_owned(),
            mtu_bytes: 1500,
            up: true,
            carrier: Some(true),
            ..LinkFacts::default()
        };
        let mut facts = InterfaceFacts {
            link,
            driver: Some("igb".to_owned()),
            speed_bps: Some(RATE_BPS),
            full_duplex: Some(true),
            pause: None,
            offloads: vec![Offload::TcpSegmentation, Offload::Segmentation, Offload::Receive],
            napis: Vec::new(),
        };
        let mut of = ExaminedInterface {
            disciplines: vec!["fq_codel".to_owned()],
            ..ExaminedInterface::default()
        };
        change(&mut facts, &mut of);
        interface(&ExaminedInterface { facts: Some(facts), ..of }).expect("an interface")
    }

    #[test]
    fn an_interface_is_judged_by_the_worst_of_it() {
        let fine = judge_eth0(|_, _| {});
        assert_eq!(fine.state, State::Ok);
        assert_eq!(fine.found, "igb, 1 Gbit/s full duplex, MTU 1500, queue fq_codel, tso gso gro");
        let half = judge_eth0(|facts, _| facts.full_duplex = Some(false));
        assert_eq!(half.state, State::Bad);
        assert_eq!(half.remedy.as_deref(), Some("ethtool -s eth0 autoneg on (at both ends)"));
        let slow = judge_eth0(|facts, _| facts.speed_bps = Some(100_000_000));
        assert_eq!(slow.state, State::Warn);
        let offloads = judge_eth0(|facts, _| facts.offloads = vec![Offload::Segmentation]);
        assert_eq!(offloads.remedy.as_deref(), Some("ethtool -K eth0 tso on gro on"));
        let small = judge_eth0(|facts, _| facts.link.mtu_bytes = 1400);
        assert!(small.remedy.expect("a remedy").ends_with("ip link set dev eth0 mtu 1500"));
        let shaped = judge_eth0(|_, of| of.shaper_bps = Some(50_000_000));
        assert!(shaped.remedy.expect("a remedy").contains("shaped to 50 Mbit/s"));
        let virtual_one = judge_eth0(|facts, _| {
            facts.link.kind = Some("veth".to_owned());
            (facts.speed_bps, facts.offloads) = (None, Vec::new());
        });
        assert_eq!(virtual_one.state, State::Ok, "nothing is expected of a virtual link");
    }

    fn settings(rows: &[(&'static str, &str)]) -> HostFacts {
        let settings = rows.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        HostFacts { settings, ..HostFacts::default() }
    }

    #[test]
    fn a_window_is_held_to_the_product_of_rate_and_delay() {
        let of = |value: &str| {
            let facts = settings(&[("net/ipv4/tcp_rmem", value)]);
            autotuning(&facts, "receive window", "net/ipv4/tcp_rmem")
        };
        // 1 Gbit/s for 100 ms is 12.5 MB, and as much again for the kernel's bookkeeping.
        let small = of("4096 131072 6291456");
        assert_eq!(small.state, State::Warn);
        let remedy = "sysctl -w net.ipv4.tcp_rmem='4096 131072 25000000'";
        assert_eq!(small.remedy.as_deref(), Some(remedy));
        // Half of 6 MiB in 100 ms: 251,658,240 bit/s.
        assert!(
            small.found.contains("251.7 Mbit/s") || small.found.contains("251.66"),
            "{small:?}"
        );
        assert_eq!(of("4096 131072 33554432").state, State::Ok);
        let off =
            settings(&[("net/ipv4/tcp_rmem", "1 2 3"), ("net/ipv4/tcp_moderate_rcvbuf", "0")]);
        assert_eq!(autotuning(&off, "receive window", "net/ipv4/tcp_rmem").state, State::Bad);
    }

    #[test]
    fn options_that_are_off_are_named_with_the_line_that_sets_them() {
        let facts = settings(&[("net/ipv4/tcp_sack", "0"), ("net/ipv4/tcp_window_scaling", "1")]);
        let check = tcp_options(&facts);
        assert_eq!((check.state, check.found.as_str()), (State::Warn, "sack off"));
        assert_eq!(check.remedy.as_deref(), Some("sysctl -w net.ipv4.tcp_sack=1"));
        let scaling = settings(&[("net/ipv4/tcp_window_scaling", "0")]);
        assert_eq!(tcp_options(&scaling).state, State::Bad);
        assert_eq!(tcp_options(&HostFacts::default()).state, State::Ok);
    }

    fn input_rule(expressions: &str, equals: &[&[u8]], verdict: FilterRuleVerdict) -> InputRule {
        InputRule {
            expressions: expressions.split(' ').map(str::to_owned).collect(),
            equals: equals.iter().map(|value| value.to_vec()).collect(),
            verdict,
        }
    }

    fn judged(drops: bool, rules: Vec<InputRule>) -> State {
        let chain = InputChain {
            family: "inet",
            table: "filter".to_owned(),
            name: "input".to_owned(),
            drops,
            rules,
        };
        let facts = HostFacts { filter: Some(Ok(vec![chain])), ..HostFacts::default() };
        firewall(&facts, 5210).state
    }

    #[test]
    fn a_firewall_is_open_closed_or_unclear() {
        const PORT: &[u8] = &[0x14, 0x5a];
        let fields = "meta cmp payload cmp immediate";
        let established = || input_rule("ct bitwise cmp immediate", &[], FilterRuleVerdict::Accept);
        let loopback = || input_rule("meta cmp immediate", &[b"lo\0\0"], FilterRuleVerdict::Accept);
        let accept =
            |protocol: u8| input_rule(fields, &[&[protocol], PORT], FilterRuleVerdict::Accept);
        assert_eq!(judged(false, vec![]), State::Ok);
        assert_eq!(judged(true, vec![established(), loopback()]), State::Bad);
        assert_eq!(judged(true, vec![established(), accept(6), accept(17)]), State::Ok);
        assert_eq!(judged(true, vec![accept(6)]), State::Bad, "UDP is closed");
        assert_eq!(
            judged(false, vec![input_rule(fields, &[&[6], PORT], FilterRuleVerdict::Drop)]),
            State::Bad
        );
        assert_eq!(
            judged(false, vec![input_rule("counter reject", &[], FilterRuleVerdict::Drop)]),
            State::Bad
        );
        let ssh = input_rule(fields, &[&[6], &[0, 22]], FilterRuleVerdict::Drop);
        assert_eq!(judged(false, vec![ssh]), State::Ok);
        let set =
            input_rule("meta cmp payload lookup immediate", &[&[6]], FilterRuleVerdict::Accept);
        assert_eq!(judged(true, vec![set]), State::Warn);
        let jump = input_rule("immediate", &[], FilterRuleVerdict::Elsewhere);
        assert_eq!(judged(true, vec![jump]), State::Warn);
        assert_eq!(firewall(&HostFacts::default(), 5210).state, State::Warn, "not visible");
    }

    #[test]
    fn a_port_that_another_program_has_is_told() {
        let of = |open: &[(&'static str, u16)]| {
            let facts = HostFacts { open_ports: open.to_vec(), ..HostFacts::default() };
            check_server_ports(&facts, 5210)
        };
        assert_eq!(of(&[]).state, State::Ok);
        assert_eq!(of(&[("tcp", 5210), ("udp", 5210)]).state, State::Ok);
        assert_eq!(of(&[("udp", 5210)]).state, State::Warn);
        assert!(of(&[("tcp", 5201)]).found.ends_with("in use: 5201 (iperf3)"));
    }
}
