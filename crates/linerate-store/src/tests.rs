//! The store against what it promises; files are made in temporary directories.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_core::lab::{HostPlan, LabPlan};
use linerate_core::record::{
    Failure, Fault, MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, StudyCell,
    Summary, Tool,
};
use linerate_core::study::{StudyPlan, Test, TestKind, Topology};
use linerate_core::time::WallTime;
use rusqlite::Connection;
use tempfile::TempDir;

use super::figures::RecordFigures;
use super::*;

/// Record number `n`, which starts `n` milliseconds after the epoch.
fn record(n: u8) -> Record {
    let id = RecordId::from_parts(u64::from(n), [n; 10]);
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(n) * 1_000_000);
    let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
    record.summary.push(Summary::from_value(MetricId::Rtt, Stat::Mean, f64::from(n) + 0.25));
    record
}

fn in_cell(mut record: Record, run: &str, repetition: u32) -> Record {
    record.cell = Some(StudyCell {
        study: "s".to_owned(),
        run: run.to_owned(),
        topology: "a".to_owned(),
        test: "ping".to_owned(),
        parameter: 56,
        label: None,
        repetition,
    });
    record
}

fn failed(mut record: Record, status: RecordStatus) -> Record {
    record.status = status;
    record.failure = Some(Failure::new(Fault::Unreachable, "connect", "a", "refused"));
    record
}

fn new_run(id: &str) -> NewStudyRun {
    let host = HostPlan { name: "h".to_owned(), ..HostPlan::default() };
    let plan = StudyPlan {
        name: "s".to_owned(),
        title: "t".to_owned(),
        source: None,
        purpose: None,
        shuffle_seed: None,
        retries: None,
        topologies: vec![Topology {
            id: "a".to_owned(),
            title: "A".to_owned(),
            class: "c".to_owned(),
            lab: LabPlan { hosts: vec![host], ..LabPlan::default() },
            client: "h".to_owned(),
            server: "h".to_owned(),
            l2_hops: 0,
            l3_hops: 0,
            published: None,
        }],
        tests: vec![Test {
            id: "ping".to_owned(),
            on: None,
            kind: TestKind::ping(vec![56], 10),
            repetitions: 3,
        }],
        questions: vec![],
    };
    NewStudyRun { id: id.to_owned(), plan, started_at: WallTime::from_unix_nanos(0), host: None }
}

fn directory() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn open(directory: &TempDir) -> Store {
    Store::open(&directory.path().join("results.db")).expect("a store")
}

/// The failure's line, after checking that it is one line that names the object.
#[track_caller]
fn line(failure: &Failure, object: &Path) -> String {
    let text = failure.to_string();
    assert!(!text.contains('\n'), "{text}");
    assert!(text.contains(&object.display().to_string()), "{text}");
    assert_eq!(failure.fault, Fault::System, "{text}");
    text
}

#[test]
fn a_record_comes_out_as_it_went_in_and_twice_is_once() {
    let directory = directory();
    let mut store = open(&directory);
    store.put_record(&record(1)).expect("room");
    store.put_record(&record(1)).expect("the same again");
    assert_eq!(store.get(&record(1).id.to_string()), Ok(record(1)));
    assert_eq!(store.list_history(&HistoryFilter::default(), 10).expect("readable").len(), 1);
    drop(store);
    assert_eq!(open(&directory).get("last"), Ok(record(1)), "after opening again");
}

#[test]
fn a_record_is_found_by_the_start_of_its_name_and_from_the_end() {
    let directory = directory();
    let mut store = open(&directory);
    assert!(store.get("last").is_err());
    for n in [3, 1, 2] {
        store.put_record(&record(n)).expect("room");
    }
    // 48 bits of milliseconds: 00000000-0003-7….
    assert_eq!(store.get("00000000-0003"), Ok(record(3)));
    assert_eq!(store.get("last"), Ok(record(3)));
    assert_eq!(store.get("@-1"), Ok(record(3)));
    assert_eq!(store.get("@-3"), Ok(record(1)));
    let cases = [
        ("00000000", "several"),
        ("00000000-0009", "nothing"),
        ("@-4", "fewer"),
        ("@-0", "from 1"),
        ("@-x", "from 1"),
        ("x'%", "no result has this name"),
        ("", "no result has this name"),
    ];
    for (name, expected) in cases {
        let failure = store.get(name).expect_err(name);
        assert_eq!(failure.fault, Fault::Usage);
        assert!(failure.to_string().contains(expected), "{name}: {failure}");
    }
}

