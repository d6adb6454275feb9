//! A day's file: what is in it, when there is none, and what leaves the store.

mod load;

use std::fs;

use linerate_core::record::{
    MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
};
use linerate_core::schedule::{RunState, RunWhy, ScheduleRun};
use linerate_core::time::WallTime;
use linerate_sys::clock::random_bytes;

use super::*;
use crate::{AgentRun, Store, TAG_PLAN, TAG_SLOT};

/// 2026-11-24, hand: 20,781 days × 86,400 s.
const DAY_S: i64 = 1_795_478_400;

fn day() -> Day {
    Day::containing(DAY_S + 5)
}

fn run(agent: &str, task: &str, start_s: i64) -> AgentRun {
    let run = ScheduleRun {
        task: task.to_owned(),
        start_s,
        why: RunWhy::Calendar,
        state: RunState::Missed,
        reason: Some("the disk was full".to_owned()),
        record: None,
    };
    AgentRun { agent: agent.to_owned(), run, record: None, figure: None }
}

/// The record of a run; the suite of hubs in linerate-mesh makes the same.
fn record(agent: &str, start_s: i64, rtt_ns: f64) -> Record {
    let millis = u64::try_from(start_s).expect("after 1970") * 1000;
    let id = RecordId::from_parts(millis, random_bytes());
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    let at = WallTime::from_unix_nanos(u128::from(millis) * 1_000_000);
    let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
    record.status = RecordStatus::Ok;
    record.name = Some("delay/z".to_owned());
    record.tags.insert(TAG_PLAN.to_owned(), format!("m/{agent}"));
    record.tags.insert(TAG_SLOT.to_owned(), start_s.to_string());
    record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, rtt_ns)];
    record
}

/// A run that went well, with its record.
fn measured(agent: &str, start_s: i64, rtt_ns: f64) -> AgentRun {
    let record = record(agent, start_s, rtt_ns);
    let mut given = run(agent, "delay/z", start_s);
    given.run.state = RunState::Ok;
    given.run.reason = None;
    given.run.record = Some(record.id.to_string());
    AgentRun { record: Some(record), figure: Some(("rtt_ns".to_owned(), rtt_ns)), ..given }
}

struct Case {
    directory: tempfile::TempDir,
    store: Store,
}

impl Case {
    fn new(runs: &[AgentRun]) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        fs::create_dir(directory.path().join("days")).expect("room");
        let mut store = Store::open(&directory.path().join("hub.db")).expect("a store");
        let kept = store.keep_runs("m", runs).expect("room");
        assert!(kept.iter().all(|new| *new));
        Self { directory, store }
    }

    fn days(&self) -> PathBuf {
        self.directory.path().join("days")
    }

    fn archives(&mut self, drops: bool) -> Result<Option<Archived>, Failure> {
        let (into, day) = (self.days(), day());
        let what = ToArchive { mesh: "m", day: &day, into: &into, drops };
        archive(&mut self.store, what, &mut |_| true)
    }

    /// All that is in the directory, hidden files too.
    fn files(&self) -> Vec<String> {
        let entries = fs::read_dir(self.days()).expect("readable");
        let name = |entry: std::io::Result<fs::DirEntry>| {
            entry.expect("readable").file_name().to_string_lossy().into_owned()
        };
        entries.map(name).collect()
    }

    fn stored(&self) -> usize {
        let agents = ["a", "a.b", "b"];
        agents
            .iter()
            .map(|it| self.store.runs_since(&format!("m/{it}"), 0).expect("readable").len())
            .sum()
    }
}

/// Two agents, three paths, in an order that is not the file's; and runs of the days beside.
fn some() -> Vec<AgentRun> {
    vec![
        measured("b", DAY_S + 60, 3e6),
        run("a.b", "delay/z", DAY_S + 86_399),
        run("a", "rate/z", DAY_S),
        run("a", "rate-up/b", DAY_S + 7),
        measured("b", DAY_S, 2e6),
        measured("b", DAY_S - 1, 1e6),
        measured("b", DAY_S + 86_400, 4e6),
    ]
}

