//! Tables of a mesh: tokens are used once, runs are kept once, the newest of a pair stays.

use linerate_core::mesh::RunOutcome;
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};

use super::*;

fn open(directory: &tempfile::TempDir) -> Store {
    Store::open(&directory.path().join("results.db")).expect("a store")
}

fn run(start_s: i64, state: &str) -> ScheduleRun {
    ScheduleRun {
        task: "rate/b".to_owned(),
        start_s,
        why: RunWhy::Calendar,
        state: state.parse().expect("a word"),
        reason: (state != "ok").then(|| "why".to_owned()),
        record: (state == "ok").then(|| format!("r{start_s}")),
    }
}

#[test]
fn a_token_joins_one_secret_again_and_again_and_no_other_and_not_when_it_is_over() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    store.mesh_token("t", "m", "a", 100).expect("room");
    assert_eq!(store.mesh_joins("t", "s", 101), Ok(Joined::Unknown), "its time is over");
    let joined = Ok(Joined::As("m".to_owned(), "a".to_owned()));
    assert_eq!(store.mesh_joins("t", "s", 100), joined);
    assert_eq!(store.mesh_joins("t", "s", 500), joined, "the answer was lost");
    assert_eq!(store.mesh_joins("t", "other", 100), Ok(Joined::Used));
    assert_eq!(store.mesh_joins("u", "s", 100), Ok(Joined::Unknown));
    assert_eq!(store.mesh_agent_of("s"), Ok(Some(("m".to_owned(), "a".to_owned()))));
    assert_eq!(store.mesh_agent_of("other"), Ok(None));
    // A second token of the same agent, for a host that takes its place.
    store.mesh_token("v", "m", "a", 100).expect("room");
    assert_eq!(store.mesh_joins("v", "new", 100), joined);
    assert_eq!(store.mesh_agent_of("s"), Ok(None));
}

#[test]
fn a_run_is_kept_once_and_an_older_one_does_not_displace_the_newest() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    let figure = |value| Some(("goodput_bps/up", value));
    assert_eq!(store.mesh_ran("m", "a", &run(20, "ok"), figure(2.0)), Ok(true));
    assert_eq!(store.mesh_ran("m", "a", &run(20, "ok"), figure(2.0)), Ok(false));
    assert_eq!(store.mesh_ran("m", "a", &run(30, "missed"), None), Ok(true));
    assert_eq!(store.mesh_ran("m", "a", &run(10, "ok"), figure(1.0)), Ok(true));
    assert_eq!(store.runs_since("m/a", 0).map(|runs| runs.len()), Ok(3));
    let cells = store.mesh_cells("m").expect("readable");
    let key = ("rate".to_owned(), "a".to_owned(), "b".to_owned());
    let cell = &cells[&key];
    assert_eq!((cells.len(), cell.last_s, cell.state), (1, 30, RunState::Missed));
    assert_eq!((cell.good_s, cell.value), (Some(20), Some(2.0)));
    assert_eq!(cell.reason.as_deref(), Some("why"));
    // Four were given, one of them twice.
    let counted = |outcome, runs| OutcomeCount { agent: "a".to_owned(), outcome, runs };
    let counts = vec![counted(RunOutcome::Failed, 1), counted(RunOutcome::Ok, 2)];
    assert_eq!(store.mesh_outcomes("m"), Ok(counts));
}

#[test]
fn what_is_not_confirmed_stays_to_be_sent_and_what_runs_is_not_sent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    for (start_s, state) in [(30, "running"), (10, "ok"), (20, "missed")] {
        assert_eq!(store.slot_begun("m/a", &run(start_s, state)), Ok(true));
    }
    let unsent = |store: &Store| -> Vec<i64> {
        let runs = store.mesh_unsent("m/a", 9).expect("readable");
        runs.iter().map(|run| run.start_s).collect()
    };
    assert_eq!((unsent(&store), store.mesh_unsent_count("m/a")), (vec![10, 20], Ok(2)));
    store.mesh_confirmed("m/a", &[run(10, "ok")], 0).expect("room");
    assert_eq!(unsent(&store), [20]);
    assert_eq!(store.runs_since("m/a", 0).map(|runs| runs.len()), Ok(3), "no run is begun twice");
    store.mesh_confirmed("m/a", &[run(20, "missed")], 15).expect("room");
    assert_eq!(store.runs_since("m/a", 0).map(|runs| runs[0].start_s), Ok(20), "older ones go");
}

#[test]
fn what_a_store_that_was_set_back_had_is_sent_again_as_a_gap_where_the_result_is_gone() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = open(&directory);
    let me = MeshSelf {
        hub: "http://h".to_owned(),
        key: "k".to_owned(),
        secret: "s".to_owned(),
        name: Some(("m".to_owned(), "a".to_owned())),
        starts: 1,
    };
    store.mesh_self_is(&me).expect("room");
    assert_eq!(store.mesh_hub_runs(), Ok(0));
    store.mesh_hub_has(7).expect("room");
    store.mesh_self_is(&me).expect("room");
    assert_eq!(store.mesh_hub_runs(), Ok(7), "a start does not forget it");
    for (start_s, state) in [(10, "ok"), (20, "missed"), (30, "ok")] {
        assert_eq!(store.slot_begun("m/a", &run(start_s, state)), Ok(true));
        let sql = "UPDATE schedule_run SET record = ?2 WHERE start_s = ?1";
        let record = run(start_s, state).record;
        store.connection.execute(sql, rusqlite::params![start_s, record]).expect("room");
    }
    store.mesh_confirmed("m/a", &[run(10, "ok"), run(20, "missed")], 0).expect("room");
    assert_eq!(store.mesh_unsent_count("m/a"), Ok(1));
    assert_eq!(store.mesh_unconfirms("m/a"), Ok(2));
    let unsent = store.mesh_unsent("m/a", 9).expect("readable");
    let ends: Vec<(i64, &str, Option<&str>)> =
        unsent.iter().map(|it| (it.start_s, it.state.name(), it.reason.as_deref())).collect();
    let gone = "the hub's store was set back: its result was dropped";
    let wanted = [(10, "lost", Some(gone)), (20, "missed", Some("why")), (30, "ok", None)];
    assert_eq!(ends, wanted);
    // At the hub: each counts once, and what it has stays.
    let mut hub = Store::open(&directory.path().join("hub.db")).expect("a store");
    assert_eq!(hub.mesh_ran("m", "a", &run(10, "ok"), None), Ok(true));
    for run in &unsent {
        hub.mesh_ran("m", "a", run, None).expect("room");
    }
    assert_eq!((hub.mesh_runs_of("m", "a"), hub.mesh_runs_of("m", "b")), (Ok(3), Ok(0)));
    assert_eq!(hub.runs_since("m/a", 0).map(|runs| runs[0].state), Ok(RunState::Ok));
}
