//! The server's side of one test, from the first message to the last.
//!
//! Everything a client does or leaves out costs a bounded amount: each wait has a deadline, the
//! number of streams and the time are limited by the admission, and whatever ends the session
//! takes its data threads along.

use std::any::Any;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{Direction, End, Failure, Fault, Side, TcpTest};
use linerate_core::time::MonoTime;
use linerate_proto::native::{
    Accept, DataHello, FEATURES, FlowSample, HelloKind, Message, Refuse, RefuseCode, Request,
    ServerEvent, ServerMachine, Token,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::poll::readable;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};

use super::control::{Control, plain, read_data_hello_rest, read_hello};
use super::endpoint::{Endpoint, socket_options};
use super::registry::{DataRegistry, Registration};
use crate::served;

/// A client has this long for the next step of the set-up.
const STEP_TIMEOUT: Duration = Duration::from_secs(10);
/// After the planned end a test may take this much longer: draining, a slow last answer.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// A test that follows another may find its place not yet given back: a client's last message
/// and its next connection cross on the way.
pub(crate) const HANDOVER: Duration = Duration::from_millis(300);
/// How often waits look at the stop flag.
pub(crate) const LOOK: Duration = Duration::from_millis(50);
/// How often the end of the streams is looked for once it is due.
pub(crate) const LOOK_AT_END: Duration = Duration::from_millis(2);

/// Tests that one client may make in one place, trials among them.
const ROUNDS_MAX: u32 = 32;

/// A place among the running tests, given back when dropped.
pub struct Permit(
    /// Whatever the admission keeps alive for the test.
    pub Box<dyn Any + Send>,
);

/// What a test takes of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Demand {
    /// Streams of all directions, a flow in the background among them.
    pub streams: usize,
    /// How long it is planned to send, where that is known.
    pub planned: Option<Duration>,
}

impl Demand {
    /// That of a test over TCP.
    pub(crate) fn of(test: &TcpTest) -> Self {
        let streams = test.places().count() + usize::from(test.background_bps.is_some());
        Self { streams, planned: test.planned_span() }
    }

    /// That of a request, and of those that are to follow it in the same place.
    fn of_rounds(request: &Request) -> Self {
        let follow = Duration::from_nanos(request.follow_ns.unwrap_or(0));
        let one = Self::of(&request.test);
        Self { planned: one.planned.map(|span| span + follow), ..one }
    }
}

/// Decides which tests a server runs.
pub trait Admission: Sync {
    /// A permit for a test, or the reason against it.
    /// # Errors
    /// The answer to send to the client.
    fn admit(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse>;

    /// The same for a client that waits for its place and asks again and again: those that have
    /// waited longer come first.
    /// # Errors
    /// As above.
    fn admit_in_turn(&self, demand: &Demand, peer: SocketAddr) -> Result<Permit, Refuse> {
        self.admit(demand, peer)
    }

    /// Longest time a test may send.
    fn duration_max(&self) -> Duration;

    /// After its planned end a test may take this much longer: what is on the way arrives, the
    /// last answers are slow.
    fn grace(&self) -> Duration {
        GRACE
    }

    /// A client that could be told that the server is busy waits this long for its place before.
    fn patience(&self) -> Duration {
        Duration::ZERO
    }
}

/// Runs one test over a control connection whose hellos are done; returns what the log should say.
/// # Errors
/// Why the test did not end well.
pub fn serve_test(
    stream: TcpStream,
    registry: &DataRegistry,
    admission: &dyn Admission,
    stop: &Stop,
) -> Result<String, Failure> {
    let mut session = Session {
        control: Control::new(stream)?,
        machine: ServerMachine::default(),
        stop: stop.clone(),
    };
    let result = session.run(registry, admission);
    if let Err(failure) = &result
        && failure.fault != Fault::Unreachable
    {
        let _ = session.control.send(&Message::Abort { reason: failure.to_string() });
    }
    result
}

/// The server's side of one control connection.
pub(crate) struct Session {
    pub(crate) control: Control,
    pub(crate) machine: ServerMachine,
    pub(crate) stop: Stop,
}

/// Where the data streams of a test arrive.
struct Arrivals {
    token: Token,
    /// At the port of the control connection, sorted by token.
    shared: Registration,
    /// At a listener of their own, because buffers and segment size go before the handshake. The
    /// flow in the background has neither and arrives at the other port.
    own: Option<TcpListener>,
}

/// The streams of a test at this end.
struct Streams {
    test: Endpoint,
    /// The flow against the test's direction.
    background: Option<Endpoint>,
}

impl Session {
    fn run(
        &mut self,
        registry: &DataRegistry,
        admission: &dyn Admission,
    ) -> Result<String, Failure> {
        let request = match self.next_event(monotonic() + STEP_TIMEOUT)? {
            Some(ServerEvent::Requested(request)) => request,
            Some(ServerEvent::UdpRequested(request)) => return self.run_udp(&request, admission),
            Some(_) => return Ok("closed without a request".to_owned()),
            None => return Err(self.too_slow("a request", STEP_TIMEOUT)),
        };
        let checked = request.check().map_err(|error| error.to_string());
        let _permit = match self.admit(checked, &Demand::of_rounds(&request), admission)? {
            Ok(permit) => permit,
            Err(line) => return Ok(line),
        };
        let place = Demand::of_rounds(&request);
        let (mut request, mut rounds) = (request, 1);
        loop {
            let done = self.round(&request.test, registry, admission)?;
            let Some(next) = self.await_bye()? else { return Ok(format!("tcp {done}")) };
            rounds += 1;
            if let Err(refuse) = check_round(&next, rounds, &place) {
                let line = format!("refused: {}", refuse.reason);
                self.control.send(&Message::Refuse(refuse))?;
                return Ok(line);
            }
            request = next;
        }
    }

