//! What the test programs share: running the built program, and asking whether this machine lets
//! a laboratory be built.
#![allow(dead_code, reason = "each test program uses a part")]

pub(crate) mod mesh;
#[path = "../../../linerate-server/tests/quick/peers/ports.rs"]
pub(crate) mod ports;
pub(crate) mod turn;

use std::io::{BufRead, BufReader, Lines};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::Duration;

/// The built program, with a store of its own.
pub(crate) fn command(arguments: &[&str]) -> Command {
    turn::take();
    let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
    command.args(arguments).env("XDG_DATA_HOME", env!("CARGO_TARGET_TMPDIR"));
    command.env_remove("LINERATE_STORE");
    command
}

/// Runs the built program without a terminal.
pub(crate) fn linerate(arguments: &[&str]) -> Output {
    command(arguments).output().expect("the program starts")
}

/// Runs the built program, which must end with `code`; gives what it printed as a result.
pub(crate) fn ends_with(code: i32, arguments: &[&str]) -> String {
    let output = linerate(arguments);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {}", stderr(&output));
    stdout(&output)
}

pub(crate) fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).expect("results are UTF-8")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("messages are UTF-8")
}

/// Wrong use: nothing on standard output, one line on standard error with each of `parts`, code 2.
pub(crate) fn check_wrong_use(arguments: &[&str], parts: &[&str]) {
    let output = linerate(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?} said {said}");
    assert_eq!(stdout(&output), "", "{arguments:?}");
    assert_eq!(said.lines().count(), 1, "{arguments:?} said {said}");
    assert!(said.starts_with("linerate: "), "{arguments:?} said {said}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} said {said}, without {part}");
    }
}

/// Sends SIGINT, as Ctrl-C does.
pub(crate) fn interrupt(child: &Child) {
    let sent = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(sent.expect("a shell runs").success());
}

/// Looks again and again until it holds, for four minutes, which is enough on any machine that does
/// anything at all; whether it does.
fn comes(look_every: Duration, mut holds: impl FnMut() -> bool) -> bool {
    let end = linerate_sys::clock::monotonic() + Duration::from_secs(240);
    while !holds() {
        if linerate_sys::clock::monotonic() >= end {
            return false;
        }
        linerate_sys::clock::sleep(look_every);
    }
    true
}

/// Waits until a process has its own way to end by SIGINT (proc_pid_status(5): signal 2 is bit 1).
pub(crate) fn wait_until_interruptible(child: &Child) {
    let catches = |status: String| {
        status.lines().filter_map(|line| line.split_once(':')).any(|(name, mask)| {
            matches!(name, "SigCgt" | "SigBlk")
                && u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 2 != 0)
        })
    };
    let status = format!("/proc/{}/status", child.id());
    let is_ready = || std::fs::read_to_string(&status).is_ok_and(catches);
    assert!(comes(Duration::from_millis(10), is_ready), "it takes no signal");
}

/// How a process ended, or `None` when it has not after four minutes.
pub(crate) fn end_of(child: &mut Child) -> Option<ExitStatus> {
    let mut end = None;
    comes(Duration::from_millis(50), || {
        end = child.try_wait().expect("the process is ours");
        end.is_some()
    });
    end
}

/// A port that no other test gets.
pub(crate) fn free_port() -> String {
    free_ports(1)
}

/// The first of so many ports under each other that no other test gets.
pub(crate) fn free_ports(count: u16) -> String {
    ports::reserve(count).to_string()
}

/// Waits until somebody listens on a TCP port of this host, without a connection, which a server
/// may count as a test.
pub(crate) fn wait_until_listening(port: &str) {
    let hex = format!(":{:04X} ", port.parse::<u16>().expect("a port"));
    let there = |table: String| table.lines().any(|l| l.contains(&hex) && l.contains(" 0A "));
    let listens = || {
        let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(std::fs::read_to_string);
        tables.into_iter().flatten().any(there)
    };
    assert!(comes(Duration::from_millis(10), listens), "nobody listens on {port}");
}

/// Why no laboratory can be built on this machine, if so.
pub(crate) fn no_laboratory() -> Option<String> {
    let output = linerate(&["lab", "run", "cable", "--on", "a", "--", "true"]);
    (!output.status.success()).then(|| stderr(&output).trim_end().to_owned())
}

/// A running server on loopback, ended when dropped.
pub(crate) struct Server {
    pub(crate) child: Child,
    pub(crate) port: String,
}

impl Server {
    /// Starts a server on a free port with further flags.
    pub(crate) fn start(flags: &[&str]) -> Self {
        // The usual port of STAMP is one for the whole host.
        let no_stamp = (!flags.contains(&"--stamp-port")).then_some(["--stamp-port", "none"]);
        let mut child =
            command(&["serve", "--port", "0", "--bind", "127.0.0.1", "--foreign", "none"])
                .args(flags)
                .args(no_stamp.iter().flatten())
                .stderr(Stdio::piped())
                .spawn()
                .expect("the server starts");
        let pipe = child.stderr.take().expect("standard error is a pipe");
        let mut lines = BufReader::new(pipe).lines();
        let port = served_port(&mut lines);
        // A full pipe would stop the server, so somebody reads on.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { child, port }
    }
}

/// The port on 127.0.0.1 of a server that writes these lines, which are read up to the one that
/// says that all of its ports are open.
pub(crate) fn served_port(lines: &mut Lines<impl BufRead>) -> String {
    for line in lines {
        let line = line.expect("in UTF-8");
        if let Some((_, rest)) = line.split_once("serving on 127.0.0.1:") {
            return rest.chars().take_while(char::is_ascii_digit).collect();
        }
    }
    panic!("the server ended before it served")
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
