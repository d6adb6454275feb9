//! UDP sockets that move many datagrams a call: sendmmsg(2), recvmmsg(2), UDP_SEGMENT and UDP_GRO
//! (udp(7), Linux 4.18 and 5.0).
//!
//! A sender may pass several datagrams of one size to the kernel in one buffer, which the kernel or
//! the NIC segments (UDP_SEGMENT); a receiver may get several in one buffer with their size
//! (UDP_GRO). With each buffer the kernel reports its count of drops (SO_RXQ_OVFL) and, on request,
//! the time of arrival. Buffers may carry a time of departure (SO_TXTIME, Linux 4.19) for a pacing
//! queueing discipline. On request the sender gets an error for datagrams that the queueing
//! discipline or the driver drops (IP_RECVERR, IPV6_RECVERR: ENOBUFS). The batches of datagrams are
//! in [`crate::datagram_batch`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::control;
pub use crate::control::Noted;
pub use crate::datagram_batch::{ReceiveBatch, ReceivedUdpBuffer, SENDS_MAX, SendBatch};
use crate::socket_option::{self, get_int, set_int, set_octets};
pub use crate::socket_option::{ReceiveRoom, SendRoom};
use crate::{Error, Result, icmp, timestamps};

/// Bytes of the largest buffer that the kernel returns: an IP packet has at most 65,535.
pub const BUFFER_BYTES: usize = 65_536;

/// Most datagrams that the kernel accepts in one buffer (UDP_MAX_SEGMENTS: 64 before Linux 6.9, 128
/// since).
pub const JOINED_MAX: usize = 128;

/// Options of a UDP socket.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOptions {
    /// Address to bind to; port 0 is any.
    pub local: SocketAddr,
    /// Exact value of SO_SNDBUF and SO_RCVBUF.
    pub window_bytes: Option<u64>,
    /// Without a window, the largest SO_RCVBUF; the host may grant less. SO_SNDBUF is then the
    /// kernel's default (net.core.wmem_default), which limits the sender's share of the link's
    /// queue as for other programs.
    pub buffer_bytes_max: u64,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// Allows further sockets of this program at the same port (SO_REUSEADDR): a connected socket
    /// gets its peer's datagrams, an unconnected one the others.
    pub shared: bool,
}

/// A UDP socket for throughput tests.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
    v6: bool,
}

impl DatagramSocket {
    /// Opens and binds a socket. Without a window it first requests a buffer above the host's limit
    /// (SO_RCVBUFFORCE, CAP_NET_ADMIN), and else up to that limit.
    /// # Errors
    /// The failed call with its object.
    pub fn open(options: &DatagramOptions) -> Result<Self> {
        let local = options.local;
        let fail = |call| move |source| Error::new(call, local, source);
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
            .map_err(fail("open UDP socket for"))?;
        let this = Self { socket, v6: local.is_ipv6() };
        this.set_buffers(options)?;
        if let Some(dscp) = options.dscp {
            // The upper six bits of the traffic class octet (RFC 2474 §3).
            let class = u32::from(dscp) << 2;
            let (socket, v6) = (&this.socket, this.v6);
            let set = if v6 { socket.set_tclass_v6(class) } else { socket.set_tos_v4(class) };
            set.map_err(|source| Error::new("set DSCP", dscp, source))?;
        }
        if options.shared {
            this.socket.set_reuse_address(true).map_err(fail("set SO_REUSEADDR on"))?;
        }
        this.socket.bind(&local.into()).map_err(fail("bind UDP"))?;
        Ok(this)
    }

    /// Opens a socket for the first datagrams of clients, at a port that it shares with connected
    /// sockets; an IPv6 wildcard address receives both families.
    /// # Errors
    /// The failed call with its object.
    pub fn open_shared(local: SocketAddr) -> Result<Self> {
        let fail = |call| move |source| Error::new(call, local, source);
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
            .map_err(fail("open UDP socket for"))?;
        // Fails if another program has the port, which must not be shared.
        socket
            .bind(&local.into())
            .map_err(fail("bind UDP"))
            .and_then(|()| socket.set_reuse_address(true).map_err(fail("set SO_REUSEADDR on")))?;
        Ok(Self { socket, v6: local.is_ipv6() })
    }

    /// Attaches a filter that accepts only datagrams equal to one of these words, so that others do
    /// not fill the buffer.
    /// # Errors
    /// The kernel's reason.
    pub fn show_words(&self, words: &[[u8; 4]]) -> Result<()> {
        icmp::show_words(self.socket.as_fd(), words)
            .map_err(|source| Error::new("set", "SO_ATTACH_FILTER", source))
    }

