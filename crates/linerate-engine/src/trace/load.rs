//! The second series of rounds of a trace, while a TCP test fills the path.

use std::time::Duration;

use linerate_core::record::{Failure, Finish, Record, TcpPlan, TracePhase};
use linerate_sys::clock;

use super::network::Network;
use super::survey::TraceSurvey;
use crate::context::Context;
use crate::throughput;

/// Slow start is over by then, and the queue stands.
const WARM_UP: Duration = Duration::from_secs(1);

/// Sends rounds from a second after the load's start to its end, and keeps its record as a part.
/// # Errors
/// Why there was no load; the path at rest is known all the same.
pub(super) fn rounds<N: Network>(
    survey: &mut TraceSurvey<'_, N>,
    plan: &TcpPlan,
    context: &Context<'_>,
    record: &mut Record,
) -> Result<(), Failure> {
    let span_ns = match plan.test.finish {
        Finish::TimeNs(ns) => ns,
        Finish::Bytes(_) | Finish::Buffers(_) => {
            u64::from(survey.plan.count) * survey.plan.interval_ns
        }
    };
    let most = (span_ns / survey.plan.interval_ns).min(100_000) as u32;
    let (tool, stop) = (context.tool.clone(), context.stop.clone());
    let mut part = std::thread::scope(|scope| {
        let load = scope.spawn(move || {
            let mut context = Context { tool, stop, watch: &mut |_| {} };
            throughput::run_tcp(plan, &mut context)
        });
        clock::sleep(WARM_UP);
        let sent = survey.rounds(most, TracePhase::Loaded, || load.is_finished());
        let part = load.join().expect("the engine returns a record");
        sent.map(|()| part)
    })?;
    part.series.clear();
    let failure = part.failure.clone();
    record.parts.push(part);
    failure.map_or(Ok(()), Err)
}
