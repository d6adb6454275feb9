//! Plans, stored results and their reports by the command line. Nothing here sends a packet: the
//! stores are filled by hand. Runs in laboratories are in `netns_study.rs`.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use linerate_core::record::{
    Direction, MetricId, PingPlan, Plan, Record, RecordId, Stat, Summary, TcpPlan, Tool,
};
use linerate_core::study::{CellKey, StudyPlan};
use linerate_core::time::WallTime;
use linerate_store::{NewStudyRun, Store, StudyState};
use tempfile::TempDir;

const PLAN: &str = r#"name = "tiny"
title = "A tiny study"

[[topology]]
id = "self"
title = "localhost"
class = "calibration"
client = "a"
server = "a"
lab.host = [{ name = "a" }]

[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56, 1500]
count = 10
repetitions = 1

[[test]]
id = "tcp"
kind = "tcp"
windows_bytes = [16384]
seconds = 0.5
repetitions = 3
"#;

const RUN: &str = "01900000-0000-7000-8000-000000000000";

/// Runs the built program in `directory`, with the store there.
fn linerate(directory: &TempDir, arguments: &[&str]) -> Output {
    crate::support::turn::take();
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(arguments)
        .current_dir(directory.path())
        .env_remove("LINERATE_STORE")
        .env("XDG_DATA_HOME", directory.path().join("data"))
        .output()
        .expect("the program starts")
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("results are UTF-8")
}

/// Runs it, checks its exit code, gives what it printed.
#[track_caller]
fn printed(directory: &TempDir, arguments: &[&str]) -> String {
    let output = linerate(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?} said {said}");
    stdout(&output)
}

/// Wrong use or an unusable file: one line with each of `parts`, code 2, nothing printed.
#[track_caller]
fn refused(directory: &TempDir, arguments: &[&str], parts: &[&str]) {
    let output = linerate(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?} said {said}");
    assert_eq!(said.lines().count(), 1, "{arguments:?} said {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} said {said}, without {part}");
    }
    assert_eq!(stdout(&output), "", "{arguments:?}");
}

fn file(directory: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = directory.path().join(name);
    std::fs::write(&path, text).expect("room");
    path
}

fn record(n: u8, plan: Plan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    let id = RecordId::from_parts(1_700_000_000_000 + u64::from(n), [n; 10]);
    let at = WallTime::from_unix_nanos((1_700_000_000_000 + u128::from(n)) * 1_000_000);
    Record::from_plan(id, tool, plan, at)
}

/// A store at its usual place with one run of the tiny study, all measured, and one ping beside.
fn filled() -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let place = directory.path().join("data/linerate");
    std::fs::create_dir_all(&place).expect("room");
    let mut store = Store::open(&place.join("results.db")).expect("a store");
    let plan = StudyPlan::from_toml(PLAN).expect("a sound plan");
    let started_at = WallTime::from_unix_nanos(0);
    store
        .begin_run(&NewStudyRun { id: RUN.to_owned(), plan: plan.clone(), started_at, host: None })
        .expect("room");
    for (n, cell) in (1..).zip(plan.cell_plans()) {
        let mut record = record(n, cell.plan);
        record.cell = Some(cell.cell);
        record.cell.as_mut().expect("just set").run = RUN.to_owned();
        record.summary.push(match record.plan {
            Plan::Ping(ref ping) => {
                let row = Summary::from_value(MetricId::Rtt, Stat::Mean, 20_000.0);
                row.at_payload(ping.sizes_bytes[0])
            }
            _ => Summary::from_value(MetricId::Goodput, Stat::Value, f64::from(n) * 1e9)
                .in_direction(Direction::Up),
        });
        store.put_record(&record).expect("room");
    }
    store.finish_run(RUN, StudyState::Finished, started_at).expect("room");
    let mut alone = record(0, Plan::Ping(PingPlan::default()));
    alone.name = Some("before".to_owned());
    store.put_record(&alone).expect("room");
    directory
}

#[test]
fn the_list_shows_shipped_plans_and_runs() {
    let directory = filled();
    let list = printed(&directory, &["study", "list"]);
    assert!(list.contains("pren"), "{list}");
    // By hand: 2 sizes + 1 window x 3 repetitions = 5 cells.
    assert!(list.contains("01900000-0000  tiny"), "{list}");
    assert!(list.contains("finished  5 of 5"), "{list}");
    refused(&directory, &["study", "list", "--store", "other.db"], &["other.db", "no such file"]);
}

