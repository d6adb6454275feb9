//! The path back: a server traces towards the client that asks it, and gives it the hops.
//!
//! Probes go to no other address than the one that the connection came from, within a number and a
//! time that no request changes; they end when the client goes. Left out there: paths beside each
//! other and sizes, which take many more.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{Failure, Fault, TracePhase, TracePlan, TraceProbes, TraceResult};
use linerate_core::time::MonoTime;
use linerate_proto::native::{
    Decoder, Hello, HelloKind, Message, Nonce, Refuse, RefuseCode, TraceRequest, encode,
};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::echo_socket::ProbeBindSource;
use linerate_sys::stop::Stop;
use linerate_sys::tcp::{self, TcpOptions};

use super::USUAL_MTU;
use super::live::{Live, TraceCourse};
use super::network::{Network, TraceAnswer, TraceProbe};
use super::survey::TraceSurvey;
use crate::failure::words_of;
use crate::flow::admission::{Admission, Demand};
use crate::flow::peer::{credentials, plain_address};
use crate::flow::tcp::send_hello;
use crate::served::LogText;
use crate::socket_address::{at_port, canonical};

/// To connect, and for a request to come.
const STEP: Duration = Duration::from_secs(2);
/// The server's last wait for answers, and the way of its report.
const GRACE: Duration = Duration::from_secs(5);
/// Time between looks at the stop flag.
const LOOK: Duration = Duration::from_millis(200);

/// Asks the host at `peer` for the path from there to here. `None` where no linerate answers that
/// does so.
/// # Errors
/// Why it does not.
pub(super) fn request_back_trace(
    peer: SocketAddr,
    source: Option<&ProbeBindSource>,
    plan: &TracePlan,
    stop: &Stop,
) -> Result<Option<TraceResult>, Failure> {
    let local = match source {
        Some(ProbeBindSource::Address(address)) => Some(*address),
        _ => None,
    };
    let Ok(stream) = tcp::connect(peer, local, &TcpOptions::control(), STEP) else {
        return Ok(None);
    };
    let request = TraceRequest {
        count: plan.count,
        interval_ns: plan.interval_ns,
        timeout_ns: plan.timeout_ns,
        hops_max: plan.hops_max,
        port: linerate_core::record::TRACE_PORT,
        dscp: plan.dscp,
        login: plan.token.is_some(),
    };
    let sent = send_hello(&stream, Hello::new(HelloKind::Trace))
        .and_then(|()| send_message(&stream, &Message::TraceRequest(request.within_bounds())));
    if sent.is_err() {
        return Ok(None);
    }
    let until = monotonic() + TraceRequest::SPAN_MAX + GRACE;
    let refused = |reason: String| {
        Err(Failure::new(Fault::PeerRefused, "trace back from", peer.ip().to_string(), reason))
    };
    let mut answer = receive(&stream, until, stop);
    if let (Some(Message::Challenge { nonce }), Some(credentials)) =
        (&answer, credentials(plan.token.as_ref()))
    {
        answer = send_message(&stream, &Message::Proof(credentials.answer_challenge(*nonce)))
            .ok()
            .and_then(|()| receive(&stream, until, stop));
    }
    match answer {
        Some(Message::TraceFound { trace }) => Ok(Some(*trace)),
        Some(Message::Refuse(refuse)) => refused(refuse.reason),
        Some(Message::Abort { reason }) => refused(reason),
        // Another program, or one from before this.
        _ => Ok(None),
    }
}

/// Answers a client whose hello asked for a trace; returns what the log should say.
/// # Errors
/// Why it was not traced.
pub fn serve_back_trace(
    stream: &TcpStream,
    admission: &dyn Admission,
    stop: &Stop,
) -> Result<LogText, Failure> {
    let failed = |reason: String| Failure::new(Fault::PeerMisbehaved, "trace", "a client", reason);
    let address = |it: std::io::Result<SocketAddr>| it.map_err(|error| failed(words_of(&error)));
    let (peer, local) = (address(stream.peer_addr())?, address(stream.local_addr())?);
    let Some(Message::TraceRequest(request)) = receive(stream, monotonic() + STEP, stop) else {
        return Err(failed("no request came".to_owned()));
    };
    let refuse = |refuse: Refuse| {
        let failure = failed(refuse.reason.clone());
        let _ = send_message(stream, &Message::Refuse(refuse));
        failure
    };
    request
        .check_bounds()
        .map_err(|error| refuse(Refuse::new(RefuseCode::Malformed, error.to_string())))?;
    if request.login {
        log_in(stream, admission, stop).ok_or_else(|| failed("no token came".to_owned()))?;
    }
    let demand =
        Demand { planned: Some(TraceRequest::SPAN_MAX), ..Demand::new(TestKind::Trace, 1) };
    let _permit = admission.admit_test(&demand, peer).map_err(refuse)?;
    let trace = trace_to(&request, peer, local, stream, stop).inspect_err(|failure| {
        let _ = send_message(stream, &Message::Abort { reason: failure.to_string() });
    })?;
    let line = format!("traced the path to {}: {} hops", plain_address(peer), trace.hops.len());
    let found = Message::TraceFound { trace: Box::new(trace) };
    send_message(stream, &found).map_err(|error| failed(words_of(&error)))?;
    Ok(line.into())
}

