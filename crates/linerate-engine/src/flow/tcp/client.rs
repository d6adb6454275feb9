//! The client's side of one test: from a plan to a record.

use linerate_core::record::{Event, Failure, Fault, Plan, Record, TcpPlan};
use linerate_proto::native::Request;

use super::link::Link;
use super::trials;
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::probes;
use crate::flow::record::record_of;
use crate::foreign;

/// Measures TCP throughput as planned. The record always exists: when something fails it says so,
/// and keeps what was measured before.
pub fn run(plan: &TcpPlan, context: &mut Context<'_>) -> Record {
    run_by(plan, context, |context, account| match plan.server.via {
        None => measure(plan, context, account),
        Some(via) => {
            check_via(plan)?;
            foreign::measure(via, plan, context, account)
        }
    })
}

/// Measures with a server of this program's own protocol.
fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut request = plan.test.clone();
    request.check().map_err(|error| {
        Failure::new(Fault::Usage, "plan", "TCP test", error).advise("see linerate tcp --help")
    })?;
    let mut link = Link::open(plan, account)?;
    if let Some(line) = probes::long_rest(&plan.server) {
        (context.watch)(&Event::Note(line));
    }
    account.prober = probes::begin(&plan.server, request.dscp, &context.stop);
    if plan.fast {
        (link, request.means) = trials::choose(link, &request, context, account)?;
    }
    let host_id = linerate_sys::host::boot_id();
    let asked = Request { test: request, host_id, ..Request::default() };
    link.measure(asked, true, context, account)?;
    account.stream_failure().or_else(|| account.wrong_contents()).map_or(Ok(()), Err)
}

/// What needs this program at both ends.
fn check_via(plan: &TcpPlan) -> Result<(), Failure> {
    let means = &plan.test.means;
    let needs = [
        (plan.fast, "--fast"),
        (means.verify_seed.is_some(), "--verify"),
        (!means.server_cpus.is_empty(), "CPU pinning at the server"),
        (means.mptcp, "--mptcp"),
    ];
    let Some((_, what)) = needs.into_iter().find(|(asked, _)| *asked) else { return Ok(()) };
    let reason = "it needs linerate at both ends";
    Err(Failure::new(Fault::Usage, "use", what, reason).advise("run linerate serve there"))
}

/// The record of a test that `measure` makes.
pub(crate) fn run_by(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    measure: impl FnOnce(&mut Context<'_>, &mut Account) -> Result<(), Failure>,
) -> Record {
    let account = Account {
        row_ns_min: plan.test.interval_ns / 4,
        omit_ns: plan.test.omit_ns,
        ..Account::default()
    };
    record_of(Plan::Tcp(plan.clone()), account, context, measure)
}
