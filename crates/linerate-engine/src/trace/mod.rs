//! The way to a host, hop by hop: who is on it, where packets are lost, where the queue stands.
//!
//! `network` is what probes go through, `live` the real one; `prober` gives each probe its answer;
//! `survey` and `sizes` are the parts of a trace, `back` the way from the target. What they found
//! is judged by [`linerate_core::trace`].

mod back;
mod live;
mod load;
mod network;
mod prober;
mod sizes;
mod survey;
#[cfg(test)]
mod tests;

use std::net::{IpAddr, SocketAddr};

use linerate_core::record::{
    Caveat, CaveatCode, Distribution, Event, Failure, Fault, HopSample, MeasurementEnd, MetricId,
    Plan, Record, RecordStatus, Stat, Summary, TracePhase, TracePlan, TraceProbes, TraceResult,
};
use linerate_core::stats::{Z_95, wilson_interval};
use linerate_core::trace;
use linerate_sys::clock;
use linerate_sys::echo_socket::ProbeBindSource;

pub use self::back::serve_back_trace;
use self::live::{FLOWS_MAX, Live, TraceCourse};
use self::survey::TraceSurvey;
use crate::address::{resolve, resolve_server};
use crate::context::Context;
use crate::environment::{self, CoreWaits, StolenTime, stolen_time};
use crate::path::witness::{self, PathWitness};
use crate::rtt::clock_check;
use crate::socket_address::at_port;

/// Above this share of late rounds the host is told of.
const LATE_SHARE: f64 = 0.01;
/// MTU of links of which the kernel tells none.
const USUAL_MTU: u32 = 1500;

/// Traces as `plan` says and returns the record: always one, with `failure` set when something
/// went wrong and what was found so far kept.
pub fn run(plan: &TracePlan, context: &mut Context<'_>) -> Record {
    let started = clock::monotonic();
    let whole = Plan::Trace(plan.clone());
    (context.watch)(&Event::Plan(whole.clone()));
    let mut record =
        Record::from_plan(clock::record_id(), context.tool.clone(), whole, clock::wall_time());
    if let Err(failure) = measure(plan, context, &mut record) {
        let found = record.trace.as_ref().is_some_and(|trace| !trace.hops.is_empty());
        record.status = if found { RecordStatus::Partial } else { RecordStatus::Error };
        record.failure = Some(failure);
    }
    if context.stop.is_requested() {
        record.status = RecordStatus::Interrupted;
    }
    record.duration_ns = clock::monotonic().nanos_since(started);
    record
}

fn measure(
    plan: &TracePlan,
    context: &mut Context<'_>,
    record: &mut Record,
) -> Result<(), Failure> {
    check_plan(plan)?;
    // The load goes to an address that takes connections, and the trace to the same.
    let loaded = plan.load.as_ref().and_then(|load| resolve_server(&load.server).ok());
    let peer = match loaded {
        Some(server) => at_port(server, plan.port),
        None => resolve(&plan.host, plan.port, plan.family)?,
    };
    let source = plan.bind.as_ref().map(|bind| match bind.parse() {
        Ok(address) => ProbeBindSource::Address(address),
        Err(_) => ProbeBindSource::Interface(bind.clone()),
    });
    let local = environment::local_end(Some(peer.ip()));
    let mtu =
        local.interface.as_ref().and_then(|interface| interface.mtu_bytes).unwrap_or(USUAL_MTU);
    let course = TraceCourse { peer, source, probes: plan.probes };
    let tick = clock_check::calibrate().map(|tick| tick.step_ns);
    let witness = PathWitness::begin_watching(peer.ip());
    let (waits, stolen) = (CoreWaits::start_measuring(), StolenTime::start_measuring());
    let asked = plan.back.map(|port| (at_port(peer, port), course.source.clone()));
    let network = Live::open(course, mtu, context.stop.clone())?;
    record.ends = record_ends(local, network.local_address(), peer.ip(), tick);
    (context.watch)(&Event::Connected(format!(
        "TRACE {} ({}): {}, {} rounds, one every {}",
        plan.host,
        peer.ip(),
        match plan.probes {
            TraceProbes::Udp => "UDP",
            TraceProbes::Icmp => "ICMP echo",
            TraceProbes::Tcp => "TCP",
        },
        plan.count,
        linerate_core::units::print_span(std::time::Duration::from_nanos(plan.interval_ns)),
    )));
    let mut survey = TraceSurvey::new(network, plan, peer.ip());
    survey.trace.floor_ns = tick.map(|ns| ns.ceil() as u64);
    let outcome = run_trace_parts(&mut survey, context, record, asked.as_ref());
    let mut found = survey.trace;
    trace::fill_findings(
        &mut found,
        plan.load.as_ref().map(|load| load.test.directions.each_direction()[0]),
    );
    record.summary = summary(&found.echoes, &found);
    let silent = found.hops.is_empty();
    record.ends[0].stolen_ratio = stolen.stolen_ratio();
    record.caveats.extend(late_rounds(&found));
    record.caveats.extend(waits.caveat());
    record.caveats.extend(stolen_time(&record.ends[0]));
    record.trace = Some(Box::new(found));
    record.paths = witness.collect_paths();
    record.caveats.extend(witness::caveats(&record.paths));
    outcome?;
    if silent && !context.stop.is_requested() {
        let reason = "no router and no end answers";
        return Err(Failure::new(Fault::Unreachable, "trace", peer.ip().to_string(), reason)
            .advise("try --icmp, or see `ip route get` and the firewall of this host"));
    }
    Ok(())
}

