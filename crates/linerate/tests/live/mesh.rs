//! A mesh as its users run it: on loopback over TLS, and in namespaces with a hub and three agents
//! that are killed.
//!
//! The latter needs root, or a kernel that lets users make namespaces; says `skipped: reason`
//! without. Waits are for conditions, with limits that a busy machine keeps.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use linerate_core::schedule::{RunState, ScheduleRun};

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Child, Command};

use crate::support::mesh::{Lab, PROGRAM, Running, eventually, good, linerate};
use crate::support::{self, free_port, interrupt, no_laboratory, stderr, stdout};
use linerate_store::{LineFilter, Store};
use serde_json::Value;
use tempfile::TempDir;

const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\n[[agent]]\nname = \"a\"\n\
    address = \"127.0.0.1\"\n\n[[agent]]\nname = \"b\"\naddress = \"127.0.0.2\"\n\n[[task]]\nname = \"delay\"\n\
    run = \"ping {to} -c2\"\nevery = \"10s\"\ntakes = \"9s\"\n";

const RULES: &str = "learn = \"1d\"\n[alert]\ncommand = \"cat >> alerts\"\n";

fn signal(child: &Child, which: &str) {
    let sent = Command::new("kill").args([which, &child.id().to_string()]).status();
    assert!(sent.expect("kill runs").success());
}

/// A directory with a plan that is signed.
fn signed(plan: &str) -> TempDir {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    std::fs::write(path.join("plan.toml"), plan).expect("room");
    std::fs::write(path.join("rules.toml"), RULES).expect("room");
    good(path, &["mesh", "key", "mesh.key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "mesh.key"]);
    directory
}

fn token(directory: &Path, agent: &str) -> String {
    good(directory, &["mesh", "token", agent, "--plan", "plan.toml", "--store", "hub.db"])
}

#[test]
fn a_plan_is_checked_with_its_slots_signed_and_served_only_as_it_was_signed() {
    let directory = signed(PLAN);
    let path = directory.path();
    let said = good(path, &["mesh", "check", "plan.toml", "--all"]);
    assert!(said.contains("background") && said.contains("a to b") && said.contains("b to a"));
    let json = good(path, &["mesh", "check", "plan.toml", "--json"]);
    let value: Value = serde_json::from_str(&json).expect("JSON");
    assert_eq!(value["runs"].as_array().map(Vec::len), Some(2), "{value}");
    let fails = |words: &[&str], parts: &[&str]| {
        let output = linerate(path, words);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}");
        for part in parts {
            assert!(said.contains(part), "{said}");
        }
    };
    fails(&["mesh", "key", "mesh.key"], &["mesh.key"]);
    fails(&["mesh", "token", "c", "--plan", "plan.toml"], &["c: plan.toml has no agent"]);
    fails(&["mesh", "status", "--store", "none.db"], &["no such file"]);
    let book = |store: &'static str| ["mesh", "run", "ping b -c2", "--from", "a", "--store", store];
    fails(&book("none.db"), &["no such file"]);
    fails(&["agent", "--join", "hub"], &["https://HOST"]);
    fails(&["agent", "--join", "http://h", "--spool", "much"], &["--spool"]);
    fails(&["agent", "--join", "http://h", "--token", "x"], &["lrm1.SECRET.KEY"]);
    fails(&["agent", "--join", "http://h", "--store", "new.db"], &["has not joined", "--token"]);
    // Nobody listens on that port: an agent waits for its hub, and ends when it was asked to.
    let token = ["mesh", "token", "a", "--plan", "plan.toml", "--within", "1h", "--store", "x.db"];
    let token = good(path, &token);
    // The store has a token and no plan: it is no hub's yet.
    fails(&book("x.db"), &["find the mesh of x.db: it is no hub's"]);
    fails(&[&book("x.db")[..], &["--mesh", "m"]].concat(), &["the store has no plan of mesh m"]);
    let nobody = ["agent", "--join", "http://127.0.0.1:1", "--store", "new.db", "--for", "1s"];
    let output = linerate(path, &[&nobody[..], &["--token", &token]].concat());
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("no answer of the hub"), "{}", stderr(&output));
    for (from, to, part) in [
        ("-c2", "--sideways", "unexpected argument '--sideways'"),
        ("-c2", "127.0.0.3", "behind {to} stand flags"),
        ("every = \"10s\"", "every = \"9s\"", "wrong.toml:15:9: the time between two runs"),
    ] {
        std::fs::write(path.join("wrong.toml"), PLAN.replacen(from, to, 1)).expect("room");
        fails(&["mesh", "check", "wrong.toml"], &[part]);
    }
    std::fs::write(path.join("rules.toml"), "[alert]\nmail = [\"ops\"]\n").expect("room");
    let rules =
        ["serve", "-B", "127.0.0.1", "-p", "0", "--foreign", "none", "--stamp-port", "none"];
    let mesh = ["--mesh", "plan.toml", "--mesh-rules", "rules.toml", "--store", "hub.db"];
    fails(&[&rules[..], &mesh].concat(), &["rules.toml:2:8: \"ops\": an address is NAME@HOST"]);
    // A plan that was changed after it was signed.
    std::fs::write(path.join("plan.toml"), PLAN.replace("10s", "20s")).expect("room");
    let serve = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"];
    let mesh = ["--stamp-port", "none", "--mesh", "plan.toml", "--store", "hub.db"];
    fails(&[&serve[..], &mesh].concat(), &["plan.toml.sig: the signature is not of this plan"]);
}

