//! Socket options without a typed interface elsewhere (setsockopt(2)).

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option of type int.
pub(crate) fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_octets(fd, level, name, &value.to_ne_bytes())
}

/// Sets an option of a structure type.
pub(crate) fn set_octets(
    fd: BorrowedFd<'_>,
    level: i32,
    name: i32,
    octets: &[u8],
) -> io::Result<()> {
    // SAFETY: the kernel reads exactly `octets.len()` octets during the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            octets.as_ptr().cast(),
            octets.len() as libc::socklen_t,
        )
    };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Reads an option of type int.
pub(crate) fn get_int(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value: i32 = 0;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `value` during the call.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Indices in the result of SO_MEMINFO (linux/sock_diag.h): SK_MEMINFO_RMEM_ALLOC, _RCVBUF,
/// _WMEM_ALLOC, _SNDBUF, _WMEM_QUEUED, _DROPS.
const USED: usize = 0;
const ROOM: usize = 1;
const SEND_USED: usize = 2;
const SEND_ROOM: usize = 3;
const SEND_QUEUED: usize = 5;
const DROPS: usize = 8;

/// Receive memory of a socket. Both values count whole kernel buffers, not payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveRoom {
    /// Memory of queued data. UDP frees the memory of read data in steps of a quarter of the limit,
    /// or once the queue is empty (`udp_rmem_release` of net/ipv4/udp.c).
    pub used_bytes: u32,
    /// Limit: SO_RCVBUF as granted.
    pub room_bytes: u32,
}

/// Send memory of a socket for datagrams that have not left this host, including those in the
/// queueing discipline and in the NIC's ring until their completion. Both values count whole kernel
/// buffers, not payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRoom {
    /// Memory of datagrams that have not left.
    pub used_bytes: u32,
    /// Limit: SO_SNDBUF as granted. A socket accepts one more buffer while less than this is used.
    pub room_bytes: u32,
}

/// Memory of a TCP connection, in whole kernel buffers, not payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMemory {
    /// Memory of received data that was not read, in order or not.
    pub received_bytes: u32,
    /// Current value of SO_RCVBUF.
    pub receive_buffer_bytes: u32,
    /// Memory of written data that is not acknowledged.
    pub queued_bytes: u32,
    /// Current value of SO_SNDBUF.
    pub send_buffer_bytes: u32,
}

/// Memory of a TCP connection (SO_MEMINFO, Linux 4.12).
pub(crate) fn stream_memory(fd: BorrowedFd<'_>) -> Option<StreamMemory> {
    meminfo(fd).map(|info| StreamMemory {
        received_bytes: info[USED],
        receive_buffer_bytes: info[ROOM],
        queued_bytes: info[SEND_QUEUED],
        send_buffer_bytes: info[SEND_ROOM],
    })
}

/// Packets that the socket has dropped since it was opened (SO_MEMINFO, Linux 4.12), for lack of
/// memory or by its filter.
pub(crate) fn dropped_packets(fd: BorrowedFd<'_>) -> Option<u32> {
    meminfo(fd).map(|info| info[DROPS])
}

/// Receive memory of a socket (SO_MEMINFO, Linux 4.12).
pub(crate) fn receive_room(fd: BorrowedFd<'_>) -> Option<ReceiveRoom> {
    meminfo(fd).map(|info| ReceiveRoom { used_bytes: info[USED], room_bytes: info[ROOM] })
}

/// Send memory of a socket (SO_MEMINFO, Linux 4.12).
pub(crate) fn send_room(fd: BorrowedFd<'_>) -> Option<SendRoom> {
    meminfo(fd).map(|info| SendRoom { used_bytes: info[SEND_USED], room_bytes: info[SEND_ROOM] })
}

fn meminfo(fd: BorrowedFd<'_>) -> Option<[u32; DROPS + 1]> {
    let mut info = [0u32; DROPS + 1];
    let mut len = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `info` during the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    (result == 0 && len as usize == size_of_val(&info)).then_some(info)
}
