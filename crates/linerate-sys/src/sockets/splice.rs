//! Moving bytes through a pipe without copying them (splice(2), vmsplice(2), pipe(7)).
//!
//! A pipe holds references to pages. To send, the pages of a program's buffer are moved into it and
//! on to the socket; to receive, the socket's data is moved into it and on to /dev/null. Left out:
//! files (sendfile, in `page_cache`).

use std::fs::File;
use std::io;
use std::net::TcpStream;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::pipe::{IoSliceRaw, SpliceFlags};

use crate::arena::Arena;
use crate::{Error, Result};

/// Largest pipe of a program without privileges (pipe-max-size of proc(5)).
const PIPE_BYTES: usize = 1 << 20;

#[derive(Debug)]
struct Pipe {
    out: OwnedFd,
    into: OwnedFd,
    holds: usize,
}

impl Pipe {
    fn new() -> Result<Self> {
        let fail = |errno: Errno| Error::new("make pipe for", "splice", io::Error::from(errno));
        let (out, into) =
            rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(fail)?;
        // Where the host allows less, the pipe keeps its 64 KiB, which only needs more calls.
        let _ = rustix::pipe::fcntl_setpipe_size(&into, PIPE_BYTES);
        let holds = rustix::pipe::fcntl_getpipe_size(&into).map_err(fail)?;
        Ok(Self { out, into, holds })
    }
}

/// Sends the pages of a buffer by reference.
///
/// The kernel reads the pages until the peer has acknowledged them, so the buffer is a mapping that
/// is never written again; the kernel keeps its pages as long as it needs them.
#[derive(Debug)]
pub struct SpliceSender {
    pipe: Pipe,
    /// Bytes in the pipe that the socket has not accepted yet.
    waiting: usize,
}

impl SpliceSender {
    /// Opens a new pipe for this connection.
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new() -> Result<Self> {
        Ok(Self { pipe: Pipe::new()?, waiting: 0 })
    }

    /// Sends up to `length` bytes from the start of the buffer; returns the number that the socket
    /// accepted.
    /// # Errors
    /// The errors of vmsplice(2) and splice(2).
    #[inline]
    pub fn send_spliced(
        &mut self,
        stream: &TcpStream,
        buffer: &Arena,
        length: usize,
    ) -> io::Result<usize> {
        let length = length.min(buffer.len()).min(self.pipe.holds);
        if self.waiting == 0 {
            let piece = [IoSliceRaw::from_slice(&buffer[..length])];
            // SAFETY: the slice is readable memory of `buffer`, which lives through the call.
            // Afterwards the pipe holds references to its pages, which the kernel only reads and
            // which stay until it lets go of them, also after the mapping is gone.
            let put = unsafe {
                rustix::pipe::vmsplice(self.pipe.into.as_fd(), &piece, SpliceFlags::empty())
            };
            self.waiting = put?;
        }
        let wanted = length.min(self.waiting);
        let flags = SpliceFlags::MOVE;
        let sent = rustix::pipe::splice(&self.pipe.out, None, stream, None, wanted, flags)?;
        self.waiting -= sent;
        Ok(sent)
    }
}

/// Receives bytes from a socket and discards them without copying.
#[derive(Debug)]
pub struct SpliceSink {
    pipe: Pipe,
    null: File,
}

impl SpliceSink {
    /// Opens a new pipe for this connection.
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new() -> Result<Self> {
        let null = File::options().write(true).open("/dev/null");
        let null = null.map_err(|source| Error::new("open", "/dev/null", source))?;
        Ok(Self { pipe: Pipe::new()?, null })
    }

    /// Receives the available bytes, waiting for the first; returns 0 at the end of the stream.
    /// # Errors
    /// The errors of splice(2).
    #[inline]
    pub fn receive(&mut self, stream: &TcpStream) -> io::Result<usize> {
        let (into, out, holds) = (&self.pipe.into, &self.pipe.out, self.pipe.holds);
        let taken = rustix::pipe::splice(stream, None, into, None, holds, SpliceFlags::MOVE)?;
        let mut left = taken;
        while left > 0 {
            match rustix::pipe::splice(out, None, &self.null, None, left, SpliceFlags::MOVE) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(dropped) => left -= dropped,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(taken)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::{Shutdown, TcpListener};

    use super::*;

    fn connected_pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("loopback");
        (client, listener.accept().expect("it is there").0)
    }

    #[test]
    fn spliced_pages_arrive_as_a_write_would_bring_them() {
        let mut buffer = Arena::new(100_000).expect("memory");
        buffer.iter_mut().enumerate().for_each(|(at, byte)| *byte = at as u8);
        let (client, mut server) = connected_pair();
        let reader = std::thread::spawn(move || {
            let mut all = Vec::new();
            server.read_to_end(&mut all).map(|_| all)
        });
        let mut sender = SpliceSender::new().expect("a pipe");
        let mut sent = 0;
        for length in [70_000, 70_000, 1] {
            sent += sender.send_spliced(&client, &buffer, length).expect("room");
        }
        client.shutdown(Shutdown::Write).expect("open");
        let all = reader.join().expect("no panic").expect("read");
        assert_eq!(all.len(), sent);
        // What was left in the pipe goes before the next pages, so each piece follows the last.
        let mut from = 0;
        while from < all.len() {
            let piece = &all[from..all.len().min(from + 70_000)];
            let same = piece.iter().zip(buffer.iter()).take_while(|(a, b)| a == b).count();
            assert!(same > 0, "at {from}");
            from += same;
        }
    }

    #[test]
    fn a_sink_counts_every_byte_until_the_end() {
        let (client, server) = connected_pair();
        let writer = std::thread::spawn(move || {
            io::Write::write_all(&mut &client, &vec![7; 3_000_000]).expect("room");
        });
        let mut sink = SpliceSink::new().expect("a pipe");
        let mut total = 0;
        loop {
            match sink.receive(&server).expect("read") {
                0 => break,
                count => total += count,
            }
        }
        writer.join().expect("no panic");
        assert_eq!(total, 3_000_000);
    }
}
