//! From errors of the kernel to the one line that the user gets.

use std::io;

use linerate_core::record::{Failure, FailureCode, Fault};
use linerate_sys::tcp;

/// This host could not do it.
pub fn system(error: &linerate_sys::Error) -> Failure {
    let failure = Failure::new(Fault::System, error.call, &error.object, words_of(&error.source))
        .coded(code_of(error));
    // A refusal in words of our own says already what to do; the kernel's is a number alone.
    let is_bare = error.source.raw_os_error().is_some();
    match error.source.kind() {
        io::ErrorKind::PermissionDenied if is_bare => failure.advise("run it as root"),
        _ => failure,
    }
}

/// The code of a failed call on a TCP socket.
pub fn code_of(error: &linerate_sys::Error) -> Option<FailureCode> {
    Some(match error.call {
        tcp::OPEN => FailureCode::OpenSocket,
        tcp::CONNECT => FailureCode::Connect,
        tcp::BIND | tcp::LISTEN => FailureCode::Listen,
        tcp::BIND_DEVICE => FailureCode::BindDevice,
        tcp::CONGESTION_CONTROL => FailureCode::CongestionControl,
        _ => return None,
    })
}

/// What to do about an address that cannot be reached. The kernel gives EHOSTUNREACH where a
/// neighbour answered no ARP or neighbour solicitation (arp_error_report, ndisc_error_report) and
/// where a router said so, ENETUNREACH where there is no route from here or from a router.
pub(crate) const fn unreachable_advice(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::HostUnreachable => {
            "nobody answers at this address on its last link: is the host up, is the address right?"
        }
        _ => "check the route with `ip route get`",
    }
}

/// The kernel's words without the error number.
pub fn words_of(error: &io::Error) -> String {
    let text = error.to_string();
    let words = text.split(" (os error").next().unwrap_or(&text);
    words.to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_do_is_said_once() {
        // EPERM of errno(3), as the kernel gives it, and a refusal that says what to do itself.
        let kernel =
            linerate_sys::Error::new("capture on", "eth0", io::Error::from_raw_os_error(1));
        let text = system(&kernel).to_string();
        assert_eq!(text, "capture on eth0: operation not permitted; run it as root");
        let words = io::Error::new(io::ErrorKind::PermissionDenied, "not permitted: run as root");
        let text = system(&linerate_sys::Error::new("capture on", "eth0", words)).to_string();
        assert_eq!(text, "capture on eth0: not permitted: run as root");
    }
}
