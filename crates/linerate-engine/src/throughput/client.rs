//! The client's side of one test: from a plan to a record.

use std::io::Write;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Event, Failure, Fault, Plan, Record, Side, Status, TcpDirections,
    TcpPlan, TcpTest,
};
use linerate_proto::native::{
    Accept, ClientEvent, ClientMachine, DataHello, Hello, HelloKind, Message, Refuse, RefuseCode,
    Request, Token, VERSIONS,
};
use linerate_sys::clock::{monotonic, record_id, sleep, wall};
use linerate_sys::tcp::{self, TcpOptions};

use super::arrived::{nothing_arrived, nothing_at_all};
use super::control::{Control, read_hello, send_hello};
use super::endpoint::{Endpoint, socket_options};
use super::session::{LOOK_AT_END, Stall, next_look};
use super::trials;
use crate::address::resolve;
use crate::context::Context;
use crate::failure::words_of;
use crate::flow::Sample;
use crate::flow::account::{Account, client_side};
use crate::flow::fold::fold;
use crate::foreign;
use crate::path::witness::Witness;

/// After the planned end the server has this long to report.
const REPORT_TIMEOUT: Duration = Duration::from_secs(15);
/// The server has this long to answer a request.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(15);
/// How often the client looks at its stop flag.
const LOOK: Duration = Duration::from_millis(50);

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
    let mut request = request(plan);
    request.check().map_err(|error| {
        Failure::new(Fault::Usage, "plan", "TCP test", error).advise("see linerate tcp --help")
    })?;
    let mut link = Link::open(plan, account)?;
    if plan.fast {
        (link, request.means) = trials::choose(link, &request, context, account)?;
    }
    let host_id = linerate_sys::host::boot_id();
    let asked = Request { test: request, follow_ns: None, host_id };
    let test = Test::open(link, asked, context, account)?;
    let mut link = test.measure(context, account)?;
    // The server has reported; a bye that does not reach it changes nothing.
    let _ = link.control.send(&Message::Bye);
    account.stream_failure().or_else(|| account.wrong_contents()).map_or(Ok(()), Err)
}

/// What needs this program at both ends.
fn check_via(plan: &TcpPlan) -> Result<(), Failure> {
    let means = &plan.means;
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
    let mut account =
        Account { row_ns_min: plan.interval_ns / 4, omit_ns: plan.omit_ns, ..Account::default() };
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

/// The test of a plan, as both ends have to know it.
pub(crate) fn request(plan: &TcpPlan) -> TcpTest {
    TcpTest {
        directions: plan.directions,
        streams: plan.streams,
        finish: plan.finish,
        omit_ns: plan.omit_ns,
        interval_ns: plan.interval_ns,
        buffer_bytes: plan.buffer_bytes,
        window_bytes: plan.window_bytes,
        mss_bytes: plan.mss_bytes,
        nodelay: plan.nodelay,
        congestion_control: plan.congestion_control.clone(),
        pace_bps: plan.pace.map(linerate_core::units::BitRate::bits_per_sec),
        dscp: plan.dscp,
        zero_copy: plan.zero_copy,
        read_bytes: plan.read_bytes,
        background_bps: plan.background.map(linerate_core::units::BitRate::bits_per_sec),
        means: plan.means.clone(),
    }
}

/// A control connection, ready for a request.
pub(super) struct Link {
    pub(super) control: Control,
    machine: ClientMachine,
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
        let control = connect_control(server, local, timeout)?;
        Ok(Self { control, machine: ClientMachine::default(), local, timeout })
    }
}

/// A test whose streams are connected.
pub(super) struct Test {
    link: Link,
    endpoint: Endpoint,
    /// The flow against the test's direction.
    background: Option<Endpoint>,
    asked: Request,
}

