//! Datagrams of iperf3 in the loops of this program, and the parameters of a UDP test.

use std::time::Duration;

use linerate_core::record::{
    Asked, DatagramTally, DatagramsSent, DelayVariation, Direction, EndReport, Failure, Finish,
    FlowEnd, FlowSide, ReceivedDatagrams, SentDatagrams, ServerPlan, TcpTest, UdpPlan, UdpTest,
    Via,
};
use linerate_core::units::BitRate;
use linerate_proto::iperf3::{
    CONNECT_BYTES, CounterWidth, DatagramHeader, Params, Protocol, Results, StreamResult,
};

use super::plan::{finish_of, out_of_bounds, params, request_of};
use super::report::{StreamKey, is_of};
use crate::flow::Sample;
use crate::flow::udp::layout::{DatagramHead, DatagramLayout, Leaving, ParsedDatagram};

const SECOND_NS: u64 = 1_000_000_000;
/// Datagrams of the last moments that the server does not tell of may be under way to it. It may
/// wait as long for a processor; what a path that broke down swallowed is more.
const UNDER_WAY_NS: u64 = 100_000_000;
/// Where more than one datagram in so many is lost, a queue on the way is taken to be full.
const QUEUED_ABOVE: u64 = 100;

/// The layout with numbers of 64 bits, which this client always asks for.
pub(super) const WIDE: DatagramLayout = DatagramLayout {
    write: |datagram, leaving, _| write(datagram, leaving, CounterWidth::Bits64),
    read: |datagram, _| read(datagram, CounterWidth::Bits64),
    number_bits: 64,
    stamps_from_start: false,
    own: false,
};

/// The layout with numbers of 32 bits.
pub(super) const NARROW: DatagramLayout = DatagramLayout {
    write: |datagram, leaving, _| write(datagram, leaving, CounterWidth::Bits32),
    read: |datagram, _| read(datagram, CounterWidth::Bits32),
    number_bits: 32,
    ..WIDE
};

/// The layout that a client's parameters ask for.
pub(super) const fn layout_of(params: &Params) -> DatagramLayout {
    if params.udp_counters_64bit { WIDE } else { NARROW }
}

fn write(datagram: &mut [u8], leaving: Leaving, width: CounterWidth) {
    let micros = leaving.at.as_nanos() / 1000;
    let header = DatagramHeader {
        seconds: u32::try_from(micros / 1_000_000).unwrap_or(u32::MAX),
        microseconds: u32::try_from(micros % 1_000_000).unwrap_or(0),
        // They are numbered from 1.
        sequence: leaving.number + 1,
    };
    // A datagram has 16 bytes at least, so the head fits.
    let _ = header.write(datagram, width);
}

fn read(datagram: &[u8], width: CounterWidth) -> ParsedDatagram {
    if datagram.len() == CONNECT_BYTES {
        return ParsedDatagram::Opening;
    }
    let Some(header) = DatagramHeader::parse(datagram, width) else { return ParsedDatagram::Stray };
    let bits = match width {
        CounterWidth::Bits32 => u64::from(u32::MAX),
        CounterWidth::Bits64 => u64::MAX,
    };
    let stamp = Duration::from_secs(header.seconds.into())
        + Duration::from_micros(header.microseconds.into());
    ParsedDatagram::Data(DatagramHead {
        number: header.sequence.wrapping_sub(1) & bits,
        stamp_ns: u64::try_from(stamp.as_nanos()).unwrap_or(u64::MAX),
    })
}

/// The parameters of a plan whose datagrams have `size_bytes`.
/// # Errors
/// What iperf3 does not have.
pub(super) fn udp_params(plan: &UdpPlan, size_bytes: u32) -> Result<Params, Failure> {
    let UdpTest { directions, streams, finish, omit_ns, window_bytes, pace, dscp, .. } = plan.test;
    let shared = TcpTest {
        directions,
        streams,
        finish,
        omit_ns,
        window_bytes,
        pace,
        dscp,
        ..TcpTest::default()
    };
    let params = Params {
        protocol: Protocol::Udp,
        block_bytes: Some(u64::from(size_bytes)),
        udp_counters_64bit: true,
        ..params(&shared)?
    };
    params.check_bounds().map_err(|error| out_of_bounds(&error))?;
    Ok(params)
}

