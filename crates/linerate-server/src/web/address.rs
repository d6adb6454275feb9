//! Addresses of clients: what of them is kept, and where they are.

use std::net::IpAddr;

/// The network of an address, so much of it that it is no person's: /24 of IPv4, /48 of IPv6.
pub(crate) fn network_of(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => {
            let [a, b, c, _] = address.octets();
            format!("{a}.{b}.{c}.0/24")
        }
        IpAddr::V6(address) => {
            let [a, b, c, ..] = address.segments();
            format!("{}/48", std::net::Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0))
        }
    }
}

/// Whether an address says nothing of a person outside of its own network: loopback, link-local,
/// private (RFC 1918, RFC 4193), shared (RFC 6598).
pub(crate) fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(it) => {
            let [a, b, ..] = it.octets();
            it.is_loopback()
                || it.is_private()
                || it.is_link_local()
                || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(it) => it.is_loopback() || it.is_unicast_link_local() || it.is_unique_local(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_private_networks_are_told_from_public_ones() {
        let of = |text: &str| is_private(text.parse().expect("an address"));
        for private in [
            "127.0.0.1",
            "10.1.2.3",
            "172.31.0.1",
            "192.168.7.7",
            "169.254.1.1",
            "100.64.0.1",
            "100.127.255.255",
            "::1",
            "fe80::1",
            "fd00::1",
            "::ffff:10.0.0.1",
        ] {
            assert!(of(private), "{private}");
        }
        for public in ["192.0.2.1", "172.32.0.1", "100.128.0.1", "8.8.8.8", "2001:db8::1"] {
            assert!(!of(public), "{public}");
        }
    }

    #[test]
    fn an_address_is_told_by_its_network_alone() {
        let of = |text: &str| network_of(text.parse().expect("an address"));
        assert_eq!(of("192.0.2.77"), "192.0.2.0/24");
        assert_eq!(of("2001:db8:1:2:3:4:5:6"), "2001:db8:1::/48");
        assert_eq!(of("::ffff:192.0.2.77"), "192.0.2.0/24");
    }
}
