//! Batches of datagrams of a [`DatagramSocket`]: many datagrams a call, sent and received
//! (sendmmsg(2), recvmmsg(2)).
//!
//! A sent buffer may have a time of departure (SCM_TXTIME), one control message of 24 bytes:
//! ```text
//!   0  word  length: 24      8  i32  SOL_SOCKET (1)      12  i32  SCM_TXTIME (61)
//!  16  u64   nanoseconds of the clock that SO_TXTIME named
//! ```
//! Source: linux/net_tstamp.h and asm-generic/socket.h; cmsg(3).

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use linerate_core::time::MonoTime;

use crate::control::{self, ControlBuffer};
use crate::datagram_socket::{BUFFER_BYTES, DatagramSocket};
use crate::timestamps;

/// Datagrams of one size, contiguous in memory, that are sent in few calls.
#[derive(Debug)]
pub struct SendBatch {
    data: Vec<u8>,
    size: usize,
    /// Datagrams in one buffer (UDP_SEGMENT).
    joined: usize,
}

impl SendBatch {
    /// A batch of `count` datagrams of `size` bytes, `joined` of them in one buffer; each is
    /// initialised with `pattern`.
    pub fn new(size: usize, joined: usize, count: usize, pattern: impl Fn(usize) -> u8) -> Self {
        let data = (0..size * count).map(|at| pattern(at % size)).collect();
        Self { data, size, joined: joined.max(1) }
    }

    /// Number of datagrams in the batch.
    pub const fn capacity(&self) -> usize {
        self.data.len() / self.size
    }

    /// Number of datagrams in one buffer.
    pub const fn joined(&self) -> usize {
        self.joined
    }

    /// Sends `joined` datagrams in one buffer from now on.
    pub fn set_joined(&mut self, joined: usize) {
        self.joined = joined.max(1);
    }

    /// All datagrams for writing.
    pub fn datagrams_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.data.chunks_exact_mut(self.size)
    }

    /// Sends `count` datagrams from `first` on in one call; waits for room at most as long as the
    /// socket's time-out. Returns the number that the kernel accepted.
    /// # Errors
    /// The kernel's reason when it accepted none.
    pub fn send_datagrams(
        &self,
        socket: &DatagramSocket,
        first: usize,
        count: usize,
    ) -> io::Result<usize> {
        self.submit(socket, first, &[], count)
    }

    /// Sends datagrams, each buffer with its time of departure; buffers beyond the `times` are not
    /// sent. Needs [`DatagramSocket::time_sends`].
    /// # Errors
    /// The kernel's reason when it accepted none.
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

/// Bytes of a control message with a time.
const NOTE_BYTES: usize = size_of::<usize>() + 16;

/// Control message SCM_TXTIME in the layout of cmsg(3).
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
struct DepartureNote([u8; NOTE_BYTES]);

fn departure_note(time: MonoTime) -> DepartureNote {
    let mut note = DepartureNote([0; NOTE_BYTES]);
    let (len, rest) = note.0.split_at_mut(size_of::<usize>());
    len.copy_from_slice(&NOTE_BYTES.to_ne_bytes());
    rest[..4].copy_from_slice(&libc::SOL_SOCKET.to_ne_bytes());
    rest[4..8].copy_from_slice(&libc::SCM_TXTIME.to_ne_bytes());
    rest[8..].copy_from_slice(&time.as_nanos().to_ne_bytes());
    note
}

/// Most buffers of one sendmmsg().
pub const SENDS_MAX: usize = 32;
/// Most buffers of one recvmmsg(), and the initial number.
const RECEIVES_MAX: usize = 64;
const RECEIVES_MIN: usize = 8;

/// Most bytes of one call, so that they are still in the core's cache when they are read.
const RECEIVE_BYTES: usize = 512 << 10;

/// Distance of two buffers: a cache line more than a power of two, so that the headers of short
/// datagrams do not all map to the same cache sets.
const STRIDE_BYTES: usize = BUFFER_BYTES + 64;

const EMPTY_PIECE: libc::iovec = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };

/// Buffers for the datagrams of one call.
#[derive(Debug)]
pub struct ReceiveBatch {
    data: Vec<u8>,
    controls: Box<[ControlBuffer; RECEIVES_MAX]>,
    /// Length of each filled buffer, and of its control messages.
    filled: Vec<(usize, usize)>,
    /// Number of buffers for the next call.
    most: usize,
}

/// A received buffer.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedUdpBuffer<'a> {
    /// Datagrams of the buffer, contiguous.
    pub bytes: &'a [u8],
    /// Length of each datagram but the last, where several were joined (UDP_GRO).
    pub joined_bytes: Option<usize>,
    /// The kernel's count of socket drops when the buffer was queued; the kernel reports none while
    /// it is 0.
    pub drops: Option<u32>,
    /// The kernel's time of arrival on CLOCK_REALTIME, where reported.
    pub arrived_ns: Option<u64>,
}

impl Default for ReceiveBatch {
    fn default() -> Self {
        Self::new()
    }
}

impl ReceiveBatch {
    /// Room for one buffer of the largest size, doubled whenever all were filled: for many sockets
    /// with unknown peers.
    pub fn growing() -> Self {
        Self::with_data(vec![0; STRIDE_BYTES])
    }

    /// Room for 64 buffers of the largest size, whose pages are allocated when first filled.
    pub fn new() -> Self {
        Self::with_data(vec![0; RECEIVES_MAX * STRIDE_BYTES])
    }

    fn with_data(data: Vec<u8>) -> Self {
        Self {
            data,
            controls: Box::new([ControlBuffer::new(); RECEIVES_MAX]),
            filled: Vec::with_capacity(RECEIVES_MAX),
            most: RECEIVES_MIN,
        }
    }

    /// Waits for datagrams, at most as long as the socket's time-out, and receives those that are
    /// queued.
    /// # Errors
    /// The kernel's reason, also when none arrived in time.
    pub fn receive(&mut self, socket: &DatagramSocket) -> io::Result<()> {
        self.receive_with_flags(socket, libc::MSG_WAITFORONE)
    }

    /// Receives the datagrams that are queued, without waiting.
    /// # Errors
    /// The kernel's reason, also when none is queued (`WouldBlock`).
    pub fn receive_waiting(&mut self, socket: &DatagramSocket) -> io::Result<()> {
        self.receive_with_flags(socket, libc::MSG_DONTWAIT)
    }

    fn receive_with_flags(&mut self, socket: &DatagramSocket, flags: i32) -> io::Result<()> {
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

    /// Buffers that the last call received.
    pub fn arrived(&self) -> impl Iterator<Item = ReceivedUdpBuffer<'_>> {
        let rooms = self.data.chunks_exact(STRIDE_BYTES).zip(self.controls.iter());
        self.filled.iter().zip(rooms).map(|(&(len, control_len), (buffer, control))| {
            let notes = &control.0[..control_len.min(control.0.len())];
            arrived(&buffer[..len], notes)
        })
    }
}

fn arrived<'a>(bytes: &'a [u8], notes: &[u8]) -> ReceivedUdpBuffer<'a> {
    let mut arrived =
        ReceivedUdpBuffer { bytes, joined_bytes: None, drops: None, arrived_ns: None };
    control::messages(notes, |level, kind, data| match (level, kind) {
        (libc::SOL_UDP, libc::UDP_GRO) => {
            arrived.joined_bytes =
                usize::try_from(control::int_from_octets(data)).ok().filter(|&len| len > 0);
        }
        (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => {
            arrived.drops = Some(control::int_from_octets(data).cast_unsigned());
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
