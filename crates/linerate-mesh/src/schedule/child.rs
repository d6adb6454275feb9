//! One run as a process of its own.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use linerate_core::schedule::RunCause;
use linerate_sys::child::{die_with_parent, wait_while};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;

/// Bytes that are kept of a run's output: a record of a long survey has some megabytes.
const SAID_MAX: u64 = 64 << 20;

/// A command line to run, with its time limit.
#[derive(Debug)]
pub(super) struct ProcessJob {
    pub program: PathBuf,
    pub words: Vec<String>,
    pub takes: Duration,
    /// Time that a run may take beyond what the plan says.
    pub slack: Duration,
    pub place: RunIdentity,
}

/// The run of the plan that a process is for: task, begin and cause.
#[derive(Clone, Debug)]
pub(super) struct RunIdentity {
    pub task: usize,
    pub start_s: i64,
    pub why: RunCause,
}

/// Exit code and output of a run's process.
#[derive(Debug)]
pub(super) struct ProcessOutcome {
    pub place: RunIdentity,
    /// The exit code; none where a signal ended it or it never began.
    pub code: Option<i32>,
    /// True where it was ended for exceeding its time limit.
    pub late: bool,
    /// Its standard output, which has the record where its store could not be written.
    pub printed: String,
    /// Last line of the process on its standard error; empty where there was none.
    pub said: String,
}

/// Starts a run's process from a thread of its own, which sends how it ended to `ended`.
pub(super) fn spawn_run(job: ProcessJob, stop: Stop, ended: Sender<ProcessOutcome>) {
    std::thread::spawn(move || {
        // A keeper that is gone has asked to stop.
        let _ = ended.send(run(&job, &stop));
    });
}

fn run(job: &ProcessJob, stop: &Stop) -> ProcessOutcome {
    let place = job.place.clone();
    let failed = |said: String| ProcessOutcome {
        place: place.clone(),
        code: None,
        late: false,
        printed: String::new(),
        said,
    };
    let mut command = Command::new(&job.program);
    command.args(&job.words).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // Ctrl-C is for the keeper, which hands it on.
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    let mut child = match die_with_parent(&mut command).spawn() {
        Ok(child) => child,
        Err(error) => return failed(format!("run {}: {error}", job.program.display())),
    };
    let printed = child.stdout.take().map(|pipe| std::thread::spawn(move || read(pipe)));
    let said = child.stderr.take().map(|pipe| std::thread::spawn(move || read(pipe)));
    let until = monotonic() + job.takes + job.slack;
    let status = wait_while(&mut child, &|| !stop.is_requested() && monotonic() < until);
    let text = |reader: Option<std::thread::JoinHandle<String>>| {
        reader.and_then(|reader| reader.join().ok()).unwrap_or_default()
    };
    let (printed, said) = (text(printed), text(said));
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    ProcessOutcome {
        place,
        code: status.ok().and_then(|status| status.code()),
        late: !stop.is_requested() && monotonic() >= until,
        printed,
        said: last.trim_start_matches("linerate: ").to_owned(),
    }
}

fn read(pipe: impl Read) -> String {
    let mut text = Vec::new();
    let _ = pipe.take(SAID_MAX).read_to_end(&mut text);
    String::from_utf8_lossy(&text).into_owned()
}
