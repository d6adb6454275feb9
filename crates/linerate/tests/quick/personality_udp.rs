//! The command lines of nuttcp and ttcp over UDP, and their rows of intervals, against each other
//! over loopback. Tests end by counts; rates and numbers of rows are not judged.

use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{self, command, end_of, free_port, interrupt, linerate, stderr, stdout};

/// A listening command line.
struct Listening(Child);

impl Listening {
    fn start(arguments: &[&str]) -> Self {
        let piped = command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Self(piped.expect("it starts"))
    }

    /// What it prints until it ends.
    fn end(mut self) -> String {
        assert!(end_of(&mut self.0).is_some(), "it ends");
        let pipe = self.0.stdout.take().expect("a pipe");
        std::io::read_to_string(pipe).expect("text")
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Waits until a UDP port is open.
fn wait_until_open(port: &str) {
    let hex = format!(":{:04X} ", port.parse::<u16>().expect("a port"));
    for _ in 0..1500 {
        let tables = ["/proc/net/udp", "/proc/net/udp6"].map(std::fs::read_to_string);
        if tables.into_iter().flatten().any(|table| table.contains(&hex)) {
            return;
        }
        linerate_sys::clock::sleep(Duration::from_millis(10));
    }
    panic!("nobody opens UDP port {port}");
}

#[test]
fn ttcp_over_udp_has_its_lines_at_both_ends() {
    let port = free_port();
    let receiver = Listening::start(&["ttcp", "-r", "-u", "-s", "-f", "m", "-p", &port]);
    wait_until_open(&port);
    let flags = ["-t", "-u", "-s", "-f", "m", "-l", "1000", "-n", "200", "-p", &port];
    let sender = linerate(&[&["ttcp"], &flags[..], &["127.0.0.1"]].concat());
    assert!(sender.status.success(), "{}", stderr(&sender));
    let head = format!("ttcp-t: buflen=1000, nbuf=200, align=16384/0, port={port}  udp  -> 127");
    assert!(stderr(&sender).starts_with(&head), "{}", stderr(&sender));
    for (at, text) in [("ttcp-t", stdout(&sender)), ("ttcp-r", receiver.end())] {
        assert!(text.starts_with(&format!("{at}: 200000 bytes in ")), "{text}");
        assert!(
            text.contains("Mbit/sec +++") && text.contains("note: Mbit is 1024*1024"),
            "{text}"
        );
    }
}

#[test]
fn udp_with_a_ttcp_tells_what_was_sent_and_that_nobody_counted() {
    let port = free_port();
    let receiver = Listening::start(&["ttcp", "-r", "-u", "-p", &port]);
    wait_until_open(&port);
    let flags = ["udp", "--via", "ttcp", "-p", &port, "-k", "100", "-l", "500", "-b", "10M"];
    let sender = linerate(&[&flags[..], &["--no-save", "-v", "127.0.0.1"]].concat());
    let text = stdout(&sender);
    assert!(sender.status.success(), "{}", stderr(&sender));
    assert!(text.contains("the receiver does not report its count"), "{text}");
    assert!(text.contains("what arrived is not known"), "{text}");
    // 100 × 500.
    assert!(receiver.end().starts_with("ttcp-r: 50000 bytes in "));
}

#[test]
fn nuttcp_over_udp_says_what_was_lost_and_its_intervals_both_ways() {
    let port = free_port();
    let server = Listening::start(&["nuttcp", "-S", "-P", &port]);
    support::wait_until_listening(&port);
    let (port, data) = (format!("-P{port}"), format!("-p{}", free_port()));
    // 120 × 4000 bit at 1 Mbit/s take half a second; all of them fit into a receive buffer of the
    // usual size, so that none is lost where the receiver has to wait for a core.
    let fixed = ["nuttcp", &port, &data, "-u", "-n120", "-l500", "-R1m", "-i.1"];
    for flags in [&[][..], &["-r"], &["-Ri4m"]] {
        let output = linerate(&[&fixed, flags, &["127.0.0.1"]].concat());
        let text = stdout(&output);
        assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
        let (rows, last) = text.trim_end().rsplit_once("\n\n").expect("rows and a last line");
        // 60,000 of 1,048,576.
        assert!(last.starts_with("    0.0572 MB / "), "{text}");
        assert!(last.ends_with(" 0 / 120 drop/pkt 0.00 %loss"), "{text}");
        assert!(last.contains(" %TX ") && last.contains(" %RX "), "{text}");
        // An interval in which nothing came has no loss to tell, like nuttcp's.
        let lost_none = |row: &str| row.ends_with(" ~drop/pkt  0.00 ~%loss");
        let nothing_came = |row: &str| row.ends_with(" Mbps") && row.contains("  0.0000 MB / ");
        assert!(rows.lines().all(|row| lost_none(row) || nothing_came(row)), "{text}");
        assert!(rows.lines().any(lost_none), "{text}");
    }
    let flags = ["-fparse", "-f-percentloss", "127.0.0.1"];
    let output = linerate(&[&fixed[..7], &flags[..]].concat());
    let text = stdout(&output);
    assert!(text.starts_with("megabytes=0.0572 real_seconds="), "{text}");
    assert!(text.trim_end().ends_with(" drop=0 pkt=120"), "{text}");
    interrupt(&server.0);
    drop(server.end());
}

#[test]
fn nuttcp_over_tcp_prints_the_rows_of_the_server() {
    let port = free_port();
    let _server = Listening::start(&["nuttcp", "-S", "-P", &port]);
    support::wait_until_listening(&port);
    let (port, data) = (format!("-P{port}"), format!("-p{}", free_port()));
    for flags in [&["-T.6", "-i.1", "-R80m"][..], &["-T.6", "-i.1", "-R80m", "-fparse"]] {
        let output = linerate(&[&["nuttcp", &port, &data], flags, &["127.0.0.1"]].concat());
        let text = stdout(&output);
        assert!(output.status.success(), "{flags:?}: {}", stderr(&output));
        let (rows, _) = text.trim_end().rsplit_once("\n\n").expect("rows and a last line");
        let parse = flags.contains(&"-fparse");
        let shape = |row: &str| match parse {
            true => row.starts_with("megabytes=") && row.contains(" real_sec="),
            false => row.contains(" MB / ") && row.ends_with(" Mbps"),
        };
        assert!(rows.lines().all(shape), "{text}");
    }
}
