//! The server's side of one test, from the first message to the last.
//!
//! Everything a client does or leaves out costs a bounded amount: each wait has a deadline, the
//! number of streams and the time are limited by the admission, and whatever ends the session
//! takes its data threads along.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{
    Direction, EndReport, Failure, Fault, FlowSide, MeasurementEnd, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::native::{
    Accept, DataHello, FEATURES, FlowSample, HelloKind, Message, NativePeerFault,
    NativeServerMachine, NativeServerTerms, NativeTcpTestRequest, Nonce, Refuse, RefuseCode,
    STEP_TIMEOUT, TestRequest, Token,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};

use super::control::{closed, misbehaved, read_data_hello_rest, read_hello};
use super::endpoint::{Endpoint, StreamId, socket_options};
use crate::flow::account::server_side;
use crate::flow::admission::{Admission, Demand, Permit, fitting};
use crate::flow::peer::plain_address;
use crate::flow::registry::{Registration, Registry};
use crate::flow::served::Served;
use crate::flow::trains::{self, TrainsServer};
use crate::flow::udp::{self, NativeUdpServer};
use crate::flow::{self, Flows, FlowsAnswer, Socket, TestSession, Words};
use crate::served::{self, LogText};
use crate::socket_address::at_port;

/// A test that follows another may find its place not yet given back: a client's last message
/// and its next connection cross on the way.
pub(crate) const HANDOVER: Duration = Duration::from_millis(300);

/// A data connection that came to a listener of the test's own has this long for its hello.
const HELLO_TIMEOUT: Duration = Duration::from_secs(1);

/// Tests that one client may make in one place, trials among them.
const ROUNDS_MAX: u32 = 32;

/// Where data connections find the test that waits for their token.
pub type DataRegistry = Registry<Token, (DataHello, TcpStream)>;

/// Time beyond its longest that a test by bytes may take until its last bytes are there.
const OVERTIME: Duration = Duration::from_millis(500);

/// Runs one test over a control connection whose hellos are done; returns what the log should say.
/// # Errors
/// Why the test did not end well.
pub fn serve_test(
    stream: TcpStream,
    registry: &DataRegistry,
    admission: &dyn Admission,
    stop: &Stop,
) -> Result<LogText, Failure> {
    let mut net = Socket::new(stream)?;
    let address = |address: io::Result<SocketAddr>| {
        address.map_err(|error| Failure::new(Fault::Unreachable, "address of", "a client", error))
    };
    let control = net.another()?;
    let client = ClientSession {
        registry,
        admission,
        peer: address(control.peer_addr())?,
        local: address(control.local_addr())?,
        control,
        waits: None,
        opening: false,
        permit: None,
        place: None,
        rounds: 0,
        streams: None,
        challenge: Nonce(random_bytes()),
        line: "closed without a request".to_owned().into(),
    };
    let server = NativeServerMachine::new(monotonic()).challenging(client.challenge);
    let mut session = TestSession::new(server, client);
    let result = flow::run(&mut session, &mut net, stop);
    result.map(|()| session.flows.line)
}

/// One client and its tests.
struct ClientSession<'a> {
    registry: &'a DataRegistry,
    admission: &'a dyn Admission,
    peer: SocketAddr,
    local: SocketAddr,
    control: TcpStream,
    /// A test that waits for its place, and until when.
    waits: Option<(Box<TestRequest>, MonoTime)>,
    opening: bool,
    permit: Option<Permit>,
    /// The demand that the first round was admitted with.
    place: Option<Demand>,
    rounds: u32,
    streams: Option<Box<dyn Served>>,
    /// The nonce with which the client may prove that it has the token.
    challenge: Nonce,
    line: LogText,
}

impl Flows for ClientSession<'_> {
    type Machine = NativeServerMachine;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<Option<FlowsAnswer<NativeServerMachine>>, Failure> {
        match (output, &mut self.streams) {
            (Output::Decide(asked), _) => {
                self.waits = Some((asked, now + HANDOVER));
                self.answer(now)
            }
            (Output::News(Message::Proof(proof)), _) => {
                self.admission.log_in(self.challenge, &proof);
                Ok(None)
            }
            (Output::Open, _) => {
                self.opening = true;
                self.answer(now)
            }
            (Output::Sample, Some(streams)) => {
                let mut news = streams.news_for_client()?;
                news.push(streams.sample(now));
                Ok(Some(FlowsAnswer::Tell(news)))
            }
            (Output::Count, Some(streams)) => {
                let (reports, line) = streams.finish()?;
                self.line = line;
                if self.place.is_none() {
                    // No round follows: what is left to do takes nothing of this host.
                    self.permit = None;
                }
                self.streams = None;
                Ok(Some(FlowsAnswer::Counted(Box::new(reports))))
            }
            (output, Some(streams)) => streams.carry_out(now, output).map(|()| None),
            (_, None) => Ok(None),
        }
    }

    fn answer(
        &mut self,
        now: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeServerMachine>>, Failure> {
        if let Some((asked, until)) = self.waits.take() {
            return self.decide(now, asked, until);
        }
        let Some(streams) = &mut self.streams else { return Ok(None) };
        if self.opening {
            self.opening = !streams.open_streams()?;
            return Ok((!self.opening).then_some(FlowsAnswer::Opened));
        }
        let news = streams.news_for_client()?;
        Ok((!news.is_empty()).then_some(FlowsAnswer::Tell(news)))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        self.streams.as_ref().map(|streams| streams.flow_state()).unwrap_or_default()
    }

    fn peer_name(&self) -> String {
        plain_address(self.peer)
    }
}

