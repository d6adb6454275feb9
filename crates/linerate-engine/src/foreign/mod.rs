//! Tests with the programs of others: ttcp, iperf 2, iperf 3, nuttcp, from either side.
//!
//! Each has a folder with its drivers; bytes and the order of messages are in `linerate_proto`,
//! the loops that move data in `flow`. What another program does not tell stays absent.

pub mod iperf2;
pub mod iperf3;
mod marked_stream;
pub mod nuttcp;
mod serve;
mod tcp_client;
mod test;
pub mod ttcp;

pub use serve::{ServedEvent, Serving};

use std::net::SocketAddr;

use linerate_core::record::{Failure, Fault, TcpPlan, UdpPlan, Via};

use crate::context::Context;
use crate::flow::account::Account;
use crate::flow::probes;
use crate::flow::udp::client::checked_request;

/// Measures with a server of another program; what was seen is in `account`.
pub(crate) fn measure(
    via: Via,
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    check_plan(plan)?;
    account.prober = probes::begin_probing(&plan.server, plan.test.dscp, &context.stop);
    match via {
        Via::Iperf2 => iperf2::client::measure(plan, context, account),
        Via::Iperf3 => iperf3::measure(plan, context, account),
        Via::Nuttcp => nuttcp::client::measure(plan, context, account),
        Via::Ttcp => ttcp::measure(plan, context, account),
        Via::Http => Err(no_client()),
    }
}

/// Refuses what needs this program at both ends.
fn check_plan(plan: &TcpPlan) -> Result<(), Failure> {
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

/// Tests over HTTP begin in a browser: this program is their server alone.
fn no_client() -> Failure {
    let reason = "tests over HTTP begin in a browser";
    Failure::new(Fault::Usage, "measure", "by way of http", reason)
        .advise("open the server's page, or omit --via")
}

/// The most that datagrams have where nobody says how long they are.
pub(crate) const fn datagram_bytes_usual(via: Via) -> u32 {
    match via {
        Via::Iperf2 => iperf2::DATAGRAM_BYTES,
        Via::Iperf3 | Via::Nuttcp | Via::Ttcp | Via::Http => u32::MAX,
    }
}

/// The same over UDP, with a server at an address.
pub(crate) fn measure_udp(
    via: Via,
    plan: &UdpPlan,
    server: SocketAddr,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    if plan.test.search.is_some() {
        let reason = format!("{via} has no statuses to search by");
        let failure = Failure::new(Fault::Usage, "search for the capacity by", "--via", reason);
        return Err(failure.advise("run linerate serve at the other end"));
    }
    let request = &checked_request(plan)?;
    account.prober = probes::begin_probing(&plan.server, request.dscp, &context.stop);
    match via {
        Via::Iperf3 => iperf3::measure_udp(plan, server, request, context, account),
        Via::Iperf2 => iperf2::measure_udp(plan, server, request, context, account),
        Via::Nuttcp => nuttcp::measure_udp(plan, server, request, context, account),
        Via::Ttcp => ttcp::measure_udp(plan, server, request, context, account),
        Via::Http => Err(no_client()),
    }
}
