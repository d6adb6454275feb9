//! What does not go together among the flags of `linerate bench`: one line each, with what to do.
//!
//! Needs no machine; what interfaces are like is in `here.rs`.

use std::collections::BTreeSet;

use linerate_core::record::{BenchProtocol, BenchTest, Failure, Fault};

use super::contract::ContractArg;
use super::defaults::{self, longest_bytes, shortest_bytes};
use super::flags::Args;

/// Checks the flags, before any interface is opened.
pub(super) fn check_flags(args: &Args) -> Result<(), Failure> {
    check_ports(args)?;
    check_made_device(args)?;
    frames(args)?;
    check_tests(args)
}

fn refused(object: impl Into<String>, reason: impl std::fmt::Display, advice: &str) -> Failure {
    Failure::new(Fault::Usage, "bench", object, reason).advise(advice)
}

fn check_ports(args: &Args) -> Result<(), Failure> {
    let ports = &args.ports;
    if ports.is_empty() && args.made.device.is_none() {
        let advice = "name two interfaces, or --device router, or --demo";
        return Err(refused("a device", "nothing says where it is", advice));
    }
    if let [one] = ports.as_slice() {
        let reason = "one interface; frames go in at one and come out at another";
        return Err(refused(&one.interface, reason, "name a second one"));
    }
    let mut seen = BTreeSet::new();
    if let Some(again) = ports.iter().find(|port| !seen.insert(&port.interface)) {
        return Err(refused(&again.interface, "it is there twice", "name two interfaces"));
    }
    let ways = &args.frames;
    let count = match &args.made.device {
        Some(_) => defaults::port_count(args),
        None => ports.len(),
    };
    if count > 2 && !ways.mesh && !defaults::has_third(args) {
        let reason = if ports.is_empty() { "--ports" } else { "interfaces" };
        let reason = format!("{count} {reason}");
        let advice = "two, or --mesh for all with all, or the tests addresses and blocking";
        return Err(refused("the ports", reason, advice));
    }
    if count < 3 && (ways.mesh || defaults::has_third(args)) {
        let (what, advice) = if ways.mesh {
            ("--mesh", "two that send to each other are --dual")
        } else {
            ("the tests", "name a third one, or --device bridge")
        };
        return Err(refused(what, "it needs three ports or more", advice));
    }
    addresses(args)
}

/// Addresses are of the protocol's family; devices that go by other headers have none.
fn addresses(args: &Args) -> Result<(), Failure> {
    let protocol = args.frames.protocol;
    let given = |port: &super::port::PortArg| port.address.or(port.gateway);
    for (port, address) in args.ports.iter().filter_map(|port| Some((port, given(port)?))) {
        let fits = match protocol {
            BenchProtocol::Udp4 | BenchProtocol::Tcp4 => address.is_ipv4(),
            BenchProtocol::Udp6 | BenchProtocol::Tcp6 => address.is_ipv6(),
            _ => false,
        };
        if !fits {
            let reason = format!("{address} is no address of frames that carry {protocol}");
            let advice = if is_ip(protocol) {
                "give an address of its family, or another --protocol"
            } else {
                "omit it: frames go to the MAC address of the other port"
            };
            return Err(refused(&port.interface, reason, advice));
        }
    }
    let routed = args.ports.iter().filter(|port| port.gateway.is_some()).count();
    if routed != 0 && routed != args.ports.len() {
        let reason = "one port has a gateway and another none";
        let advice = "a router has an address on each port, a bridge on none";
        return Err(refused("the ports", reason, advice));
    }
    Ok(())
}

const fn is_ip(protocol: BenchProtocol) -> bool {
    use BenchProtocol::{Tcp4, Tcp6, Udp4, Udp6};
    matches!(protocol, Udp4 | Udp6 | Tcp4 | Tcp6)
}

/// Checks flags that need a device made here.
fn check_made_device(args: &Args) -> Result<(), Failure> {
    let flags = &args.made;
    let Some(device) = &flags.device else {
        if !flags.filters.is_empty() {
            let reason = "nothing here sets filters of a device outside";
            return Err(refused("--filters", reason, "set them there, or add --device router"));
        }
        if flags.port_count.is_some() {
            let reason = "ports of a device outside are the interfaces that are named";
            return Err(refused("--ports", reason, "name more, or add --device bridge"));
        }
        return Ok(());
    };
    let name = device.name();
    if !flags.filters.is_empty() && !device.filters() {
        let reason = format!("{name} holds frames against no filters");
        return Err(refused("--filters", reason, "filters belong to --device router"));
    }
    let mut seen = BTreeSet::new();
    if let Some(again) = flags.filters.iter().find(|filters| !seen.insert(**filters)) {
        return Err(refused("--filters", format!("{again} is there twice"), "name each once"));
    }
    if defaults::port_count(args) > 2 && !device.has_many_ports() {
        let reason = format!("{name} has two ports");
        return Err(refused("--device", reason, "take bridge or router"));
    }
    if device.routes() && !is_ip(args.frames.protocol) {
        let reason = format!("{name} does not route {}", args.frames.protocol);
        return Err(refused("--protocol", reason, "udp4, udp6, tcp4, tcp6, or --device bridge"));
    }
    if device.routes() && !args.frames.vlan.is_empty() {
        let reason = format!("{name} takes frames without a tag");
        return Err(refused("--vlan", reason, "leave it out, or --device bridge"));
    }
    Ok(())
}

