//! What is known by sight and is no result of a transfer, so that a refusal says what it is.

use serde_json::Value;

use super::{Unreadable, ss};

const MEASURE: &str = "linerate test HOST measures the transfer and what limits it";

/// A document of JSON that holds no result of a transfer.
pub(super) fn document(json: &Value) -> Unreadable {
    let has = |keys: &[&str]| keys.iter().all(|key| json.get(key).is_some());
    let under = |keys: [&str; 2]| json.get(keys[0]).and_then(|value| value.get(keys[1])).is_some();
    let other = |kind: &str, advice| Unreadable::Other { kind: kind.to_owned(), advice };
    if let Some(schema) = json.get("schema").and_then(Value::as_str)
        && schema.starts_with("linerate.")
    {
        return other(&format!("a document of linerate ({schema}), no record"), MEASURE);
    }
    if has(&["fio version"]) {
        return other("a result of fio, which measures disks", MEASURE);
    }
    if has(&["addresses", "groups", "tasks"]) {
        return other("a template of psConfig", "linerate mesh import FILE");
    }
    if under(["report", "mtr"]) {
        return other("a result of mtr: round trips to each hop, no transfer", TRACE);
    }
    if under(["download", "bandwidth"]) || has(&["download", "upload", "ping"]) {
        let kind = "a result of a speed test: rates, without what TCP saw";
        return other(kind, MEASURE);
    }
    if has(&["dl_throughput", "ul_throughput"]) {
        let kind = "a result of networkQuality: rates, without what TCP saw";
        return other(kind, MEASURE);
    }
    if has(&["Upload"]) {
        let kind = "a result of ndt7 of an upload: its server does not see the sender";
        return other(kind, MEASURE);
    }
    if has(&["results", "metadata", "version"]) {
        return other("a data file of flent: series of rates and delays", "linerate rrul HOST");
    }
    let keys = json.as_object().map(|fields| {
        let names: Vec<String> = fields.keys().take(4).map(|key| format!("{key:?}")).collect();
        match names.is_empty() {
            true => "no key".to_owned(),
            false => format!("the keys {}", names.join(", ")),
        }
    });
    Unreadable::Unknown { keys }
}

const TRACE: &str = "linerate trace HOST finds where packets are lost; linerate test HOST what \
                     limits a transfer";

/// Words that a kind of text has all of, what it is, and what to do.
const TEXTS: &[(&[&str], &str, &str)] = &[
    (&["icmp_seq="], "the output of ping: round trips, no transfer", MEASURE),
    (&["packets transmitted"], "the output of ping: round trips, no transfer", MEASURE),
    (&["traceroute to"], "the output of traceroute: hops, no transfer", TRACE),
    (&["HOST:", "Loss%"], "the output of mtr: hops, no transfer", TRACE),
    (&["MIGRATED TCP"], "the output of netperf: one rate, without what TCP saw", MEASURE),
    (&["Run status group"], "the output of fio, which measures disks", MEASURE),
    (
        &[" IP ", "Flags ["],
        "the output of tcpdump as text",
        "ss -tin at the sender, while data flows",
    ),
    (&["TcpExt"], "counters of the whole host", "linerate doctor reads them beside a transfer"),
    (&["unable to connect"], "a test that found no server", "start one there: linerate serve"),
    (
        &["Server listening on"],
        "the output of a server before its first test",
        "keep it until a test has ended",
    ),
];

/// A text that holds no result of a transfer.
pub(super) fn unreadable_text(text: &str) -> Unreadable {
    let known = TEXTS.iter().find(|(words, ..)| words.iter().all(|word| text.contains(word)));
    if let Some((_, kind, advice)) = known {
        return Unreadable::Other { kind: (*kind).to_owned(), advice };
    }
    if ss::is_output(text) {
        let kind = "a list of sockets without what TCP knows of them".to_owned();
        return Unreadable::Other {
            kind,
            advice: "add -i: ss -tin, at the sender, while data flows",
        };
    }
    Unreadable::Unknown { keys: None }
}
