//! The socket of a session.

use std::net::SocketAddr;
use std::time::Duration;

use linerate_core::record::Failure;
use linerate_sys::datagram_socket::{DatagramOptions, DatagramSocket};

use crate::failure::system;

/// A call that waits for room in the socket's queue comes back after this.
const CALL_TIMEOUT: Duration = Duration::from_millis(20);
/// Room for a round's largest train, as the kernel counts it.
const BUFFER_BYTES_MAX: u64 = 16 << 20;

/// A socket whose datagrams leave whole, and come with the kernel's times.
pub(super) fn open_train_socket(local: SocketAddr) -> Result<DatagramSocket, Failure> {
    let options = DatagramOptions {
        local,
        window_bytes: None,
        buffer_bytes_max: BUFFER_BYTES_MAX,
        dscp: None,
        shared: false,
    };
    let socket = DatagramSocket::open(&options).map_err(|error| system(&error))?;
    socket.set_call_timeout(CALL_TIMEOUT).map_err(|error| system(&error))?;
    socket.never_fragment().map_err(|error| system(&error))?;
    socket.note_arrivals();
    Ok(socket)
}
