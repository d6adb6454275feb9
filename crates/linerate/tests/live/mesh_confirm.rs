//! A path that changed, as the hub of a mesh sees it: two runs are booked that show it again, then
//! one `linerate test`, whose verdict goes with the alert.
//!
//! Two agents and a hub in namespaces; what the hub knows of the path before is made up: round
//! trips of a microsecond, which no path has. Needs root, or a kernel that lets users make
//! namespaces; says `skipped: reason` without. Waits are for conditions, with limits that a busy
//! machine keeps.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::Path;

use crate::support::mesh::{Lab, Running, eventually, good, linerate};
use crate::support::{no_laboratory, stdout};
use linerate_core::record::{
    MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::schedule::{Followed, RunState, RunWhy, ScheduleRun};
use linerate_core::time::WallTime;
use linerate_store::Store;
use serde_json::Value;

const PLAN: &str = "mesh = \"m\"\nrevision = 1\n\
    [[agent]]\nname = \"a\"\naddress = \"10.0.1.2\"\nport = 5210\n\
    [[agent]]\nname = \"b\"\naddress = \"10.0.1.3\"\nport = 5210\n\
    [[task]]\nname = \"delay\"\nrun = \"ping {to} -c2\"\nevery = \"61s\"\ntakes = \"9s\"\n\
    [adhoc]\nseconds_an_hour = 900\n\
    [[adhoc.command]]\nname = \"look\"\nrun = \"test {to}\"\ntakes = \"3m\"\n";
const RULES: &str = "learn = \"5m\"\nconfirm = 2\nsurveys_a_day = 1\n\
    [alert]\ncommand = \"cat >> alerts; echo >> alerts\"\n";
/// Values that are made up, and seconds between them.
const BEFORE: (i64, i64) = (60, 61);

fn status(path: &Path) -> Value {
    let output = linerate(path, &["mesh", "status", "--json", "--store", "hub.db"]);
    serde_json::from_str(&stdout(&output)).expect("JSON")
}

/// The cell from `a` to `b`.
fn cell(path: &Path) -> Value {
    let cells = status(path)["cells"].as_array().expect("cells").clone();
    cells.into_iter().find(|it| it["from"] == 0).expect("a measures b")
}

/// Keeps results of `a` before a time, of the figure that its results have.
fn remember(store: &mut Store, metric: MetricId, before_s: i64) {
    for at in 1..=BEFORE.0 {
        let at_s = before_s - at * BEFORE.1;
        let millis = u64::try_from(at_s * 1000).expect("after 1970");
        let id = RecordId::from_parts(millis, [7; 10]);
        let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
        let begin = WallTime::from_unix_nanos(u128::from(millis) * 1_000_000);
        let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), begin);
        record.status = RecordStatus::Ok;
        record.name = Some("delay/b".to_owned());
        record.tags.insert("schedule".to_owned(), "m/a".to_owned());
        record.tags.insert("slot".to_owned(), at_s.to_string());
        let rtt_ns = 1000.0 * (1.0 + 0.01 * (at % 7) as f64);
        record.summary = vec![Summary::from_value(metric, Stat::P50, rtt_ns)];
        store.put_record(&record).expect("room");
        let run = ScheduleRun {
            task: "delay/b".to_owned(),
            start_s: at_s,
            why: RunWhy::Calendar,
            state: RunState::Ok,
            reason: None,
            record: Some(id.to_string()),
        };
        store.mesh_ran("m", "a", &run, None).expect("room");
    }
}

