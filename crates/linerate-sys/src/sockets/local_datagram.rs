//! Datagrams to a program on this host that listens at a path (unix(7)), and its answers.
//!
//! The own end has an abstract name, which leaves no file behind and needs no directory that may be
//! written to. Such names belong to a network namespace: a program in another one hears the
//! question and cannot answer.

use std::fmt::Write;
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::{Error, Result, clock};

/// A socket that speaks with one program.
#[derive(Debug)]
pub struct LocalDatagram(UnixDatagram);

impl LocalDatagram {
    /// Speaks with whoever listens at `path`. Nothing waits.
    /// # Errors
    /// When nobody listens there, or this user may not write to it.
    pub fn connect(path: &str) -> Result<Self> {
        let socket = bound().and_then(|socket| {
            socket.connect(path)?;
            socket.set_nonblocking(true)?;
            Ok(socket)
        });
        socket.map(Self).map_err(|source| Error::new("connect to", path, source))
    }

    /// Sends one datagram.
    /// # Errors
    /// When the other end is gone, or does not read.
    pub fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.0.send(bytes).map(drop)
    }

    /// Takes one datagram, cut to the buffer; `None` when none is there.
    /// # Errors
    /// When the other end is gone.
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

/// Bound to a name that nobody else has or can guess.
fn bound() -> io::Result<UnixDatagram> {
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