#[test]
fn a_plan_is_shown_as_text_as_its_file_and_as_json() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let text = printed(&directory, &["study", "show", "pren"]);
    // By hand: 8 topologies x (6 + 4 x 5) = 208.
    assert!(text.contains("208 measurements on 8 topologies, about 3 min"), "{text}");
    let json = printed(&directory, &["study", "show", "pren", "--json"]);
    let plan: StudyPlan = serde_json::from_str(&json).expect("a plan");
    let toml = printed(&directory, &["study", "show", "pren", "--toml"]);
    assert_eq!(StudyPlan::from_toml(&toml).expect("a plan"), plan);
    file(&directory, "tiny.toml", PLAN);
    let text = printed(&directory, &["study", "show", "tiny.toml"]);
    assert!(text.contains("5 measurements on 1 topology"), "{text}");
}

/// A question for the end of a plan.
const QUESTION: &str = r#"
[[question]]
ask = "Is it faster than a ping is slow?"
figure.now = { topology = "self", test = "tcp" }
figure.then = { published = "throughput" }
answer = "{now}, {then}"
"#;

#[test]
fn a_question_is_shown_and_its_published_item_is_looked_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let plan = format!("{PLAN}{QUESTION}");
    file(&directory, "q.toml", &plan.replacen("\"tiny\"", "\"gigasunet\"", 1));
    let text = printed(&directory, &["study", "show", "q.toml"]);
    assert!(text.contains("questions  1. Is it faster than a ping is slow?"), "{text}");
    printed(&directory, &["study", "check", "q.toml"]);
    file(&directory, "other.toml", &plan);
    let reason = ["other.toml", "nothing is published of study tiny as 'throughput'"];
    refused(&directory, &["study", "check", "other.toml"], &reason);
    let text = printed(&directory, &["study", "show", "pren"]);
    assert!(text.contains("4. Does TCP fill the OC-3 line?"), "{text}");
}

#[test]
fn a_question_with_a_mistake_is_refused_by_file_line_and_column() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let good = format!("{PLAN}{QUESTION}");
    let line = |needle: &str| good[..good.find(needle).expect(needle)].matches('\n').count() + 1;
    let cases: &[(&str, &str, &str)] = &[
        ("{now}, {then}", "{now}, {later}", "no figure 'later'"),
        ("\"tcp\" }", "\"udp\" }", "figure 'now': there is no test 'udp'"),
        ("figure.then = { published", "figure.then = { publisched", "publisched"),
        ("published = \"throughput\"", "ratio = [\"now\", \"then\"]", "made from itself"),
    ];
    for (from, to, reason) in cases {
        file(&directory, "bad.toml", &good.replacen(from, to, 1));
        let place = format!("bad.toml:{}:", line(from));
        refused(&directory, &["study", "show", "bad.toml"], &[&place, reason]);
    }
}

#[test]
fn a_plan_with_a_mistake_is_refused_by_file_line_and_column() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    file(&directory, "good.toml", PLAN);
    let said = printed(&directory, &["study", "check", "good.toml"]);
    assert!(said.starts_with("good.toml: 5 measurements on 1 topology"), "{said}");
    let cases: &[(&str, &str, &[&str])] = &[
        // No TOML: line 2 breaks off after the equals sign.
        ("title = \"A tiny study\"", "title = ", &["bad.toml:2:"]),
        ("class = ", "klass = ", &["bad.toml:7:1", "klass"]),
        ("count = 10", "count = 10\ncont = 5", &["bad.toml:", "cont"]),
        ("server = \"a\"", "server = \"b\"", &["bad.toml:9:10", "server 'b'"]),
        ("repetitions = 3", "repetitions = 0", &["bad.toml:24:15", "repetitions is 0"]),
    ];
    for (from, to, parts) in cases {
        file(&directory, "bad.toml", &PLAN.replacen(from, to, 1));
        for command in [["study", "check"], ["study", "show"], ["study", "run"]] {
            refused(&directory, &[&command[..], &["bad.toml"]].concat(), parts);
        }
    }
    refused(&directory, &["study", "check", "none.toml"], &["read none.toml", "no such file"]);
    refused(&directory, &["study", "show", "prem"], &["find study prem", "pren"]);
}

