//! The walk over the grid, with a measurer whose answers have a closed form.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use linerate_core::record::{Fault, MetricId, RecordId, Stat, Summary, Tool};
use linerate_core::time::{SimClock, WallTime};

use super::*;

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
sizes_bytes = [56, 1500]
count = 10
repetitions = 1
[[test]]
id = "tcp"
kind = "tcp"
windows_bytes = [16384]
seconds = 1.0
repetitions = 2
"#;

fn plan() -> StudyPlan {
    StudyPlan::from_toml(PLAN).expect("a sound plan")
}

/// What the fake does instead of measuring the cell that is next.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    Panic,
    Fail,
    /// The machine spoils this measurement and the next ones, so many in all.
    Spoil(usize),
    Interrupt,
    /// The user stops the run while this cell is measured to its end.
    StopAfter,
}

/// Measures parameter × repetition, in one simulated second.
#[derive(Default)]
struct Fake {
    clock: SimClock,
    stop: Stop,
    prepared: Vec<String>,
    measured: Vec<CellKey>,
    trouble: Option<(usize, Trouble)>,
    unbuildable: Vec<&'static str>,
    built: bool,
}

/// Shares the fake between the run and its clock.
struct Hand<'a>(&'a std::cell::RefCell<Fake>);

impl Clock for Hand<'_> {
    fn now(&self) -> MonoTime {
        self.0.borrow().clock.now()
    }
}

fn blank(cell: &CellPlan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    let id = RecordId::from_parts(0, [0; 10]);
    Record::from_plan(id, tool, cell.plan.clone(), WallTime::from_unix_nanos(0))
}

fn spoilt() -> Failure {
    Failure::new(Fault::Instrument, "emulate path", "a eth0 - b eth0", "it stood still")
}

fn refused() -> Failure {
    Failure::new(Fault::Unreachable, "connect", "h", "refused")
}

impl Measurer for Hand<'_> {
    fn prepare(&mut self, topology: &Topology) -> Result<(), Failure> {
        let mut fake = self.0.borrow_mut();
        assert!(!fake.built, "the one before was cleared");
        if fake.unbuildable.contains(&topology.id.as_str()) {
            return Err(Failure::new(Fault::System, "build", topology.id.clone(), "not allowed"));
        }
        fake.prepared.push(topology.id.clone());
        fake.built = true;
        Ok(())
    }

    fn measure(&mut self, cell: &CellPlan) -> Record {
        let mut fake = self.0.borrow_mut();
        assert!(fake.built || !cell.plan.is_live());
        fake.clock.advance(Duration::from_secs(1));
        let mut record = blank(cell);
        let value = cell.cell.parameter * u64::from(cell.cell.repetition);
        record.summary.push(Summary::from_value(MetricId::Goodput, Stat::Value, value as f64));
        let now = fake.measured.len();
        let lasts = |trouble: Trouble| if let Trouble::Spoil(times) = trouble { times } else { 1 };
        let here = |(at, trouble): &(usize, Trouble)| (*at..at + lasts(*trouble)).contains(&now);
        match fake.trouble.filter(here).map(|(_, trouble)| trouble) {
            Some(Trouble::Panic) => panic!("killed"),
            Some(Trouble::Fail) => {
                record.status = RecordStatus::Error;
                record.failure = Some(refused());
            }
            Some(Trouble::Spoil(_)) => {
                record.status = RecordStatus::Error;
                record.failure = Some(spoilt());
            }
            Some(Trouble::Interrupt) => {
                fake.stop.request_stop();
                record.status = RecordStatus::Interrupted;
            }
            Some(Trouble::StopAfter) => fake.stop.request_stop(),
            None => {}
        }
        fake.measured.push(CellKey::from_cell(&cell.cell));
        record
    }

    fn unmeasured(&mut self, cell: &CellPlan, failure: &Failure) -> Record {
        let mut record = blank(cell);
        record.status = RecordStatus::Error;
        record.failure = Some(failure.clone());
        record
    }

    fn tear_down(&mut self) {
        self.0.borrow_mut().built = false;
    }
}

/// One session: what was kept, how it ended (`None` after a panic), and what the fake saw.
struct Session {
    kept: Vec<Record>,
    ending: Option<Result<StudyEnding, Failure>>,
    fake: Fake,
    progress: Vec<(usize, usize, u64, String)>,
}