#[test]
fn a_list_is_newest_first_limited_and_filtered() {
    let directory = directory();
    let mut store = open(&directory);
    store.begin_run(&new_run("0a")).expect("room");
    store.put_record(&record(1)).expect("room");
    store.put_record(&in_cell(record(2), "0a", 1)).expect("room");
    store.put_record(&in_cell(record(3), "0a", 2)).expect("room");
    let ids = |filter: &HistoryFilter, limit| -> Vec<String> {
        let entries = store.list_history(filter, limit).expect("readable");
        entries.into_iter().map(|entry| entry.id).collect()
    };
    let id = |n| record(n).id.to_string();
    let each = HistoryFilter { cells: true, ..HistoryFilter::default() };
    assert_eq!(ids(&each, 10), [id(3), id(2), id(1)]);
    assert_eq!(ids(&each, 2), [id(3), id(2)]);
    // A run is one line, before all by its identifier here, and found as a line is.
    assert_eq!(ids(&HistoryFilter::default(), 10), ["0a".to_owned(), id(1)]);
    assert_eq!(store.find_by_name("@-1"), Ok(FoundResult { id: "0a".to_owned(), is_run: true }));
    assert_eq!(store.get("@-2"), Ok(record(1)));
    assert!(store.get("@-1").expect_err("a run").to_string().contains("history --run 0a"));
    let kind =
        |kind: &str| HistoryFilter { kind: Some(kind.to_owned()), ..HistoryFilter::default() };
    assert_eq!((ids(&kind("study"), 9).len(), ids(&kind("bench"), 9).len()), (1, 0));
    let of_study = HistoryFilter { study: Some("s".to_owned()), ..HistoryFilter::default() };
    assert_eq!(ids(&of_study, 10), [id(3), id(2)]);
    let of_tcp = HistoryFilter { kind: Some("tcp".to_owned()), ..HistoryFilter::default() };
    assert!(ids(&of_tcp, 10).is_empty());
    let entry = &store.list_history(&of_study, 1).expect("readable")[0];
    assert_eq!((entry.parameter, entry.repetition), (Some(56), Some(2)));
    assert_eq!((entry.kind.as_str(), entry.status.as_str()), ("ping", "ok"));
}

#[test]
fn a_cell_is_filled_once_and_only_a_bad_record_is_replaced() {
    let directory = directory();
    let mut store = open(&directory);
    store.begin_run(&new_run("0a")).expect("room");
    store.put_record(&failed(in_cell(record(1), "0a", 1), RecordStatus::Error)).expect("room");
    store
        .put_record(&failed(in_cell(record(2), "0a", 1), RecordStatus::Interrupted))
        .expect("replaces");
    store.put_record(&in_cell(record(3), "0a", 1)).expect("replaces");
    let failure = store.put_record(&in_cell(record(4), "0a", 1)).expect_err("the cell is filled");
    assert!(failure.to_string().contains(&record(3).id.to_string()), "{failure}");
    store.put_record(&in_cell(record(3), "0a", 1)).expect("the same again is no second");
    store.put_record(&in_cell(record(5), "0a", 2)).expect("another repetition");
    let counted = store.run_records("0a").expect("readable");
    assert_eq!(counted, [in_cell(record(3), "0a", 1), in_cell(record(5), "0a", 2)]);
    // The replaced ones are still in the store.
    let all = HistoryFilter { cells: true, ..HistoryFilter::default() };
    assert_eq!(store.list_history(&all, 10).expect("readable").len(), 4);
    assert_eq!(store.run("0a").expect("readable").stored, 2);
}

