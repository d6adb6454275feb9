//! Between this program's account of a stream and the results of iperf3.

use linerate_core::record::{Asked, Direction, FlowEnd, Side, TcpInfo};
use linerate_proto::iperf3::{Results, StreamResult, stream_id};
use linerate_proto::native::EndReport;

/// A stream's place: which way, its number within that direction, and the identifier in results.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) direction: Direction,
    pub(super) flow: u16,
    pub(super) id: u32,
}

/// The places of a test, in the order in which the client connects them.
pub(super) fn places(directions: &[Direction], streams: u16) -> Vec<Place> {
    let all = directions.iter().flat_map(|&direction| (0..streams).map(move |s| (direction, s)));
    all.zip(0..)
        .map(|((direction, flow), at)| Place { direction, flow, id: stream_id(at) })
        .collect()
}

/// What an end knows of its test beside the reports of its streams.
#[derive(Clone, Copy)]
pub(super) struct Own<'a> {
    /// The side of this end in a direction.
    pub(super) side_of: fn(Direction) -> Side,
    /// Bytes of each sending stream when the omitted span ended.
    pub(super) omitted: &'a [(Place, u64)],
    /// The omitted span.
    pub(super) omit_ns: u64,
    /// When senders were told to stop; they notice a little later.
    pub(super) stopped_ns: u64,
}

/// What the streams of this end did, as iperf3 wants it.
pub(super) fn results(places: &[Place], reports: &[EndReport], own: &Own<'_>) -> Results {
    let mut results = Results::default();
    let mut longest_ns = 0;
    let (mut user_ns, mut system_ns) = (0, 0);
    for place in places {
        let same = |report: &&EndReport| is_of(place, report.direction, report.flow);
        let Some(end) = reports.iter().find(same).map(|report| &report.end) else { continue };
        let side = (own.side_of)(place.direction);
        results.streams.push(stream(place, end, side, own));
        longest_ns = longest_ns.max(end.span_start_ns + end.span_ns);
        user_ns += end.cpu_user_ns.unwrap_or(0);
        system_ns += end.cpu_system_ns.unwrap_or(0);
        if side == Side::Sender {
            let has = end.tcp_info.and_then(|info| info.total_retrans).is_some();
            results.sender_has_retransmits = Some(has);
        }
        results.congestion_used = end.congestion_control.got.clone().or(results.congestion_used);
    }
    let percent = |ns: u64| ns as f64 * 100.0 / longest_ns.max(1) as f64;
    results.cpu_user_percent = percent(user_ns);
    results.cpu_system_percent = percent(system_ns);
    results.cpu_total_percent = percent(user_ns + system_ns);
    results
}

fn stream(place: &Place, end: &FlowEnd, side: Side, own: &Own<'_>) -> StreamResult {
    let (bytes, span_ns, retransmits) = match side {
        Side::Sender => {
            let before = own.omitted.iter().find(|(other, _)| other.id == place.id);
            let omitted = before.map_or(0, |(_, bytes)| *bytes);
            let retransmits = end.tcp_info.and_then(|info| info.total_retrans);
            let span_ns = end.span_ns.min(own.stopped_ns).saturating_sub(own.omit_ns);
            (end.bytes.saturating_sub(omitted), span_ns, retransmits.map(u64::from))
        }
        // All that came after the omitted span, also what came after the measured one.
        Side::Receiver if own.omit_ns == 0 => (end.bytes, end.span_ns, None),
        Side::Receiver => (end.bytes_measured, end.span_ns, None),
    };
    StreamResult {
        id: place.id,
        bytes,
        retransmits,
        start_s: Some(0.0),
        end_s: Some(span_ns as f64 / 1e9),
        ..StreamResult::default()
    }
}

/// What the other end tells of its streams. iperf3 tells the span until the end of the test, not
/// until the last byte: `span_ns` is what this end knows of the receiver's span, the omitted one
/// included.
pub(super) fn remote_reports(
    places: &[Place],
    results: &Results,
    (side_of, omit_ns, span_ns): (fn(Direction) -> Side, u64, Option<u64>),
) -> Vec<EndReport> {
    let told = places.iter().filter_map(|place| Some((place, results.stream(place.id)?)));
    told.map(|(place, stream)| EndReport {
        direction: place.direction,
        flow: place.flow,
        end: remote_end(stream, results, side_of(place.direction), (omit_ns, span_ns)),
        syn: None,
        client_addr: String::new(),
        failure: None,
        stolen_ratio: None,
    })
    .collect()
}

fn remote_end(
    stream: &StreamResult,
    results: &Results,
    side: Side,
    (omit_ns, known_ns): (u64, Option<u64>),
) -> FlowEnd {
    let told_ns = stream.span_s().map(|span_s| (span_s * 1e9) as u64);
    let known_ns = known_ns.map(|span_ns| span_ns.saturating_sub(omit_ns));
    let span_ns = match (told_ns, known_ns.filter(|_| side == Side::Receiver)) {
        (Some(told), Some(known)) => told.min(known),
        (told, known) => told.or(known).unwrap_or(0),
    };
    let told_ns = told_ns.unwrap_or(0);
    // iperf3 tells the processor time of the process; with one stream that is the stream's.
    let alone = results.streams.len() == 1;
    let spent =
        |percent: f64| (alone && told_ns > 0).then(|| (percent / 100.0 * told_ns as f64) as u64);
    let retransmits = stream.retransmits.and_then(|count| u32::try_from(count).ok());
    FlowEnd {
        bytes: stream.bytes,
        bytes_measured: stream.bytes,
        span_start_ns: omit_ns,
        span_ns,
        cpu_user_ns: spent(results.cpu_user_percent),
        cpu_system_ns: spent(results.cpu_system_percent),
        congestion_control: Asked { asked: None, got: results.congestion_used.clone() },
        tcp_info: (side == Side::Sender && retransmits.is_some())
            .then(|| TcpInfo { total_retrans: retransmits, ..TcpInfo::default() }),
        ..FlowEnd::default()
    }
}

pub(super) fn is_of(place: &Place, direction: Direction, flow: u16) -> bool {
    place.direction == direction && place.flow == flow
}
