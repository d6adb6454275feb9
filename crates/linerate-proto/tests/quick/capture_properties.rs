//! Whatever the bytes, the reader of captures ends: without a panic, within its memory, with
//! progress at each step, and the same from memory as piece by piece.

use linerate_proto::capture::{
    BLOCK_MAX_BYTES, CaptureError, CaptureParser, CaptureStep, Next, Stream,
};
use proptest::prelude::*;

/// Packets as offset, time and length, and how it ended.
type Read = (Vec<(u64, Option<u64>, usize, u32)>, Result<(), CaptureError>);

fn from_memory(bytes: &[u8]) -> Read {
    let (mut parser, mut rest, mut seen) = (CaptureParser::new(), bytes, Vec::new());
    loop {
        let used = match parser.parse_record(rest) {
            Ok(CaptureStep::Packet { packet, used }) => {
                let decoded = packet.decode();
                if let Ok(ip) = decoded.ip {
                    assert!(ip.ip_bytes >= 20 && ip.header_bytes >= 20);
                    for mtu_bytes in [0, 68, 1500, 65_535] {
                        let wire = ip.on_wire(mtu_bytes);
                        assert!(wire.is_none_or(|wire| wire.packets >= 1));
                    }
                }
                seen.push((packet.offset, packet.at_ns, packet.data.len(), packet.original_len));
                used
            }
            Ok(CaptureStep::Passed { used }) => used,
            Ok(CaptureStep::Needs { bytes }) => {
                assert!(bytes > rest.len() && bytes <= BLOCK_MAX_BYTES);
                return (seen, parser.check_end(rest));
            }
            Err(error) => return (seen, Err(error)),
        };
        assert!(used >= 1 && used <= rest.len());
        rest = &rest[used..];
    }
}

fn piece_by_piece(bytes: &[u8], pieces: &[usize]) -> Read {
    let (mut stream, mut rest, mut seen) = (Stream::with_buffer(64), bytes, Vec::new());
    for piece in pieces.iter().cycle() {
        loop {
            match stream.next_packet() {
                Ok(Next::Packet(packet)) => {
                    let row = (packet.offset, packet.at_ns, packet.data.len(), packet.original_len);
                    seen.push(row);
                }
                Ok(Next::NeedsInput) => break,
                Err(error) => return (seen, Err(error)),
            }
        }
        let space = stream.free_space();
        assert!(!space.is_empty());
        let count = space.len().min(rest.len()).min(*piece);
        if count == 0 {
            break;
        }
        space[..count].copy_from_slice(&rest[..count]);
        rest = &rest[count..];
        stream.filled(count);
        assert!(stream.buffer_bytes() <= BLOCK_MAX_BYTES);
    }
    (seen, stream.check_end())
}

fn check(bytes: &[u8], pieces: &[usize]) {
    assert_eq!(from_memory(bytes), piece_by_piece(bytes, pieces));
}

fn word(value: u32, is_little: bool) -> [u8; 4] {
    if is_little { value.to_le_bytes() } else { value.to_be_bytes() }
}

/// A length that is often near what is right, and often near the ends of what can be written.
fn length() -> impl Strategy<Value = u32> {
    prop_oneof![0u32..200, 16_777_200u32..16_777_232, u32::MAX - 20..=u32::MAX, any::<u32>()]
}

/// A block whose lengths are right, but for one time in four.
fn block(is_little: bool) -> impl Strategy<Value = Vec<u8>> {
    let kind = prop_oneof![4 => 0u32..8, 1 => Just(0x0a0d_0d0a), 1 => any::<u32>()];
    let body = prop::collection::vec(any::<u8>(), 0..20);
    (kind, body, prop::option::weighted(0.25, length()), 0u32..60, 0u32..3).prop_map(
        move |(kind, body, wrong, captured, interface)| {
            let word = |value| word(value, is_little);
            // What stands in front of a body of this kind.
            let front: Vec<u8> = match kind {
                0x0a0d_0d0a => [&word(0x1a2b_3c4d)[..], &word(0x1_0000), &[0; 8]].concat(),
                1 => [&word(1)[..], &word(captured)].concat(),
                2 | 6 => {
                    let fields = [interface, 0, 7, captured, 60].map(word);
                    [&fields.concat()[..], &[0x45; 60]].concat()
                }
                3 => [&word(captured)[..], &[0x45; 60]].concat(),
                _ => Vec::new(),
            };
            let mut body = [front, body].concat();
            body.resize(body.len().next_multiple_of(4), 0);
            let length = word(wrong.unwrap_or(body.len() as u32 + 12));
            [&word(kind)[..], &length, &body, &length].concat()
        },
    )
}

