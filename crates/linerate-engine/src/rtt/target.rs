//! From flags and an address to an open socket, with one line of advice for each way in which
//! that fails.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use linerate_core::record::{Failure, Fault, PingMode, PingPlan, PingTransport};
use linerate_sys::Error;
use linerate_sys::echo_socket::{EchoKind, EchoOptions, EchoSocket, Source};

use crate::failure::words_of;

/// Room for answers that wait while a window of probes is under way.
const WINDOW_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Opens the best socket that this process may open: ICMP datagram, else ICMP raw; or UDP.
/// # Errors
/// When none may be opened, or the peer has no route.
pub(crate) fn open(plan: &PingPlan, peer: SocketAddr) -> Result<(EchoKind, EchoSocket), Failure> {
    let options = options(plan, peer);
    let kinds: &[EchoKind] = match plan.transport {
        PingTransport::Udp => &[EchoKind::Udp],
        PingTransport::Icmp => &[EchoKind::IcmpDatagram, EchoKind::IcmpRaw],
    };
    let mut refused = None;
    for kind in kinds {
        match EchoSocket::open(*kind, &options) {
            Ok(socket) => return Ok((*kind, socket)),
            Err(error) if opening_was_refused(&error) => refused = Some(error),
            Err(error) => return Err(explain(&error, peer)),
        }
    }
    Err(refused.map_or_else(
        || {
            Failure::new(
                Fault::System,
                "open socket for",
                peer.to_string(),
                "no kind of socket to try",
            )
        },
        |error| not_permitted(&error, peer.ip()),
    ))
}

fn options(plan: &PingPlan, peer: SocketAddr) -> EchoOptions {
    let source = plan.bind.as_ref().map(|bind| match bind.parse() {
        Ok(address) => Source::Address(address),
        Err(_) => Source::Interface(bind.clone()),
    });
    let many = matches!(plan.mode, PingMode::Window(window) if window > 1);
    EchoOptions {
        peer,
        source,
        ttl: plan.ttl,
        dscp: plan.dscp,
        dont_fragment: plan.dont_fragment,
        receive_ttl: plan.mode == PingMode::Paced,
        receive_buffer_bytes: many.then_some(WINDOW_BUFFER_BYTES),
    }
}

fn opening_was_refused(error: &Error) -> bool {
    error.call == "open socket for" && error.source.kind() == ErrorKind::PermissionDenied
}

fn not_permitted(error: &Error, peer: IpAddr) -> Failure {
    let program = std::env::current_exe()
        .map_or_else(|_| "linerate".to_owned(), |path| path.display().to_string());
    Failure::new(
        Fault::System,
        "open ICMP socket for",
        peer.to_string(),
        format!("{}, neither datagram nor raw", words_of(&error.source)),
    )
    .advise(format!(
        "allow it to all users by `sysctl -w net.ipv4.ping_group_range='0 2147483647'`, or to \
         this program by `setcap cap_net_raw+ep {program}`"
    ))
}

fn explain(error: &Error, peer: SocketAddr) -> Failure {
    let words = words_of(&error.source);
    match error.source.kind() {
        ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable => {
            Failure::new(Fault::Unreachable, "reach", peer.ip().to_string(), words)
                .advise("look for a missing route by `ip route get`")
        }
        ErrorKind::AddrNotAvailable if error.call == "connect to" => {
            let advice = "this host has no address to send from there; see `ip address`";
            Failure::new(Fault::Unreachable, error.call, &error.object, words).advise(advice)
        }
        ErrorKind::AddrNotAvailable => Failure::new(Fault::Usage, error.call, &error.object, words)
            .advise("give an address of this host, see `ip address`"),
        // What connect(2) says of a broadcast address.
        ErrorKind::PermissionDenied if error.call == "connect to" => {
            let advice = "a broadcast address takes no ping; name one host";
            Failure::new(Fault::Usage, error.call, &error.object, words).advise(advice)
        }
        // What connect(2) says of a link-local address without its interface.
        ErrorKind::InvalidInput if needs_zone(peer.ip()) => {
            let advice = format!("name its link: {}%INTERFACE", peer.ip());
            Failure::new(Fault::Usage, error.call, &error.object, words).advise(advice)
        }
        _ if error.call == "bind to interface" => {
            Failure::new(Fault::Usage, error.call, &error.object, words)
                .advise("give an interface of this host, see `ip link`")
        }
        _ => Failure::new(Fault::System, error.call, &error.object, words),
    }
}

/// Whether an address means something on one link only.
fn needs_zone(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || (address.is_multicast() && address.segments()[0] & 15 <= 2)
        }
    }
}
