//! The fuzz entry of iperf3 over its corpus: as recorded, cut at every length, with bits
//! flipped, and some that are hostile on purpose.

use super::{damage, entries::iperf3 as entry};

#[test]
fn recorded_cut_and_flipped_bytes_never_panic() {
    damage::all(&super::recorded("iperf3", 10), 64, entry::run);
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
