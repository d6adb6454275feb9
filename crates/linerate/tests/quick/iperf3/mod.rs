//! iperf3 from either side: `linerate tcp --via iperf3`, `linerate serve` and `linerate iperf3`
//! with Debian's iperf3 on loopback. Bytes counted by both sides agree; rates are not judged.
//! Without iperf3 on the path only what needs none runs.

mod counts;
mod drop_in;
mod flags;
mod lines;
mod peer;
mod readers;
mod users;

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{
    command, end_of, free_port, interrupt, linerate, stderr, wait_until_listening,
};
use peer::{Peer, bytes, has_iperf3, json};

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
    server.wait_for_line("closed the control connection");
    let output = server.asked_by_iperf3(&["-n", "1000"]);
    assert!(output.status.success(), "{}", stderr(&output));
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
    let lines = std::sync::mpsc::channel().1;
    let peer = Peer { child, port, listens: None, lines };
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
