//! Networks of clients and targets.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use serde::Deserialize;

/// A network: an address and how many of its first bits count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(try_from = "String")]
pub struct Prefix {
    address: IpAddr,
    length: u8,
}

impl Prefix {
    /// True when an address is in this network; IPv4 in IPv6 (RFC 4291 §2.5.5.2) is IPv4.
    pub fn contains_address(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let differ = u32::from(own) ^ u32::from(other);
                differ.checked_shr(32 - u32::from(self.length)).unwrap_or(0) == 0
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let differ = u128::from(own) ^ u128::from(other);
                differ.checked_shr(128 - u32::from(self.length)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// A network that names a block of special addresses has at least this long a prefix: no such block
/// is wider (240.0.0.0/4, RFC 1112; fc00::/7, RFC 4193).
const SPECIAL_BITS_MIN: [u8; 2] = [4, 7];

impl Prefix {
    /// True when a rule for this network applies to an address in it: a network of public
    /// addresses, such as `0.0.0.0/0`, does not include the private and multicast ones that lie in
    /// it.
    pub fn applies_to(&self, address: IpAddr) -> bool {
        self.contains_address(address) && (is_public(address) || self.is_special())
    }

    fn is_special(&self) -> bool {
        let (first, last, least) = match self.address {
            IpAddr::V4(own) => {
                let host = u32::MAX.checked_shr(self.length.into()).unwrap_or(0);
                let own = u32::from(own);
                let ends = (Ipv4Addr::from(own & !host), Ipv4Addr::from(own | host));
                (ends.0.into(), ends.1.into(), SPECIAL_BITS_MIN[0])
            }
            IpAddr::V6(own) => {
                let host = u128::MAX.checked_shr(self.length.into()).unwrap_or(0);
                let own = u128::from(own);
                let ends = (Ipv6Addr::from(own & !host), Ipv6Addr::from(own | host));
                (IpAddr::from(ends.0), IpAddr::from(ends.1), SPECIAL_BITS_MIN[1])
            }
        };
        self.length >= least && !is_public(first) && !is_public(last)
    }
}

impl FromStr for Prefix {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is no network; write 192.0.2.0/24, 2001:db8::/32 or ::1");
        let (address, length) =
            text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let length = length.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        (length <= longest).then_some(Self { address, length }).ok_or_else(wrong)
    }
}

impl TryFrom<String> for Prefix {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.length)
    }
}

/// The network that one client's bytes are counted by: /24 of IPv4, /64 of IPv6.
pub fn client_network(address: IpAddr) -> Prefix {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, c, _] = v4.octets();
            Prefix { address: Ipv4Addr::new(a, b, c, 0).into(), length: 24 }
        }
        IpAddr::V6(v6) => {
            let network = u128::from(v6) >> 64 << 64;
            Prefix { address: Ipv6Addr::from(network).into(), length: 64 }
        }
    }
}

/// The addresses that are one client at one time: an IPv4 address, a /64 of IPv6, within which a
/// host takes any.
pub fn client_place(address: IpAddr) -> Prefix {
    match address.to_canonical() {
        IpAddr::V4(v4) => Prefix { address: v4.into(), length: 32 },
        IpAddr::V6(_) => client_network(address),
    }
}

/// True when an address identifies nobody outside of its own network: loopback, link-local, private
/// (RFC 1918, RFC 4193), shared (RFC 6598).
pub fn is_private(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(v4) => {
            let [a, b, ..] = v4.octets();
            v4.is_loopback()
                || v4.is_private()
                || v4.is_link_local()
                || (a == 100 && (64..128).contains(&b))
        }
        IpAddr::V6(v6) => v6.is_loopback() || v6.is_unicast_link_local() || v6.is_unique_local(),
    }
}

/// True when anybody on the Internet may reach an address: a global unicast address, not one of
/// documentation (RFC 5737, RFC 3849, RFC 9637), of benchmarks (RFC 2544, RFC 5180) or reserved.
pub fn is_public(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let never = address.is_unspecified() || address.is_multicast() || is_private(address);
    !never
        && match address {
            IpAddr::V4(v4) => {
                let [a, b, c, _] = v4.octets();
                let benchmarks = a == 198 && (b == 18 || b == 19);
                let documentation = v4.is_documentation();
                let special = a == 0 || a >= 240 || (a, b, c) == (192, 0, 0);
                !(benchmarks || documentation || special)
            }
            IpAddr::V6(v6) => {
                let [a, b, c, ..] = v6.segments();
                let documentation = (a, b) == (0x2001, 0xdb8) || (a == 0x3fff && b < 0x1000);
                let benchmarks = (a, b, c) == (0x2001, 2, 0);
                // Global unicast is 2000::/3 (RFC 4291 §2.4, IANA).
                a & 0xe000 == 0x2000 && !documentation && !benchmarks
            }
        }
}
