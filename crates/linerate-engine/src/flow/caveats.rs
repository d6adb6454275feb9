//! What a reader has to know before believing a throughput figure, each with its threshold.

use linerate_core::record::{
    Asked, Caveat, CaveatCode, Ceiling, Direction, Fault, Finish, Flow, FlowEnd, FlowSide, LINK,
    MetricId, Plan, ReceivedDatagrams, Record, RecordedInterface, SHARE_MAX, Stat, TcpPlan, Via,
    dropped_at_interface,
};
use linerate_core::units::BitRate;

use super::account::{Account, rate_bps};
use super::ceiling::datagrams::packet;
use super::ceiling::link::is_shaped;
use super::start_up;
use super::summary::{cpu_share, run_queue_share};
use crate::environment::stolen_time;
use crate::flow::udp::search_account;
use crate::path::witness;

/// A data thread above this share of a core may be what limits the result.
const CPU_BOUND_RATIO: f64 = 0.95;
/// A data thread that waited this share of its span for a core was not alone on the machine.
const RUN_QUEUE_WAIT_RATIO: f64 = 0.10;
/// Below this, start-up weighs in the result.
const SHORT_RUN_NS: u64 = 1_000_000_000;
/// A paced TCP stream below this share of its pace did not keep it.
const PACE_KEPT_RATIO_TCP: f64 = 0.98;
/// The same for a UDP stream, whose pace is its own.
const PACE_KEPT_RATIO_UDP: f64 = 0.99;
/// Above this share of datagrams that arrived joined, the result is that of joined ones.
const JOINED_RATIO: f64 = 0.5;
/// Below this share of all datagrams, what the receiver's own socket dropped is not told.
const LOST_HERE_RATIO: f64 = 1e-4;

/// Every caveat of a finished test.
pub(super) fn caveats(record: &Record, account: &Account) -> Vec<Caveat> {
    let flows = &record.flows;
    let mut caveats = Vec::new();
    for side in [FlowSide::Sender, FlowSide::Receiver] {
        caveats.extend(cpu_bound(flows, side));
        caveats.extend(run_queue_wait(flows, side));
    }
    caveats.extend(receive_drops(flows));
    caveats.extend(interface_drops(flows));
    caveats.extend(record.search.as_ref().into_iter().flat_map(search_account::caveats));
    caveats.extend(windows(flows));
    caveats.extend(congestion_control(flows));
    caveats.extend(mss_not_granted(flows));
    caveats.extend(zero_copy(flows));
    caveats.extend(multipath(flows));
    let same_host = same_host(account.server_host_id.as_deref());
    // One machine is told once.
    let ends = record.ends.iter().filter(|end| same_host.is_none() || end.role == "local");
    caveats.extend(ends.filter_map(stolen_time));
    caveats.extend(same_host);
    caveats.extend(merged_datagrams(record));
    caveats.extend(fragmented(record, account));
    caveats.extend(one_sided(record, account));
    if let Plan::Tcp(plan) = &record.plan
        && account.has_samples()
    {
        caveats.extend(short_run(plan).or_else(|| start_up::caveat(record, plan)));
    }
    caveats.extend(pace_not_kept(record));
    caveats.extend(record.ceilings().filter_map(|ceiling| above_ceiling(record, ceiling)));
    caveats.extend(witness::caveats(&record.paths));
    caveats.extend(cut_short(record));
    caveats
}

fn end_of(flow: &Flow, side: FlowSide) -> Option<&FlowEnd> {
    match side {
        FlowSide::Sender => flow.sender.as_ref(),
        FlowSide::Receiver => flow.receiver.as_ref(),
    }
}

const fn name(side: FlowSide) -> &'static str {
    match side {
        FlowSide::Sender => "sender",
        FlowSide::Receiver => "receiver",
    }
}

