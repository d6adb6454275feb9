//! Round-trip times: ping by ICMP, UDP and STAMP, the reflector of STAMP, and the host's own
//! clocks.
//!
//! `drive` sends and receives probes over a `wire`, in a loop; `socket_wire` is the real one.
//! `collector` keeps the samples, `session` makes the record of them.

mod answering;
pub mod civil_time;
pub mod clock_check;
mod collector;
mod drive;
mod fragments;
mod host_floor;
pub mod meet;
mod one_way;
mod outages;
mod outcome;
mod ptp4l;
mod real_time;
pub mod reflect;
pub mod respond;
mod samples;
mod session;
mod several;
mod socket_wire;
mod stamps;
mod target;
pub mod tick;
mod wire;

pub(crate) use drive::{ProbePace, ProbeRunEnd, ProbeRunRules, Sink, Spacing, drive_probes};
pub use several::run_several;
pub(crate) use socket_wire::{AnswerWaitMode, SocketWire};
pub(crate) use target::open_echo_socket as open_socket;
pub(crate) use wire::ProbeAnswer;

use linerate_core::record::{Calibration, Event, MetricId, PingPlan, Plan, Record, RecordStatus};
use linerate_proto::stamp::StampKey;
use linerate_sys::clock;

use crate::context::Context;
use crate::environment::{CoreWaits, StolenTime, stolen_time};

/// Pings as [`run_signed`] does, without a key.
pub fn run(plan: &PingPlan, context: &mut Context<'_>) -> Record {
    run_signed(plan, None, context)
}

/// Pings as [`run`] does, for one of many runs: their caller calibrates this host once.
pub(crate) fn run_uncalibrated(plan: &PingPlan, context: &mut Context<'_>) -> Record {
    measured(plan, None, None, context)
}

/// Pings as `plan` says, by STAMP with packets that `key` signs, and returns the record: always
/// one, with `failure` set when something went wrong and the samples so far kept.
pub fn run_signed(plan: &PingPlan, key: Option<StampKey>, context: &mut Context<'_>) -> Record {
    let calibration = clock_check::quick_calibration(&context.stop);
    measured(plan, key, Some(calibration), context)
}

fn measured(
    plan: &PingPlan,
    key: Option<StampKey>,
    calibration: Option<Calibration>,
    context: &mut Context<'_>,
) -> Record {
    let started = clock::monotonic();
    let whole_plan = Plan::Ping(plan.clone());
    (context.watch)(&Event::Plan(whole_plan.clone()));
    let mut record =
        Record::from_plan(clock::record_id(), context.tool.clone(), whole_plan, clock::wall_time());
    let (stolen, waits) = (StolenTime::start_measuring(), CoreWaits::start_measuring());
    if let Err(failure) = session::measure(plan, key, context, &mut record) {
        let answered =
            record.summary.iter().any(|row| row.metric == MetricId::Received && row.value > 0.0);
        record.status = if answered { RecordStatus::Partial } else { RecordStatus::Error };
        record.failure = Some(failure);
    }
    if let Some(end) = record.ends.first_mut() {
        end.calibration = calibration;
    }
    note_stolen_time(&mut record, stolen.stolen_ratio(), context);
    if let Some(caveat) = waits.caveat() {
        (context.watch)(&Event::Caveat(caveat.clone()));
        record.caveats.push(caveat);
    }
    record.duration_ns = clock::monotonic().nanos_since(started);
    record
}

/// The first end is the one that measured; before it was known, nothing was.
fn note_stolen_time(record: &mut Record, ratio: Option<f64>, context: &mut Context<'_>) {
    let Some(end) = record.ends.first_mut() else { return };
    end.stolen_ratio = ratio;
    if let Some(caveat) = stolen_time(end) {
        (context.watch)(&Event::Caveat(caveat.clone()));
        record.caveats.push(caveat);
    }
}
