//! A client's test from its plan to its record, in whatever protocol and over whatever transport.

use linerate_core::record::{Event, Failure, Fault, Plan, Record, Status};
use linerate_sys::clock::{monotonic, record_id, wall};

use super::account::Account;
use super::arrived::{nothing_arrived, nothing_at_all};
use super::fold::fold;
use crate::context::Context;
use crate::path::witness::Witness;

/// The record of a test that `measure` makes; `account` keeps what is seen of it. It always exists:
/// when something fails it says so, and keeps what was measured before.
pub(crate) fn record_of(
    plan: Plan,
    mut account: Account,
    context: &mut Context<'_>,
    measure: impl FnOnce(&mut Context<'_>, &mut Account) -> Result<(), Failure>,
) -> Record {
    let begin = monotonic();
    let mut record = Record::begin(record_id(), context.tool.clone(), plan, wall());
    (context.watch)(&Event::Plan(record.plan.clone()));
    let result = measure(context, &mut account);
    let result = result.and_then(|()| {
        let nothing = nothing_arrived(&record.plan, &account, context.stop.asked());
        nothing.map_or(Ok(()), Err)
    });
    if let Err(failure) = result {
        record.status = match failure.fault {
            // All of it was measured: the contents are the result.
            Fault::Corrupted => Status::Ok,
            _ if account.has_samples() && !nothing_at_all(&record.plan, &account) => {
                Status::Partial
            }
            _ => Status::Error,
        };
        record.failure = Some(failure);
    }
    let prober = account.prober.take();
    if let Some((first, beside)) = prober.map(|probers| probers.end(account.begin)) {
        (record.probes, record.probes_beside) = (Some(Box::new(first)), beside);
    }
    record.paths = account.witness.take().map(Witness::end).unwrap_or_default();
    fold(&mut record, &account);
    if context.stop.asked() && record.failure.is_none() {
        record.status = Status::Interrupted;
    }
    for caveat in &record.caveats {
        (context.watch)(&Event::Caveat(caveat.clone()));
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}
