//! `linerate ping` and `linerate doctor` as a shell starts them, over loopback. Every flag reaches
//! the plan; figures are only held to what cannot be otherwise. Where neither ICMP socket is
//! allowed, the tests of ICMP are skipped.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{
    Server, check_wrong_use, command, end_of, ends_with, interrupt, linerate, no_laboratory,
    stderr, stdout,
};
use serde_json::Value;

/// Why ICMP cannot be sent here, if so.
fn no_icmp() -> Option<String> {
    let output = linerate(&["ping", "127.0.0.1", "--no-save", "--count", "1", "--quiet"]);
    (output.status.code() == Some(2)).then(|| stderr(&output).trim_end().to_owned())
}

/// The record of a ping to loopback that ends well.
fn record(flags: &[&str]) -> Value {
    let text = ends_with(0, &[&["ping", "127.0.0.1", "--no-save", "--json"], flags].concat());
    serde_json::from_str(&text).expect("--json prints one document")
}

/// The value of a summary row for one payload size.
fn value(record: &Value, metric: &str, stat: &str, size: u64) -> f64 {
    let rows = record["summary"].as_array().expect("a summary");
    let row = rows
        .iter()
        .find(|row| row["metric"] == metric && row["stat"] == stat && row["payload_bytes"] == size);
    row.and_then(|row| row["value"].as_f64()).unwrap_or(f64::NAN)
}

#[test]
fn every_flag_reaches_the_plan() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let record = record(&[
        "--count=3",
        "--size=56,100",
        "--interval=20ms",
        "--timeout=2s",
        "--deadline=5s",
        "--bind=127.0.0.1",
        "--ttl=9",
        "--dscp=8",
        "--ecn=ect1",
        "--poisson",
        "--dont-fragment",
        "--ipv4",
        "--wait-mode=block",
        "--no-kernel-stamps",
        "--warmup=1",
        "--samples",
        "--name=n",
        "--tag=site=b",
        "--quiet",
    ]);
    let plan = &record["plan"];
    assert_eq!(plan["count"], 3);
    assert_eq!(plan["sizes_bytes"], serde_json::json!([56, 100]));
    assert_eq!(plan["interval_ns"], 20_000_000);
    assert_eq!(plan["timeout_ns"], 2_000_000_000_u64);
    assert_eq!(plan["deadline_ns"], 5_000_000_000_u64);
    assert_eq!(plan["bind"], "127.0.0.1");
    assert_eq!(plan["ttl"], 9);
    assert_eq!(plan["dscp"], 8);
    assert_eq!(plan["ecn"], "ect1");
    assert!(plan["poisson_seed"].is_u64());
    assert!(plan.get("real_time").is_none());
    assert_eq!(plan["dont_fragment"], true);
    assert_eq!(plan["family"], "v4");
    assert_eq!(plan["wait"], "block");
    assert_eq!(plan["kernel_stamps"], false);
    assert_eq!(plan["warmup"], 1);
    assert_eq!(plan["keep_samples"], true);
    assert_eq!(plan["mode"], "paced");
    assert_eq!(record["name"], "n");
    assert_eq!(record["tags"]["site"], "b");
    for size in [56, 100] {
        assert_eq!(value(&record, "probes_sent", "value", size), 3.0);
        assert_eq!(value(&record, "probes_answered", "value", size), 3.0);
    }
}

/// Over a router: the next hop is not the target.
#[test]
fn past_the_kernel_every_probe_is_accounted_for_as_by_its_sockets() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    if let Err(reason) = linerate_sys::bpf::available() {
        println!("skipped: {reason}");
        return;
    }
    let program = env!("CARGO_BIN_EXE_linerate");
    for (end, label) in [("10.0.2.1", None), ("fd00:0:0:2::1", Some("--flow-label=0x12345"))] {
        let flags = ["--xdp", "--flood", "--count=500", "--size=56,1400", "--ttl=9", "--dscp=46"];
        let lab = ["lab", "run", "router", "--on", "a", "--", program, "ping", end];
        let more = ["--json", "--no-save", "--wait-mode=poll"];
        let words: Vec<&str> = [&lab[..], &flags, &more].concat();
        let words: Vec<&str> = words.into_iter().chain(label).collect();
        let found: Value = serde_json::from_str(&ends_with(0, &words)).expect("one document");
        assert_eq!(
            (&found["plan"]["xdp"], &found["plan"]["wait"]),
            (&true.into(), &"block".into())
        );
        for size in [56, 1400] {
            assert_eq!(value(&found, "probes_sent", "value", size), 500.0, "{end}");
            assert_eq!(value(&found, "probes_answered", "value", size), 500.0, "{end}");
            assert!(value(&found, "rtt_ns", "min", size) > 0.0, "{end}");
        }
    }
    let refused = linerate(&["serve", "--port=0", "--xdp", "nolink0"]);
    assert!(stderr(&refused).contains("answer pings by XDP on nolink0"), "{}", stderr(&refused));
    let refused = linerate(&["ping", "127.0.0.1", "--xdp", "--count=1", "--no-save"]);
    assert!(stderr(&refused).contains("AF_XDP"), "{}", stderr(&refused));
    check_wrong_use(&["ping", "127.0.0.1", "--flow-label", "0x100000"], &["0xfffff"]);
    check_wrong_use(&["ping", "127.0.0.1", "--flow-label", "1"], &["IPv4 has no flow label"]);
}

