//! The client's side of a UDP test: measures with an iperf3 server.
//!
//! The server tells what arrived only at the end, so rows of a test that sends show what was sent.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, Fault, FlowSide, Record, StreamOpened, TcpDirections, UdpPlan,
    UdpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf3::{
    CONNECT_REQUEST, Cookie, Iperf3ClientMachine, Iperf3ClientTest, Results, ServerOutput,
    is_connect_reply,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::datagram_socket::DatagramSocket;
use linerate_sys::poll::readable;

use super::client::{Extras, Iperf3Connector, same_host};
use super::datagrams::{TestEnd, WIDE, reported_sent, udp_params, udp_remote_reports, udp_results};

use super::report::to_the_end;
use super::udp_streams::UdpStreams;
use crate::context::Context;
use crate::flow::account::{Account, IntervalSamples, client_side, server_side};
use crate::flow::peer::bind_address;
use crate::flow::peer::plain_address;
use crate::flow::udp::client::{checked_request, run_by};
use crate::flow::udp::endpoint::open_socket;
use crate::flow::{self, Flows, FlowsAnswer, Sample, Socket, TestSession};
use crate::socket_address::local_towards;

/// How often an answer is looked for.
const LOOK: Duration = Duration::from_millis(50);
/// The server is told of the end so long after the last datagram left: it reads its control
/// connection first.
const APART: Duration = Duration::from_millis(5);
/// Where the number of datagrams ends a test and none comes for this long, the last were lost.
const DONE: Duration = Duration::from_secs(3);
/// A stream's first datagram is sent again after this: iperf3's own client sends it once.
const AGAIN: Duration = Duration::from_secs(1);
/// Times that it is sent.
const TRIES: u32 = 4;
/// Larger data that comes before the answer in a reverse test.
const STRAYS_MAX: u32 = 10_000;
/// Measures with an iperf3 server at `server`; what was seen is in `account`.
pub(crate) fn measure_udp(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_udp_with(plan, server, request, Extras::default(), context, account).map(|_| ())
}

/// Measures with an iperf3 server over UDP, as `throughput::run_udp` does, and gives what that
/// printed where it was wanted.
pub fn run_udp(
    plan: &UdpPlan,
    extras: Extras,
    context: &mut Context<'_>,
) -> (Record, Option<ServerOutput>) {
    let mut output = None;
    let record = run_by(plan, u32::MAX, context, |plan, server, context, account| {
        let request = checked_request(plan)?;
        output = measure_udp_with(plan, server, &request, extras, context, account)?;
        Ok(())
    });
    (record, output)
}

fn measure_udp_with(
    plan: &UdpPlan,
    server: SocketAddr,
    request: &UdpTest,
    extras: Extras,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<Option<ServerOutput>, Failure> {
    let receive_max = extras.receive_max;
    let (local_port, device) = (extras.local_port, extras.device.clone());
    let params = extras.extend_params(udp_params(plan, request.size_bytes)?)?;
    let local = bind_address(plan.server.bind.as_deref())?;
    account.begin_datagrams(server, request);
    let cookie = Cookie::from_random(random_bytes());
    let timeout = Duration::from_nanos(plan.server.connect_timeout_ns);
    let way = Iperf3Connector { server, local, cookie, timeout, local_port, device };
    let control = way.control()?;
    account.server_host_id = same_host(&control);
    let by_amount = request.datagram_budget().is_some();
    let test = Iperf3ClientTest {
        cookie,
        span: request.planned_span().filter(|_| !by_amount),
        interval: Duration::from_nanos(request.interval_ns),
        receive_max,
        complete_after: by_amount.then(|| patience(request, params.burst.unwrap_or(1))),
        params: params.clone(),
    };
    let stop = context.stop.clone();
    let flows = Iperf3UdpClient {
        streams: UdpStreams::new(request.clone(), &params, WIDE, plan.cpu),
        way,
        context,
        account,
        stopped: None,
        left: None,
        received: Vec::new(),
        results: None,
    };
    let mut session = TestSession::new(Iperf3ClientMachine::new(monotonic(), test), flows);
    let result = flow::run(&mut session, &mut Socket::new(control)?, &stop);
    let output = session.flows.conclude(result)?;
    // A server of 3.12 and later goes on sending it once anybody has asked.
    Ok(output.filter(|_| params.get_server_output))
}

/// A server that sends datagrams by their number is done when none comes for this long: ten of its
/// gaps, or two of its bursts, and [`DONE`].
fn patience(request: &UdpTest, burst: u64) -> Duration {
    let bits = u64::from(request.size_bytes) * 8 * burst.max(5) * 2;
    let gaps = request.pace.map(|pace| bits as f64 / pace.bits_per_sec().max(1) as f64);
    DONE + gaps.map_or(Duration::ZERO, |s| Duration::from_secs_f64(s.min(3600.0)))
}

/// A test whose control connection is there.
struct Iperf3UdpClient<'a, 'w> {
    streams: UdpStreams,
    way: Iperf3Connector,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
    /// When senders were told to stop.
    stopped: Option<MonoTime>,
    /// Since when no datagram waits in this host.
    left: Option<MonoTime>,
    /// The samples when the server was told that the test is over: what comes later does not count
    /// there.
    received: Vec<Sample>,
    /// The server's results, once they came.
    results: Option<Results>,
}

impl Flows for Iperf3UdpClient<'_, '_> {
    type Machine = Iperf3ClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Iperf3ClientMachine>,
    ) -> Result<Option<FlowsAnswer<Iperf3ClientMachine>>, Failure> {
        match output {
            Output::Open => {
                self.open_streams()?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Begin => self.account.begin = now,
            Output::Start => {
                let started = self.streams.endpoint.start_senders(self.account.begin);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::Sample => self.report_interval(now),
            // It follows a sample of the same moment.
            Output::OmitOver => {
                self.account.omit_over();
                self.streams.omitted = self.account.newest_local().to_vec();
            }
            Output::StopSending => {
                self.streams.endpoint.stop_sending();
                self.stopped = Some(now);
                // The rest after the last whole interval, and what still comes.
                let local = self.streams.endpoint.sample(now);
                let interval = IntervalSamples { local, remote: Vec::new() };
                self.account.hold_interval(interval, self.context.watch);
            }
            Output::Ended => self.received = self.streams.endpoint.sample(now),
            Output::Count => {
                return Ok(Some(FlowsAnswer::Counted(Box::new(self.final_results(now)))));
            }
            Output::Peer(results) => {
                let size_bytes = self.streams.request.size_bytes;
                let sent = reported_sent(&self.streams.places, &results, size_bytes);
                self.account.contradiction = self.streams.endpoint.reported_sent(&sent);
                self.results = Some(*results);
            }
            Output::Finished => self.finish(now),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        let ending = self.stopped.is_some() && self.results.is_none();
        let receives = self.streams.request.directions == TcpDirections::Down;
        let delivered = receives || (ending && self.has_left(now));
        FlowState { delivered, ..self.streams.flow_state(now, Direction::Down) }
    }

    fn peer_name(&self) -> String {
        plain_address(self.way.server)
    }
}

impl Iperf3UdpClient<'_, '_> {
    /// Opens a socket for each stream, one after the other: the server tells them apart by the
    /// order of their first datagrams.
    fn open_streams(&mut self) -> Result<(), Failure> {
        let Self { streams, way, context, account, .. } = self;
        let server = way.server;
        for (at, place) in streams.places.clone().iter().enumerate() {
            let mut local = local_towards(server, way.local);
            local.set_port(way.port_of(at).unwrap_or(0));
            let socket = open_socket(&streams.request, local).and_then(|socket| {
                way.device.as_ref().map_or(Ok(()), |device| socket.bind_device(device))?;
                socket.connect(server).map(|()| socket)
            });
            let socket = socket.map_err(|error| crate::failure::system(&error))?;
            announce_stream(&socket, server)?;
            let client_addr =
                socket.local_address().map_or_else(String::new, |addr| addr.to_string());
            let (direction, flow) = (place.direction, place.flow);
            account.route_mtu_bytes = socket.mtu_bytes();
            account.connected(direction, flow, &client_addr, server);
            let (sndbuf_bytes, rcvbuf_bytes) = socket.buffers();
            (context.watch)(&Event::Stream(StreamOpened {
                direction,
                flow,
                local_addr: client_addr.clone(),
                remote_addr: server.to_string(),
                mss_bytes: None,
                sndbuf_bytes,
                rcvbuf_bytes,
                session: Some(way.cookie.printable_text()),
            }));
            streams.add(socket, place, client_side(direction), client_addr);
        }
        let (count, size) = (streams.request.streams, streams.request.size_bytes);
        let noun = if count == 1 { "stream" } else { "streams" };
        let line = format!("{count} UDP {noun} to {server}, iperf3, datagrams of {size} bytes");
        (context.watch)(&Event::Connected(line));
        let started = streams.endpoint.start_receivers();
        started.map_err(|error| crate::failure::system(&error))
    }

    /// True where all datagrams have left this host a moment ago.
    fn has_left(&mut self, now: MonoTime) -> bool {
        let endpoint = &self.streams.endpoint;
        let empty =
            |socket: &DatagramSocket| socket.send_room().is_none_or(|room| room.used_bytes == 0);
        if endpoint.datagrams_sent().is_none() || !endpoint.sockets().all(empty) {
            self.left = None;
            return false;
        }
        now.duration_since(*self.left.get_or_insert(now)) >= APART
    }

    /// Tells the rows of the interval that ends now; that of the end of the time waits for what
    /// its senders have counted by then.
    fn report_interval(&mut self, now: MonoTime) {
        let local = self.streams.endpoint.sample(now);
        let interval = IntervalSamples { local, remote: Vec::new() };
        if self.streams.is_over(now, self.account.begin) {
            self.account.hold_interval(interval, self.context.watch);
        } else {
            self.account.next_interval(interval, self.context.watch);
        }
    }

    /// The results of the streams, for the server.
    fn final_results(&mut self, now: MonoTime) -> Results {
        let mut samples = self.streams.endpoint.sample(now);
        let receives = |it: &Sample| client_side(it.direction) == FlowSide::Receiver;
        samples.retain(|sample| !receives(sample));
        samples.extend(std::mem::take(&mut self.received).into_iter().filter(receives));
        let sent = self.streams.endpoint.datagrams_sent().unwrap_or_default();
        let stopped = self.stopped.unwrap_or(self.account.begin);
        let request = &self.streams.request;
        let told = TestEnd {
            side_of: client_side,
            omitted: &self.streams.omitted,
            sent: &sent,
            omit_ns: request.omit_ns,
            end_ns: stopped.nanos_since(self.account.begin),
        };
        udp_results(&self.streams.places, &samples, request.size_bytes, &told)
    }

    /// Ends the streams and puts both ends' counts together.
    fn finish(&mut self, now: MonoTime) {
        let mut local = self.streams.endpoint.sample(now);
        self.account.local = self.streams.finish();
        self.give_time_of_the_test();
        self.streams.count_by_rows(&mut self.account.local, &self.account.local_samples);
        to_the_end(&mut local, &self.streams.omitted, &self.account.local);
        let interval = IntervalSamples { local, remote: Vec::new() };
        let now_ns = now.nanos_since(self.account.begin);
        self.account.last_interval(interval, now_ns, self.context.watch);
        let Some(results) = &self.results else { return };
        let (own, request) = (&self.account.local, &self.streams.request);
        self.account.remote =
            udp_remote_reports(&self.streams.places, results, own, server_side, request);
    }

    /// Senders of a test by time have its time, from the begin or from the end of the omitted span
    /// on, also where a busy host let one of them begin late.
    fn give_time_of_the_test(&mut self) {
        let request = &self.streams.request;
        let Some(stopped) = self.stopped.filter(|_| request.datagram_budget().is_none()) else {
            return;
        };
        let (omit_ns, until_ns) = (request.omit_ns, stopped.nanos_since(self.account.begin));
        let senders = self.account.local.iter_mut().map(|report| &mut report.end);
        for end in senders.filter(|end| end.sent_datagrams.is_some() && end.span_ns > 0) {
            let until_ns = until_ns.max(end.span_start_ns + end.span_ns);
            end.span_start_ns = omit_ns;
            end.span_ns = until_ns.saturating_sub(omit_ns);
        }
    }

    /// Keeps what was measured, however the test ended.
    fn conclude(mut self, result: Result<(), Failure>) -> Result<Option<ServerOutput>, Failure> {
        if self.account.local.is_empty() {
            self.account.local = self.streams.finish();
        }
        result?;
        let output = self.results.and_then(|results| results.server_output);
        self.account.stream_failure().map_or(Ok(output), Err)
    }
}

/// Sends the first datagram of a stream until it is answered.
fn announce_stream(socket: &DatagramSocket, server: SocketAddr) -> Result<(), Failure> {
    let mut strays = 0;
    for _ in 0..TRIES {
        let until = monotonic() + AGAIN;
        // One that is lost or refused is sent again.
        let _ = socket.send(&CONNECT_REQUEST);
        while monotonic() < until {
            let ready = readable(socket, until.duration_since(monotonic()).min(LOOK));
            if !ready.unwrap_or(false) {
                continue;
            }
            let mut datagram = [0; 64];
            if let Ok(Some((len, _))) = socket.receive_from(&mut datagram) {
                if is_connect_reply(&datagram[..len]) {
                    return Ok(());
                }
                strays += 1;
                if strays > STRAYS_MAX {
                    break;
                }
            }
        }
    }
    let reason = "no answer on its UDP port";
    Err(Failure::new(Fault::Unreachable, "open UDP stream to", server.to_string(), reason)
        .advise("a firewall may block UDP"))
}