#[test]
fn a_run_that_cannot_begin_says_why_and_keeps_nothing() {
    let directory = filled();
    file(&directory, "tiny.toml", PLAN);
    refused(
        &directory,
        &["study", "run", "pren", "--only", "c.1,x"],
        &["--only x", "c.1, c.1/1500"],
    );
    refused(&directory, &["study", "run", "tiny.toml", "--repetitions", "0"], &["repetitions"]);
    refused(&directory, &["study", "run", "tiny.toml", "--resume"], &["resume tiny", "unfinished"]);
    refused(&directory, &["study", "run", "pren", "--resume", "0190"], &["of study tiny"]);
    refused(&directory, &["study", "run", "--resume", "0b"], &["find run '0b'", "history"]);
    let list = printed(&directory, &["study", "list"]);
    assert_eq!(list.lines().filter(|line| line.contains("  tiny  ")).count(), 1, "{list}");
}

#[test]
fn a_complete_run_is_reported_again_without_measuring() {
    let directory = filled();
    let arguments = ["study", "run", "--resume", RUN, "--report", "again"];
    let output = linerate(&directory, &arguments);
    // Measuring needs privilege to make namespaces; a complete run builds none, but asks first.
    if output.status.code() != Some(0) {
        println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim());
        return;
    }
    assert!(stdout(&output).contains("report: again/index.html"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("0 of 5 left"), "{said}");
    check_report(&directory.path().join("again"));
}

#[track_caller]
fn check_report(report: &Path) {
    let read = |name: &str| std::fs::read_to_string(report.join(name)).expect(name);
    assert!(read("index.html").contains("A tiny study"));
    assert!(read("report.md").starts_with("# A tiny study"));
    assert!(read("results.csv").lines().count() > 5);
    let lines = read("records.jsonl");
    let records: Vec<Record> =
        lines.lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    let keys: Vec<CellKey> =
        records.iter().filter_map(|record| record.cell.as_ref().map(CellKey::from_cell)).collect();
    let expected: Vec<CellKey> = StudyPlan::from_toml(PLAN)
        .expect("a sound plan")
        .cell_plans()
        .iter()
        .map(|cell| CellKey::from_cell(&cell.cell))
        .collect();
    assert_eq!(keys, expected);
}

