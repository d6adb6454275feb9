//! Specification of a test frame: length, addresses, protocol, and the fields that differ from flow
//! to flow. Defaults are those of RFC 2544 appendix C, RFC 4814 and RFC 5180.

use std::net::{Ipv4Addr, Ipv6Addr};

use linerate_core::record::BenchProtocol;
use linerate_core::units::FrameLen;

use super::appletalk::AppleTalkAddress;
use super::decnet::DecNetAddress;
use super::ends::{Ends, PORTS_RFC2544};
use super::ether::Tags;
use super::ipx::{IpxAddress, IpxFraming};
use super::{Flows, Mac};

/// Specification of a test frame, of which [`TestFrame::template`] makes the bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TestFrame {
    /// Length with FCS and tags.
    pub len: FrameLen,
    /// Destination MAC address: the router's, or through a bridge the receiving station's.
    pub destination: Mac,
    /// Source MAC address.
    pub source: Mac,
    /// VLAN tags of the frame.
    pub tags: Tags,
    /// Protocol and addresses of the payload.
    pub content: TestFrameContent,
    /// Fields that differ from flow to flow.
    pub flows: Flows,
    /// Allowed IP addresses.
    pub addresses: AddressRule,
}

impl TestFrame {
    /// A frame without tags, of one flow, with only addresses of test networks allowed.
    pub fn new(len: FrameLen, destination: Mac, source: Mac, content: TestFrameContent) -> Self {
        let (tags, flows, addresses) =
            (Tags::None, Flows::single_flow(), AddressRule::TestNetworks);
        Self { len, destination, source, tags, content, flows, addresses }
    }

    /// A broadcast frame that no router has to process (RFC 2544 §11.1): EtherType 0x88b5. By that
    /// section 1 in 100 frames of the load is one.
    pub fn broadcast(len: FrameLen, source: Mac) -> Self {
        Self::new(len, Mac::BROADCAST, source, TestFrameContent::Ethernet)
    }
}

/// Allowed IP addresses of a test frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum AddressRule {
    /// 198.18.0.0/15 (RFC 2544 appendix C.2.2, RFC 6890) and 2001:2::/48 (RFC 5180 §8).
    #[default]
    TestNetworks,
    /// All addresses, for an isolated network.
    Any,
}

/// Payload protocol of a test frame, with its addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestFrameContent {
    /// Only filler, with EtherType 0x88b5: for bridges.
    Ethernet,
    /// UDP or TCP over IPv4.
    Ipv4(IpFlow<Ipv4Addr>),
    /// UDP or TCP over IPv6.
    Ipv6(IpFlow<Ipv6Addr>),
    /// A long data packet of DECnet phase IV.
    DecNet(Ends<DecNetAddress>),
    /// A datagram of AppleTalk phase 2.
    AppleTalk(Ends<AppleTalkAddress>),
    /// A packet of IPX.
    Ipx(IpxFraming, Ends<IpxAddress>),
}

/// Headers of an IP test frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpFlow<A> {
    /// Addresses of flow 0.
    pub ends: Ends<A>,
    /// Transport protocol.
    pub transport: TestFrameTransport,
    /// Ports of flow 0.
    pub ports: Ends<u16>,
    /// Differentiated services code point, 0 to 63 (RFC 2474).
    pub dscp: u8,
}

/// Transport protocol of an IP test frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestFrameTransport {
    /// A UDP datagram.
    Udp,
    /// A TCP segment with ACK set, of no connection.
    Tcp,
}

/// Addresses of the single-filter case of RFC 2544 appendix C.
pub const IPV4_RFC2544: Ends<Ipv4Addr> =
    Ends { source: Ipv4Addr::new(198, 18, 1, 2), destination: Ipv4Addr::new(198, 19, 65, 2) };
/// IPv6 addresses of the same two hosts, within 2001:2::/48 (RFC 5180 §8).
pub const IPV6_RFC5180: Ends<Ipv6Addr> = Ends {
    source: Ipv6Addr::new(0x2001, 2, 0, 1, 0, 0, 0, 2),
    destination: Ipv6Addr::new(0x2001, 2, 0, 0x8041, 0, 0, 0, 2),
};

/// Payload protocols of test frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TestFrameProtocol {
    /// UDP over IPv4.
    Ipv4Udp,
    /// UDP over IPv6.
    Ipv6Udp,
    /// TCP over IPv4.
    Ipv4Tcp,
    /// TCP over IPv6.
    Ipv6Tcp,
    /// Ethernet without a network protocol.
    Ethernet,
    /// DECnet phase IV.
    DecNet,
    /// AppleTalk phase 2.
    AppleTalk,
    /// IPX in raw 802.3 frames.
    IpxRaw,
    /// IPX in Ethernet II frames.
    Ipx,
}

impl From<BenchProtocol> for TestFrameProtocol {
    /// The protocol of a plan; its IPX is that in Ethernet II frames.
    fn from(protocol: BenchProtocol) -> Self {
        match protocol {
            BenchProtocol::Udp4 => Self::Ipv4Udp,
            BenchProtocol::Udp6 => Self::Ipv6Udp,
            BenchProtocol::Tcp4 => Self::Ipv4Tcp,
            BenchProtocol::Tcp6 => Self::Ipv6Tcp,
            BenchProtocol::Ethernet => Self::Ethernet,
            BenchProtocol::Decnet => Self::DecNet,
            BenchProtocol::Appletalk => Self::AppleTalk,
            BenchProtocol::Ipx => Self::Ipx,
        }
    }
}

