//! The fuzz entries of what this crate and the engine read by themselves, over corpora and
//! mutations of them.

use std::path::{Path, PathBuf};

use crate::mutations::{MUTATIONS, MemoryBound, Reader};

#[path = "../../../../fuzz/entries/http_status.rs"]
mod http_status;
#[path = "../../../../fuzz/entries/hub_answer.rs"]
mod hub_answer;
#[path = "../../../../fuzz/entries/mail_reply.rs"]
mod mail_reply;
#[path = "../../../../fuzz/entries/packed.rs"]
mod packed;
#[path = "../../../../fuzz/entries/tun_frame.rs"]
mod tun_frame;

/// Entries that are run here.
const ENTRIES: [&str; 5] = ["http_status", "hub_answer", "mail_reply", "packed", "tun_frame"];

/// What is allowed to be unpacked, twice while it grows, and the unpacker's tables and window.
const UNPACKED: MemoryBound = MemoryBound { base_bytes: (3 << 16) + (128 << 10), per_byte: 8 };
/// Of a reader that keeps no more than what came, copied some times by its entry.
const COPIES: MemoryBound = MemoryBound { base_bytes: 16 << 10, per_byte: 8 };
/// Of an answer: a field of its head is two words of 16 bytes, for `:` and the end of its line.
const FIELDS: MemoryBound = MemoryBound { base_bytes: 16 << 10, per_byte: 32 };

fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Bodies of a mesh.
fn bodies() -> Vec<Vec<u8>> {
    let kept = ["mesh/1/results.json", "mesh/1/plan.json", "readers/mesh.toml"];
    kept.map(|name| std::fs::read(top().join("testdata").join(name)).expect(name)).to_vec()
}

#[test]
fn packed_bodies_stay_within_what_is_allowed() {
    let mut corpus: Vec<_> = bodies().iter().map(|body| packed::packed(body)).collect();
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

#[test]
fn answers_of_a_hub_are_whole_or_none() {
    let answer = |head: &str, body: &[u8]| {
        let length = format!("Content-Length: {}\r\n\r\n", body.len());
        [b"HTTP/1.1 ", head.as_bytes(), length.as_bytes(), body].concat()
    };
    let mut corpus = vec![
        answer("200 OK\r\ncontent-type: application/json\r\n", b"{\"v\":1}"),
        answer("409 Conflict\r\n", b"{\"say\":\"no\"}"),
        answer("204 No Content\r\n", b""),
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n".to_vec(),
    ];
    let gzip = "200 OK\r\ncontent-encoding: gzip\r\nvary: accept-encoding\r\n";
    corpus.extend(bodies().iter().map(|body| answer(gzip, &packed::packed(body))));
    let reader = Reader {
        entry: "hub_answer",
        run: hub_answer::run,
        corpus,
        words: &["\r\n", "\r\n\r\n", "Content-Length: 0\r\n", "HTTP/1.1 ", ":", "+", "gzip"],
        mutations: MUTATIONS,
        memory: FIELDS,
    };
    reader.hold();
}

#[test]
fn a_status_of_http_is_the_same_however_much_of_the_answer_has_come() {
    let corpus = [
        "HTTP/1.1 204 No Content\r\nServer: x\r\n\r\n",
        "HTTP/1.0 500 Oh\r\n\r\nnothing",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 429 Later\r\n\r\n",
    ];
    let reader = Reader {
        entry: "http_status",
        run: http_status::run,
        corpus: corpus.map(|text| text.as_bytes().to_vec()).to_vec(),
        words: &["\r\n", "\r\n\r\n", "HTTP/1.1 ", "100", "199", "200", "+20", "\u{fffd}"],
        mutations: MUTATIONS,
        memory: COPIES,
    };
    reader.hold();
}

#[test]
fn replies_of_a_mail_server_are_read_within_bounds() {
    let corpus = [
        "220 relay.example ESMTP\r\n250-relay.example\r\n250-SIZE 1000\r\n250 HELP\r\n",
        "354 go on\r\n250 2.0.0 Ok: queued as 4F1\r\n221 bye\r\n",
        "550 5.1.1 <x@y>: unknown\n",
        "421-\u{1b}[2J\u{7f}\r\n421 \u{9b}31m\r\n",
    ];
    let reader = Reader {
        entry: "mail_reply",
        run: mail_reply::run,
        corpus: corpus.map(|text| text.as_bytes().to_vec()).to_vec(),
        words: &["\r\n", "\n", "250-", "250 ", "-", "\0", "\u{1b}"],
        mutations: MUTATIONS,
        memory: COPIES,
    };
    reader.hold();
}

/// A packet of so many bytes of payload for segments of 100, with its virtio header (virtio 1.2
/// §5.1.6: flags, kind, length of headers, of a segment, place of the sum and in it).
fn with_virtio(kind: u8, link: &[u8], ip: &[u8], transport: &[u8], sum_at: u16) -> Vec<u8> {
    let at = (link.len() + ip.len()) as u16;
    let fields = [at + transport.len() as u16, 100, at, sum_at].map(u16::to_ne_bytes);
    [&[1, kind][..], &fields.concat(), link, ip, transport, &[7; 250]].concat()
}

#[test]
fn packets_of_a_tun_device_are_cut_into_their_payload_once_and_in_order() {
    let v4 = |protocol| {
        let head = [0x45, 2, 1, 0x22, 0xff, 0xff, 0x40, 0, 64, protocol, 0, 0];
        [&head[..], &[10, 9, 0, 1], &[10, 9, 0, 2]].concat()
    };
    let v6 = |next| {
        let head = [0x60, 0, 0, 0, 1, 2, next, 64];
        [&head[..], &[0xfd; 16], &[0xfe; 16]].concat()
    };
    let tcp = [&[0x9c, 0x40, 0x14, 0x51][..], &[0xff; 8], &[0x50, 0x99, 1, 0, 0, 0, 0, 0]].concat();
    let udp = [0x1b, 0x58, 0x1b, 0x58, 1, 2, 0, 0];
    let ethernet = |kind: [u8; 2]| [&[2; 12][..], &kind].concat();
    let corpus = vec![
        with_virtio(0x81, &[], &v4(6), &tcp, 16),
        with_virtio(5, &[], &v6(17), &udp, 6),
        with_virtio(1, &ethernet([8, 0]), &v4(6), &tcp, 16),
        with_virtio(4, &ethernet([0x86, 0xdd]), &v6(6), &tcp, 16),
        with_virtio(0, &[], &v4(1), &udp, 2),
        with_virtio(0, &ethernet([8, 6]), &[0; 28], &[], 0),
        with_virtio(0, &[], &[v6(0), vec![58, 0, 5, 2, 0, 0, 1, 0, 143, 0]].concat(), &[], 2),
    ];
    let reader = Reader {
        entry: "tun_frame",
        run: tun_frame::run,
        corpus,
        words: &["\u{1}\u{1}", "\u{1}\u{5}", "E", "`"],
        // Each input is read, cut and summed six times.
        mutations: MUTATIONS / 2,
        memory: COPIES,
    };
    reader.hold();
}

#[test]
fn every_entry_has_its_target() {
    let manifest = std::fs::read_to_string(top().join("fuzz/Cargo.toml")).expect("the manifest");
    for entry in ENTRIES {
        let target = top().join(format!("fuzz/fuzz_targets/{entry}.rs"));
        assert!(target.exists(), "{entry} has no target");
        assert!(manifest.contains(&format!("name = \"{entry}\"")), "{entry} is no [[bin]]");
    }
}
