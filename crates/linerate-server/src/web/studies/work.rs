//! A run as a process of its own, which is this program again: `linerate study run --resume RUN`.
//! It stores each measurement at once, so what is known of its progress is in the store.

use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;

use linerate_engine::flow::admission::Permit;
use linerate_store::{Store, StudyState};
use linerate_sys::child::{die_with_parent, wait_while};
use linerate_sys::clock::wall_time;
use linerate_sys::stop::Stop;

use crate::web::state::State;

/// Bytes that are kept of its output: lines of progress, and at last why it failed.
const SAID_MAX: u64 = 1 << 20;
/// Exit codes of a run that came to its end: whole, outside limits, with some failed.
const CAME_TO_ITS_END: [i32; 3] = [0, 1, 5];

/// A study run to start, and its store.
#[derive(Debug)]
pub(super) struct StudyJob {
    pub(super) run: String,
    pub(super) store: PathBuf,
    pub(super) stop: Stop,
}

/// Starts the thread that has the process; the place at the gate is given back at its end.
pub(super) fn start_process(
    state: &Arc<State>,
    job: StudyJob,
    permit: Permit,
) -> std::io::Result<()> {
    let state = Arc::clone(state);
    let work = move || {
        let said = run(&state, &job).err();
        if let Some(said) = &said {
            tracing::warn!("run {} of a study: {said}", job.run);
            settle(&job);
        }
        drop(permit);
        state.studies.release_place(said);
    };
    std::thread::Builder::new().name("linerate-study".to_owned()).spawn(work).map(drop)
}

/// Why it did not come to its end, in its own last words; nothing where it was asked to end.
fn run(state: &State, job: &StudyJob) -> Result<(), String> {
    let words = |error: &dyn std::fmt::Display| format!("it could not be started: {error}");
    let program = std::env::current_exe().map_err(|error| words(&error))?;
    let mut command = Command::new(program);
    command.args(["study", "run", "--resume", &job.run, "--store"]).arg(&job.store);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    // Ctrl-C is for the server, which hands it on.
    command.process_group(0);
    let mut child = die_with_parent(&mut command).spawn().map_err(|error| words(&error))?;
    let said = child.stderr.take().map(|pipe| std::thread::spawn(move || last_line(pipe)));
    let wanted = || !job.stop.is_requested() && !state.ends.is_requested();
    let status = wait_while(&mut child, &wanted).map_err(|error| error.to_string())?;
    let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
    if !wanted() || status.code().is_some_and(|code| CAME_TO_ITS_END.contains(&code)) {
        return Ok(());
    }
    Err(if said.is_empty() { format!("it ended with {status}") } else { said })
}

/// A run that died without a word to the store is not for ever at work.
fn settle(job: &StudyJob) {
    let settled = Store::open(&job.store).and_then(|mut store| match store.run(&job.run)?.state {
        StudyState::Running => store.finish_run(&job.run, StudyState::Failed, wall_time()),
        _ => Ok(()),
    });
    if let Err(failure) = settled {
        tracing::warn!("run {} of a study: {failure}", job.run);
    }
}

fn last_line(pipe: impl Read) -> String {
    let mut text = Vec::new();
    let mut pipe = pipe;
    let _ = (&mut pipe).take(SAID_MAX).read_to_end(&mut text);
    // What is above that is not kept, and is taken all the same: a full pipe would hold it up.
    let _ = std::io::copy(&mut pipe, &mut std::io::sink());
    let text = String::from_utf8_lossy(&text);
    let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    last.trim_start_matches("linerate: ").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_the_last_line_that_says_something() {
        let of = |text: &str| last_line(text.as_bytes());
        assert_eq!(of("1 of 5\nlinerate: build laboratory: no\n\n"), "build laboratory: no");
        assert_eq!(of(""), "");
    }
}
