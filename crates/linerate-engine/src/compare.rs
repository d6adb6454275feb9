//! Measures candidates in turn, so that what they differ by shows and what changes meanwhile does
//! not; what the result says is [`linerate_core::comparison`]'s.

use linerate_core::comparison::order;
use linerate_core::record::{ComparePlan, Failure, Fault, Plan, Record, Status};
use linerate_sys::clock::{monotonic, record_id, wall};

use crate::context::Context;
use crate::flow::{tcp, udp};
use crate::rtt;

/// Measures every candidate once a round, the first one twice, and keeps whole rounds. `seen` is
/// told of each that ended well. Ends at the first failure, which the next round would share.
pub fn run(plan: &ComparePlan, context: &mut Context<'_>, seen: &mut dyn FnMut(u32)) -> Record {
    let begin = monotonic();
    let plan_of_all = Plan::Compare(plan.clone());
    let mut record = Record::begin(record_id(), context.tool.clone(), plan_of_all, wall());
    let mut again: Vec<&Plan> = plan.candidates.iter().map(|candidate| &candidate.plan).collect();
    again.extend(again.first().copied());
    for round in 0..plan.rounds {
        let mut parts: Vec<Option<Record>> = again.iter().map(|_| None).collect();
        for index in order(plan.seed, round, again.len()) {
            if context.stop.asked() {
                break;
            }
            parts[index] = Some(part(again[index], context));
        }
        let failed = parts.iter().flatten().find_map(|part| part.failure.clone());
        let interrupted = parts.iter().flatten().any(|it| it.status == Status::Interrupted);
        if failed.is_some() || interrupted || context.stop.asked() {
            record.failure = failed;
            break;
        }
        record.parts.extend(parts.into_iter().flatten());
        seen(round + 1);
    }
    finish(&mut record, context);
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// One measurement, without the samples: a comparison rests on the summaries of its parts, and has
/// some fifty of them.
fn part(plan: &Plan, context: &mut Context<'_>) -> Record {
    let mut watch = |_: &linerate_core::record::Event| {};
    let mut quiet =
        Context { tool: context.tool.clone(), stop: context.stop.clone(), watch: &mut watch };
    let mut part = match plan {
        Plan::Ping(plan) => rtt::run_uncalibrated(plan, &mut quiet),
        Plan::Tcp(plan) => tcp::run(plan, &mut quiet),
        Plan::Udp(plan) => udp::run(plan, &mut quiet),
        Plan::Simulate(_) | Plan::Bench(_) | Plan::Test(_) | Plan::Compare(_) | Plan::Trace(_) => {
            let mut record = Record::begin(record_id(), quiet.tool, plan.clone(), wall());
            let reason = format!("a {} cannot be one of them", plan.kind());
            record.failure = Some(Failure::new(Fault::Usage, "compare", "candidates", reason));
            record
        }
    };
    part.series.clear();
    part.distributions.clear();
    part
}

fn finish(record: &mut Record, context: &Context<'_>) {
    record.status = match (&record.failure, record.parts.is_empty()) {
        _ if context.stop.asked() => Status::Interrupted,
        (None, _) => Status::Ok,
        (Some(_), true) => Status::Error,
        (Some(_), false) => Status::Partial,
    };
    let pings = record.parts.iter().any(|part| matches!(part.plan, Plan::Ping(_)));
    let both = record.parts.iter().find(|part| part.ends.len() > 1);
    let ends = both.or_else(|| record.parts.first()).map(|part| part.ends.clone());
    record.ends = ends.unwrap_or_default();
    if let (Some(end), true) = (record.ends.first_mut(), pings) {
        end.calibration = Some(rtt::clock_check::quick(&context.stop));
    }
    record.caveats = record.caveats_of_parts();
}
