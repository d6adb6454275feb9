//! Which run a command is about: a new one, or one that goes on.

use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault, RecordStatus};
use linerate_core::study::{CellKey, Estimator, StudyPlan};
use linerate_engine::study::Options;
use linerate_store::{NewStudyRun, Store, StudyRun, StudyState};
use linerate_sys::clock;

use super::{plan, show};
use crate::columns::{short_id, spoken};

/// How often a measurement that this machine spoilt is made again, where nothing else is said.
const RETRIES: u8 = 2;

/// Flags of `linerate study run`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Built-in study or file
    #[arg(value_name = "NAME|FILE", required_unless_present = "resume")]
    pub(super) study: Option<String>,
    /// Resume a stopped run [default RUN: the last unfinished one]
    #[arg(long, value_name = "RUN", num_args = 0..=1)]
    pub(super) resume: Option<Option<String>>,
    /// Measure only these topologies
    #[arg(long, value_name = "ID,...", value_delimiter = ',', conflicts_with = "resume")]
    pub(super) only: Vec<String>,
    /// Repetitions per value [default: as set in the study]
    #[arg(long, value_name = "N", conflicts_with = "resume")]
    pub(super) repetitions: Option<u32>,
    /// Repeat a measurement up to N times if this host invalidated it: the path emulator stalled or
    /// dropped packets [default: as set in the study, or 2]
    #[arg(long, value_name = "N")]
    pub(super) retries: Option<u8>,
    /// Write the report to this directory [default: reports/STUDY-RUN next to the store]
    #[arg(long, value_name = "DIR")]
    pub(super) report: Option<PathBuf>,
    /// Use this store instead of the default one
    #[arg(long, value_name = "FILE")]
    pub(super) store: Option<PathBuf>,
}

/// A run that this command measures for.
pub(crate) struct StudySession {
    /// Identifier of the run.
    pub(crate) run: String,
    /// The plan that it follows.
    pub(crate) plan: StudyPlan,
    /// Identifier, measured cells and retries, as the engine takes them.
    pub(crate) options: Options,
}

/// Begins the run that the flags ask for, or finds the one to go on with.
pub(super) fn open_session(args: &Args, store: &mut Store) -> Result<StudySession, Failure> {
    let found = args.study.as_deref().map(plan::find_study).transpose()?;
    match (&args.resume, found) {
        (Some(name), found) => {
            let plan = found.map(|found| found.plan);
            resume(name.as_deref(), plan, args.retries, store)
        }
        (None, Some(found)) => start_from_flags(args, found.plan, store),
        (None, None) => Err(Failure::new(Fault::Usage, "run", "study", "no plan is named")),
    }
}

fn start_from_flags(
    args: &Args,
    plan: StudyPlan,
    store: &mut Store,
) -> Result<StudySession, Failure> {
    let mut chosen = plan.clone().only_topologies(&args.only).map_err(|name| {
        let known: Vec<&str> =
            plan.topologies.iter().map(|topology| topology.id.as_str()).collect();
        let reason = format!("study {} has no topology of that name", plan.name);
        Failure::new(Fault::Usage, "run", format!("--only {name}"), reason)
            .advise(format!("name some of {}", known.join(", ")))
    })?;
    if let Some(repetitions) = args.repetitions {
        chosen = chosen.repeated(repetitions);
    }
    chosen.retries = args.retries.or(chosen.retries);
    chosen
        .check_runnable()
        .map_err(|problem| Failure::new(Fault::Usage, "run study", &plan.name, problem))?;
    start_run(chosen, store)
}

/// Begins a run of `plan`.
pub(crate) fn start_run(plan: StudyPlan, store: &mut Store) -> Result<StudySession, Failure> {
    let session = unkept(plan);
    store.begin_run(&NewStudyRun {
        id: session.run.clone(),
        plan: session.plan.clone(),
        started_at: clock::wall_time(),
        host: Some(linerate_engine::environment::local_end(None)),
    })?;
    Ok(session)
}

