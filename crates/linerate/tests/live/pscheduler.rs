//! The programs of `docs/pscheduler`, each called as pScheduler does: JSON in, JSON out. A test
//! goes to a server on loopback. They take Python; without it this says `skipped: reason`.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Server, free_port, stderr};
use serde_json::{Value, json};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/pscheduler/linerate/");

fn no_python() -> bool {
    let found =
        Command::new("python3").arg("--version").output().is_ok_and(|it| it.status.success());
    if !found {
        println!("skipped: python3 is not there");
    }
    !found
}

/// A program's output for a document.
fn called(program: &str, configuration: &Path, document: &str) -> Output {
    let mut child = Command::new(format!("{FOLDER}{program}"))
        .env("LINERATE_PSCHEDULER", configuration)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let mut input = child.stdin.take().expect("a pipe");
    // One that does not read its input has ended.
    let _ = input.write_all(document.as_bytes());
    drop(input);
    child.wait_with_output().expect("it ends")
}

fn answer(program: &str, configuration: &Path, document: &Value) -> Value {
    let output = called(program, configuration, &document.to_string());
    assert_eq!(output.status.code(), Some(0), "{program}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn it_says_what_it_can_run_and_for_how_long() {
    if no_python() {
        return;
    }
    let none = Path::new("/nonexistent/linerate.json");
    let tool = answer("enumerate", none, &Value::Null);
    assert_eq!(
        (&tool["name"], &tool["tests"]),
        (&json!("linerate"), &json!(["throughput", "rtt", "latency"]))
    );
    let rate = json!({ "type": "throughput", "spec": {
        "schema": 1, "source": "192.0.2.1", "dest": "192.0.2.2", "duration": "PT20S",
        "omit": "PT5S",
    }});
    assert_eq!(answer("can-run", none, &rate), json!({ "can-run": true }));
    // 20 s and 5 s, and 8 s beside.
    assert_eq!(answer("duration", none, &rate), json!({ "duration": "PT33S" }));
    let trip = json!({ "type": "rtt", "spec": { "dest": "192.0.2.2", "count": 10,
        "interval": "PT0.5S", "timeout": "PT2S" }});
    // Nine intervals of 0.5 s, 2 s for the last answer, 8 s beside.
    assert_eq!(answer("duration", none, &trip), json!({ "duration": "PT14.5S" }));
    let one_way = json!({ "type": "latency", "spec": { "schema": 4, "dest": "192.0.2.2",
        "packet-count": 11, "packet-interval": 0.5, "packet-timeout": 3, "output-raw": false }});
    assert_eq!(answer("can-run", none, &one_way), json!({ "can-run": true }));
    // Ten intervals of 0.5 s, 3 s for the last answer, 8 s beside.
    assert_eq!(answer("duration", none, &one_way), json!({ "duration": "PT16S" }));
    for (spec, reason) in [
        (json!({ "dest": "h", "output-raw": true }), "linerate does not take output-raw"),
        (
            json!({ "dest": "h", "data-ports": { "lower": 1, "upper": 2 } }),
            "linerate does not take data-ports",
        ),
        (json!({ "dest": "h", "protocol": "owamp" }), "of protocols linerate takes stamp here"),
        (json!({ "dest": "h", "flip": true }), "flip takes a source"),
        (
            json!({ "dest": "h", "ip-tos": 184, "reverse": true, "packet-padding": 5 }),
            "the class of answers takes a packet-padding of 28 and more",
        ),
    ] {
        let found = answer("can-run", none, &json!({ "type": "latency", "spec": spec }));
        assert_eq!(found, json!({ "can-run": false, "reasons": [reason] }));
    }
    for (spec, reason) in [
        (json!({ "dest": "h", "fq-rate": 5 }), "linerate does not take fq-rate"),
        (json!({ "source": "h" }), "the spec has no dest"),
        (json!({ "dest": "h", "udp": true, "mss": 1000 }), "mss is none of UDP"),
    ] {
        let found = answer("can-run", none, &json!({ "type": "throughput", "spec": spec }));
        assert_eq!(found, json!({ "can-run": false, "reasons": [reason] }));
    }
    let other = answer("can-run", none, &json!({ "type": "dns", "spec": {} }));
    assert_eq!(other["can-run"], false);
    let server = json!({ "participant": 1, "test": rate });
    assert_eq!(answer("participant-data", none, &server), json!({ "schema": 1, "port": 5210 }));
    for document in ["{", "[]", "{\"type\": \"rtt\", \"spec\": {\"deadline\": \"P1Y\"}}"] {
        let output = called("duration", none, document);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{document}");
        assert!(said.starts_with("linerate duration: ") && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn a_throughput_test_runs_and_its_result_is_the_one_of_the_test() {
    if no_python() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let configuration = directory.path().join("linerate.json");
    let program = env!("CARGO_BIN_EXE_linerate");
    let text = json!({ "program": program, "port": 9 }).to_string();
    std::fs::write(&configuration, text).expect("room");
    let server = Server::start(&[]);
    let port: u16 = server.port.parse().expect("a port");
    let test = json!({ "type": "throughput", "spec": {
        "schema": 1, "dest": "127.0.0.1", "duration": "PT2S", "bandwidth": 4_000_000, "parallel": 2,
    }});
    let asked = |port: u16| {
        json!({ "id": "x", "participant": 0, "participant-data": [{}, { "port": port }],
            "schedule": { "start": "2026-11-24T00:00:00Z" }, "test": test })
    };
    let run = answer("run", &configuration, &asked(port));
    assert_eq!(run["succeeded"], true, "{run}");
    let second = answer("run", &configuration, &json!({ "participant": 1, "test": test }));
    let all = json!({ "test": test, "results": [run, second] });
    let result = answer("merged-results", &configuration, &all);
    let whole = &result["summary"]["summary"];
    let of = |key: &str| whole[key].as_f64().unwrap_or_else(|| panic!("{key}: {result}"));
    // Two streams of 4 Mbit/s; a busy machine is slower, and no pace is faster by a tenth for 2 s.
    assert!(of("throughput-bits") > 0.0 && of("throughput-bits") < 8.8e6, "{whole}");
    assert!((of("throughput-bytes") * 8.0 - of("throughput-bits")).abs() < 1.0);
    assert!(of("receiver-throughput-bits") > 0.0 && of("end") > 0.0, "{whole}");
    let streams = result["summary"]["streams"].as_array().expect("streams");
    let sum: f64 = streams.iter().filter_map(|it| it["throughput-bits"].as_f64()).sum();
    assert_eq!(streams.len(), 2);
    assert!((sum - of("throughput-bits")).abs() < 1.0, "{result}");
    let intervals = result["intervals"].as_array().expect("intervals");
    assert!(!intervals.is_empty(), "{result}");
    assert!(intervals.iter().all(|it| it["streams"].is_array() && it["summary"].is_object()));
    // Port 9 of loopback has nobody: a run that failed says so, and so does its merged result.
    let failed = answer("run", &configuration, &asked(9));
    assert_eq!(failed["succeeded"], false);
    let all = json!({ "test": test, "results": [failed, Value::Null] });
    let result = answer("merged-results", &configuration, &all);
    let error = result["error"].as_str().unwrap_or_default();
    assert!(result["succeeded"] == false && error.contains("127.0.0.1:9"), "{result}");
}

/// A result as the schema of the test latency has it: counts from 0 on, and numbers of packets by
/// decimal numbers (pScheduler 5.2, pscheduler-test-latency/latency/validate.py).
fn check_latency(result: &Value) -> f64 {
    let object = result.as_object().expect("an object");
    let decimal = |key: &str| {
        key.parse::<f64>().is_ok() && key.chars().all(|it| "+-.0123456789".contains(it))
    };
    for (key, value) in object {
        let fits = match key.as_str() {
            "succeeded" => value.is_boolean(),
            "diags" => value.is_string(),
            "schema" => *value == 1,
            "max-clock-error" => value.is_number(),
            "histogram-latency" => value
                .as_object()
                .is_some_and(|it| it.iter().all(|(key, count)| decimal(key) && count.is_u64())),
            key => key.starts_with("packets-") && value.is_u64(),
        };
        assert!(fits, "{key}: {value}");
    }
    assert_eq!((object.len(), &result["succeeded"]), (10, &json!(true)), "{result}");
    let packets = result["histogram-latency"].as_object().expect("an object");
    packets.values().filter_map(Value::as_f64).sum()
}

fn latency(configuration: &Path, spec: &Value) -> Value {
    let asked = json!({ "participant": 0, "participant-data": [{}],
        "test": { "type": "latency", "spec": spec } });
    let run = answer("run", configuration, &asked);
    answer("merged-results", configuration, &json!({ "test": asked["test"], "results": [run] }))
}

#[test]
fn a_latency_test_runs_both_ways_and_its_result_is_the_one_of_the_test() {
    if no_python() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let configuration = directory.path().join("linerate.json");
    let port = free_port();
    let program = env!("CARGO_BIN_EXE_linerate");
    let text = format!("{{\"program\": \"{program}\", \"stamp-port\": {port}}}");
    std::fs::write(&configuration, text).expect("room");
    let _server = Server::start(&["--stamp-port", &port]);
    let usual = json!({ "schema": 4, "source": "127.0.0.1", "dest": "127.0.0.1",
        "packet-count": 40, "packet-interval": 0.005, "ip-tos": 184, "bucket-width": 0.0001 });
    let with = |more: Value| {
        let mut spec = usual.clone();
        spec.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        latency(&configuration, &spec)
    };
    for (more, words) in [
        (json!({}), ["-p ", "--dscp 46"]),
        (json!({ "packet-padding": 100, "source": "localhost" }), ["-s 144", "-I 127.0.0.1"]),
        (json!({ "flip": true }), ["stamp 127.0.0.1", "--reply-dscp 46"]),
        (json!({ "reverse": true, "packet-timeout": 2 }), ["-W 2000000000ns", "--reply-dscp 46"]),
    ] {
        let result = with(more.clone());
        let told = check_latency(&result);
        let said = result["diags"].as_str().expect("a text");
        assert!(words.iter().all(|part| said.contains(part)), "{words:?}: {said}");
        // One host has one clock, whose delays are right; a busy host may lose some.
        assert!(said.contains("clocks: synchronised"), "{said}");
        assert!(told > 0.0 && told <= 40.0, "{more}: {result}");
        let count = |key: &str| result[key].as_f64().expect("a number");
        assert!(
            (count("packets-sent") - count("packets-lost") - count("packets-received")).abs() < 0.5
        );
        assert!(count("packets-received") >= told, "{result}");
    }
    let dead = latency(&configuration, &json!({ "dest": "127.0.0.1", "ctrl-port": 9 }));
    let error = dead["error"].as_str().unwrap_or_default();
    assert!(dead["succeeded"] == false && error.contains("nothing reflects STAMP"), "{dead}");
}

/// A record as linerate stores it, of ten probes: the last of three lost ones was behind the last
/// answer.
fn record(clocks: &Value) -> Value {
    let row = |metric: &str, way: Option<&str>, value: f64, n: u64| {
        json!({ "metric": metric, "stat": "value", "value": value, "n": n, "direction": way,
            "flow": null, "payload_bytes": 72 })
    };
    let series = |way: &str, values: [Option<f64>; 10]| {
        let metric = "owd_ns";
        json!({ "metric": metric, "direction": way, "values": values })
    };
    // There 1.25 ms and twice 1.2549, which is the same down to a hundredth of a bucket of 1 ms.
    let mut up = [None; 10];
    up[..3].copy_from_slice(&[1_250_000.0, 1_254_900.0, 1_254_900.0].map(Some));
    let mut down = [None; 10];
    down[..2].copy_from_slice(&[-4_000.0, 3_000_000.0].map(Some));
    json!({ "id": "x", "status": "ok", "clocks": [clocks],
        "summary": [
            row("loss_one_way_ratio", Some("up"), 1.0 / 9.0, 9),
            row("loss_one_way_ratio", Some("down"), 1.0 / 8.0, 8),
            row("reordered_one_way", Some("up"), 2.0, 7),
            row("reordered_one_way", Some("down"), 0.0, 7),
            row("probes_sent", None, 10.0, 10), row("probes_answered", None, 7.0, 10),
            row("duplicates", None, 1.0, 7), row("reordered", None, 2.0, 7),
        ],
        "series": [series("up", up), series("down", down)] })
}

#[test]
fn a_latency_result_says_what_the_record_says_of_one_way_and_of_the_clocks() {
    if no_python() {
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| directory.path().join(name);
    // The program prints a record in place of measuring.
    let program = at("program");
    std::fs::write(&program, format!("#!/bin/sh\ncat {}\n", at("record").display())).expect("room");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&program, mode).expect("ours");
    std::fs::write(at("linerate.json"), json!({ "program": program }).to_string()).expect("room");
    let found = |clocks: Value, spec: Value| {
        std::fs::write(at("record"), record(&clocks).to_string()).expect("room");
        latency(&at("linerate.json"), &spec)
    };
    let clocks = |state: &str| {
        let error_ns = 250_000;
        json!({ "state": state, "error_ns": error_ns, "claim_refuted": false, "stateful": true })
    };
    let counts = |of: &Value| {
        ["sent", "received", "lost", "duplicated", "reordered"]
            .map(|it| of[format!("packets-{it}")].as_u64().expect("a count"))
    };
    let there = found(clocks("synchronised"), json!({ "dest": "127.0.0.1" }));
    check_latency(&there);
    // One was lost there, one of unknown way counts with it; the answer to one was lost.
    assert_eq!(counts(&there), [10, 8, 2, 1, 2], "{there}");
    assert_eq!(there["histogram-latency"], json!({ "1.25": 3 }));
    assert_eq!(there["max-clock-error"], 0.25);
    let said = there["diags"].as_str().expect("a text");
    assert!(said.contains("of 1 lost packets the way is not known"), "{said}");
    let spec = json!({ "dest": "127.0.0.1", "reverse": true, "bucket-width": 0.01 });
    let back = found(clocks("offset_estimated"), spec);
    check_latency(&back);
    assert_eq!(counts(&back), [9, 7, 2, 1, 0], "{back}");
    // 3 ms in buckets of 10 ms, and -0.0004 of one, which is none.
    assert_eq!(back["histogram-latency"], json!({ "0.30": 1, "0.00": 1 }));
    assert!(back["diags"].as_str().is_some_and(|said| said.contains("offset estimated")));
    let none = found(clocks("unsynchronised"), json!({ "dest": "127.0.0.1" }));
    let error = none["error"].as_str().unwrap_or_default();
    assert!(none["succeeded"] == false && error.contains("clocks of both ends"), "{none}");
}
