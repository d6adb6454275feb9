//! `linerate udp --search` against `linerate serve` over loopback, both as a shell starts them.
//! Rates are not judged: the machine is busy with other tests, and loopback has no capacity.

use std::io::{BufRead, BufReader};
use std::process::{Output, Stdio};

use crate::support::{
    Server, check_wrong_use, command, end_of, interrupt, linerate, stderr, stdout,
};
use serde_json::Value;

fn search(server: &Server, flags: &[&str]) -> Output {
    let fixed = ["udp", "127.0.0.1", "--search", "--no-save", "--port", &server.port];
    let output = linerate(&[&fixed[..], flags].concat());
    assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
    output
}

#[test]
fn the_parameters_of_a_search_reach_the_plan_and_the_others_are_those_of_rfc_9097() {
    let server = Server::start(&[]);
    let plan = |flags: &[&str]| {
        let output =
            search(&server, &[flags, &["--time=300ms", "--interval=100ms", "-J"]].concat());
        let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert!(record["plan"]["pace_bps"].is_null());
        assert_eq!(record["plan"]["interval_ns"], 100_000_000);
        record["plan"]["search"].clone()
    };
    let usual = plan(&[]);
    let table = [
        ("feedback_ns", 50_000_000),
        ("delay_low_ns", 30_000_000),
        ("delay_high_ns", 90_000_000),
        ("sequence_errors_max", 10),
        ("congested_after", 3),
        ("fast_rows", 10),
    ];
    for (key, value) in table {
        assert_eq!(usual[key], value, "{key}");
    }
    assert_eq!(usual["delay"], "round_trip");
    assert!(usual["rate_max"].is_null());
    let other = plan(&[
        "--search-with=feedback=20ms,low=5ms,high=10ms",
        "--search-with=errors=1,confirm=2,step=5,delay=one-way",
        "--bitrate=30M",
    ]);
    let expected = serde_json::json!({
        "feedback_ns": 20_000_000, "delay": "one_way", "delay_low_ns": 5_000_000,
        "delay_high_ns": 10_000_000, "sequence_errors_max": 1, "congested_after": 2,
        "fast_rows": 5, "rate_max": 30_000_000,
    });
    assert_eq!(other, expected);
}

#[test]
fn what_is_no_search_is_wrong_use() {
    for flags in [
        &["--bidir"][..],
        &["--parallel=2"],
        &["--bytes=1M"],
        &["--blocks=9"],
        &["--omit=1s"],
        &["--search-with=colour=red"],
        &["--search-with=low=95ms"],
        &["--interval=60ms"],
        &["--via=iperf3"],
    ] {
        check_wrong_use(&[&["udp", "127.0.0.1", "--port=1", "--search"], flags].concat(), &[]);
    }
    check_wrong_use(&["udp", "127.0.0.1", "--search-with=low=5ms"], &["--search"]);
}

#[test]
fn people_get_a_line_a_sub_interval_and_the_result_in_a_sentence_both_ways() {
    let server = Server::start(&[]);
    for further in [&[][..], &["--reverse"]] {
        let flags = ["--time=600ms", "--interval=200ms", "--bitrate=20M", "--verbose"];
        let text = stdout(&search(&server, &[&flags, further].concat()));
        for part in [
            "interval         IP packets       offered",
            "0.00-0.20 s",
            "UDP capacity search with 127.0.0.1",
            "at most 20 Mbit/s offered",
            "maximum IP capacity",
            "packets of 1500 bytes",
            "by round trips",
            "no ceiling (loopback)",
        ] {
            assert!(text.contains(part), "'{part}' is not in {text}");
        }
        assert!(!text.contains("lost/sent"), "{text}");
    }
}

/// Every sub-interval is told as it ends and is in the record, joined with what was offered.
#[test]
fn events_and_record_have_the_same_sub_intervals() {
    let server = Server::start(&[]);
    for further in [&[][..], &["--reverse"]] {
        let flags = ["--time=800ms", "--interval=200ms", "--bitrate=20M", "--jsonl"];
        let text = stdout(&search(&server, &[&flags, further].concat()));
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let told = lines.iter().filter(|line| line["event"] == "sub_interval");
        let told: Vec<&Value> = told.map(|line| &line["data"]["received"]).collect();
        let record = &lines.last().expect("the record")["data"];
        let rows = record["search"]["sub_intervals"].as_array().expect("a list");
        let kept: Vec<&Value> = rows.iter().map(|row| &row["received"]).collect();
        assert_eq!(told, kept);
        assert!(!kept.is_empty());
        assert!(record["search"]["trials"].as_array().is_some_and(|it| !it.is_empty()));
        let summary = record["summary"].as_array().expect("a list");
        let row = summary.iter().find(|row| row["metric"] == "ip_capacity_max_bps");
        let most = rows.iter().filter_map(|row| row["ip_bps"].as_f64()).fold(0.0, f64::max);
        assert_eq!(row.and_then(|row| row["value"].as_f64()), Some(most));
    }
}

#[test]
fn an_interrupted_search_tells_what_it_found_until_then() {
    let server = Server::start(&[]);
    for further in [&[][..], &["--reverse"]] {
        let mut child = command(&["udp", "127.0.0.1", "--search", "--port", &server.port])
            .args(["--time=60s", "--interval=100ms", "--bitrate=10M", "--no-save"])
            .args(further)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let stdout = child.stdout.take().expect("standard output is a pipe");
        let mut lines = BufReader::new(stdout).lines().map_while(Result::ok);
        assert!(lines.any(|line| line.starts_with("0.10-0.20 s")), "a sub-interval passed");
        interrupt(&child);
        let found = lines.any(|line| line.contains(" of IP packets "));
        assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(130));
        assert!(found, "no headline");
    }
}