impl ClientSession<'_> {
    /// Says yes or no, waiting [`HANDOVER`] for the place of a test that is just ending.
    fn decide(
        &mut self,
        now: MonoTime,
        asked: Box<TestRequest>,
        until: MonoTime,
    ) -> Result<Option<FlowsAnswer<NativeServerMachine>>, Failure> {
        let demand = match &*asked {
            TestRequest::Tcp(request) => Demand::of_rounds(request),
            TestRequest::Udp(request) => Demand::of_udp(request),
            TestRequest::Trains(request) => {
                let planned = Some(request.planned_span());
                Demand { planned, ..Demand::new(TestKind::Udp, 1) }
            }
        };
        let refused = match self.admit_request(&asked, &demand) {
            Ok(()) => None,
            Err(refuse) if refuse.code == RefuseCode::Busy && now < until => {
                self.waits = Some((asked, until));
                return Ok(None);
            }
            Err(refuse) => Some(refuse),
        };
        if let Some(refuse) = refused {
            self.line = format!("refused: {}", refuse.reason).into();
            return Ok(Some(FlowsAnswer::Decided(Err(refuse))));
        }
        let terms = match *asked {
            TestRequest::Tcp(request) => {
                self.place.get_or_insert(demand);
                self.accept_tcp(request.test)?
            }
            TestRequest::Udp(request) => {
                let (own_end, control) = (self.own_end(), self.control()?);
                let (streams, accept) =
                    NativeUdpServer::new(request.clone(), self.local, own_end, control)?;
                let terms = udp::test_terms(&request, accept, self.admission);
                self.streams = Some(Box::new(streams));
                terms
            }
            TestRequest::Trains(request) => {
                let (streams, accept) = TrainsServer::new(self.local, self.own_end())?;
                self.streams = Some(Box::new(streams));
                trains::session_terms(&request, accept)
            }
        };
        Ok(Some(FlowsAnswer::Decided(Ok(terms))))
    }

    /// A place for a test within the protocol's bounds.
    fn admit_request(&mut self, asked: &TestRequest, demand: &Demand) -> Result<(), Refuse> {
        let malformed = |error: String| Refuse::new(RefuseCode::Malformed, error);
        self.rounds += 1;
        match (asked, &self.place) {
            (TestRequest::Tcp(next), Some(place)) => return check_round(next, self.rounds, place),
            (TestRequest::Tcp(request), None) => {
                request.check_bounds().map_err(|error| malformed(error.to_string()))
            }
            (TestRequest::Udp(request), _) => {
                request.check().map_err(|error| malformed(error.to_string()))
            }
            (TestRequest::Trains(request), _) => {
                request.check_bounds().map_err(|error| malformed(error.to_string()))
            }
        }?;
        self.rounds = 1;
        let admitted = self.admission.admit_test(demand, self.peer).map_err(|refuse| Refuse {
            fits: fitting(demand, &self.admission.allowed(), refuse.code),
            ..refuse
        });
        self.permit = Some(admitted?);
        Ok(())
    }

    fn accept_tcp(&mut self, request: TcpTest) -> Result<NativeServerTerms, Failure> {
        let token = Token(random_bytes());
        let own = listen_if_needed(&request, self.local)?;
        let data_port = own
            .as_ref()
            .map_or(Ok(self.local), TcpListener::local_addr)
            .map_or(0, |address| address.port());
        let shared = self.registry.register(token).ok_or_else(|| {
            Failure::new(Fault::System, "serve", plain_address(self.peer), "its token is taken")
        })?;
        let arrivals = DataArrivals { token, shared, own };
        let accept = Accept {
            token: token.to_hex(),
            data_port,
            udp_ports: Vec::new(),
            host_id: linerate_sys::host::boot_id(),
            end: self.own_end(),
            features: FEATURES.map(str::to_owned).to_vec(),
        };
        let duration_max = self.admission.duration_max();
        let span = request.planned_span();
        let planned = span.unwrap_or(duration_max).min(duration_max);
        // What leaves at the last moment arrives after it.
        let late = if span.is_none() { OVERTIME } else { Duration::ZERO };
        let terms = NativeServerTerms {
            accept: Box::new(accept),
            interval: Duration::from_nanos(request.interval_ns),
            span_max: planned + late,
            stall_after: Some(planned),
            end: planned + late + self.admission.grace_period(),
            overdue: span.is_none().then(|| self.admission.overdue()),
            step: STEP_TIMEOUT,
            streams: "the data streams",
        };
        self.streams = Some(Box::new(TcpServer::new(request, arrivals)));
        Ok(terms)
    }

    /// This host as the client's record names it.
    fn own_end(&self) -> MeasurementEnd {
        let end = crate::environment::local_end(Some(self.peer.ip()));
        MeasurementEnd { role: "remote".to_owned(), ..end }
    }

    fn control(&self) -> Result<TcpStream, Failure> {
        self.control.try_clone().map_err(|error| {
            Failure::new(Fault::System, "watch control to", plain_address(self.peer), error)
        })
    }
}

