//! Programs under a service manager: the socket that a server is handed, and what each tells.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Starts a server as systemd does: `socket` is descriptor 3, and the number of the process, which
/// the shell keeps when it becomes the server, is in the environment.
fn start(socket: OwnedFd, descriptors: u32, notify: Option<&std::path::Path>) -> Child {
    let script = format!(
        "exec 3<&0 </dev/null; LISTEN_PID=$$ LISTEN_FDS={descriptors} exec \"$0\" serve \
         --foreign none --stamp-port none --no-save --log-level error"
    );
    let mut command = Command::new("sh");
    command.args(["-c", &script, env!("CARGO_BIN_EXE_linerate")]).stdin(Stdio::from(socket));
    command.env_remove("NOTIFY_SOCKET").stdout(Stdio::piped()).stderr(Stdio::piped());
    if let Some(path) = notify {
        command.env("NOTIFY_SOCKET", path);
    }
    command.spawn().expect("a shell")
}

fn ended(child: Child) -> (Output, String) {
    let output = child.wait_with_output().expect("it was started");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

fn heard(manager: &UnixDatagram) -> String {
    let mut bytes = [0; 64];
    let count = manager.recv(&mut bytes).expect("it is told in time");
    String::from_utf8_lossy(&bytes[..count]).into_owned()
}

#[test]
fn a_client_that_came_before_the_server_is_answered_on_the_managers_socket() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("notify");
    let manager = UnixDatagram::bind(&path).expect("a free path");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address: SocketAddr = listener.local_addr().expect("bound");
    // It waits in the kernel's queue until there is a server.
    let mut client = TcpStream::connect(address).expect("the manager listens");
    client.set_read_timeout(Some(PATIENCE)).expect("a time");
    let request = "GET /api/v1/server HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    client.write_all(request.as_bytes()).expect("the kernel takes it");

    let child = start(listener.into(), 1, Some(&path));
    assert_eq!(heard(&manager), "READY=1");
    let mut answer = String::new();
    client.read_to_string(&mut answer).expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");

    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    assert_eq!(heard(&manager), "STOPPING=1");
    let (output, said) = ended(child);
    assert!(said.contains(&format!("serving on {address}")), "{said}");
    assert!(output.status.code().is_some(), "it ended by itself: {:?}", output.status);
}

#[test]
fn what_is_no_single_tcp_listener_is_refused_with_the_remedy() {
    let listener = || TcpListener::bind("127.0.0.1:0").expect("a free port");
    let datagrams = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    for (socket, count) in [(listener().into(), 2), (datagrams.into(), 1)] {
        let (output, said) = ended(start(socket, count, None));
        assert!(!output.status.success(), "{said}");
        assert!(said.contains("ListenStream="), "{said}");
    }
}

