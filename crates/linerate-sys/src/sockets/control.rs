//! recvmsg(2) with its control messages (cmsg(3)), parsed without pointers.
//!
//! Only for sockets that probe or need times of arrival; data sockets read with plain recv(2).

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, SockAddrStorage};

use crate::timestamps;

/// Buffer of control messages: three timestamps, an extended error with its address, a TTL and a
/// packet information need 48 + 44 + 4 + 20 octets and four headers of 16.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlBuffer(pub(crate) [u8; 256]);

impl ControlBuffer {
    pub(crate) const fn new() -> Self {
        Self([0; 256])
    }

    /// Appends a message after the first `at` octets; returns the new number of octets.
    pub(crate) fn add(&mut self, at: usize, level: i32, kind: i32, data: &[u8]) -> usize {
        const WORD: usize = size_of::<usize>();
        let header = WORD + 8;
        let message = &mut self.0[at..at + header + data.len()];
        message[..WORD].copy_from_slice(&(header + data.len()).to_ne_bytes());
        message[WORD..WORD + 4].copy_from_slice(&level.to_ne_bytes());
        message[WORD + 4..header].copy_from_slice(&kind.to_ne_bytes());
        message[header..].copy_from_slice(data);
        at + (header + data.len()).next_multiple_of(WORD)
    }
}

/// Lengths that one call received.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    /// Octets written to the data buffer.
    pub(crate) len: usize,
    /// Octets written to the control buffer.
    pub(crate) control_len: usize,
}

/// One non-blocking recvmsg(2); `None` when nothing is queued.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    data: &mut [u8],
    control: &mut ControlBuffer,
    flags: i32,
) -> io::Result<Option<Taken>> {
    receive_named(fd, data, control, flags, None)
}

/// One non-blocking recvmsg(2) that also writes the source address to `name`.
pub(crate) fn receive_named(
    fd: BorrowedFd<'_>,
    data: &mut [u8],
    control: &mut ControlBuffer,
    flags: i32,
    name: Option<&mut libc::sockaddr_storage>,
) -> io::Result<Option<Taken>> {
    let mut piece = libc::iovec { iov_base: data.as_mut_ptr().cast(), iov_len: data.len() };
    // SAFETY: all-zero is a valid msghdr (null pointers with zero lengths).
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut piece;
    message.msg_iovlen = 1;
    message.msg_control = control.0.as_mut_ptr().cast();
    message.msg_controllen = control.0.len() as _;
    if let Some(name) = name {
        message.msg_namelen = size_of_val(name) as libc::socklen_t;
        message.msg_name = std::ptr::from_mut(name).cast();
    }
    // SAFETY: `message` points to `piece`, `data`, `control` and `name`, which outlive the call;
    // the kernel writes at most the given lengths.
    let len =
        unsafe { libc::recvmsg(fd.as_raw_fd(), &raw mut message, flags | libc::MSG_DONTWAIT) };
    if len < 0 {
        let error = io::Error::last_os_error();
        return if error.kind() == io::ErrorKind::WouldBlock { Ok(None) } else { Err(error) };
    }
    Ok(Some(Taken { len: len.cast_unsigned(), control_len: message.msg_controllen as usize }))
}

/// A received datagram's length, sender and time of arrival; its bytes are in the buffer.
#[derive(Clone, Copy, Debug)]
pub struct Noted {
    /// Octets of the datagram in the buffer.
    pub len: usize,
    /// Source address of the datagram.
    pub from: SocketAddr,
    /// Time of arrival on CLOCK_REALTIME, if the kernel gives one.
    pub arrived_ns: Option<u64>,
}

/// Receives one datagram with its source address and time of arrival.
pub(crate) fn receive_noted(fd: BorrowedFd<'_>, data: &mut [u8]) -> io::Result<Option<Noted>> {
    let mut storage = SockAddrStorage::zeroed();
    let mut control = ControlBuffer::new();
    // SAFETY: the storage is as large as the type that it is viewed as.
    let name = unsafe { storage.view_as::<libc::sockaddr_storage>() };
    let Some(taken) = receive_named(fd, data, &mut control, 0, Some(name))? else {
        return Ok(None);
    };
    let mut arrived_ns = None;
    messages(&control.0[..taken.control_len], |level, kind, data| {
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) {
            arrived_ns = timestamps::software_stamp(data);
        }
    });
    let size = storage.size_of();
    // SAFETY: the kernel wrote an address into it, or left its family AF_UNSPEC.
    let from = unsafe { SockAddr::new(storage, size) }.as_socket();
    Ok(from.map(|from| Noted { len: taken.len, from, arrived_ns }))
}

/// Calls `each` with level, type and data of each control message.
pub(crate) fn messages(mut control: &[u8], mut each: impl FnMut(i32, i32, &[u8])) {
    const WORD: usize = size_of::<usize>();
    /// cmsghdr: a length of one word, then level and type (cmsg(3)).
    const HEADER: usize = WORD + 8;
    while let Some((header, _)) = control.split_first_chunk::<HEADER>() {
        let len = usize::from_ne_bytes(header[..WORD].try_into().expect("a word is a word"));
        let level = int_from_octets(&header[WORD..]);
        let kind = int_from_octets(&header[WORD + 4..]);
        let Some(data) = control.get(HEADER..len) else { return };
        each(level, kind, data);
        control = control.get(len.next_multiple_of(WORD)..).unwrap_or(&[]);
    }
}

/// The first four octets as a native int; 0 when there are fewer.
pub(crate) fn int_from_octets(data: &[u8]) -> i32 {
    data.first_chunk().map_or(0, |octets| i32::from_ne_bytes(*octets))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(len: usize, level: i32, kind: i32) -> Vec<u8> {
        let mut octets = len.to_ne_bytes().to_vec();
        octets.extend_from_slice(&level.to_ne_bytes());
        octets.extend_from_slice(&kind.to_ne_bytes());
        octets
    }

    #[test]
    fn two_messages_are_found_and_padding_is_skipped() {
        let mut control = header(size_of::<usize>() + 12, 1, 2);
        control.extend_from_slice(&7i32.to_ne_bytes());
        control.resize(control.len().next_multiple_of(size_of::<usize>()), 0);
        control.extend(header(size_of::<usize>() + 9, 3, 4));
        control.push(9);
        let mut seen = Vec::new();
        messages(&control, |level, kind, data| seen.push((level, kind, data.to_vec())));
        assert_eq!(seen, [(1, 2, 7i32.to_ne_bytes().to_vec()), (3, 4, vec![9])]);
    }

    #[test]
    fn a_length_that_lies_ends_the_walk() {
        for len in [0, 1, 15, 17, usize::MAX] {
            let mut count = 0;
            messages(&header(len, 1, 2), |_, _, _| count += 1);
            assert_eq!(count, 0, "length {len}");
        }
    }
}
