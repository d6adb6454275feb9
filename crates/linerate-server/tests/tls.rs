//! The page and the API over TLS, by another program's view of it: the client side of rustls, with
//! an authority that vouches for both certificates of `testdata/tls`.
#![cfg(feature = "web")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use linerate_core::record::Tool;
use linerate_server::admission::Limits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, ServeOptions, Server};
use linerate_server::web::{Tls, WebOptions};
use linerate_sys::clock::{monotonic, sleep};
use linerate_sys::stop::Stop;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, ProtocolVersion, RootCertStore};

const PATIENCE: Duration = Duration::from_secs(30);

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls").join(name)
}

fn with_server(tls: Option<&Arc<Tls>>, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options = ServeOptions { local, limits: Limits::default(), foreign: Foreign::none() };
    let mut server = Server::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store: None, tool, origins: Vec::new() });
    tls.iter().for_each(|tls| server.serve_tls(Arc::clone(tls)));
    let address = server.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (stop, server) = (&stop, &server);
        let running = scope.spawn(move || server.run(stop, &|_: &LogEntry<'_>| {}));
        let test = std::panic::AssertUnwindSafe(|| test(address));
        let result = std::panic::catch_unwind(test);
        stop.ask();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

/// What a client of TLS was told.
struct Told {
    answer: String,
    protocol: Option<Vec<u8>>,
    version: Option<ProtocolVersion>,
    certificate: Option<CertificateDer<'static>>,
}

fn ask(server: SocketAddr, request: &str) -> std::io::Result<Told> {
    let authority = CertificateDer::from_pem_file(file("ca.pem")).expect("testdata");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    let mut config = config.with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let name = "localhost".try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut stream = TcpStream::connect(server)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tls = rustls::Stream::new(&mut client, &mut stream);
    tls.write_all(request.as_bytes())?;
    let mut bytes = Vec::new();
    // The server may close without a farewell once its answer is out.
    let read = tls.read_to_end(&mut bytes);
    if bytes.is_empty() {
        read?;
    }
    Ok(Told {
        answer: String::from_utf8_lossy(&bytes).into_owned(),
        protocol: client.alpn_protocol().map(<[u8]>::to_vec),
        version: client.protocol_version(),
        certificate: client.peer_certificates().and_then(|it| it.first().cloned()),
    })
}

fn request(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
}

fn plain(server: SocketAddr, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server).expect("the server listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a time");
    stream.write_all(bytes).expect("it takes a request");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    answer
}

#[test]
fn the_page_and_the_api_come_over_tls_on_the_port_where_plain_http_is() {
    let tls = Arc::new(Tls::read(&file("one.pem"), &file("one.key")).expect("testdata"));
    with_server(Some(&tls), |server| {
        for path in ["/", "/api/v1/server"] {
            let told = ask(server, &request(&format!("GET {path}"))).expect("an answer");
            assert!(told.answer.starts_with("HTTP/1.1 200"), "{path}: {}", told.answer);
            assert_eq!(told.version, Some(ProtocolVersion::TLSv1_3));
            // It was offered first, and would carry several flows on one connection.
            assert_eq!(told.protocol.as_deref(), Some(b"http/1.1".as_slice()));
        }
        let answer = plain(server, request("GET /api/v1/server").as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 200"), "plain HTTP is answered, too");
    });
}

#[test]
fn no_load_goes_over_tls_and_the_refusal_says_where_it_goes() {
    let tls = Arc::new(Tls::read(&file("one.pem"), &file("one.key")).expect("testdata"));
    with_server(Some(&tls), |server| {
        let told = ask(server, &request("POST /api/v1/runs")).expect("an answer");
        assert!(told.answer.starts_with("HTTP/1.1 409"), "{}", told.answer);
        assert!(told.answer.contains("open http://localhost/"), "{}", told.answer);
        let told = ask(server, &request("GET /backend/garbage.php")).expect("an answer");
        assert!(!told.answer.starts_with("HTTP/1.1 200 OK\r\ncontent-type: application/octet"));
        assert!(told.answer.len() < 100_000, "{} bytes", told.answer.len());
    });
}

#[test]
fn a_new_certificate_holds_from_its_reading_on_and_a_broken_one_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (cert, key) = (folder.path().join("cert.pem"), folder.path().join("key.pem"));
    let put = |name: &str| {
        std::fs::copy(file(&format!("{name}.pem")), &cert).expect("testdata");
        std::fs::copy(file(&format!("{name}.key")), &key).expect("testdata");
    };
    let shown = |server| {
        let told = ask(server, &request("GET /robots.txt")).expect("an answer");
        told.certificate.expect("the server has one")
    };
    let of = |name: &str| CertificateDer::from_pem_file(file(name)).expect("testdata");
    put("one");
    let tls = Arc::new(Tls::read(&cert, &key).expect("testdata"));
    with_server(Some(&tls), |server| {
        assert_eq!(shown(server), of("one.pem"));
        put("two");
        assert_eq!(shown(server), of("one.pem"), "nothing was read yet");
        tls.reload().expect("a pair");
        assert_eq!(shown(server), of("two.pem"));
        std::fs::copy(file("one.key"), &key).expect("testdata");
        let failure = tls.reload().expect_err("the key of another certificate");
        assert!(failure.to_string().contains("cert.pem"), "{failure}");
        std::fs::write(&cert, "no certificate").expect("a file");
        tls.reload().expect_err("no PEM");
        assert_eq!(shown(server), of("two.pem"), "what was read before stays");
    });
}

#[test]
fn a_handshake_that_does_not_go_on_is_over_by_itself_and_one_without_a_certificate_at_once() {
    let hello = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    let tls = Arc::new(Tls::read(&file("one.pem"), &file("one.key")).expect("testdata"));
    with_server(Some(&tls), |server| {
        let since = monotonic();
        assert_eq!(plain(server, &hello), b"", "bytes for a handshake that nobody finished");
        assert!(monotonic() < since + PATIENCE);
    });
    with_server(None, |server| {
        assert!(ask(server, &request("GET /")).is_err());
        sleep(Duration::from_millis(10));
        let answer = plain(server, request("GET /api/v1/server").as_bytes());
        assert!(answer.starts_with(b"HTTP/1.1 200"), "others are answered after it");
    });
}
