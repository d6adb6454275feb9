//! Real-time priority for threads whose lateness falsifies their results (sched(7),
//! sched_setscheduler(2)). The kernel reserves 5 % of each processor for other threads
//! (kernel.sched_rt_runtime_us).

use std::io;
use std::marker::PhantomData;

use crate::{Error, Result};

/// Gives the calling thread the priority SCHED_FIFO 1 until it ends. Its children do not inherit
/// it.
/// # Errors
/// Without CAP_SYS_NICE and with a limit RLIMIT_RTPRIO of 0.
pub fn raise_priority() -> Result<()> {
    // The lowest real-time priority: above every ordinary thread, below all other real-time
    // threads, also those of the kernel. SAFETY: all-zero is a valid sched_param: plain numbers.
    let mut param: libc::sched_param = unsafe { std::mem::zeroed() };
    param.sched_priority = 1;
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the call reads one sched_param, which outlives it; 0 is the calling thread.
    if unsafe { libc::sched_setscheduler(0, policy, &raw const param) } == 0 {
        return Ok(());
    }
    Err(Error::new("ask for", "real-time priority", io::Error::last_os_error()))
}

/// Real-time priority of the calling thread until dropped.
#[derive(Debug)]
pub struct Turn(PhantomData<*const ()>);

impl Turn {
    /// Raises the priority as [`raise_priority`] does.
    /// # Errors
    /// The errors of [`raise_priority`].
    pub fn raise_priority() -> Result<Self> {
        raise_priority().map(|()| Self(PhantomData))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // SAFETY: all-zero is a valid sched_param: plain numbers, and 0 is what SCHED_OTHER has.
        let param: libc::sched_param = unsafe { std::mem::zeroed() };
        // Only a privileged process may clear the flag.
        let policy = libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK;
        // SAFETY: as in `begin`.
        unsafe { libc::sched_setscheduler(0, policy, &raw const param) };
    }
}
