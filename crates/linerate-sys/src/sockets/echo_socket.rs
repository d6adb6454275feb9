//! The socket of a prober: connected, non-blocking by call, for ICMP (datagram or raw) or UDP.
//!
//! A connected socket saves the route lookup of every send (0.25 µs of 6 µs on veth) and receives
//! no packets of other hosts. Extended errors are on, so that the sender of an ICMP error is known.
//! The caller builds the payloads.

use std::io;
use std::net::{IpAddr, SocketAddr, SocketAddrV6};
use std::os::fd::AsFd;
use std::time::Duration;

use linerate_core::record::IpFamily;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::control::{self, ControlBuffer};
use crate::socket_option::{self, get_int, set_int};
use crate::timestamps::{self, Notice};
use crate::xdp_echo::{EchoHeaders, ReceivedEchoMessage, XdpEcho};
use crate::{Error, Result, icmp};

/// Option of linux/in6.h that libc does not define.
const IPV6_FLOWINFO_SEND: i32 = 33;
/// Offset of the destination port in a TCP header (RFC 9293 §3.1).
const TCP_DESTINATION_PORT_AT: u32 = 2;

/// Kind of socket for the probes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EchoKind {
    /// ICMP datagram socket, without privilege.
    IcmpDatagram,
    /// Raw ICMP socket, with CAP_NET_RAW. In IPv4 received packets start with the IP header.
    IcmpRaw,
    /// UDP socket, without privilege.
    Udp,
    /// ICMP in raw frames (AF_XDP). Received packets start with the ICMP header, and their checksum
    /// has not been verified.
    IcmpXdp,
}

/// Source of the probes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeBindSource {
    /// Local address to bind to.
    Address(IpAddr),
    /// Interface to bind to.
    Interface(String),
}

/// Options of a probing socket.
#[derive(Clone, Debug)]
pub struct EchoOptions {
    /// Address of the target; the port is used for UDP only.
    pub peer: SocketAddr,
    /// Local address or interface; by default the kernel chooses.
    pub source: Option<ProbeBindSource>,
    /// Local UDP port; by default the kernel chooses.
    pub local_port: Option<u16>,
    /// Time to live or hop limit.
    pub ttl: Option<u8>,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// Forbid fragmentation at this host and by routers.
    pub dont_fragment: bool,
    /// Report the time to live of received packets.
    pub receive_ttl: bool,
    /// Flow label of IPv6, 20 bits; by default the kernel chooses.
    pub flow_label: Option<u32>,
    /// Bytes of the receive buffer, where many answers may be queued.
    pub receive_buffer_bytes: Option<usize>,
}

/// A received packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReceivedEchoPacket {
    /// Octets written to the buffer.
    pub len: usize,
    /// Time to live, where requested and reported.
    pub ttl: Option<u8>,
    /// The kernel's time of arrival on CLOCK_REALTIME, where requested and reported.
    pub arrived_ns: Option<u64>,
    /// Traffic class, where requested and reported.
    pub class: Option<u8>,
}

impl From<ReceivedEchoMessage> for ReceivedEchoPacket {
    fn from(message: ReceivedEchoMessage) -> Self {
        let ReceivedEchoMessage { len, ttl, class } = message;
        Self { len, ttl, class, arrived_ns: None }
    }
}

/// Events that ended a wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// A packet or an error can be read.
    pub readable: bool,
    /// The error queue is not empty.
    pub notices: bool,
}

/// Step of opening a socket that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenStep {
    /// Call of socket(2): the kind needs a privilege or is not supported.
    Socket,
    /// Call of bind(2) to an address.
    BindAddress,
    /// Socket option SO_BINDTODEVICE.
    BindInterface,
    /// Another socket option.
    Option,
    /// Call of connect(2).
    Connect,
    /// AF_XDP: the next hop, the program on the interface, or the socket.
    Xdp,
}

/// Failure to open a probing socket.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct OpenError {
    /// The step that failed.
    pub step: OpenStep,
    /// The failed call, its object and the kernel's reason.
    pub error: Error,
}

impl OpenError {
    fn at_step(step: OpenStep) -> impl FnOnce(Error) -> Self {
        move |error| Self { step, error }
    }
}

/// A connected probing socket.
#[derive(Debug)]
pub struct EchoSocket {
    socket: Socket,
    family: IpFamily,
    /// AF_XDP socket for the packets; `socket` is then only used for addresses and MTU.
    xdp: Option<Box<XdpEcho>>,
}

