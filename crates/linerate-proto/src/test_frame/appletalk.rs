//! AppleTalk phase 2 on Ethernet: datagrams with a long header and address resolution, after
//! Inside AppleTalk, second edition, chapters 2 to 4.
//!
//! ```text
//! 802.3 length, LLC/SNAP aa aa 03  08 00 07 80 9b
//! DDP   0 hops (4 bits), length (10)  2 checksum  4 networks (2 + 2)  8 nodes (1 + 1)
//!      10 sockets (1 + 1)  12 type                destination before source in each
//! 802.3 length, LLC/SNAP aa aa 03  00 00 00 80 f3
//! AARP  0 hardware 1  2 protocol 0x809b  4 lengths 6, 4  6 function  8 source hardware (6)
//!      14 source: 0, network (2), node  18 destination hardware (6)  24 destination
//! ```
//!
//! Left out: phase 1, short headers, zones. The checksum is 0, "none".

use super::ether::{self, Ether, LLC_SNAP, SNAP_AARP, SNAP_DDP};
use super::{Ends, Mac, Tags};

/// Multicast address of all AppleTalk nodes.
pub const ALL_NODES: Mac = Mac([0x09, 0x00, 0x07, 0xff, 0xff, 0xff]);
/// Bytes of the longest datagram: a header of 13 and 586 of data.
pub(super) const DATAGRAM_BYTES_MAX: u16 = 599;
/// Socket of the test frames, of the dynamic range (128 to 254).
pub(super) const SOCKET: u8 = 200;
/// An unassigned DDP type.
pub(super) const TYPE: u8 = 0x88;

/// Function numbers of AARP.
pub(super) const REQUEST: u16 = 1;
pub(super) const RESPONSE: u16 = 2;
pub(super) const PROBE: u16 = 3;

/// Address of an AppleTalk node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppleTalkAddress {
    /// Network number, 1 to 65,279.
    pub network: u16,
    /// Node number in the network, 1 to 253.
    pub node: u8,
}

impl AppleTalkAddress {
    pub(super) const TEST: Ends<Self> =
        Ends { source: Self { network: 18, node: 2 }, destination: Self { network: 19, node: 2 } };

    pub(super) const fn is_valid(self) -> bool {
        self.network >= 1 && self.network <= 65_279 && self.node >= 1 && self.node <= 253
    }

    const fn address_bytes(self) -> [u8; 4] {
        let [high, low] = self.network.to_be_bytes();
        [0, high, low, self.node]
    }

    const fn from_bytes(bytes: [u8; 4]) -> Self {
        Self { network: u16::from_be_bytes([bytes[1], bytes[2]]), node: bytes[3] }
    }
}

/// Writes LLC and the long header of a datagram with `rest` bytes after the length field.
pub(super) fn write_datagram(bytes: &mut Vec<u8>, ends: Ends<AppleTalkAddress>, rest: u16) {
    bytes.extend_from_slice(&LLC_SNAP);
    bytes.extend_from_slice(&SNAP_DDP);
    bytes.extend_from_slice(&(rest - 8).to_be_bytes());
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&ends.destination.network.to_be_bytes());
    bytes.extend_from_slice(&ends.source.network.to_be_bytes());
    bytes.extend_from_slice(&[ends.destination.node, ends.source.node]);
    bytes.extend_from_slice(&[SOCKET, SOCKET, TYPE]);
}

/// A message of AppleTalk address resolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Aarp {
    pub(super) function: u16,
    pub(super) source: (Mac, AppleTalkAddress),
    pub(super) destination: (Mac, AppleTalkAddress),
}

impl Aarp {
    pub(super) fn parse(ether: &Ether<'_>) -> Option<Self> {
        let body: &[u8; 28] = ether.snap_payload(SNAP_AARP)?.first_chunk()?;
        let mac = |at: usize| body[at..].first_chunk().copied().map(Mac);
        let address =
            |at: usize| body[at..].first_chunk().copied().map(AppleTalkAddress::from_bytes);
        (body[..6] == [0, 1, 0x80, 0x9b, 6, 4]).then_some(())?;
        Some(Self {
            function: u16::from_be_bytes([body[6], body[7]]),
            source: (mac(8)?, address(14)?),
            destination: (mac(18)?, address(24)?),
        })
    }

    pub(super) fn frame_bytes(self, to: Mac, tags: Tags) -> Vec<u8> {
        let mut bytes = ether::frame_head(to, self.source.0, tags);
        bytes.extend_from_slice(&36_u16.to_be_bytes());
        bytes.extend_from_slice(&LLC_SNAP);
        bytes.extend_from_slice(&SNAP_AARP);
        bytes.extend_from_slice(&[0, 1, 0x80, 0x9b, 6, 4]);
        bytes.extend_from_slice(&self.function.to_be_bytes());
        for (mac, address) in [self.source, self.destination] {
            bytes.extend_from_slice(&mac.0);
            bytes.extend_from_slice(&address.address_bytes());
        }
        ether::padded(bytes)
    }
}

/// AARP probe, which a node sends before it uses an address.
pub fn probe_frame(mac: Mac, address: AppleTalkAddress, tags: Tags) -> Vec<u8> {
    let ends = ((mac, address), (Mac::default(), address));
    Aarp { function: PROBE, source: ends.0, destination: ends.1 }.frame_bytes(ALL_NODES, tags)
}
