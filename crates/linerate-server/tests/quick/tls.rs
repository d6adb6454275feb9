//! The page and the API over TLS, by another program's view of it: the client side of rustls, with
//! an authority that vouches for both certificates of `testdata/tls`.
#![cfg(feature = "web")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use linerate_core::record::{Record, Tool};
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::{Tls, WebOptions};
use linerate_store::{HistoryFilter, Store};
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
    with_server_and_store(tls, None, test);
}

fn with_server_and_store(
    tls: Option<&Arc<Tls>>,
    store: Option<PathBuf>,
    test: impl FnOnce(SocketAddr),
) {
    let local = SocketAddr::from(([127, 0, 0, 1], 0));
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store, tool, origins: Vec::new() });
    tls.iter().for_each(|tls| server.serve_tls(Arc::clone(tls)));
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

/// What a client of TLS was told.
struct Told {
    answer: String,
    protocol: Option<Vec<u8>>,
    version: Option<ProtocolVersion>,
    certificate: Option<CertificateDer<'static>>,
}

/// One that trusts the authority of testdata.
fn client_config() -> ClientConfig {
    let authority = CertificateDer::from_pem_file(file("ca.pem")).expect("testdata");
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots);
    config.with_no_client_auth()
}

fn ask(server: SocketAddr, request: &str) -> std::io::Result<Told> {
    let mut config = client_config();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
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

/// What a client of HTTP/2 got of requests that ran at once on one connection: bytes of each.
async fn over_http2(server: SocketAddr, paths: &[&str], enough: usize) -> Vec<(u16, usize)> {
    let mut config = client_config();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let tcp = tokio::net::TcpStream::connect(server).await.expect("the server listens");
    let name = "localhost".try_into().expect("a name");
    let tls = tokio_rustls::TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
    let mut builder = h2::client::Builder::new();
    builder.initial_window_size(1 << 20).initial_connection_window_size(1 << 20);
    let (client, connection) = builder.handshake::<_, Bytes>(tls.expect("TLS")).await.expect("h2");
    let talk = tokio::spawn(connection);
    let mut answers = Vec::new();
    for path in paths {
        let (method, up) = path.split_once(' ').expect("a method and a path");
        let request =
            axum::http::Request::builder().method(method).uri(format!("https://localhost{up}"));
        let mut client = client.clone().ready().await.expect("room for a request");
        let ends = method == "GET";
        let (answer, mut body) =
            client.send_request(request.body(()).expect("a request"), ends).expect("open");
        if !ends {
            body.send_data(Bytes::from(vec![0; enough]), true).expect("open");
        }
        answers.push(tokio::spawn(read(answer, enough)));
    }
    let mut found = Vec::new();
    for answer in answers {
        found.push(answer.await.expect("no panic"));
    }
    drop(client);
    talk.abort();
    found
}

async fn read(answer: h2::client::ResponseFuture, enough: usize) -> (u16, usize) {
    let answer = answer.await.expect("an answer");
    let status = answer.status().as_u16();
    let (mut body, mut got) = (answer.into_body(), 0);
    while got < enough {
        let Some(Ok(bytes)) = body.data().await else { break };
        got += bytes.len();
        let _ = body.flow_control().release_capacity(bytes.len());
    }
    (status, got)
}

#[test]
fn requests_of_http2_are_one_flow_and_the_record_has_what_the_client_got() {
    const ENOUGH: usize = 20_000_000;
    let tls = Arc::new(Tls::read(&file("one.pem"), &file("one.key")).expect("testdata"));
    let folder = tempfile::tempdir().expect("a folder");
    let store = folder.path().join("results.db");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("ours");
    with_server_and_store(Some(&tls), Some(store.clone()), |server| {
        let ask = |paths: &[&str]| {
            runtime.block_on(async {
                let asked = over_http2(server, paths, ENOUGH);
                tokio::time::timeout(PATIENCE, asked).await.expect("an end")
            })
        };
        let config = ask(&["GET /.well-known/nq", "GET /nq/small"]);
        assert_eq!((config[0].0, config[1]), (200, (200, 1)));
        let down = ask(&["GET /nq/large", "GET /nq/large"]);
        let got: usize = down.iter().map(|it| it.1).sum();
        let [record] = &stored(&store, 1)[..] else { panic!("one record") };
        assert_eq!((record.name.as_deref(), record.flows.len()), (Some("networkQuality"), 1));
        // Frames of a window and what both kernels hold may have come unread; the share of frames
        // and records is known to half a per cent.
        let bytes = record.flows[0].sender.as_ref().expect("this end sent").bytes as usize;
        assert!(bytes >= got / 200 * 199 && bytes <= got + (16 << 20), "{bytes} of {got}");
        assert_eq!(ask(&["POST /nq/upload"])[0].0, 200);
        let records = stored(&store, 2);
        let up = records.iter().find_map(|it| it.flows[0].receiver.as_ref()).expect("it received");
        assert_eq!(up.bytes as usize, ENOUGH);
    });
}

/// The records in a store once there are so many.
fn stored(path: &Path, count: usize) -> Vec<Record> {
    let until = monotonic() + PATIENCE;
    loop {
        let read = Store::open(path).and_then(|store| {
            let entries = store.list_history(&HistoryFilter::default(), 100)?;
            entries.iter().map(|entry| store.record(&entry.id)).collect()
        });
        let records: Vec<Record> = read.unwrap_or_default();
        if records.len() >= count || monotonic() >= until {
            return records;
        }
        sleep(Duration::from_millis(20));
    }
}