#[test]
fn the_history_is_limited_and_filtered() {
    let directory = filled();
    let count = |arguments: &[&str]| {
        let arguments = [&["history", "--json"], arguments].concat();
        let json = printed(&directory, &arguments);
        let entries: Vec<serde_json::Value> = serde_json::from_str(&json).expect("an array");
        entries.len()
    };
    assert_eq!((count(&[]), count(&["--all"])), (2, 6));
    assert_eq!(count(&["--all", "--limit", "4"]), 4);
    assert_eq!(count(&["--study", "tiny"]), 5);
    assert_eq!(count(&["--run", "0190"]), 5);
    assert_eq!((count(&["--kind", "tcp"]), count(&["--all", "--kind", "tcp"])), (0, 3));
    assert_eq!((count(&["--kind", "udp"]), count(&["--kind", "bench"])), (0, 0));
    assert_eq!((count(&["--kind", "study"]), count(&["--kind", "ping"])), (1, 1));
    assert_eq!(count(&["--kind", "ping", "--study", "tiny"]), 2);
    assert_eq!((count(&["--name", "before"]), count(&["--name", "after"])), (1, 0));
    assert_eq!((count(&["--host", "localhost"]), count(&["--host", "192.0.2.1"])), (1, 0));
    // 2023-11-14T22:13:20Z is 1,700,000,000 s.
    assert_eq!((count(&["--until", "2023-11-14"]), count(&["--since", "2023-11-14"])), (1, 1));
    assert_eq!((count(&["--tag", "k=v"]), count(&["--failed"])), (0, 0));
    refused(&directory, &["history", "--since", "noon"], &["yesterday"]);
    let table = printed(&directory, &["history"]);
    assert_eq!(table.lines().count(), 3, "a heading, the run and the ping: {table}");
    assert!(table.contains("2023-11-14 22:13  ping"), "{table}");
    assert!(table.contains("study") && table.contains("5 measurements"), "{table}");
    let oldest = table.lines().last().expect("rows");
    assert!(oldest.contains("before"), "the oldest is last: {table}");
    let lines = printed(&directory, &["history", "--csv", "--all"]);
    let heads: Vec<&str> = lines.lines().next().expect("a head").split(',').collect();
    let json = printed(&directory, &["history", "--json", "--all"]);
    let entries: Vec<serde_json::Value> = serde_json::from_str(&json).expect("an array");
    let keys: std::collections::BTreeSet<&str> =
        entries[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(heads.iter().copied().collect::<std::collections::BTreeSet<_>>(), keys);
    assert_eq!(lines.lines().count(), 7);
}

#[test]
fn two_results_are_compared_by_what_names_them() {
    let directory = filled();
    let json = printed(&directory, &["history", "--all", "--kind", "tcp", "--json"]);
    let entries: Vec<serde_json::Value> = serde_json::from_str(&json).expect("an array");
    // The newest first: 5, 4 and 3 Gbit/s.
    let id = |at: usize| entries[at]["id"].as_str().expect("an identifier");
    let text = printed(&directory, &["diff", id(2), id(0)]);
    let row = text.lines().find(|line| line.contains("goodput")).expect("a row");
    for part in ["3.000 Gbit/s", "5.000 Gbit/s", "+66.7 %", "better"] {
        assert!(row.contains(part), "no {part} in {row}");
    }
    let more = printed(&directory, &["diff", id(2), id(0), "--verbose"]);
    assert!(more.contains(row) && !more.contains("-v shows"), "{more}");
    let json = printed(&directory, &["diff", id(2), id(0), "--json"]);
    let json: serde_json::Value = serde_json::from_str(&json).expect("an object");
    assert_eq!(json["first"], id(2));
    assert_eq!(json["metrics"][0]["metric"], "goodput_bps");
    refused(&directory, &["diff", "before", id(0)], &["ping", "tcp", "linerate history"]);
    refused(&directory, &["diff"], &["study run"]);
    refused(&directory, &["diff", "--store", "other.db"], &["no such file"]);
}

#[test]
fn a_stored_result_is_held_to_an_assertion() {
    let directory = filled();
    let json = printed(&directory, &["history", "--all", "--kind", "tcp", "--json"]);
    let entries: Vec<serde_json::Value> = serde_json::from_str(&json).expect("an array");
    let id = entries[0]["id"].as_str().expect("an identifier");
    let text = printed(&directory, &["report", id, "--quiet", "--assert", "goodput >= 5 Gbit/s"]);
    assert!(text.contains("assertion met up"), "{text}");
    let output = linerate(&directory, &["report", "before", "--assert", "rtt < 1 s"]);
    assert_eq!(output.status.code(), Some(7));
    assert!(stdout(&output).contains("the result has no rtt"), "{}", stdout(&output));
}

#[test]
fn results_are_exported_in_each_form_as_they_are_filtered() {
    let directory = filled();
    let lines = |flags: &[&str]| {
        let text = printed(&directory, &[&["export"], flags].concat());
        for line in text.lines() {
            let _: Record = serde_json::from_str(line).expect("a record");
        }
        text.lines().count()
    };
    assert_eq!((lines(&[]), lines(&["--limit", "2"])), (6, 2));
    for (filter, count) in [
        (["--kind", "tcp"], 3),
        (["--host", "localhost"], 1),
        (["--name", "before"], 1),
        (["--tag", "k=v"], 0),
        (["--since", "2023-11-14"], 6),
        (["--until", "2023-11-14"], 0),
        (["--study", "tiny"], 5),
        (["--run", "0190"], 5),
        (["--failed", "--all"], 0),
    ] {
        assert_eq!(lines(&filter), count, "{filter:?}");
    }
    let json = printed(&directory, &["export", "--format", "json"]);
    let records: Vec<Record> = serde_json::from_str(&json).expect("an array");
    assert_eq!(records[0].name.as_deref(), Some("before"), "the oldest is first");
    let file = ["export", "--format", "csv", "--output", "all.csv"];
    assert_eq!(printed(&directory, &file), "");
    let csv = std::fs::read_to_string(directory.path().join("all.csv")).expect("a file");
    // A head, two sizes of a ping and three TCP tests; the ping beside has no values.
    assert_eq!(csv.lines().count(), 6, "{csv}");
    refused(&directory, &["export", "--store", "other.db"], &["no such file"]);
}

#[test]
fn reading_makes_no_store() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    for command in [&["history"][..], &["report"], &["study", "list"]] {
        let arguments = [command, &["--store", "typo.db"]].concat();
        let output = linerate(&directory, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("open store typo.db: no such file"), "{said}");
    }
    // Who has kept nothing so far has no store, which is no mistake.
    let output = linerate(&directory, &["history"]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stderr).starts_with("no results in "));
    assert_eq!(printed(&directory, &["history", "--json"]).trim(), "[]");
    assert!(printed(&directory, &["study", "list"]).contains("no runs in "));
    refused(&directory, &["report"], &["it has no results yet"]);
    let made = std::fs::read_dir(directory.path()).expect("the directory").count();
    assert_eq!(made, 0, "nothing was made");
}

