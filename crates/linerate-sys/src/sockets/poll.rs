//! Waiting for descriptors (poll(2)).

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Waits until `fd` is readable or closed; false after `timeout`. A signal ends the wait early with
/// `false`, so that the caller can check its stop flag.
/// # Errors
/// The errors of poll(2).
pub fn readable(fd: &impl AsFd, timeout: Duration) -> io::Result<bool> {
    let fd = fd.as_fd();
    poll_with_timeout(&mut [PollFd::new(&fd, PollFlags::IN)], timeout)
}

/// Waits until one of several descriptors is readable or closed; false after `timeout`.
/// # Errors
/// The errors of poll(2).
pub fn any_readable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
    poll_with_timeout(&mut polled, timeout)
}

/// Waits until one of several descriptors is writable or has failed; false after `timeout`.
/// # Errors
/// The errors of poll(2).
pub fn any_writable(fds: &[BorrowedFd<'_>], timeout: Duration) -> io::Result<bool> {
    let mut polled: Vec<_> = fds.iter().map(|fd| PollFd::new(fd, PollFlags::OUT)).collect();
    poll_with_timeout(&mut polled, timeout)
}

fn poll_with_timeout(polled: &mut [PollFd<'_>], timeout: Duration) -> io::Result<bool> {
    let timeout = Timespec {
        tv_sec: i64::try_from(timeout.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(timeout.subsec_nanos()),
    };
    match poll(polled, Some(&timeout)) {
        Ok(ready) => Ok(ready > 0),
        Err(rustix::io::Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn a_pipe_is_readable_once_it_holds_a_byte() {
        let (read, mut write) = io::pipe().expect("a pipe");
        assert!(!readable(&read, Duration::ZERO).expect("poll"));
        write.write_all(&[1]).expect("room for a byte");
        assert!(readable(&read, Duration::from_secs(5)).expect("poll"));
    }
}
