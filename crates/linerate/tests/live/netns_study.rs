//! Studies in laboratories of network namespaces, by the built program: measured whole, with cells
//! that fail, stopped by Ctrl-C and by a kill, and gone on with.
//!
//! Needs root, or a kernel that lets users make namespaces; says `skipped: reason` without.
#![allow(clippy::print_stdout, reason = "a skipped test says so")]

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use linerate_core::record::{MetricId, Plan, Record, RecordStatus, Stat};
use linerate_core::study::{CellKey, StudyPlan};
use linerate_store::{Store, StudyState};
use linerate_sys::clock;
use tempfile::TempDir;

/// A host alone and a cable: 2 topologies x (2 sizes + 1 window x 2) = 8 cells.
const PLAN: &str = r#"name = "small"
title = "A small study"

[[topology]]
id = "self"
title = "localhost"
class = "calibration"
client = "a"
server = "a"
lab.host = [{ name = "a", loopback_mtu_bytes = 1500, loopback_offload = false }]

[[topology]]
id = "cable"
title = "cable"
class = "calibration"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], mtu_bytes = 1500, offload = false }]

[[test]]
id = "ping"
kind = "ping"
sizes_bytes = [56, 1400]
count = 100
repetitions = 1

[[test]]
id = "tcp"
kind = "tcp"
windows_bytes = [65536]
seconds = 0.2
congestion_control = "reno"
repetitions = 2
"#;

const CELLS: usize = 8;

/// A directory with the plan and a store of its own; none where namespaces cannot be made.
struct Place {
    directory: TempDir,
}

impl Place {
    fn new(plan: &str) -> Option<Self> {
        crate::support::turn::take();
        let directory = tempfile::tempdir().expect("a temporary directory");
        std::fs::write(directory.path().join("small.toml"), plan).expect("room");
        let lab = ["lab", "run", "cable", "--on", "a", "--", "true"];
        let attempt = Command::new(env!("CARGO_BIN_EXE_linerate"))
            .args(lab)
            .stdin(Stdio::null())
            .output()
            .expect("the program starts");
        if attempt.status.success() {
            return Some(Self { directory });
        }
        println!("skipped: {}", said(&attempt).trim());
        None
    }

    fn store_path(&self) -> PathBuf {
        self.directory.path().join("results.db")
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_linerate"));
        command
            .args(["study", "run"])
            .args(arguments)
            .current_dir(self.directory.path())
            .env("LINERATE_STORE", self.store_path());
        command
    }

    /// Runs to the end.
    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().expect("the program starts")
    }

    fn spawn(&self, arguments: &[&str]) -> Running {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        Running(Some(child.expect("the program starts")))
    }

    fn store(&self) -> Store {
        Store::open(&self.store_path()).expect("a store")
    }

    /// The records that count for the newest run.
    fn records(&self) -> Vec<Record> {
        let store = self.store();
        let run = store.last_run(None).expect("readable").expect("a run");
        store.run_records(&run).expect("readable")
    }

    /// Waits until the newest run has `count` records; at most half a minute.
    fn wait_for(&self, count: usize) {
        for _ in 0..600 {
            let store = self.store();
            let run = store.last_run(None).expect("readable");
            if run.is_some_and(|run| store.run_records(&run).expect("readable").len() >= count) {
                return;
            }
            clock::sleep(Duration::from_millis(50));
        }
        panic!("{count} records did not come");
    }
}

/// A run under way; ends with the test, however that ends.
struct Running(Option<Child>);

impl Running {
    fn interrupt(&self) {
        self.signal("INT");
    }

    fn signal(&self, name: &str) {
        let pid = self.0.as_ref().expect("it runs").id().to_string();
        let status = Command::new("kill").args(["-s", name, &pid]).status().expect("kill starts");
        assert!(status.success());
    }

