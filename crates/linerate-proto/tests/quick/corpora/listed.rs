//! Each public function of this crate that is handed bytes is run by an entry of `fuzz/entries`, or
//! has a reason why not.

use std::path::{Path, PathBuf};

use super::readers::ENTRIES;

/// Where an entry calls what a file's function reads: file, function, entry.
const READERS: &[(&str, &str, &str)] = &[
    ("capture/parser.rs", "parse_record", "capture"),
    ("capture/parser.rs", "check_end", "capture"),
    ("chrony.rs", "parse", "chrony"),
    ("datagrams/wire.rs", "parse", "page_datagrams"),
    ("echo/icmp_probe.rs", "answered", "echo"),
    ("echo/marks.rs", "read", "echo"),
    ("echo/syn_probe.rs", "answered", "echo"),
    ("echo/udp.rs", "answered", "echo"),
    ("echo/udp.rs", "read_answer", "echo"),
    ("echo/udp.rs", "from_answer", "echo"),
    ("echo/udp.rs", "are_requested", "echo"),
    ("echo/udp.rs", "write", "echo"),
    ("echo/udp.rs", "write_class", "echo"),
    ("echo/udp.rs", "class_asked", "echo"),
    ("echo/udp.rs", "class_of_question", "echo"),
    ("echo/udp.rs", "answer_in_place", "echo"),
    ("frame/checksum.rs", "verifies", "echo"),
    ("frame/icmp.rs", "parse_reply", "echo"),
    ("http/head.rs", "start_of", "http_head"),
    ("http/head.rs", "parse", "http_head"),
    ("http/websocket.rs", "parse", "websocket"),
    ("icmp_error/extension.rs", "labels", "icmp_error"),
    ("icmp_error/mod.rs", "parse", "icmp_error"),
    ("icmp_error/quote.rs", "parse", "icmp_error"),
    ("icmp_error/quote.rs", "read", "icmp_error"),
    ("iperf2/answer.rs", "parse", "iperf2"),
    ("iperf2/bounce.rs", "parse", "iperf2"),
    ("iperf2/datagram.rs", "from_first_datagram", "iperf2"),
    ("iperf2/datagram.rs", "parse", "iperf2"),
    ("iperf2/datagram.rs", "write", "iperf2"),
    ("iperf2/header.rs", "opening", "iperf2"),
    ("iperf2/proof.rs", "cookie", "iperf2"),
    ("iperf2/proof.rs", "answered_cookie", "iperf2"),
    ("iperf2/report.rs", "parse", "iperf2"),
    ("iperf2/udp.rs", "count_datagram", "iperf2"),
    ("iperf2/udp_opening.rs", "from_first_datagram", "iperf2"),
    ("iperf2/udp_opening.rs", "add_datagram", "iperf2"),
    ("iperf2/udp_opening.rs", "asks_to_receive", "iperf2"),
    ("iperf2/udp_tally.rs", "from_first_datagram", "iperf2"),
    ("iperf2/udp_tally.rs", "count_datagram", "iperf2"),
    ("iperf3/client_order.rs", "push", "iperf3"),
    ("iperf3/cookie.rs", "parse", "iperf3"),
    ("iperf3/credentials.rs", "parse", "credentials"),
    ("iperf3/credentials.rs", "has_digest", "credentials"),
    ("iperf3/datagram.rs", "is_connect_reply", "iperf3"),
    ("iperf3/datagram.rs", "parse", "iperf3"),
    ("iperf3/params.rs", "parse", "iperf3"),
    ("iperf3/results.rs", "parse", "iperf3"),
    ("iperf3/server_order.rs", "push", "iperf3"),
    ("meet.rs", "decode", "meet"),
    ("meet.rs", "handle", "meet"),
    ("native/login.rs", "matching_digest", "native"),
    ("native/trains.rs", "parse", "udp"),
    ("native/udp.rs", "parse", "udp"),
    ("native/udp_status.rs", "parse", "udp"),
    ("native/wire.rs", "parse", "native"),
    ("native/wire.rs", "parse_rest", "native"),
    ("native/wire.rs", "push", "native"),
    ("nuttcp/lines.rs", "push", "nuttcp"),
    ("nuttcp/udp.rs", "parse", "nuttcp"),
    ("nuttcp/udp.rs", "announced", "nuttcp"),
    ("nuttcp/udp.rs", "sent_us", "nuttcp"),
    ("nuttcp/udp.rs", "is_swapped", "nuttcp"),
    ("nuttcp/udp.rs", "count_datagram", "nuttcp"),
    ("ptp4l.rs", "add_answer", "ptp4l"),
    ("stamp/packet.rs", "read", "stamp"),
    ("stamp/probe.rs", "answered", "stamp"),
    ("stamp/reflector.rs", "prepare", "stamp"),
    ("stamp/reflector.rs", "finish", "stamp"),
    ("stamp/time.rs", "decode", "stamp"),
    ("stamp/time.rs", "read", "stamp"),
    ("stamp/tlv.rs", "new", "stamp"),
    ("test_frame/foreign.rs", "from_frame", "test_frame"),
    ("test_frame/neighbours.rs", "answer", "test_frame"),
    ("test_frame/neighbours.rs", "announced_mac", "test_frame"),
];

