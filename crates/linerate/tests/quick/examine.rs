//! `linerate test` against `linerate serve` over loopback: every flag reaches the plans, each part
//! of the examination is there and is kept. Figures are not judged: other tests share the machine.

use std::sync::{Mutex, PoisonError};

use crate::support::{self, Server, ends_with, linerate, stderr};
use serde_json::Value;

/// Tests of a second, in which a receiver reads more than once at a load of 30, do not go beside
/// those that fill loopback.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn an_examination_keeps_its_parts_and_says_what_it_does_not_know() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let server = Server::start(&[]);
    let flags = ["--time=1s", "--count=5", "--congestion=reno", "--ipv4", "--tag=site=b"];
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--store", &store];
    let text = examined(&[&fixed[..], &flags].concat());
    has_each_line_once(&text);
    assert!(!text.contains("the tester itself"), "the headline says so, with its figure: {text}");
    for part in ["this host", "no ceiling (loopback)", "Mbit/s", "-P1", "RTT", "loaded", "notes"] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    let rows = ends_with(0, &["history", "--json", "--store", &store]);
    let rows: Value = serde_json::from_str(&rows).expect("one JSON array");
    let rows = rows.as_array().expect("one JSON array");
    assert_eq!((rows.len(), &rows[0]["kind"]), (1, &Value::from("test")), "one result");
    assert!(rows[0]["goodput_bps"].as_f64() > Some(0.0), "{rows:?}");
    assert!(rows[0]["goodput_reverse_bps"].as_f64() > Some(0.0), "{rows:?}");
    assert_eq!(ends_with(0, &["report", "@-1", "--store", &store]), text, "shown again");
    let whole = ends_with(0, &["report", "@-1", "--store", &store, "--verbose"]);
    for part in ["Round trips by payload", "TCP by window", "TCP by streams", "Probe trains"] {
        assert!(whole.contains(part), "no {part} in {whole}");
    }
    let again = ends_with(0, &["report", "--json", "--store", &store]);
    let again: Value = serde_json::from_str(&again).expect("one document");
    assert!(again["parts"].as_array().is_some_and(|parts| parts.len() >= 7), "{again}");
    assert_eq!(again["tags"]["site"], "b");
}

/// What an examination prints. On a busy host a receiver may get no processor within a test: the
/// examination then ends there, says what did not arrive, and is made again.
fn examined(arguments: &[&str]) -> String {
    for _ in 0..4 {
        let output = linerate(arguments);
        if output.status.success() {
            return support::stdout(&output);
        }
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(5), "{said}");
        assert!(said.contains("nothing arrived of the "), "{said}");
    }
    panic!("{arguments:?}: a receiver got no processor in any of four examinations");
}

/// A busy host adds a queue within it, and what limits either way with its remedy; nothing else
/// stands beside the six lines of a quiet one.
fn has_each_line_once(text: &str) {
    let heads = ["Mbit/s", "up", "down", "RTT", "delay", "notes"];
    // A limit of this host is named before the rate, and a busy one makes the rate the least.
    assert!(text.starts_with("Limited by this host: ") || text.starts_with("At least "), "{text}");
    let first = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    let mut found: Vec<String> = text.lines().skip(1).map(first).collect();
    found.retain(|head| !["limit", "remedy", "queue"].contains(&head.as_str()));
    assert_eq!(found, heads, "{text}");
    for (extra, most) in [("limit", 2), ("remedy", 2), ("queue", 1)] {
        let count = text.lines().filter(|line| first(line) == extra).count();
        assert!(count <= most, "{count} times {extra} in {text}");
    }
}

#[test]
fn a_program_gets_json_and_nothing_is_kept_when_told_so() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(&[]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_string_lossy().into_owned();
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--time=1s", "--count=5"];
    let further = ["--no-save", "--quiet", "--name=n", "--output", &path];
    let told = [
        "--link=1g",
        "--capacity=900M",
        "--assert=ceiling < 1 Gbit/s",
        "--probes=100",
        "--probe-dscp=8",
        "--probe-ecn",
        "--rpm",
    ];
    let json = ends_with(0, &[&fixed[..], &further, &told, &["--json"]].concat());
    let json: Value = serde_json::from_str(&json).expect("one document");
    // 900 x 1448 / 1500 where packets are of 1500 bytes; loopback's are longer, and 1 Gbit/s more.
    let ceiling = json["ceiling"]["value"].as_f64().expect("it was told");
    assert!((868e6..900e6).contains(&ceiling), "{ceiling}");
    assert!(json["ceiling"]["inputs"].to_string().contains("as told by --link"), "{json}");
    let probes = &json["parts"][1]["plan"]["probes"];
    let expected = serde_json::json!({
        "interval_ns": 10_000_000, "idle_count": 8, "dscp": 8, "ecn": 0, "beside": [
            {"transport": "udp", "dscp": 8, "ecn": 2}, {"transport": "udp", "dscp": 8, "ecn": 1},
            {"transport": "tcp", "dscp": null},
        ],
    });
    assert_eq!(probes, &expected);
    trains_have_the_fate_of_every_packet(&json);
    let lines = ends_with(0, &[&fixed[..], &further, &["--jsonl"]].concat());
    for line in lines.lines() {
        let _: Value = serde_json::from_str(line).expect("one object a line");
    }
}

