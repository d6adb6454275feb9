//! The fuzz entry of ptp4l over its recorded answers: whole, cut at every length, with bits
//! flipped, and any bytes at all.

use linerate_proto::ptp4l::{Ptp4l, Ptp4lDataSet};
use proptest::prelude::*;

use super::{damage, entries::ptp4l as entry, recorded};

#[test]
fn whole_cut_and_flipped_answers_never_panic() {
    damage::all(&recorded("ptp4l", 12), 128, entry::run);
}

/// An answer has its own length in its head: a shorter one is none.
#[test]
fn no_part_of_an_answer_is_one() {
    for bytes in recorded("ptp4l", 12) {
        let number = u16::from_be_bytes([bytes[30], bytes[31]]);
        let taken = |bytes: &[u8]| {
            let take = |question| Ptp4l::default().add_answer(bytes, question, number);
            Ptp4lDataSet::ALL.into_iter().filter(|question| take(*question)).count()
        };
        assert_eq!(taken(&bytes), 1);
        assert!((0..bytes.len()).all(|cut| taken(&bytes[..cut]) == 0));
    }
}

proptest! {
    #[test]
    fn any_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        entry::run(&bytes);
    }

    #[test]
    fn any_data_never_panics(
        identifier in prop::sample::select(vec![0x2001u16, 0x2002, 0x2003, 0xc004]),
        length in 0u16..80,
        data in proptest::collection::vec(any::<u8>(), 0..80),
    ) {
        let mut bytes = Ptp4lDataSet::Current.request_bytes(7).to_vec();
        bytes[46] = 2;
        bytes[50..52].copy_from_slice(&length.to_be_bytes());
        bytes[52..54].copy_from_slice(&identifier.to_be_bytes());
        bytes.extend(data);
        bytes[3] = bytes.len() as u8;
        entry::run(&bytes);
    }
}
