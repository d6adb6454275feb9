//! The command lines of ttcp, iperf 2 and nuttcp as a shell starts them, by command and by link,
//! against each other over loopback: the lines have the originals' shape and both ends the same
//! bytes. Rates are not judged. Those with the originals themselves are in the server's tests.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::support::{self, command, end_of, free_port, interrupt, linerate, stderr, stdout};
use serde_json::Value;

/// A listening personality, whose first line on the pipe says that it is there.
struct Listening {
    child: Child,
    port: String,
}

impl Listening {
    fn start(arguments: &[&str], port_flag: &str) -> Self {
        let listening = Self::begin(arguments, port_flag);
        support::wait_until_listening(&listening.port);
        listening
    }

    /// The same of one that listens on UDP, where a port is bound or not.
    fn start_udp(arguments: &[&str], port_flag: &str) -> Self {
        let listening = Self::begin(arguments, port_flag);
        let hex = format!(":{:04X} ", listening.port.parse::<u16>().expect("a port"));
        for _ in 0..1500 {
            let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
            if tables.into_iter().flatten().any(|table| table.contains(&hex)) {
                return listening;
            }
            linerate_sys::clock::sleep(std::time::Duration::from_millis(10));
        }
        panic!("nobody listens on UDP port {}", listening.port);
    }

    fn begin(arguments: &[&str], port_flag: &str) -> Self {
        let port = free_port();
        let child = command(arguments)
            .args([port_flag, &port])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("it starts");
        Self { child, port }
    }

    /// What it prints until it ends, asked to by Ctrl-C where `ask`.
    fn end(mut self, ask: bool) -> String {
        if ask {
            interrupt(&self.child);
        }
        assert!(end_of(&mut self.child).is_some(), "it ends");
        let pipe = self.child.stdout.take().expect("a pipe");
        let lines = BufReader::new(pipe).lines().map_while(Result::ok);
        lines.collect::<Vec<_>>().join("\n")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The first number of the line that holds `part`.
fn number(text: &str, part: &str, before: &str) -> f64 {
    let line = text.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{text}"));
    let (head, _) = line.split_once(before).unwrap_or_else(|| panic!("{line}"));
    let word = head.split_whitespace().last().unwrap_or("");
    word.parse().unwrap_or_else(|_| panic!("{word} in {line}"))
}

#[test]
fn ttcp_of_a_study_runs_from_both_ends_and_says_its_megabit_in_both_units() {
    let receiver = Listening::start(&["ttcp", "-r", "-s", "-f", "m"], "-p");
    let flags = ["-t", "-s", "-f", "m", "-l", "61440", "-n", "200", "-p", &receiver.port];
    let sender = linerate(&[&["ttcp"], &flags[..], &["127.0.0.1"]].concat());
    assert!(sender.status.success(), "{}", stderr(&sender));
    let head = format!("ttcp-t: buflen=61440, nbuf=200, align=16384/0, port={}", receiver.port);
    assert!(stderr(&sender).starts_with(&head), "{}", stderr(&sender));
    let (sent, received) = (stdout(&sender), receiver.end(false));
    for (at, text) in [("ttcp-t", &sent), ("ttcp-r", &received)] {
        assert!(text.starts_with(&format!("{at}: 12288000 bytes in ")), "{text}");
        assert!(text.contains("Mbit/sec +++") && text.contains("msec/call = "), "{text}");
    }
    // 1024 × 1024 / 10^6 = 1.048576, as far as two digits after the point go.
    let (old, new) = (number(&sent, "+++", " Mbit/sec"), number(&sent, "note:", " Mbit/s and"));
    assert!((new / old / 1.048_576 - 1.0).abs() < 1e-3, "{old} and {new}");
}

#[test]
fn a_link_named_iperf_is_iperf() {
    let server = Listening::start(&["iperf", "-s", "-y", "C"], "-p");
    let link = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("link-{}", server.port));
    std::fs::create_dir_all(&link).expect("a directory");
    let iperf = link.join("iperf");
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_linerate"), &iperf).expect("a link");
    let flags = ["-c", "127.0.0.1", "-p", &server.port, "-n", "1234567", "-y", "C"];
    let output = Command::new(&iperf).args(flags).output().expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains(",1234567,"), "{}", stdout(&output));
    let text = [&["iperf"], &flags[..6], &["-P2"]].concat();
    let output = linerate(&text);
    let printed = stdout(&output);
    assert!(printed.contains("Client connecting to 127.0.0.1, TCP port"), "{printed}");
    assert!(printed.contains("[ ID] Interval       Transfer     Bandwidth"), "{printed}");
    assert!(printed.contains("[SUM] 0.0000-"), "{printed}");
    let served = server.end(true);
    assert_eq!(served.lines().filter(|line| line.contains(",1234567,")).count(), 3, "{served}");
    std::fs::remove_dir_all(&link).expect("ours");
}

