//! Waiting for packets or a point in time (ppoll(2)), to the microsecond: sleeps until shortly
//! before, then polls without sleeping.
//!
//! Sleeping alone ended 82 µs late in the median, and polling alone takes a whole processor; with
//! sleep until 60 µs before, it was 26 µs (Linux 6.18 guest, both directions of a 10 ms delay
//! together). Needs the timer slack of [`crate::sched::ShortSlack`].

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use linerate_core::time::MonoTime;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};

use crate::{Error, Result, clock};

/// Events of one descriptor after a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FdEvents {
    /// Data can be read.
    pub readable: bool,
    /// The descriptor has an error, such as a removed device.
    pub failed: bool,
}

impl FdEvents {
    /// True if there is any event.
    pub const fn has_event(self) -> bool {
        self.readable || self.failed
    }
}

/// Timer with microsecond accuracy. It measures the lateness of its sleeps and wakes earlier by
/// that.
#[derive(Clone, Copy, Debug)]
pub struct HybridTimer {
    spin: Duration,
    spin_max: Duration,
}

impl HybridTimer {
    /// A timer that spins at most `spin_max` before each point in time.
    pub const fn new(spin_max: Duration) -> Self {
        Self { spin: spin_max, spin_max }
    }

    /// Waits until `then` or until a descriptor has an event; without a time limit if `then` is
    /// `None`. Polls without sleeping at the end of the wait only if it must be `exact`. A signal
    /// ends the wait early.
    /// # Errors
    /// The errors of ppoll(2).
    pub fn wait_for_events<const N: usize>(
        &mut self,
        fds: [BorrowedFd<'_>; N],
        then: Option<MonoTime>,
        exact: bool,
    ) -> io::Result<[FdEvents; N]> {
        let mut fds = fds.each_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
        let spin = if exact { self.spin } else { Duration::ZERO };
        loop {
            let left = then.map(|then| then.duration_since(clock::monotonic()));
            let sleep = left.map(|left| left.saturating_sub(spin));
            match poll(&mut fds, sleep.map(timespec).as_ref()) {
                Ok(0) if left.is_some_and(|left| !left.is_zero()) => {
                    self.adapt_spin(then, sleep, spin)
                }
                Ok(_) | Err(rustix::io::Errno::INTR) => return Ok(fds.each_ref().map(fd_events)),
                Err(errno) => return Err(errno.into()),
            }
        }
    }

    /// Sets the spin time to somewhat more than twice the lateness of the sleep; it shrinks slowly.
    fn adapt_spin(&mut self, then: Option<MonoTime>, sleep: Option<Duration>, spin: Duration) {
        let Some(then) = then.filter(|_| sleep.is_some_and(|sleep| !sleep.is_zero())) else {
            return;
        };
        let late = (clock::monotonic() + spin).duration_since(then);
        let wanted = (2 * late + SPIN_MIN).min(self.spin_max);
        let less = self.spin.saturating_sub(wanted) / 16;
        self.spin = wanted.max(self.spin - less);
    }
}

/// Shortest spin: several times the duration of polling three descriptors and reading the clock.
const SPIN_MIN: Duration = Duration::from_micros(10);

fn timespec(span: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(span.subsec_nanos()),
    }
}

fn fd_events(fd: &PollFd<'_>) -> FdEvents {
    let seen = fd.revents();
    let failed = PollFlags::ERR | PollFlags::HUP | PollFlags::NVAL;
    FdEvents { readable: seen.contains(PollFlags::IN), failed: seen.intersects(failed) }
}

/// Wakes a waiting thread (eventfd(2)).
#[derive(Debug)]
pub struct Bell {
    fd: OwnedFd,
}

impl Bell {
    /// A new bell, not readable.
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> Result<Self> {
        let fd = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| Error::new("make", "eventfd", errno))?;
        Ok(Self { fd })
    }

    /// Makes the descriptor readable until [`Self::make_unreadable`].
    pub fn make_readable(&self) {
        // The write fails only with a counter near 2^64, which is readable.
        let _ = rustix::io::write(&self.fd, &1_u64.to_ne_bytes());
    }

    /// Makes the descriptor unreadable again.
    pub fn make_unreadable(&self) {
        // The read fails if the counter is 0, which needs no change.
        let _ = rustix::io::read(&self.fd, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPIN: Duration = Duration::from_micros(60);

    #[test]
    fn a_wait_ends_at_its_time_and_not_before() {
        let bell = Bell::new().expect("a descriptor");
        let then = clock::monotonic() + Duration::from_millis(3);
        let mut timer = HybridTimer::new(SPIN);
        let [ready] = timer.wait_for_events([bell.as_fd()], Some(then), true).expect("ppoll");
        assert!(clock::monotonic() >= then);
        assert!(!ready.has_event());
    }

    #[test]
    fn a_timer_that_wakes_early_enough_spins_less_and_one_that_wakes_late_more() {
        let mut timer = HybridTimer { spin: SPIN, spin_max: SPIN };
        let sleep = Some(Duration::from_millis(1));
        // Sleeps that end long before their time are not late at all.
        let far = clock::monotonic() + Duration::from_secs(60);
        for _ in 0..200 {
            timer.adapt_spin(Some(far), sleep, timer.spin);
        }
        assert!(timer.spin < 2 * SPIN_MIN, "{:?}", timer.spin);
        timer.adapt_spin(Some(MonoTime::default()), sleep, timer.spin);
        assert_eq!(timer.spin, SPIN);
    }

    #[test]
    fn a_bell_ends_a_wait_without_end() {
        let bell = Bell::new().expect("a descriptor");
        bell.make_readable();
        let mut timer = HybridTimer::new(SPIN);
        let [ready] = timer.wait_for_events([bell.as_fd()], None, true).expect("ppoll");
        assert!(ready.readable && !ready.failed);
        bell.make_unreadable();
        bell.make_unreadable();
        let then = clock::monotonic() + Duration::from_millis(1);
        let [ready] = timer.wait_for_events([bell.as_fd()], Some(then), true).expect("ppoll");
        assert!(!ready.has_event());
    }
}
