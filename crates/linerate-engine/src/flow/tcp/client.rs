//! The client's side of one test: from a plan to a record.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Failure, FailureCode, Fault, Plan, Record, Side, Status, TcpDirections,
    TcpPlan, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_proto::dialect::{FlowState, Output, Reason};
use linerate_proto::native::{
    Accept, Client, ClientTest, DataHello, Hello, HelloKind, Message, PeerFault, Refuse,
    RefuseCode, Request, Token, VERSIONS,
};
use linerate_sys::clock::{monotonic, record_id, wall};
use linerate_sys::tcp::{self, TcpOptions};

use super::arrived::{nothing_arrived, nothing_at_all};
use super::control::{closed, lost, misbehaved, plain, read_hello, send_hello, silent};
use super::endpoint::{Endpoint, socket_options};
use super::trials;
use crate::address::resolve;
use crate::context::Context;
use crate::failure::{code_of, words_of};
use crate::flow::account::Account;
use crate::flow::account::client_side;
use crate::flow::fold::fold;
use crate::flow::{self, Answer, Flows, Sample, Session, Socket};
use crate::foreign;
use crate::path::witness::Witness;

/// Measures TCP throughput as planned. The record always exists: when something fails it says so,
/// and keeps what was measured before.
pub fn run(plan: &TcpPlan, context: &mut Context<'_>) -> Record {
    run_by(plan, context, |context, account| match plan.via {
        None => measure(plan, context, account),
        Some(via) => {
            check_via(plan)?;
            foreign::measure(via, plan, context, account)
        }
    })
}

/// Measures with a server of this program's own protocol.
fn measure(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    account: &mut Account,
) -> Result<(), Failure> {
    let mut request = plan.test.clone();
    request.check().map_err(|error| {
        Failure::new(Fault::Usage, "plan", "TCP test", error).advise("see linerate tcp --help")
    })?;
    let mut link = Link::open(plan, account)?;
    if plan.fast {
        (link, request.means) = trials::choose(link, &request, context, account)?;
    }
    let host_id = linerate_sys::host::boot_id();
    let asked = Request { test: request, follow_ns: None, host_id };
    link.measure(asked, true, context, account)?;
    account.stream_failure().or_else(|| account.wrong_contents()).map_or(Ok(()), Err)
}

/// What needs this program at both ends.
fn check_via(plan: &TcpPlan) -> Result<(), Failure> {
    let means = &plan.test.means;
    let needs = [
        (plan.fast, "--fast"),
        (means.verify_seed.is_some(), "--verify"),
        (!means.server_cpus.is_empty(), "CPU pinning at the server"),
        (means.mptcp, "--mptcp"),
    ];
    let Some((_, what)) = needs.into_iter().find(|(asked, _)| *asked) else { return Ok(()) };
    let reason = "it needs linerate at both ends";
    Err(Failure::new(Fault::Usage, "use", what, reason).advise("run linerate serve there"))
}

