//! IPv4 against IPv6: where a browser that came by one finds this host by the other, and an answer
//! that costs nothing, by which its page times both.
//!
//! An address of the other family is named only where it is of the same interface and the same
//! kind: a page from the Internet is not sent to a private network.

use std::net::{IpAddr, SocketAddr};

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use linerate_core::policy::is_public;
use linerate_sys::netlink::RouteSocket;

/// Where this host answers over IPv4 and over IPv6, in this order: `[]` unless it does over both.
pub(crate) fn dual_stack_addresses(local: SocketAddr, every: bool) -> Vec<String> {
    if !every {
        return Vec::new();
    }
    let known = RouteSocket::open().and_then(|mut socket| socket.addresses());
    let other = other_family(local.ip().to_canonical(), &known.unwrap_or_default());
    let Some(other) = other else { return Vec::new() };
    let mut both = [local.ip().to_canonical(), other];
    both.sort_by_key(IpAddr::is_ipv6);
    both.map(|ip| SocketAddr::new(ip, local.port()).to_string()).to_vec()
}

fn other_family(local: IpAddr, known: &[(u32, IpAddr)]) -> Option<IpAddr> {
    let (link, _) = known.iter().find(|(_, address)| *address == local)?;
    let near = |it: IpAddr| match it {
        // RFC 4291 §2.5.6: it would need the name of the browser's interface.
        IpAddr::V6(it) => it.segments()[0] & 0xffc0 == 0xfe80,
        IpAddr::V4(it) => it.is_link_local(),
    };
    known
        .iter()
        .filter(|(index, it)| index == link && it.is_ipv4() != local.is_ipv4() && !near(*it))
        .map(|(_, address)| *address)
        .find(|address| {
            is_public(*address) == is_public(local) && address.is_loopback() == local.is_loopback()
        })
}

/// `GET /api/v1/here`: nothing, to whoever asks, from whatever page. The browser opens a connection
/// for it, which is what its page times.
pub(crate) async fn get_here() -> (StatusCode, [(HeaderName, HeaderValue); 1]) {
    let anybody = HeaderValue::from_static("*");
    (StatusCode::NO_CONTENT, [(header::ACCESS_CONTROL_ALLOW_ORIGIN, anybody)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_other_family_is_of_the_same_interface_and_kind() {
        let known: Vec<(u32, IpAddr)> = [
            (1, "127.0.0.1"),
            (1, "::1"),
            (2, "192.168.1.2"),
            (2, "fe80::2"),
            (2, "2001:4860::2"),
            (2, "fd00::2"),
            (3, "8.8.4.4"),
            (3, "fd00::3"),
        ]
        .map(|(link, text)| (link, text.parse().expect("an address")))
        .to_vec();
        let of = |text: &str| {
            let local = text.parse().expect("an address");
            other_family(local, &known).map(|address| address.to_string())
        };
        assert_eq!(of("127.0.0.1").as_deref(), Some("::1"));
        assert_eq!(of("192.168.1.2").as_deref(), Some("fd00::2"));
        assert_eq!(of("fd00::2").as_deref(), Some("192.168.1.2"));
        for alone in ["2001:4860::2", "8.8.4.4", "10.0.0.1"] {
            assert_eq!(of(alone), None, "{alone}");
        }
    }
}
