//! Connections and the cookies that they begin with.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use linerate_proto::iperf3::{COOKIE_BYTES, Cookie};

use crate::failure::words_of;
use crate::flow;
use crate::flow::peer::plain_address;
use crate::flow::tcp::control::read_exactly;

/// A client has this long for its cookie.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection whose cookie has been read.
#[derive(Debug)]
pub struct Iperf3Connection {
    /// The control connection of the client.
    pub stream: TcpStream,
    /// The client's address and port.
    pub peer: SocketAddr,
    /// Number of the connection in the order of accepting: the order gives streams their direction
    /// and number.
    pub serial: u64,
}

/// Where data connections find the test that waits for their cookie. One that nobody waits for is a
/// control connection.
pub type Registry = flow::registry::Registry<Cookie, Iperf3Connection>;
pub(super) type Registration = flow::registry::Registration<Cookie, Iperf3Connection>;

/// Reads the first bytes of a connection.
/// # Errors
/// When they are no cookie, or do not come in time.
pub fn read_cookie(stream: &TcpStream, peer: SocketAddr) -> Result<Cookie, Failure> {
    let fail = |reason: String| {
        Failure::new(Fault::PeerMisbehaved, "cookie of", plain_address(peer), reason)
    };
    let mut bytes = [0; COOKIE_BYTES];
    read_exactly(stream, &mut bytes, COOKIE_TIMEOUT).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => fail("it closed the connection without one".into()),
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
            fail(format!("none came within {COOKIE_TIMEOUT:?}"))
        }
        _ => fail(words_of(&error)),
    })?;
    Cookie::parse(&bytes).map_err(|error| fail(error.to_string()))
}