/// Ten trains back to back each way, and five paced ones. Packets of loopback are longer than any
/// size that is tried.
fn trains_have_the_fate_of_every_packet(json: &Value) {
    let trains = json["trains"].as_array().expect("they were sent");
    for direction in ["up", "down"] {
        let own = || trains.iter().filter(|train| train["direction"] == direction);
        assert_eq!(own().filter(|train| train["offered_bps"].is_null()).count(), 10, "{direction}");
        // One more goes both ways at once where the rounds are long enough for it.
        assert!([15, 16].contains(&own().count()), "{direction}: {} trains", own().count());
        for train in own() {
            let (sent, came) = (train["sent_ns"].as_array(), train["arrived_ns"].as_array());
            let (sent, came) = (sent.expect("a list"), came.expect("a list"));
            assert!(sent.len() >= 64 && sent.len() == came.len(), "{}", sent.len());
        }
        // A receiver that waits for a processor may lose a whole train in its socket's buffer.
        let lost = |train: &&Value| {
            train["arrived_ns"].as_array().is_none_or(|came| !came.iter().any(Value::is_i64))
        };
        assert!(own().filter(lost).count() <= 5, "{direction}: whole trains are lost");
    }
    let mtu = json["path_mtu"].as_array().expect("it was found");
    let found: Vec<_> = mtu.iter().map(|way| (&way["ip_bytes"], &way["above"])).collect();
    assert_eq!(found, [(&Value::from(9000), &Value::from("unknown")); 2], "{mtu:?}");
}

#[test]
fn a_quick_survey_takes_twelve_seconds_and_one_against_iperf3_has_no_trains() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(&[]);
    let fixed = ["test", "127.0.0.1", "--no-save", "--json"];
    let json = examined(&[&fixed[..], &["--port", &server.port, "--quick"]].concat());
    let json: Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(json["plan"]["within_ns"], Value::from(12_000_000_000_u64));
    assert!(planned_ns(&json) <= 12_000_000_000, "{json}");
    assert!(json["parts"].as_array().is_some_and(|parts| parts.len() >= 3), "{json}");
    let port = support::free_port();
    let foreign = format!("iperf3:{port}");
    let serve = ["serve", "--port", "0", "--bind", "127.0.0.1", "--stamp-port", "none"];
    let mut child = support::command(&[&serve[..], &["--foreign", &foreign]].concat())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("it is built");
    support::wait_until_listening(&port);
    let via = ["--port", &port, "--via", "iperf3", "--within=8s", "--count=5"];
    let json = ends_with(0, &[&fixed[..], &via].concat());
    let json: Value = serde_json::from_str(&json).expect("one document");
    let caveats = json["caveats"].as_array().expect("a list");
    let missing = caveats.iter().find(|caveat| caveat["code"] == "trains_missing");
    let missing = missing.expect("iperf3 has none")["detail"].to_string();
    assert!(missing.contains("iperf3"), "{missing}");
    let _ = child.kill();
    let _ = child.wait();
    // Ping and TCP both ways; of a second and the second before it, whatever the flag says.
    assert!(json["parts"].as_array().is_some_and(|parts| parts.len() >= 3), "{json}");
}

fn is_tcp(part: &Value) -> bool {
    part["plan"]["kind"] == "tcp"
}

/// The time that all tests over TCP were to take, whatever they took.
fn planned_ns(json: &Value) -> u64 {
    let parts = json["parts"].as_array().expect("a list");
    let times = parts.iter().filter(|part| is_tcp(part)).map(|part| {
        let (time, omitted) = (&part["plan"]["finish"]["time_ns"], &part["plan"]["omit_ns"]);
        time.as_u64().expect("a time") + omitted.as_u64().expect("a time")
    });
    times.sum()
}

#[test]
fn what_does_not_fit_into_the_time_is_left_out_and_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(&[]);
    let store = tempfile::tempdir().expect("a directory");
    let store = store.path().join("db").to_string_lossy().into_owned();
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--store", &store];
    let text = examined(&[&fixed[..], &["--within", "15s", "--verbose"]].concat());
    // Each test takes 1.2 s each way: all nine would be 21 s, and fewer fit on a busy host.
    assert!(text.contains("Left out for want of time"), "{text}");
    let json = ends_with(0, &["report", "--json", "--store", &store]);
    let json: Value = serde_json::from_str(&json).expect("one document");
    assert!(planned_ns(&json) <= 15_000_000_000, "{json}");
    let left_out = json["left_out"].as_array().expect("a list").len();
    let pairs = json["parts"].as_array().expect("a list").iter().filter(|part| is_tcp(part));
    // Nothing of the list is forgotten; where there is time the first is made again for longer.
    assert!((9..=10).contains(&(left_out + pairs.count().div_ceil(2))), "{json}");
}

#[test]
fn a_host_without_a_server_is_a_failure_that_says_what_to_start() {
    // Port 1 (tcpmux) of loopback is nobody's. ICMP may be answered all the same: part of the
    // examination is then done.
    for host in [&["127.0.0.1"][..], &["::1", "--ipv6"]] {
        let output = linerate(&[&["test", "--no-save", "--port=1", "--count=5"], host].concat());
        let code = output.status.code();
        assert!(matches!(code, Some(3 | 5)), "{code:?}: {}", stderr(&output));
        assert!(stderr(&output).contains("linerate serve"), "{}", stderr(&output));
    }
}
