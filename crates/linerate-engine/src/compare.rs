//! Measures candidates in turn, so that what they differ by shows and what changes meanwhile does
//! not; what the result says is [`linerate_core::comparison`]'s.

use std::sync::Arc;

use linerate_core::comparison::{TooFew, candidate_order, rounds_of};
use linerate_core::record::{
    Caveat, CaveatCode, ComparePlan, ComparisonCandidate, Failure, Fault, PingTransport, Plan,
    Record, RecordStatus, Tool,
};
use linerate_core::study::Topology;
use linerate_sys::clock::{monotonic, record_id, wall_time};
use linerate_sys::stop::Stop;

use crate::context::Context;
use crate::rtt;
use crate::study::{Serve, StudySite};
use crate::throughput;

/// The laboratories of a comparison; none where all is measured over the network of this host.
#[derive(Default)]
pub struct Sites(Vec<(Topology, StudySite)>);

impl Sites {
    /// Builds those that the candidates name, each once.
    /// # Errors
    /// When one cannot be built, or its server does not start.
    pub fn build_from_plan(plan: &ComparePlan, serve: &Arc<Serve>) -> Result<Self, Failure> {
        let mut sites = Self::default();
        for candidate in &plan.candidates {
            let Some(topology) = candidate.topology.as_deref() else { continue };
            if sites.find_site(candidate).is_some() {
                continue;
            }
            let serve = (!plan.candidates.iter().all(kernel_answers)).then_some(serve);
            sites.0.push((topology.clone(), StudySite::build_topology(topology, serve)?));
        }
        Ok(sites)
    }

    fn find_site(&self, candidate: &ComparisonCandidate) -> Option<&StudySite> {
        let topology = candidate.topology.as_deref()?;
        self.0.iter().find(|(built, _)| built == topology).map(|(_, site)| site)
    }
}

/// ICMP needs no server.
fn kernel_answers(candidate: &ComparisonCandidate) -> bool {
    matches!(&candidate.plan, Plan::Ping(plan) if plan.transport == PingTransport::Icmp)
}

/// Rounds that this machine may spoil before a comparison ends.
const SPOILT_MAX: usize = 3;

/// Measures every candidate once a round, the first one twice, and keeps whole rounds. `seen` is
/// told of each that ended well. A round that this machine spoilt is measured again, a few times in
/// all; any other failure, which the next round would share, ends the comparison.
pub fn run(
    plan: &ComparePlan,
    sites: &Sites,
    context: &mut Context<'_>,
    seen: &mut dyn FnMut(u32),
) -> Record {
    let begin = monotonic();
    let plan_of_all = Plan::Compare(plan.clone());
    let mut record = Record::from_plan(record_id(), context.tool.clone(), plan_of_all, wall_time());
    let mut measure = |candidate: &ComparisonCandidate| {
        measure_candidate(candidate, sites.find_site(candidate), context)
    };
    let rounds = rounds(plan, &context.stop, &mut measure, seen);
    (record.parts, record.failure) = (rounds.parts, rounds.failure);
    finish(&mut record, context);
    record.caveats.extend(spoilt_rounds(&rounds.spoilt));
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// The comparisons of all rounds so far.
#[derive(Default)]
struct ComparisonRounds {
    /// The parts of whole rounds.
    parts: Vec<Record>,
    /// The failure that ended the rounds early; none where all were made.
    failure: Option<Failure>,
    /// Why rounds were measured again.
    spoilt: Vec<String>,
}

fn rounds(
    plan: &ComparePlan,
    stop: &Stop,
    measure: &mut dyn FnMut(&ComparisonCandidate) -> Record,
    seen: &mut dyn FnMut(u32),
) -> ComparisonRounds {
    let mut again: Vec<&ComparisonCandidate> = plan.candidates.iter().collect();
    again.extend(again.first().copied());
    let (mut rounds, mut round) = (ComparisonRounds::default(), 0);
    while round < plan.rounds {
        let mut parts: Vec<Option<Record>> = again.iter().map(|_| None).collect();
        for index in candidate_order(plan.seed, round, again.len()) {
            if stop.is_requested() {
                break;
            }
            parts[index] = Some(measure(again[index]));
        }
        let failed = parts.iter().flatten().find_map(|part| part.failure.clone());
        let interrupted =
            parts.iter().flatten().any(|record| record.status == RecordStatus::Interrupted);
        let spoilt = failed.as_ref().filter(|failure| failure.fault == Fault::Instrument);
        if let (Some(why), false) = (spoilt, interrupted || rounds.spoilt.len() >= SPOILT_MAX) {
            rounds.spoilt.push(why.to_string());
            continue;
        }
        if failed.is_some() || interrupted || stop.is_requested() {
            rounds.failure = failed;
            break;
        }
        rounds.parts.extend(parts.into_iter().flatten());
        round += 1;
        seen(round);
    }
    rounds
}

/// Says that rounds were measured again, where some were.
fn spoilt_rounds(spoilt: &[String]) -> Option<Caveat> {
    let first = spoilt.first()?;
    let detail = format!("{} of the rounds measured again; the first: {first}", spoilt.len());
    Some(Caveat::new(CaveatCode::TesterDisturbed, detail, "leave the emulator a CPU of its own"))
}

/// A comparison of results that were measured earlier, each by itself: `plan` names them. Its
/// parts are blocks of their samples.
/// # Errors
/// When one of them has too few samples.
pub fn of_stored(tool: Tool, mut plan: ComparePlan, records: &[Record]) -> Result<Record, Failure> {
    let parts = rounds_of(records).map_err(|few| too_few(&few, &plan, records))?;
    plan.rounds = (parts.len() / (records.len() + 1)) as u32;
    let mut record = Record::from_plan(record_id(), tool, Plan::Compare(plan), wall_time());
    record.ends = records.first().map(|first| first.ends.clone()).unwrap_or_default();
    record.parts = parts;
    Ok(record)
}

fn too_few(few: &TooFew, plan: &ComparePlan, records: &[Record]) -> Failure {
    let TooFew { index, metric, has, needs } = few;
    let what = metric.table_row().title;
    let reason = format!("it has {has} samples of {what} in order, and {needs} are needed");
    let advice = match records.get(*index).map(|record| &record.plan) {
        Some(Plan::Ping(_)) => "measure again with --samples and more probes",
        _ => "measure again for longer, or with a shorter -i",
    };
    let name = plan.candidates.get(*index).map_or("", |candidate| &*candidate.name);
    Failure::new(Fault::Usage, "compare", name, reason).advise(advice)
}

/// Makes one measurement and drops its samples: a comparison rests on the summaries of its parts,
/// and has some fifty of them.
fn measure_candidate(
    candidate: &ComparisonCandidate,
    site: Option<&StudySite>,
    context: &Context<'_>,
) -> Record {
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
        let record = Record::from_plan(record_id(), tool, candidate.plan.clone(), wall_time());
        Record { status: RecordStatus::Error, failure: Some(failure), ..record }
    });
    part.series.clear();
    part.distributions.clear();
    part
}