fn run_trace_parts(
    survey: &mut TraceSurvey<'_, Live>,
    context: &mut Context<'_>,
    record: &mut Record,
    asked: Option<&(SocketAddr, Option<ProbeBindSource>)>,
) -> Result<(), Failure> {
    there_and_back(survey, context, asked)?;
    let loaded = match &survey.plan.load {
        Some(plan) => load::rounds(survey, plan, context, record),
        None => Ok(()),
    };
    survey.wait_shorter();
    if survey.plan.paths && survey.plan.probes != TraceProbes::Icmp {
        survey.find_paths()?;
    }
    survey.read_marks()?;
    if survey.plan.mtu {
        survey.find_sizes()?;
    }
    loaded
}

/// Hops and rounds, while the target traces the other way where it is asked to and does so. The
/// load comes later, so that both see the path at rest.
fn there_and_back(
    survey: &mut TraceSurvey<'_, Live>,
    context: &mut Context<'_>,
    asked: Option<&(SocketAddr, Option<ProbeBindSource>)>,
) -> Result<(), Failure> {
    let (plan, stop) = (survey.plan, context.stop.clone());
    let back = std::thread::scope(|scope| {
        let back = asked.map(|(peer, source)| {
            scope.spawn(move || back::request_back_trace(*peer, source.as_ref(), plan, &stop))
        });
        survey.find_hops()?;
        survey.rounds(plan.count, TracePhase::Idle, || false)?;
        Ok::<_, Failure>(back.map(|back| back.join().expect("it returns what it got")))
    })?;
    match back {
        Some(Ok(found)) => survey.trace.back = found.map(Box::new),
        Some(Err(failure)) => survey.trace.back_refused = Some(failure.reason),
        None => {}
    }
    Ok(())
}

/// Says how many rounds were put off, where they are so many.
fn late_rounds(found: &TraceResult) -> Option<Caveat> {
    let sent = found.hops.iter().map(|hop| hop.samples.len()).max().unwrap_or(0) as u64;
    let (late, all) = (found.late_rounds, sent.max(found.late_rounds));
    (late as f64 > all as f64 * LATE_SHARE).then(|| {
        Caveat::new(
            CaveatCode::LateSends,
            format!("this host came too late to {late} of {all} rounds of probes and put them off"),
            "stop the other work on this host, or use a longer interval (-i)",
        )
    })
}

/// The end's round trips and losses: by echoes where these were answered, else by its own answers
/// to the rounds.
fn summary(echoes: &[HopSample], found: &TraceResult) -> Vec<Summary> {
    let answered = echoes.iter().any(|sample| sample.rtt_ns.is_some());
    let end = found.hops.last().filter(|hop| hop.is_end);
    let samples = if answered { echoes } else { end.map_or(&[][..], |hop| &hop.samples) };
    let rounds: Vec<&HopSample> =
        samples.iter().filter(|sample| sample.phase == TracePhase::Idle).collect();
    let times: Vec<u64> = rounds.iter().filter_map(|sample| sample.rtt_ns).collect();
    let (sent, received) = (rounds.len() as u64, times.len() as u64);
    let mut rows = Distribution::from_samples(MetricId::Rtt, &times).summary();
    if sent > 0 {
        let row = |metric, value| Summary::from_value(metric, Stat::Value, value);
        let lost = sent - received;
        rows.push(row(MetricId::Sent, sent as f64));
        rows.push(row(MetricId::Received, received as f64));
        rows.push(row(MetricId::LossRatio, lost as f64 / sent as f64).with_n(sent));
        let high = wilson_interval(lost, sent, Z_95).map_or(1.0, |interval| interval.high);
        rows.push(row(MetricId::LossRatioHigh, high).with_n(sent));
    }
    rows
}

fn record_ends(
    local: MeasurementEnd,
    address: Option<IpAddr>,
    peer: IpAddr,
    tick: Option<f64>,
) -> Vec<MeasurementEnd> {
    let address = address.map(|address| address.to_string());
    let local = MeasurementEnd { address, clock_tick_ns: tick, ..local };
    let remote = MeasurementEnd {
        role: "remote".to_owned(),
        address: Some(peer.to_string()),
        ..MeasurementEnd::default()
    };
    vec![local, remote]
}

fn check_plan(plan: &TracePlan) -> Result<(), Failure> {
    let refuse = |object: &str, reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "read", object, reason).advise(advice))
    };
    if plan.count == 0 {
        return refuse("count", "there is nothing to send", "give -c 1 or more");
    }
    if plan.flows == 0 {
        return refuse("flows", "there is nothing to measure", "give --flows 1 to 96");
    }
    if plan.flows > FLOWS_MAX {
        return refuse("flows", "1 to 96 can be measured", "give fewer");
    }
    if plan.flows > 1 && plan.probes == TraceProbes::Icmp {
        return refuse("flows", "ICMP echo has one flow", "leave out --icmp or --flows");
    }
    if plan.hops_max == 0 {
        return refuse("max-hops", "no packet goes anywhere with 0", "give 1 or more");
    }
    if plan.timeout_ns == 0 || plan.interval_ns == 0 {
        return refuse("time", "nothing happens in no time", "give a longer -i or -W");
    }
    Ok(())
}
