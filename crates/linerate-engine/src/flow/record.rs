//! A client's test from its plan to its record, in whatever protocol and over whatever transport.

use linerate_core::record::{CaveatCode, Event, Failure, Fault, Plan, Record, RecordStatus};
use linerate_sys::clock::{monotonic, record_id, wall_time};

use super::account::Account;
use super::arrived::{nothing_arrived, nothing_at_all};
use super::contradiction::contradiction;
use super::fold::fill_record;
use crate::context::Context;
use crate::environment::CoreWaits;
use crate::path::witness::PathWitness;

/// The record of a test that `measure` makes; `account` keeps what is seen of it. It always exists:
/// when something fails it says so, and keeps what was measured before.
pub(crate) fn record_of(
    plan: Plan,
    mut account: Account,
    context: &mut Context<'_>,
    measure: impl FnOnce(&mut Context<'_>, &mut Account) -> Result<(), Failure>,
) -> Record {
    let begin = monotonic();
    let mut record = Record::from_plan(record_id(), context.tool.clone(), plan, wall_time());
    (context.watch)(&Event::Plan(record.plan.clone()));
    let waits = CoreWaits::start_measuring();
    let result = measure(context, &mut account);
    let elapsed_ns = monotonic().nanos_since(begin);
    let contradiction = contradiction(&record.plan, &account, elapsed_ns);
    if contradiction.is_some() {
        // No result is made of what cannot be.
        (account.remote, account.remote_samples) = (Vec::new(), Vec::new());
    }
    let contradicted = contradiction.is_some();
    let result = result.and_then(|()| contradiction.map_or(Ok(()), Err));
    let result = result.and_then(|()| {
        let nothing = nothing_arrived(&record.plan, &account, context.stop.is_requested());
        nothing.map_or(Ok(()), Err)
    });
    if let Err(failure) = result {
        record.status = match failure.fault {
            // All of it was measured: the contents are the result.
            Fault::Corrupted => RecordStatus::Ok,
            _ if contradicted => RecordStatus::Error,
            _ if account.has_samples() && !nothing_at_all(&record.plan, &account) => {
                RecordStatus::Partial
            }
            _ => RecordStatus::Error,
        };
        record.failure = Some(failure);
    }
    let prober = account.prober.take();
    if let Some((first, beside)) = prober.map(|probers| probers.finish_probes(account.begin)) {
        (record.probes, record.probes_beside) = (Some(Box::new(first)), beside);
    }
    record.paths = account.witness.take().map(PathWitness::collect_paths).unwrap_or_default();
    fill_record(&mut record, &account);
    // Datagrams are paced and their delays are figures: a busy host shows in all of them. Of TCP
    // the threads that wait for a core are told of one by one.
    let told = record.caveats.iter().any(|caveat| caveat.code == CaveatCode::RunQueueWait);
    if matches!(record.plan, Plan::Udp(_)) && !told {
        record.caveats.extend(waits.caveat());
    }
    if context.stop.is_requested() && record.failure.is_none() {
        record.status = RecordStatus::Interrupted;
    }
    for caveat in &record.caveats {
        (context.watch)(&Event::Caveat(caveat.clone()));
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}
