//! `linerate schedule` as its users run it: probes of loopback, a server that is not there.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

const PLAN: &str = "name = \"here\"\nlearn = \"1h\"\n\n[alert]\ncommand = \"cat >> ALERTS\"\n\n\
    [[task]]\nname = \"delay\"\nrun = \"ping 127.0.0.1 -c 1\"\nevery = \"10s\"\n\
    takes = \"2s\"\n\n[[task]]\nname = \"nobody\"\nrun = \"tcp 127.0.0.1 -p 1 -t 1\"\n\
    every = \"10s\"\ntakes = \"2s\"\n";

fn linerate(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let command = command.args(words).current_dir(directory).stdin(Stdio::null());
    command.output().expect("the program starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn written(plan: &str) -> tempfile::TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let alerts = directory.path().join("alerts").display().to_string();
    let plan = plan.replace("ALERTS", &alerts);
    std::fs::write(directory.path().join("here.toml"), plan).expect("room");
    directory
}

/// Answers each POST, and hands on what it brought.
fn take(hook: &TcpListener, got: &Sender<serde_json::Value>) {
    for stream in hook.incoming() {
        let mut stream = stream.expect("a client");
        let mut lines = BufReader::new(stream.try_clone().expect("a copy"));
        let (mut line, mut length) = (String::new(), 0);
        while lines.read_line(&mut line).expect("a line") > 2 {
            if let Some(text) = line.strip_prefix("Content-Length: ") {
                length = text.trim().parse().expect("a number");
            }
            line.clear();
        }
        let mut body = vec![0; length];
        lines.read_exact(&mut body).expect("a body");
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").expect("it reads");
        let _ = got.send(serde_json::from_slice(&body).expect("JSON"));
    }
}

#[test]
fn a_plan_is_checked_with_its_day_and_refused_with_its_place() {
    let directory = written(PLAN);
    let output = linerate(directory.path(), &["schedule", "check", "here.toml"]);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{said}{}", text(&output.stderr));
    // Each task every 10 s: 8640 runs a day.
    assert!(said.contains("17280 runs") && said.contains("8640"), "{said}");
    let output = linerate(directory.path(), &["schedule", "check", "here.toml", "--all"]);
    assert_eq!(text(&output.stdout).matches("ping 127.0.0.1").count(), 8640);
    let output = linerate(directory.path(), &["schedule", "check", "here.toml", "--json"]);
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(value["runs"].as_array().map(Vec::len), Some(17_280));
    for (from, to, wanted) in [
        ("every = \"10s\"", "every = \"5s\"", "here.toml:10:9: the time between two runs"),
        ("-c 1", "--sideways", "unexpected argument '--sideways'"),
        ("-c 1", "--name x", "the schedule gives --name"),
        ("name = \"here\"", "name = \"here\"\nzone = \"No/Where\"", "Europe/Berlin"),
    ] {
        let directory = written(&PLAN.replacen(from, to, 1));
        let output = linerate(directory.path(), &["schedule", "check", "here.toml"]);
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(wanted) && said.trim_end().lines().count() == 1, "{to}: {said}");
    }
}

/// Three runs of a task without a result are an alert; the schedule ends by itself, one of the same
/// plan is refused meanwhile, and the state has all of it.
#[test]
fn a_schedule_keeps_what_it_measures_and_tells_that_there_is_no_data() {
    let hook = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/hook", hook.local_addr().expect("bound"));
    let (got, posted) = channel();
    std::thread::spawn(move || take(&hook, &got));
    let to = format!("command = \"cat >> ALERTS\"\nwebhook = \"{url}\"");
    let directory = written(&PLAN.replace("command = \"cat >> ALERTS\"", &to));
    let run = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(["schedule", "run", "here.toml", "--for", "36s", "--store", "s.db"]);
        command.current_dir(directory.path()).stdin(Stdio::null());
        command.stderr(Stdio::piped()).spawn().expect("the program starts")
    };
    let first = run();
    // Refused once the first has its store; before that both may be opening it.
    let second = (0..10).find_map(|_| {
        linerate_sys::clock::sleep(Duration::from_secs(3));
        let second = run().wait_with_output().expect("it ends");
        (!text(&second.stderr).contains("database is locked")).then_some(second)
    });
    let second = second.expect("the first has opened the store within 30 s");
    assert_eq!(second.status.code(), Some(2), "{}", text(&second.stderr));
    assert!(text(&second.stderr).contains("runs it on this store"), "{}", text(&second.stderr));
    let first = first.wait_with_output().expect("it ends");
    let said = text(&first.stderr);
    assert_eq!(first.status.code(), Some(0), "{said}");
    assert!(said.contains("schedule here ended"), "{said}");
    let words = ["schedule", "status", "here", "--last", "1h", "--json", "--store", "s.db"];
    let output = linerate(directory.path(), &words);
    assert_eq!(output.status.code(), Some(1), "no data is in alert");
    let value: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    // What is shown begins with the plan's first run, not an hour ago.
    let shown_s =
        value["now_s"].as_i64().zip(value["from_s"].as_i64()).map(|(now, from)| now - from);
    assert!(shown_s.is_some_and(|shown_s| (1..3000).contains(&shown_s)), "{value}");
    let nobody = &value["tasks"][1];
    assert!(nobody["alert"] == true && nobody["good"] == 0, "{nobody}");
    assert!(nobody["without"].as_u64() >= Some(3), "{nobody}");
    let alerts = std::fs::read_to_string(directory.path().join("alerts")).expect("told");
    let alerts = alerts.lines().map(|line| serde_json::from_str(line).expect("JSON"));
    // A host that lets nobody ping has another one.
    let alerts: Vec<serde_json::Value> =
        alerts.filter(|alert: &serde_json::Value| alert["task"] == "nobody").collect();
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert_eq!(alerts[0]["kind"], "no_data");
    assert!(alerts[0]["id"].as_str().is_some_and(|id| id.len() == 36), "{alerts:?}");
    let posted: Vec<serde_json::Value> = posted.try_iter().collect();
    assert!(posted.contains(&alerts[0]), "the hook has the same: {posted:?}");
    let words = ["schedule", "status", "here", "--html", "p.html", "--store", "s.db"];
    assert_eq!(linerate(directory.path(), &words).status.code(), Some(1));
    let page = std::fs::read_to_string(directory.path().join("p.html")).expect("written");
    assert!(page.contains("nobody") && page.contains("no data"), "{page}");
}
