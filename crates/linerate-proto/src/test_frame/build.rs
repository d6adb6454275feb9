//! Builds the template of a test frame: headers, filler, the balance word, the signature's offset.
//!
//! ```text
//! headers | 00 01 02 ... filler | balance (2, only UDP and TCP) | signature (16) | FCS
//! ```
//!
//! Filler counts up from 0 as in RFC 2544 appendix C.2.6.4. The balance word is 0 in the template;
//! in each frame it compensates the changes of other words, so that the checksum stays (RFC 1624).

use std::net::IpAddr;

use linerate_core::device::{FrameTemplate, HeaderSum, SIGNATURE_BYTES};
use linerate_core::units::FrameLen;

use super::appletalk::{self, DATAGRAM_BYTES_MAX};
use super::error::{Result, TestFrameError};
use super::ether::{self, FCS_BYTES, LENGTH_MAX};
use super::ipx::{self, Header};
use super::spec::{AddressRule, TestFrameTransport};
use super::varying::{self, Places, is_test_v4, is_test_v6};
use super::{
    Ends, IpFlow, IpxFraming, Mac, Tags, TestFrame, TestFrameContent, TestFrameProtocol, decnet,
};
use crate::frame::checksum::Sum;

/// Bytes of the balance word.
const BALANCE_BYTES: u32 = 2;
/// Time to live and hop limit (RFC 2544 appendix C.2.6.4: 10).
const HOPS: u8 = 10;

impl TestFrame {
    /// Bytes of the shortest frame with these tags and headers, including the FCS.
    pub const fn shortest_bytes(protocol: TestFrameProtocol, tags: Tags) -> u32 {
        let balance = if protocol.has_transport_sum() { BALANCE_BYTES } else { 0 };
        let needed = protocol.header_bytes()
            + tags.len_bytes()
            + balance
            + SIGNATURE_BYTES as u32
            + FCS_BYTES;
        // A device that removes the tags must not have to pad the frame, which would move the
        // signature away from its end.
        let legal = FrameLen::MIN.bytes() + tags.len_bytes();
        if needed < legal { legal } else { needed }
    }

    /// Bytes of the longest frame with these tags, including the FCS: limited by the length field,
    /// datagram or block of the protocol.
    pub const fn longest_bytes(protocol: TestFrameProtocol, tags: Tags) -> u32 {
        let head = 14 + tags.len_bytes() + FCS_BYTES;
        match protocol {
            TestFrameProtocol::AppleTalk => head + 8 + DATAGRAM_BYTES_MAX as u32,
            TestFrameProtocol::IpxRaw | TestFrameProtocol::DecNet => head + LENGTH_MAX as u32,
            _ => FrameLen::MAX.bytes(),
        }
    }

    /// Builds the template: bytes with correct lengths and checksums for flow 0 and a signature of
    /// zeros, and the offsets of the fields that differ.
    /// # Errors
    /// A length that is too short or too long for the headers, an address that is not of a test
    /// network, or flows beyond their fields.
    pub fn template(&self) -> Result<FrameTemplate> {
        self.check_bounds()?;
        let mut bytes = ether::frame_head(self.destination, self.source, self.tags);
        // At most 9,242 bytes.
        let rest = (self.len.bytes() - FCS_BYTES) as u16 - bytes.len() as u16 - 2;
        let kind = self.type_or_length(rest);
        bytes.extend_from_slice(&kind.to_be_bytes());
        let network = bytes.len();
        let transport = self.write_headers(&mut bytes, rest);
        let places = Places { network, transport };
        let varying = varying::varying_fields(self, &places)?;
        let end = network + usize::from(rest);
        let signature_at = end - SIGNATURE_BYTES;
        // Headers have even lengths, so the word is at an even offset of the checksum's range, with
        // a byte after it when the signature is at an odd one.
        let balance_at = transport.map(|_| (signature_at - BALANCE_BYTES as usize) & !1);
        let filler = balance_at.unwrap_or(signature_at).saturating_sub(bytes.len());
        bytes.extend((0..=u8::MAX).cycle().take(filler));
        bytes.resize(end, 0);
        fill_sums(&mut bytes, &self.content, &places);
        let under_header = varying.iter().any(|field| field.in_header_sum);
        Ok(FrameTemplate {
            bytes,
            varying,
            flows: self.flows.count,
            shuffled: self.flows.shuffled,
            header_sum: under_header.then_some(HeaderSum { at: network as u16 + 10 }),
            balance_at: balance_at.map(|at| at as u16),
        })
    }

