//! Servers of iperf3 and of this program, and what is asked of them.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::Value;

use crate::support::{command, free_port, linerate, stderr};

/// Whether iperf3 is here; says so where it is not.
#[allow(clippy::print_stdout, reason = "a skipped test is seen")]
pub(crate) fn has_iperf3() -> bool {
    let there = Command::new("iperf3").arg("--version").output().is_ok();
    if !there {
        println!("skipped: no iperf3 on the path");
    }
    there
}

/// A process that ends with the test, listening on a port.
pub(crate) struct Peer {
    pub(crate) child: Child,
    pub(crate) port: String,
    /// iperf3 closes its listener after each test and then says again that it listens.
    pub(crate) listens: Option<Receiver<()>>,
    /// What it printed since.
    pub(crate) lines: Receiver<String>,
}

impl Peer {
    /// Starts a server and waits until its first line says that it listens.
    pub(crate) fn start(command: Command, port: String, listening: &str) -> Self {
        Self::started(command, port, listening).expect("the server says that it listens")
    }

    /// The same; none when it ends without a word, as where another took the port meanwhile.
    fn started(mut command: Command, port: String, listening: &str) -> Option<Self> {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        let pipe: Box<dyn Read + Send> = match listening {
            "stderr" => Box::new(child.stderr.take().expect("a pipe")),
            _ => Box::new(child.stdout.take().expect("a pipe")),
        };
        let mut lines = BufReader::new(pipe).lines();
        let ready = lines.by_ref().map_while(Result::ok).find(|line| line.contains("on "));
        if ready.is_none() {
            let _ = child.wait();
            return None;
        }
        let (say, listens) = channel();
        let _ = say.send(());
        let (tell, told) = channel();
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                if line.contains("listening on ") {
                    say.send(()).unwrap_or_default();
                }
                tell.send(line).unwrap_or_default();
            }
        });
        Some(Self { child, port, listens: Some(listens), lines: told })
    }

    /// Nothing has to be waited for between two tests.
    pub(crate) fn always_listening(mut self) -> Self {
        self.listens = None;
        self
    }

    /// `iperf3 -s`.
    pub(crate) fn iperf3() -> Self {
        Self::iperf3_with(&[])
    }

    /// `iperf3 -s` with further flags.
    pub(crate) fn iperf3_with(flags: &[String]) -> Self {
        let begin = || {
            let port = free_port();
            let mut command = Command::new("iperf3");
            command.args(["-s", "-p", &port, "-B", "127.0.0.1", "--forceflush"]).args(flags);
            Self::started(command, port, "stdout")
        };
        (0..3).find_map(|_| begin()).expect("iperf3 says that it listens")
    }

    /// `linerate serve` with a port for iperf3.
    pub(crate) fn serve(flags: &[&str]) -> Self {
        let port = free_port();
        let foreign = format!("iperf3:{port}");
        let mut command =
            command(&["serve", "--port=0", "--bind=127.0.0.1", "--foreign", &foreign]);
        command.args(flags);
        Self::start(command, port, "stderr").always_listening()
    }

    /// `linerate iperf3 -s`.
    pub(crate) fn personality(flags: &[&str]) -> Self {
        let port = free_port();
        let mut command = command(&["iperf3", "--server", "--bind=127.0.0.1", "--port", &port]);
        command.args(flags);
        Self::start(command, port, "stdout").always_listening()
    }

    /// Its port once it listens for another test.
    pub(crate) fn ready(&self) -> &str {
        if let Some(listens) = &self.listens {
            listens.recv_timeout(Duration::from_secs(20)).expect("it listens again");
        }
        &self.port
    }

    /// Waits until it prints a line with these words.
    pub(crate) fn wait_for_line(&self, words: &str) {
        let next = || self.lines.recv_timeout(Duration::from_secs(20)).ok();
        let mut lines = std::iter::from_fn(next);
        assert!(lines.any(|line| line.contains(words)), "it says \"{words}\"");
    }

    /// `iperf3 -c` against it.
    pub(crate) fn asked_by_iperf3(&self, flags: &[&str]) -> Output {
        let mut command = Command::new("iperf3");
        command.args(["-c", "127.0.0.1", "-p", self.ready(), "-C", "cubic"]).args(flags);
        command.output().expect("iperf3 starts")
    }

    /// `linerate tcp --via iperf3` against it.
    pub(crate) fn measured(&self, flags: &[&str]) -> Value {
        let base = ["tcp", "127.0.0.1", "--via", "iperf3", "--no-save", "--json", "--port"];
        let output = linerate(&[&base[..], &[self.ready()], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{flags:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("--json prints one document")
    }

    /// `linerate iperf3 -c` against it.
    pub(crate) fn asked(&self, flags: &[&str]) -> Output {
        linerate(&[&["iperf3", "--client", "127.0.0.1", "--port", self.ready()], flags].concat())
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn json(output: &Output) -> Value {
    // With -J a failure stands in the document.
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// Both sides' bytes of a document of `iperf3 -J`, with the keys' ending.
pub(crate) fn bytes(document: &Value, ending: &str) -> (u64, u64) {
    let of = |key: &str| {
        let value = &document["end"][format!("{key}{ending}")]["bytes"];
        value.as_u64().unwrap_or_else(|| panic!("no {key}{ending} in {document}"))
    };
    (of("sum_sent"), of("sum_received"))
}