/// Real-time priority is had, or refused with what it takes.
#[test]
fn real_time_priority_is_had_or_its_privilege_is_named() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let flags = ["ping", "127.0.0.1", "--no-save", "--count=3", "--interval=10ms", "--real-time"];
    let output = linerate(&[&flags[..], &["--wait-mode=block", "--json"]].concat());
    match output.status.code() {
        Some(0) => {
            let record: Value = serde_json::from_str(&stdout(&output)).expect("one document");
            assert_eq!(record["plan"]["real_time"], true);
        }
        code => assert!(stderr(&output).contains("CAP_SYS_NICE"), "{code:?} {}", stderr(&output)),
    }
}

/// A record each, in the order of the targets, kept and plotted; a wrong name among them makes the
/// exit code.
#[test]
fn several_targets_have_a_record_each_and_one_table() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (store, plots) = (at("store.db"), at("plots"));
    let both = ["ping", "127.0.0.1", "127.0.0.2", "--count=3", "--interval=20ms"];
    let text = ends_with(0, &[&both[..], &["--store", &store]].concat());
    let rows: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("target")).collect();
    assert_eq!(rows.len(), 3, "{text}");
    assert!(rows[1].starts_with("127.0.0.1  ") && rows[2].starts_with("127.0.0.2  "), "{text}");
    let all = ends_with(0, &[&both[..], &["--no-save", "--json"]].concat());
    let all: Value = serde_json::from_str(&all).expect("--json prints one document");
    let hosts: Vec<&Value> =
        all.as_array().expect("an array").iter().map(|it| &it["plan"]["host"]).collect();
    assert_eq!(hosts, ["127.0.0.1", "127.0.0.2"]);
    // Paced probes are kept without --samples.
    let rtt = all[1]["series"].as_array().expect("series").iter();
    let rtt = rtt.filter(|series| series["metric"] == "rtt_ns").collect::<Vec<_>>();
    assert_eq!(rtt[0]["values"].as_array().map(Vec::len), Some(3));
    let lines = ends_with(0, &[&both[..], &["--no-save", "--jsonl"]].concat());
    let replies = lines.lines().filter(|line| line.contains("\"event\":\"reply\""));
    assert_eq!(replies.filter(|line| line.contains("\"target\":\"127.0.0.2\"")).count(), 3);
    ends_with(0, &["report", "@-1", "--svg", &plots, "--store", &store]);
    let delays = std::fs::read_to_string(std::path::Path::new(&plots).join("delay-over-time.svg"));
    assert!(delays.expect("a plot").contains("Round trip of each probe"));
    let wrong = linerate(&[&both[..], &["256.0.0.1", "--no-save", "--quiet"]].concat());
    assert_ne!(wrong.status.code(), Some(0), "{}", stderr(&wrong));
    let floods = linerate(&[&both[..], &["--flood", "--no-save"]].concat());
    assert_eq!(floods.status.code(), Some(2));
    assert!(stderr(&floods).contains("linerate compare"), "{}", stderr(&floods));
}

#[test]
fn a_flood_waits_for_each_answer_and_a_window_does_not() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let flood = record(&["--flood", "--count=200", "--kernel-stamps"]);
    assert_eq!(flood["plan"]["mode"], "flood");
    assert_eq!(flood["plan"]["kernel_stamps"], true);
    assert_eq!(value(&flood, "probes_answered", "value", 56), 200.0);
    let window = record(&["--window=4", "--count=200", "-M", "do"]);
    assert_eq!(window["plan"]["mode"], serde_json::json!({ "window": 4 }));
    assert_eq!(window["plan"]["dont_fragment"], true);
    let caveats = window["caveats"].as_array().expect("caveats");
    assert!(caveats.iter().any(|caveat| caveat["code"] == "self_load"), "{caveats:?}");
    let allowed = record(&["--count=1", "--pmtudisc=dont"]);
    assert_eq!(allowed["plan"]["dont_fragment"], false);
}

