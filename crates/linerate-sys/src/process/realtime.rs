//! Real-time priority for a thread whose lateness is an error of what it makes (sched(7),
//! sched_setscheduler(2)). The kernel keeps 5 % of each processor for others
//! (kernel.sched_rt_runtime_us).

use std::io;
use std::marker::PhantomData;

use crate::{Error, Result};

/// Runs the calling thread before all ordinary ones, first come first served among its like,
/// until it ends. Its children are ordinary.
/// # Errors
/// Without CAP_SYS_NICE and with a limit RLIMIT_RTPRIO of 0.
pub fn begin() -> Result<()> {
    // The lowest real-time priority: before every ordinary thread, behind every other real-time
    // one, the kernel's own among them.
    // SAFETY: all-zero is a valid sched_param: plain numbers.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads one sched_param, which outlives it; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const param) } == 0 {
        return Ok(());
    }
    Err(Error::new("ask for", "real-time priority", io::Error::last_os_error()))
}

/// [`begin`] until dropped, by the thread that began it.
#[derive(Debug)]
pub struct Turn(PhantomData<*const ()>);

impl Turn {
    /// Begins.
    /// # Errors
    /// As [`begin`].
    pub fn begin() -> Result<Self> {
        begin().map(|()| Self(PhantomData))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: all-zero is a valid sched_param: plain numbers, and 0 is what SCHED_OTHER has.
        let param: libc::sched_param = unsafe { std::mem::zeroed() };
        // Only a process with the privilege may take the flag back.
        let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
        // SAFETY: as in `begin`.
        unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    }
}