#[test]
fn a_certificate_is_taken_with_its_key_alone() {
    let file = |name: &str| format!("{}/../../testdata/tls/{name}", env!("CARGO_MANIFEST_DIR"));
    let serve = |flags: &[String]| {
        let line = ["serve", "-B", "127.0.0.1", "-p", "0", "--foreign", "none", "--no-save"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let output = command.args(line).args(flags).output().expect("the program");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    let certificate = ["--tls-cert".to_owned(), file("one.pem")];
    let (code, said) = serve(&certificate);
    assert!(code == Some(2) && said.contains("--tls-key"), "{code:?}: {said}");
    for key in ["two.key", "missing.key"] {
        let key = ["--tls-key".to_owned(), file(key)];
        let (code, said) = serve(&[certificate.as_slice(), &key].concat());
        assert!(code != Some(0) && said.contains("testdata/tls/"), "{code:?}: {said}");
    }
}

#[test]
fn an_authority_that_cannot_be_asked_is_named_before_or_in_the_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let serve_as = |name: &str, flags: &[&str]| {
        let line = ["serve", "-B", "127.0.0.1", "-p", "0", "--foreign", "none", "--no-save"];
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command.args(line).args(["--stamp-port", "none", "--acme", name]).args(flags);
        command.arg("--acme-folder").arg(folder.path().join("acme"));
        command.stderr(Stdio::piped()).spawn().expect("the program")
    };
    let serve = |flags: &[&str]| serve_as("speed.test", flags);
    let (output, said) = ended(serve_as("bad name!", &[]));
    assert!(output.status.code() == Some(2) && said.contains("bad name!: "), "{said}");
    let (output, said) = ended(serve(&["--acme-directory", "http://localhost/dir"]));
    assert!(output.status.code() == Some(2) && said.contains("https://HOST/PATH"), "{said}");

    let authority = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/tls/ca.pem");
    // Port 9 of loopback: nobody listens.
    let nobody = ["--acme-directory", "https://localhost:9/dir", "--acme-ca", authority];
    let mut child = serve(&[&nobody[..], &["--acme-contact", "noc@speed.test"]].concat());
    let said = BufReader::new(child.stderr.take().expect("a pipe"));
    let mut lines = said.lines().map_while(Result::ok);
    let line = lines.find(|line| line.contains("no certificate for speed.test"));
    let _ = child.kill();
    let _ = child.wait();
    let line = line.expect("it is logged");
    assert!(line.contains("https://localhost:9/dir") && line.contains("again in 60 s"), "{line}");
}

#[test]
fn a_quic_port_that_is_taken_ends_the_server() {
    let taken = std::net::UdpSocket::bind("127.0.0.1:0").expect("a free port");
    let port = taken.local_addr().expect("bound").port().to_string();
    let line = ["serve", "-B", "127.0.0.1", "-p", "0", "--foreign", "none", "--no-save"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    let output = command.args(line).args(["--quic-port", &port]).output().expect("the program");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_ne!(output.status.code(), Some(0), "{said}");
    assert!(said.contains(&format!("bind UDP 127.0.0.1:{port}: ")), "{said}");
    assert!(said.contains("--quic-port"), "{said}");
}

#[test]
fn the_units_name_each_other_and_wait_for_what_the_server_tells() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/systemd/linerate-serve.");
    let unit = |kind: &str| std::fs::read_to_string(format!("{folder}{kind}")).expect("a unit");
    assert!(unit("socket").contains("\nListenStream=5210\n"));
    assert!(unit("service").contains("\nType=notify\n"));
}

/// What a program tells its manager from its begin to its end by SIGTERM, and how it ended.
fn told(directory: &std::path::Path, words: &[&str]) -> (Vec<String>, Option<i32>) {
    let path = directory.join("notify");
    let manager = UnixDatagram::bind(&path).expect("a free path");
    manager.set_read_timeout(Some(PATIENCE)).expect("a time");
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(words).current_dir(directory).env("NOTIFY_SOCKET", &path);
    command.env_remove("LINERATE_STORE").env_remove("LINERATE_TOKEN");
    let child = command.stdin(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let begun = heard(&manager);
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill").success());
    let ended = child.wait_with_output().expect("it ends").status.code();
    (vec![begun, heard(&manager)], ended)
}

#[test]
fn an_agent_is_ready_while_it_waits_for_its_hub_and_a_schedule_when_it_keeps_its_plan() {
    let wanted = ["READY=1".to_owned(), "STOPPING=1".to_owned()].to_vec();
    let folder = tempfile::tempdir().expect("a folder");
    // Nobody listens at that port.
    let token = format!("lrm1.{}.{}", "ab".repeat(16), "cd".repeat(32));
    let agent = ["agent", "--join", "http://127.0.0.1:1", "--store", "a.db", "--token", &token];
    assert_eq!(told(folder.path(), &agent), (wanted.clone(), Some(3)));
    let folder = tempfile::tempdir().expect("a folder");
    let plan = "name = \"p\"\n[[task]]\nname = \"t\"\nrun = \"ping 127.0.0.1\"\nevery = \"7d\"\n";
    std::fs::write(folder.path().join("p.toml"), plan).expect("room");
    let schedule = ["schedule", "run", "p.toml", "--store", "s.db"];
    assert_eq!(told(folder.path(), &schedule), (wanted, Some(0)));
}

/// Each unit starts a command that there is, with flags that it has, and waits for its word.
#[test]
fn the_units_start_what_there_is() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/systemd");
    let mut started = Vec::new();
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        let unit = std::fs::read_to_string(&path).expect("a unit");
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        let Some(line) = unit.lines().find_map(|line| line.strip_prefix("ExecStart=")) else {
            assert!(name.ends_with(".socket"), "{name} starts nothing");
            continue;
        };
        assert!(unit.contains("\nType=notify\n"), "{name}");
        let words: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(words[0], "/usr/bin/linerate", "{name}");
        let place = |word: &&&str| word.starts_with(['-', '/', '$', '%']);
        let commands = words[1..].iter().take_while(|word| !place(word));
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        let output = command.args(commands).arg("--help").output().expect("the program");
        let help = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {line}");
        for flag in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(&format!("{flag} ")), "{name}: {flag}");
        }
        started.push(name);
    }
    started.sort();
    let units = ["linerate-agent.service", "linerate-schedule@.service", "linerate-serve.service"];
    assert_eq!(started, units);
}

#[test]
fn a_name_that_the_operator_lists_is_answered() {
    let server = crate::support::Server::start(&["--no-save", "--allow-host", "perf.example"]);
    for (host, status) in
        [("perf.example", "200"), ("PERF.example:80", "200"), ("b.example", "421")]
    {
        let mut client =
            TcpStream::connect(format!("127.0.0.1:{}", server.port)).expect("it is there");
        client.set_read_timeout(Some(PATIENCE)).expect("a time");
        let request =
            format!("GET /api/v1/server HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
        client.write_all(request.as_bytes()).expect("the kernel takes it");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{host}: {answer}");
    }
}