/// Per stream, as who sends to whom: the bytes and the end of its rows of intervals, and of its
/// row of all, of a server's CSV.
fn parts_and_whole(served: &str) -> Vec<[(u64, String); 2]> {
    let mut streams: Vec<(String, Vec<(String, u64)>)> = Vec::new();
    for line in served.lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let (ends, row) = (fields[1..5].join(" "), (fields[6].to_owned(), fields[7]));
        let row = (row.0, row.1.parse().expect("bytes"));
        match streams.iter_mut().find(|(other, _)| *other == ends) {
            Some((_, rows)) => rows.push(row),
            None => streams.push((ends, vec![row])),
        }
    }
    let end = |row: &(String, u64)| row.0.split('-').nth(1).expect("a span").to_owned();
    let of = |(_, mut rows): (String, Vec<(String, u64)>)| {
        let whole = rows.pop().expect("a row of all");
        let bytes = rows.iter().map(|(_, bytes)| bytes).sum();
        let last = rows.last().unwrap_or_else(|| panic!("no rows of intervals: {served}"));
        [(bytes, end(last)), (whole.1, end(&whole))]
    };
    streams.into_iter().map(of).collect()
}

#[test]
fn rows_of_an_iperf_server_add_up_to_its_sum_with_what_came_after_the_last_interval() {
    for (udp, more, streams) in [
        (false, None, 1),
        (false, Some("-R"), 1),
        (false, Some("--full-duplex"), 2),
        (true, None, 1),
    ] {
        let words = [&["iperf", "-s", "-i", "0.2", "-y", "C"][..], &["-u"][..usize::from(udp)]];
        let server = match udp {
            false => Listening::start(&words.concat(), "-p"),
            true => Listening::start_udp(&words.concat(), "-p"),
        };
        let port = server.port.clone();
        let client = ["iperf", "-c", "127.0.0.1", "-p", &port, "-t", "0.5"];
        let client = [&client[..], &["-u"][..usize::from(udp)], more.as_slice()].concat();
        let output = linerate(&client);
        assert!(output.status.success(), "{client:?}: {}", stderr(&output));
        let served = server.end(true);
        let found = parts_and_whole(&served);
        assert_eq!(found.len(), streams, "{client:?}: {served}");
        for [parts, whole] in found {
            assert_eq!(parts.1, whole.1, "they end together: {client:?}: {served}");
            // What a busy host read after a late row, although it came before, has no time left.
            let late = udp && parts.0 < whole.0;
            assert!(late || parts.0 == whole.0, "{client:?}: {served}");
        }
    }
}

#[test]
fn iperf_both_ways_by_a_connection_back_has_rows_for_both() {
    for mode in ["-d", "-r"] {
        let server = Listening::start(&["iperf", "-s"], "-p");
        let back = free_port();
        let flags = ["-c", "127.0.0.1", "-p", &server.port, "-t", "0.3", mode, "-L", &back];
        let output = linerate(&[&["iperf"], &flags[..]].concat());
        let printed = stdout(&output);
        assert!(output.status.success(), "{mode}: {}", stderr(&output));
        let rows =
            |id: &str| printed.lines().filter(|l| l.starts_with(id) && l.contains(" sec ")).count();
        assert_eq!((rows("[  1]"), rows("[ *1]")), (1, 1), "{mode}: {printed}");
    }
}

