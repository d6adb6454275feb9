//! `linerate stamp` to the reflector of `linerate serve` on loopback. Times are not judged.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{Server, check_wrong_use, command, ends_with, free_port, linerate, stderr};
use serde_json::Value;

/// A server that reflects STAMP, and the port of that.
fn reflector(flags: &[&str]) -> (Server, String) {
    let port = free_port();
    let server = Server::start(&[&["--stamp-port", &port], flags].concat());
    (server, port)
}

fn stamp(port: &str, code: i32, flags: &[&str]) -> String {
    let target = format!("127.0.0.1:{port}");
    ends_with(code, &[&["stamp", &target, "--no-save"], flags].concat())
}

fn rows<'a>(record: &'a Value, metric: &str) -> Vec<&'a Value> {
    let rows = record["summary"].as_array().expect("a summary");
    rows.iter().filter(|row| row["metric"] == metric).collect()
}

#[test]
fn each_direction_has_its_delay_loss_and_variation() {
    let (_server, port) = reflector(&[]);
    let json = stamp(&port, 0, &["--count", "40", "--interval", "2ms", "--poisson", "--json"]);
    let record: Value = serde_json::from_str(&json).expect("a record");
    let clocks = &record["clocks"][0];
    // Both ends are one host, so they have one clock.
    assert_eq!(clocks["state"], "synchronised", "{clocks}");
    assert_eq!((&clocks["stateful"], &clocks["payload_bytes"]), (&true.into(), &72.into()));
    assert!(record["plan"]["poisson_seed"].is_u64(), "the seed repeats it");
    for metric in ["owd_ns", "pdv_ns", "ipdv_ns", "jitter_rfc3550_ns", "loss_one_way_ratio"] {
        for direction in ["up", "down"] {
            let found = rows(&record, metric);
            assert!(found.iter().any(|row| row["direction"] == direction), "{metric} {direction}");
        }
    }
    // One clock, so no delay is negative, and the path is no longer than the round trip.
    let least = |metric: &str| {
        let values = rows(&record, metric).into_iter().filter(|row| row["stat"] == "min");
        values.map(|row| row["value"].as_f64().expect("a number")).fold(f64::MAX, f64::min)
    };
    assert!(least("owd_ns") >= 0.0 && least("rtt_path_ns") >= 0.0, "{json}");
    assert!(least("rtt_path_ns") <= least("rtt_ns"), "{json}");
}

#[test]
fn signed_packets_are_answered_with_the_same_key_only() {
    let directory = tempfile::tempdir().expect("a directory");
    let key = directory.path().join("key");
    let digits = "00112233445566778899aabbccddeeff";
    std::fs::write(&key, format!("{digits}\n")).expect("written");
    let key = key.to_str().expect("UTF-8");
    let (_server, port) = reflector(&["--stamp-key", key, "--stamp-stateless"]);
    let flags = ["-c5", "--rate", "500", "--size", "160,1472", "--reply-dscp", "10", "-v"];
    let text = stamp(&port, 0, &[&flags[..], &["--key", key]].concat());
    assert!(text.contains("1472 bytes: there "), "{text}");
    assert!(text.contains("the reflector does not count"), "{text}");
    let target = format!("127.0.0.1:{port}");
    let fixed = ["stamp", &target, "--no-save", "-q", "-c1", "--timeout", "100ms"];
    let other = command(&fixed).env("LINERATE_STAMP_KEY", "ff".repeat(16)).output().expect("runs");
    assert_eq!(other.status.code(), Some(1), "a wrong key is silence: {}", stderr(&other));
    let right = command(&fixed).env("LINERATE_STAMP_KEY", digits).output().expect("runs");
    assert_eq!(right.status.code(), Some(0), "{}", stderr(&right));
}

#[test]
fn a_report_prints_the_lines_of_both_directions_again() {
    let (_server, port) = reflector(&[]);
    let directory = tempfile::tempdir().expect("a directory");
    let store = directory.path().join("db").to_string_lossy().into_owned();
    let target = format!("127.0.0.1:{port}");
    ends_with(0, &["stamp", &target, "-q", "-c5", "-i5ms", "-w5s", "--store", &store]);
    let text = ends_with(0, &["report", "last", "-v", "--store", &store]);
    for part in [
        "\n  path min/avg/max",
        "\n  there min/median/",
        "\n  back  min/",
        "\n  clocks synchronised",
    ] {
        assert!(text.contains(part), "no {part:?} in {text}");
    }
}

