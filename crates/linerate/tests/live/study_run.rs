//! `linerate study`, `report` and `history` on a small study, from its file to its pages. Skipped
//! where namespaces cannot be made. Figures are not judged: other tests share the machine.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use crate::support::{
    check_wrong_use, command, end_of, ends_with, interrupt, linerate, no_laboratory, stderr,
};
use serde_json::Value;

/// Two topologies, one test of two windows and two repetitions: eight measurements of 0.1 s.
const TINY: &str = r#"
name = "tiny"
title = "Tiny"
[[topology]]
id = "one"
title = "localhost"
class = "small"
client = "a"
server = "a"
lab.host = [{ name = "a" }]
[[topology]]
id = "two"
title = "cable"
class = "small"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"] }]
[[test]]
id = "tcp"
kind = "tcp"
windows_bytes = [16384, 65536]
seconds = 0.1
repetitions = 2
"#;

/// A directory with the study's file, for a store and pages.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        std::fs::write(place.0.path().join("tiny.toml"), TINY).expect("write the study");
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    /// Runs the study with further flags; gives the exit code.
    fn run(&self, flags: &[&str]) -> Option<i32> {
        let (file, store, report) = (self.path("tiny.toml"), self.path("db"), self.path("pages"));
        let fixed = ["study", "run", &file, "--store", &store, "--report", &report];
        linerate(&[&fixed[..], flags].concat()).status.code()
    }

    /// What `history` says of the store.
    fn history(&self, flags: &[&str]) -> Vec<Value> {
        let fixed = ["history", "--all", "--json", "--store", &self.path("db")];
        let text = ends_with(0, &[&fixed[..], flags].concat());
        let rows: Value = serde_json::from_str(&text).expect("one JSON array");
        rows.as_array().expect("one JSON array").clone()
    }
}

fn size(path: &str) -> u64 {
    Path::new(path).metadata().map_or(0, |data| data.len())
}

#[test]
fn a_shipped_study_is_shown_as_its_file_and_as_json() {
    let toml = ends_with(0, &["study", "show", "pren", "--toml"]);
    assert!(toml.contains("name = \"pren\""));
    let json = ends_with(0, &["study", "show", "pren", "--json"]);
    let json: Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(json["name"], "pren");
    assert!(ends_with(0, &["study", "list"]).contains("pren"));
}

#[test]
fn a_study_with_a_mistake_is_refused_with_its_line() {
    let place = Place::new();
    let file = place.path("tiny.toml");
    ends_with(0, &["study", "check", &file]);
    let spoilt = TINY.replace("seconds = 0.1", "minutes = 0.1");
    let line = spoilt.lines().position(|line| line.starts_with("[[test]]")).expect("a test") + 1;
    std::fs::write(&file, &spoilt).expect("write the study");
    for verb in ["check", "run"] {
        let output = linerate(&["study", verb, &file]);
        assert_eq!(output.status.code(), Some(2));
        let said = stderr(&output);
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.contains("tiny.toml") && said.contains("minutes"), "{said}");
        // The table begins at `line`; a mistake in it is told with the line of one of its rows.
        let tells = |line: usize| said.contains(&format!(":{line}:"));
        assert!((line..line + 6).any(tells), "{said}");
    }
    check_wrong_use(&["study", "run", "no-such-study"], &["no-such-study"]);
}

#[test]
fn a_run_is_stored_listed_and_rendered_in_every_form() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let place = Place::new();
    assert_eq!(place.run(&["--only", "two", "--repetitions", "1"]), Some(0));
    assert!(size(&place.path("pages/index.html")) > 1000);
    let store = place.path("db");
    assert!(ends_with(0, &["study", "list", "--store", &store]).contains("2 of 2"));

    assert_eq!(place.history(&["--study", "tiny", "--kind", "tcp"]).len(), 2);
    assert_eq!(place.history(&["--limit", "1"]).len(), 1);
    assert_eq!(place.history(&["--kind", "ping"]).len(), 0);
    let first = &place.history(&[])[0];
    let run = first["run"].as_str().or_else(|| first["cell"]["run"].as_str()).expect("a run");
    assert_eq!(place.history(&["--run", run]).len(), 2);

    let (html, md, csv) = (place.path("a.html"), place.path("a.md"), place.path("a.csv"));
    let (svg, all) = (place.path("svg"), place.path("all"));
    let fixed = ["report", "--store", &store, "--run", run];
    for form in [["--html", &html], ["--md", &md], ["--csv", &csv], ["--svg", &svg]] {
        ends_with(0, &[&fixed[..], &form].concat());
        assert!(size(form[1]) > 0, "{form:?}");
    }
    ends_with(0, &[&fixed[..], &["--all", &all]].concat());
    assert!(size(&format!("{all}/index.html")) > 1000);
    let lines = ends_with(0, &[&fixed[..], &["--json"]].concat());
    assert_eq!(lines.lines().count(), 2, "one record a line");
    for line in lines.lines() {
        let record: Value = serde_json::from_str(line).expect("a record");
        assert_eq!(record["schema"], "linerate.record/2");
        assert_eq!(record["status"], "ok");
    }
}

#[test]
fn an_interrupted_run_goes_on_where_it_stopped() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let place = Place::new();
    let (file, store) = (place.path("tiny.toml"), place.path("db"));
    let pages = place.path("pages");
    let arguments = ["study", "run", &file, "--store", &store, "--report", &pages];
    let mut child = command(&arguments)
        .args(["--repetitions", "10"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let messages = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(messages).lines().map_while(Result::ok);
    // Half of it is measured when the first topology is through.
    assert!(lines.any(|line| line.starts_with("localhost: 20 of 40")), "the first half passed");
    interrupt(&child);
    drop(lines);
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(130));
    let kept = place.history(&["--limit", "100"]).len();
    assert!((20..=40).contains(&kept), "{kept} kept");

    ends_with(0, &["study", "run", "--resume", "--store", &store, "--report", &pages]);
    let ended = place.history(&["--limit", "100"]);
    let well = ended.iter().filter(|row| row["status"] == "ok").count();
    assert_eq!(well, 40, "every cell was measured once");
}