/// The record of a test that `measure` makes.
pub(crate) fn run_by(
    plan: &TcpPlan,
    context: &mut Context<'_>,
    measure: impl FnOnce(&mut Context<'_>, &mut Account) -> Result<(), Failure>,
) -> Record {
    let begin = monotonic();
    let tool = context.tool.clone();
    let mut record = Record::begin(record_id(), tool, Plan::Tcp(plan.clone()), wall());
    (context.watch)(&Event::Plan(record.plan.clone()));
    let mut account = Account {
        row_ns_min: plan.test.interval_ns / 4,
        omit_ns: plan.test.omit_ns,
        ..Account::default()
    };
    let result = measure(context, &mut account);
    let nothing = || nothing_arrived(plan, &account).filter(|_| !context.stop.asked());
    if let Err(failure) = result.and_then(|()| nothing().map_or(Ok(()), Err)) {
        record.status = match failure.fault {
            // All of it was measured: the contents are the result.
            Fault::Corrupted => Status::Ok,
            _ if account.has_samples() && !nothing_at_all(plan, &account) => Status::Partial,
            _ => Status::Error,
        };
        record.failure = Some(failure);
    }
    record.paths = account.witness.take().map(Witness::end).unwrap_or_default();
    fold(&mut record, &account);
    if context.stop.asked() && record.failure.is_none() {
        record.status = Status::Interrupted;
    }
    for caveat in &record.caveats {
        (context.watch)(&Event::Caveat(caveat.clone()));
    }
    record.duration_ns = monotonic().nanos_since(begin);
    record
}

/// A control connection, ready for a request.
pub(super) struct Link {
    pub(super) net: Socket,
    pub(super) server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
}

impl Link {
    fn open(plan: &TcpPlan, account: &mut Account) -> Result<Self, Failure> {
        let server = resolve(&plan.host, plan.port, plan.family)?;
        let local = bind_address(plan.bind.as_deref())?;
        account.ends.push(crate::environment::local_end(Some(server.ip())));
        account.witness = Some(Witness::begin(server.ip()));
        let timeout = Duration::from_nanos(plan.connect_timeout_ns);
        let net = Socket::new(connect_control(server, local, timeout)?)?;
        Ok(Self { net, server, local, timeout })
    }

    /// Runs one test; another one may follow unless it is the last.
    pub(super) fn measure(
        mut self,
        asked: Request,
        last: bool,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let test = ClientTest {
            span: asked.test.planned_span(),
            interval: Duration::from_nanos(asked.test.interval_ns),
            request: Message::Request(asked.clone()),
            last,
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
        let mut session = Session::new(Client::new(monotonic(), test), flows);
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
    asked: Request,
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
    /// The server's yes.
    accept: Option<Box<Accept>>,
    context: &'a mut Context<'w>,
    account: &'a mut Account,
}

impl Flows for TcpClient<'_, '_> {
    type Machine = Client;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Client>,
    ) -> Result<Option<Answer<Client>>, Failure> {
        match output {
            Output::Decide(accept) => {
                self.check_features(&accept)?;
                self.accept = Some(accept);
                return Ok(Some(Answer::Decided(Ok(()))));
            }
            Output::Open => {
                self.connect()?;
                return Ok(Some(Answer::Opened));
            }
            Output::Begin => {
                for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
                    endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
                }
            }
            Output::Start => {
                self.account.begin = now;
                for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
                    endpoint.start(now).map_err(|error| crate::failure::system(&error))?;
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

    fn answer(&mut self, _: MonoTime) -> Result<Option<Answer<Client>>, Failure> {
        Ok(None)
    }

    fn state(&mut self, _: MonoTime) -> FlowState {
        let done = self.endpoint.has_started() && self.endpoint.is_done();
        if done {
            self.background.iter().for_each(Endpoint::stop_sending);
        }
        FlowState { moved: self.endpoint.moved(), done, ..FlowState::default() }
    }

    fn failure(&self, reason: Reason<PeerFault>) -> Failure {
        client_failure(&plain(self.server), reason)
    }

    fn lost(&self, attempt: &'static str, error: &io::Error) -> Failure {
        lost(&plain(self.server), attempt, error)
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
        let peer = plain(self.server);
        Err(Failure::new(Fault::PeerIncompatible, "ask for a test with", peer, reason)
            .advise("install the same version at both ends"))
    }

    /// Connects every stream.
    fn connect(&mut self) -> Result<(), Failure> {
        let Some(accept) = self.accept.take() else { return Ok(()) };
        let token = Token::from_hex(&accept.token).ok_or_else(|| {
            let reason = "its token is not 32 hexadecimal digits";
            Failure::new(Fault::PeerMisbehaved, "talk to", plain(self.server), reason)
        })?;
        let (request, timeout, local) = (&self.asked.test, self.timeout, self.local);
        let server = SocketAddr::new(self.server.ip(), accept.data_port);
        for &direction in request.each_direction() {
            for stream in 0..request.streams {
                let way = Way { server, local, timeout };
                let hello = DataHello { token, stream, direction };
                let client_addr = way.connect(&mut self.endpoint, request, hello)?;
                self.account.connected(direction, stream, &client_addr, server);
            }
        }
        if let (Some(endpoint), Some(request)) = (&mut self.background, request.background()) {
            // Its buffers are not the test's, so it does not go to a listener that has those.
            let way = Way { server: self.server, local, timeout };
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
        let line = format!("{streams} {noun} to {}", plain(self.server));
        (self.context.watch)(&Event::Connected(line));
        Ok(())
    }

    /// Keeps what was measured, however the test ended.
    fn conclude(self, failed: bool) {
        if !self.endpoint.has_started() {
            return;
        }
        // What has not come by now is lost.
        self.endpoint.halt();
        if failed {
            self.background.iter().for_each(Endpoint::halt);
        }
        self.account.local = self.endpoint.finish();
        let background = self.background.map(Endpoint::end_background);
        self.account.local.extend(background.into_iter().flatten());
    }
}

/// The failure of a test with the server `peer`.
pub(crate) fn client_failure(peer: &str, reason: Reason<PeerFault>) -> Failure {
    match reason {
        Reason::Peer(PeerFault::Wire(error)) => misbehaved(peer, &error),
        Reason::Peer(PeerFault::Refused(refuse)) => refused(peer, &refuse),
        Reason::Peer(PeerFault::Aborted(reason)) => Failure::new(
            Fault::PeerRefused,
            "test with",
            peer,
            format!("the server aborted: {reason}"),
        ),
        Reason::Closed => closed(peer),
        Reason::Stopped => {
            Failure::new(Fault::Unreachable, "test with", peer, "stopped before the test began")
        }
        _ => silent(peer),
    }
}

/// How data streams reach the server.
struct Way {
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
}

impl Way {
    /// Connects one data stream and gives it to `endpoint`; the client's address.
    fn connect(
        &self,
        endpoint: &mut Endpoint,
        request: &TcpTest,
        hello: DataHello,
    ) -> Result<String, Failure> {
        let side = client_side(hello.direction);
        let options = match side {
            Side::Sender => socket_options(request),
            Side::Receiver => TcpOptions { congestion_control: None, ..socket_options(request) },
        };
        let socket = tcp::connect(self.server, self.local, &options, self.timeout)
            .map_err(|error| connect_failure(&error))?;
        let client_addr =
            socket.local_addr().map_or_else(|_| String::new(), |addr| addr.to_string());
        let socket =
            endpoint.add(socket, (hello.direction, hello.stream, side), client_addr.clone());
        (&mut &*socket).write_all(&hello.to_bytes()).map_err(|error| {
            let server = self.server.to_string();
            Failure::new(Fault::Unreachable, "open data stream to", server, error)
        })?;
        Ok(client_addr)
    }
}

/// The failure that a server's no is.
pub(crate) fn refused(peer: &str, refuse: &Refuse) -> Failure {
    let failure = Failure::new(Fault::PeerRefused, "ask for a test with", peer, &refuse.reason);
    match (refuse.code, refuse.retry_after_ms) {
        (RefuseCode::Busy, Some(ms)) => {
            failure.advise(format!("try again in about {} s", ms.div_ceil(1000))).retry_after(ms)
        }
        (RefuseCode::Limit, _) => failure.advise("ask for less, or raise the server's limit"),
        _ => failure,
    }
}

/// A control connection whose hellos are done.
pub(crate) fn connect_control(
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
) -> Result<TcpStream, Failure> {
    let stream = tcp::connect(server, local, &TcpOptions::control(), timeout)
        .map_err(|error| connect_failure(&error))?;
    send_hello(&stream, Hello::new(HelloKind::Control)).map_err(|error| {
        Failure::new(Fault::Unreachable, "send hello to", server.to_string(), words_of(&error))
    })?;
    let hello = read_hello(&stream, timeout);
    let hello = hello.map_err(|failure| failure.advise("is it `linerate serve`?"))?;
    VERSIONS.with_server(hello.version).map_err(|error| {
        Failure::new(Fault::PeerIncompatible, "talk to", server.to_string(), error)
            .advise("install the same version at both ends")
    })?;
    Ok(stream)
}

pub(crate) fn connect_failure(error: &linerate_sys::Error) -> Failure {
    use std::io::ErrorKind;
    let code = code_of(error);
    let (fault, advice) = match (code, error.source.kind()) {
        (_, ErrorKind::ConnectionRefused) => {
            (Fault::Unreachable, "start `linerate serve` there, or name its port with -p")
        }
        (_, ErrorKind::TimedOut) => {
            (Fault::Unreachable, "is the host up and the port open on the way?")
        }
        (
            Some(FailureCode::Connect),
            ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable,
        ) => (Fault::Unreachable, "check the route with `ip route get`"),
        (Some(FailureCode::Connect), _) => {
            (Fault::Unreachable, "look at the address and the route to it")
        }
        (Some(FailureCode::Listen), _) => {
            (Fault::System, "give -B an address of this host in the host's family")
        }
        (Some(FailureCode::CongestionControl), _) => {
            (Fault::System, "see net.ipv4.tcp_available_congestion_control on this host")
        }
        _ => (Fault::System, "see tcp(7)"),
    };
    Failure::new(fault, error.call, &error.object, words_of(&error.source))
        .advise(advice)
        .coded(code)
}

/// The local address that a plan names.
pub(crate) fn bind_address(bind: Option<&str>) -> Result<Option<IpAddr>, Failure> {
    let Some(text) = bind else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Failure::new(Fault::Usage, "bind", text, "not an IP address")
            .advise("give an address of this host to -B")
            .coded(FailureCode::Listen)
    })
}

/// Whether a plan has a direction.
pub(crate) const fn has(directions: TcpDirections, direction: Direction) -> bool {
    matches!(
        (directions, direction),
        (TcpDirections::Both, _)
            | (TcpDirections::Up, Direction::Up)
            | (TcpDirections::Down, Direction::Down)
    )
}