impl EchoSocket {
    /// Opens and connects the socket.
    /// # Errors
    /// The step that failed, with its call, object and the kernel's reason.
    pub fn open(kind: EchoKind, options: &EchoOptions) -> std::result::Result<Self, OpenError> {
        let family = if options.peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        let socket = open_socket(kind, family)
            .map_err(|source| Error::new("open socket for", kind_name(kind), source))
            .map_err(OpenError::at_step(OpenStep::Socket))?;
        let mut socket = Self::from_socket(socket, options)?;
        if kind == EchoKind::IcmpXdp {
            let xdp = socket.open_xdp(options).map_err(OpenError::at_step(OpenStep::Xdp))?;
            socket.xdp = Some(Box::new(xdp));
        }
        Ok(socket)
    }

    /// Opens a raw socket for TCP segments, which the caller builds. It receives only segments to
    /// `port`; in IPv4 they start with the IP header.
    pub(crate) fn open_tcp(
        port: u16,
        options: &EchoOptions,
    ) -> std::result::Result<Self, OpenError> {
        let family = if options.peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        let domain = if family == IpFamily::V4 { Domain::IPV4 } else { Domain::IPV6 };
        let socket = Socket::new(domain, Type::RAW, Some(Protocol::TCP))
            .and_then(|socket| {
                icmp::show_only_at(socket.as_fd(), family, TCP_DESTINATION_PORT_AT, port)?;
                Ok(socket)
            })
            .map_err(|source| Error::new("open socket for", "TCP (raw)", source))
            .map_err(OpenError::at_step(OpenStep::Socket))?;
        Self::from_socket(socket, options)
    }

    fn from_socket(socket: Socket, options: &EchoOptions) -> std::result::Result<Self, OpenError> {
        let family = if options.peer.is_ipv4() { IpFamily::V4 } else { IpFamily::V6 };
        let socket = Self { socket, family, xdp: None };
        socket.bind_source(options)?;
        socket.configure(options).map_err(OpenError::at_step(OpenStep::Option))?;
        socket
            .socket
            .connect(&SockAddr::from(labelled(options)))
            .map_err(|source| Error::new("connect to", options.peer.ip(), source))
            .map_err(OpenError::at_step(OpenStep::Connect))?;
        Ok(socket)
    }

    fn open_xdp(&self, options: &EchoOptions) -> Result<XdpEcho> {
        let peer = options.peer.ip();
        let none = || Error::new("open AF_XDP socket to", peer, io::ErrorKind::AddrNotAvailable);
        XdpEcho::open(&EchoHeaders {
            source: self.local_address().ok_or_else(none)?,
            peer,
            ttl: options.ttl,
            class: options.dscp.unwrap_or(0) << 2,
            flow_label: options.flow_label.unwrap_or(0),
        })
    }

