//! To whom a server of iperf 2 sends over UDP, and how much, because the address of a datagram is
//! easily forged and one that asks for data would make the server flood a stranger.
//!
//! A client of linerate proves its address by a cookie that went there (`iperf2::cookie`). One
//! of iperf cannot: where it sends all the time (`--full-duplex`, `-d`, `-r`) it is sent in
//! proportion to what comes; for `-R`, of which a single datagram comes, the server's user has to
//! name its network, and a rate for all of that network together.

use std::hash::BuildHasher;
use std::hash::RandomState;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_core::units::BitRate;
use linerate_proto::iperf2::{PROOF_BYTES, UdpArrived, cookie, cookie_answer};

/// The rate at which all clients of a network together are sent data, where the network's rate is
/// not named: ten times the pace that iperf 2 has by default.
const RATE_BPS: u64 = 10_000_000;

/// A cookie counts for this long and as long again at most.
const COOKIE_SPAN: Duration = Duration::from_secs(60);

/// The most bytes that a client without a proven address is sent for each byte that came from it.
const BYTES_FOR_ONE: u64 = 3;
/// The most that such a client is sent, as a multiple of the rate at which it sends.
const TIMES_AS_FAST: u64 = 2;
/// How fast it comes is known after this.
const WATCHED: Duration = Duration::from_millis(50);

/// A network whose addresses are taken for true: `192.168.0.0/16`, or with what all of it is sent
/// at most, `192.168.0.0/16=500M`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustedNetwork {
    address: IpAddr,
    prefix: u32,
    /// The highest rate of all its clients together; none without a bound.
    most_bps: Option<u64>,
}

impl TrustedNetwork {
    fn contains_address(&self, address: IpAddr) -> bool {
        let bits = |address: IpAddr| match address.to_canonical() {
            IpAddr::V4(v4) => (32, u128::from(u32::from(v4))),
            IpAddr::V6(v6) => (128, u128::from(v6)),
        };
        let ((length, own), (other_length, other)) = (bits(self.address), bits(address));
        let behind = length - self.prefix.min(length);
        length == other_length && (own ^ other).checked_shr(behind).unwrap_or(0) == 0
    }
}

impl FromStr for TrustedNetwork {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (network, rate) =
            text.split_once('=').map_or((text, None), |(network, rate)| (network, Some(rate)));
        let (address, prefix) = network
            .split_once('/')
            .map_or((network, None), |(address, prefix)| (address, Some(prefix)));
        let wrong = || format!("'{text}' is no network; write 192.168.0.0/16 or 10.0.0.7=100M");
        let address: IpAddr = address.parse().map_err(|_| wrong())?;
        let longest = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Ok(longest), str::parse).map_err(|_| wrong())?;
        let rate =
            rate.map(str::parse::<BitRate>).transpose().map_err(|error| error.to_string())?;
        if prefix > longest {
            return Err(wrong());
        }
        let bps = rate.map_or(RATE_BPS, BitRate::bits_per_sec);
        Ok(Self { address, prefix, most_bps: Some(bps) })
    }
}

/// The rules by which a client is sent data over UDP, whose address may be forged.
#[derive(Debug)]
pub struct AddressValidation {
    /// With what is left of its rate, where that has a bound.
    networks: Vec<(TrustedNetwork, Option<Arc<AtomicU64>>)>,
    secret: RandomState,
}

impl Default for AddressValidation {
    /// The host itself, from where no other can forge a datagram.
    fn default() -> Self {
        let own =
            [(IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)), 8), (IpAddr::V6(Ipv6Addr::LOCALHOST), 128)];
        let own = own.map(|(address, prefix)| TrustedNetwork { address, prefix, most_bps: None });
        Self::nobody().with_networks(&own)
    }
}

impl AddressValidation {
    /// No address is taken for true, not even the host's own.
    pub fn nobody() -> Self {
        Self { networks: Vec::new(), secret: RandomState::new() }
    }

    /// Trusts these networks as well.
    #[must_use]
    pub fn with_networks(mut self, networks: &[TrustedNetwork]) -> Self {
        let with_rest = |network: &TrustedNetwork| {
            let left = network.most_bps.map(|most| Arc::new(AtomicU64::new(most)));
            (network.clone(), left)
        };
        self.networks.extend(networks.iter().map(with_rest));
        self
    }

    fn cookie(&self, address: IpAddr, epoch: u64) -> u64 {
        // 0 asks for one.
        self.secret.hash_one((address.to_canonical(), epoch)).max(1)
    }

