//! Benchmarks of devices by raw frames: RFC 2544 and its successors.

mod places;

pub use places::{Here, Places};

use linerate_core::record::{BenchPlan, Event, Failure, Fault, Plan, Record, Status};
use linerate_sys::clock::{monotonic, record_id, wall};

use crate::context::Context;
use crate::environment::local_end;

/// Measures as planned, on interfaces that are where `places` says. The record always exists: when
/// something fails it says so.
pub fn run(plan: &BenchPlan, places: &dyn Places, context: &mut Context<'_>) -> Record {
    let begin = monotonic();
    let tool = context.tool.clone();
    let mut record = Record::begin(record_id(), tool, Plan::Bench(plan.clone()), wall());
    (context.watch)(&Event::Plan(record.plan.clone()));
    record.ends = vec![local_end(None)];
    let opened: Result<(), Failure> = places::inside(places, None, || ()).and_then(|()| {
        Err(Failure::new(Fault::System, "send frames", "the ports", "there is no generator yet"))
    });
    if let Err(failure) = opened {
        record.status = Status::Error;
        record.failure = Some(failure);
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}
