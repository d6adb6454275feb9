//! What moves through a [`DatagramSocket`]: many datagrams a call, on their way out and in
//! (sendmmsg(2), recvmmsg(2)).
//!
//! A buffer that leaves may say when (SCM_TXTIME), one control message of 24 bytes:
//! ```text
//!   0  word  length: 24      8  i32  SOL_SOCKET (1)      12  i32  SCM_TXTIME (61)
//!  16  u64   nanoseconds of the clock that SO_TXTIME named
//! ```
//! Source: linux/net_tstamp.h and asm-generic/socket.h; cmsg(3).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use linerate_core::time::MonoTime;

use crate::control::{self, Control};
use crate::datagram_socket::{BUFFER_BYTES, DatagramSocket};
use crate::timestamps;

/// Datagrams of one size, one after the other in memory, that go to the kernel in few calls.
#[derive(Debug)]
pub struct SendBatch {
    data: Vec<u8>,
    size: usize,
    /// Datagrams of one buffer.
    joined: usize,
}

impl SendBatch {
    /// Room for `count` datagrams of `size` bytes, of which `joined` go in one buffer; each
    /// begins as `pattern` repeated.
    pub fn new(size: usize, joined: usize, count: usize, pattern: impl Fn(usize) -> u8) -> Self {
        let data = (0..size * count).map(|at| pattern(at % size)).collect();
        Self { data, size, joined: joined.max(1) }
    }

    /// Datagrams that fit.
    pub const fn capacity(&self) -> usize {
        self.data.len() / self.size
    }

    /// Datagrams of one buffer.
    pub const fn joined(&self) -> usize {
        self.joined
    }

    /// The same datagrams, `joined` of them in one buffer from here on.
    pub fn join(&mut self, joined: usize) {
        self.joined = joined.max(1);
    }

    /// The datagrams, to be written to.
    pub fn datagrams_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.data.chunks_exact_mut(self.size)
    }

    /// Sends the datagrams from `first` on, `count` of them, in one call; waits for room at most
    /// as long as the socket's time-out. Gives the number that the kernel took.
    /// # Errors
    /// The kernel's reason when it took none.
    pub fn send(&self, socket: &DatagramSocket, first: usize, count: usize) -> io::Result<usize> {
        self.submit(socket, first, &[], count)
    }

    /// The same, where each buffer has a time to leave at; buffers beyond the `times` wait for the
    /// next call. Needs [`DatagramSocket::time_sends`].
    /// # Errors
    /// The kernel's reason when it took none.
    pub fn send_at(
        &self,
        socket: &DatagramSocket,
        first: usize,
        times: &[MonoTime],
        count: usize,
    ) -> io::Result<usize> {
        self.submit(socket, first, times, count.min(times.len() * self.joined))
    }

    fn submit(
        &self,
        socket: &DatagramSocket,
        first: usize,
        times: &[MonoTime],
        count: usize,
    ) -> io::Result<usize> {
        let data = &self.data[first * self.size..(first + count) * self.size];
        let mut pieces = [EMPTY_PIECE; SENDS_MAX];
        let buffers = data.chunks(self.joined * self.size).take(SENDS_MAX);
        let used = buffers.zip(&mut pieces).fold(0, |used, (buffer, piece)| {
            piece.iov_base = buffer.as_ptr().cast_mut().cast();
            piece.iov_len = buffer.len();
            used + 1
        });
        // SAFETY: all-zero is a valid mmsghdr (null pointers with zero lengths).
        let mut messages: [libc::mmsghdr; SENDS_MAX] = unsafe { std::mem::zeroed() };
        for (message, piece) in messages.iter_mut().zip(&mut pieces) {
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
        }
        let mut notes = [DepartureNote([0; NOTE_BYTES]); SENDS_MAX];
        for (message, (note, time)) in messages.iter_mut().zip(notes.iter_mut().zip(times)) {
            *note = departure_note(*time);
            message.msg_hdr.msg_control = note.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = NOTE_BYTES as _;
        }
        // SAFETY: the first `used` messages point to pieces, and those into `data`, and where there
        // are times to notes of that length; all outlive the call, which only reads them.
        let taken = unsafe {
            libc::sendmmsg(socket.as_fd().as_raw_fd(), messages.as_mut_ptr(), used as u32, 0)
        };
        match usize::try_from(taken) {
            Ok(taken) => Ok((taken * self.joined).min(count)),
            Err(_) => Err(io::Error::last_os_error()),
        }
    }
}

