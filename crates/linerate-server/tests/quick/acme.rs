//! A certificate by ACME from a real authority: Pebble, Boulder's small sister, which checks by
//! tls-alpn-01 over loopback and refuses some nonces at random. Names are resolved by the test.
#![cfg(feature = "web")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::peers::{free_port, lacks};
use linerate_core::record::Tool;
use linerate_server::admission::ServerLimits;
use linerate_server::foreign::Foreign;
use linerate_server::listen::{LogEntry, MeasurementServer, ServeOptions};
use linerate_server::web::{Acme, Tls, WebOptions};
use linerate_sys::clock::sleep;
use linerate_sys::stop::Stop;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore};

const NAMES: [&str; 2] = ["speed.test", "www.speed.test"];
const PATIENCE: Duration = Duration::from_secs(60);
const LOOKS: u32 = 600;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/tls").join(name)
}

/// Answers each question for an IPv4 address with 127.0.0.1, every other with nothing (RFC 1035
/// §4.1), until `stop`.
fn name_server(socket: &UdpSocket, stop: &Stop) {
    socket.set_read_timeout(Some(Duration::from_millis(100))).expect("a time");
    let mut packet = [0; 512];
    while !stop.is_requested() {
        let Ok((length, from)) = socket.recv_from(&mut packet) else { continue };
        let name = packet[12..length].iter().position(|byte| *byte == 0).expect("a name's end");
        let question = &packet[12..12 + name + 5];
        let is_a = question[name + 1..name + 3] == [0, 1];
        let mut answer = packet[..2].to_vec();
        answer.extend([0x81, 0x80, 0, 1, 0, u8::from(is_a), 0, 0, 0, 0]);
        answer.extend(question);
        if is_a {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1]);
        }
        socket.send_to(&answer, from).expect("sent");
    }
}

/// Pebble, which ends with it.
struct Pebble {
    child: Child,
    folder: tempfile::TempDir,
    directory: u16,
    management: u16,
}

impl Drop for Pebble {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Pebble {
    /// One that looks for proofs at a port of this host.
    fn start(proofs: u16, names: SocketAddr) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let (directory, management) = (free_port(), free_port());
        let config = serde_json::json!({"pebble": {
            "listenAddress": format!("127.0.0.1:{directory}"),
            "managementListenAddress": format!("127.0.0.1:{management}"),
            "certificate": file("one.pem"), "privateKey": file("one.key"),
            "httpPort": 1, "tlsPort": proofs,
            "ocspResponderURL": "", "externalAccountBindingRequired": false,
        }});
        let path = folder.path().join("pebble.json");
        std::fs::write(&path, config.to_string()).expect("written");
        let child = Command::new("pebble")
            .arg("-config")
            .arg(&path)
            .args(["-dnsserver", &names.to_string()])
            .env("PEBBLE_VA_NOSLEEP", "1")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("pebble starts");
        let pebble = Self { child, folder, directory, management };
        let is_there = |port: u16| TcpStream::connect(("127.0.0.1", port)).is_ok();
        wait("pebble listens", || is_there(directory) && is_there(management));
        pebble
    }

    /// The authority of the certificates that it gives.
    fn root(&self) -> CertificateDer<'static> {
        let at = SocketAddr::from(([127, 0, 0, 1], self.management));
        let ours = CertificateDer::from_pem_file(file("ca.pem")).expect("testdata");
        let (answer, _) = get(at, "localhost", ours, "/roots/0").expect("an answer");
        let start = answer.find("-----BEGIN").expect("a certificate");
        CertificateDer::from_pem_slice(&answer.as_bytes()[start..]).expect("a certificate")
    }

    fn order(&self, folder: &Path, names: &[&str]) -> Acme {
        let names: Vec<String> = names.iter().map(|it| (*it).to_owned()).collect();
        let directory = format!("https://localhost:{}/dir", self.directory);
        let (contact, authority) = (Some("noc@speed.test"), file("ca.pem"));
        Acme::new(&names, &directory, contact, folder, Some(&authority)).expect("a folder")
    }
}

fn wait(what: &str, is_so: impl Fn() -> bool) {
    let came = (0..LOOKS).any(|_| {
        is_so() || {
            sleep(Duration::from_millis(100));
            false
        }
    });
    assert!(came, "{what}: not in {} s", LOOKS / 10);
}

