//! The opening of streams: three datagrams of one length on each, so that both ends know that
//! datagrams pass both ways, and the server sends nothing to an address that did not ask.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::{Direction, Failure, Fault};
use linerate_core::time::MonoTime;
use linerate_proto::native::{OPENING_BYTES, OpeningDatagram, OpeningStep, Token};
use linerate_sys::clock::random_bytes;
use linerate_sys::datagram_socket::DatagramSocket;

/// A lost datagram of the opening is sent again after this.
const AGAIN: Duration = Duration::from_millis(100);

/// Most datagrams of one stream that are looked at in one turn.
const TURN_MAX: usize = 32;

/// One stream as the client opens it.
pub(crate) struct Asking {
    pub(crate) socket: DatagramSocket,
    pub(crate) server: SocketAddr,
    pub(crate) caller: Caller,
}

/// The client's side of opening one stream: the datagram that it sends, and when.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caller {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    pub(crate) token: Token,
    nonce: Option<u64>,
    next: MonoTime,
}

impl Asking {
    /// A stream over a connected socket.
    pub(crate) const fn new(socket: DatagramSocket, server: SocketAddr, caller: Caller) -> Self {
        Self { socket, server, caller }
    }

    /// Reads what the server said, and says hello or its number back when it is time.
    pub(crate) fn ask_server(&mut self, now: MonoTime) {
        let mut datagram = [0; OPENING_BYTES + 1];
        for _ in 0..TURN_MAX {
            match self.socket.receive_from(&mut datagram) {
                Ok(Some((len, _))) => self.caller.read(&datagram[..len], now),
                Ok(None) => break,
                // A refusal is told once and does not last: the server may not be ready.
                Err(_) => {}
            }
        }
        // One that is lost or refused is sent again.
        self.caller.due_datagram(now).iter().for_each(|bytes| drop(self.socket.send(bytes)));
    }
}

impl Caller {
    /// A stream that nothing was said on yet.
    pub(crate) const fn new(direction: Direction, flow: u16, token: Token, now: MonoTime) -> Self {
        Self { direction, flow, token, nonce: None, next: now }
    }

    /// The datagram to send now, if any.
    pub(crate) fn due_datagram(&mut self, now: MonoTime) -> Option<[u8; OPENING_BYTES]> {
        (now >= self.next).then(|| {
            self.next = now + AGAIN;
            let step = self.nonce.map_or(OpeningStep::Hello, OpeningStep::Answer);
            self.opening(step).to_bytes()
        })
    }

    /// Takes a received datagram.
    pub(crate) fn read(&mut self, datagram: &[u8], now: MonoTime) {
        let Some(opening) = OpeningDatagram::parse(datagram) else { return };
        if let OpeningStep::Challenge(nonce) = opening.step
            && opening == self.opening(opening.step)
            && self.nonce != Some(nonce)
        {
            self.nonce = Some(nonce);
            self.next = now;
        }
    }

    /// True where the server has answered.
    pub(crate) const fn is_answered(&self) -> bool {
        self.nonce.is_some()
    }

    const fn opening(&self, step: OpeningStep) -> OpeningDatagram {
        OpeningDatagram { step, token: self.token, stream: self.flow, direction: self.direction }
    }
}

/// Why the streams did not open in time.
pub(crate) fn unanswered(streams: &[Asking]) -> Failure {
    let silent: Vec<&Asking> =
        streams.iter().filter(|stream| !stream.caller.is_answered()).collect();
    let Some(first) = silent.first() else {
        let server = streams.first().map_or_else(String::new, |stream| stream.server.to_string());
        let reason = "its answers come, but not its word that ours arrived there";
        return Failure::new(Fault::Unreachable, "open UDP streams to", server, reason);
    };
    let reason = match (silent.len(), streams.len()) {
        (1, 1) => "no datagram came through, while TCP does".to_owned(),
        (silent, all) if silent == all => {
            format!("no datagram came through on {all} UDP ports, while TCP does")
        }
        (silent, all) => format!("no datagram came through on {silent} of {all} UDP ports"),
    };
    Failure::new(Fault::Unreachable, "open UDP stream to", first.server.to_string(), reason)
        .advise("a firewall there or on the way probably drops UDP; each test has new ports")
}

