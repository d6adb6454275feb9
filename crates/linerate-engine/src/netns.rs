//! Work inside a network namespace.

use std::any::Any;
use std::{io, thread};

use linerate_core::record::{Failure, Fault};
use linerate_sys::netns::Netns;

/// Runs `work` on a thread of its own inside a namespace and waits for it.
pub(crate) fn run_inside<T: Send>(
    netns: &Netns,
    name: &str,
    work: impl FnOnce() -> T + Send,
) -> Result<T, Failure> {
    thread::scope(|scope| {
        let inside = || netns.enter().map(|()| work());
        let thread = thread::Builder::new().name(name.to_owned()).spawn_scoped(scope, inside);
        let thread = thread.map_err(|source| start_failure(name, &source))?;
        match thread.join() {
            Ok(outcome) => outcome.map_err(|error| system("run on", name, error)),
            Err(panic) => Err(system("run on", name, panic_text(panic.as_ref()))),
        }
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    format!("the work panicked: {}", text.as_deref().unwrap_or("no message"))
}

/// A thread that could not be started.
pub(crate) fn start_failure(name: &str, source: &io::Error) -> Failure {
    system("start thread on", name, source)
        .advise("the limit on processes may be reached (ulimit -u)")
}

fn system(attempt: &str, object: &str, reason: impl std::fmt::Display) -> Failure {
    Failure::new(Fault::System, attempt, object, reason)
}
