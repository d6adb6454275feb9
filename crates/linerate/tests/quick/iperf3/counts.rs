//! What both ends count, over TCP and UDP, in every direction.

use serde_json::Value;

use super::peer::{Peer, bytes, has_iperf3, json};
use crate::support::{linerate, stderr, stdout};

/// One thread of 3.12 sends and reads in turn. What its kernel has acknowledged may be unread when
/// the end is announced: at most a receive buffer a stream, 32 MiB on tuned hosts. That both ends
/// count the same where both read to the end is held exactly, in simulated time
/// (`flow::tests::iperf3`).
const UNREAD: u64 = 32 << 20;

/// Of all streams of a test of [`MATRIX`].
fn unread(flags: &[&str]) -> u64 {
    if flags.contains(&"-P") { 2 * UNREAD } else { UNREAD }
}

/// The tests that every pair of programs runs: each direction, parallel, by bytes and by blocks.
const MATRIX: [&[&str]; 6] = [
    &["-t", "1"],
    &["-t", "1", "-R"],
    &["-t", "1", "-P", "2", "--bidir"],
    &["-n", "10000019"],
    &["-k", "70", "-l", "10000"],
    &["-t", "1", "-b", "50000000", "-w", "65536", "-M", "1000", "-N", "-R"],
];

#[test]
fn a_server_of_iperf3_counts_what_this_client_counts() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    for flags in MATRIX {
        let record = server.measured(flags);
        assert_eq!(record["status"], "ok", "{flags:?}");
        assert_eq!(record["plan"]["via"], "iperf3");
        for flow in record["flows"].as_array().expect("flows") {
            let bytes = |end: &str| flow[end]["bytes"].as_u64().expect("both ends tell");
            let (sent, counted) = (bytes("sender"), bytes("receiver"));
            let said = format!("{flags:?}: {sent} sent, {counted} counted: {flow}");
            assert!(counted > 0 && (counted..=counted + UNREAD).contains(&sent), "{said}");
            // Whole blocks, 20 of 512 KiB for the amount, as iperf3 sends them.
            match flags {
                ["-n", _] => assert_eq!(sent, 20 << 19, "{said}"),
                ["-k", ..] => assert_eq!(sent, 700_000, "{said}"),
                _ => {}
            }
        }
    }
}

#[test]
fn a_client_of_iperf3_counts_what_this_server_counts() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::serve(&["--max-tests=1"]);
    for flags in MATRIX {
        let document = json(&server.asked_by_iperf3(&[flags, &["-J"]].concat()));
        let (sent, received) = bytes(&document, "");
        if flags.contains(&"-t") || flags.contains(&"-R") {
            // iperf3 leaves what is on the way at its end unread, and uncounted.
            assert!(
                (received..=received + unread(flags)).contains(&sent),
                "{flags:?}: {received} of {sent}"
            );
        } else {
            assert_eq!(sent, received, "{flags:?}");
        }
        if flags.contains(&"--bidir") {
            let (sent, received) = bytes(&document, "_bidir_reverse");
            assert!(
                (received..=received + unread(flags)).contains(&sent),
                "{flags:?}: {received} of {sent}"
            );
        }
    }
    let output = server.asked_by_iperf3(&["-n", "1000000", "--get-server-output"]);
    assert!(stdout(&output).contains("Server output:\nAccepted connection from 127.0.0.1"));
}

#[test]
fn what_a_server_printed_is_shown_to_those_who_asked() {
    if !has_iperf3() {
        return;
    }
    // Once anybody has asked, a server of 3.12 sends it to everybody.
    let server = Peer::iperf3();
    for (flags, shown) in [
        (&["-n", "1M", "--get-server-output"][..], true),
        (&["-n", "1M"], false),
        (&["-u", "-k", "5"], false),
    ] {
        let output = server.asked(flags);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        assert_eq!(stdout(&output).contains("Server output"), shown, "{flags:?}");
    }
}