/// The UDP test that a client's parameters ask of this end. The client ends it.
pub(super) fn udp_request_of(params: &Params, interval: Duration) -> UdpTest {
    let TcpTest { directions, streams, finish, omit_ns, interval_ns, .. } =
        request_of(params, interval);
    UdpTest {
        directions,
        streams,
        // Without an amount nothing but the client bounds it.
        finish: if params.bytes == 0 && params.blocks == 0 {
            Finish::Buffers(u64::MAX)
        } else {
            finish
        },
        omit_ns,
        interval_ns,
        size_bytes: params.block_bytes.map_or(1460, |size| u32::try_from(size).unwrap_or(1460)),
        pace: params.rate_bps.map(BitRate::from_bits_per_sec),
        window_bytes: params.window_bytes,
        dscp: params.tos.and_then(|tos| u8::try_from(tos >> 2).ok()),
        joined: true,
        search: None,
        taken_singly: false,
    }
}

/// The plan behind a client's parameters, for the record of this end.
pub(super) fn udp_plan_of(
    params: &Params,
    request: &UdpTest,
    peer: std::net::SocketAddr,
) -> UdpPlan {
    UdpPlan {
        server: ServerPlan::new(Some(Via::Iperf3), peer.ip().to_string(), peer.port()),
        test: UdpTest {
            finish: finish_of(params, request.finish),
            ..request.clone().with_size(Some(request.size_bytes))
        },
        ..UdpPlan::default()
    }
}

/// The state of a test at this end, beside the samples of its streams.
#[derive(Clone, Copy)]
pub(super) struct TestEnd<'a> {
    /// The side of this end in a direction.
    pub(super) side_of: fn(Direction) -> FlowSide,
    /// The samples at the end of the omitted span.
    pub(super) omitted: &'a [Sample],
    /// The datagrams that its senders have sent, once they are done: exact, where samples are taken
    /// when a thread comes to it.
    pub(super) sent: &'a [DatagramsSent],
    /// The omitted span in ns.
    pub(super) omit_ns: u64,
    /// When the test ended.
    pub(super) end_ns: u64,
}

/// The results of this end's streams so far, as iperf3 wants them.
pub(super) fn udp_results(
    places: &[StreamKey],
    samples: &[Sample],
    size_bytes: u32,
    told: &TestEnd<'_>,
) -> Results {
    let mut results = Results::default();
    let mut spent_ns = 0;
    for place in places {
        let of = |samples: &[Sample]| {
            samples.iter().find(|sample| is_of(place, sample.direction, sample.flow)).cloned()
        };
        let Some(sample) = of(samples) else { continue };
        let receives = (told.side_of)(place.direction) == FlowSide::Receiver;
        let begin = of(told.omitted);
        let before = begin.as_ref().map(Sample::counts).unwrap_or_default();
        let counts = sample.counts();
        let sampled = (counts.datagrams - before.datagrams.min(counts.datagrams), before.next);
        let sent = told.sent.iter().find(|sent| is_of(place, sent.direction, sent.flow));
        let exact = sent.filter(|_| !receives);
        // As the rows have it.
        let measured = |sent: &DatagramsSent| match told.omitted.is_empty() {
            true => sent.measured,
            false => sent.datagrams.saturating_sub(before.datagrams),
        };
        let (datagrams, omitted) = exact.map_or(sampled, |sent| {
            (measured(sent), sent.datagrams.saturating_sub(measured(sent)))
        });
        // A look that came late left out more than the omitted span, and its time as well.
        let begin_ns = begin.filter(|_| exact.is_some()).map_or(told.omit_ns, |sample| sample.t_ns);
        let lost = counts.next.saturating_sub(counts.datagrams).cast_signed();
        let lost_before = before.next.saturating_sub(before.datagrams).cast_signed();
        spent_ns += sample.cpu_ns.unwrap_or(0);
        results.streams.push(StreamResult {
            id: place.id,
            bytes: datagrams * u64::from(size_bytes),
            jitter_s: counts.jitter_ns.filter(|_| receives).unwrap_or(0) as f64 / 1e9,
            // Both with those of the omitted span, which readers take off.
            lost: if receives { lost } else { 0 },
            lost_omitted: Some(if receives { lost_before } else { 0 }),
            packets: exact.map_or(counts.next, |sent| sent.datagrams),
            packets_omitted: Some(omitted),
            start_s: Some(0.0),
            end_s: Some(told.end_ns.saturating_sub(begin_ns) as f64 / 1e9),
            ..StreamResult::default()
        });
        if !receives {
            results.sender_has_retransmits = Some(false);
        }
    }
    let t_ns = samples.iter().map(|sample| sample.t_ns).max().unwrap_or(0);
    results.cpu_total_percent = spent_ns as f64 * 100.0 / t_ns.max(1) as f64;
    results.cpu_system_percent = results.cpu_total_percent;
    results
}

