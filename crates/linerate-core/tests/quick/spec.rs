//! Keeps `spec/record.schema.json` and `spec/metrics.md` equal to the code they describe.
//!
//! With the environment variable LINERATE_ACCEPT=1 the test writes both files anew; look at the
//! difference before it is committed.

use std::fmt::Write as _;
use std::path::PathBuf;

use linerate_core::record::{Better, METRICS, Metric, Record, SCHEMA};
use serde_json::Value;

/// Compares `text` with the file `name` of the specification, or writes it there.
fn check(name: &str, text: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../spec").join(name);
    if std::env::var_os("LINERATE_ACCEPT").is_some_and(|value| value == "1") {
        std::fs::create_dir_all(path.parent().expect("spec/NAME has a folder")).expect("spec/");
        std::fs::write(&path, text).expect("the specification can be written");
        return;
    }
    let stored = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = stored.lines().zip(text.lines()).position(|(old, new)| old != new);
    let line = 1 + differing.unwrap_or_else(|| stored.lines().count().min(text.lines().count()));
    assert!(
        stored == text,
        "spec/{name} is not what the code says, from line {line} on; \
         run LINERATE_ACCEPT=1 cargo test -p linerate-core --test quick spec::, and read the \
         difference"
    );
}

#[test]
fn the_record_schema_is_current() {
    let schema = schemars::schema_for!(Record).to_value();
    let mut text = serde_json::to_string_pretty(&sorted(schema)).expect("a schema serialises");
    text.push('\n');
    check("record.schema.json", &text);
}

/// The same value with the keys of every object in order, whatever order the build keeps.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut entries: Vec<_> = map.into_iter().collect();
            entries.sort_by(|(left, _), (right, _)| left.cmp(right));
            entries.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[test]
fn the_metric_table_is_current() {
    let mut text = format!(
        "# Metrics\n\n\
         Made from the table in `crates/linerate-core/src/record/metric.rs`; records of `{SCHEMA}` \
         use these keys.\n\
         A layer says what a rate or size includes: payload is what the application gives and \
         takes, ip adds the\nheaders from IP up, frame the Ethernet header and FCS, wire the \
         preamble and the gap.\n\n\
         | key | title | unit | layer | better | definition | source |\n\
         |---|---|---|---|---|---|---|\n"
    );
    for metric in METRICS {
        writeln!(text, "{}", row(metric)).expect("writing to a String");
    }
    check("metrics.md", &text);
}

fn row(metric: &Metric) -> String {
    let better = match metric.better {
        Better::Higher => "higher",
        Better::Lower => "lower",
        Better::Neither => "",
    };
    let layer = metric.layer.map(|layer| format!("{layer:?}").to_lowercase()).unwrap_or_default();
    let cells = [
        &format!("`{}`", metric.id.key()),
        metric.title,
        metric.unit,
        &layer,
        better,
        metric.definition,
        metric.source,
    ];
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).join(" | "))
}
