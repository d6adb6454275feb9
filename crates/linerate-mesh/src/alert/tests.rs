//! Alerts to listeners of this host, which answer as real ones do: late, wrongly, not at all.

use linerate_core::schedule::EventKind;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::thread::JoinHandle;

use linerate_proto::iperf3::from_base64;
use linerate_store::{NewAlert, Store};
use linerate_sys::clock::sleep;

use super::*;

const MADE_S: i64 = 1_795_478_400;

fn listener() -> (TcpListener, u16) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let port = listener.local_addr().expect("bound").port();
    (listener, port)
}

fn store(directory: &Path) -> Store {
    Store::open(&directory.join("results.db")).expect("a store")
}

/// An alert in the outbox, for the outputs of a plan.
fn made(store: &mut Store, post: &Post) {
    let detail = serde_json::json!({});
    let event = store.event_happened("p", "t", MADE_S, EventKind::Change, &detail).expect("room");
    let alert = NewAlert {
        id: "018f0000-0000-7000-8000-000000000001".to_owned(),
        at_s: MADE_S,
        sentence: "home, line: goodput fell".to_owned(),
        json: "{\"id\":\"018f0000-0000-7000-8000-000000000001\"}".to_owned(),
    };
    store.event_alerts(event, "p", &alert, &post.output_keys()).expect("room");
}

/// Works at a time until nothing is under way any more; what was said.
fn work(post: &mut Post, store: &mut Store, now_s: i64) -> Vec<String> {
    let said = std::cell::RefCell::new(Vec::new());
    let say = |line: &str| said.borrow_mut().push(line.to_owned());
    post.deliver_due_alerts(store, now_s, &say).expect("the store is there");
    for _ in 0..6000 {
        if post.busy.is_empty() {
            return said.into_inner();
        }
        sleep(Duration::from_millis(10));
        post.deliver_due_alerts(store, now_s, &say).expect("the store is there");
    }
    panic!("still under way after a minute: {:?}", post.busy);
}

/// Head and body of one request (RFC 9112 §6).
fn request(stream: &mut impl Read) -> (String, String) {
    let mut reader = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).expect("a line") > 0, "cut: {head}");
        if line == "\r\n" {
            break;
        }
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = text.trim().parse().expect("a number");
        }
        head.push_str(&line);
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("a whole body");
    (head, String::from_utf8(body).expect("UTF-8"))
}

/// Answers requests in turn, the last one too; what they were. An empty answer is none.
fn hook(
    listener: TcpListener,
    answers: &'static [&'static str],
) -> JoinHandle<Vec<(String, String)>> {
    std::thread::spawn(move || {
        let one = |answer: &&str| {
            let (mut stream, _) = listener.accept().expect("a client");
            let asked = request(&mut stream);
            stream.write_all(answer.as_bytes()).expect("it reads");
            asked
        };
        answers.iter().map(one).collect()
    })
}

#[test]
fn a_hook_that_fails_is_asked_again_later_and_with_the_same_identifier_after_a_restart() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (listener, port) = listener();
    let url = format!("http://127.0.0.1:{port}/hook?x=1");
    let plan = Alert { webhook: Some(url), ..Alert::default() };
    // It was in trouble; then it took it, and its word was lost.
    let got = hook(listener, &["HTTP/1.1 503 Busy\r\n\r\n", "", "HTTP/1.0 200 OK\r\n\r\n"]);
    let mut store_now = store(directory.path());
    let mut post = Post::new("p".to_owned(), Some(&plan));
    made(&mut store_now, &post);
    let said = work(&mut post, &mut store_now, MADE_S);
    assert!(said.len() == 1 && said[0].contains("HTTP 503"), "{said:?}");
    assert_eq!(work(&mut post, &mut store_now, MADE_S + 14), Vec::<String>::new(), "not yet");
    let said = work(&mut post, &mut store_now, MADE_S + 15);
    assert!(said.len() == 1 && said[0].contains("tried again"), "{said:?}");
    drop((post, store_now));
    let mut store_now = store(directory.path());
    let mut post = Post::new("p".to_owned(), Some(&plan));
    assert_eq!(work(&mut post, &mut store_now, MADE_S + 60), Vec::<String>::new());
    assert_eq!(store_now.alerts_waiting("p", 0), Ok(Vec::new()));
    let got = got.join().expect("three requests");
    for (head, body) in &got {
        assert!(head.starts_with("POST /hook?x=1 HTTP/1.1\r\n"), "{head}");
        assert!(head.contains(&format!("Host: 127.0.0.1:{port}\r\n")), "{head}");
        let key = "Idempotency-Key: \"018f0000-0000-7000-8000-000000000001\"\r\n";
        assert!(head.contains(key) && head.contains("application/json"), "{head}");
        assert_eq!(body, "{\"id\":\"018f0000-0000-7000-8000-000000000001\"}");
    }
    assert_eq!(got.len(), 3);
}

