//! The socket of a UDP responder: receives a datagram and answers from the address to which it was
//! sent (IP_PKTINFO, ip(7); IPV6_PKTINFO, RFC 3542 §6), so that a connected client accepts the
//! answer. On request with the time to live, traffic class and kernel timestamps of each datagram.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, Protocol, SockAddr, SockAddrStorage, Socket, Type};

use crate::control::{self, ControlBuffer};
use crate::socket_option::set_int;
use crate::timestamps::{self, Notice};
use crate::{Error, Result};

/// Largest time to live, which STAMP uses (RFC 8762 §4.1 by RFC 5357), so that the sender can count
/// the hops.
const TTL_MAX: i32 = 255;

/// A bound UDP socket for answering.
#[derive(Debug)]
pub struct AnswerSocket {
    socket: Socket,
}

/// A received datagram's source and destination address, to which and from which it is answered.
#[derive(Clone)]
pub struct ReceivedUdpRequest {
    source: libc::sockaddr_storage,
    source_len: libc::socklen_t,
    control: ControlBuffer,
    control_len: usize,
    len: usize,
    notes: ArrivalFields,
}

/// Header fields and timestamp of a received datagram, those that the socket was set up for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArrivalFields {
    /// Destination address of the datagram.
    pub local: Option<IpAddr>,
    /// Time to live or hop limit on arrival.
    pub ttl: Option<u8>,
    /// Traffic class on arrival: DSCP and ECN.
    pub tos: Option<u8>,
    /// The kernel's time of arrival on CLOCK_REALTIME.
    pub arrived_ns: Option<u64>,
}

impl ReceivedUdpRequest {
    /// Length of the datagram in octets.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Source address and port of the datagram.
    pub fn source(&self) -> Option<SocketAddr> {
        let mut storage = SockAddrStorage::zeroed();
        // SAFETY: the storage is as large as the type that it is viewed as.
        unsafe { *storage.view_as::<libc::sockaddr_storage>() = self.source };
        // SAFETY: the kernel wrote an address of `source_len` octets.
        unsafe { SockAddr::new(storage, self.source_len) }.as_socket()
    }

    /// Header fields and timestamp of the datagram.
    pub const fn arrival_fields(&self) -> ArrivalFields {
        self.notes
    }

