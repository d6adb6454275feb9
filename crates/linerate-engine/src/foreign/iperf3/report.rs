//! Between this program's account of a stream and the results of iperf3.

use linerate_core::record::{Asked, Direction, EndReport, FlowEnd, FlowSide, TcpInfo};
use linerate_proto::iperf3::{Results, StreamResult, stream_id};

use crate::flow::Sample;
use crate::served::format_transfer;

/// A stream's place: which way, its number within that direction, and the identifier in results.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamKey {
    pub(super) direction: Direction,
    pub(super) flow: u16,
    pub(super) id: u32,
}

/// The places of a test, in the order in which the client connects them.
pub(super) fn places(directions: &[Direction], streams: u16) -> Vec<StreamKey> {
    let all = directions.iter().flat_map(|&direction| (0..streams).map(move |s| (direction, s)));
    all.zip(0..)
        .map(|((direction, flow), at)| StreamKey { direction, flow, id: stream_id(at) })
        .collect()
}

/// Gives the streams that `until` has, and no others, the bytes between two samples, over the time
/// from the first to `end_ns`; a stream without a first sample counts from the start of the test.
pub(super) fn count_between(
    reports: &mut [EndReport],
    from: &[Sample],
    until: &[Sample],
    end_ns: u64,
) {
    for report in reports {
        let same = |it: &&Sample| (it.direction, it.flow) == (report.direction, report.flow);
        let Some(last) = until.iter().find(same) else { continue };
        let (bytes, t_ns) =
            from.iter().find(same).map_or((0, 0), |sample| (sample.bytes, sample.t_ns));
        report.end.bytes_measured = last.bytes.saturating_sub(bytes);
        report.end.span_start_ns = t_ns;
        report.end.span_ns = end_ns.saturating_sub(t_ns);
    }
}

/// Gives a report the bytes that its stream has in the rows of `told` beyond `from`, where it has
/// fewer: what was told and then not read, or counted to the span before, stays counted.
pub(super) fn count_told(report: &mut EndReport, from: &[Sample], told: &[Sample]) {
    let (direction, flow) = (report.direction, report.flow);
    let same = |sample: &&Sample| (sample.direction, sample.flow) == (direction, flow);
    let bytes_of = |samples: &[Sample]| samples.iter().find(same).map_or(0, |sample| sample.bytes);
    let told = bytes_of(told).saturating_sub(bytes_of(from));
    let end = &mut report.end;
    end.bytes_measured = end.bytes_measured.max(told);
    if let Some(received) = &mut end.received_datagrams {
        let datagrams = end.bytes_measured / u64::from(received.size_bytes.max(1));
        let tally = &mut received.measured;
        tally.received = tally.received.max(datagrams);
        tally.sent = tally.sent.map(|sent| sent.max(tally.received + tally.lost));
    }
}

/// Makes of the samples of a moment those of the end of the test, so that what they have beyond
/// `from`, the samples at the end of the omitted span, is what `reports` measured.
pub(super) fn to_the_end(samples: &mut [Sample], from: &[Sample], reports: &[EndReport]) {
    for sample in samples {
        let same = |it: &&EndReport| (it.direction, it.flow) == (sample.direction, sample.flow);
        let Some(report) = reports.iter().find(same) else { continue };
        let end = &report.end;
        let before = from.iter().find(|earlier| earlier.is_of(sample));
        sample.bytes = before.map_or(0, |sample| sample.bytes) + end.bytes_measured;
        sample.t_ns = end.span_start_ns + end.span_ns;
        if let (Some(counts), Some(received)) = (&mut sample.datagrams, &end.received_datagrams) {
            let before = before.map(Sample::counts).unwrap_or_default();
            let lost = before.next.saturating_sub(before.datagrams) + received.measured.lost;
            counts.datagrams = before.datagrams + received.measured.received;
            counts.next = counts.datagrams + lost;
        }
    }
}

/// Gives all streams of a direction the span of the one that ended last: iperf3 divides the bytes
/// of all of them by the time of the first.
pub(super) fn in_one_span(reports: &mut [EndReport], direction: Direction, omit_ns: u64) {
    let last_ns = |end: &FlowEnd| end.span_start_ns + end.span_ns;
    let of_way = |report: &&EndReport| report.direction == direction;
    let all = reports.iter().filter(of_way).map(|report| last_ns(&report.end)).max().unwrap_or(0);
    for report in reports.iter_mut().filter(|report| report.direction == direction) {
        report.end.span_start_ns = omit_ns;
        report.end.span_ns = all.saturating_sub(omit_ns);
    }
}