    /// One test, from the accept to the result; what there is to say of it.
    fn round(
        &mut self,
        request: &TcpTest,
        registry: &DataRegistry,
        admission: &dyn Admission,
    ) -> Result<String, Failure> {
        let mut streams = self.open_streams(request, registry)?;
        self.measure(request, &mut streams, admission)?;
        let background = streams.background.map(Endpoint::end_background);
        let mut reports = streams.test.finish();
        let said = served::line(&reports);
        reports.extend(background.into_iter().flatten());
        self.control.send(&Message::Result { reports })?;
        self.machine.reported();
        Ok(said)
    }

    /// A permit for a test within the protocol's bounds, waiting [`HANDOVER`] for the place of one
    /// that is just ending; or the line for the log once the client has been refused.
    pub(crate) fn admit(
        &mut self,
        checked: Result<(), String>,
        demand: &Demand,
        admission: &dyn Admission,
    ) -> Result<Result<Permit, String>, Failure> {
        let peer = self.address(TcpStream::peer_addr)?;
        let refuse = |reason| Refuse { code: RefuseCode::Malformed, reason, retry_after_ms: None };
        let permit = checked.map_err(refuse).and_then(|()| admit(demand, peer, admission));
        match permit {
            Ok(permit) => Ok(Ok(permit)),
            Err(refuse) => {
                let line = format!("refused: {}", refuse.reason);
                self.control.send(&Message::Refuse(refuse))?;
                Ok(Err(line))
            }
        }
    }

    /// Accepts the test and gathers its data streams.
    fn open_streams(
        &mut self,
        request: &TcpTest,
        registry: &DataRegistry,
    ) -> Result<Streams, Failure> {
        let token = Token(random_bytes());
        let local = self.address(TcpStream::local_addr)?;
        let own = listen_if_needed(request, local)?;
        let data_port = own
            .as_ref()
            .map_or_else(|| Ok(local), TcpListener::local_addr)
            .map_or(0, |address| address.port());
        let arrivals = Arrivals { token, shared: registry.register(token), own };
        let end = self.own_end();
        let host_id = linerate_sys::host::boot_id();
        let features = FEATURES.map(str::to_owned).to_vec();
        let (token, udp_ports) = (token.to_hex(), Vec::new());
        let accept = Accept { token, data_port, udp_ports, host_id, end, features };
        self.control.send(&Message::Accept(Box::new(accept)))?;
        self.machine.accepted();
        let mut streams = self.gather(request, &arrivals)?;
        for endpoint in streams.each() {
            endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
        }
        self.control.send(&Message::Ready)?;
        self.machine.streams_ready();
        Ok(streams)
    }