#[test]
fn a_day_is_one_of_utc_that_is_over() {
    let now = WallTime::from_unix_nanos(u128::from(DAY_S.unsigned_abs() + 3600) * 1_000_000_000);
    let of = |text: &str| Day::from_date_text(text, now).map(|day| (day.date.clone(), day.begin_s));
    let before = Ok(("2026-11-23".to_owned(), DAY_S - 86_400));
    assert_eq!((of("2026-11-23"), of("yesterday")), (before.clone(), before));
    assert!(of("2026-11-24").is_err_and(|say| say.contains("is not over")));
    assert!(of("today").is_err_and(|say| say.contains("is not over")));
    assert!(of("2027-01-01").is_err_and(|say| say.contains("is not over")));
    for text in ["2026-11-31", "2h", "2026-11-23T12:00", "1960-01-01", ""] {
        assert!(of(text).is_err_and(|say| say.contains("is no day")), "{text}");
    }
}

#[test]
fn a_file_has_each_run_of_its_day_with_names_values_and_record() {
    let mut case = Case::new(&some());
    let written = case.archives(false).expect("room").expect("not stopped");
    assert_eq!(case.files(), ["m-2026-11-24.parquet"]);
    assert_eq!((written.runs, written.row_groups, written.dropped), (5, 1, false));
    assert_eq!(written.bytes, written.file.metadata().expect("it is there").len());
    let file = File::open(&written.file).expect("readable");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    let about = reader.metadata().file_metadata().key_value_metadata().expect("some");
    let about: Vec<_> = about.iter().map(|it| (it.key.as_str(), it.value.as_deref())).collect();
    assert_eq!(about, [("linerate.mesh", Some("m")), ("linerate.day", Some("2026-11-24"))]);
    let group = reader.get_row_group(0).expect("one");
    let rows = DayColumns::read(&*group).expect("readable");
    let some = |texts: &[&str]| texts.iter().map(|it| Some((*it).to_owned())).collect::<Vec<_>>();
    assert_eq!(rows.agent.by_row(), some(&["a", "a", "a.b", "b", "b"]));
    assert_eq!(rows.task.by_row(), some(&["rate", "rate-up", "delay", "delay", "delay"]));
    assert_eq!(rows.peer.by_row(), some(&["z", "b", "z", "z", "z"]));
    let starts = [0, 7, 86_399, 0, 60].map(|after| (DAY_S + after) * 1000);
    assert_eq!(rows.start_ms, starts);
    assert_eq!(rows.state.by_row(), some(&["missed", "missed", "missed", "ok", "ok"]));
    assert_eq!((rows.values, rows.valued), (vec![2e6, 3e6], vec![0, 0, 0, 1, 1]));
    assert_eq!(rows.reason.by_row()[2..4], [Some("the disk was full".to_owned()), None]);
    let stored = case.store.runs_since("m/b", DAY_S).expect("readable");
    assert_eq!(rows.id.by_row()[2..4], [None, stored[0].record.clone()]);
    let record = rows.record.by_row()[3].clone().expect("a record");
    let record = Record::from_json(&record).expect("JSON of a record");
    assert_eq!(Some(record.id.to_string()), stored[0].record);
    assert_eq!(rows.metric.by_row()[3].as_deref(), Some("rtt_ns"), "as the series has it");
}