/// A control message with a time.
const NOTE_BYTES: usize = size_of::<usize>() + 16;

/// SCM_TXTIME, laid out as cmsg(3) wants it.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct DepartureNote([u8; NOTE_BYTES]);

fn departure_note(time: MonoTime) -> DepartureNote {
    let mut note = DepartureNote([0; NOTE_BYTES]);
    let (len, rest) = note.0.split_at_mut(size_of::<usize>());
    len.copy_from_slice(&NOTE_BYTES.to_ne_bytes());
    rest[..4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    rest[4..8].copy_from_slice(&libc::SCM_TXTIME.to_ne_bytes());
    rest[8..].copy_from_slice(&time.nanos().to_ne_bytes());
    note
}

/// Most buffers of one sendmmsg().
pub const SENDS_MAX: usize = 32;
/// Most buffers of one recvmmsg(), and the fewest.
const RECEIVES_MAX: usize = 64;
const RECEIVES_MIN: usize = 8;

/// A call takes no more than this, so that it stays in a core's cache until it is looked at.
const RECEIVE_BYTES: usize = 512 << 10;

/// From the start of one buffer to that of the next: a line of the cache more than a power of two,
/// else the heads of short datagrams would all want the same few places there.
const STRIDE_BYTES: usize = BUFFER_BYTES + 64;

const EMPTY_PIECE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// Room for what one call takes in.
#[derive(Debug)]
pub struct ReceiveBatch {
    data: Vec<u8>,
    controls: Box<[Control; RECEIVES_MAX]>,
    /// Length of each buffer that was filled, and of its control messages.
    filled: Vec<(usize, usize)>,
    /// Buffers of the next call.
    most: usize,
}

/// One buffer that arrived.
#[derive(Clone, Copy, Debug)]
pub struct Arrived<'a> {
    /// The datagrams, one after the other.
    pub bytes: &'a [u8],
    /// Length of each but the last, where several came joined.
    pub joined_bytes: Option<usize>,
    /// The kernel's count of drops as this buffer found its place, where told; 0 is not told.
    pub drops: Option<u32>,
    /// The kernel's time of arrival on CLOCK_REALTIME, where told.
    pub arrived_ns: Option<u64>,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBatch {
    /// Room for one buffer of the largest size, and for twice as many whenever all were filled: for
    /// sockets of which there are many, and whose peers nobody knows.
    pub fn growing() -> Self {
        Self::with_data(vec![0; STRIDE_BYTES])
    }

    /// Room for 64 buffers of the largest size, of which memory is taken as it is filled.
    pub fn new() -> Self {
        Self::with_data(vec![0; RECEIVES_MAX * STRIDE_BYTES])
    }

    fn with_data(data: Vec<u8>) -> Self {
        Self {
            data,
            controls: Box::new([Control::new(); RECEIVES_MAX]),
            filled: Vec::with_capacity(RECEIVES_MAX),
            most: RECEIVES_MIN,
        }
    }

    /// Waits for datagrams, at most as long as the socket's time-out, and takes those that are
    /// there.
    /// # Errors
    /// The kernel's reason, among them that none came in time.
    pub fn receive(&mut self, socket: &DatagramSocket) -> io::Result<()> {
        self.take(socket, libc::MSG_WAITFORONE)
    }

    /// Takes the datagrams that are there, without waiting for any.
    /// # Errors
    /// The kernel's reason, among them that none is there (`WouldBlock`).
    pub fn receive_waiting(&mut self, socket: &DatagramSocket) -> io::Result<()> {
        self.take(socket, libc::MSG_DONTWAIT)
    }

    fn take(&mut self, socket: &DatagramSocket, flags: i32) -> io::Result<()> {
        let rooms = self.data.len() / STRIDE_BYTES;
        if self.filled.len() >= rooms && rooms < RECEIVES_MAX {
            self.data = vec![0; (2 * rooms).min(RECEIVES_MAX) * STRIDE_BYTES];
        }
        let most = self.most.min(self.data.len() / STRIDE_BYTES);
        self.filled.clear();
        let mut pieces = [EMPTY_PIECE; RECEIVES_MAX];
        // SAFETY: all-zero is a valid mmsghdr (null pointers with zero lengths).
        let mut messages: [libc::mmsghdr; RECEIVES_MAX] = unsafe { std::mem::zeroed() };
        let buffers = self.data.chunks_exact_mut(STRIDE_BYTES).take(most);
        let rooms = buffers.zip(self.controls.iter_mut()).zip(&mut pieces);
        for (message, ((buffer, control), piece)) in messages.iter_mut().zip(rooms) {
            piece.iov_base = buffer.as_mut_ptr().cast();
            piece.iov_len = BUFFER_BYTES;
            message.msg_hdr.msg_iov = piece;
            message.msg_hdr.msg_iovlen = 1;
            message.msg_hdr.msg_control = control.0.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = control.0.len() as _;
        }
        // SAFETY: each of the first `most` messages points to a piece, a buffer and a control of
        // its own, which outlive the call; the kernel writes at most the given lengths.
        let taken = unsafe {
            libc::recvmmsg(
                socket.as_fd().as_raw_fd(),
                messages.as_mut_ptr(),
                most as u32,
                // musl has it unsigned.
                flags as _,
                std::ptr::null_mut(),
            )
        };
        let Ok(taken) = usize::try_from(taken) else { return Err(io::Error::last_os_error()) };
        self.filled.extend(messages[..taken].iter().map(|message| {
            let len = (message.msg_len as usize).min(BUFFER_BYTES);
            (len, message.msg_hdr.msg_controllen as _)
        }));
        let largest = self.filled.iter().map(|(len, _)| *len).max().unwrap_or(0);
        self.most = (RECEIVE_BYTES / largest.max(1)).clamp(RECEIVES_MIN, RECEIVES_MAX);
        Ok(())
    }

    /// What the last call took in.
    pub fn arrived(&self) -> impl Iterator<Item = Arrived<'_>> {
        let rooms = self.data.chunks_exact(STRIDE_BYTES).zip(self.controls.iter());
        self.filled.iter().zip(rooms).map(|(&(len, control_len), (buffer, control))| {
            let notes = &control.0[..control_len.min(control.0.len())];
            arrived(&buffer[..len], notes)
        })
    }
}

