//! A connection of load from its first byte to the run that waits for it.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::http::{
    HEAD_BYTES_MAX, Head, HeadError, LoadTarget, LoadTargetError, json_response,
};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, sleep};

use crate::failure::words_of;
use crate::flow::registry::Registry;

/// Pause between two looks at a head that is not whole.
const LOOK: Duration = Duration::from_millis(2);
/// A client that is refused has this long to take the answer.
const LEAVE: Duration = Duration::from_millis(500);
/// Most bytes that are read of a client while it is refused.
const LEAVE_BYTES: usize = 1 << 20;

/// Where connections of load find the run that waits for their token.
pub type LoadRegistry = Registry<Token, LoadArrival>;

/// A connection whose first request is that of a stream; its head has been read.
#[derive(Debug)]
pub struct LoadArrival {
    pub(super) stream: TcpStream,
    pub(super) peer: SocketAddr,
    pub(super) target: LoadTarget,
    pub(super) head: Head,
}

/// Reads the head of a connection's first request and hands the connection to its run.
/// # Errors
/// Why there is none; the client was told in an answer where it spoke HTTP.
pub fn arrive(
    stream: TcpStream,
    peer: SocketAddr,
    registry: &LoadRegistry,
    within: Duration,
) -> Result<(), Failure> {
    let failed = |reason: String| {
        let object = format!("a request of load from {}", peer.ip());
        Failure::new(Fault::PeerMisbehaved, "read", object, reason)
    };
    let _ = stream.set_write_timeout(Some(LEAVE));
    let _ = stream.set_nodelay(true);
    let head = match read_head(&stream, monotonic() + within) {
        Ok(head) => head,
        Err(Unread::Head(error)) => {
            let status = match error {
                HeadError::TooLong => 431,
                HeadError::Chunked => 411,
                HeadError::Malformed(_) | HeadError::Length => 400,
            };
            refuse(&stream, status, "bad_request", &error.to_string());
            return Err(failed(error.to_string()));
        }
        Err(Unread::Late) => {
            let say = format!("no whole request within {} s", within.as_secs());
            refuse(&stream, 408, "bad_request", &say);
            return Err(failed(say));
        }
        Err(Unread::Gone(reason)) => return Err(failed(reason)),
    };
    let target = match LoadTarget::from_head(&head) {
        Ok(target) => target,
        Err(error) => {
            let status = if error == LoadTargetError::Method { 405 } else { 404 };
            refuse(&stream, status, "not_found", &error.to_string());
            return Err(failed(error.to_string()));
        }
    };
    if head.expects_continue {
        let _ = (&stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n");
    }
    let arrival = LoadArrival { stream, peer, target, head };
    registry.deliver(&target.token, arrival).map_err(|arrival| {
        let say = "no run with this token waits for streams: it is over, or never began";
        refuse(&arrival.stream, 404, "over", say);
        failed(say.to_owned())
    })
}

/// Why there is no head.
pub(super) enum Unread {
    Head(HeadError),
    Late,
    Gone(String),
}

/// Reads the head that a connection brings next, and not a byte more, so that what follows is
/// payload alone.
pub(super) fn read_head(stream: &TcpStream, until: MonoTime) -> Result<Head, Unread> {
    let gone = |error: &std::io::Error| Unread::Gone(words_of(error));
    let mut bytes = vec![0; HEAD_BYTES_MAX];
    let mut seen = 0;
    loop {
        let left = until.as_nanos().saturating_sub(monotonic().as_nanos());
        if left == 0 {
            return Err(Unread::Late);
        }
        let _ = stream.set_read_timeout(Some(Duration::from_nanos(left)));
        match stream.peek(&mut bytes) {
            Ok(0) => return Err(Unread::Gone("it was closed within a request".to_owned())),
            // The same bytes again: a look at once would be a loop that never waits.
            Ok(count) if count == seen => sleep(LOOK),
            Ok(count) => seen = count,
            Err(error) if is_pause(&error) => continue,
            Err(error) => return Err(gone(&error)),
        }
        if let Some(head) = Head::parse(&bytes[..seen]).map_err(Unread::Head)? {
            let mut stream = stream;
            stream.read_exact(&mut bytes[..head.head_bytes]).map_err(|error| gone(&error))?;
            return Ok(head);
        }
    }
}

/// Answers with an error in the shape that every error of the API has, and ends the connection so
/// that the client can read it: what it still sends is taken for a moment, for bytes that nobody
/// reads would make the kernel reset the connection (RFC 9112 §9.6).
pub fn refuse(stream: &TcpStream, status: u16, error: &str, say: &str) {
    let body = serde_json::json!({ "error": error, "say": say }).to_string();
    let _ = stream.set_write_timeout(Some(LEAVE));
    let _ = (&mut &*stream).write_all(&json_response(status, &body, true));
    lingering_close(stream);
}

/// Ends a connection so that what was answered can be read.
pub(super) fn lingering_close(stream: &TcpStream) {
    let _ = stream.set_read_timeout(Some(LEAVE / 4));
    let _ = stream.shutdown(Shutdown::Write);
    let mut stream = stream;
    let end = monotonic() + LEAVE;
    let (mut bytes, mut taken) = (vec![0; 64 << 10], 0);
    while monotonic() < end && taken < LEAVE_BYTES {
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return,
            Ok(count) => taken += count,
        }
    }
}

pub(super) fn is_pause(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}
