//! The server's side of a connection to the port of iperf 2 and ttcp: the streams that its first
//! bytes ask for.
//!
//! The first bytes of data stay in the socket: they are payload, and counted with the rest. A
//! client whose test may not run is reset.

use std::cell::Cell;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use linerate_core::record::{
    Direction, EndReport, Failure, Fault, Finish, FlowSide, TcpDirections, TcpTest,
};
use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::dialect::{FlowState, Output, TestFailureReason};
use linerate_proto::iperf2::{
    Bounce, ClientHeader, HEADER_BYTES_MAX, HeaderError, Iperf2Amount, Mode, Request, Server, Terms,
};
use linerate_sys::clock::{monotonic, realtime_offset_ns, sleep};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, TcpOptions};

use super::client::RULES;
use crate::failure::{system, words_of};
use crate::flow::admission::{Demand, Permit};
use crate::flow::peer::{connection_failure, plain_address};
use crate::flow::tcp::endpoint::{Endpoint, StreamId};
use crate::flow::{self, Flows, FlowsAnswer, Net, TestSession, Words};
use crate::foreign::serve::{ServedEvent, Serving, UNTIL_CLOSED, failure_of, request};
use crate::foreign::test::VANISHED;
use crate::served::{self, LogText};

/// A client that listens for the connection back answers within this time.
const CONNECT_BACK: Duration = Duration::from_secs(4);
/// The client listens from a thread of its own, which may come to it so much later than its header
/// comes here.
const LISTENING: Duration = Duration::from_secs(1);
/// Longest buffer that a client may ask the server to write.
const BUFFER_MAX: u32 = 16 << 20;
/// Longest request and reply of a latency test.
const BOUNCE_MAX: u32 = 1 << 20;
/// Calls come back this often.
const CALL_TIMEOUT: Duration = Duration::from_millis(20);
/// Pause after a look for first bytes that come in pieces; the next is twice as long, up to
/// [`PIECES_MAX`], where none came: half a message must not cost a processor.
const PIECES: Duration = Duration::from_millis(1);
const PIECES_MAX: Duration = Duration::from_millis(100);

/// Serves one connection to the port of ttcp and iperf 2; returns what the log should say.
/// # Errors
/// Why it did not end well.
pub fn serve_connection(socket: TcpStream, serving: &mut Serving<'_>) -> Result<LogText, Failure> {
    let accepted = monotonic();
    tcp::notice_vanished_peer(&socket, VANISHED);
    let peer =
        socket.peer_addr().map_err(|error| connection_failure("a client", "address of", &error))?;
    let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
    let own = socket
        .try_clone()
        .map_err(|error| connection_failure(&plain_address(peer), "serve", &error))?;
    tcp::set_call_timeout(&own, CALL_TIMEOUT).map_err(|error| system(&error))?;
    let takes = Rc::new(Cell::new(false));
    let mut net = FirstBytes { socket: own, seen: 0, takes: Rc::clone(&takes), pause: PIECES };
    let stop = serving.stop.clone();
    let flows = Iperf2TcpServer {
        peer,
        socket: Some(socket),
        accepted,
        takes,
        serving,
        request: Request::Plain,
        permit: None,
        opening: None,
        endpoint: None,
        reports: Vec::new(),
        line: None,
    };
    let mut session = TestSession::new(Server::new(accepted), flows);
    let result = flow::run(&mut session, &mut net, &stop);
    result.map(|()| session.flows.log_line())
}

/// A connection whose first bytes stay where they are, until they are taken.
struct FirstBytes {
    socket: TcpStream,
    /// Bytes that were handed over.
    seen: usize,
    /// True where bytes that are read are taken off the socket, too.
    takes: Rc<Cell<bool>>,
    pause: Duration,
}

