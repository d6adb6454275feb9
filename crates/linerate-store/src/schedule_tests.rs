//! Schedules in the store; files are made in temporary directories.

use linerate_core::record::{
    Direction, MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::schedule::{EventKind, RunState, ScheduleRun};
use linerate_core::time::WallTime;
use rusqlite::Connection;
use tempfile::TempDir;

use super::*;

const BEGIN_S: i64 = 1_795_478_400;

fn open(directory: &TempDir) -> Store {
    Store::open(&directory.path().join("results.db")).expect("a store")
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// A record of task `a`'s run so many seconds after the begin.
fn record(n: u8, why: Option<&str>) -> Record {
    let at_s = BEGIN_S + i64::from(n);
    let id = RecordId::from_parts(u64::try_from(at_s).expect("after 1970") * 1000, [n; 10]);
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    let nanos = u128::try_from(at_s).expect("after 1970") * 1_000_000_000;
    let plan = Plan::Ping(PingPlan::default());
    let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(nanos));
    record.name = Some("a".to_owned());
    let mut tag = |key: &str, value: &str| record.tags.insert(key.to_owned(), value.to_owned());
    tag(TAG_PLAN, "p");
    tag(TAG_SLOT, &at_s.to_string());
    why.map(|why| tag(TAG_WHY, why));
    let down = Some(Direction::Down);
    record.summary = vec![
        Summary::from_value(MetricId::Rtt, Stat::P50, 1e6 * f64::from(n)),
        Summary { direction: down, ..Summary::from_value(MetricId::Goodput, Stat::Value, 5e8) },
    ];
    record
}

fn run(n: u8, why: &str) -> ScheduleRun {
    ScheduleRun {
        task: "a".to_owned(),
        start_s: BEGIN_S + i64::from(n),
        why: why.parse().expect("a word"),
        state: RunState::Running,
        reason: None,
        record: None,
    }
}

#[test]
fn a_record_of_a_schedule_brings_its_values_and_its_run_with_it_once() {
    let directory = directory();
    let mut store = open(&directory);
    assert_eq!(store.slot_begun("p", &run(1, "calendar")), Ok(true));
    assert_eq!(store.slot_begun("p", &run(1, "calendar")), Ok(false), "never twice");
    let first = record(1, None);
    store.put_record(&first).expect("room");
    store.put_record(&first).expect("the same again is one");
    let series = store.series("p", 0.0, 100).expect("readable");
    let told: Vec<(&str, f64, f64)> =
        series.iter().map(|it| (it.metric.as_str(), it.at_s, it.value)).collect();
    let at = BEGIN_S as f64 + 1.0;
    assert_eq!(told, [("goodput_bps/down", at, 5e8), ("rtt_ns", at, 1e6)]);
    let slot = store.find_run("p", "a", BEGIN_S + 1).expect("readable").expect("begun");
    assert_eq!(slot.record, Some(first.id.to_string()));
    // A survey is no value of the series; a failed run has none; another's name is not ours.
    store.put_record(&record(2, Some("survey"))).expect("room");
    store.put_record(&Record { status: RecordStatus::Error, ..record(3, None) }).expect("room");
    store.put_record(&Record { name: None, ..record(4, None) }).expect("room");
    assert_eq!(store.series("p", 0.0, 100).expect("readable").len(), 2);
    store.put_record(&record(5, Some("confirm"))).expect("room");
    let newest = store.series("p", 0.0, 1).expect("readable");
    assert_eq!(newest.iter().map(|it| it.at_s).collect::<Vec<_>>(), [at + 4.0, at + 4.0]);
}

#[test]
fn what_a_killed_runner_left_is_kept_where_its_record_is_and_lost_where_none_is() {
    let directory = directory();
    let mut store = open(&directory);
    for n in 1..4 {
        store.slot_begun("p", &run(n, "calendar")).expect("room");
    }
    store.put_record(&record(1, None)).expect("room");
    store.put_record(&Record { status: RecordStatus::Error, ..record(2, None) }).expect("room");
    assert_eq!(store.slots_left("p", "the runner was killed"), Ok(1));
    let states: Vec<(RunState, Option<String>)> = store
        .runs_since("p", 0)
        .expect("readable")
        .into_iter()
        .map(|it| (it.state, it.reason))
        .collect();
    let of = |state, reason: Option<&str>| (state, reason.map(str::to_owned));
    let killed = Some("the runner was killed");
    assert_eq!(
        states,
        [of(RunState::Ok, None), of(RunState::Failed, None), of(RunState::Lost, killed)]
    );
}

#[test]
fn records_go_when_their_time_is_over_and_their_series_stay() {
    let directory = directory();
    let mut store = open(&directory);
    for n in 1..6 {
        store.slot_begun("p", &run(n, "calendar")).expect("room");
        store.put_record(&record(n, None)).expect("room");
    }
    let mut other = record(7, None);
    other.tags.clear();
    store.put_record(&other).expect("room");
    assert_eq!(store.schedule_forgets("p", BEGIN_S + 4), Ok(3));
    assert_eq!(store.schedule_forgets("p", BEGIN_S + 4), Ok(0));
    assert_eq!(store.result_lines(&LineFilter::default(), 10).expect("readable").len(), 3);
    assert_eq!(store.series("p", 0.0, 100).expect("readable").len(), 10);
}

#[test]
fn what_happened_goes_after_its_time_but_the_newest_of_each_kind_of_a_task() {
    let directory = directory();
    let mut store = open(&directory);
    let detail = serde_json::json!({});
    let mut happened = |plan: &str, task: &str, at_s: i64, kind: EventKind| {
        store.event_happened(plan, task, BEGIN_S + at_s, kind, &detail).expect("room")
    };
    happened("p", "a", 1, EventKind::NoData);
    happened("p", "a", 2, EventKind::Data);
    let silent = happened("p", "a", 3, EventKind::NoData);
    let data = happened("p", "a", 4, EventKind::Data);
    let began = happened("p", "", 5, EventKind::Begin);
    let others = happened("p/q", "a", 1, EventKind::Data);
    happened("p/q", "a", 2, EventKind::Data);
    for _ in 0..1100 {
        happened("p", "a", 6, EventKind::Change);
    }
    let changed = happened("p", "a", 900, EventKind::Change);
    let gone = [0; 4].map(|_| store.events_forget("p", BEGIN_S + 900).expect("room"));
    assert_eq!(gone, [500, 500, 102, 0], "some hundreds at a time");
    let left = |plan: &str| -> Vec<i64> {
        store.events(plan, 0).expect("readable").iter().map(|it| it.id).collect()
    };
    assert_eq!(left("p"), [silent, data, began, changed]);
    assert_eq!(left("p/q").len(), 2);
    assert_eq!(left("p/q")[0], others);
}

#[test]
fn what_happened_is_told_once_and_a_plan_keeps_its_first_day() {
    let directory = directory();
    let mut store = open(&directory);
    let first = store.schedule_opened("p", "name = \"p\"", BEGIN_S).expect("room");
    assert_eq!((first.since_s, first.dealt_s), (BEGIN_S, BEGIN_S));
    store.schedule_dealt("p", BEGIN_S + 60).expect("room");
    let again = store.schedule_opened("p", "other", BEGIN_S + 99).expect("room");
    assert_eq!((again.since_s, again.dealt_s), (BEGIN_S, BEGIN_S + 60));
    assert_eq!(again.text, "other");
    let detail = serde_json::json!({"metric": "rtt_ns"});
    let id = store.event_happened("p", "a", BEGIN_S, EventKind::Change, &detail).expect("room");
    store.event_explained(id, &serde_json::json!({"verdict": "v"})).expect("room");
    let alert = NewAlert {
        id: "one".to_owned(),
        at_s: BEGIN_S + 5,
        sentence: "slow".to_owned(),
        json: "{}".to_owned(),
    };
    let outputs = ["command".to_owned(), "webhook".to_owned()];
    store.event_alerts(id, "p", &alert, &outputs).expect("room");
    let events = store.events("p", BEGIN_S).expect("readable");
    let [event] = events.as_slice() else { panic!("one event") };
    assert_eq!((event.told_s, event.detail["verdict"].as_str()), (Some(BEGIN_S + 5), Some("v")));
}

#[test]
fn each_output_gets_an_alert_until_it_has_it_and_no_other_owner_does() {
    let directory = directory();
    let mut store = open(&directory);
    let detail = serde_json::json!({});
    for (id, at_s) in [("a", 5), ("b", 6)] {
        let event = store.event_happened("p", "t", at_s, EventKind::Change, &detail).expect("room");
        let (sentence, json) = ("slow".to_owned(), "{}".to_owned());
        let alert = NewAlert { id: id.to_owned(), at_s, sentence, json };
        let outputs = ["command".to_owned(), "webhook".to_owned()];
        store.event_alerts(event, "p", &alert, &outputs).expect("room");
    }
    let due = |store: &mut Store, output: &str, now_s| {
        let due = store.alert_due("p", output, now_s).expect("readable");
        due.map(|due| (due.id, due.tries))
    };
    let is = |id: &str, tries| Some((id.to_owned(), tries));
    assert_eq!((due(&mut store, "command", 4), due(&mut store, "command", 9)), (None, is("a", 0)));
    assert_eq!(store.alert_due("q", "command", 9), Ok(None));
    store.alert_told("a", "command", 9).expect("room");
    store.alert_failed("a", "webhook", Some(24), "HTTP 500").expect("room");
    assert_eq!(
        (due(&mut store, "command", 9), due(&mut store, "webhook", 9)),
        (is("b", 0), is("b", 0))
    );
    assert_eq!(due(&mut store, "webhook", 24), is("a", 1), "the older one first");
    store.alert_failed("a", "webhook", None, "HTTP 500").expect("room");
    assert_eq!(due(&mut store, "webhook", 9999), is("b", 0), "it was given up");
    let waiting = store.alerts_waiting("p", 0).expect("readable");
    let reason = Some("HTTP 500".to_owned());
    let wanted = [("webhook", reason), ("command", None), ("webhook", None)];
    let wanted = wanted.map(|(output, reason)| (output.to_owned(), reason));
    assert_eq!(waiting, wanted);
}

/// Tables of version 3 with a result in them, as `STEPS` up to it make them.
#[test]
fn a_store_of_version_3_gets_the_tables_and_keeps_its_results() {
    let directory = directory();
    let path = directory.path().join("results.db");
    open(&directory).put_record(&record(1, None)).expect("room");
    let old = Connection::open(&path).expect("a database");
    old.execute_batch(
        "DROP TABLE schedule; DROP TABLE schedule_run; DROP TABLE series;
         DROP TABLE schedule_event; DROP TABLE mesh_self; DROP TABLE mesh_plan;
         DROP TABLE mesh_token; DROP TABLE mesh_agent; DROP TABLE mesh_cell;
         DROP TABLE alert_out; DROP TABLE alert; DROP TABLE mesh_watched; DROP TABLE mesh_incident;
         DROP TABLE mesh_outcome; DROP TABLE mesh_occupied; DROP TABLE mesh_booking;
         DROP TABLE sketch;
         PRAGMA user_version = 3;",
    )
    .expect("as it was");
    drop(old);
    let mut store = open(&directory);
    assert_eq!(store.result_lines(&LineFilter::default(), 10).expect("readable").len(), 1);
    store.put_record(&record(2, None)).expect("room");
    assert_eq!(store.series("p", 0.0, 10).expect("readable").len(), 2);
}