#[test]
fn iperf_over_udp_has_the_rows_and_the_report_of_the_original_whichever_way() {
    let server = Listening::start_udp(&["iperf", "-s", "-u"], "-p");
    let fixed = ["iperf", "-u", "-c", "127.0.0.1", "-p", &server.port, "-l", "1000", "-b", "10m"];
    let of = |flags: &[&str]| {
        let output = linerate(&[&fixed[..], &["-n", "100000"], flags].concat());
        assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
        stdout(&output)
    };
    // 100 datagrams and the end, which is as long as they are.
    let printed = of(&[]);
    assert!(printed.contains("Sending 1000 byte datagrams, IPG target: 800.00 us"), "{printed}");
    assert!(printed.contains("[  1] Sent 101 datagrams\n[  1] Server Report:"), "{printed}");
    assert!(printed.contains(" ms 0/101 (0%)"), "{printed}");
    let printed = of(&["-e", "--trip-times", "-P", "2"]);
    assert!(printed.contains("[SUM-2] Sent 202 datagrams"), "{printed}");
    // Both take from one budget, whoever is first.
    let delays = printed.lines().filter_map(|line| line.split_once(" (0%) "));
    let told =
        delays.filter(|(_, delays)| delays.starts_with(|first: char| first.is_ascii_digit()));
    assert_eq!(told.count(), 2, "two reports with one-way delays: {printed}");
    let printed = of(&["-R", "-y", "C"]);
    let bytes = printed.split(',').nth(7);
    assert_eq!(bytes, Some("101000"), "{printed}");
    assert!(printed.trim_end().ends_with(",0,101,0.000,0"), "{printed}");
    let printed = of(&["--full-duplex"]);
    let sent = printed.contains("[  1] Sent 101 datagrams");
    assert!(sent && printed.contains("[ *1] ") && printed.contains("0/101 (0%)"), "{printed}");
    for mode in ["-d", "-r"] {
        let back = free_port();
        let printed = of(&[mode, "-L", &back]);
        let of_id = |l: &str, id: &str| l.starts_with(id) && l.contains("0/101 (0%)");
        let rows = |id: &str| printed.lines().filter(|line| of_id(line, id)).count();
        assert_eq!((rows("[  1]"), rows("[ *1]")), (1, 1), "{mode}: {printed}");
    }
    let served = server.end(true);
    assert!(served.contains("Server listening on UDP port"), "{served}");
    // Forward, both ways at once on one stream, and -d and -r with a report each.
    let rows = served.matches(" ms 0/101 (0%)").count();
    assert!((6..=8).contains(&rows), "two more where parallel streams shared evenly: {served}");
}

#[test]
fn nuttcp_says_the_same_bytes_in_words_and_for_programs() {
    let server = Listening::start(&["nuttcp", "-S"], "-P");
    let port = format!("-P{}", server.port);
    for flags in [&["-n100", "-l8192"][..], &["-n100", "-l8192", "-r"]] {
        let output = linerate(&[&["nuttcp", &port], flags, &["127.0.0.1"]].concat());
        assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
        // 819,200 bytes are 0.78125 × 2^20.
        assert!(stdout(&output).starts_with("    0.7812 MB /   "), "{}", stdout(&output));
    }
    let output = linerate(&["nuttcp", &port, "-n100", "-l8192", "-fparse", "127.0.0.1"]);
    assert!(stdout(&output).starts_with("megabytes=0.7812 real_seconds="), "{}", stdout(&output));
    drop(server.end(true));
}

