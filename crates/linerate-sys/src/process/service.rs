//! What the service manager is told (sd_notify(3)): a datagram to the socket that it names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// Tells the manager that listens at `socket` (`$NOTIFY_SOCKET`) a state, such as `READY=1`.
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
