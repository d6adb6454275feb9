//! Completions of what the user has, by the completion of bash itself: the script of `linerate
//! generate completions bash` is sourced, and its function called as bash(1) calls it.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use linerate_core::record::{PingPlan, Plan, Record, RecordId, Tool};
use linerate_core::study::StudyPlan;
use linerate_core::time::WallTime;
use linerate_store::{NewStudyRun, Store};
use tempfile::TempDir;

use crate::support::{command, stdout};

/// A user with a store of two results and a run, and a configuration with two hosts.
fn user() -> TempDir {
    let home = tempfile::tempdir().expect("a directory");
    let config = home.path().join(".config/linerate");
    fs::create_dir_all(&config).expect("made");
    let hosts = "[hosts.lab-b]\naddress = \"192.0.2.7\"\n[hosts.lab-c]\n";
    fs::write(config.join("config.toml"), hosts).expect("written");
    let mut store = Store::open(&home.path().join("results.db")).expect("a store");
    let hosts = [("2001:db8::7", Some("morning")), ("$(touch x)", Some("two words"))];
    for (n, (host, name)) in (1..).zip(hosts) {
        let id = RecordId::from_parts(0x1_0000 * u64::from(n), [n; 10]);
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let plan = Plan::Ping(PingPlan { host: host.to_owned(), ..PingPlan::default() });
        let at = WallTime::from_unix_nanos(u128::from(n) * 1_000_000_000);
        let mut record = Record::from_plan(id, tool, plan, at);
        record.name = name.map(str::to_owned);
        store.put_record(&record).expect("stored");
    }
    let pren = linerate_engine::study::shipped("pren").expect("a built-in study");
    let mut plan: StudyPlan = toml::from_str(pren.toml).expect("it is sound");
    plan.name = "mine".to_owned();
    let id = RecordId::from_parts(0x9_0000, [9; 10]).to_string();
    let started_at = WallTime::from_unix_nanos(9_000_000_000);
    store.begin_run(&NewStudyRun { id, plan, started_at, host: None }).expect("begun");
    home
}

/// The program as that user runs it.
fn as_user(command: &mut Command, home: &Path) {
    command.env("HOME", home).env("LINERATE_STORE", home.join("results.db"));
    command.env_remove("XDG_CONFIG_HOME").env_remove("LINERATE_CONFIG").current_dir(home);
}

/// What bash offers for the last word of a line. `$2` is the part of it behind the last of
/// COMP_WORDBREAKS, with an `@` before it (rl_special_prefixes).
fn offered(home: &Path, line: &str) -> Vec<String> {
    const ASK: &str = r#"
        source <(linerate generate completions bash)
        COMP_LINE=$1 COMP_POINT=${#1}
        breaks=$' "\'><=;|&(:\t'
        _linerate_words linerate "${1##*["$breaks"]}" "" 2>/dev/null
        printf '%s\n' "${COMPREPLY[@]}"
    "#;
    let program = Path::new(env!("CARGO_BIN_EXE_linerate")).parent().expect("a directory");
    let path = format!("{}:{}", program.display(), std::env::var("PATH").expect("a path"));
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", ASK, "bash", line]).env("PATH", path);
    as_user(&mut bash, home);
    let output = bash.output().expect("bash runs");
    stdout(&output).lines().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_what_the_user_has() {
    let home = user();
    for (line, expected) in [
        ("linerate tcp l", &["lab-b", "lab-c"][..]),
        ("linerate ping 2001:d", &["db8::7"]),
        ("linerate history --host lab", &["lab-b", "lab-c"]),
        ("linerate report @", &["@-1", "@-2", "@-3"]),
        ("linerate report 0", &["00000009-0000", "00000002-0000", "00000001-0000"]),
        ("linerate diff @-1 mor", &["morning"]),
        ("linerate export --name ", &["morning"]),
        ("linerate study run g", &["gigasunet"]),
        ("linerate study show p", &["pren"]),
        ("linerate history --study m", &["mine"]),
        ("linerate report --run ", &["00000009-0000-7909-8909-090909090909"]),
        ("linerate history --kind u", &["udp"]),
        ("linerate hist", &["history"]),
    ] {
        let offered = offered(home.path(), line);
        let distinct: std::collections::BTreeSet<&str> =
            offered.iter().map(String::as_str).collect();
        assert_eq!(distinct, expected.iter().copied().collect(), "{line}");
    }
    assert!(!home.path().join("x").exists(), "a stored name is never run");
}

#[test]
fn without_a_readable_store_or_configuration_candidates_are_few_and_nothing_is_said() {
    let home = user();
    fs::write(home.path().join(".config/linerate/config.toml"), "[hosts").expect("written");
    fs::write(home.path().join("results.db"), "no store").expect("written");
    for (what, expected) in [("hosts", ""), ("results", ""), ("names", ""), ("runs", "")] {
        let mut command = command(&["generate", "candidates", what]);
        as_user(&mut command, home.path());
        let output = command.output().expect("the program runs");
        assert_eq!(output.status.code(), Some(0), "{what}");
        assert_eq!((stdout(&output).as_str(), output.stderr.len()), (expected, 0), "{what}");
    }
}

/// A FIFO without a writer stands for whatever does not answer.
#[test]
fn a_file_that_does_not_answer_does_not_stop_a_shell() {
    let home = user();
    let config = home.path().join(".config/linerate/config.toml");
    fs::remove_file(&config).expect("removed");
    assert!(Command::new("mkfifo").arg(&config).status().expect("mkfifo runs").success());
    let mut command = command(&["generate", "candidates", "hosts"]);
    as_user(&mut command, home.path());
    let begin = linerate_sys::clock::monotonic();
    let output = command.output().expect("the program runs");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 0));
    let took = linerate_sys::clock::monotonic().duration_since(begin);
    // 0.3 s and the start of a program, which a busy machine makes longer; a read has no end.
    assert!(took < Duration::from_secs(60), "{took:?}");
}
