//! TCP sockets with the options of a throughput test (tcp(7), ip(7), socket(7)).
//!
//! Options that shape the handshake (buffers, segment size, congestion control) are set before
//! connect or listen: a window scale is chosen on the SYN and never again (RFC 7323 §2.2).

use std::io;
use std::mem::MaybeUninit;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::time::Duration;

use linerate_core::record::{SynOptions, TcpInfo};
use linerate_core::units::BitRate;
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};

pub use super::connect_first::connect_first;
pub use crate::socket_option::StreamMemory;
use crate::{Error, Result};

/// Options of a TCP socket, set before its handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// SO_SNDBUF and SO_RCVBUF, before the kernel doubles them.
    pub window_bytes: Option<u64>,
    /// Maximum segment size (TCP_MAXSEG).
    pub mss_bytes: Option<u32>,
    /// Congestion control (TCP_CONGESTION).
    pub congestion_control: Option<String>,
    /// Nagle's algorithm off (TCP_NODELAY).
    pub nodelay: bool,
    /// Differentiated services code point.
    pub dscp: Option<u8>,
    /// Multipath TCP (RFC 8684), where the kernel supports it.
    pub mptcp: bool,
    /// Local port; by default the kernel chooses.
    pub local_port: Option<u16>,
    /// Interface to which the connection is bound (SO_BINDTODEVICE).
    pub device: Option<String>,
}

/// Segment size of control connections: the default for an unknown path MTU (RFC 1122 §4.2.2.6), so
/// that messages pass a path that drops larger packets without an ICMP error.
const CONTROL_MSS_BYTES: u32 = 536;

impl TcpOptions {
    /// Options of a client's control connection. Its SYN limits the other end's segments, too.
    pub fn control() -> Self {
        Self { mss_bytes: Some(CONTROL_MSS_BYTES), ..Self::default() }
    }
}

/// Names of calls in [`Error::call`] whose failures have separate codes: opening a socket.
pub const OPEN: &str = "open TCP socket for";
/// Name in [`Error::call`] of binding to an address.
pub const BIND: &str = "bind TCP";
/// Name in [`Error::call`] of connecting.
pub const CONNECT: &str = "connect";
/// Name in [`Error::call`] of listening.
pub const LISTEN: &str = "listen on TCP";
/// Name in [`Error::call`] of binding to an interface.
pub const BIND_DEVICE: &str = "bind to device";
/// Name in [`Error::call`] of setting the congestion control.
pub const CONGESTION_CONTROL: &str = "set congestion control";

/// Connects within `timeout`, from the local address `bind` if given.
/// # Errors
/// The failed call with the address.
pub fn connect(
    peer: SocketAddr,
    bind: Option<IpAddr>,
    options: &TcpOptions,
    timeout: Duration,
) -> Result<TcpStream> {
    let socket = open_for(peer, bind, options)?;
    let connected = socket.connect_timeout(&peer.into(), timeout);
    connected.map_err(|source| Error::new(CONNECT, peer, source))?;
    Ok(socket.into())
}

/// A socket that is ready to connect to `peer`.
pub(super) fn open_for(
    peer: SocketAddr,
    bind: Option<IpAddr>,
    options: &TcpOptions,
) -> Result<Socket> {
    let fail = |call| move |source| Error::new(call, peer, source);
    let socket = open_socket(peer, options).map_err(fail(OPEN))?;
    apply_options(&socket, peer.is_ipv6(), options)?;
    if let Some(device) = &options.device {
        bind_device(&socket, device)?;
    }
    if bind.is_some() || options.local_port.is_some() {
        let address = bind.unwrap_or_else(|| any_address(peer.is_ipv6()));
        let local = local_towards(peer, address, options.local_port.unwrap_or(0));
        // A chosen port may still be in TIME-WAIT of an earlier connection.
        socket
            .set_reuse_address(options.local_port.is_some())
            .map_err(|source| Error::new("set SO_REUSEADDR", local, source))?;
        socket.bind(&local.into()).map_err(|source| Error::new(BIND, local, source))?;
    }
    Ok(socket)
}

