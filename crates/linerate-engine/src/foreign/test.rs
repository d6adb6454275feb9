//! What the clients of ttcp, iperf 2 and nuttcp share: data streams without a hello.

use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Event, Failure, Fault, FlowSide, MeasurementEnd, StreamOpened, TcpPlan,
    TcpTest, Via,
};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{Machine, Output};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, TcpOptions};

use crate::address::resolve;
use crate::context::Context;
use crate::flow::account::{Account, IntervalSamples, client_side};
use crate::flow::peer::plain_address;
use crate::flow::peer::{bind_address, connect_failure};
use crate::flow::tcp::endpoint::{Endpoint, StreamId, StreamRules, socket_options};

/// A client that acknowledges nothing for this long has vanished: its place is free within 5 s, for
/// the kernel looks once a second.
pub(crate) const VANISHED: Duration = Duration::from_millis(3800);
/// A server that acknowledges nothing for this long has vanished; a shorter break of the path is
/// part of what is measured.
const SERVER_VANISHED: Duration = Duration::from_secs(30);

/// A test with a server of another program, from its client.
pub(crate) struct Test {
    pub(crate) server: SocketAddr,
    pub(crate) local: Option<IpAddr>,
    pub(crate) request: TcpTest,
    pub(crate) endpoint: Endpoint,
    timeout: Duration,
    via: &'static str,
    /// The test's sockets, for what comes on them beside data.
    pub(crate) sockets: Vec<Arc<TcpStream>>,
    /// Direction and number of each.
    places: Vec<(Direction, u16)>,
}