    /// What this host is, seen from the client.
    pub(crate) fn own_end(&self) -> End {
        let peer = self.control.stream().peer_addr().ok().map(|addr| addr.ip());
        End { role: "remote".to_owned(), ..crate::environment::local_end(peer) }
    }

    /// Collects every stream of the request, each once.
    fn gather(&mut self, request: &TcpTest, arrivals: &Arrivals) -> Result<Streams, Failure> {
        let deadline = monotonic() + STEP_TIMEOUT;
        let background = request.background();
        let of_background = background.iter().flat_map(TcpTest::places);
        let mut missing: Vec<(Direction, u16)> = request.places().chain(of_background).collect();
        let mut streams = Streams {
            test: Endpoint::new(request.clone()).kept_on(&request.means.server_cpus),
            background: background.clone().map(Endpoint::new),
        };
        while !missing.is_empty() {
            self.look_at_client("the data streams")?;
            if monotonic() >= deadline {
                return Err(self.too_slow("the data streams", STEP_TIMEOUT));
            }
            let Some((hello, socket)) = arrivals.next(deadline) else { continue };
            let place = (hello.direction, hello.stream);
            let Some(index) = missing.iter().position(|&wanted| wanted == place) else { continue };
            missing.swap_remove(index);
            let side = match hello.direction {
                Direction::Up => Side::Receiver,
                Direction::Down => Side::Sender,
            };
            let of_test = request.each_direction().contains(&hello.direction);
            let (endpoint, request) = match (&mut streams.background, &background) {
                (Some(endpoint), Some(request)) if !of_test => (endpoint, request),
                _ => (&mut streams.test, request),
            };
            prepare(&socket, request, side)?;
            let client_addr = socket.peer_addr().map_or_else(|_| String::new(), plain);
            endpoint.add(socket, (hello.direction, hello.stream, side), client_addr);
        }
        Ok(streams)
    }

    /// Runs the streams from start until all are done, with an interval message every tick.
    fn measure(
        &mut self,
        request: &TcpTest,
        streams: &mut Streams,
        admission: &dyn Admission,
    ) -> Result<(), Failure> {
        match self.next_event(monotonic() + STEP_TIMEOUT)? {
            Some(ServerEvent::Started) => {}
            Some(_) => return Err(self.left_early()),
            None => return Err(self.too_slow("start", STEP_TIMEOUT)),
        }
        let begin = monotonic();
        for endpoint in streams.each() {
            endpoint.start(begin).map_err(|error| crate::failure::system(&error))?;
        }
        let endpoint = &mut streams.test;
        let duration_max = admission.duration_max();
        let planned = request.planned_span().unwrap_or(duration_max).min(duration_max);
        let interval = Duration::from_nanos(request.interval_ns);
        let (end, mut tick) = (begin + planned + admission.grace(), begin + interval);
        let mut stall = Stall::since(begin + planned);
        while !endpoint.is_done() {
            let now = monotonic();
            if now >= tick {
                let samples = told(endpoint, now);
                self.control.send(&Message::Interval { samples })?;
                tick += interval;
            }
            if now >= begin + planned || self.stop.asked() {
                endpoint.stop_sending();
            }
            if now >= end || stall.lasts(now, endpoint.moved()) {
                endpoint.halt();
            }
            match self.next_event(tick.min(next_look(now, Some(begin + planned))))? {
                Some(ServerEvent::Stopped) => endpoint.stop_sending(),
                Some(_) => return Err(self.left_early()),
                None => {}
            }
        }
        let samples = told(endpoint, monotonic());
        self.control.send(&Message::Interval { samples })
    }