/// Gives a sender what it has sent since the samples of `from`, as the rows have it: a thread that
/// a busy host let begin late takes the end of the omitted span to be as much later.
pub(super) fn count_sent_since(report: &mut EndReport, from: &[Sample], size_bytes: u32) {
    let (direction, flow) = (report.direction, report.flow);
    let same = |sample: &&Sample| (sample.direction, sample.flow) == (direction, flow);
    let end = &mut report.end;
    let (Some(sent), Some(before)) = (&mut end.sent_datagrams, from.iter().find(same)) else {
        return;
    };
    sent.measured = sent.count.saturating_sub(before.counts().datagrams);
    end.bytes_measured = sent.measured * u64::from(size_bytes);
    let until_ns = end.span_start_ns + end.span_ns;
    end.span_start_ns = before.t_ns;
    end.span_ns = until_ns.saturating_sub(before.t_ns);
}

/// Lengthens the time of all streams until the last datagram came: what comes after the end of the
/// test counts.
pub(super) fn until_last(results: &mut Results, places: &[StreamKey], reports: &[EndReport]) {
    let of_receivers = reports.iter().filter(|report| report.end.received_datagrams.is_some());
    let last_s = of_receivers.map(|report| report.end.span_ns as f64 / 1e9).fold(0.0, f64::max);
    for place in places {
        let receives = reports.iter().any(|report| {
            is_of(place, report.direction, report.flow) && report.end.received_datagrams.is_some()
        });
        let same = results.streams.iter_mut().find(|stream| stream.id == place.id);
        if let Some(stream) = same.filter(|_| receives) {
            stream.end_s = stream.end_s.map(|end_s| end_s.max(last_s));
        }
    }
}

/// The datagrams that the other end's senders sent, for the receivers of this end. A sender of 3.12
/// leaves the omitted span out of its bytes, but not out of its datagrams, and says that none were
/// omitted.
pub(super) fn reported_sent(
    places: &[StreamKey],
    results: &Results,
    size_bytes: u32,
) -> Vec<DatagramsSent> {
    let told = places.iter().filter_map(|place| {
        let stream = results.stream(place.id)?;
        let span_ns = stream.span_s().map_or(0, |span_s| (span_s * 1e9) as u64);
        Some(DatagramsSent {
            direction: place.direction,
            flow: place.flow,
            datagrams: stream.packets,
            measured: (stream.bytes / u64::from(size_bytes.max(1))).min(stream.packets),
            span_ns,
        })
    });
    told.collect()
}

/// The reports of the other end's streams, from its results and from this end's reports.
pub(super) fn udp_remote_reports(
    places: &[StreamKey],
    results: &Results,
    own: &[EndReport],
    side_of: fn(Direction) -> FlowSide,
    request: &UdpTest,
) -> Vec<EndReport> {
    let told = places.iter().filter_map(|place| Some((place, results.stream(place.id)?)));
    told.map(|(place, stream)| {
        let own = own.iter().find(|report| is_of(place, report.direction, report.flow));
        EndReport::from_flow_end(
            place.direction,
            place.flow,
            remote_end(stream, own, side_of(place.direction), request),
        )
    })
    .collect()
}

/// True where a sender came to less than 99 % of its pace, or had none.
fn is_held_back(end: &FlowEnd, request: &UdpTest) -> bool {
    let Some(pace) = request.pace else { return true };
    let kept_bits =
        u128::from(pace.bits_per_sec()) * u128::from(end.span_ns) / u128::from(SECOND_NS);
    u128::from(end.bytes_measured) * 8 * 100 < kept_bits * 99
}

