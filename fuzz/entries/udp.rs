//! Any bytes as datagrams of the native protocol's UDP tests, searches and trains: no panic,
//! headers that survive being written again, and counts that close.

use linerate_core::record::Direction;
use linerate_proto::native::{
    Grant, NativeDatagramHeader, OpeningDatagram, Token, TrainHeader, UdpStatus, UdpTracker,
    stream_tag,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    if let Some(opening) = OpeningDatagram::parse(bytes) {
        assert_eq!(opening.to_bytes(), bytes);
    }
    if let Some(status) = UdpStatus::parse(bytes) {
        assert_eq!(status.to_bytes(), bytes);
    }
    if let Some(grant) = Grant::parse(bytes) {
        assert!(grant.next <= grant.limit && grant.limit <= grant.most);
        assert_eq!(Grant::parse(&grant.to_bytes(7)), Some(grant));
    }
    if let Some(header) = TrainHeader::parse(bytes) {
        assert!(bytes.starts_with(&header.to_bytes()));
    }
    if let Some(token) = bytes.first_chunk() {
        let _ = stream_tag(Token(*token), Direction::Up, u16::from(bytes[0]));
    }
    tracked(bytes);
}

fn tracked(bytes: &[u8]) {
    let mut tracker = UdpTracker::new(1000);
    for datagram in bytes.chunks(17) {
        let Some(header) = NativeDatagramHeader::parse(datagram) else { continue };
        assert!(datagram.starts_with(&header.to_bytes()));
        tracker.note_drops(header.tag.into(), header.number, header.stamp_ns, 64);
        tracker.count_datagram(header.number, header.stamp_ns);
        // And near the numbers that came.
        let step = u64::from(header.tag);
        tracker
            .count_datagram(tracker.next_expected().saturating_sub(step & 0xff) + (step >> 12), 0);
    }
    let (all, measured) = tracker.tallies(None, None, 64);
    assert_eq!(all.received + all.lost, tracker.next_expected());
    assert!(measured.received <= all.received && all.lost_here <= all.lost);
}