/// One stream as the server waits for it.
pub(crate) struct Awaiting {
    pub(crate) socket: DatagramSocket,
    pub(crate) callee: Callee,
    /// The client, once it has said its number back.
    pub(crate) client: Option<SocketAddr>,
}

/// The server's side of opening one stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Callee {
    pub(crate) direction: Direction,
    pub(crate) flow: u16,
    token: Token,
    /// The last address that said hello, and the number that went there.
    challenged: Option<(SocketAddr, u64)>,
}

/// A datagram that came while a stream was being opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// To be answered by this.
    Hello([u8; OPENING_BYTES]),
    /// The proof that datagrams pass both ways.
    Proof,
    /// A datagram that is not of the stream.
    Stray,
}

impl Awaiting {
    /// A stream over a bound socket.
    pub(crate) const fn new(socket: DatagramSocket, callee: Callee) -> Self {
        Self { socket, callee, client: None }
    }

    /// Reads what came, and answers it. Connects the socket once the client is known.
    pub(crate) fn answer_client(&mut self) -> linerate_sys::Result<()> {
        let mut datagram = [0; OPENING_BYTES + 1];
        for _ in 0..TURN_MAX {
            if self.client.is_some() {
                return Ok(());
            }
            let (len, peer) = match self.socket.receive_from(&mut datagram) {
                Ok(Some(came)) => came,
                Ok(None) => return Ok(()),
                Err(_) => continue,
            };
            let nonce = || u64::from_be_bytes(random_bytes());
            match self.callee.read(&datagram[..len], peer, nonce) {
                // One that finds no room is asked for again.
                Heard::Hello(answer) => drop(self.socket.send_to(&answer, peer)),
                Heard::Proof => {
                    self.socket.connect(peer)?;
                    self.client = Some(peer);
                    self.discard_strays();
                }
                Heard::Stray => {}
            }
        }
        Ok(())
    }

    /// Throws away what came from others before the socket was connected. The client sends no
    /// data before the start.
    fn discard_strays(&self) {
        let mut datagram = [0; 1];
        for _ in 0..100_000 {
            if !matches!(self.socket.receive_from(&mut datagram), Ok(Some(_)) | Err(_)) {
                return;
            }
        }
    }
}

impl Callee {
    /// A stream on which nothing came yet.
    pub(crate) const fn new(direction: Direction, flow: u16, token: Token) -> Self {
        Self { direction, flow, token, challenged: None }
    }

    /// Takes a datagram of `peer`; an address that is new gets a `nonce`.
    pub(crate) fn read(
        &mut self,
        datagram: &[u8],
        peer: SocketAddr,
        nonce: impl FnOnce() -> u64,
    ) -> Heard {
        let Some(opening) = OpeningDatagram::parse(datagram) else { return Heard::Stray };
        let place = (opening.token, opening.direction, opening.stream);
        if place != (self.token, self.direction, self.flow) {
            return Heard::Stray;
        }
        match opening.step {
            OpeningStep::Hello => {
                let known = self.challenged.filter(|(address, _)| *address == peer);
                let nonce = known.map_or_else(nonce, |(_, nonce)| nonce);
                self.challenged = Some((peer, nonce));
                let challenge = OpeningDatagram { step: OpeningStep::Challenge(nonce), ..opening };
                Heard::Hello(challenge.to_bytes())
            }
            OpeningStep::Answer(nonce) if self.challenged == Some((peer, nonce)) => Heard::Proof,
            OpeningStep::Answer(_) | OpeningStep::Challenge(_) => Heard::Stray,
        }
    }
}
