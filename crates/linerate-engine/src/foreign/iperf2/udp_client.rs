//! A UDP test with `iperf -s -u`: datagrams of iperf 2's layout, the end, and the server's report.
//!
//! Each stream is a test of its own at the server. The report tells what arrived there, so rows of
//! that way show what was sent. A server that sends tells its end by a negative number.

use std::io;
use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{
    DatagramTally, DatagramsSent, DelayVariation, Direction, EndReport, Event, Failure, Fault,
    Finish, FlowEnd, ReceivedDatagrams, Record, SentDatagrams, StreamOpened, TcpDirections,
    UdpPlan, UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::iperf2::{
    ClientHeader, Iperf2Amount, Mode, TIMED_BYTES_MIN, UdpClient, UdpClientTest, UdpNews,
    UdpPeerFault, UdpReport, UdpSender,
};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, realtime_offset_ns, sleep};
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::poll::any_readable;

use super::client::{Return, mode_of, time_amount};
use super::udp_layout::{DATAGRAM_BYTES, LAYOUT, UNPACED_BPS, wall_us};
use crate::context::Context;
use crate::failure::system;
use crate::flow::account::{Account, IntervalSamples, client_side};
use crate::flow::peer::bind_address;
use crate::flow::peer::plain_address;
use crate::flow::tcp::endpoint::stream_share;
use crate::flow::udp::client::{checked_request, run_by};
use crate::flow::udp::endpoint::{Endpoint, StreamId, open_socket};
use crate::flow::{self, Flows, FlowsAnswer, Net, Sample, TestSession, Words};
use crate::foreign::test::remote_end;
use crate::socket_address::local_towards;

/// Bytes of a datagram that the numbers and the header's flags take.
const SIZE_MIN: u32 = 28;

/// The options of a UDP test beside its plan.
#[derive(Clone, Copy, Debug, Default)]
pub struct UdpExtras {
    /// The server sends on a stream of its own to the caller, who listens (`-d`, `-r`).
    pub back: Option<Return>,
    /// Both ends compare their clocks (`--trip-times`).
    pub trip_times: bool,
}

/// Measures with a server of iperf 2 over UDP.
pub(crate) fn measure_udp(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure(plan, server, request, UdpExtras::default(), context, account).map(|_| ())
}

/// The same with what only iperf 2 has, and the server's reports as they came.
pub fn run_udp(
    plan: &UdpPlan,
    extras: UdpExtras,
    context: &mut Context<'_>,
) -> (Record, Vec<UdpReport>) {
    let mut reports = Vec::new();
    let record = run_by(plan, DATAGRAM_BYTES, context, |plan, server, context, account| {
        let request = checked_request(plan)?;
        reports = measure(plan, server, &request, extras, context, account)?;
        Ok(())
    });
    (record, reports)
}

