//! A client of iperf3's command line that comes late to its own test, as on a busy host: a server
//! of the test's own sends data before it says that the test runs, so that the order is certain.
//! Its messages are those of iperf3 3.12.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::thread::JoinHandle;
use std::time::Duration;

use linerate_sys::{clock, tcp};
use serde_json::Value;

use crate::support::{linerate, stderr, stdout};

/// Payload that comes before the test begins, and after that.
const EARLY: usize = 40_000;
const LATER: usize = 5_000;

/// What the server says, by one byte each.
const PARAMETERS: u8 = 9;
const STREAMS: u8 = 10;
const START: u8 = 1;
const RUNNING: u8 = 2;
const RESULTS: u8 = 13;
const DISPLAY: u8 = 14;
/// What the client says when the test is over.
const END: u8 = 4;

/// A text behind its length, which is how both ends send their documents.
fn document(mut control: &TcpStream) -> Value {
    let mut length = [0; 4];
    control.read_exact(&mut length).expect("a length");
    let mut text = vec![0; u32::from_be_bytes(length) as usize];
    control.read_exact(&mut text).expect("a document");
    serde_json::from_slice(&text).expect("a document")
}

fn say(mut control: &TcpStream, bytes: &[u8]) {
    control.write_all(bytes).expect("the client is there");
}

/// Serves one test in which this end sends; what the client tells of it.
fn serve(listener: &TcpListener) -> Value {
    let (control, _) = listener.accept().expect("a control connection");
    let mut cookie = [0; 37];
    (&control).read_exact(&mut cookie).expect("a cookie");
    say(&control, &[PARAMETERS]);
    document(&control);
    say(&control, &[STREAMS]);
    let (data, _) = listener.accept().expect("a stream");
    say(&data, &[7; EARLY]);
    // All of it has come once all of it is acknowledged.
    while tcp::send_queue(data.as_fd()) != Some(0) {
        clock::sleep(Duration::from_millis(1));
    }
    say(&control, &[START, RUNNING]);
    // The client has begun meanwhile, unless its host kept it waiting for as long.
    clock::sleep(Duration::from_millis(300));
    say(&data, &[7; LATER]);
    let mut end = [0];
    (&control).read_exact(&mut end).expect("the end");
    assert_eq!(end, [END]);
    say(&control, &[RESULTS]);
    let told = document(&control);
    let bytes = EARLY + LATER;
    let own = format!(
        r#"{{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,
            "sender_has_retransmits":-1,"streams":[{{"id":1,"bytes":{bytes},"retransmits":-1,
            "jitter":0,"errors":0,"packets":0,"start_time":0,"end_time":1}}]}}"#
    );
    say(&control, &(own.len() as u32).to_be_bytes());
    say(&control, own.as_bytes());
    say(&control, &[DISPLAY]);
    let _ = (&control).read(&mut end);
    told
}

/// What a client with these flags prints, and what it tells the server.
fn measured(amount: &str) -> (Value, Value) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port().to_string();
    let server: JoinHandle<Value> = std::thread::spawn(move || serve(&listener));
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-R", "-J", amount, "-p", &port]);
    let told = server.join().expect("the server ends well");
    assert_eq!(output.status.code(), Some(0), "{}{}", stderr(&output), stdout(&output));
    (serde_json::from_slice(&output.stdout).expect("a document"), told)
}

fn rows_of(document: &Value) -> u64 {
    let rows = document["intervals"].as_array().expect("intervals").iter();
    rows.map(|row| row["sum"]["bytes"].as_u64().expect("bytes")).sum()
}

#[test]
fn what_came_before_a_late_client_began_its_time_does_not_count_in_it() {
    let (printed, told) = measured("-t1");
    let received = &printed["end"]["sum_received"];
    // One that was kept waiting until all had come has none of it in its time.
    assert!(received["bytes"] == LATER || received["bytes"] == 0, "{received}");
    assert_eq!(received["bytes"], rows_of(&printed), "{}", printed["intervals"]);
    assert_eq!(received["bytes"], told["streams"][0]["bytes"], "{told}");
}

#[test]
fn an_amount_counts_whole_whenever_it_came() {
    let bytes = EARLY + LATER;
    let (printed, told) = measured(&format!("-n{bytes}"));
    let received = &printed["end"]["sum_received"];
    assert_eq!(received["bytes"], bytes, "{received}");
    assert_eq!(rows_of(&printed), bytes as u64, "{}", printed["intervals"]);
    assert_eq!(told["streams"][0]["bytes"], bytes, "{told}");
}
