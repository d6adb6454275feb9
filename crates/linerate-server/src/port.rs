//! A TCP port that a server listens on, and what its log is told.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_engine::failure::{code_of, words_of};
use linerate_engine::served::DirectionTotals;
use linerate_sys::tcp::{self, TcpOptions};

/// Time between two looks of an idle listener at its stop flag.
pub(crate) const ACCEPT_WAIT: Duration = Duration::from_millis(100);

/// One line of the server's log: a client and the end of its test or attempt.
#[derive(Clone, Copy, Debug)]
pub struct LogEntry<'a> {
    /// Address and port of the client.
    pub peer: SocketAddr,
    /// The event in one line of text.
    pub line: &'a str,
    /// The figures of a test, where they are told.
    pub ways: &'a [DirectionTotals],
    /// End of the test or attempt.
    pub ending: ClientTestEnd<'a>,
}

/// End of a client's test or attempt.
#[derive(Clone, Copy, Debug)]
pub enum ClientTestEnd<'a> {
    /// A test came to its end.
    Tested,
    /// There was no place for it.
    Refused,
    /// The test failed, or the client left or spoke nonsense.
    Failed(&'a Failure),
}

/// Called at the end of each client's test or attempt.
pub type Log<'a> = &'a (dyn Fn(&LogEntry<'_>) + Sync);

/// A listener that never blocks.
pub(crate) fn listen(local: SocketAddr) -> linerate_sys::Result<TcpListener> {
    let listener = tcp::listen(local, &TcpOptions::default())?;
    let set = listener.set_nonblocking(true);
    set.map_err(|source| linerate_sys::Error::new("set up", local, source))?;
    Ok(listener)
}

/// Why there is no listener.
pub(crate) fn cannot_listen(error: &linerate_sys::Error) -> Failure {
    Failure::new(Fault::System, error.call, &error.object, words_of(&error.source))
        .with_code(code_of(error))
}

/// The address that a listener was bound to.
pub(crate) fn address_of(listener: &TcpListener) -> Result<SocketAddr, Failure> {
    let unknown =
        |error| Failure::new(Fault::System, "address of", "the listener", words_of(&error));
    listener.local_addr().map_err(unknown)
}

/// A connection that is there already.
pub(crate) fn accept(listener: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    match listener.accept() {
        Ok((stream, peer)) => {
            let peer = SocketAddr::new(peer.ip().to_canonical(), peer.port());
            stream.set_nonblocking(false).ok().map(|()| (stream, peer))
        }
        Err(error) if error.kind() == ErrorKind::WouldBlock => None,
        Err(error) => {
            tracing::warn!("accept: {error}");
            // Out of descriptors or memory: the connections that are open may free some.
            linerate_sys::clock::sleep(ACCEPT_WAIT);
            None
        }
    }
}
