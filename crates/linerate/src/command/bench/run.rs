//! Runs the study that the flags describe: new, or one that goes on.

use linerate_core::record::{Failure, Fault, Record};
use linerate_core::study::{CellKey, CellPlan, StudyPlan};
use linerate_engine::lab::enter_user_namespace_if_needed;
use linerate_engine::study::{self, StudyEnding, Tools};
use linerate_report::study::StudyResults;
use linerate_store::{Store, StudyRun, StudyState};
use linerate_sys::clock::{self, SystemClock};
use linerate_sys::stop::Stop;

use super::flags::Args;
use super::progress::Display;
use super::{here, opening, result, suite};
use crate::columns::short_id;
use crate::command::study::run_state;
use crate::command::study::session::{self, StudySession};
use crate::command::study::{answer, plan, results};
use crate::exit::Outcome;
use crate::{output, paths};

/// Exit code of a run in which some measurements failed.
const SOME_FAILED: u8 = 5;

/// Exit code of a run that the user stopped.
const INTERRUPTED: u8 = 130;

/// Runs `linerate bench` by its flags: a new study, or one that goes on.
pub(super) fn run(args: &Args) -> Outcome {
    args.output.check_files()?;
    args.report.as_deref().map_or(Ok(()), paths::make_folder)?;
    let wanted = wanted(args)?;
    let mut shelf = Shelf::open(args)?;
    let begun = shelf.unfinished(args, wanted.as_ref())?;
    let plan = begun.as_ref().map(|run| run.plan.clone()).or(wanted).unwrap_or_else(nothing);
    here::check_interfaces(&plan, args.tester.force_interface)?;
    if args.dry_run {
        output::print_line(&opening::plan_summary(&plan, &plan.cell_plans()));
        return Ok(0);
    }
    here::check_privilege(&plan)?;
    if plan.topologies.iter().any(|topology| !topology.lab.hosts.is_empty()) {
        // Before anything that could start a thread.
        enter_user_namespace_if_needed()?;
    }
    let stop = Stop::on_signals()?;
    let session = shelf.session(begun, plan)?;
    if args.output.shows_live_lines() {
        output::print_note(&opening::plan_summary(&session.plan, &cells_left(&session)));
    }
    let ending = measure(args, &session, &mut shelf, &stop);
    shelf.finish(&session, ending.as_ref().map_or(StudyState::Failed, run_state))?;
    report_ending(args, &session, &shelf, &ending?)
}

/// The plan that the flags describe; none where they only name a run.
fn wanted(args: &Args) -> Result<Option<StudyPlan>, Failure> {
    let made = &args.made;
    let named = if made.demo { Some(DEMO) } else { made.plan.as_deref() };
    if let Some(name) = named {
        return Ok(Some(plan::find_study(name)?.plan));
    }
    if args.resume.is_some() && args.ports.is_empty() && made.device.is_none() {
        return Ok(None);
    }
    suite::from_flags(args).map(Some)
}

/// The shipped study of `--demo`.
const DEMO: &str = "bench-demo";

/// A study without cells, in place of a run to resume that does not exist, which is an error
/// before.
fn nothing() -> StudyPlan {
    StudyPlan {
        name: suite::NAME.to_owned(),
        title: String::new(),
        source: None,
        purpose: None,
        shuffle_seed: None,
        retries: None,
        topologies: Vec::new(),
        tests: Vec::new(),
        questions: Vec::new(),
    }
}

/// The plan as it is read back from the store: fractions lose the digits that their text leaves
/// out.
fn stored(plan: &StudyPlan) -> Result<StudyPlan, Failure> {
    let there = linerate_core::tree::to_value(plan).map(|value| value.to_string());
    there
        .and_then(|text| linerate_core::tree::from_json(&text))
        .map_err(|error| Failure::new(Fault::System, "write plan of", &plan.name, error))
}

/// Cells that a session has not measured.
fn cells_left(session: &StudySession) -> Vec<CellPlan> {
    let mut cells = session.plan.cell_plans();
    cells.retain(|cell| !session.options.done.contains(&CellKey::from_cell(&cell.cell)));
    cells
}

/// Place of the records: the store, or this process alone.
struct Shelf {
    store: Option<Store>,
    records: Vec<Record>,
}

impl Shelf {
    fn open(args: &Args) -> Result<Self, Failure> {
        let flags = &args.output;
        let store = if flags.no_save || args.dry_run && args.resume.is_none() {
            None
        } else {
            Some(paths::open_store(flags.store.as_deref())?)
        };
        Ok(Self { store, records: Vec::new() })
    }

