//! The client's side of one test: from a plan to a record.

use linerate_core::record::{Event, Failure, Fault, Plan, Record, TcpPlan};
use linerate_proto::native::NativeTcpTestRequest;

use super::link::ControlLink;
use super::trials;
use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::probes;
use crate::flow::record::record_of;

/// Measures with a server of this program's own protocol.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut request = plan.test.clone();
    request.check().map_err(|error| Failure::new(Fault::Usage, "plan", "TCP test", error))?;
    let mut link = ControlLink::connect_to_server(plan, account)?;
    if let Some(line) = probes::long_rest(&plan.server) {
        (context.watch)(&Event::Note(line));
    }
    account.prober = probes::begin_probing(&plan.server, request.dscp, &context.stop);
    if plan.fast {
        (link, request.means) = trials::choose(link, &request, context, account)?;
    }
    let host_id = linerate_sys::host::boot_id();
    let asked = NativeTcpTestRequest { test: request, host_id, ..NativeTcpTestRequest::default() };
    link.measure(asked, true, context, account)?;
    account.stream_failure().or_else(|| account.wrong_contents()).map_or(Ok(()), Err)
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