#[test]
fn nobody_at_home_is_given_up_after_a_day_and_a_dead_address_holds_no_other_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (listener, port) = listener();
    let relay = std::thread::spawn(move || {
        // Of two addresses the relay knows one.
        let letters = [smtp(&listener), smtp(&listener)];
        letters.into_iter().flatten().count()
    });
    let plan = Alert {
        mail: vec!["nobody@example.net".to_owned(), "ops@example.net".to_owned()],
        mail_from: Some("linerate@example.net".to_owned()),
        relay: Some(format!("127.0.0.1:{port}")),
        ..Alert::default()
    };
    let mut store = store(directory.path());
    let mut post = Post::new("p".to_owned(), Some(&plan));
    made(&mut store, &post);
    let said = work(&mut post, &mut store, MADE_S);
    assert!(said.len() == 1 && said[0].contains("550 no such user here"), "{said:?}");
    assert!(said[0].contains("mail nobody@example.net"), "{said:?}");
    assert_eq!(relay.join().expect("two talks"), 1);
    // Its port is closed now.
    let said = work(&mut post, &mut store, MADE_S + TRIED_S);
    assert!(said.len() == 1 && said[0].contains("given up"), "{said:?}");
    assert_eq!(work(&mut post, &mut store, MADE_S + 10 * TRIED_S), Vec::<String>::new());
    let waiting = store.alerts_waiting("p", 0).expect("readable");
    assert!(waiting.len() == 1 && waiting[0].1.is_some(), "{waiting:?}");
}

/// A relay's end of RFC 5321 appendix D.1; the letter, where it took one.
fn smtp(listener: &TcpListener) -> Option<String> {
    let (stream, _) = listener.accept().expect("a client");
    let mut lines = BufReader::new(stream.try_clone().expect("a copy"));
    let mut next = || {
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        line
    };
    let mut stream: TcpStream = stream;
    let mut say = |text: &str| stream.write_all(text.as_bytes()).expect("it reads");
    say("220 relay.example ESMTP\r\n");
    assert_eq!(next(), "EHLO example.net\r\n");
    say("250-relay.example greets example.net\r\n250-8BITMIME\r\n250 HELP\r\n");
    assert_eq!(next(), "MAIL FROM:<linerate@example.net>\r\n");
    say("250 OK\r\n");
    let to = next();
    if to == "RCPT TO:<nobody@example.net>\r\n" {
        say("550 no such user here\r\n");
        return None;
    }
    assert_eq!(to, "RCPT TO:<ops@example.net>\r\n");
    say("250 OK\r\n");
    assert_eq!(next(), "DATA\r\n");
    say("354 Start mail input; end with <CRLF>.<CRLF>\r\n");
    let mut letter = String::new();
    loop {
        let line = next();
        assert!(line.ends_with("\r\n") && line.len() <= 1000, "RFC 5321 §4.5.3.1.6: {line:?}");
        if line == ".\r\n" {
            break;
        }
        letter.push_str(&line);
    }
    say("250 OK\r\n");
    assert_eq!(next(), "QUIT\r\n");
    say("221 closing\r\n");
    let (head, text) = letter.split_once("\r\n\r\n").expect("head and text (RFC 5322 §2.1)");
    let field = |name: &str| head.lines().find_map(|line| line.strip_prefix(name));
    assert_eq!(field("Subject: "), Some("home, line: goodput fell"));
    // By date(1) of coreutils: date -u -R -d @1795478400.
    assert_eq!(field("Date: "), Some("Tue, 24 Nov 2026 00:00:00 +0000"));
    let id = "<018f0000-0000-7000-8000-000000000001@example.net>";
    assert_eq!((field("Message-ID: "), field("To: ")), (Some(id), Some("<ops@example.net>")));
    let text = from_base64(text).expect("base64");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.starts_with("home, line: goodput fell\r\n\r\n{\r\n"), "{text}");
    Some(letter)
}

