//! Every reader of this crate over its corpus and mutations of it: no panic, memory within a bound
//! for each byte that came, and what its entry asserts.

use super::mutations::{MUTATIONS, MemoryBound, Reader};
use super::{entries, icmp_error, recorded, seeds, stamp, test_frame};

/// Of a reader that keeps no more than what came, copied some times by its entry.
const COPIES: MemoryBound = MemoryBound { base_bytes: 16 << 10, per_byte: 8 };
/// Of a UDP test: the tracker's window of numbers has its whole size from the start.
const TRACKED: MemoryBound = MemoryBound { base_bytes: 160 << 10, per_byte: 8 };
/// Of captures: the buffer doubles, and the one before it is there until its bytes are moved.
const DOUBLED: MemoryBound = MemoryBound { base_bytes: 64 << 10, per_byte: 16 };
/// Of documents: a value of JSON takes a node of a tree, 80 bytes for the two of `0,`, and its
/// entry reads it in pieces and writes it again.
const TREES: MemoryBound = MemoryBound { base_bytes: 64 << 10, per_byte: 600 };

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

// Corpus, words, mutations, memory. A count below MUTATIONS has its reason above it: an input of a
// whole control connection or capture takes a build without optimisation that much longer.
readers! {
    chrony: seeds::chrony(), [], MUTATIONS, COPIES;
    decode: seeds::packets(), ["\x08\0", "\u{6}"], MUTATIONS, COPIES;
    echo: seeds::echoes(), ["LREq", "LREr"], MUTATIONS, COPIES;
    http_head: seeds::heads(), HEAD_WORDS, MUTATIONS, COPIES;
    icmp_error: icmp_error::messages(), [], MUTATIONS, COPIES;
    iperf2: recorded("iperf2", 7), [], MUTATIONS, COPIES;
    meet: seeds::meetings(), ["lr-meet\x01"], MUTATIONS, COPIES;
    page_datagrams: seeds::page_datagrams(), [], MUTATIONS, COPIES;
    ptp4l: recorded("ptp4l", 12), [], MUTATIONS, COPIES;
    test_frame: test_frame::corpus(), ["aa", ":", ","], MUTATIONS, COPIES;
    ttcp: seeds::lengths(), [], MUTATIONS, COPIES;
    websocket: seeds::frames(), [], MUTATIONS, COPIES;
    // Each input is packed and unpacked as base64.
    credentials: seeds::credentials(), ["\nts:   ", "\npwd:  ", "user: ", "="],
        MUTATIONS / 2, COPIES;
    // Each input has a tracker with a window of its own.
    udp: seeds::datagrams(), ["LINERUDP"], MUTATIONS / 2, TRACKED;
    // Captures have kilobytes, each read twice.
    capture: seeds::captures(), [], MUTATIONS / 2, DOUBLED;
    // Six passes over a control connection and its documents.
    iperf3: recorded("iperf3", 10), JSON_WORDS, MUTATIONS / 20, TREES;
    // Eight passes over messages with some hundred keys.
    native: seeds::native(), NATIVE_WORDS, MUTATIONS / 4, TREES;
    // Four passes over a control connection, with machines.
    nuttcp: recorded("nuttcp", 7), ["\n", "KO\n", "OK\n"], MUTATIONS / 8, COPIES;
    // Four probes are built and two requests signed for each input.
    stamp: stamp::packets(), [], MUTATIONS / 4, TRACKED;
}

const JSON_WORDS: [&str; 10] =
    ["{", "}", "[", "]", ",", ":", "null", "\"\"", "[[[[[[[[", "{\"streams\":["];
const NATIVE_WORDS: [&str; 12] = [
    "{",
    "}",
    "[",
    "]",
    "null",
    "\"up\"",
    "\"type\":\"start\"",
    "\"type\":\"stop\"",
    "\0\0\0\x0e{\"type\":\"bye\"}",
    "\"train_round\"",
    "LINERATE",
    "\"result\"",
];
const HEAD_WORDS: [&str; 12] = [
    "\r\n",
    "\n",
    "\r\n\r\n",
    "Content-Length: 3\r\n",
    "Content-Length: 4\r\n",
    "Connection: close\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Origin: null\r\n",
    "GET ",
    "?",
    "&bytes=1",
    "Sec-WebSocket-Key: ",
];