/// Lets a client show its token; nothing when it does not.
fn log_in(stream: &TcpStream, admission: &dyn Admission, stop: &Stop) -> Option<()> {
    let nonce = Nonce(random_bytes());
    send_message(stream, &Message::Challenge { nonce }).ok()?;
    let Some(Message::Proof(proof)) = receive(stream, monotonic() + STEP, stop) else {
        return None;
    };
    admission.log_in(nonce, &proof);
    Some(())
}

fn trace_to(
    request: &TraceRequest,
    peer: SocketAddr,
    local: SocketAddr,
    stream: &TcpStream,
    stop: &Stop,
) -> Result<TraceResult, Failure> {
    let plan = TracePlan {
        count: request.count,
        interval_ns: request.interval_ns,
        timeout_ns: request.timeout_ns,
        hops_max: request.hops_max,
        port: request.port,
        dscp: request.dscp,
        ..TracePlan::default()
    };
    let target = peer.ip().to_canonical();
    let course = TraceCourse {
        peer: at_port(canonical(peer), request.port),
        source: Some(ProbeBindSource::Address(local.ip().to_canonical())),
        probes: TraceProbes::Udp,
    };
    let network = Bounded {
        network: Live::open(course, USUAL_MTU, stop.clone())?,
        until_ns: (monotonic() + TraceRequest::SPAN_MAX).as_nanos(),
        left: TraceRequest::PROBES_MAX,
        client: stream,
    };
    let mut survey = TraceSurvey::new(network, &plan, target);
    survey.find_hops()?;
    survey.rounds(plan.count, TracePhase::Idle, || false)?;
    survey.wait_shorter();
    survey.read_marks()?;
    let mut trace = survey.trace;
    linerate_core::trace::fill_findings(&mut trace, None);
    Ok(trace)
}

/// A network that takes so many probes and ends at a time, or when the client goes.
struct Bounded<'a> {
    network: Live,
    until_ns: u64,
    left: u32,
    client: &'a TcpStream,
}

impl Network for Bounded<'_> {
    fn now_ns(&self) -> u64 {
        self.network.now_ns()
    }

    fn send_probe(&mut self, probe: &TraceProbe) -> Result<bool, Failure> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(false) };
        self.left = left;
        self.network.send_probe(probe)
    }

    fn answers(&mut self, until_ns: u64) -> Vec<TraceAnswer> {
        self.network.answers(until_ns.min(self.until_ns))
    }

    fn source_port(&mut self, flow: u16) -> Option<u16> {
        self.network.source_port(flow)
    }

    fn stopped(&self) -> bool {
        let over = self.left == 0 || self.now_ns() >= self.until_ns;
        over || self.network.stopped() || has_gone(self.client)
    }

    fn reads_quotes(&self) -> bool {
        self.network.reads_quotes()
    }

    fn has_echo(&self) -> bool {
        self.network.has_echo()
    }

    fn link_mtu(&self) -> u32 {
        self.network.link_mtu()
    }
}

/// True where the other end of a connection has closed it.
fn has_gone(stream: &TcpStream) -> bool {
    if stream.set_nonblocking(true).is_err() {
        return true;
    }
    let seen = stream.peek(&mut [0]);
    let waits = seen.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock);
    let _ = stream.set_nonblocking(false);
    !waits && !matches!(seen, Ok(1..))
}

fn send_message(mut stream: &TcpStream, message: &Message) -> std::io::Result<()> {
    let bytes = encode(message).map_err(std::io::Error::other)?;
    stream.set_write_timeout(Some(STEP))?;
    stream.write_all(&bytes)
}

/// The next message, if one comes by then.
fn receive(stream: &TcpStream, until: MonoTime, stop: &Stop) -> Option<Message> {
    let mut decoder = Decoder::default();
    let mut buffer = [0; 4096];
    stream.set_read_timeout(Some(LOOK)).ok()?;
    while monotonic() < until && !stop.is_requested() {
        match std::io::Read::read(&mut &*stream, &mut buffer) {
            Ok(0) => return None,
            Ok(count) => decoder.push(&buffer[..count]),
            Err(error) if is_wait(error.kind()) => continue,
            Err(_) => return None,
        }
        if let Some(message) = decoder.next_message().ok()? {
            return Some(message);
        }
    }
    None
}

const fn is_wait(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
