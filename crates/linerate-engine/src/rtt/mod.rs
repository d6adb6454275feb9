//! Round-trip times: ping by ICMP and UDP, and the host's own clocks.

use linerate_core::record::{Failure, Fault, PingPlan, Plan, Record, Status};
use linerate_sys::clock;

use crate::context::Context;

/// Says that this build cannot ping yet.
pub fn run(plan: &PingPlan, context: &mut Context<'_>) -> Record {
    let tool = context.tool.clone();
    let mut record =
        Record::begin(clock::record_id(), tool, Plan::Ping(plan.clone()), clock::wall());
    record.status = Status::Error;
    record.failure = Some(Failure::new(Fault::System, "ping", &plan.host, "not in this build"));
    record
}
