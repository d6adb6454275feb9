//! `linerate bench` from its first frame to its report, over a cable that it makes. Figures are not
//! judged: counts must agree, documents must be there, a run that was stopped must go on.
//!
//! Needs the privilege to make network namespaces and to send raw frames; says so and passes
//! without it.

#![allow(clippy::print_stdout, reason = "tests that are skipped say so")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use serde_json::Value;
use support::{command, end_of, interrupt, linerate, no_laboratory, stderr, stdout};

/// A flood of a tenth of a second over a cable.
const CABLE: [&str; 9] =
    ["bench", "--device", "cable", "--tests", "flood", "--trial-time", "100ms", "--drain", "100ms"];

/// Why nothing can be measured here, if so; tried once for all tests.
fn cannot() -> bool {
    static REASON: OnceLock<Option<String>> = OnceLock::new();
    let reason = REASON.get_or_init(|| {
        no_laboratory().or_else(|| {
            let output = linerate(&[&CABLE[..], &["--sizes", "64", "--no-save", "-q"]].concat());
            (output.status.code() == Some(2)).then(|| stderr(&output).trim_end().to_owned())
        })
    });
    if let Some(reason) = reason {
        println!("skipped: {reason}");
    }
    reason.is_some()
}

/// How often a run is begun that other work on the machine spoils.
const RUNS_MAX: usize = 4;

/// Runs `linerate`; again where a busy machine left nothing to look at, as code 5 or 6 says. None
/// when each run was spoilt.
fn undisturbed(arguments: &[&str]) -> Option<Output> {
    for _ in 0..RUNS_MAX {
        let output = linerate(arguments);
        if !matches!(output.status.code(), Some(5 | 6)) {
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            return Some(output);
        }
        println!("spoilt: {}", stderr(&output).lines().last().unwrap_or_default());
    }
    println!("skipped: other work on this machine spoilt {RUNS_MAX} benchmarks");
    None
}

#[test]
fn records_count_what_was_sent_and_what_came() {
    if cannot() {
        return;
    }
    let flags = [&CABLE[..], &["--sizes", "64,512,9216", "--no-save", "--json"]].concat();
    let Some(output) = undisturbed(&flags) else { return };
    let records: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    let records = records.as_array().expect("an array of records");
    assert_eq!(records.len(), 3);
    for (record, size) in records.iter().zip([64, 512, 9216]) {
        assert_eq!(record["plan"]["frames"]["size_bytes"], size);
        assert_eq!(record["cell"]["study"], "bench");
        let trials = record["bench"]["trials"].as_array().expect("trials");
        assert!(!trials.is_empty());
        for trial in trials.iter().filter(|trial| trial["invalid"].is_null()) {
            let port = &trial["ports"][0];
            let count =
                |name: &str| port[name].as_u64().unwrap_or_else(|| panic!("{name}: {port}"));
            assert!(count("received") <= count("sent"), "{trial}");
        }
    }
}

#[test]
fn events_come_as_lines_and_the_records_last() {
    if cannot() {
        return;
    }
    let flags = [&CABLE[..], &["--sizes", "64", "--no-save", "--jsonl"]].concat();
    let Some(output) = undisturbed(&flags) else { return };
    let lines: Vec<Value> = stdout(&output)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON on each line"))
        .collect();
    let kinds: Vec<&str> = lines.iter().filter_map(|line| line["event"].as_str()).collect();
    assert_eq!(kinds.first(), Some(&"plan"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"record"), "{kinds:?}");
    assert!(kinds.contains(&"bench_trial"), "{kinds:?}");
}

#[test]
fn a_kept_run_has_a_report_and_its_labels_and_the_forms_that_were_asked_for() {
    if cannot() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).display().to_string();
    let (store, report, csv) = (path("s.db"), path("report"), path("out.csv"));
    let flags = [
        "--sizes", "64", "--store", &store, "--report", &report, "-o", &csv, "--name", "first",
        "--tag", "room=3",
    ];
    let Some(output) = undisturbed(&[&CABLE[..], &flags].concat()) else { return };
    let said = stderr(&output);
    for part in ["Benchmark of the cable", "about", "sent", "lost", "wrote "] {
        assert!(said.contains(part), "{part} is not in {said}");
    }
    assert!(Path::new(&report).join("index.html").exists());
    assert!(std::fs::read_to_string(&csv).expect("a table").lines().count() >= 1);
    let kept = linerate(&["history", "--store", &store]);
    assert!(stdout(&kept).contains("first"), "{}", stdout(&kept));
}

#[test]
fn the_report_of_a_router_has_the_headings_of_bradners_table() {
    if cannot() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let report = directory.path().join("report");
    let goal = "mine:final=100ms,sum=100ms,loss=0,width=50%";
    let flags = [
        "bench",
        "--device",
        "router",
        "--filters",
        "0,10",
        "--tests",
        "flood,throughput",
        "--goals",
        goal,
        "--rate-max",
        "2k",
        "--trial-time",
        "100ms",
        "--before",
        "0s",
        "--settle",
        "0s",
        "--sizes",
        "64",
        "--no-save",
        "--report",
        &report.display().to_string(),
    ];
    let Some(_) = undisturbed(&flags) else { return };
    let page = std::fs::read_to_string(report.join("index.html")).expect("a page");
    // As in 1990: size, theoretical, test, max rate, flood rate, then the filters.
    let (_, table) = page.split_once("<thead>").expect("a table");
    let (head, _) = table.split_once("</thead>").expect("a head");
    let mut rest = head;
    for heading in ["size", "theoretical", "test", "max rate", "flood rate", "10", "filters"] {
        let found = rest.split_once(heading);
        rest = found.unwrap_or_else(|| panic!("{heading} is not in its place in {head}")).1;
    }
    assert!(page.contains("<th scope=\"row\">64"), "{page}");
}

#[test]
fn a_run_that_is_stopped_shows_what_it_has_and_goes_on_later() {
    if cannot() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("s.db").display().to_string();
    let flags = ["--sizes", "64,128,256,512,1024", "--store", &store];
    let all = [&CABLE[..], &flags].concat();
    let mut child = command(&all).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let second = |line: &std::io::Result<String>| {
        line.as_ref().is_ok_and(|line| line.contains("frames of 128 bytes: 2 of 5"))
    };
    assert!(lines.any(|line| second(&line)), "the second length is measured");
    interrupt(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let end = end_of(&mut child).expect("it ends");
    if end.code() == Some(0) {
        println!("skipped: it was through before it could be stopped");
        return;
    }
    assert_eq!(end.code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("resume with: linerate bench --resume")));
    let other = linerate(&[&CABLE[..], &["--sizes", "64", "--store", &store, "--resume"]].concat());
    assert_eq!(other.status.code(), Some(2), "another plan does not go on");
    let Some(again) = undisturbed(&[&all[..], &["--resume", "--json"]].concat()) else { return };
    let records: Value = serde_json::from_str(&stdout(&again)).expect("one document");
    assert_eq!(records.as_array().map(Vec::len), Some(5));
    let more = linerate(&["bench", "--resume", "--store", &store]);
    assert_eq!(more.status.code(), Some(2), "all is measured");
    assert!(stderr(&more).contains("no run of it is unfinished"), "{}", stderr(&more));
}
