//! A study whose process is killed goes on from the store with exactly the cells that it lacks.
//!
//! The measurer is a fake with answers in closed form; the walk, the store and the kill are real.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use linerate_core::record::{
    Failure, MetricId, PingPlan, Plan, Record, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::study::{CellKey, CellPlan, StudyPlan, Topology};
use linerate_core::time::WallTime;
use linerate_engine::study::{Measurer, Options, StudyEnding, Tools, run};
use linerate_store::{NewStudyRun, Store, StudyState};
use linerate_sys::clock::{self, SystemClock};
use linerate_sys::stop::Stop;

/// Two topologies x (3 sizes x 20 repetitions) = 120 cells.
const PLAN: &str = r#"
name = "s"
title = "t"
[[topology]]
id = "a"
title = "A"
class = "c"
client = "h"
server = "h"
lab.host = [{ name = "h" }]
[[topology]]
id = "b"
title = "B"
class = "c"
client = "h"
server = "h"
lab.host = [{ name = "h" }]
[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56, 500, 1500]
count = 10
repetitions = 20
"#;

const CELLS: usize = 120;
const RUN: &str = "0a";
const CHILD_STORE: &str = "LINERATE_TEST_STUDY_STORE";
const CHILD_CELLS: &str = "LINERATE_TEST_STUDY_CELLS";

/// How far the child may run ahead of its killer, so that cells are left for the next one.
const AHEAD: usize = 20;

fn plan() -> StudyPlan {
    StudyPlan::from_toml(PLAN).expect("a sound plan")
}

/// Answers size × repetition, and says so on standard output.
struct Fake {
    measured: Vec<CellKey>,
}

impl Measurer for Fake {
    fn prepare(&mut self, _: &Topology) -> Result<(), Failure> {
        Ok(())
    }

    fn measure(&mut self, cell: &CellPlan) -> Record {
        self.measured.push(CellKey::from_cell(&cell.cell));
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let plan = Plan::Ping(PingPlan::default());
        let mut record = Record::from_plan(clock::record_id(), tool, plan, clock::wall_time());
        let value = (cell.cell.parameter * u64::from(cell.cell.repetition)) as f64;
        record.summary.push(Summary::from_value(MetricId::Rtt, Stat::Mean, value));
        record
    }

    fn unmeasured(&mut self, _: &CellPlan, failure: &Failure) -> Record {
        panic!("this fake builds everything: {failure}")
    }

    fn tear_down(&mut self) {}
}

/// Measures what the store lacks.
fn session(store: &mut Store, mut kept: impl FnMut()) -> (StudyEnding, Vec<CellKey>) {
    let records = store.run_records(RUN).expect("readable");
    let done = records.iter().filter_map(|record| record.cell.as_ref().map(CellKey::from_cell));
    let options = Options { run: RUN.to_owned(), done: done.collect(), retries: 0 };
    let mut fake = Fake { measured: Vec::new() };
    let mut tools = Tools {
        measurer: &mut fake,
        clock: &SystemClock,
        stop: &Stop::new(),
        keep: &mut |record| store.put_record(&record).map(|()| kept()),
        progress: &mut |_| {},
    };
    let ending = run(&plan(), &options, &mut tools).expect("all kept");
    (ending, fake.measured)
}

fn store(path: &Path) -> Store {
    Store::open(path).expect("a store")
}

/// Starts a study in a child, kills it after `count` stored cells; gives how many it told of.
fn killed_child(path: &Path, count: usize) -> usize {
    let mut child = Command::new(std::env::current_exe().expect("this test"))
        .args(["--exact", "--ignored", "--nocapture", "study_resume::child_that_runs_a_study"])
        .env(CHILD_STORE, path)
        .env(CHILD_CELLS, (count + AHEAD).to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a child");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let mut told = 0;
    while told < count {
        let line = lines.next().expect("the child goes on").expect("text");
        told += usize::from(line.ends_with("kept"));
    }
    child.kill().expect("SIGKILL");
    child.wait().expect("it is dead");
    told + lines.map_while(Result::ok).filter(|line| line.ends_with("kept")).count()
}

#[test]
fn a_study_killed_twice_has_every_cell_once() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("results.db");
    let begun = NewStudyRun {
        id: RUN.to_owned(),
        plan: plan(),
        started_at: WallTime::from_unix_nanos(0),
        host: None,
    };
    store(&path).begin_run(&begun).expect("room");

    let first = killed_child(&path, 7);
    let stored = store(&path).run_records(RUN).expect("readable").len();
    assert!(stored == first || stored == first + 1, "{stored} stored, {first} told");
    let second = killed_child(&path, 5);
    let stored = store(&path).run_records(RUN).expect("readable").len();
    assert!(stored >= first + second && stored <= CELLS, "{stored} stored");

    let mut store = store(&path);
    let (ending, measured) = session(&mut store, || {});
    assert_eq!((ending.found, ending.measured), (stored, CELLS - stored));
    let all: Vec<CellKey> =
        plan().cell_plans().iter().map(|cell| CellKey::from_cell(&cell.cell)).collect();
    assert_eq!(measured, all[stored..], "exactly the rest, in order");
    store.finish_run(RUN, StudyState::Finished, clock::wall_time()).expect("room");
    check_complete(&store, &all);
}

#[track_caller]
fn check_complete(store: &Store, all: &[CellKey]) {
    let records = store.run_records(RUN).expect("readable");
    let mut keys: Vec<CellKey> = Vec::new();
    for record in &records {
        let cell = record.cell.as_ref().expect("in a study");
        let expected = (cell.parameter * u64::from(cell.repetition)) as f64;
        assert_eq!(record.summary_value(MetricId::Rtt, Stat::Mean, None), Some(expected));
        assert_eq!((record.status, cell.run.as_str()), (RecordStatus::Ok, RUN));
        keys.push(CellKey::from_cell(cell));
    }
    let mut expected = all.to_vec();
    keys.sort();
    expected.sort();
    assert_eq!(keys, expected, "each cell once");
    let run = store.run(RUN).expect("readable");
    assert_eq!((run.state, run.stored), (StudyState::Finished, CELLS as u64));
}

#[test]
#[ignore = "the child of a_study_killed_twice_has_every_cell_once"]
fn child_that_runs_a_study() {
    let Some(path) = std::env::var_os(CHILD_STORE) else { return };
    let limit: usize = std::env::var(CHILD_CELLS).expect("set").parse().expect("a number");
    let mut store = store(Path::new(&path));
    let mut kept = 0;
    session(&mut store, || {
        println!("kept");
        kept += 1;
        if kept == limit {
            // Nothing comes: waits here for the kill, or for the parent's end.
            let _ = std::io::stdin().read_line(&mut String::new());
            panic!("the parent is gone");
        }
    });
}
