//! `linerate explain` of records in files and in the store.

mod support;

use support::{check_wrong_use, linerate, stdout};

fn planted(name: &str) -> String {
    format!("{}/../../testdata/explain/records/{name}.json", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_record_in_a_file_is_explained_with_lines_to_type() {
    let text = stdout(&linerate(&["explain", &planted("rmem")]));
    for part in [
        "limited by  the receive window (confidence high)",
        "at the receiver: sysctl -w net.ipv4.tcp_rmem=\"4096 131072 10485760\"",
        "in flight over that window",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_goal_is_held_to_a_record_without_trains_and_is_not_decided() {
    let target = "--target=1G@21ms";
    let text = stdout(&linerate(&["explain", &planted("base"), target]));
    for part in ["RFC 6349", "1 Gbit/s over 21.0 ms", "packets between two losses: not measured"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    check_wrong_use(&["explain", &planted("base"), "--target=1G"], &["RATE@RTT"]);
}

#[test]
fn verdicts_are_json_for_scripts() {
    let text = stdout(&linerate(&["explain", &planted("base"), "--json"]));
    let verdicts: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(verdicts[0]["outcome"], "at_ceiling");
    assert_eq!(verdicts[0]["cause"], "link");
}

#[test]
fn what_is_no_transfer_is_refused_in_one_line() {
    let ping = format!("{}/../../testdata/records/ping-1.json", env!("CARGO_MANIFEST_DIR"));
    check_wrong_use(&["explain", &ping], &["neither a TCP test nor a survey"]);
    check_wrong_use(&["explain", "@-1", "--store", "/no/such.db"], &["no such file"]);
}