fn hub(directory: &Path, port: &str) -> Running {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls");
    let mut command = Command::new(PROGRAM);
    command.args(["serve", "--port", port, "--bind", "127.0.0.1", "--foreign", "none"]);
    command.args(["--stamp-port", "none", "--mesh", "plan.toml", "--store", "hub.db"]);
    command.args(["--mesh-rules", "rules.toml"]);
    command.arg("--tls-cert").arg(testdata.join("one.pem"));
    command.arg("--tls-key").arg(testdata.join("one.key"));
    let running = Running::start(command.current_dir(directory), &directory.join("hub.log"));
    support::wait_until_listening(port);
    running
}

fn agent(directory: &Path, url: &str, store: &str, token: Option<&str>) -> Running {
    let authority = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls/ca.pem");
    let mut command = Command::new(PROGRAM);
    command.args(["agent", "--join", url, "--store", store]).arg("--ca").arg(authority);
    command.args(token.iter().flat_map(|token| ["--token", token])).current_dir(directory);
    command.args(["--spool", "100MB"]);
    Running::start(&mut command, &directory.join(format!("{store}.log")))
}

fn status(directory: &Path) -> Value {
    let output = linerate(directory, &["mesh", "status", "--json", "--store", "hub.db"]);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

fn measured(status: &Value) -> usize {
    let cells = status["cells"].as_array().expect("cells");
    cells.iter().filter(|cell| cell["age_s"].is_i64()).count()
}

/// Over TLS: a token joins one agent, plans are taken from its key alone, a newer one by SIGHUP.
#[test]
fn an_agent_joins_once_takes_plans_of_its_key_alone_and_tells_what_it_measured() {
    let directory = signed(PLAN);
    let path = directory.path();
    let token = token(path, "a");
    let port = free_port();
    let url = format!("https://localhost:{port}");
    let served = hub(path, &port);
    let first = agent(path, &url, "a.db", Some(&token));
    let programs = [&served, &first];
    eventually("a plan is taken", &programs, || first.said().contains("revision 1 was taken"));
    let mut second = agent(path, &url, "other.db", Some(&token));
    let end = support::end_of(&mut second.child).expect("it ends");
    assert_eq!(end.code(), Some(4), "{}", second.said());
    assert!(second.said().contains("used by another agent"), "{}", second.said());
    eventually("something was measured", &programs, || {
        let status = status(path);
        let alerts = status["alerts"].as_array().expect("alerts");
        assert!(alerts.contains(&"b has never joined".into()), "{status}");
        // A host that lets nobody ping has a reason instead.
        measured(&status) == 1 || first.said().contains("no result")
    });
    // The agent's own store has its part of the plan as a schedule.
    let own = linerate(path, &["schedule", "status", "m/a", "--json", "--store", "a.db"]);
    let own: Value = serde_json::from_slice(&own.stdout).expect("JSON");
    assert!(own["plan"] == "m/a" && own["tasks"][0]["name"].is_string(), "{own}");
    // Whoever has the hub has not the key: another one's plan is not taken.
    let plan = PLAN.replace("revision = 1", "revision = 2").replace("127.0.0.2", "127.0.0.3");
    std::fs::write(path.join("plan.toml"), &plan).expect("room");
    good(path, &["mesh", "key", "wrong.key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "wrong.key"]);
    let hang_up = || signal(&served.child, "-HUP");
    hang_up();
    eventually("it is refused", &programs, || first.said().contains("signed by another key"));
    let plan = plan.replace("revision = 2", "revision = 3");
    std::fs::write(path.join("plan.toml"), &plan).expect("room");
    good(path, &["mesh", "sign", "plan.toml", "--key", "mesh.key"]);
    hang_up();
    eventually("it is taken", &programs, || first.said().contains("revision 3 was taken"));
    eventually("the hub knows", &programs, || status(path)["agents"][0]["revision"] == 3);
    interrupt(&first.child);
    let mut first = first;
    assert_eq!(support::end_of(&mut first.child).and_then(|end| end.code()), Some(0));
    assert!(first.said().contains("0 are kept for the hub"), "{}", first.said());
}

#[test]
#[ignore = "nightly: two minutes until an agent counts as silent"]
fn an_agent_that_is_not_heard_any_more_is_an_incident_and_told() {
    let directory = signed(PLAN);
    let path = directory.path();
    let token = token(path, "a");
    let port = free_port();
    let served = hub(path, &port);
    let mut agent = agent(path, &format!("https://localhost:{port}"), "a.db", Some(&token));
    eventually("something was measured", &[&served, &agent], || {
        measured(&status(path)) == 1 || agent.said().contains("no result")
    });
    interrupt(&agent.child);
    assert_eq!(support::end_of(&mut agent.child).and_then(|end| end.code()), Some(0));
    let alerts = || std::fs::read_to_string(path.join("alerts")).unwrap_or_default();
    eventually("silence is told", &[&served], || alerts().contains("\"kind\":\"no_data\""));
    let alert: Value = serde_json::from_str(alerts().lines().next().expect("one")).expect("JSON");
    let said = alert["sentence"].as_str().expect("a sentence");
    assert!(said.contains("m: no data from agent a, not heard since"), "{said}");
    let status = status(path);
    assert_eq!(status["incidents"][0]["id"], alert["incident"]["id"], "{status}");
    assert!(status["incidents"][0]["until_s"].is_null(), "{status}");
    let said = stdout(&linerate(path, &["mesh", "status", "--store", "hub.db"]));
    assert!(said.contains("Incidents") && said.contains("no data from agent a"), "{said}");
}

/// The rows of an agent, by task and begin.
fn rows(store: &Path, agent: &str) -> BTreeMap<(String, i64), ScheduleRun> {
    let store = Store::open_existing(store).expect("a store");
    let rows = store.runs_since(&format!("m/{agent}"), 0).expect("readable");
    rows.into_iter().map(|row| ((row.task.clone(), row.start_s), row)).collect()
}

/// Of the agents a, b and c; `h` is the hub.
fn plan_of_three(addresses: &[&str; 4]) -> String {
    let agent = |at: usize| {
        let name = ["h", "a", "b", "c"][at];
        format!("[[agent]]\nname = \"{name}\"\naddress = \"{}\"\nport = 5210\n", addresses[at])
    };
    // Exclusive runs of a and b in turn; probes of all three in the background.
    format!(
        "mesh = \"m\"\nrevision = 1\nmargin = \"2s\"\n{}{}{}[[group]]\nname = \"two\"\n\
         agents = [\"a\", \"b\"]\n[[task]]\nname = \"rate\"\ngroup = \"two\"\n\
         run = \"tcp {{to}} -t1\"\nevery = \"65s\"\ntakes = \"18s\"\n[[task]]\nname = \"delay\"\n\
         run = \"ping {{to}} -c2\"\nevery = \"10s\"\ntakes = \"9s\"\n\
         [adhoc]\nseconds_an_hour = 300\n[[adhoc.command]]\nname = \"burst\"\n\
         run = \"tcp {{to}} -t2\"\ntakes = \"18s\"\n",
        agent(1),
        agent(2),
        agent(3)
    )
}

#[test]
fn what_is_killed_midway_loses_nothing_and_doubles_nothing() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let lab = Lab::start(path, &["h", "a", "b", "c"]);
    // One segment, whose hosts have the addresses from 1 on (docs/lab.md).
    let addresses = ["10.0.1.1", "10.0.1.2", "10.0.1.3", "10.0.1.4"];
    std::fs::write(path.join("plan.toml"), plan_of_three(&addresses)).expect("room");
    good(path, &["mesh", "key", "mesh.key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "mesh.key"]);
    let tokens = ["a", "b", "c"].map(|agent| token(path, agent));
    let serve = ["serve", "--foreign", "none", "--stamp-port", "none"];
    let hub_words = [&serve[..], &["--mesh", "plan.toml", "--store", "hub.db"]].concat();
    let hub = lab.start_on("h", path, "hub.log", &hub_words);
    let is_there = || hub.said().contains("hub of mesh m, 3 agents");
    eventually("the hub is there", &[&hub], is_there);
    let others = [&serve[..], &["--no-web"]].concat();
    let _servers = ["a", "b", "c"].map(|host| lab.start_on(host, path, "servers.log", &others));
    let url = format!("http://{}:5210", addresses[0]);
    let join = |host: &str, token: Option<&str>| {
        let store = format!("{host}.db");
        let mut words = vec!["agent", "--join", &url, "--store", &store];
        words.extend(token.iter().flat_map(|token| ["--token", token]));
        lab.start_on(host, path, &format!("{host}.log"), &words)
    };
    let mut agents: Vec<Running> =
        [0, 1, 2].map(|at| join(["a", "b", "c"][at], Some(&tokens[at]))).into();
    // Two of rates, six of delays.
    let programs: Vec<&Running> = agents.iter().chain([&hub]).collect();
    eventually("each pair was measured", &programs, || measured(&status(path)) == 8);
    a_run_is_booked_and_its_result_is_there(path);
    agents.remove(1).kill();
    hub.kill();
    let unsent = |agent: &str| {
        let store = Store::open_existing(&path.join(format!("{agent}.db"))).expect("a store");
        store.mesh_unsent_count(&format!("m/{agent}")).expect("readable")
    };
    eventually("results wait for the hub", &[&agents[0], &agents[1]], || {
        unsent("a") >= 3 && unsent("c") >= 3
    });
    let before = rows(&path.join("b.db"), "b").len();
    let hub = lab.start_on("h", path, "hub.log", &hub_words);
    agents.insert(1, join("b", None));
    let programs: Vec<&Running> = agents.iter().chain([&hub]).collect();
    eventually("all is stored", &programs, || {
        let more = rows(&path.join("b.db"), "b").len() > before + 3;
        more && ["a", "b", "c"].iter().all(|agent| unsent(agent) == 0)
    });
    // To whoever let them in, which hands it on and ends with them.
    for running in &agents {
        signal(&running.child, "-TERM");
    }
    for mut running in agents {
        assert!(support::end_of(&mut running.child).is_some(), "{}", running.said());
    }
    hub.kill();
    check(path);
}

/// From `c`, which has no run of the calendar that excludes it but what `a` has.
fn a_run_is_booked_and_its_result_is_there(path: &Path) {
    let words = ["mesh", "run", "tcp a -t2", "--from", "c", "--mesh", "m", "--store", "hub.db"];
    // An agent that gets no processor in its time misses it, says so, and is asked again.
    let said = (0..4).find_map(|_| {
        let output = linerate(path, &[&words[..], &["--result"]].concat());
        let missed = output.status.code() == Some(3) && stderr(&output).contains("missed: ");
        assert!(output.status.success() || missed, "{}", stderr(&output));
        output.status.success().then(|| stdout(&output))
    });
    let said = said.expect("one of four runs");
    assert!(said.starts_with("booked: burst c to a begins ") && said.contains("bit/s"), "{said}");
    let second: Value =
        serde_json::from_str(&good(path, &[&words[..], &["--json"]].concat())).expect("JSON");
    assert_eq!(second["task"], "burst/a", "{second}");
    let status = status(path);
    let bookings = status["bookings"].as_array().expect("bookings");
    let newest = bookings.first().expect("a booking");
    assert_eq!(newest["id"], second["id"], "{status}");
    let first = bookings.iter().skip(1).find(|it| it["state"] == "ok").expect("it ended well");
    let starts = [first, newest].map(|it| it["start_s"].as_i64().expect("a time"));
    assert!(starts[1] >= starts[0] + 18 + 2, "{status}");
    let store = Store::open_existing(&path.join("hub.db")).expect("a store");
    let record = store.get(first["record"].as_str().expect("a record")).expect("it is there");
    assert_eq!(record.tags.get("why").map(String::as_str), Some("booked"));
    assert_eq!(record.name.as_deref(), Some("burst/a"));
}

/// Each run of each agent is at the hub once, with the same end; each result once, and no more
/// at the agent.
fn check(path: &Path) {
    let store = Store::open_existing(&path.join("hub.db")).expect("a store");
    let mut records = Vec::new();
    let mut ends: BTreeMap<RunState, usize> = BTreeMap::new();
    for agent in ["a", "b", "c"] {
        let spool = path.join(format!("{agent}.db"));
        let (here, there) = (rows(&spool, agent), rows(&path.join("hub.db"), agent));
        assert_eq!(here, there, "{agent}");
        for row in there.values() {
            *ends.entry(row.state).or_default() += 1;
            // A run that failed with a record has its reason there.
            assert!(row.record.is_some() || row.reason.is_some(), "{row:?}");
            records.extend(row.record.clone());
        }
        let kept = Store::open_existing(&spool).expect("a store");
        let kept = kept.result_lines(&LineFilter::default(), 10_000).expect("readable");
        assert_eq!(kept.len(), 0, "{agent} has dropped what is stored");
    }
    println!("{} results, by end {ends:?}", records.len());
    let mut stored: Vec<String> = store
        .result_lines(&LineFilter::default(), 10_000)
        .expect("readable")
        .into_iter()
        .map(|line| line.id)
        .collect();
    let count = stored.len();
    stored.sort();
    stored.dedup();
    records.sort();
    assert_eq!((stored.len(), &stored), (count, &records));
    assert!(ends.get(&RunState::Ok).is_some_and(|count| *count >= 12), "{ends:?}");
    // b was away: what it did not measure then has its reason.
    let gaps =
        rows(&path.join("hub.db"), "b").into_values().filter(|row| row.state != RunState::Ok);
    let gaps: Vec<ScheduleRun> = gaps.collect();
    let away = |row: &&ScheduleRun| matches!(row.state, RunState::Missed | RunState::Lost);
    assert!(gaps.iter().filter(away).count() >= 2, "{gaps:?}");
}