#[test]
fn a_record_of_a_run_that_never_began_is_refused() {
    let directory = directory();
    let failure =
        open(&directory).put_record(&in_cell(record(1), "0b", 1)).expect_err("no such run");
    assert!(failure.to_string().contains("run 0b is not in"), "{failure}");
}

#[test]
fn a_run_keeps_its_plan_its_state_and_its_end() {
    let directory = directory();
    let mut store = open(&directory);
    store.begin_run(&new_run("0a1")).expect("room");
    store.begin_run(&new_run("0a2")).expect("room");
    assert!(store.begin_run(&new_run("0a1")).is_err(), "the name is taken");
    let run = store.run("0a1").expect("it is there");
    assert_eq!((run.state, run.finished_at.as_deref()), (StudyState::Running, None));
    assert_eq!(run.plan, new_run("0a1").plan);
    let at = WallTime::from_unix_nanos(1_000_000_000);
    store.finish_run("0a1", StudyState::Interrupted, at).expect("room");
    let run = store.run("0a1").expect("it is there");
    assert_eq!(run.state, StudyState::Interrupted);
    assert_eq!(run.finished_at.as_deref(), Some("1970-01-01T00:00:01.000Z"));
    store.finish_run("0a1", StudyState::Running, at).expect("room");
    assert_eq!(store.run("0a1").expect("it is there").finished_at, None);
    assert_eq!(store.run("last").expect("it is there").id, "0a2");
    assert_eq!(store.last_run(Some("s")), Ok(Some("0a2".to_owned())));
    assert_eq!(store.last_run(Some("other")), Ok(None));
    assert_eq!(store.list_study_runs().expect("readable").len(), 2);
    assert!(store.run("0a").expect_err("two").to_string().contains("several"));
    assert!(store.finish_run("0c", StudyState::Finished, at).is_err());
}

#[test]
fn a_run_whose_program_was_killed_is_interrupted_and_one_at_work_is_not() {
    let directory = directory();
    let path = directory.path().join("results.db");
    let mut worker = Store::open(&path).expect("a store");
    worker.begin_run(&new_run("0a1")).expect("room");
    let mut server = Store::open(&path).expect("the same");
    let state = |store: &Store| store.run("0a1").expect("it is there").state;
    assert_eq!(server.settle_runs(), Ok(0), "it is at work");
    assert_eq!(state(&server), StudyState::Running);
    // The kernel closes a killed program's files.
    drop(worker);
    assert_eq!(server.settle_runs(), Ok(1));
    assert_eq!(state(&server), StudyState::Interrupted);
    assert_eq!(server.run("0a1").expect("it is there").finished_at, None, "nobody knows when");
    let mut again = Store::open(&path).expect("the same");
    again.finish_run("0a1", StudyState::Running, WallTime::from_unix_nanos(1)).expect("room");
    assert_eq!(server.settle_runs(), Ok(0), "it goes on");
}

