//! Datagrams over WebTransport by a client that is no browser, over loopback: what the server
//! counts of what is sent by hand, and what it gives to whom shows nothing.
#![cfg(feature = "datagrams")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::time::Duration;

use linerate_core::record::Tool;
use linerate_proto::datagrams::{Datagram, DatagramArrival, DatagramRoundRequest, Report};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_sys::stop::Stop;
use serde_json::{Value, json};
use tokio::time::timeout;
use wtransport::tls::Sha256Digest;
use wtransport::{ClientConfig, Connection, Endpoint};

/// Nothing here takes as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(30);
/// A server that has more to say says it within this; its timers are of 1 s at most.
const QUIET: Duration = Duration::from_secs(3);

fn with_server(test: impl FnOnce(SocketAddr, u16)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: false, store: None, tool, origins: Vec::new() });
    let port = server.serve_datagrams(0).expect("a free port").expect("HTTP is answered");
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(address, port));
        let result = std::panic::catch_unwind(test);
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn call(server: SocketAddr, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let body = body.to_string();
    let length = body.len();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {server}\r\nContent-Length: {length}");
    stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).expect("it takes a request");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let status = text.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
    let (_, body) = text.split_once("\r\n\r\n").expect("a body");
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// A run without load: its answer.
pub(crate) fn at_rest(server: SocketAddr) -> Value {
    let (status, run) = call(server, "POST", "/api/v1/runs", &json!({ "directions": [] }));
    assert_eq!(status, 201, "{run}");
    run
}

pub(crate) fn in_a_runtime(work: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(async { timeout(PATIENCE, work).await.expect("in time") });
}

/// A session at `port` by `path`, with the server whose certificate the run names.
pub(crate) async fn session(run: &Value, port: u16, path: &str) -> Result<Connection, String> {
    let digits = run["datagrams"]["certificate_sha256"].as_str().expect("a digest");
    let byte = |at: usize| u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).expect("digits");
    connect(std::array::from_fn(byte), port, path).await
}

/// The same with a server of a certificate.
pub(crate) async fn connect(
    certificate_sha256: [u8; 32],
    port: u16,
    path: &str,
) -> Result<Connection, String> {
    let hash = Sha256Digest::new(certificate_sha256);
    let config = ClientConfig::builder()
        .with_bind_address(SocketAddr::from(([127, 0, 0, 1], 0)))
        .with_server_certificate_hashes([hash])
        .build();
    let client = Endpoint::client(config).expect("a socket");
    let url = format!("https://127.0.0.1:{port}{path}");
    client.connect(url).await.map_err(|error| error.to_string())
}

pub(crate) fn path(run: &Value) -> String {
    run["datagrams"]["path"].as_str().expect("a path").to_owned()
}

/// Asks for a round and plays the client's part by hand; what the server says of it.
async fn round(
    connection: &Connection,
    ask: DatagramRoundRequest,
    sends: &[u32],
    misses: u32,
) -> Value {
    let give = |number: u32| {
        let sent_us = u64::from(number * ask.interval_us);
        let datagram = Datagram { round: ask.round, number, sent_us };
        connection.send_datagram(datagram.padded_bytes(ask.bytes.into())).expect("sent");
    };
    // The first one is there before the ask is, as where that is lost and sent again.
    give(sends[0]);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let stream = connection.open_bi().await.expect("a stream").await.expect("a stream");
    let (mut send, mut recv) = stream;
    send.write_all(&ask.wire_bytes()).await.expect("sent");
    let mut seen = Vec::new();
    while (seen.len() as u32) < ask.count {
        let datagram = connection.receive_datagram().await.expect("a datagram");
        assert_eq!(datagram.len(), usize::from(ask.bytes));
        let datagram = Datagram::parse(&datagram).expect("a datagram");
        assert_eq!(datagram.round, ask.round);
        seen.push(DatagramArrival { number: datagram.number, came_us: datagram.sent_us + 77 });
    }
    // No report overtakes them: loopback keeps the order.
    sends[1..].iter().copied().for_each(give);
    seen.retain(|it| it.number != misses);
    let report = Report { sent: ask.count, seen };
    send.write_all(&report.wire_bytes()).await.expect("sent");
    send.finish().await.expect("sent");
    let mut answer = Vec::new();
    let mut piece = [0; 1024];
    while let Ok(Some(count)) = recv.read(&mut piece).await {
        answer.extend(&piece[..count]);
    }
    serde_json::from_slice(&answer).unwrap_or(Value::Null)
}

/// Of 8 up: 0, 1, 3, 2, 2 again, 6: 4, 5 and 7 never left, one came behind a later one, one twice.
/// Of 8 down the client says not to have seen 5, and the same delay for each: a jitter of 0.
#[test]
fn a_round_is_counted_as_it_was_played() {
    with_server(|server, port| {
        let run = at_rest(server);
        assert_eq!(run["datagrams"]["port"], port);
        in_a_runtime(async {
            let connection = session(&run, port, &path(&run)).await.expect("a session");
            let ask = DatagramRoundRequest { round: 3, bytes: 120, count: 8, interval_us: 5_000 };
            let nothing = DatagramRoundRequest { count: 0, ..ask };
            let stream = connection.open_bi().await.expect("a stream").await.expect("a stream");
            let (mut send, mut recv) = stream;
            send.write_all(&nothing.wire_bytes()).await.expect("sent");
            assert!(!matches!(recv.read(&mut [0; 8]).await, Ok(Some(_))), "no round of nothing");
            let said = round(&connection, ask, &[0, 1, 3, 2, 2, 6], 5).await;
            let up = json!([8, 3, 1, 1]);
            let down = json!([8, 1, 0, 0]);
            for (way, counts) in [("up", up), ("down", down)] {
                let fate = &said[way];
                let fields = ["sent", "lost", "duplicates", "reordered"];
                assert_eq!(json!(fields.map(|name| &fate[name])), counts, "{way}: {said}");
            }
            assert_eq!(said["down"]["jitter_us"], 0.0);
            assert!(said["up"]["jitter_us"].as_f64().is_some_and(|us| us > 0.0), "{said}");
            // The number of a round is its own, once.
            assert_eq!(round_refused(&connection, ask).await, Value::Null);
        });
    });
}