fn arrived<'a>(bytes: &'a [u8], notes: &[u8]) -> Arrived<'a> {
    let mut arrived = Arrived { bytes, joined_bytes: None, drops: None, arrived_ns: None };
    control::messages(notes, |level, kind, data| match (level, kind) {
        (libc::SOL_UDP, libc::UDP_GRO) => {
            arrived.joined_bytes = usize::try_from(control::int(data)).ok().filter(|&len| len > 0);
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            arrived.drops = Some(control::int(data).cast_unsigned());
        }
        (libc::SOL_SOCKET, libc::SCM_TIMESTAMPING) => {
            arrived.arrived_ns = timestamps::software_stamp(data);
        }
        _ => {}
    });
    arrived
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_departure_time_is_the_control_message_of_the_kernels_headers() {
        let note = departure_note(MonoTime::from_nanos(0x0123_4567_89ab_cdef)).0;
        let mut expected = 24_usize.to_ne_bytes().to_vec();
        expected.extend(1_i32.to_ne_bytes());
        expected.extend(61_i32.to_ne_bytes());
        expected.extend(0x0123_4567_89ab_cdef_u64.to_ne_bytes());
        if size_of::<usize>() == 8 {
            assert_eq!(note.as_slice(), expected);
        }
        let mut seen = Vec::new();
        control::messages(&note, |level, kind, data| seen.push((level, kind, data.to_vec())));
        let time = 0x0123_4567_89ab_cdef_u64.to_ne_bytes().to_vec();
        assert_eq!(seen, [(libc::SOL_SOCKET, libc::SCM_TXTIME, time)]);
    }
}
