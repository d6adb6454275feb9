//! `linerate test` against `linerate serve` over loopback: every flag reaches the plans, each part
//! of the examination is there and is kept. Figures are not judged: other tests share the machine.

mod support;

use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use support::{Server, ends_with, linerate, stderr};

/// Tests of 200 ms do not go beside those that fill loopback.
static ALONE: Mutex<()> = Mutex::new(());

#[test]
fn an_examination_keeps_its_parts_and_says_what_it_does_not_know() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let server = Server::start(&[]);
    let flags = ["--time=200ms", "--count=5", "--congestion=reno", "--ipv4", "--tag=site=b"];
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--store", &store];
    let text = ends_with(0, &[&fixed[..], &flags].concat());
    let is_limit =
        |line: &&str| ["limit", "remedy"].iter().any(|it| line.trim_start().starts_with(it));
    assert!(text.lines().filter(|line| !is_limit(line)).count() <= 7, "{text}");
    assert!(!text.contains("the tester itself"), "the headline says so, with its figure: {text}");
    for part in
        ["Limited by this host", "no ceiling (loopback)", "Mbit/s", "-P1", "RTT", "loaded", "notes"]
    {
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

#[test]
fn a_program_gets_json_and_nothing_is_kept_when_told_so() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(&[]);
    let file = tempfile::NamedTempFile::new().expect("a file");
    let path = file.path().to_string_lossy().into_owned();
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--time=200ms", "--count=5"];
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
        assert_eq!(own().count(), 15, "{direction}");
        for train in own() {
            let (sent, came) = (train["sent_ns"].as_array(), train["arrived_ns"].as_array());
            let (sent, came) = (sent.expect("a list"), came.expect("a list"));
            assert!(sent.len() >= 64 && sent.len() == came.len(), "{}", sent.len());
            assert!(came.iter().any(|stamp| stamp.is_i64()), "{direction}: all of a train is lost");
        }
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
    let begin = linerate_sys::clock::monotonic();
    let json = ends_with(0, &[&fixed[..], &["--port", &server.port, "--quick"]].concat());
    let took = linerate_sys::clock::monotonic().since(begin);
    // What a busy machine adds.
    assert!(took < std::time::Duration::from_secs(20), "{took:?}");
    let json: Value = serde_json::from_str(&json).expect("one document");
    assert_eq!(json["plan"]["within_ns"], Value::from(12_000_000_000_u64));
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

#[test]
fn what_does_not_fit_into_the_time_is_left_out_and_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let server = Server::start(&[]);
    let begin = linerate_sys::clock::monotonic();
    let fixed = ["test", "127.0.0.1", "--port", &server.port, "--no-save"];
    let text = ends_with(0, &[&fixed[..], &["--within", "5s", "--verbose"]].concat());
    let took = linerate_sys::clock::monotonic().since(begin);
    // Each test takes 1.2 s each way: one fits, nine do not.
    assert!(text.contains("Left out for want of time"), "{text}");
    // What a busy machine adds; all nine would be 21 s.
    assert!(took < std::time::Duration::from_secs(15), "{took:?}");
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