impl Test {
    /// Finds the server and holds the plan against what any test allows.
    pub(crate) fn from_plan(
        plan: &TcpPlan,
        rules: StreamRules,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let request = plan.test.clone();
        request.check().map_err(|error| refuse(error.to_string()))?;
        if request.background.is_some() {
            return Err(refuse("a flow in the background needs linerate at both ends".to_owned()));
        }
        let server = resolve(&plan.server.host, plan.server.port, plan.server.family)?;
        account.begin_test(server);
        account.one_sided = rules.one_sided;
        let mut endpoint = Endpoint::with_rules(request.clone(), rules);
        if request.omit_ns == 0 {
            // A server sends at once on a stream that asks for it, before the others are open.
            endpoint.set_open_since(monotonic());
        }
        Ok(Self {
            server,
            local: bind_address(plan.server.bind.as_deref())?,
            endpoint,
            request,
            timeout: Duration::from_nanos(plan.server.connect_timeout_ns),
            via: plan.server.via.map_or("a server", Via::name),
            sockets: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Opens a connection to the server without giving it to the endpoint.
    pub(crate) fn connect(&self, server: SocketAddr, side: FlowSide) -> Result<TcpStream, Failure> {
        let options = socket_options(&self.request);
        let options = match side {
            FlowSide::Sender => options,
            FlowSide::Receiver => TcpOptions { congestion_control: None, ..options },
        };
        let socket = tcp::connect(server, self.local, &options, self.timeout);
        let socket = socket.map_err(|error| {
            let failure = connect_failure(&error);
            match error.source.kind() {
                std::io::ErrorKind::ConnectionRefused => {
                    failure.advise(format!("start {} there, or give its port with -p", self.via))
                }
                _ => failure,
            }
        })?;
        tcp::notice_vanished_peer(&socket, SERVER_VANISHED);
        Ok(socket)
    }

    /// Gives a connection to the endpoint as stream `flow` of `direction`.
    pub(crate) fn add(
        &mut self,
        socket: TcpStream,
        direction: Direction,
        flow: u16,
        account: &mut Account,
    ) {
        let client_addr =
            socket.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
        let server = socket.peer_addr().unwrap_or(self.server);
        account.connected(direction, flow, &client_addr, server);
        let side = client_side(direction);
        let place = StreamId { direction, flow, side, client_addr };
        self.sockets.push(self.endpoint.add(socket, place));
        self.places.push((direction, flow));
    }

    /// Tells that the streams are there.
    pub(crate) fn connected(&self, plan: &TcpPlan, context: &mut Context<'_>) {
        let noun = if plan.test.streams == 1 { "stream" } else { "streams" };
        let line = format!("{} {noun} to {}, {}", plan.test.streams, self.server, self.via);
        (context.watch)(&Event::Connected(line));
        for (&(direction, flow), socket) in self.places.iter().zip(&self.sockets) {
            (context.watch)(&Event::Stream(opened(socket, direction, flow, None)));
        }
    }

    /// Does what the machine of any of these programs wants of the streams.
    pub(crate) fn carry_out<M: Machine>(
        &mut self,
        now: MonoTime,
        output: &Output<M>,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        match output {
            Output::Begin => account.begin = now,
            Output::Start => {
                let started = self.endpoint.start_streams(account.begin);
                started.map_err(|error| crate::failure::system(&error))?;
            }
            Output::Sample => {
                let local = self.endpoint.sample(now);
                let planned = self.request.planned_span();
                let over =
                    planned.is_some_and(|planned| now.duration_since(account.begin) >= planned);
                if over && self.request.omit_ns == 0 {
                    let remote = Vec::new();
                    account.hold_interval(IntervalSamples { local, remote }, context.watch);
                } else {
                    account.local_interval(local, context.watch);
                }
            }
            Output::StopSending => self.endpoint.stop_sending(),
            Output::Halt => self.endpoint.halt_streams(),
            _ => {}
        }
        Ok(())
    }

    /// The streams have ended: their last interval, where none waits for that.
    pub(crate) fn add_last_interval(
        &self,
        now: MonoTime,
        context: &mut Context<'_>,
        account: &mut Account,
    ) {
        if account.held.is_none() {
            account.local_interval(self.endpoint.sample(now), context.watch);
        }
    }

    /// Ends a test that may not have begun.
    pub(crate) fn finish_if_started(
        self,
        result: Result<(), Failure>,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        if self.endpoint.has_started() { self.finish(result, context, account) } else { result }
    }

    /// Ends the threads, also of a test that failed, and keeps what they counted. The last row has
    /// what came after the time of the test, so that rows add up to the result.
    pub(crate) fn finish(
        self,
        result: Result<(), Failure>,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<(), Failure> {
        if result.is_err() {
            self.endpoint.halt_streams();
        }
        let now = monotonic();
        let mut local = self.endpoint.sample(now);
        account.local = self.endpoint.finish();
        if account.held.is_some() {
            for sample in &mut local {
                let same =
                    |it: &&EndReport| (it.direction, it.flow) == (sample.direction, sample.flow);
                let Some(end) = account.local.iter().find(same).map(|it| &it.end) else { continue };
                (sample.bytes, sample.t_ns) = (end.bytes_measured, end.span_start_ns + end.span_ns);
            }
            let (remote, now_ns) = (Vec::new(), now.nanos_since(account.begin));
            account.last_interval(IntervalSamples { local, remote }, now_ns, context.watch);
        }
        result?;
        account.stream_failure().map_or(Ok(()), Err)
    }
}

/// The event of a stream of a `session` that is connected.
pub(super) fn opened(
    stream: &TcpStream,
    direction: Direction,
    flow: u16,
    session: Option<String>,
) -> StreamOpened {
    let (sndbuf_bytes, rcvbuf_bytes) = tcp::buffers(stream);
    let text = |address: std::io::Result<SocketAddr>| {
        address.map_or_else(|_| String::new(), plain_address)
    };
    StreamOpened {
        direction,
        flow,
        local_addr: text(stream.local_addr()),
        remote_addr: text(stream.peer_addr()),
        mss_bytes: tcp::segment_size(stream.as_fd()),
        sndbuf_bytes,
        rcvbuf_bytes,
        session,
    }
}

/// The record's entry of a host of which only the program is known.
pub(crate) fn remote_end(program: Option<String>) -> MeasurementEnd {
    MeasurementEnd { role: "remote".to_owned(), version: program, ..MeasurementEnd::default() }
}

/// The protocol has no place for what was asked.
pub(crate) fn refuse(reason: String) -> Failure {
    Failure::new(Fault::Usage, "plan", "TCP test", reason)
}
