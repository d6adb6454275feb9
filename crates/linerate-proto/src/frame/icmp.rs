//! ICMP echo, and the texts of ICMP errors by type and code (RFC 792, RFC 4443).
//!
//! ```text
//!  0  type       8 request, 0 reply (RFC 792 p. 14); 128 and 129 in ICMPv6 (RFC 4443 §4)
//!  1  code       0
//!  2  checksum   over the message; in ICMPv6 with the pseudo header, filled in by the kernel
//!  4  identifier
//!  6  sequence number
//!  8  data
//! ```

use linerate_core::record::IpFamily;

/// Octets of the header before the data.
pub const ECHO_HEADER_BYTES: usize = 8;

/// ICMP type of an echo request.
pub const fn echo_request(family: IpFamily) -> u8 {
    match family {
        IpFamily::V4 => 8,
        IpFamily::V6 => 128,
    }
}

/// ICMP type of an echo reply.
pub const fn echo_reply(family: IpFamily) -> u8 {
    match family {
        IpFamily::V4 => 0,
        IpFamily::V6 => 129,
    }
}

/// Fields of an echo reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo<'a> {
    /// Identifier that the requester chose; on an ICMP datagram socket the kernel chooses it.
    pub identifier: u16,
    /// Low 16 bits of the probe's sequence.
    pub sequence: u16,
    /// Payload, a copy of the request's.
    pub data: &'a [u8],
}

impl<'a> Echo<'a> {
    /// Parses an echo reply; `None` for any other message. The kernel has verified the checksum.
    #[inline]
    pub fn parse_reply(family: IpFamily, message: &'a [u8]) -> Option<Self> {
        let (header, data) = message.split_first_chunk::<ECHO_HEADER_BYTES>()?;
        if header[0] != echo_reply(family) || header[1] != 0 {
            return None;
        }
        Some(Self {
            identifier: u16::from_be_bytes([header[4], header[5]]),
            sequence: u16::from_be_bytes([header[6], header[7]]),
            data,
        })
    }
}

/// Text for an ICMP error of a router or host, by type and code.
pub fn reason(family: IpFamily, kind: u8, code: u8) -> &'static str {
    match family {
        IpFamily::V4 => reason_v4(kind, code),
        IpFamily::V6 => reason_v6(kind, code),
    }
}

/// # Source
/// RFC 792 p. 4 and 6, RFC 1812 §5.2.7.1 (codes 9 to 13).
const fn reason_v4(kind: u8, code: u8) -> &'static str {
    match (kind, code) {
        (3, 0) => "network unreachable",
        (3, 1) => "host unreachable",
        (3, 2) => "protocol unreachable",
        (3, 3) => "port unreachable",
        (3, 4) => "fragmentation needed but forbidden",
        (3, 9 | 10 | 13) => "administratively prohibited",
        (3, _) => "destination unreachable",
        (11, 0) => "time to live exceeded",
        (11, _) => "fragment reassembly time exceeded",
        (12, _) => "parameter problem",
        _ => "unexpected ICMP message",
    }
}

/// # Source
/// RFC 4443 §3.1 to §3.4.
const fn reason_v6(kind: u8, code: u8) -> &'static str {
    match (kind, code) {
        (1, 0) => "no route",
        (1, 1) => "administratively prohibited",
        (1, 3) => "address unreachable",
        (1, 4) => "port unreachable",
        (1, _) => "destination unreachable",
        (2, _) => "packet too big",
        (3, 0) => "hop limit exceeded",
        (3, _) => "fragment reassembly time exceeded",
        (4, _) => "parameter problem",
        _ => "unexpected ICMPv6 message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 792 p. 14 layout: reply, code 0, checksum, identifier 0x1234, sequence 0x0102, "hi".
    const REPLY: [u8; 10] = [0, 0, 0x84, 0x60, 0x12, 0x34, 0x01, 0x02, b'h', b'i'];

    #[test]
    fn an_echo_reply_is_laid_out_as_rfc_792_says() {
        let echo = Echo::parse_reply(IpFamily::V4, &REPLY).expect("a reply");
        assert_eq!(echo, Echo { identifier: 0x1234, sequence: 0x0102, data: b"hi" });
        // Sum: 0000+1234+0102+6869 = 7b9f, complement 8460.
        assert!(crate::frame::checksum::verifies(&REPLY));
    }

    #[test]
    fn types_of_version_6_are_128_and_129() {
        let mut reply = REPLY;
        assert_eq!(Echo::parse_reply(IpFamily::V6, &reply), None);
        reply[0] = 129;
        assert!(Echo::parse_reply(IpFamily::V6, &reply).is_some());
        assert_eq!((echo_request(IpFamily::V4), echo_request(IpFamily::V6)), (8, 128));
    }

    #[test]
    fn requests_other_codes_and_cut_headers_are_no_replies() {
        for len in 0..ECHO_HEADER_BYTES {
            assert_eq!(Echo::parse_reply(IpFamily::V4, &REPLY[..len]), None, "length {len}");
        }
        for (kind, code) in [(8, 0), (3, 1), (0, 1), (11, 0)] {
            let mut message = REPLY;
            (message[0], message[1]) = (kind, code);
            assert_eq!(Echo::parse_reply(IpFamily::V4, &message), None);
        }
    }

    #[test]
    fn flipped_bits_never_panic() {
        for bit in 0..REPLY.len() * 8 {
            let mut message = REPLY;
            message[bit / 8] ^= 1 << (bit % 8);
            let _ = Echo::parse_reply(IpFamily::V4, &message);
        }
    }
}
