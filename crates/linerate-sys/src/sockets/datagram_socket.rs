//! UDP sockets that move many datagrams a call: sendmmsg(2), recvmmsg(2), UDP_SEGMENT and UDP_GRO
//! (udp(7), Linux 4.18 and 5.0).
//!
//! A sender may hand several datagrams of one size to the kernel in one buffer, which the kernel or
//! the card cuts (UDP_SEGMENT); a receiver may get several in one buffer with the size of each
//! (UDP_GRO). The kernel's count of drops comes with every buffer (SO_RXQ_OVFL), and its time of
//! arrival where asked for. Buffers may carry the time at which they are to leave (SO_TXTIME,
//! Linux 4.19), which a queueing discipline that paces looks at. What a queueing discipline or a
//! driver refuses is told to the sender where it asks (IP_RECVERR, IPV6_RECVERR: ENOBUFS). What
//! moves is in [`crate::datagram_batch`].

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Domain, Protocol, Socket, Type};

use crate::control;
pub use crate::control::Noted;
pub use crate::datagram_batch::{Arrived, ReceiveBatch, SENDS_MAX, SendBatch};
use crate::socket_option::{self, get_int, set_int, set_octets};
pub use crate::socket_option::{ReceiveRoom, SendRoom};
use crate::{Error, Result, icmp, timestamps};

/// Largest buffer that one datagram of the kernel's own can be: 65,535 bytes of IP.
pub const BUFFER_BYTES: usize = 65_536;

/// Most datagrams that the kernel takes in one buffer (UDP_MAX_SEGMENTS: 64 before Linux 6.9, 128
/// since).
pub const JOINED_MAX: usize = 128;

/// What to ask of a socket.
#[derive(Clone, Copy, Debug)]
pub struct DatagramOptions {
    /// Address to bind to; port 0 is any.
    pub local: SocketAddr,
    /// SO_SNDBUF and SO_RCVBUF exactly.
    pub window_bytes: Option<u64>,
    /// SO_RCVBUF without a window: as much as the host gives, up to this. SO_SNDBUF is then the
    /// kernel's default (net.core.wmem_default), which holds a sender back at the queue before its
    /// link as it does every other program's.
    pub buffer_bytes_max: u64,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// Other sockets of this program may have the same port (SO_REUSEADDR): one that is connected
    /// gets its peer's datagrams, the others go to any of the rest.
    pub shared: bool,
}

/// A UDP socket.
#[derive(Debug)]
pub struct DatagramSocket {
    socket: Socket,
    v6: bool,
}

impl DatagramSocket {
    /// Opens and binds a socket. Without a window it asks for room beyond the host's limit first
    /// (SO_RCVBUFFORCE, CAP_NET_ADMIN), and for as much as that allows otherwise.
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

    /// Opens a socket for first datagrams alone, at a port that others may have, too; both families
    /// where the address is that of IPv6 for any.
    /// # Errors
    /// The failed call with its object.
    pub fn open_shared(local: SocketAddr) -> Result<Self> {
        let fail = |call| move |source| Error::new(call, local, source);
        let socket = Socket::new(Domain::for_address(local), Type::DGRAM, Some(Protocol::UDP))
            .map_err(fail("open UDP socket for"))?;
        // A port that another program has must not be shared with it.
        socket
            .bind(&local.into())
            .map_err(fail("bind UDP"))
            .and_then(|()| socket.set_reuse_address(true).map_err(fail("set SO_REUSEADDR on")))?;
        Ok(Self { socket, v6: local.is_ipv6() })
    }

    /// Takes datagrams that are one of these words and nothing else: others find no room here, and
    /// so take none from those.
    /// # Errors
    /// The kernel's reason.
    pub fn show_words(&self, words: &[[u8; 4]]) -> Result<()> {
        icmp::show_words(self.socket.as_fd(), words)
            .map_err(|source| Error::new("set", "SO_ATTACH_FILTER", source))
    }

    /// Takes datagrams from an address alone: others find no room here, and so take none from
    /// those.
    /// # Errors
    /// The kernel's reason.
    pub fn show_source(&self, source: IpAddr) -> Result<()> {
        icmp::show_source(self.socket.as_fd(), source)
            .map_err(|source| Error::new("set", "SO_ATTACH_FILTER", source))
    }

