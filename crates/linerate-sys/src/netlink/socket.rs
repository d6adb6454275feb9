//! Blocking requests to the kernel (netlink(7)): request, replies, acknowledgement.

use std::fmt;
use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP, NLM_F_REQUEST, NetlinkMessage, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_sys::{Socket, SocketAddr, protocols::NETLINK_ROUTE};

use crate::{Error, Result};

/// Bytes before a netlink message's payload: length, type, flags, sequence, port (netlink(7)).
const HEADER_BYTES: usize = 16;
/// Message types of linux/netlink.h.
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// Mask of a type without its two flags (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
const TYPE_BITS: u16 = 0x3fff;

/// A routing netlink socket, which stays in the network namespace where it was opened.
pub struct RouteSocket {
    socket: Socket,
    sequence: u32,
}

/// Description of a request for its error.
pub(super) struct Attempt<'a> {
    /// Name of the attempt.
    pub(super) call: &'static str,
    /// Object of the attempt.
    pub(super) object: &'a dyn fmt::Display,
}

impl Attempt<'_> {
    /// The error of a failed attempt.
    pub(super) fn failed(&self, source: impl Into<io::Error>) -> Error {
        Error::new(self.call, self.object, source)
    }
}

impl fmt::Debug for RouteSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RouteSocket").field("sequence", &self.sequence).finish_non_exhaustive()
    }
}

impl RouteSocket {
    /// Opens a socket in the network namespace of the calling thread.
    /// # Errors
    /// When the kernel gives no netlink socket.
    pub fn open() -> Result<Self> {
        let failed = |source| Error::new("open netlink socket", "NETLINK_ROUTE", source);
        let mut socket = Socket::new(NETLINK_ROUTE).map_err(failed)?;
        socket.bind_auto().map_err(failed)?;
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request for a change and waits for its acknowledgement.
    pub(super) fn change(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        attempt: &Attempt<'_>,
    ) -> Result<()> {
        self.exchange(message, NLM_F_ACK | flags, attempt).map(drop)
    }

    /// Requests one object; returns the replies before the acknowledgement.
    pub(super) fn get(
        &mut self,
        message: RouteNetlinkMessage,
        attempt: &Attempt<'_>,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(message, NLM_F_ACK, attempt)
    }

    /// Requests all objects of a kind. Replies that the decoder cannot parse are skipped.
    pub(super) fn dump_objects(
        &mut self,
        message: RouteNetlinkMessage,
        attempt: &Attempt<'_>,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.exchange(message, NLM_F_DUMP, attempt)
    }

    fn exchange(
        &mut self,
        message: RouteNetlinkMessage,
        flags: u16,
        attempt: &Attempt<'_>,
    ) -> Result<Vec<RouteNetlinkMessage>> {
        self.sequence = self.sequence.wrapping_add(1);
        let mut request = NetlinkMessage::from(message);
        request.header.flags = NLM_F_REQUEST | flags;
        request.header.sequence_number = self.sequence;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map_err(|source| attempt.failed(source))?;
        self.replies(attempt)
    }

    fn replies(&self, attempt: &Attempt<'_>) -> Result<Vec<RouteNetlinkMessage>> {
        let mut replies = Vec::new();
        loop {
            let (datagram, _) =
                self.socket.recv_from_full().map_err(|source| attempt.failed(source))?;
            for message in messages(&datagram) {
                let Ok(reply) = NetlinkMessage::<RouteNetlinkMessage>::deserialize(message) else {
                    continue;
                };
                if reply.header.sequence_number != self.sequence {
                    continue;
                }
                match reply.payload {
                    NetlinkPayload::InnerMessage(inner) => replies.push(inner),
                    NetlinkPayload::Error(error) if error.code.is_some() => {
                        return Err(attempt.failed(error.to_io()));
                    }
                    NetlinkPayload::Error(_) | NetlinkPayload::Done(_) => return Ok(replies),
                    _ => {}
                }
            }
        }
    }
}

/// Splits a datagram into its messages; a length that does not fit ends the iteration.
fn messages(datagram: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = datagram;
    std::iter::from_fn(move || {
        let length: [u8; 4] = rest.get(..4)?.try_into().ok()?;
        let length = u32::from_ne_bytes(length) as usize;
        if length < HEADER_BYTES {
            return None;
        }
        let message = rest.get(..length)?;
        // Messages start at multiples of four bytes (NLMSG_ALIGN).
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some(message)
    })
}

/// A socket for messages without a decoder: a header of four bytes and attributes, as in generic
/// netlink (linux/genetlink.h) and netfilter (linux/netfilter/nfnetlink.h).
pub(super) struct PlainSocket {
    socket: Socket,
    sequence: u32,
}

/// The four bytes after the netlink header.
pub(super) type PlainHeader = [u8; 4];

impl PlainSocket {
    pub(super) fn open(protocol: isize) -> io::Result<Self> {
        let mut socket = Socket::new(protocol)?;
        socket.bind_auto()?;
        socket.connect(&SocketAddr::new(0, 0))?;
        Ok(Self { socket, sequence: 0 })
    }

