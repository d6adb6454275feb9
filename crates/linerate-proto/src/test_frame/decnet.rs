//! DECnet phase IV on Ethernet: long data packets and the hello of an end node, as its routing
//! layer specification, version 2.0.0 (1983), §4.3 and §9 lays them out. Numbers are
//! little-endian.
//!
//! ```text
//! Ethernet 0x6003, then length (2) of what follows
//! data     0 flags 0x26  1 area, subarea of destination (2)  3 its identifier (6)
//!          9 area, subarea of source (2)  11 its identifier (6)  17 next level 2 router
//!         18 visits  19 service class  20 protocol type
//! segment  0 flags 0x60  1 destination link (2)  3 source link (2)  5 number (2)
//! hello    0 flags 0x0d  1 version 2.0.0 (3)  4 identifier (6)  10 kind 3  11 block size (2)
//!         13 area  14 seed (8)  22 designated router (6)  28 timer in s (2)  30 reserved
//!         31 count of test bytes, then 0xaa each
//! ```
//!
//! Left out: routers' messages, phase III, verification.

use super::ether::{self, DECNET};
use super::{Ends, Mac, Tags};

/// Multicast address of all routers, to which end nodes send hellos.
pub const ALL_ROUTERS: Mac = Mac([0xab, 0x00, 0x00, 0x03, 0x00, 0x00]);
/// Flags of a long data packet from the same Ethernet.
pub(super) const LONG_FLAGS: u8 = 0x26;
/// Flags of a data segment that is a whole message.
pub(super) const SEGMENT_FLAGS: u8 = 0x60;
/// Flags of an end node's hello.
pub(super) const HELLO_FLAGS: u8 = 0x0d;
/// Bytes of the longest packet on Ethernet, header and data.
const BLOCK_BYTES: u16 = 1498;

/// A node: area 1 to 63, number 1 to 1023.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DecNetAddress {
    /// Area.
    pub area: u8,
    /// Number within it.
    pub node: u16,
}

impl DecNetAddress {
    /// Addresses of the test frames: nodes of two areas.
    pub(super) const TEST: Ends<Self> =
        Ends { source: Self { area: 1, node: 2 }, destination: Self { area: 2, node: 2 } };

    /// The 16-bit address: area in the upper six bits.
    pub const fn address_bits(self) -> u16 {
        (self.area as u16) << 10 | self.node & 0x3ff
    }

    /// The node of a 16-bit address.
    pub const fn from_bits(bits: u16) -> Self {
        Self { area: (bits >> 10) as u8, node: bits & 0x3ff }
    }

    /// MAC address of the node's interface: aa:00:04:00 and its 16-bit address.
    pub const fn mac_address(self) -> Mac {
        let [low, high] = self.address_bits().to_le_bytes();
        Mac([0xaa, 0x00, 0x04, 0x00, low, high])
    }

    /// The node with this MAC address.
    pub const fn from_mac(mac: Mac) -> Option<Self> {
        match mac.0 {
            [0xaa, 0x00, 0x04, 0x00, low, high] => {
                Some(Self::from_bits(u16::from_le_bytes([low, high])))
            }
            _ => None,
        }
    }

    pub(super) const fn is_valid(self) -> bool {
        self.area >= 1 && self.area <= 63 && self.node >= 1 && self.node <= 1023
    }
}

/// Writes length, long header and segment header of a packet with `rest` bytes after the type.
pub(super) fn write_data(bytes: &mut Vec<u8>, ends: Ends<DecNetAddress>, rest: u16) {
    bytes.extend_from_slice(&(rest - 2).to_le_bytes());
    bytes.extend_from_slice(&[LONG_FLAGS, 0, 0]);
    bytes.extend_from_slice(&ends.destination.mac_address().0);
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&ends.source.mac_address().0);
    bytes.extend_from_slice(&[0, 0, 0, 0]);
    bytes.push(SEGMENT_FLAGS);
    for number in [1_u16, 1, 1] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
}

/// Hello of an end node, sent every `timer_s` seconds. `router` is the designated router of its
/// Ethernet, if known.
pub fn endnode_hello(
    node: DecNetAddress,
    router: Option<DecNetAddress>,
    timer_s: u16,
    tags: Tags,
) -> Vec<u8> {
    let mut bytes = ether::frame_head(ALL_ROUTERS, node.mac_address(), tags);
    bytes.extend_from_slice(&DECNET.to_be_bytes());
    bytes.extend_from_slice(&34_u16.to_le_bytes());
    bytes.extend_from_slice(&[HELLO_FLAGS, 2, 0, 0]);
    bytes.extend_from_slice(&node.mac_address().0);
    bytes.push(3);
    bytes.extend_from_slice(&BLOCK_BYTES.to_le_bytes());
    bytes.extend_from_slice(&[0; 9]);
    bytes.extend_from_slice(&router.map_or([0; 6], |router| router.mac_address().0));
    bytes.extend_from_slice(&timer_s.to_le_bytes());
    bytes.extend_from_slice(&[0, 2, 0xaa, 0xaa]);
    ether::padded(bytes)
}
