//! What a client of the own protocol can cost or say, over loopback: one that is silent, one that
//! never ends, one that writes control characters, one of a newer version.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Duration;

use linerate_core::record::{
    Direction, Event, Fault, Finish, ServerPlan, TcpDirections, TcpPlan, TcpTest, Tool,
};
use linerate_engine::context::Context;
use linerate_engine::throughput;
use linerate_proto::native::{
    DataHello, Decoder, Hello, HelloKind, Message, NativeTcpTestRequest, Token, VERSION,
};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

/// Nothing here takes as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// Runs `test` against a server on a free loopback port; the lines of its log.
fn with_server(limits: ServerLimits, test: impl FnOnce(SocketAddr)) -> Vec<String> {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let server =
        MeasurementServer::bind(&ServeOptions { local, limits, foreign: Foreign::without_ports() })
            .expect("a free port");
    let address = server.local_addr().expect("bound");
    let (stop, lines) = (Stop::new(), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        let log = |entry: &LogEntry<'_>| {
            lines.lock().expect("nobody panicked").push(entry.line.to_owned());
        };
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &log));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(address)));
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
    lines.into_inner().expect("nobody panicked")
}

/// A client that writes what it likes.
struct Client {
    control: TcpStream,
    decoder: Decoder,
}

impl Client {
    fn hello(server: SocketAddr, version: u16) -> (Self, Hello) {
        let control = TcpStream::connect(server).expect("the server listens");
        control.set_read_timeout(Some(PATIENCE)).expect("a time");
        let hello = Hello { version, kind: HelloKind::Control };
        (&control).write_all(&hello.to_bytes()).expect("sent");
        let mut answer = [0; 16];
        (&control).read_exact(&mut answer).expect("a hello");
        let client = Self { control, decoder: Decoder::default() };
        (client, Hello::parse(&answer).expect("a hello"))
    }

    fn json(&self, json: &str) {
        let length = u32::try_from(json.len()).expect("short").to_be_bytes();
        (&self.control).write_all(&[&length, json.as_bytes()].concat()).expect("sent");
    }

    fn next(&mut self) -> io::Result<Message> {
        loop {
            if let Ok(Some(message)) = self.decoder.next_message() {
                return Ok(message);
            }
            let mut bytes = [0; 4096];
            match self.control.read(&mut bytes)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.decoder.push(&bytes[..count]),
            }
        }
    }

    /// Asks for a test, connects its stream with a hello of `version` and starts.
    fn start(&mut self, server: SocketAddr, request: &str, version: u16) -> TcpStream {
        self.json(request);
        let Message::Accept(accept) = self.next().expect("an answer") else { panic!("a yes") };
        let direction = if request.contains("\"up\"") { Direction::Up } else { Direction::Down };
        let token = Token::from_hex(&accept.token).expect("32 digits");
        let mut bytes = DataHello { token, stream: 0, direction }.to_bytes();
        bytes[8..10].copy_from_slice(&version.to_be_bytes());
        let data = TcpStream::connect(server).expect("the server listens");
        (&data).write_all(&bytes).expect("sent");
        assert_eq!(self.next().expect("an answer"), Message::Ready);
        self.json(r#"{"type":"start"}"#);
        data
    }

    /// Whether the server's account comes before the client's patience is over.
    fn is_told_the_result(&mut self) -> bool {
        loop {
            match self.next() {
                Ok(Message::Result { .. }) => return true,
                Ok(_) => {}
                Err(_) => return false,
            }
        }
    }

    /// The words with which the server ends a test before its end.
    fn is_told_why(&mut self) -> Option<String> {
        loop {
            match self.next() {
                Ok(Message::Abort { reason }) => return Some(reason),
                Ok(_) => {}
                Err(_) => return None,
            }
        }
    }
}

/// A request for bytes that no test can send.
fn endless(directions: TcpDirections) -> String {
    let test = TcpTest { directions, finish: Finish::Bytes(1 << 60), ..TcpTest::default() };
    let test = TcpTest { interval_ns: 50_000_000, ..test };
    let request = NativeTcpTestRequest { test, ..NativeTcpTestRequest::default() };
    serde_json::to_string(&Message::Request(request)).expect("plain data")
}