/// A data thread that used nearly all of a core.
fn cpu_bound(flows: &[Flow], side: FlowSide) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| end_of(flow, side));
    let share = ends.filter_map(cpu_share).reduce(f64::max)?;
    (share >= CPU_BOUND_RATIO).then(|| {
        Caveat::new(
            CaveatCode::CpuBound,
            format!("a {} thread used {:.0} % of a core", name(side), share * 100.0),
            "this host, not the path, may be the limit: try more streams (-P) or --fast",
        )
    })
}

/// A data thread that waited for a core.
fn run_queue_wait(flows: &[Flow], side: FlowSide) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| end_of(flow, side));
    let share = ends.filter_map(run_queue_share).reduce(f64::max)?;
    (share >= RUN_QUEUE_WAIT_RATIO).then(|| {
        Caveat::new(
            CaveatCode::RunQueueWait,
            format!("a {} thread waited {:.0} % of the time for a core", name(side), share * 100.0),
            "more threads than cores, or other work on that host: use fewer streams, or stop the \
             other work",
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
        format!("a socket buffer of {asked} bytes was requested, {} granted", got / 2),
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
        format!("{asked} was requested, the sender used {got}"),
        "see net.ipv4.tcp_available_congestion_control at the sender",
    ))
}

/// TCP_MAXSEG counts the timestamp option in: up to 12 bytes less than asked are in order.
fn mss_not_granted(flows: &[Flow]) -> Option<Caveat> {
    let ends = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let differs = |end: &FlowEnd| {
        let mss = &end.mss_bytes;
        mss.asked.zip(mss.got).filter(|(asked, got)| got > asked || got + 12 < *asked)
    };
    let (asked, got) = ends.into_iter().find_map(differs)?;
    Some(Caveat::new(
        CaveatCode::MssNotGranted,
        format!("a segment size of {asked} bytes was requested, {got} used"),
        "check the MTU of the path and of both ends",
    ))
}

/// Sends that the kernel was to refer to and copied: dearer than write().
fn zero_copy(flows: &[Flow]) -> Option<Caveat> {
    let sends = flows.iter().filter_map(|flow| flow.sender.as_ref()?.zero_copy_sends);
    let (completed, copied) =
        sends.fold((0, 0), |(all, copied), sends| (all + sends.completed, copied + sends.copied));
    (copied > 0).then(|| {
        Caveat::new(
            CaveatCode::ZeroCopyCopied,
            format!("the kernel copied {copied} of {completed} sends with MSG_ZEROCOPY after all"),
            "on loopback, veth and drivers without scatter-gather it always does: use --fast",
        )
    })
}

/// Multipath TCP that was asked for and not had.
fn multipath(flows: &[Flow]) -> Option<Caveat> {
    let ends = flows
        .iter()
        .flat_map(|flow| [("sender", flow.sender.as_ref()), ("receiver", flow.receiver.as_ref())]);
    let mut plain = ends.filter_map(|(name, end)| {
        let mptcp = end?.mptcp.as_ref().filter(|mptcp| !mptcp.used)?;
        Some((name, mptcp.reason.as_deref().unwrap_or("the kernel gives no reason")))
    });
    let (name, reason) = plain.next()?;
    Some(Caveat::new(
        CaveatCode::MultipathNotUsed,
        format!("the streams were plain TCP at the {name}: {reason}"),
        "check net.mptcp.enabled at both ends, and middleboxes that strip TCP options",
    ))
}

/// The caveat that both ends run on one kernel, by the name that the other end gave.
fn same_host(server_host_id: Option<&str>) -> Option<Caveat> {
    let here = linerate_sys::host::boot_id()?;
    (server_host_id == Some(here.as_str())).then(|| {
        Caveat::new(
            CaveatCode::SameHost,
            "both ends run on one kernel",
            "the result depends on CPU scheduling as much as on a path; one CPU for both data threads \
             can be faster, above all with short packets: --fast tries that",
        )
    })
}

fn receivers(flows: &[Flow]) -> impl Iterator<Item = &ReceivedDatagrams> {
    flows.iter().filter_map(|flow| flow.receiver.as_ref()?.received_datagrams.as_ref())
}