/// Functions that are handed bytes of this program's own: file, function, whose.
const OWN: &[(&str, &str, &str)] = &[
    ("digest.rs", "sha256", "texts of any kind, once they were read"),
    ("frame/checksum.rs", "from_bytes", "a sum over whatever was read"),
    ("iperf2/bounce.rs", "write_server_times", "writes"),
    ("iperf2/proof.rs", "put_cookie", "writes"),
    ("iperf2/udp.rs", "stamp_datagram", "writes"),
    ("iperf2/udp.rs", "stamp_end", "writes"),
    ("iperf2/udp_client.rs", "end_datagram", "writes"),
    ("iperf3/cookie.rs", "from_random", "random numbers of this host"),
    ("iperf3/credentials.rs", "to_base64", "writes"),
    ("iperf3/datagram.rs", "write", "writes"),
    ("native/pattern.rs", "compare", "compares byte by byte, and reads none as a number"),
    ("native/pattern.rs", "fill_bytes", "writes"),
    ("nuttcp/udp.rs", "stamp_datagram", "writes"),
    ("stamp/packet.rs", "write", "writes"),
];

/// Public functions that are handed bytes, by file and name.
fn found() -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    for path in sources(&root) {
        let text = std::fs::read_to_string(&path).expect("readable");
        let file = path.strip_prefix(&root).expect("below it").display().to_string();
        let product = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        for rest in product.split("pub fn ").chain(product.split("pub const fn ")).skip(1) {
            let (name, rest) = rest.split_once('(').unwrap_or_default();
            let until = rest.find(['{', ';']).unwrap_or(rest.len());
            let parameters = rest[..rest[..until].rfind(" -> ").unwrap_or(until)].to_owned();
            let name = name.split('<').next().unwrap_or_default();
            let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if is_name && parameters.contains("[u8") {
                found.push((file.clone(), name.to_owned()));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of sources");
    let paths = entries.map(|entry| entry.expect("readable").path());
    let each = |path: PathBuf| if path.is_dir() { sources(&path) } else { vec![path] };
    paths.flat_map(each).filter(|path| !path.ends_with("tests.rs")).collect()
}

#[test]
fn every_function_that_is_handed_bytes_is_run_by_an_entry() {
    let has = |list: &[(&str, &str, &str)], file: &str, name: &str| {
        list.iter().any(|row| (row.0, row.1) == (file, name))
    };
    let found = found();
    let missing =
        found.iter().filter(|(file, name)| !has(READERS, file, name) && !has(OWN, file, name));
    let missing: Vec<_> = missing.map(|(file, name)| format!("{file}: {name}")).collect();
    assert!(missing.is_empty(), "without an entry in fuzz/entries: {missing:#?}");
    for (file, name, _) in READERS.iter().chain(OWN) {
        let known = found.iter().any(|it| (it.0.as_str(), it.1.as_str()) == (*file, *name));
        assert!(known, "{file} has no {name}: take it out of the list");
    }
}

#[test]
fn every_entry_is_run_and_calls_what_it_is_listed_for() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/entries");
    for (file, name, entry) in READERS {
        assert!(ENTRIES.contains(entry), "{entry} is no reader of readers.rs");
        let text = std::fs::read_to_string(folder.join(format!("{entry}.rs"))).expect(entry);
        let calls = [format!("{name}("), format!("{name},")];
        assert!(calls.iter().any(|it| text.contains(it)), "{entry} does not call {file}'s {name}");
    }
    let targets = folder.join("../fuzz_targets");
    let manifest = std::fs::read_to_string(folder.join("../Cargo.toml")).expect("the manifest");
    for entry in ENTRIES {
        assert!(targets.join(format!("{entry}.rs")).exists(), "{entry} has no target");
        assert!(manifest.contains(&format!("name = \"{entry}\"")), "{entry} is no [[bin]]");
    }
}
