//! Any bytes as a packet of any link type: no panic, and lengths that hold together.

use linerate_proto::capture::{CapturedPacket, LinkType};

pub(crate) const LINK_TYPES: [u16; 13] = [0, 1, 9, 12, 14, 50, 101, 104, 108, 113, 228, 229, 276];

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let Some(([link, fcs, length @ ..], data)) = bytes.split_first_chunk::<6>() else { return };
    let packet = CapturedPacket {
        number: 1,
        offset: 0,
        at_ns: None,
        data,
        original_len: u32::from_le_bytes(*length),
        section: 0,
        interface: 0,
        link_type: LinkType(LINK_TYPES[usize::from(*link) % LINK_TYPES.len()]),
        fcs_bytes: (fcs & 1 == 1).then_some(fcs >> 4),
        direction: None,
    };
    let decoded = packet.decode();
    let Ok(ip) = decoded.ip else { return };
    assert!(ip.ip_bytes >= 20 && ip.header_bytes >= 20);
    assert!(ip.source.is_ipv4() == ip.destination.is_ipv4());
    for mtu_bytes in [0, 68, 576, 1500, 9000, u32::MAX] {
        let Some(wire) = ip.on_wire(mtu_bytes) else { continue };
        let most = u64::from(mtu_bytes) * u64::from(wire.packets);
        assert!(wire.packets >= 1 && wire.ip_bytes <= most);
    }
}
