//! Throughput as planned: with a server of this program (`flow`) or, by the plan's `via`, with that
//! of another (`foreign`). The record always exists: when something fails it says so, and keeps
//! what was measured before.

use linerate_core::record::{Record, TcpPlan, UdpPlan};

use crate::context::Context;
use crate::flow::{tcp, udp};
use crate::foreign;

/// Measures TCP throughput with the server of a plan.
pub fn run_tcp(plan: &TcpPlan, context: &mut Context<'_>) -> Record {
    tcp::client::run_by(plan, context, |context, account| match plan.server.via {
        None => tcp::client::measure(plan, context, account),
        Some(via) => foreign::measure(via, plan, context, account),
    })
}

/// Measures UDP throughput with the server of a plan.
pub fn run_udp(plan: &UdpPlan, context: &mut Context<'_>) -> Record {
    let usual_bytes_max = plan.server.via.map_or(u32::MAX, foreign::datagram_bytes_usual);
    udp::client::run_by(plan, usual_bytes_max, context, |plan, server, context, account| match plan
        .server
        .via
    {
        None => udp::client::measure(plan, server, context, account),
        Some(via) => foreign::measure_udp(via, plan, server, context, account),
    })
}
