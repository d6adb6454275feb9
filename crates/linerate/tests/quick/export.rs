//! `linerate serve --remote-write` and `--otlp`: receivers on loopback get the figures, and get
//! them again when they could not take them.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use crate::support::{Server, check_wrong_use};
use serde_json::Value;

/// A receiver that answers one request after another with these; what it got: head and body.
fn receiver(answers: &'static [&'static str]) -> (String, Receiver<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let (sender, got) = channel();
    std::thread::spawn(move || {
        for answer in answers {
            let Ok((mut stream, _)) = listener.accept() else { return };
            let mut bytes = Vec::new();
            let whole = loop {
                let mut part = [0; 4096];
                let count = stream.read(&mut part).unwrap_or(0);
                bytes.extend_from_slice(&part[..count]);
                let text = String::from_utf8_lossy(&bytes).into_owned();
                let Some((head, _)) = text.split_once("\r\n\r\n") else {
                    assert!(count > 0, "the request ends: {text}");
                    continue;
                };
                let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
                let length: usize = length.expect("a length").parse().expect("a number");
                if bytes.len() >= head.len() + 4 + length {
                    break (head.to_owned(), bytes[head.len() + 4..].to_vec());
                }
            };
            let _ = stream.write_all(format!("HTTP/1.1 {answer}\r\n\r\n").as_bytes());
            if sender.send(whole).is_err() {
                return;
            }
        }
    });
    (address, got)
}

#[test]
fn receivers_get_the_figures_and_one_that_could_not_take_them_gets_the_same_again() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let store = directory.path().join("results.db").display().to_string();
    let (write, written) = receiver(&["503 Service Unavailable", "204 No Content"]);
    let (collector, collected) = receiver(&["200 OK"]);
    let (write, otlp) =
        (format!("http://{write}/api/v1/write"), format!("http://{collector}/v1/m"));
    let _server = Server::start(&["--store", &store, "--remote-write", &write, "--otlp", &otlp]);
    let next = |got: &Receiver<(String, Vec<u8>)>| {
        got.recv_timeout(Duration::from_secs(120)).expect("figures within two minutes")
    };
    let (head, body) = next(&written);
    for line in [
        "POST /api/v1/write HTTP/1.1",
        "Content-Type: application/x-protobuf",
        "Content-Encoding: snappy",
        "X-Prometheus-Remote-Write-Version: 0.1.0",
    ] {
        assert!(head.lines().any(|it| it == line), "{line}: {head}");
    }
    // What comes first in a block of Snappy has nothing before it to be copied from.
    let begin = String::from_utf8_lossy(&body[..64]).into_owned();
    assert!(begin.contains("__name__") && begin.contains("linerate_tests_running"), "{begin}");
    assert_eq!(next(&written).1, body, "the same again");
    let (head, body) = next(&collected);
    assert!(head.starts_with("POST /v1/m HTTP/1.1"), "{head}");
    let document: Value = serde_json::from_slice(&body).expect("JSON");
    let metrics = document.pointer("/resourceMetrics/0/scopeMetrics/0/metrics").expect("metrics");
    let metrics = metrics.as_array().expect("a list");
    let running = metrics.iter().find(|it| it["name"] == "linerate_tests_running");
    let value = running.and_then(|it| it.pointer("/gauge/dataPoints/0/asDouble"));
    assert_eq!(value.and_then(Value::as_f64), Some(0.0), "{document}");
}

#[test]
fn an_address_that_is_none_is_refused() {
    let words =
        ["serve", "--port", "0", "--bind", "127.0.0.1", "--stamp-port", "none", "--no-save"];
    for (flag, url) in [("--remote-write", "prom:9090"), ("--otlp", "ftp://h/v1/metrics")] {
        check_wrong_use(&[&words[..], &[flag, url]].concat(), &["an address is https://HOST"]);
    }
}
