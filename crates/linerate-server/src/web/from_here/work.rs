//! What a measurement from here does: a thread of its own runs its plans through the engine, tells
//! what happens, and keeps each record.

use std::sync::Arc;

use linerate_core::explain::explain;
use linerate_core::record::{
    Direction, Event, Flow, FlowEnd, IntervalRow, MetricId, Plan, Record, RecordStatus, Stat,
};
use linerate_engine::context::Context;
use linerate_engine::examine::{self, ExaminationEvent};
use linerate_engine::flow::admission::Permit;
use linerate_engine::throughput;
use linerate_engine::{rtt, trace};
use linerate_report::{Headline, examination};
use linerate_store::Store;
use serde_json::{Value, json};

use super::plan::Wanted;
use super::target::MeasureTarget;
use crate::policy_guard::PolicyClient;
use crate::web::measure::verdicts_said;
use crate::web::run::BrowserRun;
use crate::web::state::State;

/// A measurement to run, with the client that asked for it.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) target: MeasureTarget,
    pub(super) wanted: Wanted,
    pub(super) client: PolicyClient,
}

/// Starts the thread of a measurement; the place at the gate is given back at its end.
pub(super) fn start_measurement(
    run: &Arc<BrowserRun>,
    state: &Arc<State>,
    job: Job,
    permit: Permit,
) -> std::io::Result<()> {
    let (run, state) = (Arc::clone(run), Arc::clone(state));
    let work = move || {
        Work { run: &run, state: &state, job: &job }.measure();
        drop(permit);
        run.mark_ended();
    };
    std::thread::Builder::new().name("linerate-from".to_owned()).spawn(work).map(drop)
}

struct Work<'a> {
    run: &'a BrowserRun,
    state: &'a State,
    job: &'a Job,
}

impl Work<'_> {
    fn measure(&self) {
        let Self { run, job, .. } = self;
        let (kind, target) = (job.wanted.kind.name(), &job.target);
        run.push_state("running", &format!("{kind} to {}", target.address));
        let mut records = Vec::new();
        for plan in job.wanted.measurement_plans(target) {
            if run.stop.is_requested() {
                break;
            }
            let record = self.run_plan(&plan);
            let failed = record.status == RecordStatus::Error;
            records.push(record);
            if failed {
                break;
            }
        }
        // That of one window out of many says nothing of the path.
        let one = if records.len() == 1 { verdicts_said(&records, None) } else { None };
        if let Some(said) = one {
            run.push_event("verdict", &said);
        }
        match records.iter().find_map(|record| record.failure.as_ref()) {
            Some(failure) => run.push_state("failed", &failure.to_string()),
            None if run.stop.is_requested() => {
                run.push_state("failed", "it was ended before its time")
            }
            None => run.push_state("done", "everything was measured"),
        }
        let ids: Vec<String> = records.iter().map(|record| record.id.to_string()).collect();
        run.push_event("end", &json!({ "records": ids }));
    }

    /// Makes one measurement, and keeps its record.
    fn run_plan(&self, plan: &Plan) -> Record {
        let Self { run, state, job } = self;
        let mut watch = |event: &Event| self.forward_event(event, plan);
        let (tool, stop) = (state.options.tool.clone(), run.stop.clone());
        let mut context = Context { tool, stop, watch: &mut watch };
        let mut record = match plan {
            Plan::Ping(plan) => rtt::run(plan, &mut context),
            Plan::Udp(plan) => throughput::run_udp(plan, &mut context),
            Plan::Test(plan) => {
                examine::run(plan, &mut context, &mut |seen| self.note_progress(seen))
            }
            Plan::Trace(plan) => trace::run(plan, &mut context),
            Plan::Tcp(plan) => throughput::run_tcp(plan, &mut context),
            Plan::Simulate(_) | Plan::Bench(_) | Plan::Compare(_) => {
                unreachable!("no plan of these is made here")
            }
        };
        record.tags.insert("run".to_owned(), run.id.clone());
        record.tags.insert("from_page".to_owned(), job.wanted.kind.name().to_owned());
        if job.target.name != job.target.address.to_string() {
            record.tags.insert("target".to_owned(), job.target.name.clone());
        }
        if !job.wanted.windows().is_empty() {
            record.name = Some(format!("window sweep {}", &run.id[..13.min(run.id.len())]));
        }
        state.gate.policy_guard().attribute(job.client.address, moved_bytes(&record));
        self.store_record(&record);
        run.push_event("part", &part_said(&record));
        tracing::info!(peer = %run.peer, "http: {}", Headline::from_record(&record).summary_line());
        record
    }

    fn store_record(&self, record: &Record) {
        let Some(path) = &self.state.options.store else { return };
        let kept = Store::open(path).and_then(|mut store| store.put_record(record));
        if let Err(failure) = kept {
            tracing::warn!(peer = %self.run.peer, "not kept: {failure}");
            self.send_note(&format!("the result is not kept: {failure}"));
        }
    }

    fn send_note(&self, say: &str) {
        self.run.push_event("note", &json!({ "say": say }));
    }

    fn forward_event(&self, event: &Event, plan: &Plan) {
        match event {
            Event::Connected(line) | Event::Note(line) => self.send_note(line),
            Event::Interval(row) if row.flow.is_none() => {
                self.run.push_event("sample", &sample_said(row));
            }
            Event::Reply(reply) if !reply.duplicate => {
                let every_ns = if let Plan::Ping(plan) = plan { plan.interval_ns } else { 0 };
                let t_s = (reply.sequence * every_ns) as f64 / 1e9;
                let rtt_us = reply.rtt_ns.map(|ns| ns as f64 / 1e3);
                self.run.push_event("reply", &json!({ "t_s": t_s, "rtt_us": rtt_us }));
            }
            _ => {}
        }
    }

    /// Notes the progress of a survey for the page.
    fn note_progress(&self, seen: &ExaminationEvent<'_>) {
        match seen {
            ExaminationEvent::Planned(count, span) => {
                let seconds = span.as_secs_f64();
                self.send_note(&format!("{count} measurements in about {seconds:.0} s"));
            }
            ExaminationEvent::Done(_, part) if part.status != RecordStatus::Error => {
                self.send_note(&examination::result_line(part));
            }
            ExaminationEvent::Done(..) => {}
            ExaminationEvent::Tried(tried) => {
                self.send_note(&examination::tried_change_line(tried))
            }
        }
    }
}