#[test]
fn flags_are_in_the_plan() {
    let (_server, port) = reflector(&[]);
    let fixed = ["-c2", "--interval", "1ms", "--json", "--deadline", "5s", "--samples"];
    let more = ["--no-kernel-stamps", "--wait-mode", "spin", "--dscp", "46", "--bind", "127.0.0.1"];
    let record: Value =
        serde_json::from_str(&stamp(&port, 0, &[&fixed[..], &["--ecn=ect1"], &more].concat()))
            .expect("a record");
    let plan = &record["plan"];
    assert_eq!((&plan["kind"], &plan["transport"]), (&"ping".into(), &"stamp".into()));
    assert_eq!((&plan["deadline_ns"], &plan["dscp"]), (&5_000_000_000u64.into(), &46.into()));
    assert_eq!((&plan["wait"], &plan["kernel_stamps"]), (&"spin".into(), &false.into()));
    assert_eq!(record["clocks"][0]["kernel_stamps"], false);
    assert!(record["series"][0]["values"].as_array().is_some_and(|values| values.len() == 2));
    assert_eq!(plan["ecn"], "ect1");
    check_wrong_use(&["stamp", "--ipv4", "--ipv6", "127.0.0.1"], &["--ipv6"]);
    // Spinning with priority is for the asking, for two CPUs or more, and for the privileged.
    let output =
        linerate(&["stamp", "127.0.0.1", "-p", &port, "-c1", "--no-save", "--real-time", "--json"]);
    let said = stderr(&output);
    assert!(output.status.success() || said.contains("real-time priority"), "{said}");
}

#[test]
fn nobody_there_and_wrong_flags_are_told_in_one_line() {
    let output = linerate(&["stamp", "127.0.0.1", "-p", &free_port(), "-c1", "--no-save", "-q"]);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing reflects STAMP on that port"), "{}", stderr(&output));
    check_wrong_use(
        &["stamp", "127.0.0.1", "-s", "43", "-c1", "--no-save"],
        &["no room", "give 44"],
    );
    check_wrong_use(&["stamp", "127.0.0.1", "--key", "/dev/null"], &["read key", "openssl rand"]);
    check_wrong_use(&["serve", "--stamp-port", "many"], &["--stamp-port"]);
}

#[test]
fn an_answer_is_as_long_as_its_request_unless_the_operator_says_otherwise() {
    let (_server, port) = reflector(&[]);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(format!("127.0.0.1:{port}")).expect("connected");
    socket.set_read_timeout(Some(std::time::Duration::from_millis(500))).expect("set");
    let mut answers = Vec::new();
    // A busy server may answer later than the wait for it.
    for _ in 0..60 {
        // Whatever the first ones get comes before the answer to the last.
        for bytes in [13, 14, 40, 41] {
            let _ = socket.send(&vec![0; bytes]);
        }
        answers.extend(socket.recv(&mut [0; 2048]));
        if answers.len() == 3 {
            break;
        }
    }
    assert_eq!(answers, [41; 3]);
}

