//! Two hosts, each behind NAT, that measure each other by STAMP: through a hole that both punch, or
//! passed on by the third at which they meet.
//!
//! The NATs are the kernel's (nft masquerade) in namespaces, and let in only answers to what went
//! out. Needs root, or a kernel that lets users make namespaces; says `skipped: reason`
//! without.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;
use std::process::Stdio;

use crate::support::mesh::{Lab, Running, eventually, good, linerate};
use crate::support::{no_laboratory, stderr, stdout};
use serde_json::Value;

/// `a` behind `na`, `b` behind `nb`, and `t`, which both reach.
const LAB: &str = "host = [{ name = \"a\" }, { name = \"b\" }, { name = \"t\" }]\n\
    router = [{ name = \"na\" }, { name = \"nb\" }]\nswitch = [{ name = \"s\" }]\n\
    link = [{ ends = [\"a\", \"na\"] }, { ends = [\"b\", \"nb\"] }, { ends = [\"na\", \"s\"] }, \
    { ends = [\"nb\", \"s\"] }, { ends = [\"t\", \"s\"] }]\n";
const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\
    [[agent]]\nname = \"t\"\naddress = \"THIRD\"\nport = 5210\n\
    [[agent]]\nname = \"a\"\nnat = \"t\"\n[[agent]]\nname = \"b\"\nnat = \"t\"\n\
    [[task]]\nname = \"delay\"\nrun = \"stamp {to} -c5 -i50ms\"\n\
    every = \"20s\"\ntakes = \"14s\"\n";

/// Lines of `ip -4 addr` of a host, by interface.
fn addresses(lab: &Lab, host: &str, path: &Path) -> Vec<(String, String)> {
    let output = lab.run(host, path, &["ip", "-4", "-brief", "address"]);
    let text = stdout(&output);
    let of = |line: &str| {
        let mut words = line.split_whitespace();
        let name = words.next()?.split('@').next()?.to_owned();
        let address = words.nth(1)?.split('/').next()?.to_owned();
        (name != "lo").then_some((name, address))
    };
    text.lines().filter_map(of).collect()
}

/// Makes a router a NAT: what goes out on its second interface has its address, by the kernel's
/// choice of port or by a random one for each destination, and only answers come in.
fn translate(lab: &Lab, router: &str, path: &Path, how: &str) -> String {
    let found = addresses(lab, router, path);
    let (outside, address) = found.last().expect("two interfaces").clone();
    let chain = |name: &str, hook: &str, rule: &str| {
        format!(" chain {name} {{\n  type {hook} priority 0\n  {rule}\n }}\n")
    };
    let only_answers = format!("iif \"{outside}\" ct state new drop");
    let leaves = format!("oif \"{outside}\" masquerade {how}");
    let rules = format!(
        "flush ruleset\ntable ip nat {{\n{}}}\ntable ip filter {{\n{}{}}}\n",
        chain("post", "nat hook postrouting", &leaves),
        chain("input", "filter hook input", &only_answers),
        chain("forward", "filter hook forward", &only_answers),
    );
    let file = path.join("rules");
    std::fs::write(&file, rules).expect("room");
    let output = lab.run(router, path, &["nft", "-f", &file.display().to_string()]);
    assert!(output.status.success(), "{}", stderr(&output));
    address
}

/// `a` measures `b`; its record, and what `b` said.
fn measure(lab: &Lab, path: &Path, third: &str) -> (Value, String) {
    let word = ["stamp", "--meet", third, "--word", "blue cow"];
    let mut reflects = lab.command("b", path, &[&word[..], &["--reflect"]].concat());
    let reflects =
        reflects.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it starts");
    let flags = ["-c", "20", "-i", "20ms", "--json"];
    let output = lab.command("a", path, &[&word[..], &flags].concat()).output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let said = reflects.wait_with_output().expect("it ends by itself");
    assert_eq!(said.status.code(), Some(0), "{}", stderr(&said));
    (serde_json::from_str(&stdout(&output)).expect("a record"), stderr(&said))
}

fn received(record: &Value) -> f64 {
    let rows = record["summary"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == "probes_answered").expect("a count");
    row["value"].as_f64().expect("a number")
}

