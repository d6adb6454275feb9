//! Studies in virtual time as a shell sees them: plans, runs without any privilege, records in
//! every form. No packet is sent.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::{command, end_of, ends_with, interrupt, linerate, stderr};
use serde_json::Value;

/// The path of the OC-12 study of 1999 with and without cell loss; transfers on the one, recoveries
/// on the other. 280 segments of 9128 bytes are the window that gives the study's 452 Mbit/s.
const OC12: &str = r#"
name = "oc12-virtual"
title = "An OC-12 of 1999 in virtual time"
[[topology]]
id = "wan"
title = "622.08 Mbit/s ATM, 45 ms"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], path = { link = "oc12-atm", delay = "22.5 ms" } }]
[[topology]]
id = "wan/loss"
title = "the same, losing cells"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [
  { ends = ["a", "b"], path = { link = "oc12-atm", delay = "22.5 ms", seed = 7, forward = { cell_loss = { probability = "1e-7", burst_cells = 960 } } } },
]
[[test]]
id = "transfer"
kind = "simulate"
on = ["wan"]
tcp = "1999"
windows_bytes = [2555840]
transfer_bytes = [100000000, 1000000000, 10000000000]
repetitions = 1
[[test]]
id = "recovery"
kind = "simulate"
on = ["wan/loss"]
tcp = "1999"
windows_bytes = [8000000]
recoveries = ["reno", "sack"]
seconds = 20.0
omit_seconds = 1.0
repetitions = 3
"#;

/// A directory with the study's file, for a store and pages.
struct Place(tempfile::TempDir);

impl Place {
    fn new(text: &str) -> Self {
        let place = Self(tempfile::tempdir().expect("a directory"));
        std::fs::write(place.path("study.toml"), text).expect("write the study");
        place
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_string_lossy().into_owned()
    }

    fn run(&self, flags: &[&str]) -> String {
        let (file, store, report) = (self.path("study.toml"), self.path("db"), self.path("pages"));
        let fixed = ["study", "run", &file, "--store", &store, "--report", &report];
        ends_with(0, &[&fixed[..], flags].concat())
    }

    fn history(&self, flags: &[&str]) -> Vec<Value> {
        let fixed = ["history", "--all", "--json", "--store", &self.path("db")];
        let rows: Value =
            serde_json::from_str(&ends_with(0, &[&fixed[..], flags].concat())).expect("JSON");
        rows.as_array().expect("one array").clone()
    }

    /// The records of a test, in the order of their values and repetitions.
    fn records(&self, test: &str) -> Vec<Value> {
        let mut rows = self.history(&[]);
        rows.retain(|row| row["test"] == test);
        rows.sort_by_key(|row| (row["parameter"].as_u64(), row["repetition"].as_u64()));
        let record = |row: &Value| {
            let id = row["id"].as_str().expect("an identifier");
            let text = ends_with(0, &["report", id, "--json", "--store", &self.path("db")]);
            serde_json::from_str(&text).expect("a record")
        };
        rows.iter().map(record).collect()
    }
}

/// The value of a metric about the whole record.
fn value(record: &Value, metric: &str) -> f64 {
    let rows = record["summary"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["metric"] == metric && row["flow"].is_null());
    row.and_then(|row| row["value"].as_f64()).unwrap_or_else(|| panic!("no {metric} in {rows:?}"))
}