#[test]
fn waits_grow_to_a_quarter_of_an_hour_and_end_after_a_day() {
    let waits: Vec<Option<i64>> =
        (0..9).map(|tries| next_try(tries, 0, 100).map(|at| at - 100)).collect();
    assert_eq!(waits, [15, 30, 60, 120, 240, 480, 900, 900, 900].map(Some));
    assert_eq!((next_try(0, 0, 86_399), next_try(0, 0, 86_400)), (Some(86_414), None));
    assert_eq!(next_try(u32::MAX, 0, 1), Some(901));
}

#[test]
fn an_output_that_is_out_of_reach_holds_no_other_up() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (closed, port) = listener();
    drop(closed);
    let plan = Alert {
        command: Some(format!("cat > {}", directory.path().join("got").display())),
        webhook: Some(format!("http://127.0.0.1:{port}/")),
        ..Alert::default()
    };
    let mut store = store(directory.path());
    let mut post = Post::new("p".to_owned(), Some(&plan));
    made(&mut store, &post);
    let said = work(&mut post, &mut store, MADE_S);
    assert!(said.len() == 1 && said[0].contains("webhook"), "{said:?}");
    let got = std::fs::read_to_string(directory.path().join("got")).expect("the command ran");
    assert!(got.contains("018f0000"), "{got}");
}

/// Against rustls's server, with the certificates of the other tests.
#[cfg(feature = "tls")]
#[test]
fn a_hook_over_tls_is_believed_by_its_authority_alone() {
    use rustls::pki_types::pem::PemObject;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let file =
        |name: &str| Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls").join(name);
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(file("one.pem"))
        .expect("a file")
        .collect::<Result<_, _>>()
        .expect("certificates");
    let key = PrivateKeyDer::from_pem_file(file("one.key")).expect("a key");
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a pair");
    let config = std::sync::Arc::new(config);
    let (listener, port) = listener();
    let server = std::thread::spawn(move || {
        let talk = |_| {
            let (mut stream, _) = listener.accept().expect("a client");
            let server = rustls::ServerConnection::new(std::sync::Arc::clone(&config));
            let mut server = server.expect("a connection");
            let mut over = rustls::Stream::new(&mut server, &mut stream);
            // A client that does not believe breaks off.
            let mut first = [0];
            over.read_exact(&mut first).ok()?;
            let (head, _) = request(&mut first.chain(&mut over));
            over.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
            Some(head)
        };
        (0..2).map(talk).collect::<Vec<_>>()
    });
    let alert = DueAlert { json: "{}".to_owned(), id: "x".to_owned(), ..DueAlert::default() };
    let url = format!("https://localhost:{port}/");
    let stranger = webhook::post_alert(&url, &alert, Some(&file("two.pem")));
    assert!(stranger.is_err(), "a certificate of another authority");
    assert_eq!(webhook::post_alert(&url, &alert, Some(&file("ca.pem"))), Ok(()));
    let heads = server.join().expect("two talks");
    assert!(heads[0].is_none() && heads[1].as_ref().is_some_and(|it| it.contains("POST / ")));
}