#[test]
#[ignore = "nightly: four minutes of waiting for slots"]
fn a_change_is_shown_by_two_booked_runs_and_explained_by_a_booked_test_before_it_is_told() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path();
    let lab = Lab::start(path, &["h", "a", "b"]);
    std::fs::write(path.join("plan.toml"), PLAN).expect("room");
    std::fs::write(path.join("rules.toml"), RULES).expect("room");
    good(path, &["mesh", "key", "key"]);
    good(path, &["mesh", "sign", "plan.toml", "--key", "key"]);
    let serve = ["serve", "--foreign", "none", "--stamp-port", "none"];
    let mesh = ["--mesh", "plan.toml", "--mesh-rules", "rules.toml", "--store", "hub.db"];
    let hub_words = [&serve[..], &mesh].concat();
    let others = [&serve[..], &["--no-web"]].concat();
    let hub = lab.start_on("h", path, "hub.log", &hub_words);
    let is_there = || hub.said().contains("hub of mesh m, 2 agents");
    eventually("the hub is there", &[&hub], is_there);
    let _servers = ["a", "b"].map(|host| lab.start_on(host, path, "servers.log", &others));
    let join = |host: &str| {
        let words = ["mesh", "token", host, "--plan", "plan.toml", "--store", "hub.db"];
        let (token, store) = (good(path, &words), format!("{host}.db"));
        let agent =
            ["agent", "--join", "http://10.0.1.1:5210", "--store", &store, "--token", &token];
        lab.start_on(host, path, &format!("{host}.log"), &agent)
    };
    let [a, b]: [Running; 2] = ["a", "b"].map(join);
    // Booked, so that nobody waits for the calendar.
    let measure = |count: usize| {
        let words = ["mesh", "run", "ping b -c2", "--from", "a", "--store", "hub.db"];
        (0..count).for_each(|_| drop(good(path, &words)));
    };
    measure(1);
    eventually("the path was measured", &[&hub, &a, &b], || cell(path)["age_s"].is_i64());
    let first = cell(path);
    let key = first["metric"].as_str().expect("a figure").to_owned();
    let metric = Followed::from_key(&key).expect("it is followed").metric;
    hub.kill();
    let mut store = Store::open_existing(&path.join("hub.db")).expect("a store");
    let rows = store.runs_since("m/a", 0).expect("readable");
    remember(&mut store, metric, rows[0].start_s);
    drop(store);
    let hub = lab.start_on("h", path, "hub.log", &hub_words);
    let booked = |why: &str| {
        let status = status(path);
        let all = status["bookings"].as_array().expect("bookings");
        let mine = all.iter().filter(|it| it["why"] == why);
        mine.map(|it| it["state"].clone()).collect::<Vec<Value>>()
    };
    measure(6);
    let programs = [&hub, &a, &b];
    eventually("two runs are booked", &programs, || booked("confirm").len() == 2);
    eventually("they ran", &programs, || booked("confirm").iter().all(|it| *it == "ok"));
    eventually("a test is booked", &programs, || booked("survey").len() == 1);
    eventually("it ended", &programs, || !booked("survey")[0].is_null());
    let alerts = || std::fs::read_to_string(path.join("alerts")).unwrap_or_default();
    eventually("it is told", &programs, || alerts().contains("\"kind\":\"change\""));
    let alert = alerts().lines().find(|it| it.contains("\"kind\":\"change\"")).map(str::to_owned);
    holds(path, &alert.expect("a line"), booked("survey")[0] == "ok");
    hub.kill();
}

/// What an alert of a change says, where its test has a result and where not.
fn holds(path: &Path, alert: &str, has_result: bool) {
    let alert: Value = serde_json::from_str(alert).expect("JSON");
    let incident = &alert["incident"];
    let said = alert["sentence"].as_str().expect("a sentence");
    assert!(
        said.starts_with("m: the pair a and b changed, since ") && said.contains("delay a to b")
    );
    assert_eq!(incident["confirmed"], true, "{alert}");
    let verdict = incident["survey"]["verdict"].as_str().expect("it has one");
    assert!(said.ends_with(&format!("confirmed by further runs; {verdict}")), "{said}");
    if has_result {
        let store = Store::open_existing(&path.join("hub.db")).expect("a store");
        let record = incident["survey"]["record"].as_str().expect("its record");
        assert_eq!(store.get(record).expect("stored").name.as_deref(), Some("look/b"));
        assert!(!verdict.starts_with("no verdict"), "{verdict}");
    }
    println!("{said}");
    assert_eq!(status(path)["incidents"][0]["id"], incident["id"]);
}
