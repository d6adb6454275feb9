//! Where a data thread ran: which processors it was seen on, and the one it was kept on.

use linerate_sys::sched::{Pinned, current_cpu};

/// Processors that are told; a thread that wanders over more is told by these.
const SEEN_MAX: usize = 16;

/// Follows the calling thread.
#[derive(Debug)]
pub(super) struct CpuTrace {
    last: Option<u32>,
    seen: Vec<u32>,
    pinned: Option<(u32, Pinned)>,
}

impl CpuTrace {
    /// Of the calling thread, kept on `cpu` until dropped where the kernel lets it.
    pub(super) fn begin(cpu: Option<u32>) -> Self {
        let pinned = cpu.map(|cpu| (cpu, Pinned::to(cpu))).filter(|(_, pin)| pin.is_pinned());
        let mut cpu_trace = Self { last: None, seen: Vec::new(), pinned };
        cpu_trace.step();
        cpu_trace
    }

    /// Looks where the thread is now: some 20 ns.
    #[inline]
    pub(super) fn step(&mut self) {
        let now = current_cpu();
        if now != self.last {
            self.note(now);
        }
    }

    #[cold]
    fn note(&mut self, now: Option<u32>) {
        self.last = now;
        if let Some(cpu) = now
            && self.seen.len() < SEEN_MAX
            && !self.seen.contains(&cpu)
        {
            self.seen.push(cpu);
        }
    }

    /// The processors that it was seen on, and the one it was kept on.
    pub(super) fn end(mut self) -> (Vec<u32>, Option<u32>) {
        self.step();
        (self.seen, self.pinned.map(|(cpu, _)| cpu))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_is_told_once_in_the_order_of_its_first_time() {
        let mut cpu_trace = CpuTrace { last: None, seen: Vec::new(), pinned: None };
        for cpu in [3, 1, 3, 1, 0] {
            cpu_trace.note(Some(cpu));
        }
        cpu_trace.note(None);
        assert_eq!(cpu_trace.seen, [3, 1, 0]);
        (10..40).for_each(|cpu| cpu_trace.note(Some(cpu)));
        assert_eq!(cpu_trace.seen.len(), SEEN_MAX);
    }

    #[test]
    fn a_thread_that_is_kept_on_a_processor_is_seen_there_alone() {
        let cpu = linerate_sys::sched::cpus()[0];
        let mut cpu_trace = CpuTrace::begin(Some(cpu));
        (0..100).for_each(|_| cpu_trace.step());
        assert_eq!(cpu_trace.end(), (vec![cpu], Some(cpu)));
        let (seen, pinned) = CpuTrace::begin(Some(u32::MAX)).end();
        assert_eq!((seen.len(), pinned), (1, None), "there is no such processor");
    }
}