    fn output(mut self) -> Output {
        let child = self.0.take().expect("it runs");
        child.wait_with_output().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn keys(records: &[Record]) -> Vec<CellKey> {
    records
        .iter()
        .map(|record| CellKey::from_cell(record.cell.as_ref().expect("in a study")))
        .collect()
}

fn all_keys() -> Vec<CellKey> {
    let plan = StudyPlan::from_toml(PLAN).expect("a sound plan");
    plan.cell_plans().iter().map(|cell| CellKey::from_cell(&cell.cell)).collect()
}

#[test]
fn a_study_measures_every_cell_and_writes_its_report() {
    let Some(place) = Place::new(PLAN) else { return };
    let output = place.run(&["small.toml", "--report", "report"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let records = place.records();
    assert_eq!(keys(&records), all_keys());
    records.iter().for_each(check_record);
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    // The tables, the path, and one plain sentence on the lines after it.
    let (tables, sentence) = out.split_once("\nreport: report/index.html\n").expect("the path");
    assert!(tables.starts_with("A small study"), "{tables}");
    let sentence: Vec<&str> = sentence.split_whitespace().collect();
    let sentence = sentence.join(" ");
    assert!(sentence.contains("localhost") && sentence.ends_with('.'), "{sentence}");
    let unbroken: Vec<&str> = tables.split_whitespace().collect();
    assert!(!unbroken.join(" ").contains(&sentence), "said once");
    assert!(place.directory.path().join("report/index.html").exists());
    let store = place.store();
    assert_eq!(store.list_study_runs().expect("readable")[0].state, StudyState::Finished);
    assert!(store.list_study_runs().expect("readable")[0].host.is_some());
}

#[track_caller]
fn check_record(record: &Record) {
    assert_eq!((record.status, &record.failure), (RecordStatus::Ok, &None));
    match &record.plan {
        Plan::Ping(ping) => {
            let size = ping.sizes_bytes[0];
            assert_eq!(record.value_at(MetricId::Sent, Stat::Value, size), Some(100.0));
            assert_eq!(record.value_at(MetricId::LossRatio, Stat::Value, size), Some(0.0));
        }
        Plan::Tcp(_)
        | Plan::Simulate(_)
        | Plan::Bench(_)
        | Plan::Test(_)
        | Plan::Compare(_)
        | Plan::Trace(_) => {
            let goodput = record.summary_value(MetricId::Goodput, Stat::Value, None);
            assert!(goodput.is_some_and(|bps| bps > 1e6), "{goodput:?}");
            let sender = record.flows[0].sender.as_ref().expect("the sender told");
            assert_eq!(sender.congestion_control.got.as_deref(), Some("reno"));
        }
        Plan::Udp(udp) => {
            let pace = udp.test.pace.map_or(f64::NAN, |pace| pace.bits_per_sec() as f64);
            let goodput = record.summary_value(MetricId::Goodput, Stat::Value, None);
            // A busy machine sends late, and catches up.
            assert!(
                goodput.is_some_and(|bps| bps > 0.05 * pace && bps < 3.0 * pace),
                "{goodput:?}"
            );
        }
    }
}

#[test]
fn datagrams_by_offered_rate_are_measured_and_stand_in_the_tables() {
    let (head, _) = PLAN.split_once("[[test]]").expect("it has tests");
    let test = "[[test]]\nid = \"udp\"\nkind = \"udp\"\nrates = [\"2 Mbit/s\", \"8 Mbit/s\"]\n\
                sizes_bytes = [1000]\nseconds = 0.3\nrepetitions = 1\n";
    let Some(place) = Place::new(&format!("{head}{test}")) else { return };
    let output = place.run(&["small.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let records = place.records();
    assert_eq!(records.len(), 4, "2 topologies x 2 rates");
    records.iter().for_each(check_record);
    let tables = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(tables.contains("2 Mbit/s") && tables.contains("8 Mbit/s"), "{tables}");
}

#[test]
fn cells_that_fail_are_kept_and_measured_again_on_request() {
    let Some(place) = Place::new(&PLAN.replace("\"reno\"", "\"nosuch\"")) else { return };
    let output = place.run(&["small.toml", "--only", "self", "--repetitions", "1"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    let records = place.records();
    assert_eq!(records.len(), 3);
    let failed: Vec<&Record> = records.iter().filter(|record| record.failure.is_some()).collect();
    assert_eq!(failed.len(), 1);
    assert!(matches!(failed[0].plan, Plan::Tcp(_)));
    assert!(said(&output).contains("1 failed, the first: "), "{}", said(&output));
    assert_eq!(place.store().list_study_runs().expect("readable")[0].state, StudyState::Partial);
    let output = place.run(&["--resume"]);
    assert_eq!(output.status.code(), Some(5), "{}", said(&output));
    assert!(said(&output).contains("resumes: 1 of 3 left"), "{}", said(&output));
    assert_eq!(place.records().len(), 3, "the new record took the cell of the old one");
}

/// A path under one run of TCP.
const PATH: &str = r#"name = "spoilt"
title = "A path that is held up"
retries = 0

[[topology]]
id = "path"
title = "path"
class = "man"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], path = { rate = "50 Mbit/s", delay = "5 ms" } }]

[[test]]
id = "tcp"
kind = "tcp"
streams = [1]
seconds = 3.0
congestion_control = "reno"
repetitions = 1
"#;

#[test]
fn a_run_that_the_machine_spoilt_is_measured_again_and_both_attempts_are_stored() {
    if !std::path::Path::new("/dev/net/tun").exists() {
        println!("skipped: there is no /dev/net/tun");
        return;
    }
    let Some(place) = Place::new(PATH) else { return };
    let child = place.spawn(&["small.toml", "--retries", "1"]);
    // Nothing of the program runs for longer than a sender waits for an acknowledgement.
    for _ in 0..3 {
        clock::sleep(Duration::from_millis(1000));
        child.signal("STOP");
        clock::sleep(Duration::from_millis(400));
        child.signal("CONT");
    }
    let output = child.output();
    let text = said(&output);
    let begin = "path: streams 1: emulate path a eth0 - b eth0: the emulator stalled for ";
    assert!(text.contains(begin), "{text}");
    assert!(text.contains("senders take 200 ms for a loss"), "{text}");
    assert!(text.contains("; measured again, 1 of 1"), "{text}");
    assert!(text.contains("1 repeated because this machine invalidated them"), "{text}");
    assert_eq!(place.records().len(), 1, "the last attempt counts");
    let history = Command::new(env!("CARGO_BIN_EXE_linerate"))
        .args(["history", "--all", "--json", "--store"])
        .arg(place.store_path())
        .output()
        .expect("the program starts");
    let rows: serde_json::Value = serde_json::from_slice(&history.stdout).expect("one array");
    assert_eq!(rows.as_array().map(Vec::len), Some(2), "{rows}");
}

/// A flow that loses one packet, its 100th, live and in virtual time.
const ONE_LOSS: &str = r#"name = "cubic"
title = "One loss"

[[topology]]
id = "path"
title = "path"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], path = { rate = "200 Mbit/s", delay = "50 ms", forward = { lose = [100] } } }]

[[test]]
id = "live"
kind = "tcp"
streams = [1]
seconds = 12.0
congestion_control = "cubic"
repetitions = 1

[[test]]
id = "simulated"
kind = "simulate"
tcp = "today"
recoveries = ["sack"]
seconds = 12.0
repetitions = 1
"#;

#[test]
fn a_simulated_cubic_grows_as_the_kernels_does_beyond_its_old_maximum() {
    if !std::path::Path::new("/dev/net/tun").exists() {
        println!("skipped: there is no /dev/net/tun");
        return;
    }
    let Some(place) = Place::new(ONE_LOSS) else { return };
    let output = place.run(&["small.toml"]);
    let records = place.records();
    let goodput = |simulated: bool| {
        let is_it = |record: &&Record| matches!(record.plan, Plan::Simulate(_)) == simulated;
        let record = records.iter().find(is_it)?;
        Some(record.summary_value(MetricId::Goodput, Stat::Value, None)? / 1e6)
    };
    // In virtual time, beside the median of 14.3 Mbit/s of live runs (Linux 6.18); growth by the
    // fourth power of time gives 43.
    let simulated = goodput(true).expect("it needs no quiet machine");
    assert!((0.85..1.15).contains(&(simulated / 14.3)), "{simulated} Mbit/s simulated");
    if output.status.code() != Some(0) {
        // The study refuses a live run whose emulator was late, after three attempts.
        assert!(said(&output).contains("emulate path"), "{}", said(&output));
        return;
    }
    // The window at the loss varies with the packets before the data, and a busy machine adds to
    // the round trip.
    let live = goodput(false).expect("it carried something");
    let ratio = simulated / live;
    assert!((0.85..1.15).contains(&ratio), "{simulated} simulated, {live} Mbit/s live");
}

#[test]
fn ctrl_c_ends_with_the_summary_so_far_and_says_how_to_go_on() {
    let Some(place) = Place::new(&PLAN.replace("seconds = 0.2", "seconds = 60.0")) else { return };
    let child = place.spawn(&["small.toml"]);
    // The two pings are stored; the first TCP run, of a minute, is under way.
    place.wait_for(2);
    child.interrupt();
    let output = child.output();
    assert_eq!(output.status.code(), Some(130), "{}", said(&output));
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(out.contains("A small study") && out.contains("report: "), "{out}");
    let run = &place.store().list_study_runs().expect("readable")[0];
    assert_eq!(run.state, StudyState::Interrupted);
    assert!(said(&output).contains(&format!("linerate study run --resume {}", run.id)));
    assert_eq!(keys(&place.records())[..2], all_keys()[..2]);
}

#[test]
fn a_killed_run_goes_on_and_has_every_cell_once() {
    let Some(place) = Place::new(PLAN) else { return };
    let child = place.spawn(&["small.toml"]);
    place.wait_for(3);
    // SIGKILL.
    drop(child);
    let before = place.records();
    assert!(before.len() >= 3);
    let output = place.run(&["small.toml", "--resume"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let after = place.records();
    assert_eq!(keys(&after), all_keys());
    assert_eq!(after.len(), CELLS);
    assert_eq!(after[..before.len()], before, "what was stored is as it was");
}

/// One topology whose client has settings of its own, and tests that vary what is no window.
const KNOBS: &str = r#"name = "knobs"
title = "What a test can vary"
shuffle_seed = 3

[[topology]]
id = "line"
title = "line"
class = "man"
client = "a"
server = "b"
lab.host = [{ name = "a", tcp = { initial_window = 2, rmem_max_bytes = 2097152 } }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], offload = false, rate = "100 Mbit/s" }]

[[test]]
id = "sack"
kind = "tcp"
sack = [true, false]
transfer_bytes = [300007]
congestion_control = "reno"
repetitions = 1

[[test]]
id = "plain"
kind = "tcp"
streams = [1, 2]
windows_bytes = [65536]
seconds = 0.3
omit_seconds = 0.1
congestion_control = "reno"
repetitions = 1

[[test]]
id = "busy"
kind = "tcp"
read_bytes = [0, 2048]
seconds = 0.7
congestion_control = "reno"
background = { utilisation = 0.3 }
repetitions = 1
"#;

/// The record of a cell.
fn record_of<'a>(records: &'a [Record], test: &str, parameter: u64) -> &'a Record {
    let of = |record: &&Record| {
        let cell = record.cell.as_ref().expect("in a study");
        (cell.test.as_str(), cell.parameter) == (test, parameter)
    };
    records.iter().find(of).expect("every cell is measured")
}

