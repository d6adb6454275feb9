//! What framing allows for a test that was made: the slowest rate that either end's interface
//! tells, the packets that the sender really made.
//!
//! Left out: rates further along the path, which neither end can see from here.

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, End, Family, Flow, Interface, Layer, MetricId, Record, Stat,
};
use linerate_core::theory::framing::{
    self, EthernetLink, FramingCeiling, Segment, ShapedLink, Transport,
};
use linerate_core::units::BitRate;

/// Bit of `tcpi_options` for timestamps (Linux tcp.h, TCPI_OPT_TIMESTAMPS).
const OPTION_TIMESTAMPS: u8 = 1;

/// A rate that an interface tells.
struct KnownRate {
    bps: u64,
    shaped: bool,
    source: String,
}

/// The ceiling of the record's first direction, with the share that was reached.
pub(super) fn ceiling(record: &Record) -> Option<Ceiling> {
    let flow = record.flows.first()?;
    let mut ceiling = Ceiling {
        metric: MetricId::Goodput,
        layer: Layer::Payload,
        value: None,
        inputs: Vec::new(),
        unknown: Vec::new(),
        share: None,
    };
    let rate = slowest_rate(&record.ends, flow.direction);
    match &rate {
        Some(rate) => ceiling.inputs.push(input("link_rate_bps", rate.bps as f64, &rate.source)),
        None => ceiling.unknown.push(unknown_rate(&record.ends)),
    }
    let packet = packet(flow);
    match &packet {
        Some((segment, mtu)) => {
            ceiling.inputs.push(input("packet_bytes", f64::from(*mtu), "the sender's segments"));
            let header = f64::from(segment.header_bytes());
            ceiling.inputs.push(input("header_bytes", header, header_source(*segment)));
        }
        None => ceiling.unknown.push("the sender's segment size".to_owned()),
    }
    let framing = rate.zip(packet).and_then(|(rate, (segment, mtu))| of(&rate, &segment, mtu));
    ceiling.value = framing.map(|framing| framing.payload_bps);
    let goodput = record.value(MetricId::Goodput, Stat::Value, Some(flow.direction));
    ceiling.share = ceiling.value.zip(goodput).map(|(value, goodput)| goodput / value);
    Some(ceiling)
}

fn input(name: &str, value: f64, source: &str) -> CeilingInput {
    CeilingInput { name: name.to_owned(), value, source: source.to_owned() }
}

const fn header_source(segment: Segment) -> &'static str {
    match segment.transport {
        Transport::TcpWithTimestamps => "IP and TCP with timestamps, as on the SYN",
        Transport::Tcp | Transport::Udp => "IP and TCP without timestamps, as on the SYN",
    }
}

fn of(rate: &KnownRate, segment: &Segment, mtu_bytes: u32) -> Option<FramingCeiling> {
    let bits = BitRate::from_bits_per_sec(rate.bps);
    if rate.shaped {
        framing::shaped_ceiling(&ShapedLink { rate: bits, mtu_bytes }, segment).ok()
    } else {
        let link = EthernetLink { rate: bits, mtu_bytes, vlan_tags: 0 };
        framing::ceiling(&link, segment).ok()
    }
}

/// The slowest rate that is known: negotiated speeds at both ends, a shaper at the sending one.
fn slowest_rate(ends: &[End], direction: Direction) -> Option<KnownRate> {
    let sender = match direction {
        Direction::Up => "local",
        Direction::Down => "remote",
    };
    let interfaces = ends.iter().filter_map(|end| Some((end, end.interface.as_ref()?)));
    let rates = interfaces.flat_map(|(end, interface)| {
        let shaper = interface.shaper_bps.filter(|_| end.role == sender);
        let place = format!("{} at the {} end", interface.name, end.role);
        let speed = interface.speed_bps.map(|bps| KnownRate {
            bps,
            shaped: false,
            source: format!("speed of {place}"),
        });
        let shaper = shaper.map(|bps| KnownRate {
            bps,
            shaped: true,
            source: format!("token bucket filter on {place}"),
        });
        [speed, shaper].into_iter().flatten()
    });
    rates.min_by_key(|rate| rate.bps)
}

