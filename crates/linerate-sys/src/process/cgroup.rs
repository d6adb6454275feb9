//! Quotas of CPU time for single threads, by control groups of version 1 (cgroups(7); the kernel's
//! Documentation/scheduler/sched-bwc.rst).
//!
//! Left out: version 2, where threads of one process can be in different groups only below a
//! threaded group.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{Error, Result, thread};

/// Mount point of the cpu controller.
const CONTROLLER: &str = "/sys/fs/cgroup/cpu";
/// Shortest quota that the kernel accepts, in microseconds.
const QUOTA_US_MIN: u64 = 1000;
/// Period of a group's quota, in microseconds.
const PERIOD_US: u64 = 100_000;

/// Control group whose threads together may use a share of one CPU; removed when dropped.
#[derive(Debug)]
pub struct CpuQuota {
    directory: PathBuf,
}

impl CpuQuota {
    /// A group without threads that may use `share` of one CPU, at least one hundredth.
    /// # Errors
    /// Without control groups of version 1, or without permission to make one.
    pub fn new(share: f64) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("linerate-{}-{number}", std::process::id());
        let directory = Path::new(CONTROLLER).join(name);
        let failed = |source| Error::new("make control group", directory.display(), source);
        fs::create_dir(&directory).map_err(failed)?;
        let group = Self { directory: directory.clone() };
        let quota_us = ((share * PERIOD_US as f64) as u64).max(QUOTA_US_MIN);
        group.write("cpu.cfs_period_us", PERIOD_US).map_err(failed)?;
        group.write("cpu.cfs_quota_us", quota_us).map_err(failed)?;
        Ok(group)
    }

    /// Moves the calling thread into the group; threads that it starts inherit it.
    /// # Errors
    /// When the kernel refuses.
    pub fn enter_group(&self) -> Result<()> {
        let entered = self.write("tasks", u64::from(thread::current_id()));
        entered.map_err(|source| Error::new("enter", self.directory.display(), source))
    }

    fn write(&self, file: &str, value: u64) -> io::Result<()> {
        fs::write(self.directory.join(file), value.to_string())
    }
}

impl Drop for CpuQuota {
    fn drop(&mut self) {
        // Only a group without threads can be removed, so they are moved to the root group.
        let threads = fs::read_to_string(self.directory.join("tasks")).unwrap_or_default();
        for thread in threads.lines() {
            let _ = fs::write(Path::new(CONTROLLER).join("tasks"), thread);
        }
        let _ = fs::remove_dir(&self.directory);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_with_a_quota_gets_little_of_the_cpu() {
        let Ok(group) = CpuQuota::new(0.05) else { return };
        let work = || {
            group.enter_group().expect("a group of its own");
            let begin = crate::clock::monotonic();
            while crate::clock::monotonic().nanos_since(begin) < 400_000_000 {
                std::hint::spin_loop();
            }
            thread::current_cost()
        };
        let cost = std::thread::scope(|scope| scope.spawn(work).join().expect("it spins"));
        // 5 ms in each period of 100 ms, and at most two more periods begun: 30 ms of 400.
        let used_ns = cost.user_ns.unwrap_or(0) + cost.system_ns.unwrap_or(0);
        assert!(used_ns < 60_000_000, "{used_ns}");
    }
}
