//! Attacks on a running `linerate serve` over TCP, beside those of
//! `linerate-server/tests/abuse*.rs`: what each comes to, that the place of a test is free again,
//! and that the server does not grow. docs/manual/serve.md has the table of all of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::support::{self, command, free_port, linerate, served_port};
use linerate_sys::clock::{monotonic, sleep};

/// Nothing here lasts as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(40);
/// Resident memory of the server under each attack, kB: what it may have with 200 idle and 20
/// active clients. An unoptimised build has 40,000 at its start.
const MEMORY_KB: u64 = 100_000;

/// A server that answers other programs' speed tests, too, whose directions last 1 s.
struct Server {
    child: Child,
    port: String,
}

impl Server {
    fn start() -> Self {
        let foreign = format!("nuttcp:{}", free_port());
        let fixed = ["serve", "-p", "0", "-B", "127.0.0.1", "--no-save", "--stamp-port", "none"];
        let mut child = command(&fixed)
            .args(["--foreign", &foreign, "--max-duration", "1s", "--log-level", "error"])
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
        let port = served_port(&mut lines);
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(format!("127.0.0.1:{}", self.port)).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
    }

    /// All that comes back for these bytes.
    fn ask(&self, bytes: &[u8]) -> String {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    fn status(&self, request: &str) -> Option<u16> {
        self.ask(request.as_bytes()).split(' ').nth(1)?.parse().ok()
    }

    /// Waits until a test has the place that an attack held.
    fn check_free(&self, after: &str) {
        let target = format!("127.0.0.1:{}", self.port);
        let words = ["tcp", &target, "-n", "10k", "--no-save", "-q", "--wait", "40s"];
        let output = linerate(&words);
        assert_eq!(output.status.code(), Some(0), "{after}: {}", support::stderr(&output));
    }

    /// proc_pid_status(5).
    fn check_memory(&self, after: &str) {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).expect("it runs");
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line");
        let peak: u64 = peak.trim().trim_end_matches(" kB").parse().expect("a number");
        assert!(peak < MEMORY_KB, "{after}: {peak} kB");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Opens a WebSocket; the key is RFC 6455's example.
fn upgrade(server: &Server, path: &str, protocol: &str) -> TcpStream {
    let mut stream = server.connect();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{protocol}\r\n"
    );
    stream.write_all(request.as_bytes()).expect("it takes a head");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        assert_eq!(stream.read(&mut byte).expect("a head"), 1, "{}", head.escape_ascii());
        head.push(byte[0]);
    }
    assert!(head.starts_with(b"HTTP/1.1 101"), "{}", head.escape_ascii());
    stream
}

fn ndt7(server: &Server, way: &str) -> TcpStream {
    let protocol = "Sec-WebSocket-Protocol: net.measurementlab.ndt.v7\r\n";
    upgrade(server, &format!("/ndt/v7/{way}"), protocol)
}

/// Writes `bytes` again and again, and takes whatever comes meanwhile, until the server ends it.
fn keep_on(mut stream: TcpStream, bytes: &[u8], pause: Duration) -> Duration {
    let since = monotonic();
    let mut reader = stream.try_clone().expect("a descriptor");
    let drain = std::thread::spawn(move || std::io::copy(&mut reader, &mut std::io::sink()));
    stream.set_write_timeout(Some(Duration::from_secs(1))).expect("a time");
    while monotonic() < since + PATIENCE && !drain.is_finished() {
        let _ = stream.write(bytes);
        sleep(pause);
    }
    let lasted = monotonic().duration_since(since);
    let _ = stream.shutdown(std::net::Shutdown::Both);
    let _ = drain.join();
    lasted
}

#[test]
fn a_websocket_that_drips_or_floods_or_does_not_read_keeps_no_place_beyond_its_time() {
    let server = Server::start();
    // A ping of 125 bytes, one of them every half second; and empty texts without end.
    let mut drips = ndt7(&server, "upload");
    drips.write_all(&[0x89, 0x80 | 125, 0, 0, 0, 0]).expect("open");
    let lasted = keep_on(drips, b"x", Duration::from_millis(500));
    assert!(lasted < PATIENCE, "a ping that does not end: {lasted:?}");
    server.check_free("a ping that does not end");
    let flood = [0x81, 0x80, 0, 0, 0, 0].repeat(10_000);
    let lasted = keep_on(ndt7(&server, "download"), &flood, Duration::ZERO);
    assert!(lasted < PATIENCE, "empty texts without end: {lasted:?}");
    server.check_free("empty texts without end");
    let deaf = ndt7(&server, "download");
    server.check_free("a client that does not read");
    drop(deaf);
    server.check_memory("WebSockets");
}