    /// Value of the type or length field.
    const fn type_or_length(&self, rest: u16) -> u16 {
        match &self.content {
            TestFrameContent::Ethernet => ether::EXPERIMENTAL,
            TestFrameContent::Ipv4(_) => ether::IPV4,
            TestFrameContent::Ipv6(_) => ether::IPV6,
            TestFrameContent::DecNet(_) => ether::DECNET,
            TestFrameContent::Ipx(IpxFraming::EthernetII, _) => ether::IPX,
            TestFrameContent::AppleTalk(_) | TestFrameContent::Ipx(IpxFraming::Raw8023, _) => rest,
        }
    }

    /// Writes the headers after the type of a frame with `rest` bytes there; returns the offset of
    /// UDP or TCP.
    fn write_headers(&self, bytes: &mut Vec<u8>, rest: u16) -> Option<usize> {
        match &self.content {
            TestFrameContent::Ethernet => return None,
            TestFrameContent::DecNet(ends) => decnet::write_data(bytes, *ends, rest),
            TestFrameContent::AppleTalk(ends) => appletalk::write_datagram(bytes, *ends, rest),
            TestFrameContent::Ipx(_, ends) => {
                let sockets = Ends { source: ipx::SOCKET, destination: ipx::SOCKET };
                Header { ends: *ends, sockets, kind: 0 }.write(bytes, rest);
            }
            TestFrameContent::Ipv4(flow) => {
                write_ipv4(bytes, flow.dscp, protocol_number(flow.transport), rest);
                bytes.extend_from_slice(&flow.ends.source.octets());
                bytes.extend_from_slice(&flow.ends.destination.octets());
                return Some(write_transport(bytes, flow, rest - 20));
            }
            TestFrameContent::Ipv6(flow) => {
                write_ipv6(bytes, flow.dscp, protocol_number(flow.transport), rest - 40);
                bytes.extend_from_slice(&flow.ends.source.octets());
                bytes.extend_from_slice(&flow.ends.destination.octets());
                return Some(write_transport(bytes, flow, rest - 40));
            }
        }
        None
    }

    fn check_bounds(&self) -> Result<()> {
        let (protocol, len_bytes) = (self.content.protocol(), self.len.bytes());
        let shortest_bytes = Self::shortest_bytes(protocol, self.tags);
        let longest_bytes = Self::longest_bytes(protocol, self.tags);
        let protocol = protocol.name();
        if len_bytes < shortest_bytes {
            return Err(TestFrameError::TooShort { len_bytes, protocol, shortest_bytes });
        }
        if len_bytes > longest_bytes {
            return Err(TestFrameError::TooLong { len_bytes, protocol, longest_bytes });
        }
        for tag in self.tags.iter() {
            at_most("VLAN", tag.id, 4094)?;
            at_most("VLAN priority", tag.priority.into(), 7)?;
        }
        if self.source.is_group() || self.source == Mac::default() {
            return Err(station("source hardware address", &self.source));
        }
        self.check_ends()
    }

    fn check_ends(&self) -> Result<()> {
        match &self.content {
            TestFrameContent::Ethernet => Ok(()),
            TestFrameContent::Ipv4(flow) => self.check_ip(flow, |ip| (ip.into(), is_test_v4(ip))),
            TestFrameContent::Ipv6(flow) => self.check_ip(flow, |ip| (ip.into(), is_test_v6(ip))),
            TestFrameContent::DecNet(ends) => {
                check_both(ends, |address| address.is_valid(), "DECnet address")
            }
            TestFrameContent::AppleTalk(ends) => {
                check_both(ends, |address| address.is_valid(), "AppleTalk address")
            }
            TestFrameContent::Ipx(_, ends) => {
                check_both(ends, |address| address.is_valid(), "IPX address")
            }
        }
    }

    fn check_ip<A: Copy>(
        &self,
        flow: &IpFlow<A>,
        describe: impl Fn(A) -> (IpAddr, bool),
    ) -> Result<()> {
        at_most("DSCP", flow.dscp.into(), 63)?;
        for (address, is_test) in [flow.ends.source, flow.ends.destination].map(&describe) {
            if !is_test && self.addresses == AddressRule::TestNetworks {
                return Err(TestFrameError::Address(address));
            }
        }
        let (source, _) = describe(flow.ends.source);
        if source.is_multicast() || source.is_unspecified() {
            return Err(station("source address", &source));
        }
        Ok(())
    }
}

