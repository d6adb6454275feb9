//! `linerate bench` and the interfaces of its host: what is down, too short or in use is said
//! before a frame is sent. On a host of a laboratory, so that no interface of this host is
//! touched. Needs the privilege to make network namespaces; says so and passes without it.

#![allow(clippy::print_stdout, reason = "tests that are skipped say so")]

use std::process::Output;

use crate::support::{linerate, no_laboratory, stderr, stdout};

/// Two hosts with two cables between them: `eth0` and `eth1` at both.
const LAB: &str = "host = [{ name = \"a\" }, { name = \"b\" }]\n\
                   link = [{ ends = [\"a\", \"b\"] }, { ends = [\"a\", \"b\"] }]\n";

/// What host a does in a shell; `BENCH_NOW` is the command with two ports, `BENCH` only shows.
fn on_a(script: &str) -> Option<Output> {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return None;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let plan = directory.path().join("two.toml");
    std::fs::write(&plan, LAB).expect("a plan");
    let now = format!("{} bench eth0 eth1", env!("CARGO_BIN_EXE_linerate"));
    let script = script.replace("BENCH_SEVEN", &now.replace("eth0", "eth7"));
    let script = script.replace("BENCH_NOW", &now).replace("BENCH", &format!("{now} --dry-run"));
    let plan = plan.to_str().expect("a path in UTF-8");
    Some(linerate(&["lab", "run", plan, "--on", "a", "--", "sh", "-c", &script]))
}

/// The one line that is said with code 2.
fn refused(script: &str, parts: &[&str]) {
    let Some(output) = on_a(script) else { return };
    let said = stderr(&output);
    let line = said.lines().find(|line| line.contains("bench")).unwrap_or_default();
    assert_eq!(output.status.code(), Some(2), "{script}: {said}");
    for part in parts {
        assert!(line.contains(part), "{script}: {part} is not in {said}");
    }
}

#[test]
fn interfaces_that_are_fit_are_taken_and_the_plan_is_shown_with_its_time() {
    let Some(output) = on_a("BENCH --sizes 64,1518 --tests throughput --goals typical") else {
        return;
    };
    let text = stdout(&output);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(text.starts_with("Benchmark of the device between eth0, eth1\n"), "{text}");
    for part in ["throughput", "udp4 of 64, 1518 bytes", "typical: trials of 1s", "2 measurements"]
    {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(text.trim_end().lines().last().is_some_and(|line| line.contains("about")), "{text}");
}

#[test]
fn an_interface_that_is_down_or_unplugged_is_named() {
    refused("ip link set eth1 down; BENCH", &["eth1", "set down", "ip link set eth1 up"]);
    // A link without its other end has no carrier.
    let alone = "ip link add eth7 type veth peer name eth8; ip link set eth7 up; ";
    refused(&format!("{alone}BENCH_SEVEN --dry-run"), &["eth7", "its link is down", "connect it"]);
}

#[test]
fn a_frame_above_the_mtu_is_refused_with_the_mtu_that_it_needs() {
    refused("BENCH --sizes 64,9018", &["MTU is 1500", "mtu 9000"]);
    refused("ip link set eth1 mtu 1400; BENCH --imix", &["eth1", "MTU is 1400", "mtu 1500"]);
    let Some(output) = on_a("BENCH --sizes 1522 --vlan 5") else { return };
    assert_eq!(output.status.code(), Some(0), "a tag is not counted: {}", stderr(&output));
}

#[test]
fn the_interface_of_a_default_route_is_refused_unless_it_is_forced() {
    let route = "ip route add default dev eth1";
    refused(&format!("{route}; BENCH"), &["eth1", "default route", "--force-interface"]);
    let ipv6 = "ip -6 route add default dev eth0";
    refused(&format!("{ipv6}; BENCH"), &["eth0", "default route", "RFC 6815"]);
    let Some(output) = on_a(&format!("{route}; BENCH --force-interface")) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
}

#[test]
fn a_missing_privilege_is_named() {
    let Some(output) = on_a("setpriv --bounding-set=-net_raw true") else { return };
    if !output.status.success() {
        println!("skipped: setpriv is not there, or may not");
        return;
    }
    let command = "setpriv --bounding-set=-net_raw BENCH_NOW --quick --no-save";
    refused(command, &["CAP_NET_RAW", "run as root"]);
}