impl Test {
    /// Asks for a test and connects its streams, up to the server's `ready`.
    pub(super) fn open(
        link: Link,
        asked: Request,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Self, Failure> {
        let kept_on = &asked.test.means.client_cpus;
        let endpoint = Endpoint::new(asked.test.clone()).kept_on(kept_on);
        let background = asked.test.background().map(Endpoint::new);
        let mut test = Self { link, endpoint, background, asked };
        let accept = test.ask(context)?;
        test.check_features(&accept)?;
        test.connect_streams(&accept, account)?;
        account.server_host_id = accept.host_id.clone();
        account.ends.push(accept.end);
        let streams = test.asked.test.streams;
        let noun = if streams == 1 { "stream" } else { "streams" };
        let line = format!("{streams} {noun} to {}", test.link.control.peer());
        (context.watch)(&Event::Connected(line));
        match test.next_event(ANSWER_TIMEOUT, context)? {
            ClientEvent::Ready => Ok(test),
            event => Err(test.refusal(event)),
        }
    }

    /// Sends the request and returns the server's yes.
    fn ask(&mut self, context: &Context<'_>) -> Result<Accept, Failure> {
        self.link.control.send(&Message::Request(self.asked.clone()))?;
        match self.next_event(ANSWER_TIMEOUT, context)? {
            ClientEvent::Accepted(accept) => Ok(*accept),
            event => Err(self.refusal(event)),
        }
    }

    /// An older server would leave out what it does not know, and the figures would look sound.
    fn check_features(&self, accept: &Accept) -> Result<(), Failure> {
        let mut asked = self.asked.features();
        let Some(missing) = asked.find(|asked| !accept.features.iter().any(|has| has == asked))
        else {
            return Ok(());
        };
        let reason = format!("the server does not know {missing}");
        Err(Failure::new(
            Fault::PeerIncompatible,
            "ask for a test with",
            self.link.control.peer(),
            reason,
        )
        .advise("install the same version at both ends"))
    }

    fn connect_streams(&mut self, accept: &Accept, account: &mut Account) -> Result<(), Failure> {
        let token = Token::from_hex(&accept.token).ok_or_else(|| {
            let reason = "its token is not 32 hexadecimal digits";
            Failure::new(Fault::PeerMisbehaved, "talk to", self.link.control.peer(), reason)
        })?;
        let shared = self.link.control.stream().peer_addr().map_err(|error| {
            Failure::new(Fault::Unreachable, "address of", self.link.control.peer(), error)
        })?;
        let server = SocketAddr::new(shared.ip(), accept.data_port);
        let (local, timeout) = (self.link.local, self.link.timeout);
        let request = &self.asked.test;
        for &direction in request.each_direction() {
            for stream in 0..request.streams {
                let way = Way { server, local, timeout };
                let hello = DataHello { token, stream, direction };
                let client_addr = way.connect(&mut self.endpoint, request, hello)?;
                account.connected(direction, stream, &client_addr, server);
            }
        }
        if let (Some(endpoint), Some(request)) = (&mut self.background, request.background()) {
            // Its buffers are not the test's, so it does not go to a listener that has those.
            let way = Way { server: shared, local, timeout };
            for &direction in request.each_direction() {
                let hello = DataHello { token, stream: 0, direction };
                let client_addr = way.connect(endpoint, &request, hello)?;
                account.connected_background(direction, &client_addr, shared);
            }
        }
        Ok(())
    }

    /// Starts, follows and ends the test.
    pub(super) fn measure(
        mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Link, Failure> {
        for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
            let prepared = endpoint.prepare();
            prepared.map_err(|error| crate::failure::system(&error))?;
        }
        self.link.control.send(&Message::Start)?;
        account.begin = monotonic();
        for endpoint in self.background.iter_mut().chain([&mut self.endpoint]) {
            let started = endpoint.start(account.begin);
            started.map_err(|error| crate::failure::system(&error))?;
        }
        let result = self.follow(context, account);
        match result.is_err() {
            true => {
                self.endpoint.halt();
                self.background.iter().for_each(Endpoint::halt);
            }
            false => self.await_streams(),
        }
        account.local = self.endpoint.finish();
        account.local.extend(self.background.map(Endpoint::end_background).into_iter().flatten());
        account.remote = result?;
        self.link.machine.asked_again();
        Ok(self.link)
    }

    /// Takes samples and messages until the server has reported.
    fn follow(
        &mut self,
        context: &mut Context<'_>,
        account: &mut Account,
    ) -> Result<Vec<EndReport>, Failure> {
        let begin = account.begin;
        let planned = self.asked.test.planned_span();
        let interval = Duration::from_nanos(self.asked.test.interval_ns);
        let (mut tick, mut stopping) = (begin + interval, false);
        let mut give_up = planned.map(|span| begin + span + REPORT_TIMEOUT);
        loop {
            let now = monotonic();
            if now >= tick {
                let samples = self.endpoint.sample(now);
                account.local_interval(samples, context.watch);
                tick += interval;
            }
            if context.stop.asked() && !stopping {
                stopping = true;
                self.endpoint.stop_sending();
                self.link.control.send(&Message::Stop)?;
                give_up = Some(now + REPORT_TIMEOUT);
            }
            if give_up.is_some_and(|end| now >= end) {
                return Err(self.silent());
            }
            let over = self.background.as_ref().filter(|_| self.endpoint.is_done());
            over.inspect(|background| background.stop_sending());
            let look = match over {
                Some(_) => now + LOOK_AT_END,
                None => next_look(now, planned.map(|span| begin + span)),
            };
            let Some(message) = self.link.control.receive(tick.min(look))? else { continue };
            match self.link.machine.handle(message) {
                Ok(ClientEvent::Interval(samples)) => {
                    let samples = samples.into_iter().map(Sample::from).collect();
                    account.remote_interval(samples, context.watch);
                }
                Ok(ClientEvent::Reported(reports)) => {
                    let samples = self.endpoint.sample(monotonic());
                    account.local_interval(samples, context.watch);
                    return Ok(reports);
                }
                Ok(event) => return Err(self.refusal(event)),
                Err(error) => return Err(self.link.control.misbehaved(&error)),
            }
        }
    }

    /// What the server has sent may be on the way when it reports, or be lost for good.
    fn await_streams(&self) {
        let mut stall = Stall::since(monotonic());
        while !self.endpoint.is_done() {
            if stall.lasts(monotonic(), self.endpoint.moved()) {
                self.endpoint.halt();
            }
            sleep(LOOK_AT_END);
        }
    }

    fn next_event(
        &mut self,
        timeout: Duration,
        context: &Context<'_>,
    ) -> Result<ClientEvent, Failure> {
        let end = monotonic() + timeout;
        while monotonic() < end && !context.stop.asked() {
            if let Some(message) = self.link.control.receive(end.min(monotonic() + LOOK))? {
                let event = self.link.machine.handle(message);
                return event.map_err(|error| self.link.control.misbehaved(&error));
            }
        }
        Err(self.silent())
    }

    fn silent(&self) -> Failure {
        let reason = "the server fell silent";
        Failure::new(Fault::Unreachable, "hear from", self.link.control.peer(), reason)
            .advise("the results so far are kept")
    }

    /// The failure behind an event that ends the test.
    fn refusal(&self, event: ClientEvent) -> Failure {
        let peer = self.link.control.peer();
        match event {
            ClientEvent::Refused(refuse) => refused(peer, &refuse),
            ClientEvent::Aborted(reason) => Failure::new(
                Fault::PeerRefused,
                "test with",
                peer,
                format!(
                    "the server aborted: \
                                                                             {reason}"
                ),
            ),
            _ => Failure::new(Fault::PeerMisbehaved, "test with", peer, "answers out of order"),
        }
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
) -> Result<Control, Failure> {
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
    Control::new(stream)
}

pub(crate) fn connect_failure(error: &linerate_sys::Error) -> Failure {
    use std::io::ErrorKind;
    let (call, kind) = (error.call, error.source.kind());
    let (fault, advice) = match (call, kind) {
        (_, ErrorKind::ConnectionRefused) => {
            (Fault::Unreachable, "start `linerate serve` there, or name its port with -p")
        }
        (_, ErrorKind::TimedOut) => {
            (Fault::Unreachable, "is the host up and the port open on the way?")
        }
        ("connect", ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable) => {
            (Fault::Unreachable, "check the route with `ip route get`")
        }
        ("connect", _) => (Fault::Unreachable, "look at the address and the route to it"),
        ("bind TCP", _) => (Fault::System, "give -B an address of this host in the host's family"),
        ("set congestion control", _) => {
            (Fault::System, "see net.ipv4.tcp_available_congestion_control on this host")
        }
        _ => (Fault::System, "see tcp(7)"),
    };
    Failure::new(fault, call, &error.object, words_of(&error.source)).advise(advice)
}

/// The local address that a plan names.
pub(crate) fn bind_address(bind: Option<&str>) -> Result<Option<IpAddr>, Failure> {
    let Some(text) = bind else { return Ok(None) };
    text.parse().map(Some).map_err(|_| {
        Failure::new(Fault::Usage, "bind", text, "not an IP address")
            .advise("give an address of this host to -B")
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
