//! NAPI contexts of a link, which process its received frames, and their kernel threads (generic
//! netlink family `netdev` of Linux 6.8, Documentation/netlink/specs/netdev.yaml). Switching
//! threads on and off is in [`crate::napi`].

use netlink_packet_core::NLM_F_DUMP;

use super::generic::GenericSocket;
use super::socket::{attribute, attributes_of};
use crate::{Error, Result};

/// Command and attributes of linux/netdev.h.
const NETDEV_CMD_NAPI_GET: u8 = 11;
const NAPI_IFINDEX: u16 = 1;
const NAPI_ID: u16 = 2;
const NAPI_PID: u16 = 4;
const NAPI_THREADED: u16 = 8;

/// A NAPI context, which reads the frames of one receive queue from the driver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Napi {
    /// ID of the context, unique in this kernel.
    pub id: u32,
    /// True if a kernel thread processes the frames, false if soft interrupts do; absent where the
    /// kernel does not report it.
    pub threaded: Option<bool>,
    /// PID of the kernel thread.
    pub thread: Option<u32>,
}

/// NAPI contexts of a link in the namespace of the calling thread. A veth end has none before its
/// generic receive offload is on or an XDP program is attached.
/// # Errors
/// Before Linux 6.8.
pub fn napi_contexts(ifindex: u32) -> Result<Vec<Napi>> {
    let failed = |source| Error::new("list NAPI contexts of link", ifindex, source);
    let mut socket = GenericSocket::open("netdev").map_err(failed)?;
    let wish = attribute(NAPI_IFINDEX, &ifindex.to_ne_bytes());
    let replies = socket.send_request(NETDEV_CMD_NAPI_GET, NLM_F_DUMP, &wish).map_err(failed)?;
    Ok(replies.iter().filter_map(|reply| napi_of(reply)).collect())
}

fn napi_of(attributes: &[u8]) -> Option<Napi> {
    let mut napi = Napi::default();
    for (kind, value) in attributes_of(attributes) {
        let number = value.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes));
        let Some(number) = number else { continue };
        match kind {
            NAPI_ID => napi.id = number,
            NAPI_PID => napi.thread = Some(number),
            NAPI_THREADED => napi.threaded = Some(number != 0),
            _ => {}
        }
    }
    // Before Linux 6.17 only the presence of a thread shows it.
    napi.threaded = napi.threaded.or_else(|| napi.thread.map(|_| true));
    (napi.id != 0).then_some(napi)
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