fn session(fake: Fake, done: &[Record]) -> Session {
    session_of(&plan(), fake, done)
}

fn session_of(plan: &StudyPlan, fake: Fake, done: &[Record]) -> Session {
    let done = done.iter().filter(|record| record.status == RecordStatus::Ok);
    let done = done.map(|record| CellKey::from_cell(record.cell.as_ref().expect("set"))).collect();
    let options = Options { run: "r".to_owned(), done, retries: 2 };
    let fake = std::cell::RefCell::new(fake);
    let stop = fake.borrow().stop.clone();
    let (mut kept, mut progress) = (Vec::new(), Vec::new());
    let ending = catch_unwind(AssertUnwindSafe(|| {
        let mut tools = Tools {
            measurer: &mut Hand(&fake),
            clock: &Hand(&fake),
            stop: &stop,
            keep: &mut |record| {
                kept.push(record);
                Ok(())
            },
            progress: &mut |now| {
                let step = match now.step {
                    StudyStep::Building(topology) => format!("build {}", topology.id),
                    StudyStep::Measuring(cell) => CellKey::from_cell(cell).to_string(),
                    StudyStep::Failed(_, failure) | StudyStep::NotBuilt(_, failure) => {
                        failure.to_string()
                    }
                    StudyStep::Slipped(_, _, slips) => slips.to_owned(),
                    StudyStep::Again(cell, failure, again, of) => {
                        format!("{}: {failure}, again {again} of {of}", CellKey::from_cell(cell))
                    }
                    StudyStep::Through(topology) => format!("through {}", topology.id),
                };
                progress.push((now.done, now.total, now.remaining_ns, step));
            },
        };
        run(plan, &options, &mut tools)
    }));
    Session { kept, ending: ending.ok(), fake: fake.into_inner(), progress }
}

fn keys(records: &[Record]) -> Vec<CellKey> {
    records.iter().map(|record| CellKey::from_cell(record.cell.as_ref().expect("set"))).collect()
}

fn all_keys() -> Vec<CellKey> {
    plan().cell_plans().iter().map(|cell| CellKey::from_cell(&cell.cell)).collect()
}

#[test]
fn every_cell_is_measured_once_in_the_order_of_the_plan() {
    let session = session(Fake::default(), &[]);
    // By hand: 2 topologies x (2 sizes + 1 window x 2) = 8.
    assert_eq!(session.kept.len(), 8);
    assert_eq!(keys(&session.kept), all_keys());
    assert_eq!(session.fake.prepared, ["a", "b"]);
    assert!(!session.fake.built, "the last laboratory is gone");
    let ending = session.ending.expect("no panic").expect("all kept");
    assert_eq!(ending, StudyEnding { measured: 8, ..StudyEnding::default() });
    for record in &session.kept {
        let cell = record.cell.as_ref().expect("set");
        assert_eq!((cell.study.as_str(), cell.run.as_str()), ("s", "r"));
        let expected = (cell.parameter * u64::from(cell.repetition)) as f64;
        assert_eq!(record.summary_value(MetricId::Goodput, Stat::Value, None), Some(expected));
    }
}

#[test]
fn a_run_killed_at_any_cell_goes_on_with_exactly_the_rest() {
    for at in 0..8 {
        let first = session(Fake { trouble: Some((at, Trouble::Panic)), ..Fake::default() }, &[]);
        assert!(first.ending.is_none(), "killed");
        assert_eq!(keys(&first.kept), all_keys()[..at]);
        let second = session(Fake::default(), &first.kept);
        assert_eq!(second.fake.measured, all_keys()[at..], "killed at {at}");
        let ending = second.ending.expect("no panic").expect("all kept");
        assert_eq!((ending.found, ending.measured, ending.left), (at, 8 - at, 0));
        // A topology that is complete is not built again.
        assert_eq!(second.fake.prepared.len(), if at < 4 { 2 } else { 1 });
    }
}

#[test]
fn a_complete_run_builds_nothing() {
    let first = session(Fake::default(), &[]);
    let second = session(Fake::default(), &first.kept);
    assert!(second.fake.prepared.is_empty() && second.kept.is_empty());
    assert_eq!(second.ending, Some(Ok(StudyEnding { found: 8, ..StudyEnding::default() })));
}

