//! A client of another speed test that speaks HTTP: LibreSpeed, OpenSpeedTest, Cloudflare's, ndt7,
//! throughput1.
//!
//! Its requests come over several connections that nothing but its address ties together, so all of
//! one address at one time are one test, behind the same gate as every other. The place is kept for
//! a moment after each transfer, for such a test is many of them.

use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::policy::TestKind;
use linerate_core::record::{Direction, Failure, Fault};
use linerate_proto::http::{
    HEAD_BYTES_MAX, Head, HeadError, Visitor, VisitorAnswer, VisitorRequest, VisitorTarget,
    VisitorTargetError, switching,
};
use linerate_proto::native::{Refuse, RefuseCode};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::readable;
use linerate_sys::tcp::{self, tcp_info};

use super::arrive::lingering_close;
use super::ndt7;
use super::transfer::{HttpTransfer, Track, TransferBounds};
use super::visit_account::ConnectionTraffic;
use super::visits::{Visit, VisitEnd, VisitServing, place_of};
use crate::failure::words_of;
use crate::flow::admission::{Demand, Permit};
use crate::flow::moved;

/// The time that a test is expected to take, for those that wait.
const PLANNED: Duration = Duration::from_secs(20);
/// After a transfer the next one has this long to begin in the same place.
const LINGER: Duration = Duration::from_secs(2);
/// A connection without any transfer is kept this long between two requests.
const IDLE: Duration = Duration::from_secs(15);
/// A head that was begun has this long to end.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two looks at a head that is not whole.
const LOOK: Duration = Duration::from_millis(2);
/// How often the stop flag is looked at.
const WAKE: Duration = Duration::from_millis(100);
/// Time between two questions for a place.
const ASK_AGAIN: Duration = Duration::from_millis(200);
/// A host that acknowledges nothing for this long has vanished.
const VANISHED: Duration = Duration::from_millis(8800);

/// How a connection of a visitor ended.
#[derive(Debug)]
pub struct Visited {
    /// The log text and the record of the test, where this was its last connection.
    pub end: Option<VisitEnd>,
    /// A connection whose next request is no visitor's: nothing of it was taken.
    pub other: Option<TcpStream>,
}

/// A place at the gate, and the test that it belongs to.
struct AdmittedVisit {
    visit: Arc<Visit>,
    _permit: Permit,
}

/// One connection of a visitor.
struct VisitorConnection<'a> {
    stream: &'a TcpStream,
    peer: SocketAddr,
    serving: VisitServing<'a>,
    held: Option<AdmittedVisit>,
    moved: [ConnectionTraffic; 2],
    /// The page that asks now.
    origin: Option<String>,
}

/// Answers the requests of a visitor until it leaves, or asks for something else.
/// # Errors
/// What went wrong; the client was told where it spoke HTTP.
pub fn serve_visitor(
    stream: TcpStream,
    peer: SocketAddr,
    serving: VisitServing<'_>,
) -> Result<Visited, Failure> {
    tcp::notice_vanished_peer(&stream, VANISHED);
    let _ = stream.set_nodelay(true);
    let (held, moved, origin) = (None, Default::default(), None);
    let mut session = VisitorConnection { stream: &stream, peer, serving, held, moved, origin };
    let result = session.answer_all();
    let has_moved = session.moved.iter().any(|moved| !moved.is_empty());
    let end = session.release();
    let other = match result {
        Ok(is_other) => is_other,
        Err(_) if end.is_some() => false,
        // What was measured counts: most such clients end their transfers by leaving.
        Err(failure) if has_moved && failure.fault == Fault::Unreachable => false,
        Err(failure) => return Err(failure),
    };
    Ok(Visited { end, other: other.then_some(stream) })
}