fn remote_end(
    stream: &StreamResult,
    own: Option<&EndReport>,
    side: FlowSide,
    request: &UdpTest,
) -> FlowEnd {
    let size_bytes = request.size_bytes;
    // Versions before 3.2 tell no time.
    let own_ns = || own.map_or(0, |own| own.end.span_ns);
    let reported_ns = stream.span_s().map_or_else(own_ns, |span_s| (span_s * 1e9) as u64);
    let end = FlowEnd {
        bytes: stream.bytes,
        bytes_measured: stream.bytes,
        span_ns: reported_ns,
        congestion_control: Asked::default(),
        ..FlowEnd::default()
    };
    let datagrams = stream.bytes / u64::from(size_bytes.max(1));
    if side == FlowSide::Sender {
        let (count, measured) = (datagrams, datagrams);
        let sent_datagrams =
            Some(SentDatagrams { size_bytes, count, measured, ..SentDatagrams::default() });
        return FlowEnd { sent_datagrams, ..end };
    }
    let own_sent = own.and_then(|own| own.end.sent_datagrams.as_ref());
    let (sent, lost) = match own_sent {
        Some(sent) => {
            let tail_max = sent_within(sent, own, UNDER_WAY_NS);
            sent_and_lost(stream, sent, datagrams, tail_max)
        }
        None => (None, u64::try_from(stream.lost).unwrap_or(0)),
    };
    let tally = DatagramTally { sent, received: datagrams, lost, ..DatagramTally::default() };
    // The server counts until it reads of the end of the test. Datagrams came as they were sent,
    // unless a queue was full: those that it held came later, and nobody tells how much. It was
    // where datagrams were lost, and where the sender was held back from its pace.
    let lossy = sent.is_some_and(|sent| lost.saturating_mul(QUEUED_ABOVE) > sent);
    let queued = lossy || own.is_some_and(|own| is_held_back(&own.end, request));
    let sent_ns = own.map(|own| own.end.span_ns).filter(|_| !queued);
    let span_ns = sent_ns.map_or(reported_ns, |sent_ns| sent_ns.min(reported_ns));
    let jitter_ns = (datagrams > 1).then(|| (stream.jitter_s * 1e9).round() as u64);
    let delay = jitter_ns.map(|jitter_ns| DelayVariation {
        n: datagrams,
        jitter_ns: Some(jitter_ns),
        ..DelayVariation::default()
    });
    let received_datagrams = Some(ReceivedDatagrams {
        size_bytes,
        all: tally,
        measured: tally,
        delay,
        ..ReceivedDatagrams::default()
    });
    FlowEnd { span_ns, received_datagrams, ..end }
}