    pub(crate) fn borrowed_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.socket.as_fd()
    }

    pub(crate) const fn family(&self) -> IpFamily {
        self.family
    }

    /// Local address and port; of an ICMP datagram socket the port is the identifier.
    pub fn local_socket_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    fn bind_source(&self, options: &EchoOptions) -> std::result::Result<(), OpenError> {
        let mut address = None;
        match &options.source {
            Some(ProbeBindSource::Address(own)) => address = Some(*own),
            Some(ProbeBindSource::Interface(name)) => self
                .socket
                .bind_device(Some(name.as_bytes()))
                .map_err(|source| Error::new("bind to interface", name, source))
                .map_err(OpenError::at_step(OpenStep::BindInterface))?,
            None => {}
        }
        let port = options.local_port.unwrap_or(0);
        if address.is_none() && port == 0 {
            return Ok(());
        }
        let any = match self.family {
            IpFamily::V4 => IpAddr::from([0; 4]),
            IpFamily::V6 => IpAddr::from([0; 16]),
        };
        let address = address.unwrap_or(any);
        self.socket
            .bind(&SockAddr::from(SocketAddr::new(address, port)))
            .map_err(|source| Error::new("bind", address, source))
            .map_err(OpenError::at_step(OpenStep::BindAddress))
    }

    fn configure(&self, options: &EchoOptions) -> Result<()> {
        if let Some(bytes) = options.receive_buffer_bytes {
            self.socket
                .set_recv_buffer_size(bytes)
                .map_err(|source| Error::new("set receive buffer", bytes, source))?;
        }
        match self.family {
            IpFamily::V4 => self.configure_v4(options),
            IpFamily::V6 => self.configure_v6(options),
        }
    }

    fn configure_v4(&self, options: &EchoOptions) -> Result<()> {
        let set = |what, name, value| {
            set_int(self.socket.as_fd(), libc::SOL_IP, name, value)
                .map_err(|source| Error::new("set", what, source))
        };
        set("IP_RECVERR", libc::IP_RECVERR, 1)?;
        if let Some(ttl) = options.ttl {
            set("IP_TTL", libc::IP_TTL, i32::from(ttl))?;
        }
        if let Some(dscp) = options.dscp {
            set("IP_TOS", libc::IP_TOS, i32::from(dscp) << 2)?;
        }
        if options.dont_fragment {
            set("IP_MTU_DISCOVER", libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_DO)?;
        }
        if options.receive_ttl {
            set("IP_RECVTTL", libc::IP_RECVTTL, 1)?;
        }
        Ok(())
    }

    fn configure_v6(&self, options: &EchoOptions) -> Result<()> {
        let set = |what, name, value| {
            set_int(self.socket.as_fd(), libc::SOL_IPV6, name, value)
                .map_err(|source| Error::new("set", what, source))
        };
        set("IPV6_RECVERR", libc::IPV6_RECVERR, 1)?;
        if let Some(ttl) = options.ttl {
            set("IPV6_UNICAST_HOPS", libc::IPV6_UNICAST_HOPS, i32::from(ttl))?;
        }
        if let Some(dscp) = options.dscp {
            set("IPV6_TCLASS", libc::IPV6_TCLASS, i32::from(dscp) << 2)?;
        }
        if options.dont_fragment {
            set("IPV6_MTU_DISCOVER", libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_DO)?;
            set("IPV6_DONTFRAG", libc::IPV6_DONTFRAG, 1)?;
        }
        if options.flow_label.is_some() {
            set("IPV6_FLOWINFO_SEND", IPV6_FLOWINFO_SEND, 1)?;
        }
        if options.receive_ttl {
            set("IPV6_RECVHOPLIMIT", libc::IPV6_RECVHOPLIMIT, 1)?;
        }
        Ok(())
    }

    /// Sends one packet: one system call.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier packet, and then nothing was sent.
    #[inline]
    pub fn send_packet(&mut self, packet: &[u8]) -> io::Result<()> {
        if let Some(xdp) = &mut self.xdp {
            return xdp.send_message(packet);
        }
        rustix::net::send(&self.socket, packet, SendFlags::DONTWAIT)?;
        Ok(())
    }

    /// Receives a packet if one is queued: one system call, no control messages.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier packet.
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedEchoPacket>> {
        if let Some(xdp) = &self.xdp {
            return Ok(xdp.receive(buffer).map(ReceivedEchoPacket::from));
        }
        match rustix::net::recv(&self.socket, buffer, RecvFlags::DONTWAIT) {
            Ok((len, _)) => Ok(Some(ReceivedEchoPacket { len, ..ReceivedEchoPacket::default() })),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Receives a packet if one is queued, with its time to live and timestamp.
    /// # Errors
    /// The errors of [`Self::receive`].
    pub fn receive_with_notes(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedEchoPacket>> {
        if let Some(xdp) = &self.xdp {
            return Ok(xdp.receive(buffer).map(ReceivedEchoPacket::from));
        }
        let mut control = ControlBuffer::new();
        let Some(taken) = control::receive(self.socket.as_fd(), buffer, &mut control, 0)? else {
            return Ok(None);
        };
        let mut packet = ReceivedEchoPacket { len: taken.len, ..ReceivedEchoPacket::default() };
        control::messages(&control.0[..taken.control_len], |level, kind, data| {
            match (level, kind) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
                    packet.arrived_ns = timestamps::software_stamp(data);
                }
                (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
                    packet.ttl = u8::try_from(control::int_from_octets(data)).ok();
                }
                (libc::SOL_IP, libc::IP_TOS) => packet.class = data.first().copied(),
                (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
                    packet.class = u8::try_from(control::int_from_octets(data)).ok();
                }
                _ => {}
            }
        });
        Ok(Some(packet))
    }

    /// Waits until something can be read, `span` is over, or a signal arrives.
    pub fn wait_for_packet(&self, span: Duration) -> Ready {
        let timeout = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        };
        let fd = self.xdp.as_ref().map_or_else(|| self.socket.as_fd(), |xdp| xdp.as_fd());
        let mut fds = [PollFd::from_borrowed_fd(fd, PollFlags::IN)];
        // An interrupted poll reports nothing; the caller's loop checks its stop flag.
        let _ = rustix::event::poll(&mut fds, Some(&timeout));
        let seen = fds[0].revents();
        Ready { readable: seen.contains(PollFlags::IN), notices: seen.contains(PollFlags::ERR) }
    }

    /// Current path MTU of the kernel.
    pub fn mtu_bytes(&self) -> Option<u32> {
        let (level, name) = match self.family {
            IpFamily::V4 => (libc::SOL_IP, libc::IP_MTU),
            IpFamily::V6 => (libc::SOL_IPV6, libc::IPV6_MTU),
        };
        let mtu = get_int(self.socket.as_fd(), level, name).ok()?;
        u32::try_from(mtu).ok().filter(|mtu| *mtu > 0)
    }

    /// Local address of the probes.
    pub fn local_address(&self) -> Option<IpAddr> {
        Some(self.socket.local_addr().ok()?.as_socket()?.ip())
    }

    /// Packets dropped because the receive buffer was full, where the kernel counts them; with
    /// [`Self::show_only`] also those that the filter rejected.
    pub fn dropped_packets(&self) -> Option<u32> {
        match &self.xdp {
            Some(xdp) => xdp.dropped_replies(),
            None => socket_option::dropped_packets(self.socket.as_fd()),
        }
    }

    /// With AF_XDP: answers that arrived on another receive queue than the socket's, and were
    /// passed to the kernel.
    pub fn elsewhere(&self) -> u64 {
        self.xdp.as_ref().map_or(0, |xdp| xdp.elsewhere())
    }

    /// Attaches a filter for this identifier to a raw ICMP or AF_XDP socket.
    /// # Errors
    /// The kernel's reason.
    pub fn show_only(&self, identifier: u16) -> Result<()> {
        if let Some(xdp) = &self.xdp {
            xdp.show_only(identifier);
            return Ok(());
        }
        icmp::show_only(self.socket.as_fd(), self.family, identifier)
            .map_err(|source| Error::new("set", "SO_ATTACH_FILTER", source))
    }

    /// Switches on kernel timestamps, on request also those before the queueing discipline; they
    /// start within [`timestamps::START_DELAY`]. Sends are numbered from 0 again.
    /// # Errors
    /// The kernel's reason.
    pub fn start_stamps(&self, with_queue: bool) -> Result<()> {
        // The numbering restarts only after departures were off. Arrivals stay on meanwhile:
        // without any socket with timestamps the kernel stops them and restarts them by deferred
        // work.
        timestamps::switch_on_arrivals(self.socket.as_fd())
            .and_then(|()| timestamps::switch_on(self.socket.as_fd(), with_queue))
            .map_err(|source| Error::new("set", "SO_TIMESTAMPING", source))
    }

    /// Sets the traffic class of sent packets, and switches on that of received packets.
    /// # Errors
    /// The kernel's reason.
    pub fn use_class(&mut self, class: u8) -> Result<()> {
        if let Some(xdp) = &mut self.xdp {
            xdp.use_class(class);
            return Ok(());
        }
        let (level, of_sent, of_received) = match self.family {
            IpFamily::V4 => (libc::SOL_IP, libc::IP_TOS, libc::IP_RECVTOS),
            IpFamily::V6 => (libc::SOL_IPV6, libc::IPV6_TCLASS, libc::IPV6_RECVTCLASS),
        };
        set_int(self.socket.as_fd(), level, of_sent, class.into())
            .and_then(|()| set_int(self.socket.as_fd(), level, of_received, 1))
            .map_err(|source| Error::new("set traffic class", class, source))
    }

    /// Switches kernel timestamps off.
    pub fn stop_stamps(&self) {
        // Switching off an option of an open socket does not fail.
        let _ = timestamps::switch_off(self.socket.as_fd());
    }

    /// Reads one notice from the error queue, if there is one.
    pub fn next_notice(&self) -> Option<Notice> {
        timestamps::next_notice(self.socket.as_fd())
    }
}

