//! What bounds a UDP test: the packets that its datagrams make, and its pace.

use std::fmt;

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, Flow, FlowSide, IpFamily, Record, Rung, UdpPlan,
};
use linerate_core::theory::framing::{SegmentHeaders, Transport};

use super::{FullPacket, bounded_ceiling};
use crate::flow::account::{Account, client_side};
use crate::flow::udp::search_account;

/// The ceilings of a UDP test.
pub(crate) fn of_datagrams(record: &mut Record, plan: &UdpPlan, account: &Account) {
    let ways = [Direction::Up, Direction::Down].into_iter();
    let mut ceilings = ways.filter_map(|direction| ceiling(record, plan, account, direction));
    let (first, second) = (ceilings.next(), ceilings.next());
    (record.ceiling, record.ceiling_reverse) = (first, second);
}

/// The ceiling of one direction, with the share that was reached; none when it has no stream.
fn ceiling(
    record: &Record,
    plan: &UdpPlan,
    account: &Account,
    direction: Direction,
) -> Option<Ceiling> {
    let flow = record.flows.iter().find(|flow| flow.direction == direction)?;
    let streams = record.flows.iter().filter(|flow| flow.direction == direction).count();
    let packet =
        packet(flow, account, direction).map_err(|cut| format!("what fragments take: {cut}"));
    let ceiling = bounded_ceiling(record, direction, packet, pace_rungs(plan, streams));
    Some(if plan.test.search.is_some() {
        search_account::ceiling(record, ceiling)
    } else {
        ceiling
    })
}

/// Datagrams that a route cuts, so that no packet is alike for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::flow) struct Fragments {
    /// IP packet of a whole datagram.
    packet_bytes: u32,
    /// Largest packet of the route.
    route_mtu_bytes: u32,
}

impl fmt::Display for Fragments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { packet_bytes, route_mtu_bytes } = self;
        write!(f, "packets of {packet_bytes} bytes over a route of {route_mtu_bytes}")
    }
}

/// The packet that a datagram makes; fragments where the route cuts it.
pub(in crate::flow) fn packet(
    flow: &Flow,
    account: &Account,
    direction: Direction,
) -> Result<FullPacket, Fragments> {
    let family = if flow.server_addr.starts_with('[') { IpFamily::V6 } else { IpFamily::V4 };
    let segment = SegmentHeaders { family, transport: Transport::Udp };
    let bytes = account.size_bytes.saturating_add(segment.header_bytes());
    let route = match client_side(direction) {
        FlowSide::Sender => account.route_mtu_bytes,
        FlowSide::Receiver => None,
    };
    let sender = match direction {
        Direction::Up => account.ends.first(),
        Direction::Down => account.ends.get(1),
    };
    let interface = sender.and_then(|end| end.interface.as_ref()?.mtu_bytes);
    match route.or(interface).filter(|mtu| bytes > *mtu) {
        Some(mtu) => Err(Fragments { packet_bytes: bytes, route_mtu_bytes: mtu }),
        None => Ok(FullPacket {
            segment,
            bytes,
            route_mtu_bytes: route,
            source: "the datagrams and their headers",
            headers: "IP and UDP".to_owned(),
        }),
    }
}

/// A pace is the one bound that the test itself sets.
fn pace_rungs(plan: &UdpPlan, streams: usize) -> Vec<Rung> {
    let pace = plan.test.pace.map(|pace| Rung {
        kind: "application".to_owned(),
        value: Some(pace.bits_per_sec() as f64 * streams as f64),
        inputs: vec![
            CeilingInput::from_value(
                "pace_bps",
                pace.bits_per_sec() as f64,
                "asked by -b, of each stream",
            ),
            CeilingInput::from_value("streams", streams as f64, "of this direction"),
        ],
        unknown: Vec::new(),
        source: "each stream is paced in payload bits".to_owned(),
    });
    pace.into_iter().collect()
}