#[test]
fn the_smallest_mean_and_largest_times_are_in_order_and_above_zero() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let record = record(&["--flood", "--count=500", "--size=56"]);
    let rtt = |stat| value(&record, "rtt_ns", stat, 56);
    let (min, mean, max) = (rtt("min"), rtt("mean"), rtt("max"));
    assert!(0.0 < min && min <= mean && mean <= max, "{min} {mean} {max}");
    assert!(min <= rtt("p50") && rtt("p50") <= rtt("p99") && rtt("p99") <= max);
}

#[test]
fn a_line_for_each_answer_and_a_summary_are_printed() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let ping = ["ping", "127.0.0.1", "--no-save", "--count=3", "--interval=10ms"];
    let text = ends_with(0, &ping);
    assert!(text.lines().filter(|line| line.contains("127.0.0.1")).count() >= 3, "{text}");
    let quiet = ends_with(0, &[&ping[..], &["--quiet"]].concat());
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
    let shown = text.lines().filter(|line| !line.contains(" bytes")).count();
    assert!(shown <= 7, "{text}");
}

#[test]
fn lines_of_json_end_with_the_record_and_a_file_holds_the_same() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let file = tempfile::NamedTempFile::new().expect("a file for the record");
    let path = file.path().to_string_lossy().into_owned();
    let ping = [
        "ping",
        "127.0.0.1",
        "--no-save",
        "--count=2",
        "--interval=10ms",
        "--jsonl",
        "--output",
        &path,
    ];
    let text = ends_with(0, &ping);
    let last = text.lines().last().expect("several lines");
    let last: Value = serde_json::from_str(last).expect("one object a line");
    assert_eq!(last["event"], "record");
    let stored = std::fs::read_to_string(&path).expect("the file was written");
    let stored: Value = serde_json::from_str(&stored).expect("as JSON");
    assert_eq!(stored, last["data"]);
}

#[test]
fn udp_probes_are_answered_by_serve_without_any_privilege() {
    let server = Server::start(&[]);
    let record = record(&["--udp", "--port", &server.port, "--flood", "--count=100"]);
    assert_eq!(record["plan"]["transport"], "udp");
    assert_eq!(value(&record, "probes_answered", "value", 56), 100.0);
}

#[test]
fn no_answer_at_all_exits_1() {
    // Port 1 of loopback is nobody's, so no answer can come.
    let flags = ["--udp", "--port=1", "--count=2", "--interval=10ms", "--timeout=100ms"];
    let output = linerate(&[&["ping", "127.0.0.1", "--no-save"], &flags[..]].concat());
    let code = output.status.code();
    assert!(matches!(code, Some(1 | 3)), "{code:?}: {}", stderr(&output));
}

#[test]
fn an_unknown_host_exits_2_and_names_it() {
    // RFC 6761 §6.4: names under .invalid never resolve.
    let output = linerate(&["ping", "no-such-host.invalid"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(stderr(&output).contains("no-such-host.invalid"));
}

#[test]
fn ipv6_is_used_when_asked() {
    if std::net::TcpListener::bind("[::1]:0").is_err() || no_icmp().is_some() {
        println!("skipped: this host has no IPv6 loopback, or no ICMP socket is allowed");
        return;
    }
    let text = ends_with(0, &["ping", "::1", "--ipv6", "--count=1", "--json"]);
    let record: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!(record["plan"]["family"], "v6");
}

#[test]
fn an_endless_ping_ends_with_its_summary_when_interrupted() {
    if let Some(reason) = no_icmp() {
        println!("skipped: {reason}");
        return;
    }
    let mut child = command(&["ping", "127.0.0.1", "--no-save", "--interval=10ms", "--jsonl"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let pipe = child.stdout.take().expect("standard output is a pipe");
    let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"reply\"")), "an answer came");
    interrupt(&child);
    let last = lines.last().expect("the record comes last");
    assert!(end_of(&mut child).is_some(), "it ends");
    let last: Value = serde_json::from_str(&last).expect("one object a line");
    assert_eq!(last["event"], "record");
    assert!(value(&last["data"], "probes_answered", "value", 56) >= 1.0);
}

#[test]
fn the_doctor_tests_the_clock_and_the_host() {
    let clock = ends_with(0, &["doctor", "clock"]);
    assert!(clock.contains("step") || clock.contains("resolution"), "{clock}");
    let output = linerate(&["calibrate", "--json"]);
    let same: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    assert!(same["clock"]["reading_ns"].as_f64().unwrap_or(0.0) > 0.0, "{same}");
    assert!(ends_with(0, &["calibrate"]).starts_with("clock steps by "));
    let output = linerate(&["doctor", "--json"]);
    let document: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    // A reading takes some time, whatever the clock.
    assert!(document["clock"]["reading_ns"].as_f64().unwrap_or(0.0) > 0.0, "{document}");
    assert!(!document["checks"].as_array().expect("a list of checks").is_empty());
}
