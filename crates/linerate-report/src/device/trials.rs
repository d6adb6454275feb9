//! Every trial as a table of comma-separated values, a row a sending port: what was asked, what was
//! sent, what came, and why it does not count where it does not.

use linerate_core::record::{BenchTrial, Plan, Record, TrialPort};

use super::suite::plain_name;
use super::words;
use crate::csv::{field_or_empty, rows_with_head};

const HEAD: &str = "id,study,run,topology,repetition,device,protocol,way,frame_bytes,mix,\
    filters,seed,trial,test,at_ns,duration_ns,port,intended_frames_per_sec,\
    offered_frames_per_sec,sent,received,lost,duplicates,reordered,loss_runs,late,worst_late_ns,\
    refused,latency_p50_ns,stolen_ns,invalid,invalid_detail,interface_sent,interface_received,\
    why";

/// All trials of all benchmarks among the records, in their order; rates are those of one sending
/// port, and an absent value is an empty field.
pub fn trials_csv<'a>(records: impl IntoIterator<Item = &'a Record>) -> String {
    rows_with_head(HEAD, records.into_iter().flat_map(of_record))
}

fn of_record(record: &Record) -> Vec<Vec<String>> {
    let (Plan::Bench(plan), Some(result)) = (&record.plan, &record.bench) else {
        return Vec::new();
    };
    let cell = record.cell.as_ref();
    let frames = &plan.frames;
    let about = vec![
        record.id.to_string(),
        field_or_empty(cell.map(|cell| &cell.study)),
        field_or_empty(cell.map(|cell| &cell.run)),
        field_or_empty(cell.map(|cell| &cell.topology)),
        field_or_empty(cell.map(|cell| cell.repetition)),
        plain_name(record),
        frames.protocol.name().to_owned(),
        words::direction(plan.way).to_owned(),
        frames.size_bytes.to_string(),
        field_or_empty(frames.mix.as_ref()),
        field_or_empty(plan.filters),
        plan.seed.to_string(),
    ];
    let mut rows = Vec::new();
    for (number, trial) in (1_u64..).zip(&result.trials) {
        for port in &trial.ports {
            let mut row = about.clone();
            row.push(number.to_string());
            row.extend(of_trial(trial, port));
            rows.push(row);
        }
    }
    rows
}

fn of_trial(trial: &BenchTrial, port: &TrialPort) -> [String; 22] {
    [
        trial.test.name().to_owned(),
        trial.at_ns.to_string(),
        trial.duration_ns.to_string(),
        port.port.to_string(),
        field_or_empty(trial.intended_fps),
        port.offered_fps.to_string(),
        port.sent.to_string(),
        port.received.to_string(),
        port.lost_frames().to_string(),
        field_or_empty(port.duplicates),
        port.reordered.to_string(),
        port.loss_runs.to_string(),
        port.late.to_string(),
        port.worst_late_ns.to_string(),
        port.refused.to_string(),
        field_or_empty(port.latency_p50_ns),
        field_or_empty(trial.stolen_ns),
        field_or_empty(trial.invalid.as_ref().map(words::invalid_key)),
        field_or_empty(trial.invalid.as_ref().map(|why| why.detail())),
        field_or_empty(port.interface_sent),
        field_or_empty(port.interface_received),
        field_or_empty(trial.why.as_ref()),
    ]
}