#[test]
fn a_hole_is_punched_where_a_nat_keeps_its_port_and_else_the_third_passes_it_on() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let lab = Lab::of(path, LAB);
    let third = addresses(&lab, "t", path)[0].1.clone();
    let inside = addresses(&lab, "b", path)[0].1.clone();
    let outside = ["na", "nb"].map(|router| translate(&lab, router, path, ""));
    // A NAT that only answers come through is what both are behind.
    let ping = lab.command("a", path, &["ping", &inside, "-c1", "-W500ms"]).output();
    assert_eq!(ping.expect("it starts").status.code(), Some(1), "b is reached without a hole");
    let serve = ["serve", "--meet", "--no-web", "--foreign", "none", "--stamp-port", "none"];
    let server = lab.start_on("t", path, "third.log", &serve);
    let is_there = || server.said().contains("meet on UDP port 5210");
    eventually("the third is there", &[&server], is_there);

    let (record, said) = measure(&lab, path, &third);
    let met = &record["plan"]["stamp"]["met"];
    assert_eq!((&met["way"], &met["at"]), (&"hole".into(), &format!("{third}:5210").into()));
    assert_eq!((&record["plan"]["host"], received(&record)), (&outside[1].clone().into(), 20.0));
    assert!(said.contains(&format!("reflected for {}:", outside[0])), "{said}");
    assert!(said.trim_end().ends_with("through a punched hole"), "{said}");

    // Each destination has a port of its own: no greeting arrives.
    for router in ["na", "nb"] {
        translate(&lab, router, path, "random");
    }
    let (record, said) = measure(&lab, path, &third);
    assert_eq!(record["plan"]["stamp"]["met"]["way"], "relay");
    assert_eq!((&record["plan"]["host"], received(&record)), (&third.clone().into(), 20.0));
    assert!(said.contains(&format!("passed on by {third}:5210")), "{said}");

    // Alone at the third, and at one that lets nobody meet.
    drop(server);
    let words = ["stamp", "--meet", &third, "--word", "blue cow", "-c1"];
    let output = lab.command("a", path, &words).output().expect("it starts");
    let said = stderr(&output);
    assert_eq!((output.status.code(), said.lines().count()), (Some(3), 1), "{said}");
    assert!(said.contains("it does not answer; start `linerate serve --meet` there"), "{said}");
}

#[test]
fn agents_behind_nat_fill_their_cells_of_the_matrix() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let lab = Lab::of(path, LAB);
    let third = addresses(&lab, "t", path)[0].1.clone();
    for router in ["na", "nb"] {
        translate(&lab, router, path, "");
    }
    std::fs::write(path.join("plan.toml"), PLAN.replace("THIRD", &third)).expect("room");
    good(path, &["mesh", "key", "key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "key"]);
    let serve =
        ["serve", "--meet", "--foreign", "none", "--mesh", "plan.toml", "--store", "hub.db"];
    let hub = lab.start_on("t", path, "hub.log", &serve);
    let is_there = || hub.said().contains("hub of mesh m, 3 agents");
    eventually("the hub is there", &[&hub], is_there);
    let join = |host: &str| {
        let words = ["mesh", "token", host, "--plan", "plan.toml", "--store", "hub.db"];
        let (token, store) = (good(path, &words), format!("{host}.db"));
        let hub = format!("http://{third}:5210");
        let agent = ["agent", "--join", &hub, "--store", &store, "--token", &token];
        lab.start_on(host, path, &format!("{host}.log"), &agent)
    };
    let agents: [Running; 3] = ["t", "a", "b"].map(join);
    let cells = || -> Vec<Value> {
        let output = linerate(path, &["mesh", "status", "--json", "--store", "hub.db"]);
        let status: Value = serde_json::from_str(&stdout(&output)).expect("JSON");
        status["cells"].as_array().expect("cells").clone()
    };
    // From a and b to t and to each other; t reaches neither.
    let ends: Vec<(u64, u64)> = cells()
        .iter()
        .map(|it| (it["from"].as_u64().expect("a place"), it["to"].as_u64().expect("a place")))
        .collect();
    assert_eq!(ends, [(1, 0), (1, 2), (2, 0), (2, 1)]);
    let programs: Vec<&Running> = agents.iter().chain([&hub]).collect();
    eventually("all were measured", &programs, || {
        cells().iter().all(|it| it["record"].is_string())
    });
    let way = |cell: &Value| -> Value {
        let id = cell["record"].as_str().expect("a record");
        let words = ["report", id, "--json", "--store", "hub.db"];
        let record: Value = serde_json::from_str(&good(path, &words)).expect("a record");
        record["plan"]["stamp"]["met"]["way"].clone()
    };
    let ways: Vec<Value> = cells().iter().map(way).collect();
    assert_eq!(ways, [Value::Null, "hole".into(), Value::Null, "hole".into()]);
    let words = ["mesh", "run", "stamp b -c5 -i50ms", "--from", "a", "--store", "hub.db"];
    let output = linerate(path, &words);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
