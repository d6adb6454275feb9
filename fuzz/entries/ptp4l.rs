//! Any bytes as an answer of ptp4l: no panic, an error that is not below what it is made of, and
//! nothing changed by what is no answer.

use linerate_proto::ptp4l::{Ptp4l, Ptp4lDataSet};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let mut all = Ptp4l::default();
    let number = bytes.get(30..32).map_or(0, |two| u16::from_be_bytes([two[0], two[1]]));
    for question in Ptp4lDataSet::ALL {
        let before = all;
        if !all.add_answer(bytes, question, number) {
            assert_eq!(format!("{all:?}"), format!("{before:?}"));
        }
        assert!(!all.add_answer(bytes, question, number.wrapping_add(1)));
    }
    if let Some(current) = all.current {
        assert!(current.offset_ns.is_finite() && current.path_delay_ns.is_finite());
    }
    // One datagram answers one question; an error needs four.
    assert!(all.error_ns().is_none());
}
