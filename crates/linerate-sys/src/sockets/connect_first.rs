//! Connection attempts to several addresses of one host, of which the first that succeeds is kept
//! (Happy Eyeballs, RFC 8305 §5), in the caller's order of addresses.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::time::MonoTime;
use socket2::Socket;

use super::poll::any_writable;
use super::tcp::{CONNECT, TcpOptions, open_for};
use crate::clock::monotonic;
use crate::{Error, Result};

/// Time without an answer after which the next attempt starts in parallel (RFC 8305 §8).
const ATTEMPT_DELAY: Duration = Duration::from_millis(250);

/// Connects to the first of several addresses that answers, within `timeout` in all. The next
/// attempt starts when one fails or does not answer for 250 ms.
/// # Errors
/// When no address answers: the most telling of the failures.
pub fn connect_first(
    peers: &[SocketAddr],
    bind: Option<IpAddr>,
    options: &TcpOptions,
    timeout: Duration,
) -> Result<(TcpStream, SocketAddr)> {
    let mut race = Race { attempts: Vec::new(), nearest: None };
    let mut left = peers.iter();
    let end = monotonic() + timeout;
    let mut next = monotonic();
    loop {
        let now = monotonic();
        if (now >= next || race.attempts.is_empty())
            && let Some(&peer) = left.next()
        {
            race.start_attempt(peer, bind, options);
            next = now + ATTEMPT_DELAY;
        }
        if let Some(winner) = race.winner()? {
            return Ok(winner);
        }
        if race.attempts.is_empty() && left.len() == 0 || now >= end {
            return Err(race.into_error());
        }
        let until = if left.len() > 0 { next.min(end) } else { end };
        race.wait_for_any(until)?;
    }
}

/// Connection attempts in progress.
struct Race {
    attempts: Vec<(Socket, SocketAddr)>,
    /// The most telling failure so far.
    nearest: Option<Error>,
}

impl Race {
    fn start_attempt(&mut self, peer: SocketAddr, bind: Option<IpAddr>, options: &TcpOptions) {
        let fail = |source| Error::new(CONNECT, peer, source);
        let begun = open_for(peer, bind, options).and_then(|socket| {
            socket.set_nonblocking(true).map_err(fail)?;
            match socket.connect(&peer.into()) {
                Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(fail(error)),
                _ => Ok(socket),
            }
        });
        match begun {
            Ok(socket) => self.attempts.push((socket, peer)),
            Err(error) => self.note_failure(error),
        }
    }

    /// The established connection, as a blocking socket; failed attempts are removed.
    fn winner(&mut self) -> Result<Option<(TcpStream, SocketAddr)>> {
        let mut at = 0;
        while let Some((socket, peer)) = self.attempts.get(at) {
            let fail = |source| Error::new(CONNECT, *peer, source);
            if let Some(error) = socket.take_error().map_err(fail)? {
                let error = fail(error);
                self.note_failure(error);
                self.attempts.remove(at);
            } else if socket.peer_addr().is_ok() {
                let (socket, peer) = self.attempts.swap_remove(at);
                let ready = socket.set_nonblocking(false);
                ready.map_err(|source| Error::new(CONNECT, peer, source))?;
                return Ok(Some((socket.into(), peer)));
            } else {
                at += 1;
            }
        }
        Ok(None)
    }

    fn wait_for_any(&self, until: MonoTime) -> Result<()> {
        let fds: Vec<_> = self.attempts.iter().map(|(socket, _)| socket.as_fd()).collect();
        let waited = any_writable(&fds, until.duration_since(monotonic()));
        waited.map(drop).map_err(|source| Error::new("poll", "connections", source))
    }

    /// Keeps the most telling failure: a refusal shows that the host is up, a time-out that there
    /// is a route.
    fn note_failure(&mut self, error: Error) {
        let weight = |error: &Error| match error.source.kind() {
            io::ErrorKind::ConnectionRefused => 2,
            io::ErrorKind::TimedOut => 1,
            _ => 0,
        };
        if self.nearest.as_ref().is_none_or(|nearest| weight(&error) > weight(nearest)) {
            self.nearest = Some(error);
        }
    }

    fn into_error(mut self) -> Error {
        for (_, peer) in std::mem::take(&mut self.attempts) {
            self.note_failure(Error::new(CONNECT, peer, io::ErrorKind::TimedOut));
        }
        let none = || Error::new(CONNECT, "no address", io::ErrorKind::AddrNotAvailable);
        self.nearest.unwrap_or_else(none)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use socket2::{Domain, Type};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(20);

    fn listener(address: &str) -> Option<(TcpListener, SocketAddr)> {
        let listener = TcpListener::bind((address, 0)).ok()?;
        let at = listener.local_addr().ok()?;
        Some((listener, at))
    }

    fn first_address(peers: &[SocketAddr], timeout: Duration) -> Result<SocketAddr> {
        connect_first(peers, None, &TcpOptions::control(), timeout).map(|(_, address)| address)
    }

    #[test]
    fn an_address_that_refuses_makes_place_for_the_next() {
        let (listener, open) = listener("127.0.0.1").expect("loopback");
        // A port that was just free, at an address of which nobody listens.
        let closed: SocketAddr = format!("[::1]:{}", open.port()).parse().expect("an address");
        assert_eq!(first_address(&[closed, open], PATIENCE).expect("the second answers"), open);
        assert_eq!(first_address(&[open, closed], PATIENCE).expect("the first answers"), open);
        drop(listener);
        let error = first_address(&[closed, open], PATIENCE).expect_err("nobody listens");
        assert_eq!(error.source.kind(), io::ErrorKind::ConnectionRefused);
        assert_eq!(error.call, CONNECT);
    }

    #[test]
    fn an_address_that_keeps_silent_makes_place_for_the_next() {
        let full = Socket::new(Domain::IPV4, Type::STREAM, None).expect("a socket");
        let any: SocketAddr = "127.0.0.2:0".parse().expect("an address");
        full.bind(&any.into()).and_then(|()| full.listen(1)).expect("loopback");
        let silent = full.local_addr().ok().and_then(|at| at.as_socket()).expect("an address");
        let (_open, open) = listener("127.0.0.1").expect("loopback");
        // Nothing is accepted: what the queue has no room for is not answered (listen(2)).
        let filled: Vec<Socket> = (0..4)
            .filter_map(|_| {
                let socket = open_for(silent, None, &TcpOptions::control()).ok()?;
                socket.set_nonblocking(true).ok()?;
                let _ = socket.connect(&silent.into());
                Some(socket)
            })
            .collect();
        assert_eq!(first_address(&[silent, open], PATIENCE).expect("the second answers"), open);
        let error = first_address(&[silent], Duration::from_millis(400)).expect_err("it is silent");
        assert_eq!(error.source.kind(), io::ErrorKind::TimedOut);
        drop((full, filled));
    }
}
