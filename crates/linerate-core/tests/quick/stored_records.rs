//! Records that earlier versions stored are read with the same values.
//!
//! The files and where they come from: `testdata/records/README.md`.

use std::path::PathBuf;

use linerate_core::record::{MetricId, Record, SCHEMA, Stat};
use serde_json::Value;

fn stored(name: &str) -> (Value, Record) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/records");
    let text = std::fs::read_to_string(folder.join(name)).expect("a stored record");
    let record = Record::from_json(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    (serde_json::from_str(&text).expect("JSON"), record)
}

/// The numbers of a document, in order of size.
fn numbers(value: &Value) -> Vec<f64> {
    let mut found = match value {
        Value::Number(number) => vec![number.as_f64().expect("a finite number")],
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::Object(fields) => fields.values().flat_map(numbers).collect(),
        _ => Vec::new(),
    };
    found.sort_by(f64::total_cmp);
    found
}

#[test]
fn every_number_of_a_record_of_schema_1_is_in_what_is_read() {
    for name in ["tcp-1.json", "udp-1.json", "ping-1.json", "simulate-1.json", "bench-1.json"] {
        let (old, record) = stored(name);
        assert_eq!((&old["schema"], record.schema.as_str()), (&"linerate.record/1".into(), SCHEMA));
        let new = serde_json::to_value(&record).expect("a record serialises");
        assert_eq!(numbers(&new), numbers(&old), "{name}");
        // What is written now is read again without a step.
        assert_eq!(Record::from_json(&new.to_string()).expect("of this schema"), record, "{name}");
    }
}

#[test]
fn rates_of_schema_1_are_found_under_their_new_names() {
    let (old, record) = stored("bench-1.json");
    let new = serde_json::to_value(&record).expect("a record serialises");
    let moved = [
        ("/bench/theoretical_fps", "/bench/theoretical_frames_per_sec"),
        ("/bench/flood/forwarded_fps", "/bench/flood/forwarded_frames_per_sec"),
        ("/bench/loss_curve/0/intended_fps", "/bench/loss_curve/0/intended_frames_per_sec"),
        ("/bench/latency/0/offered_fps", "/bench/latency/0/offered_frames_per_sec"),
        ("/bench/back_to_back/burst_fps", "/bench/back_to_back/burst_frames_per_sec"),
        ("/bench/overloaded/best_fps", "/bench/overloaded/best_frames_per_sec"),
    ];
    for (before, now) in moved {
        assert!(old.pointer(before).is_some(), "{before} is in the stored record");
        assert_eq!(new.pointer(now), old.pointer(before), "{now}");
    }
    let row = |metric: &str| {
        let rows = old["summary"].as_array().expect("rows");
        rows.iter().find(|row| row["metric"] == metric).and_then(|row| row["value"].as_f64())
    };
    let forwarded = record.summary_value(MetricId::FloodForwarded, Stat::Value, None);
    assert!(forwarded.is_some());
    assert_eq!(forwarded, row("flood_forwarded_fps"));
    let (old, record) = stored("udp-1.json");
    assert_eq!(old["plan"]["pace"], 1_000_000);
    let new = serde_json::to_value(&record.plan).expect("a plan serialises");
    assert_eq!(new["pace_bps"], 1_000_000);
    let (old, record) = stored("simulate-1.json");
    assert_eq!(old["plan"]["path"]["packets_per_s"], 2000);
    let new = serde_json::to_value(&record.plan).expect("a plan serialises");
    assert_eq!(new["path"]["packets_per_sec"], 2000);
}

#[test]
fn an_unknown_schema_is_refused_by_name() {
    let refused = Record::from_json("{\"schema\":\"linerate.record/9\"}").expect_err("unknown");
    assert_eq!(refused, "it is written in linerate.record/9, not in linerate.record/2");
    assert!(Record::from_json("{}").expect_err("none").contains("no schema"));
    assert!(Record::from_json("{").is_err());
}
