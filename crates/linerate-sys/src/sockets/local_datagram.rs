//! Datagrams to a program on this host that listens at a path (unix(7)), and its answers.
//!
//! The local end has an abstract name, which needs no writable directory and leaves no file behind.
//! Such names belong to a network namespace: a program in another one receives the request but
//! cannot answer.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::{Error, Result, clock};

/// A datagram socket connected to one program.
#[derive(Debug)]
pub struct LocalDatagram(UnixDatagram);

impl LocalDatagram {
    /// Connects to the program that listens at `path`. Calls do not block.
    /// # Errors
    /// When no program listens there, or this user may not write to it.
    pub fn connect(path: &str) -> Result<Self> {
        let socket = bind_random().and_then(|socket| {
            socket.connect(path)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        socket.map(Self).map_err(|source| Error::new("connect to", path, source))
    }

    /// Sends one datagram to the program.
    /// # Errors
    /// When the other end is closed, or its buffer is full.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes).map(drop)
    }

    /// Receives one datagram, cut to the buffer; `None` when none is queued.
    /// # Errors
    /// When the other end is closed.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.recv(buffer) {
            Ok(len) => Ok(Some(len)),
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) =>
            {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

impl AsFd for LocalDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Binds a socket to a random abstract name, which others cannot guess.
fn bind_random() -> io::Result<UnixDatagram> {
    let mut name = "linerate/".to_owned();
    for byte in clock::random_bytes::<16>() {
        let _ = write!(name, "{byte:02x}");
    }
    UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_at_a_path_is_asked_and_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("door");
        let program = UnixDatagram::bind(&path).expect("free");
        let path = path.to_str().expect("text");
        let socket = LocalDatagram::connect(path).expect("it listens");
        let mut buffer = [0; 8];
        assert_eq!(socket.receive(&mut buffer).expect("open"), None);
        socket.send(b"who?").expect("room");
        let (len, from) = program.recv_from(&mut buffer).expect("the question");
        assert_eq!(&buffer[..len], b"who?");
        program.send_to_addr(b"me", &from).expect("it has a name");
        assert_eq!(socket.receive(&mut buffer).expect("open"), Some(2));
        drop(program);
        assert!(socket.send(b"who?").is_err(), "gone");
        assert!(LocalDatagram::connect("/nobody/here").is_err());
    }
}
