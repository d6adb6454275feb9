//! `linerate study run`: measures what a run still lacks, stores each record at once, and renders
//! the whole.

use linerate_core::record::Failure;
use linerate_engine::lab::enter_user_namespace_if_needed;
use linerate_engine::study::{StudyEnding, Tools};
use linerate_store::{Store, StudyState};
use linerate_sys::clock::{self, SystemClock};
use linerate_sys::stop::Stop;

use super::progress::StudyProgressBar;
use super::session::{self, Args, StudySession};
use super::{answer, render};
use crate::columns::short_id;
use crate::exit::Outcome;
use crate::{output, paths};

/// Exit code of a run in which some cells failed.
const SOME_FAILED: u8 = 5;

/// Exit code of a run that the user stopped.
const INTERRUPTED: u8 = 130;

/// Runs `linerate study run` by its flags.
pub(super) fn run(args: Args) -> Outcome {
    args.report.as_deref().map_or(Ok(()), paths::make_folder)?;
    let mut store = paths::open_store(args.store.as_deref())?;
    if session::is_live(&args, &store) {
        // Before anything that could start a thread.
        enter_user_namespace_if_needed()?;
    }
    let stop = Stop::on_signals()?;
    let session = session::open_session(&args, &mut store)?;
    output::print_note(&session.opening());
    let ending = match measure(&session, &mut store, &stop) {
        Ok(ending) => ending,
        Err(failure) => {
            // The failure that ended the run is the one to tell, even if this one cannot be kept.
            let _ = store.finish_run(&session.run, StudyState::Failed, clock::wall_time());
            if store.run(&session.run).is_ok_and(|run| run.stored > 0) {
                let again = session.resume_command(args.store.as_deref());
                output::print_note(&format!("results so far are stored; resume with: {again}"));
            }
            return Err(failure.into());
        }
    };
    store.finish_run(&session.run, study_state(&ending), clock::wall_time())?;
    if ending.repeated > 0 {
        let repeated = ending.repeated;
        output::print_note(&format!("{repeated} repeated because this machine invalidated them"));
    }
    let directory = match &args.report {
        Some(directory) => directory.clone(),
        None => {
            let name = format!("{}-{}", session.plan.name, short_id(&session.run));
            paths::report_of(&name, args.store.as_deref())?
        }
    };
    render::run(&store, &session.run, &directory)?;
    Ok(report_ending(&args, &session, &ending))
}

fn measure(session: &StudySession, store: &mut Store, stop: &Stop) -> Result<StudyEnding, Failure> {
    let mut display = StudyProgressBar::new(&session.plan);
    let mut measurer = answer::laboratory(stop);
    linerate_engine::study::run(
        &session.plan,
        &session.options,
        &mut Tools {
            measurer: &mut measurer,
            clock: &SystemClock,
            stop,
            keep: &mut |record| store.put_record(&record),
            progress: &mut |progress| display.show_step(progress),
        },
    )
}

/// How the run is stored.
pub(crate) const fn study_state(ending: &StudyEnding) -> StudyState {
    if ending.interrupted() {
        StudyState::Interrupted
    } else if ending.failed > 0 {
        StudyState::Partial
    } else {
        StudyState::Finished
    }
}

/// Says what is left to do, and gives the exit code.
fn report_ending(args: &Args, session: &StudySession, ending: &StudyEnding) -> u8 {
    let again = session.resume_command(args.store.as_deref());
    if ending.interrupted() {
        let left = ending.left;
        output::print_note(&format!("stopped with {left} not measured; resume with: {again}"));
        return INTERRUPTED;
    }
    if ending.failed > 0 {
        let failed = ending.failed;
        let first = ending.first_failure.as_ref().map(ToString::to_string).unwrap_or_default();
        output::print_note(&format!("{failed} failed, the first: {first}; again with: {again}"));
        return SOME_FAILED;
    }
    0
}
