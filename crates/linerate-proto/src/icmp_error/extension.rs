//! Extensions of ICMP messages (RFC 4884 §7), of which the MPLS label stack is read (RFC 4950 §3).
//!
//! ```text
//!  0  version (4 bits, 2), reserved
//!  2  checksum over the extensions; 0 is none
//!  4  objects: length in octets with these four (2), class (1), type (1), payload
//!     class 1, type 1: entries of label (20 bits), traffic class (3), bottom (1), TTL (8)
//! ```

use linerate_core::record::MplsLabel;

use crate::frame::checksum;

const HEADER_BYTES: usize = 4;
const VERSION: u8 = 2;
const MPLS: [u8; 2] = [1, 1];
/// Most labels that are read: real stacks have a few.
const LABELS_MAX: usize = 16;

/// True for extensions of version 2 whose checksum is absent or correct.
pub(super) fn is_whole(extension: &[u8]) -> bool {
    let Some(header) = extension.first_chunk::<HEADER_BYTES>() else { return false };
    let summed = header[2..4] == [0, 0] || checksum::verifies(extension);
    header[0] >> 4 == VERSION && summed
}

/// The label stack among the extensions, outermost label first; empty where there is none.
pub fn labels(extension: &[u8]) -> Vec<MplsLabel> {
    let mut labels = Vec::new();
    let mut objects = extension.get(HEADER_BYTES..).unwrap_or(&[]);
    while let Some((header, _)) = objects.split_first_chunk::<HEADER_BYTES>() {
        let len = usize::from(u16::from_be_bytes([header[0], header[1]]));
        let Some(payload) = objects.get(HEADER_BYTES..len) else { return labels };
        if header[2..4] == MPLS {
            labels.extend(payload.as_chunks::<4>().0.iter().map(parse_label));
        }
        objects = &objects[len..];
    }
    labels.truncate(LABELS_MAX);
    labels
}

fn parse_label(octets: &[u8; 4]) -> MplsLabel {
    let word = u32::from_be_bytes(*octets);
    MplsLabel { label: word >> 12, traffic_class: octets[2] >> 1 & 7, ttl: octets[3] }
}
