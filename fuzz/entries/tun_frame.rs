//! Any bytes as a packet that a TUN device hands to an emulated path, with its virtio header: no
//! panic, segments whose payloads are that of the packet, once and in order, and headers of them
//! that fit the room for headers.

#[path = "../../crates/linerate-engine/src/path/cut.rs"]
#[allow(dead_code, reason = "the emulator needs more of it")]
mod cut;
#[path = "../../crates/linerate-engine/src/path/frame.rs"]
#[allow(dead_code, reason = "the emulator needs more of it")]
mod frame;

use cut::SegmentRun;
use frame::{EmulatedFrame, MAX_HEADER_BYTES};
use linerate_sys::tun::{HEADER_BYTES, TunKind};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    // The kernel writes the virtio header whole.
    if bytes.len() < HEADER_BYTES {
        return;
    }
    for kind in [TunKind::Ip, TunKind::Ethernet] {
        read(bytes, kind);
    }
}

fn read(bytes: &[u8], kind: TunKind) {
    let frame = EmulatedFrame::read(bytes, kind);
    assert!(frame.segments > 0);
    let last = frame.segments - 1;
    let packet = frame.packet(last, 7);
    assert!(packet.ip_bytes as usize <= bytes.len());
    assert!(frame.segments == 1 || frame.super_packet.is_some());
    // Nothing but IP says that it may be marked.
    if frame.version > 0 {
        let mut marked = bytes.to_vec();
        cut::mark_congestion(&mut marked, &frame);
        assert_eq!(EmulatedFrame::read(&marked, kind).flow, frame.flow, "a mark changes no flow");
    }
    let Some(parts) = frame.super_packet else {
        let mut damaged = bytes.to_vec();
        return cut::corrupt(&mut damaged, bytes.len() as u64);
    };
    let mut end = usize::from(parts.payload_at);
    let mut header = [0; MAX_HEADER_BYTES];
    // The first ones, the middle and the last: there may be tens of thousands.
    for index in [0, last / 2, last] {
        let payload = frame.payload(&parts, index, index);
        assert!(payload.start < payload.end && payload.end <= bytes.len());
        assert!(payload.len() <= usize::from(parts.segment_bytes));
        let run = SegmentRun { first: index, last: index, marked: true };
        let length = cut::header(bytes, &frame, &parts, run, &mut header);
        let mut packet = [&header[..length], &bytes[payload]].concat();
        cut::corrupt(&mut packet, u64::from(index));
        assert_eq!(packet.len() - usize::from(frame.ip_at), frame.ip_bytes(index) as usize);
    }
    for index in 0..frame.segments {
        let payload = frame.payload(&parts, index, index);
        assert_eq!(payload.start, end);
        end = payload.end;
    }
    assert_eq!(end, bytes.len());
    assert_eq!(frame.payload(&parts, 0, last), usize::from(parts.payload_at)..bytes.len());
}
