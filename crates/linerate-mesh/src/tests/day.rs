//! A day's runs as they are given to its file, and a day that leaves the store.

use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_store::{AgentRun, Day, DayPath, DayRun, HubStore};

use super::{World, now_s};

const DAY_S: i64 = 86_400;

/// The day so many days ago: near enough for a partition of its own.
pub(super) fn ago(days: i64) -> Day {
    let now = linerate_sys::clock::wall_time();
    let begin_s = (now_s() / DAY_S - days) * DAY_S;
    let ns = u128::try_from(begin_s).expect("after 1970") * 1_000_000_000;
    let date = linerate_core::time::WallTime::from_unix_nanos(ns).to_string();
    let day = Day::from_date_text(&date[..10], now).expect("it is over");
    assert_eq!(day.span_seconds(), (begin_s, begin_s + DAY_S));
    day
}

pub(super) fn run(agent: &str, task: &str, start_s: i64) -> AgentRun {
    let run = ScheduleRun {
        task: task.to_owned(),
        start_s,
        why: RunWhy::Calendar,
        state: RunState::Failed,
        reason: Some("no reply".to_owned()),
        record: None,
    };
    AgentRun { agent: agent.to_owned(), run, record: None, figure: None }
}

/// A run with its record.
fn measured(mesh: &str, agent: &str, start_s: i64, rtt_ns: f64) -> AgentRun {
    let record = super::record(&format!("{mesh}/{agent}"), start_s, rtt_ns);
    let mut given = run(agent, "delay/z", start_s);
    given.run.state = RunState::Ok;
    given.run.reason = None;
    given.run.record = Some(record.id.to_string());
    let figure = Some(("rtt_ns".to_owned(), rtt_ns));
    AgentRun { record: Some(record), figure, ..given }
}

/// Everything of a day, with the path of each.
fn all(store: &mut dyn HubStore, mesh: &str, day: &Day) -> Vec<(String, DayRun)> {
    let mut found = Vec::new();
    let given = store.read_day_runs(mesh, day.span_seconds(), &mut |path, runs| {
        assert!((1..=200).contains(&runs.len()), "{} at once", runs.len());
        let DayPath { agent, task, peer } = path;
        found.extend(runs.into_iter().map(|run| (format!("{agent} {task} {peer}"), run)));
        Ok(true)
    });
    given.expect("readable");
    found
}

pub(super) fn a_day_path_by_path(world: &mut dyn World) {
    let (mut store, day) = (world.store(), ago(3));
    let (from_s, until_s) = day.span_seconds();
    let mut runs: Vec<AgentRun> = (0..450).map(|n| run("b", "rate/c", from_s + 10 * n)).collect();
    runs.push(measured("x", "b", until_s - 1, 2e6));
    // A hyphen sorts before the slash of TASK/AGENT, and after the end of TASK.
    runs.push(run("a", "rate-up/b", from_s));
    runs.push(run("a", "rate/b", from_s));
    runs.push(run("a.b", "rate/b", from_s));
    runs.extend([run("b", "rate/c", from_s - 1), run("b", "rate/c", until_s)]);
    assert!(store.keep_runs("x", &runs).expect("room").iter().all(|new| *new));
    store.keep_runs("x0", &[run("b", "rate/c", from_s)]).expect("room");
    let found = all(&mut *store, "x", &day);
    let paths: Vec<&str> = found.iter().map(|it| it.0.as_str()).collect();
    assert_eq!(paths[..4], ["a rate b", "a rate-up b", "a.b rate b", "b delay z"]);
    assert!(paths[4..].iter().all(|path| *path == "b rate c"), "{paths:?}");
    let starts: Vec<i64> = found[4..].iter().map(|it| it.1.start_s).collect();
    assert_eq!(starts, (0..450).map(|n| from_s + 10 * n).collect::<Vec<_>>());
    let good = &found[3].1;
    assert_eq!(good.figure, Some(("rtt_ns".to_owned(), 2e6)));
    let record = good.doc.as_deref().map(linerate_core::record::Record::from_json);
    let record = record.expect("a record").expect("it is read");
    assert_eq!(good.record, Some(record.id.to_string()));
    let failed = &found[0].1;
    assert_eq!((failed.state, failed.reason.as_deref()), (RunState::Failed, Some("no reply")));
    assert_eq!((&failed.figure, &failed.record, &failed.doc), (&None, &None, &None));
    // Enough, and a failure of who takes them.
    let mut times = 0;
    let given = store.read_day_runs("x", day.span_seconds(), &mut |_, _| {
        times += 1;
        Ok(times < 2)
    });
    assert_eq!((given, times), (Ok(()), 2));
    let full = Failure::new(Fault::System, "write", "it", "no room");
    let given = store.read_day_runs("x", day.span_seconds(), &mut |_, _| Err(full.clone()));
    assert_eq!(given, Err(full));
    // The next reads and writes as ever.
    assert_eq!(store.keep_runs("x", &[runs.remove(0)]), Ok(vec![false]));
}

pub(super) fn a_day_that_goes(world: &mut dyn World) {
    let (mut store, day) = (world.store(), ago(4));
    let (from_s, until_s) = day.span_seconds();
    let near = [run("b", "rate/c", from_s - 1), run("b", "rate/c", until_s)];
    let own = [measured("y", "b", from_s, 2e6), run("a", "rate/b", until_s - 1)];
    store.keep_runs("y", &near).expect("room");
    store.keep_runs("y", &own).expect("room");
    store.keep_runs("y0", &[run("b", "rate/c", from_s)]).expect("room");
    let (cells, outcomes) = (store.newest_cells("y"), store.outcomes("y"));
    for count in [0, 1, 3] {
        let failure = store.day_goes("y", &day, count).expect_err("it has two");
        assert!(failure.reason.contains("has 2 runs"), "{failure}");
    }
    assert_eq!(all(&mut *store, "y", &day).len(), 2);
    assert_eq!(store.day_goes("y", &day, 2), Ok(()));
    assert_eq!(all(&mut *store, "y", &day), []);
    assert_eq!(store.record("y", "b", &own[0].run), Ok(None));
    // What is beside it stays, the newest and the counts, too.
    assert_eq!(all(&mut *store, "y0", &day).len(), 1);
    let left = ["a", "b"].map(|it| store.agent_runs("y", it, None, 0..i64::MAX).expect("readable"));
    assert_eq!(left.map(|runs| runs.len()), [0, 2]);
    assert_eq!((store.newest_cells("y"), store.outcomes("y")), (cells, outcomes));
    assert_eq!(store.day_goes("y0", &day, 1), Ok(()));
    // One that comes late is kept, whatever became of the place of its day.
    let late = run("a", "rate/b", from_s + 9);
    assert_eq!(store.keep_runs("y", std::slice::from_ref(&late)), Ok(vec![true]));
    assert_eq!(store.keep_runs("y", &[late]), Ok(vec![false]));
    assert_eq!(all(&mut *store, "y", &day).len(), 1);
}
