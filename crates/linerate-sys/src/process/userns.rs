//! A user namespace of one's own (user_namespaces(7)): lets a plain user make network namespaces.
//!
//! The user becomes 0 inside, because a program started by another user would lose the
//! capabilities at exec (capabilities(7)); files still belong to the user outside.

use std::fs::{self, File};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::thread::{CapabilitySet, LinkNameSpaceType, UnshareFlags};

use crate::{Error, Result};

const OWN: &str = "/proc/self/ns/user";

/// True if this process may create network namespaces and links in them.
pub fn may_make_networks() -> bool {
    let wanted = CapabilitySet::SYS_ADMIN | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}

/// True if this process may send and count raw frames, for which it needs packet sockets, XDP
/// programs and the settings of links.
pub fn may_send_frames() -> bool {
    let wanted = CapabilitySet::NET_RAW | CapabilitySet::NET_ADMIN;
    rustix::thread::capabilities(None).is_ok_and(|sets| sets.effective.contains(wanted))
}

/// Number of threads of this process; a process with more than one cannot change its user
/// namespace.
/// # Errors
/// When /proc is not there.
pub fn thread_count() -> Result<usize> {
    let tasks = "/proc/self/task";
    let entries = fs::read_dir(tasks).map_err(|source| Error::new("read", tasks, source))?;
    Ok(entries.count())
}

/// Moves this process into a new user namespace, where it has every capability.
/// # Errors
/// When the process has more than one thread, or when the host does not let users make user
/// namespaces.
pub fn enter_new() -> Result<()> {
    let user = rustix::process::geteuid().as_raw();
    let group = rustix::process::getegid().as_raw();
    // SAFETY: a user namespace changes neither the descriptors nor the memory that threads share;
    // the kernel refuses it to a process with more than one thread.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }
        .map_err(|errno| Error::new("make", "user namespace", errno))?;
    // Giving up setgroups(2) comes before mapping a group without privilege.
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("0 {user} 1"))?;
    write("/proc/self/gid_map", &format!("0 {group} 1"))
}

fn write(path: &'static str, text: &str) -> Result<()> {
    fs::write(path, text).map_err(|source| Error::new("write", path, source))
}

/// A user namespace, kept alive by an open descriptor.
#[derive(Debug)]
pub struct Userns {
    fd: OwnedFd,
}

impl Userns {
    /// The user namespace of this process.
    /// # Errors
    /// When /proc is not there.
    pub fn current() -> Result<Self> {
        let file = File::open(OWN).map_err(|source| Error::new("open", OWN, source))?;
        Ok(Self { fd: file.into() })
    }

    /// A namespace whose descriptor another process passed.
    pub fn from_fd(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Moves this process into the namespace, unless it is already in it.
    /// # Errors
    /// When the caller did not create the namespace, or the process has more than one thread.
    pub fn enter(&self) -> Result<()> {
        if self.inode_number()? == Self::current()?.inode_number()? {
            return Ok(());
        }
        rustix::thread::move_into_link_name_space(self.fd.as_fd(), Some(LinkNameSpaceType::User))
            .map_err(|errno| Error::new("enter", "user namespace", errno))
    }

    fn inode_number(&self) -> Result<u64> {
        let stat = rustix::fs::fstat(&self.fd)
            .map_err(|errno| Error::new("identify", "user namespace", errno))?;
        Ok(stat.st_ino)
    }
}

impl AsFd for Userns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