impl Net for FirstBytes {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        if !readable(&self.socket, Duration::ZERO)? {
            return Err(ErrorKind::WouldBlock.into());
        }
        if self.takes.get() {
            let seen = std::mem::take(&mut self.seen);
            self.socket.read_exact(&mut bytes[..seen])?;
            return if seen > 0 {
                Err(ErrorKind::WouldBlock.into())
            } else {
                self.socket.read(bytes)
            };
        }
        let mut first = [0; HEADER_BYTES_MAX];
        let count = self.socket.peek(&mut first)?;
        let new = &first[self.seen.min(count)..count];
        bytes[..new.len()].copy_from_slice(new);
        self.pause = if new.is_empty() { (self.pause * 2).min(PIECES_MAX) } else { PIECES };
        self.seen += new.len();
        // The end of the stream is readable for ever and adds nothing.
        match new.len() {
            0 if tcp::peer_has_closed(&self.socket) => Ok(0),
            0 => Err(ErrorKind::WouldBlock.into()),
            count => Ok(count),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.socket.write(bytes);
        let gone = |kind| matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe);
        match written {
            // A client of a latency test whose time is up closes with requests on the way.
            Err(error) if self.takes.get() && gone(error.kind()) => Ok(bytes.len()),
            written => written,
        }
    }

    fn wait(&mut self, until: MonoTime, for_bytes: bool) {
        let span = until.duration_since(monotonic());
        match for_bytes {
            true if self.seen > 0 && !self.takes.get() => sleep(self.pause.min(span)),
            true => drop(readable(&self.socket, span)),
            false => sleep(span),
        }
    }
}

/// The streams of one client.
struct Iperf2TcpServer<'a, 's> {
    peer: SocketAddr,
    /// The client's connection, until a stream has it.
    socket: Option<TcpStream>,
    accepted: MonoTime,
    takes: Rc<Cell<bool>>,
    serving: &'a mut Serving<'s>,
    request: Request,
    permit: Option<Permit>,
    /// A connection to the client is refused until then at most.
    opening: Option<MonoTime>,
    endpoint: Option<Endpoint>,
    /// The reports of streams that are over.
    reports: Vec<EndReport>,
    /// The log line of a latency test.
    line: Option<String>,
}

impl Flows for Iperf2TcpServer<'_, '_> {
    type Machine = Server;

    fn carry_out(
        &mut self,
        now: MonoTime,
        output: Output<Server>,
    ) -> Result<Option<FlowsAnswer<Server>>, Failure> {
        match (output, &mut self.endpoint) {
            (Output::Decide(ask), _) => {
                self.request = *ask;
                return self.decide().map(|terms| Some(FlowsAnswer::Decided(Ok(terms))));
            }
            (Output::Open, _) => {
                self.opening = Some(now + LISTENING);
                return self.answer(now);
            }
            (Output::Start, Some(endpoint)) => {
                endpoint.start_streams(now).map_err(|error| system(&error))?;
            }
            (Output::Sample, Some(endpoint)) => {
                // What a stream that is over moved is told with its end.
                let over = endpoint.streams.iter().map(|stream| stream.progress.is_done());
                let over: Vec<bool> = over.collect();
                let samples = endpoint.sample(now).into_iter().zip(over);
                let samples: Vec<_> =
                    samples.filter(|(_, over)| !over).map(|(sample, _)| sample).collect();
                (self.serving.watch)(&ServedEvent::Interval(&samples));
            }
            (Output::Halt, Some(endpoint)) => endpoint.halt_streams(),
            (Output::Ended, endpoint) => {
                let reports = endpoint.take().map(Endpoint::finish).unwrap_or_default();
                (self.serving.watch)(&ServedEvent::Done(&reports));
                let failure = failure_of(&reports);
                self.reports.extend(reports);
                failure.map_or(Ok(()), Err)?;
            }
            (Output::News(bounced), _) => {
                (self.serving.watch)(&ServedEvent::Bounced(&bounced));
                self.line = Some(format!("iperf {bounced}"));
            }
            _ => {}
        }
        Ok(None)
    }

    fn answer(&mut self, now: MonoTime) -> Result<Option<FlowsAnswer<Server>>, Failure> {
        let Some(until) = self.opening else { return Ok(None) };
        let opened = self.open_streams(now < until)?;
        if opened {
            self.opening = None;
        }
        Ok(opened.then_some(FlowsAnswer::Opened))
    }