#[test]
fn mistakes_are_said_in_the_program_s_own_name_and_end_with_1() {
    let closed = free_port();
    for (arguments, code, part) in [
        (vec!["ttcp", "-t"], 1, "ttcp: -t needs a host\nUsage: ttcp "),
        (vec!["iperf"], 1, "iperf: one of -s and -c"),
        (vec!["iperf", "--foo"], 1, "iperf: unrecognized option '--foo'\nUsage: iperf ["),
        (vec!["nuttcp"], 1, "nuttcp: a host is needed, or -S\nUsage: nuttcp "),
        (vec!["nuttcp", "-xt", "h"], 1, "nuttcp: -xt: use traceroute"),
        (vec!["iperf", "-c", "127.0.0.1", "-p", &closed], 1, "refused"),
        (vec!["ttcp", "-t", "-p", &closed, "127.0.0.1"], 1, "refused"),
    ] {
        let output = linerate(&arguments);
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
        assert!(stderr(&output).contains(part), "{arguments:?}: {}", stderr(&output));
    }
}

#[test]
fn help_is_each_programs_own() {
    for (program, flags) in [("ttcp", "-h"), ("iperf", "--help"), ("nuttcp", "-h")] {
        let output = linerate(&[program, flags]);
        assert!(stdout(&output).contains(&format!("Usage: {program} ")), "{program}");
    }
}

#[test]
fn a_server_of_iperf_ends_after_its_time_or_its_clients() {
    // Without a client; and with one, whom it serves to his end.
    for flags in [&["iperf", "-s", "-t", "0.5"][..], &["iperf", "-s", "-u", "-t", "0.5"]] {
        let server = Listening::begin(flags, "-p");
        assert!(server.end(false).contains("Server listening"), "{flags:?}");
    }
    let server = Listening::start(&["iperf", "-s", "-P", "1", "-e"], "-p");
    let flags = ["iperf", "-c", "127.0.0.1", "-p", &server.port, "-n", "2m", "-l", "100k", "-e"];
    let output = linerate(&flags);
    assert!(output.status.success(), "{}", stderr(&output));
    let (sent, received) = (stdout(&output), server.end(false));
    // 2,000,000 bytes in writes of 100,000.
    let row = sent.lines().find(|line| line.contains("  20/0       "));
    assert!(row.is_some_and(|row| row.contains("K/") && row.contains(" us  ")), "{sent}");
    assert!(sent.contains("Write/Err  Rtry     Cwnd/RTT(var)        NetPwr"), "{sent}");
    assert!(received.contains("Bandwidth       Reads"), "{received}");
    let server = Listening::start_udp(&["iperf", "-s", "-u", "-P", "1"], "-p");
    let flags = ["iperf", "-u", "-c", "127.0.0.1", "-p", &server.port, "-n", "10k", "-b", "10m"];
    let output = linerate(&flags);
    assert!(stdout(&output).contains("Server Report:"), "{}", stdout(&output));
    drop(server.end(false));
}

#[test]
fn networks_that_get_udp_data_are_named_in_their_notation() {
    for arguments in [
        &["serve", "--udp-reverse-to", "lan"][..],
        &["iperf", "-s", "-u", "--udp-reverse-to", "10.0.0.0/33"],
    ] {
        let output = linerate(arguments);
        assert!(output.status.code().is_some_and(|code| code > 0), "{arguments:?}");
        let said = stderr(&output);
        assert!(said.contains("is no network; write 192.168.0.0/16"), "{arguments:?}: {said}");
    }
}