impl Words for NativeServerMachine {
    fn failure(peer: &str, reason: TestFailureReason<NativePeerFault>) -> Failure {
        match reason {
            TestFailureReason::Peer(NativePeerFault::Wire(error)) => misbehaved(peer, &error),
            TestFailureReason::Silent { awaited, within } => {
                let reason = format!("nothing came within {within:?}");
                let attempt = format!("wait for {awaited} from");
                Failure::new(Fault::PeerMisbehaved, attempt, peer, reason)
            }
            TestFailureReason::Closed => closed(peer),
            TestFailureReason::Overdue => {
                let reason = "its test took longer than it may, and was ended";
                Failure::new(Fault::PeerRefused, "serve", peer, reason)
            }
            TestFailureReason::Stopped => {
                Failure::new(Fault::System, "serve", peer, "the server is being stopped")
            }
            _ => Failure::new(Fault::Unreachable, "serve", peer, "the client aborted the test"),
        }
    }
}

/// The TCP streams of a test.
struct TcpServer {
    request: TcpTest,
    arrivals: DataArrivals,
    /// Streams that have not come.
    missing: Vec<(Direction, u16)>,
    test: Option<Endpoint>,
    /// The flow against the test's direction.
    background: Option<Endpoint>,
}

/// Where the data streams of a test arrive.
struct DataArrivals {
    token: Token,
    /// At the port of the control connection, sorted by token.
    shared: Registration<Token, (DataHello, TcpStream)>,
    /// At a listener of their own, because buffers and segment size go before the handshake. The
    /// flow in the background has neither and arrives at the other port.
    own: Option<TcpListener>,
}

impl TcpServer {
    fn new(request: TcpTest, arrivals: DataArrivals) -> Self {
        let background = request.background();
        let of_background = background.iter().flat_map(TcpTest::places);
        Self {
            missing: request.places().chain(of_background).collect(),
            test: Some(Endpoint::new(request.clone()).kept_on(&request.means.server_cpus)),
            background: background.map(Endpoint::new),
            request,
            arrivals,
        }
    }

    /// The flow in the background first: it is there when the test begins.
    fn each_endpoint(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        self.background.iter_mut().chain(&mut self.test)
    }

    /// Takes in a stream that is still wanted.
    fn take_stream(&mut self, hello: DataHello, socket: TcpStream) -> Result<(), Failure> {
        let place = (hello.direction, hello.stream);
        let Some(index) = self.missing.iter().position(|&wanted| wanted == place) else {
            return Ok(());
        };
        self.missing.swap_remove(index);
        let side = server_side(hello.direction);
        let of_test = self.request.each_direction().contains(&hello.direction);
        let background = self.request.background().filter(|_| !of_test);
        prepare(&socket, background.as_ref().unwrap_or(&self.request), hello.stream, side)?;
        let client_addr = socket.peer_addr().map_or_else(|_| String::new(), plain_address);
        let endpoint = if of_test { &mut self.test } else { &mut self.background };
        if let Some(endpoint) = endpoint {
            let (direction, flow) = (hello.direction, hello.stream);
            endpoint.add(socket, StreamId { direction, flow, side, client_addr });
        }
        Ok(())
    }
}