/// By --stamp-short what is short is answered with 44 bytes at most 1000 times a second, what is
/// not with as many as it has, and what was refused is said when the server ends.
#[test]
fn no_answer_is_an_amplifier_and_refusals_are_said_at_the_end() {
    let port = free_port();
    let flags = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"];
    let mut server = command(&[&flags[..], &["--stamp-port", &port, "--stamp-short"]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(server.stderr.take().expect("a pipe")).lines();
    assert!(lines.any(|line| line.is_ok_and(|line| line.contains("reflects STAMP"))));
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
    socket.connect(format!("127.0.0.1:{port}")).expect("connected");
    let wait = |ms| socket.set_read_timeout(Some(std::time::Duration::from_millis(ms)));
    wait(200).expect("set");
    let mut buffer = [0; 2048];
    let mut ask = |bytes: usize| {
        socket.send(&vec![0; bytes]).ok()?;
        socket.recv(&mut buffer).ok()
    };
    for bytes in [14, 43, 44, 45, 112, 1472] {
        assert_eq!(ask(bytes), Some(bytes.max(44)), "to {bytes} bytes");
    }
    assert_eq!(ask(13), None, "too short for anything");
    let mut answered = 0;
    wait(1).expect("set");
    let sent = 3_000;
    for _ in 0..sent {
        answered += usize::from(ask(20).is_some());
    }
    wait(200).expect("set");
    answered += std::iter::from_fn(|| socket.recv(&mut [0; 64]).ok()).count();
    let interrupt = ["-INT".to_owned(), server.id().to_string()];
    assert!(std::process::Command::new("kill").args(interrupt).status().expect("runs").success());
    server.wait().expect("it ends");
    let told: String = lines.map_while(Result::ok).collect();
    let refused = told.split_once("with a wrong tag, ").expect("what was refused").1;
    let refused: usize =
        refused.split(' ').next().and_then(|it| it.parse().ok()).expect("a number");
    assert!(told.contains("without an answer: 1 too short, 0 with a wrong tag"), "{told}");
    assert_eq!((answered + refused, refused > 0), (sent, true), "{told}");
}

/// A socket on a port below 1024, where this user may have one.
fn low_port() -> Option<std::net::UdpSocket> {
    (600..1024).find_map(|port| std::net::UdpSocket::bind(("127.0.0.1", port)).ok())
}

#[test]
fn ports_below_1024_have_an_answer_only_where_the_operator_says_so() {
    for (flags, is_answered) in [(&[][..], false), (&["--stamp-low-ports"][..], true)] {
        let Some(low) = low_port() else {
            println!("skipped: ports below 1024 need CAP_NET_BIND_SERVICE");
            return;
        };
        let (_server, port) = reflector(flags);
        let high = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        for socket in [&low, &high] {
            socket.connect(format!("127.0.0.1:{port}")).expect("connected");
            socket.set_read_timeout(Some(std::time::Duration::from_millis(500))).expect("set");
        }
        // Each packet of the low port comes before one of the other, whose answer tells that it
        // was taken.
        let is_taken = (0..60).any(|_| {
            for socket in [&low, &high] {
                // The refusal of the packet before is told in the place of sending this one.
                let _ = socket.send(&[0; 44]).or_else(|_| socket.send(&[0; 44]));
            }
            let is_answered = high.recv(&mut [0; 64]).is_ok();
            if !is_answered {
                // Refused at once where the reflector has not opened its port yet.
                linerate_sys::clock::sleep(std::time::Duration::from_millis(100));
            }
            is_answered
        });
        assert!(is_taken, "the reflector is there");
        assert_eq!(low.recv(&mut [0; 64]).is_ok(), is_answered, "{flags:?}");
    }
}

/// Who waits for "serving on" may send to every port at once, so it comes after the others, and
/// not at all where one of them cannot be opened.
#[test]
fn a_server_says_that_it_serves_once_all_that_it_was_asked_for_is_open() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let fixed = ["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none", "--no-save"];
    let none = ["--stamp-port", "none"];
    check_wrong_use(
        &[&fixed[..], &["--stamp-port", &port]].concat(),
        &[&format!("bind UDP 127.0.0.1:{port}: "), "--stamp-port"],
    );
    check_wrong_use(
        &[&fixed[..], &none, &["--quic-port", &port]].concat(),
        &[&format!("bind UDP 127.0.0.1:{port}: "), "--quic-port"],
    );
    let missing = ["--tls-cert", "/dev/null/missing", "--tls-key", "/dev/null/missing"];
    check_wrong_use(&[&fixed[..], &none, &missing].concat(), &["/dev/null/missing", "--tls-cert"]);

    let port = free_port();
    let mut server = command(&[&fixed[..], &["--stamp-port", &port]].concat())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the server starts");
    let mut lines = BufReader::new(server.stderr.take().expect("a pipe")).lines();
    let is_serving = |line: &String| line.contains("serving on");
    let before: Vec<String> =
        lines.by_ref().map_while(Result::ok).take_while(|line| !is_serving(line)).collect();
    let _ = server.kill();
    let _ = server.wait();
    let told = before.iter().any(|line| line.contains(&format!("STAMP on UDP port {port}")));
    assert!(told, "{before:?}");
}
