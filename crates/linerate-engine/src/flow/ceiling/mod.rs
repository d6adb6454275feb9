//! What theory allows for a test that was made, in one direction: what the framing of the slowest
//! link that either end tells leaves of its rate for the packets that the sender really made, and
//! the other bounds that the record itself knows.
//!
//! Left out: rates further along the path, which neither end can see from here, but for those of
//! emulated paths, which tell them, and those that the user tells.

pub(super) mod datagrams;
mod emulated;
pub(super) mod link;
mod rungs;

use linerate_core::record::{
    Ceiling, CeilingInput, Direction, Flow, HeaderLayer, IpFamily, LayerRate, MetricId, Plan,
    Record, RecordedInterface, Rung, Stat, TcpPlan,
};
use linerate_core::theory::framing::{FramingCeiling, SegmentHeaders, Transport};

pub(super) use datagrams::of_datagrams;
use link::LinkRate;

/// Bit of `tcpi_options` for timestamps (Linux tcp.h, TCPI_OPT_TIMESTAMPS).
const OPTION_TIMESTAMPS: u8 = 1;

/// The sources that the rates of a ceiling may be from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sight {
    /// The interfaces of both ends, and the plans of the emulated paths between them: what a study
    /// holds its results against.
    Plans,
    /// The interfaces alone. What explains a result must not read the answer in the plan.
    Ends,
}

/// The ceilings of a TCP test by what `sight` shows, in place of those in its record. Other records
/// keep theirs.
pub(crate) fn replace_ceilings(record: &mut Record, sight: Sight) {
    let Plan::Tcp(plan) = record.plan.clone() else { return };
    let ways = [Direction::Up, Direction::Down].into_iter();
    let mut ceilings = ways.filter_map(|direction| ceiling(record, &plan, direction, sight));
    let (first, second) = (ceilings.next(), ceilings.next());
    (record.ceiling, record.ceiling_reverse) = (first, second);
}

/// The ceiling of one direction, with the share that was reached; none when it has no stream.
fn ceiling(record: &Record, plan: &TcpPlan, direction: Direction, sight: Sight) -> Option<Ceiling> {
    let flows: Vec<&Flow> =
        record.flows.iter().filter(|flow| flow.direction == direction).collect();
    let flow = flows.first()?;
    let packet = packet(flow).ok_or_else(|| "the sender's segment size".to_owned());
    Some(bound_seen(record, direction, packet, rungs::stream_rungs(&flows, plan), sight))
}

/// The ceiling of a direction, beside further bounds. In place of its packets may stand what is
/// not known of them.
fn bounded_ceiling(
    record: &Record,
    direction: Direction,
    packet: Result<FullPacket, String>,
    rungs: Vec<Rung>,
) -> Ceiling {
    bound_seen(record, direction, packet, rungs, Sight::Plans)
}

fn bound_seen(
    record: &Record,
    direction: Direction,
    packet: Result<FullPacket, String>,
    rungs: Vec<Rung>,
    sight: Sight,
) -> Ceiling {
    let flows = record.flows.iter().filter(|flow| flow.direction == direction).count();
    let mut ceiling = Ceiling::of_goodput(direction);
    ceiling.rungs = rungs;
    let mut known = link::interface_rates(&record.ends, direction);
    if sight == Sight::Plans {
        link::add_paths(&mut known, &record.paths, direction, flows);
    }
    if let Some(path) = record.plan.known_path() {
        link::add_known(&mut known, path, flows);
    }
    ceiling.no_link = known.no_link;
    if ceiling.no_link.is_some() {
        return ceiling;
    }
    ceiling.unknown = known.unknown;
    let slowest = slowest(&known.rates, packet.as_ref().ok());
    if let Some((rate, _)) = &slowest {
        ceiling.inputs.extend(rate.inputs());
    }
    match packet {
        Ok(packet) => {
            let sender = link::sender(&record.ends, direction);
            ceiling.inputs.extend(packet.inputs(sender));
        }
        Err(unknown) => ceiling.unknown.push(unknown),
    }
    if let Some((rate, Some(framing))) = slowest {
        ceiling.value = Some(framing.payload_bps);
        ceiling.layers = layers(&framing);
        // A rate of IP packets says nothing of the frames around them.
        ceiling.layers.retain(|at| rate.has_frames() || at.layer <= HeaderLayer::Ip);
    }
    let goodput = record.summary_value(MetricId::Goodput, Stat::Value, Some(direction));
    ceiling.share = ceiling.value.zip(goodput).map(|(value, goodput)| goodput / value);
    ceiling
}