#[test]
fn a_cell_that_fails_is_kept_and_the_run_goes_on() {
    let session = session(Fake { trouble: Some((2, Trouble::Fail)), ..Fake::default() }, &[]);
    assert_eq!(keys(&session.kept), all_keys());
    assert_eq!(session.kept[2].failure, Some(refused()));
    let ending = session.ending.expect("no panic").expect("all kept");
    assert_eq!((ending.measured, ending.failed), (7, 1));
    assert_eq!(ending.first_failure, Some(refused()));
    // A resumed run tries it again.
    let second = self::session(Fake::default(), &session.kept);
    assert_eq!(second.fake.measured, all_keys()[2..3]);
}

#[test]
fn a_cell_that_the_machine_spoilt_is_measured_again_and_every_attempt_is_kept() {
    let all = all_keys();
    for (spoilt_times, attempts, well) in [(1, 2, 8), (2, 3, 8), (3, 3, 7)] {
        let trouble = Some((2, Trouble::Spoil(spoilt_times)));
        let session = session(Fake { trouble, ..Fake::default() }, &[]);
        let expected = [&all[..2], &vec![all[2].clone(); attempts], &all[3..]].concat();
        assert_eq!(keys(&session.kept), expected);
        let failed = session.kept.iter().filter(|record| record.failure == Some(spoilt())).count();
        assert_eq!(failed, spoilt_times);
        let ending = session.ending.expect("no panic").expect("all kept");
        assert_eq!((ending.measured, ending.failed), (well, 8 - well));
        assert_eq!(ending.repeated, attempts - 1);
        // Each repeat has a laboratory of its own: no effect of a path is spent already.
        assert_eq!(session.fake.prepared.len(), 2 + attempts - 1);
        let line = format!("{}: {}, again 1 of 2", all[2], spoilt());
        assert!(session.progress.iter().any(|(.., step)| *step == line), "{line}");
        // A resumed run tries the one that never went well again.
        let second = self::session(Fake::default(), &session.kept);
        assert_eq!(second.fake.measured, if well == 8 { &[] } else { &all[2..3] });
    }
}

#[test]
fn a_cell_that_the_path_failed_is_not_measured_again() {
    let session = session(Fake { trouble: Some((2, Trouble::Fail)), ..Fake::default() }, &[]);
    assert_eq!(session.ending.expect("no panic").expect("all kept").repeated, 0);
}

#[test]
fn an_interrupt_keeps_the_cell_under_way_and_counts_it_as_left() {
    let trouble = Some((5, Trouble::Interrupt));
    let first = session(Fake { trouble, ..Fake::default() }, &[]);
    assert_eq!(keys(&first.kept), all_keys()[..6]);
    assert!(!first.fake.built, "the laboratory is gone");
    let ending = first.ending.expect("no panic").expect("all kept");
    assert_eq!((ending.measured, ending.left, ending.interrupted()), (5, 3, true));
    let second = session(Fake::default(), &first.kept);
    assert_eq!(second.fake.measured, all_keys()[5..]);
}

#[test]
fn a_stop_between_cells_leaves_the_rest() {
    let trouble = Some((3, Trouble::StopAfter));
    let first = session(Fake { trouble, ..Fake::default() }, &[]);
    assert_eq!(keys(&first.kept), all_keys()[..4]);
    assert_eq!(first.fake.prepared, ["a"], "the next laboratory is not built");
    let ending = first.ending.expect("no panic").expect("all kept");
    assert_eq!((ending.measured, ending.left), (4, 4));
}

#[test]
fn a_topology_that_cannot_be_built_fails_its_cells_alone() {
    for unbuildable in ["a", "b"] {
        let fake = Fake { unbuildable: vec![unbuildable], ..Fake::default() };
        let session = session(fake, &[]);
        assert_eq!(session.kept.len(), 8);
        for record in &session.kept {
            let here = record.cell.as_ref().expect("set").topology == unbuildable;
            assert_eq!(record.failure.is_some(), here);
        }
        let ending = session.ending.expect("no panic").expect("all kept");
        assert_eq!((ending.measured, ending.failed), (4, 4));
    }
}

