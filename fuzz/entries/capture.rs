//! Any bytes as a capture: no panic, progress at each step, needs within the limit, and the same
//! packets from memory as through a stream in pieces.

use linerate_proto::capture::{
    BLOCK_MAX_BYTES, CaptureError, CaptureParser, CaptureStep, CapturedPacket, Next, Stream,
};

type Row = (u64, Option<u64>, usize, u32, u32);
type Read = (Vec<Row>, Result<(), CaptureError>);

fn row(packet: &CapturedPacket<'_>) -> Row {
    std::hint::black_box(packet.decode());
    (packet.offset, packet.at_ns, packet.data.len(), packet.original_len, packet.interface)
}

fn from_memory(bytes: &[u8]) -> Read {
    let (mut parser, mut rest, mut rows) = (CaptureParser::new(), bytes, Vec::new());
    loop {
        let used = match parser.parse_record(rest) {
            Ok(CaptureStep::Packet { packet, used }) => {
                rows.push(row(&packet));
                used
            }
            Ok(CaptureStep::Passed { used }) => used,
            Ok(CaptureStep::Needs { bytes }) => {
                assert!(bytes > rest.len() && bytes <= BLOCK_MAX_BYTES);
                return (rows, parser.check_end(rest));
            }
            Err(error) => return (rows, Err(error)),
        };
        assert!(used >= 1 && used <= rest.len());
        rest = &rest[used..];
    }
}

fn in_pieces(bytes: &[u8], piece: usize) -> Read {
    let (mut stream, mut rest, mut rows) = (Stream::with_buffer(piece), bytes, Vec::new());
    loop {
        match stream.next_packet() {
            Ok(Next::Packet(packet)) => rows.push(row(&packet)),
            Ok(Next::NeedsInput) => {
                let space = stream.free_space();
                assert!(!space.is_empty());
                let count = space.len().min(rest.len()).min(piece);
                if count == 0 {
                    return (rows, stream.check_end());
                }
                space[..count].copy_from_slice(&rest[..count]);
                rest = &rest[count..];
                stream.filled(count);
                assert!(stream.buffer_bytes() <= BLOCK_MAX_BYTES);
                assert!(stream.buffer_bytes() <= 2 * bytes.len().max(piece));
            }
            Err(error) => return (rows, Err(error)),
        }
    }
}

/// Runs the entry.
pub(crate) fn run(bytes: &[u8]) {
    let (rows, end) = from_memory(bytes);
    let piece = 1 + bytes.len() % 97;
    assert_eq!(in_pieces(bytes, piece), (rows, end));
    if let Err(error) = end {
        assert!(error.offset <= bytes.len() as u64 && !error.to_string().contains('\n'));
    }
}
