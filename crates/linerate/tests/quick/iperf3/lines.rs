//! The lines of a paced test beside those of the iperf3 on the path: the same words, units and
//! columns, and numbers within bounds that follow from the pace.

use super::peer::{Peer, has_iperf3};
use crate::support::{stderr, stdout};

/// Bit/s of each stream.
const PACE_BPS: f64 = 30e6;
/// A block, 128 KiB, at either edge of a span of two seconds is 1.7 % of 30 Mbit/s each; a busy
/// host may end a span late by several times as much.
const SPREAD: f64 = 0.15;

/// A line whose numbers are drawn as `#`, each in the width that iperf3 gives it. The unit of a
/// congestion window is the kernel's choice.
fn columns(line: &str) -> String {
    let drawn: Vec<char> = line.chars().map(|c| if c.is_ascii_digit() { '#' } else { c }).collect();
    let mut text: String = drawn.into_iter().collect();
    // Four places: 9.99, 99.9, 999.
    for number in ["#.##", "##.#", " ###"] {
        for unit in ["Bytes", "KBytes", "MBytes", "Kbits", "Mbits"] {
            text = text.replace(&format!("{number} {unit}"), &format!("#### {unit}"));
        }
    }
    // Retransmits are what the host made of it, in three places.
    if let Some(at) = text.find("bits/sec  ").map(|at| at + "bits/sec  ".len())
        && text.get(at..at + 3).is_some_and(|places| places.trim_start().starts_with('#'))
    {
        text.replace_range(at..at + 3, "###");
    }
    // A port may have another length.
    match text.contains(" port ") {
        true => text.split(' ').map(|word| word.trim_start_matches('#')).collect(),
        false => text.replace("#### KBytes       ", "#### MBytes       "),
    }
}

/// Each line's columns, and a run of rows as one: a busy host may add a short row to either, after
/// the two seconds.
fn shape(text: &str) -> Vec<String> {
    let after_the_end = |line: &&str| {
        let begin = before(line, "-").and_then(|begin| begin.parse::<f64>().ok());
        begin.is_some_and(|begin| begin > 1.9)
    };
    let mut lines: Vec<String> =
        text.lines().filter(|line| !after_the_end(line)).map(columns).collect();
    lines.dedup();
    lines
}

/// The numbers before a unit.
fn before<'a>(line: &'a str, unit: &str) -> Option<&'a str> {
    line.split(unit).next().filter(|rest| rest.len() < line.len())?.split_whitespace().last()
}

#[test]
fn the_lines_are_those_of_iperf3() {
    if !has_iperf3() {
        return;
    }
    // Side by side, since each mostly waits: a stream takes 30 Mbit/s of the loopback.
    std::thread::scope(|scope| {
        scope.spawn(|| check_lines(&["-t", "2"], 1.0));
        scope.spawn(|| check_lines(&["-t", "2", "-R"], 1.0));
        scope.spawn(|| check_lines(&["-t", "2", "-P", "2"], 2.0));
    });
}

fn check_lines(flags: &[&str], streams: f64) {
    let server = Peer::iperf3();
    let flags = [flags, &["-b", "30M"]].concat();
    let own = server.asked(&[&flags[..], &["-C", "cubic"]].concat());
    let theirs = server.asked_by_iperf3(&flags);
    assert_eq!(own.status.code(), Some(0), "{}", stderr(&own));
    let (own, theirs) = (stdout(&own), stdout(&theirs));
    let (ours, known) = (shape(&own), shape(&theirs));
    for line in &ours {
        assert!(known.contains(line), "{flags:?}: '{line}' is none of {known:#?}\n{theirs}");
    }
    for line in &known {
        assert!(ours.contains(line), "{flags:?}: '{line}' is missing in {ours:#?}\n{own}");
    }
    check_numbers(&own, streams);
}

/// What the lines of a test at the pace say.
fn check_numbers(text: &str, streams: f64) {
    let ends = text.lines().filter(|line| line.ends_with("sender") || line.ends_with("receiver"));
    let ends: Vec<&str> = ends.collect();
    assert!(!ends.is_empty(), "{text}");
    for line in ends {
        let expected = if line.starts_with("[SUM]") { streams } else { 1.0 } * PACE_BPS;
        let bps = before(line, " Mbits/sec").and_then(|text| text.parse::<f64>().ok());
        let bps = bps.unwrap_or_else(|| panic!("no rate in '{line}'")) * 1e6;
        assert!((bps / expected - 1.0).abs() < SPREAD, "{bps} beside {expected}: {line}\n{text}");
        let bytes = before(line, " MBytes").and_then(|text| text.parse::<f64>().ok());
        let bytes = bytes.unwrap_or_else(|| panic!("no amount in '{line}'")) * 1_048_576.0;
        let span = before(line, "sec").and_then(|span| span.split_once('-'));
        let (begin, end) = span.unwrap_or_else(|| panic!("no span in '{line}'"));
        let seconds = end.parse::<f64>().expect("a number") - begin.parse::<f64>().expect("one");
        assert!((1.9..2.4).contains(&seconds), "{line}");
        // Three places of each number.
        assert!((bytes * 8.0 / seconds / bps - 1.0).abs() < 0.02, "{line}");
    }
}