    /// Attaches a filter that accepts only datagrams from this address, so that others do not fill
    /// the buffer.
    /// # Errors
    /// The kernel's reason.
    pub fn show_source(&self, source: IpAddr) -> Result<()> {
        icmp::show_source(self.socket.as_fd(), source)
            .map_err(|source| Error::new("set", "SO_ATTACH_FILTER", source))
    }

    /// Allows further sockets of this program at the same port, each connected to its peer.
    /// # Errors
    /// The kernel's reason.
    pub fn allow_port_sharing(&self) -> Result<()> {
        let set = self.socket.set_reuse_address(true);
        set.map_err(|source| Error::new("set SO_REUSEADDR on", "a UDP socket", source))
    }

    /// The same socket for another thread.
    /// # Errors
    /// The kernel's reason.
    pub fn try_clone(&self) -> Result<Self> {
        let socket = self.socket.try_clone();
        socket
            .map(|socket| Self { socket, v6: self.v6 })
            .map_err(|source| Error::new("duplicate", "a UDP socket", source))
    }

    fn set_buffers(&self, options: &DatagramOptions) -> Result<()> {
        let Some(window) = options.window_bytes else {
            return self.set_buffer(RECEIVE_BUFFER, options.buffer_bytes_max);
        };
        for [plain, _] in [RECEIVE_BUFFER, SEND_BUFFER] {
            set_int(self.socket.as_fd(), libc::SOL_SOCKET, plain, as_int(window)).map_err(
                |source| Error::new("set buffers", format!("to {window} bytes"), source),
            )?;
        }
        Ok(())
    }

    /// Sets a buffer above the host's limit where that is allowed (CAP_NET_ADMIN), else up to it.
    fn set_buffer(&self, [plain, force]: [i32; 2], bytes: u64) -> Result<()> {
        let (fd, size) = (self.socket.as_fd(), as_int(bytes));
        let set = set_int(fd, libc::SOL_SOCKET, force, size)
            .or_else(|_| set_int(fd, libc::SOL_SOCKET, plain, size));
        set.map_err(|source| Error::new("set a buffer", format!("to {bytes} bytes"), source))
    }

    /// Sets the send buffer in bytes of kernel memory, within the host's limit (net.core.wmem_max).
    /// # Errors
    /// The kernel's reason.
    pub fn set_send_room(&self, bytes: u64) -> Result<()> {
        // The kernel doubles the value (socket(7)).
        self.set_buffer(SEND_BUFFER, bytes / 2)
    }

    /// Send memory in use, and the limit; `None` before Linux 4.12.
    pub fn send_room(&self) -> Option<SendRoom> {
        socket_option::send_room(self.socket.as_fd())
    }

