//! `linerate rrul` against `linerate serve` over loopback. Rates and delays are not judged: the
//! machine is busy with other tests.

use std::io::Read;

use crate::support::{Server, linerate, stderr, stdout};
use serde_json::{Value, json};

/// What a file of flent holds.
fn unpacked(path: &std::path::Path) -> Value {
    let file = std::fs::File::open(path).expect("the file was written");
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("gzip");
    serde_json::from_str(&text).expect("JSON")
}

/// Whether two files are of one record: its times, and delays in nanoseconds, are exact.
fn same(one: &Value, other: &Value) -> bool {
    let of = |file: &Value| {
        (file["metadata"]["TIME"].clone(), file["raw_values"]["Ping (ms) UDP EF"].clone())
    };
    of(one) == of(other)
}

#[test]
fn four_streams_each_way_and_four_kinds_of_probes_are_one_record_and_one_file_of_flent() {
    let server = Server::start(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name);
    let text = |name: &str| at(name).to_string_lossy().into_owned();
    let (file, again, store) = (text("a.flent.gz"), text("b.flent.gz"), text("store.db"));
    let output = linerate(&[
        "rrul",
        "127.0.0.1",
        "--port",
        &server.port,
        "--time=600ms",
        "--idle=300ms",
        "--probes=50",
        "--congestion=reno",
        "--flent",
        &file,
        "--store",
        &store,
        "--json",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    let plan = &record["plan"];
    assert_eq!((&plan["streams"], &plan["directions"]), (&4.into(), &"both".into()));
    assert_eq!(plan["dscps"], json!([0, 8, 40, 46]));
    assert_eq!(
        (&plan["congestion_control"], &plan["interval_ns"]),
        (&"reno".into(), &200_000_000.into())
    );
    let probes = &plan["probes"];
    assert_eq!((&probes["idle_count"], &probes["interval_ns"]), (&15.into(), &20_000_000.into()));
    assert_eq!(record["flows"].as_array().map(Vec::len), Some(8));
    let kind = |probes: &Value| (probes["transport"].clone(), probes["dscp"].clone());
    assert_eq!(kind(&record["probes"]), ("udp".into(), 0.into()));
    let beside = record["probes_beside"].as_array().expect("others");
    let kinds: Vec<_> = beside.iter().map(kind).collect();
    let udp = |dscp: u8| (Value::from("udp"), Value::from(dscp));
    assert_eq!(kinds, [udp(8), udp(46), ("icmp".into(), 0.into())]);
    for probes in beside.iter().take(2) {
        assert_eq!(probes["phases"].as_array().map(Vec::len), Some(2), "{probes}");
    }

    // Three samples of a fifth of a second, more where the host is busy and the test ends later.
    let of_flent = unpacked(&at("a.flent.gz"));
    let up = of_flent["raw_values"]["TCP upload EF"].as_array().expect("a series");
    assert!(up.iter().any(|sample| sample["val"].as_f64() > Some(0.0)), "{up:?}");
    assert_eq!(of_flent["metadata"]["NAME"], "rrul");
    let output = linerate(&["report", "--store", &store, "--flent", &again]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(same(&unpacked(&at("b.flent.gz")), &of_flent), "the stored record says the same");
    let all = ["export", "--store", &store, "--format", "flent", "-o", &text("")];
    assert!(linerate(&all).status.success());
    let id = record["id"].as_str().expect("an identifier");
    assert!(same(&unpacked(&at(&format!("tcp-{id}.flent.gz"))), &of_flent));
}

#[test]
fn the_flags_that_all_tests_have_reach_the_record_and_the_screen() {
    let server = Server::start(&[]);
    let host = format!("127.0.0.1:{}", server.port);
    let short = ["rrul", &host, "--time=300ms", "--idle=100ms", "--no-save"];
    let file = tempfile::NamedTempFile::new().expect("a file for the record");
    let path = file.path().to_string_lossy().into_owned();
    let more = ["--jsonl", "--output", &path, "--name=first", "--tag=site=b", "--ipv4"];
    let more = [&short[..], &more, &["--capacity=10G", "--link=10g"]].concat();
    let output = linerate(&[&more[..], &["--assert=goodput >= 1 Mbit/s"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let text = std::fs::read_to_string(&path).expect("the record was written");
    let record: Value = serde_json::from_str(&text).expect("one document");
    assert_eq!((&record["name"], &record["tags"]["site"]), (&"first".into(), &"b".into()));
    let plan = &record["plan"];
    assert_eq!(
        (&plan["family"], &plan["probes"]["interval_ns"]),
        (&"v4".into(), &50_000_000.into())
    );
    let quiet = linerate(&[&short[..], &["--quiet"]].concat());
    let line = stdout(&quiet);
    assert!(
        line.contains(" ms under load") && line.contains("bit/s down with 127.0.0.1"),
        "{line}"
    );
    assert_eq!((line.lines().count(), stderr(&quiet).as_str()), (1, ""));
    let verbose = stdout(&linerate(&[&short[..], &["--verbose"]].concat()));
    assert!(verbose.contains("kinds     BE ") && verbose.contains(", CS1 "), "{verbose}");
    let none = linerate(&["rrul", "127.0.0.1:1", "--ipv6", "--no-save"]);
    assert!(!none.status.success());
    let none = linerate(&["rrul", "127.0.0.1:1", "--idle=1s", "--no-save"]);
    assert!(!none.status.success() && !stderr(&none).contains("probing"), "{}", stderr(&none));
}
