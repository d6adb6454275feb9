//! Receive processing of an interface on kernel threads (threaded NAPI), and their processors.
//!
//! The switch is a file of sysfs (Documentation/networking/napi.rst), which shows the interfaces of
//! the network namespace in which it was mounted; so it is mounted here, detached from the file
//! tree (fsopen(2), Linux 5.2). The threads are named `napi/INTERFACE-NUMBER` (net/core/dev.c).
//! Left out: switching by the netlink family `netdev`, which needs Linux 6.17.

use std::fs;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};

use rustix::fs::{Mode, OFlags};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags};
use rustix::thread::{CpuSet, Pid};

use crate::{Error, Result};

/// Lock for one switch at a time, so that new threads are those of this call: interfaces of
/// different namespaces, and so their threads, can have the same name.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Switches an interface of the calling thread's network namespace to threaded NAPI, and pins the
/// threads to a processor if one is given. The interface needs NAPI: a veth end has it while an XDP
/// program is attached or GRO is on. Returns the number of threads.
/// # Errors
/// Without CAP_SYS_ADMIN and CAP_NET_ADMIN, for an interface without NAPI, when the kernel is older
/// than 5.12, or when the processor does not exist.
pub fn run_on_threads(ifname: &str, cpu: Option<u32>) -> Result<usize> {
    let failed = |source: io::Error| Error::new("give kernel threads to interface", ifname, source);
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let before = threads_of(ifname).map_err(failed)?;
    switch(ifname, true).map_err(failed)?;
    let mut new = threads_of(ifname).map_err(failed)?;
    new.retain(|pid| !before.contains(pid));
    if new.is_empty() {
        let reason = "no thread came; the interface has no NAPI, or /proc is of another PID space";
        return Err(failed(io::Error::other(reason)));
    }
    if let Some(cpu) = cpu {
        new.iter().try_for_each(|pid| pin_thread(*pid, cpu)).map_err(failed)?;
    }
    Ok(new.len())
}

/// Switches threaded NAPI of an interface of the calling thread's network namespace on or off;
/// [`crate::netlink::napi_contexts`] lists the threads.
/// # Errors
/// Without CAP_SYS_ADMIN and CAP_NET_ADMIN, or when the kernel is older than 5.12.
pub fn set_threaded(ifname: &str, threaded: bool) -> Result<()> {
    let failed =
        |source: io::Error| Error::new("switch kernel threads of interface", ifname, source);
    switch(ifname, threaded).map_err(failed)
}

fn switch(ifname: &str, threaded: bool) -> io::Result<()> {
    let context = rustix::mount::fsopen("sysfs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    rustix::mount::fsconfig_create(&context)?;
    let tree =
        rustix::mount::fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::empty())?;
    let path = format!("class/net/{ifname}/threaded");
    let file = rustix::fs::openat(&tree, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    fs::File::from(file).write_all(if threaded { b"1" } else { b"0" })
}

/// NAPI threads of interfaces of this name, in any namespace.
fn threads_of(ifname: &str) -> io::Result<Vec<Pid>> {
    let begin = format!("napi/{ifname}-");
    let mut threads = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        // A process may end after the listing.
        let Ok(text) = fs::read_to_string(format!("/proc/{pid}/comm")) else { continue };
        if text.starts_with(&begin) {
            threads.extend(Pid::from_raw(pid));
        }
    }
    Ok(threads)
}

fn pin_thread(thread: Pid, cpu: u32) -> io::Result<()> {
    let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
    if cpu >= CpuSet::MAX_CPU {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut one = CpuSet::new();
    one.set(cpu);
    rustix::thread::sched_setaffinity(Some(thread), &one).map_err(|error| match error {
        rustix::io::Errno::INVAL => io::Error::other(format!("there is no CPU {cpu}")),
        error => error.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_that_is_not_there_gets_no_threads() {
        let error = run_on_threads("none0", None).expect_err("there is no such interface");
        assert!(error.to_string().contains("none0"), "{error}");
    }
}