    fn flow_state(&mut self, _: MonoTime) -> FlowState {
        self.endpoint.as_ref().map_or_else(FlowState::default, |endpoint| FlowState {
            moved: endpoint.moved_bytes(),
            done: endpoint.is_done(),
            ..FlowState::default()
        })
    }

    fn peer_name(&self) -> String {
        plain_address(self.peer)
    }

    fn connection_failure(&self, _: &'static str, error: &io::Error) -> Failure {
        connection_failure(&plain_address(self.peer), "serve", error)
    }
}

impl Words for Server {
    fn failure(client: &str, reason: TestFailureReason<HeaderError>) -> Failure {
        let (attempt, reason) = match reason {
            TestFailureReason::Peer(error) => ("header of", error.to_string()),
            TestFailureReason::Silent { awaited, within } => {
                (awaited, format!("not enough came within {within:?}"))
            }
            _ => ("first bytes of", "this server was stopped".to_owned()),
        };
        Failure::new(Fault::PeerMisbehaved, attempt, client, reason)
    }
}

impl Iperf2TcpServer<'_, '_> {
    /// Decides whether this test may run here.
    fn decide(&mut self) -> Result<Terms, Failure> {
        let request = match self.request {
            Request::Bounce(first) => {
                self.check_bounce(first)?;
                request(TcpDirections::Both, UNTIL_CLOSED)
            }
            Request::Header(header) => match header.mode {
                Mode::Forward | Mode::TradeOff => request(TcpDirections::Up, UNTIL_CLOSED),
                Mode::Reverse => sending(header, TcpDirections::Down)?,
                Mode::Dual | Mode::FullDuplex => sending(header, TcpDirections::Both)?,
            },
            Request::Plain => request(TcpDirections::Up, UNTIL_CLOSED),
        };
        let mut demand = Demand::from_tcp_test(&request);
        // How much such a client sends it does not tell.
        demand.bytes = demand.bytes.filter(|_| request.finish != UNTIL_CLOSED);
        let permit = self.serving.admission.admit_test(&demand, self.peer);
        let permit = permit.map_err(|refuse| self.refused(format!("closed, {}", refuse.reason)))?;
        self.permit = Some(permit);
        Ok(Terms {
            span_max: self.serving.admission.duration_max(),
            interval: self.serving.interval,
            wall_offset_ns: realtime_offset_ns(),
        })
    }

    fn check_bounce(&self, first: Bounce) -> Result<(), Failure> {
        let length = first.request_bytes.max(first.reply_bytes);
        if length > BOUNCE_MAX {
            return Err(self.refused(format!("requests of {length} bytes are not sent back")));
        }
        self.takes.set(true);
        let nodelay = self.socket.as_ref().map_or(Ok(()), |socket| socket.set_nodelay(true));
        nodelay.map_err(|error| self.connection_failure("serve", &error))
    }

    fn refused(&self, reason: String) -> Failure {
        Failure::new(Fault::PeerRefused, "serve", self.peer.to_string(), reason)
    }

