//! `linerate bench` from its first frame to its report, over a cable that it makes. Figures are not
//! judged: counts must agree, documents must be there, a run that was stopped must go on.
//!
//! Needs the privilege to make network namespaces and to send raw frames; says so and passes
//! without it.

#![allow(clippy::print_stdout, reason = "tests that are skipped say so")]

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Output, Stdio};
use std::sync::OnceLock;

use crate::support::{command, end_of, interrupt, linerate, no_laboratory, stderr, stdout};
use serde_json::Value;

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

/// Runs `linerate`, which ends well, or says by code 5 or 6 that this machine was too busy for a
/// result of some or any trials; what it printed and kept is judged all the same.
fn measured(arguments: &[&str]) -> Output {
    let output = linerate(arguments);
    let said = stderr(&output);
    match output.status.code() {
        Some(0) => {}
        Some(5 | 6) => {
            let is_told = said.contains("stop other work on the tester, and repeat")
                || said.contains("came over the tester's own cable")
                || said.contains("not one frame was taken from the generator");
            assert!(is_told, "{said}");
        }
        code => panic!("{code:?}: {said}"),
    }
    output
}

#[test]
fn records_count_what_was_sent_and_what_came() {
    if cannot() {
        return;
    }
    let flags = [&CABLE[..], &["--sizes", "64,512,9216", "--no-save", "--json"]].concat();
    let output = measured(&flags);
    let records: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    let records = records.as_array().expect("an array of records");
    let mut sizes: Vec<u64> = records
        .iter()
        .map(|record| record["plan"]["frames"]["size_bytes"].as_u64().expect("a size"))
        .collect();
    // What a busy machine spoilt is measured again, and kept all the same.
    sizes.dedup();
    assert_eq!(sizes, [64, 512, 9216]);
    assert!(records.len() == 3 || !output.status.success(), "{}", records.len());
    for record in records {
        assert_eq!(record["cell"]["study"], "bench");
        let trials = record["bench"]["trials"].as_array().expect("trials");
        assert!(!trials.is_empty() || !record["failure"].is_null(), "{record}");
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
    let output = measured(&flags);
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
    let output = measured(&[&CABLE[..], &flags].concat());
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
    let output = measured(&flags);
    let page = std::fs::read_to_string(report.join("index.html")).expect("a page");
    if !output.status.success() {
        // What a busy machine left has a page, too; the report's own tests have a whole table.
        assert!(page.contains("</html>"), "{page}");
        return;
    }
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
    let flags = ["--sizes", "64,128,256", "--store", &store];
    let all = [&CABLE[..], &flags].concat();
    let mut child = command(&all).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let second = |line: &std::io::Result<String>| {
        line.as_ref().is_ok_and(|line| line.contains("frames of 128 bytes: 2 of 3"))
    };
    assert!(lines.any(|line| second(&line)), "the second length is measured");
    interrupt(&child);
    let rest: Vec<String> = lines.map_while(Result::ok).collect();
    let end = end_of(&mut child).expect("it ends");
    if end.code() == Some(0) {
        // It was through before it could be stopped: all of it is kept.
        assert!(!rest.iter().any(|line| line.contains("--resume")), "{rest:?}");
        return;
    }
    assert_eq!(end.code(), Some(130), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("resume with: linerate bench --resume")));
    let other = linerate(&[&CABLE[..], &["--sizes", "64", "--store", &store, "--resume"]].concat());
    assert_eq!(other.status.code(), Some(2), "another plan does not go on");
    let again = measured(&[&all[..], &["--resume", "--json"]].concat());
    let records: Value = serde_json::from_str(&stdout(&again)).expect("one document");
    if !again.status.success() {
        // What a busy machine spoilt again stays unfinished, and the rest is there.
        assert!(records.as_array().is_some_and(|all| !all.is_empty()), "{records}");
        return;
    }
    assert_eq!(records.as_array().map(Vec::len), Some(3));
    let more = linerate(&["bench", "--resume", "--store", &store]);
    assert_eq!(more.status.code(), Some(2), "all is measured");
    assert!(stderr(&more).contains("no run of it is unfinished"), "{}", stderr(&more));
}