impl Served for TcpServer {
    fn open_streams(&mut self) -> Result<bool, Failure> {
        while !self.missing.is_empty() {
            let Some((hello, socket)) = self.arrivals.next() else { return Ok(false) };
            self.take_stream(hello, socket)?;
        }
        for endpoint in self.each_endpoint() {
            endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
        }
        Ok(true)
    }

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<NativeServerMachine>,
    ) -> Result<(), Failure> {
        match output {
            Output::Start => {
                for endpoint in self.each_endpoint() {
                    endpoint.start_streams(now).map_err(|error| crate::failure::system(&error))?;
                }
            }
            Output::StopSending => self.test.iter().for_each(Endpoint::stop_sending),
            Output::Halt => self.test.iter().for_each(Endpoint::halt_streams),
            _ => {}
        }
        Ok(())
    }

    fn news_for_client(&mut self) -> Result<Vec<Message>, Failure> {
        Ok(Vec::new())
    }

    fn sample(&mut self, now: MonoTime) -> Message {
        let samples = self.test.as_mut().map(|test| test.sample(now)).unwrap_or_default();
        Message::Interval { samples: samples.into_iter().map(FlowSample::from).collect() }
    }

    fn flow_state(&self) -> FlowState {
        let Some(test) = &self.test else { return FlowState::default() };
        FlowState { moved: test.moved_bytes(), done: test.is_done(), ..FlowState::default() }
    }

    fn finish(&mut self) -> Result<(Vec<EndReport>, LogText), Failure> {
        let background = self.background.take().map(Endpoint::end_background);
        let mut reports = self.test.take().map(Endpoint::finish).unwrap_or_default();
        let line = LogText::from_reports(format!("tcp {}", served::log_line(&reports)), &reports);
        reports.extend(background.into_iter().flatten());
        Ok((reports, line))
    }
}

impl DataArrivals {
    /// A data stream that has come.
    fn next(&self) -> Option<(DataHello, TcpStream)> {
        let own = self.own.as_ref().and_then(|listener| self.own_next(listener));
        own.or_else(|| self.shared.arrivals.try_recv().ok())
    }

    fn own_next(&self, listener: &TcpListener) -> Option<(DataHello, TcpStream)> {
        readable(listener, Duration::ZERO).ok().filter(|ready| *ready)?;
        let (socket, _) = listener.accept().ok()?;
        let common = read_hello(&socket, HELLO_TIMEOUT).ok()?;
        (common.kind == HelloKind::Data).then_some(())?;
        let hello = read_data_hello_rest(&socket, common, HELLO_TIMEOUT).ok()?;
        (hello.token == self.token).then_some((hello, socket))
    }
}

/// Checks that a client's next request stays within the demand that its first one was admitted
/// with.
fn check_round(request: &NativeTcpTestRequest, rounds: u32, place: &Demand) -> Result<(), Refuse> {
    let refuse = |code, reason: String| Err(Refuse::new(code, reason));
    if let Err(error) = request.check_bounds() {
        return refuse(RefuseCode::Malformed, error.to_string());
    }
    let demand = Demand::of_rounds(request);
    let planned = request.test.planned_span().zip(place.planned);
    let longer = planned.is_some_and(|(next, place)| next > place);
    let faster = place.rate_bps.is_some_and(|most| demand.rate_bps.is_none_or(|rate| rate > most));
    if demand.streams > place.streams || longer || faster {
        return refuse(RefuseCode::Limit, "a round beyond what the first one asked for".to_owned());
    }
    if rounds > ROUNDS_MAX {
        return refuse(RefuseCode::Limit, format!("more than {ROUNDS_MAX} rounds"));
    }
    Ok(())
}

/// A listener of the test's own where options shape the handshake.
fn listen_if_needed(request: &TcpTest, local: SocketAddr) -> Result<Option<TcpListener>, Failure> {
    let plain = request.window_bytes.is_none() && request.mss_bytes.is_none();
    if plain && !request.means.mptcp && !request.other_port {
        return Ok(None);
    }
    // The congestion control is a matter of sending sockets alone; `prepare` sets it on those.
    let options = TcpOptions { congestion_control: None, ..socket_options(request) };
    let listener = tcp::listen(at_port(local, 0), &options);
    listener.map(Some).map_err(|error| crate::failure::system(&error))
}

/// Options that may be set on an accepted socket.
fn prepare(
    socket: &TcpStream,
    request: &TcpTest,
    stream: u16,
    side: FlowSide,
) -> Result<(), Failure> {
    let class = TcpOptions { dscp: request.dscp_of(stream), ..TcpOptions::default() };
    tcp::adjust(socket, &class).map_err(|error| crate::failure::system(&error))?;
    if side == FlowSide::Sender
        && let Some(name) = &request.congestion_control
    {
        tcp::set_congestion_control(socket.as_fd(), name).map_err(|error| {
            crate::failure::system(&error)
                .advise("see net.ipv4.tcp_available_congestion_control on the server")
        })?;
    }
    if side == FlowSide::Sender && request.nodelay {
        let set = socket.set_nodelay(true);
        set.map_err(|error| Failure::new(Fault::System, "set", "TCP_NODELAY", error))?;
    }
    Ok(())
}
