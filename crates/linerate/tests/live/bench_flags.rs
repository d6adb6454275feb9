//! `linerate bench` as a shell sees it: what is wrong with a command is said in one line, with
//! what to do, before anything is sent. Nothing here sends a frame.

#![allow(clippy::print_stdout, reason = "tests that are skipped say so")]

use crate::support::{check_wrong_use, ends_with, linerate, stderr, stdout};

/// Two names that no host has.
const PORTS: [&str; 2] = ["no-such-a", "no-such-b"];

/// Ports, flags, and words of the line that refuses them.
type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [&'a str]);

#[test]
fn a_wrong_command_is_one_line_that_says_what_to_do() {
    let router = ["--device", "router"];
    let cases: &[Case<'_>] = &[
        (&[], &[], &["nothing says where it is", "name two interfaces", "--demo"]),
        (&["eth1"], &[], &["eth1: one interface", "name a second one"]),
        (&["eth1", "eth1"], &[], &["eth1: it is there twice", "name two interfaces"]),
        (&["e1,address=300.1.1.1", "e2"], &[], &["address: ", "bench --help"]),
        (&["e1,mtu=1", "e2"], &[], &["'mtu=1' is none of address=, gateway="]),
        (&["e1,address=2001:2::1", "e2"], &[], &["no address of frames that carry udp4"]),
        (&["e1,gateway=198.18.0.1", "e2"], &[], &["one port has a gateway", "on each port"]),
        (
            &["e1,address=198.18.0.1", "e2"],
            &["--protocol", "ipx"],
            &["no address of frames that carry ipx", "omit it"],
        ),
        (&["e1"], &router, &["cannot be used with"]),
        (&[], &["--device", "switch"], &["one of cable, bridge, router"]),
        (&[], &["--device", "planted:loss=0.1"], &["its capacity"]),
        (&[], &["--device", "cable", "--filters", "10"], &["cable", "--device router"]),
        (&[], &["--device", "router", "--filters", "1,1"], &["1 is there twice"]),
        (&[], &["--device", "router", "--protocol", "decnet"], &["does not route decnet"]),
        (&[], &["--device", "router", "--vlan", "5"], &["without a tag"]),
        (&[], &["--placement", "inline"], &["--device"]),
        (&PORTS, &["--filters", "0,10"], &["--filters: nothing here sets", "--device router"]),
        (&PORTS, &["--sizes", "63"], &["shorter than 64"]),
        (&PORTS, &["--sizes", "9243"], &["longer than 9242"]),
        (&PORTS, &["--sizes", "64,64"], &["64 is there twice"]),
        (&PORTS, &["--sizes", "64", "--protocol", "udp6"], &["hold no udp6", "84 bytes at least"]),
        (&PORTS, &["--sizes", "64", "--imix"], &["--sizes", "--imix"]),
        (&PORTS, &["--mix", "64:1"], &["two lengths"]),
        (&PORTS, &["--mix", "64:1,128:1", "--protocol", "udp6"], &["64 bytes hold no udp6"]),
        (&PORTS, &["--protocol", "sctp"], &["one of udp4, udp6"]),
        (&PORTS, &["--vlan", "4095"], &["4095"]),
        (&PORTS, &["--vlan", "1,2,3"], &["3 tags", "two at most"]),
        (&PORTS, &["--dscp", "64"], &["64"]),
        (&PORTS, &["--dscp", "46", "--protocol", "ethernet"], &["no code point"]),
        (&PORTS, &["--flows", "0"], &["0"]),
        (&PORTS, &["--many-hosts"], &["there is one flow", "--flows N"]),
        (&PORTS, &["--shuffle"], &["--shuffle: there is one flow"]),
        (&PORTS, &["--burst", "0"], &["0"]),
        (&PORTS, &["--tests", "speed"], &["one of flood, throughput"]),
        (&PORTS, &["--tests", "flood,flood"], &["flood is there twice"]),
        (&PORTS, &["--tests", "latency"], &["its load is the throughput", "--rate-max"]),
        (&PORTS, &["--tests", "contract"], &["what was ordered", "--contract cir="]),
        (&PORTS, &["--contract", "cbs=64k"], &["lacks cir=RATE"]),
        (&PORTS, &["--contract", "cir=10M"], &["lacks cbs=SIZE"]),
        (&PORTS, &["--goals", "fast"], &["'fast' is none of strict, typical, verified"]),
        (&PORTS, &["--goals", "x:final=2s,sum=1s"], &["sum is below final"]),
        (&PORTS, &["--quick", "--rfc2544"], &["--quick", "--rfc2544"]),
        (&PORTS, &["--trial-time", "0"], &["a trial of no time"]),
        (&PORTS, &["--soak-time", "0s"], &["--soak-time"]),
        (&PORTS, &["--drain", "long"], &["--drain"]),
        (&PORTS, &["--repeat", "0"], &["--repeat"]),
        (&PORTS, &["--rate-max", "0"], &["below one frame"]),
        (&PORTS, &["--rate-max", "fast"], &["--rate-max"]),
        (&PORTS, &["--line-rate", "0"], &["0 bit/s"]),
        (&PORTS, &["--generator", "dpdk"], &["one of live, xdp, packet"]),
        (&PORTS, &["--counter", "live"], &["one of xdp, packet"]),
        (&PORTS, &["--seed", "x"], &["--seed"]),
        (&PORTS, &["--demo"], &["--demo"]),
        (&PORTS, &["--study", "bradner"], &["--study"]),
    ];
    each_is_refused(cases);
}

#[test]
fn ports_that_do_not_fit_are_one_line_that_says_what_to_do() {
    let cases: &[Case<'_>] = &[
        (&["e1", "e2", "e3"], &[], &["3 interfaces", "--mesh"]),
        (&["e1", "e2"], &["--mesh"], &["three ports or more", "--dual"]),
        (&["e1", "e2"], &["--tests", "blocking"], &["three ports or more", "a third one"]),
        (&["e1", "e2"], &["--ports", "4"], &["--ports: ", "--device bridge"]),
        (&[], &["--device", "bridge", "--ports", "9"], &["9 is not in 3 to 8"]),
        (&[], &["--device", "bridge", "--ports", "4"], &["4 --ports", "--mesh"]),
        (&[], &["--device", "forwarder", "--mesh"], &["forwarder has two ports", "bridge"]),
        (&["e1", "e2", "e3"], &["--mesh", "--dual"], &["--mesh", "--dual", "cannot be used"]),
    ];
    each_is_refused(cases);
}

fn each_is_refused(cases: &[Case<'_>]) {
    for (ports, flags, parts) in cases {
        let arguments: Vec<&str> = ["bench"].iter().chain(*ports).chain(*flags).copied().collect();
        check_wrong_use(&arguments, parts);
    }
}

#[test]
fn an_interface_that_is_not_there_or_leads_nowhere_is_named() {
    check_wrong_use(&["bench", "no-such-a", "no-such-b"], &["no-such-a", "no such interface"]);
    check_wrong_use(&["bench", "lo", "no-such-b"], &["lo", "loopback", "--device cable"]);
}

/// The interface of this host's IPv4 default route, where it has one.
fn default_interface() -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/route").ok()?;
    let rows = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    rows.filter(|row| row.get(1) == Some(&"00000000") && row.get(7) == Some(&"00000000"))
        .find_map(|row| row.first().map(|name| (*name).to_owned()))
}

#[test]
fn the_interface_of_the_default_route_is_refused() {
    let Some(interface) = default_interface() else {
        println!("skipped: this host has no default route");
        return;
    };
    let other = std::fs::read_dir("/sys/class/net").expect("sysfs").filter_map(Result::ok);
    let mut names = other.filter_map(|entry| entry.file_name().into_string().ok());
    let Some(other) = names.find(|name| *name != interface && name != "lo") else {
        let flags = ["bench", interface.as_str(), "no-such-b"];
        check_wrong_use(&flags, &["no-such-b", "no such interface"]);
        println!("skipped: there is no second interface to name beside {interface}");
        return;
    };
    let output = linerate(&["bench", &interface, &other]);
    assert_eq!((output.status.code(), stdout(&output)), (Some(2), String::new()));
    // The other one may be unusable by itself, which is said first.
    assert!(stderr(&output).contains("bench "), "{}", stderr(&output));
}

#[test]
fn the_help_shows_every_flag() {
    let help = ends_with(0, &["bench", "--help"]);
    for flag in [
        "--device",
        "--filters",
        "--ports",
        "--placement",
        "--demo",
        "--study",
        "--tests",
        "--goals",
        "--quick",
        "--rfc2544",
        "--trial-time",
        "--soak-time",
        "--before",
        "--drain",
        "--settle",
        "--repeat",
        "--reset-command",
        "--contract",
        "--sizes",
        "--imix",
        "--mix",
        "--protocol",
        "--vlan",
        "--dscp",
        "--flows",
        "--many-hosts",
        "--shuffle",
        "--burst",
        "--dual",
        "--mesh",
        "--generator",
        "--counter",
        "--line-rate",
        "--link",
        "--capacity",
        "--rate-max",
        "--seed",
        "--force-interface",
        "--resume",
        "--dry-run",
        "--json",
        "--jsonl",
        "--output",
        "--quiet",
        "--verbose",
        "--name",
        "--tag",
        "--no-save",
        "--store",
    ] {
        assert!(help.contains(flag), "{flag}");
    }
}
