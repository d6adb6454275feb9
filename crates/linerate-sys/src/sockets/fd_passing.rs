//! Passing descriptors over a local socket (SCM_RIGHTS, unix(7)), and sockets with abstract names.
//!
//! An abstract name is freed when its socket is closed. It belongs to the network namespace of the
//! thread that binds or connects.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};

use crate::{Error, Result};

/// Most descriptors of one message.
const FDS_MAX: usize = 4;

/// Listens at the abstract name `name`.
/// # Errors
/// When the name is taken.
pub fn listen(name: &str) -> Result<UnixListener> {
    let address = SocketAddr::from_abstract_name(name);
    let listener = address.and_then(|address| UnixListener::bind_addr(&address));
    listener.map_err(|source| Error::new("listen at", format!("@{name}"), source))
}

/// Connects to the abstract name `name`.
/// # Errors
/// When no socket listens there.
pub fn connect(name: &str) -> Result<UnixStream> {
    let address = SocketAddr::from_abstract_name(name);
    let stream = address.and_then(|address| UnixStream::connect_addr(&address));
    stream.map_err(|source| Error::new("connect to", format!("@{name}"), source))
}

/// Abstract names that start with `prefix` in the caller's network namespace, sorted and without
/// duplicates (/proc/net/unix, unix(7)).
/// # Errors
/// When /proc is not mounted.
pub fn abstract_names(prefix: &str) -> Result<Vec<String>> {
    let table = "/proc/thread-self/net/unix";
    let text = fs::read(table).map_err(|source| Error::new("read", table, source))?;
    let text = String::from_utf8_lossy(&text);
    let paths = text.lines().filter_map(|line| line.split_whitespace().nth(7));
    let names = paths.filter_map(|path| path.strip_prefix('@'));
    let mut names: Vec<String> =
        names.filter(|name| name.starts_with(prefix)).map(str::to_owned).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// True if the process at the other end belongs to the same user.
pub fn peer_is_same_user(stream: &UnixStream) -> bool {
    let own = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|peer| peer.uid == own)
}

/// True if the other end has closed and all its bytes have been read.
pub fn is_closed(stream: &UnixStream) -> bool {
    let mut byte = [0];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    matches!(rustix::net::recv(stream, &mut byte, flags), Ok((0, _)))
}

/// Sends bytes with descriptors, at most four.
/// # Errors
/// When the other end is closed.
pub fn send_with_fds(stream: &UnixStream, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let failed = |source: io::Error| Error::new("send", "descriptors", source);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(failed(io::ErrorKind::InvalidInput.into()));
    }
    let parts = [IoSlice::new(bytes)];
    let sent = rustix::net::sendmsg(stream, &parts, &mut control, SendFlags::NOSIGNAL);
    match sent {
        Ok(sent) if sent == bytes.len() => Ok(()),
        Ok(_) => Err(failed(io::ErrorKind::WriteZero.into())),
        Err(errno) => Err(failed(errno.into())),
    }
}

/// Receives bytes into `buffer`, and the descriptors of the message.
/// # Errors
/// When the other end is closed.
pub fn receive(stream: &UnixStream, buffer: &mut [u8]) -> Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(FDS_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(stream, &mut parts, &mut control, flags)
        .map_err(|errno| Error::new("receive", "descriptors", errno))?;
    let mut fds = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = message {
            fds.extend(rights);
        }
    }
    Ok((received.bytes, fds))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_descriptor_arrives_with_its_bytes() {
        let (left, right) = UnixStream::pair().unwrap();
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"content").unwrap();
        file.rewind().unwrap();
        send_with_fds(&left, b"take this", &[file.as_fd()]).unwrap();
        let mut buffer = [0; 64];
        let (count, mut fds) = receive(&right, &mut buffer).unwrap();
        assert_eq!(&buffer[..count], b"take this");
        assert_eq!(fds.len(), 1);
        let mut content = String::new();
        fs::File::from(fds.remove(0)).read_to_string(&mut content).unwrap();
        assert_eq!(content, "content");
    }

    #[test]
    fn an_abstract_name_is_listed_while_it_is_bound() {
        let prefix = format!("linerate-test/{}/", std::process::id());
        let name = format!("{prefix}door");
        let listener = listen(&name).unwrap();
        assert_eq!(abstract_names(&prefix).unwrap(), [name.as_str()]);
        let stream = connect(&name).unwrap();
        assert!(peer_is_same_user(&stream));
        let (accepted, _) = listener.accept().unwrap();
        assert!(!is_closed(&accepted));
        drop(stream);
        assert!(is_closed(&accepted));
        drop(listener);
        assert!(connect(&name).is_err());
    }
}
