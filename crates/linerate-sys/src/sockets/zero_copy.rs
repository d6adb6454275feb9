//! send(2) with MSG_ZEROCOPY and its completions (Linux 4.14,
//! Documentation/networking/msg_zerocopy.rst).
//!
//! The kernel references the pages of the buffer and posts a completion on the socket's error queue
//! when it no longer needs those of a range of calls. The completion states if it had to copy them;
//! over loopback and veth it always does.

use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, AsRawFd};

use crate::arena::Arena;
use crate::control::{ControlBuffer, messages, receive};
use crate::socket_option::set_int;
use crate::{Error, Result};

/// Bytes of sock_extended_err (linux/errqueue.h): errno (4), origin, type, code, pad, info (4),
/// data (4).
const EXTENDED_ERROR_BYTES: usize = 16;
/// Values SO_EE_ORIGIN_ZEROCOPY and SO_EE_CODE_ZEROCOPY_COPIED of linux/errqueue.h.
const ORIGIN: u8 = 5;
const CODE_COPIED: u8 = 1;

/// Sends the pages of a buffer by reference where the kernel can.
#[derive(Clone, Copy, Debug, Default)]
pub struct ZeroCopySender {
    /// Calls that sent bytes.
    calls: u64,
    /// Calls with a completion.
    completed: u64,
    /// Completed calls whose data the kernel copied.
    copied: u64,
}

/// Most calls without a completion before the error queue is read.
const UNREAD_MAX: u64 = 16;

impl ZeroCopySender {
    /// Switches MSG_ZEROCOPY on for a socket.
    /// # Errors
    /// When the kernel does not have it for this kind of socket.
    pub fn new(stream: &TcpStream) -> Result<Self> {
        set_int(stream.as_fd(), libc::SOL_SOCKET, libc::SO_ZEROCOPY, 1)
            .map_err(|source| Error::new("set SO_ZEROCOPY on", "a data stream", source))?;
        Ok(Self::default())
    }

    /// Sends up to `length` bytes from the start of the buffer, which must not be written
    /// meanwhile.
    /// # Errors
    /// The errors of send(2); ENOBUFS means that too many completions are queued (optmem_max).
    #[inline]
    pub fn send_zero_copy(
        &mut self,
        stream: &TcpStream,
        buffer: &Arena,
        length: usize,
    ) -> io::Result<usize> {
        if self.calls - self.completed >= UNREAD_MAX {
            self.read_completions(stream)?;
        }
        let piece = &buffer[..length.min(buffer.len())];
        let flags = libc::MSG_ZEROCOPY | libc::MSG_NOSIGNAL;
        // SAFETY: `piece` is readable memory through the call. The kernel keeps references to its
        // pages afterwards, only reads them, and they stay until it lets go, also after the
        // mapping of the arena is gone.
        let sent =
            unsafe { libc::send(stream.as_raw_fd(), piece.as_ptr().cast(), piece.len(), flags) };
        if sent < 0 {
            let error = io::Error::last_os_error();
            if error.raw_os_error() == Some(libc::ENOBUFS) {
                self.read_completions(stream)?;
                return Err(io::ErrorKind::WouldBlock.into());
            }
            return Err(error);
        }
        self.calls += 1;
        Ok(sent.cast_unsigned())
    }

    /// Reads all completions from the error queue.
    /// # Errors
    /// The errors of recvmsg(2).
    pub fn read_completions(&mut self, stream: &TcpStream) -> io::Result<()> {
        let mut control = ControlBuffer::new();
        while let Some(taken) = receive(stream.as_fd(), &mut [], &mut control, libc::MSG_ERRQUEUE)?
        {
            messages(&control.0[..taken.control_len], |_, _, data| self.count_completion(data));
        }
        Ok(())
    }

    /// Counts a completion of the calls from `info` to `data`, inclusive.
    fn count_completion(&mut self, data: &[u8]) {
        let Some(error) = data.first_chunk::<EXTENDED_ERROR_BYTES>() else { return };
        if error[4] != ORIGIN {
            return;
        }
        let number = |at: usize| {
            u32::from_ne_bytes([error[at], error[at + 1], error[at + 2], error[at + 3]])
        };
        // Both numbers wrap at 2^32.
        let count = u64::from(number(12).wrapping_sub(number(8))) + 1;
        self.completed += count;
        if error[6] & CODE_COPIED != 0 {
            self.copied += count;
        }
    }

    /// True if every call has its completion.
    pub const fn is_settled(&self) -> bool {
        self.completed >= self.calls
    }

    /// Number of completed calls, and of those whose data the kernel copied.
    pub const fn counts(&self) -> (u64, u64) {
        (self.completed, self.copied)
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_range_of_completions_is_counted_with_both_its_ends() {
        // Calls 0xffff_fffe … 1 (four, across the wrap), copied after all.
        let mut data = [0_u8; 32];
        data[4] = 5;
        data[6] = 1;
        data[8..12].copy_from_slice(&0xffff_fffe_u32.to_ne_bytes());
        data[12..16].copy_from_slice(&1_u32.to_ne_bytes());
        let mut sender = ZeroCopySender::default();
        sender.count_completion(&data);
        assert_eq!(sender.counts(), (4, 4));
        data[6] = 0;
        sender.count_completion(&data);
        assert_eq!(sender.counts(), (8, 4));
        data[4] = 4;
        sender.count_completion(&data);
        sender.count_completion(&data[..15]);
        assert_eq!(sender.counts(), (8, 4), "another origin or a cut one");
    }

    #[test]
    fn over_loopback_the_kernel_says_that_it_copied() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("loopback");
        let (server, _) = listener.accept().expect("it is there");
        let mut sender = match ZeroCopySender::new(&client) {
            Ok(sender) => sender,
            Err(error) => {
                println!("skipped: {error}");
                return;
            }
        };
        let buffer = Arena::new(8192).expect("memory");
        let sent = sender.send_zero_copy(&client, &buffer, 8192).expect("room");
        let mut left = sent;
        let mut bytes = [0; 8192];
        while left > 0 {
            left -= io::Read::read(&mut &server, &mut bytes).expect("they come");
        }
        for _ in 0..1000 {
            sender.read_completions(&client).expect("the queue is readable");
            if sender.is_settled() {
                break;
            }
            crate::clock::sleep(Duration::from_millis(10));
        }
        assert_eq!(sender.counts(), (1, 1));
    }
}