/// `testdata/store/1.sql`, as its README says: a ping, a TCP test, a TCP test that failed.
#[test]
fn a_store_of_the_first_version_is_brought_up_and_searched() {
    let directory = directory();
    let path = directory.path().join("results.db");
    let old = Connection::open(&path).expect("room");
    old.execute_batch(include_str!("../../../testdata/store/1.sql")).expect("its own text");
    let broken = "INSERT INTO record (id, kind, started_at, status, doc)
                  VALUES ('0b', 'tcp', '2026-11-23T07:45:00.000Z', 'ok', 'no JSON')";
    old.execute(broken, []).expect("room");
    drop(old);
    let store = Store::open(&path).expect("a step brings it up");
    let found = |filter: HistoryFilter| -> Vec<String> {
        let entries = store.list_history(&filter, 10).expect("readable").into_iter();
        entries.map(|entry| format!("{} {}", entry.kind, entry.status)).collect()
    };
    let none = HistoryFilter::default;
    assert_eq!(found(none()), ["tcp ok", "tcp error", "tcp ok", "ping ok"]);
    let host = |host: &str| HistoryFilter { host: Some(host.to_owned()), ..none() };
    assert_eq!(found(host("127.0.0.1")).len(), 3);
    // The same figures as a record has that is put in now.
    let lines = store.result_lines(&LineFilter::default(), 10).expect("readable");
    assert_eq!(lines.len(), 4);
    for line in lines.iter().filter(|line| line.id != "0b") {
        let record = store.record(&line.id).expect("it is there");
        let figures = RecordFigures::from_record(&record);
        assert_eq!((line.rate_bps, line.loss), (figures.rate_bps, figures.loss), "{line:?}");
        assert_eq!(line.rtt_us, figures.rtt_ns.map(|ns| ns / 1000.0));
        assert_eq!(line.peer.as_deref(), record.plan.host_names().next());
    }
    assert!(lines.iter().any(|line| line.rate_bps.is_some_and(|rate| rate > 0.0)));
    assert!(lines.iter().any(|line| line.rtt_us.is_some_and(|rtt| rtt > 0.0)));
    let tcp = |before: Option<&str>| {
        let before = before.map(str::to_owned);
        let filter = LineFilter { kind: Some("tcp".to_owned()), before, ..LineFilter::default() };
        store.result_lines(&filter, 2).expect("readable")
    };
    let (first, rest) = (tcp(None), tcp(Some(&tcp(None)[1].id)));
    assert_eq!((first.len(), rest.len()), (2, 1), "page by page, each once");
    assert!(rest[0].id < first[1].id && first[1].id < first[0].id);
    assert_eq!(found(host("192.0.2.1")).len(), 0);
    let tag = |value: &str| ("site".to_owned(), value.to_owned());
    assert_eq!(found(HistoryFilter { tags: vec![tag("b")], ..none() }), ["ping ok"]);
    assert_eq!(found(HistoryFilter { tags: vec![tag("b"), tag("c")], ..none() }).len(), 0);
    assert_eq!(found(HistoryFilter { name: Some("base".to_owned()), ..none() }), ["ping ok"]);
    assert_eq!(found(HistoryFilter { failed: true, ..none() }), ["tcp error"]);
    let at = |text: &str| WallTime::from_user_text(text, WallTime::from_unix_nanos(0)).ok();
    let (before, after) = (at("2026-11-23"), at("2026-11-24"));
    assert_eq!(found(HistoryFilter { since: before, until: after, ..none() }).len(), 4);
    assert_eq!(found(HistoryFilter { until: before, ..none() }).len(), 0);
    assert_eq!(found(HistoryFilter { since: after, ..none() }).len(), 0);
    assert!(matches!(store.get("base").expect("by its name").plan, Plan::Ping(_)));
}

#[test]
fn what_is_put_is_found_by_host_name_and_labels() {
    let directory = directory();
    let mut store = open(&directory);
    let mut named = record(1);
    named.name = Some("x'%".to_owned());
    named.tags.insert("k".to_owned(), "v".to_owned());
    store.put_record(&named).expect("room");
    store.put_record(&record(2)).expect("room");
    assert_eq!(store.get("x'%"), Ok(named.clone()));
    let filter = HistoryFilter {
        tags: vec![("k".to_owned(), "v".to_owned())],
        host: Some("LOCALHOST".to_owned()),
        ..HistoryFilter::default()
    };
    let found = store.list_history(&filter, 9).expect("readable");
    assert_eq!((found.len(), &found[0].tags), (1, &named.tags));
}