    /// Waits for the client to take its result; its next request, if there is one.
    pub(crate) fn await_bye(&mut self) -> Result<Option<Request>, Failure> {
        let deadline = monotonic() + STEP_TIMEOUT;
        loop {
            match self.next_event(deadline) {
                Ok(Some(ServerEvent::Requested(request))) => return Ok(Some(request)),
                Ok(Some(ServerEvent::Finished) | None) => return Ok(None),
                Ok(Some(_)) => {}
                // A client that leaves without a bye has its result all the same.
                Err(failure) if failure.fault == Fault::Unreachable => return Ok(None),
                Err(failure) => return Err(failure),
            }
        }
    }

    /// What the client wants next, or nothing by `until`.
    pub(crate) fn next_event(&mut self, until: MonoTime) -> Result<Option<ServerEvent>, Failure> {
        loop {
            let step = until.min(monotonic() + LOOK);
            if let Some(message) = self.control.receive(step)? {
                let event = self.machine.handle(message);
                return event.map(Some).map_err(|error| self.control.misbehaved(&error));
            }
            if monotonic() >= until || self.stop.asked() {
                return Ok(None);
            }
        }
    }

    /// Notices a client that leaves while the server waits for something else.
    pub(crate) fn look_at_client(&mut self, waiting_for: &str) -> Result<(), Failure> {
        if self.stop.asked() {
            let failure = Failure::new(
                Fault::System,
                format!("wait for {waiting_for} from"),
                self.control.peer(),
                "the server is being stopped",
            );
            return Err(failure);
        }
        match self.control.receive(monotonic())? {
            None => Ok(()),
            Some(message) => match self.machine.handle(message) {
                Ok(_) => Err(self.left_early()),
                Err(error) => Err(self.control.misbehaved(&error)),
            },
        }
    }

    /// An address of the control connection.
    pub(crate) fn address(
        &self,
        which: impl Fn(&TcpStream) -> std::io::Result<SocketAddr>,
    ) -> Result<SocketAddr, Failure> {
        which(self.control.stream()).map_err(|error| {
            Failure::new(Fault::Unreachable, "address of", self.control.peer(), error)
        })
    }

    /// The client did not take the next step in time.
    pub(crate) fn too_slow(&self, what: &str, within: Duration) -> Failure {
        let attempt = format!("wait for {what} from");
        let reason = format!("nothing came within {within:?}");
        Failure::new(Fault::PeerMisbehaved, attempt, self.control.peer(), reason)
    }

    /// The client has gone.
    pub(crate) fn left_early(&self) -> Failure {
        let reason = "the client aborted the test";
        Failure::new(Fault::Unreachable, "serve", self.control.peer(), reason)
    }
}

impl Streams {
    /// The flow in the background first: it is there when the test begins.
    fn each(&mut self) -> impl Iterator<Item = &mut Endpoint> {
        self.background.iter_mut().chain([&mut self.test])
    }
}

impl Arrivals {
    /// The next data stream, waiting no longer than a look.
    fn next(&self, deadline: MonoTime) -> Option<(DataHello, TcpStream)> {
        let Some(listener) = &self.own else { return self.shared.arrivals.recv_timeout(LOOK).ok() };
        self.own_next(listener, deadline).or_else(|| self.shared.arrivals.try_recv().ok())
    }

    fn own_next(
        &self,
        listener: &TcpListener,
        deadline: MonoTime,
    ) -> Option<(DataHello, TcpStream)> {
        readable(listener, LOOK).ok().filter(|ready| *ready)?;
        let (socket, _) = listener.accept().ok()?;
        let left = deadline.since(monotonic()).min(Duration::from_secs(1));
        let common = read_hello(&socket, left).ok()?;
        (common.kind == HelloKind::Data).then_some(())?;
        let hello = read_data_hello_rest(&socket, common, left).ok()?;
        (hello.token == self.token).then_some((hello, socket))
    }
}

/// One sample of every stream, as clients are told.
fn told(endpoint: &mut Endpoint, now: MonoTime) -> Vec<FlowSample> {
    endpoint.sample(now).into_iter().map(FlowSample::from).collect()
}

/// Whether a client's next request stays within the place that its first one was given.
fn check_round(request: &Request, rounds: u32, place: &Demand) -> Result<(), Refuse> {
    let refuse = |code, reason: String| Err(Refuse { code, reason, retry_after_ms: None });
    if let Err(error) = request.check() {
        return refuse(RefuseCode::Malformed, error.to_string());
    }
    let demand = Demand::of_rounds(request);
    let planned = request.test.planned_span().zip(place.planned);
    let longer = planned.is_some_and(|(next, place)| next > place);
    if demand.streams > place.streams || longer {
        return refuse(RefuseCode::Limit, "a round beyond what the first one asked for".to_owned());
    }
    if rounds > ROUNDS_MAX {
        return refuse(RefuseCode::Limit, format!("more than {ROUNDS_MAX} rounds"));
    }
    Ok(())
}

/// Streams that are due to end and move nothing more: what was sent is lost, not late.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stall {
    moved: u64,
    since: MonoTime,
}

