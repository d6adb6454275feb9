//! Socket options that are one int (setsockopt(2)) and have no typed face elsewhere.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Sets an option.
pub(crate) fn set_int(fd: BorrowedFd<'_>, level: i32, name: i32, value: i32) -> io::Result<()> {
    set_octets(fd, level, name, &value.to_ne_bytes())
}

/// Sets an option that is a small structure.
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

/// Reads an option.
pub(crate) fn get_int(fd: BorrowedFd<'_>, level: i32, name: i32) -> io::Result<i32> {
    let mut value: i32 = 0;
    let mut len = size_of::<i32>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` octets to `value` during the call.
    let result = unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut len)
    };
    if result == 0 { Ok(value) } else { Err(io::Error::last_os_error()) }
}

/// Places of linux/sock_diag.h in what SO_MEMINFO gives: SK_MEMINFO_RMEM_ALLOC, _RCVBUF,
/// _WMEM_ALLOC, _SNDBUF, _WMEM_QUEUED, _DROPS.
const USED: usize = 0;
const ROOM: usize = 1;
const SEND_USED: usize = 2;
const SEND_ROOM: usize = 3;
const SEND_QUEUED: usize = 5;
const DROPS: usize = 8;

/// What waits in a socket, and the room for it. Both count whole kernel buffers, not payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReceiveRoom {
    /// Taken up by what waits. UDP gives back what was read in steps of a quarter of the room, or
    /// once nothing waits (`udp_rmem_release` of net/ipv4/udp.c).
    pub used_bytes: u32,
    /// SO_RCVBUF as granted.
    pub room_bytes: u32,
}

/// What of a socket's datagrams has not left this host, and the room for it. Both count whole
/// kernel buffers, not payload; what waits in the queueing discipline is among it, and what waits
/// in the link's own ring until it says that it sent it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendRoom {
    /// Taken up by what waits.
    pub used_bytes: u32,
    /// SO_SNDBUF as granted. A socket takes one more buffer while less than this is used.
    pub room_bytes: u32,
}

/// Memory of a connection, which counts whole kernel buffers, not payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamMemory {
    /// Taken up by what was received, in order or not, and not read.
    pub received_bytes: u32,
    /// SO_RCVBUF as it is now.
    pub receive_buffer_bytes: u32,
    /// Taken up by what was written and is not acknowledged.
    pub queued_bytes: u32,
    /// SO_SNDBUF as it is now.
    pub send_buffer_bytes: u32,
}

/// What a connection takes up (SO_MEMINFO, Linux 4.12).
pub(crate) fn stream_memory(fd: BorrowedFd<'_>) -> Option<StreamMemory> {
    meminfo(fd).map(|info| StreamMemory {
        received_bytes: info[USED],
        receive_buffer_bytes: info[ROOM],
        queued_bytes: info[SEND_QUEUED],
        send_buffer_bytes: info[SEND_ROOM],
    })
}

/// Packets that the socket did not take, since it was opened (SO_MEMINFO, Linux 4.12): for want of
/// room, or by its filter.
pub(crate) fn drops(fd: BorrowedFd<'_>) -> Option<u32> {
    meminfo(fd).map(|info| info[DROPS])
}

/// What waits in a socket (SO_MEMINFO, Linux 4.12).
pub(crate) fn receive_room(fd: BorrowedFd<'_>) -> Option<ReceiveRoom> {
    meminfo(fd).map(|info| ReceiveRoom { used_bytes: info[USED], room_bytes: info[ROOM] })
}

/// What of a socket's datagrams has not left (SO_MEMINFO, Linux 4.12).
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
