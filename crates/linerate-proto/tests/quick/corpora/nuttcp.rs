//! The fuzz entry of nuttcp over its corpus: as recorded, cut at every length, with bits flipped,
//! and some that are hostile on purpose.

use super::{damage, entries::nuttcp as entry};

#[test]
fn recorded_cut_and_flipped_bytes_never_panic() {
    damage::all(&super::recorded("nuttcp", 7), 64, entry::run);
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