/// Address of the peer with the flow label in network byte order, for connect(2) (RFC 3493 §3.3).
const fn labelled(options: &EchoOptions) -> SocketAddr {
    match (options.peer, options.flow_label) {
        (SocketAddr::V6(peer), Some(label)) => {
            let (addr, scope) = (*peer.ip(), peer.scope_id());
            SocketAddr::V6(SocketAddrV6::new(addr, peer.port(), label.to_be(), scope))
        }
        (peer, _) => peer,
    }
}

fn open_socket(kind: EchoKind, family: IpFamily) -> io::Result<Socket> {
    match kind {
        EchoKind::IcmpDatagram => icmp::open_datagram(family),
        EchoKind::IcmpRaw => icmp::open_raw(family),
        EchoKind::Udp | EchoKind::IcmpXdp => {
            let domain = if family == IpFamily::V4 { Domain::IPV4 } else { Domain::IPV6 };
            Socket::new(domain, Type::DGRAM, Some(Protocol::UDP))
        }
    }
}

const fn kind_name(kind: EchoKind) -> &'static str {
    match kind {
        EchoKind::IcmpDatagram => "ICMP (datagram)",
        EchoKind::IcmpRaw => "ICMP (raw)",
        EchoKind::Udp => "UDP",
        EchoKind::IcmpXdp => "ICMP (AF_XDP)",
    }
}
