//! The programs of `docs/pscheduler`, each called as pScheduler does: JSON in, JSON out. A test
//! goes to a server on loopback. They take Python; without it this says `skipped: reason`.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

mod support;

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};
use support::{Server, stderr};

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
        (&json!("linerate"), &json!(["throughput", "rtt"]))
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