fn measure(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    extras: UdpExtras,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<Vec<UdpReport>, Failure> {
    let mode = extras.back.map_or_else(|| mode_of(request.directions), Return::header_mode);
    check_request(request, mode, extras)?;
    let amounts: Result<Vec<Iperf2Amount>, Failure> =
        (0..request.streams).map(|flow| amount(request, flow)).collect();
    let amounts = amounts?;
    let header = ClientHeader {
        threads: request.streams.into(),
        listen_port: extras.back.map_or_else(|| server.port(), |back| back.port),
        buffer_bytes: request.size_bytes.min(DATAGRAM_BYTES),
        rate_bps: request.pace.map_or(UNPACED_BPS, BitRate::bits_per_sec),
        service_type: request.dscp.unwrap_or(0) << 2,
        trip_times: extras.trip_times.then(|| wall_us(monotonic())),
        ..ClientHeader::new(mode, amounts.first().copied().unwrap_or(Iperf2Amount::Bytes(0)))
    };
    let mut endpoint = Endpoint::with_layout(request.clone(), LAYOUT, plan.cpu);
    endpoint.begin_with(&UdpSender::new(header).first_bytes());
    account.begin_datagrams(server, request);
    account.ends.push(remote_end(None));
    let test = UdpClientTest {
        header,
        amounts,
        size_bytes: request.size_bytes as usize,
        span: request.planned_span(),
        interval: Duration::from_nanos(request.interval_ns),
        gap: datagram_gap(request),
        wall_offset_ns: realtime_offset_ns(),
    };
    let stop = context.stop.clone();
    let mut streams = Iperf2UdpStreams {
        server,
        request: request.clone(),
        endpoint,
        context,
        account,
        sent: false,
        reports: None,
    };
    let sockets = streams.open_sockets(plan)?;
    let mut control = ControlDatagrams { sockets, peeks: mode == Mode::Reverse };
    let mut session = TestSession::new(UdpClient::new(monotonic(), test), streams);
    let result = flow::run(&mut session, &mut control, &stop);
    session.flows.conclude(result)
}

/// The control datagrams beside the data on the sockets of the streams: a stream's number, then its
/// datagram.
struct ControlDatagrams {
    sockets: Vec<DatagramSocket>,
    /// True where arrivals are data, too, and stay for their receiver.
    peeks: bool,
}

impl Net for ControlDatagrams {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        for (socket, flow) in self.sockets.iter().zip(0_u16..) {
            let room = &mut bytes[2..];
            let came = if self.peeks { socket.peek_from(room) } else { socket.receive_from(room) };
            // An error is that of a datagram that was refused.
            if let Ok(Some((length, _))) = came {
                bytes[..2].copy_from_slice(&flow.to_be_bytes());
                return Ok(2 + length);
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some((flow, datagram)) = bytes.split_first_chunk::<2>() {
            let socket = self.sockets.get(usize::from(u16::from_be_bytes(*flow)));
            // One that is refused or finds no room is said again.
            socket.into_iter().for_each(|socket| drop(socket.send_when_room(datagram)));
        }
        Ok(bytes.len())
    }

    fn wait(&mut self, until: MonoTime, for_bytes: bool) {
        let span = until.duration_since(monotonic());
        if for_bytes {
            // A failed wait is a look without datagrams.
            let _ = any_readable(&self.sockets.iter().map(AsFd::as_fd).collect::<Vec<_>>(), span);
        } else {
            sleep(span);
        }
    }
}

/// The streams of a test.
struct Iperf2UdpStreams<'a, 'w> {
    server: SocketAddr,
    request: UdpTest,
    endpoint: Endpoint,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
    /// The machine knows what was sent.
    sent: bool,
    /// The server's reports of what it received, of the streams that it makes one of.
    reports: Option<Vec<Option<UdpReport>>>,
}

impl Flows for Iperf2UdpStreams<'_, '_> {
    type Machine = UdpClient;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<UdpClient>,
    ) -> Result<Option<FlowsAnswer<UdpClient>>, Failure> {
        match output {
            Output::Open => return Ok(Some(FlowsAnswer::Opened)),
            Output::Begin => self.account.begin = now,
            Output::Start => {
                self.endpoint.start_receivers().map_err(|error| system(&error))?;
                self.endpoint.start_senders(self.account.begin).map_err(|error| system(&error))?;
            }
            Output::Sample => self.sample(now),
            Output::StopSending => self.endpoint.stop_sending(),
            Output::Settle => {
                let downs: Vec<_> = self.download_samples(now).iter().map(until_now).collect();
                self.account.contradiction = self.endpoint.reported_sent(&downs);
            }
            Output::Peer(reports) => self.reports = Some(*reports),
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<UdpClient>>, Failure> {
        let mut news = Vec::new();
        if let Some(sent) = self.endpoint.datagrams_sent().filter(|_| !self.sent) {
            self.sent = true;
            news.push(UdpNews::Sent(sent.iter().map(|sent| sent.datagrams).collect()));
        }
        if self.request.directions == TcpDirections::Down {
            let downs = self.download_samples(now);
            let dry = downs.iter().filter(|sample| sample.counts().datagrams == 0);
            news.push(UdpNews::Dry(dry.map(|sample| sample.flow).collect()));
        }
        Ok((!news.is_empty()).then_some(FlowsAnswer::Tell(news)))
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        let downs = self.download_samples(now);
        FlowState {
            received: downs.iter().map(|sample| sample.counts().datagrams).sum(),
            moved: downs.iter().map(|sample| sample.counts().next).sum(),
            done: self.endpoint.is_done(),
            ..FlowState::default()
        }
    }

    fn peer_name(&self) -> String {
        self.server.to_string()
    }
}

impl Words for UdpClient {
    fn failure(server: &str, reason: TestFailureReason<UdpPeerFault>) -> Failure {
        let (reason, advice) = match reason {
            TestFailureReason::Peer(UdpPeerFault::NoData) => {
                ("no data came", "over UDP iperf sends since 2.1, `iperf -s -u`")
            }
            TestFailureReason::Peer(UdpPeerFault::FellSilent) => {
                ("the server fell silent", "the results so far are kept")
            }
            TestFailureReason::Peer(UdpPeerFault::NoReport) => {
                ("no report came; is it `iperf -s -u`?", "the counts of what was sent are kept")
            }
            TestFailureReason::Stopped => ("stopped before anything came", "nothing was measured"),
            _ => {
                let reason = "the last datagrams did not leave or come in time";
                return Failure::new(Fault::System, "exchange", server, reason);
            }
        };
        Failure::new(Fault::Unreachable, "hear from", server, reason).advise(advice)
    }
}

impl Iperf2UdpStreams<'_, '_> {
    /// Opens every stream; their sockets, for what goes beside data.
    fn open_sockets(&mut self, plan: &UdpPlan) -> Result<Vec<DatagramSocket>, Failure> {
        let Self { request, server, endpoint, context, account, .. } = self;
        let server = *server;
        let local = bind_address(plan.server.bind.as_deref())?;
        let mut sockets = Vec::new();
        for flow in 0..request.streams {
            let local = local_towards(server, local);
            let socket = open_socket(request, local)
                .and_then(|socket| socket.connect(server).map(|()| socket))
                .map_err(|error| system(&error))?;
            let client_addr = socket.local_address().map_or_else(String::new, plain_address);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            for direction in request.each_direction().iter().copied() {
                let socket = socket.try_clone().map_err(|error| system(&error))?;
                account.route_mtu_bytes = socket.mtu_bytes();
                account.connected(direction, flow, &client_addr, server);
                (context.watch)(&Event::Stream(StreamOpened {
                    direction,
                    flow,
                    local_addr: client_addr.clone(),
                    remote_addr: server.to_string(),
                    mss_bytes: None,
                    sndbuf_bytes,
                    rcvbuf_bytes,
                    session: None,
                }));
                let side = client_side(direction);
                let place = StreamId { direction, flow, side, client_addr: client_addr.clone() };
                endpoint.add(socket, place, Token([0; 16]));
            }
            sockets.push(socket);
        }
        let noun = if request.streams == 1 { "stream" } else { "streams" };
        let (streams, size) = (request.streams, request.size_bytes);
        let line = format!("{streams} UDP {noun} to {server}, iperf2, datagrams of {size} bytes");
        (context.watch)(&Event::Connected(line));
        Ok(sockets)
    }

    /// Samples of the streams that the server sends, as they arrived here.
    fn download_samples(&self, now: MonoTime) -> Vec<Sample> {
        let mut samples = self.endpoint.sample(now);
        samples.retain(|sample| sample.direction == Direction::Down);
        samples
    }

    /// The interval that ends with the time waits for what is counted in the end.
    fn sample(&mut self, now: MonoTime) {
        let interval = IntervalSamples { local: self.endpoint.sample(now), remote: Vec::new() };
        let planned = self.request.planned_span();
        if planned.is_some_and(|planned| now.duration_since(self.account.begin) >= planned) {
            self.account.hold_interval(interval, self.context.watch);
        } else {
            self.account.next_interval(interval, self.context.watch);
        }
    }

    /// Tells the rest after the last whole interval, so that rows add up to the result.
    fn tell_rest(&mut self, now: MonoTime, mut local: Vec<Sample>) {
        for sample in &mut local {
            let mut reports = self.account.local.iter();
            let own = reports.find(|it| (it.direction, it.flow) == (sample.direction, sample.flow));
            let Some(end) = own.map(|report| &report.end) else { continue };
            (sample.bytes, sample.t_ns) = (end.bytes_measured, end.span_start_ns + end.span_ns);
        }
        let now_ns = now.nanos_since(self.account.begin);
        let interval = IntervalSamples { local, remote: Vec::new() };
        self.account.last_interval(interval, now_ns, self.context.watch);
    }

    /// Keeps what was measured, however the test ended; the reports.
    fn conclude(mut self, result: Result<(), Failure>) -> Result<Vec<UdpReport>, Failure> {
        let now = monotonic();
        let (has_started, last) = (self.endpoint.has_started(), self.endpoint.sample(now));
        let none = Endpoint::with_layout(self.request.clone(), LAYOUT, None);
        self.account.local = std::mem::replace(&mut self.endpoint, none).finish();
        if has_started {
            self.tell_rest(now, last);
        }
        let account = self.account;
        if let Some(reports) = &self.reports {
            account.remote = remote_reports(&account.local, reports, self.request.size_bytes);
        }
        result?;
        let reports = self.reports.into_iter().flatten().flatten().collect();
        account.stream_failure().map_or(Ok(reports), Err)
    }
}

/// The datagrams that the server is known to have sent.
fn until_now(sample: &Sample) -> DatagramsSent {
    DatagramsSent {
        direction: sample.direction,
        flow: sample.flow,
        datagrams: sample.counts().next,
        measured: sample.counts().next,
        span_ns: 0,
    }
}

/// Refuses settings that iperf 2 has no room for.
fn check_request(request: &UdpTest, mode: Mode, extras: UdpExtras) -> Result<(), Failure> {
    let refuse = |reason: &str, advice: &str| {
        Err(Failure::new(Fault::Usage, "ask iperf2 for", "a UDP test", reason).advise(advice))
    };
    if request.size_bytes < SIZE_MIN {
        return refuse("datagrams below 28 bytes have no header", "give -l 28 or more");
    }
    if extras.trip_times && (request.size_bytes as usize) < TIMED_BYTES_MIN {
        return refuse("trip times do not fit below 120 bytes", "give -l 120 or more");
    }
    if mode != Mode::Forward && request.size_bytes > DATAGRAM_BYTES {
        return refuse(
            "a server that is to send more than 1470 bytes dies",
            "give -l 1470 or less",
        );
    }
    if request.omit_ns > 0 {
        return refuse("its report counts from the start", "leave out -O");
    }
    Ok(())
}

/// From datagram to datagram of a stream at its pace.
fn datagram_gap(request: &UdpTest) -> Duration {
    let bits = f64::from(request.size_bytes) * 8.0;
    let gap = request.pace.map_or(0.0, |pace| bits / pace.bits_per_sec().max(1) as f64);
    Duration::from_secs_f64(gap.min(3600.0))
}

/// The amount that a sending server is asked for on one stream, in whole datagrams.
fn amount(request: &UdpTest, flow: u16) -> Result<Iperf2Amount, Failure> {
    let datagrams = match request.finish {
        Finish::TimeNs(ns) => return time_amount(ns),
        Finish::Bytes(_) | Finish::Buffers(_) => request.datagram_budget().unwrap_or(0),
    };
    let own =
        stream_share(datagrams, flow, request.streams).saturating_mul(request.size_bytes.into());
    // A server that sends nothing of it does no harm; one that only takes does not look at it.
    let fits = u32::try_from(own).unwrap_or(u32::MAX).min(i32::MAX as u32);
    Ok(Iperf2Amount::Bytes(fits))
}

/// The report of the server's end of each stream.
fn remote_reports(
    local: &[EndReport],
    reports: &[Option<UdpReport>],
    size_bytes: u32,
) -> Vec<EndReport> {
    let ups = local.iter().filter(|own| own.direction == Direction::Up);
    let received = ups.zip(reports);
    let received =
        received.filter_map(|(own, told)| Some(received_there(own, told.as_ref()?, size_bytes)));
    let downs = local.iter().filter(|own| own.direction == Direction::Down);
    received.chain(downs.filter_map(|own| sent_there(own, size_bytes))).collect()
}

/// The datagrams that the server sent, by the number of its last one.
fn sent_there(own: &EndReport, size_bytes: u32) -> Option<EndReport> {
    let count = own.end.received_datagrams.as_ref()?.all.sent?;
    let sent = SentDatagrams { size_bytes, count, measured: count, ..SentDatagrams::default() };
    let bytes = count * u64::from(size_bytes);
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns: own.end.span_ns,
        sent_datagrams: Some(sent),
        technique: "iperf 2".to_owned(),
        ..FlowEnd::default()
    };
    Some(own.of_other_end(end))
}

/// The datagrams that the server counted, without the end, which it counts as a datagram. Its bytes
/// are those that its buffer had room for (1470 unless told otherwise), so datagrams are counted.
fn received_there(own: &EndReport, told: &UdpReport, size_bytes: u32) -> EndReport {
    let sent = own.end.sent_datagrams.as_ref().map(|sent: &SentDatagrams| sent.measured);
    // Copies are among those out of order, and cannot be told apart.
    let received = told.datagrams.saturating_sub(1).saturating_sub(told.lost);
    let bytes = received * u64::from(size_bytes);
    let lost = sent.map_or(told.lost, |sent| sent.saturating_sub(received));
    let tally = DatagramTally {
        sent,
        received,
        lost,
        reordered: told.out_of_order,
        ..DatagramTally::default()
    };
    let delay = (received > 1).then(|| DelayVariation {
        n: received,
        jitter_ns: Some(told.jitter_us * 1000),
        ..DelayVariation::default()
    });
    let received_datagrams = Some(ReceivedDatagrams {
        size_bytes,
        all: tally,
        measured: tally,
        delay,
        ..ReceivedDatagrams::default()
    });
    // The server's: what a queue held came later than it was sent.
    let reported_ns = Some(told.span_us.saturating_mul(1000)).filter(|ns| *ns > 0);
    let span_ns = reported_ns.unwrap_or(own.end.span_ns);
    let end = FlowEnd {
        bytes,
        bytes_measured: bytes,
        span_ns,
        received_datagrams,
        technique: "iperf 2".to_owned(),
        ..FlowEnd::default()
    };
    own.of_other_end(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(directions: TcpDirections) -> UdpTest {
        let plan = UdpPlan {
            test: UdpTest { size_bytes: Some(1000), directions, streams: 3, ..UdpTest::default() },
            ..UdpPlan::default()
        };
        UdpTest { finish: Finish::Buffers(100), ..checked_request(&plan).expect("sound") }
    }

    #[test]
    fn streams_share_whole_datagrams() {
        let request = request(TcpDirections::Down);
        let of = |flow| amount(&request, flow).expect("room");
        assert_eq!([of(0), of(1), of(2)], [34_000, 33_000, 33_000].map(Iperf2Amount::Bytes));
    }

    #[test]
    fn what_a_server_cannot_do_is_said_before_it_is_asked() {
        let why = |size_bytes, mode, trip_times| {
            let request = UdpTest { size_bytes, ..request(TcpDirections::Up) };
            let extras = UdpExtras { trip_times, back: None };
            check_request(&request, mode, extras).err().map(|failure| failure.to_string())
        };
        assert_eq!(why(1470, Mode::Reverse, false), None);
        assert_eq!(why(8000, Mode::Forward, false), None);
        let dies = why(1471, Mode::FullDuplex, false);
        assert!(dies.is_some_and(|why| why.contains("1470")));
        assert!(why(27, Mode::Forward, false).is_some());
        assert!(why(119, Mode::Forward, true).is_some());
    }
}
