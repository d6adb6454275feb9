//! `linerate explain` of records in files and in the store.

use crate::support::{check_wrong_use, command, linerate, stdout};

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

/// A result of another program, as testdata has it.
fn foreign(name: &str) -> String {
    format!("{}/../../testdata/foreign/{name}", env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_result_of_another_program_comes_by_a_file_a_pipe_or_standard_input() {
    let file = foreign("ss-closed.txt");
    let text = stdout(&linerate(&["explain", &file]));
    for part in [
        "limited by  the receiving application (confidence high)",
        // 873,296 bytes.
        "written and not sent 853 KiB",
        "the receiver's window is closed",
    ] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    let given = |name: &str| {
        let mut command = command(&["explain", name]);
        command.stdin(std::fs::File::open(&file).expect("a file"));
        stdout(&command.output().expect("the program starts"))
    };
    assert_eq!(given("-"), text);
    assert_eq!(given("/dev/stdin"), text);
    // As `linerate explain <(ss -tin)`: the name of a pipe.
    let program = env!("CARGO_BIN_EXE_linerate");
    let line = format!("'{program}' explain <(cat '{file}')");
    let piped = std::process::Command::new("bash").args(["-c", &line]).output();
    assert_eq!(stdout(&piped.expect("bash runs")), text);
}

#[test]
fn several_connections_have_a_section_each_with_their_addresses() {
    let text = stdout(&linerate(&["explain", &foreign("ss-iperf3.txt")]));
    let first = text.lines().next().expect("a headline");
    // 5,748,598 bytes in 4.804 s; the control connection moved 165 bytes.
    assert!(first.contains("9.573 Mbit/s") || first.contains("9.57 Mbit/s"), "{text}");
    for part in ["198.18.0.1:32920 to 198.18.0.2:5201", "198.18.0.1:32922 to 198.18.0.2:5201"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
    assert!(text.contains("left out: 198.18.0.1:32908"), "{text}");
    let text = stdout(&linerate(&["explain", &foreign("iperf3-bidir.json")]));
    assert!(text.contains("From client to server") && text.contains("From server to client"));
}

#[test]
fn what_cannot_be_explained_is_named_in_one_line_without_a_parsers_words() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let path = |name: &str, bytes: &[u8]| {
        let file = folder.path().join(name);
        std::fs::write(&file, bytes).expect("room");
        file.display().to_string()
    };
    let cases: &[(&str, &[u8], &[&str])] = &[
        ("empty", b"", &["explain", "it is empty"]),
        ("cut.json", b"{\"start\": {", &["breaks off in line 1", "--json-stream"]),
        ("gz", b"\x1f\x8b\x08\0", &["compressed by gzip", "gzip -dc"]),
        ("ping", b"64 bytes from B: icmp_seq=1 ttl=64", &["the output of ping", "linerate test"]),
    ];
    for (name, bytes, parts) in cases {
        check_wrong_use(&["explain", &path(name, bytes)], parts);
    }
    let refused = foreign("iperf3-refused.json");
    check_wrong_use(&["explain", &refused], &["iperf3 measured nothing", "iperf3 -s"]);
    check_wrong_use(&["explain", "/no/such.json"], &["no such file"]);
    check_wrong_use(&["explain", &folder.path().display().to_string()], &["it is a folder"]);
}
