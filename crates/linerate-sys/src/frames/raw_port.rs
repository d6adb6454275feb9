//! Sends and receives single frames of an interface (packet(7)): neighbour discovery, learning
//! frames, keep-alives. It takes two calls a frame; generators and counters are faster.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::AsRawFd;
use std::time::Duration;

use socket2::{Domain, Socket, Type};

use crate::{Error, Result};

/// Bytes of the longest received frame; longer ones are cut.
const FRAME_BYTES: usize = 2048;

/// A raw socket of an interface for single frames.
#[derive(Debug)]
pub struct RawPort {
    socket: Socket,
    name: String,
    index: u32,
    hardware_address: [u8; 6],
}

impl RawPort {
    /// Opens an interface of the calling thread's network namespace.
    /// # Errors
    /// Without CAP_NET_RAW, without such an interface, and when it is not an Ethernet one.
    pub fn open(name: &str) -> Result<Self> {
        let failed = |source| Error::new("send and receive frames on", name, source);
        // Protocol 0 receives nothing until the socket is bound.
        let socket = Socket::new(Domain::PACKET, Type::RAW, None).map_err(failed)?;
        let index = rustix::net::netdevice::name_to_index(&socket, name)
            .map_err(|errno| failed(errno.into()))?;
        let mut address = address_of(index);
        bind_address(&socket, &address)
            .and_then(|()| name_of(&socket, &mut address))
            .map_err(failed)?;
        if address.sll_hatype != libc::ARPHRD_ETHER || address.sll_halen != 6 {
            return Err(failed(io::Error::other("it is not an Ethernet interface")));
        }
        let mut hardware_address = [0; 6];
        hardware_address.copy_from_slice(&address.sll_addr[..6]);
        Ok(Self { socket, name: name.to_owned(), index, hardware_address })
    }

    /// Index of the interface.
    pub const fn index(&self) -> u32 {
        self.index
    }

    /// MAC address of the interface.
    pub const fn hardware_address(&self) -> [u8; 6] {
        self.hardware_address
    }

    /// Sends one frame, without FCS.
    /// # Errors
    /// When the interface is down, or the frame is too long.
    pub fn send_frame(&self, frame: &[u8]) -> Result<()> {
        let mut sent = self.socket.send(frame);
        // The kernel reports once that the interface was down, even when it is up again.
        if sent.as_ref().is_err_and(|error| error.raw_os_error() == Some(libc::ENETDOWN)) {
            sent = self.socket.send(frame);
        }
        sent.map(|_| ()).map_err(|source| Error::new("send a frame on", &self.name, source))
    }

    /// Receives the next frame within `timeout`, without frames that this host sends.
    /// # Errors
    /// When the interface goes down or is removed.
    pub fn receive(&self, timeout: Duration) -> Result<Option<Vec<u8>>> {
        let failed = |source| Error::new("receive a frame on", &self.name, source);
        self.socket
            .set_read_timeout(Some(timeout.max(Duration::from_millis(1))))
            .map_err(failed)?;
        let mut room = [MaybeUninit::uninit(); FRAME_BYTES];
        let (length, from) = match self.socket.recv_from(&mut room) {
            Ok(received) => received,
            Err(error) if is_nothing(&error) => return Ok(None),
            Err(error) => return Err(failed(error)),
        };
        // SAFETY: the address of a packet socket's frame is a sockaddr_ll, which fits in the
        // storage that the kernel filled.
        let kind = unsafe { (*from.as_ptr().cast::<libc::sockaddr_ll>()).sll_pkttype };
        if kind == libc::PACKET_OUTGOING {
            return Ok(None);
        }
        // SAFETY: the kernel wrote the first `length` octets.
        let frame = room[..length].iter().map(|octet| unsafe { octet.assume_init() }).collect();
        Ok(Some(frame))
    }
}

fn is_nothing(error: &io::Error) -> bool {
    use io::ErrorKind::{Interrupted, TimedOut, WouldBlock};
    matches!(error.kind(), Interrupted | TimedOut | WouldBlock)
}

fn address_of(index: u32) -> libc::sockaddr_ll {
    // SAFETY: all-zero is a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index.cast_signed();
    address
}

fn bind_address(socket: &Socket, address: &libc::sockaddr_ll) -> io::Result<()> {
    let len = size_of_val(address) as libc::socklen_t;
    // SAFETY: the kernel reads `len` octets of `address` during the call.
    let result = unsafe { libc::bind(socket.as_raw_fd(), std::ptr::from_ref(address).cast(), len) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads the hardware type and address of a bound socket's interface.
fn name_of(socket: &Socket, address: &mut libc::sockaddr_ll) -> io::Result<()> {
    let mut len = size_of_val(address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `address` during the call.
    let result = unsafe {
        libc::getsockname(socket.as_raw_fd(), std::ptr::from_mut(address).cast(), &raw mut len)
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
