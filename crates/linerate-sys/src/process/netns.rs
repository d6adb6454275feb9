//! Anonymous network namespaces (network_namespaces(7)), kept alive by a descriptor.
//!
//! No name in /run/netns and nothing on disk: the namespace ends with the last descriptor, thread
//! or process that holds it, so a killed process leaves nothing behind.

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread;

use rustix::process::{PidfdFlags, Signal};
use rustix::thread::{LinkNameSpaceType, UnshareFlags};

use crate::{Error, Result};

/// Path of the calling thread's network namespace; `/proc/self` is that of the first thread.
const OWN: &str = "/proc/thread-self/ns/net";

/// A network namespace, kept alive by an open descriptor.
#[derive(Debug)]
pub struct Netns {
    fd: OwnedFd,
}

impl Netns {
    /// Creates a namespace with only a loopback link, which is down.
    /// # Errors
    /// Without CAP_SYS_ADMIN in the user namespace, at the limit user.max_net_namespaces, or when
    /// no thread can be started.
    pub fn new() -> Result<Self> {
        let maker = thread::Builder::new().name("netns".to_owned()).spawn(|| {
            // SAFETY: a network namespace changes neither the descriptors nor the memory that
            // threads share; this thread ends right after.
            unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
                .map_err(|errno| Error::new("make", "network namespace", errno))?;
            Self::current()
        });
        let maker = maker.map_err(|source| Error::new("start thread for", "namespace", source))?;
        maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Opens the namespace of the calling thread.
    /// # Errors
    /// When /proc is not mounted.
    pub fn current() -> Result<Self> {
        let file = File::open(OWN).map_err(|source| Error::new("open", OWN, source))?;
        Ok(Self { fd: file.into() })
    }

    /// A namespace whose descriptor another process passed.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Moves the calling thread into the namespace. Threads and children that it starts later
    /// inherit it.
    /// # Errors
    /// Without CAP_SYS_ADMIN in the namespace's user namespace and in the caller's.
    pub fn enter(&self) -> Result<()> {
        let kind = Some(LinkNameSpaceType::Network);
        rustix::thread::move_into_link_name_space(self.fd.as_fd(), kind)
            .map_err(|errno| Error::new("enter", "network namespace", errno))
    }

    /// Inode number of the namespace, unique in this kernel: the number in
    /// `readlink /proc/PID/ns/net`.
    /// # Errors
    /// When the kernel does not answer.
    pub fn inode_number(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)
            .map_err(|errno| Error::new("identify", "network namespace", errno))?;
        Ok(stat.st_ino)
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Processes whose first thread is in one of these namespaces, as far as the caller may read that
/// (proc_pid_ns(5)), without the calling process.
pub fn processes_inside(namespaces: &[u64]) -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let names = entries.flatten().map(|entry| entry.file_name());
    let pids = names.filter_map(|name| name.to_str().and_then(|name| name.parse().ok()));
    let others = pids.filter(|&pid| pid != std::process::id());
    others.filter_map(|pid| Process::inside(pid, namespaces)).collect()
}

/// A process, held by a pidfd so that its PID cannot be reused.
#[derive(Debug)]
pub struct Process {
    fd: OwnedFd,
}

impl Process {
    fn inside(pid: u32, namespaces: &[u64]) -> Option<Self> {
        if !is_inside(pid, namespaces) {
            return None;
        }
        let number = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
        let fd = rustix::process::pidfd_open(number, PidfdFlags::empty()).ok()?;
        // Checked again: the PID may have been reused before the pidfd was opened.
        is_inside(pid, namespaces).then_some(Self { fd })
    }

    /// Asks the process to end: SIGHUP, and SIGCONT if it is stopped.
    pub fn hang_up(&self) {
        self.send_signal(Signal::HUP);
        self.send_signal(Signal::CONT);
    }

    /// Kills the process (SIGKILL).
    pub fn kill(&self) {
        self.send_signal(Signal::KILL);
    }

    fn send_signal(&self, signal: Signal) {
        // The process may have ended, or belong to another user.
        let _ = rustix::process::pidfd_send_signal(&self.fd, signal);
    }
}

fn is_inside(pid: u32, namespaces: &[u64]) -> bool {
    let Ok(link) = std::fs::read_link(format!("/proc/{pid}/ns/net")) else { return false };
    // The link reads `net:[4026531840]`.
    let text = link.to_string_lossy();
    let number = text.strip_prefix("net:[").and_then(|rest| rest.strip_suffix(']'));
    number.and_then(|id| id.parse().ok()).is_some_and(|id| namespaces.contains(&id))
}
