//! Between a plan of this program and the parameters of iperf3.

use linerate_core::record::{Failure, Fault, Finish, TcpDirections, TcpPlan};
use linerate_proto::iperf3::{Params, Protocol};

/// Nanoseconds of a second: iperf3 counts times in whole ones.
const SECOND_NS: u64 = 1_000_000_000;

/// The parameters of a plan.
/// # Errors
/// What iperf3 does not have.
pub(super) fn params(plan: &TcpPlan) -> Result<Params, Failure> {
    let cannot = |flag: &str, reason: &str| {
        Err(Failure::new(Fault::Usage, "ask iperf3 for", flag, reason)
            .advise("leave it out, or start linerate serve there"))
    };
    if plan.background.is_some() {
        return cannot("--background", "it has no flow in the background");
    }
    if plan.read_bytes.is_some() && plan.directions != TcpDirections::Down {
        return cannot("--read-size", "the size of its reads is its own");
    }
    if plan.omit_ns % SECOND_NS != 0 {
        return cannot("-O", "it omits whole seconds");
    }
    let params = Params {
        protocol: Protocol::Tcp,
        omit_s: plan.omit_ns / SECOND_NS,
        // The client's own clock ends the test; the server needs to know when to give up.
        time_s: match plan.finish {
            Finish::TimeNs(ns) => ns.div_ceil(SECOND_NS),
            Finish::Bytes(_) | Finish::Buffers(_) => 0,
        },
        bytes: if let Finish::Bytes(bytes) = plan.finish { bytes } else { 0 },
        blocks: if let Finish::Buffers(count) = plan.finish { count } else { 0 },
        parallel: u64::from(plan.streams),
        block_bytes: Some(u64::from(plan.buffer_bytes)),
        mss_bytes: plan.mss_bytes.map(u64::from),
        nodelay: plan.nodelay,
        reverse: plan.directions == TcpDirections::Down,
        bidirectional: plan.directions == TcpDirections::Both,
        window_bytes: plan.window_bytes,
        rate_bps: plan.pace.map(linerate_core::units::BitRate::bits_per_sec),
        tos: plan.dscp.map(|dscp| u64::from(dscp) << 2),
        congestion: plan.congestion_control.clone(),
        zerocopy: plan.zero_copy,
        client_version: Some(format!("linerate {}", env!("CARGO_PKG_VERSION"))),
        ..Params::default()
    };
    params.check().map_err(|error| {
        Failure::new(Fault::Usage, "ask iperf3 for", error.key, error.to_string())
            .advise("these bounds are iperf3's own")
    })?;
    Ok(params)
}
