//! The client's control connection, and the tests that it makes over it.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{Event, Failure, Fault, FlowSide, TcpPlan, TcpTest};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output};
use linerate_proto::native::{
    Accept, DataHello, Message, NativeClientMachine, NativeClientTest, NativeCredentials,
    NativeTcpTestRequest,
};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, TcpOptions};

use super::control::{connect_control, rtt_min, token_of};
use super::endpoint::{Endpoint, StreamId, stream_options};
use crate::address::resolve_server;
use crate::context::Context;
use crate::flow::account::{Account, client_side};
use crate::flow::peer::{bind_address, connect_failure, credentials, plain_address};
use crate::flow::{self, Flows, FlowsAnswer, Sample, Socket, TestSession};
use crate::socket_address::at_port;

/// A control connection, ready for a request.
pub(super) struct ControlLink {
    pub(super) net: Socket,
    pub(super) server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
    /// For the first request: the others have its place.
    credentials: Option<NativeCredentials>,
}

impl ControlLink {
    pub(super) fn connect_to_server(
        plan: &TcpPlan,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let server = resolve_server(&plan.server)?;
        let local = bind_address(plan.server.bind.as_deref())?;
        account.begin_test(server);
        let timeout = Duration::from_nanos(plan.server.connect_timeout_ns);
        let control = connect_control(server, local, timeout)?;
        account.idle_rtt_ns = rtt_min(&control).map(|rtt| rtt.as_nanos() as u64);
        let net = Socket::new(control)?;
        let credentials = credentials(plan.server.token.as_ref());
        Ok(Self { net, server, local, timeout, credentials })
    }

    /// Runs one test; another one may follow unless it is the last.
    pub(super) fn measure(
        mut self,
        asked: NativeTcpTestRequest,
        last: bool,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let test = NativeClientTest {
            span: asked.test.planned_span(),
            interval: Duration::from_nanos(asked.test.interval_ns),
            request: Message::Request(asked.clone()),
            last,
            credentials: self.credentials.take(),
        };
        let stop = context.stop.clone();
        let kept_on = &asked.test.means.client_cpus;
        let flows = TcpClient {
            endpoint: Endpoint::new(asked.test.clone()).kept_on(kept_on),
            background: asked.test.background().map(Endpoint::new),
            asked,
            server: self.server,
            local: self.local,
            timeout: self.timeout,
            accept: None,
            context,
            account,
        };
        let mut session = TestSession::new(NativeClientMachine::new(monotonic(), test), flows);
        let result = flow::run(&mut session, &mut self.net, &stop);
        session.flows.conclude(result.is_err());
        result.map(|()| self)
    }
}

/// The streams of a test, and what is seen of them.
struct TcpClient<'a, 'w> {
    endpoint: Endpoint,
    /// The flow against the test's direction.
    background: Option<Endpoint>,
    asked: NativeTcpTestRequest,
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
    /// The server's answer that admits the test.
    accept: Option<Box<Accept>>,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for TcpClient<'_, '_> {
    type Machine = NativeClientMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeClientMachine>,
    ) -> Result<Option<FlowsAnswer<NativeClientMachine>>, Failure> {
        match output {
            Output::Decide(accept) => {
                self.check_features(&accept)?;
                self.accept = Some(accept);
                return Ok(Some(FlowsAnswer::Decided(Ok(()))));
            }
            Output::Open => {
                self.connect()?;
                return Ok(Some(FlowsAnswer::Opened));
            }
            Output::Begin => {
                for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
                    endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
                }
            }
            Output::Start => {
                self.account.begin = now;
                for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
                    endpoint.start_streams(now).map_err(|error| crate::failure::system(&error))?;
                }
            }
            Output::Sample => self.sample(now),
            Output::News(Message::Interval { samples }) => {
                let samples = samples.into_iter().map(Sample::from).collect();
                self.account.remote_interval(samples, self.context.watch);
            }
            Output::StopSending => self.endpoint.stop_sending(),
            Output::Peer(reports) => {
                self.sample(now);
                self.account.remote = *reports;
            }
            _ => {}
        }
        Ok(None)
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        let done = self.endpoint.has_started() && self.endpoint.is_done();
        if done {
            self.background.iter().for_each(Endpoint::stop_sending);
        }
        FlowState { moved: self.endpoint.moved_bytes(), done, ..FlowState::default() }
    }

    fn peer_name(&self) -> String {
        plain_address(self.server)
    }
}

