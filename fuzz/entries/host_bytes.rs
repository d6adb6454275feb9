//! Any bytes as what the store and the kernel hand back: sketches of distributions, files of zones,
//! the SYN of a peer, signatures of test frames. No panic, and sketches that are the same when
//! written again.

use linerate_core::device::Signature;
use linerate_core::record::{SynOptions, TcpInfo};
use linerate_core::schedule::Zone;
use linerate_core::stats::Sketch;

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(sketch) = Sketch::from_bytes(bytes) {
        assert_eq!(Sketch::from_bytes(&sketch.to_bytes()).as_ref(), Some(&sketch));
        for share in [0.0, 0.5, 1.0] {
            let value = sketch.quantile(share);
            assert!(value.is_none_or(|it| Some(it) <= sketch.max()));
        }
        assert!(sketch.sum().is_finite());
        let mut twice = sketch.clone();
        twice.merge(&sketch);
        assert_eq!((twice.min(), twice.max()), (sketch.min(), sketch.max()));
    }
    if let Some(signature) = Signature::at_end_of(bytes) {
        assert!(bytes.ends_with(&signature.to_bytes()));
    }
    let _ = (SynOptions::from_ip_packet(bytes), TcpInfo::from_ne_bytes(bytes));
    let _ = Zone::from_tzif("x", bytes);
}