#[test]
fn what_is_there_stays_and_what_is_not_finished_leaves_nothing() {
    let mut case = Case::new(&some());
    let refused = |case: &mut Case, part: &str| {
        let failure = case.archives(true).expect_err(part);
        assert_eq!(
            (failure.exit_code(), failure.to_string().contains(part)),
            (2, true),
            "{failure}"
        );
    };
    let path = case.days().join("m-2026-11-24.parquet");
    fs::write(&path, "of somebody else").expect("room");
    refused(&mut case, "it is there already");
    assert_eq!(fs::read_to_string(&path).expect("readable"), "of somebody else");
    fs::remove_file(&path).expect("it is there");
    // Stopped while it is written, and while it is read back.
    for calls in [0, 3] {
        let (into, day, mut left) = (case.days(), day(), calls);
        let what = ToArchive { mesh: "m", day: &day, into: &into, drops: true };
        let stopped = archive(&mut case.store, what, &mut |_| {
            left -= 1;
            left >= 0
        });
        assert_eq!((stopped, case.files()), (Ok(None), Vec::new()), "after {calls}");
    }
    fs::remove_dir(case.days()).expect("empty");
    refused(&mut case, "no such file or directory");
    assert_eq!(case.stored(), 7);
    let mut empty = Case::new(&[run("a", "rate/z", DAY_S - 1)]);
    refused(&mut empty, "has no run of that day");
    assert_eq!(empty.files(), Vec::<String>::new());
}

#[test]
fn a_file_that_others_made_meanwhile_stays_theirs() {
    let mut case = Case::new(&some());
    let (into, day) = (case.days(), day());
    let path = into.join("m-2026-11-24.parquet");
    let what = ToArchive { mesh: "m", day: &day, into: &into, drops: true };
    let failure = archive(&mut case.store, what, &mut |_| {
        fs::write(&path, "of somebody else").expect("room");
        true
    });
    assert!(failure.expect_err("refused").to_string().contains("it is there already"));
    assert_eq!(fs::read_to_string(&path).expect("readable"), "of somebody else");
    assert_eq!((case.files().len(), case.stored()), (1, 7));
}

#[test]
fn a_day_leaves_the_store_with_its_records_but_for_those_that_were_asked_to_stay() {
    let mut case = Case::new(&some());
    let of_b = case.store.runs_since("m/b", 0).expect("readable");
    let id = |at: usize| of_b[at].record.clone().expect("a record");
    case.store.mark_kept(&id(1), true).expect("it is there");
    let cells = case.store.mesh_cells("m").expect("readable");
    let outcomes = case.store.mesh_outcomes("m").expect("readable");
    let written = case.archives(true).expect("room").expect("not stopped");
    assert_eq!((written.runs, written.dropped, case.stored()), (5, true, 2));
    let left = (0..4).map(|at| case.store.stored(&id(at)).expect("readable").is_some());
    assert_eq!(left.collect::<Vec<_>>(), [true, true, false, true]);
    assert_eq!(case.store.mesh_cells("m"), Ok(cells));
    assert_eq!(case.store.mesh_outcomes("m"), Ok(outcomes));
}

#[test]
fn a_file_that_is_not_as_it_was_given_is_found() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = directory.path().join("file");
    let write = |runs: &[AgentRun]| {
        let file = File::create(&path).expect("room");
        let mut writer = DayWriter::new(file, "m", &day()).expect("room");
        for AgentRun { agent, run, figure, .. } in runs {
            let run = DayRun {
                start_s: run.start_s,
                why: run.why,
                state: run.state,
                reason: run.reason.clone(),
                figure: figure.clone(),
                record: None,
                doc: None,
            };
            writer.push(TaskPath::from_task(agent, "delay/z"), &run).expect("room");
        }
        writer.close().expect("room")
    };
    let mut runs = some();
    let written = write(&runs);
    assert_eq!(written.is_read_back(&path, &path, &mut |_| true), Ok(true));
    let differs = |runs: &[AgentRun]| {
        write(runs);
        let found = written.is_read_back(&path, &path, &mut |_| true);
        assert!(found.is_err_and(|failure| failure.next_step.is_some()));
    };
    differs(&runs[1..]);
    runs[0].figure = Some(("rtt_ns".to_owned(), 3e6 + 1.0));
    differs(&runs);
    runs = some();
    runs[2].run.reason = Some("the disk was fulL".to_owned());
    differs(&runs);
    // A file that the disk cut.
    write(&some());
    let length = path.metadata().expect("it is there").len();
    File::options().write(true).open(&path).and_then(|it| it.set_len(length - 9)).expect("cut");
    assert!(written.is_read_back(&path, &path, &mut |_| true).is_err());
}
