//! From flags and an address to an open socket, with one line of advice for each way in which
//! that fails.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use linerate_core::record::{Failure, Fault, PingMode, PingPlan, PingTransport};
use linerate_sys::Error;
use linerate_sys::echo_socket::{
    EchoKind, EchoOptions, EchoSocket, OpenError, OpenStep, ProbeBindSource,
};

use crate::failure::{unreachable_words, words_of};

/// Room for answers that wait while a window of probes is under way.
const WINDOW_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Opens the best socket that this process may open: ICMP datagram, else ICMP raw; or UDP.
/// # Errors
/// When none may be opened, or the peer has no route.
pub(crate) fn open_echo_socket(
    plan: &PingPlan,
    peer: SocketAddr,
) -> Result<(EchoKind, EchoSocket), Failure> {
    let options = options(plan, peer);
    if plan.flow_label.is_some() && peer.is_ipv4() {
        let reason = "IPv4 has no flow label";
        return Err(Failure::new(Fault::Usage, "label probes to", peer.ip().to_string(), reason)
            .advise("give an IPv6 address, or -6 with a name"));
    }
    let kinds: &[EchoKind] = match plan.transport {
        PingTransport::Udp | PingTransport::Stamp => &[EchoKind::Udp],
        PingTransport::Icmp if plan.xdp => &[EchoKind::IcmpXdp],
        // Datagram sockets of ICMPv6 send no flow label (Linux 6.18, net/ipv6/ping.c).
        PingTransport::Icmp if plan.flow_label.is_some() => &[EchoKind::IcmpRaw],
        PingTransport::Icmp => &[EchoKind::IcmpDatagram, EchoKind::IcmpRaw],
        // A handshake has no packet of its own to send, and a message is the browser's.
        PingTransport::Tcp | PingTransport::WebSocket => &[],
    };
    let mut refused = None;
    for kind in kinds {
        match EchoSocket::open(*kind, &options) {
            Ok(socket) => return Ok((*kind, socket)),
            Err(failed) if opening_was_refused(&failed) => refused = Some(failed.error),
            Err(failed) => return Err(explain(&failed, peer)),
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
        Ok(address) => ProbeBindSource::Address(address),
        Err(_) => ProbeBindSource::Interface(bind.clone()),
    });
    let many = matches!(plan.mode, PingMode::Window(window) if window > 1);
    EchoOptions {
        peer,
        source,
        local_port: plan.stamp.and_then(|stamp| stamp.met).map(|met| met.local_port),
        ttl: plan.ttl,
        dscp: plan.dscp,
        dont_fragment: plan.dont_fragment,
        flow_label: plan.flow_label,
        receive_ttl: plan.mode == PingMode::Paced,
        receive_buffer_bytes: many.then_some(WINDOW_BUFFER_BYTES),
    }
}

fn opening_was_refused(failed: &OpenError) -> bool {
    let kind = failed.error.source.kind();
    failed.step == OpenStep::Socket && kind == ErrorKind::PermissionDenied
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

fn explain(failed: &OpenError, peer: SocketAddr) -> Failure {
    let OpenError { step, error } = failed;
    let words = words_of(&error.source);
    let failure = |fault| Failure::new(fault, error.call, &error.object, &words);
    match (error.source.kind(), step) {
        (ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable, _) => {
            let (reason, advice) = unreachable_words(&error.source, peer.ip())
                .unwrap_or((words, "check the route with `ip route get`"));
            Failure::new(Fault::Unreachable, "reach", peer.ip().to_string(), reason).advise(advice)
        }
        (ErrorKind::AddrNotAvailable, OpenStep::Connect) => failure(Fault::Unreachable)
            .advise("this host has no address to send from there; see `ip address`"),
        (ErrorKind::AddrNotAvailable, _) => {
            failure(Fault::Usage).advise("give an address of this host, see `ip address`")
        }
        // What connect(2) says of a broadcast address.
        (ErrorKind::PermissionDenied, OpenStep::Connect) => {
            failure(Fault::Usage).advise("a broadcast address cannot be pinged; name one host")
        }
        // What connect(2) says of a link-local address without its interface.
        (ErrorKind::InvalidInput, _) if needs_zone(peer.ip()) => {
            failure(Fault::Usage).advise(format!("name its link: {}%INTERFACE", peer.ip()))
        }
        (ErrorKind::PermissionDenied, OpenStep::Xdp) => failure(Fault::System)
            .advise("it takes CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF; or ping without --xdp"),
        (ErrorKind::ResourceBusy, OpenStep::Xdp) => failure(Fault::System)
            .advise("an interface takes one XDP program; end the other, or ping without --xdp"),
        (_, OpenStep::Xdp) => failure(Fault::System).advise("ping without --xdp"),
        (_, OpenStep::BindInterface) => {
            failure(Fault::Usage).advise("give an interface of this host, see `ip link`")
        }
        _ => failure(Fault::System),
    }
}

/// True where an address means something on one link only.
fn needs_zone(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => false,
        IpAddr::V6(address) => {
            address.is_unicast_link_local()
                || (address.is_multicast() && address.segments()[0] & 15 <= 2)
        }
    }
}