fn measured(plan: &Plan, context: &mut Context<'_>) -> Record {
    match plan {
        Plan::Ping(plan) => rtt::run_uncalibrated(plan, context),
        Plan::Tcp(plan) => throughput::run_tcp(plan, context),
        Plan::Udp(plan) => throughput::run_udp(plan, context),
        Plan::Simulate(_) | Plan::Bench(_) | Plan::Test(_) | Plan::Compare(_) | Plan::Trace(_) => {
            let tool = context.tool.clone();
            let mut record = Record::from_plan(record_id(), tool, plan.clone(), wall_time());
            let reason = format!("a {} cannot be one of them", plan.kind_name());
            record.failure = Some(Failure::new(Fault::Usage, "compare", "candidates", reason));
            record
        }
    }
}

fn finish(record: &mut Record, context: &Context<'_>) {
    record.status = match (&record.failure, record.parts.is_empty()) {
        _ if context.stop.is_requested() => RecordStatus::Interrupted,
        (None, _) => RecordStatus::Ok,
        (Some(_), true) => RecordStatus::Error,
        (Some(_), false) => RecordStatus::Partial,
    };
    let pings = record.parts.iter().any(|part| matches!(part.plan, Plan::Ping(_)));
    let both = record.parts.iter().find(|part| part.ends.len() > 1);
    let ends = both.or_else(|| record.parts.first()).map(|part| part.ends.clone());
    record.ends = ends.unwrap_or_default();
    if let (Some(end), true) = (record.ends.first_mut(), pings) {
        end.calibration = Some(rtt::clock_check::quick_calibration(&context.stop));
    }
    record.caveats = record.caveats_of_parts();
}

#[cfg(test)]
mod tests {
    use linerate_core::record::PingPlan;

    use super::*;

    /// Two rounds of one candidate, twice each, whose measurements with these numbers fail; the
    /// parts kept, the failure, and how often a round was measured again.
    fn compared(fails: &[u32], fault: Fault) -> (usize, Option<Fault>, usize) {
        let plan = Plan::Ping(PingPlan::default());
        let candidate = ComparisonCandidate {
            name: "a".to_owned(),
            plan: plan.clone(),
            topology: None,
            result: None,
        };
        let of_all = ComparePlan { candidates: vec![candidate], rounds: 2, seed: 1 };
        let mut count = 0;
        let mut measure = |_: &ComparisonCandidate| {
            let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
            let mut record = Record::from_plan(record_id(), tool, plan.clone(), wall_time());
            let failed = fails.contains(&count);
            record.failure = failed.then(|| Failure::new(fault, "emulate path", "p", "it stood"));
            count += 1;
            record
        };
        let rounds = rounds(&of_all, &Stop::new(), &mut measure, &mut |_| {});
        assert_eq!(spoilt_rounds(&rounds.spoilt).is_some(), !rounds.spoilt.is_empty());
        (rounds.parts.len(), rounds.failure.map(|failure| failure.fault), rounds.spoilt.len())
    }

    #[test]
    fn a_round_that_this_machine_spoilt_is_measured_again_and_others_end_the_comparison() {
        assert_eq!(compared(&[], Fault::Instrument), (4, None, 0));
        assert_eq!(compared(&[1, 4], Fault::Instrument), (4, None, 2));
        assert_eq!(compared(&[2], Fault::Unreachable), (2, Some(Fault::Unreachable), 0));
        // The fourth time is one too many.
        let all: Vec<u32> = (0..8).collect();
        assert_eq!(compared(&all, Fault::Instrument), (0, Some(Fault::Instrument), 3));
    }
}