    /// Checks whether a client's first datagram proves its address; else, where it is ready to,
    /// gives the answer that it needs.
    pub(super) fn check_proof(&self, from: IpAddr, datagram: &[u8], now: MonoTime) -> AddressProof {
        let Some(told) = cookie(datagram).filter(|_| datagram.len() >= PROOF_BYTES) else {
            return AddressProof::None;
        };
        let epoch = now.as_nanos() / COOKIE_SPAN.as_nanos() as u64;
        let recent = [Some(epoch), epoch.checked_sub(1)];
        if recent.into_iter().flatten().any(|epoch| told == self.cookie(from, epoch)) {
            return AddressProof::Given;
        }
        AddressProof::Ask(cookie_answer(self.cookie(from, epoch)))
    }

    /// How much a client may be sent that proves nothing and asks for `bps` on one of `streams`;
    /// none where nobody answers for its address.
    pub(super) fn send_limit(&self, address: IpAddr, bps: u64, streams: u32) -> Option<SendLimit> {
        let (_, left) =
            self.networks.iter().find(|(network, _)| network.contains_address(address))?;
        let Some(left) = left else { return Some(SendLimit::Whole) };
        let mut own = 0;
        let taken = left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| {
            own = bps.min(left / u64::from(streams.max(1))).max(u64::from(left > 0));
            left.checked_sub(own).filter(|_| own > 0)
        });
        taken.ok().map(|_| SendLimit::Capped(Share { bps: own, left: Arc::clone(left) }))
    }
}

/// The proof of the client's address in its first datagram.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AddressProof {
    /// The datagram proves that the address is the client's.
    Given,
    /// The client may prove it by this.
    Ask(Vec<u8>),
    /// The datagram proves nothing.
    None,
}

/// How much a client may be sent.
#[derive(Debug)]
pub(crate) enum SendLimit {
    /// Everything that it asks for.
    Whole,
    /// In proportion to what comes from it.
    Mirrored,
    /// At a share of its network's rate.
    Capped(Share),
}

/// A share of a network's rate, given back when dropped.
#[derive(Debug)]
pub(crate) struct Share {
    bps: u64,
    left: Arc<AtomicU64>,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.left.fetch_add(self.bps, Ordering::AcqRel);
    }
}

/// The bounds of a stream to a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendBounds {
    /// The highest pace; none without a bound.
    pub(super) pace: Option<BitRate>,
    /// Datagrams of data that it may send for now; none without a bound.
    pub(super) granted: Option<u64>,
}

impl SendLimit {
    /// The bounds of a stream with datagrams of `size` bytes; none while it must not begin.
    pub(crate) fn bounds(&self, came: UdpArrived, size: u64) -> Option<SendBounds> {
        let granted = self.granted(came, size);
        let pace_bps = match self {
            Self::Whole => None,
            Self::Capped(share) => Some(share.bps),
            Self::Mirrored => {
                let known = came.ended || came.span >= WATCHED;
                granted.filter(|granted| known && *granted > 0)?;
                let us = came.span.max(WATCHED).as_micros() as u64;
                Some(came.bytes.saturating_mul(8_000_000 * TIMES_AS_FAST) / us)
            }
        };
        Some(SendBounds { pace: pace_bps.map(BitRate::from_bits_per_sec), granted })
    }

    /// First datagrams, and ends, that may be sent at most.
    pub(crate) const fn beside_max(&self) -> u64 {
        match self {
            Self::Whole | Self::Capped(_) => u64::MAX,
            Self::Mirrored => RESERVE / 2,
        }
    }

    /// Datagrams of data of `size` bytes that may be sent for what came; none without a bound.
    pub(crate) fn granted(&self, came: UdpArrived, size: u64) -> Option<u64> {
        match self {
            Self::Whole | Self::Capped(_) => None,
            Self::Mirrored => {
                let all = came.bytes.saturating_mul(BYTES_FOR_ONE) / size.max(1);
                Some(all.saturating_sub(RESERVE))
            }
        }
    }
}