    /// Switches errors for dropped datagrams on or off: a send that the queueing discipline or the
    /// driver drops then fails with ENOBUFS, and errors of earlier datagrams stay queued until
    /// [`Self::forget_errors`].
    pub fn tell_refusals(&self, tell: bool) {
        let fd = self.socket.as_fd();
        // A socket of IPv6 may send to addresses of IPv4. If the kernel refuses, there are no
        // errors.
        let _ = set_int(fd, libc::SOL_IP, libc::IP_RECVERR, tell.into());
        if self.v6 {
            let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_RECVERR, tell.into());
        }
    }

    /// Clears the queued errors of earlier datagrams, which the failed sends have already returned.
    pub fn forget_errors(&self) {
        let mut nothing = [std::mem::MaybeUninit::uninit(); 1];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // Bounded, because new errors may be queued meanwhile.
        let mut turns = 0..64;
        while turns.next().is_some() && self.socket.recv_with_flags(&mut nothing, flags).is_ok() {}
    }

    /// Connects the socket, so that it receives only from this peer. Datagrams of others may still
    /// be queued.
    /// # Errors
    /// The kernel's reason.
    pub fn connect(&self, peer: SocketAddr) -> Result<()> {
        let connected = self.socket.connect(&peer.into());
        connected.map_err(|source| Error::new("connect UDP", peer, source))
    }

    /// Binds the socket to one interface (SO_BINDTODEVICE).
    /// # Errors
    /// The kernel's reason.
    pub fn bind_device(&self, device: &str) -> Result<()> {
        crate::tcp::bind_device(&self.socket, device)
    }

    /// The bound address and port.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Granted send and receive buffers, twice the requested values (socket(7)).
    pub fn buffers(&self) -> (Option<u64>, Option<u64>) {
        let bytes = |size: io::Result<usize>| size.ok().map(|size| size as u64);
        (bytes(self.socket.send_buffer_size()), bytes(self.socket.recv_buffer_size()))
    }

    /// Current path MTU of the kernel, for a connected socket.
    pub fn mtu_bytes(&self) -> Option<u32> {
        let (level, name) = match self.v6 {
            false => (libc::SOL_IP, libc::IP_MTU),
            true => (libc::SOL_IPV6, libc::IPV6_MTU),
        };
        let mtu = get_int(self.socket.as_fd(), level, name).ok()?;
        u32::try_from(mtu).ok().filter(|mtu| *mtu > 0)
    }

    /// Segments sent buffers into datagrams of `size_bytes`, or with 0 no longer; false where the
    /// kernel has no UDP_SEGMENT.
    pub fn cut_sends(&self, size_bytes: u16) -> bool {
        set_int(self.socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, size_bytes.into()).is_ok()
    }

    /// Allows joined datagrams in received buffers; false where the kernel has no UDP_GRO.
    pub fn join_receives(&self) -> bool {
        set_int(self.socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
    }

    /// Switches on the kernel's count of drops and time of arrival with every buffer, unless the
    /// kernel refuses.
    pub fn note_arrivals(&self) {
        let fd = self.socket.as_fd();
        // Without support the notes are absent, which the caller notices.
        let _ = set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        let _ = timestamps::switch_on_arrivals(fd);
    }

    /// Switches on timestamps of departure (hand-over to the driver), read with
    /// [`Self::next_notice`], beside those of arrival. Sends are numbered from 0 again.
    pub fn note_departures(&self) {
        let fd = self.socket.as_fd();
        // The numbering restarts only after departures were off; arrivals stay on meanwhile.
        // Without support there are no timestamps, which the caller notices.
        let _ = timestamps::switch_on_arrivals(fd);
        let _ = timestamps::switch_on(fd, false);
    }

    /// Reads one notice from the error queue, if there is one.
    pub fn next_notice(&self) -> Option<timestamps::Notice> {
        timestamps::next_notice(self.socket.as_fd())
    }

    /// Forbids fragmentation and ignores the kernel's path MTU (IP_PMTUDISC_PROBE, ip(7)); a
    /// datagram too long for the link fails with EMSGSIZE, and errors of routers are read with
    /// [`Self::next_notice`].
    /// # Errors
    /// The kernel's reason.
    pub fn never_fragment(&self) -> Result<()> {
        let fd = self.socket.as_fd();
        let (level, recverr, discover) = match self.v6 {
            false => (libc::SOL_IP, libc::IP_RECVERR, libc::IP_MTU_DISCOVER),
            true => (libc::SOL_IPV6, libc::IPV6_RECVERR, libc::IPV6_MTU_DISCOVER),
        };
        // The constant is the same for both families.
        set_int(fd, level, discover, libc::IP_PMTUDISC_PROBE)
            .and_then(|()| set_int(fd, level, recverr, 1))
            .map_err(|source| Error::new("set", "IP_MTU_DISCOVER", source))
    }

    /// Switches timestamps of arrival off.
    pub fn leave_arrival_times(&self) {
        // If the kernel refuses, the timestamps go on.
        let _ = timestamps::switch_off(self.socket.as_fd());
    }

    /// Allows times of departure for sent buffers, by CLOCK_MONOTONIC ([`SendBatch::send_at`]);
    /// false where the kernel has no SO_TXTIME. Only a queueing discipline that supports them waits
    /// for these times.
    pub fn time_sends(&self) -> bool {
        let option = txtime_option(libc::CLOCK_MONOTONIC);
        set_octets(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_TXTIME, &option).is_ok()
    }

    /// Address and port of the connected peer.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }

    /// Receive memory in use, and the limit; `None` before Linux 4.12.
    pub fn receive_room(&self) -> Option<ReceiveRoom> {
        socket_option::receive_room(self.socket.as_fd())
    }

    /// Buffers that the socket dropped since it was opened.
    pub fn dropped_buffers(&self) -> Option<u32> {
        socket_option::dropped_packets(self.socket.as_fd())
    }

    /// Sets the time-out of blocking calls.
    /// # Errors
    /// The kernel's reason.
    pub fn set_call_timeout(&self, timeout: Duration) -> Result<()> {
        let set = self.socket.set_read_timeout(Some(timeout));
        set.and_then(|()| self.socket.set_write_timeout(Some(timeout)))
            .map_err(|source| Error::new("set time-out of", "a UDP socket", source))
    }

    /// Sends one datagram to the connected peer, without waiting for room.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier datagram.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send_with_flags(datagram, libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Sends one datagram to the connected peer; waits for room in the send buffer, at most as long
    /// as the socket's time-out.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier datagram.
    pub fn send_when_room(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send(datagram).map(|_| ())
    }

    /// Sends one datagram to an address, without waiting for room.
    /// # Errors
    /// The kernel's reason.
    pub fn send_to(&self, datagram: &[u8], peer: SocketAddr) -> io::Result<()> {
        self.socket.send_to_with_flags(datagram, &peer.into(), libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Receives one datagram and its source address if one is queued; bytes beyond the buffer are
    /// cut off.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier send.
    pub fn receive_from(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        self.received(buffer, rustix::net::RecvFlags::DONTWAIT)
    }

    /// Reads one datagram with its source address and, after [`Self::note_arrivals`], its time of
    /// arrival.
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier send.
    pub fn receive_noted(&self, buffer: &mut [u8]) -> io::Result<Option<Noted>> {
        control::receive_noted(self.socket.as_fd(), buffer)
    }

    /// Reads one datagram and its source address without removing it from the queue (MSG_PEEK).
    /// # Errors
    /// The kernel's reason; it may be the error of an earlier send.
    pub fn peek_from(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        use rustix::net::RecvFlags;
        self.received(buffer, RecvFlags::DONTWAIT | RecvFlags::PEEK)
    }

    fn received(
        &self,
        buffer: &mut [u8],
        flags: rustix::net::RecvFlags,
    ) -> io::Result<Option<(usize, SocketAddr)>> {
        match rustix::net::recvfrom(&self.socket, buffer, flags) {
            Ok((len, _, Some(peer))) => Ok(SocketAddr::try_from(peer).ok().map(|peer| (len, peer))),
            Ok((_, _, None)) | Err(rustix::io::Errno::AGAIN) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

impl AsFd for DatagramSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `struct sock_txtime` of linux/net_tstamp.h: the clock's number, then flags, of which none is
/// set: packets that miss their time leave at once.
fn txtime_option(clock: libc::clockid_t) -> [u8; 8] {
    let mut option = [0; 8];
    option[..4].copy_from_slice(&clock.to_ne_bytes());
    option
}

/// Socket options of both buffers, each with the option that can exceed the host's limit.
const RECEIVE_BUFFER: [i32; 2] = [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE];
const SEND_BUFFER: [i32; 2] = [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE];

fn as_int(bytes: u64) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// True if the queueing discipline or the driver dropped the sent datagrams (ENOBUFS,
/// [`DatagramSocket::tell_refusals`]).
pub fn is_refused_by_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// True if a datagram is longer than the link's MTU, or than the MTU that a router reported.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// True if the kernel refused joined datagrams: too many (EINVAL), longer than the path MTU
/// (EINVAL, EMSGSIZE), or a device without checksum offload (EIO).
pub fn is_unjoinable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO))
}

/// Current path MTU of the kernel for the route to an address.
pub fn route_mtu_bytes(peer: SocketAddr) -> Option<u32> {
    let domain = Domain::for_address(peer);
    let socket = Socket::new(domain, Type::DGRAM, Some(Protocol::UDP)).ok()?;
    let socket = DatagramSocket { socket, v6: peer.is_ipv6() };
    socket.connect(peer).ok()?;
    socket.mtu_bytes()
}

/// The unspecified address of a peer's family, with any port.
pub fn any_local(peer: SocketAddr) -> SocketAddr {
    let ip: IpAddr = crate::tcp::any_address(peer.is_ipv6());
    SocketAddr::new(ip, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn connected_pair() -> (DatagramSocket, DatagramSocket) {
        let open = || {
            let local = SocketAddr::from(([127, 0, 0, 1], 0));
            let options = DatagramOptions {
                local,
                window_bytes: None,
                buffer_bytes_max: 1 << 20,
                dscp: None,
                shared: false,
            };
            let socket = DatagramSocket::open(&options).expect("a socket");
            socket.set_call_timeout(Duration::from_secs(5)).expect("a time-out");
            socket
        };
        let (one, other) = (open(), open());
        one.connect(other.local_address().expect("bound")).expect("loopback");
        other.connect(one.local_address().expect("bound")).expect("loopback");
        (one, other)
    }

    #[test]
    fn a_socket_that_is_shown_one_source_takes_nothing_from_another() {
        let bind = |address: &str| std::net::UdpSocket::bind(address).expect("loopback");
        let pairs = [("127.0.0.1:0", "127.9.9.9:0"), ("[::1]:0", "[::ffff:127.0.0.1]:0")];
        for (known, other) in pairs {
            if known.starts_with('[') && std::net::UdpSocket::bind(known).is_err() {
                println!("skipped: this host has no IPv6 loopback");
                continue;
            }
            let (known, other) = (bind(known), bind(other));
            let source = known.local_addr().expect("bound");
            let any: &str = if source.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = DatagramSocket::open_shared(any.parse().expect("an address"));
            let socket = socket.expect("a socket");
            socket.show_source(source.ip()).expect("a filter");
            let port = socket.local_address().expect("bound").port();
            let other_to = SocketAddr::new(other.local_addr().expect("bound").ip(), port);
            other.send_to(b"other", other_to).expect("sent");
            known.send_to(b"known", (source.ip(), port)).expect("sent");
            let mut buffer = [0; 16];
            let (length, from) = socket.receive_from(&mut buffer).expect("a call").expect("one");
            assert_eq!((&buffer[..length], from), (&b"known"[..], source));
            assert!(socket.receive_from(&mut buffer).expect("a call").is_none());
        }
    }

    #[test]
    fn a_datagram_is_taken_with_its_sender_and_the_time_at_which_it_came() {
        let (one, other) = connected_pair();
        other.note_arrivals();
        // Stamps begin a moment after they were asked for.
        crate::clock::sleep(timestamps::START_DELAY);
        let mut buffer = [0; 16];
        assert!(other.receive_noted(&mut buffer).expect("a call").is_none());
        let before = crate::clock::realtime_ns();
        one.send(b"datagram").expect("sent");
        let noted = other.receive_noted(&mut buffer).expect("a call").expect("loopback loses none");
        assert_eq!(&buffer[..noted.len], b"datagram");
        assert_eq!(Some(noted.from), one.local_address());
        let now = crate::clock::realtime_ns();
        assert!(noted.arrived_ns.is_none_or(|ns| (before..=now).contains(&ns)), "{noted:?}");
    }

    /// The first bytes of `count` datagrams of 100 bytes, sent `joined` together and taken in.
    fn carried(joined: usize, count: u8) -> Vec<u8> {
        let (sender, receiver) = connected_pair();
        if joined > 1 && !(sender.cut_sends(100) && receiver.join_receives()) {
            println!("skipped: this kernel has no UDP_SEGMENT or UDP_GRO");
            return (0..count).collect();
        }
        let mut batch = SendBatch::new(100, joined, count.into(), |_| 0xaa);
        batch.datagrams_mut().zip(0..).for_each(|(datagram, number)| datagram[0] = number);
        let mut sent = 0;
        while sent < usize::from(count) {
            sent += batch.send_datagrams(&sender, sent, usize::from(count) - sent).expect("room");
        }
        let (mut taken, mut firsts) = (ReceiveBatch::new(), Vec::new());
        while firsts.len() < usize::from(count) {
            taken.receive(&receiver).expect("datagrams within 5 s");
            for arrived in taken.arrived() {
                let size = arrived.joined_bytes.unwrap_or(arrived.bytes.len());
                for datagram in arrived.bytes.chunks(size) {
                    assert_eq!((datagram.len(), datagram[99]), (100, 0xaa));
                    firsts.push(datagram[0]);
                }
            }
        }
        firsts
    }

    #[test]
    fn the_option_of_departure_times_names_the_monotonic_clock_and_no_flags() {
        // linux/net_tstamp.h: { __kernel_clockid_t clockid; __u32 flags; }; linux/time.h:
        // CLOCK_MONOTONIC is 1.
        let mut expected = 1_i32.to_ne_bytes().to_vec();
        expected.extend([0; 4]);
        assert_eq!(txtime_option(libc::CLOCK_MONOTONIC).as_slice(), expected);
        assert_eq!(libc::SO_TXTIME, 61, "asm-generic/socket.h");
    }

    #[test]
    fn timed_datagrams_leave_at_once_where_nothing_holds_them() {
        let (sender, receiver) = connected_pair();
        if !sender.time_sends() {
            println!("skipped: this kernel has no SO_TXTIME");
            return;
        }
        let mut batch = SendBatch::new(100, 1, 3, |_| 7);
        batch.datagrams_mut().zip(0..).for_each(|(datagram, number)| datagram[0] = number);
        let now = crate::clock::monotonic();
        let later = [now, now + Duration::from_millis(1), now + Duration::from_millis(2)];
        assert_eq!(batch.send_at(&sender, 0, &later, 3).expect("room"), 3);
        let (mut taken, mut firsts) = (ReceiveBatch::new(), Vec::new());
        while firsts.len() < 3 {
            taken.receive(&receiver).expect("datagrams within 5 s");
            firsts.extend(taken.arrived().map(|arrived| arrived.bytes[0]));
        }
        assert_eq!(firsts, [0, 1, 2], "the loopback has no queueing discipline");
    }

    #[test]
    fn the_room_that_waiting_datagrams_take_is_told() {
        let (sender, receiver) = connected_pair();
        let empty = receiver.receive_room().expect("SO_MEMINFO is of Linux 4.12");
        assert_eq!(empty.used_bytes, 0);
        assert_eq!(Some(u64::from(empty.room_bytes)), receiver.buffers().1);
        (0..10).for_each(|_| sender.send(&[0; 1000]).expect("sent"));
        let full = receiver.receive_room().expect("as before");
        assert!(full.used_bytes >= 10_000, "{full:?}");
    }

    #[test]
    fn the_send_buffer_is_the_kernels_own_and_another_room_is_granted() {
        let (sender, _) = connected_pair();
        let default = std::fs::read_to_string("/proc/sys/net/core/wmem_default").expect("procfs");
        let default: u64 = default.trim().parse().expect("a number");
        assert_eq!(sender.buffers().0, Some(default));
        sender.set_send_room(100_000).expect("less than before");
        let room = sender.send_room().expect("SO_MEMINFO is of Linux 4.12");
        assert_eq!((room.used_bytes, room.room_bytes), (0, 100_000));
    }

    #[test]
    fn a_socket_that_shows_words_takes_them_alone() {
        let (sender, receiver) = connected_pair();
        receiver.show_words(&[*b"9876", *b"6789"]).expect("a filter");
        for datagram in [&b"9876"[..], b"98765", b"987", b"", b"9877", b"\0\0\0\0", b"6789"] {
            sender.send(datagram).expect("sent");
        }
        let mut taken = ReceiveBatch::growing();
        let mut all = Vec::new();
        while taken.receive_waiting(&receiver).is_ok() {
            all.extend(taken.arrived().map(|arrival| arrival.bytes.to_vec()));
        }
        assert_eq!(all, [b"9876", b"6789"]);
    }

    #[test]
    fn nothing_waiting_is_told_without_waiting() {
        let (sender, receiver) = connected_pair();
        let mut taken = ReceiveBatch::new();
        let error = taken.receive_waiting(&receiver).expect_err("nothing was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(taken.arrived().count(), 0);
        sender.send(&[5; 20]).expect("sent");
        taken.receive_waiting(&receiver).expect("one datagram");
        assert_eq!(taken.arrived().map(|arrival| arrival.bytes.len()).collect::<Vec<_>>(), [20]);
    }

    #[test]
    fn datagrams_arrive_whole_and_alike_whether_they_travel_joined_or_one_by_one() {
        let expected: Vec<u8> = (0..200).collect();
        assert_eq!(carried(1, 200), expected);
        assert_eq!(carried(64, 200), expected);
        assert_eq!(carried(7, 200), expected);
    }

    #[test]
    fn what_finds_no_room_is_counted_with_the_next_that_does() {
        let (sender, receiver) = connected_pair();
        set_int(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).expect("a small room");
        receiver.note_arrivals();
        (0..200).for_each(|_| sender.send(&[0; 1000]).expect("sent"));
        let dropped = receiver.dropped_buffers().expect("SO_MEMINFO is of Linux 4.12");
        assert!(dropped > 0 && dropped < 200, "{dropped}");
        let mut taken = ReceiveBatch::new();
        let mut count = 0;
        while count < 200 - dropped {
            taken.receive(&receiver).expect("what found room");
            count += taken.arrived().count() as u32;
        }
        sender.send(&[1; 1000]).expect("sent");
        taken.receive(&receiver).expect("the last one");
        assert_eq!(taken.arrived().next().and_then(|last| last.drops), Some(dropped));
    }
}
