//! What a reader has to know before believing a throughput figure, each with its threshold.

use linerate_core::record::{
    Asked, Caveat, CaveatCode, Finish, Flow, FlowEnd, Record, Side, TcpPlan,
};

use super::account::Account;
use super::fold::{cpu_share, run_queue_share};

/// A data thread above this share of a core may be what limits the result.
const CPU_BOUND_RATIO: f64 = 0.95;
/// A data thread that waited this share of its span for a core was not alone on the machine.
const RUN_QUEUE_WAIT_RATIO: f64 = 0.10;
/// Below this, start-up weighs in the result.
const SHORT_RUN_NS: u64 = 1_000_000_000;
/// A paced stream below this share of its pace did not keep it.
const PACE_KEPT_RATIO: f64 = 0.98;

/// Every caveat of a finished test.
pub(super) fn caveats(record: &Record, plan: &TcpPlan, account: &Account) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for side in [Side::Sender, Side::Receiver] {
        caveats.extend(cpu_bound(&record.flows, side));
        caveats.extend(run_queue_wait(&record.flows, side));
    }
    caveats.extend(windows(&record.flows));
    caveats.extend(congestion_control(&record.flows));
    caveats.extend(mss(&record.flows));
    caveats.extend(same_host(account));
    if account.has_samples() {
        caveats.extend(short_run(plan));
    }
    caveats.extend(pace(&record.flows, plan));
    caveats.extend(cut_short(record));
    caveats
}

fn end_of(flow: &Flow, side: Side) -> Option<&FlowEnd> {
    match side {
        Side::Sender => flow.sender.as_ref(),
        Side::Receiver => flow.receiver.as_ref(),
    }
}

const fn name(side: Side) -> &'static str {
    match side {
        Side::Sender => "sender",
        Side::Receiver => "receiver",
    }
}

fn cpu_bound(flows: &[Flow], side: Side) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| end_of(flow, side));
    let share = ends.filter_map(cpu_share).reduce(f64::max)?;
    (share >= CPU_BOUND_RATIO).then(|| {
        Caveat::new(
            CaveatCode::CpuBound,
            format!("a {} thread used {:.0} % of a core", name(side), share * 100.0),
            "this host, not the path, may be the limit: try more streams (-P) or -Z",
        )
    })
}

fn run_queue_wait(flows: &[Flow], side: Side) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| end_of(flow, side));
    let share = ends.filter_map(run_queue_share).reduce(f64::max)?;
    (share >= RUN_QUEUE_WAIT_RATIO).then(|| {
        Caveat::new(
            CaveatCode::RunQueueWait,
            format!("a {} thread waited {:.0} % of the time for a core", name(side), share * 100.0),
            "more threads than cores, or other work on that host: use fewer streams or stop it",
        )
    })
}

/// The kernel doubles what is asked (socket(7)); less than that was not granted.
fn windows(flows: &[Flow]) -> Option<Caveat> {
    let ends = flows.iter().flat_map(|flow| [&flow.sender, &flow.receiver]).flatten();
    let short = |buffer: &Asked<u64>| {
        buffer.asked.zip(buffer.got).filter(|(asked, got)| *got < asked.saturating_mul(2))
    };
    let (asked, got) =
        ends.flat_map(|end| [&end.sndbuf_bytes, &end.rcvbuf_bytes]).find_map(short)?;
    Some(Caveat::new(
        CaveatCode::WindowNotGranted,
        format!("a socket buffer of {asked} bytes was asked, {} granted", got / 2),
        "raise net.core.rmem_max and net.core.wmem_max on that host",
    ))
}

fn congestion_control(flows: &[Flow]) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let differs = |end: &FlowEnd| {
        let control = end.congestion_control.clone();
        control.asked.zip(control.got).filter(|(asked, got)| asked != got)
    };
    let (asked, got) = ends.into_iter().find_map(differs)?;
    Some(Caveat::new(
        CaveatCode::CongestionControlNotGranted,
        format!("{asked} was asked, the sender used {got}"),
        "see net.ipv4.tcp_available_congestion_control at the sender",
    ))
}

/// TCP_MAXSEG counts the timestamp option in: up to 12 bytes less than asked are in order.
fn mss(flows: &[Flow]) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let differs = |end: &FlowEnd| {
        let mss = &end.mss_bytes;
        mss.asked.zip(mss.got).filter(|(asked, got)| got > asked || got + 12 < *asked)
    };
    let (asked, got) = ends.into_iter().find_map(differs)?;
    Some(Caveat::new(
        CaveatCode::MssNotGranted,
        format!("a segment size of {asked} bytes was asked, {got} used"),
        "the path's MTU or the other end allows no more",
    ))
}

fn same_host(account: &Account) -> Option<Caveat> {
    let here = linerate_sys::host::boot_id()?;
    (account.server_host_id.as_deref() == Some(here.as_str())).then(|| {
        Caveat::new(
            CaveatCode::SameHost,
            "both ends run on one kernel",
            "the result says as much about its scheduling as about a path",
        )
    })
}

fn short_run(plan: &TcpPlan) -> Option<Caveat> {
    let Finish::TimeNs(ns) = plan.finish else { return None };
    (ns < SHORT_RUN_NS).then(|| {
        Caveat::new(
            CaveatCode::ShortRun,
            format!("the test was planned for {:.1} s", ns as f64 / 1e9),
            "slow start weighs in the result: measure for longer, or leave it out with -O",
        )
    })
}

fn pace(flows: &[Flow], plan: &TcpPlan) -> Option<Caveat> {
    let pace = plan.pace?.bits_per_sec() as f64;
    let ends = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let rate =
        |end: &FlowEnd| (end.span_ns > 0).then(|| end.bytes as f64 * 8e9 / end.span_ns as f64);
    let slowest = ends.filter_map(rate).reduce(f64::min)?;
    (slowest < pace * PACE_KEPT_RATIO).then(|| {
        Caveat::new(
            CaveatCode::PaceNotKept,
            format!("a stream sent {:.1} % of the pace that was asked", slowest / pace * 100.0),
            "the path or this host gives no more",
        )
    })
}

fn cut_short(record: &Record) -> Option<Caveat> {
    let failure = record.failure.as_ref()?;
    (!record.summary.is_empty()).then(|| {
        Caveat::new(
            CaveatCode::CutShort,
            format!("the test ended early ({})", failure.reason),
            "the figures are those up to the last interval",
        )
    })
}
