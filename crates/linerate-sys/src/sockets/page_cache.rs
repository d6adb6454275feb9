//! Data in the page cache to send without copying (memfd_create(2), sendfile(2)).

use std::io;
use std::net::TcpStream;
use std::os::fd::OwnedFd;

use crate::{Error, Result};

/// A file in memory, filled once and sent repeatedly.
#[derive(Debug)]
pub struct PageCacheFile {
    file: OwnedFd,
    length: usize,
}

impl PageCacheFile {
    /// A file with the content `data`.
    /// # Errors
    /// When the kernel has no memory for it.
    pub fn filled_with(data: &[u8]) -> Result<Self> {
        let fail = |source| Error::new("fill memory file of", data.len(), source);
        let file = rustix::fs::memfd_create("linerate", rustix::fs::MemfdFlags::CLOEXEC)
            .map_err(|errno| fail(io::Error::from(errno)))?;
        let mut rest = data;
        while !rest.is_empty() {
            let written =
                rustix::io::write(&file, rest).map_err(|errno| fail(io::Error::from(errno)))?;
            rest = &rest[written..];
        }
        Ok(Self { file, length: data.len() })
    }

    /// Sends up to `length` bytes from the start of the file; returns the number that the kernel
    /// accepted.
    /// # Errors
    /// The errors of sendfile(2).
    #[inline]
    pub fn send_file(&self, stream: &TcpStream, length: usize) -> io::Result<usize> {
        let mut offset = 0;
        let length = length.min(self.length);
        Ok(rustix::fs::sendfile(stream, &self.file, Some(&mut offset), length)?)
    }
}
