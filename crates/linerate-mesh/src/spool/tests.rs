//! Spools of small limits, and a file that may not grow.

use linerate_core::record::{
    MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Series, Stat, Summary, Tool,
};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_core::time::WallTime;
use linerate_store::{TAG_PLAN, TAG_RAW, TAG_SLOT, is_full};

use super::*;

const BEGIN_S: i64 = 1_795_478_400;
/// Values of a series of each record: some 60 kB of JSON.
const VALUES: usize = 3000;

fn record(n: u8) -> Record {
    let at_s = BEGIN_S + i64::from(n) * 10;
    let id = RecordId::from_parts(u64::try_from(at_s).expect("after 1970") * 1000, [n; 10]);
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let nanos = u128::try_from(at_s).expect("after 1970") * 1_000_000_000;
    let plan = Plan::Ping(PingPlan::default());
    let mut record = Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(nanos));
    record.status = RecordStatus::Ok;
    record.name = Some("delay/b".to_owned());
    record.tags.insert(TAG_PLAN.to_owned(), "m/a".to_owned());
    record.tags.insert(TAG_SLOT.to_owned(), at_s.to_string());
    record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, 1e6 + f64::from(n))];
    record.series = vec![Series {
        metric: MetricId::Rtt,
        direction: None,
        flow: None,
        side: None,
        payload_bytes: None,
        t_ns: (0..VALUES as u64).map(|at| at * 1_000_000).collect(),
        values: (0..VALUES).map(|at| Some(1e6 + at as f64 * 1.25)).collect(),
    }];
    record
}

/// A store with runs of ten seconds, with a record each, and one that was missed.
fn spool(directory: &Path, runs: u8) -> Store {
    let mut store = Store::open(&directory.join("a.db")).expect("a store");
    for n in 0..runs {
        kept(&mut store, n).expect("room");
    }
    let mut missed = run(runs, "missed");
    missed.reason = Some("the clock was +3.1 s from the hub's".to_owned());
    assert_eq!(store.slot_begun("m/a", &missed), Ok(true));
    store
}

fn run(n: u8, state: &str) -> ScheduleRun {
    ScheduleRun {
        task: "delay/b".to_owned(),
        start_s: BEGIN_S + i64::from(n) * 10,
        why: RunWhy::Calendar,
        state: state.parse().expect("a word"),
        reason: None,
        record: None,
    }
}

fn kept(store: &mut Store, n: u8) -> Result<(), Failure> {
    store.slot_begun("m/a", &run(n, "running"))?;
    store.put_record(&record(n))?;
    let start_s = BEGIN_S + i64::from(n) * 10;
    store.slot_ended("m/a", "delay/b", start_s, RunState::Ok, None)
}

/// Of each run: its state, and whether its record has its samples, only its summary, or is gone.
fn stands(store: &Store) -> Vec<(RunState, &'static str)> {
    let runs = store.runs_since("m/a", 0).expect("readable");
    let of = |run: &ScheduleRun| {
        let record = run.record.as_ref().and_then(|id| store.stored(id).expect("readable"));
        let has = match record {
            None => "nothing",
            Some(record) if record.series.is_empty() => {
                assert_eq!(record.tags.get(TAG_RAW).map(String::as_str), Some("dropped"));
                assert_eq!(record.summary.len(), 1, "the summary stays");
                "summary"
            }
            Some(record) => {
                assert_eq!(record.series[0].values.len(), VALUES);
                "all"
            }
        };
        (run.state, has)
    };
    runs.iter().map(of).collect()
}

fn count(stands: &[(RunState, &str)], what: (&str, &str)) -> usize {
    stands.iter().filter(|(state, has)| (state.name(), *has) == what).count()
}

#[test]
fn samples_of_the_oldest_go_first_then_their_summaries_and_each_leaves_its_reason() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = spool(directory.path(), 60);
    let whole = store.used_bytes().expect("readable");
    let of = |limit: u64| {
        Spool::new("m/a".to_owned(), Bytes::new(limit), &directory.path().join("a.db"))
    };
    assert_eq!(of(whole).enforce_limit(&mut store), Ok(Dropped::default()));
    // Half of it: the samples of about half of them, the oldest.
    let dropped = of(whole / 2).enforce_limit(&mut store).expect("room");
    assert!(store.used_bytes().expect("readable") <= whole / 2 - whole / 20);
    assert!((20..60).contains(&dropped.thinned) && dropped.results == 0, "{dropped:?}");
    let now = stands(&store);
    assert_eq!(now.len(), 61);
    let thinned = now.iter().take_while(|it| it.1 == "summary").count();
    assert_eq!(thinned, dropped.thinned, "the oldest first: {now:?}");
    assert_eq!(count(&now, ("ok", "all")), 60 - thinned);
    // Next to nothing: all samples, and summaries as well.
    let dropped = of(1).enforce_limit(&mut store).expect("room");
    assert_eq!((dropped.thinned, dropped.results), (60 - thinned, 60));
    let now = stands(&store);
    assert_eq!((count(&now, ("lost", "nothing")), count(&now, ("missed", "nothing"))), (60, 1));
    let runs = store.runs_since("m/a", 0).expect("readable");
    let reason = |at: usize| runs[at].reason.as_deref();
    assert_eq!(reason(0), Some("the spool was full: its result was dropped"));
    assert_eq!(reason(60), Some("the clock was +3.1 s from the hub's"));
    assert_eq!(store.series("m/a", 0.0, 100), Ok(Vec::new()));
    let said = dropped.drop_message().expect("something");
    assert!(said.contains("and the whole of 60 results, the oldest first"), "{said}");
}

#[test]
fn between_the_two_the_newest_summaries_stay() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = spool(directory.path(), 100);
    let of = |limit: u64| {
        Spool::new("m/a".to_owned(), Bytes::new(limit), &directory.path().join("a.db"))
    };
    while store.spool_thins("m/a", 50).expect("room") > 0 {}
    let thin = store.used_bytes().expect("readable");
    let dropped = of(thin - 1).enforce_limit(&mut store).expect("room");
    assert!(dropped.thinned == 0 && (20..100).contains(&dropped.results), "{dropped:?}");
    let now = stands(&store);
    let lost = now.iter().take_while(|it| it.1 == "nothing").count();
    assert_eq!((lost, count(&now, ("ok", "summary"))), (dropped.results, 100 - lost));
}

/// SQLite's own limit of a file's pages gives the error of a disk without room (SQLITE_FULL).
#[test]
fn a_file_that_cannot_grow_has_room_again_within_itself_without_the_reserve() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut store = spool(directory.path(), 30);
    let spool = Spool::new("m/a".to_owned(), Bytes::new(u64::MAX), store.path());
    spool.reserves();
    let reserve = directory.path().join("a.db.reserve");
    assert_eq!(std::fs::metadata(&reserve).expect("made").len(), 4 << 20);
    store.grows_no_more();
    let failure = (40..u8::MAX).find_map(|n| kept(&mut store, n).err()).expect("it is full");
    assert!(is_full(&failure), "{failure}");
    let dropped = spool.makes_room(&mut store).expect("within the file");
    assert!(dropped.thinned > 0 && dropped.results == 0, "{dropped:?}");
    assert!(!reserve.exists(), "its room is needed");
    kept(&mut store, 255).expect("there is room again");
    spool.reserves();
    assert!(reserve.exists());
}