#[test]
fn frames_that_no_client_may_send_end_the_connection_and_make_nothing_grow() {
    let server = Server::start();
    let endless = [0x82, 0xff, 0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4];
    let frames: [(&str, &[u8]); 4] = [
        ("without a mask", &[0x82, 5, 1, 2, 3, 4, 5]),
        ("of 2^63 bytes", &endless),
        ("of a reserved kind", &[0x83, 0x80, 0, 0, 0, 0]),
        ("a ping in parts", &[0x09, 0x80, 0, 0, 0, 0]),
    ];
    for (name, frame) in frames {
        for path in ["/ndt/v7/upload", "/api/v1/echo"] {
            let mut stream = match path {
                "/api/v1/echo" => upgrade(&server, path, ""),
                _ => ndt7(&server, "upload"),
            };
            stream.write_all(frame).expect("open");
            let mut back = Vec::new();
            let ended = stream.read_to_end(&mut back);
            let waits = ended.is_err_and(|it| it.kind() == std::io::ErrorKind::WouldBlock);
            assert!(!waits, "{path}: a frame {name}: it stays open");
            // At most a measurement and a close.
            assert!(back.len() < 2048, "{path}: a frame {name}: {} bytes", back.len());
        }
    }
    server.check_free("frames");
    server.check_memory("frames");
}

#[test]
fn requests_that_mean_something_else_than_they_say_get_one_answer_and_nothing_of_it() {
    let server = Server::start();
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    for path in [
        "/../../../../etc/passwd",
        "/assets/../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/assets/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/results/..%2f..%2f..%2fetc%2fpasswd",
        "/api/v1/results/x/../../../../../etc/passwd",
    ] {
        let answer = server.ask(get(path).as_bytes());
        assert!(answer.starts_with("HTTP/1.1 ") && !answer.contains("root:"), "{path}: {answer}");
    }
    let answer = server.ask(get("/%0d%0aSet-Cookie:%20a=1").as_bytes());
    assert!(!answer.to_ascii_lowercase().contains("set-cookie: a"), "{answer}");
    // A second request in what the first one's length does not have (RFC 9112 §11.2).
    let second = "GET /robots.txt HTTP/1.1\r\nHost: localhost\r\n\r\n";
    for head in [
        "POST /api/v1/runs HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "POST /backend/empty.php HTTP/1.1\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        "POST /backend/empty.php HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
        "POST /api/v1/runs HTTP/1.1\r\nContent-Length: 4\r\nContent-Length: 5\r\n",
    ] {
        let request = format!("{head}Host: localhost\r\n\r\n0\r\n\r\n{second}");
        let answer = server.ask(request.as_bytes());
        assert!(!answer.contains("Disallow"), "{head}: {answer}");
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{head}: {answer}");
    }
    let post = |body: &str| {
        let head = "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";
        format!("{head}{}\r\n\r\n{body}", body.len())
    };
    let deep = ["[".repeat(60_000), "{\"streams\":".repeat(5000), "9".repeat(60_000)];
    for body in deep {
        assert_eq!(server.status(&post(&body)), Some(400), "{}", &body[..12]);
    }
    let quote = "/api/v1/results?kind=x'%20OR%20'1'='1&peer=%25';DROP%20TABLE%20record;--";
    assert!(matches!(server.status(&get(quote)), Some(200 | 404)), "a value and no statement");
    server.check_memory("requests");
}

#[test]
fn tests_that_are_begun_and_left_and_events_that_nobody_reads_cost_a_bounded_amount() {
    let server = Server::start();
    let body = r#"{"streams":1,"seconds":1,"directions":["down"]}"#;
    let head = "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: ";
    let request = format!("{head}{}\r\n\r\n{body}", body.len());
    let (mut begun, mut tickets, mut full) = (Vec::new(), 0, 0);
    for _ in 0..400 {
        let answer = server.ask(request.as_bytes());
        match answer.split(' ').nth(1) {
            Some("201") => begun.push(answer),
            Some("429") => tickets += 1,
            Some("503") => full += 1,
            _ => panic!("{answer}"),
        }
    }
    println!("400 begun and left: {} places, {tickets} tickets, {full} told to come", begun.len());
    // Each has its place until its streams had their time to come, never two at once; and one
    // address has 32 tickets that it does not show, each for 6 s.
    assert!((1..40).contains(&begun.len()) && tickets > 0 && full > 200, "{}", begun.len());
    let (_, run) = begun[0].split_once("\"events\":\"").expect("a path");
    let events = run.split('"').next().unwrap_or_default();
    let listen = format!("GET {events} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let deaf: Vec<_> = (0..300)
        .map(|_| {
            let mut stream = server.connect();
            let _ = stream.write_all(listen.as_bytes());
            stream
        })
        .collect();
    assert_eq!(server.status("GET /robots.txt HTTP/1.1\r\nHost: localhost\r\n\r\n"), Some(200));
    server.check_memory("tests that are left, events that are not read");
    drop(deaf);
    server.check_free("tests that are left");
}
