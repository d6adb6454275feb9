//! The control connection: hellos over a socket, with limits in time, and what may go wrong.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_proto::native::{
    CONTROL_HELLO_BYTES, DATA_HELLO_BYTES, DataHello, Hello, VERSIONS, WireError,
};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::tcp_info;

use crate::failure::words_of;

/// The peer broke the protocol.
pub(crate) fn misbehaved(peer: &str, error: &WireError) -> Failure {
    let fault = match error {
        WireError::Version(_) => Fault::PeerIncompatible,
        _ => Fault::PeerMisbehaved,
    };
    Failure::new(fault, "talk to", peer, error)
}

/// The control connection with `peer` failed.
pub(crate) fn lost(peer: &str, attempt: &str, error: &io::Error) -> Failure {
    Failure::new(Fault::Unreachable, attempt, peer, words_of(error))
        .advise("the results so far are kept")
}

/// The server said nothing in time.
pub(crate) fn silent(peer: &str) -> Failure {
    Failure::new(Fault::Unreachable, "hear from", peer, "the server fell silent")
        .advise("the results so far are kept")
}

/// The peer closed the control connection.
pub(crate) fn closed(peer: &str) -> Failure {
    let reason = "the other end closed the control connection during the test";
    Failure::new(Fault::Unreachable, "receive from", peer, reason)
        .advise("see that end's log; the results so far are kept")
}

/// The shortest round trip of a connection so far, as the kernel knows it.
pub(crate) fn rtt_min(control: &TcpStream) -> Option<Duration> {
    let rtt_us = tcp_info(control.as_fd())?.min_rtt_us?;
    Some(Duration::from_micros(rtt_us.into()))
}

/// Sends a hello.
/// # Errors
/// As write(2).
pub fn send_hello(stream: &TcpStream, hello: Hello) -> io::Result<()> {
    (&mut &*stream).write_all(&hello.to_bytes())
}

/// Reads a hello of any version within `timeout`.
/// # Errors
/// When it does not come whole in time, or is no hello.
pub fn read_hello(stream: &TcpStream, timeout: Duration) -> Result<Hello, Failure> {
    let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain);
    let mut bytes = [0; CONTROL_HELLO_BYTES];
    read_exactly(stream, &mut bytes, timeout).map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::UnexpectedEof => "it closed the connection without a hello".to_owned(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                format!("no hello within {timeout:?}")
            }
            _ => words_of(&error),
        };
        Failure::new(Fault::PeerMisbehaved, "read hello of", &peer, reason)
    })?;
    Hello::parse(&bytes)
        .map_err(|error| Failure::new(Fault::PeerMisbehaved, "read hello of", &peer, error))
}

/// Reads what follows the common part of a data hello.
/// # Errors
/// When it does not come whole in time, or is malformed.
pub fn read_data_hello_rest(
    stream: &TcpStream,
    common: Hello,
    timeout: Duration,
) -> Result<DataHello, Failure> {
    let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain);
    let fail = |reason: String| {
        Failure::new(Fault::PeerMisbehaved, "read data hello of", peer.clone(), reason)
    };
    VERSIONS.with_client(common.version).map_err(|error| fail(error.to_string()))?;
    let mut rest = [0; DATA_HELLO_BYTES - CONTROL_HELLO_BYTES];
    read_exactly(stream, &mut rest, timeout).map_err(|error| fail(error.to_string()))?;
    DataHello::parse_rest(&rest).map_err(|error| fail(error.to_string()))
}

/// Fills `bytes` within `timeout`, however slowly they drip in.
pub(crate) fn read_exactly(
    stream: &TcpStream,
    bytes: &mut [u8],
    timeout: Duration,
) -> io::Result<()> {
    let end = monotonic() + timeout;
    let mut filled = 0;
    while filled < bytes.len() {
        let left = end.since(monotonic());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match (&mut &*stream).read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    stream.set_read_timeout(None)
}

/// An address as people write it: IPv4 peers of a socket for both families are IPv4.
pub(crate) fn plain(address: SocketAddr) -> String {
    SocketAddr::new(address.ip().to_canonical(), address.port()).to_string()
}