fn sample_said(row: &IntervalRow) -> Value {
    json!({
        "direction": row.direction,
        "t_s": (row.end_ns as f64 / 1e6).round() / 1e3,
        "rate_bps": row.goodput_bps.round(),
        "rtt_us": row.rtt_ns.map(|ns| ns / 1000),
        "retransmits": row.retransmits,
        "lost": row.datagrams.map(|row| row.lost),
    })
}

/// A record in a few figures. `rtt_us` of TCP is the smallest that the sending kernel saw: that of
/// the path at rest, by which theory's curve is drawn.
fn part_said(record: &Record) -> Value {
    let first = |metric: MetricId, stat: Option<Stat>| {
        let is = |row: &&linerate_core::record::Summary| {
            row.metric == metric && stat.is_none_or(|stat| stat == row.stat) && row.flow.is_none()
        };
        record.summary.iter().find(is).map(|row| row.value)
    };
    let typical = record.typical_round_trip(None).map(|row| row.value);
    let rtt_ns = typical.or_else(|| first(MetricId::TcpRttMin, None));
    let loss =
        first(MetricId::LossRatio, None).or_else(|| first(MetricId::DatagramLossRatio, None));
    let window_bytes = match &record.plan {
        Plan::Tcp(plan) => plan.test.window_bytes,
        _ => None,
    };
    json!({
        "record": record.id.to_string(),
        "kind": record.plan.kind_name(),
        "status": record.status,
        "say": Headline::from_record(record).summary_line(),
        "rate_bps": first(MetricId::Goodput, None),
        "rtt_us": rtt_ns.map(|ns| ns / 1e3),
        "loss": loss,
        "window_bytes": window_bytes,
        "limited": explain(record).first().is_some_and(|verdict| verdict.cause.is_some()),
        "failure": record.failure.as_ref().map(ToString::to_string),
    })
}

/// Payload that a record's streams moved, those of its parts among it.
fn moved_bytes(record: &Record) -> u64 {
    let taken = |end: &FlowEnd| end.bytes;
    let of = |flow: &Flow| {
        let end = match flow.direction {
            Direction::Up => flow.sender.as_ref().or(flow.receiver.as_ref()),
            Direction::Down => flow.receiver.as_ref().or(flow.sender.as_ref()),
        };
        end.map_or(0, taken)
    };
    let own: u64 = record.flows.iter().map(of).sum();
    own + record.parts.iter().map(moved_bytes).sum::<u64>()
}
