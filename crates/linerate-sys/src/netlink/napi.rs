//! Where received frames of a link are worked on: its NAPI contexts and their kernel threads
//! (generic netlink family `netdev` of Linux 6.8, Documentation/netlink/specs/netdev.yaml).
//! Switching threads is in [`crate::napi`].
//!
//! ```text
//! netlink header (16)  generic header: u8 command  u8 version  u16 0
//! attribute            u16 length with these 4  u16 type  value, padded to 4
//! ```

use std::io;

use netlink_packet_core::{NLM_F_ACK, NLM_F_DUMP};
use netlink_sys::protocols::NETLINK_GENERIC;

use super::socket::{PlainSocket, attribute, attributes_of};
use crate::{Error, Result};

/// linux/genetlink.h.
const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;

/// linux/netdev.h.
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_PID: u16 = 4;
const NAPI_THREADED: u16 = 8;

/// A NAPI context: what takes the frames of one receive queue from the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Napi {
    /// Its number, which no other one of this kernel has.
    pub id: u32,
    /// Whether a thread of its own does the work, and not whoever raised the interrupt; absent
    /// where the kernel does not tell.
    pub threaded: Option<bool>,
    /// That thread.
    pub thread: Option<u32>,
}

/// The NAPI contexts of a link in the namespace of the calling thread. A veth end has none before
/// its generic receive offload is on or an XDP program is attached.
/// # Errors
/// Before Linux 6.8.
pub fn napis(ifindex: u32) -> Result<Vec<Napi>> {
    let failed = |source| Error::new("list NAPI contexts of link", ifindex, source);
    let mut socket = GenericSocket::open().map_err(failed)?;
    let wish = attribute(NAPI_IFINDEX, &ifindex.to_ne_bytes());
    let replies = socket.ask(NETDEV_CMD_NAPI_GET, NLM_F_DUMP, &wish).map_err(failed)?;
    Ok(replies.iter().filter_map(|it| napi_of(it)).collect())
}

fn napi_of(attributes: &[u8]) -> Option<Napi> {
    let mut napi = Napi::default();
    for (kind, value) in attributes_of(attributes) {
        let Some(number) = value.first_chunk().map(|it| u32::from_ne_bytes(*it)) else { continue };
        match kind {
            NAPI_ID => napi.id = number,
            NAPI_PID => napi.thread = Some(number),
            NAPI_THREADED => napi.threaded = Some(number != 0),
            _ => {}
        }
    }
    // Before Linux 6.17 a thread alone tells.
    napi.threaded = napi.threaded.or_else(|| napi.thread.map(|_| true));
    (napi.id != 0).then_some(napi)
}

/// A conversation with the family `netdev`.
struct GenericSocket {
    socket: PlainSocket,
    family: u16,
}

impl GenericSocket {
    fn open() -> io::Result<Self> {
        let socket = PlainSocket::open(NETLINK_GENERIC)?;
        let mut this = Self { socket, family: GENL_ID_CTRL };
        let wish = attribute(CTRL_ATTR_FAMILY_NAME, b"netdev\0");
        let replies = this.ask(CTRL_CMD_GETFAMILY, NLM_F_ACK, &wish)?;
        let mut all = replies.iter().flat_map(|it| attributes_of(it));
        let id = all.find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID).map(|(_, value)| value);
        let id = id.and_then(|value| value.first_chunk());
        this.family = id.map(|it| u16::from_ne_bytes(*it)).ok_or(io::ErrorKind::Unsupported)?;
        Ok(this)
    }

    /// Sends a request; gives the attributes of each reply.
    fn ask(&mut self, command: u8, flags: u16, attributes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let replies = self.socket.ask(self.family, flags, [command, 1, 0, 0], attributes)?;
        Ok(replies.into_iter().map(|(_, attributes)| attributes).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_read_as_they_are_laid_out_and_cut_anywhere() {
        let mut bytes = attribute(NAPI_ID, &8193u32.to_ne_bytes());
        bytes.extend(attribute(9, &[1, 2, 3]));
        bytes.extend(attribute(NAPI_PID, &77u32.to_ne_bytes()));
        assert_eq!(bytes.len(), 24);
        let expected = Napi { id: 8193, threaded: Some(true), thread: Some(77) };
        assert_eq!(napi_of(&bytes), Some(expected));
        for len in 0..bytes.len() {
            assert_ne!(napi_of(&bytes[..len]), Some(expected), "{len} bytes");
        }
        bytes[0] = 3;
        assert_eq!(napi_of(&bytes), None);
    }
}