    /// The run to go on with, where one is asked for.
    fn unfinished(
        &self,
        args: &Args,
        wanted: Option<&StudyPlan>,
    ) -> Result<Option<StudyRun>, Failure> {
        let Some(name) = &args.resume else { return Ok(None) };
        let refused = |object: &str, reason: &str, advice: &str| {
            Err(Failure::new(Fault::Usage, "resume", object, reason).advise(advice))
        };
        // A plan in the store has been through its text.
        let wanted = wanted.map(stored).transpose()?;
        let Some(store) = &self.store else {
            return refused("--no-save", "an unstored run cannot be resumed", "omit one of them");
        };
        if let Some(name) = name {
            let run = store.run(name)?;
            if wanted.is_some_and(|wanted| wanted != run.plan) {
                let advice = "give the flags of that run, or only its name";
                return refused(short_id(&run.id), "it is a run of another plan", advice);
            }
            return Ok(Some(run));
        }
        let is_it = |run: &StudyRun| match &wanted {
            Some(wanted) => run.plan == *wanted,
            None => run.study == suite::NAME,
        };
        let open = |run: &StudyRun| run.state != StudyState::Finished;
        match store.list_study_runs()?.into_iter().find(|run| is_it(run) && open(run)) {
            Some(run) => Ok(Some(run)),
            None => refused("the benchmark", "no run of it is unfinished", "leave --resume out"),
        }
    }

    fn session(
        &mut self,
        begun: Option<StudyRun>,
        plan: StudyPlan,
    ) -> Result<StudySession, Failure> {
        match (&mut self.store, begun) {
            (Some(store), Some(run)) => session::go_on(run, None, store),
            (Some(store), None) => session::start_run(plan, store),
            (None, _) => Ok(session::unkept(plan)),
        }
    }

    fn put_record(&mut self, record: Record) -> Result<(), Failure> {
        match &mut self.store {
            Some(store) => store.put_record(&record),
            None => {
                self.records.push(record);
                Ok(())
            }
        }
    }

    fn finish(&mut self, session: &StudySession, state: StudyState) -> Result<(), Failure> {
        match &mut self.store {
            Some(store) => store.finish_run(&session.run, state, clock::wall_time()),
            None => Ok(()),
        }
    }

    fn results(&self, session: &StudySession) -> Result<StudyResults, Failure> {
        match &self.store {
            Some(store) => results(store, &session.run),
            None => Ok(StudyResults {
                plan: session.plan.clone(),
                run: session.run.clone(),
                records: self.records.clone(),
                published: plan::published(&session.plan)?,
            }),
        }
    }
}

fn measure(
    args: &Args,
    session: &StudySession,
    shelf: &mut Shelf,
    stop: &Stop,
) -> Result<StudyEnding, Failure> {
    let display = Display::new(&args.output, session.plan.clone(), stop.clone());
    let within = display.clone();
    let mut measurer = answer::laboratory(stop).watched(move |event| within.show_event(event));
    let ending = study::run(
        &session.plan,
        &session.options,
        &mut Tools {
            measurer: &mut measurer,
            clock: &SystemClock,
            stop,
            keep: &mut |mut record| {
                args.output.label_record(&mut record);
                shelf.put_record(record)
            },
            progress: &mut |progress| display.show_step(progress),
        },
    );
    display.clear_line();
    ending
}

/// Shows the results, names the cells that are left, and gives the exit code.
fn report_ending(
    args: &Args,
    session: &StudySession,
    shelf: &Shelf,
    ending: &StudyEnding,
) -> Outcome {
    let results = shelf.results(session)?;
    if ending.measured + ending.found > 0
        || results.records.iter().any(|record| record.bench.is_some())
    {
        result::print_results(args, &results)?;
    }
    let again = match &shelf.store {
        Some(_) => format!("; resume with: {}", resume_command(args, session)),
        None => String::new(),
    };
    if ending.interrupted() {
        output::print_note(&format!("stopped with {} not measured{again}", ending.left));
        return Ok(INTERRUPTED);
    }
    let Some(first) = ending.first_failure.as_ref().filter(|_| ending.failed > 0) else {
        return Ok(0);
    };
    if ending.measured + ending.found == 0 {
        return Err(first.clone().into());
    }
    output::print_note(&format!("{} failed, the first: {first}{again}", ending.failed));
    Ok(SOME_FAILED)
}

/// Command that the user types to go on.
fn resume_command(args: &Args, session: &StudySession) -> String {
    let store = args.output.store.as_ref();
    let store = store.map(|path| format!(" --store {}", path.display())).unwrap_or_default();
    format!("linerate bench --resume {}{store}", session.run)
}
