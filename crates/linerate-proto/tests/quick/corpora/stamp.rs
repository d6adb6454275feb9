//! The fuzz entry of STAMP over packets of both modes with and without TLVs: whole, cut at every
//! length, with bits flipped, and any bytes at all.

use linerate_proto::stamp::{ProbeOptions, StampKey, StampProbe};
use proptest::prelude::*;

use super::{damage, entries::stamp as entry};

pub(super) fn packets() -> Vec<Vec<u8>> {
    let keys = [None, StampKey::from_hex("000102030405060708090a0b0c0d0e0f")];
    let of = |key: &Option<StampKey>, more: usize, dscp: Option<u8>| {
        let bytes = StampProbe::usual_bytes(key.is_some()) + more;
        let key = key.clone();
        let options = ProbeOptions { bytes, key, reply_dscp: dscp, ..ProbeOptions::default() };
        let probe = StampProbe::new(options);
        probe.expect("room for the base").request(0, 1_700_000_000_000_000_000).to_vec()
    };
    keys.iter()
        .flat_map(|key| [of(key, 0, None), of(key, 3, None), of(key, 80, Some(46))])
        .collect()
}

#[test]
fn whole_cut_and_flipped_packets_never_panic() {
    damage::all(&packets(), 256, entry::run);
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        entry::run(&bytes);
    }

    #[test]
    fn any_tlvs_never_panic(
        pick in 0usize..6,
        tlvs in proptest::collection::vec((any::<u8>(), 0u8..14, 0u8..40), 0..8),
    ) {
        let mut packet = packets()[pick].clone();
        packet.truncate(if pick < 3 { 44 } else { 112 });
        for (flags, kind, len) in tlvs {
            packet.extend([flags, kind, 0, len]);
            packet.resize(packet.len() + usize::from(len), flags);
        }
        entry::run(&packet);
    }
}