    /// Sends a request of a type; returns the header and the attributes of each reply.
    pub(super) fn send_request(
        &mut self,
        kind: u16,
        flags: u16,
        header: PlainHeader,
        attributes: &[u8],
    ) -> io::Result<Vec<(PlainHeader, Vec<u8>)>> {
        self.sequence += 1;
        let len = HEADER_BYTES + header.len() + attributes.len();
        let mut message = (len as u32).to_ne_bytes().to_vec();
        message.extend([kind, NLM_F_REQUEST | flags].map(u16::to_ne_bytes).concat());
        message.extend([self.sequence, 0].map(u32::to_ne_bytes).concat());
        message.extend(header);
        message.extend(attributes);
        self.socket.send(&message, 0)?;
        let mut replies = Vec::new();
        loop {
            let (datagram, _) = self.socket.recv_from_full()?;
            for reply in messages(&datagram) {
                let body = &reply[HEADER_BYTES..];
                match u16::from_ne_bytes([reply[4], reply[5]]) {
                    NLMSG_DONE => return Ok(replies),
                    NLMSG_ERROR => {
                        let code = body.first_chunk();
                        let code = code.map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                        let failed = io::Error::from_raw_os_error(code.wrapping_neg());
                        return if code == 0 { Ok(replies) } else { Err(failed) };
                    }
                    _ => replies
                        .extend(body.split_first_chunk().map(|(h, rest)| (*h, rest.to_vec()))),
                }
            }
        }
    }
}

/// Encodes an attribute: its length with header, its type, its value padded to four bytes.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let len = (4 + value.len()) as u16;
    let mut bytes = [len, kind].map(u16::to_ne_bytes).concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// Iterates over types and values of attributes; a length that does not fit ends the iteration.
pub(super) fn attributes_of(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let [a, b, c, d] = *rest.first_chunk()?;
        let len = usize::from(u16::from_ne_bytes([a, b]));
        let value = rest.get(4..len)?;
        rest = rest.get(len.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([c, d]) & TYPE_BITS, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_is_cut_at_its_lengths_and_a_wrong_length_ends_it() {
        let mut datagram = vec![0; 44];
        datagram[0] = 18; // one message of 18 bytes, padded to 20
        datagram[20] = 24; // the next fills the rest
        let lengths = |bytes: &[u8]| messages(bytes).map(<[u8]>::len).collect::<Vec<_>>();
        assert_eq!(lengths(&datagram), [18, 24]);
        datagram[20] = 25;
        assert_eq!(lengths(&datagram), [18]);
        datagram[0] = 3;
        assert_eq!(lengths(&datagram), [] as [usize; 0]);
    }
}
