//! The sockets of a trace: one that sends probes with a time to live each and takes what routers
//! say of them from its error queue (ip(7), ipv6(7)), which needs no privilege but for TCP; and a
//! raw one that takes the routers' messages whole, which needs CAP_NET_RAW.
//!
//! The error queue gives the sender of a message, its kind, and what is quoted behind the quoted
//! transport header (UDP) or from it on (ICMP); with IP_RECVERR_RFC4884 (Linux 5.9) also where
//! extensions begin. It does not give the quoted IP header.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

use linerate_core::record::Family;
use socket2::{Domain, Protocol, Socket, Type};

use crate::control::{self, Control};
use crate::echo_socket::{EchoKind, EchoOptions, EchoSocket, OpenError, OpenStep, Source};
use crate::socket_option::{get_int, set_int};
use crate::timestamps::{self, ExtendedError};
use crate::{Error, Result, icmp};

/// Linux 5.9: an extension's place comes with an error.
const IP_RECVERR_RFC4884: i32 = 26;
const IPV6_RECVERR_RFC4884: i32 = 31;
/// linux/errqueue.h: the error is a router's, by ICMP or ICMPv6.
const FROM_ROUTER: [u8; 2] = [libc::SO_EE_ORIGIN_ICMP, libc::SO_EE_ORIGIN_ICMP6];
/// linux/errqueue.h: a stamp from before the queueing discipline.
const BEFORE_QUEUE: u32 = 1;

/// A socket that sends probes of one flow.
#[derive(Debug)]
pub struct TraceSocket {
    socket: EchoSocket,
    /// What the socket was last told: time to live, type of service.
    ttl: Cell<Option<u8>>,
    tos: Cell<Option<u8>>,
    /// Of TCP probes: keeps their port from all other programs, and answers nothing.
    port: Option<Socket>,
}

/// What a router said of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Who said it; `None` is this host.
    pub from: Option<IpAddr>,
    /// The kernel's error number.
    pub errno: i32,
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// MTU of a packet that is too big.
    pub info: u32,
    /// Octets of the quote in the caller's buffer.
    pub len: usize,
    /// Where in these extensions begin.
    pub extension_at: Option<usize>,
    /// The kernel's time of arrival on CLOCK_REALTIME.
    pub arrived_ns: Option<u64>,
}

/// Something from the error queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// A probe was handed to the driver: its number among the sends, and CLOCK_REALTIME in ns.
    Departed(u32, u64),
    /// Something was said of a probe.
    Message(Message),
    /// Something else.
    Nothing,
}

impl TraceSocket {
    /// Opens a socket to `peer`: datagrams to its port, or echo requests.
    /// # Errors
    /// The step that failed.
    pub fn open(
        kind: EchoKind,
        peer: SocketAddr,
        source: Option<Source>,
    ) -> std::result::Result<Self, OpenError> {
        let socket = EchoSocket::open(kind, &options(peer, source))?;
        Ok(Self::over(socket, None))
    }

