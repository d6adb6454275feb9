//! Clients of HTTP/2 that keep its rules and mean no good: frames written by hand (RFC 9113 §6)
//! over TLS. What they hold is over by itself, and others are answered meanwhile.
#![cfg(feature = "web")]

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use linerate_core::record::Tool;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::{Tls, WebOptions};
use linerate_sys::clock::monotonic;
use linerate_sys::stop::Stop;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

/// Nothing here lasts as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(60);
/// What a server may say to a client that takes nothing: settings, heads, pings and an end.
const WORDS_BYTES: usize = 64 * 1024;

/// Types of frames (RFC 9113 §6) and flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// SETTINGS_INITIAL_WINDOW_SIZE of 0 (§6.5.2): nothing of an answer's body may be sent.
const NO_WINDOW: [u8; 6] = [0, 4, 0, 0, 0, 0];

fn with_server(test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let limits = ServerLimits { duration: Duration::from_secs(1), ..ServerLimits::default() };
    let options = ServeOptions { local, limits, foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store: None, tool, origins: Vec::new() });
    let file = |name| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls").join(name);
    server.serve_tls(Arc::new(Tls::read(&file("one.pem"), &file("one.key")).expect("testdata")));
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(address));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

type Talk = StreamOwned<ClientConnection, TcpStream>;

/// A connection of HTTP/2 whose answers get no window.
fn connect(server: SocketAddr) -> Talk {
    let ca = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls/ca.pem");
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(ca).expect("testdata")).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let mut config = config.expect("versions").with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "localhost".try_into().expect("a name");
    let client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let stream = TcpStream::connect(server).expect("the server listens");
    stream.set_read_timeout(Some(Duration::from_millis(200))).expect("a time");
    let mut talk = StreamOwned::new(client, stream);
    let begin = [b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &frame(SETTINGS, 0, 0, &NO_WINDOW)[..]];
    talk.write_all(&begin.concat()).expect("it takes a beginning");
    talk
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("short").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A request whose head names each field in full (RFC 7541 §6.2.2), but for GET and https.
fn get(stream: u32, path: &str) -> Vec<u8> {
    let length = |text: &str| u8::try_from(text.len()).expect("short");
    let mut block = vec![0x82, 0x87, 0x04, length(path)];
    block.extend(path.as_bytes());
    block.extend([0x01, 9]);
    block.extend(b"localhost");
    frame(HEADERS, END_STREAM | END_HEADERS, stream, &block)
}

/// What a connection came to.
#[derive(Debug)]
struct Toll {
    back: usize,
    lasted: Duration,
}

/// Answers pings and settings, and takes what comes, until the server ends it.
fn stay(mut talk: Talk) -> Toll {
    let since = monotonic();
    let (mut bytes, mut back) = (Vec::new(), 0);
    while monotonic() < since + PATIENCE {
        let mut piece = [0; 16_384];
        match talk.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => {
                back += count;
                bytes.extend_from_slice(&piece[..count]);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
        while let [a, b, c, kind, flags, _, _, _, _, rest @ ..] = &bytes[..] {
            let length = usize::from(*a) << 16 | usize::from(*b) << 8 | usize::from(*c);
            let Some(payload) = rest.get(..length) else { break };
            assert_ne!((*kind, length > 0), (DATA, true), "no window was granted");
            let answer = match (*kind, flags & ACK) {
                (PING, 0) => frame(PING, ACK, 0, payload),
                (SETTINGS, 0) => frame(SETTINGS, ACK, 0, &[]),
                _ => Vec::new(),
            };
            let _ = talk.write_all(&answer);
            bytes.drain(..9 + length);
        }
    }
    Toll { back, lasted: monotonic().duration_since(since) }
}

fn is_answered(server: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(server) else { return false };
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let request = "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut answer = String::new();
    let asked =
        stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_string(&mut answer));
    asked.is_ok() && answer.starts_with("HTTP/1.1 200") && answer.contains("\"running\":0")
}

#[test]
fn load_that_gets_no_window_keeps_no_place_beyond_its_time() {
    with_server(|server| {
        let mut talk = connect(server);
        talk.write_all(&get(1, "/nq/large")).expect("open");
        let toll = stay(talk);
        println!("load without a window: {toll:?}");
        // The test's second, and ten more for what is on the way.
        assert!(toll.lasted < PATIENCE && toll.back < WORDS_BYTES, "{toll:?}");
        let until = monotonic() + PATIENCE;
        while !is_answered(server) {
            assert!(monotonic() < until, "the place is taken still");
        }
    });
}

#[test]
fn an_answer_that_gets_no_window_does_not_keep_a_connection_whose_test_is_over() {
    with_server(|server| {
        let mut talk = connect(server);
        // An upload of nothing makes it a test that is over at once.
        let mut upload = get(1, "/nq/upload");
        // POST is entry 3 of the static table (RFC 7541 appendix A).
        upload[9] = 0x83;
        talk.write_all(&upload).expect("open");
        talk.write_all(&get(3, "/api/v1/openapi.json")).expect("open");
        let toll = stay(talk);
        println!("an answer without a window: {toll:?}");
        assert!(toll.lasted < PATIENCE && toll.back < WORDS_BYTES, "{toll:?}");
        assert!(is_answered(server));
    });
}

#[test]
fn requests_that_are_taken_back_at_once_end_the_connection() {
    with_server(|server| {
        let mut talk = connect(server);
        let mut sent = 0;
        // CVE-2023-44487: each request costs its client two frames.
        let asks = (0..20_000).map(|n| 2 * n + 1).map(|stream| {
            [get(stream, "/api/v1/openapi.json"), frame(RST_STREAM, 0, stream, &[0, 0, 0, 8])]
        });
        for ask in asks {
            let bytes = ask.concat();
            if talk.write_all(&bytes).is_err() {
                break;
            }
            sent += bytes.len();
        }
        let toll = stay(talk);
        println!("requests taken back: {sent} bytes in, {toll:?}");
        assert!(toll.lasted < PATIENCE && toll.back < sent.max(WORDS_BYTES), "{toll:?}");
        assert!(is_answered(server));
    });
}
