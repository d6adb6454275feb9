//! Child processes that end with their parent (PR_SET_PDEATHSIG, prctl(2); pidfd_open(2)).
//!
//! The kernel sends the signal when the thread that started the child ends, so that thread must
//! wait for the child. Left out: grandchildren, which do not get the signal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, PidfdFlags, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::{Error, Result};

/// Interval at which a waiting parent checks the flags of its signal handlers.
const LOOK_NS: i64 = 100_000_000;
/// Number of checks between SIGTERM and SIGKILL: 2 s.
const LOOKS_OF_GRACE: u32 = 20;

/// Sets a command up to be killed when the thread that starts it ends.
pub fn die_with_parent(command: &mut Command) -> &mut Command {
    let parent = rustix::process::getpid();
    let before_exec = move || {
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
        // If the parent ended before the line above, the kernel sends no signal.
        if rustix::process::getppid() == Some(parent) {
            Ok(())
        } else {
            Err(io::ErrorKind::BrokenPipe.into())
        }
    };
    // SAFETY: the closure only makes two system calls, both async-signal-safe, and touches no
    // memory but its own copy of the parent's id.
    unsafe { command.pre_exec(before_exec) }
}

/// Runs a command to its end and returns its exit status.
///
/// The terminal sends Ctrl-C to the command itself; SIGTERM and SIGHUP are forwarded to it. When
/// the other end of `lease` is closed, the command gets SIGHUP and, after two seconds, SIGKILL.
/// # Errors
/// When the command cannot be started.
pub fn run_to_end(command: &mut Command, lease: Option<BorrowedFd<'_>>) -> Result<ExitStatus> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |source: io::Error| Error::new("run", &name, source);
    let ask = Flags::install().map_err(failed)?;
    let mut child = die_with_parent(command).spawn().map_err(failed)?;
    wait_for_exit(&mut child, lease, &ask).map_err(failed)
}

/// Waits for the end of a child. Once `wanted` returns false, the child gets SIGTERM and, after two
/// seconds, SIGKILL.
/// # Errors
/// When the kernel refuses to wait for it.
pub fn wait_while(child: &mut Child, wanted: &dyn Fn() -> bool) -> Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let failed = |source: io::Error| Error::new("wait for process", pid.as_raw_nonzero(), source);
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty());
    let process = process.map_err(|errno| failed(errno.into()))?;
    let mut looks_since_ask: Option<u32> = None;
    loop {
        poll(process.as_fd(), None).map_err(failed)?;
        if let Some(status) = child.try_wait().map_err(failed)? {
            return Ok(status);
        }
        match &mut looks_since_ask {
            None if !wanted() => {
                let _ = rustix::process::kill_process(pid, Signal::TERM);
                looks_since_ask = Some(0);
            }
            None => {}
            Some(looks) => *looks += 1,
        }
        if looks_since_ask.is_some_and(|looks| looks > LOOKS_OF_GRACE) {
            child.kill().map_err(failed)?;
        }
    }
}

/// Flags for signals to the parent.
struct Flags {
    terminate: Arc<AtomicBool>,
    hang_up: Arc<AtomicBool>,
    handlers: Vec<signal_hook::SigId>,
}

impl Flags {
    fn install() -> io::Result<Self> {
        let terminate = Arc::new(AtomicBool::new(false));
        let hang_up = Arc::new(AtomicBool::new(false));
        let ignored = Arc::new(AtomicBool::new(false));
        let handlers = vec![
            signal_hook::flag::register(SIGTERM, terminate.clone())?,
            signal_hook::flag::register(SIGHUP, hang_up.clone())?,
            // A handler, not SIG_IGN, which the child would inherit.
            signal_hook::flag::register(SIGINT, ignored)?,
        ];
        Ok(Self { terminate, hang_up, handlers })
    }

    fn take_signal(&self) -> Option<Signal> {
        if self.terminate.swap(false, Ordering::AcqRel) {
            return Some(Signal::TERM);
        }
        self.hang_up.swap(false, Ordering::AcqRel).then_some(Signal::HUP)
    }
}

impl Drop for Flags {
    fn drop(&mut self) {
        for handler in self.handlers.drain(..) {
            signal_hook::low_level::unregister(handler);
        }
    }
}

fn wait_for_exit(
    child: &mut Child,
    mut lease: Option<BorrowedFd<'_>>,
    ask: &Flags,
) -> io::Result<ExitStatus> {
    let pid = Pid::from_child(child);
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let mut looks_since_ask: Option<u32> = None;
    loop {
        let lease_closed = poll(process.as_fd(), lease)?;
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        let mut signal = ask.take_signal();
        if lease_closed {
            lease = None;
            signal = Some(Signal::HUP);
            // SIGHUP alone does not end a program that is stopped.
            let _ = rustix::process::kill_process(pid, Signal::CONT);
        }
        if let Some(signal) = signal {
            let _ = rustix::process::kill_process(pid, signal);
            looks_since_ask.get_or_insert(0);
        }
        if let Some(looks) = &mut looks_since_ask {
            *looks += 1;
            if *looks > LOOKS_OF_GRACE {
                child.kill()?;
            }
        }
    }
}

/// Waits one interval for the end of the process; true if the lease's other end is closed.
fn poll(process: BorrowedFd<'_>, lease: Option<BorrowedFd<'_>>) -> io::Result<bool> {
    let mut waits = vec![PollFd::from_borrowed_fd(process, PollFlags::IN)];
    // POLLHUP is reported without being asked for.
    waits.extend(lease.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)));
    let look = Timespec { tv_sec: 0, tv_nsec: LOOK_NS };
    match rustix::event::poll(&mut waits, Some(&look)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(errno) => return Err(errno.into()),
    }
    let closed = PollFlags::HUP | PollFlags::RDHUP | PollFlags::ERR;
    Ok(waits.get(1).is_some_and(|lease| lease.revents().intersects(closed)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    #[test]
    fn the_status_of_the_command_is_passed_on() {
        let status = run_to_end(Command::new("sh").args(["-c", "exit 7"]), None).unwrap();
        assert_eq!(status.code(), Some(7));
        assert!(run_to_end(&mut Command::new("/nonexistent/program"), None).is_err());
    }

    #[test]
    fn a_child_that_is_not_wanted_is_asked_to_end_and_then_killed() {
        let end = |script: &str| {
            let mut child = Command::new("sh").args(["-c", script]).spawn().unwrap();
            // As long as the shell needs to set its trap.
            crate::clock::sleep(std::time::Duration::from_millis(300));
            wait_while(&mut child, &|| false).unwrap().signal()
        };
        assert_eq!(end("exec sleep 100"), Some(SIGTERM));
        assert_eq!(end("trap '' TERM; while true; do sleep 0.1; done"), Some(9));
    }

    #[test]
    fn a_command_ends_when_its_lease_is_closed() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let mut command = Command::new("sleep");
        let status = run_to_end(command.arg("100"), Some(ours.as_fd())).unwrap();
        assert_eq!(status.signal(), Some(SIGHUP));
    }
}