#[test]
fn a_host_that_can_build_nothing_is_one_failure_and_no_record() {
    let fake = Fake { unbuildable: vec!["a", "b"], ..Fake::default() };
    let session = session(fake, &[]);
    assert!(session.kept.is_empty());
    let failure = session.ending.expect("no panic").expect_err("nothing was measured");
    assert_eq!((failure.object.as_str(), failure.fault), ("a", Fault::System));
}

/// Two topologies over an emulated link; a simulated test on both and a live one on `b`.
fn mixed() -> StudyPlan {
    let topology = |id: &str| {
        format!(
            "[[topology]]\nid = \"{id}\"\ntitle = \"T\"\nclass = \"c\"\nclient = \"h\"\n\
             server = \"g\"\nlab.host = [{{ name = \"h\" }}, {{ name = \"g\" }}]\nlab.link = \
             [{{ ends = [\"h\", \"g\"], path = {{ rate = \"1 Gbit/s\" }} }}]\n"
        )
    };
    let test = |id: &str, kind: &str, more: &str| {
        format!(
            "[[test]]\nid = \"{id}\"\nkind = \"{kind}\"\nwindows_bytes = [1000]\n\
             seconds = 1.0\nrepetitions = 2\n{more}\n"
        )
    };
    let parts = [
        "name = \"s\"\ntitle = \"t\"\n".to_owned(),
        topology("a"),
        topology("b"),
        test("live", "tcp", "on = [\"b\"]"),
        test("virtual", "simulate", ""),
    ];
    StudyPlan::from_toml(&parts.concat()).expect("a sound plan")
}

#[test]
fn a_topology_of_models_is_not_built() {
    let session = session_of(&mixed(), Fake::default(), &[]);
    // 2 on `a`; 2 live and 2 simulated on `b`.
    assert_eq!(session.kept.len(), 6);
    assert_eq!(session.fake.prepared, ["b"]);
    let steps: Vec<&str> = session.progress.iter().map(|(_, _, _, step)| step.as_str()).collect();
    assert_eq!(steps[0], "a virtual 1000 #1");
    assert!(!steps.contains(&"build a"), "{steps:?}");
}

#[test]
fn models_answer_where_no_laboratory_can_be_built() {
    let fake = Fake { unbuildable: vec!["a", "b"], ..Fake::default() };
    let session = session_of(&mixed(), fake, &[]);
    assert_eq!(session.kept.len(), 6);
    for record in &session.kept {
        let live = record.cell.as_ref().expect("set").test == "live";
        assert_eq!(record.failure.is_some(), live);
    }
    let ending = session.ending.expect("no panic").expect("all kept");
    assert_eq!((ending.measured, ending.failed, ending.left), (4, 2, 0));
}

#[test]
fn a_record_that_cannot_be_kept_ends_the_run() {
    let fake = std::cell::RefCell::new(Fake::default());
    let full = || Failure::new(Fault::System, "store", "x", "full");
    let stop = Stop::new();
    let mut tools = Tools {
        measurer: &mut Hand(&fake),
        clock: &Hand(&fake),
        stop: &stop,
        keep: &mut |_| Err(full()),
        progress: &mut |_| {},
    };
    assert_eq!(run(&plan(), &Options::default(), &mut tools), Err(full()));
    assert_eq!(fake.borrow().measured.len(), 1);
}

#[test]
fn progress_counts_up_and_the_time_left_counts_down() {
    let progress = session(Fake::default(), &[]).progress;
    // Two topologies, each: building, four cells, through.
    assert_eq!(progress.len(), 12);
    let steps: Vec<(usize, &str)> =
        progress.iter().map(|(done, _, _, step)| (*done, step.as_str())).collect();
    assert_eq!(steps[0], (0, "build a"));
    assert_eq!(steps[1], (0, "a ping 56 #1"));
    assert_eq!(steps[5], (4, "through a"));
    assert_eq!(steps[11], (8, "through b"));
    // Every cell took a second and building none: once both tests were seen, as many seconds are
    // left as cells.
    assert_eq!(progress[5].2, 4_000_000_000);
    assert_eq!(progress[11].2, 0);
}