/// Datagrams beside data: first ones that are refused and sent again, and ends. A client that
/// proves no address is sent so many of both at most.
const RESERVE: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: u64 = 60_000_000_000;

    fn time_at_ns(ns: u64) -> MonoTime {
        MonoTime::from_nanos(ns)
    }

    fn parse_ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    #[test]
    fn a_network_holds_the_addresses_of_its_prefix() {
        for (network, address, holds) in [
            ("192.168.0.0/16", "192.168.255.1", true),
            ("192.168.0.0/16", "192.169.0.1", false),
            ("192.168.0.0/16", "::ffff:192.168.3.4", true),
            ("10.0.0.7", "10.0.0.7", true),
            ("10.0.0.7", "10.0.0.6", false),
            ("0.0.0.0/0", "203.0.113.9", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("2001:db8::/32", "2001:db8:ffff::1", true),
            ("2001:db8::/32", "2001:db9::1", false),
            ("::/0", "2001:db9::1", true),
        ] {
            let trusted: TrustedNetwork = network.parse().expect("a network");
            assert_eq!(trusted.contains_address(parse_ip(address)), holds, "{network} {address}");
        }
        for wrong in ["", "10.0.0.0/33", "10.0.0/8", "fd00::/129", "10.0.0.0/8=x", "lan"] {
            assert!(wrong.parse::<TrustedNetwork>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_cookie_proves_the_address_that_it_was_sent_to_for_a_minute_or_two() {
        let trust = AddressValidation::nobody();
        let (own, other) = (parse_ip("192.0.2.1"), parse_ip("192.0.2.2"));
        let mut first = vec![b'5'; PROOF_BYTES];
        assert_eq!(trust.check_proof(own, &first, time_at_ns(0)), AddressProof::None);
        linerate_proto::iperf2::put_cookie(&mut first, 0);
        let AddressProof::Ask(answer) = trust.check_proof(own, &first, time_at_ns(5)) else {
            panic!("no cookie")
        };
        assert!(answer.len() <= first.len(), "nobody gets more than he sent");
        let told = linerate_proto::iperf2::answered_cookie(&answer).expect("a cookie");
        linerate_proto::iperf2::put_cookie(&mut first, told);
        for (address, ns, given) in [
            (own, 10, true),
            (parse_ip("::ffff:192.0.2.1"), 10, true),
            (own, 2 * MINUTE - 1, true),
            (own, 2 * MINUTE, false),
            (other, 10, false),
        ] {
            let proof = trust.check_proof(address, &first, time_at_ns(ns));
            assert_eq!(proof == AddressProof::Given, given, "{address} {ns}");
        }
        let elsewhere = AddressValidation::nobody().check_proof(own, &first, time_at_ns(10));
        assert!(matches!(elsewhere, AddressProof::Ask(_)), "another server's cookie");
    }

    #[test]
    fn a_network_s_clients_share_its_rate_and_give_it_back() {
        let trust = AddressValidation::default()
            .with_networks(&["10.0.0.0/8=30M".parse().expect("a network")]);
        let bps = |send_limit: &Option<SendLimit>| match send_limit {
            Some(SendLimit::Capped(share)) => Some(share.bps),
            _ => None,
        };
        let first = trust.send_limit(parse_ip("10.1.1.1"), 20_000_000, 1);
        let second = trust.send_limit(parse_ip("10.1.1.2"), 20_000_000, 1);
        assert_eq!([bps(&first), bps(&second)], [Some(20_000_000), Some(10_000_000)]);
        assert!(trust.send_limit(parse_ip("10.1.1.3"), 1_000, 1).is_none());
        drop(first);
        let four = trust.send_limit(parse_ip("10.1.1.3"), 100_000_000_000, 4);
        assert_eq!(bps(&four), Some(5_000_000));
        assert!(
            trust.send_limit(parse_ip("192.168.1.1"), 1_000, 1).is_none(),
            "nobody answers for it"
        );
        assert!(matches!(
            trust.send_limit(parse_ip("127.3.2.1"), u64::MAX, 1),
            Some(SendLimit::Whole)
        ));
        assert!(AddressValidation::nobody().send_limit(parse_ip("127.0.0.1"), 1, 1).is_none());
        let usual: TrustedNetwork = "10.0.0.0/8".parse().expect("a network");
        assert_eq!(
            bps(&AddressValidation::nobody().with_networks(&[usual]).send_limit(
                parse_ip("10.0.0.1"),
                u64::MAX,
                1
            )),
            Some(RATE_BPS)
        );
    }

    #[test]
    fn who_proves_nothing_is_sent_three_times_what_came_at_most_and_twice_as_fast() {
        let came = |bytes, ms, ended| UdpArrived { bytes, span: Duration::from_millis(ms), ended };
        // Three for one datagram are too few for a beginning, however long ago it came.
        assert_eq!(SendLimit::Mirrored.bounds(came(1470, 5_000, true), 1470), None);
        assert_eq!(SendLimit::Mirrored.bounds(came(14_700, 49, false), 1470), None);
        // 14,700 bytes in 50 ms are 2.352 Mbit/s; three times ten datagrams, six of them kept.
        let bounds = SendLimit::Mirrored.bounds(came(14_700, 50, false), 1470);
        assert_eq!(
            bounds,
            Some(SendBounds {
                pace: Some(BitRate::from_bits_per_sec(4_704_000)),
                granted: Some(24)
            })
        );
        assert_eq!(SendLimit::Mirrored.granted(came(29_400, 99, false), 1470), Some(54));
        let free = SendBounds { pace: None, granted: None };
        assert_eq!(SendLimit::Whole.bounds(came(0, 0, false), 1470), Some(free));
    }
}
