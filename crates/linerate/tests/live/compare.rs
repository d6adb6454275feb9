//! `linerate compare` over loopback, as a shell starts it. Which of two is sooner is not judged:
//! the machine is busy with other tests.
#![expect(clippy::print_stdout, reason = "a skipped test says so")]

use crate::support::{self, Server, check_wrong_use, ends_with};
use serde_json::Value;

/// The record of a comparison with these words.
fn compared(words: &[&str]) -> Value {
    let flags = ["compare", "--json", "--no-save", "--rounds=6", "--within=2s", "--seed=3"];
    let text = ends_with(0, &[&flags[..], words].concat());
    serde_json::from_str(&text).expect("a record")
}

#[test]
fn rounds_have_every_candidate_once_and_the_first_one_twice() {
    let words =
        ["127.0.0.1", "127.0.0.1,ttl=9,dscp=46,size=100,family=4", "--count=20", "--size=64"];
    let record = compared(&words);
    let parts = record["parts"].as_array().expect("parts");
    assert_eq!(parts.len(), 18);
    for round in parts.chunks(3) {
        let plan = |index: usize| &round[index]["plan"];
        assert_eq!(plan(0), plan(2));
        assert_eq!(plan(0)["sizes_bytes"], serde_json::json!([64]));
        assert_eq!(plan(0)["count"], 20);
        let other = ["ttl", "dscp", "sizes_bytes", "family"].map(|key| &plan(1)[key]);
        let expected = [9.into(), 46.into(), serde_json::json!([100]), "v4".into()];
        assert_eq!(other.map(Clone::clone), expected);
    }
}

#[test]
fn probes_and_tests_of_a_server_are_compared() {
    let server = Server::start(&[]);
    let target = format!("127.0.0.1:{}", server.port);
    let other = format!("{target},cc=cubic,streams=2,window=64K,dscp=0,family=4");
    let record = compared(&[&target, &other, "--tcp", "--reverse"]);
    let part = &record["parts"][1];
    assert_eq!(part["plan"]["directions"], "down");
    assert_eq!(
        (&part["plan"]["streams"], &part["plan"]["window_bytes"]),
        (&2.into(), &65536.into())
    );
    assert!(part["summary"].as_array().is_some_and(|rows| !rows.is_empty()), "{part}");
    let record = compared(&[&target, &target, "--udp"]);
    assert_eq!(record["parts"][0]["plan"]["transport"], "udp");
    let says = ends_with(
        0,
        &["compare", &target, &target, "--udp", "--rounds=6", "--within=1s", "--no-save"],
    );
    let own = format!("{target} again");
    assert!(says.contains(&own) && says.contains(" beside itself"), "{says}");
}

#[test]
fn a_comparison_is_kept_named_and_shown_again() {
    let directory = tempfile::tempdir().expect("a directory");
    let at = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (store, file) = (at("db"), at("record.json"));
    let common = ["compare", "127.0.0.1", "127.0.0.1,size=9", "--rounds=6", "--within=1s"];
    let kept = ["--store", &store, "--name=two-sizes", "--tag=site=here", "--output", &file, "-q"];
    let line = ends_with(0, &[&common[..], &kept].concat());
    let shown = ends_with(0, &["report", "two-sizes", "--store", &store, "-q"]);
    assert_eq!(line, shown);
    let listed = ends_with(0, &["history", "--store", &store, "--json", "--tag", "site=here"]);
    assert!(listed.contains("\"compare\"") && listed.contains("two-sizes"), "{listed}");
    let written = std::fs::read_to_string(&file).expect("the file of --output");
    let written: Value = serde_json::from_str(&written).expect("a record");
    assert_eq!(written["parts"].as_array().map(Vec::len), Some(18));
    let whole = ends_with(0, &[&common[..], &["--no-save", "--verbose"]].concat());
    assert!(whole.contains("Comparison of 127.0.0.1 and 127.0.0.1,size=9"), "{whole}");
    let lines = ends_with(0, &[&common[..], &["--no-save", "--jsonl"]].concat());
    let last: Value = serde_json::from_str(lines.lines().last().unwrap_or("")).expect("JSON");
    assert_eq!(last["data"]["plan"]["kind"], "compare");
    let quiet = ends_with(0, &[&common[..], &["--no-save", "--quiet"]].concat());
    assert_eq!(quiet.lines().count(), 1, "{quiet}");
}

/// Whether network namespaces can be made here; else why not, for the one who reads the tests.
fn labs_are_possible() -> bool {
    let output = support::linerate(&["lab", "run", "cable", "--on", "a", "--", "true"]);
    if !output.status.success() {
        println!("skipped: {}", support::stderr(&output));
    }
    output.status.success()
}

#[test]
fn forwarding_costs_what_a_cable_does_not_and_filters_cost_more() {
    if !labs_are_possible() {
        return;
    }
    let words = ["--lab", "cable", "cable,dscp=46", "router", "router,filters=1000", "--count=50"];
    let record = compared(&words);
    let candidates = record["plan"]["candidates"].as_array().expect("candidates");
    assert_eq!(candidates[3]["topology"]["lab"]["router"][0]["filters"], 1000);
    assert_eq!(
        (&candidates[0]["plan"]["host"], &candidates[0]["topology"]["client"]),
        (&"b".into(), &"a".into())
    );
    // The kernel's own round trip: a rule takes some nanoseconds, so a thousand of them both ways
    // take more than a router without any does, however busy the machine is.
    let median = |place: usize| {
        let parts = record["parts"].as_array().expect("parts").chunks(5);
        let of = parts.filter_map(|round| {
            let rows = round[place]["summary"].as_array()?;
            let row = rows.iter().find(|it| it["metric"] == "rtt_kernel_ns" && it["stat"] == "p50");
            row.or_else(|| rows.iter().find(|it| it["metric"] == "rtt_ns" && it["stat"] == "p50"))?
                ["value"]
                .as_f64()
        });
        let mut of: Vec<f64> = of.collect();
        of.sort_unstable_by(f64::total_cmp);
        of[of.len() / 2]
    };
    assert!(
        median(3) > median(2) && median(3) > median(0),
        "{} {} {}",
        median(0),
        median(2),
        median(3)
    );
}

