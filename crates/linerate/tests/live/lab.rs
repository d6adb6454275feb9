//! `linerate lab` as a program: exit codes, messages, and what is left when it is killed.
//!
//! Needs the privilege to make network namespaces, its own or that of a user namespace; says so
//! and passes when both are absent. Waits are loops with an end.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "helpers of tests")]

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use linerate_sys::netlink::RouteSocket;
use linerate_sys::{clock, fd_passing, netns};

const PROGRAM: &str = env!("CARGO_BIN_EXE_linerate");

fn linerate(arguments: &[&str]) -> Output {
    crate::support::turn::take();
    Command::new(PROGRAM).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn error(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(text.lines().count(), 1, "one line: {text}");
    text
}

/// Whether this host lets the program build a laboratory.
fn labs_are_possible() -> bool {
    let output = linerate(&["lab", "run", "cable", "--on", "a", "--", "true"]);
    if output.status.success() {
        return true;
    }
    println!("skipped: {}", String::from_utf8_lossy(&output.stderr).trim_end());
    false
}

/// The number in the output of `readlink /proc/self/ns/net`: `net:[4026531840]`.
fn namespace_number(output: &Output) -> u64 {
    let text = String::from_utf8_lossy(&output.stdout).trim_end().to_owned();
    text.strip_prefix("net:[").unwrap().strip_suffix(']').unwrap().parse().unwrap()
}

/// A laboratory that another process holds.
struct Held {
    process: Child,
    pid: String,
}

impl Held {
    fn start(plan: &str) -> Self {
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "run", plan]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().starts_with("enter a host with")));
        let pid = process.id().to_string();
        Self { process, pid }
    }

    fn shell(&self, host: &str, command: &[&str]) -> Output {
        let arguments = ["lab", "shell", host, "--lab", &self.pid, "--"];
        linerate(&[&arguments[..], command].concat())
    }

    fn namespace(&self, host: &str) -> u64 {
        namespace_number(&self.shell(host, &["readlink", "/proc/self/ns/net"]))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Looks every 10 ms until it holds; fails after 10 s.
fn eventually(what: &str, holds: impl Fn() -> bool) {
    for _ in 0..1000 {
        if holds() {
            return;
        }
        clock::sleep(Duration::from_millis(10));
    }
    panic!("not within 10 s: {what}");
}

fn links_of_this_host() -> BTreeSet<String> {
    let links = RouteSocket::open().unwrap().list_links().unwrap();
    links.into_iter().map(|link| link.name).collect()
}

#[test]
fn a_command_runs_on_its_host_and_its_status_is_passed_on() {
    if !labs_are_possible() {
        return;
    }
    let script = "echo $LINERATE_HOST of $LINERATE_LAB; exit 7";
    let output = linerate(&["lab", "run", "router", "--on", "b", "--", "sh", "-c", script]);
    assert_eq!(output.status.code(), Some(7));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "b of router\n");
    let output = linerate(&["lab", "run", "cable", "--on", "b", "--", "sh", "-c", "kill -9 $$"]);
    assert_eq!(output.status.code(), Some(128 + 9));
    let output = linerate(&["lab", "run", "cable", "--on", "b", "--", "/nonexistent"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("run /nonexistent: no such file"));
}

#[test]
fn what_a_command_leaves_behind_ends_with_the_laboratory() {
    if !labs_are_possible() {
        return;
    }
    let script = "trap '' HUP; sleep 1000 >/dev/null 2>&1 & readlink /proc/self/ns/net";
    let output = linerate(&["lab", "run", "cable", "--on", "a", "--", "sh", "-c", script]);
    assert!(netns::processes_inside(&[namespace_number(&output)]).is_empty());
}

#[test]
fn a_killed_laboratory_leaves_no_namespace_no_process_and_no_socket() {
    if !labs_are_possible() {
        return;
    }
    let before = links_of_this_host();
    let mut held = Held::start("router");
    let ids = ["a", "b", "r"].map(|host| held.namespace(host));
    assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), 3);
    let script = "trap '' HUP; sleep 1000 & wait";
    let mut sleeper = Command::new(PROGRAM);
    sleeper.args(["lab", "shell", "a", "--lab", &held.pid, "--", "sh", "-c", script]);
    let mut sleeper = sleeper.stdin(Stdio::null()).spawn().unwrap();
    // The shell, its sleep, and the program that waits for them.
    eventually("a shell is inside", || netns::processes_inside(&ids).len() == 3);
    held.process.kill().unwrap();
    held.process.wait().unwrap();
    assert!(!sleeper.wait().unwrap().success());
    eventually("nobody is inside", || netns::processes_inside(&ids).is_empty());
    let sockets = fd_passing::abstract_names(&format!("linerate/lab/{}/", held.pid)).unwrap();
    assert!(sockets.is_empty(), "{sockets:?}");
    assert_eq!(links_of_this_host(), before);
}

#[test]
fn of_two_laboratories_one_is_named_by_its_process() {
    if !labs_are_possible() {
        return;
    }
    let first = Held::start("cable");
    let second = Held::start("cable");
    assert_ne!(first.namespace("a"), second.namespace("a"));
    let output = linerate(&["lab", "shell", "a", "--", "true"]);
    assert_eq!(output.status.code(), Some(2));
    let line = error(&output);
    assert!(line.contains("several run: ") && line.contains(&first.pid), "{line}");
    let output = first.shell("nobody", &["true"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(error(&output).contains("it has a, b"));
    assert_eq!(first.shell("a", &["sh", "-c", "exit 3"]).status.code(), Some(3));
}

#[test]
fn a_laboratory_ends_well_on_sigterm() {
    if !labs_are_possible() {
        return;
    }
    let mut held = Held::start("cable");
    assert!(Command::new("kill").arg(&held.pid).status().unwrap().success());
    assert_eq!(held.process.wait().unwrap().code(), Some(0));
}

#[test]
fn wrong_plans_and_wrong_names_are_one_line_and_exit_2() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("wrong.toml");
    let path = file.to_str().unwrap();
    let fails = |arguments: &[&str], words: &str| {
        let output = linerate(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let line = error(&output);
        assert!(line.contains(words), "{line}");
    };
    std::fs::write(&file, "[[host]]\nname = \"a\"\ncolour = \"red\"\n").unwrap();
    fails(&["lab", "check", path], "wrong.toml:3:1: unknown field `colour`");
    std::fs::write(&file, [0xff, 0xfe, 0x00]).unwrap();
    fails(&["lab", "run", path], "invalid utf-8");
    fails(&["lab", "check", "nonexistent"], "give a TOML file, or one of cable, switch");
    let on_z = ["lab", "run", "cable", "--on", "z", "--", "true"];
    fails(&on_z, "find host z: the plan has no such host");
    let no_lab = ["lab", "shell", "a", "--lab", "no-such-lab"];
    fails(&no_lab, "none of name or pid no-such-lab runs here");
}

#[test]
fn an_unknown_command_is_told_without_an_error_number() {
    if !labs_are_possible() {
        return;
    }
    let output = linerate(&["lab", "run", "cable", "--on", "a", "--", "no-such-command"]);
    assert_eq!(output.status.code(), Some(2));
    let said = error(&output);
    assert!(said.contains("no-such-command") && !said.contains("os error"), "{said}");
}

#[test]
fn the_shipped_plans_have_a_map() {
    for plan in ["cable", "switch", "router", "filters", "oc3"] {
        let output = linerate(&["lab", "check", plan]);
        assert_eq!(output.status.code(), Some(0), "{plan}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("10.0.1.1"), "{plan}");
    }
}