/// Datagrams that a sender sends in `ns`.
fn sent_within(sent: &SentDatagrams, own: Option<&EndReport>, ns: u64) -> u64 {
    let span_ns = own.map_or(0, |own| own.end.span_ns);
    let count = u128::from(sent.measured) * u128::from(ns);
    let count = count.checked_div(u128::from(span_ns)).unwrap_or(0);
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// How many of the datagrams that count this end sent, and how many of them are lost, where
/// `received` came. Of up to `tail_max` after the last that came nobody knows: the server counts
/// none that it finds in its socket once it has read `test end`.
fn sent_and_lost(
    stream: &StreamResult,
    sent: &SentDatagrams,
    received: u64,
    tail_max: u64,
) -> (Option<u64>, u64) {
    let tail = sent.count.saturating_sub(stream.packets);
    let unknown = if tail > tail_max { 0 } else { tail };
    // The own sum, so that what was sent is what arrived and what did not: iperf3's count of lost
    // ones goes down with duplicates, and leaves out what is missing at the end.
    let known = sent.measured.saturating_sub(unknown);
    let missing = known.saturating_sub(received);
    if sent.count == sent.measured {
        return (Some(known), missing);
    }
    // The other end's span begins at another moment, so what is missing of the own sum need not be
    // lost. Before 3.14 nobody tells how many of the lost were of the omitted span.
    let passed_over = stream.lost.saturating_sub(stream.lost_omitted.unwrap_or(0));
    let told = u64::try_from(passed_over).unwrap_or(0).saturating_add(tail - unknown);
    let lost = if stream.lost_omitted.is_some() { told } else { told.min(missing) };
    (Some(received.saturating_add(lost)), lost)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{DatagramCounts, UdpPlan};
    use linerate_core::time::MonoTime;

    use super::*;

    #[test]
    fn a_head_is_that_of_iperf3_with_numbers_from_1() {
        let at = MonoTime::from_nanos(0x6242_u64 * SECOND_NS + 0xcbb7 * 1000);
        let mut datagram = [0xff; 20];
        (WIDE.write)(&mut datagram, Leaving { number: 1, since_start_ns: 5, at }, 7);
        // As recorded from 3.12 for its second datagram.
        let head = [0, 0, 0x62, 0x42, 0, 0, 0xcb, 0xb7, 0, 0, 0, 0, 0, 0, 0, 2];
        assert_eq!(datagram[..16], head);
        let stamp_ns = at.as_nanos();
        assert_eq!(
            (WIDE.read)(&datagram, 0),
            ParsedDatagram::Data(DatagramHead { number: 1, stamp_ns })
        );
        (NARROW.write)(&mut datagram, Leaving { number: 1 << 32, since_start_ns: 5, at }, 7);
        assert_eq!(datagram[8..12], [0, 0, 0, 1]);
        assert_eq!(
            (NARROW.read)(&datagram, 0),
            ParsedDatagram::Data(DatagramHead { number: 0, stamp_ns })
        );
        assert_eq!((WIDE.read)(b"6789", 0), ParsedDatagram::Opening);
        assert_eq!((WIDE.read)(&[0; 15], 0), ParsedDatagram::Stray);
    }

    #[test]
    fn a_sender_that_began_late_has_sent_what_its_rows_have() {
        // Its thread began 60 ms late, so 94 of 200 left after 1 s by its own begin; by the samples
        // it had sent 100 when the omitted span was over, at 1.002 s of the test.
        let sent_datagrams =
            Some(SentDatagrams { count: 200, measured: 94, ..SentDatagrams::default() });
        let (span_start_ns, span_ns) = (SECOND_NS, SECOND_NS);
        let end = FlowEnd { sent_datagrams, span_start_ns, span_ns, ..FlowEnd::default() };
        let mut report = EndReport::from_flow_end(Direction::Up, 0, end);
        let counts = DatagramCounts { datagrams: 100, next: 100, ..DatagramCounts::default() };
        let from = Sample::empty_at(Direction::Up, 0, 1_002_000_000).with_datagrams(counts, 1000);
        count_sent_since(&mut report, &[from], 1000);
        let end = &report.end;
        assert_eq!(end.sent_datagrams.as_ref().map(|sent| sent.measured), Some(100));
        assert_eq!((end.bytes_measured, end.span_start_ns), (100_000, 1_002_000_000));
        assert_eq!(end.span_ns, 998_000_000);
    }

    #[test]
    fn where_a_span_was_omitted_only_what_was_passed_over_or_missing_at_the_end_is_lost() {
        // 180 sent, 87 of them after the omitted span by this end's clock; by the server's 85 came
        // in it. It passed 3 over, 2 of them before, and its last one was number 178.
        let sent = SentDatagrams { count: 180, measured: 87, ..SentDatagrams::default() };
        let told = StreamResult {
            packets: 178,
            lost: 3,
            lost_omitted: Some(2),
            ..StreamResult::default()
        };
        assert_eq!(sent_and_lost(&told, &sent, 85, 1), (Some(88), 3));
        assert_eq!(sent_and_lost(&told, &sent, 85, 2), (Some(86), 1), "the last may be under way");
        let all = StreamResult { packets: 180, lost: 2, ..told };
        assert_eq!(sent_and_lost(&all, &sent, 85, 0), (Some(85), 0), "a later begin is no loss");
        let older = StreamResult { lost_omitted: None, ..all };
        assert_eq!(sent_and_lost(&older, &sent, 86, 0), (Some(87), 1));
        let whole = SentDatagrams { count: 87, measured: 87, ..SentDatagrams::default() };
        assert_eq!(sent_and_lost(&told, &whole, 85, 0), (Some(87), 2));
        // The server had read up to number 86 of 87 when it was told of the end, and 85 of them.
        let early = StreamResult { packets: 86, ..told };
        assert_eq!(sent_and_lost(&early, &whole, 85, 1), (Some(86), 1));
    }

    #[test]
    fn a_sender_tells_what_its_rows_have_in_the_time_that_they_have() {
        let place = StreamKey { direction: Direction::Down, flow: 0, id: 1 };
        let sample = |datagrams, t_ns| {
            let counts = DatagramCounts { datagrams, next: datagrams, ..Default::default() };
            Sample::empty_at(Direction::Down, 0, t_ns).with_datagrams(counts, 1000)
        };
        let sent = DatagramsSent {
            direction: Direction::Down,
            flow: 0,
            datagrams: 180,
            measured: 90,
            span_ns: SECOND_NS,
        };
        // The look at the end of the omitted span came 10 datagrams late, 0.1 s.
        let told = TestEnd {
            side_of: |_| FlowSide::Sender,
            omitted: &[sample(100, SECOND_NS + 100_000_000)],
            sent: &[sent],
            omit_ns: SECOND_NS,
            end_ns: 2 * SECOND_NS,
        };
        let told = udp_results(&[place], &[sample(170, 2 * SECOND_NS)], 1000, &told);
        let stream = &told.streams[0];
        // The thread sent 10 more than the last sample saw.
        assert_eq!((stream.bytes, stream.packets), (80_000, 180));
        assert_eq!((stream.packets_omitted, stream.end_s), (Some(100), Some(0.9)));
    }

    #[test]
    fn late_datagrams_go_with_the_time_in_which_they_came() {
        let report = |direction, received: bool, span_ns| {
            EndReport::from_flow_end(
                direction,
                0,
                FlowEnd {
                    span_ns,
                    received_datagrams: received.then(ReceivedDatagrams::default),
                    ..FlowEnd::default()
                },
            )
        };
        let place = |direction, id| StreamKey { direction, flow: 0, id };
        let places = [place(Direction::Up, 1), place(Direction::Down, 3)];
        let one = |id| StreamResult { id, end_s: Some(1.0), ..StreamResult::default() };
        let mut own = Results { streams: vec![one(1), one(3)], ..Results::default() };
        // The last datagram of the first stream came 50 ms after the end.
        let reports = [
            report(Direction::Up, true, 1_050_000_000),
            report(Direction::Down, false, 1_200_000_000),
        ];
        until_last(&mut own, &places, &reports);
        let ends: Vec<_> = own.streams.iter().map(|stream| stream.end_s).collect();
        assert_eq!(ends, [Some(1.05), Some(1.0)]);
    }

    #[test]
    fn what_a_full_queue_held_came_after_it_was_sent() {
        // 1000 datagrams sent in 1 s; the server tells 1.1 s, as this end waits for the last ones.
        let span_ns = |arrived: u64, pace_bps: Option<u64>| {
            let sent = SentDatagrams { count: 1000, measured: 1000, ..SentDatagrams::default() };
            let own = EndReport::from_flow_end(
                Direction::Up,
                0,
                FlowEnd {
                    bytes_measured: 100_000,
                    span_ns: SECOND_NS,
                    sent_datagrams: Some(sent),
                    ..FlowEnd::default()
                },
            );
            let (bytes, start_s, end_s) = (arrived * 100, Some(0.0), Some(1.1));
            let told = StreamResult { bytes, start_s, end_s, ..StreamResult::default() };
            let plan =
                UdpPlan { server: ServerPlan::new(None, "192.0.2.1", 1), ..UdpPlan::default() };
            let request = crate::flow::udp::client::checked_request(&plan).expect("sound");
            let pace = pace_bps.map(BitRate::from_bits_per_sec);
            let request = UdpTest { size_bytes: 100, pace, ..request };
            remote_end(&told, Some(&own), FlowSide::Receiver, &request).span_ns
        };
        // 100,000 bytes in 1 s are 800 kbit/s: the pace.
        let kept = |arrived| span_ns(arrived, Some(800_000));
        assert_eq!([1000, 990].map(kept), [SECOND_NS; 2]);
        assert_eq!(kept(500), 1_100_000_000, "a queue that dropped was full");
        assert_eq!(span_ns(1000, Some(1_000_000)), 1_100_000_000, "held back from its pace");
        assert_eq!(span_ns(1000, None), 1_100_000_000, "as fast as the path takes it");
    }
}