/// The tests over UDP that every pair of programs runs: 250 datagrams of 200 bytes in a second, and
/// 50 of 1000. What a stream sends fits in a receive buffer of the kernel's default size, so that
/// nothing is lost whoever reads late.
const UDP_MATRIX: [&[&str]; 4] = [
    &["-b", "400000", "-l", "200", "-t", "1"],
    &["-b", "400000", "-l", "200", "-t", "1", "-R"],
    &["-b", "400000", "-l", "200", "-t", "1", "-P", "2", "--bidir"],
    &["-b", "800000", "-l", "1000", "-n", "50000"],
];

/// What may be on the way, unread, where iperf3 ends a test: half of it, as on a host that is half
/// a second late. To the datagram it is held in simulated time.
const UDP_UNREAD: u64 = 25_000;

#[test]
fn datagrams_to_and_from_a_server_of_iperf3_are_counted_alike() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    for flags in UDP_MATRIX {
        let base = ["udp", "127.0.0.1", "--via", "iperf3", "--no-save", "--json", "--port"];
        let output = linerate(&[&base[..], &[server.ready()], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        let record: Value = serde_json::from_slice(&output.stdout).expect("one document");
        assert_eq!(record["plan"]["via"], "iperf3");
        for flow in record["flows"].as_array().expect("flows") {
            let bytes = |end: &str| flow[end]["bytes"].as_u64().expect("both ends tell");
            // What a server of iperf3 sends after the end was asked for may miss the results.
            let differ = bytes("sender").abs_diff(bytes("receiver"));
            assert!(differ <= UDP_UNREAD && bytes("sender") >= UDP_UNREAD, "{flags:?}: {flow}");
        }
    }
}

#[test]
fn datagrams_to_and_from_a_client_of_iperf3_are_counted_alike() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::serve(&[]);
    for flags in UDP_MATRIX {
        let document = json(&server.asked_by_iperf3(&[&["-u", "-J"], flags].concat()));
        let endings: &[&str] =
            if flags.contains(&"--bidir") { &["", "_bidir_reverse"] } else { &[""] };
        for ending in endings {
            let (sent, received) = bytes(&document, ending);
            let lost = &document["end"][format!("sum_received{ending}")]["lost_packets"];
            assert_eq!(lost.as_i64(), Some(0), "{flags:?}");
            // The client leaves what is on the way at its end unread.
            let streams = if flags.contains(&"-P") { 2 } else { 1 };
            let within = received <= sent && sent - received <= streams * UDP_UNREAD;
            assert!(within && sent >= streams * UDP_UNREAD, "{flags:?}: {document}");
        }
    }
    let flags = ["-u", "-b", "10M", "-t", "1", "-O", "1", "--udp-counters-64bit", "-J"];
    let document = json(&server.asked_by_iperf3(&flags));
    // 10 Mbit/s are 19 datagrams of 65483 bytes, 38 of the 32768 of newer ones; four at either end.
    // A counter read at the wrong width is 0 or huge.
    let sum = &document["end"]["sum_received"];
    let size = document["start"]["test_start"]["blksize"].as_f64().expect("a size");
    let count = sum["packets"].as_f64().expect("counted");
    assert!((count - 10e6 / 8.0 / size).abs() <= 4.0, "{count} of {size} bytes: {sum}");
}

#[test]
fn a_client_with_udp_counts_datagrams() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    let flags = ["--udp", "--bitrate=1M", "--blockcount=50", "--udp-counters-64bit", "-J"];
    let document = json(&server.asked(&flags));
    assert_eq!(document["start"]["test_start"]["protocol"], "UDP");
    assert_eq!(document["end"]["sum"]["packets"], 50);
}

#[test]
fn omitted_datagrams_of_a_server_of_iperf3_are_not_lost_ones() {
    if !has_iperf3() {
        return;
    }
    let server = Peer::iperf3();
    let flags = ["-u", "-b", "400K", "-l", "200", "-t", "1", "-O", "1", "-R", "-J"];
    let document = json(&server.asked(&flags));
    let sum = &document["end"]["sum_received"];
    // 250 datagrams in a second; those of the omitted one are another 250. Either second may end
    // half a second late, and 500 or 0 would be a count that takes the wrong ones.
    let (lost, all) = (sum["lost_packets"].as_i64(), sum["packets"].as_i64());
    let all = all.expect("counted");
    assert!((125..=375).contains(&all) && lost == Some(0), "{sum}");
}
