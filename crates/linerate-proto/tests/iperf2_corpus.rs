//! The fuzz entry of iperf2 over its corpus: as recorded, cut at every length, with bits flipped,
//! and some that are hostile on purpose.

use std::path::Path;

mod damage;
#[path = "../../../fuzz/entries/iperf2.rs"]
mod entry;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/iperf2");
    let entries = std::fs::read_dir(folder).expect("the corpus is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "bin"));
    let corpus: Vec<Vec<u8>> = files.map(|path| std::fs::read(path).expect("readable")).collect();
    assert!(corpus.len() >= 7, "{} files", corpus.len());
    corpus
}

#[test]
fn recorded_and_cut_bytes_never_panic() {
    for bytes in corpus() {
        damage::cut(&bytes, |cut| {
            entry::run(cut);
        });
    }
}

#[test]
fn flipped_bits_never_panic() {
    for bytes in corpus() {
        damage::flip(&bytes, 64, |damaged| {
            entry::run(damaged);
        });
    }
}

#[test]
fn hostile_bytes_never_panic() {
    let long_line = [vec![b'a'; 100_000], b"\n".to_vec()].concat();
    let cases: [&[u8]; 7] = [
        &[0xff; 4096],
        &[0; 4096],
        &[0x80; 4096],
        b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n",
        &b"KO\n".repeat(2000),
        &[b"HELO nuttcp v6.1.2\n", &b"\n".repeat(2000)[..]].concat(),
        &long_line,
    ];
    cases.iter().for_each(|bytes| entry::run(bytes));
}