#[test]
fn servers_run_in_laboratories_that_need_them() {
    if !labs_are_possible() {
        return;
    }
    let flags = ["compare", "--lab", "cable", "switch", "--rounds=6", "--within=2s", "--no-save"];
    for kind in ["--tcp", "--udp"] {
        let says = ends_with(0, &[&flags[..], &[kind]].concat());
        assert!(says.contains("\n  cable again ") && says.contains("\n  switch "), "{says}");
    }
}

#[test]
fn stored_results_are_compared_by_their_samples() {
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let ping = |words: &[&str]| {
        let common = ["ping", "127.0.0.1", "--flood", "--store", &store, "-q"];
        ends_with(0, &[&common[..], words].concat())
    };
    ping(&["-c100", "--samples", "--name=one"]);
    ping(&["-c100", "--samples", "-s1400"]);
    let compare = ["compare", "@one", "@-1", "--store", &store];
    let says = ends_with(0, &compare);
    assert!(says.contains("\n  @one "), "{says}");
    assert!(says.contains("16 rounds, blocks of the samples"), "{says}");
    let record: Value = serde_json::from_str(&ends_with(0, &[&compare[..], &["--json"]].concat()))
        .expect("a record");
    let candidates = record["plan"]["candidates"].as_array().expect("candidates");
    assert_eq!(record["parts"][1]["id"], candidates[1]["result"]);
    assert_eq!(record["parts"].as_array().map(Vec::len), Some(16 * 3));
    // It is not kept, so that @-1 is still the ping.
    ping(&["-c100"]);
    let few = support::linerate(&["compare", "@-2", "@-1", "--store", &store]);
    let told = "compare @-1: it has 0 samples of";
    assert!(support::stderr(&few).contains(told), "{}", support::stderr(&few));
    let mixed = support::linerate(&["compare", "@-1", "127.0.0.1", "--store", &store]);
    assert!(support::stderr(&mixed).contains("127.0.0.1: it is no stored result"));
}

#[test]
fn mistakes_are_told_in_a_line() {
    for (words, told) in [
        (&["a", "b,colour=red"][..], "\"colour\" is none of dscp, family, size, ttl"),
        (&["a", "b,dscp=64"], "dscp=64: it is 0 to 63, or one of EF"),
        (&["a", "b,family=5"], "neither 4 nor 6"),
        (&["a", "b,ttl"], "no KEY=VALUE"),
        (&["a:80", "b"], "ICMP"),
        (&["--tcp", "a", "b,window=x"], "\"x\" is no size"),
        (&["a", "b", "--rounds=5"], "--rounds"),
        (&["a"], "only 1 was provided"),
        (&["@-1", "@-2", "--tcp"], "stored results are what they are"),
        (&["--lab", "router", "switch,filters=9"], "no router that could have filters"),
        (&["--lab", "router", "router,filters=many"], "\"many\" is no filters"),
        (&["--lab", "router", "router,server=a"], "\"a\" is client and server"),
        (&["--lab", "router", "bridge"], "give a TOML file, or one of cable, switch, router"),
    ] {
        let said = support::stderr(&support::linerate(&[&["compare"], words].concat()));
        assert!(said.contains(told) && said.lines().count() == 1, "{words:?}: {said}");
    }
}

#[test]
fn flags_of_probes_hold_for_every_candidate_that_does_not_say_otherwise() {
    let words = ["127.0.0.1", "127.0.0.1,dscp=46", "--count=5"];
    let flags = ["--dscp=8", "--ipv4", "--bind=127.0.0.1", "--timeout=2s", "--wait-mode=block"];
    check_wrong_use(&["compare", "127.0.0.1", "::1", "--flow-label=x"], &["0xfffff"]);
    let more = ["--samples", "--no-kernel-stamps", "--ecn=ect0"];
    let record = compared(&[&words[..], &flags, &more].concat());
    let parts = record["parts"].as_array().expect("parts");
    for dscp in [8, 46] {
        // The order is drawn for each round.
        let plan = parts.iter().map(|part| &part["plan"]).find(|plan| plan["dscp"] == dscp);
        let plan = plan.expect("a candidate with this DSCP");
        assert_eq!(plan["ecn"], "ect0");
        assert_eq!((&plan["family"], &plan["bind"]), (&"v4".into(), &"127.0.0.1".into()));
        assert_eq!(
            (&plan["timeout_ns"], &plan["wait"]),
            (&2_000_000_000_u64.into(), &"block".into())
        );
        assert_eq!((&plan["keep_samples"], &plan["kernel_stamps"]), (&true.into(), &false.into()));
    }
    let other = support::linerate(&["compare", "--tcp", "a", "b", "--ipv6", "--timeout=1s"]);
    assert!(support::stderr(&other).contains("--timeout"));
    let other = support::linerate(&["compare", "--tcp", "a", "b", "--real-time"]);
    assert!(support::stderr(&other).contains("--real-time"));
}