/// An answer over TLS and the certificate of who gave it, believed by one authority alone.
fn get(
    at: SocketAddr,
    name: &str,
    authority: CertificateDer<'static>,
    path: &str,
) -> std::io::Result<(String, CertificateDer<'static>)> {
    let mut roots = RootCertStore::empty();
    roots.add(authority).expect("an authority");
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    let server = name.to_owned().try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), server).expect("a client");
    let mut stream = TcpStream::connect(at)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut tls = rustls::Stream::new(&mut client, &mut stream);
    write!(tls, "GET {path} HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n")?;
    let mut bytes = Vec::new();
    let read = tls.read_to_end(&mut bytes);
    if bytes.is_empty() {
        read?;
    }
    let certificate = client.peer_certificates().and_then(|it| it.first().cloned());
    let certificate = certificate.ok_or_else(|| std::io::Error::other("no certificate"))?;
    Ok((String::from_utf8_lossy(&bytes).into_owned(), certificate))
}

fn with_server(port: u16, tls: &Arc<Tls>, test: impl FnOnce(SocketAddr)) {
    let local = SocketAddr::from(([127, 0, 0, 1], port));
    let options =
        ServeOptions { local, limits: ServerLimits::default(), foreign: Foreign::without_ports() };
    let mut server = MeasurementServer::bind(&options).expect("a free port");
    let tool = Tool { name: "linerate".to_owned(), version: "0".to_owned() };
    server.serve_web(WebOptions { page: true, store: None, tool, origins: Vec::new() });
    server.serve_tls(Arc::clone(tls));
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| server.run(&stop, &|_: &LogEntry<'_>| {}));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(local)));
        stop.request_stop();
        running.join().expect("the server ends");
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

fn with_names(test: impl FnOnce(SocketAddr)) {
    let names = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port");
    let at = names.local_addr().expect("bound");
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| name_server(&names, &stop));
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| test(at)));
        stop.request_stop();
        if let Err(panic) = result {
            std::panic::resume_unwind(panic);
        }
    });
}

#[test]
fn an_authority_gives_a_certificate_and_a_server_that_starts_again_has_it() {
    if lacks("pebble") {
        return;
    }
    with_names(|names| {
        let port = free_port();
        let pebble = Pebble::start(port, names);
        let kept = tempfile::tempdir().expect("a folder");
        let acme = pebble.order(kept.path(), &NAMES);
        let tls = Arc::new(acme.load_tls().expect("TLS begins"));
        let root = pebble.root();
        let first = std::cell::OnceCell::new();
        with_server(port, &tls, |server| {
            let none = get(server, NAMES[0], root.clone(), "/").map(|it| it.0);
            assert!(none.is_err(), "before there is a certificate: {none:?}");
            let stop = Stop::new();
            std::thread::scope(|scope| {
                scope.spawn(|| acme.renew_until_stop(&tls, &stop));
                let there = || get(server, NAMES[0], root.clone(), "/api/v1/server").is_ok();
                let came = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    wait("a certificate", there);
                }));
                stop.request_stop();
                came.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            });
            // Checked by rustls against the authority's root, for each of the names.
            for name in NAMES {
                let (answer, shown) =
                    get(server, name, root.clone(), "/api/v1/server").expect("an answer");
                assert!(answer.starts_with("HTTP/1.1 200"), "{name}: {answer}");
                assert_eq!(first.get_or_init(|| shown.clone()), &shown);
            }
            assert!(get(server, "other.test", root.clone(), "/").is_err(), "another name");
        });
        let again = pebble.order(kept.path(), &NAMES);
        drop(pebble);
        let tls = Arc::new(again.load_tls().expect("TLS begins"));
        with_server(port, &tls, |server| {
            let (_, shown) = get(server, NAMES[1], root.clone(), "/").expect("at once");
            assert_eq!(first.get(), Some(&shown), "the one of the folder");
        });
    });
}

#[test]
fn a_name_that_leads_elsewhere_is_refused_with_what_the_authority_saw() {
    if lacks("pebble") {
        return;
    }
    with_names(|names| {
        // Where the authority looks, nobody answers.
        let pebble = Pebble::start(free_port(), names);
        let acme = pebble.order(&pebble.folder.path().join("acme"), &NAMES[..1]);
        let tls = acme.load_tls().expect("TLS begins");
        let why = acme.order_now(&tls, &Stop::new()).expect_err("it is not proven");
        assert!(why.contains("not proven: Failed to connect to 127.0.0.1"), "{why}");
        assert!(why.contains("port 443 of each name"), "{why}");
    });
}
