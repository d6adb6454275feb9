//! The sockets of UDP streams.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use linerate_core::record::UdpTest;
use linerate_core::theory::framing::{IPV4_HEADER_BYTES, IPV6_HEADER_BYTES, UDP_HEADER_BYTES};
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};

use super::search;

/// Blocking calls come back this often to look at the flags.
pub(super) const CALL_TIMEOUT: Duration = Duration::from_millis(20);

/// Largest buffer that a receiver's socket asks for where the test names none, and all of a test's
/// together; and that of a search, whose rates are to be offered whatever the link makes of them.
const BUFFER_BYTES_MAX: u64 = 32 << 20;
const BUFFERS_BYTES_MAX: u64 = 64 << 20;

/// The largest buffer of one socket of a test.
pub(super) fn buffer_bytes_max(request: &UdpTest) -> u64 {
    let streams = u64::from(request.streams) * request.each_direction().len() as u64;
    (BUFFERS_BYTES_MAX / streams.max(1)).min(BUFFER_BYTES_MAX)
}

/// Opens a socket for a stream of a test.
pub(crate) fn open_socket(
    request: &UdpTest,
    local: SocketAddr,
) -> linerate_sys::Result<DatagramSocket> {
    opened(request, local, false)
}

/// The same at a port that other sockets of this program have, too.
pub(crate) fn open_socket_at(
    request: &UdpTest,
    local: SocketAddr,
) -> linerate_sys::Result<DatagramSocket> {
    opened(request, local, true)
}

fn opened(
    request: &UdpTest,
    local: SocketAddr,
    shared: bool,
) -> linerate_sys::Result<DatagramSocket> {
    let options = DatagramOptions {
        local,
        window_bytes: request.window_bytes,
        buffer_bytes_max: buffer_bytes_max(request),
        dscp: request.dscp,
        shared,
    };
    let socket = DatagramSocket::open(&options)?;
    let searches = request.search.is_some();
    socket.set_call_timeout(if searches { search::CALL_TIMEOUT } else { CALL_TIMEOUT })?;
    Ok(socket)
}

/// IP and UDP headers in the family of an address.
pub(super) const fn header_bytes(address: IpAddr) -> u32 {
    match address {
        IpAddr::V4(_) => IPV4_HEADER_BYTES + UDP_HEADER_BYTES,
        IpAddr::V6(_) => IPV6_HEADER_BYTES + UDP_HEADER_BYTES,
    }
}

/// The call came back to let the loop look at its flags. A refusal is that of an earlier datagram
/// whose port was closed; whether the other end is there is told by its signs of life.
pub(super) fn is_pause(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, HostUnreachable, NetworkUnreachable};
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(
        error.kind(),
        Interrupted
            | TimedOut
            | WouldBlock
            | ConnectionRefused
            | HostUnreachable
            | NetworkUnreachable
    )
}