/// Local socket address from which `peer` is reached. A link-local address gets the peer's scope,
/// without which bind(2) refuses it.
pub fn local_towards(peer: SocketAddr, address: IpAddr, port: u16) -> SocketAddr {
    match (address, peer) {
        (IpAddr::V6(own), SocketAddr::V6(peer)) if own.is_unicast_link_local() => {
            SocketAddrV6::new(own, port, 0, peer.scope_id()).into()
        }
        _ => SocketAddr::new(address, port),
    }
}

/// Binds a socket to one interface.
pub(crate) fn bind_device(socket: &Socket, device: &str) -> Result<()> {
    let bound = socket.bind_device(Some(device.as_bytes()));
    bound.map_err(|source| Error::new(BIND_DEVICE, device, source))
}

/// Backlog of connections to be accepted: the kernel's default limit since 5.4
/// (net.core.somaxconn). Further clients retry after a second.
const WAITING: i32 = 4096;

/// Listens on `local`; accepted sockets inherit the options, and the SYN of each is saved.
/// # Errors
/// The failed call with the address.
pub fn listen(local: SocketAddr, options: &TcpOptions) -> Result<TcpListener> {
    let fail = |call| move |source| Error::new(call, local, source);
    let socket = open_socket(local, options).map_err(fail(OPEN))?;
    apply_options(&socket, local.is_ipv6(), options)?;
    socket.set_reuse_address(true).map_err(fail("set SO_REUSEADDR on"))?;
    if local.ip() == IpAddr::V6(Ipv6Addr::UNSPECIFIED) {
        // One socket serves both families; where the kernel refuses, only IPv6.
        let _ = socket.set_only_v6(false);
    }
    let saves = set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_SAVE_SYN, 1);
    // A listener of Multipath TCP does not support the option; the SYN is then unknown.
    saves
        .or_else(|error| if options.mptcp { Ok(()) } else { Err(error) })
        .map_err(fail("set TCP_SAVE_SYN on"))?;
    socket.bind(&local.into()).map_err(fail(BIND))?;
    socket.listen(WAITING).map_err(fail(LISTEN))?;
    Ok(socket.into())
}

/// Opens a socket of Multipath TCP if requested, or of TCP where the kernel has none or has it
/// switched off (net.mptcp.enabled); [`multipath`] shows the result.
fn open_socket(address: SocketAddr, options: &TcpOptions) -> io::Result<Socket> {
    let domain = Domain::for_address(address);
    if options.mptcp
        && let Ok(socket) = Socket::new(domain, Type::STREAM, Some(Protocol::MPTCP))
    {
        return Ok(socket);
    }
    Socket::new(domain, Type::STREAM, Some(Protocol::TCP))
}

/// True if this host can open sockets of Multipath TCP.
pub fn has_multipath() -> bool {
    Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::MPTCP)).is_ok()
}

/// Use of Multipath TCP on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multipath {
    /// Multipath TCP, with this number of subflows beside the first.
    Used(u8),
    /// Fallback to plain TCP, because the other end or the path does not support it (RFC 8684
    /// §3.7).
    FellBack,
    /// A socket of plain TCP: this host's kernel has no Multipath TCP, or the accepted client did
    /// not request it.
    Unavailable,
}

/// Use of Multipath TCP on a connection opened with [`TcpOptions::mptcp`]. A connection that fell
/// back has no MPTCP_INFO (Linux 5.16), as plain TCP.
pub fn multipath(socket: BorrowedFd<'_>) -> Multipath {
    /// Level SOL_MPTCP and option MPTCP_INFO of linux/mptcp.h.
    const LEVEL: i32 = 284;
    const INFO: i32 = 1;
    /// Flag MPTCP_INFO_FLAG_FALLBACK, in the word at octet 8 of struct mptcp_info.
    const FALLBACK: u32 = 1;
    let is_multipath = SockRef::from(&socket).protocol();
    if !is_multipath.is_ok_and(|protocol| protocol == Some(Protocol::MPTCP)) {
        return Multipath::Unavailable;
    }
    let mut info = [0_u8; 128];
    match get(socket, LEVEL, INFO, &mut info) {
        Ok(length) if length >= 12 => {
            let flags = u32::from_ne_bytes([info[8], info[9], info[10], info[11]]);
            if flags & FALLBACK == 0 { Multipath::Used(info[0]) } else { Multipath::FellBack }
        }
        _ => Multipath::FellBack,
    }
}