#[test]
fn a_newer_store_is_refused_and_an_empty_file_is_taken() {
    let directory = directory();
    let path = directory.path().join("results.db");
    std::fs::write(&path, b"").expect("room");
    drop(Store::open(&path).expect("an empty file is an empty database"));
    let raw = Connection::open(&path).expect("a database");
    let version: i64 = raw.pragma_query_value(None, "user_version", |row| row.get(0)).expect("1");
    assert_eq!(version, 9);
    raw.pragma_update(None, "user_version", 10).expect("room");
    let text = line(&Store::open(&path).expect_err("newer"), &path);
    assert!(text.contains("version 10; this linerate knows up to 9"), "{text}");
}

#[test]
fn a_file_that_is_no_store_is_one_line() {
    let directory = directory();
    let path = directory.path().join("notes.txt");
    std::fs::write(&path, "not a database ".repeat(100)).expect("room");
    let text = line(&Store::open(&path).expect_err("text"), &path);
    assert!(text.contains("not a database; move the file away"), "{text}");
    assert_eq!(std::fs::read(&path).expect("it is still there").len(), 1500, "left as it was");
}

#[test]
fn a_store_with_a_spoilt_page_is_one_line() {
    let directory = directory();
    let path = directory.path().join("results.db");
    let mut store = Store::open(&path).expect("a store");
    (1..=50).try_for_each(|n| store.put_record(&record(n))).expect("room");
    drop(store);
    // The last connection has moved everything from the WAL into the file. Keep the header page.
    let mut bytes = std::fs::read(&path).expect("the file");
    bytes[4096..].fill(0xa5);
    std::fs::write(&path, bytes).expect("room");
    let outcome = Store::open(&path).and_then(|store| store.get("last").map(drop));
    let text = line(&outcome.expect_err("spoilt"), &path);
    assert!(text.contains("move the file away"), "{text}");
}

