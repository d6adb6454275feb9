//! Programs that read `iperf3 -J`: the keys that each looks up, as a table over the documents of
//! this program. They are facts of pScheduler's iperf3_parser.py, of the class TestResult of the
//! Python package iperf3 0.1.11, and of the Prometheus exporter edgard/iperf3_exporter.

use serde_json::Value;

use super::peer::{Peer, json};
use crate::support::{free_port, linerate, stderr};

/// What a reader takes at a path; `*` stands for every element.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Number,
    Text,
    /// A number, or null where the other end's share of several streams is not known.
    Share,
}

use Kind::{Number, Share, Text};

/// A path, and what is read there.
type Keys = &'static [(&'static str, Kind)];

/// pScheduler, every test: intervals with their sum, and streams.
const PSCHEDULER: Keys = &[
    ("intervals.*.streams.*.socket", Number),
    ("intervals.*.streams.*.start", Number),
    ("intervals.*.streams.*.end", Number),
    ("intervals.*.streams.*.bytes", Number),
    ("intervals.*.streams.*.bits_per_second", Number),
    ("intervals.*.sum.start", Number),
    ("intervals.*.sum.end", Number),
    ("intervals.*.sum.bytes", Number),
    ("intervals.*.sum.bits_per_second", Number),
    ("end.sum_sent.bits_per_second", Number),
    ("end.sum_sent.bytes", Number),
];

/// pScheduler, streams of TCP in the summary.
const PSCHEDULER_TCP: Keys = &[
    ("end.streams.*.sender.socket", Number),
    ("end.streams.*.sender.bits_per_second", Number),
    ("end.sum_sent.retransmits", Number),
];

/// The same where this end sends.
const PSCHEDULER_SENDER: Keys = &[
    ("intervals.*.streams.*.retransmits", Number),
    ("intervals.*.streams.*.snd_cwnd", Number),
    ("intervals.*.streams.*.rtt", Number),
    ("end.streams.*.sender.mean_rtt", Number),
];

/// pScheduler, streams of UDP in the summary.
const PSCHEDULER_UDP: Keys = &[
    ("end.streams.*.udp.bits_per_second", Number),
    ("end.streams.*.udp.jitter_ms", Number),
    ("end.streams.*.udp.packets", Number),
    ("end.streams.*.udp.lost_packets", Number),
];

/// The Python package, every test.
const PYTHON: Keys = &[
    ("start.timestamp.time", Text),
    ("start.timestamp.timesecs", Number),
    ("start.system_info", Text),
    ("start.version", Text),
    ("start.connected.*.local_host", Text),
    ("start.connected.*.local_port", Number),
    ("start.connected.*.remote_host", Text),
    ("start.connected.*.remote_port", Number),
    ("start.connecting_to.host", Text),
    ("start.test_start.protocol", Text),
    ("start.test_start.num_streams", Number),
    ("start.test_start.blksize", Number),
    ("start.test_start.omit", Number),
    ("start.test_start.duration", Number),
    ("start.test_start.reverse", Number),
    ("end.cpu_utilization_percent.host_total", Number),
    ("end.cpu_utilization_percent.host_user", Number),
    ("end.cpu_utilization_percent.host_system", Number),
    ("end.cpu_utilization_percent.remote_total", Share),
    ("end.cpu_utilization_percent.remote_user", Share),
    ("end.cpu_utilization_percent.remote_system", Share),
];

/// The Python package, TCP.
const PYTHON_TCP: Keys = &[
    ("start.tcp_mss_default", Number),
    ("end.sum_sent.bytes", Number),
    ("end.sum_sent.bits_per_second", Number),
    ("end.sum_sent.retransmits", Number),
    ("end.sum_received.bytes", Number),
    ("end.sum_received.bits_per_second", Number),
];

/// The Python package, UDP.
const PYTHON_UDP: Keys = &[
    ("end.sum.bytes", Number),
    ("end.sum.bits_per_second", Number),
    ("end.sum.jitter_ms", Number),
    ("end.sum.packets", Number),
    ("end.sum.lost_packets", Number),
    ("end.sum.lost_percent", Number),
    ("end.sum.seconds", Number),
];

