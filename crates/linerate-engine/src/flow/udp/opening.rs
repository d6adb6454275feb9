//! The opening of streams: three datagrams of one length on each, so that both ends know that
//! datagrams pass both ways, and the server sends nothing to an address that did not ask.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::native::{OPENING_BYTES, Opening, OpeningStep, Token};
use linerate_sys::clock::{monotonic, random_bytes};
use linerate_sys::datagram_socket::DatagramSocket;

/// A lost datagram of the opening is sent again after this.
const AGAIN: Duration = Duration::from_millis(100);

/// Most datagrams of one stream that are looked at in one turn.
const TURN_MAX: usize = 32;

/// One stream as the client opens it.
pub(super) struct Asking {
    pub(super) socket: DatagramSocket,
    pub(super) direction: Direction,
    pub(super) flow: u16,
    pub(super) server: SocketAddr,
    pub(super) token: Token,
    nonce: Option<u64>,
    next: MonoTime,
}

impl Asking {
    /// A stream over a connected socket.
    pub(super) fn new(
        socket: DatagramSocket,
        (direction, flow): (Direction, u16),
        server: SocketAddr,
        token: Token,
    ) -> Self {
        Self { socket, direction, flow, server, token, nonce: None, next: monotonic() }
    }

    /// Reads what the server said, and says hello or its number back when it is time.
    pub(super) fn turn(&mut self, now: MonoTime) {
        let mut datagram = [0; OPENING_BYTES + 1];
        for _ in 0..TURN_MAX {
            match self.socket.receive_from(&mut datagram) {
                Ok(Some((len, _))) => self.read(&datagram[..len], now),
                Ok(None) => break,
                // A refusal is told once and does not last: the server may not be ready.
                Err(_) => {}
            }
        }
        if now >= self.next {
            self.next = now + AGAIN;
            let step = self.nonce.map_or(OpeningStep::Hello, OpeningStep::Answer);
            // One that is lost or refused is sent again.
            let _ = self.socket.send(&self.opening(step).to_bytes());
        }
    }

    fn read(&mut self, datagram: &[u8], now: MonoTime) {
        let Some(opening) = Opening::parse(datagram) else { return };
        if let OpeningStep::Challenge(nonce) = opening.step
            && opening == self.opening(opening.step)
            && self.nonce != Some(nonce)
        {
            self.nonce = Some(nonce);
            self.next = now;
        }
    }

    /// Whether the server has answered.
    pub(super) const fn is_answered(&self) -> bool {
        self.nonce.is_some()
    }

    fn opening(&self, step: OpeningStep) -> Opening {
        Opening { step, token: self.token, stream: self.flow, direction: self.direction }
    }
}

/// Why the streams did not open in time.
pub(super) fn unanswered(streams: &[Asking]) -> Failure {
    let silent: Vec<&Asking> = streams.iter().filter(|stream| !stream.is_answered()).collect();
    let Some(first) = silent.first() else {
        let server = streams.first().map_or_else(String::new, |stream| stream.server.to_string());
        let reason = "its answers come, and ours do not arrive there";
        return Failure::new(Fault::Unreachable, "open UDP streams to", server, reason);
    };
    let reason = format!("no answer on {} of {} UDP ports", silent.len(), streams.len());
    Failure::new(Fault::Unreachable, "open UDP stream to", first.server.to_string(), reason)
        .advise("a firewall may block UDP: the server uses a new port per test")
}

/// One stream as the server waits for it.
pub(super) struct Awaiting {
    pub(super) socket: DatagramSocket,
    pub(super) direction: Direction,
    pub(super) flow: u16,
    token: Token,
    /// The last address that said hello, and the number that went there.
    challenged: Option<(SocketAddr, u64)>,
    /// The client, once it has said its number back.
    pub(super) client: Option<SocketAddr>,
}

impl Awaiting {
    /// A stream over a bound socket.
    pub(super) fn new(
        socket: DatagramSocket,
        (direction, flow): (Direction, u16),
        token: Token,
    ) -> Self {
        Self { socket, direction, flow, token, challenged: None, client: None }
    }

    /// Reads what came, and answers it. Connects the socket once the client is known.
    pub(super) fn turn(&mut self) -> linerate_sys::Result<()> {
        let mut datagram = [0; OPENING_BYTES + 1];
        for _ in 0..TURN_MAX {
            if self.client.is_some() {
                return Ok(());
            }
            match self.socket.receive_from(&mut datagram) {
                Ok(Some((len, peer))) => self.read(&datagram[..len], peer)?,
                Ok(None) => return Ok(()),
                Err(_) => {}
            }
        }
        Ok(())
    }

    fn read(&mut self, datagram: &[u8], peer: SocketAddr) -> linerate_sys::Result<()> {
        let Some(opening) = Opening::parse(datagram) else { return Ok(()) };
        let place = (opening.token, opening.direction, opening.stream);
        if place != (self.token, self.direction, self.flow) {
            return Ok(());
        }
        match opening.step {
            OpeningStep::Hello => {
                let known = self.challenged.filter(|(address, _)| *address == peer);
                let nonce = known.map_or_else(|| u64::from_be_bytes(random_bytes()), |(_, n)| n);
                self.challenged = Some((peer, nonce));
                let challenge = Opening { step: OpeningStep::Challenge(nonce), ..opening };
                // One that finds no room is asked for again.
                let _ = self.socket.send_to(&challenge.to_bytes(), peer);
            }
            OpeningStep::Answer(nonce) if self.challenged == Some((peer, nonce)) => {
                self.socket.connect(peer)?;
                self.client = Some(peer);
                self.empty();
            }
            OpeningStep::Answer(_) | OpeningStep::Challenge(_) => {}
        }
        Ok(())
    }

    /// Throws away what came from others before the socket was connected. The client sends no
    /// data before the start.
    fn empty(&self) {
        let mut datagram = [0; 1];
        for _ in 0..100_000 {
            if !matches!(self.socket.receive_from(&mut datagram), Ok(Some(_)) | Err(_)) {
                return;
            }
        }
    }
}
