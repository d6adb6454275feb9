//! The packet quoted in an ICMP error: header fields as they arrived at the router, and the marks
//! that name the probe.
//!
//! A router has to quote the IP header and eight octets (RFC 792), and many quote no more. Of a
//! UDP probe these are ports, length and checksum; the probe's payload is chosen so that the
//! checksum is the probe's number. Of an echo request the eight octets include its sequence.

use std::net::IpAddr;

use etherparse::{IpNumber, Ipv4HeaderSlice, Ipv6HeaderSlice};
use linerate_core::record::IpFamily;

/// Header fields of a quoted packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote<'a> {
    /// Source address of the packet.
    pub source: IpAddr,
    /// Destination address of the packet.
    pub destination: IpAddr,
    /// Differentiated services code point.
    pub dscp: u8,
    /// Explicit congestion notification field (RFC 3168).
    pub ecn: u8,
    /// Time to live on arrival; 1, unless a hop did not decrement it.
    pub ttl: u8,
    /// Protocol number of the payload.
    pub protocol: u8,
    /// Quoted octets after the IP header.
    pub transport: &'a [u8],
}

impl<'a> Quote<'a> {
    /// Parses a quoted packet, from its IP header on.
    pub fn parse(family: IpFamily, original: &'a [u8]) -> Option<Self> {
        match family {
            IpFamily::V4 => {
                let header = Ipv4HeaderSlice::from_slice(original).ok()?;
                Some(Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    dscp: header.dcp().value(),
                    ecn: header.ecn().value(),
                    ttl: header.ttl(),
                    protocol: header.protocol().0,
                    transport: original.get(header.slice().len()..)?,
                })
            }
            IpFamily::V6 => {
                let header = Ipv6HeaderSlice::from_slice(original).ok()?;
                Some(Self {
                    source: header.source_addr().into(),
                    destination: header.destination_addr().into(),
                    dscp: header.traffic_class() >> 2,
                    ecn: header.traffic_class() & 3,
                    ttl: header.hop_limit(),
                    protocol: header.next_header().0,
                    transport: original.get(header.slice().len()..)?,
                })
            }
        }
    }

    /// Source and destination port of a UDP packet or TCP segment.
    pub fn quoted_ports(&self) -> Option<(u16, u16)> {
        let octets = self.transport.first_chunk::<4>()?;
        [IpNumber::UDP.0, IpNumber::TCP.0].contains(&self.protocol).then(|| {
            (u16::from_be_bytes([octets[0], octets[1]]), u16::from_be_bytes([octets[2], octets[3]]))
        })
    }

    /// Sequence number of a TCP segment, which is within the eight octets (RFC 9293 §3.1).
    pub fn tcp_sequence(&self) -> Option<u32> {
        let octets = self.transport.get(4..)?.first_chunk::<4>()?;
        (self.protocol == IpNumber::TCP.0).then(|| u32::from_be_bytes(*octets))
    }

    /// Quoted octets of a UDP packet's payload.
    pub fn udp_payload(&self) -> &'a [u8] {
        self.transport.get(8..).unwrap_or(&[])
    }

    /// Identifier and sequence number of a quoted echo request.
    pub fn quoted_echo(&self) -> Option<(u16, u16)> {
        let octets = self.transport.first_chunk::<8>()?;
        let request = [(IpNumber::ICMP.0, 8), (IpNumber::IPV6_ICMP.0, 128)];
        request.contains(&(self.protocol, octets[0])).then(|| {
            (u16::from_be_bytes([octets[4], octets[5]]), u16::from_be_bytes([octets[6], octets[7]]))
        })
    }
}

/// Trace and number of a UDP probe, at the start of its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProbeMark {
    /// Random number of the trace.
    pub cookie: u32,
    /// Number of the probe.
    pub number: u16,
}

impl ProbeMark {
    /// Octets of the mark.
    pub const BYTES: usize = 6;

    /// The octets on the wire.
    pub fn octets(self) -> [u8; Self::BYTES] {
        let (cookie, number) = (self.cookie.to_be_bytes(), self.number.to_be_bytes());
        [cookie[0], cookie[1], cookie[2], cookie[3], number[0], number[1]]
    }

    /// Reads the mark at the start of a payload; `None` when it is too short.
    pub fn read(payload: &[u8]) -> Option<Self> {
        let octets = payload.first_chunk::<{ Self::BYTES }>()?;
        Some(Self {
            cookie: u32::from_be_bytes([octets[0], octets[1], octets[2], octets[3]]),
            number: u16::from_be_bytes([octets[4], octets[5]]),
        })
    }
}
