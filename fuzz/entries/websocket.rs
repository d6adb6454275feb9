//! Any bytes as frames of a WebSocket's client, whole and cut: no panic, heads that lie within
//! them, and payloads within what is allowed.

use linerate_proto::http::{
    FRAME_HEAD_BYTES_MAX, FrameHead, NDT7_MESSAGE_BYTES_MAX, message_head, next_message_bytes,
};

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let (mut rest, mut sent) = (bytes, 0_u64);
    while let Ok(Some(head)) = FrameHead::parse(rest, NDT7_MESSAGE_BYTES_MAX) {
        assert!(head.head_bytes <= rest.len().min(FRAME_HEAD_BYTES_MAX));
        assert!(head.payload_bytes <= NDT7_MESSAGE_BYTES_MAX);
        assert!(!head.opcode.is_control() || head.payload_bytes <= 125);
        for cut in 0..head.head_bytes {
            assert_eq!(FrameHead::parse(&rest[..cut], NDT7_MESSAGE_BYTES_MAX), Ok(None));
        }
        let own = message_head(head.opcode, head.payload_bytes);
        // The head of a server is the same without the mask, in the fewest bytes.
        assert!(own.len() + 4 <= head.head_bytes && own[0] & 0x0f == rest[0] & 0x0f);
        sent += head.payload_bytes;
        assert!(next_message_bytes(1 << 13, sent) <= 1 << 14);
        let payload = usize::try_from(head.payload_bytes).unwrap_or(usize::MAX);
        rest = rest[head.head_bytes..].get(payload..).unwrap_or_default();
    }
}