impl VisitorConnection<'_> {
    /// Answers the requests; true where the next one is no visitor's.
    fn answer_all(&mut self) -> Result<bool, Failure> {
        loop {
            let Some(head) = self.next_head()? else { return Ok(false) };
            let target = match VisitorTarget::from_head(&head) {
                Ok(target) => target,
                Err(VisitorTargetError::Path) => return Ok(true),
                Err(error) => {
                    let status = if error == VisitorTargetError::Method { 405 } else { 400 };
                    return Err(self.refuse(status, "bad_request", &error.to_string(), None));
                }
            };
            if !head.may_ask(self.serving.origins) {
                let origin = head.origin.as_deref().unwrap_or_default();
                let say = format!("a page of {origin} may not ask this of {}", head.host);
                return Err(self.refuse(403, "policy", &say, None));
            }
            self.origin.clone_from(&head.origin);
            let mut bytes = vec![0; head.head_bytes];
            let mut stream = self.stream;
            io::Read::read_exact(&mut stream, &mut bytes)
                .map_err(|error| self.connection_failure(&error))?;
            if !self.answer(target, &head)? || !head.keeps_alive {
                return Ok(false);
            }
        }
    }

    /// The head of the next request, still to be taken; none where the client has left.
    fn next_head(&self) -> Result<Option<Head>, Failure> {
        let idle = if self.held.is_some() { LINGER } else { IDLE };
        let mut until = monotonic() + idle;
        let mut bytes = vec![0; HEAD_BYTES_MAX];
        let mut seen = 0;
        while monotonic() < until && !self.serving.stop.is_requested() {
            if !readable(&self.stream, WAKE).map_err(|error| self.connection_failure(&error))? {
                continue;
            }
            let count =
                self.stream.peek(&mut bytes).map_err(|error| self.connection_failure(&error))?;
            if count == 0 {
                return Ok(None);
            }
            match Head::parse(&bytes[..count]) {
                Ok(Some(head)) => return Ok(Some(head)),
                Ok(None) if seen == 0 => until = monotonic() + HEAD_WITHIN,
                Ok(None) => {}
                Err(error) => {
                    let status = if error == HeadError::Chunked { 411 } else { 400 };
                    return Err(self.refuse(status, "bad_request", &error.to_string(), None));
                }
            }
            // The same bytes again: a look at once would be a loop that never waits.
            if count == seen {
                sleep(LOOK);
            }
            seen = count;
        }
        Ok(None)
    }

    /// Answers one request; whether the connection goes on.
    fn answer(&mut self, target: VisitorTarget, head: &Head) -> Result<bool, Failure> {
        let VisitorTarget { visitor, wish } = target;
        let closes = !head.keeps_alive;
        match wish {
            VisitorRequest::May => self.send_answer(204, "text/plain", "", closes),
            VisitorRequest::Address => {
                let address = self.peer.ip().to_canonical();
                let body = serde_json::json!({
                    "processedString": address.to_string(), "rawIspInfo": ""
                });
                self.send_answer(200, "application/json", &body.to_string(), closes)
            }
            VisitorRequest::Down(0) => {
                self.send_answer(200, "application/octet-stream", "", closes)
            }
            VisitorRequest::Up if head.body_bytes == 0 => {
                self.send_answer(200, "text/plain", "", closes)
            }
            VisitorRequest::Down(bytes) => {
                self.join_visit(visitor, head)?;
                let (track, result) =
                    self.send_download(self.bounds(Direction::Down)?, bytes, closes);
                self.count_transfer(Direction::Down, track);
                result
            }
            VisitorRequest::Up => {
                self.join_visit(visitor, head)?;
                let bounds = self.bounds(Direction::Up)?;
                if head.expects_continue {
                    self.write(b"HTTP/1.1 100 Continue\r\n\r\n")?;
                }
                let (track, result) = self.receive_upload(bounds, head.body_bytes, closes);
                self.count_transfer(Direction::Up, track);
                result
            }
            VisitorRequest::Ndt7(direction) => {
                self.join_visit(visitor, head)?;
                self.over_websocket(ndt7::Script::Ndt7, direction, head)
            }
            VisitorRequest::Throughput1(direction, asked) => {
                self.join_visit(visitor, head)?;
                // One that this kernel does not have stays what it is, and the client is told.
                let set = |name| tcp::set_congestion_control(self.stream.as_fd(), name).ok();
                let _ = asked.congestion.and_then(set);
                self.over_websocket(ndt7::Script::Throughput1(asked), direction, head)
            }
        }
    }

    fn over_websocket(
        &mut self,
        script: ndt7::Script,
        direction: Direction,
        head: &Head,
    ) -> Result<bool, Failure> {
        let bounds = self.bounds(direction)?;
        let until = bounds.until.min(monotonic() + script.time_limits().1);
        let key = head.websocket_key.as_deref().unwrap_or_default();
        self.write(&switching(key, script.protocol()))?;
        let transfer =
            HttpTransfer::begin_on_stream(self.stream, TransferBounds { until, ..bounds });
        let (track, end) = ndt7::Test::new(transfer, script, direction, self.peer).run();
        lingering_close(self.stream);
        self.count_transfer(direction, track);
        end.map_err(|error| self.connection_failure(&error)).map(|()| false)
    }

    fn bounds(&self, direction: Direction) -> Result<TransferBounds<'_>, Failure> {
        let longest = self.serving.admission.duration_max();
        let visit = self.held.as_ref().map(|held| &held.visit);
        let bounds = visit.and_then(|arc| arc.bounds(direction, longest, self.serving.stop));
        bounds.ok_or_else(|| {
            let say = format!("this direction has had its {} s", longest.as_secs_f64());
            self.refuse(403, "limit", &say, None)
        })
    }

    fn send_download(
        &self,
        bounds: TransferBounds<'_>,
        bytes: u64,
        closes: bool,
    ) -> (Track, Result<bool, Failure>) {
        let head = self.answer_head(200, "application/octet-stream", bytes, closes);
        let mut transfer = HttpTransfer::begin_on_stream(self.stream, bounds);
        let sent = transfer.send_aside(&head).and_then(|()| transfer.send_load(bytes));
        // The next request says that the client has all, whatever its kernel still owes.
        let next = || readable(&self.stream, Duration::ZERO).unwrap_or(true);
        transfer.await_delivery(|| sent.is_err() || next() || transfer.is_stopped());
        let is_whole = transfer.sent == bytes;
        (
            transfer.finish_track(),
            sent.map(|()| is_whole).map_err(|error| self.connection_failure(&error)),
        )
    }

    fn receive_upload(
        &self,
        bounds: TransferBounds<'_>,
        bytes: u64,
        closes: bool,
    ) -> (Track, Result<bool, Failure>) {
        let mut transfer = HttpTransfer::begin_on_stream(self.stream, bounds);
        let taken = transfer.receive_load(bytes);
        let is_whole = transfer.taken == bytes;
        let track = transfer.finish_track();
        if let Err(error) = taken {
            return (track, Err(self.connection_failure(&error)));
        }
        if !is_whole {
            lingering_close(self.stream);
            return (track, Ok(false));
        }
        (track, self.send_answer(200, "text/plain", "", closes))
    }

    fn count_transfer(&mut self, direction: Direction, track: Track) {
        moved::add_client_bytes(&self.peer.to_string(), track.bytes);
        self.moved[place_of(direction)].add(track);
    }

    /// The test that this connection belongs to, with a place at the gate.
    fn join_visit(&mut self, visitor: Visitor, head: &Head) -> Result<(), Failure> {
        if self.held.is_none() {
            let permit = self.permit(visitor)?;
            let server =
                self.stream.local_addr().map_err(|error| self.connection_failure(&error))?;
            let agent = head.user_agent.as_deref();
            let serving = &self.serving;
            let visit = serving.visits.join_or_create(visitor, self.peer, server, agent, serving);
            self.held = Some(AdmittedVisit { visit, _permit: permit });
        }
        let over =
            self.held.as_ref().and_then(|held| held.visit.is_over(Arc::strong_count(&held.visit)));
        match over {
            None => Ok(()),
            Some((say, Some(ms))) => Err(self.refuse(503, "busy", &say, Some(ms))),
            Some((say, None)) => Err(self.refuse(403, "policy", &say, None)),
        }
    }

    /// A place at the gate: at once, or in turn as long as the server lets clients wait.
    fn permit(&self, visitor: Visitor) -> Result<Permit, Failure> {
        let VisitServing { admission, caps, stop, .. } = self.serving;
        let planned = Some(PLANNED.min(admission.duration_max()));
        // Both ways are kept to the rate at this end.
        let demand = Demand { planned, rate_bps: caps.rate_bps, ..Demand::new(TestKind::Tcp, 1) };
        let until = monotonic() + admission.patience();
        loop {
            let is_last = monotonic() >= until || stop.is_requested();
            let asked = match is_last {
                true => admission.admit_test(&demand, self.peer),
                false => admission.admit_in_turn(&demand, self.peer),
            };
            let Refuse { code, reason, retry_after_ms, .. } = match asked {
                Ok(permit) => return Ok(permit),
                Err(refuse) => refuse,
            };
            if code != RefuseCode::Busy {
                let error = if code == RefuseCode::Policy { "policy" } else { "limit" };
                return Err(self.refuse(403, error, &reason, None));
            }
            if is_last {
                let say = format!("{}: {reason}", visitor.name());
                return Err(self.refuse(503, "busy", &say, retry_after_ms));
            }
            if matches!(self.stream.peek(&mut [0]), Ok(0)) {
                return Err(self.connection_failure(&io::ErrorKind::ConnectionReset.into()));
            }
            sleep(ASK_AGAIN);
        }
    }

    /// Gives the place back; what there is of the test where this was its last connection.
    fn release(&mut self) -> Option<VisitEnd> {
        let AdmittedVisit { visit, _permit } = self.held.take()?;
        let (info, syn) = (tcp_info(self.stream.as_fd()), tcp::saved_syn(self.stream.as_fd()));
        let mut moved = std::mem::take(&mut self.moved);
        for way in &mut moved {
            (way.client, way.info, way.syn) = (Some(self.peer), info, syn);
        }
        Visit::end_connection(visit, moved)
    }

    fn answer_head(&self, status: u16, kind: &str, length: u64, closes: bool) -> Vec<u8> {
        let origin = self.origin.as_deref();
        VisitorAnswer { status, kind, length, closes, origin, retry_after_s: None }.head_bytes()
    }

    fn send_answer(
        &self,
        status: u16,
        kind: &str,
        body: &str,
        closes: bool,
    ) -> Result<bool, Failure> {
        let head = self.answer_head(status, kind, body.len() as u64, closes);
        self.write(&[&head, body.as_bytes()].concat()).map(|()| true)
    }

    fn write(&self, bytes: &[u8]) -> Result<(), Failure> {
        let _ = self.stream.set_write_timeout(Some(HEAD_WITHIN));
        let mut stream = self.stream;
        stream.write_all(bytes).map_err(|error| self.connection_failure(&error))
    }

    /// Says no, as every error of the API is said, and ends the connection.
    fn refuse(&self, status: u16, error: &str, say: &str, retry_ms: Option<u64>) -> Failure {
        let mut body = serde_json::json!({ "error": error, "say": say });
        if let Some(ms) = retry_ms {
            body["retry_after_ms"] = ms.into();
        }
        let body = body.to_string();
        let answer = VisitorAnswer {
            status,
            kind: "application/json",
            length: body.len() as u64,
            closes: true,
            origin: self.origin.as_deref(),
            retry_after_s: retry_ms.map(|ms| ms.div_ceil(1000)),
        };
        let _ = self.stream.set_write_timeout(Some(LINGER));
        let mut stream = self.stream;
        let _ = stream.write_all(&[&answer.head_bytes(), body.as_bytes()].concat());
        lingering_close(self.stream);
        let fault = if status == 400 { Fault::PeerMisbehaved } else { Fault::PeerRefused };
        Failure::new(fault, "serve", self.object(), say)
    }

    fn object(&self) -> String {
        format!("a speed test over HTTP from {}", self.peer.ip())
    }

    fn connection_failure(&self, error: &io::Error) -> Failure {
        Failure::new(Fault::Unreachable, "serve", self.object(), words_of(error))
    }
}