fn unknown_rate(ends: &[End]) -> String {
    let name = |interface: &Interface| match &interface.kind {
        Some(kind) => format!("{} ({kind})", interface.name),
        None => interface.name.clone(),
    };
    let mut names: Vec<String> =
        ends.iter().filter_map(|end| end.interface.as_ref()).map(name).collect();
    names.dedup();
    match names.as_slice() {
        [] => "the link's rate".to_owned(),
        names => format!("the link's rate: {} tells none", names.join(" and ")),
    }
}

/// The packets of a flow: their headers, and the IP packet that a full segment makes.
fn packet(flow: &Flow) -> Option<(Segment, u32)> {
    let info = flow.sender.as_ref()?.tcp_info?;
    let transport = match info.options? & OPTION_TIMESTAMPS {
        0 => Transport::Tcp,
        _ => Transport::TcpWithTimestamps,
    };
    let family = if flow.server_addr.starts_with('[') { Family::V6 } else { Family::V4 };
    let segment = Segment { family, transport };
    Some((segment, info.snd_mss_bytes? + segment.header_bytes()))
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{FlowEnd, Plan, RecordId, Summary, TcpInfo, TcpPlan, Tool};
    use linerate_core::time::WallTime;

    use super::*;

    fn record(interface: Interface, goodput_bps: f64) -> Record {
        let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
        let id = RecordId::from_parts(0, [0; 10]);
        let plan = Plan::Tcp(TcpPlan::default());
        let mut record = Record::begin(id, tool, plan, WallTime::from_unix_nanos(0));
        let interface = Some(interface);
        record.ends = vec![End { role: "local".to_owned(), interface, ..End::default() }];
        let info = TcpInfo {
            options: Some(OPTION_TIMESTAMPS | 6),
            snd_mss_bytes: Some(1448),
            ..TcpInfo::default()
        };
        record.flows = vec![Flow {
            flow: 0,
            direction: Direction::Up,
            client_addr: String::new(),
            server_addr: "192.0.2.1:5210".to_owned(),
            sender: Some(FlowEnd { tcp_info: Some(info), ..FlowEnd::default() }),
            receiver: None,
            syn: None,
        }];
        let row = Summary::of(MetricId::Goodput, Stat::Value, goodput_bps);
        record.summary = vec![row.in_direction(Direction::Up)];
        record
    }

    #[test]
    fn a_gigabit_interface_gives_941_48_megabit_and_the_share_of_it() {
        let interface = Interface { speed_bps: Some(1_000_000_000), ..Interface::default() };
        let ceiling = ceiling(&record(interface, 470_741_222.4)).expect("a flow");
        let value = ceiling.value.expect("everything is known");
        // 1448 of 1538 bytes on the wire.
        assert!((value - 941_482_444.7).abs() < 1.0, "{value}");
        assert!((ceiling.share.expect("measured") - 0.5).abs() < 1e-6);
    }

    #[test]
    fn a_shaper_counts_less_than_the_wire() {
        let interface = Interface { shaper_bps: Some(155_520_000), ..Interface::default() };
        let value = ceiling(&record(interface, 1.0)).and_then(|ceiling| ceiling.value);
        assert!((value.expect("known") - 148_740_396.3).abs() < 1.0, "{value:?}");
    }

    #[test]
    fn an_unknown_rate_is_named_and_no_share_is_made_up() {
        let interface = Interface {
            name: "a-b".to_owned(),
            kind: Some("veth".to_owned()),
            ..Interface::default()
        };
        let ceiling = ceiling(&record(interface, 1e9)).expect("a flow");
        assert_eq!((ceiling.value, ceiling.share), (None, None));
        assert_eq!(ceiling.unknown, ["the link's rate: a-b (veth) tells none"]);
    }
}
