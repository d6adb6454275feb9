//! Error messages of ICMP as routers send them to a trace: the message, the packet that it quotes,
//! and the label stack behind that.
//!
//! ```text
//!  0  type       11 time exceeded, 3 unreachable (RFC 792); 3, 1 and 2 packet too big (RFC 4443)
//!  1  code
//!  2  checksum   the kernel's business
//!  4  ICMPv6: length of the quoted packet in 8 octets (RFC 4884 §4.4, §4.5), or the MTU of type 2
//!  5  ICMPv4: the same in 4 octets (RFC 4884 §4.1, §4.2); 6 MTU of the next hop (RFC 1191 §4)
//!  8  the packet from its IP header on, as much as the router quotes; padding; extensions
//! ```
//!
//! Every octet is a stranger's: a message that is none of these is `None`.

mod extension;
mod quote;
#[cfg(test)]
mod tests;

pub use extension::labels;
pub use quote::{ProbeMark, Quote};

use linerate_core::record::Family;

/// Octets before the quoted packet.
const HEADER_BYTES: usize = 8;
/// Routers older than RFC 4884 put extensions behind so many octets and tell no length (§5.5).
const OLD_QUOTE_BYTES: usize = 128;

/// What an error message says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// The time to live ended on the way.
    Exceeded,
    /// The packet is longer than the next link takes; 0 where the router does not tell the MTU.
    TooBig(u32),
    /// Nothing listens on the port: the packet came to the host.
    PortUnreachable,
    /// It cannot be delivered for another reason, with its code.
    Unreachable(u8),
}

impl ErrorKind {
    /// From type, code and the word behind the checksum.
    pub fn of(family: Family, kind: u8, code: u8, rest: u32) -> Option<Self> {
        Some(match (family, kind, code) {
            (Family::V4, 11, 0) | (Family::V6, 3, 0) => Self::Exceeded,
            (Family::V4, 3, 4) => Self::TooBig(rest & 0xFFFF),
            (Family::V6, 2, _) => Self::TooBig(rest),
            (Family::V4, 3, 3) | (Family::V6, 1, 4) => Self::PortUnreachable,
            (Family::V4, 3, code) | (Family::V6, 1, code) => Self::Unreachable(code),
            _ => return None,
        })
    }
}

/// An error message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpError<'a> {
    /// What it says.
    pub kind: ErrorKind,
    /// The quoted packet from its IP header on, padding included.
    pub original: &'a [u8],
    /// Extensions with their header; empty where there are none.
    pub extension: &'a [u8],
}

impl<'a> IcmpError<'a> {
    /// Takes a message apart that starts with its type.
    pub fn parse(family: Family, message: &'a [u8]) -> Option<Self> {
        let (header, body) = message.split_first_chunk::<HEADER_BYTES>()?;
        let rest = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        let kind = ErrorKind::of(family, header[0], header[1], rest)?;
        let told = match (family, kind) {
            // Here the word is the MTU, and no length is told.
            (Family::V6, ErrorKind::TooBig(_)) => 0,
            (Family::V4, _) => usize::from(header[5]) * 4,
            (Family::V6, _) => usize::from(header[4]) * 8,
        };
        let at = if told == 0 { OLD_QUOTE_BYTES } else { told };
        let (original, extension) = body.split_at_checked(at).unwrap_or((body, &[]));
        let extension = if extension::is_whole(extension) { extension } else { &[] };
        // Without extensions the quote is all there is: a router may quote more than 128 octets.
        let original = if extension.is_empty() { body } else { original };
        Some(Self { kind, original, extension })
    }
}
