//! The server of iperf 2's latency test over TCP (`--bounceback`): every request goes back, with
//! the times at which it came and left. The client measures.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Failure, Fault, TcpDirections};
use linerate_core::time::MonoTime;
use linerate_proto::iperf2::Bounce;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::readable;

use super::server::{lost, peer_of, permit};
use super::udp_layout::wall_us;
use crate::foreign::serve::{IDLE, Seen, Serving, UNTIL_CLOSED, request};

/// Longest request and reply.
const BYTES_MAX: u32 = 1 << 20;
/// Longest time between request and reply that a client may ask for.
const HOLD_MAX: Duration = Duration::from_secs(1);
/// How often waits look at the stop flag.
const LOOK: Duration = Duration::from_millis(100);

/// What was sent back to a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bounced {
    /// Requests that were answered.
    pub replies: u64,
    /// Bytes of the requests.
    pub request_bytes: u64,
    /// Bytes of the replies.
    pub reply_bytes: u64,
    /// From the first request to the last.
    pub span_ns: u64,
}

/// `bounce-back: 10 requests of 100 bytes in 0.901 s`, for the log.
impl std::fmt::Display for Bounced {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let each = self.request_bytes.checked_div(self.replies).unwrap_or(0);
        let seconds = self.span_ns as f64 / 1e9;
        write!(f, "bounce-back: {} requests of {each} bytes in {seconds:.3} s", self.replies)
    }
}

/// Answers requests until the client has had enough; the first is still in the socket.
pub(super) fn serve(
    socket: &TcpStream,
    first: Bounce,
    serving: &mut Serving<'_>,
) -> Result<Bounced, Failure> {
    let peer = peer_of(socket)?;
    let length = first.request_bytes.max(first.reply_bytes);
    if first.request_bytes > BYTES_MAX || first.reply_bytes > BYTES_MAX {
        let reason = format!("requests of {length} bytes are not sent back");
        return Err(Failure::new(Fault::PeerRefused, "serve", peer.to_string(), reason));
    }
    let _permit = permit(&request(TcpDirections::Both, UNTIL_CLOSED), peer, serving)?;
    socket.set_nodelay(true).map_err(|error| lost(socket, &error))?;
    let begin = monotonic();
    let end = begin + serving.admission.duration_max();
    let mut buffer = vec![0; length as usize];
    let mut done = Bounced::default();
    while monotonic() < end {
        let whole = &mut buffer[..first.request_bytes as usize];
        if !fill(socket, whole, serving).map_err(|error| lost(socket, &error))? {
            break;
        }
        let received = monotonic();
        let asked = Bounce::parse(&buffer[..buffer.len().min(64)]);
        if asked.is_none_or(|asked| asked.last) {
            break;
        }
        sleep(Duration::from_micros(first.hold_us.into()).min(HOLD_MAX));
        Bounce::stamp(&mut buffer, wall_us(received), wall_us(monotonic()));
        let reply = &buffer[..first.reply_bytes as usize];
        if let Err(error) = (&mut &*socket).write_all(reply) {
            // A client whose time is up closes with requests on the way.
            if is_gone(error.kind()) {
                break;
            }
            return Err(lost(socket, &error));
        }
        done.replies += 1;
        done.request_bytes += u64::from(first.request_bytes);
        done.reply_bytes += u64::from(first.reply_bytes);
        done.span_ns = received.nanos_since(begin);
    }
    (serving.watch)(&Seen::Bounced(&done));
    Ok(done)
}

/// Fills the buffer; false where the client leaves, or is silent for too long.
fn fill(mut socket: &TcpStream, buffer: &mut [u8], serving: &Serving<'_>) -> std::io::Result<bool> {
    let mut filled = 0;
    let idle: MonoTime = monotonic() + IDLE;
    while filled < buffer.len() {
        if serving.stop.asked() || monotonic() >= idle {
            return Ok(false);
        }
        if !readable(socket, LOOK)? {
            continue;
        }
        match socket.read(&mut buffer[filled..]) {
            Ok(0) => return Ok(false),
            Ok(count) => filled += count,
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
            Err(error) if is_gone(error.kind()) => return Ok(false),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

const fn is_gone(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
}
