//! What simple rules say of a sender's `TCP_INFO`: what a diagnosis has to be better than.

use super::{Label, NoCause};
use crate::record::{Cause, FlowEnd, TcpInfo};

/// A simple rule for the cause, to compare a diagnosis with.
#[derive(Clone, Copy, Debug)]
pub struct Baseline {
    /// Name of the rule in tables.
    pub name: &'static str,
    /// The rule: a label from the sender's counters, if there was a sender.
    pub says: fn(Option<&FlowEnd>) -> Label,
}

/// The rules, the one of which most is expected first.
pub const BASELINES: [Baseline; 4] = [
    Baseline { name: "largest limit counter", says: largest_counter },
    Baseline { name: "retransmits mean loss", says: retransmits_mean_loss },
    Baseline { name: "NDT's rules", says: ndt_label },
    Baseline { name: "always the window", says: |_| Label::Cause(Cause::ReceiveWindow) },
];

const UNDETERMINED: Label = Label::None(NoCause::Undetermined);

/// Shares of a transfer's time by its limit, as the kernel counts (tcp_info, Linux 4.10): the busy
/// time includes both others.
struct Shares {
    receive_window: f64,
    send_buffer: f64,
    network: f64,
    idle: f64,
}

fn shares(end: &FlowEnd, info: &TcpInfo) -> Option<Shares> {
    let span_us = (end.span_start_ns + end.span_ns) as f64 / 1e3;
    let share = |us: Option<u64>| Some(us? as f64 / span_us.max(1.0));
    let (receive_window, send_buffer) =
        (share(info.rwnd_limited_us)?, share(info.sndbuf_limited_us)?);
    let busy = share(info.busy_time_us)?;
    let network = (busy - receive_window - send_buffer).max(0.0);
    Some(Shares { receive_window, send_buffer, network, idle: (1.0 - busy).max(0.0) })
}

fn counters_of(end: Option<&FlowEnd>) -> Option<(&FlowEnd, &TcpInfo, Shares)> {
    let end = end?;
    let info = end.tcp_info.as_ref()?;
    Some((end, info, shares(end, info)?))
}

/// Label of the counter with the most time; a sender that only the network limited is at its
/// ceiling.
fn largest_counter(end: Option<&FlowEnd>) -> Label {
    let Some((.., shares)) = counters_of(end) else { return UNDETERMINED };
    let all = [
        (shares.network, Label::AT_CEILING),
        (shares.receive_window, Label::Cause(Cause::ReceiveWindow)),
        (shares.send_buffer, Label::Cause(Cause::SendBuffer)),
        (shares.idle, Label::Cause(Cause::SendingApplication)),
    ];
    all.into_iter()
        .max_by(|one, other| one.0.total_cmp(&other.0))
        .map_or(UNDETERMINED, |largest| largest.1)
}

fn retransmits_mean_loss(end: Option<&FlowEnd>) -> Label {
    match end.and_then(|end| end.tcp_info.as_ref()?.total_retrans) {
        Some(1..) => Label::Cause(Cause::RandomLoss),
        Some(0) => Label::AT_CEILING,
        None => UNDETERMINED,
    }
}

/// Shares of time, and retransmissions a second, by which NDT's heuristics judged (ndt-project,
/// src/heuristics.c, on the counters of web100).
const NDT_MISMATCH_SHARE: f64 = 0.9;
const NDT_MISMATCH_RETRANSMITS_PER_S: f64 = 2.0;
const NDT_MISMATCH_TIMEOUT_SHARE: f64 = 0.01;
const NDT_WINDOW_SHARE: f64 = 0.015;
const NDT_CONGESTION_SHARE: f64 = 0.02;

/// NDT's rules, with today's counters in place of those of web100: a duplex mismatch first, then
/// the receiver, the sender, congestion. Its second test with a clamped window is not repeated.
fn ndt_label(end: Option<&FlowEnd>) -> Label {
    let Some((end, info, shares)) = counters_of(end) else { return UNDETERMINED };
    let seconds = (end.span_ns as f64 / 1e9).max(0.001);
    let retransmits_per_s = f64::from(info.total_retrans.unwrap_or(0)) / seconds;
    let timeouts = f64::from(info.total_rto.unwrap_or(0));
    let timeout_share = timeouts * f64::from(info.rto_us.unwrap_or(0)) / 1e6 / seconds;
    if shares.network > NDT_MISMATCH_SHARE
        && retransmits_per_s > NDT_MISMATCH_RETRANSMITS_PER_S
        && timeout_share > NDT_MISMATCH_TIMEOUT_SHARE
    {
        return Label::Cause(Cause::DuplexMismatch);
    }
    if shares.receive_window > NDT_WINDOW_SHARE && shares.receive_window >= shares.send_buffer {
        return Label::Cause(Cause::ReceiveWindow);
    }
    if shares.send_buffer > NDT_WINDOW_SHARE {
        return Label::Cause(Cause::SendBuffer);
    }
    if shares.network > NDT_CONGESTION_SHARE && retransmits_per_s > 0.0 {
        return Label::Cause(Cause::OtherTraffic);
    }
    Label::AT_CEILING
}