/// Losses of the receiver's own.
fn receive_drops(flows: &[Flow]) -> Option<Caveat> {
    let (here, lost, all) = receivers(flows).fold((0, 0, 0), |(here, lost, all), it| {
        let tally = &it.measured;
        (here + tally.lost_here, lost + tally.lost, all + tally.received + tally.lost)
    });
    (here > 0 && here as f64 >= all as f64 * LOST_HERE_RATIO).then(|| {
        Caveat::new(
            CaveatCode::ReceiveDrops,
            format!(
                "the receiver's socket buffer overflowed: {here} of {lost} lost datagrams were \
                     dropped there"
            ),
            "not a loss of the path: raise net.core.rmem_max there, use -w, or lower the rate (-b)",
        )
    })
}

/// Losses of the sender's own.
fn interface_drops(flows: &[Flow]) -> Option<Caveat> {
    let of = |way: Direction| flows.iter().filter(move |flow| flow.direction == way);
    let dropped = [Direction::Up, Direction::Down].map(|way| dropped_at_interface(of(way)));
    let dropped: u64 = dropped.into_iter().flatten().sum();
    let lost: u64 = receivers(flows).map(|datagrams| datagrams.measured.lost).sum();
    let of_lost = if lost > 0 { format!(" of {lost} lost") } else { String::new() };
    (dropped > 0).then(|| {
        Caveat::new(
            CaveatCode::OwnInterfaceDrops,
            format!("the sender's own interface dropped {dropped} datagrams{of_lost}"),
            "not a loss of the path: send below the rate of that interface (-b), or give it a \
             longer queue",
        )
    })
}

/// Without the receiver's count the sender is the witness: over TCP its kernel, which sees what is
/// acknowledged.
fn one_sided(record: &Record, account: &Account) -> Option<Caveat> {
    let uncounted = record.flows.iter().any(|flow| flow.receiver.is_none());
    let untold = matches!(&record.plan, Plan::Udp(plan) if plan.server.via == Some(Via::Ttcp));
    let (detail, advice) = match untold {
        true => (
            "the receiver does not report its count; the figures are what was sent",
            "read the loss from the receiver's output, or run linerate serve there",
        ),
        false if account.one_sided && uncounted => (
            "the receiver does not report its count; the figures are the bytes acknowledged, up to \
             the last acknowledgment",
            "for both ends' figures, run linerate serve there",
        ),
        false => return None,
    };
    Some(Caveat::new(CaveatCode::OneSided, detail, advice))
}

fn short_run(plan: &TcpPlan) -> Option<Caveat> {
    let Finish::TimeNs(ns) = plan.test.finish else { return None };
    (ns < SHORT_RUN_NS).then(|| {
        Caveat::new(
            CaveatCode::ShortRun,
            format!("the test was planned for {:.1} s", ns as f64 / 1e9),
            "slow start affects the result: measure longer (-t), or omit it with -O",
        )
    })
}

/// A sender that could not hold its rate.
fn pace_not_kept(record: &Record) -> Option<Caveat> {
    let (pace, kept, advice) = match &record.plan {
        Plan::Tcp(plan) => {
            (plan.test.pace, PACE_KEPT_RATIO_TCP, "the path or this host is the limit")
        }
        Plan::Udp(plan) => (
            plan.test.pace,
            PACE_KEPT_RATIO_UDP,
            "this host or its interface is the limit: use larger datagrams (-l) or several streams \
             (-P)",
        ),
        _ => return None,
    };
    let pace = pace.map(BitRate::bits_per_sec)? as f64;
    let ends = record.flows.iter().filter_map(|flow| flow.sender.as_ref());
    // What another program tells of its senders of datagrams is no measure of theirs.
    let own = |end: &FlowEnd| end.sent_datagrams.is_some() && !end.technique.is_empty();
    let over_tcp = matches!(record.plan, Plan::Tcp(_));
    let ends = ends.filter(|end| end.span_ns > 0 && (over_tcp || own(end)));
    let rates = ends.map(|end| rate_bps(end.bytes_measured, end.span_ns));
    let slowest = rates.reduce(f64::min)?;
    (slowest < pace * kept).then(|| {
        Caveat::new(
            CaveatCode::PaceNotKept,
            format!("a stream sent {:.1} % of the rate that -b asked for", slowest / pace * 100.0),
            advice,
        )
    })
}