#[test]
fn the_transfers_of_1999_take_what_the_study_computed_at_the_most() {
    let place = Place::new(OC12);
    let said = place.run(&["--only", "wan"]);
    assert!(said.contains("3 of 3 measurements ended well"), "{said}");
    let records = place.records("transfer");
    // Table 3 of the study counts 12 whole round trips of 45 ms as lost: 178, 18.2 and 2.31 s, by
    // their last digit. Slow start sends meanwhile, so a model without loss takes less: at least
    // the size over a window each 45 ms, 280 x 9128 x 8 / 45 ms = 454.4 Mbit/s.
    for (record, (size, printed_s, digit)) in
        records.iter().zip([(1e8, 2.31, 0.01), (1e9, 18.2, 0.1), (1e10, 178.0, 1.0)])
    {
        assert_eq!(
            (&record["status"], &record["plan"]["kind"]),
            (&"ok".into(), &"simulate".into())
        );
        let took_s = value(record, "transfer_ns") / 1e9;
        let least_s = size * 8.0 / (280.0 * 9128.0 * 8.0 / 0.045);
        assert!(took_s > least_s && took_s < printed_s + digit, "{size}: {took_s} s");
        assert!(took_s > printed_s - 0.54 - digit, "{size}: {took_s} s");
        assert_eq!((value(record, "payload_bytes"), value(record, "retransmits")), (size, 0.0));
        // The machine took less than the model, and the record does not mix the two.
        let wall_s = record["duration_ns"].as_f64().expect("a number") / 1e9;
        assert!(wall_s < 60.0, "{wall_s}");
    }
    // From 2 segments by a half each round trip to 280: ln(140) / ln(1.5) = 12.2, the study's 12.
    // Rounds are whole and windows are whole segments, which costs one or two more.
    let series = records[2]["series"].as_array().expect("series");
    let of = |metric: &str| {
        let found = series.iter().find(|it| it["metric"] == metric && it["flow"] == 0);
        found.unwrap_or_else(|| panic!("no series of {metric}"))
    };
    let (cwnd, acked) = (of("cwnd_bytes"), of("acked_bytes"));
    assert!(acked["t_ns"].as_array().is_some_and(|points| points.len() <= 2000));
    let values = cwnd["values"].as_array().expect("values");
    let full = values.iter().position(|value| value.as_f64() >= Some(2_555_840.0));
    let full_s = cwnd["t_ns"][full.expect("it fills")].as_f64().expect("a time") / 1e9;
    assert!((12.0 * 0.045..14.0 * 0.0455).contains(&full_s), "{full_s} s");
}

#[test]
fn a_test_is_on_its_topologies_alone_and_chance_decides_by_the_seed() {
    let place = Place::new(OC12);
    let shown = ends_with(0, &["study", "show", &place.path("study.toml")]);
    for words in ["12 measurements", "wan/loss", "simulated, TCP of 1999", "recovery reno, sack"] {
        let words = words.replace("12 measurements", "9 measurements");
        assert!(shown.contains(&words), "'{words}' is not in:\n{shown}");
    }
    let said = place.run(&["--only", "wan/loss"]);
    assert!(said.contains("6 of 6 measurements ended well"), "{said}");
    assert!(said.contains("virtual_time"), "the report says that it is a model:\n{said}");
    assert_eq!(place.history(&["--kind", "simulate"]).len(), 6);
    let records = place.records("recovery");
    let seeds: Vec<u64> =
        records.iter().filter_map(|record| record["plan"]["path"]["seed"].as_u64()).collect();
    assert_eq!(seeds, [7, 8, 9, 7, 8, 9]);
    let goodputs: Vec<f64> = records.iter().map(|record| value(record, "goodput_bps")).collect();
    assert!(goodputs[0] != goodputs[1], "each repetition meets other losses: {goodputs:?}");
    for record in &records {
        let up = &record["paths"][0]["directions"][0];
        assert!(value(record, "loss_events") + value(record, "timeouts") >= 1.0, "{up}");
        assert_eq!(value(record, "span_ns"), 20e9, "without the omitted second");
        let ceiling = record["ceiling"]["value"].as_f64().expect("the path has a rate");
        // 599.04 Mbit/s of cells, 192 of them for 9180 bytes with LLC/SNAP: 9128 x 8 / (192 x 424).
        assert!((ceiling / (599.04e6 * 9128.0 / (192.0 * 53.0)) - 1.0).abs() < 1e-6, "{ceiling}");
    }
    let pages = std::fs::read_to_string(place.path("pages/index.html")).expect("a page");
    assert!(pages.contains("simulated in virtual time"), "the page says what was asked");
}