#[test]
fn a_narrow_terminal_gets_narrow_tables() {
    let directory = filled();
    let at = |arguments: &[&str], columns: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(arguments).current_dir(directory.path()).env_remove("LINERATE_STORE");
        command.env("XDG_DATA_HOME", directory.path().join("data")).env("COLUMNS", columns);
        stdout(&command.output().expect("the program starts"))
    };
    let widest = |text: &str| text.lines().map(|line| line.chars().count()).max();
    let narrow = at(&["history", "--all"], "80");
    assert!(widest(&narrow) <= Some(80) && narrow.contains("result"), "{narrow}");
    let report = at(&["report"], "72");
    assert!(widest(&report) <= Some(72), "{report}");
    assert!(report.contains("left out at this width"), "{report}");
}

#[test]
fn a_report_is_of_the_newest_run_or_of_what_is_named() {
    let directory = filled();
    let newest = printed(&directory, &["report"]);
    assert!(newest.starts_with("A tiny study"), "{newest}");
    let run = printed(&directory, &["report", "--run", "last", "--json"]);
    assert_eq!(run.lines().count(), 5);
    assert_eq!(printed(&directory, &["report", "last", "--json"]), run);
    let json = printed(&directory, &["history", "--all", "--json", "-n1"]);
    let newest: serde_json::Value = serde_json::from_str(&json).expect("an array");
    let id = newest[0]["id"].as_str().expect("an identifier");
    let last = printed(&directory, &["report", id, "--json"]);
    let last: Record = serde_json::from_str(&last).expect("a record");
    assert!(matches!(last.plan, Plan::Tcp(TcpPlan { .. })));
    for name in ["@-2", "before"] {
        let first = printed(&directory, &["report", name, "--json"]);
        let first: Record = serde_json::from_str(&first).expect("a record");
        assert_eq!(first.name.as_deref(), Some("before"));
    }
    refused(&directory, &["report", "@-3"], &["fewer records", "history"]);
    refused(&directory, &["report", "--store", "other.db"], &["other.db"]);
}

#[test]
fn a_report_is_written_in_each_form() {
    let directory = filled();
    let read = |name: &str| std::fs::read_to_string(directory.path().join(name)).expect(name);
    let one = ["report", "before", "--html", "a.html", "--md", "a.md", "--csv", "a.csv"];
    assert_eq!(printed(&directory, &one), "", "files instead of text");
    assert!(read("a.html").contains("<html") && read("a.md").contains("ping"));
    assert!(read("a.csv").starts_with("id,started_at,"));
    let run = ["report", "--html", "b.html", "--md", "b.md", "--csv", "b.csv", "--svg", "plots"];
    assert_eq!(printed(&directory, &run), "");
    assert!(read("b.html").contains("A tiny study"));
    let plots = std::fs::read_dir(directory.path().join("plots")).expect("plots").count();
    assert!(plots > 0);
    printed(&directory, &["report", "--run", "last", "--all", "whole"]);
    check_report(&directory.path().join("whole"));
    refused(&directory, &["report", "before", "--svg", "own"], &["--svg", "no samples"]);
    refused(&directory, &["report", "before", "--all", "whole"], &["--all"]);
    refused(&directory, &["report", "--html", "/proc/none/x.html"], &["write /proc/none/x.html"]);
}

#[test]
fn a_file_that_is_no_store_is_one_line_and_left_alone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = file(&directory, "notes.txt", &"these are notes ".repeat(64));
    for command in [&["history"][..], &["report"], &["study", "list"], &["study", "run", "pren"]] {
        let arguments = [command, &["--store", "notes.txt"]].concat();
        let output = linerate(&directory, &arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert_eq!(said.lines().count(), 1, "{said}");
    }
    refused(&directory, &["history", "--store", "notes.txt"], &["notes.txt", "not a database"]);
    assert_eq!(std::fs::read(path).expect("still there").len(), 1024);
}