/// Kinds of interfaces that hand joined buffers over without cutting them (Linux: veth and the
/// loopback offer UDP segmentation and never do it).
const UNCUTTING: [&str; 2] = ["loopback", "veth"];

/// Datagrams that were never packets of their own.
fn merged_datagrams(record: &Record) -> Option<Caveat> {
    let (joined, all) = receivers(&record.flows)
        .fold((0, 0), |(joined, all), it| (joined + it.joined, all + it.all.received));
    let kind = |interface: &RecordedInterface| interface.kind.clone();
    let kinds: Vec<String> =
        record.ends.iter().filter_map(|end| kind(end.interface.as_ref()?)).collect();
    let software = !kinds.is_empty() && kinds.iter().all(|kind| UNCUTTING.contains(&kind.as_str()));
    (software && joined > 0 && joined as f64 > all as f64 * JOINED_RATIO).then(|| {
        Caveat::new(
            CaveatCode::UncutDatagrams,
            format!(
                "{joined} of {all} datagrams were merged (GSO, GRO), over \
                     {}",
                kinds.join(" and ")
            ),
            "no network carries them like that: use --no-join to disable GSO and GRO",
        )
    })
}

/// Datagrams that need several packets.
fn fragmented(record: &Record, account: &Account) -> Option<Caveat> {
    let flows = record.flows.iter();
    let (direction, fragments) = flows
        .filter_map(|flow| Some((flow.direction, packet(flow, account, flow.direction).err()?)))
        .next()?;
    let way = match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
    };
    Some(Caveat::new(
        CaveatCode::Fragmented,
        format!("{way}: {fragments}"),
        "one lost fragment loses the datagram: use a smaller -l",
    ))
}

/// More than a bound allows is measured wrongly, or the bound is wrong.
fn above_ceiling(record: &Record, ceiling: &Ceiling) -> Option<Caveat> {
    let direction = ceiling.direction?;
    let goodput = record.summary_value(ceiling.metric, Stat::Value, Some(direction))?;
    let bound = ceiling.expected().filter(|bound| goodput > bound.value * SHARE_MAX)?;
    let way = match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
    };
    let reasons = match bound.kind {
        LINK if is_shaped(record, ceiling, direction) => {
            "a burst of the token bucket in a short test, or a filter that counts other bytes"
        }
        LINK if waited_behind_a_hole(record, direction) => {
            "bytes that waited at the receiver behind a lost segment when the measured span began; \
             measure for longer"
        }
        LINK => {
            "a driver that reports a wrong speed, as virtual ones do, several links under one \
             name, or packets that leave by another interface than the route's"
        }
        "application" => "a late start of the measured span, or a burst after a stall",
        _ => "a window that grew between two samples, or a path whose round trip became shorter",
    };
    let allowing = match bound.kind {
        LINK => "link".to_owned(),
        "application" => "pace".to_owned(),
        kind => kind.replace('_', " "),
    };
    Some(Caveat::new(
        CaveatCode::AboveCeiling,
        format!(
            "{way}: {:.1} % of what the {} allows was measured, so one of the two is wrong",
            goodput / bound.value * 100.0,
            allowing
        ),
        format!("likely {reasons}"),
    ))
}

/// True where a span that began under way may hold bytes that had come before it: what arrives
/// behind a lost segment is read all at once, when that segment comes.
fn waited_behind_a_hole(record: &Record, direction: Direction) -> bool {
    let Plan::Tcp(plan) = &record.plan else { return false };
    let lost = record.summary_value(MetricId::Retransmits, Stat::Value, Some(direction));
    plan.test.omit_ns > 0 && lost.is_some_and(|segments| segments > 0.0)
}

