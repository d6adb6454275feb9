//! What bounds a UDP test, and what a reader has to know before believing its figures.

use linerate_core::record::{
    Caveat, CaveatCode, Ceiling, CeilingInput, Direction, Family, Flow, FlowEnd, Interface,
    ReceivedDatagrams, Record, Rung, Side, UdpPlan, Via, dropped_at_interface,
};
use linerate_core::theory::framing::{Segment, Transport};

use super::account::Account;
use super::search_account;
use crate::environment::stolen_time;
use crate::path::witness;
use crate::throughput::{
    Packet, above_ceiling, bound, client_side, cpu_bound, cut_short, rate_bps, run_queue_wait,
    same_host, windows,
};

/// A sender below this share of its pace did not keep it.
const PACE_KEPT_RATIO: f64 = 0.99;
/// Above this share of datagrams that arrived joined, the result is that of joined ones.
const JOINED_RATIO: f64 = 0.5;
/// Below this share of all datagrams, what the receiver's own socket dropped is not told.
const LOST_HERE_RATIO: f64 = 1e-4;

/// The ceiling of one direction, with the share that was reached; none when it has no stream.
pub(super) fn ceiling(
    record: &Record,
    plan: &UdpPlan,
    account: &Account,
    direction: Direction,
) -> Option<Ceiling> {
    let flow = record.flows.iter().find(|flow| flow.direction == direction)?;
    let streams = record.flows.iter().filter(|flow| flow.direction == direction).count();
    let packet = packet(flow, account, direction);
    let ceiling = bound(record, direction, packet, rungs(plan, streams));
    Some(if plan.search.is_some() { search_account::ceiling(record, ceiling) } else { ceiling })
}

/// The packet that a datagram makes, or why it makes none that is alike for all.
fn packet(flow: &Flow, account: &Account, direction: Direction) -> Result<Packet, String> {
    let family = if flow.server_addr.starts_with('[') { Family::V6 } else { Family::V4 };
    let segment = Segment { family, transport: Transport::Udp };
    let bytes = account.size_bytes.saturating_add(segment.header_bytes());
    let route = match client_side(direction) {
        Side::Sender => account.route_mtu_bytes,
        Side::Receiver => None,
    };
    let sender = match direction {
        Direction::Up => account.ends.first(),
        Direction::Down => account.ends.get(1),
    };
    let interface = sender.and_then(|end| end.interface.as_ref()?.mtu_bytes);
    match route.or(interface).filter(|mtu| bytes > *mtu) {
        Some(mtu) => {
            Err(format!("what fragments take: packets of {bytes} bytes over a route of {mtu}"))
        }
        None => Ok(Packet {
            segment,
            bytes,
            route_mtu_bytes: route,
            source: "the datagrams and their headers",
            headers: "IP and UDP".to_owned(),
        }),
    }
}

/// A pace is the one bound that the test itself sets.
fn rungs(plan: &UdpPlan, streams: usize) -> Vec<Rung> {
    let pace = plan.pace.map(|pace| Rung {
        kind: "application".to_owned(),
        value: Some(pace.bits_per_sec() as f64 * streams as f64),
        inputs: vec![
            CeilingInput::of("pace_bps", pace.bits_per_sec() as f64, "asked by -b, of each stream"),
            CeilingInput::of("streams", streams as f64, "of this direction"),
        ],
        unknown: Vec::new(),
        source: "each stream is paced in payload bits".to_owned(),
    });
    pace.into_iter().collect()
}

/// Every caveat of a finished test.
pub(super) fn caveats(record: &Record, plan: &UdpPlan, account: &Account) -> Vec<Caveat> {
    let mut caveats = Vec::new();
    for side in [Side::Sender, Side::Receiver] {
        caveats.extend(cpu_bound(&record.flows, side));
        caveats.extend(run_queue_wait(&record.flows, side));
    }
    caveats.extend(receive_drops(&record.flows));
    caveats.extend(interface_drops(&record.flows));
    caveats.extend(one_sided(plan));
    caveats.extend(pace(&record.flows, plan));
    caveats.extend(record.search.as_ref().into_iter().flat_map(search_account::caveats));
    caveats.extend(windows(&record.flows));
    let same_host = same_host(account.server_host_id.as_deref());
    // One machine is told once.
    let ends = record.ends.iter().filter(|end| same_host.is_none() || end.role == "local");
    caveats.extend(ends.filter_map(stolen_time));
    caveats.extend(same_host);
    caveats.extend(uncut(record));
    caveats.extend(fragmented(record, account));
    caveats.extend(record.ceilings().filter_map(|ceiling| above_ceiling(record, ceiling)));
    caveats.extend(witness::caveats(&record.paths));
    caveats.extend(cut_short(record));
    caveats
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
            format!("the receiver's own socket had no room for {here} of {lost} datagrams lost"),
            "not the path: raise net.core.rmem_max there, use -w, or send more slowly",
        )
    })
}