#[test]
fn a_simulated_record_is_reported_in_every_form() {
    // A window below the path's product, so that only cells are lost; about one burst in 4 s.
    let text = OC12.replace("100000000, 1000000000, 10000000000", "20000000");
    let text = text.replace("[8000000]", "[2000000]").replace("1e-7", "3e-7");
    let place = Place::new(&text);
    place.run(&["--only", "wan"]);
    let store = place.path("db");
    let id = place.history(&[])[0]["id"].as_str().expect("an identifier").to_owned();
    let text = ends_with(0, &["report", &id, "--verbose", "--store", &store]);
    for words in ["TCP simulated in virtual time over a eth0 - b eth0", "no packet was sent"] {
        assert!(text.contains(words), "'{words}' is not in:\n{text}");
    }
    assert!(text.contains("receive window") && text.contains("by the model"), "{text}");
    let (html, csv, md) = (place.path("a.html"), place.path("a.csv"), place.path("a.md"));
    for form in [["--html", &html], ["--csv", &csv], ["--md", &md]] {
        ends_with(0, &["report", &id, "--store", &store, form[0], form[1]]);
    }
    let html = std::fs::read_to_string(html).expect("a page");
    for words in ["Time and sequence", "Congestion window", "<svg", "no packet was sent"] {
        assert!(html.contains(words), "'{words}' is not on the page");
    }
    assert!(!html.contains("NaN"));
    // What is a small part of a long run has a diagram of its own.
    place.run(&["--only", "wan/loss", "--repetitions", "1"]);
    let id = place.history(&["--limit", "1"])[0]["id"].as_str().expect("an identifier").to_owned();
    let page = place.path("b.html");
    ends_with(0, &["report", &id, "--store", &store, "--html", &page]);
    let html = std::fs::read_to_string(page).expect("a page");
    for words in ["Time and sequence of the start", "Time and sequence of the first loss"] {
        assert!(html.contains(words), "'{words}' is not on the page");
    }
    let csv = std::fs::read_to_string(csv).expect("a table");
    assert!(csv.contains("transfer_ns,value,up") && csv.contains("loss_events"), "{csv}");
}

#[test]
fn wrong_plans_are_told_in_a_line() {
    let told = |text: &str, words: &[&str]| {
        let place = Place::new(text);
        let output = linerate(&["study", "check", &place.path("study.toml")]);
        let said = stderr(&output);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        for word in words {
            assert!(said.contains(word), "'{word}' is not in: {said}");
        }
    };
    told(&OC12.replace("on = [\"wan\"]", "on = [\"lan\"]"), &["'transfer'", "no topology 'lan'"]);
    told(
        &OC12.replace("on = [\"wan/loss\"]\n", "on = [\"wan\"]\n"),
        &["no test is on", "wan/loss"],
    );
    let bare = OC12.replacen(", path = { link = \"oc12-atm\", delay = \"22.5 ms\" }", "", 1);
    told(&bare, &["'transfer'", "topology 'wan'", "no link with a path"]);
    told(&OC12.replace("\"1999\"", "\"1989\""), &["1989", "today"]);
    told(&OC12.replace("seconds = 20.0", "seconds = 0.0"), &["seconds is 0"]);
    told(&OC12.replace("seconds = 20.0", ""), &["'recovery'", "no end"]);
    told(&OC12.replace("\"reno\", \"sack\"", "\"reno\", \"reno\""), &["reno is there twice"]);
    told(&OC12.replace("[8000000]", "[4000000000]"), &["4000000000 bytes; the most is"]);
    let two = OC12.replace("windows_bytes = [8000000]", "windows_bytes = [1, 2]");
    told(&two, &["windows_bytes and recoveries both have several values"]);
}

#[test]
fn ctrl_c_stops_a_simulation_under_way() {
    let long = OC12.replace("seconds = 20.0", "seconds = 80000.0");
    let place = Place::new(&long);
    let (file, store, report) = (place.path("study.toml"), place.path("db"), place.path("pages"));
    let fixed = ["study", "run", &file, "--store", &store, "--report", &report];
    let mut child = command(&[&fixed[..], &["--only", "wan/loss"]].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let messages = child.stderr.take().expect("a pipe");
    let mut lines = BufReader::new(messages).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("6 measurements on 1 topology, all simulated")));
    interrupt(&child);
    drop(lines);
    assert_eq!(end_of(&mut child).and_then(|status| status.code()), Some(130));
}