/// Longer than a sender waits that has to send again twice what got lost (RFC 6298: 1 s, then 2 s).
const STALLED: Duration = Duration::from_secs(5);

impl Stall {
    /// Nothing moved is no stall before `due`.
    pub(super) const fn since(due: MonoTime) -> Self {
        Self { moved: 0, since: due }
    }

    /// Whether the count of bytes stood still for [`STALLED`].
    pub(super) fn lasts(&mut self, now: MonoTime, moved: u64) -> bool {
        if moved != self.moved {
            *self = Self { moved, since: self.since.max(now) };
        }
        now.since(self.since) >= STALLED
    }
}

/// When the streams are looked at next: often once they are due to end, and when they are.
pub(super) fn next_look(now: MonoTime, due: Option<MonoTime>) -> MonoTime {
    match due {
        Some(due) if now >= due => now + LOOK_AT_END,
        Some(due) => due.min(now + LOOK),
        None => now + LOOK,
    }
}

/// A permit, waiting [`HANDOVER`] for the place of a test that is just ending.
fn admit(demand: &Demand, peer: SocketAddr, admission: &dyn Admission) -> Result<Permit, Refuse> {
    let deadline = monotonic() + HANDOVER;
    loop {
        match admission.admit(demand, peer) {
            Err(refuse) if refuse.code == RefuseCode::Busy && monotonic() < deadline => {
                linerate_sys::clock::sleep(Duration::from_millis(5));
            }
            answer => return answer,
        }
    }
}

/// A listener of the test's own where options shape the handshake.
fn listen_if_needed(request: &TcpTest, local: SocketAddr) -> Result<Option<TcpListener>, Failure> {
    let plain = request.window_bytes.is_none() && request.mss_bytes.is_none();
    if plain && !request.means.mptcp {
        return Ok(None);
    }
    // The congestion control is a matter of sending sockets alone; `prepare` sets it on those.
    let options = TcpOptions { congestion_control: None, ..socket_options(request) };
    let listener = tcp::listen(SocketAddr::new(local.ip(), 0), &options);
    listener.map(Some).map_err(|error| crate::failure::system(&error))
}

/// Options that may be set on an accepted socket.
fn prepare(socket: &TcpStream, request: &TcpTest, side: Side) -> Result<(), Failure> {
    if side == Side::Sender
        && let Some(name) = &request.congestion_control
    {
        tcp::set_congestion_control(socket.as_fd(), name).map_err(|error| {
            crate::failure::system(&error)
                .advise("see net.ipv4.tcp_available_congestion_control on the server")
        })?;
    }
    if side == Side::Sender && request.nodelay {
        let set = socket.set_nodelay(true);
        set.map_err(|error| Failure::new(Fault::System, "set", "TCP_NODELAY", error))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_stall_when_nothing_moved_for_five_seconds_after_their_end_was_due() {
        let at = |seconds: u64| MonoTime::from_nanos(seconds * 1_000_000_000);
        let mut stall = Stall::since(at(10));
        // Before the end nothing need move; what moves late counts from then on.
        assert!(!stall.lasts(at(9), 0) && !stall.lasts(at(14), 0));
        assert!(!stall.lasts(at(14), 100) && !stall.lasts(at(18), 100));
        assert!(stall.lasts(at(19), 100));
        assert!(!stall.lasts(at(20), 101));
        assert!(Stall::since(at(10)).lasts(at(15), 0));
    }
}
