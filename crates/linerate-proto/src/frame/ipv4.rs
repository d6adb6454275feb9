//! The IPv4 header, as far as a raw socket's reader needs it (RFC 791 §3.1). Options are skipped.
//!
//! ```text
//!  0  version (4 bits), header length in 32-bit words (4 bits)
//!  2  total length        8  time to live      9  protocol
//! 12  source             16  destination      20  options
//! ```

/// What a raw socket's reader takes from the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ipv4Packet<'a> {
    /// Time to live on arrival.
    pub ttl: u8,
    /// Protocol of the payload.
    pub protocol: u8,
    /// What follows the header and its options.
    pub payload: &'a [u8],
}

impl<'a> Ipv4Packet<'a> {
    /// Takes a packet apart, or `None` when it is not IPv4 or shorter than its header says.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Option<Self> {
        let first = *bytes.first()?;
        let header_len = usize::from(first & 0x0F) * 4;
        if first >> 4 != 4 || header_len < 20 {
            return None;
        }
        let payload = bytes.get(header_len..)?;
        Some(Self { ttl: bytes[8], protocol: bytes[9], payload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Header of an echo reply as `tcpdump -x` shows it on loopback (id 0x7a3c, ttl 64, ICMP).
    const HEADER: [u8; 20] = [
        0x45, 0x00, 0x00, 0x16, 0x7a, 0x3c, 0x00, 0x00, 0x40, 0x01, 0x02, 0xa9, 127, 0, 0, 1, 127,
        0, 0, 1,
    ];

    #[test]
    fn ttl_protocol_and_payload_are_where_rfc_791_puts_them() {
        let mut bytes = HEADER.to_vec();
        bytes.extend_from_slice(b"ab");
        let packet = Ipv4Packet::parse(&bytes).expect("a whole packet");
        assert_eq!((packet.ttl, packet.protocol, packet.payload), (64, 1, &b"ab"[..]));
    }

    #[test]
    fn options_are_skipped() {
        let mut bytes = HEADER.to_vec();
        bytes[0] = 0x46;
        bytes.extend_from_slice(&[1, 1, 1, 0, b'x']);
        assert_eq!(Ipv4Packet::parse(&bytes).expect("a whole packet").payload, b"x");
    }

    #[test]
    fn a_cut_or_foreign_header_is_none() {
        for len in 0..HEADER.len() {
            assert_eq!(Ipv4Packet::parse(&HEADER[..len]), None, "length {len}");
        }
        for first in [0x44, 0x65, 0x4f, 0x00] {
            let mut bytes = HEADER;
            bytes[0] = first;
            assert_eq!(Ipv4Packet::parse(&bytes), None, "first octet {first:#x}");
        }
    }
}