/// Figures of a test that ended early.
fn cut_short(record: &Record) -> Option<Caveat> {
    let failure = record.failure.as_ref().filter(|failure| failure.fault != Fault::Corrupted)?;
    (!record.summary.is_empty()).then(|| {
        Caveat::new(
            CaveatCode::CutShort,
            format!("the test ended early ({})", failure.reason),
            "the figures cover the time up to the last interval",
        )
    })
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        CeilingInput, MeasurementEnd, RecordId, Rung, Summary, TcpTest, Tool,
    };
    use linerate_core::time::WallTime;

    use super::*;

    fn record() -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let plan = Plan::Tcp(TcpPlan::default());
        Record::from_plan(id, tool, plan, WallTime::from_unix_nanos(0))
    }

    /// The caveat of 100 Mbit/s measured under a link and a window.
    fn caveat_above_bounds(
        link_bps: Option<f64>,
        shaper_bps: Option<u64>,
        window_bps: Option<f64>,
    ) -> Option<Caveat> {
        let mut record = record();
        let interface = Some(RecordedInterface { shaper_bps, ..RecordedInterface::default() });
        record.ends = vec![MeasurementEnd {
            role: "local".to_owned(),
            interface,
            ..MeasurementEnd::default()
        }];
        let row = Summary::from_value(MetricId::Goodput, Stat::Value, 100e6);
        record.summary = vec![row.in_direction(Direction::Up)];
        let mut ceiling = Ceiling::of_goodput(Direction::Up);
        ceiling.value = link_bps;
        ceiling.inputs = vec![CeilingInput::from_value("link_rate_bps", 95e6, "of the interface")];
        ceiling.rungs = vec![Rung {
            kind: "receive_window".to_owned(),
            value: window_bps,
            inputs: Vec::new(),
            unknown: Vec::new(),
            source: String::new(),
        }];
        above_ceiling(&record, &ceiling)
    }

    #[test]
    fn more_than_a_bound_and_a_hundredth_is_a_contradiction_that_names_its_reasons() {
        let caveat = caveat_above_bounds(Some(93.5e6), None, None).expect("107 %");
        assert_eq!(caveat.code, CaveatCode::AboveCeiling);
        // 100 / 93.5 = 1.0695.
        assert!(caveat.detail.contains("107.0 % of what the link allows"), "{caveat}");
        assert!(caveat.advice.contains("driver"), "{caveat}");
        let caveat = caveat_above_bounds(Some(90e6), Some(95_000_000), Some(120e6)).expect("111 %");
        assert!(caveat.advice.contains("burst"), "{caveat}");
        let caveat = caveat_above_bounds(Some(200e6), None, Some(90e6))
            .expect("more than the receive window allows");
        assert!(caveat.detail.contains("the receive window allows"), "{caveat}");
    }

    #[test]
    fn a_span_that_began_behind_a_lost_segment_is_told_as_the_likely_reason() {
        let mut record = record();
        let plan = TcpPlan {
            test: TcpTest { omit_ns: 1_000_000_000, ..TcpTest::default() },
            ..TcpPlan::default()
        };
        assert!(!waited_behind_a_hole(&record, Direction::Up));
        record.plan = Plan::Tcp(plan);
        assert!(!waited_behind_a_hole(&record, Direction::Up), "nothing was sent again");
        let row = Summary::from_value(MetricId::Retransmits, Stat::Value, 2.0);
        record.summary = vec![row.in_direction(Direction::Up)];
        assert!(waited_behind_a_hole(&record, Direction::Up));
        assert!(!waited_behind_a_hole(&record, Direction::Down));
    }

    #[test]
    fn below_a_hundredth_above_the_smallest_bound_nothing_is_said() {
        assert_eq!(caveat_above_bounds(Some(99.1e6), None, Some(120e6)), None);
        assert_eq!(caveat_above_bounds(None, None, None), None);
    }
}
