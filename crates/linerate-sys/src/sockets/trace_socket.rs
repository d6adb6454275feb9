//! The sockets of a trace: one that sends probes, each with its time to live, and reads ICMP errors
//! of routers from its error queue (ip(7), ipv6(7)), which needs no privilege but for TCP; and a
//! raw socket that receives whole ICMP errors, which needs CAP_NET_RAW.
//!
//! The error queue has the sender of an error, its type and code, and the quoted octets after the
//! transport header (UDP) or from it on (ICMP); with IP_RECVERR_RFC4884 (Linux 5.9) also the offset
//! of extensions. It does not have the quoted IP header.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_core::record::IpFamily;
use socket2::{Domain, Protocol, Socket, Type};

use crate::control::{self, ControlBuffer};
use crate::echo_socket::{EchoKind, EchoOptions, EchoSocket, OpenError, OpenStep, ProbeBindSource};
use crate::socket_option::{get_int, set_int};
use crate::timestamps::{self, ExtendedError};
use crate::{Error, Result, icmp};

/// Option for the offset of extensions in errors (Linux 5.9).
const IP_RECVERR_RFC4884: i32 = 26;
const IPV6_RECVERR_RFC4884: i32 = 31;
/// Origins of errors that routers sent by ICMP or ICMPv6 (linux/errqueue.h).
const FROM_ROUTER: [u8; 2] = [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6];
/// Kind of a timestamp before the queueing discipline (linux/errqueue.h).
const BEFORE_QUEUE: u32 = 1;

/// A socket that sends probes of one flow.
#[derive(Debug)]
pub struct TraceSocket {
    socket: EchoSocket,
    /// Last set time to live and type of service of the socket.
    ttl: Cell<Option<u8>>,
    tos: Cell<Option<u8>>,
    /// For TCP probes: a bound socket that reserves their port and never answers.
    port: Option<Socket>,
}

/// An ICMP error about a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeIcmpError {
    /// Sender of the error; `None` is this host.
    pub from: Option<IpAddr>,
    /// The kernel's error number.
    pub errno: i32,
    /// Type of the ICMP error.
    pub kind: u8,
    /// Code of the ICMP error.
    pub code: u8,
    /// Largest allowed packet, of an error for a packet that is too big.
    pub info: u32,
    /// Octets of the quote in the caller's buffer.
    pub len: usize,
    /// Offset of extensions in the quote.
    pub extension_at: Option<usize>,
    /// The kernel's time of arrival on CLOCK_REALTIME.
    pub arrived_ns: Option<u64>,
}

/// A message from the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A probe was handed to the driver: its number among the sends, and CLOCK_REALTIME in ns.
    Departed(u32, u64),
    /// An ICMP error about a probe.
    Message(ProbeIcmpError),
    /// A message of another kind.
    Nothing,
}

impl TraceSocket {
    /// Opens a socket to `peer`: datagrams to its port, or echo requests.
    /// # Errors
    /// The step that failed.
    pub fn open(
        kind: EchoKind,
        peer: SocketAddr,
        source: Option<ProbeBindSource>,
    ) -> std::result::Result<Self, OpenError> {
        let socket = EchoSocket::open(kind, &options(peer, source))?;
        Ok(Self::from_socket(socket, None))
    }