    /// Opens the streams of the test, or those that follow after the client's; false where the
    /// client's port refuses and may still open (`listens`).
    fn open_streams(&mut self, listens: bool) -> Result<bool, Failure> {
        let header = match self.request {
            Request::Header(header) => Some(header),
            _ => None,
        };
        let mode = self.request.test_mode();
        let mut back = match (mode, header, &self.socket) {
            (Mode::Dual, Some(header), _) | (Mode::TradeOff, Some(header), None) => {
                let Some(back) = self.connect_back(header.listen_port, listens)? else {
                    return Ok(false);
                };
                Some(back)
            }
            _ => None,
        };
        let ways = match (mode, &self.socket) {
            (Mode::Reverse, _) | (Mode::TradeOff, None) => TcpDirections::Down,
            (Mode::Dual | Mode::FullDuplex, _) => TcpDirections::Both,
            _ => TcpDirections::Up,
        };
        let request = match header.filter(|_| ways != TcpDirections::Up) {
            Some(header) => sending(header, ways)?,
            None => request(ways, UNTIL_CLOSED),
        };
        let mut endpoint = Endpoint::with_rules(request, RULES).open_since(self.accepted);
        if let Some(socket) = self.socket.take() {
            let own =
                |error: io::Error| connection_failure(&plain_address(self.peer), "serve", &error);
            match (mode, header) {
                (Mode::Reverse, Some(header)) => {
                    // Data goes the other way: the header is all that comes.
                    (&socket).read_exact(&mut vec![0; header.length]).map_err(own)?;
                    back = Some(socket);
                }
                (Mode::FullDuplex, _) => {
                    back = Some(socket.try_clone().map_err(own)?);
                    self.add(&mut endpoint, socket, Direction::Up, FlowSide::Receiver);
                }
                _ => self.add(&mut endpoint, socket, Direction::Up, FlowSide::Receiver),
            }
        }
        if let Some(back) = back {
            self.add(&mut endpoint, back, Direction::Down, FlowSide::Sender);
        }
        endpoint.prepare().map_err(|error| system(&error))?;
        self.endpoint = Some(endpoint);
        Ok(true)
    }

    fn add(&mut self, endpoint: &mut Endpoint, socket: TcpStream, way: Direction, side: FlowSide) {
        (self.serving.watch)(&ServedEvent::Stream(&socket, way, 0));
        let client_addr =
            socket.peer_addr().map_or_else(|_| String::new(), |peer| peer.to_string());
        endpoint.add(socket, StreamId { direction: way, flow: 0, side, client_addr });
    }

    /// Connects to where the client listens; none while it may not listen yet.
    fn connect_back(&self, port: u16, listens: bool) -> Result<Option<TcpStream>, Failure> {
        let to = SocketAddr::new(self.peer.ip(), port);
        match tcp::connect(to, None, &TcpOptions::default(), CONNECT_BACK) {
            Ok(socket) => {
                tcp::notice_vanished_peer(&socket, VANISHED);
                Ok(Some(socket))
            }
            Err(error) if error.source.kind() == ErrorKind::ConnectionRefused && listens => {
                Ok(None)
            }
            Err(error) => {
                let words = words_of(&error.source);
                let failure =
                    Failure::new(Fault::Unreachable, "connect back to", to.to_string(), words);
                Err(failure.advise("iperf's -d and -r need its port to be open at the client"))
            }
        }
    }

    /// The log line of a test that ended well.
    fn log_line(self) -> LogText {
        let said = served::log_line(&self.reports);
        let line = match (self.line, self.request) {
            (Some(line), _) => return line.into(),
            (None, Request::Header(header)) => {
                let version =
                    header.version.map_or_else(|| "2.0".to_owned(), |version| version.to_string());
                format!("iperf {version}: {said}")
            }
            (None, _) => format!("ttcp or plain data: {said}"),
        };
        LogText::from_reports(line, &self.reports)
    }
}

/// The test of a server that sends: the client's amount, buffer and rate.
fn sending(header: ClientHeader, directions: TcpDirections) -> Result<TcpTest, Failure> {
    let finish = match header.amount {
        Iperf2Amount::Bytes(bytes) => Finish::Bytes(bytes.into()),
        Iperf2Amount::Centiseconds(count) => Finish::TimeNs(u64::from(count) * 10_000_000),
    };
    let mut request = request(directions, finish);
    request.pace = Some(header.rate_bps).filter(|rate| *rate > 0).map(BitRate::from_bits_per_sec);
    request.dscp = Some(header.service_type >> 2).filter(|dscp| *dscp > 0);
    if (1..=BUFFER_MAX).contains(&header.buffer_bytes) {
        request.buffer_bytes = header.buffer_bytes;
    }
    request.check().map_err(|error| {
        Failure::new(Fault::PeerMisbehaved, "header of", "an iperf 2 client", error)
    })?;
    Ok(request)
}