#[test]
fn nuttcp_tells_jitter_and_delay_where_the_server_receives() {
    let server = Listening::start(&["nuttcp", "-S"], "-P");
    let port = format!("-P{}", server.port);
    let of = |flags: &[&str]| {
        let output = linerate(&[&["nuttcp", &port], flags, &["127.0.0.1"]].concat());
        assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
        stdout(&output)
    };
    let figures = ["-jmax", "-omax", "-R8m", "-l1000", "-n200", "-T9"];
    let printed = of(&figures);
    let row = printed.lines().find(|line| line.contains("msAvgOWD")).expect("a result");
    let value = |name: &str| number(row, name, &format!(" {name}"));
    let jitter = ["msMinJitter", "msAvgJitter", "msMaxJitter"].map(value);
    let delay = ["msMinOWD", "msAvgOWD", "msMaxOWD"].map(value);
    for [least, mean, most] in [jitter, delay] {
        assert!(0.0 <= least && least <= mean && mean <= most, "{row}");
    }
    // 200 datagrams, a millisecond apart: gaps off by a mean of a second would last for minutes;
    // one clock tells both times, and a datagram waits for the sender's and receiver's turn alone.
    assert!(jitter[1] < 100.0 && delay[1] < 1000.0, "{row}");
    let printed = of(&["-j", "-fparse", "-R8m", "-l1000", "-n200", "-i.05"]);
    assert!(
        printed.lines().filter(|line| line.contains(" msmaxjitter=")).count() >= 2,
        "{printed}"
    );
    let output = linerate(&["nuttcp", &port, "-j", "-r", "-R8m", "-n10", "127.0.0.1"]);
    assert!(stderr(&output).contains("only a receiving server"), "{}", stderr(&output));
    drop(server.end(true));
}

/// `--foreign` with ports of its own: the server says which programs it answers.
#[test]
fn a_server_says_which_programs_it_answers() {
    let (old, text) = (free_port(), free_port());
    let list = format!("iperf2:{old},nuttcp:{text}");
    let mut child = command(&["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", &list])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pipe = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
    let said = lines.find(|line| line.contains("answers ")).expect("a line");
    assert!(said.contains(&format!("iperf2 on port {old}, nuttcp on port {text}")), "{said}");
    let output = linerate(&[
        "tcp",
        "--via",
        "iperf2",
        "-p",
        &old,
        "-n",
        "1M",
        "--no-save",
        "-v",
        "127.0.0.1",
    ]);
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.contains("via iperf2") && printed.contains("1.049 MB"), "{printed}");
    interrupt(&child);
    assert!(end_of(&mut child).is_some());
    let output = linerate(&["tcp", "--via", "pigeon", "127.0.0.1"]);
    assert!(stderr(&output).contains("one of iperf3, iperf2, nuttcp, ttcp"), "{}", stderr(&output));
    let output = linerate(&["serve", "--foreign", "iperf2:x"]);
    assert!(stderr(&output).contains("a port is 0 to 65535"), "{}", stderr(&output));
}

/// `--via iperf3` with probes, to a server of that protocol, which answers none by UDP echo.
#[test]
fn probes_beside_a_test_with_another_program_go_by_icmp() {
    let port = free_port();
    let list = format!("iperf3:{port}");
    let mut child = command(&["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", &list])
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let pipe = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(pipe).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("answers iperf3")));
    std::thread::spawn(move || lines.for_each(drop));
    let flags = ["tcp", "--via=iperf3", "-p", &port, "-t1", "-b50M", "--probes=100"];
    let output = linerate(&[&flags[..], &["--no-save", "--json", "127.0.0.1"]].concat());
    interrupt(&child);
    assert!(end_of(&mut child).is_some());
    assert!(output.status.success(), "{}", stderr(&output));
    let record: Value = serde_json::from_str(&stdout(&output)).expect("one document");
    let probes = &record["probes"];
    assert_eq!((&probes["transport"], &probes["target"]), (&"icmp".into(), &"127.0.0.1".into()));
    let rows = record["summary"].as_array().expect("a summary");
    let has = |metric: &str| rows.iter().any(|row| row["metric"] == metric);
    assert!(has("goodput_bps"));
    // Where ICMP is forbidden one line says so, and the test is made.
    match probes["silent"].as_str() {
        Some(reason) => assert!(reason.contains("ICMP"), "{reason}"),
        None => assert!(has("delay_loaded_ns") && has("responsiveness_rpm"), "{rows:?}"),
    }
}
