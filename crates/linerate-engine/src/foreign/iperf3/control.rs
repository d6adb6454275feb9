//! The control connection of either side: bytes from the socket into a machine, events out, with
//! limits in time.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::iperf3::{
    ClientEvent, ClientMachine, ServerEvent, ServerMachine, State, WireError,
};
use linerate_sys::clock::monotonic;
use linerate_sys::poll::readable;

use crate::failure::words_of;
use crate::throughput::control::plain;

/// A peer that does not read its control connection for this long is gone.
const SEND_TIMEOUT: Duration = Duration::from_secs(5);

/// What follows a control connection.
pub(super) trait Machine {
    /// What it says.
    type Event;

    /// Takes bytes.
    fn push(&mut self, bytes: &[u8]);

    /// What the bytes so far ask for.
    fn next_event(&mut self) -> Result<Option<Self::Event>, WireError>;

    /// What a closed connection says.
    fn closed(&self) -> Option<Self::Event>;
}

impl Machine for ClientMachine {
    type Event = ClientEvent;

    fn push(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }

    fn next_event(&mut self) -> Result<Option<ClientEvent>, WireError> {
        self.next_event()
    }

    fn closed(&self) -> Option<ClientEvent> {
        self.closed()
    }
}

impl Machine for ServerMachine {
    type Event = ServerEvent;

    fn push(&mut self, bytes: &[u8]) {
        self.push(bytes);
    }

    fn next_event(&mut self) -> Result<Option<ServerEvent>, WireError> {
        self.next_event()
    }

    fn closed(&self) -> Option<ServerEvent> {
        None
    }
}

/// One end of a control connection.
pub(super) struct Control<M> {
    stream: TcpStream,
    /// Follows the states.
    pub(super) machine: M,
    peer: String,
}

impl<M: Machine + Default> Control<M> {
    /// Wraps a connection whose cookie has been sent or read.
    pub(super) fn new(stream: TcpStream) -> Result<Self, Failure> {
        let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain);
        let ready =
            stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(SEND_TIMEOUT)));
        ready.map_err(|error| Failure::new(Fault::System, "set up control to", &peer, error))?;
        Ok(Self { stream, machine: M::default(), peer })
    }

    /// The connection itself.
    pub(super) const fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// The other end's address.
    pub(super) fn peer(&self) -> &str {
        &self.peer
    }

    /// Sends bytes.
    pub(super) fn send(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.stream.write_all(bytes).map_err(|error| self.gone("send to", &error))
    }

    /// Sends a state.
    pub(super) fn send_state(&mut self, state: State) -> Result<(), Failure> {
        self.send(&[state.to_byte()])
    }

    /// The next event, or `None` when none has come by `until`.
    pub(super) fn next_event(&mut self, until: MonoTime) -> Result<Option<M::Event>, Failure> {
        loop {
            let event = self.machine.next_event();
            if let Some(event) = event.map_err(|error| self.misbehaved(&error))? {
                return Ok(Some(event));
            }
            let ready = readable(&self.stream, until.since(monotonic()));
            if !ready.map_err(|error| self.gone("wait for", &error))? {
                return Ok(None);
            }
            let mut bytes = [0; 16 * 1024];
            match self.stream.read(&mut bytes) {
                Ok(0) => return self.machine.closed().map(Some).ok_or_else(|| self.closed()),
                Ok(count) => self.machine.push(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => {
                    let said = self.machine.closed().map(Some);
                    return said.ok_or_else(|| self.gone("receive from", &error));
                }
            }
        }
    }

    /// The peer broke the protocol.
    pub(super) fn misbehaved(&self, error: &WireError) -> Failure {
        Failure::new(Fault::PeerMisbehaved, "talk iperf3 to", &self.peer, error)
    }

    fn gone(&self, attempt: &str, error: &io::Error) -> Failure {
        Failure::new(Fault::Unreachable, attempt, &self.peer, words_of(error))
            .advise("the results so far are kept")
    }

    fn closed(&self) -> Failure {
        let reason = "the other end closed the control connection";
        Failure::new(Fault::Unreachable, "receive from", &self.peer, reason)
            .advise("see that end's messages; the results so far are kept")
    }
}
