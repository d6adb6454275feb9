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
    /// Begins the trace of the calling thread, kept on `cpu` until dropped where the kernel lets
    /// it.
    pub(super) fn begin_on_cpu(cpu: Option<u32>) -> Self {
        let pinned = cpu.map(|cpu| (cpu, Pinned::on_cpu(cpu))).filter(|(_, pin)| pin.is_pinned());
        let mut cpu_trace = Self { last: None, seen: Vec::new(), pinned };
        cpu_trace.note_current_cpu();
        cpu_trace
    }

    /// Looks where the thread is now: some 20 ns.
    #[inline]
    pub(super) fn note_current_cpu(&mut self) {
        let now = current_cpu();
        if now != self.last {
            self.record_cpu_change(now);
        }
    }

    #[cold]
    fn record_cpu_change(&mut self, now: Option<u32>) {
        self.last = now;
        if let Some(cpu) = now
            && self.seen.len() < SEEN_MAX
            && !self.seen.contains(&cpu)
        {
            self.seen.push(cpu);
        }
    }

    /// The processors that it was seen on, and the one it was kept on.
    pub(super) fn into_cpus(mut self) -> (Vec<u32>, Option<u32>) {
        self.note_current_cpu();
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
            cpu_trace.record_cpu_change(Some(cpu));
        }
        cpu_trace.record_cpu_change(None);
        assert_eq!(cpu_trace.seen, [3, 1, 0]);
        (10..40).for_each(|cpu| cpu_trace.record_cpu_change(Some(cpu)));
        assert_eq!(cpu_trace.seen.len(), SEEN_MAX);
    }

    #[test]
    fn a_thread_that_is_kept_on_a_processor_is_seen_there_alone() {
        let cpu = linerate_sys::sched::allowed_cpus()[0];
        let mut cpu_trace = CpuTrace::begin_on_cpu(Some(cpu));
        (0..100).for_each(|_| cpu_trace.note_current_cpu());
        assert_eq!(cpu_trace.into_cpus(), (vec![cpu], Some(cpu)));
        let (seen, pinned) = CpuTrace::begin_on_cpu(Some(u32::MAX)).into_cpus();
        assert_eq!((seen.len(), pinned), (1, None), "there is no such processor");
    }
}
