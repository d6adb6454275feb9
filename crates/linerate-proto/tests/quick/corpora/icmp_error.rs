//! The fuzz entry of ICMP errors over messages of both families with and without extensions:
//! whole, cut at every length, with bits flipped, and any bytes at all.

use proptest::prelude::*;

use super::{damage, entries::icmp_error as entry};

/// Time exceeded that quotes UDP over IPv4 and an echo request over IPv6, each with a label stack.
pub(super) fn messages() -> Vec<Vec<u8>> {
    let labels = [0x20, 0, 0, 0, 0, 8, 1, 1, 0x00, 0x01, 0x0B, 0x01];
    let mut v4 = vec![11, 0, 0, 0, 0, 32, 0, 0, 0x45, 0xBA, 0, 40, 0, 1, 0x40, 0, 1, 17, 0, 0];
    v4.extend([192, 0, 2, 1, 198, 51, 100, 7, 0x80, 0, 0x82, 0x9A, 0, 20, 0x12, 0x34]);
    v4.extend([0xC0, 0xFF, 0xEE, 0, 2, 1]);
    v4.resize(8 + 128, 0);
    v4.extend(labels);
    let mut v6 = vec![3, 0, 0, 0, 16, 0, 0, 0, 0x62, 0x81, 0x23, 0x45, 0, 12, 58, 1];
    v6.extend([0x20; 32]);
    v6.extend([128, 0, 0, 0, 0x12, 0x34, 0, 9]);
    v6.resize(8 + 128, 0);
    v6.extend(labels);
    vec![v4, v6]
}

#[test]
fn whole_cut_and_flipped_messages_never_panic() {
    damage::all(&messages(), 256, entry::run);
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        entry::run(&bytes);
    }

    #[test]
    fn any_quote_never_panics(
        rest in proptest::collection::vec(any::<u8>(), 0..200),
        kind in 0u8..14,
        length in any::<u8>(),
    ) {
        let head = [kind, 0, 0, 0, length, length, 0, 0, 0x45, 0, 0, 40];
        entry::run(&[&head[..], &rest].concat());
    }
}
