//! The control connection: hellos over a socket, with limits in time, and what may go wrong.

use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::{DEFAULT_PORT, Failure, Fault, Via};
use linerate_proto::dialect::TestFailureReason;
use linerate_proto::native::{
    Accept, CONTROL_HELLO_BYTES, DATA_HELLO_BYTES, DataHello, Fitting, Hello, HelloKind,
    NativeClientMachine, NativePeerFault, NativeWireError, Refuse, RefuseCode, Token, VERSIONS,
};
use linerate_sys::clock::monotonic;
use linerate_sys::tcp::{self, TcpOptions, tcp_info};

use crate::failure::words_of;
use crate::flow::Words;
use crate::flow::peer::{connect_failure, plain_address};

/// The peer broke the protocol.
pub(crate) fn misbehaved(peer: &str, error: &NativeWireError) -> Failure {
    let fault = match error {
        NativeWireError::Version(_) => Fault::PeerIncompatible,
        _ => Fault::PeerMisbehaved,
    };
    Failure::new(fault, "talk to", peer, error)
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

impl Words for NativeClientMachine {
    fn failure(peer: &str, reason: TestFailureReason<NativePeerFault>) -> Failure {
        match reason {
            TestFailureReason::Peer(NativePeerFault::Wire(error)) => misbehaved(peer, &error),
            TestFailureReason::Peer(NativePeerFault::Refused(refuse)) => refused(peer, &refuse),
            TestFailureReason::Peer(NativePeerFault::Aborted(reason)) => Failure::new(
                Fault::PeerRefused,
                "test with",
                peer,
                format!("the server aborted: {reason}"),
            ),
            TestFailureReason::Closed => closed(peer),
            TestFailureReason::Stopped => {
                Failure::new(Fault::Unreachable, "test with", peer, "stopped before the test began")
            }
            _ => silent(peer),
        }
    }
}

/// The longest time after which a server is asked again: no line in front of one is a day long.
const RETRY_AFTER_MS_MAX: u64 = 86_400_000;

/// The failure that a server's no is.
pub(crate) fn refused(peer: &str, refuse: &Refuse) -> Failure {
    let failure = Failure::new(Fault::PeerRefused, "ask for a test with", peer, &refuse.reason);
    if let Some(fits) = &refuse.fits {
        return failure.advise(format!("what it lets in: {}", command_of(peer, fits)));
    }
    match (refuse.code, refuse.retry_after_ms) {
        (RefuseCode::Busy, Some(ms)) => {
            let ms = ms.min(RETRY_AFTER_MS_MAX);
            failure.advise(format!("try again in about {} s", ms.div_ceil(1000))).retry_after(ms)
        }
        (RefuseCode::Limit, _) => failure.advise("ask for less, or raise the server's limit"),
        (RefuseCode::Policy, _) => {
            failure.advise("the server's policy decides: linerate policy explain, on its host")
        }
        _ => failure,
    }
}

/// The command of a test that a server would let in.
fn command_of(peer: &str, fits: &Fitting) -> String {
    let kind = if fits.over_udp { "udp" } else { "tcp" };
    let mut command = match peer.parse::<SocketAddr>() {
        Ok(at) if at.port() == DEFAULT_PORT => format!("linerate {kind} {}", at.ip()),
        Ok(at) => format!("linerate {kind} {} -p {}", at.ip(), at.port()),
        Err(_) => format!("linerate {kind} {peer}"),
    };
    if let Some(ms) = fits.time_ms {
        command.push_str(&match ms % 1000 {
            0 => format!(" -t {}s", ms / 1000),
            _ => format!(" -t {ms}ms"),
        });
    }
    if let Some(bps) = fits.stream_bps {
        command.push_str(&match bps {
            bps if bps % 1_000_000 == 0 => format!(" -b {}M", bps / 1_000_000),
            bps if bps % 1_000 == 0 => format!(" -b {}k", bps / 1_000),
            bps => format!(" -b {bps}"),
        });
    }
    if fits.streams > 1 {
        command.push_str(&format!(" -P {}", fits.streams));
    }
    if fits.both_ways {
        command.push_str(" --bidir");
    }
    command
}

/// A control connection whose hellos are done.
pub(crate) fn connect_control(
    server: SocketAddr,
    local: Option<IpAddr>,
    timeout: Duration,
) -> Result<TcpStream, Failure> {
    let stream = tcp::connect(server, local, &TcpOptions::control(), timeout)
        .map_err(|error| connect_failure(&error))?;
    send_hello(&stream, Hello::new(HelloKind::Control)).map_err(|error| {
        Failure::new(Fault::Unreachable, "send hello to", server.to_string(), words_of(&error))
    })?;
    let hello = read_hello(&stream, timeout);
    let hello = hello.map_err(|failure| failure.advise(advice_of_port(server.port())))?;
    VERSIONS.with_server(hello.version).map_err(|error| {
        Failure::new(Fault::PeerIncompatible, "talk to", server.to_string(), error)
            .advise("install the same version at both ends")
    })?;
    Ok(stream)
}

/// The advice about a server that may be that of another program by its port, and so answers no
/// hello.
fn advice_of_port(port: u16) -> String {
    let others = [Via::Iperf3, Via::Iperf2, Via::Nuttcp];
    match others.iter().find(|via| via.default_port() == port) {
        Some(via) => format!(
            "{port} is the port of {0}: give --via {0}, or the port of `linerate serve`, \
             {DEFAULT_PORT}",
            via.name()
        ),
        None => "is it `linerate serve`?".to_owned(),
    }
}

/// The token that a server gave a test.
pub(crate) fn token_of(accept: &Accept, server: SocketAddr) -> Result<Token, Failure> {
    Token::from_hex(&accept.token).ok_or_else(|| {
        let reason = "its token is not 32 hexadecimal digits";
        Failure::new(Fault::PeerMisbehaved, "talk to", plain_address(server), reason)
    })
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
    let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain_address);
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
    let peer = stream.peer_addr().map_or_else(|_| "a peer".to_owned(), plain_address);
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
        let left = end.duration_since(monotonic());
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