/// The exporter reads both ends whatever the protocol.
const EXPORTER: Keys = &[
    ("end.sum_sent.seconds", Number),
    ("end.sum_sent.bytes", Number),
    ("end.sum_sent.bits_per_second", Number),
    ("end.sum_received.seconds", Number),
    ("end.sum_received.bytes", Number),
    ("end.sum_received.bits_per_second", Number),
];

/// The values at a path.
fn values<'a>(document: &'a Value, path: &str) -> Vec<&'a Value> {
    path.split('.').fold(vec![document], |found, step| {
        let next = |value: &'a Value| match step {
            "*" => value.as_array().map(|all| all.iter().collect()).unwrap_or_default(),
            key => vec![&value[key]],
        };
        found.into_iter().flat_map(next).collect()
    })
}

fn check(document: &Value, tables: &[Keys], what: &[&str]) {
    for (path, kind) in tables.iter().copied().flatten() {
        let found = values(document, path);
        assert!(!found.is_empty(), "{what:?}: nothing at {path} in {document}");
        for value in found {
            let fits = match kind {
                Number => value.is_number(),
                Text => value.is_string(),
                Share => value.is_number() || value.is_null(),
            };
            assert!(fits, "{what:?}: {path} is {value}");
        }
    }
}

#[test]
fn readers_of_tcp_tests_find_what_they_look_up() {
    let server = Peer::personality(&[]);
    let all = [PSCHEDULER, PSCHEDULER_TCP, PYTHON, PYTHON_TCP, EXPORTER];
    for flags in [&["-n", "300K"][..], &["-n", "300K", "-R"], &["-n", "300K", "-P", "2"]] {
        let document = json(&server.asked(&[flags, &["-J"]].concat()));
        check(&document, &all, flags);
        if !flags.contains(&"-R") {
            check(&document, &[PSCHEDULER_SENDER], flags);
        }
        // 300 KiB; blocks of 128 that have begun are sent whole.
        let bytes = document["end"]["sum_received"]["bytes"].as_u64().expect("counted");
        assert!((300 << 10..=(300 + 2 * 128) << 10).contains(&bytes), "{flags:?}: {bytes}");
        assert!(document.get("error").is_none(), "{document}");
    }
    let flags = ["-n", "300K", "--bidir"];
    let document = json(&server.asked(&[&flags[..], &["-J"]].concat()));
    check(&document, &all, &flags);
    let back = &document["end"]["sum_received_bidir_reverse"]["bits_per_second"];
    assert!(back.is_number(), "{document}");
}

#[test]
fn readers_of_udp_tests_find_what_they_look_up() {
    let server = Peer::personality(&[]);
    for flags in
        [&["-u", "-k", "20"][..], &["-u", "-k", "20", "-R"], &["-u", "-k", "20", "--bidir"]]
    {
        let document = json(&server.asked(&[flags, &["-b", "5M", "-J"]].concat()));
        check(&document, &[PSCHEDULER, PSCHEDULER_UDP, PYTHON, PYTHON_UDP, EXPORTER], flags);
        // 3.21 gives what was sent with what was lost; nothing is lost of 20 datagrams here.
        let (sum, sent) = (&document["end"]["sum"], &document["end"]["sum_sent"]);
        assert_eq!(sum["bytes"], sent["bytes"], "{flags:?}");
        assert_eq!(sent["sender"], true, "{flags:?}");
        assert_eq!(document["end"]["sum_received"]["sender"], false, "{flags:?}");
    }
}

#[test]
fn readers_of_a_failed_test_find_its_reason_and_no_number() {
    let output = linerate(&["iperf3", "-c", "127.0.0.1", "-p", &free_port(), "-J"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    let document: Value = serde_json::from_slice(&output.stdout).expect("one document");
    check(&document, &[&[("error", Text), ("start.version", Text)]], &["error"]);
    assert_eq!(values(&document, "intervals.*").len(), 0);
    let end = document["end"].as_object().expect("an object");
    assert!(end.is_empty(), "no null and no 0: {document}");
}
