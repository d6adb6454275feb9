//! The fuzz entry of iperf3 over its corpus: as recorded, cut at every length, with bits
//! flipped, and some that are hostile on purpose.

use std::path::Path;

mod damage;
#[path = "../../../fuzz/entries/iperf3.rs"]
mod entry;

fn corpus() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/iperf3");
    let entries = std::fs::read_dir(folder).expect("the corpus is there");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let files = paths.filter(|path| path.extension().is_some_and(|end| end == "bin"));
    let corpus: Vec<Vec<u8>> = files.map(|path| std::fs::read(path).expect("readable")).collect();
    assert!(corpus.len() >= 10, "{} files", corpus.len());
    corpus
}

#[test]
fn recorded_bytes_end_in_events() {
    corpus().iter().for_each(|bytes| entry::run(bytes));
}

#[test]
fn cut_bytes_never_panic() {
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
    let deep = [b"{\"streams\":".to_vec(), vec![b'['; 100_000]].concat();
    let framed = |text: &[u8]| {
        let length = u32::try_from(text.len()).expect("short").to_be_bytes();
        [&length[..], text].concat()
    };
    let numbers = br#"{"tcp":true,"time":1e308,"num":-1,"parallel":18446744073709551615}"#;
    let cases: [&[u8]; 8] = [
        &[0xff; 4096],
        &[0; 4096],
        b"GET / HTTP/1.1\r\nHost: example.net\r\n\r\n",
        &framed(&deep),
        &framed(numbers),
        &framed(b"[]"),
        &framed(b"{\"streams\":[{\"id\":-1}]}"),
        &[9, 10, 1, 2, 13, 0xff, 0xff, 0xff, 0xff],
    ];
    cases.iter().for_each(|bytes| entry::run(bytes));
}
