//! Runs one cell: the path, the server, the client, what goes wrong, and what was counted. Every
//! wait is bounded.

use std::fs::File;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use linerate_core::time::MonoTime;
use linerate_sys::{child, clock};
use tempfile::TempDir;

use super::cell::{Cell, Fault};
use super::path::{Counted, End, Path};

/// The longest client: connecting into nothing takes iperf 2 and nuttcp 7 s with three SYNs, and
/// programs that hear nothing give up after 30 s.
const PATIENCE: Duration = Duration::from_secs(45);
/// What a server needs to print its last lines.
const LAST_LINES: Duration = Duration::from_millis(300);

/// What came of a cell.
pub(crate) struct Outcome {
    /// Exit code; none when it had to be killed, or died by a signal.
    pub(crate) code: Option<i32>,
    /// It did not end by itself.
    pub(crate) hung: bool,
    pub(crate) client: String,
    pub(crate) client_errors: String,
    pub(crate) server: String,
    /// From the client's start to its end.
    pub(crate) seconds: f64,
    pub(crate) began: MonoTime,
    pub(crate) ended: MonoTime,
    /// At the client's end of the cable, and at the server's.
    pub(crate) counted: [Counted; 2],
}

/// Runs a cell on the calling thread, which stays in the cell's namespace.
/// # Errors
/// When the server did not come up, with what it said.
pub(crate) fn run(cell: &Cell) -> Result<Outcome, String> {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let path = Path::new(&cell.limits);
    path.enter(End::Server);
    let mut server = start(&directory, "server", &cell.server_command());
    let (port, udp) = cell.port();
    if !wait_for(Duration::from_secs(15), || path.has_port(End::Server, udp, port)) {
        stop(&mut server);
        return Err(format!("nobody listens on {port}: {}", said(&directory, "server", "err")));
    }
    if cell.fault == Fault::Unplug {
        path.unplug();
    }
    if cell.fault == Fault::Drop {
        drop_large_packets(&path);
    }
    let before = [End::Client, End::Server].map(|end| path.counted(end));
    path.enter(End::Client);
    let began = clock::monotonic();
    let mut client = start(&directory, "client", &cell.client_command());
    if cell.fault == Fault::Kill {
        clock::sleep(Duration::from_millis(800));
        // nuttcp's serves each client by a child, which would outlive it.
        path.kill_all(End::Server);
        stop(&mut server);
    }
    let ends = wait_for(PATIENCE, || matches!(client.try_wait(), Ok(Some(_)) | Err(_)));
    let ended = clock::monotonic();
    let code = if ends { client.wait().ok().and_then(|status| status.code()) } else { None };
    stop(&mut client);
    finish(&mut server);
    let after = [End::Client, End::Server].map(|end| path.counted(end));
    Ok(Outcome {
        code,
        hung: !ends,
        client: said(&directory, "client", "out"),
        client_errors: said(&directory, "client", "err"),
        server: said(&directory, "server", "out"),
        seconds: ended.duration_since(began).as_secs_f64(),
        began,
        ended,
        counted: [less(after[0], before[0]), less(after[1], before[1])],
    })
}

fn start(directory: &TempDir, name: &str, words: &[String]) -> Child {
    // Another build may be held to the laws, to see since when one is broken.
    let ours = std::env::var("LINERATE_LAWS_PROGRAM");
    let program = match words[0].as_str() {
        "linerate" => ours.as_deref().unwrap_or(env!("CARGO_BIN_EXE_linerate")),
        other => other,
    };
    let file = |kind: &str| {
        File::create(directory.path().join(format!("{name}.{kind}"))).expect("room for output")
    };
    let mut command = Command::new(program);
    command
        .args(&words[1..])
        .env("XDG_DATA_HOME", directory.path())
        .env_remove("LINERATE_STORE")
        .stdin(Stdio::null())
        .stdout(file("out"))
        .stderr(file("err"));
    child::die_with_parent(&mut command).spawn().expect("the program starts")
}

fn said(directory: &TempDir, name: &str, kind: &str) -> String {
    let bytes = std::fs::read(directory.path().join(format!("{name}.{kind}"))).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn wait_for(patience: Duration, mut is_there: impl FnMut() -> bool) -> bool {
    let end = clock::monotonic() + patience;
    loop {
        if is_there() {
            return true;
        }
        if clock::monotonic() >= end {
            return false;
        }
        clock::sleep(Duration::from_millis(5));
    }
}

fn stop(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// Lets a server print its last lines, asks it to end, and ends it.
fn finish(server: &mut Child) {
    clock::sleep(LAST_LINES);
    let pid = server.id().to_string();
    for signal in ["INT", "INT", "TERM"] {
        let _ = Command::new("kill").args(["-s", signal, &pid]).stderr(Stdio::null()).status();
        if wait_for(LAST_LINES, || !matches!(server.try_wait(), Ok(None))) {
            return;
        }
    }
    stop(server);
}

/// Every packet above 600 bytes is dropped where it comes in, at both ends: control connections
/// go on, data never arrives.
fn drop_large_packets(path: &Path) {
    let rules = "add table ip laws; \
                 add chain ip laws input { type filter hook input priority 0; }; \
                 add rule ip laws input meta length > 600 drop";
    for end in [End::Client, End::Server] {
        path.enter(end);
        let status = Command::new("nft").arg(rules).status();
        assert!(status.is_ok_and(|status| status.success()), "nft takes the rules");
    }
}

fn less(after: Counted, before: Counted) -> Counted {
    let (new, old) = (after.queue, before.queue);
    let mut queue = new;
    queue.packets = new.packets.saturating_sub(old.packets);
    queue.bytes = new.bytes.saturating_sub(old.bytes);
    queue.drops = new.drops.saturating_sub(old.drops);
    Counted {
        queue,
        rx_bytes: after.rx_bytes.saturating_sub(before.rx_bytes),
        rx_packets: after.rx_packets.saturating_sub(before.rx_packets),
        socket_drops: after.socket_drops.saturating_sub(before.socket_drops),
    }
}