/// The rate that leaves the least payload; the slowest one where the packets are not known.
fn slowest<'a>(
    rates: &'a [LinkRate],
    packet: Option<&FullPacket>,
) -> Option<(&'a LinkRate, Option<FramingCeiling>)> {
    let framed = rates.iter().map(|rate| (rate, packet.and_then(|packet| rate.framing(packet))));
    framed.min_by(|(rate, framing), (other, framing_other)| {
        let bps = |rate: &LinkRate, framing: &Option<FramingCeiling>| {
            framing.map_or(rate.bps as f64, |framing| framing.payload_bps)
        };
        bps(rate, framing).total_cmp(&bps(other, framing_other))
    })
}

fn layers(framing: &FramingCeiling) -> Vec<LayerRate> {
    [
        (HeaderLayer::Payload, framing.payload_bps),
        (HeaderLayer::Ip, framing.ip_bps),
        (HeaderLayer::Frame, framing.frame_bps),
        (HeaderLayer::Wire, framing.wire_bps),
    ]
    .into_iter()
    .map(|(layer, bps)| LayerRate { layer, bps })
    .collect()
}

/// A full packet of a flow.
#[derive(Clone, Debug)]
pub(super) struct FullPacket {
    pub(crate) segment: SegmentHeaders,
    /// Length of the IP packet.
    pub(crate) bytes: u32,
    /// Largest packet of the sender's route, where the kernel told.
    pub(crate) route_mtu_bytes: Option<u32>,
    /// The sender of these packets in words: `the sender's segments`.
    pub(crate) source: &'static str,
    /// Where the length of the headers is from.
    pub(crate) headers: String,
}

impl FullPacket {
    /// The inputs of the packet: its length, the MTU where that is larger, and its headers.
    fn inputs(&self, sender: Option<&RecordedInterface>) -> Vec<CeilingInput> {
        let route = self.route_mtu_bytes.map(|mtu| (mtu, "of the sender's route".to_owned()));
        let link = sender
            .and_then(|interface| Some((interface.mtu_bytes?, format!("of {}", interface.name))));
        let mtu = route.or(link);
        let (source, smaller) = match &mtu {
            Some((mtu, whose)) if *mtu == self.bytes => (format!("the MTU {whose}"), None),
            Some((mtu, whose)) => {
                let input = CeilingInput::from_value("mtu_bytes", f64::from(*mtu), whose);
                (self.source.to_owned(), Some(input))
            }
            None => (self.source.to_owned(), None),
        };
        let header = f64::from(self.segment.header_bytes());
        [CeilingInput::from_value("packet_bytes", f64::from(self.bytes), source)]
            .into_iter()
            .chain(smaller)
            .chain([CeilingInput::from_value("header_bytes", header, &self.headers)])
            .collect()
    }
}

fn header_source(transport: Transport, flow: &Flow) -> String {
    let options = match transport {
        Transport::TcpWithTimestamps => "IP and TCP with timestamps",
        Transport::Tcp | Transport::Udp => "IP and TCP without timestamps",
    };
    // The options are those that both ends agreed on; the SYN shows that they were offered.
    let seen = if flow.syn.is_some() { "as on the SYN" } else { "as the sender negotiated" };
    format!("{options}, {seen}")
}

/// The packets of a flow: their headers, and the IP packet that a full segment makes.
fn packet(flow: &Flow) -> Option<FullPacket> {
    let info = flow.sender.as_ref()?.tcp_info?;
    let transport = match info.options? & OPTION_TIMESTAMPS {
        0 => Transport::Tcp,
        _ => Transport::TcpWithTimestamps,
    };
    let family = if flow.server_addr.starts_with('[') { IpFamily::V6 } else { IpFamily::V4 };
    let segment = SegmentHeaders { family, transport };
    Some(FullPacket {
        segment,
        bytes: info.snd_mss_bytes? + segment.header_bytes(),
        route_mtu_bytes: info.pmtu_bytes,
        source: "the sender's segments",
        headers: header_source(transport, flow),
    })
}

#[cfg(test)]
mod tests;