/// Sets options of an accepted connection. Buffers and segment size apply from now on; the window
/// scale stays that of the handshake (RFC 7323 §2.2).
/// # Errors
/// The failed call.
pub fn adjust(stream: &TcpStream, options: &TcpOptions) -> Result<()> {
    let socket = SockRef::from(stream);
    let v6 = stream.peer_addr().is_ok_and(|peer| peer.ip().to_canonical().is_ipv6());
    apply_options(&socket, v6, options)
}

/// The unspecified address of a family.
pub const fn any_address(v6: bool) -> IpAddr {
    if v6 { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) }
}

/// Wildcard address for a listener of all connections to this host: of both families, or of IPv4
/// where the kernel has no IPv6.
pub fn any_address_here() -> IpAddr {
    any_address(Socket::new(Domain::IPV6, Type::STREAM, Some(Protocol::TCP)).is_ok())
}

fn apply_options(socket: &Socket, v6: bool, options: &TcpOptions) -> Result<()> {
    let fail = |call, object: String| move |source| Error::new(call, object, source);
    if let Some(window) = options.window_bytes {
        let size = usize::try_from(window).unwrap_or(usize::MAX).min(i32::MAX as usize);
        let object = format!("to {window} bytes");
        socket.set_recv_buffer_size(size).map_err(fail("set SO_RCVBUF", object.clone()))?;
        socket.set_send_buffer_size(size).map_err(fail("set SO_SNDBUF", object))?;
    }
    if let Some(mss) = options.mss_bytes {
        let value = i32::try_from(mss).unwrap_or(i32::MAX);
        set_int(socket.as_fd(), libc::IPPROTO_TCP, libc::TCP_MAXSEG, value)
            .map_err(fail("set TCP_MAXSEG", format!("to {mss} bytes")))?;
    }
    if let Some(name) = &options.congestion_control {
        set_congestion_control(socket.as_fd(), name)?;
    }
    if options.nodelay {
        socket.set_tcp_nodelay(true).map_err(fail("set TCP_NODELAY", String::new()))?;
    }
    if let Some(dscp) = options.dscp {
        // The upper six bits of the traffic class octet (RFC 2474 §3).
        let class = u32::from(dscp) << 2;
        let set = if v6 { socket.set_tclass_v6(class) } else { socket.set_tos_v4(class) };
        set.map_err(fail("set DSCP", dscp.to_string()))?;
    }
    Ok(())
}

/// Sets a congestion control by its kernel name.
/// # Errors
/// When the kernel does not have it, or allows it only to privileged users.
pub fn set_congestion_control(socket: BorrowedFd<'_>, name: &str) -> Result<()> {
    rustix::net::sockopt::set_tcp_congestion(socket, name)
        .map_err(|source| Error::new(CONGESTION_CONTROL, name, source))
}

/// The congestion control in use.
pub fn congestion_control(socket: BorrowedFd<'_>) -> Option<String> {
    rustix::net::sockopt::tcp_congestion(socket).ok()
}

/// Sets the send buffer (SO_SNDBUF, socket(7)), which turns the kernel's auto-tuning off. The
/// kernel grants twice as much, for its overhead, within net.core.wmem_max.
/// # Errors
/// When the kernel refuses the option.
pub fn set_send_buffer(stream: &TcpStream, bytes: u32) -> Result<()> {
    SockRef::from(stream)
        .set_send_buffer_size(bytes as usize)
        .map_err(|source| Error::new("set SO_SNDBUF", format!("to {bytes} bytes"), source))
}

/// True for a connection within this host: both ends have the same address, or loopback addresses.
pub fn stays_within_host(stream: &TcpStream) -> bool {
    let address = |socket: io::Result<SocketAddr>| Some(socket.ok()?.ip().to_canonical());
    match (address(stream.local_addr()), address(stream.peer_addr())) {
        (Some(local), Some(peer)) => local == peer || (local.is_loopback() && peer.is_loopback()),
        _ => false,
    }
}

