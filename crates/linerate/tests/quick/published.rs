//! `linerate study published` and `linerate study milestones` by the command line. Nothing here
//! sends a packet: the store is filled by hand.

use std::process::{Command, Output};

use linerate_core::record::{
    Asked, Direction, Flow, FlowEnd, MetricId, PingPlan, Plan, Record, RecordId, Stat, Summary,
    TcpPlan, Tool,
};
use linerate_core::time::WallTime;
use linerate_store::Store;
use tempfile::TempDir;

fn linerate(directory: &TempDir, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_linerate"))
        .arg("study")
        .args(arguments)
        .current_dir(directory.path())
        .env_remove("LINERATE_STORE")
        .env("XDG_DATA_HOME", directory.path().join("data"))
        .output()
        .expect("the program starts")
}

/// Runs it, checks its exit code, gives what it printed.
#[track_caller]
fn printed(directory: &TempDir, arguments: &[&str]) -> String {
    let output = linerate(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?} said {said}");
    String::from_utf8(output.stdout).expect("results are UTF-8")
}

#[track_caller]
fn json(directory: &TempDir, arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&printed(directory, arguments)).expect("JSON")
}

/// Wrong use: one line with each of `parts`, code 2, nothing printed.
#[track_caller]
fn refused(directory: &TempDir, arguments: &[&str], parts: &[&str]) {
    let output = linerate(directory, arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?} said {said}");
    assert_eq!(said.lines().count(), 1, "{arguments:?} said {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    for part in parts {
        assert!(said.contains(part), "{arguments:?} said {said}, without {part}");
    }
}

fn empty() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn record(n: u8, plan: Plan) -> Record {
    let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
    // 1,700,000,000 s after 1970 lies in November 2023.
    let ms = 1_700_000_000_000 + u64::from(n) * 65_536;
    let at = WallTime::from_unix_nanos(u128::from(ms) * 1_000_000);
    Record::from_plan(RecordId::from_parts(ms, [n; 10]), tool, plan, at)
}

fn tcp(n: u8, gbit: f64, name: &str) -> Record {
    let mut record = record(n, Plan::Tcp(TcpPlan::default()));
    record.name = Some(name.to_owned());
    let goodput = Summary::from_value(MetricId::Goodput, Stat::Value, gbit * 1e9);
    record.summary.push(goodput.in_direction(Direction::Up));
    let mss_bytes = Asked { asked: None, got: Some(1448) };
    record.flows.push(Flow {
        flow: 0,
        direction: Direction::Up,
        client_addr: "192.0.2.1:49152".to_owned(),
        server_addr: "192.0.2.2:5210".to_owned(),
        sender: Some(FlowEnd { mss_bytes, ..FlowEnd::default() }),
        receiver: None,
        syn: None,
    });
    record
}

/// A store with a ping, a fast TCP result and, after it, a slow one.
fn filled() -> TempDir {
    let directory = empty();
    let place = directory.path().join("data/linerate");
    std::fs::create_dir_all(&place).expect("room");
    let mut store = Store::open(&place.join("results.db")).expect("a store");
    let records =
        [record(1, Plan::Ping(PingPlan::default())), tcp(2, 9.41, "fast"), tcp(3, 0.94, "slow")];
    for record in records {
        store.put_record(&record).expect("room");
    }
    directory
}

#[test]
fn every_published_table_is_listed_with_study_year_and_rows() {
    let directory = empty();
    let list = printed(&directory, &["published"]);
    // Rows counted in the files: 396, 12, 23, 66, 48, 6.
    for (id, study, year, rows) in [
        ("bradner-1990-routers", "bradner", 1990, 396),
        ("nap-1995", "nap", 1995, 12),
        ("oc12-1999", "oc12", 1999, 23),
        ("pren-2000-ping", "pren", 2000, 66),
        ("pren-2000-ttcp", "pren", 2000, 48),
        ("gigasunet-2004", "gigasunet", 2004, 6),
    ] {
        let line = list.lines().find(|line| line.starts_with(id)).expect(id);
        let fields: Vec<&str> = line.split_whitespace().take(4).collect();
        assert_eq!(fields, [id, study, &year.to_string(), &rows.to_string()], "{line}");
    }
    let entries = json(&directory, &["published", "--json"]);
    assert_eq!(entries[0]["id"], "bradner-1990-routers");
    assert_eq!(entries[0]["rows"], 396);
}

