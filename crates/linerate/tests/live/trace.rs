//! `linerate trace` on loopback, and over a router in a laboratory. Times are not judged.

use crate::support::{self, Server, check_wrong_use, ends_with, linerate, no_laboratory, stdout};
use serde_json::Value;

fn record(flags: &[&str]) -> Value {
    let fixed = ["trace", "127.0.0.1", "--json", "--no-save", "--interval", "20ms"];
    let json = ends_with(0, &[&fixed[..], flags].concat());
    serde_json::from_str(&json).expect("a record")
}

#[test]
fn this_host_is_one_hop_away() {
    let found = record(&["--count", "3", "--max-hops", "5", "--timeout", "500ms"]);
    let trace = &found["trace"];
    assert_eq!((&trace["reached"], &found["plan"]["hops_max"]), (&true.into(), &5.into()));
    let hops = trace["hops"].as_array().expect("hops");
    assert_eq!(hops.len(), 1);
    assert_eq!(
        (&hops[0]["nodes"][0]["address"], &hops[0]["is_end"]),
        (&"127.0.0.1".into(), &true.into())
    );
    let rtt = hops[0]["samples"][0]["rtt_ns"].as_u64().expect("answered");
    assert!(rtt > 0 && rtt < 500_000_000, "{rtt}");
    assert_eq!(found["plan"]["timeout_ns"], 500_000_000);
}

#[test]
fn every_flag_is_in_the_plan() {
    let flags =
        ["-c1", "--dscp", "46", "--no-paths", "--no-mtu", "--probe-port", "40000", "--ipv4"];
    let plan = record(&[&flags[..], &["--bind", "127.0.0.1"]].concat())["plan"].clone();
    assert_eq!((&plan["kind"], &plan["probes"]), (&"trace".into(), &"udp".into()));
    assert_eq!((&plan["dscp"], &plan["port"]), (&46.into(), &40_000.into()));
    assert_eq!((&plan["paths"], &plan["mtu"]), (&false.into(), &false.into()));
    assert_eq!((&plan["bind"], &plan["family"]), (&"127.0.0.1".into(), &"v4".into()));
    let output =
        linerate(&["trace", "127.0.0.1", "--icmp", "-c2", "-i20ms", "--json", "--no-save"]);
    // A host may allow no ICMP socket to its users.
    if output.status.code() == Some(0) {
        let found: Value = serde_json::from_str(&stdout(&output)).expect("a record");
        assert_eq!(found["plan"]["probes"], "icmp");
        assert_eq!(found["trace"]["reached"], true);
    }
    check_wrong_use(&["trace", "127.0.0.1", "--tcp", "--icmp"], &["--tcp"]);
    check_wrong_use(&["trace", "127.0.0.1", "--flows", "97", "--no-save"], &["flows", "96"]);
    check_wrong_use(&["trace", "127.0.0.1", "--flows", "0", "--no-save"], &["--flows 1 to 96"]);
    for port in ["--tcp=99999", "--tcp=0", "--probe-port=0", "--port=http"] {
        check_wrong_use(&["trace", "127.0.0.1", port], &["a port is 1 to 65535"]);
    }
    check_wrong_use(&["trace", "127.0.0.1", "--back", "--no-back"], &["--no-back"]);
    check_wrong_use(&["trace", "127.0.0.1", "--reverse"], &["--load"]);
    check_wrong_use(&["trace", "127.0.0.1", "--parallel", "2"], &["--load"]);
    check_wrong_use(&["trace", "127.0.0.1:80"], &["no ports"]);
    check_wrong_use(&["trace", "127.0.0.1", "-c0", "--no-save"], &["count", "-c 1"]);
}

#[test]
fn a_trace_is_named_kept_and_read_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_str().expect("UTF-8").to_owned();
    let (store, file) = (path("store"), path("trace.json"));
    let flags = ["--name", "first", "--tag", "k=v", "--store", &store, "--output", &file, "-c2"];
    let fixed = ["trace", "127.0.0.1", "-i20ms", "--no-mtu", "--no-paths"];
    let quiet = ends_with(0, &[&fixed[..], &flags, &["--quiet"]].concat());
    assert!(quiet.starts_with("1 hop to 127.0.0.1, RTT ") && quiet.lines().count() == 1, "{quiet}");
    let text = std::fs::read_to_string(&file).expect("written");
    let kept: Value = serde_json::from_str(&text).expect("a record");
    assert_eq!((&kept["name"], &kept["tags"]["k"]), (&"first".into(), &"v".into()));
    let again = ends_with(0, &["report", "first", "--store", &store]);
    assert!(again.contains("1 hop to 127.0.0.1") && again.contains("127.0.0.1"), "{again}");
    let verbose = ends_with(0, &[&fixed[..], &["-c1", "--verbose", "--no-save"]].concat());
    assert!(verbose.contains("Trace to 127.0.0.1"), "{verbose}");
    let lines = ends_with(0, &[&fixed[..], &["-c1", "--jsonl", "--no-save"]].concat());
    assert!(lines.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{lines}");
    check_wrong_use(&["trace", "--ipv4", "--ipv6", "127.0.0.1"], &["--ipv6"]);
}