    /// Lets sockets of this program have the same port from here on, each connected to its peer.
    /// # Errors
    /// The kernel's reason.
    pub fn share(&self) -> Result<()> {
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

    /// Beyond the host's limit where that is allowed (CAP_NET_ADMIN), and up to it elsewhere.
    fn set_buffer(&self, [plain, force]: [i32; 2], bytes: u64) -> Result<()> {
        let (fd, size) = (self.socket.as_fd(), as_int(bytes));
        let set = set_int(fd, libc::SOL_SOCKET, force, size)
            .or_else(|_| set_int(fd, libc::SOL_SOCKET, plain, size));
        set.map_err(|source| Error::new("set a buffer", format!("to {bytes} bytes"), source))
    }

    /// Gives what leaves another room, in the kernel's own memory; as near as the host's limit
    /// (net.core.wmem_max) allows.
    /// # Errors
    /// The kernel's reason.
    pub fn set_send_room(&self, bytes: u64) -> Result<()> {
        // The kernel doubles what it is given (socket(7)).
        self.set_buffer(SEND_BUFFER, bytes / 2)
    }

    /// What has not left this host, and the room for it; absent before Linux 4.12.
    pub fn send_room(&self) -> Option<SendRoom> {
        socket_option::send_room(self.socket.as_fd())
    }

    /// From here on, a datagram that the queueing discipline or the driver of the link refuses
    /// fails with ENOBUFS, where the kernel has that; errors of earlier datagrams then wait until
    /// [`Self::forget_errors`].
    pub fn tell_refusals(&self, tell: bool) {
        let fd = self.socket.as_fd();
        // A socket of IPv6 may send to addresses of IPv4. A kernel that refuses does not tell.
        let _ = set_int(fd, libc::SOL_IP, libc::IP_RECVERR, tell.into());
        if self.v6 {
            let _ = set_int(fd, libc::SOL_IPV6, libc::IPV6_RECVERR, tell.into());
        }
    }

    /// Takes the errors of earlier datagrams away, of which each send tells by itself.
    pub fn forget_errors(&self) {
        let mut nothing = [std::mem::MaybeUninit::uninit(); 1];
        let flags = libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT;
        // Bounded: others may cause more meanwhile.
        let mut turns = 0..64;
        while turns.next().is_some() && self.socket.recv_with_flags(&mut nothing, flags).is_ok() {}
    }

    /// Takes and sends datagrams of this peer alone from here on. What others sent before may
    /// still wait to be read.
    /// # Errors
    /// The kernel's reason.
    pub fn connect(&self, peer: SocketAddr) -> Result<()> {
        let connected = self.socket.connect(&peer.into());
        connected.map_err(|source| Error::new("connect UDP", peer, source))
    }

    /// Keeps it to one interface (SO_BINDTODEVICE).
    /// # Errors
    /// The kernel's reason.
    pub fn bind_device(&self, device: &str) -> Result<()> {
        crate::tcp::bind_device(&self.socket, device)
    }

    /// The bound address.
    pub fn local_address(&self) -> Option<SocketAddr> {
        self.socket.local_addr().ok()?.as_socket()
    }

    /// Send and receive buffers that the kernel granted: twice what was asked (socket(7)).
    pub fn buffers(&self) -> (Option<u64>, Option<u64>) {
        let bytes = |size: io::Result<usize>| size.ok().map(|size| size as u64);
        (bytes(self.socket.send_buffer_size()), bytes(self.socket.recv_buffer_size()))
    }

    /// Largest IP packet of the path, as the kernel knows it now; for a connected socket.
    pub fn mtu_bytes(&self) -> Option<u32> {
        let (level, name) = match self.v6 {
            false => (libc::SOL_IP, libc::IP_MTU),
            true => (libc::SOL_IPV6, libc::IPV6_MTU),
        };
        let mtu = get_int(self.socket.as_fd(), level, name).ok()?;
        u32::try_from(mtu).ok().filter(|mtu| *mtu > 0)
    }

    /// Sends are cut into datagrams of `size_bytes` from here on, or with 0 no longer; false where
    /// the kernel has no UDP_SEGMENT.
    pub fn cut_sends(&self, size_bytes: u16) -> bool {
        set_int(self.socket.as_fd(), libc::SOL_UDP, libc::UDP_SEGMENT, size_bytes.into()).is_ok()
    }

    /// Datagrams may come joined from here on; false where the kernel has no UDP_GRO.
    pub fn join_receives(&self) -> bool {
        set_int(self.socket.as_fd(), libc::SOL_UDP, libc::UDP_GRO, 1).is_ok()
    }

    /// Tells the kernel's count of drops and its time of arrival with every buffer; both are
    /// absent where it refuses.
    pub fn note_arrivals(&self) {
        let fd = self.socket.as_fd();
        // A kernel without them leaves the notes out, and the caller sees that.
        let _ = set_int(fd, libc::SOL_SOCKET, libc::SO_RXQ_OVFL, 1);
        let _ = timestamps::switch_on_arrivals(fd);
    }

    /// Tells the times at which datagrams are handed to the driver by [`Self::next_notice`], beside
    /// those of arrival, where the kernel has them. Sends are numbered from 0 from here on.
    pub fn note_departures(&self) {
        let fd = self.socket.as_fd();
        // The number starts anew only when it was off; arrivals stay on meanwhile. A kernel that
        // refuses tells no times, and the caller sees that.
        let _ = timestamps::switch_on_arrivals(fd);
        let _ = timestamps::switch_on(fd, false);
    }

    /// Takes one notice from the error queue, if there is one.
    pub fn next_notice(&self) -> Option<timestamps::Notice> {
        timestamps::next_notice(self.socket.as_fd())
    }

    /// Datagrams leave whole or not at all, whatever the kernel knows of the path's MTU
    /// (IP_PMTUDISC_PROBE, ip(7)); one that is too long for the link fails with EMSGSIZE, and what
    /// routers say of one comes by [`Self::next_notice`].
    /// # Errors
    /// The kernel's reason.
    pub fn never_fragment(&self) -> Result<()> {
        let fd = self.socket.as_fd();
        let (level, recverr, discover) = match self.v6 {
            false => (libc::SOL_IP, libc::IP_RECVERR, libc::IP_MTU_DISCOVER),
            true => (libc::SOL_IPV6, libc::IPV6_RECVERR, libc::IPV6_MTU_DISCOVER),
        };
        // Both families have the same number for it.
        set_int(fd, level, discover, libc::IP_PMTUDISC_PROBE)
            .and_then(|()| set_int(fd, level, recverr, 1))
            .map_err(|source| Error::new("set", "IP_MTU_DISCOVER", source))
    }

    /// Tells the kernel's time of arrival no longer.
    pub fn leave_arrival_times(&self) {
        // A kernel that refuses goes on telling.
        let _ = timestamps::switch_off(self.socket.as_fd());
    }

    /// Buffers may say when they are to leave, by CLOCK_MONOTONIC ([`SendBatch::send_at`]), from
    /// here on; false where the kernel has no SO_TXTIME. Whether anything holds them until then is
    /// the queueing discipline's matter.
    pub fn time_sends(&self) -> bool {
        let option = txtime_option(libc::CLOCK_MONOTONIC);
        set_octets(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_TXTIME, &option).is_ok()
    }

    /// The connected peer.
    pub fn peer_address(&self) -> Option<SocketAddr> {
        self.socket.peer_addr().ok()?.as_socket()
    }

    /// What waits to be read, and the room for it; absent before Linux 4.12.
    pub fn receive_room(&self) -> Option<ReceiveRoom> {
        socket_option::receive_room(self.socket.as_fd())
    }

    /// Buffers that the socket did not take since it was opened.
    pub fn drops(&self) -> Option<u32> {
        socket_option::drops(self.socket.as_fd())
    }

    /// Blocking calls come back after `timeout`.
    /// # Errors
    /// The kernel's reason.
    pub fn set_call_timeout(&self, timeout: Duration) -> Result<()> {
        let set = self.socket.set_read_timeout(Some(timeout));
        set.and_then(|()| self.socket.set_write_timeout(Some(timeout)))
            .map_err(|source| Error::new("set time-out of", "a UDP socket", source))
    }

    /// Sends one datagram to the connected peer, without waiting for room.
    /// # Errors
    /// The kernel's reason; an error of an earlier datagram may be told here.
    pub fn send(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send_with_flags(datagram, libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Sends one datagram to the connected peer, once those before it leave room for it; waits at
    /// most as long as the socket's time-out.
    /// # Errors
    /// The kernel's reason; an error of an earlier datagram may be told here.
    pub fn send_when_room(&self, datagram: &[u8]) -> io::Result<()> {
        self.socket.send(datagram).map(|_| ())
    }

    /// Sends one datagram to an address, without waiting for room.
    /// # Errors
    /// The kernel's reason.
    pub fn send_to(&self, datagram: &[u8], peer: SocketAddr) -> io::Result<()> {
        self.socket.send_to_with_flags(datagram, &peer.into(), libc::MSG_DONTWAIT).map(|_| ())
    }

    /// Takes one datagram and its sender's address if one is there; what does not fit is cut off.
    /// # Errors
    /// The kernel's reason; errors of earlier sends are told here too.
    pub fn receive_from(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, SocketAddr)>> {
        self.received(buffer, rustix::net::RecvFlags::DONTWAIT)
    }

    /// The same with its time of arrival, where [`Self::note_arrivals`] asked for that.
    /// # Errors
    /// The kernel's reason; errors of earlier sends are told here too.
    pub fn receive_noted(&self, buffer: &mut [u8]) -> io::Result<Option<Noted>> {
        control::receive_noted(self.socket.as_fd(), buffer)
    }

    /// The same of a datagram that stays where it is (MSG_PEEK).
    /// # Errors
    /// The kernel's reason; errors of earlier sends are told here too.
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
/// asked for: packets that miss their time leave at once.
fn txtime_option(clock: libc::clockid_t) -> [u8; 8] {
    let mut option = [0; 8];
    option[..4].copy_from_slice(&clock.to_ne_bytes());
    option
}

/// SO_RCVBUF and SO_SNDBUF, each with the name that goes beyond the host's limit.
const RECEIVE_BUFFER: [i32; 2] = [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE];
const SEND_BUFFER: [i32; 2] = [libc::SO_SNDBUF, libc::SO_SNDBUFFORCE];

fn as_int(bytes: u64) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Whether the link's queueing discipline or driver dropped the datagrams that were to be sent
/// ([`DatagramSocket::tell_refusals`]).
pub fn is_refused_by_link(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOBUFS)
}

/// Whether a datagram is longer than the link's packets, or than a router said that it can be.
pub fn is_too_long(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EMSGSIZE)
}

/// Whether the kernel refused joined datagrams: more than it knows (EINVAL), longer than the path's
/// packets (EINVAL, EMSGSIZE), a device that makes no checksums (EIO).
pub fn is_unjoinable(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINVAL | libc::EMSGSIZE | libc::EIO))
}

