//! Whether the other end of a stream is still there, told by datagrams on the stream itself: a
//! test that fills the path leaves no room for acknowledgements of the control connection.
//!
//! Each end says so twice a second, with a datagram that carries no data and counts nowhere. After
//! [`SILENCE_MAX`] without any datagram the stream is given up, so a peer that vanished holds
//! nothing for longer. Those of a receiver may say how far the sender can go ([`super::credit`]).

use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_proto::native::{ALIVE, DATAGRAM_HEADER_BYTES, Grant, NativeDatagramHeader};
use linerate_sys::datagram_socket::DatagramSocket;

use super::credit::Credit;

/// How often an end says that it is there.
const EVERY: Duration = Duration::from_millis(500);

/// Longest silence of the other end.
pub(crate) const SILENCE_MAX: Duration = Duration::from_secs(4);

/// The signs of life of one stream, at one end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeepAlive {
    tag: u16,
    heard: MonoTime,
    told: MonoTime,
    credit: Credit,
}

impl KeepAlive {
    /// The other end was there just now.
    pub(crate) const fn starting_at(tag: u16, now: MonoTime) -> Self {
        Self { tag, heard: now, told: now, credit: Credit::new() }
    }

    /// The other end was heard.
    pub(crate) const fn note_heard(&mut self, now: MonoTime) {
        self.heard = now;
    }

    /// Data left, which says as much.
    pub(crate) const fn note_sent(&mut self, now: MonoTime) {
        self.told = now;
    }

    /// Says that this end is there when it is time; true when the other end fell silent.
    pub(super) fn send_if_due(&mut self, socket: &DatagramSocket, now: MonoTime) -> bool {
        // One that is lost or refused is followed by the next.
        self.due_datagram(now).iter().for_each(|bytes| drop(socket.send(bytes)));
        self.is_silent(now)
    }

    /// The datagram that says that this end is there, when it is time.
    pub(crate) fn due_datagram(&mut self, now: MonoTime) -> Option<[u8; DATAGRAM_HEADER_BYTES]> {
        (now.duration_since(self.told) >= EVERY).then(|| {
            self.told = now;
            NativeDatagramHeader { number: ALIVE, tag: self.tag, stamp_ns: 0 }.to_bytes()
        })
    }

    /// True where nothing was heard for too long.
    pub(crate) fn is_silent(&self, now: MonoTime) -> bool {
        now.duration_since(self.heard) > SILENCE_MAX
    }

    /// Tells the sender how far it can go; it is a sign of life.
    pub(super) fn send_grant(&mut self, socket: &DatagramSocket, grant: Grant, now: MonoTime) {
        self.told = now;
        // One that is lost or refused is followed by the next.
        let _ = socket.send(&grant.to_bytes(self.tag));
    }

    /// How far the other end says that this one can go.
    pub(super) const fn credit(&self) -> &Credit {
        &self.credit
    }

    /// Takes what waits at a socket of a sender, where nothing but signs of life arrives.
    pub(super) fn listen(&mut self, socket: &DatagramSocket, now: MonoTime) {
        let mut datagram = [0; 64];
        // Bounded: a flood of strays must not hold up the sender.
        for _ in 0..64 {
            match socket.receive_from(&mut datagram) {
                Ok(Some((len, _))) => {
                    let header = NativeDatagramHeader::parse(&datagram[..len]);
                    if header.is_some_and(|header| self.is_sign(header)) {
                        self.heard = now;
                        Grant::parse(&datagram[..len])
                            .iter()
                            .for_each(|grant| self.credit.take_grant(*grant));
                    }
                }
                // An error of an earlier send, told here.
                Err(error) if error.kind() != std::io::ErrorKind::WouldBlock => {}
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn is_sign(&self, header: NativeDatagramHeader) -> bool {
        header.number == ALIVE && header.tag == self.tag
    }
}

/// The reason with which a silent stream is given up.
pub(super) fn silent() -> String {
    format!("nothing was heard from the other end for {} s", SILENCE_MAX.as_secs())
}