#[test]
fn a_load_is_a_part_of_the_record_and_has_rounds() {
    let server = Server::start(&[]);
    let load = ["--load", "--reverse", "--parallel", "2", "--time", "2s", "--port", &server.port];
    let found = record(&[&load[..], &["-c", "5", "--no-paths", "--no-mtu"]].concat());
    assert_eq!(found["parts"][0]["plan"]["kind"], "tcp");
    assert_eq!(found["parts"][0]["plan"]["directions"], "down");
    let samples = found["trace"]["hops"][0]["samples"].as_array().expect("samples");
    let of = |phase: &str| samples.iter().filter(|it| it["phase"] == phase).count();
    assert!(of("idle") == 5 && of("loaded") > 5, "{} and {}", of("idle"), of("loaded"));
}

#[test]
fn several_flows_have_ports_and_rounds_of_their_own() {
    let found = record(&["-c4", "--flows", "3", "--no-mtu", "--no-paths", "--no-back"]);
    assert_eq!((&found["plan"]["flows"], &found["plan"]["back"]), (&3.into(), &Value::Null));
    let mut ports = found["trace"]["flow_ports"].as_array().expect("ports").clone();
    ports.dedup();
    assert_eq!(ports.len(), 3);
    let samples = found["trace"]["hops"][0]["samples"].as_array().expect("samples");
    for flow in 0..3 {
        let of_flow = samples.iter().filter(|it| it["flow"] == flow && it["phase"] == "idle");
        assert_eq!(of_flow.count(), 4, "flow {flow}");
    }
}

#[test]
fn first_segments_of_tcp_are_answered_by_a_closed_port_and_by_an_open_one() {
    let server = Server::start(&[]);
    for (port, number) in [("--tcp=9", 9), (&*format!("--tcp={}", server.port), 0)] {
        let fixed = ["trace", "127.0.0.1", "--json", "--no-save", "-c3", "-i100ms", "--no-mtu"];
        let output = linerate(&[&fixed[..], &[port, "--no-back", "--no-paths"]].concat());
        if output.status.code() == Some(3) {
            // Raw sockets take CAP_NET_RAW.
            assert!(support::stderr(&output).contains("CAP_NET_RAW"));
            return;
        }
        let found: Value = serde_json::from_str(&stdout(&output)).expect("a record");
        assert_eq!(found["plan"]["probes"], "tcp");
        assert!(number == 0 || found["plan"]["port"] == number);
        let hops = found["trace"]["hops"].as_array().expect("hops");
        assert_eq!((hops.len(), &hops[0]["is_end"]), (1, &true.into()), "{port}");
        let samples = hops[0]["samples"].as_array().expect("samples");
        let rounds = samples.iter().filter(|it| it["phase"] == "idle");
        assert!(rounds.clone().count() == 3 && rounds.clone().all(|it| !it["rtt_ns"].is_null()));
    }
}

#[test]
fn a_server_traces_the_way_back_within_its_limits() {
    let server = Server::start(&[]);
    let fixed = ["--port", &server.port, "--no-mtu", "--no-paths"];
    let found = record(&[&fixed[..], &["-c", "100"]].concat());
    let back = &found["trace"]["back"];
    assert_eq!((&back["reached"], &back["target"]), (&true.into(), &"127.0.0.1".into()));
    let samples = back["hops"][0]["samples"].as_array().expect("samples");
    let rounds = samples.iter().filter(|it| it["phase"] == "idle").count();
    assert_eq!(rounds, 20, "a server sends 20 rounds at the most");
    let text =
        ends_with(0, &[&["trace", "127.0.0.1", "-c2", "-i20ms", "--no-save"][..], &fixed].concat());
    assert!(text.contains("1 hop back") && text.contains("The way back"), "{text}");
    let without = record(&[&fixed[..], &["-c2", "--no-back"]].concat());
    assert_eq!(without["trace"]["back"], Value::Null);
}

#[test]
fn a_target_that_nobody_said_to_run_linerate_is_sent_probes_only() {
    let quick = ["-c1", "--no-mtu", "--no-paths"];
    let asked = |flags: &[&str]| record(&[&quick[..], flags].concat())["plan"]["back"].clone();
    assert_eq!(asked(&[]), Value::Null);
    assert_eq!(asked(&["--back"]), 5210);
    assert_eq!(asked(&["--port", "9"]), 9);
    assert_eq!(asked(&["--port", "9", "--no-back"]), Value::Null);
}

#[test]
fn the_mtu_of_loopback_is_no_black_hole() {
    let found = record(&["-c2", "--no-paths"]);
    assert_eq!(found["trace"]["size_limits"], Value::Array(Vec::new()));
    assert!(found["trace"]["mtu_bytes"].as_u64().is_some_and(|bytes| bytes <= 65_535));
}

#[test]
fn a_router_stands_before_the_end_and_the_page_names_both() {
    if let Some(reason) = no_laboratory() {
        #[allow(clippy::print_stdout, reason = "a skipped test says so")]
        {
            println!("skipped: {reason}");
        }
        return;
    }
    let program = env!("CARGO_BIN_EXE_linerate");
    for end in ["10.0.2.1", "fd00:0:0:2::1"] {
        let traced = [program, "trace", end, "-c6", "-i50ms", "--no-save"];
        let said =
            ends_with(0, &[&["lab", "run", "router", "--on", "a", "--"], &traced[..]].concat());
        assert!(said.contains(&format!("2 hops to {end}, RTT ")), "{said}");
        assert!(said.contains("no loss"), "{said}");
        assert!(said.contains("packets of 1500 bytes come to the end"), "{said}");
    }
}