    /// True for a datagram without payload.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AnswerSocket {
    /// Binds to `address`; an IPv6 wildcard also receives IPv4.
    /// # Errors
    /// The kernel's reason.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        Self::open_bound(address).map_err(|source| Error::new("bind UDP", address, source))
    }

    /// Binds with all [`ArrivalFields`], kernel timestamps of departure, and the largest time to
    /// live.
    /// # Errors
    /// The kernel's reason.
    pub fn bind_with_notes(address: SocketAddr) -> Result<Self> {
        let socket = Self::bind(address)?;
        socket.ask_for_notes().map_err(|source| Error::new("set up UDP", address, source))?;
        Ok(socket)
    }

    fn ask_for_notes(&self) -> io::Result<()> {
        let set = |level, name, value| set_int(self.socket.as_fd(), level, name, value);
        // An IPv6 socket needs these, too, for datagrams of IPv4.
        set(libc::SOL_IP, libc::IP_RECVTTL, 1)?;
        set(libc::SOL_IP, libc::IP_RECVTOS, 1)?;
        set(libc::SOL_IP, libc::IP_TTL, TTL_MAX)?;
        if self.local_address().is_some_and(|address| address.is_ipv6()) {
            set(libc::SOL_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
            set(libc::SOL_IPV6, libc::IPV6_RECVTCLASS, 1)?;
            set(libc::SOL_IPV6, libc::IPV6_UNICAST_HOPS, TTL_MAX)?;
        }
        self.restart_stamps()
    }

    /// Switches on kernel timestamps of arrival; where the kernel has none,
    /// [`ReceivedUdpRequest::arrival_fields`] lack them.
    pub fn take_arrival_times(&self) {
        let _ = timestamps::switch_on_arrivals(self.socket.as_fd());
    }

    /// Switches on the traffic class of each datagram; where the kernel refuses,
    /// [`ReceivedUdpRequest::arrival_fields`] lack it.
    pub fn take_classes(&self) {
        // An IPv6 socket needs the first, too, for datagrams of IPv4.
        let _ = set_int(self.socket.as_fd(), libc::SOL_IP, libc::IP_RECVTOS, 1);
        if self.local_address().is_some_and(|address| address.is_ipv6()) {
            let _ = set_int(self.socket.as_fd(), libc::SOL_IPV6, libc::IPV6_RECVTCLASS, 1);
        }
    }

    /// Switches on kernel timestamps; the answers are numbered from 0 again.
    /// # Errors
    /// The kernel's reason.
    pub fn restart_stamps(&self) -> io::Result<()> {
        timestamps::switch_on_arrivals(self.socket.as_fd())
            .and_then(|()| timestamps::switch_on(self.socket.as_fd(), false))
    }

    /// Reads one notice from the error queue, if there is one: the departure of an answer.
    pub fn next_notice(&self) -> Option<Notice> {
        timestamps::next_notice(self.socket.as_fd())
    }

    fn open_bound(address: SocketAddr) -> io::Result<Self> {
        let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
        if address.is_ipv6() {
            if address.ip().is_unspecified() {
                socket.set_only_v6(false)?;
            }
            set_int(socket.as_fd(), libc::SOL_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
        } else {
            set_int(socket.as_fd(), libc::SOL_IP, libc::IP_PKTINFO, 1)?;
        }
        socket.bind(&SockAddr::from(address))?;
        Ok(Self { socket })
    }

    /// The bound address, with the port that the kernel chose for port 0.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Receives a datagram if one is queued. A datagram longer than the buffer is cut.
    /// # Errors
    /// The kernel's reason.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<ReceivedUdpRequest>> {
        // SAFETY: all-zero is a valid sockaddr_storage (family AF_UNSPEC).
        let source = unsafe { std::mem::zeroed() };
        let mut question = ReceivedUdpRequest {
            source,
            source_len: 0,
            control: ControlBuffer::new(),
            control_len: 0,
            len: 0,
            notes: ArrivalFields::default(),
        };
        let mut piece = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        // SAFETY: all-zero is a valid msghdr (null pointers with zero lengths).
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut question.source).cast();
        message.msg_namelen = size_of_val(&question.source) as libc::socklen_t;
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = question.control.0.as_mut_ptr().cast();
        message.msg_controllen = question.control.0.len() as _;
        // SAFETY: every pointer of `message` is to `question`, `piece` or `buffer`, which outlive
        // the call; the kernel writes at most the given lengths.
        let len =
            unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
        if len < 0 {
            let error = io::Error::last_os_error();
            return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
        }
        question.len = len.cast_unsigned();
        question.source_len = message.msg_namelen;
        question.control_len = message.msg_controllen as usize;
        read_notes(&mut question);
        Ok(Some(question))
    }

    /// Sends `answer` to the source of `question`; false where the kernel did not accept it. An
    /// answer for which there is no room is dropped, as on the network.
    pub fn answer(&self, question: &ReceivedUdpRequest, answer: &[u8]) -> bool {
        self.send_answer(question, answer, question.control, question.control_len)
    }

    /// Sends an answer with a traffic class.
    pub fn answer_in_class(&self, question: &ReceivedUdpRequest, answer: &[u8], tos: u8) -> bool {
        let v6 = question.source().is_some_and(|source| {
            matches!(source.ip(), IpAddr::V6(address) if address.to_ipv4_mapped().is_none())
        });
        let (level, kind) =
            if v6 { (libc::SOL_IPV6, libc::IPV6_TCLASS) } else { (libc::SOL_IP, libc::IP_TOS) };
        let mut control = question.control;
        let class = i32::from(tos).to_ne_bytes();
        let len = control.add(question.control_len, level, kind, &class);
        self.send_answer(question, answer, control, len)
    }

    fn send_answer(
        &self,
        question: &ReceivedUdpRequest,
        answer: &[u8],
        control: ControlBuffer,
        len: usize,
    ) -> bool {
        let mut piece =
            libc::iovec { iov_base: answer.as_ptr().cast_mut().cast(), iov_len: answer.len() };
        // SAFETY: all-zero is a valid msghdr (null pointers with zero lengths).
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw const question.source).cast_mut().cast();
        message.msg_namelen = question.source_len;
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_ptr().cast_mut().cast();
        message.msg_controllen = len as _;
        // SAFETY: sendmsg only reads through the pointers of `message`, whose targets outlive the
        // call.
        let sent = unsafe {
            libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
        };
        sent >= 0
    }

    /// Waits until a datagram can be received, `span` is over, or a signal arrives.
    pub fn wait_for_datagram(&self, span: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // An interrupted poll reports nothing; the caller's loop checks its stop flag.
        let _ = rustix::event::poll(&mut fds, Some(&timeout));
    }
}

