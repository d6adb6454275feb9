//! The client's side: measures with an iperf3 server.
//!
//! The server tells its counts only at the end, so the rows of an interval come from what its
//! kernel has acknowledged.
//!
//! What is on the way when the time is over is waited for and counts, with the time that it took:
//! in the rows, whose last one lasts until then, and so in the sum, which is that of the rows to
//! the byte.
//!
//! A thread that a busy host kept waiting begins its time late, when data of the server has come
//! already. Of a test by time that does not count; where an amount counts, the time begins as much
//! earlier as it took at the rate of the rest.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    EndReport, Event, Failure, Fault, Finish, FlowSide, Record, TcpDirections, TcpPlan, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::iperf3::{
    COOKIE_BYTES, Cookie, Iperf3ClientMachine, Iperf3ClientTest, Params, Results, ServerOutput,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::tcp::{self, TcpOptions};

use super::ending::Ending;

use super::login::Login;
use super::plan::{out_of_bounds, params};
use super::report::{Other, count_between, count_told, is_of, remote_reports, results, to_the_end};
use super::tcp_streams::TcpStreams;
use crate::address::{addresses, choose};
use crate::context::Context;
use crate::flow::account::{Account, IntervalSamples, client_side, server_side};
use crate::flow::peer::plain_address;
use crate::flow::peer::{bind_address, connect_failure};
use crate::flow::tcp::client::run_by;
use crate::flow::tcp::endpoint::StreamId;
use crate::flow::{self, Flows, FlowsAnswer, Sample, Socket, TestSession};
use crate::foreign::test::opened;

/// The options that go with the parameters and are no part of the plan.
#[derive(Clone, Debug, Default)]
pub struct Extras {
    /// The prefix of the client's lines.
    pub title: Option<String>,
    /// A text for the server's document.
    pub extra_data: Option<String>,
    /// Asks for the lines that the server prints.
    pub server_output: bool,
    /// The user and the key, for a server that asks for a login.
    pub login: Option<Login>,
    /// Blocks that leave at once within the pace.
    pub burst: Option<u64>,
    /// Rate that the sending kernel holds each stream to, in bit/s (`--fq-rate`).
    pub fq_rate_bps: Option<u64>,
    /// A test gives up when nothing is received for so long.
    pub receive_max: Option<Duration>,
    /// Local port of the first stream; those of the others follow.
    pub local_port: Option<u16>,
    /// The interface that alone carries the test.
    pub device: Option<String>,
    /// The processor that the server's end runs on.
    pub server_affinity: Option<u32>,
}

impl Extras {
    /// The parameters with these beside them.
    pub(super) fn extend_params(self, params: Params) -> Result<Params, Failure> {
        let params = Params {
            title: self.title,
            extra_data: self.extra_data,
            get_server_output: self.server_output,
            auth_token: self.login.map(|login| login.encrypted_token()).transpose()?,
            burst: self.burst,
            fq_rate_bps: self.fq_rate_bps,
            server_affinity: self.server_affinity.map(u64::from),
            ..params
        };
        params.check_bounds().map_err(|error| out_of_bounds(&error))?;
        Ok(params)
    }
}

/// Measures with an iperf3 server, as `throughput::run_tcp` does, and gives what that printed
/// where it was wanted.
pub fn run(
    plan: &TcpPlan,
    extras: Extras,
    context: &mut Context<'_>,
) -> (Record, Option<ServerOutput>) {
    let mut output = None;
    let record = run_by(plan, context, |context, account| {
        measure_with(plan, extras, context, account).map(|said| output = said)
    });
    (record, output)
}

/// Measures with an iperf3 server; what was seen is in `account`.
pub(crate) fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    measure_with(plan, Extras::default(), context, account).map(|_| ())
}

