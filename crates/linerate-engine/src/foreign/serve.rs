//! What the servers for ttcp, iperf 2 and nuttcp share: waiting for first bytes without taking
//! them, and following streams until they are done, with a limit for everything.

use std::io;
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Direction, EndReport, Failure, Fault, Finish, TcpDirections, TcpTest};
use linerate_core::units::BitRate;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use linerate_sys::tcp;

use super::iperf2;
use crate::failure::words_of;
use crate::flow::Sample;
use crate::flow::tcp::Admission;
use crate::flow::tcp::endpoint::Endpoint;

/// A client has this long for the bytes that tell what it is.
pub(crate) const FIRST_BYTES: Duration = Duration::from_secs(5);
/// A client that is there but moves nothing for this long loses its place.
pub(crate) const IDLE: Duration = Duration::from_secs(60);
/// How often streams are looked at.
const LOOK: Duration = Duration::from_millis(5);
/// Pause after a look for first bytes that come in pieces; the next is twice as long, up to
/// [`PIECES_MAX`], where none came: half a message must not cost a processor.
const PIECES: Duration = Duration::from_millis(1);
const PIECES_MAX: Duration = Duration::from_millis(100);
/// A receiver whose end comes from the sender alone: more than any test may send.
pub(crate) const UNTIL_CLOSED: Finish = Finish::Bytes(1 << 60);

/// What a server is given for every connection.
pub struct Serving<'a> {
    /// Decides which tests run.
    pub admission: &'a dyn Admission,
    /// Set when the server is to end.
    pub stop: &'a Stop,
    /// Time between two looks of the watcher.
    pub interval: Duration,
    /// Told of what is seen, for those who print it.
    pub watch: &'a mut dyn FnMut(&Seen<'_>),
}

/// What a server sees of a client.
#[derive(Debug)]
pub enum Seen<'a> {
    /// A stream is there: its socket, which way its data goes, its number.
    Stream(&'a TcpStream, Direction, u16),
    /// The streams after an interval.
    Interval(&'a [Sample]),
    /// The streams are done.
    Done(&'a [EndReport]),
    /// A latency test is done, in which this end sent requests back.
    Bounced(&'a iperf2::Bounced),
}

/// The first bytes of a connection as far as `enough` wants them; they stay in the socket.
pub(crate) fn peek(
    socket: &TcpStream,
    most: usize,
    enough: impl Fn(&[u8]) -> bool,
    stop: &Stop,
) -> Result<Vec<u8>, Failure> {
    let deadline = monotonic() + FIRST_BYTES;
    let mut bytes = vec![0; most];
    let peer =
        || socket.peer_addr().map_or_else(|_| "a client".to_owned(), |peer| peer.to_string());
    let fail =
        |reason: String| Failure::new(Fault::PeerMisbehaved, "first bytes of", peer(), reason);
    let (mut before, mut pause) = (0, PIECES);
    while monotonic() < deadline && !stop.asked() {
        if !linerate_sys::poll::readable(socket, LOOK * 10)
            .map_err(|error| fail(words_of(&error)))?
        {
            continue;
        }
        match socket.peek(&mut bytes) {
            Ok(count) if enough(&bytes[..count]) => {
                bytes.truncate(count);
                return Ok(bytes);
            }
            // The end of the stream is readable for ever and adds nothing.
            Ok(count) if count == before && tcp::peer_has_closed(socket) => {
                bytes.truncate(count);
                return Ok(bytes);
            }
            Ok(count) => {
                pause = if count == before { (pause * 2).min(PIECES_MAX) } else { PIECES };
                before = count;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(fail(words_of(&error))),
        }
        sleep(pause);
    }
    Err(fail(format!("not enough came within {FIRST_BYTES:?}")))
}

/// A test as the admission and the endpoint know it; the rest is as `linerate tcp` has it.
pub(crate) fn request(directions: TcpDirections, finish: Finish) -> TcpTest {
    TcpTest { directions, finish, ..TcpTest::default() }
}

/// Runs the streams of `endpoint` until they are done; `look` is called between looks, with samples
/// at the end of an interval and of all, and may end them by a failure.
pub(crate) fn follow(
    endpoint: &mut Endpoint,
    serving: &mut Serving<'_>,
    look: &mut dyn FnMut(&[Sample]) -> Result<(), Failure>,
) -> Result<(), Failure> {
    endpoint.prepare().map_err(|error| crate::failure::system(&error))?;
    let begin = monotonic();
    endpoint.start(begin).map_err(|error| crate::failure::system(&error))?;
    let end = begin + serving.admission.duration_max();
    let (mut tick, mut idle_at, mut moved) = (begin + serving.interval, begin + IDLE, 0);
    while !endpoint.is_done() {
        let now = monotonic();
        if now >= tick {
            let samples = endpoint.sample(now);
            (serving.watch)(&Seen::Interval(&samples));
            look(&samples)?;
            tick += serving.interval;
        }
        let bytes = endpoint.moved();
        if bytes != moved {
            (moved, idle_at) = (bytes, now + IDLE);
        }
        if now >= end || now >= idle_at || serving.stop.asked() {
            endpoint.halt();
        }
        look(&[])?;
        sleep(LOOK);
    }
    let samples = endpoint.sample(monotonic());
    (serving.watch)(&Seen::Interval(&samples));
    look(&samples)
}

/// `3 streams, 12345 bytes in 1.000 s, 98.8 Mbit/s`, for the log.
pub(crate) fn said(reports: &[EndReport]) -> String {
    let bytes: u64 = reports.iter().map(|report| report.end.bytes).sum();
    // Streams begin one after the other: over the longest span they had more than the path carried.
    let begin_ns = reports.iter().map(|report| report.end.span_start_ns).min().unwrap_or(0);
    let last = |report: &EndReport| report.end.span_start_ns + report.end.span_ns;
    let span_ns = reports.iter().map(last).max().unwrap_or(0).saturating_sub(begin_ns);
    let noun = if reports.len() == 1 { "stream" } else { "streams" };
    let seconds = span_ns as f64 / 1e9;
    let rate = if span_ns == 0 { 0.0 } else { bytes as f64 * 8.0 / seconds };
    let rate = BitRate::from_bits_per_sec(rate as u64);
    format!("{} {noun}, {bytes} bytes in {seconds:.3} s, {rate}", reports.len())
}

/// The first stream that did not end well.
pub(crate) fn failure_of(reports: &[EndReport]) -> Option<Failure> {
    let report = reports.iter().find(|report| report.failure.is_some())?;
    let reason = report.failure.clone().unwrap_or_default();
    Some(Failure::new(Fault::Unreachable, "move data with", &report.client_addr, reason))
}