/// The results of this end's streams, as iperf3 wants them; `side_of` is this end's in a direction.
pub(super) fn results(
    places: &[StreamKey],
    reports: &[EndReport],
    side_of: fn(Direction) -> FlowSide,
) -> Results {
    let mut results = Results::default();
    let mut longest_ns = 0;
    let (mut user_ns, mut system_ns) = (0, 0);
    for place in places {
        let same = |report: &&EndReport| is_of(place, report.direction, report.flow);
        let Some(end) = reports.iter().find(same).map(|report| &report.end) else { continue };
        let side = side_of(place.direction);
        results.streams.push(stream(place, end, side));
        longest_ns = longest_ns.max(end.span_start_ns + end.span_ns);
        user_ns += end.cpu_user_ns.unwrap_or(0);
        system_ns += end.cpu_system_ns.unwrap_or(0);
        if side == FlowSide::Sender {
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

fn stream(place: &StreamKey, end: &FlowEnd, side: FlowSide) -> StreamResult {
    let retransmits = end.tcp_info.and_then(|info| info.total_retrans).map(u64::from);
    StreamResult {
        id: place.id,
        bytes: end.bytes_measured,
        retransmits: retransmits.filter(|_| side == FlowSide::Sender),
        start_s: Some(0.0),
        end_s: Some(end.span_ns as f64 / 1e9),
        ..StreamResult::default()
    }
}

/// The facts by which this end reads the other's results.
#[derive(Clone, Copy)]
pub(super) struct Other {
    /// The side of the other end in a direction.
    pub(super) side_of: fn(Direction) -> FlowSide,
    /// The omitted span in ns.
    pub(super) omit_ns: u64,
    /// The time in which everything came that this end sent, since the start of the test. iperf3
    /// tells that until the end of the test, which may be later.
    pub(super) delivered_ns: Option<u64>,
    /// When the test ended, for versions before 3.2, which tell no time.
    pub(super) ended_ns: u64,
}

/// The reports of the other end's streams, from its results.
pub(super) fn remote_reports(
    places: &[StreamKey],
    results: &Results,
    other: &Other,
) -> Vec<EndReport> {
    let told = places.iter().filter_map(|place| Some((place, results.stream(place.id)?)));
    told.map(|(place, stream)| {
        EndReport::from_flow_end(
            place.direction,
            place.flow,
            remote_end(stream, results, (other.side_of)(place.direction), other),
        )
    })
    .collect()
}

fn remote_end(stream: &StreamResult, results: &Results, side: FlowSide, other: &Other) -> FlowEnd {
    let reported_ns = stream.span_s().map(|span_s| (span_s * 1e9) as u64);
    let since_omit = |ns: u64| ns.saturating_sub(other.omit_ns);
    let known_ns = other.delivered_ns.filter(|_| side == FlowSide::Receiver).map(since_omit);
    let span_ns = match (reported_ns, known_ns) {
        (Some(reported_ns), Some(known_ns)) => reported_ns.min(known_ns),
        (reported_ns, known_ns) => {
            reported_ns.or(known_ns).unwrap_or_else(|| since_omit(other.ended_ns))
        }
    };
    let reported_ns = reported_ns.unwrap_or(0);
    // iperf3 tells the processor time of the process; with one stream that is the stream's.
    let alone = results.streams.len() == 1;
    let spent = |percent: f64| {
        (alone && reported_ns > 0).then(|| (percent / 100.0 * reported_ns as f64) as u64)
    };
    let retransmits = stream.retransmits.and_then(|count| u32::try_from(count).ok());
    FlowEnd {
        bytes: stream.bytes,
        bytes_measured: stream.bytes,
        span_start_ns: other.omit_ns,
        span_ns,
        cpu_user_ns: spent(results.cpu_user_percent),
        cpu_system_ns: spent(results.cpu_system_percent),
        congestion_control: Asked { asked: None, got: results.congestion_used.clone() },
        tcp_info: (side == FlowSide::Sender && retransmits.is_some())
            .then(|| TcpInfo { total_retrans: retransmits, ..TcpInfo::default() }),
        ..FlowEnd::default()
    }
}

/// `, up: 12.35 kB in 1.000 s, 98.8 kbit/s` for each direction, for the log; none where nothing
/// was counted.
pub(super) fn amounts(reports: &[EndReport]) -> String {
    let mut line = String::new();
    for (direction, way) in [(Direction::Up, "up"), (Direction::Down, "down")] {
        let ends = || {
            reports.iter().filter(|report| report.direction == direction).map(|report| &report.end)
        };
        let Some(span_ns) = ends().map(|end| end.span_ns).max() else { continue };
        let bytes: u64 = ends().map(|end| end.bytes_measured).sum();
        line.push_str(&format!(", {way}: {}", format_transfer(bytes, span_ns)));
    }
    line
}

pub(super) fn is_of(place: &StreamKey, direction: Direction, flow: u16) -> bool {
    place.direction == direction && place.flow == flow
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn report(
        direction: Direction,
        flow: u16,
        start_ns: u64,
        span_ns: u64,
        bytes: u64,
    ) -> EndReport {
        EndReport::from_flow_end(
            direction,
            flow,
            FlowEnd {
                bytes,
                bytes_measured: bytes,
                span_start_ns: start_ns,
                span_ns,
                ..FlowEnd::default()
            },
        )
    }

    fn sample(direction: Direction, flow: u16, t_ns: u64, bytes: u64) -> Sample {
        Sample { bytes, ..Sample::empty_at(direction, flow, t_ns) }
    }

    fn measured_figures(reports: &[EndReport]) -> Vec<(u64, u64, u64)> {
        let end = |it: &EndReport| (it.end.bytes_measured, it.end.span_start_ns, it.end.span_ns);
        reports.iter().map(end).collect()
    }

    #[test]
    fn bytes_of_the_omitted_span_go_with_its_time() {
        // 120 MB a second on a link of 1 Gbit/s, 2 s omitted and 2 s measured; what was in the
        // send buffers then arrives in another 10 ms.
        let mut reports = [
            report(Direction::Up, 0, 0, 4 * SECOND, 481_200_000),
            report(Direction::Down, 0, 2 * SECOND, 2 * SECOND, 240_000_000),
        ];
        let from = [sample(Direction::Up, 0, 2 * SECOND, 240_000_000)];
        let until = [sample(Direction::Up, 0, 4 * SECOND, 481_200_000)];
        count_between(&mut reports, &from, &until, 4 * SECOND + SECOND / 100);
        let expected = (241_200_000, 2 * SECOND, 2 * SECOND + SECOND / 100);
        assert_eq!(measured_figures(&reports), [expected, (240_000_000, 2 * SECOND, 2 * SECOND)]);
        // 241.2 MB in 2.01 s are 960 Mbit/s, not 1920.
        assert!(
            amounts(&reports[..1]).ends_with(" in 2.010 s, 960 Mbit/s"),
            "{}",
            amounts(&reports)
        );
    }

    #[test]
    fn what_rows_have_told_of_a_stream_stays_counted() {
        // 300 bytes at the end of the omitted span, 900 by the last row; then 500 were read.
        let mut counted = report(Direction::Down, 0, SECOND, SECOND, 500);
        let from = [sample(Direction::Down, 0, SECOND, 300)];
        let told = [sample(Direction::Down, 0, 2 * SECOND, 900)];
        count_told(&mut counted, &from, &told);
        assert_eq!(counted.end.bytes_measured, 600);
        let mut end = [sample(Direction::Down, 0, 3 * SECOND, 777)];
        to_the_end(&mut end, &from, &[counted.clone()]);
        assert_eq!((end[0].bytes, end[0].t_ns), (900, 2 * SECOND));
        // One that has more keeps it, and one of the other direction is another.
        count_told(&mut counted, &from, &[]);
        assert_eq!(counted.end.bytes_measured, 600);
    }

    #[test]
    fn streams_that_end_apart_have_the_time_of_the_last() {
        // Eight streams on a link of 1 Gbit/s have 15 MB each in the first second. Then they end
        // one by one, 10 ms apart, with another 1.25 MB each: 130 MB in 1.08 s.
        let late = |flow: u16| SECOND + u64::from(flow + 1) * SECOND / 100;
        let mut reports: Vec<_> =
            (0..8).map(|flow| report(Direction::Up, flow, 0, late(flow), 16_250_000)).collect();
        reports.push(report(Direction::Down, 0, 0, SECOND, 1000));
        in_one_span(&mut reports, Direction::Up, 0);
        assert!(reports[..8].iter().all(|report| report.end.span_ns == late(7)));
        assert_eq!(
            amounts(&reports),
            ", up: 130.0 MB in 1.080 s, 962.96 Mbit/s, down: 1.000 kB in 1.000 s, 8 kbit/s"
        );
        // What is told of each has that time too: a client divides the sum by the first one's.
        let places = places(&[Direction::Up], 8);
        let own = results(&places, &reports, |_| FlowSide::Receiver);
        assert!(own.streams.iter().all(|stream| stream.span_s() == Some(1.08)));
    }

    #[test]
    fn the_time_that_a_server_tells_is_used_where_nothing_better_is_known() {
        let places = places(&[Direction::Up, Direction::Down], 1);
        let one = |id, end_s| StreamResult {
            id,
            bytes: 1000,
            start_s: Some(0.0),
            end_s,
            ..StreamResult::default()
        };
        let spans = |end_s: Option<f64>, delivered_ns| {
            let streams = vec![one(1, end_s), one(3, end_s)];
            let results = Results { streams, ..Results::default() };
            let side_of =
                |way| if way == Direction::Up { FlowSide::Receiver } else { FlowSide::Sender };
            let other = Other { side_of, omit_ns: SECOND, delivered_ns, ended_ns: 4 * SECOND };
            let reports = remote_reports(&places, &results, &other);
            [reports[0].end.span_ns, reports[1].end.span_ns]
        };
        // Told 3.125 s; all was there after 3.0 s, of which one was omitted.
        assert_eq!(spans(Some(3.125), Some(3 * SECOND)), [2 * SECOND, 3_125_000_000]);
        assert_eq!(spans(Some(3.125), None), [3_125_000_000; 2]);
        // Versions before 3.2 tell no time.
        assert_eq!(spans(None, None), [3 * SECOND; 2]);
        assert_eq!(spans(None, Some(4 * SECOND + 8)), [3 * SECOND + 8, 3 * SECOND]);
    }
}