    /// Opens a raw socket for TCP segments to `peer`, which takes CAP_NET_RAW, and a port for them
    /// that no other program gets. The kernel resets what the peer accepts.
    /// # Errors
    /// The step that failed.
    pub fn open_tcp(
        peer: SocketAddr,
        source: Option<Source>,
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
            Some(Source::Address(address)) => address,
            _ => any,
        };
        port.bind(&SocketAddr::new(address, 0).into())
            .map_err(failed("bind", OpenStep::BindAddress))?;
        let number = port.local_addr().ok().and_then(|it| it.as_socket()).map_or(0, |it| it.port());
        let socket = EchoSocket::open_tcp(number, &options(peer, source))?;
        Ok(Self::over(socket, Some(port)))
    }

    fn over(socket: EchoSocket, port: Option<Socket>) -> Self {
        let it = Self { socket, ttl: Cell::new(None), tos: Cell::new(None), port };
        it.forbid_fragments();
        it
    }

    /// Packets leave with DF set and whatever the kernel knows of the path, and an older kernel
    /// tells no place of extensions: both are refused only where the option is not there.
    fn forbid_fragments(&self) {
        let fd = self.socket.fd();
        let _ = match self.socket.family() {
            Family::V4 => {
                let probe = libc::IP_PMTUDISC_PROBE;
                let _ = set_int(fd, libc::SOL_IP, libc::IP_MTU_DISCOVER, probe);
                set_int(fd, libc::SOL_IP, IP_RECVERR_RFC4884, 1)
            }
            Family::V6 => {
                let probe = libc::IPV6_PMTUDISC_PROBE;
                let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_MTU_DISCOVER, probe);
                let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_DONTFRAG, 1);
                set_int(fd, libc::SOL_IPV6, IPV6_RECVERR_RFC4884, 1)
            }
        };
    }

    /// Sends one probe.
    /// # Errors
    /// The kernel's reason; an error of an earlier probe may be told here instead of sending.
    pub fn send(&mut self, payload: &[u8], ttl: u8, tos: u8) -> io::Result<()> {
        let (level, ttl_name, tos_name) = match self.socket.family() {
            Family::V4 => (libc::SOL_IP, libc::IP_TTL, libc::IP_TOS),
            Family::V6 => (libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS, libc::IPV6_TCLASS),
        };
        for (known, name, value) in [(&self.ttl, ttl_name, ttl), (&self.tos, tos_name, tos)] {
            if known.get() != Some(value) {
                set_int(self.socket.fd(), level, name, i32::from(value))?;
                known.set(Some(value));
            }
        }
        // An error of an earlier probe is in the queue too; here it would stand in for the send.
        let _ = get_int(self.socket.fd(), libc::SOL_SOCKET, libc::SO_ERROR);
        self.socket.send(payload)
    }

    /// Takes an answer of the peer, if one is there.
    /// # Errors
    /// The kernel's reason; errors of earlier probes are told here too.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<u64>)>> {
        let packet = self.socket.receive_with_notes(buffer)?;
        Ok(packet.map(|packet| (packet.len, packet.arrived_ns)))
    }

    /// Takes one thing from the error queue with its quote, or `None` when it is empty.
    pub fn next_told(&self, buffer: &mut [u8]) -> Option<Told> {
        let mut control = Control::new();
        let fd = self.socket.fd();
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
        Some(Told::Message(Message {
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

    /// Asks for kernel timestamps; sends are numbered from 0 from here on.
    /// # Errors
    /// The kernel's reason.
    pub fn start_stamps(&self) -> Result<()> {
        self.socket.start_stamps(false)
    }

    /// Address and port that probes leave from; the port of an ICMP datagram socket is the
    /// identifier.
    pub fn local(&self) -> Option<SocketAddr> {
        let local = self.socket.local_socket_address()?;
        let Some(port) = &self.port else { return Some(local) };
        Some(SocketAddr::new(local.ip(), port.local_addr().ok()?.as_socket()?.port()))
    }

    /// Keeps answers with another identifier away from a raw socket.
    /// # Errors
    /// The kernel's reason.
    pub fn show_only(&self, identifier: u16) -> Result<()> {
        self.socket.show_only(identifier)
    }
}

impl AsFd for TraceSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.fd()
    }
}

const fn options(peer: SocketAddr, source: Option<Source>) -> EchoOptions {
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

/// A raw socket that takes what routers say, whole.
#[derive(Debug)]
pub struct ErrorListener {
    socket: Socket,
    family: Family,
}

impl ErrorListener {
    /// Opens it.
    /// # Errors
    /// The kernel's reason, for want of a privilege before all.
    pub fn open(family: Family) -> Result<Self> {
        let socket = icmp::open_for_errors(family)
            .map_err(|source| Error::new("open socket for", "ICMP errors (raw)", source))?;
        timestamps::switch_on_arrivals(socket.as_fd())
            .map_err(|source| Error::new("set", "SO_TIMESTAMPING", source))?;
        Ok(Self { socket, family })
    }

    /// Takes a message if one is there: its octets, in IPv4 from the IP header on; who sent it;
    /// the kernel's time of arrival.
    pub fn receive(&self, buffer: &mut [u8]) -> Option<(usize, IpAddr, Option<u64>)> {
        let mut control = Control::new();
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

    /// IP version of its messages.
    pub const fn family(&self) -> Family {
        self.family
    }
}

impl AsFd for ErrorListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