#[test]
fn a_spoilt_record_is_named() {
    let directory = directory();
    let mut store = open(&directory);
    store.put_record(&record(1)).expect("room");
    let id = record(1).id.to_string();
    for (doc, expected) in [("{", "EOF"), ("{\"schema\": \"linerate.record/3\"}", "record/3")] {
        store.connection.execute("UPDATE record SET doc = ?1", [doc]).expect("room");
        let text = store.get("last").expect_err("spoilt").to_string();
        assert!(text.contains(&id) && text.contains(expected), "{text}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_one_line() {
    let directory = directory();
    let path = directory.path().join("results.db");
    Store::open(&path).expect("a store").put_record(&record(1)).expect("room");
    // A file mode does not bind root, so the file is opened for reading only.
    let mut store = Store::open_with(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).expect("readable");
    assert_eq!(store.get("last"), Ok(record(1)), "reading goes on");
    let text = line(&store.put_record(&record(2)).expect_err("read only"), &path);
    assert!(text.contains("readonly") && text.contains("make it writable"), "{text}");
}

#[test]
fn a_place_where_nothing_can_be_made_is_one_line() {
    for path in ["/proc/results.db", "/"] {
        let failure = Store::open(Path::new(path)).expect_err(path);
        let text = line(&failure, Path::new(path));
        assert!(text.contains("--store"), "{text}");
    }
    // No directory is made for it but that of this user's stores.
    let directory = directory();
    let path = directory.path().join("none/results.db");
    let failure = Store::open(&path).expect_err("its directory is not there");
    assert_eq!(failure.fault, Fault::Usage, "{failure}");
    let told = format!("open store {}: no such file or directory; make ", path.display());
    assert!(failure.to_string().starts_with(&told), "{failure}");
    assert!(!directory.path().join("none").exists(), "it was made");
}

#[test]
fn a_full_disk_is_one_line_and_loses_nothing_stored() {
    let directory = directory();
    let mut store = open(&directory);
    store.put_record(&record(1)).expect("room");
    // A limit on pages gives the error of a full disk (SQLite, PRAGMA max_page_count).
    store.connection.pragma_update_and_check(None, "max_page_count", 1, |_| Ok(())).expect("set");
    let path = store.path().to_owned();
    let failure = (2..=200).find_map(|n| store.put_record(&record(n)).err()).expect("it fills");
    let text = line(&failure, &path);
    assert!(text.contains("full; make room there"), "{text}");
    assert_eq!(store.get(&record(1).id.to_string()), Ok(record(1)));
    let stored = store.list_history(&HistoryFilter::default(), 1000).expect("readable").len();
    drop(store);
    assert_eq!(
        open(&directory).list_history(&HistoryFilter::default(), 1000).expect("readable").len(),
        stored
    );
}

#[test]
fn two_stores_on_one_file_see_each_other() {
    let directory = directory();
    let mut one = open(&directory);
    let mut two = open(&directory);
    one.put_record(&record(1)).expect("room");
    two.put_record(&record(2)).expect("room");
    assert_eq!(one.get("last"), Ok(record(2)));
    assert_eq!(two.get("@-2"), Ok(record(1)));
}

/// Where the child of the next test writes.
const CHILD_STORE: &str = "LINERATE_TEST_CHILD_STORE";

#[test]
fn a_killed_writer_loses_nothing_that_put_returned_for() {
    let directory = directory();
    let path = directory.path().join("results.db");
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--ignored", "--nocapture", "tests::child_that_writes"])
        .env(CHILD_STORE, &path)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut told = Vec::new();
    let mut next = || {
        let line = lines.next()?.expect("text");
        line.split_once("put ").map_or(Some(None), |(_, id)| Some(Some(id.to_owned())))
    };
    while told.len() < 20 {
        told.extend(next().expect("the child writes on"));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it is dead");
    // What it said between the twentieth record and the signal counts too; a last line that the
    // kill cut short does not.
    while let Some(id) = next() {
        told.extend(id.filter(|id| id.len() == 36));
    }
    let store = Store::open(&path).expect("the store opens after the kill");
    for id in &told {
        assert!(store.get(id).is_ok(), "{id} is lost");
    }
    let stored = store.list_history(&HistoryFilter::default(), usize::MAX).expect("readable").len();
    assert!(stored >= told.len() && stored <= told.len() + 1, "{stored} of {}", told.len());
}

#[test]
#[ignore = "the child of a_killed_writer_loses_nothing_that_put_returned_for"]
fn child_that_writes() {
    let Some(path) = std::env::var_os(CHILD_STORE) else { return };
    let mut store = Store::open(Path::new(&path)).expect("a store");
    // Bounded: the parent kills it long before.
    for _ in 0..10_000 {
        let mut record = record(0);
        record.id = linerate_sys::clock::record_id();
        store.put_record(&record).expect("room");
        println!("put {}", record.id);
    }
}

#[test]
fn what_was_put_is_on_the_disk_and_a_busy_writer_is_waited_for() {
    let directory = directory();
    let mut store = open(&directory);
    let pragma = |store: &Store, name: &str| {
        let value = |row: &rusqlite::Row<'_>| row.get::<_, rusqlite::types::Value>(0);
        store.connection.pragma_query_value(None, name, value).expect("every SQLite has it")
    };
    // sqlite.org/pragma.html#pragma_synchronous: 2 is FULL, which WAL needs for durability.
    assert_eq!(pragma(&store, "synchronous"), 2.into());
    assert_eq!(pragma(&store, "journal_mode"), "wal".to_owned().into());
    assert_eq!(pragma(&store, "busy_timeout"), 10_000.into());
    let other = Connection::open(store.path()).expect("the same file");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    let (send, begun) = std::sync::mpsc::channel();
    let writer = std::thread::spawn(move || {
        send.send(()).expect("somebody waits");
        let put = store.put_record(&record(1));
        (put, store.get("last"))
    });
    begun.recv().expect("it begins");
    // Long enough for a writer that does not wait to have failed.
    linerate_sys::clock::sleep(Duration::from_millis(200));
    assert!(!writer.is_finished(), "it waits");
    other.execute_batch("COMMIT").expect("nothing was written");
    let (put, got) = writer.join().expect("no panic");
    assert_eq!((put, got), (Ok(()), Ok(record(1))));
}
