//! `linerate path simulate` and `linerate path check` as a shell sees them. No packet is sent.

use std::process::Stdio;

use crate::support::{
    check_wrong_use, command, end_of, ends_with, interrupt, wait_until_interruptible,
};
use serde_json::Value;

/// Runs `linerate path simulate` and gives its JSON.
fn json(arguments: &[&str]) -> Value {
    let all = [&["path", "simulate", "--json"], arguments].concat();
    serde_json::from_str(&ends_with(0, &all)).expect("it is JSON")
}

/// A figure of a run.
fn figure(report: &Value, run: usize, name: &str) -> f64 {
    report["runs"][run][name].as_f64().unwrap_or_else(|| panic!("no {name} in {report}"))
}

#[test]
fn a_window_bounds_the_goodput_and_the_ceiling_is_that_of_the_stack() {
    // 22 whole segments of 1448 bytes of a 32 KiB window each 21 ms: 12.13 Mbit/s, less the 12 µs
    // of a packet. 1448/1538 of 1 Gbit/s: 941.48 Mbit/s.
    let flags = ["--rate", "1G", "--delay", "10.5ms", "--window", "32KiB", "--time", "5s"];
    let report = json(&flags);
    let ceiling = report["ceiling_bps"].as_f64().expect("a link has one");
    assert!((ceiling / 941.48e6 - 1.0).abs() < 1e-5, "{ceiling}");
    let goodput = figure(&report, 0, "goodput_bps") / 1e6;
    assert!((goodput / 12.13 - 1.0).abs() < 0.02, "{goodput}");
    assert_eq!(report["tcp"]["congestion_control"], "cubic");
    assert_eq!(report["runs"][0]["flows"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_tcp_of_1999_is_what_it_says_and_flags_change_it() {
    let path = ["--link", "oc12", "--carrier", "aal5-llcsnap", "--delay", "22.5ms"];
    let report = json(&[&path[..], &["--tcp", "1999", "--bytes", "5MB"]].concat());
    let tcp = &report["tcp"];
    assert_eq!(tcp["mss_bytes"], 9128, "MTU 9180 less 52");
    assert_eq!((&tcp["recovery"], &tcp["congestion_control"]), (&"reno".into(), &"reno".into()));
    assert_eq!((&tcp["initial_window"], &tcp["window_bytes"]), (&2.into(), &2_000_000.into()));
    assert!(figure(&report, 0, "transfer_ns") > 8.0 * 45e6, "slow start takes rounds");
    let changed = [
        "--tcp",
        "1999",
        "--congestion",
        "cubic",
        "--recovery",
        "newreno",
        "--initial-window",
        "4",
        "--mss",
        "1000",
        "--no-hystart",
        "--bytes",
        "1MB",
    ];
    let report = json(&[&path[..], &changed].concat());
    let tcp = &report["tcp"];
    assert_eq!(
        (&tcp["recovery"], &tcp["congestion_control"]),
        (&"newreno".into(), &"cubic".into())
    );
    assert_eq!((&tcp["initial_window"], &tcp["mss_bytes"]), (&4.into(), &1000.into()));
    assert_eq!(tcp["hystart"], false);
    let report = json(&[&path[..], &["--mtu", "1500", "--bytes", "1MB"]].concat());
    assert_eq!(report["tcp"]["mss_bytes"], 1448);
}

#[test]
fn a_plan_is_read_flags_take_the_place_of_its_keys_and_seeds_are_repeated() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("path.toml");
    let text = "rate = \"20 Mbit/s\"\ndelay = \"10 ms\"\nloss = \"0.5%\"\nseed = 3\n";
    std::fs::write(&plan, text).expect("it is written");
    let plan = plan.to_str().expect("UTF-8");
    let flags = [
        "--plan",
        plan,
        "--buffer",
        "30kB",
        "--queue",
        "red",
        "--flows",
        "2",
        "--start-spread",
        "1s",
        "--time",
        "4s",
        "--runs",
        "3",
    ];
    let once = json(&flags);
    assert_eq!(once["plan"]["buffer"], "30kB");
    let seeds: Vec<u64> = once["runs"]
        .as_array()
        .expect("runs")
        .iter()
        .filter_map(|run| run["seed"].as_u64())
        .collect();
    assert_eq!(seeds, [3, 4, 5]);
    assert!(figure(&once, 0, "retransmitted") > 0.0);
    assert!(figure(&once, 0, "fairness") > 0.5);
    assert_eq!(once["runs"], json(&flags)["runs"], "the same seeds, the same results");
    let other = json(&[&flags[..], &["--seed", "9", "--loss", "0"]].concat());
    assert_ne!(once["runs"], other["runs"]);
    let text = ends_with(0, &[&["path", "simulate", "--verbose"], &flags[..]].concat());
    for word in ["min ", "max ", "mean ", "std ", "events/s"] {
        assert!(text.contains(word), "{text}");
    }
    let text = ends_with(0, &[&["path", "simulate"], &flags[..]].concat());
    assert!(text.contains("in the mean of 3 runs") && text.lines().count() <= 7, "{text}");
}

#[test]
fn diagrams_are_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("plots");
    let name = folder.to_str().expect("UTF-8");
    let flags = ["--rate", "10M", "--delay", "20ms", "--time", "3s", "--svg", name];
    ends_with(0, &[&["path", "simulate"], &flags[..]].concat());
    for file in ["time-sequence.svg", "cwnd.svg", "goodput.svg"] {
        let svg = std::fs::read_to_string(folder.join(file)).expect("it is there");
        assert!(svg.contains("<path") || svg.contains("<polyline"), "{file}: {svg}");
    }
}

#[test]
fn jitter_makes_the_round_trip_longer() {
    // 1 s at 10 ms each way, then the same with up to 40 ms more: fewer round trips, so less of a
    // transfer bound by its window of 2 x 1448 bytes.
    let path = ["--rate", "1G", "--delay", "10ms", "--window", "3000", "--time", "2s"];
    let plain = figure(&json(&path), 0, "goodput_bps");
    let late = json(&[&path[..], &["--jitter", "40ms"]].concat());
    let slowed = plain / figure(&late, 0, "goodput_bps");
    // A packet each way waits 20 ms on average: 60 ms in place of 20 ms; two of a window wait for
    // the later one.
    assert!((2.5..4.0).contains(&slowed), "{slowed}");
    assert_eq!(late["plan"]["jitter"]["most"], "40ms");
    check_wrong_use(&["path", "simulate", "--rate", "1G", "--jitter", "far"], &["jitter", "far"]);
}

#[test]
fn a_transfer_that_does_not_end_in_its_time_exits_1() {
    let flags = ["--rate", "1M", "--delay", "1ms", "--bytes", "10MB", "--time", "1s"];
    let text = ends_with(1, &[&["path", "simulate"], &flags[..]].concat());
    assert!(text.contains("doubtful: it did not end in its time"), "{text}");
    let answer = ends_with(1, &[&["path", "simulate", "--quiet"], &flags[..]].concat());
    assert!(answer.lines().count() == 1 && text.starts_with(&answer), "{answer}");
}

#[test]
fn wrong_paths_are_one_line() {
    let simulate = |flags: &[&'static str]| [&["path", "simulate"], flags].concat();
    check_wrong_use(&simulate(&[]), &["without rate and delay", "--rate"]);
    check_wrong_use(&simulate(&["--rate", "0", "--delay", "1ms"]), &["rate", "0"]);
    check_wrong_use(&simulate(&["--rate", "1G", "--link", "oc12"]), &["--link"]);
    check_wrong_use(&simulate(&["--rate", "1G", "--mtu", "52"]), &["--mtu", "65535"]);
    check_wrong_use(&simulate(&["--rate", "1G", "--queue", "fifo"]), &["--queue", "codel"]);
    check_wrong_use(&simulate(&["--plan", "/no/such/file"]), &["/no/such/file", "no such file"]);
    check_wrong_use(&simulate(&["--link", "oc12", "--carrier", "ptm"]), &["carrier"]);
}

#[test]
fn ctrl_c_prints_what_is_there_and_exits_130() {
    let flags = ["path", "simulate", "--rate", "1G", "--delay", "10ms", "--time", "100000s"];
    let mut child = command(&flags).stdout(Stdio::piped()).spawn().expect("it starts");
    wait_until_interruptible(&child);
    linerate_sys::clock::sleep(std::time::Duration::from_millis(500));
    interrupt(&child);
    let status = end_of(&mut child).expect("it ends at once");
    assert_eq!(status.code(), Some(130));
    let output = child.wait_with_output().expect("it has ended");
    assert!(String::from_utf8_lossy(&output.stdout).contains("by the model"));
}

#[test]
fn elements_are_held_to_their_closed_forms() {
    let text = ends_with(0, &["path", "check", "--packets", "20000", "--seed", "2"]);
    for word in ["independent loss", "M/D/1", "RED", "RFC 4737", "score"] {
        assert!(text.contains(word), "{text}");
    }
}

#[test]
fn a_trace_is_read_from_the_file_that_a_plan_names() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let write = |name: &str, text: &str| {
        let file = folder.path().join(name);
        std::fs::write(&file, text).expect("room");
        file.display().to_string()
    };
    // An opportunity of 1504 bytes each 2 ms: 6.016 Mbit/s.
    write("slow.down", "2\n4\n6\n8\n10\n");
    let named = write("named.toml", "delay = \"5 ms\"\nforward = { trace = \"slow.down\" }\n");
    let inline =
        write("inline.toml", "delay = \"5 ms\"\nforward = { trace = \"2\\n4\\n6\\n8\\n10\\n\" }\n");
    let [named, inline] = [&named, &inline].map(|plan| json(&["--plan", plan, "--time", "2s"]));
    assert_eq!(named["runs"], inline["runs"]);
    let lost = write("lost.toml", "trace = \"not-there.down\"\n");
    let parts = ["read trace", "not-there.down", "no such file", "a time in ms on each line"];
    check_wrong_use(&["path", "simulate", "--plan", &lost], &parts);
    let other = write("other.toml", "trace = \"other.toml\"\n");
    let parts = ["read trace", "other.toml"];
    check_wrong_use(&["path", "simulate", "--plan", &other], &parts);
}
