//! Addresses of sockets made of others. A link-local one keeps its interface, without which the
//! kernel takes it for none (ipv6(7), sin6_scope_id).

use std::net::{IpAddr, SocketAddr};

use linerate_sys::datagram_socket::any_local;
use linerate_sys::tcp;

/// Where a datagram socket for `server` is bound: to this address of the host, where there is one.
pub(crate) fn local_towards(server: SocketAddr, bind: Option<IpAddr>) -> SocketAddr {
    bind.map_or_else(|| any_local(server), |address| tcp::local_towards(server, address, 0))
}

/// The same host at another port; a link-local address keeps its interface.
pub(crate) const fn at_port(mut address: SocketAddr, port: u16) -> SocketAddr {
    address.set_port(port);
    address
}

/// An IPv4 peer of a socket for both families is IPv4; a link-local address keeps its interface.
pub(crate) const fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        IpAddr::V6(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_local_address_keeps_its_interface() {
        let address: SocketAddr = "[fe80::1%3]:5210".parse().expect("an address");
        assert_eq!(at_port(address, 7).to_string(), "[fe80::1%3]:7");
        assert_eq!(canonical(address), address);
        let mapped: SocketAddr = "[::ffff:192.0.2.1]:7".parse().expect("an address");
        assert_eq!(canonical(mapped).to_string(), "192.0.2.1:7");
    }
}
