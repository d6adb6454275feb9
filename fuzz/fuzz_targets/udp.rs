//! Any bytes as datagrams of a UDP test: no panic, and counts that close.

#![no_main]

use libfuzzer_sys::fuzz_target;
use linerate_proto::native::{DatagramHeader, Opening, UdpStatus, UdpTracker};

fuzz_target!(|bytes: &[u8]| {
    if let Some(opening) = Opening::parse(bytes) {
        assert_eq!(opening.to_bytes(), bytes);
    }
    if let Some(status) = UdpStatus::parse(bytes) {
        assert_eq!(status.to_bytes(), bytes);
    }
    let mut tracker = UdpTracker::new(1000);
    for datagram in bytes.chunks(17) {
        let Some(header) = DatagramHeader::parse(datagram) else { continue };
        tracker.note_drops(header.tag.into(), header.number, header.stamp_ns, 64);
        tracker.take(header.number, header.stamp_ns);
        // And near the numbers that came.
        let step = u64::from(header.tag);
        tracker.take(tracker.next_expected().saturating_sub(step & 0xff) + (step >> 12), 0);
    }
    let (all, measured) = tracker.tallies(None, None, 64);
    assert_eq!(all.received + all.lost, tracker.next_expected());
    assert!(measured.received <= all.received && all.lost_here <= all.lost);
});