#[test]
fn a_study_varies_what_its_tests_list_and_the_report_heads_it_so() {
    let Some(place) = Place::new(KNOBS) else { return };
    let output = place.run(&["small.toml"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let records = place.records();
    assert_eq!(records.len(), 6);
    for (number, label) in [(1, "SACK on"), (0, "SACK off")] {
        let record = record_of(&records, "sack", number);
        let cell = record.cell.as_ref().expect("in a study");
        assert_eq!(cell.label.as_deref(), Some(label));
        let syn = record.flows[0].syn.expect("the server saves it");
        assert_eq!(syn.sack_permitted, number == 1);
        let sack = |end: usize| record.ends[end].tcp.as_ref().and_then(|tcp| tcp.sack);
        assert_eq!((sack(0), sack(1)), (Some(number), Some(number)), "at both ends");
        assert_eq!(record.summary_value(MetricId::Bytes, Stat::Value, None), Some(300_007.0));
    }
    for streams in [1_u64, 2] {
        let record = record_of(&records, "plain", streams);
        assert_eq!(record.flows.len() as u64, streams);
        let first = &record.flows[0];
        // A cell without SACK may have come before: the order is shuffled.
        assert!(first.syn.is_some_and(|syn| syn.sack_permitted));
        let sender = first.sender.as_ref().expect("the sender told");
        assert_eq!(sender.initial_window_segments, Some(2));
        assert_eq!(record.ends[0].tcp_rmem_bytes.map(|triple| triple[2]), Some(2_097_152));
    }
    for bytes in [0, 2048] {
        let record = record_of(&records, "busy", bytes);
        // 0.3 x 100 Mbit/s x 1448 / 1514 = 28.692 Mbit/s.
        let rate = record.summary_value(MetricId::Background, Stat::Value, None).expect("measured");
        // A busy machine makes it late; the whole link is 3.3 times as much.
        assert!((0.4..=1.2).contains(&(rate / 28.692e6)), "{rate} bit/s");
        let Plan::Tcp(plan) = &record.plan else { panic!("a TCP test") };
        assert_eq!(plan.test.read_bytes.map_or(0, u64::from), bytes);
    }
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    for head in ["tcp/SACK", "tcp/streams", "tcp/read size", "2 KiB"] {
        assert!(out.contains(head), "'{head}' is not in: {out}");
    }
}
