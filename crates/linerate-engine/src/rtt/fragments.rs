//! How many IP packets a probe travels as.
//!
//! # Source
//! RFC 791 §3.2 (fragments carry multiples of 8 bytes but for the last), RFC 8200 §4.5 (the
//! fragment header of 8 bytes). Options and extension headers are not counted.

use linerate_core::record::IpFamily;

/// ICMP and UDP headers are both 8 bytes.
const TRANSPORT_HEADER_BYTES: u32 = 8;

/// A probe as IP sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnPath {
    pub(crate) family: IpFamily,
    pub(crate) payload_bytes: u32,
    /// Largest IP packet of the path.
    pub(crate) mtu_bytes: u32,
}

/// Packets that the probe travels as: 1 when it fits.
pub(crate) fn fragment_count(probe: OnPath) -> u32 {
    let body = probe.payload_bytes.saturating_add(TRANSPORT_HEADER_BYTES);
    let (header, fragment_header) = match probe.family {
        IpFamily::V4 => (20, 0),
        IpFamily::V6 => (40, 8),
    };
    if body.saturating_add(header) <= probe.mtu_bytes {
        return 1;
    }
    let room = probe.mtu_bytes.saturating_sub(header + fragment_header) / 8 * 8;
    if room == 0 { 1 } else { body.div_ceil(room) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_counted_as_by_hand() {
        // MTU 1500: IPv4 leaves 1480 for ICMP, so 1472 of payload fit; IPv6 leaves 1460, 1452.
        // 1500 + 8 = 1508 is 1480 + 28. 4000 + 8 = 2·1480 + 1048. IPv6 fragments carry 1448.
        let cases = [
            (IpFamily::V4, 1472, 1500, 1),
            (IpFamily::V4, 1473, 1500, 2),
            (IpFamily::V4, 1500, 1500, 2),
            (IpFamily::V4, 4000, 1500, 3),
            (IpFamily::V4, 65_507, 65_535, 1),
            (IpFamily::V6, 1452, 1500, 1),
            (IpFamily::V6, 1453, 1500, 2),
            (IpFamily::V6, 2889, 1500, 3),
            (IpFamily::V6, 2888, 1500, 2),
            (IpFamily::V4, 56, 20, 1),
        ];
        for (family, payload_bytes, mtu_bytes, expected) in cases {
            let probe = OnPath { family, payload_bytes, mtu_bytes };
            assert_eq!(fragment_count(probe), expected, "{probe:?}");
        }
    }
}