/// Granted send and receive buffers, as getsockopt returns them: twice the requested values, within
/// the host's limits (socket(7)).
pub fn buffers(stream: &TcpStream) -> (Option<u64>, Option<u64>) {
    let socket = SockRef::from(stream);
    (
        socket.send_buffer_size().ok().map(|size| size as u64),
        socket.recv_buffer_size().ok().map(|size| size as u64),
    )
}

/// The segment size in use (TCP_MAXSEG).
pub fn segment_size(socket: BorrowedFd<'_>) -> Option<u32> {
    let mut value = [0_u8; 4];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_MAXSEG, &mut value).ok()?;
    (length == 4).then(|| u32::from_ne_bytes(value))
}

/// Sets the time-out of blocking calls, after which loops can check their flags.
/// # Errors
/// When the kernel refuses the option.
pub fn set_call_timeout(stream: &TcpStream, timeout: Duration) -> Result<()> {
    stream
        .set_read_timeout(Some(timeout))
        .and_then(|()| stream.set_write_timeout(Some(timeout)))
        .map_err(|source| Error::new("set SO_RCVTIMEO and SO_SNDTIMEO", "", source))
}

/// Limits the rate of a connection, payload and headers, by the kernel's pacing
/// (SO_MAX_PACING_RATE, socket(7)). Without the queueing discipline fq at the interface, TCP paces
/// by internal timers, since Linux 4.13.
/// # Errors
/// When the kernel refuses the option.
pub fn set_pacing_rate(stream: &TcpStream, rate: BitRate) -> Result<()> {
    // The unit is bytes a second, in 32 bits on older kernels, where the highest value is no limit.
    let bytes = u32::try_from(rate.bits_per_sec() / 8).unwrap_or(u32::MAX);
    set_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, bytes.cast_signed())
        .map_err(|source| Error::new("set SO_MAX_PACING_RATE", format!("to {rate}"), source))
}

/// State and counters of the connection (TCP_INFO); takes about a microsecond.
pub fn tcp_info(socket: BorrowedFd<'_>) -> Option<TcpInfo> {
    // The structure has 280 bytes on Linux 6.18, and only grows.
    let mut bytes = [0_u8; 512];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes).ok()?;
    Some(TcpInfo::from_ne_bytes(&bytes[..length]))
}

/// Time since either end last sent data (`tcpi_last_data_sent`, `tcpi_last_data_recv`: milliseconds
/// at bytes 44 and 52 of `struct tcp_info`, linux/tcp.h).
pub fn silence(socket: BorrowedFd<'_>) -> Option<Duration> {
    let mut bytes = [0_u8; 56];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_INFO, &mut bytes).ok()?;
    let word = |at: usize| bytes[..length].get(at..at + 4)?.try_into().ok().map(u32::from_ne_bytes);
    Some(Duration::from_millis(word(44)?.min(word(52)?).into()))
}

/// Options of the SYN of an accepted connection, where the listener saved it (kernel 4.3).
pub fn saved_syn(socket: BorrowedFd<'_>) -> Option<SynOptions> {
    let mut bytes = [0_u8; 256];
    let length = get(socket, libc::IPPROTO_TCP, libc::TCP_SAVED_SYN, &mut bytes).ok()?;
    SynOptions::from_ip_packet(&bytes[..length])
}

/// Sets the number of bytes for which a blocking read waits, unless the peer closes or the time-out
/// passes (SO_RCVLOWAT, socket(7)). The kernel limits it to half of a requested receive buffer.
pub fn set_receive_low_water(stream: &TcpStream, bytes: i32) {
    // If the kernel refuses, the mark stays at one byte, which only causes more wake-ups.
    let _ = set_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_RCVLOWAT, bytes);
}

/// Sets the amount of unsent bytes above which a socket accepts no more (TCP_NOTSENT_LOWAT, kernel
/// 3.12).
pub fn set_unsent_low_water(stream: &TcpStream, bytes: i32) {
    // If the kernel refuses, the send buffer is the limit.
    let _ = set_int(stream.as_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, bytes);
}

