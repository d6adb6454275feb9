//! TCP's first segment as a probe: its number is in the sequence number, so that routers that quote
//! eight octets name it, and the end acknowledges it. All probes of a flow have the same addresses
//! and ports (Augustin and others, "Avoiding traceroute anomalies with Paris traceroute", 2006).
//!
//! ```text
//!  0              2                   4               8        12        13      14      16
//! | source port  | destination port  | sequence (4) | zero (4) | 6 << 4 | flags | window |
//! | checksum (2) | urgent: zero (2) | MSS: 2, 4, (2) |  zeros up to the size
//! ```
//! (RFC 9293 §3.1)
//!
//! Left out: the rest of the handshake. The sender's kernel resets a connection that the
//! destination accepts.

use std::net::{IpAddr, SocketAddr};

use crate::frame::checksum::Sum;

/// Bytes of the header with the maximum segment size option.
const HEADER_BYTES: usize = 24;
const SYN: u8 = 1 << 1;
const RST: u8 = 1 << 2;
const ACK: u8 = 1 << 4;
/// The maximum segment size that Ethernet allows IPv6 (RFC 9293 §3.7.1): 1500 - 60.
const MSS: u16 = 1440;
const PROTOCOL: u16 = 6;

/// The SYN segments of one trace. The high half of a sequence number is the probe's number, the
/// low half names the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SynProbe {
    low: u16,
}

/// Addresses and ports of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentAddresses {
    /// Address and port of the sender.
    pub source: SocketAddr,
    /// Address and port of the traced destination.
    pub destination: SocketAddr,
}

impl SynProbe {
    /// Probes of a trace named by the low 4 bits of `low`, any value.
    pub const fn new(low: u16) -> Self {
        // Small, so that a destination that also acknowledges the payload does not carry into the
        // high half: the longest segment has 65,515 octets.
        Self { low: low & 0xF }
    }

    /// The segment of probe `number`, as long as an IP packet of `packet_bytes` has room for, but
    /// at least its header.
    pub fn segment(
        &self,
        number: u16,
        addresses: SegmentAddresses,
        packet_bytes: usize,
    ) -> Vec<u8> {
        let SegmentAddresses { source: from, destination: to } = addresses;
        let header = if to.is_ipv4() { 20 } else { 40 };
        let mut segment = vec![0; packet_bytes.saturating_sub(header).max(HEADER_BYTES)];
        segment[..2].copy_from_slice(&from.port().to_be_bytes());
        segment[2..4].copy_from_slice(&to.port().to_be_bytes());
        segment[4..8].copy_from_slice(&self.sequence(number).to_be_bytes());
        (segment[12], segment[13]) = ((HEADER_BYTES as u8 / 4) << 4, SYN);
        segment[14..16].copy_from_slice(&u16::MAX.to_be_bytes());
        (segment[20], segment[21]) = (2, 4);
        segment[22..24].copy_from_slice(&MSS.to_be_bytes());
        let sum =
            pseudo_header(from.ip(), to.ip(), segment.len()).add_sum(Sum::from_bytes(&segment));
        segment[16..18].copy_from_slice(&sum.checksum().to_be_bytes());
        segment
    }

    const fn sequence(&self, number: u16) -> u32 {
        (number as u32) << 16 | self.low as u32
    }

    /// Number of the probe whose sequence number an ICMP error quotes; `None` of another trace.
    pub fn quoted(&self, sequence: u32) -> Option<u16> {
        (sequence & 0xFFFF == u32::from(self.low)).then_some((sequence >> 16) as u16)
    }

    /// Number of the probe that a TCP segment of the destination answers: SYN-ACK or reset, with
    /// the payload acknowledged or not.
    pub fn answered(&self, segment: &[u8]) -> Option<u16> {
        let header = segment.first_chunk::<20>()?;
        let flags = header[13];
        if flags & ACK == 0 || flags & (SYN | RST) == 0 {
            return None;
        }
        let next = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
        let acknowledged = next.wrapping_sub(1);
        (acknowledged & 0xFFFF >= u32::from(self.low)).then_some((acknowledged >> 16) as u16)
    }
}

