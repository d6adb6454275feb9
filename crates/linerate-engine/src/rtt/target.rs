//! From a name and flags to an address and an open socket, with one line of advice for each way
//! in which that fails.

use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use linerate_core::record::{Failure, Family, Fault, PingMode, PingPlan, PingTransport};
use linerate_sys::Error;
use linerate_sys::echo_socket::{EchoKind, EchoOptions, EchoSocket, Source};

use crate::failure::words_of;

/// Room for answers that wait while a window of probes is under way.
const WINDOW_BUFFER_BYTES: usize = 4 * 1024 * 1024;

/// Resolves the host once, in the asked family.
/// # Errors
/// When the name is not known, or has no address in that family.
pub(crate) fn resolve(plan: &PingPlan) -> Result<SocketAddr, Failure> {
    let fail = |reason: String| Failure::new(Fault::Usage, "resolve", &plan.host, reason);
    let advice = "check the spelling, or give an IP address";
    let addresses: Vec<SocketAddr> = (plan.host.as_str(), plan.port)
        .to_socket_addrs()
        .map_err(|error| fail(resolver_words(&error)).advise(advice))?
        .collect();
    addresses.iter().copied().find(|address| family_fits(plan.family, *address)).ok_or_else(|| {
        let other = addresses.first().map_or_else(|| "nothing".to_owned(), ToString::to_string);
        fail(format!("no {} address, only {other}", family_name(plan.family)))
            .advise("drop -4 or -6")
    })
}

fn resolver_words(error: &std::io::Error) -> String {
    let text = words_of(error);
    text.rsplit(": ").next().unwrap_or(&text).to_owned()
}

const fn family_fits(family: Option<Family>, address: SocketAddr) -> bool {
    match family {
        None => true,
        Some(Family::V4) => address.is_ipv4(),
        Some(Family::V6) => address.is_ipv6(),
    }
}

const fn family_name(family: Option<Family>) -> &'static str {
    match family {
        Some(Family::V4) => "IPv4",
        Some(Family::V6) => "IPv6",
        None => "IP",
    }
}

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
        ErrorKind::AddrNotAvailable => Failure::new(Fault::Usage, error.call, &error.object, words)
            .advise("give an address of this host, see `ip address`"),
        _ => Failure::new(Fault::System, error.call, &error.object, words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(host: &str, family: Option<Family>) -> PingPlan {
        PingPlan { host: host.to_owned(), family, ..PingPlan::default() }
    }

    #[test]
    fn an_address_resolves_to_itself_in_its_family_only() {
        let v4 = resolve(&plan("127.0.0.1", None)).expect("an address");
        assert_eq!(v4.ip(), IpAddr::from([127, 0, 0, 1]));
        let failure = resolve(&plan("127.0.0.1", Some(Family::V6))).expect_err("no IPv6 address");
        assert_eq!(failure.exit_code(), 2);
        assert!(failure.next_step.is_some(), "{failure}");
    }

    #[test]
    fn an_unknown_name_is_a_usage_failure_of_one_line() {
        // RFC 6761 §6.4: `invalid.` never resolves.
        let failure = resolve(&plan("nobody.invalid", None)).expect_err("never resolves");
        let text = failure.to_string();
        assert!(text.starts_with("resolve nobody.invalid: "), "{text}");
        assert!(!text.contains('\n') && !text.contains("os error"), "{text}");
        assert_eq!(failure.exit_code(), 2);
    }
}