#[test]
fn a_table_is_shown_as_printed_with_theory_beside_it() {
    let directory = empty();
    let text = printed(&directory, &["published", "bradner-1990-routers"]);
    let line = text.lines().find(|line| line.starts_with("3com")).expect("the first row");
    let end: Vec<&str> = line.split_whitespace().rev().take(7).collect();
    // Theory for 64 bytes at 10 Mbit/s: 14,880 frames/s (RFC 5180 appendix A.1).
    assert_eq!(end, ["same", "the", "14880", "6401", "6404", "14489", "14880"]);
    assert!(text.contains("source: Scott Bradner"), "{text}");
    let all = json(&directory, &["published", "bradner", "--json"]);
    let rows = all["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 396);
    for row in rows {
        assert_eq!(row["theory"]["value"].as_f64(), row["theoretical_fps"].as_f64(), "{row}");
    }
}

#[test]
fn ranges_keep_their_ends_in_json_and_csv() {
    let directory = empty();
    let table = json(&directory, &["published", "nap-1995", "--json"]);
    let rows = table["rows"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["item"] == "background_utilisation").expect("a row");
    let value = serde_json::json!({ "text": "70-80", "low": 70.0, "high": 80.0 });
    assert_eq!(row["value"], value);
    let text = printed(&directory, &["published", "oc12-1999", "--csv"]);
    assert!(text.lines().any(|line| line.starts_with("packet_loss,<0.01,percent,,,0.01,")));
    let ping = json(&directory, &["published", "pren-2000-ping", "--json"]);
    let rows = ping["rows"].as_array().expect("rows");
    let absent = rows.iter().filter(|row| row["rtt_avg_ms"].is_null()).count();
    assert!(absent > 0, "what was not printed is null");
}

#[test]
fn a_study_with_two_tables_shows_both_but_not_as_one_csv() {
    let directory = empty();
    let text = printed(&directory, &["published", "pren"]);
    assert!(text.contains("pren-2000-ping (2000)") && text.contains("pren-2000-ttcp (2000)"));
    assert_eq!(
        json(&directory, &["published", "pren", "--json"]).as_array().map(Vec::len),
        Some(2)
    );
    refused(&directory, &["published", "pren", "--csv"], &["pren-2000-ping, pren-2000-ttcp"]);
    refused(&directory, &["published", "prem"], &["find published prem", "nap-1995"]);
    refused(&directory, &["published", "--csv"], &["NAME"]);
}

#[test]
fn milestones_are_a_table_and_two_charts() {
    let directory = empty();
    let text = printed(&directory, &["milestones", "--svg", "plots"]);
    // OC-12 study, section 6.
    assert!(text.contains("PSC, two Crays") && text.contains("30-40"), "{text}");
    let read = |name: &str| {
        std::fs::read_to_string(directory.path().join("plots").join(name)).expect(name)
    };
    let rates = read("throughput-by-year.svg");
    assert!(rates.contains("1990 PSC, two Crays: 780 Mbit/s"), "{rates}");
    let packets = read("packets-per-second-by-year.svg");
    assert!(packets.contains("2004 GigaSunet: 83000 packets/s, printed"), "{packets}");
    assert!(!packets.contains("PSC"), "no packet size, no point");
    assert!(!directory.path().join("data").exists(), "no store is made for it");
}

#[test]
fn a_result_from_elsewhere_is_placed_by_rate_size_and_year() {
    let directory = empty();
    let arguments = ["milestones", "--csv", "--add", "my lab=9.41G,mtu=1500,year=2024"];
    let text = printed(&directory, &arguments);
    let line = text.lines().find(|line| line.contains("my lab")).expect("it is there");
    // 9410e6 / (8 x 1460) = 805,650.7 packets/s.
    assert!(line.starts_with("2024,my lab,own,9410,1500,1460,805650.68"), "{line}");
    assert!(line.contains(",derived,"), "{line}");
    for odd in ["lab=fast", "lab=0", "lab=1G,mtu=40", "lab=1G,speed=5", "=1G"] {
        refused(&directory, &["milestones", "--add", odd], &["--add"]);
    }
}

#[test]
fn stored_results_stand_beside_the_milestones() {
    let directory = filled();
    let of = |arguments: &[&str]| {
        let all = json(&directory, &[&["milestones", "--json"], arguments].concat());
        let own = all.as_array().expect("an array").iter().filter(|row| row["set"] == "own");
        own.map(|row| row["label"].as_str().expect("a label").to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of(&[]), Vec::<String>::new());
    assert_eq!(of(&["--mine"]), ["fast"]);
    assert_eq!(of(&["--mine", "best"]), ["fast"]);
    assert_eq!(of(&["--mine", "newest"]), ["slow"]);
    assert_eq!(of(&["--add", "last", "--add", "@-2"]), ["slow", "fast"]);
    assert_eq!(of(&["--add", "last", "--store", "data/linerate/results.db"]), ["slow"]);
    let text = printed(&directory, &["milestones", "--add", "@-2"]);
    let line = text.lines().find(|line| line.contains("fast")).expect("it is there");
    // 9410e6 / (8 x 1448) = 812,327 packets/s.
    for part in ["2023", "9410", "1448", "812327", "derived"] {
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn what_is_no_tcp_result_has_no_place() {
    let directory = filled();
    refused(&directory, &["milestones", "--add", "@-3"], &["it is no TCP result"]);
    refused(&directory, &["milestones", "--add", "zz"], &["find record"]);
    let nothing = empty();
    refused(&nothing, &["milestones", "--mine"], &["find a TCP result", "linerate tcp"]);
}