    /// Opens a raw socket for TCP segments to `peer`, which needs CAP_NET_RAW, and reserves a port
    /// for them. The kernel resets a connection that the peer accepts.
    /// # Errors
    /// The step that failed.
    pub fn open_tcp(
        peer: SocketAddr,
        source: Option<ProbeBindSource>,
    ) -> std::result::Result<Self, OpenError> {
        let failed = |call, step| {
            move |source| OpenError { step, error: Error::new(call, "a TCP port", source) }
        };
        let domain = if peer.is_ipv4() { Domain::IPV4 } else { Domain::IPV6 };
        let port = Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
            .map_err(failed("open socket for", OpenStep::Socket))?;
        let any: IpAddr =
            if peer.is_ipv4() { [0; 4].into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
        let address = match source {
            Some(ProbeBindSource::Address(address)) => address,
            _ => any,
        };
        port.bind(&SocketAddr::new(address, 0).into())
            .map_err(failed("bind", OpenStep::BindAddress))?;
        let bound = port.local_addr().ok().and_then(|address| address.as_socket());
        let number = bound.map_or(0, |address| address.port());
        let socket = EchoSocket::open_tcp(number, &options(peer, source))?;
        Ok(Self::from_socket(socket, Some(port)))
    }

    fn from_socket(socket: EchoSocket, port: Option<Socket>) -> Self {
        let trace = Self { socket, ttl: Cell::new(None), tos: Cell::new(None), port };
        trace.forbid_fragments();
        trace
    }

    /// Sets DF, ignores the kernel's path MTU, and switches on the offset of extensions. The calls
    /// fail only on kernels without these options, which work without them.
    fn forbid_fragments(&self) {
        let fd = self.socket.borrowed_fd();
        let _ = match self.socket.family() {
            IpFamily::V4 => {
                let probe = libc::IP_PMTUDISC_PROBE;
                let _ = set_int(fd, libc::SOL_IP, libc::IP_MTU_DISCOVER, probe);
                set_int(fd, libc::SOL_IP, IP_RECVERR_RFC4884, 1)
            }
            IpFamily::V6 => {
                let probe = libc::IPV6_PMTUDISC_PROBE;
                let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, probe);
                let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_DONTFRAG, 1);
                set_int(fd, libc::SOL_IPV6, IPV6_RECVERR_RFC4884, 1)
            }
        };
    }

    /// Sends one probe with this time to live and type of service.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier probe, and then nothing was sent.
    pub fn send_probe(&mut self, payload: &[u8], ttl: u8, tos: u8) -> io::Result<()> {
        let (level, ttl_name, tos_name) = match self.socket.family() {
            IpFamily::V4 => (libc::SOL_IP, libc::IP_TTL, libc::IP_TOS),
            IpFamily::V6 => (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS, libc::IPV6_TCLASS),
        };
        for (known, name, value) in [(&self.ttl, ttl_name, ttl), (&self.tos, tos_name, tos)] {
            if known.get() != Some(value) {
                set_int(self.socket.borrowed_fd(), level, name, i32::from(value))?;
                known.set(Some(value));
            }
        }
        // An error of an earlier probe is also in the queue; without this the send would fail by
        // it.
        let _ = get_int(self.socket.borrowed_fd(), libc::SOL_SOCKET, libc::SO_ERROR);
        self.socket.send_packet(payload)
    }

    /// Receives an answer of the peer, if one is queued: its length and time of arrival.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier probe.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        let packet = self.socket.receive_with_notes(buffer)?;
        Ok(packet.map(|packet| (packet.len, packet.arrived_ns)))
    }

    /// Reads one message from the error queue, with its quote; `None` when it is empty.
    pub fn next_told(&self, buffer: &mut [u8]) -> Option<Told> {
        let mut control = ControlBuffer::new();
        let fd = self.socket.borrowed_fd();
        let taken = control::receive(fd, buffer, &mut control, libc::MSG_ERRQUEUE).ok()??;
        let mut stamp = None;
        let mut error = None;
        control::messages(&control.0[..taken.control_len], |level, kind, data| {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    stamp = timestamps::software_stamp(data)
                }
                (libc::SOL_IP, libc::IP_RECVERR) | (libc::SOL_IPV6, libc::IPV6_RECVERR) => {
                    error = ExtendedError::read(data);
                }
                _ => {}
            }
        });
        let Some(error) = error else { return Some(Told::Nothing) };
        if error.origin == libc::SO_EE_ORIGIN_TIMESTAMPING {
            let departed = stamp.filter(|_| error.info != BEFORE_QUEUE);
            return Some(departed.map_or(Told::Nothing, |at| Told::Departed(error.data, at)));
        }
        // struct sock_ee_data_rfc4884: length (2), flags (1), reserved (1), in ee_data.
        let octets = error.data.to_ne_bytes();
        let at = usize::from(u16::from_ne_bytes([octets[0], octets[1]]));
        Some(Told::Message(ProbeIcmpError {
            from: error.from.filter(|_| FROM_ROUTER.contains(&error.origin)),
            errno: error.errno,
            kind: error.kind,
            code: error.code,
            info: error.info,
            len: taken.len,
            extension_at: (at > 0 && at < taken.len && octets[2] == 0).then_some(at),
            arrived_ns: stamp,
        }))
    }

    /// Switches on kernel timestamps; sends are numbered from 0 again.
    /// # Errors
    /// The kernel's reason.
    pub fn start_stamps(&self) -> Result<()> {
        self.socket.start_stamps(false)
    }

    /// Local address and port of the probes; the port of an ICMP datagram socket is the identifier.
    pub fn local_address(&self) -> Option<SocketAddr> {
        let local = self.socket.local_socket_address()?;
        let Some(port) = &self.port else { return Some(local) };
        Some(SocketAddr::new(local.ip(), port.local_addr().ok()?.as_socket()?.port()))
    }

    /// Attaches a filter for this identifier to a raw socket.
    /// # Errors
    /// The kernel's reason.
    pub fn show_only(&self, identifier: u16) -> Result<()> {
        self.socket.show_only(identifier)
    }
}

impl AsFd for TraceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.borrowed_fd()
    }
}

const fn options(peer: SocketAddr, source: Option<ProbeBindSource>) -> EchoOptions {
    EchoOptions {
        peer,
        source,
        local_port: None,
        ttl: None,
        dscp: None,
        dont_fragment: false,
        receive_ttl: false,
        flow_label: None,
        receive_buffer_bytes: None,
    }
}

/// A raw socket that receives whole ICMP errors.
#[derive(Debug)]
pub struct ErrorListener {
    socket: Socket,
    family: IpFamily,
}

impl ErrorListener {
    /// Opens the raw socket.
    /// # Errors
    /// The kernel's reason, usually a missing privilege.
    pub fn open(family: IpFamily) -> Result<Self> {
        let socket = icmp::open_for_errors(family)
            .map_err(|source| Error::new("open socket for", "ICMP errors (raw)", source))?;
        timestamps::switch_on_arrivals(socket.as_fd())
            .map_err(|source| Error::new("set", "SO_TIMESTAMPING", source))?;
        Ok(Self { socket, family })
    }

    /// Receives a message if one is queued: its length (in IPv4 from the IP header on), its sender,
    /// and the kernel's time of arrival.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, IpAddr, Option<u64>)> {
        let mut control = ControlBuffer::new();
        // SAFETY: all-zero is a valid sockaddr_storage.
        let mut name: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let fd = self.socket.as_fd();
        let taken = control::receive_named(fd, buffer, &mut control, 0, Some(&mut name)).ok()??;
        let mut stamp = None;
        control::messages(&control.0[..taken.control_len], |level, kind, data| {
            if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
                stamp = timestamps::software_stamp(data);
            }
        });
        // SAFETY: a sockaddr_storage is this many initialised octets.
        let octets = unsafe {
            std::slice::from_raw_parts((&raw const name).cast::<u8>(), size_of_val(&name))
        };
        Some((taken.len, timestamps::read_address(octets)?, stamp))
    }

    /// IP version of the messages.
    pub const fn family(&self) -> IpFamily {
        self.family
    }
}

impl AsFd for ErrorListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
