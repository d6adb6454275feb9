//! `linerate mesh archive` as its users run it: a day of a store as a file, out of both stores.
//! What is in the file is looked at beside its writer.
#![cfg(feature = "scale")]

use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};

use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::stderr;

fn archive(directory: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(["mesh", "archive"]).args(words).current_dir(directory).stdin(Stdio::null());
    command.env_remove("LINERATE_STORE").env("XDG_DATA_HOME", directory);
    command.output().expect("the program starts")
}

/// Ends with a code and one line that has a part.
fn fails(directory: &Path, words: &[&str], part: &str) {
    let output = archive(directory, words);
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{words:?}: {said}");
    assert!(said.contains(part), "{words:?}: {said}");
}

mod with_it {
    use linerate_core::time::WallTime;
    use linerate_store::{AgentRun, HubPlace, KeptPlan};
    use linerate_sys::clock::wall_time;
    use serde_json::Value;

    use super::*;
    use crate::started::Postgres;
    use crate::support::stdout;

    fn run(start_s: i64) -> AgentRun {
        let run = ScheduleRun {
            task: "delay/b".to_owned(),
            start_s,
            why: RunWhy::Calendar,
            state: RunState::Failed,
            reason: Some("no reply".to_owned()),
            record: None,
        };
        AgentRun { agent: "a".to_owned(), run, record: None, figure: None }
    }

    /// A store of a hub with three runs of yesterday, and of today, in each of two meshes; the date
    /// of yesterday.
    fn fill(place: &str) -> String {
        let mut store = HubPlace::parse(place).expect("a place").open_store().expect("a store");
        let today_s = i64::try_from(wall_time().unix_millis()).expect("now") / 86_400_000 * 86_400;
        let signed = String::new();
        let plan = KeptPlan {
            revision: 1,
            text: signed.clone(),
            key: signed.clone(),
            signature: signed,
            kept_s: 0,
        };
        for mesh in ["m", "n"] {
            store.keep_plan(mesh, &plan).expect("room");
            let starts = [today_s - 86_400, today_s - 60, today_s - 1, today_s];
            store.keep_runs(mesh, &starts.map(run)).expect("room");
        }
        let ns = u128::try_from(today_s - 86_400).expect("after 1970") * 1_000_000_000;
        WallTime::from_unix_nanos(ns).to_string()[..10].to_owned()
    }

    fn left(place: &str) -> usize {
        let mut store = HubPlace::parse(place).expect("a place").open_store().expect("a store");
        store.agent_runs("m", "a", None, 0..i64::MAX).expect("readable").len()
    }

    /// A day of each store becomes a file of the same rows, and goes.
    fn a_day_becomes_a_file(directory: &Path, place: &str) {
        // By its date, for this may run over midnight.
        let yesterday = &fill(place);
        let into = tempfile::tempdir_in(directory).expect("room");
        let into = into.path().to_str().expect("text");
        let of = |day: &str, more: &[&str]| {
            let words = [&[day, "--into", into, "--store", place][..], more].concat();
            words.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()
        };
        let refused = |day: &str, more: &[&str], part: &str| {
            let words = of(day, more);
            fails(directory, &words.iter().map(String::as_str).collect::<Vec<_>>(), part);
        };
        refused(yesterday, &[], "name one of m, n");
        refused(yesterday, &["--mesh", "o"], "no such mesh");
        refused("today", &["--mesh", "m", "--drop"], "is not over");
        refused("2026-13-01", &["--mesh", "m"], "is no day");
        refused("2020-01-01", &["--mesh", "m"], "has no run of that day");
        let good = |more: &[&str]| {
            let words = of(yesterday, more);
            let output = archive(directory, &words.iter().map(String::as_str).collect::<Vec<_>>());
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            stdout(&output)
        };
        let written = good(&["--mesh", "m", "--drop", "--json"]);
        let written: Value = serde_json::from_str(&written).expect("JSON");
        assert_eq!((&written["runs"], &written["dropped"]), (&3.into(), &true.into()));
        let file = Path::new(written["file"].as_str().expect("a file")).to_owned();
        let bytes = std::fs::read(&file).expect("readable");
        assert_eq!(written["bytes"].as_u64(), Some(bytes.len() as u64));
        // The format's magic at both ends.
        assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        assert_eq!(written["day"].as_str(), Some(yesterday.as_str()));
        assert!(file.ends_with(format!("m-{yesterday}.parquet")), "{file:?}");
        assert_eq!(left(place), 1, "today stays");
        refused(yesterday, &["--mesh", "m"], "it is there already");
        assert!(good(&["--mesh", "n"]).contains("3 runs, "));
        assert_eq!(std::fs::read_dir(into).expect("readable").count(), 2, "and nothing else");
    }

    #[test]
    fn a_day_of_a_file_of_sqlite() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("hub.db");
        a_day_becomes_a_file(directory.path(), file.to_str().expect("text"));
    }

    #[test]
    fn a_day_of_a_database_of_postgresql() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let postgres = Postgres::start(false);
        postgres.sql("postgres", "CREATE DATABASE mesh");
        a_day_becomes_a_file(directory.path(), &postgres.url("mesh"));
    }

    #[test]
    fn a_store_that_is_not_there_is_not_made() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let words = ["yesterday", "--into", ".", "--store", "none.db"];
        fails(directory.path(), &words, "no such file");
        assert!(!directory.path().join("none.db").exists());
    }
}
