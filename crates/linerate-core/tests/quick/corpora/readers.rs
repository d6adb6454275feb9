//! Every reader of this crate over its corpus and mutations of it: no panic, memory within a bound
//! for each byte that came, and what its entry asserts.

use std::path::Path;

use linerate_core::device::Signature;
use linerate_core::stats::Sketch;

use super::entries;
use super::mutations::{MUTATIONS, MemoryBound, Reader};

/// Of documents: a node of the tree takes 56 bytes for the two of `0,`, the tree of TOML before it
/// some more, and the entry reads the same text up to seven times and writes it again.
const TREES: MemoryBound = MemoryBound { base_bytes: 128 << 10, per_byte: 1000 };
/// Of words and lines.
const LINES: MemoryBound = MemoryBound { base_bytes: 32 << 10, per_byte: 64 };
/// Of plans: each pair of agents and each run of a day has its row, however short the text.
const CALENDARS: MemoryBound = MemoryBound { base_bytes: 16 << 20, per_byte: 1000 };

/// One test for each reader: they run beside each other, and each is named when it fails.
macro_rules! readers {
    ($($entry:ident: $corpus:expr, $words:expr, $mutations:expr, $memory:expr;)*) => {
        /// Names of the entries that are run here.
        pub(super) const ENTRIES: &[&str] = &[$(stringify!($entry)),*];

        $(#[test]
        fn $entry() {
            let reader = Reader {
                entry: stringify!($entry),
                run: entries::$entry::run,
                corpus: $corpus,
                words: &$words,
                mutations: $mutations,
                memory: $memory,
            };
            reader.hold();
        })*
    };
}

// Corpus, words, mutations, memory. A count below MUTATIONS has its reason above it.
readers! {
    host_bytes: stored_bytes(), [], MUTATIONS, LINES;
    path_trace: vec![file("readers/path.trace"), b"0\n1\n18446744073709551615".to_vec()],
        ["\n", "18446744073709551615"], MUTATIONS, LINES;
    // Seven types are read from each message.
    mesh_message: files("mesh/1", &["json"]), JSON, MUTATIONS / 2, TREES;
    // Documents of hundreds of keys, which a build without optimisation reads in a millisecond.
    explain: explained(), JSON, MUTATIONS / 5, TREES;
    lab: files("../studies/labs", &["toml"]), TOML, MUTATIONS / 20, TREES;
    mesh_plan: vec![file("readers/mesh.toml"), file("readers/rules.toml")], TOML,
        MUTATIONS / 10, CALENDARS;
    policy: vec![file("readers/policy.toml")], TOML, MUTATIONS / 5, TREES;
    psconfig: vec![file("readers/psconfig.json")], JSON, MUTATIONS / 20, TREES;
    published: tables(), [",", "\n", "\""], MUTATIONS / 5, TREES;
    record: records(), JSON, MUTATIONS / 20, TREES;
    schedule: vec![file("readers/schedule.toml")], TOML, MUTATIONS / 5, CALENDARS;
    study: vec![file("../studies/bench-demo.toml"), file("../studies/pren.toml")], TOML,
        MUTATIONS / 50, TREES;
    // Each text is read as a dozen types.
    words: short_texts(), WORDS, MUTATIONS / 4, LINES;
}

const JSON: [&str; 10] = ["{", "}", "[", "]", ",", ":", "null", "\"\"", "[[[[[[[[", "{\"a\":"];
const TOML: [&str; 12] =
    ["[[", "]]", "[", "=", "\n", "\"", "\"\"\"", "{a=1}", "[[[[[[", "a.b.c", "1d", "# "];
const WORDS: [&str; 14] =
    [">=", "and", "or", "(", ")", "*", "%", "Mbit/s", "KiB", "/", "1e-4", "h", "ceiling", "not "];

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata")
}

fn file(name: &str) -> Vec<u8> {
    std::fs::read(folder().join(name)).expect(name)
}

/// The files of a folder whose names end so, in the order of their names.
fn files(name: &str, ends: &[&str]) -> Vec<Vec<u8>> {
    let entries = std::fs::read_dir(folder().join(name)).expect(name);
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| ends.iter().any(|it| *it == end)));
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).expect("readable")).collect()
}

/// Results of iperf3, ndt7 and ss; the last three as they once stopped their reader.
fn explained() -> Vec<Vec<u8>> {
    let mut corpus = vec![file("readers/ss.txt"), file("readers/ndt7.json")];
    corpus.extend(["tcp", "both", "udp"].map(|name| file(&format!("iperf3/{name}.json"))));
    let ss = String::from_utf8_lossy(&corpus[0]).into_owned();
    corpus.push(ss.replace("pmtu:1500", "pmtu:10").into_bytes());
    corpus.push(ss.replace("minrtt:40.1", "minrtt:999999999999999999999999").into_bytes());
    corpus.push(ss.replace("mss:1448", "mss:4294967295").into_bytes());
    corpus
}

/// The shorter ones of the published tables.
fn tables() -> Vec<Vec<u8>> {
    let mut corpus = files("../studies/data", &["csv"]);
    corpus.retain(|bytes| bytes.len() < 4000);
    assert!(corpus.len() >= 5, "{} tables", corpus.len());
    corpus
}

/// Records of the first schema.
fn records() -> Vec<Vec<u8>> {
    ["ping-1", "udp-1", "tcp-1"].map(|name| file(&format!("records/{name}.json"))).to_vec()
}

fn short_texts() -> Vec<Vec<u8>> {
    let texts: [&str; 13] = [
        "goodput >= 0.9 * ceiling",
        "rtt.p99 < 20 ms and (loss_ratio <= 0.1% or down.goodput > 10M)",
        "155.52 Mbit/s",
        "64KiB",
        "1518 bytes",
        "14.88 Mpps",
        "3/10",
        "1e-4",
        "1000km",
        "1h30m",
        "10.0.0.0/8",
        "fd00::/8",
        "9223372036854775808.8",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}

/// Sketches, a SYN, a signature and a file of a zone.
fn stored_bytes() -> Vec<Vec<u8>> {
    let mut sketch = Sketch::default();
    (1..40).for_each(|sample| sketch.record(sample * sample * 977));
    let mut frame = vec![0; 44];
    frame.extend(Signature { trial: 1, stream: 2, sequence: 3, stamp: 4 }.to_bytes());
    let syn = [
        0x45, 0, 0, 60, 0, 0, 0x40, 0, 64, 6, 0, 0, 127, 0, 0, 1, 127, 0, 0, 1, // IP
        0xc0, 0, 0x14, 0x5a, 0, 0, 0, 1, 0, 0, 0, 0, 0xa0, 0x02, 0xfa, 0xf0, 0, 0, 0,
        0, // TCP
        2, 4, 5, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7,
    ];
    // RFC 9636 §B: a zone without changes, an hour ahead.
    let head = |times: u8| {
        [&b"TZif2"[..], &[0; 15], &[0, 0, 0, 0].repeat(4), &[0, 0, 0, 1, 0, 0, 0, times]].concat()
    };
    let body = [&[0, 0, 0x0e, 0x10, 0, 0][..], b"CET\0"].concat();
    let zone = [head(4), body.clone(), head(4), body, b"\nCET-1\n".to_vec()].concat();
    vec![sketch.to_bytes(), Sketch::default().to_bytes(), frame, syn.to_vec(), zone]
}
