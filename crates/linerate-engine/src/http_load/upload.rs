//! What a client sends up: requests one after the other on one connection, each with a body of the
//! length that its head names. Bodies are payload; each gets an answer with its bytes.

use std::io::{self, Write};
use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::Direction;
use linerate_core::time::MonoTime;
use linerate_proto::http::{HEAD_BYTES_MAX, Head, LoadTarget, json_response};
use linerate_proto::native::Token;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::tcp;

use super::arrive::refuse;
use crate::flow::tcp::receive_method::Framing;

/// A head that was begun has this long to end.
const HEAD_WITHIN: Duration = Duration::from_secs(5);
/// Pause between two looks at a head that is not whole.
const LOOK: Duration = Duration::from_millis(1);
/// Once the test is over, a client that is between two requests has this long to begin one, whose
/// answer tells it so.
const LAST_REQUEST: Duration = Duration::from_millis(200);

/// The requests of one connection.
#[derive(Debug)]
pub(super) struct Upload {
    token: Token,
    /// Bytes that are to come of the body, and its length.
    left: u64,
    length: u64,
    /// True where nothing follows the answer that was given last.
    last: bool,
    /// When a head began to come, or the wait for a last one.
    since: Option<MonoTime>,
    head: Vec<u8>,
    /// The client ends the connection after this answer.
    closes: bool,
}

impl Upload {
    /// Goes on where the head of the first request ends.
    pub(super) fn from_first_head(token: Token, head: &Head) -> Self {
        Self {
            token,
            left: head.body_bytes,
            length: head.body_bytes,
            last: false,
            since: None,
            head: vec![0; HEAD_BYTES_MAX],
            closes: !head.keeps_alive,
        }
    }

    /// Answers a request whose body has come.
    fn answer(&mut self, mut stream: &TcpStream, over: bool) -> io::Result<()> {
        self.last = over || self.closes;
        let length = self.length;
        let body = if over {
            format!("{{\"bytes\":{length},\"over\":true}}")
        } else {
            format!("{{\"bytes\":{length}}}")
        };
        stream.write_all(&json_response(200, &body, self.last))
    }

    /// Reads the head of the next request; whether there is one.
    fn next_request(&mut self, stream: &TcpStream, over: bool) -> io::Result<bool> {
        let now = monotonic();
        let count = match stream.peek(&mut self.head) {
            Ok(0) => return Ok(false),
            Ok(count) => count,
            Err(error) if super::arrive::is_pause(&error) && over => {
                let since = *self.since.get_or_insert(now);
                return if now < since + LAST_REQUEST { Err(error) } else { Ok(false) };
            }
            Err(error) => return Err(error),
        };
        let head = match Head::parse(&self.head[..count]) {
            Ok(Some(head)) => head,
            Ok(None) if now < *self.since.get_or_insert(now) + HEAD_WITHIN => {
                sleep(LOOK);
                return Err(io::ErrorKind::WouldBlock.into());
            }
            Ok(None) => {
                refuse(stream, 408, "bad_request", "no whole request within 5 s");
                return Err(io::Error::other("a request that does not go on"));
            }
            Err(error) => {
                refuse(stream, 400, "bad_request", &error.to_string());
                return Err(io::Error::other(error));
            }
        };
        self.since = None;
        // Browsers pool connections, so its number may be that of another stream of the run.
        let same = LoadTarget::from_head(&head)
            .is_ok_and(|target| target.token == self.token && target.direction == Direction::Up);
        io::Read::read_exact(&mut &*stream, &mut self.head[..head.head_bytes])?;
        if !same {
            let say = "a stream that sends up goes on with requests of its own run";
            refuse(stream, 400, "bad_request", say);
            return Err(io::Error::other(say));
        }
        if head.expects_continue {
            (&mut &*stream).write_all(b"HTTP/1.1 100 Continue\r\n\r\n")?;
        }
        self.closes = !head.keeps_alive;
        (self.left, self.length) = (head.body_bytes, head.body_bytes);
        Ok(true)
    }

    /// The bytes of a read within a body; a client that leaves once all is over has not failed.
    fn check_body_read(&self, result: io::Result<usize>, over: bool) -> io::Result<usize> {
        match result {
            Ok(0) if !over => Err(io::Error::other("the client left within a request")),
            Err(error) if over && error.kind() == io::ErrorKind::ConnectionReset => Ok(0),
            result => result,
        }
    }
}

impl Framing for Upload {
    fn read_payload(
        &mut self,
        stream: &TcpStream,
        buffer: &mut [MaybeUninit<u8>],
        over: bool,
    ) -> io::Result<usize> {
        loop {
            if self.left > 0 {
                let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
                let count =
                    self.check_body_read(tcp::receive(stream, &mut buffer[..most]), over)?;
                self.left -= count as u64;
                if count > 0 && self.left == 0 {
                    self.answer(stream, over)?;
                }
                return Ok(count);
            }
            if self.last {
                return Ok(0);
            }
            if self.length == 0 {
                self.answer(stream, over)?;
                self.length = 1;
                continue;
            }
            if !self.next_request(stream, over)? {
                return Ok(0);
            }
        }
    }
}
