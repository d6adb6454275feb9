//! ICMP error messages as routers send them to a trace: the message, the packet that it quotes,
//! and the MPLS label stack after the quote.
//!
//! ```text
//!  0  type       11 time exceeded, 3 unreachable (RFC 792); 3, 1 and 2 packet too big (RFC 4443)
//!  1  code
//!  2  checksum   verified by the kernel
//!  4  ICMPv6: length of the quoted packet in 8 octets (RFC 4884 §4.4, §4.5), or the MTU of type 2
//!  5  ICMPv4: the same in 4 octets (RFC 4884 §4.1, §4.2); 6 MTU of the next hop (RFC 1191 §4)
//!  8  the packet from its IP header on, as much as the router quotes; padding; extensions
//! ```
//!
//! Every octet is untrusted: a message that is none of these parses to `None`.

mod extension;
mod quote;
#[cfg(test)]
mod tests;

pub use extension::labels;
pub use quote::{ProbeMark, Quote};

use linerate_core::record::IpFamily;

/// Octets of the header before the quoted packet.
const HEADER_BYTES: usize = 8;
/// Octets of the quote before extensions of routers older than RFC 4884, which state no length
/// (§5.5).
const OLD_QUOTE_BYTES: usize = 128;

/// Kind of an ICMP error, by type and code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Time to live exceeded in transit.
    Exceeded,
    /// Packet too big: the MTU of the next link, 0 where the router does not state it.
    TooBig(u32),
    /// Port unreachable: the packet arrived at the destination host.
    PortUnreachable,
    /// Destination unreachable for another reason: the code.
    Unreachable(u8),
}

impl ErrorKind {
    /// Kind of an error of this type and code; `rest` is the word after the checksum.
    pub fn from_type_and_code(family: IpFamily, kind: u8, code: u8, rest: u32) -> Option<Self> {
        Some(match (family, kind, code) {
            (IpFamily::V4, 11, 0) | (IpFamily::V6, 3, 0) => Self::Exceeded,
            (IpFamily::V4, 3, 4) => Self::TooBig(rest & 0xFFFF),
            (IpFamily::V6, 2, _) => Self::TooBig(rest),
            (IpFamily::V4, 3, 3) | (IpFamily::V6, 1, 4) => Self::PortUnreachable,
            (IpFamily::V4, 3, code) | (IpFamily::V6, 1, code) => Self::Unreachable(code),
            _ => return None,
        })
    }
}

/// An ICMP error message in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError<'a> {
    /// Meaning of type and code.
    pub kind: ErrorKind,
    /// The quoted packet from its IP header on, padding included.
    pub original: &'a [u8],
    /// Extensions (RFC 4884) with their header; empty where there are none.
    pub extension: &'a [u8],
}

impl<'a> IcmpError<'a> {
    /// Parses an ICMP message, from its type on.
    pub fn parse(family: IpFamily, message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_first_chunk::<HEADER_BYTES>()?;
        let rest = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let kind = ErrorKind::from_type_and_code(family, header[0], header[1], rest)?;
        let quote_bytes = match (family, kind) {
            // The word is the MTU, so there is no length field.
            (IpFamily::V6, ErrorKind::TooBig(_)) => 0,
            (IpFamily::V4, _) => usize::from(header[5]) * 4,
            (IpFamily::V6, _) => usize::from(header[4]) * 8,
        };
        let quote_bytes = if quote_bytes == 0 { OLD_QUOTE_BYTES } else { quote_bytes };
        let (original, extension) = body.split_at_checked(quote_bytes).unwrap_or((body, &[]));
        let extension = if extension::is_whole(extension) { extension } else { &[] };
        // Without extensions the quote is the whole rest: a router may quote more than 128 octets.
        let original = if extension.is_empty() { body } else { original };
        Some(Self { kind, original, extension })
    }
}
