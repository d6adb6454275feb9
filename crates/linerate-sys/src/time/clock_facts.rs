//! The kernel's facts of its clocks: claimed resolution (clock_getres(2)), clock source (sysfs),
//! and state of synchronisation (adjtimex(2)).

use std::io;

use linerate_core::time::MonoTime;
use rustix::time::{ClockId, Timespec};

/// Resolution that the kernel claims for the monotonic clock: 1 ns if the clock counts in ns, even
/// with larger steps.
pub fn claimed_resolution_ns() -> u64 {
    let claimed = rustix::time::clock_getres(ClockId::Monotonic);
    u64::try_from(claimed.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(claimed.tv_nsec).unwrap_or(0)
}

/// Current time of CLOCK_MONOTONIC by a system call, not through the vDSO.
pub fn monotonic_by_syscall() -> MonoTime {
    let mut time = Timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec to `time`, which outlives the call. On 64-bit Linux
    // `Timespec` is the kernel's own layout of two 64-bit words.
    unsafe {
        libc::syscall(libc::SYS_clock_gettime, libc::CLOCK_MONOTONIC, &raw mut time);
    }
    let sec = u64::try_from(time.tv_sec).unwrap_or(0);
    MonoTime::from_nanos(sec * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0))
}

/// CLOCK_REALTIME in microseconds, as gettimeofday(2) returns it.
pub fn wall_micros() -> u64 {
    let now = rustix::time::clock_gettime(ClockId::Realtime);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000
        + u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000
}

/// Clock source of the kernel: `tsc`, `kvm-clock`, `hpet`.
pub fn clocksource() -> Option<String> {
    let path = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    Some(std::fs::read_to_string(path).ok()?.trim().to_owned())
}

/// Synchronisation of CLOCK_REALTIME, as an NTP or PTP daemon reported it to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncState {
    /// True if the flag STA_UNSYNC is clear.
    pub synchronised: bool,
    /// Largest possible error (`maxerror`).
    pub error_max_us: u64,
    /// Estimated error (`esterror`).
    pub error_estimate_us: u64,
}

/// Reads the state of synchronisation without changing it.
/// # Errors
/// The kernel's reason.
pub fn sync_state() -> io::Result<SyncState> {
    // SAFETY: all-zero is a valid timex; modes 0 only reads.
    let mut timex: libc::timex = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one timex to `timex`, which outlives the call.
    if unsafe { libc::adjtimex(&raw mut timex) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(SyncState {
        synchronised: timex.status & libc::STA_UNSYNC == 0,
        error_max_us: u64::try_from(timex.maxerror).unwrap_or(0),
        error_estimate_us: u64::try_from(timex.esterror).unwrap_or(0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_of_reading_show_the_same_clock() {
        let before = crate::clock::monotonic();
        let between = monotonic_by_syscall();
        let after = crate::clock::monotonic();
        assert!(before <= between && between <= after);
    }

    #[test]
    fn the_kernel_tells_its_state() {
        assert!(claimed_resolution_ns() > 0);
        sync_state().expect("reading needs no privilege");
    }
}
