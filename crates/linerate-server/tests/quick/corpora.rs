//! The fuzz entry of packed bodies over bodies of a mesh and mutations of them.

use crate::mutations::{MUTATIONS, MemoryBound, Reader};

#[path = "../../../../fuzz/entries/packed.rs"]
mod packed;

/// What is allowed to be unpacked, twice while it grows, and the unpacker's tables and window.
const UNPACKED: MemoryBound = MemoryBound { base_bytes: (3 << 16) + (128 << 10), per_byte: 8 };

#[test]
fn packed_bodies_stay_within_what_is_allowed() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let kept = ["mesh/1/results.json", "mesh/1/plan.json", "readers/mesh.toml"];
    let bodies = kept.map(|name| std::fs::read(folder.join(name)).expect(name));
    let mut corpus: Vec<_> = bodies.iter().map(|body| packed::packed(body)).collect();
    // 10 MB of zeros in some kilobytes.
    corpus.push(packed::packed(&vec![0; 10_000_000]));
    let reader = Reader {
        entry: "packed",
        run: packed::run,
        corpus,
        words: &["\u{1f}", "\u{8}"],
        // Each input takes a window of 32 KiB and tables that are set to zero.
        mutations: MUTATIONS / 5,
        memory: UNPACKED,
    };
    reader.hold();
}
