//! What a client over TCP gets that never finishes what it begins: slow heads, heads and bodies
//! without end, and hundreds of silent connections from one address. Each is over by itself, gets a
//! few hundred bytes at most, and keeps nobody else out for longer.
#![cfg(feature = "web")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use linerate_core::record::Tool;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::WebOptions;
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;

/// Nothing here lasts as long on a machine that does anything at all.
const PATIENCE: Duration = Duration::from_secs(40);
/// A refusal in words; what a client of nonsense gets is no more.
const WORDS_BYTES: usize = 2048;

fn with_server(connections: usize, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let limits = ServerLimits { connections, ..ServerLimits::default() };
    let options = ServeOptions { local, limits, foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store: None, tool, origins: Vec::new() });
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

/// What an attack came to.
#[derive(Debug)]
struct Toll {
    sent: usize,
    back: usize,
    status: Option<u16>,
    lasted: Duration,
}

/// Sends `begin`, then `drip` again and again with `pause` between, until the server ends it.
fn attack(server: SocketAddr, begin: &[u8], drip: &[u8], pause: Duration) -> Toll {
    let since = monotonic();
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_nonblocking(true).expect("a mode");
    let (mut sent, mut back, mut left) = (0, Vec::new(), begin.to_vec());
    while monotonic() < since + PATIENCE {
        match stream.write(&left) {
            Ok(count) => {
                sent += count;
                left.drain(..count);
            }
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        if left.is_empty() {
            left.extend_from_slice(drip);
        }
        let mut bytes = [0; 4096];
        match stream.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => back.extend_from_slice(&bytes[..count]),
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => sleep(pause),
            Err(_) => break,
        }
    }
    let status = back.split(|byte| *byte == b' ').nth(1);
    let status = status.and_then(|it| std::str::from_utf8(it).ok()?.parse().ok());
    let lasted = Duration::from_nanos(monotonic().nanos_since(since));
    Toll { sent, back: back.len(), status, lasted }
}

/// Whether a request is answered as it should be.
fn is_answered(server: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(server) else { return false };
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    let request = "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    let mut answer = Vec::new();
    let asked = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut answer));
    asked.is_ok() && answer.starts_with(b"HTTP/1.1 200")
}

#[test]
fn what_drips_is_over_by_itself_and_gets_words_at_most() {
    let slow = Duration::from_millis(300);
    let post = "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 900\r\n\r\n";
    let attacks: [(&str, &str, &[u8]); 6] = [
        ("letters of no protocol", "L", b"L"),
        ("the first line", "GET /", b"a"),
        ("a field of the page's head", "GET / HTTP/1.1\r\nX: ", b"a"),
        ("a field of a stream of load", "POST /api/v1/load/0 HTTP/1.1\r\nX: ", b"a"),
        ("a field of another speed test", "GET /backend/garbage.php HTTP/1.1\r\nX: ", b"a"),
        ("a body", post, b"1"),
    ];
    with_server(64, |server| {
        std::thread::scope(|scope| {
            for (name, begin, drip) in attacks {
                scope.spawn(move || {
                    let toll = attack(server, begin.as_bytes(), drip, slow);
                    println!("{name}, a byte in 0.3 s: {toll:?}");
                    assert!(toll.lasted < PATIENCE, "{name}: {toll:?}");
                    assert!(toll.back <= WORDS_BYTES, "{name}: {toll:?}");
                    assert_ne!(toll.status, Some(200), "{name}");
                });
            }
            assert!(is_answered(server), "others are, beside them");
        });
    });
}

#[test]
fn what_has_no_end_is_ended_and_gets_less_than_it_sent() {
    let at_once = Duration::from_millis(1);
    let noise = vec![b'a'; 65_536];
    let endless = "POST /api/v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: \
                   1000000000000\r\n\r\n";
    let attacks = [
        ("a head", "GET / HTTP/1.1\r\nX: "),
        ("a head of load", "POST /api/v1/load/0 HTTP/1.1\r\nX: "),
        ("a path", "GET /"),
        ("a body", endless),
    ];
    with_server(64, |server| {
        for (name, begin) in attacks {
            let toll = attack(server, begin.as_bytes(), &noise, at_once);
            println!("{name} without end: {toll:?}");
            assert!(toll.lasted < PATIENCE, "{name}: {toll:?}");
            assert!(toll.back < toll.sent, "{name}: {toll:?}");
            assert_ne!(toll.status, Some(200), "{name}");
            assert!(is_answered(server), "after {name}");
        }
    });
}

#[test]
fn silent_connections_get_nothing_and_their_places_are_free_again() {
    with_server(64, |server| {
        let idle: Vec<_> = (0..300).filter_map(|_| TcpStream::connect(server).ok()).collect();
        assert!(idle.len() > 64, "{} were taken by the kernel", idle.len());
        let until = monotonic() + PATIENCE;
        while !is_answered(server) {
            assert!(monotonic() < until, "nobody is answered while they are silent");
            sleep(Duration::from_millis(100));
        }
        let mut back = 0;
        for mut stream in idle {
            stream.set_read_timeout(Some(PATIENCE)).expect("a time");
            // Closed or reset: either way the server let go of it.
            let ended = stream.read(&mut [0; 512]);
            back += ended.as_ref().map_or(0, |count| *count);
            let waits = ended.is_err_and(|it| it.kind() == std::io::ErrorKind::WouldBlock);
            assert!(!waits, "the server keeps it");
        }
        println!("300 silent connections: {back} bytes back");
        assert_eq!(back, 0);
    });
}
