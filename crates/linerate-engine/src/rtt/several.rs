//! Several targets side by side: a ping each on a thread of its own. They begin evenly spread over
//! one interval, so that their probes go in turn and none waits for another's answer.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use linerate_core::record::{Event, PingPlan, Record, Tool};
use linerate_sys::clock;
use linerate_sys::stop::Stop;

use super::{clock_check, measured};
use crate::context::Context;

/// Pings the hosts of all plans at once and returns a record of each, in the order of the plans;
/// `watch` gets each event with the number of its plan, from the calling thread.
pub fn run_several(
    plans: &[PingPlan],
    tool: &Tool,
    stop: &Stop,
    watch: &mut dyn FnMut(usize, &Event),
) -> Vec<Record> {
    let calibration = clock_check::quick_calibration(stop);
    let (events, heard) = mpsc::channel();
    thread::scope(|scope| {
        let begin = |index: usize, plan: &PingPlan| {
            let (events, calibration, plan) = (events.clone(), calibration.clone(), plan.clone());
            let after = plan.interval_ns / plans.len() as u64 * index as u64;
            scope.spawn(move || {
                clock::sleep(Duration::from_nanos(after));
                // Whoever listens does so until the last thread ends.
                let mut watch = |event: &Event| drop(events.send((index, event.clone())));
                let mut context =
                    Context { tool: tool.clone(), stop: stop.clone(), watch: &mut watch };
                measured(&plan, None, Some(calibration), &mut context)
            })
        };
        let plans = plans.iter().enumerate();
        let threads: Vec<_> = plans.map(|(index, plan)| begin(index, plan)).collect();
        drop(events);
        heard.iter().for_each(|(index, event)| watch(index, &event));
        let ended = threads.into_iter().map(thread::ScopedJoinHandle::join);
        ended
            .map(|result| result.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}