impl TcpClient<'_, '_> {
    fn sample(&mut self, now: MonoTime) {
        let samples = self.endpoint.sample(now);
        self.account.local_interval(samples, self.context.watch);
    }

    /// An older server would leave out what it does not know, and the figures would look sound.
    fn check_features(&self, accept: &Accept) -> Result<(), Failure> {
        let mut asked = self.asked.features();
        let Some(missing) = asked.find(|asked| !accept.features.iter().any(|has| has == asked))
        else {
            return Ok(());
        };
        let reason = format!("the server does not know {missing}");
        let peer = plain_address(self.server);
        Err(Failure::new(Fault::PeerIncompatible, "ask for a test with", peer, reason)
            .advise("install the same version at both ends"))
    }

    /// Connects every stream of the test.
    fn connect(&mut self) -> Result<(), Failure> {
        let Some(accept) = self.accept.take() else { return Ok(()) };
        let token = token_of(&accept, self.server)?;
        let (request, timeout, local) = (&self.asked.test, self.timeout, self.local);
        let server = at_port(self.server, accept.data_port);
        for &direction in request.each_direction() {
            for stream in 0..request.streams {
                let way = Connector { server, local, timeout };
                let hello = DataHello { token, stream, direction };
                let client_addr = way.connect(&mut self.endpoint, request, hello)?;
                self.account.connected(direction, stream, &client_addr, server);
            }
        }
        if let (Some(endpoint), Some(request)) = (&mut self.background, request.background()) {
            // Its buffers are not the test's, so it does not go to a listener that has those.
            let way = Connector { server: self.server, local, timeout };
            for &direction in request.each_direction() {
                let hello = DataHello { token, stream: 0, direction };
                let client_addr = way.connect(endpoint, &request, hello)?;
                self.account.connected_background(direction, &client_addr, self.server);
            }
        }
        self.account.server_host_id = accept.host_id;
        self.account.ends.push(accept.end);
        let streams = self.asked.test.streams;
        let noun = if streams == 1 { "stream" } else { "streams" };
        let line = format!("{streams} {noun} to {}", plain_address(self.server));
        (self.context.watch)(&Event::Connected(line));
        Ok(())
    }

    /// Keeps what was measured, however the test ended.
    fn conclude(self, failed: bool) {
        if !self.endpoint.has_started() {
            return;
        }
        // What has not come by now is lost.
        self.endpoint.halt_streams();
        if failed {
            self.background.iter().for_each(Endpoint::halt_streams);
        }
        self.account.local = self.endpoint.finish();
        let background = self.background.map(Endpoint::end_background);
        self.account.local.extend(background.into_iter().flatten());
    }
}

/// How data streams reach the server.
struct Connector {
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
}

impl Connector {
    /// Connects one data stream and gives it to `endpoint`; the client's address.
    fn connect(
        &self,
        endpoint: &mut Endpoint,
        request: &TcpTest,
        hello: DataHello,
    ) -> Result<String, Failure> {
        let side = client_side(hello.direction);
        let options = match side {
            FlowSide::Sender => stream_options(request, hello.stream),
            FlowSide::Receiver => {
                let options = stream_options(request, hello.stream);
                TcpOptions { congestion_control: None, ..options }
            }
        };
        let socket = tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| connect_failure(&error))?;
        let client_addr =
            socket.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
        let place = StreamId {
            direction: hello.direction,
            flow: hello.stream,
            side,
            client_addr: client_addr.clone(),
        };
        let socket = endpoint.add(socket, place);
        (&mut &*socket).write_all(&hello.to_bytes()).map_err(|error| {
            let server = self.server.to_string();
            Failure::new(Fault::Unreachable, "open data stream to", server, error)
        })?;
        Ok(client_addr)
    }
}