/// Received data of a connection that was not read yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// Bytes that a read would return (SIOCINQ, tcp(7)); 0 where they are unknown.
    pub bytes: u64,
    /// Receive memory beyond that of these bytes: data after a missing segment.
    pub unexplained_bytes: u64,
}

/// Most receive memory for each byte: a segment of 1,448 bytes takes at most a page of 4,096 (the
/// truesize of struct sk_buff).
const MEMORY_PER_BYTE: u64 = 4;

/// Received data that was not read yet.
pub fn waiting(stream: &TcpStream) -> Waiting {
    let bytes = rustix::io::ioctl_fionread(stream).unwrap_or(0);
    let explained = bytes.saturating_mul(MEMORY_PER_BYTE);
    let room = crate::socket_option::receive_room(stream.as_fd());
    let used = room.map_or(0, |room| room.used_bytes);
    Waiting { bytes, unexplained_bytes: u64::from(used).saturating_sub(explained) }
}

/// Memory of a connection (SO_MEMINFO, Linux 4.12).
pub fn memory(socket: BorrowedFd<'_>) -> Option<StreamMemory> {
    crate::socket_option::stream_memory(socket)
}

/// Payload bytes received in order and not read (SIOCINQ, tcp(7)).
pub fn receive_queue(socket: BorrowedFd<'_>) -> Option<u64> {
    rustix::io::ioctl_fionread(socket).ok()
}

/// Payload bytes written and not acknowledged (SIOCOUTQ, tcp(7)).
pub fn send_queue(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which is TIOCOUTQ, writes one int, which lives through the call.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    (result == 0).then(|| u64::try_from(bytes).ok()).flatten()
}

/// Makes the close of a connection an abort: the peer gets a reset, and unsent data is dropped.
pub fn reset_on_close(stream: &TcpStream) {
    let _ = SockRef::from(stream).set_linger(Some(Duration::ZERO));
}

/// Aborts the connection at once, also for other threads that use the socket: the peer gets a
/// reset, and calls on the socket return an error or the end (connect(2) with AF_UNSPEC).
pub fn abort_connection(stream: &TcpStream) {
    // A connection that cannot be aborted is at least shut down.
    if rustix::net::connect_unspec(stream).is_err() {
        let _ = stream.shutdown(std::net::Shutdown::Both);
    }
}

/// Aborts the connection when the peer's host has not answered for about `patience`: neither data
/// (TCP_USER_TIMEOUT, RFC 5482) nor, on an idle connection, keep-alive probes (tcp(7)).
pub fn notice_vanished_peer(stream: &TcpStream, patience: Duration) {
    let socket = SockRef::from(stream);
    // The first probe is sent after one second, then one each second up to `patience`.
    let second = Duration::from_secs(1);
    let probes = u32::try_from(patience.as_secs()).unwrap_or(u32::MAX).clamp(2, 127) - 1;
    let keep_alive =
        TcpKeepalive::new().with_time(second).with_interval(second).with_retries(probes);
    // If the kernel refuses, its default timers apply.
    let _ = socket.set_tcp_keepalive(&keep_alive);
    let _ = socket.set_tcp_user_timeout(Some(patience));
}

/// True if the peer has closed or the connection has ended, so that no more bytes will arrive
/// (CLOSE-WAIT, LAST-ACK, CLOSING, CLOSED; 8, 9, 11 and 7 of Linux tcp_states.h).
pub fn peer_has_closed(stream: &TcpStream) -> bool {
    let state = tcp_info(stream.as_fd()).and_then(|info| info.state);
    state.is_none_or(|state| matches!(state, 7..=9 | 11))
}