fn measure_with(
    plan: &TcpPlan,
    extras: Extras,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<Option<ServerOutput>, Failure> {
    let (receive_max, local_port, device) =
        (extras.receive_max, extras.local_port, extras.device.clone());
    let params = extras.extend_params(params(&plan.test)?)?;
    let request = plan.test.clone();
    request.check().map_err(|error| Failure::new(Fault::Usage, "plan", "TCP test", error))?;
    let candidates = addresses(&plan.server.host, plan.server.port, plan.server.family)?;
    let local = bind_address(plan.server.bind.as_deref())?;
    let timeout = Duration::from_nanos(plan.server.connect_timeout_ns);
    let cookie = Cookie::from_random(random_bytes());
    let server = candidates[0];
    let mut way = Iperf3Connector { server, local, cookie, timeout, local_port, device };
    let control = way.control_of(&candidates);
    account.begin_test(way.server);
    let control = control?;
    choose(&plan.server.host, way.server);
    account.server_host_id = same_host(&control);
    let test = Iperf3ClientTest {
        cookie,
        span: request.planned_span(),
        interval: Duration::from_nanos(request.interval_ns),
        receive_max,
        complete_after: None,
        params: params.clone(),
    };
    let mut streams = TcpStreams::new(in_whole_blocks(request.clone()), &params, [COOKIE_BYTES, 0]);
    // What ends the test is the amount itself: servers send that to the byte.
    streams.request = request;
    streams.endpoint = streams.endpoint.leaving_open().counting_all();
    let stop = context.stop.clone();
    let wants_output = params.get_server_output;
    let flows = Iperf3TcpClient {
        streams,
        way,
        context,
        account,
        ending: None,
        ended: false,
        open_since: MonoTime::default(),
        waited_bytes: 0,
        delivered_ns: 0,
        wants_output,
        output: None,
    };
    let mut session = TestSession::new(Iperf3ClientMachine::new(monotonic(), test), flows);
    let result = flow::run(&mut session, &mut Socket::new(control)?, &stop);
    session.flows.conclude(result)
}

/// A test whose control connection is there.
struct Iperf3TcpClient<'a, 'w> {
    streams: TcpStreams,
    way: Iperf3Connector,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
    /// Follows what is on the way once senders have stopped.
    ending: Option<Ending>,
    /// The server has been told that the test is over.
    ended: bool,
    /// When nothing can have come yet.
    open_since: MonoTime,
    /// Bytes that had come by the begin of an amount that counts.
    waited_bytes: u64,
    /// When all of it had come, since the begin.
    delivered_ns: u64,
    wants_output: bool,
    /// The lines that the server printed.
    output: Option<ServerOutput>,
}

impl Flows for Iperf3TcpClient<'_, '_> {
    type Machine = Iperf3ClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Iperf3ClientMachine>,
    ) -> Result<Option<FlowsAnswer<Iperf3ClientMachine>>, Failure> {
        match output {
            Output::Open => {
                self.connect()?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Begin => self.begin_time(now),
            Output::Start => self.streams.start_streams(self.account.begin)?,
            Output::Sample => self.sample(now),
            // It follows a sample of the same moment.
            Output::OmitOver => {
                self.account.omit_over();
                self.streams.omitted = self.counted();
            }
            Output::StopSending => {
                self.streams.endpoint.stop_sending();
                self.ending = Some(Ending::stopped_at(now));
            }
            Output::Ended => self.ended = true,
            Output::Settle => self.streams.ended = self.streams.acknowledged(now),
            Output::StopReceiving => self.streams.endpoint.stop_receiving(),
            Output::Count => {
                return Ok(Some(FlowsAnswer::Counted(Box::new(self.final_results(now)))));
            }
            Output::Peer(results) => self.take_results(*results),
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, now: MonoTime) -> FlowState {
        let streams = &self.streams;
        let state = streams.flow_state();
        let (ways, budget) = (streams.request.directions, streams.request.byte_budget());
        let has_all = |budget| ways == TcpDirections::Up || state.received >= budget;
        let endpoint = &streams.endpoint;
        let ending = self.ending.as_mut().filter(|_| !self.ended);
        let delivered = ending.is_some_and(|ending| {
            ways == TcpDirections::Down
                || ending.note_progress(now, endpoint.outstanding(), endpoint.has_sent())
        });
        let complete = budget.is_some_and(|bytes| has_all(bytes) && endpoint.has_sent());
        FlowState { complete, delivered, ..state }
    }

    fn peer_name(&self) -> String {
        plain_address(self.way.server)
    }
}

impl Iperf3TcpClient<'_, '_> {
    /// Connects every stream of the test.
    fn connect(&mut self) -> Result<(), Failure> {
        let Self { streams, way, context, account, open_since, .. } = self;
        *open_since = monotonic();
        for at in 0..streams.places.len() {
            let place = streams.places[at];
            let socket = way.connect(streams.options(client_side(place.direction)), at)?;
            let (direction, flow) = (place.direction, place.flow);
            let client_addr =
                socket.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
            account.connected(direction, flow, &client_addr, way.server);
            let side = client_side(direction);
            let place = StreamId { direction, flow, side, client_addr };
            let socket = streams.endpoint.add(socket, place);
            way.send_cookie(&socket)?;
            (context.watch)(&Event::Stream(opened(
                &socket,
                direction,
                flow,
                Some(way.cookie.printable_text()),
            )));
        }
        let count = streams.request.streams;
        let noun = if count == 1 { "stream" } else { "streams" };
        let line = format!("{count} {noun} to {}, iperf3", way.server);
        (context.watch)(&Event::Connected(line));
        streams.prepare()
    }

    /// The time counts from `now`, and what has come does not.
    fn begin_time(&mut self, now: MonoTime) {
        self.account.begin = now;
        let came = self.streams.arrived(now);
        if self.is_by_time() {
            self.streams.before = came;
        } else {
            self.waited_bytes = came.iter().map(|sample| sample.bytes).sum();
        }
    }

    /// True where time ends the test, and no amount.
    fn is_by_time(&self) -> bool {
        matches!(self.streams.request.finish, Finish::TimeNs(_))
    }

    /// Takes note of the interval that ends at `now`.
    fn sample(&mut self, now: MonoTime) {
        let (local, remote) = self.streams.sample(now);
        let interval = IntervalSamples { local, remote };
        let planned = self.streams.request.planned_span();
        if planned.is_some_and(|planned| now.duration_since(self.account.begin) >= planned) {
            self.account.hold_interval(interval, self.context.watch);
        } else {
            self.account.interval(interval, self.context.watch);
        }
    }

    /// The samples of every stream at the last row: as this end received, or by the
    /// acknowledgements.
    fn counted(&self) -> Vec<Sample> {
        let Account { local_samples, remote_samples, .. } = &*self.account;
        let received = local_samples.last().into_iter().flatten().filter(|sample| receives(sample));
        received.chain(remote_samples.last().into_iter().flatten()).cloned().collect()
    }

    /// Ends the streams; what they did, for the server.
    fn final_results(&mut self, now: MonoTime) -> Results {
        let (mut local, _) = self.streams.sample(now);
        let by_time = self.is_by_time();
        let Self { streams, account, .. } = self;
        let omit_ns = streams.request.omit_ns;
        let span_ns = |ending: Ending| ending.span_ns(account.begin, omit_ns);
        self.delivered_ns = self.ending.map_or(0, span_ns);
        let mut remote = std::mem::take(&mut streams.ended);
        account.local = streams.finish();
        // A paced sender's last byte may have come long before the time was over.
        let stopped = self.ending.filter(|_| by_time).map(|ending| ending.stopped);
        let stopped_ns = stopped.map_or(0, |stopped| stopped.nanos_since(account.begin));
        let received_ns = received_until(&account.local).max(stopped_ns);
        let (waited, open_ns) = (self.waited_bytes, account.begin.nanos_since(self.open_since));
        let received = received_bytes(&account.local);
        let received_ns = with_time_before(received_ns, received, waited, open_ns);
        // One that was stopped before the omitted span was over measured nothing.
        if omit_ns == 0 || !streams.omitted.is_empty() {
            let from = &streams.omitted[..];
            count_between(&mut account.local, from, &remote, self.delivered_ns);
            let received = local.iter().filter(|sample| receives(sample)).cloned();
            let received = received.map(|sample| streams.with_all_bytes(sample, &account.local));
            let received: Vec<Sample> = received.collect();
            count_between(&mut account.local, from, &received, received_ns);
            let [read, acknowledged] = [&account.local_samples, &account.remote_samples]
                .map(|told| told.last().map(Vec::as_slice).unwrap_or_default());
            for report in &mut account.local {
                let receives = client_side(report.direction) == FlowSide::Receiver;
                count_told(report, from, if receives { read } else { acknowledged });
            }
            to_the_end(&mut local, from, &account.local);
            to_the_end(&mut remote, from, &account.local);
        }
        let now_ns = now.nanos_since(account.begin);
        account.last_interval(IntervalSamples { local, remote }, now_ns, self.context.watch);
        results(&streams.places, &account.local, client_side)
    }

    /// Takes what the server counted.
    fn take_results(&mut self, mut results: Results) {
        // A server of 3.12 and later goes on sending it once anybody has asked.
        self.output = results.server_output.take().filter(|_| self.wants_output);
        let omit_ns = self.streams.request.omit_ns;
        let stopped = self.ending.map_or(self.account.begin, |ending| ending.stopped);
        let other = Other {
            side_of: server_side,
            omit_ns,
            // The server began its measured span by its own clock, and it counts what arrives after
            // the patience of this end, too.
            delivered_ns: (omit_ns == 0 && self.has_delivered(&results))
                .then_some(self.delivered_ns),
            ended_ns: stopped.nanos_since(self.account.begin),
        };
        self.account.remote = remote_reports(&self.streams.places, &results, &other);
    }

    /// True where all that the server counted had been acknowledged here.
    fn has_delivered(&self, results: &Results) -> bool {
        self.streams.places.iter().all(|place| {
            let same = |it: &&EndReport| is_of(place, it.direction, it.flow);
            let here = self.account.local.iter().find(same).map(|report| report.end.bytes_measured);
            let there = results.stream(place.id).map(|stream| stream.bytes);
            client_side(place.direction) == FlowSide::Receiver || there <= here
        })
    }

    /// Keeps what was measured, however the test ended.
    fn conclude(mut self, result: Result<(), Failure>) -> Result<Option<ServerOutput>, Failure> {
        self.streams.endpoint.halt_streams();
        if self.account.local.is_empty() && self.streams.endpoint.has_started() {
            self.account.local = self.streams.finish();
        }
        result?;
        self.account.stream_failure().map_or(Ok(self.output), Err)
    }
}

/// When the last byte of all streams had come that this end receives, since the begin.
fn received_until(reports: &[EndReport]) -> u64 {
    let received =
        reports.iter().filter(|report| client_side(report.direction) == FlowSide::Receiver);
    let ends = received.map(|report| report.end.span_start_ns + report.end.span_ns);
    ends.max().unwrap_or(0)
}

/// True where this end receives the stream of a sample.
fn receives(sample: &Sample) -> bool {
    client_side(sample.direction) == FlowSide::Receiver
}

/// Bytes that this end received in all streams.
fn received_bytes(reports: &[EndReport]) -> u64 {
    let received =
        reports.iter().filter(|report| client_side(report.direction) == FlowSide::Receiver);
    received.map(|report| report.end.bytes).sum()
}

/// The time of all `bytes`, of which `waited` had come before the `span_ns` of the others began: as
/// long as they took at the rate of those, and not before the streams were open.
fn with_time_before(span_ns: u64, bytes: u64, waited: u64, open_ns: u64) -> u64 {
    let others = u128::from(bytes.saturating_sub(waited));
    let before = (u128::from(span_ns) * u128::from(waited.min(bytes))).checked_div(others);
    let before = before.map_or(u64::MAX, |ns| u64::try_from(ns).unwrap_or(u64::MAX));
    span_ns.saturating_add(if waited == 0 { 0 } else { before.min(open_ns) })
}

/// The bytes of a test rounded up to whole blocks, as iperf3 does: servers since 3.16 count those
/// alone.
fn in_whole_blocks(request: TcpTest) -> TcpTest {
    let block = u64::from(request.buffer_bytes.max(1));
    let finish = match request.finish {
        Finish::Bytes(bytes) => Finish::Bytes(bytes.div_ceil(block).saturating_mul(block)),
        other => other,
    };
    TcpTest { finish, ..request }
}

/// This kernel's name when the server is reached at one of its own addresses: iperf3 does not tell
/// what host it runs on.
pub(super) fn same_host(control: &TcpStream) -> Option<String> {
    let peer = control.peer_addr().ok()?.ip();
    let local = control.local_addr().ok()?.ip();
    (peer.is_loopback() || peer == local).then(linerate_sys::host::boot_id).flatten()
}

/// How connections reach the server.
pub(super) struct Iperf3Connector {
    pub(super) server: SocketAddr,
    pub(super) local: Option<IpAddr>,
    pub(super) cookie: Cookie,
    pub(super) timeout: Duration,
    /// Local port of the first stream; the control connection takes any.
    pub(super) local_port: Option<u16>,
    pub(super) device: Option<String>,
}

impl Iperf3Connector {
    /// Connects to the first of the server's addresses that answers; the streams go there, too.
    fn control_of(&mut self, addresses: &[SocketAddr]) -> Result<TcpStream, Failure> {
        let options = TcpOptions { device: self.device.clone(), ..TcpOptions::default() };
        let connected = tcp::connect_first(addresses, self.local, &options, self.timeout);
        let (control, server) = connected.map_err(|error| self.unreachable(&error))?;
        self.server = server;
        Ok(control)
    }

    pub(super) fn control(&self) -> Result<TcpStream, Failure> {
        let options = TcpOptions { device: self.device.clone(), ..TcpOptions::default() };
        tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| self.unreachable(&error))
    }

    /// Connects the data stream with this number.
    fn connect(&self, options: TcpOptions, at: usize) -> Result<TcpStream, Failure> {
        let options =
            TcpOptions { local_port: self.port_of(at), device: self.device.clone(), ..options };
        tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| self.unreachable(&error))
    }

    /// Tells the server which test a stream is of.
    fn send_cookie(&self, mut stream: &TcpStream) -> Result<(), Failure> {
        stream.write_all(&self.cookie.to_bytes()).map_err(|error| {
            let server = self.server.to_string();
            Failure::new(Fault::Unreachable, "open data stream to", server, error)
        })
    }

    /// The local port of the stream with this number, where the first one's was asked for.
    pub(super) fn port_of(&self, stream: usize) -> Option<u16> {
        self.local_port?.checked_add(u16::try_from(stream).ok()?)
    }

    fn unreachable(&self, error: &linerate_sys::Error) -> Failure {
        let failure = connect_failure(error);
        match error.source.kind() {
            io::ErrorKind::ConnectionRefused => {
                failure.advise("start `iperf3 -s` there, or name its port with -p")
            }
            _ => failure,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn an_amount_that_had_come_in_part_has_the_time_of_that_part_too() {
        // 100 bytes each ms; the thread came 20 ms late to 10,000 of them.
        assert_eq!(with_time_before(80 * MS, 10_000, 2000, 500 * MS), 100 * MS);
        assert_eq!(with_time_before(80 * MS, 8000, 0, 500 * MS), 80 * MS);
        // No sooner than the streams were there, however little came afterwards.
        assert_eq!(with_time_before(MS, 10_000, 9999, 30 * MS), 31 * MS);
        assert_eq!(with_time_before(2 * MS, 10_000, 10_000, 30 * MS), 32 * MS);
        assert_eq!(with_time_before(2 * MS, 0, 0, 30 * MS), 2 * MS);
    }
}
