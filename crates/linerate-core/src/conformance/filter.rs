//! Which packets count: a list of terms that all must hold, such as `udp,port=5001,host=10.0.0.1`.
//!
//! Left out: or, not, and ranges. For those, tcpdump -w with its own filter comes first.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use thiserror::Error;

/// Header fields of a packet that a filter compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// Transport protocol, as IANA numbers it.
    pub protocol: u8,
    /// Source address of the packet.
    pub source: IpAddr,
    /// Destination address of the packet.
    pub destination: IpAddr,
    /// Source and destination port, where there are ports.
    pub ports: Option<(u16, u16)>,
    /// True when the capturing host sent it; none where that is not known.
    pub outgoing: Option<bool>,
}

/// One condition of a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Term {
    Protocol(u8),
    Version4(bool),
    Port(u16),
    SourcePort(u16),
    DestinationPort(u16),
    Host(Net),
    Source(Net),
    Destination(Net),
    Outgoing(bool),
}

/// Addresses that share their first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Net {
    address: IpAddr,
    bits: u8,
}

impl Net {
    fn contains_address(self, other: IpAddr) -> bool {
        let shared = |a: u128, b: u128, width: u8| {
            let drop = u32::from(width - self.bits);
            a.checked_shr(drop).unwrap_or(0) == b.checked_shr(drop).unwrap_or(0)
        };
        match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => shared(a.to_bits().into(), b.to_bits().into(), 32),
            (IpAddr::V6(a), IpAddr::V6(b)) => shared(a.to_bits(), b.to_bits(), 128),
            _ => false,
        }
    }
}

impl FromStr for Net {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, FilterError> {
        let refuse = || FilterError::Address(text.chars().take(40).collect());
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| refuse())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.unwrap_or(width);
        if bits > width { Err(refuse()) } else { Ok(Self { address, bits }) }
    }
}

/// A filter of packets: all of its terms must hold; none lets every packet pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    terms: Vec<Term>,
    text: String,
}

/// Reason why a text is no filter.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FilterError {
    /// A word that is no term.
    #[error(
        "{0:?} is no term of a filter; the terms are tcp, udp, icmp, ip4, ip6, in, out, proto=N, \
         port=N, sport=N, dport=N, host=ADDRESS, src=ADDRESS and dst=ADDRESS"
    )]
    Term(String),
    /// A value that is no address.
    #[error("{0:?} is no address such as 10.0.0.1, 10.0.0.0/8 or 2001:db8::1")]
    Address(String),
    /// Not a number, or too large.
    #[error("{0:?} is no number that fits")]
    Number(String),
}

impl FromStr for Filter {
    type Err = FilterError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let terms =
            text.split(',').map(|part| parse_term(part.trim())).collect::<Result<_, _>>()?;
        Ok(Self { terms, text: text.to_owned() })
    }
}

fn parse_term(text: &str) -> Result<Term, FilterError> {
    let unknown = || FilterError::Term(text.chars().take(40).collect());
    let Some((key, value)) = text.split_once('=') else {
        return Ok(match text {
            "tcp" => Term::Protocol(6),
            "udp" => Term::Protocol(17),
            "icmp" => Term::Protocol(1),
            "icmp6" => Term::Protocol(58),
            "ip4" => Term::Version4(true),
            "ip6" => Term::Version4(false),
            "in" => Term::Outgoing(false),
            "out" => Term::Outgoing(true),
            _ => return Err(unknown()),
        });
    };
    let number = || value.parse().map_err(|_| FilterError::Number(value.to_owned()));
    Ok(match key {
        "proto" => {
            Term::Protocol(value.parse().map_err(|_| FilterError::Number(value.to_owned()))?)
        }
        "port" => Term::Port(number()?),
        "sport" => Term::SourcePort(number()?),
        "dport" => Term::DestinationPort(number()?),
        "host" => Term::Host(value.parse()?),
        "src" => Term::Source(value.parse()?),
        "dst" => Term::Destination(value.parse()?),
        _ => return Err(unknown()),
    })
}

impl Filter {
    /// True when every packet passes.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// True when a term compares ports.
    pub fn asks_ports(&self) -> bool {
        let is_port = |term: &Term| {
            matches!(term, Term::Port(_) | Term::SourcePort(_) | Term::DestinationPort(_))
        };
        self.terms.iter().any(is_port)
    }

    /// True when a packet counts. A term about a field that is not known does not hold.
    #[inline]
    pub fn passes(&self, facts: &Facts) -> bool {
        let ports = |holds: &dyn Fn(u16, u16) -> bool| {
            facts.ports.is_some_and(|(source, destination)| holds(source, destination))
        };
        self.terms.iter().all(|term| match *term {
            Term::Protocol(number) => facts.protocol == number,
            Term::Version4(is_v4) => facts.source.is_ipv4() == is_v4,
            Term::Port(port) => ports(&|source, destination| source == port || destination == port),
            Term::SourcePort(port) => ports(&|source, _| source == port),
            Term::DestinationPort(port) => ports(&|_, destination| destination == port),
            Term::Host(net) => {
                net.contains_address(facts.source) || net.contains_address(facts.destination)
            }
            Term::Source(net) => net.contains_address(facts.source),
            Term::Destination(net) => net.contains_address(facts.destination),
            Term::Outgoing(outgoing) => facts.outgoing == Some(outgoing),
        })
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if self.is_empty() { "all" } else { &self.text })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FACTS: Facts = Facts {
        protocol: 17,
        source: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 1, 2)),
        destination: IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)),
        ports: Some((40_000, 5001)),
        outgoing: Some(false),
    };

    fn assert_passes(text: &str, passes: bool) {
        let filter: Filter = text.parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(filter.passes(&FACTS), passes, "{text}");
    }

    #[test]
    fn all_terms_must_hold() {
        assert_passes("udp", true);
        assert_passes("udp,port=5001,host=10.0.1.2", true);
        assert_passes("udp,port=40000", true);
        assert_passes("udp,port=5002", false);
        assert_passes("tcp", false);
        assert_passes("proto=17,ip4", true);
        assert_passes("ip6", false);
        assert_passes("dport=5001,sport=40000", true);
        assert_passes("sport=5001", false);
        assert_passes("src=10.0.0.0/8,dst=192.0.2.0/24", true);
        assert_passes("src=0.0.0.0/0", true);
        assert_passes("src=10.0.0.0/24", false);
        assert_passes("host=2001:db8::1", false);
        assert_passes("host=::/0", false);
        assert_passes("in", true);
        assert_passes("out", false);
        assert!(Filter::default().passes(&FACTS));
    }

    #[test]
    fn what_is_not_known_does_not_hold() {
        let facts = Facts { ports: None, outgoing: None, ..FACTS };
        for text in ["port=5001", "in", "out"] {
            let filter: Filter = text.parse().expect("a filter");
            assert!(!filter.passes(&facts), "{text}");
        }
    }

    #[test]
    fn what_is_no_filter_is_refused_in_one_line() {
        for text in
            ["", "udp,", "port=70000", "host=ten", "src=10.0.0.0/33", "vlan=1", "tcp or udp"]
        {
            let error = text.parse::<Filter>().expect_err(text).to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }
}
