//! Measures candidates in turn, so that what they differ by shows and what changes meanwhile does
//! not; what the result says is [`linerate_core::comparison`]'s.

use std::sync::Arc;

use linerate_core::comparison::{TooFew, order, rounds_of};
use linerate_core::record::{
    Candidate, ComparePlan, Failure, Fault, PingTransport, Plan, Record, Status, Tool,
};
use linerate_core::study::Topology;
use linerate_sys::clock::{monotonic, record_id, wall};

use crate::context::Context;
use crate::flow::{tcp, udp};
use crate::rtt;
use crate::study::{Serve, Site};

/// The laboratories of a comparison; none where all is measured over the network of this host.
#[derive(Default)]
pub struct Sites(Vec<(Topology, Site)>);

impl Sites {
    /// Builds those that the candidates name, each once.
    /// # Errors
    /// When one cannot be built, or its server does not start.
    pub fn build(plan: &ComparePlan, serve: &Arc<Serve>) -> Result<Self, Failure> {
        let mut sites = Self::default();
        for candidate in &plan.candidates {
            let Some(topology) = candidate.topology.as_deref() else { continue };
            if sites.of(candidate).is_some() {
                continue;
            }
            let serve = (!plan.candidates.iter().all(kernel_answers)).then_some(serve);
            sites.0.push((topology.clone(), Site::build(topology, serve)?));
        }
        Ok(sites)
    }

    fn of(&self, candidate: &Candidate) -> Option<&Site> {
        let topology = candidate.topology.as_deref()?;
        self.0.iter().find(|(built, _)| built == topology).map(|(_, site)| site)
    }
}

/// ICMP needs no server.
fn kernel_answers(candidate: &Candidate) -> bool {
    matches!(&candidate.plan, Plan::Ping(plan) if plan.transport == PingTransport::Icmp)
}

/// Measures every candidate once a round, the first one twice, and keeps whole rounds. `seen` is
/// told of each that ended well. Ends at the first failure, which the next round would share.
pub fn run(
    plan: &ComparePlan,
    sites: &Sites,
    context: &mut Context<'_>,
    seen: &mut dyn FnMut(u32),
) -> Record {
    let begin = monotonic();
    let plan_of_all = Plan::Compare(plan.clone());
    let mut record = Record::begin(record_id(), context.tool.clone(), plan_of_all, wall());
    let mut again: Vec<&Candidate> = plan.candidates.iter().collect();
    again.extend(again.first().copied());
    for round in 0..plan.rounds {
        let mut parts: Vec<Option<Record>> = again.iter().map(|_| None).collect();
        for index in order(plan.seed, round, again.len()) {
            if context.stop.asked() {
                break;
            }
            parts[index] = Some(part(again[index], sites.of(again[index]), context));
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

/// A comparison of results that were measured earlier, each by itself: `plan` names them. Its
/// parts are blocks of their samples.
/// # Errors
/// When one of them has too few samples.
pub fn of_stored(tool: Tool, mut plan: ComparePlan, records: &[Record]) -> Result<Record, Failure> {
    let parts = rounds_of(records).map_err(|few| too_few(&few, &plan, records))?;
    plan.rounds = (parts.len() / (records.len() + 1)) as u32;
    let mut record = Record::begin(record_id(), tool, Plan::Compare(plan), wall());
    record.ends = records.first().map(|first| first.ends.clone()).unwrap_or_default();
    record.parts = parts;
    Ok(record)
}

fn too_few(few: &TooFew, plan: &ComparePlan, records: &[Record]) -> Failure {
    let TooFew { index, metric, has, needs } = few;
    let what = metric.row().title;
    let reason = format!("it has {has} samples of {what} in order, and {needs} are needed");
    let advice = match records.get(*index).map(|record| &record.plan) {
        Some(Plan::Ping(_)) => "measure again with --samples and more probes",
        _ => "measure again for longer, or with a shorter -i",
    };
    let name = plan.candidates.get(*index).map_or("", |candidate| &*candidate.name);
    Failure::new(Fault::Usage, "compare", name, reason).advise(advice)
}

/// One measurement, without the samples: a comparison rests on the summaries of its parts, and has
/// some fifty of them.
fn part(candidate: &Candidate, site: Option<&Site>, context: &Context<'_>) -> Record {
    let (tool, stop) = (context.tool.clone(), context.stop.clone());
    let make = |plan: Plan| {
        let mut watch = |_: &linerate_core::record::Event| {};
        measured(&plan, &mut Context { tool, stop, watch: &mut watch })
    };
    let record = match site {
        Some(site) => site.measure(&candidate.plan, make),
        None => Ok(make(candidate.plan.clone())),
    };
    let mut part = record.unwrap_or_else(|failure| {
        let tool = context.tool.clone();
        let record = Record::begin(record_id(), tool, candidate.plan.clone(), wall());
        Record { status: Status::Error, failure: Some(failure), ..record }
    });
    part.series.clear();
    part.distributions.clear();
    part
}

fn measured(plan: &Plan, context: &mut Context<'_>) -> Record {
    match plan {
        Plan::Ping(plan) => rtt::run_uncalibrated(plan, context),
        Plan::Tcp(plan) => tcp::run(plan, context),
        Plan::Udp(plan) => udp::run(plan, context),
        Plan::Simulate(_) | Plan::Bench(_) | Plan::Test(_) | Plan::Compare(_) | Plan::Trace(_) => {
            let tool = context.tool.clone();
            let mut record = Record::begin(record_id(), tool, plan.clone(), wall());
            let reason = format!("a {} cannot be one of them", plan.kind());
            record.failure = Some(Failure::new(Fault::Usage, "compare", "candidates", reason));
            record
        }
    }
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
