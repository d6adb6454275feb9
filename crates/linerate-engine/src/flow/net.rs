//! The control connection and the clock of a session, as they are live.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::poll::readable;

use crate::flow::peer::plain_address;

/// A stream of control bytes, and the time.
pub(crate) trait Net {
    /// The time of the monotonic clock now.
    fn now(&self) -> MonoTime;

    /// Takes the bytes that are there, without waiting; none is the end of the stream.
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize>;

    /// Sends what there is room for, without waiting.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Waits until a time, or, where control bytes are of use, until some have come.
    fn wait(&mut self, until: MonoTime, for_bytes: bool);
}

/// A connected socket and the monotonic clock.
#[derive(Debug)]
pub(crate) struct Socket {
    stream: TcpStream,
}

impl Socket {
    /// Takes over a connection with `peer`.
    pub(crate) fn new(stream: TcpStream) -> Result<Self, Failure> {
        let ready = stream.set_nodelay(true).and_then(|()| stream.set_nonblocking(true));
        let peer = || stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain_address);
        ready.map_err(|error| Failure::new(Fault::System, "set up control to", peer(), error))?;
        Ok(Self { stream })
    }

    /// The stream of the control connection.
    pub(crate) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Another handle of it, to ask the kernel about it.
    pub(crate) fn another(&self) -> Result<TcpStream, Failure> {
        let another = self.stream.try_clone();
        another.map_err(|error| Failure::new(Fault::System, "set up", "control", error))
    }
}

impl Net for Socket {
    fn now(&self) -> MonoTime {
        monotonic()
    }

    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        self.stream.read(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.write(bytes)
    }

    fn wait(&mut self, until: MonoTime, for_bytes: bool) {
        let span = until.duration_since(monotonic());
        match for_bytes {
            // What is wrong with the connection shows when it is read.
            true => drop(readable(&self.stream, span)),
            false => sleep(span.max(Duration::from_micros(1))),
        }
    }
}
