//! Costs of a thread: processor time (getrusage(2), RUSAGE_THREAD) and run-queue wait
//! (/proc/thread-self/schedstat, second field, nanoseconds; the third field is the number of time
//! slices; needs CONFIG_SCHED_INFO).

use std::mem::MaybeUninit;

/// Costs of the calling thread since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadCost {
    /// Processor time in user mode.
    pub user_ns: Option<u64>,
    /// Processor time in the kernel.
    pub system_ns: Option<u64>,
    /// Time in the run queue, ready without a processor.
    pub run_queue_wait_ns: Option<u64>,
    /// Elapsed time of the monotonic clock.
    pub wall_ns: u64,
    /// Current processor of the thread.
    pub cpu: Option<u32>,
}

impl ThreadCost {
    /// Time in which the thread neither ran nor waited for a processor.
    pub fn off_ns(&self) -> Option<u64> {
        let on = self.user_ns? + self.system_ns? + self.run_queue_wait_ns?;
        Some(self.wall_ns.saturating_sub(on))
    }
}

/// Reads the costs of the calling thread.
pub fn current_cost() -> ThreadCost {
    let usage = thread_rusage();
    ThreadCost {
        user_ns: usage.as_ref().map(|usage| timeval_nanos(usage.ru_utime)),
        system_ns: usage.as_ref().map(|usage| timeval_nanos(usage.ru_stime)),
        run_queue_wait_ns: run_queue_wait(),
        wall_ns: crate::clock::monotonic().as_nanos(),
        cpu: u32::try_from(rustix::thread::sched_getcpu()).ok(),
    }
}

/// Sets the timer slack of the calling thread to 1 ns instead of 50 µs, so that sleeps end less
/// late (prctl(2), PR_SET_TIMERSLACK).
pub fn tighten_timer_slack() {
    // SAFETY: PR_SET_TIMERSLACK takes a plain number and touches no memory.
    unsafe {
        libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64);
    }
}

fn thread_rusage() -> Option<libc::rusage> {
    let mut usage = MaybeUninit::<libc::rusage>::uninit();
    // SAFETY: getrusage writes the whole structure when it returns 0, and only then it is read.
    unsafe {
        (libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) == 0).then(|| usage.assume_init())
    }
}

fn timeval_nanos(time: libc::timeval) -> u64 {
    let sec = u64::try_from(time.tv_sec).unwrap_or(0);
    let usec = u64::try_from(time.tv_usec).unwrap_or(0);
    sec * 1_000_000_000 + usec * 1000
}

fn run_queue_wait() -> Option<u64> {
    current_run_queue_waits().map(|waits| waits.total_ns)
}

/// Waits of a thread for processors since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunQueueWaits {
    /// Time in the run queue, ready without a processor.
    pub total_ns: u64,
    /// Number of time slices.
    pub turns: u64,
}

/// Run-queue waits of the calling thread.
pub fn current_run_queue_waits() -> Option<RunQueueWaits> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let mut fields = text.split_ascii_whitespace().skip(1).map(str::parse);
    Some(RunQueueWaits { total_ns: fields.next()?.ok()?, turns: fields.next()?.ok()? })
}

/// Thread ID of the calling thread (gettid(2)), with which other threads can read its costs.
pub fn current_id() -> u32 {
    rustix::thread::gettid().as_raw_nonzero().get().unsigned_abs()
}

/// Processor time and time ready to run without a processor, in nanoseconds, of a thread of this
/// process; absent once it has ended.
pub fn schedule_of(thread: u32) -> Option<(u64, u64)> {
    schedule(&format!("/proc/self/task/{thread}/schedstat"))
}

/// True while a thread of this process runs or waits for nothing but a processor (state `R` of
/// proc_pid_stat(5)); false where it sleeps, waits for a disk, or has ended.
pub fn is_runnable(thread: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat"));
    // The name before it may have any character.
    stat.is_ok_and(|stat| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('R')))
}

fn schedule(path: &str) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(path).ok()?;
    let mut fields = text.split_ascii_whitespace().map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_costs_processor_time() {
        let before = current_cost();
        let start = crate::clock::monotonic();
        let ran = || schedule_of(current_id()).expect("this thread lives").0;
        let told = ran();
        let mut sum = 0_u64;
        // A busy machine may give this thread a core for a part of the time alone.
        while ran() < told + 20_000_000
            && crate::clock::monotonic().nanos_since(start) < 30_000_000_000
        {
            for _ in 0..100_000 {
                sum = std::hint::black_box(sum.wrapping_add(1));
            }
        }
        let after = current_cost();
        let spent = |cost: ThreadCost| {
            cost.user_ns.expect("getrusage works") + cost.system_ns.expect("getrusage works")
        };
        // Both clocks tell of the same work; getrusage's two parts are scaled to its sum.
        assert!(spent(after) >= spent(before) + 15_000_000, "{before:?} {after:?}");
        assert!(ran() >= told + 20_000_000, "20 ms of work within 30 s");
    }

    #[test]
    fn a_thread_that_waits_is_not_runnable_and_one_that_computes_is() {
        use std::sync::mpsc;
        let (id, ids) = mpsc::channel();
        let (word, words) = mpsc::channel::<()>();
        let waiting = std::thread::spawn(move || {
            let _ = id.send(current_id());
            words.recv()
        });
        let thread = ids.recv().expect("it lives");
        while is_runnable(thread) {
            std::thread::yield_now();
        }
        assert!(is_runnable(current_id()));
        drop(word);
        assert!(waiting.join().expect("no panic").is_err());
    }
}
