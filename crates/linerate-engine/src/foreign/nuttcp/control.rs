//! A control connection of lines over a socket, with limits in time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::nuttcp::{LineError, Lines};
use linerate_sys::clock::monotonic;
use linerate_sys::poll::readable;

use crate::failure::words_of;
use crate::flow::tcp::control::plain;

/// A peer that does not read its control connection for this long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// One end of a control connection.
pub(super) struct Control {
    stream: TcpStream,
    lines: Lines,
    peer: String,
}

/// What came.
pub(super) enum Heard {
    Line(String),
    Closed,
    /// Nothing in time.
    Nothing,
}

impl Control {
    pub(super) fn new(stream: TcpStream) -> Self {
        let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain);
        // Lines are short: a kernel that refuses either makes them later, not wrong.
        let _ = stream.set_nodelay(true);
        let _ = stream.set_write_timeout(Some(SEND_TIMEOUT));
        Self { stream, lines: Lines::default(), peer }
    }

    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    pub(super) fn send(&mut self, text: &str) -> Result<(), Failure> {
        self.stream.write_all(text.as_bytes()).map_err(|error| self.gone("send to", &error))
    }

    /// The next line, if it comes by `until`.
    pub(super) fn hear(&mut self, until: MonoTime) -> Result<Heard, Failure> {
        loop {
            let line = self.lines.next_line().map_err(|error| self.misbehaved(&error))?;
            if let Some(line) = line {
                return Ok(Heard::Line(line));
            }
            let ready = readable(&self.stream, until.since(monotonic()));
            if !ready.map_err(|error| self.gone("wait for", &error))? {
                return Ok(Heard::Nothing);
            }
            let mut bytes = [0; 4096];
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(Heard::Closed),
                Ok(count) => self.lines.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    return Ok(Heard::Closed);
                }
                Err(error) => return Err(self.gone("receive from", &error)),
            }
        }
    }

    pub(super) fn misbehaved(&self, error: &LineError) -> Failure {
        Failure::new(Fault::PeerMisbehaved, "talk to", &self.peer, error)
    }

    pub(super) fn silent(&self, what: &str) -> Failure {
        let reason = format!("no {what} came in time");
        Failure::new(Fault::Unreachable, "hear from", &self.peer, reason)
    }

    pub(super) fn closed(&self) -> Failure {
        let reason = "the server closed the control connection";
        Failure::new(Fault::Unreachable, "receive from", &self.peer, reason)
            .advise("the results so far are kept")
    }

    fn gone(&self, attempt: &str, error: &io::Error) -> Failure {
        Failure::new(Fault::Unreachable, attempt, &self.peer, words_of(error))
    }
}