impl TestFrameProtocol {
    /// All nine protocols.
    pub const ALL: [Self; 9] = [
        Self::Ipv4Udp,
        Self::Ipv6Udp,
        Self::Ipv4Tcp,
        Self::Ipv6Tcp,
        Self::Ethernet,
        Self::DecNet,
        Self::AppleTalk,
        Self::IpxRaw,
        Self::Ipx,
    ];

    /// Name on command lines and in records.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ipv4Udp => "ipv4-udp",
            Self::Ipv6Udp => "ipv6-udp",
            Self::Ipv4Tcp => "ipv4-tcp",
            Self::Ipv6Tcp => "ipv6-tcp",
            Self::Ethernet => "ethernet",
            Self::DecNet => "decnet",
            Self::AppleTalk => "appletalk",
            Self::IpxRaw => "ipx-raw",
            Self::Ipx => "ipx",
        }
    }

    /// The protocol of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|protocol| protocol.name() == name)
    }

    /// Bytes of the headers from the destination MAC address on, without tags.
    pub const fn header_bytes(self) -> u32 {
        14 + match self {
            Self::Ipv4Udp => 20 + 8,
            Self::Ipv6Udp => 40 + 8,
            Self::Ipv4Tcp => 20 + 20,
            Self::Ipv6Tcp => 40 + 20,
            Self::Ethernet => 0,
            // Length, long header of routing, header of a data segment.
            Self::DecNet => 2 + 21 + 7,
            // LLC with SNAP, long header of DDP.
            Self::AppleTalk => 8 + 13,
            Self::IpxRaw | Self::Ipx => 30,
        }
    }

    /// True if a transport checksum covers the payload.
    pub const fn has_transport_sum(self) -> bool {
        matches!(self, Self::Ipv4Udp | Self::Ipv6Udp | Self::Ipv4Tcp | Self::Ipv6Tcp)
    }
}

impl TestFrameContent {
    /// Payload of a protocol, with the addresses and ports of the standards.
    pub const fn from_protocol(protocol: TestFrameProtocol) -> Self {
        const fn ip_flow<A: Copy>(ends: Ends<A>, transport: TestFrameTransport) -> IpFlow<A> {
            IpFlow { ends, transport, ports: PORTS_RFC2544, dscp: 0 }
        }
        match protocol {
            TestFrameProtocol::Ipv4Udp => {
                Self::Ipv4(ip_flow(IPV4_RFC2544, TestFrameTransport::Udp))
            }
            TestFrameProtocol::Ipv4Tcp => {
                Self::Ipv4(ip_flow(IPV4_RFC2544, TestFrameTransport::Tcp))
            }
            TestFrameProtocol::Ipv6Udp => {
                Self::Ipv6(ip_flow(IPV6_RFC5180, TestFrameTransport::Udp))
            }
            TestFrameProtocol::Ipv6Tcp => {
                Self::Ipv6(ip_flow(IPV6_RFC5180, TestFrameTransport::Tcp))
            }
            TestFrameProtocol::Ethernet => Self::Ethernet,
            TestFrameProtocol::DecNet => Self::DecNet(DecNetAddress::TEST),
            TestFrameProtocol::AppleTalk => Self::AppleTalk(AppleTalkAddress::TEST),
            TestFrameProtocol::IpxRaw => Self::Ipx(IpxFraming::Raw8023, IpxAddress::TEST),
            TestFrameProtocol::Ipx => Self::Ipx(IpxFraming::EthernetII, IpxAddress::TEST),
        }
    }

    /// Protocol of the payload.
    pub const fn protocol(&self) -> TestFrameProtocol {
        match self {
            Self::Ethernet => TestFrameProtocol::Ethernet,
            Self::Ipv4(IpFlow { transport: TestFrameTransport::Udp, .. }) => {
                TestFrameProtocol::Ipv4Udp
            }
            Self::Ipv4(IpFlow { transport: TestFrameTransport::Tcp, .. }) => {
                TestFrameProtocol::Ipv4Tcp
            }
            Self::Ipv6(IpFlow { transport: TestFrameTransport::Udp, .. }) => {
                TestFrameProtocol::Ipv6Udp
            }
            Self::Ipv6(IpFlow { transport: TestFrameTransport::Tcp, .. }) => {
                TestFrameProtocol::Ipv6Tcp
            }
            Self::DecNet(_) => TestFrameProtocol::DecNet,
            Self::AppleTalk(_) => TestFrameProtocol::AppleTalk,
            Self::Ipx(IpxFraming::Raw8023, _) => TestFrameProtocol::IpxRaw,
            Self::Ipx(IpxFraming::EthernetII, _) => TestFrameProtocol::Ipx,
        }
    }

    /// The other direction: source and destination of addresses and ports exchanged. The ports are
    /// then often outside the ranges of RFC 4814; set them again where they vary.
    #[must_use]
    pub fn reversed(self) -> Self {
        fn reversed_flow<A>(flow: IpFlow<A>) -> IpFlow<A> {
            IpFlow { ends: flow.ends.reversed(), ports: flow.ports.reversed(), ..flow }
        }
        match self {
            Self::Ethernet => Self::Ethernet,
            Self::Ipv4(flow) => Self::Ipv4(reversed_flow(flow)),
            Self::Ipv6(flow) => Self::Ipv6(reversed_flow(flow)),
            Self::DecNet(ends) => Self::DecNet(ends.reversed()),
            Self::AppleTalk(ends) => Self::AppleTalk(ends.reversed()),
            Self::Ipx(framing, ends) => Self::Ipx(framing, ends.reversed()),
        }
    }
}