/// Parses the control messages. Of them only the destination address is kept for the answer,
/// without its interface, so that the answer follows the routing table. For a link-local client the
/// scope of its address names the interface.
fn read_notes(question: &mut ReceivedUdpRequest) {
    let mut back = ControlBuffer::new();
    let (mut len, mut notes) = (0, ArrivalFields::default());
    let came = &question.control.0[..question.control_len];
    control::messages(came, |level, kind, data| match (level, kind) {
        // struct in_pktinfo: interface, our address, the address in the header.
        (libc::SOL_IP, libc::IP_PKTINFO) => {
            let Some(own) = data.get(4..8).and_then(|own| own.first_chunk::<4>()) else { return };
            notes.local = Some(IpAddr::from(*own));
            let mut information = [0; 12];
            information[4..8].copy_from_slice(own);
            len = back.add(len, level, kind, &information);
        }
        // struct in6_pktinfo: our address, interface.
        (libc::SOL_IPV6, libc::IPV6_PKTINFO) => {
            let Some(own) = data.first_chunk::<16>() else { return };
            notes.local = Some(IpAddr::from(*own).to_canonical());
            let mut information = [0; 20];
            information[..16].copy_from_slice(own);
            len = back.add(len, level, kind, &information);
        }
        (libc::SOL_IP, libc::IP_TTL) | (libc::SOL_IPV6, libc::IPV6_HOPLIMIT) => {
            notes.ttl = u8::try_from(control::int_from_octets(data)).ok();
        }
        (libc::SOL_IP, libc::IP_TOS) => notes.tos = data.first().copied(),
        (libc::SOL_IPV6, libc::IPV6_TCLASS) => {
            notes.tos = u8::try_from(control::int_from_octets(data)).ok()
        }
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
            notes.arrived_ns = timestamps::software_stamp(data);
        }
        _ => {}
    });
    question.control = back;
    question.control_len = len;
    question.notes = notes;
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr, UdpSocket};

    use super::*;

    fn echo_once(server: SocketAddr, client_bind: &str, target: &str) {
        let socket = AnswerSocket::bind(server).expect("a free port");
        let port = socket.local_address().expect("bound").port();
        let client = UdpSocket::bind(client_bind).expect("a client");
        client.connect((target, port)).expect("loopback");
        client.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
        client.send(b"question").expect("sent");
        let mut buffer = [0; 64];
        socket.wait_for_datagram(Duration::from_secs(5));
        let question = socket.receive(&mut buffer).expect("no error").expect("a datagram");
        assert_eq!(question.len(), 8);
        assert!(socket.answer(&question, b"response"));
        let len = client.recv(&mut buffer).expect("an answer from the address that was asked");
        assert_eq!(&buffer[..len], b"response");
    }

    #[test]
    fn the_answer_comes_from_the_address_that_was_asked() {
        echo_once((Ipv4Addr::UNSPECIFIED, 0).into(), "127.0.0.1:0", "127.0.0.2");
        echo_once((Ipv4Addr::LOCALHOST, 0).into(), "127.0.0.1:0", "127.0.0.1");
    }

    #[test]
    fn notes_tell_time_to_live_class_and_times_and_an_answer_has_its_class() {
        for (server, target) in [("0.0.0.0:0", "127.0.0.2"), ("[::]:0", "127.0.0.2")] {
            let Ok(socket) = AnswerSocket::bind_with_notes(server.parse().expect("an address"))
            else {
                println!("skipped: this host has no IPv6 loopback");
                continue;
            };
            let own = socket.local_address().expect("bound");
            let client = Socket::new(Domain::IPV4, Type::DGRAM, None).expect("a socket");
            client.set_ttl_v4(77).expect("set");
            client.set_tos_v4(46 << 2).expect("set");
            let client: UdpSocket = client.into();
            client.connect((target, own.port())).expect("loopback");
            crate::clock::sleep(timestamps::START_DELAY);
            let before_ns = crate::clock::realtime_ns();
            client.send(b"question").expect("sent");
            socket.wait_for_datagram(Duration::from_secs(5));
            let question = socket.receive(&mut [0; 64]).expect("no error").expect("a datagram");
            let notes = question.arrival_fields();
            assert_eq!(notes.local, Some(IpAddr::from([127, 0, 0, 2])), "{server}");
            assert_eq!((notes.ttl, notes.tos), (Some(77), Some(46 << 2)), "{server}");
            let arrived_ns = notes.arrived_ns.expect("a stamp");
            assert!(arrived_ns >= before_ns, "{server}");
            assert!(socket.answer_in_class(&question, b"response", 10 << 2));
            client.set_read_timeout(Some(Duration::from_secs(5))).expect("a timeout");
            assert_eq!(client.recv(&mut [0; 64]).expect("an answer"), 8, "{server}");
            let left = (0..100).find_map(|_| {
                crate::clock::sleep(Duration::from_millis(1));
                socket.next_notice()
            });
            let Some(Notice::Departed { key: 0, at_ns }) = left else { panic!("{left:?}") };
            assert!(at_ns >= arrived_ns, "{server}");
        }
    }

    #[test]
    fn one_ipv6_wildcard_answers_both_families() {
        if UdpSocket::bind("[::1]:0").is_err() {
            println!("skipped: no IPv6 on this host");
            return;
        }
        echo_once((Ipv6Addr::UNSPECIFIED, 0).into(), "127.0.0.1:0", "127.0.0.3");
        echo_once((Ipv6Addr::UNSPECIFIED, 0).into(), "[::1]:0", "::1");
    }
}