fn at_most(what: &'static str, value: u16, value_max: u16) -> Result<()> {
    if value > value_max {
        return Err(TestFrameError::Value { what, value, value_max });
    }
    Ok(())
}

fn station(what: &'static str, address: &dyn std::fmt::Display) -> TestFrameError {
    TestFrameError::Station { what, address: address.to_string() }
}

fn check_both<A: std::fmt::Debug>(
    ends: &Ends<A>,
    is_valid: impl Fn(&A) -> bool,
    what: &'static str,
) -> Result<()> {
    for address in [&ends.source, &ends.destination] {
        if !is_valid(address) {
            return Err(TestFrameError::Station { what, address: format!("{address:?}") });
        }
    }
    Ok(())
}

const fn protocol_number(transport: TestFrameTransport) -> u8 {
    match transport {
        TestFrameTransport::Tcp => 6,
        TestFrameTransport::Udp => 17,
    }
}

/// Writes an IPv4 header up to the addresses (RFC 791 §3.1); the checksum is filled in later. Don't
/// Fragment is set, because a fragment has no signature, or another length.
fn write_ipv4(bytes: &mut Vec<u8>, dscp: u8, protocol: u8, total: u16) {
    bytes.extend_from_slice(&[0x45, dscp << 2]);
    bytes.extend_from_slice(&total.to_be_bytes());
    bytes.extend_from_slice(&[0, 0, 0x40, 0, HOPS, protocol, 0, 0]);
}

/// Writes an IPv6 header up to the addresses (RFC 8200 §3).
fn write_ipv6(bytes: &mut Vec<u8>, dscp: u8, protocol: u8, payload: u16) {
    bytes.extend_from_slice(&[0x60 | dscp >> 2, dscp << 6, 0, 0]);
    bytes.extend_from_slice(&payload.to_be_bytes());
    bytes.extend_from_slice(&[protocol, HOPS]);
}

/// Writes a UDP or TCP header (RFC 768, RFC 9293 §3.1) for `length` bytes with header; returns its
/// offset.
fn write_transport<A>(bytes: &mut Vec<u8>, flow: &IpFlow<A>, length: u16) -> usize {
    let at = bytes.len();
    bytes.extend_from_slice(&flow.ports.source.to_be_bytes());
    bytes.extend_from_slice(&flow.ports.destination.to_be_bytes());
    match flow.transport {
        TestFrameTransport::Udp => {
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(&[0, 0]);
        }
        // Sequence and acknowledgement 1, five words, ACK, window 65,535, no checksum yet.
        TestFrameTransport::Tcp => {
            bytes.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0])
        }
    }
    at
}

/// Fills in the checksums of a frame of flow 0.
fn fill_sums(bytes: &mut [u8], content: &TestFrameContent, places: &Places) {
    let (addresses_at, transport) = match content {
        TestFrameContent::Ipv4(flow) => {
            let sum = Sum::from_bytes(&bytes[places.network..places.network + 20]).checksum();
            write_be_u16(bytes, places.network + 10, sum);
            (places.network + 12, flow.transport)
        }
        TestFrameContent::Ipv6(flow) => (places.network + 8, flow.transport),
        _ => return,
    };
    let Some(at) = places.transport else { return };
    // Pseudo-header: both addresses, the length and the protocol (RFC 768, RFC 8200 §8.1).
    let length = (bytes.len() - at) as u16;
    let sum = Sum::from_bytes(&bytes[addresses_at..])
        .add_sum(Sum::of_u16(length))
        .add_sum(Sum::of_u16(protocol_number(transport).into()))
        .checksum();
    match transport {
        // 0 means no checksum (RFC 768).
        TestFrameTransport::Udp => write_be_u16(bytes, at + 6, if sum == 0 { 0xffff } else { sum }),
        TestFrameTransport::Tcp => write_be_u16(bytes, at + 16, sum),
    }
}

fn write_be_u16(bytes: &mut [u8], at: usize, word: u16) {
    bytes[at..at + 2].copy_from_slice(&word.to_be_bytes());
}