/// Sum over the pseudo header of TCP (RFC 9293 §3.1, RFC 8200 §8.1).
fn pseudo_header(from: IpAddr, to: IpAddr, len: usize) -> Sum {
    let address = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => Sum::from_bytes(&ip.octets()),
        IpAddr::V6(ip) => Sum::from_bytes(&ip.octets()),
    };
    let len = Sum::of_u64(len as u64);
    address(from).add_sum(address(to)).add_sum(len).add_sum(Sum::of_u16(PROTOCOL))
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{Ipv4Header, TcpHeaderSlice};

    fn addresses() -> SegmentAddresses {
        let source = ([192, 0, 2, 1], 40_000).into();
        SegmentAddresses { source, destination: ([198, 51, 100, 7], 443).into() }
    }

    #[test]
    fn another_implementation_reads_the_segment_and_its_checksum() {
        let addresses = addresses();
        for bytes in [0, 44, 576, 1500] {
            let segment = SynProbe::new(0x1235).segment(0xABCD, addresses, bytes);
            assert_eq!(segment.len(), bytes.saturating_sub(20).max(24));
            let header = TcpHeaderSlice::from_slice(&segment).expect("a header");
            assert!(header.syn() && !header.ack() && !header.rst());
            assert_eq!((header.source_port(), header.destination_port()), (40_000, 443));
            assert_eq!(header.sequence_number(), 0xABCD_0005);
            let options: Vec<_> = header.options_iterator().collect();
            assert_eq!(options, [Ok(etherparse::TcpOptionElement::MaximumSegmentSize(1440))]);
            let ip = Ipv4Header::new(
                segment.len() as u16,
                64,
                etherparse::ip_number::TCP,
                [192, 0, 2, 1],
                [198, 51, 100, 7],
            )
            .expect("a header");
            let expected = header.to_header().calc_checksum_ipv4(&ip, &segment[24..]);
            assert_eq!(header.checksum(), expected.expect("a checksum"));
        }
    }

    #[test]
    fn the_sum_over_ipv6_has_its_own_pseudo_header() {
        let from: SocketAddr = "[2001:db8::1]:40000".parse().expect("an address");
        let to: SocketAddr = "[2001:db8::2]:443".parse().expect("an address");
        let segment =
            SynProbe::new(1).segment(7, SegmentAddresses { source: from, destination: to }, 0);
        let header = TcpHeaderSlice::from_slice(&segment).expect("a header");
        let octets = |address: SocketAddr| match address.ip() {
            IpAddr::V6(ip) => ip.octets(),
            IpAddr::V4(_) => unreachable!("both are of IPv6"),
        };
        let expected =
            header.to_header().calc_checksum_ipv6_raw(octets(from), octets(to), &segment[24..]);
        assert_eq!(header.checksum(), expected.expect("a checksum"));
    }

    #[test]
    fn answers_name_their_probe_and_others_name_none() {
        let probe = SynProbe::new(0x1235);
        assert_eq!(probe.quoted(0xABCD_0005), Some(0xABCD));
        assert_eq!(probe.quoted(0xABCD_0006), None);
        let answer = |flags: u8, acknowledged: u32| {
            let mut segment = [0; 20];
            segment[8..12].copy_from_slice(&acknowledged.to_be_bytes());
            segment[13] = flags;
            probe.answered(&segment)
        };
        assert_eq!(answer(SYN | ACK, 0xABCD_0006), Some(0xABCD));
        // A closed port acknowledges the contents too (RFC 9293 §3.10.7.1).
        assert_eq!(answer(RST | ACK, 0xABCD_0006 + 1456), Some(0xABCD));
        assert_eq!(answer(RST | ACK, 0xABCD_0006 + 65_515), Some(0xABCD));
        assert_eq!(answer(ACK, 0xABCD_0006), None);
        assert_eq!(answer(RST, 0), None);
        (0..20).for_each(|len| assert_eq!(probe.answered(&[0xFF; 20][..len]), None));
    }
}
