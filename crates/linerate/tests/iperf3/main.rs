//! iperf3 from either side: `linerate tcp --via iperf3`, `linerate serve` and `linerate iperf3`
//! with Debian's iperf3 on loopback. Bytes counted by both sides agree; rates are not judged.
//! Without iperf3 on the path only what needs none runs.

mod counts;
mod flags;
mod peer;
#[path = "../support/mod.rs"]
mod support;
mod users;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;

use peer::{Peer, at_last, bytes, ensure, has_iperf3, json};
use support::{
    command, end_of, free_port, interrupt, linerate, stderr, stdout, wait_until_listening,
};

#[test]
fn a_second_client_of_iperf3_is_told_that_the_server_is_busy() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::serve(&[]);
    let mut first = Command::new("iperf3")
        .args(["-c", "127.0.0.1", "-p", &server.port, "-t", "20", "-b", "10M", "--forceflush"])
        .stdout(Stdio::piped())
        .spawn()
        .expect("iperf3 starts");
    let pipe = first.stdout.take().expect("a pipe");
    let connected = BufReader::new(pipe).lines().map_while(Result::ok);
    assert!(connected.into_iter().any(|line| line.contains("connected to")));
    let output = server.asked_by_iperf3(&["-t", "1"]);
    assert!(stderr(&output).contains("busy running a test"), "{}", stderr(&output));
    let output = linerate(&["tcp", "--via=iperf3", "127.0.0.1", "--port", &server.port]);
    assert_eq!(output.status.code(), Some(4), "{}", stderr(&output));
    // A client that dies gives its place back.
    first.kill().expect("it runs");
    let _ = first.wait();
    at_last(|| {
        linerate_sys::clock::sleep(Duration::from_millis(500));
        let output = server.asked_by_iperf3(&["-n", "1000"]);
        ensure(output.status.success(), stderr(&output))
    });
}

#[test]
fn the_lines_are_those_of_iperf3() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    // Digits are the measurement's; the rest of the lines is held to iperf3's own.
    let shape = |text: String| -> Vec<String> {
        let plain = |line: &str| {
            let digits = line.replace(|c: char| c.is_ascii_digit(), "#");
            let units = ["T", "G", "M", "K"].iter().fold(digits, |line, unit| {
                line.replace(&format!("{unit}Bytes"), "Bytes")
                    .replace(&format!("{unit}bits"), "bits")
            });
            let words: Vec<&str> = units.split_whitespace().collect();
            words.join(" ").replace("##.#", "#.##").replace("####", "#.##").replace("###", "#.##")
        };
        text.lines().map(plain).collect()
    };
    // With one second iperf3 3.12 may print the head of a reverse test after the results are there.
    let words = |line: &String| line.split(' ').count();
    let first = |line: &String| line.split(' ').next().map(str::to_owned);
    let plan = |lines: &[String]| lines.iter().map(|line| (first(line), words(line))).collect();
    for flags in [&["-t", "2"][..], &["-t", "2", "-R"], &["-t", "1", "-P", "2"]] {
        // A busy machine may add a row to either.
        at_last(|| {
            let own = server.asked(&[flags, &["-C", "cubic", "-b", "30M"]].concat());
            let theirs = server.asked_by_iperf3(&[flags, &["-b", "30M"]].concat());
            let (own, theirs) = (shape(stdout(&own)), shape(stdout(&theirs)));
            let plans: [Vec<_>; 2] = [plan(&own), plan(&theirs)];
            ensure(plans[0] == plans[1], format_args!("{own:#?}\n{theirs:#?}"))
        });
    }
}

#[test]
fn a_server_of_this_command_line_prints_and_ends_like_iperf3s() {
    if !has_iperf3() {
        return;
    }
    let folder = tempfile::tempdir().expect("a directory");
    let log = folder.path().join("log");
    let port = free_port();
    let log_text = log.to_string_lossy();
    let flags =
        ["iperf3", "-s", "--one-off", "-B", "127.0.0.1", "-p", &port, "--logfile", &log_text];
    let mut server = command(&flags).spawn().expect("it starts");
    wait_until_listening(&port);
    let child = Command::new("true").spawn().expect("starts");
    let peer = Peer { child, port, listens: None };
    let output = peer.asked_by_iperf3(&["-n", "1000000", "--get-server-output"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert_eq!(end_of(&mut server).and_then(|status| status.code()), Some(0));
    let said = std::fs::read_to_string(&log).expect("the log");
    assert!(said.contains(&format!("Server listening on {} (test #1)", peer.port)), "{said}");
    assert!(said.contains("Accepted connection from 127.0.0.1, port "), "{said}");
    assert!(said.trim_end().ends_with("receiver"), "{said}");

    let server = Peer::personality(&["--verbose"]);
    let (sent, received) = bytes(&json(&server.asked_by_iperf3(&["-n", "10M", "-J"])), "");
    assert_eq!(sent, received);
    let mut server = server;
    interrupt(&server.child);
    assert_eq!(end_of(&mut server.child).and_then(|status| status.code()), Some(0));
}

#[test]
fn a_server_with_json_prints_a_document_a_test() {
    let port = free_port();
    let mut server = command(&["iperf3", "-s", "-1", "-J", "-B", "127.0.0.1", "-p", &port])
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    wait_until_listening(&port);
    let asked = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-n", "100K", "-R"]);
    assert!(asked.status.success(), "{}", stderr(&asked));
    let mut text = String::new();
    let mut pipe = server.stdout.take().expect("a pipe");
    Read::read_to_string(&mut pipe, &mut text).expect("UTF-8");
    let document: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!(document["start"]["accepted_connection"]["host"], "127.0.0.1");
    assert_eq!(document["end"]["sum_sent"]["bytes"], 102_400);
    let _ = server.wait();
}

#[test]
fn a_link_named_iperf3_takes_its_flags() {
    let folder = tempfile::tempdir().expect("a directory");
    let link = folder.path().join("iperf3");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &link).expect("a link");
    let output = Command::new(&link).arg("--version").output().expect("the link starts");
    assert!(stdout(&output).starts_with("iperf 3.12 (linerate "), "{}", stdout(&output));
    let output = Command::new(&link).output().expect("the link starts");
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("either be a client (-c) or server (-s)"));
}

#[test]
fn nobody_there_is_an_error_of_one_line_and_code_1() {
    let port = free_port();
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port]);
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.starts_with("iperf3: error - ") && said.lines().count() == 1, "{said}");
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &port, "-J"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("a document");
    assert!(document["error"].as_str().is_some_and(|error| error.starts_with("error - connect")));
    let output = linerate(&["iperf3", "-c", "::1", "-p", &port, "--version6"]);
    assert_eq!(output.status.code(), Some(1));
}
