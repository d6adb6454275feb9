//! The socket of a UDP responder: takes a datagram and sends it back from the address that it was
//! sent to (IP_PKTINFO, ip(7); IPV6_PKTINFO, RFC 3542 §6), so that a connected asker accepts it.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use socket2::{Domain, Protocol, SockAddr, Socket, Type};

use crate::control::{self, Control};
use crate::socket_option::set_int;
use crate::{Error, Result, timestamps};

/// struct in_pktinfo begins with the interface index; in6_pktinfo has it behind the address.
const V6_PKTINFO_INDEX_OFFSET: usize = 16;

/// A bound UDP socket for answering.
#[derive(Debug)]
pub struct AnswerSocket {
    socket: Socket,
}

/// One datagram's way back: who sent it and to which of our addresses.
pub struct Question {
    source: libc::sockaddr_storage,
    source_len: libc::socklen_t,
    control: Control,
    control_len: usize,
    len: usize,
    arrived_ns: Option<u64>,
}

impl Question {
    /// The kernel's time of arrival on CLOCK_REALTIME, where it was told.
    pub const fn arrived_ns(&self) -> Option<u64> {
        self.arrived_ns
    }

    /// Octets of the datagram.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// True for a datagram without payload.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl AnswerSocket {
    /// Binds to `address`; an IPv6 wildcard takes IPv4 as well.
    /// # Errors
    /// The kernel's reason.
    pub fn bind(address: SocketAddr) -> Result<Self> {
        Self::open(address).map_err(|source| Error::new("bind UDP", address, source))
    }

    fn open(address: SocketAddr) -> io::Result<Self> {
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
        // Where the kernel has none, the responder's own clock stands in.
        let _ = timestamps::switch_on_arrivals(socket.as_fd());
        Ok(Self { socket })
    }

    /// The bound address, with the port that the kernel chose where 0 was asked.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Takes a datagram if one is there. A datagram longer than the buffer is cut.
    /// # Errors
    /// The kernel's reason.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Question>> {
        // SAFETY: all-zero is a valid sockaddr_storage (family AF_UNSPEC).
        let source = unsafe { std::mem::zeroed() };
        let mut question = Question {
            source,
            source_len: 0,
            control: Control::new(),
            control_len: 0,
            len: 0,
            arrived_ns: None,
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
        take_stamp(&mut question);
        free_interface(&mut question);
        Ok(Some(question))
    }

    /// Sends `answer` back where `question` came from. An answer that the kernel cannot take now
    /// is dropped, as the network would.
    pub fn answer(&self, question: &Question, answer: &[u8]) {
        let mut piece =
            libc::iovec { iov_base: answer.as_ptr().cast_mut().cast(), iov_len: answer.len() };
        // SAFETY: all-zero is a valid msghdr (null pointers with zero lengths).
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw const question.source).cast_mut().cast();
        message.msg_namelen = question.source_len;
        message.msg_iov = &raw mut piece;
        message.msg_iovlen = 1;
        message.msg_control = question.control.0.as_ptr().cast_mut().cast();
        message.msg_controllen = question.control_len as _;
        // SAFETY: sendmsg only reads through the pointers of `message`, whose targets outlive the
        // call.
        let _ = unsafe {
            libc::sendmsg(self.socket.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT)
        };
    }

    /// Sleeps until a datagram can be taken, `span` is over, or a signal comes.
    pub fn wait(&self, span: Duration) {
        let timeout = Timespec {
            tv_sec: i64::try_from(span.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: span.subsec_nanos().into(),
        };
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        // An interrupted poll reports nothing; the caller's loop looks at its stop flag.
        let _ = rustix::event::poll(&mut fds, Some(&timeout));
    }
}

/// Reads the stamp out of the control messages and leaves the packet information alone there: it
/// goes back with the answer, and sendmsg(2) refuses a stamp.
fn take_stamp(question: &mut Question) {
    const WORD: usize = size_of::<usize>();
    let all = question.control;
    let (mut kept, mut end) = (Control::new(), 0);
    control::messages(&all.0[..question.control_len], |level, kind, data| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            question.arrived_ns = timestamps::software_stamp(data);
            return;
        }
        // cmsghdr: a length of one word, level and type (cmsg(3)).
        let len = WORD + 8 + data.len();
        let Some(place) = kept.0.get_mut(end..end + len) else { return };
        place[..WORD].copy_from_slice(&len.to_ne_bytes());
        place[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        place[WORD + 4..WORD + 8].copy_from_slice(&kind.to_ne_bytes());
        place[WORD + 8..].copy_from_slice(data);
        end += len.next_multiple_of(WORD);
    });
    question.control = kept;
    question.control_len = end.min(kept.0.len());
}

/// Clears the interface index of the packet information that goes back with the answer, so that
/// the routing table and not the way in chooses the way out. A link-local asker has its interface
/// in the scope of its address as well.
fn free_interface(question: &mut Question) {
    const WORD: usize = size_of::<usize>();
    let control = &mut question.control.0[..question.control_len];
    let Some((header, data)) = control.split_at_mut_checked(WORD + 8) else { return };
    let level = control::int(&header[WORD..]);
    let offset = if level == libc::SOL_IPV6 { V6_PKTINFO_INDEX_OFFSET } else { 0 };
    if let Some(index) = data.get_mut(offset..offset + 4) {
        index.fill(0);
    }
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
        socket.wait(Duration::from_secs(5));
        let question = socket.receive(&mut buffer).expect("no error").expect("a datagram");
        assert_eq!(question.len(), 8);
        // Stamps start by deferred work; one that is there is of this year.
        assert!(question.arrived_ns().is_none_or(|ns| ns > 1_700_000_000_000_000_000));
        socket.answer(&question, b"response");
        let len = client.recv(&mut buffer).expect("an answer from the address that was asked");
        assert_eq!(&buffer[..len], b"response");
    }

    #[test]
    fn the_answer_comes_from_the_address_that_was_asked() {
        echo_once((Ipv4Addr::UNSPECIFIED, 0).into(), "127.0.0.1:0", "127.0.0.2");
        echo_once((Ipv4Addr::LOCALHOST, 0).into(), "127.0.0.1:0", "127.0.0.1");
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