#[test]
fn a_connection_that_does_not_say_what_it_is_is_closed_in_time() {
    let limits = ServerLimits { hello: Duration::from_millis(100), ..ServerLimits::default() };
    let said = with_server(limits, |server| {
        let whole = Hello::new(HelloKind::Data).to_bytes();
        for sent in [&[][..], &whole[..7], &whole] {
            let mut client = TcpStream::connect(server).expect("the server listens");
            client.set_read_timeout(Some(PATIENCE)).expect("a time");
            client.write_all(sent).expect("sent");
            let closed = match client.read(&mut [0; 16]) {
                Ok(count) => count == 0,
                Err(error) => error.kind() == io::ErrorKind::ConnectionReset,
            };
            assert!(closed, "{} bytes of a hello", sent.len());
        }
    });
    assert_eq!(said.len(), 3, "{said:?}");
    // spec/native.md: "A hello has 5 s to arrive whole."
    assert_eq!(ServerLimits::default().hello, Duration::from_secs(5));
}

#[test]
fn a_server_stops_sending_by_itself_when_its_longest_time_is_over() {
    let duration = Duration::from_millis(200);
    // Were the streams only cut off at the very end, it would be after a minute.
    let limits =
        ServerLimits { duration, grace: Duration::from_secs(60), ..ServerLimits::default() };
    with_server(limits, |server| {
        let (mut client, _) = Client::hello(server, VERSION);
        let mut data = client.start(server, &endless(TcpDirections::Down), VERSION);
        let reader = std::thread::spawn(move || io::copy(&mut data, &mut io::sink()));
        assert_eq!(client.is_told_why().as_deref(), Some("a test sends no longer than 0.2 s"));
        assert!(reader.join().expect("no panic").is_ok_and(|bytes| bytes > 0));
    });
}

#[test]
fn a_client_that_never_stops_sending_is_cut_off() {
    let duration = Duration::from_millis(200);
    let limits =
        ServerLimits { duration, grace: Duration::from_millis(300), ..ServerLimits::default() };
    with_server(limits, |server| {
        let (mut client, _) = Client::hello(server, VERSION);
        let mut data = client.start(server, &endless(TcpDirections::Up), VERSION);
        let writer = std::thread::spawn(move || {
            let end = monotonic() + PATIENCE;
            while monotonic() < end && data.write_all(&[7; 1000]).is_ok() {
                sleep(Duration::from_millis(5));
            }
        });
        assert_eq!(client.is_told_why().as_deref(), Some("a test sends no longer than 0.2 s"));
        writer.join().expect("no panic");
    });
}

/// A message of a type that no version knows, named to hurt a terminal and a log.
const HOSTILE: &str = r#"{"type":"a\u001b[2J\u0007\n2026 all is well"}"#;

fn is_one_plain_line(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[test]
fn control_characters_of_a_client_do_not_reach_the_servers_log_or_come_back() {
    let said = with_server(ServerLimits::default(), |server| {
        let (mut client, _) = Client::hello(server, VERSION);
        client.json(HOSTILE);
        let answer = client.next();
        let Ok(Message::Abort { reason }) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("all is well") && is_one_plain_line(&reason), "{reason:?}");
    });
    assert!(said.iter().any(|line| line.contains("all is well")), "{said:?}");
    assert!(said.iter().all(|line| is_one_plain_line(line)), "{said:?}");
}

#[test]
fn a_connection_without_a_byte_is_no_line_of_the_log_and_half_a_hello_is_one() {
    let said = with_server(ServerLimits::default(), |server| {
        for bytes in [&b""[..], b"", b"half"] {
            let mut client = TcpStream::connect(server).expect("the server listens");
            client.set_read_timeout(Some(PATIENCE)).expect("a time");
            client.write_all(bytes).expect("sent");
            client.shutdown(Shutdown::Write).expect("connected");
            // The server closes it, too.
            assert_eq!(client.read(&mut [0; 16]).unwrap_or(0), 0);
        }
    });
    let [line] = &said[..] else { panic!("{said:?}") };
    assert!(line.contains("closed the connection without a hello"), "{line}");
}

fn measure(server: SocketAddr) -> linerate_core::record::Record {
    let plan = TcpPlan {
        server: ServerPlan::new(None, server.ip().to_string(), server.port()),
        test: TcpTest { finish: Finish::TimeNs(200_000_000), ..TcpTest::default() },
        ..TcpPlan::default()
    };
    let tool = Tool { name: "linerate".to_owned(), version: "test".to_owned() };
    let mut context = Context { tool, stop: Stop::new(), watch: &mut |_: &Event| {} };
    throughput::run_tcp(&plan, &mut context)
}