async fn round_refused(connection: &Connection, ask: DatagramRoundRequest) -> Value {
    let stream = connection.open_bi().await.expect("a stream").await.expect("a stream");
    let (mut send, mut recv) = stream;
    send.write_all(&ask.wire_bytes()).await.expect("sent");
    match recv.read(&mut [0; 64]).await {
        Ok(Some(count)) => json!(count),
        _ => Value::Null,
    }
}

#[test]
fn who_shows_no_token_of_a_running_test_has_no_session() {
    with_server(|server, port| {
        let run = at_rest(server);
        let right = path(&run);
        in_a_runtime(async {
            let swapped = right.replace("token=", "token=0");
            let (short, _) = right.split_once("&token").expect("a token");
            for wrong in ["/", "/api/v1/datagrams", short, &swapped[..right.len()]] {
                let refused = session(&run, port, wrong).await.expect_err(wrong);
                assert!(refused.contains("reject"), "{wrong}: {refused}");
            }
            // A test has three sessions and no more.
            for _ in 0..3 {
                drop(session(&run, port, &right).await.expect("a session"));
            }
            session(&run, port, &right).await.expect_err("a fourth session");
        });
        let (id, token) = (run["run"].as_str().expect("run"), &run["token"]);
        let token = token.as_str().expect("a token");
        let end = format!("/api/v1/runs/{id}?token={token}");
        assert_eq!(call(server, "DELETE", &end, &Value::Null).0, 200);
        let other = at_rest_once_free(server);
        assert_ne!(other["run"], run["run"]);
        in_a_runtime(async {
            session(&run, port, &right).await.expect_err("its test is over");
        });
    });
}

/// A run as soon as the one before has given its place back.
fn at_rest_once_free(server: SocketAddr) -> Value {
    for _ in 0..300 {
        let (status, run) = call(server, "POST", "/api/v1/runs", &json!({ "directions": [] }));
        if status == 201 {
            return run;
        }
        linerate_sys::clock::sleep(Duration::from_millis(100));
    }
    panic!("no place within 30 s");
}

/// A real first packet of a real client, from an address that does not go on: the answer is one
/// Retry (RFC 9000 §17.2.5, type 3), shorter than what came.
#[test]
fn an_address_that_is_not_proven_gets_less_than_it_sent() {
    with_server(|server, port| {
        let run = at_rest(server);
        let near = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let far = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let relay = near.local_addr().expect("bound").port();
        near.set_read_timeout(Some(PATIENCE)).expect("a time");
        far.set_read_timeout(Some(QUIET)).expect("a time");
        let first = std::thread::spawn(move || {
            let mut packet = [0; 2048];
            let length = near.recv(&mut packet).expect("the client's first packet");
            packet[..length].to_vec()
        });
        in_a_runtime(async {
            let never = timeout(Duration::from_secs(2), session(&run, relay, &path(&run))).await;
            assert!(!matches!(never, Ok(Ok(_))), "nobody answered");
        });
        let first = first.join().expect("a packet");
        assert!(first.len() >= 1200, "an Initial has 1200 bytes: {}", first.len());
        far.send_to(&first, ("127.0.0.1", port)).expect("sent");
        let mut answer = [0; 2048];
        let length = far.recv(&mut answer).expect("a Retry");
        assert_eq!(answer[0] & 0xf0, 0xf0, "long header, type 3");
        assert!(length * 4 < first.len(), "{length} bytes for {}", first.len());
        assert!(far.recv(&mut answer).is_err(), "and nothing more");
        for nonsense in [vec![0x40; 1200], vec![0xc0; 1200], vec![0xff; 40], vec![0; 1]] {
            far.send_to(&nonsense, ("127.0.0.1", port)).expect("sent");
            let back = far.recv(&mut answer).unwrap_or(0);
            assert!(back <= nonsense.len(), "{back} bytes for {}", nonsense.len());
        }
    });
}

#[test]
fn a_server_that_was_not_asked_to_takes_none() {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    assert_eq!(server.serve_datagrams(0).expect("nothing to do"), None);
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: false, store: None, tool, origins: Vec::new() });
    let taken = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port();
    let failure = server.serve_datagrams(port).expect_err("the port is taken");
    assert!(failure.to_string().contains(&format!("127.0.0.1:{port}")), "{failure}");
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop, &|_: &LogEntry<'_>| {}));
        let (status, refused) = call(address, "POST", "/api/v1/runs", &json!({ "directions": [] }));
        let (_, run) = call(address, "POST", "/api/v1/runs", &json!({ "seconds": 1 }));
        stop.request_stop();
        running.join().expect("the server ends");
        assert_eq!(status, 400, "{refused}");
        assert_eq!(run["datagrams"], Value::Null);
    });
}