/// Losses of the sender's own.
fn interface_drops(flows: &[Flow]) -> Option<Caveat> {
    let of = |way: Direction| flows.iter().filter(move |flow| flow.direction == way);
    let dropped = [Direction::Up, Direction::Down].map(|way| dropped_at_interface(of(way)));
    let dropped: u64 = dropped.into_iter().flatten().sum();
    let lost: u64 = receivers(flows).map(|it| it.measured.lost).sum();
    let of_lost = if lost > 0 { format!(" of {lost} lost") } else { String::new() };
    (dropped > 0).then(|| {
        Caveat::new(
            CaveatCode::OwnInterfaceDrops,
            format!("the sender's own interface dropped {dropped} datagrams{of_lost}"),
            "not the path: send below the rate of that interface (-b), or give it a longer queue",
        )
    })
}

/// A receiver whose program has no way to tell what came.
fn one_sided(plan: &UdpPlan) -> Option<Caveat> {
    (plan.via == Some(Via::Ttcp)).then(|| {
        Caveat::new(
            CaveatCode::OneSided,
            "the receiver told no count; the figures are what was sent",
            "take what is lost from the count that it prints, or run linerate serve there",
        )
    })
}

/// A sender that could not hold its rate.
fn pace(flows: &[Flow], plan: &UdpPlan) -> Option<Caveat> {
    let pace = plan.pace?.bits_per_sec() as f64;
    let ends = flows.iter().filter_map(|flow| flow.sender.as_ref());
    let rate = |end: &FlowEnd| {
        let complete = end.span_ns > 0 && end.sent_datagrams.is_some() && !end.technique.is_empty();
        complete.then(|| rate_bps(end.bytes_measured, end.span_ns))
    };
    let slowest = ends.filter_map(rate).reduce(f64::min)?;
    (slowest < pace * PACE_KEPT_RATIO).then(|| {
        Caveat::new(
            CaveatCode::PaceNotKept,
            format!("a stream sent {:.1} % of the pace that was asked", slowest / pace * 100.0),
            "this host or its interface gives no more: use larger datagrams (-l) or streams (-P)",
        )
    })
}

/// Kinds of interfaces that hand joined buffers over without cutting them (Linux: veth and the
/// loopback offer UDP segmentation and never do it).
const UNCUTTING: [&str; 2] = ["loopback", "veth"];

/// Datagrams that were never packets of their own.
fn uncut(record: &Record) -> Option<Caveat> {
    let (joined, all) = receivers(&record.flows)
        .fold((0, 0), |(joined, all), it| (joined + it.joined, all + it.all.received));
    let kind = |interface: &Interface| interface.kind.clone();
    let kinds: Vec<String> =
        record.ends.iter().filter_map(|end| kind(end.interface.as_ref()?)).collect();
    let software = !kinds.is_empty() && kinds.iter().all(|kind| UNCUTTING.contains(&kind.as_str()));
    (software && joined > 0 && joined as f64 > all as f64 * JOINED_RATIO).then(|| {
        Caveat::new(
            CaveatCode::UncutDatagrams,
            format!("{joined} of {all} datagrams travelled joined, over {}", kinds.join(" and ")),
            "no network carries them so: --no-join sends and takes each by itself",
        )
    })
}

/// Datagrams that need several packets.
fn fragmented(record: &Record, account: &Account) -> Option<Caveat> {
    let flows = record.flows.iter();
    let (direction, unknown) = flows
        .filter_map(|flow| Some((flow.direction, packet(flow, account, flow.direction).err()?)))
        .next()?;
    let way = match direction {
        Direction::Up => "client to server",
        Direction::Down => "server to client",
    };
    Some(Caveat::new(
        CaveatCode::Fragmented,
        format!("{way}: {}", unknown.trim_start_matches("what fragments take: ")),
        "one lost fragment loses the datagram: use a smaller -l",
    ))
}
