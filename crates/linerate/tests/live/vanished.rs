//! A client whose host vanishes gives its place back within five seconds, in each protocol and
//! direction: two namespaces, and the link between them goes down under the test.

#![allow(clippy::print_stdout, reason = "the test runner shows why tests are skipped")]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use linerate_sys::clock::{monotonic, sleep};

/// The connections of a namespace.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];

/// Two namespaces with a link, removed when dropped.
struct Pair {
    names: [String; 2],
}

fn ip(words: &str) -> bool {
    crate::support::turn::take();
    let output = Command::new("ip").args(words.split_whitespace()).output();
    output.is_ok_and(|output| output.status.success())
}

impl Pair {
    fn build(lane: usize) -> Option<Self> {
        let names = ["a", "b"].map(|end| format!("linerate-{}-{lane}{end}", std::process::id()));
        let [a, b] = &names;
        let pair = Self { names: names.clone() };
        let built = ip(&format!("netns add {a}"))
            && ip(&format!("netns add {b}"))
            && ip(&format!("link add v0 netns {a} type veth peer name v1 netns {b}"))
            && ip(&format!("-n {a} addr add 10.9.0.1/24 dev v0"))
            && ip(&format!("-n {b} addr add 10.9.0.2/24 dev v1"))
            && ip(&format!("-n {b} link set v1 up"));
        built.then_some(pair)
    }

    fn set(&self, state: &str) {
        assert!(ip(&format!("-n {} link set v0 {state}", self.names[0])));
    }

    /// Waits until the server's end has a connection (proc_net(5): state 01).
    fn wait_until_connected(&self) {
        for _ in 0..300 {
            let mut ip = Command::new("ip");
            let output = ip.args(["netns", "exec", &self.names[1], "cat"]).args(TABLES).output();
            let table = output.map(|output| output.stdout).unwrap_or_default();
            if String::from_utf8_lossy(&table).lines().any(|line| line.contains(" 01 ")) {
                return;
            }
            sleep(Duration::from_millis(50));
        }
        panic!("no client connects");
    }

    /// Runs the built program at an end.
    fn start(&self, end: usize, words: &str) -> Child {
        Command::new("ip")
            .args(["netns", "exec", &self.names[end], env!("CARGO_BIN_EXE_linerate")])
            .args(words.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("ip runs")
    }
}

impl Drop for Pair {
    fn drop(&mut self) {
        for name in &self.names {
            ip(&format!("netns del {name}"));
        }
    }
}

fn end(mut child: Child) {
    let _ = child.kill();
    let _ = child.wait();
}

/// The server's lines as they come.
fn lines(server: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let pipe = server.stderr.take().expect("a pipe");
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    receiver
}

/// A client of each protocol and direction.
const CLIENTS: &[&str] = &[
    "tcp 10.9.0.2 --time 30s --no-save",
    "iperf3 -c 10.9.0.2 -t 30",
    "iperf3 -c 10.9.0.2 -t 30 -R",
    "iperf3 -c 10.9.0.2 -t 30 -u",
    "iperf3 -c 10.9.0.2 -t 30 -u -R",
    "iperf -c 10.9.0.2 -t 30",
    "iperf -c 10.9.0.2 -t 30 -R",
    "nuttcp -T30 10.9.0.2",
    "nuttcp -T30 -r 10.9.0.2",
    "ttcp -t -n 999999999 10.9.0.2",
];

#[test]
fn a_vanished_client_gives_its_place_back_within_five_seconds() {
    // Each lane has namespaces and a server of its own, since nearly all of the time is waiting.
    std::thread::scope(|scope| {
        for (lane, clients) in CLIENTS.chunks(2).enumerate() {
            scope.spawn(move || check(lane, clients));
        }
    });
}

fn check(lane: usize, clients: &[&str]) {
    let Some(pair) = Pair::build(lane) else {
        println!("skipped: network namespaces cannot be built here");
        return;
    };
    let mut server = pair.start(1, "serve --foreign iperf2,iperf3,nuttcp");
    let log = lines(&mut server);
    for words in clients {
        pair.set("up");
        while log.recv_timeout(Duration::from_millis(300)).is_ok() {}
        let client = pair.start(0, words);
        pair.wait_until_connected();
        sleep(Duration::from_millis(700));
        pair.set("down");
        let begin = monotonic();
        let said = log.recv_timeout(Duration::from_secs(30));
        let waited = monotonic().duration_since(begin);
        end(client);
        let said = said.unwrap_or_else(|_| panic!("{words}: the place is taken for ever"));
        // 5 s, and 30 are never late; without a look at silent peers it is minutes.
        println!("{words}: {waited:?}, then {said}");
    }
    end(server);
}