fn set_int(socket: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    // SAFETY: `value` lives through the call and its size is the length given.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            level,
            name,
            (&raw const value).cast(),
            size_of::<i32>() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option into `bytes` and returns the length that the kernel wrote.
fn get(socket: BorrowedFd<'_>, level: i32, name: i32, bytes: &mut [u8]) -> io::Result<usize> {
    let mut length = libc::socklen_t::try_from(bytes.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: `bytes` is writable for `length` octets and both live through the call.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            level,
            name,
            bytes.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    if result == 0 {
        Ok((length as usize).min(bytes.len()))
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Reads from the stream into uninitialised memory; returns the length. The bytes are only counted.
/// # Errors
/// The errors of recv(2).
#[inline]
pub fn receive(stream: &TcpStream, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    SockRef::from(stream).recv(buffer)
}

/// Discards up to `length` received bytes without copying them (MSG_TRUNC, tcp(7)); returns their
/// number.
/// # Errors
/// The errors of recv(2).
#[inline]
pub fn discard(stream: &TcpStream, length: usize) -> io::Result<usize> {
    // SAFETY: with MSG_TRUNC a TCP socket writes nothing to the buffer, so that none is needed.
    let taken =
        unsafe { libc::recv(stream.as_raw_fd(), std::ptr::null_mut(), length, libc::MSG_TRUNC) };
    if taken < 0 { Err(io::Error::last_os_error()) } else { Ok(taken.cast_unsigned()) }
}

/// Processor on which the kernel last received a packet of this connection (SO_INCOMING_CPU,
/// socket(7)); over loopback and veth that of the sender.
pub fn incoming_cpu(stream: &TcpStream) -> Option<u32> {
    let cpu =
        crate::socket_option::get_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_INCOMING_CPU);
    u32::try_from(cpu.ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn connected_pair(client: &TcpOptions, server: &TcpOptions) -> (TcpStream, TcpStream) {
        let local = SocketAddr::from(([127, 0, 0, 1], 0));
        let listener = listen(local, server).expect("a free port");
        let address = listener.local_addr().expect("bound");
        let stream = connect(address, None, client, Duration::from_secs(10)).expect("loopback");
        (stream, listener.accept().expect("it is there").0)
    }

    #[test]
    fn discarded_bytes_are_counted_to_the_end() {
        let (client, server) = connected_pair(&TcpOptions::default(), &TcpOptions::default());
        let writer = std::thread::spawn(move || (&client).write_all(&vec![1; 1_000_000]));
        let mut total = 0;
        loop {
            match discard(&server, 1 << 20).expect("they come") {
                0 => break,
                count => total += count,
            }
        }
        writer.join().expect("no panic").expect("room");
        assert_eq!(total, 1_000_000);
    }

    #[test]
    fn what_waits_in_a_connection_is_told_at_both_ends() {
        let (client, server) = connected_pair(&TcpOptions::default(), &TcpOptions::default());
        (&client).write_all(&[7; 3000]).expect("room");
        let seen = || (receive_queue(server.as_fd()), send_queue(client.as_fd()));
        for _ in 0..1000 {
            // All has arrived, and its acknowledgement, too.
            if seen() == (Some(3000), Some(0)) {
                break;
            }
            crate::clock::sleep(Duration::from_millis(5));
        }
        assert_eq!(seen(), (Some(3000), Some(0)));
        let memory = memory(server.as_fd()).expect("Linux 4.12");
        assert!(memory.received_bytes >= 3000, "{memory:?}");
        let (_, granted) = buffers(&server);
        assert_eq!(Some(memory.receive_buffer_bytes.into()), granted);
    }

    #[test]
    fn multipath_tcp_is_told_from_what_fell_back_and_from_plain_tcp() {
        let (plain, many) =
            (TcpOptions::default(), TcpOptions { mptcp: true, ..TcpOptions::default() });
        let (client, _server) = connected_pair(&plain, &plain);
        assert_eq!(multipath(client.as_fd()), Multipath::Unavailable);
        let (client, server) = connected_pair(&many, &many);
        let used = multipath(client.as_fd());
        if used == Multipath::Unavailable {
            println!("skipped: this kernel has no Multipath TCP, or net.mptcp.enabled is 0");
            return;
        }
        (&client).write_all(b"x").expect("room");
        let mut byte = [0; 1];
        io::Read::read_exact(&mut &server, &mut byte).expect("it comes");
        assert_eq!(used, Multipath::Used(0));
        assert_eq!(multipath(server.as_fd()), Multipath::Used(0));
        let (client, _server) = connected_pair(&many, &plain);
        assert_eq!(multipath(client.as_fd()), Multipath::FellBack);
    }
}
