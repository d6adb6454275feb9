//! Service manager: notifications by a datagram to its socket (sd_notify(3)), and the listening
//! socket that it opened for this program (sd_listen_fds(3)).

use std::ffi::OsStr;
use std::io;
use std::net::TcpListener;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::sync::atomic::{AtomicBool, Ordering};

/// First passed descriptor (sd_listen_fds(3), `SD_LISTEN_FDS_START`).
const FIRST: i32 = 3;
/// True once an owner of the descriptor exists.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The listener that the service manager opened for this program; `None` where it opened none, and
/// at a second call.
/// # Errors
/// When there are several, or it is no listening TCP socket.
/// # Source
/// sd_listen_fds(3): `LISTEN_PID` is the process of the descriptors, `LISTEN_FDS` their number.
pub fn handed_over() -> io::Result<Option<TcpListener>> {
    let (pid, count) = (std::env::var("LISTEN_PID").ok(), std::env::var("LISTEN_FDS").ok());
    match count_of(pid.as_deref(), count.as_deref(), std::process::id()) {
        0 => Ok(None),
        1 if TAKEN.swap(true, Ordering::Relaxed) => Ok(None),
        1 => take_listener().map(Some),
        many => Err(io::Error::other(format!("{many} sockets; one TCP socket is understood"))),
    }
}

/// Number of descriptors passed to the process `own`.
fn count_of(pid: Option<&str>, count: Option<&str>, own: u32) -> u32 {
    let is_ours = pid.and_then(|pid| pid.parse::<u32>().ok()) == Some(own);
    count.filter(|_| is_ours).and_then(|count| count.parse().ok()).unwrap_or(0)
}

fn take_listener() -> io::Result<TcpListener> {
    // SAFETY: the manager opened it for this process, which has no other owner of it: `TAKEN`.
    let socket = unsafe { OwnedFd::from_raw_fd(FIRST) };
    let listens = rustix::net::sockopt::socket_acceptconn(&socket)?;
    if !listens || rustix::net::sockopt::socket_type(&socket)? != rustix::net::SocketType::STREAM {
        return Err(io::Error::other("it is not a TCP socket that listens"));
    }
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
    let listener = TcpListener::from(socket);
    listener.local_addr()?;
    Ok(listener)
}

/// Sends a state, such as `READY=1`, to the manager at `socket` (`$NOTIFY_SOCKET`).
/// # Errors
/// When nobody listens there.
/// # Source
/// sd_notify(3): a name that begins with `@` is of the abstract namespace (unix(7)).
pub fn notify(socket: &OsStr, state: &str) -> io::Result<()> {
    let address = match socket.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name)?,
        None => SocketAddr::from_pathname(socket)?,
    };
    UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_are_taken_only_by_the_process_that_they_are_for() {
        assert_eq!(count_of(Some("77"), Some("1"), 77), 1);
        assert_eq!(count_of(Some("77"), Some("3"), 77), 3);
        assert_eq!(count_of(Some("78"), Some("1"), 77), 0, "of another process");
        assert_eq!(count_of(None, Some("1"), 77), 0);
        assert_eq!(count_of(Some("77"), Some("x"), 77), 0);
    }

    #[test]
    fn a_manager_hears_what_it_is_told_by_a_path_and_by_a_name() {
        let name = format!("linerate-test-{}", std::process::id());
        let path = std::env::temp_dir().join(&name);
        let _ = std::fs::remove_file(&path);
        let of_name = SocketAddr::from_abstract_name(name.as_bytes()).expect("short");
        for (heard, address) in [
            (UnixDatagram::bind(&path).expect("a free path"), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&of_name).expect("free"), format!("@{name}").into()),
        ] {
            notify(&address, "READY=1").expect("it listens");
            let mut bytes = [0; 32];
            let count = heard.recv(&mut bytes).expect("it came");
            assert_eq!(&bytes[..count], b"READY=1");
        }
        std::fs::remove_file(&path).expect("ours");
        assert!(notify(path.as_os_str(), "READY=1").is_err(), "nobody listens");
    }
}
