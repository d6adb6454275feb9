//! The fuzz entry of test frames over its corpus: as recorded, cut at every length, with bits
//! flipped, and some that are hostile on purpose.

use std::sync::LazyLock;

use proptest::prelude::*;

use super::{damage, entries::test_frame as entry};

/// Recorded frames, and those of the capture that tcpdump has read.
pub(super) fn corpus() -> Vec<Vec<u8>> {
    let mut corpus = super::recorded("test_frame", 8);
    let capture =
        std::fs::read(super::folder("test_frame").join("frames.pcap")).expect("the capture");
    let mut rest = &capture[24..];
    while let [_, _, _, _, _, _, _, _, a, b, c, d, _, _, _, _, frames @ ..] = rest {
        let (frame, more) = frames.split_at(u32::from_be_bytes([*a, *b, *c, *d]) as usize);
        corpus.push(frame.to_vec());
        rest = more;
    }
    assert!(corpus.len() >= 40 && rest.is_empty(), "{} frames", corpus.len());
    corpus
}

#[test]
fn recorded_cut_and_flipped_bytes_never_panic() {
    damage::all(&corpus(), 90, entry::run);
}

#[test]
fn hostile_bytes_never_panic() {
    let tags = [0x81_u8, 0, 0, 1].repeat(300);
    let cases: [&[u8]; 8] = [
        &[0xff; 4096],
        &[0; 4096],
        &[0x80; 4096],
        &[&[2; 12][..], &tags].concat(),
        b"64:7,594:4,1518:1",
        b"64:4294967295,128:4294967295,256:4294967295",
        b"aadbf",
        b"02:00:00:00:00:01",
    ];
    cases.iter().for_each(|bytes| entry::run(bytes));
}

static CORPUS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(corpus);

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000,
        failure_persistence: None,
        ..Default::default()
    })]

    /// The head of one frame before the tail of another, with some bytes changed.
    #[test]
    fn spliced_frames_never_panic(
        head in any::<prop::sample::Index>(),
        tail in any::<prop::sample::Index>(),
        cuts in (0_usize..80, 0_usize..80),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
    ) {
        let (head, tail) = (head.get(&CORPUS), tail.get(&CORPUS));
        let head = &head[..cuts.0.min(head.len())];
        let mut bytes = [head, &tail[cuts.1.min(tail.len())..]].concat();
        if !bytes.is_empty() {
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        entry::run(&bytes);
    }
}