fn frames(args: &Args) -> Result<(), Failure> {
    let flags = &args.frames;
    let (protocol, tags) = (flags.protocol, flags.vlan.len());
    if tags > 2 {
        return Err(refused("--vlan", format!("{tags} tags"), "two at most"));
    }
    lengths(args)?;
    check_cells(args)?;
    let mut seen = BTreeSet::new();
    if let Some(again) =
        flags.sizes.iter().map(|len| len.bytes()).find(|bytes| !seen.insert(*bytes))
    {
        return Err(refused("--sizes", format!("{again} is there twice"), "name each once"));
    }
    if flags.dscp > 0 && !is_ip(protocol) {
        let reason = format!("{protocol} has no code point");
        return Err(refused("--dscp", reason, "leave it out, or take a --protocol of IP"));
    }
    if flags.flows == 1 && (flags.many_hosts || flags.shuffle) {
        let flag = if flags.many_hosts { "--many-hosts" } else { "--shuffle" };
        return Err(refused(flag, "there is one flow", "add --flows N"));
    }
    Ok(())
}

/// Length of frames that are cells, where the contract gives one.
fn cell_bytes(args: &Args) -> Option<u32> {
    match &args.what.contract {
        Some(ContractArg::Cells(_, cell)) => cell.map(|len| len.bytes()),
        _ => None,
    }
}

/// Cells are frames of one length.
fn check_cells(args: &Args) -> Result<(), Failure> {
    let Some(ContractArg::Cells(..)) = &args.what.contract else { return Ok(()) };
    if defaults::frame_mix(args).is_some() {
        let reason = "cells are frames of one length";
        return Err(refused("--contract", reason, "leave the mix out"));
    }
    let other = args.frames.sizes.iter().map(|len| len.bytes());
    match cell_bytes(args).zip(other.clone().find(|size| Some(*size) != cell_bytes(args))) {
        Some((cell, size)) => {
            let reason = format!("cell={cell} beside frames of {size} bytes");
            Err(refused("--contract", reason, "give --sizes or cell=, each alone"))
        }
        None => Ok(()),
    }
}

/// Checks that the lengths leave room for the headers.
fn lengths(args: &Args) -> Result<(), Failure> {
    let (protocol, tags) = (args.frames.protocol, args.frames.vlan.len());
    let (least, most) = (shortest_bytes(protocol, tags), longest_bytes(protocol, tags));
    let mix = defaults::frame_mix(args);
    let mixed: Vec<u32> = mix.iter().flat_map(|mix| mix.lengths()).collect();
    let sizes = args.frames.sizes.iter().map(|len| len.bytes());
    let asked = sizes.chain(cell_bytes(args)).chain(mixed);
    let with = match tags {
        0 => String::new(),
        1 => " and a VLAN tag".to_owned(),
        some => format!(" and {some} VLAN tags"),
    };
    for size in asked {
        if size < least {
            let reason = format!("{size} bytes hold no {protocol} frame with a signature{with}");
            return Err(refused("--sizes", reason, &format!("{least} bytes at least")));
        }
        if size > most {
            let reason = format!("{size} bytes are longer than a {protocol} frame can be{with}");
            return Err(refused("--sizes", reason, &format!("{most} bytes at most")));
        }
    }
    Ok(())
}

fn check_tests(args: &Args) -> Result<(), Failure> {
    let what = &args.what;
    let mut seen = BTreeSet::new();
    if let Some(again) = what.tests.iter().find(|test| !seen.insert(test.name())) {
        return Err(refused("--tests", format!("{} is there twice", again.name()), "once each"));
    }
    let tests = defaults::tests_to_run(args);
    if tests.contains(&BenchTest::Contract) && what.contract.is_none() {
        let reason = "nothing says what was ordered";
        return Err(refused(
            "test contract",
            reason,
            "add --contract cir=RATE,cbs=SIZE, or pcr=,scr=,mbs=",
        ));
    }
    // Each of these is a share of the throughput.
    let on_throughput = [BenchTest::Latency, BenchTest::Recovery, BenchTest::Soak];
    let needs = tests.iter().find(|test| on_throughput.contains(test));
    let has_load = tests.contains(&BenchTest::Throughput) || args.tester.rate_max.is_some();
    if let Some(needs) = needs.filter(|_| !has_load) {
        let reason = "its load is the throughput, which is not among the tests";
        let advice = "add the throughput test, or set the load with --rate-max";
        return Err(refused(format!("test {}", needs.name()), reason, advice));
    }
    let zero = |span: Option<std::time::Duration>| span.is_some_and(|span| span.is_zero());
    for (flag, is_zero) in
        [("--trial-time", zero(what.trial_time)), ("--soak-time", zero(what.soak_time))]
    {
        if is_zero {
            return Err(refused(flag, "a trial of no time", "give one of 10ms or more"));
        }
    }
    if args.tester.rate_max.is_some_and(|rate| rate.per_sec() < 1.0) {
        return Err(refused("--rate-max", "below one frame per second", "give 1 or more"));
    }
    if args.tester.line_rate.is_some_and(|rate| rate.bits_per_sec() == 0) {
        return Err(refused("--line-rate", "0 bit/s", "leave it out where there is no medium"));
    }
    Ok(())
}
