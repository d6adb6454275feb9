//! What theory allows for a test that was made, in one direction: what the framing of the slowest
//! link that either end tells leaves of its rate for the packets that the sender really made, and
//! the other bounds that the record itself knows.
//!
//! Left out: rates further along the path, which neither end can see from here, but for those of
//! emulated paths, which tell them.

mod emulated;
mod link;
mod rungs;

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, Family, Flow, Interface, Layer, LayerRate, MetricId, Record,
    Stat, TcpPlan,
};
use linerate_core::theory::framing::{FramingCeiling, Segment, Transport};

use link::LinkRate;

/// Bit of `tcpi_options` for timestamps (Linux tcp.h, TCPI_OPT_TIMESTAMPS).
const OPTION_TIMESTAMPS: u8 = 1;

/// The ceiling of one direction, with the share that was reached; none when it has no stream.
pub(super) fn ceiling(record: &Record, plan: &TcpPlan, direction: Direction) -> Option<Ceiling> {
    let flows: Vec<&Flow> =
        record.flows.iter().filter(|flow| flow.direction == direction).collect();
    let flow = flows.first()?;
    let mut ceiling = Ceiling::of_goodput(direction);
    ceiling.rungs = rungs::rungs(&flows, plan);
    let mut known = link::rates(&record.ends, direction);
    emulated::add(&mut known, &record.paths, direction, flows.len());
    ceiling.no_link = known.no_link;
    if ceiling.no_link.is_some() {
        return Some(ceiling);
    }
    ceiling.unknown = known.unknown;
    let sender = link::sender(&record.ends, direction);
    let packet = packet(flow);
    let slowest = slowest(&known.rates, packet);
    if let Some((rate, _)) = &slowest {
        ceiling.inputs.extend(rate.inputs());
    }
    match packet {
        Some(packet) => ceiling.inputs.extend(packet.inputs(flow, sender)),
        None => ceiling.unknown.push("the sender's segment size".to_owned()),
    }
    if let Some(framing) = slowest.and_then(|(_, framing)| framing) {
        ceiling.value = Some(framing.payload_bps);
        ceiling.layers = layers(&framing);
    }
    let goodput = record.value(MetricId::Goodput, Stat::Value, Some(direction));
    ceiling.share = ceiling.value.zip(goodput).map(|(value, goodput)| goodput / value);
    Some(ceiling)
}

/// The rate that leaves the least payload; the slowest one where the packets are not known.
fn slowest(
    rates: &[LinkRate],
    packet: Option<Packet>,
) -> Option<(&LinkRate, Option<FramingCeiling>)> {
    let framed = rates.iter().map(|rate| (rate, packet.and_then(|packet| rate.framing(&packet))));
    framed.min_by(|(rate, framing), (other, framing_other)| {
        let bps = |rate: &LinkRate, framing: &Option<FramingCeiling>| {
            framing.map_or(rate.bps as f64, |framing| framing.payload_bps)
        };
        bps(rate, framing).total_cmp(&bps(other, framing_other))
    })
}

fn layers(framing: &FramingCeiling) -> Vec<LayerRate> {
    [
        (Layer::Payload, framing.payload_bps),
        (Layer::Ip, framing.ip_bps),
        (Layer::Frame, framing.frame_bps),
        (Layer::Wire, framing.wire_bps),
    ]
    .into_iter()
    .map(|(layer, bps)| LayerRate { layer, bps })
    .collect()
}

/// A full packet of a flow.
#[derive(Clone, Copy, Debug)]
struct Packet {
    segment: Segment,
    /// Length of the IP packet.
    bytes: u32,
}

impl Packet {
    /// Its length, beside the MTU where that is larger, and its headers.
    fn inputs(self, flow: &Flow, sender: Option<&Interface>) -> Vec<CeilingInput> {
        let route = flow.sender.as_ref().and_then(|end| end.tcp_info?.pmtu_bytes);
        let route = route.map(|mtu| (mtu, "of the sender's route".to_owned()));
        let link = sender.and_then(|it| Some((it.mtu_bytes?, format!("of {}", it.name))));
        let mtu = route.or(link);
        let (source, smaller) = match &mtu {
            Some((mtu, whose)) if *mtu == self.bytes => (format!("the MTU {whose}"), None),
            Some((mtu, whose)) => {
                let input = CeilingInput::of("mtu_bytes", f64::from(*mtu), whose);
                ("the sender's segments".to_owned(), Some(input))
            }
            None => ("the sender's segments".to_owned(), None),
        };
        let header = f64::from(self.segment.header_bytes());
        [CeilingInput::of("packet_bytes", f64::from(self.bytes), source)]
            .into_iter()
            .chain(smaller)
            .chain([CeilingInput::of("header_bytes", header, self.header_source(flow))])
            .collect()
    }

    fn header_source(self, flow: &Flow) -> String {
        let options = match self.segment.transport {
            Transport::TcpWithTimestamps => "IP and TCP with timestamps",
            Transport::Tcp | Transport::Udp => "IP and TCP without timestamps",
        };
        // The options are those that both ends agreed on; the SYN shows that they were offered.
        let seen = if flow.syn.is_some() { "as on the SYN" } else { "as the sender negotiated" };
        format!("{options}, {seen}")
    }
}

/// The packets of a flow: their headers, and the IP packet that a full segment makes.
fn packet(flow: &Flow) -> Option<Packet> {
    let info = flow.sender.as_ref()?.tcp_info?;
    let transport = match info.options? & OPTION_TIMESTAMPS {
        0 => Transport::Tcp,
        _ => Transport::TcpWithTimestamps,
    };
    let family = if flow.server_addr.starts_with('[') { Family::V6 } else { Family::V4 };
    let segment = Segment { family, transport };
    Some(Packet { segment, bytes: info.snd_mss_bytes? + segment.header_bytes() })
}

#[cfg(test)]
mod tests;