/// A run that no store knows of.
pub(crate) fn unkept(plan: StudyPlan) -> StudySession {
    let run = clock::record_id().to_string();
    let retries = plan.retries.unwrap_or(RETRIES);
    let options = Options { run: run.clone(), retries, ..Options::default() };
    StudySession { run, plan, options }
}

/// True if the run that the flags ask for sends packets between hosts, and so needs laboratories.
/// [`open_session`] tells what is wrong with the flags.
pub(super) fn is_live(args: &Args, store: &Store) -> bool {
    let found = args.study.as_deref().and_then(|name| plan::find_study(name).ok());
    let found = found.map(|found| found.plan);
    let plan = match &args.resume {
        Some(name) => {
            run_to_resume(name.as_deref(), found.as_ref(), store).ok().map(|run| run.plan)
        }
        None => found.and_then(|plan| plan.only_topologies(&args.only).ok()),
    };
    plan.is_none_or(|plan| plan.cell_plans().iter().any(|cell| cell.plan.is_live()))
}

/// The run to go on with.
fn run_to_resume(
    name: Option<&str>,
    plan: Option<&StudyPlan>,
    store: &Store,
) -> Result<StudyRun, Failure> {
    match name {
        Some(name) => store.run(name),
        None => unfinished(plan, store),
    }
}

fn resume(
    name: Option<&str>,
    plan: Option<StudyPlan>,
    retries: Option<u8>,
    store: &mut Store,
) -> Result<StudySession, Failure> {
    let run = run_to_resume(name, plan.as_ref(), store)?;
    if let Some(plan) = plan.filter(|plan| plan.name != run.study) {
        let reason = format!("it is a run of study {}, not of {}", run.study, plan.name);
        return Err(Failure::new(Fault::Usage, "resume run", short_id(&run.id), reason));
    }
    go_on(run, retries, store)
}

/// Goes on with a run: what failed or was interrupted is measured again.
pub(crate) fn go_on(
    run: StudyRun,
    retries: Option<u8>,
    store: &mut Store,
) -> Result<StudySession, Failure> {
    let records = store.run_records(&run.id)?;
    let done = records
        .iter()
        .filter(|record| record.status == RecordStatus::Ok)
        .filter_map(|record| record.cell.as_ref().map(CellKey::from_cell))
        .collect();
    store.finish_run(&run.id, StudyState::Running, clock::wall_time())?;
    let retries = retries.or(run.plan.retries).unwrap_or(RETRIES);
    let options = Options { run: run.id.clone(), done, retries };
    Ok(StudySession { run: run.id, plan: run.plan, options })
}

fn unfinished(plan: Option<&StudyPlan>, store: &Store) -> Result<StudyRun, Failure> {
    let of_study = |run: &StudyRun| plan.is_none_or(|plan| plan.name == run.study);
    let open = |run: &StudyRun| run.state != StudyState::Finished;
    store.list_study_runs()?.into_iter().find(|run| of_study(run) && open(run)).ok_or_else(|| {
        let study = plan.map_or_else(|| "any study".to_owned(), |plan| plan.name.clone());
        Failure::new(Fault::Usage, "resume", study, "no run of it is unfinished")
            .advise("omit --resume, or see linerate study list")
    })
}

impl StudySession {
    /// The line before the first measurement.
    pub(super) fn opening(&self) -> String {
        let (study, run) = (&self.plan.name, short_id(&self.run));
        if self.options.done.is_empty() {
            return format!("study {study}, run {run}: {}", show::extent(&self.plan));
        }
        let cells = self.plan.cell_plans();
        let missing = || {
            cells.iter().filter(|cell| !self.options.done.contains(&CellKey::from_cell(&cell.cell)))
        };
        let laboratories = StudyPlan::laboratories(missing());
        let expected = Estimator::default().remaining_ns(missing(), laboratories);
        let (left, total) = (missing().count(), cells.len());
        let time = spoken(expected);
        format!("study {study}, run {run} resumes: {left} of {total} left, about {time}")
    }

    /// The command line that goes on with the run.
    pub(super) fn resume_command(&self, store: Option<&Path>) -> String {
        let store = store.map(|path| format!(" --store {}", path.display())).unwrap_or_default();
        format!("linerate study run --resume {}{store}", self.run)
    }
}