/// Largest IP packet of the route to an address, as the kernel knows it now.
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

    fn pair() -> (DatagramSocket, DatagramSocket) {
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
        let (one, other) = pair();
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
        let (sender, receiver) = pair();
        if joined > 1 && !(sender.cut_sends(100) && receiver.join_receives()) {
            println!("skipped: this kernel has no UDP_SEGMENT or UDP_GRO");
            return (0..count).collect();
        }
        let mut batch = SendBatch::new(100, joined, count.into(), |_| 0xaa);
        batch.datagrams_mut().zip(0..).for_each(|(datagram, number)| datagram[0] = number);
        let mut sent = 0;
        while sent < usize::from(count) {
            sent += batch.send(&sender, sent, usize::from(count) - sent).expect("room");
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
        let (sender, receiver) = pair();
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
        let (sender, receiver) = pair();
        let empty = receiver.receive_room().expect("SO_MEMINFO is of Linux 4.12");
        assert_eq!(empty.used_bytes, 0);
        assert_eq!(Some(u64::from(empty.room_bytes)), receiver.buffers().1);
        (0..10).for_each(|_| sender.send(&[0; 1000]).expect("sent"));
        let full = receiver.receive_room().expect("as before");
        assert!(full.used_bytes >= 10_000, "{full:?}");
    }

    #[test]
    fn the_send_buffer_is_the_kernels_own_and_another_room_is_granted() {
        let (sender, _) = pair();
        let default = std::fs::read_to_string("/proc/sys/net/core/wmem_default").expect("procfs");
        let default: u64 = default.trim().parse().expect("a number");
        assert_eq!(sender.buffers().0, Some(default));
        sender.set_send_room(100_000).expect("less than before");
        let room = sender.send_room().expect("SO_MEMINFO is of Linux 4.12");
        assert_eq!((room.used_bytes, room.room_bytes), (0, 100_000));
    }

    #[test]
    fn a_socket_that_shows_words_takes_them_alone() {
        let (sender, receiver) = pair();
        receiver.show_words(&[*b"9876", *b"6789"]).expect("a filter");
        for datagram in [&b"9876"[..], b"98765", b"987", b"", b"9877", b"\0\0\0\0", b"6789"] {
            sender.send(datagram).expect("sent");
        }
        let mut taken = ReceiveBatch::growing();
        let mut all = Vec::new();
        while taken.receive_waiting(&receiver).is_ok() {
            all.extend(taken.arrived().map(|it| it.bytes.to_vec()));
        }
        assert_eq!(all, [b"9876", b"6789"]);
    }

    #[test]
    fn nothing_waiting_is_told_without_waiting() {
        let (sender, receiver) = pair();
        let mut taken = ReceiveBatch::new();
        let error = taken.receive_waiting(&receiver).expect_err("nothing was sent");
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(taken.arrived().count(), 0);
        sender.send(&[5; 20]).expect("sent");
        taken.receive_waiting(&receiver).expect("one datagram");
        assert_eq!(taken.arrived().map(|it| it.bytes.len()).collect::<Vec<_>>(), [20]);
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
        let (sender, receiver) = pair();
        set_int(receiver.as_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, 4096).expect("a small room");
        receiver.note_arrivals();
        (0..200).for_each(|_| sender.send(&[0; 1000]).expect("sent"));
        let dropped = receiver.drops().expect("SO_MEMINFO is of Linux 4.12");
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