fn pcapng() -> impl Strategy<Value = Vec<u8>> {
    any::<bool>().prop_flat_map(|is_little| {
        prop::collection::vec(block(is_little), 0..20).prop_map(move |blocks| {
            let word = |value| word(value, is_little);
            let head = [0x0a0d_0d0a, 28, 0x1a2b_3c4d, 0x1_0000, 0, 0, 28].map(word).concat();
            let interface = [1, 20, 1, 0, 20].map(word).concat();
            [head, interface, blocks.concat()].concat()
        })
    })
}

fn pcap() -> impl Strategy<Value = Vec<u8>> {
    let record = (any::<[u32; 2]>(), length(), any::<u32>(), prop::option::weighted(0.9, 0u32..80));
    let link = prop_oneof![0u32..300, any::<u32>()];
    let records = prop::collection::vec(record, 0..20);
    (any::<bool>(), any::<bool>(), link, length(), records).prop_map(
        |(is_little, nano, link, snaplen, records)| {
            let word = |value| word(value, is_little);
            let magic = if nano { 0xa1b2_3c4d } else { 0xa1b2_c3d4 };
            let version = if is_little { 0x0004_0002 } else { 0x0002_0004 };
            let mut bytes = [magic, version, 0, 0, snaplen, link].map(word).concat();
            for (time, wrong, original, captured) in records {
                let captured_word = captured.unwrap_or(wrong);
                let fields = [time[0], time[1], captured_word, original].map(word).concat();
                bytes.extend(fields);
                bytes.resize(bytes.len() + captured.unwrap_or(9) as usize, 0x60);
            }
            bytes
        },
    )
}

fn pieces() -> impl Strategy<Value = Vec<usize>> {
    prop::collection::vec(1usize..200, 1..8)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        failure_persistence: None,
        ..Default::default()
    })]

    #[test]
    fn random_bytes_end(bytes in prop::collection::vec(any::<u8>(), 0..400), pieces in pieces()) {
        check(&bytes, &pieces);
    }

    #[test]
    fn random_blocks_end(bytes in pcapng(), pieces in pieces()) {
        check(&bytes, &pieces);
    }

    #[test]
    fn random_records_end(bytes in pcap(), pieces in pieces()) {
        check(&bytes, &pieces);
    }

    /// Headers of each link type over random bytes: decoding reads what is there and no more.
    #[test]
    fn random_packets_decode(
        link in prop::sample::select(vec![
            0u32, 1, 9, 12, 50, 101, 104, 108, 113, 228, 229, 276, 7,
        ]),
        start in prop::sample::select(vec![
            &[][..],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x08, 0, 0x45, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x81, 0, 0, 1, 0x81, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x47, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x88, 0x64, 0x11, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0],
            &[0x60, 0, 0, 0, 0, 0, 0],
        ]),
        small in any::<bool>(),
        rest in prop::collection::vec(any::<u8>(), 0..120),
        original in length(),
    ) {
        // Small values are protocols and header lengths more often than random ones are.
        let rest: Vec<u8> = rest.iter().map(|b| if small { b % 64 } else { *b }).collect();
        let data = [start, &rest].concat();
        let fcs = if small { 1 << 26 | 2 << 28 } else { 0 };
        let words = [
            0xa1b2_c3d4, 0x0004_0002, 0, 0, 0, link | fcs,
            0, 0, data.len() as u32, original,
        ];
        let mut bytes = words.map(u32::to_le_bytes).concat();
        bytes.extend(data);
        let (seen, end) = from_memory(&bytes);
        prop_assert_eq!((seen.len(), end), (1, Ok(())));
    }
}
