//! Delay under load through real queues: the place that the probes name is the one where the test
//! put the queue. Needs the privilege for network namespaces; says so and passes without it.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};

use crate::support::{command, linerate, no_laboratory, stderr, stdout};
use serde_json::Value;

/// A process that ends with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Two hosts and a link with these keys, `linerate serve` on the second one.
struct Pair {
    _server: Ended,
    lab: Ended,
}

impl Pair {
    fn start(link: &str) -> Self {
        let mut plan = tempfile::NamedTempFile::with_suffix(".toml").expect("a file");
        let hosts = "[[host]]\nname = \"a\"\n\n[[host]]\nname = \"b\"\n\n[[link]]\n";
        write!(plan, "{hosts}ends = [\"a\", \"b\"]\n{link}\n").expect("written");
        let path = plan.path().to_string_lossy().into_owned();
        let lab = command(&["lab", "run", &path]).stdout(Stdio::piped()).spawn();
        let mut lab = Ended(lab.expect("the laboratory starts"));
        let mut lines = BufReader::new(lab.0.stdout.take().expect("a pipe")).lines();
        let is_up = |line: std::io::Result<String>| line.is_ok_and(|it| it.starts_with("enter"));
        assert!(lines.any(is_up), "the laboratory is up");
        let serve = on(&lab, "b", &["serve", "--foreign", "none"]);
        let server = command(&words(&serve)).stderr(Stdio::piped()).spawn();
        let mut server = Ended(server.expect("the server starts"));
        let mut lines = BufReader::new(server.0.stderr.take().expect("a pipe")).lines();
        assert!(lines.any(|line| line.is_ok_and(|it| it.contains("serving on"))));
        // A full pipe would stop the server, so somebody reads on.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { _server: server, lab }
    }

    /// The record of a UDP test of two seconds from the first host.
    fn record(&self, flags: &[&str]) -> Value {
        let fixed = ["udp", "10.0.1.2", "-t", "2", "-O", "500ms", "--no-save", "--json"];
        let words_of_all = on(&self.lab, "a", &[&fixed[..], flags].concat());
        let output = linerate(&words(&words_of_all));
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_str(&stdout(&output)).expect("one document")
    }
}

/// The command line that runs this program on a host of a laboratory.
fn on(lab: &Ended, host: &str, arguments: &[&str]) -> Vec<String> {
    let pid = lab.0.id().to_string();
    let program = env!("CARGO_BIN_EXE_linerate");
    let shell = ["lab", "shell", host, "--lab", &pid, "--", program];
    shell.iter().chain(arguments).map(|word| (*word).to_owned()).collect()
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// What the load added in a place, in ms.
fn added(record: &Value, place: &str) -> f64 {
    let key = format!("delay_added{place}_ns");
    let rows = record["summary"].as_array().expect("a summary");
    let row = rows.iter().find(|row| row["metric"] == key.as_str());
    row.and_then(|row| row["value"].as_f64()).unwrap_or(f64::NAN) / 1e6
}

/// What it added in each place: here, there, back, within the other end.
fn places(record: &Value) -> [f64; 4] {
    ["_here", "_there", "_back", "_peer"].map(|place| added(record, place))
}

#[test]
fn a_queue_is_named_where_it_stands_on_the_way_there_or_back_or_in_this_host() {
    if let Some(reason) = no_laboratory() {
        println!("skipped: {reason}");
        return;
    }
    let link = "path = { rate = \"20 Mbit/s\", delay = \"5 ms\", buffer = \"100 ms\" }";
    let pair = Pair::start(link);
    // 250,000 bytes of IP packets wait, of which 20 Mbit/s of Ethernet carry 1500 of every 1538:
    // 102.5 ms. A busy machine's emulator is late by a few.
    let full = 95.0..110.0;
    let up = pair.record(&["-b", "25M"]);
    let [here, there, back, peer] = places(&up);
    assert!(full.contains(&there) && full.contains(&added(&up, "")), "{:?}", places(&up));
    assert!(here.abs() < 5.0 && back.abs() < 5.0 && peer.abs() < 5.0, "{:?}", places(&up));
    let down = pair.record(&["-b", "25M", "-R"]);
    let [here, there, back, peer] = places(&down);
    assert!(full.contains(&back) && full.contains(&added(&down, "")), "{:?}", places(&down));
    assert!(here.abs() < 5.0 && there.abs() < 5.0 && peer.abs() < 5.0, "{:?}", places(&down));
    drop(pair);

    // A token bucket filter on this host's own interface holds what the socket's send buffer lets
    // through: 212,992 bytes by the kernel's count, at most 53 ms at 40 Mbit/s.
    let own = Pair::start("rate = \"40 Mbit/s\"").record(&["-b", "60M"]);
    let [here, there, back, peer] = places(&own);
    assert!((10.0..60.0).contains(&here), "{:?}", places(&own));
    assert!(
        (here / added(&own, "") - 1.0).abs() < 0.2,
        "{:?} of {}",
        places(&own),
        added(&own, "")
    );
    assert!(there.abs() < 5.0 && back.abs() < 5.0 && peer.abs() < 5.0, "{:?}", places(&own));
}
