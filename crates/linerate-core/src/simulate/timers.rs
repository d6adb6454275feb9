//! When to look at which flow again: a heap with one entry a flow at the most.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::time::MonoTime;

/// Timers of flows. An entry may be early, as timers mostly move away before they run out; the
/// flow then sets the next.
#[derive(Debug)]
pub(super) struct Timers {
    heap: BinaryHeap<Reverse<(MonoTime, usize)>>,
    /// The entry of each flow.
    set: Vec<Option<MonoTime>>,
}

impl Timers {
    pub(super) fn new(flows: usize) -> Self {
        Self { heap: BinaryHeap::with_capacity(flows), set: vec![None; flows] }
    }

    /// The flow is looked at again at `due` at the latest.
    pub(super) fn set_due_time(&mut self, flow: usize, due: MonoTime) {
        if self.set[flow].is_none_or(|set| due < set) {
            self.set[flow] = Some(due);
            self.heap.push(Reverse((due, flow)));
        }
    }

    pub(super) fn next(&self) -> Option<MonoTime> {
        self.heap.peek().map(|Reverse((at, _))| *at)
    }

    /// The next flow and when.
    pub(super) fn pop(&mut self) -> Option<(MonoTime, usize)> {
        let Reverse((at, flow)) = self.heap.pop()?;
        // A later entry was overtaken by an earlier one, which has run already.
        if self.set[flow] == Some(at) {
            self.set[flow] = None;
        }
        Some((at, flow))
    }
}
