//! Scheduler settings of a measuring thread: timer slack (prctl(2)), CPU affinity
//! (sched_setaffinity(2)), and the allowed processors.

use std::io;
use std::num::NonZeroU64;

use rustix::process::Pid;
use rustix::thread::CpuSet;

use crate::{Error, Result};

/// Timer slack of 1 ns for the calling thread, until dropped. With the usual 50 µs a sleep of
/// 100 µs ended 73 µs late in the median, with 1 ns 22 µs late (Linux 6.18 guest).
#[derive(Debug)]
pub struct ShortSlack {
    before: Option<NonZeroU64>,
}

impl ShortSlack {
    /// Shortens the slack of the calling thread.
    pub fn shorten_slack() -> Self {
        let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        // If the kernel refuses, sleeps only end later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Self { before }
    }
}

impl Drop for ShortSlack {
    fn drop(&mut self) {
        let _ = rustix::thread::set_current_timer_slack(self.before);
    }
}

/// CPU affinity of the calling thread to one processor, until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: Option<CpuSet>,
}

impl Pinned {
    /// Pins the calling thread to its current processor, unless the kernel refuses.
    pub fn on_current_cpu() -> Self {
        let before = rustix::thread::sched_getaffinity(None).ok();
        Self::pin_remembering(before, rustix::thread::sched_getcpu())
    }

    /// Moves the calling thread to processor `cpu` and pins it there, unless the kernel refuses.
    pub fn on_cpu(cpu: u32) -> Self {
        let before = rustix::thread::sched_getaffinity(None).ok();
        let cpu = usize::try_from(cpu).unwrap_or(usize::MAX);
        if cpu >= CpuSet::MAX_CPU {
            return Self { before: None };
        }
        Self::pin_remembering(before, cpu)
    }

    /// True unless the kernel refused.
    pub const fn is_pinned(&self) -> bool {
        self.before.is_some()
    }

    fn pin_remembering(before: Option<CpuSet>, cpu: usize) -> Self {
        let mut one = CpuSet::new();
        one.set(cpu);
        let pinned = rustix::thread::sched_setaffinity(None, &one).is_ok();
        Self { before: before.filter(|_| pinned) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            let _ = rustix::thread::sched_setaffinity(None, before);
        }
    }
}

/// Pins another thread to a processor; also a NAPI thread of the kernel.
/// # Errors
/// Without CAP_SYS_NICE for a thread of another user, or when thread or processor do not exist.
pub fn pin_thread(thread: u32, cpu: u32) -> Result<()> {
    let failed = |source: io::Error| Error::new("start a thread on another CPU", thread, source);
    let impossible = || failed(io::ErrorKind::InvalidInput.into());
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw).ok_or_else(impossible)?;
    let cpu = usize::try_from(cpu).ok().filter(|cpu| *cpu < CpuSet::MAX_CPU);
    let mut one = CpuSet::new();
    one.set(cpu.ok_or_else(impossible)?);
    rustix::thread::sched_setaffinity(Some(pid), &one).map_err(|errno| failed(errno.into()))
}

/// Processors that another thread may use; empty where they cannot be read.
pub fn cpus_of(thread: u32) -> Vec<u32> {
    let pid = i32::try_from(thread).ok().and_then(Pid::from_raw);
    let set = pid.and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok());
    set.map_or_else(Vec::new, |set| in_order(&set))
}

/// Processors that the calling thread may use, in order; empty where they cannot be read.
pub fn allowed_cpus() -> Vec<u32> {
    rustix::thread::sched_getaffinity(None).map_or_else(|_| Vec::new(), |set| in_order(&set))
}

fn in_order(set: &CpuSet) -> Vec<u32> {
    let all = (0..CpuSet::MAX_CPU).filter(|cpu| set.is_set(*cpu));
    all.filter_map(|cpu| u32::try_from(cpu).ok()).collect()
}

/// One processor of each core among those that the calling thread may use
/// (topology/thread_siblings_list of sysfs).
pub fn allowed_cores() -> Vec<u32> {
    let mut taken: Vec<u32> = Vec::new();
    let mut cores = Vec::new();
    for cpu in allowed_cpus() {
        if taken.contains(&cpu) {
            continue;
        }
        cores.push(cpu);
        taken.extend(siblings(cpu));
    }
    cores
}

fn siblings(cpu: u32) -> Vec<u32> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    std::fs::read_to_string(path).map_or_else(|_| vec![cpu], |text| cpu_list(text.trim()))
}

/// Parses a list in the kernel's format: `0,4`, `0-3,8`. Invalid parts are skipped.
fn cpu_list(text: &str) -> Vec<u32> {
    let ranges = text.split(',').filter_map(|part| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse::<u32>().ok()?..=last.parse::<u32>().ok()?)
    });
    ranges.flatten().collect()
}

/// Current processor of the calling thread; takes 25 ns, without a system call.
#[inline]
pub fn current_cpu() -> Option<u32> {
    u32::try_from(rustix::thread::sched_getcpu()).ok()
}

/// Number of processors that the calling thread may use; 1 where it cannot be read.
pub fn cpus_allowed() -> u32 {
    rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count().max(1))
}

/// Yields the processor to other ready threads (sched_yield(2)).
pub fn give_way() {
    rustix::thread::sched_yield();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_processors_is_read_as_the_kernel_writes_it() {
        assert_eq!(cpu_list("0-2,8"), [0, 1, 2, 8]);
        assert_eq!(cpu_list("5"), [5]);
        assert_eq!(cpu_list(""), Vec::<u32>::new());
    }

    #[test]
    fn cores_are_among_the_processors_and_this_thread_is_on_one_of_those() {
        let (cpus, cores) = (allowed_cpus(), allowed_cores());
        assert!(!cores.is_empty() && cores.iter().all(|core| cpus.contains(core)));
        assert!(cpus.contains(&current_cpu().expect("Linux tells")));
    }

    #[test]
    fn another_thread_is_moved_and_one_that_is_not_there_is_an_error() {
        let (id, wait) = std::sync::mpsc::channel();
        let (go, done) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            id.send(crate::thread::current_id()).expect("the test listens");
            let _ = done.recv();
        });
        let other = wait.recv().expect("the thread tells");
        let last = *allowed_cpus().last().expect("one at least");
        pin_thread(other, last).expect("own threads may be moved");
        assert_eq!(cpus_of(other), [last]);
        drop(go);
        thread.join().expect("the thread ends well");
        assert!(pin_thread(u32::MAX, 0).is_err());
    }

    #[test]
    fn what_was_changed_is_put_back() {
        let slack = rustix::thread::current_timer_slack().expect("Linux tells");
        let cpus = cpus_allowed();
        {
            let _slack = ShortSlack::shorten_slack();
            let _pinned = Pinned::on_current_cpu();
            assert_eq!(cpus_allowed(), 1);
        }
        assert_eq!(cpus_allowed(), cpus);
        assert_eq!(rustix::thread::current_timer_slack().expect("Linux tells"), slack);
    }
}
