//! From errors of the kernel to the one line that the user gets.

use std::io;
use std::net::IpAddr;

use linerate_core::record::{Failure, FailureCode, Fault};
use linerate_sys::netlink::RouteSocket;
use linerate_sys::tcp;
pub use linerate_sys::words_of;

/// This host could not do it.
pub fn system(error: &linerate_sys::Error) -> Failure {
    let failure = Failure::new(Fault::System, error.call, &error.object, words_of(&error.source))
        .with_code(code_of(error));
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

/// Why an address cannot be reached, and what to do. The kernel gives EHOSTUNREACH where a
/// neighbour answered no ARP or neighbour solicitation (arp_error_report, ndisc_error_report), and
/// where a router or a firewall sent an ICMP error of an unreachable or prohibited host; EACCES
/// where ICMPv6 said prohibited (icmp_err_convert, icmpv6_err_convert); ENETUNREACH where there is
/// no route from here or from a router. The neighbour table tells the first two apart.
pub(crate) fn unreachable_words(error: &io::Error, peer: IpAddr) -> Option<(String, &'static str)> {
    match error.kind() {
        io::ErrorKind::HostUnreachable => Some(host_unreachable(silent_hop(peer), peer)),
        io::ErrorKind::PermissionDenied if peer.is_ipv6() => Some(prohibited()),
        io::ErrorKind::NetworkUnreachable => {
            Some((words_of(error), "check the route with `ip route get`"))
        }
        _ => None,
    }
}

fn host_unreachable(silent: Option<IpAddr>, peer: IpAddr) -> (String, &'static str) {
    match silent {
        Some(hop) if hop == peer => (
            "nobody answers at this address on its link".to_owned(),
            "is the host up, is the address right?",
        ),
        Some(hop) => (
            format!("the router {hop} on the way there does not answer on its link"),
            "check the route with `ip route get`",
        ),
        None => prohibited(),
    }
}

fn prohibited() -> (String, &'static str) {
    (
        "refused by ICMP (host unreachable or prohibited)".to_owned(),
        "a firewall there or on the way probably rejects this port: open it, or name another with \
         -p; ping shows whether the host answers",
    )
}

fn silent_hop(peer: IpAddr) -> Option<IpAddr> {
    RouteSocket::open().ok()?.silent_hop(peer.to_canonical()).ok()?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_neighbour_and_a_firewall_that_rejects_are_told_apart() {
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let peer = address("192.0.2.7");
        let words = |silent| {
            let (reason, advice) = host_unreachable(silent, peer);
            format!("{reason}; {advice}")
        };
        let line = "nobody answers at this address on its link; is the host up, is the address \
                    right?";
        assert_eq!(words(Some(peer)), line);
        assert!(words(Some(address("198.51.100.1"))).starts_with("the router 198.51.100.1 "));
        assert!(words(None).contains("firewall") && !words(None).contains("nobody"));
        // What ICMPv6 of an administrative prohibition becomes (RFC 4443 §3.1, code 1).
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        assert_eq!(unreachable_words(&denied, address("2001:db8::1")), Some(prohibited()));
        assert_eq!(unreachable_words(&denied, peer), None, "a rule of this host");
    }

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