/// A server that greets with `version` and answers the request with `answer`.
fn server_that_answers(version: u16, answer: String) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("bound");
    std::thread::spawn(move || {
        let (mut control, _) = listener.accept().expect("the client connects");
        let mut hello = [0; 16];
        control.read_exact(&mut hello).expect("a hello");
        let own = Hello { version, kind: HelloKind::Control };
        control.write_all(&own.to_bytes()).expect("sent");
        let length = u32::try_from(answer.len()).expect("short").to_be_bytes();
        let _ = control.write_all(&[&length, answer.as_bytes()].concat());
        let _ = control.read(&mut [0; 4096]);
        sleep(Duration::from_millis(100));
    });
    address
}

#[test]
fn control_characters_of_a_server_do_not_reach_the_message() {
    let reason = r#""reason":"no\u001b[2J\nall is well""#;
    for answer in [
        HOSTILE.to_owned(),
        format!(r#"{{"type":"refuse","code":"unable",{reason},"retry_after_ms":null}}"#),
        format!(r#"{{"type":"abort",{reason}}}"#),
    ] {
        let record = measure(server_that_answers(VERSION, answer));
        let failure = record.failure.as_ref().expect("no test").to_string();
        assert!(failure.contains("all is well") && is_one_plain_line(&failure), "{failure:?}");
    }
}

#[test]
fn a_busy_server_is_told_from_one_that_refuses_by_a_value_and_not_by_its_words() {
    let answer = |code: &str, ms: &str| {
        let reason = r#""reason":"try again""#;
        format!(r#"{{"type":"refuse","code":"{code}",{reason},"retry_after_ms":{ms}}}"#)
    };
    let day = Some(86_400_000);
    let cases = [
        ("busy", "1500", Some(1500)),
        // 2^64 - 1: no server can mean 585 million years.
        ("busy", "18446744073709551615", day),
        ("limit", "null", None),
        ("unable", "null", None),
    ];
    for (code, ms, expected) in cases {
        let record = measure(server_that_answers(VERSION, answer(code, ms)));
        let failure = record.failure.expect("no test");
        assert_eq!((failure.fault, failure.retry_after_ms), (Fault::PeerRefused, expected));
    }
}

#[test]
fn a_refusal_of_a_megabyte_is_cut() {
    let reason = "word ".repeat(180_000);
    let answer =
        format!(r#"{{"type":"refuse","code":"unable","reason":"{reason}","retry_after_ms":null}}"#);
    let record = measure(server_that_answers(VERSION, answer));
    let failure = record.failure.expect("no test").to_string();
    assert!(failure.contains("word word") && failure.len() < 3000, "{} bytes", failure.len());
}

#[test]
fn a_client_of_the_next_version_is_served_in_this_one() {
    with_server(ServerLimits::default(), |server| {
        let (mut client, answer) = Client::hello(server, VERSION + 1);
        assert_eq!(answer.version, VERSION, "the lower of both");
        // What this version does not know it passes over, at any depth.
        let test = TcpTest { finish: Finish::Bytes(1000), ..TcpTest::default() };
        let request = NativeTcpTestRequest { test, ..NativeTcpTestRequest::default() };
        let request = serde_json::to_string(&Message::Request(request)).expect("plain data");
        let newer = request.replacen('{', r#"{"new_field":{"deep":[1,2]},"#, 1);
        let mut data = client.start(server, &newer, VERSION + 1);
        data.write_all(&[7; 1000]).expect("sent");
        data.shutdown(Shutdown::Write).expect("open");
        assert!(client.is_told_the_result());
    });
}

#[test]
fn a_server_that_speaks_only_newer_versions_is_named_and_so_is_a_client_that_is_too_old() {
    let record = measure(server_that_answers(VERSION + 1, String::new()));
    let failure = record.failure.expect("no common version");
    assert_eq!(failure.fault, Fault::PeerIncompatible);
    assert!(failure.to_string().contains("version 2"), "{failure}");
    let said = with_server(ServerLimits::default(), |server| {
        let (mut client, answer) = Client::hello(server, 0);
        assert_eq!(answer.version, VERSION, "its own, so that both can be named");
        assert!(client.next().is_err(), "and closed");
    });
    assert!(said.iter().any(|line| line.contains("version 0")), "{said:?}");
}

#[test]
fn the_log_says_which_way_how_much_how_long_and_how_fast() {
    let said = with_server(ServerLimits::default(), |server| {
        assert_eq!(measure(server).failure, None);
    });
    let line = said.iter().find(|line| line.starts_with("tcp up: 1 stream, ")).expect("one line");
    assert!(line.contains("B in 0.") && line.ends_with("bit/s"), "{line}");
}
