//! What `linerate ping` prints, keeps and exits with, by UDP to a server on loopback, so that
//! nothing here needs a privilege. Times are not judged.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{
    Server, check_wrong_use, command, end_of, ends_with, free_port, interrupt, linerate, stderr,
    stdout,
};
use serde_json::Value;

/// Pings a server on loopback by UDP; what goes to standard output.
fn udp(server: &Server, code: i32, flags: &[&str]) -> String {
    let fixed = ["ping", "--udp", "127.0.0.1", "--port", &server.port, "--no-save"];
    ends_with(code, &[&fixed[..], flags].concat())
}

/// The value of the summary row of `metric`, whole-run values first.
fn value(record: &Value, metric: &str) -> f64 {
    let rows = record["summary"].as_array().expect("a summary");
    let row = rows.iter().find(|row| row["metric"] == metric).expect("a row");
    row["value"].as_f64().expect("a number")
}

#[test]
fn a_paced_ping_prints_a_line_for_each_answer_and_the_summary() {
    let server = Server::start(&[]);
    // Answers count however late a busy host takes them, and in whatever order it does.
    let text = udp(&server, 0, &["-c", "3", "-i", "5ms", "-W", "30s", "-v"]);
    let mut lines: Vec<&str> = text.lines().collect();
    lines[1..4].sort_unstable();
    assert!(lines[0].starts_with("PING 127.0.0.1 (127.0.0.1:"), "{text}");
    assert!(lines[0].contains("open loop: one every 5ms"), "{text}");
    for (sequence, line) in lines[1..4].iter().enumerate() {
        let start = format!("56 bytes from 127.0.0.1: seq={sequence} ttl=64 time=");
        assert!(line.starts_with(&start), "{text}");
    }
    assert!(text.contains("3 sent, 3 answered, 0 % lost"), "{text}");
    assert!(text.contains("round-trip min/avg/max/stddev = "), "{text}");
    assert!(text.contains("no figure is printed finer"), "{text}");
}

#[test]
fn several_sizes_stand_in_one_table() {
    let server = Server::start(&[]);
    let text = udp(&server, 0, &["-f", "-c50", "-s56,500,1500", "--verbose"]);
    let row = |name: &str| {
        let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name));
        line.unwrap_or_default().split_whitespace().collect::<Vec<_>>()
    };
    assert!(text.contains("\nping of 127.0.0.1 by UDP echo: "), "{text}");
    assert_eq!(row("payload, bytes"), ["56", "500", "1500"], "{text}");
    assert_eq!(row("sent"), ["50", "50", "50"], "{text}");
}

#[test]
fn a_report_prints_the_summary_again() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let fixed = ["ping", "--udp", "127.0.0.1", "-q", "-p", &server.port, "--store", &store];
    for flags in [&["-c2", "-i5ms", "-W30s"][..], &["-f", "-c5", "-s56,500"]] {
        let said = ends_with(0, &[&fixed[..], flags].concat());
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(!said.contains('\u{1b}'), "no colour without a terminal: {said}");
        assert!(ends_with(0, &["report", "last", "--store", &store]).starts_with(&said));
        let always = ends_with(0, &[&fixed[..], flags, &["--color", "always"]].concat());
        assert!(always.starts_with("\u{1b}[1m\u{1b}[3"), "{always}");
    }
}

#[test]
fn a_result_is_kept_unless_told_otherwise() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let fixed = ["ping", "--udp", "127.0.0.1", "-f", "-c5", "-p", &server.port, "--store", &store];
    ends_with(0, &fixed);
    let rows = ends_with(0, &["history", "--json", "--store", &store]);
    let rows: Value = serde_json::from_str(&rows).expect("one JSON array");
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!(rows[0]["kind"], "ping");
}

#[test]
fn an_interrupted_ping_prints_its_summary_and_exits_0_when_it_was_answered() {
    let server = Server::start(&[]);
    for (pace, first) in [("-f", "progress"), ("-i10ms", "reply")] {
        let fixed = ["ping", "--udp", "127.0.0.1", "-p", &server.port, "--no-save", "--jsonl"];
        let mut command = command(&fixed);
        let mut child =
            command.arg(pace).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut event = || {
            let line = lines.next()?.expect("UTF-8");
            Some(serde_json::from_str::<Value>(&line).expect("one object a line"))
        };
        while event().expect("more events")["event"] != first {}
        interrupt(&child);
        let last = std::iter::from_fn(event).last().expect("the record");
        let status = end_of(&mut child).expect("it ends soon");
        assert_eq!(status.code(), Some(0));
        let record = &last["data"];
        assert_eq!(record["status"], "ok", "an endless ping ends by being stopped");
        let (sent, answered) = (value(record, "probes_sent"), value(record, "probes_answered"));
        assert!(answered > 0.0 && sent >= answered, "{sent} sent, {answered} answered");
    }
}

#[test]
fn nobody_there_is_1_when_silent_and_3_when_refused() {
    // A bound socket that nobody reads is silent; a closed port refuses.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let port = silent.local_addr().expect("an address").port().to_string();
    let ping = |port: &str| {
        linerate(&["ping", "--udp", "127.0.0.1", "-c1", "-W50ms", "--no-save", "--port", port])
    };
    let output = ping(&port);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("no answer from 127.0.0.1, 1 of 1 lost \u{b7} bad"), "{text}");
    let output = ping(&free_port());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("start `linerate serve` there"), "{}", stderr(&output));
}

#[test]
fn wrong_flags_are_refused_in_one_line() {
    check_wrong_use(&["ping", "127.0.0.1", "-s", "big"], &["--size"]);
    check_wrong_use(&["ping", "127.0.0.1", "--dscp", "64"], &["--dscp"]);
    check_wrong_use(&["ping", "127.0.0.1", "-t", "0"], &["--ttl"]);
    check_wrong_use(&["ping", "127.0.0.1", "-i", "5 parsecs"], &["--interval", "parsecs"]);
    check_wrong_use(&["ping", "-4", "-6", "127.0.0.1"], &["--ipv6"]);
}

#[test]
fn doctor_examines_the_clock_and_names_remedies() {
    let text = ends_with(0, &["doctor", "clock"]);
    for part in ["claimed resolution", "true step", "echo on 127.0.0.1", "printed no finer than"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    // A host that other tests keep busy is unfit, which is 1.
    let (text, json) = [&["doctor"][..], &["doctor", "--json"]]
        .map(|words| {
            let output = linerate(words);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
            stdout(&output)
        })
        .into();
    assert!(text.starts_with("state  check ") && text.contains("printed no finer than"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(['O', 'W', 'B'])).collect();
    assert!(rows.len() >= 17, "{text}");
    let json: Value = serde_json::from_str(&json).expect("JSON");
    assert!(json["clock"]["tick_ns"].as_f64().is_some_and(|tick| tick >= 1.0), "{json}");
    assert!(json["checks"].as_array().is_some_and(|checks| checks.len() >= 17), "{json}");
}

#[test]
fn a_ping_is_held_to_an_assertion() {
    let server = Server::start(&[]);
    let text = udp(
        &server,
        0,
        &["-c", "2", "-i", "5ms", "-W", "30s", "--assert", "rtt < 30 s and loss <= 50 %"],
    );
    assert!(text.contains("assertion met: rtt < 30 s"), "{text}");
    udp(&server, 7, &["-c", "2", "-i", "5ms", "-W", "30s", "--assert", "rtt.p99 < 1 ns"]);
}
