//! Requests to a family of generic netlink (linux/genetlink.h).
//!
//! ```text
//! netlink header (16)  generic header: u8 command  u8 version  u16 0
//! attribute            u16 length with these 4  u16 type  value, padded to 4
//! ```

use std::io;

use netlink_packet_core::NLM_F_ACK;
use netlink_sys::protocols::NETLINK_GENERIC;

use super::socket::{PlainSocket, attribute, attributes_of};

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// A socket for requests to one family.
pub(super) struct GenericSocket {
    socket: PlainSocket,
    family: u16,
}

impl GenericSocket {
    /// Opens a socket in the network namespace of the calling thread.
    pub(super) fn open(family: &str) -> io::Result<Self> {
        let socket = PlainSocket::open(NETLINK_GENERIC)?;
        let mut this = Self { socket, family: GENL_ID_CTRL };
        let wish = attribute(CTRL_ATTR_FAMILY_NAME, &[family.as_bytes(), b"\0"].concat());
        let replies = this.send_request(CTRL_CMD_GETFAMILY, NLM_F_ACK, &wish)?;
        let mut all = replies.iter().flat_map(|reply| attributes_of(reply));
        let id = all.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID).map(|(_, value)| value);
        let id = id.and_then(|value| value.first_chunk());
        let id = id.map(|bytes| u16::from_ne_bytes(*bytes));
        this.family = id.ok_or(io::ErrorKind::Unsupported)?;
        Ok(this)
    }

    /// Sends a request; returns the attributes of each reply.
    pub(super) fn send_request(
        &mut self,
        command: u8,
        flags: u16,
        attributes: &[u8],
    ) -> io::Result<Vec<Vec<u8>>> {
        let replies =
            self.socket.send_request(self.family, flags, [command, 1, 0, 0], attributes)?;
        Ok(replies.into_iter().map(|(_, attributes)| attributes).collect())
    }
}
