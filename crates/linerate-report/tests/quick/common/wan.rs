//! A study of emulated paths with figures made up by hand: windows, streams, SACK, a model.

use linerate_core::record::{
    Caveat, CaveatCode, Ceiling, CeilingInput, Direction, EmulatedPath, MetricId, PathDirection,
    PathLoss, Plan, Record, Rung, Series, Stat, Summary,
};
use linerate_core::study::{CellPlan, PublishedFigures, PublishedTable, StudyPlan, TableAbout};
use linerate_report::study::StudyResults;

use super::record;

const PLAN: &str = r#"
name = "gigasunet"
title = "One gigabit over 21 ms"
source = "SUNET, End-to-end performance, 2004"
purpose = "A gigabit over 1000 km is filled only when the window holds a bandwidth-delay product."

[[topology]]
id = "wan"
title = "1 Gbit/s, 21 ms"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [{ ends = ["a", "b"], path = { rate = "1 Gbit/s", delay = "10.5 ms", buffer = "1 BDP" } }]

[[topology]]
id = "wan/loss"
title = "the same, 1 packet in 10,000 lost"
class = "wan"
client = "a"
server = "b"
lab.host = [{ name = "a" }, { name = "b" }]
lab.link = [
  { ends = ["a", "b"], path = { rate = "1 Gbit/s", delay = "10.5 ms", buffer = "1 BDP", loss = "1e-4" } },
]

[[test]]
id = "window"
kind = "tcp"
windows_bytes = [16384, 65536, 1048576, 8388608, 0]
seconds = 4.0
congestion_control = "cubic"
repetitions = 3

[[test]]
id = "flows"
kind = "tcp"
on = ["wan"]
streams = [1, 2, 4]
seconds = 4.0
repetitions = 1

[[test]]
id = "sack"
kind = "tcp"
on = ["wan/loss"]
sack = [true, false]
seconds = 4.0
repetitions = 1

[[test]]
id = "model"
kind = "simulate"
on = ["wan/loss"]
tcp = "1999"
windows_bytes = [8000000]
recoveries = ["reno", "sack"]
seconds = 20.0
repetitions = 1

[[test]]
id = "datagrams"
kind = "udp"
on = ["wan"]
rates = ["500 Mbit/s", "max"]
seconds = 4.0
repetitions = 1

[[question]]
ask = "Does one flow fill the gigabit once the window holds a bandwidth-delay product?"
figure.large = { topology = "wan", test = "window", value = 8388608 }
figure.small = { topology = "wan", test = "window", value = 16384 }
figure.then = { published = "throughput" }
figure.ceiling = { ceiling_of = "large" }
figure.share = { share_of_ceiling = "large" }
figure.gain = { ratio = ["large", "small"] }
yes_when = "share >= 0.98"
answer = "{large} of a ceiling of {ceiling}, {share}; {gain} times what 16 KiB gives. In 2004: {then}."

[[question]]
ask = "Is a small window the whole limit?"
figure.small = { topology = "wan", test = "window", value = "16 KiB", stat = "best" }
figure.bound = { bound_of = "small" }
figure.share = { share_of_bound = "small" }
yes_when = "share >= 95 % and share <= 1.01"
answer = "{small} of {bound}, {share}."
yes = "Nothing else holds it back."
no = "Something else holds it back."

[[question]]
ask = "Is one lost packet in 10,000 enough to degrade it?"
figure.whole = { topology = "wan", test = "window", value = 8388608 }
figure.lossy = { topology = "wan/loss", test = "window", value = 8388608 }
figure.left = { share = ["lossy", "whole"] }
figure.again = { topology = "wan/loss", test = "window", value = 8388608, metric = "retransmits" }
figure.then = { published = "fragile_loss" }
yes_when = "left < 0.9"
answer = "{left} are left, {again} sent again; the study says that {then} is enough."

[[question]]
ask = "Does SACK help?"
figure.with = { title = "with SACK", topology = "wan/loss", test = "sack", value = true }
figure.without = { title = "without it", topology = "wan/loss", test = "sack", value = false }
figure.best = { largest = ["without", "with"] }
figure.gain = { difference = ["without", "with"] }
answer = "Faster {best.title}: {best}; leaving it out changes it by {gain}."

[[question]]
ask = "Does the model agree?"
figure.model = { topology = "wan/loss", test = "model", value = "sack" }
figure.live = { topology = "wan/loss", test = "sack", value = true }
figure.ratio = { ratio = ["model", "live"] }
yes_when = "ratio >= 0.9 and ratio <= 1.1"
answer = "The model has {ratio} the rate."
"#;

const ITEMS: &str = include_str!("../../../../../studies/data/gigasunet-2004.csv");

/// 1 Gbit/s x 1448 / 1538.
pub const CEILING_BPS: f64 = 941_482_444.733_4;

pub fn plan() -> StudyPlan {
    StudyPlan::from_toml(PLAN).unwrap_or_else(|error| panic!("{error}"))
}

pub fn published() -> PublishedFigures {
    let id = "gigasunet-2004";
    let about = TableAbout { id, title: "", study: "gigasunet", year: 2004, source: "" };
    PublishedFigures::from_tables([PublishedTable::from_csv(about, ITEMS).expect("a sound table")])
}

/// Every cell of the plan with a result.
pub fn results() -> StudyResults {
    let plan = plan();
    let cells = plan.cell_plans().into_iter().enumerate();
    let records = cells.map(|(index, cell)| result(index, cell)).collect();
    StudyResults { plan, run: "run-1".to_owned(), records, published: published() }
}

fn result(index: usize, cell: CellPlan) -> Record {
    let lossy = cell.cell.topology == "wan/loss";
    let step = f64::from(cell.cell.repetition) - 2.0;
    // Median and the distance of the repetitions from it, Mbit/s.
    let (mbit, apart) = match (cell.cell.test.as_str(), cell.cell.parameter) {
        ("window", 16_384) if !lossy => (7.0, 0.1),
        ("window", 65_536) if !lossy => (30.0, 0.1),
        ("window", 1_048_576) if !lossy => (480.0, 1.0),
        ("window", 8_388_608) if !lossy => (935.0, 5.0),
        ("window", 0) if !lossy => (940.0, 0.5),
        ("window", 16_384) => (6.9, 0.1),
        ("window", 65_536) => (29.0, 0.5),
        ("window", _) => (100.0, 10.0),
        ("flows", streams) => (400.0 + 100.0 * streams as f64, 0.0),
        ("sack", on) => (50.0 + 50.0 * on as f64, 0.0),
        ("model", number) => (80.0 * number as f64, 0.0),
        ("datagrams", 0) => (930.0, 0.0),
        ("datagrams", rate) => (rate as f64 / 1e6, 0.0),
        (test, value) => panic!("{test} {value}"),
    };
    let bps = (mbit + step * apart) * 1e6;
    let mut record = record(index, cell.cell, cell.plan, summary(bps, lossy));
    record.ceiling = Some(ceiling(&record));
    if let Plan::Udp(plan) = &record.plan {
        let (ratio, here) = if plan.test.pace.is_none() { (0.05, 7.0) } else { (0.0, 0.0) };
        record.summary[1] = Summary::from_value(MetricId::DatagramLossRatio, Stat::Value, ratio);
        record.summary.push(Summary::from_value(MetricId::DatagramsLostHere, Stat::Value, here));
    }
    record.paths = vec![path(lossy)];
    if matches!(record.plan, Plan::Simulate(_)) {
        record.series = vec![acked(bps)];
    }
    record
}

fn summary(bps: f64, lossy: bool) -> Vec<Summary> {
    let row =
        |metric, value| Summary::from_value(metric, Stat::Value, value).in_direction(Direction::Up);
    let again = if lossy { 42.0 } else { 0.0 };
    vec![row(MetricId::Goodput, bps), row(MetricId::Retransmits, again)]
}

/// The windows that Linux was seen to advertise for what was asked for.
fn ceiling(record: &Record) -> Ceiling {
    let cell = record.cell.as_ref().expect("a cell");
    let window = match (cell.test.as_str(), cell.parameter) {
        ("window", 16_384) => Some(18_824.0),
        ("window", 65_536) => Some(80_480.0),
        ("window", 1_048_576) => Some(1_309_920.0),
        ("window", _) => Some(5_242_880.0),
        _ => None,
    };
    let rung = |bytes| Rung {
        kind: "receive_window".to_owned(),
        value: None,
        inputs: vec![CeilingInput::from_value("window_bytes", bytes, "")],
        unknown: vec![],
        source: String::new(),
    };
    Ceiling {
        value: Some(CEILING_BPS),
        inputs: vec![CeilingInput::from_value(
            "link_rate_bps",
            1e9,
            "emulated link a eth0 - b eth0",
        )],
        rungs: window.map(rung).into_iter().collect(),
        ..Ceiling::of_goodput(Direction::Up)
    }
}

fn path(lossy: bool) -> EmulatedPath {
    let lost = PathLoss { cause: "random".to_owned(), packets: 10 };
    let forward = PathDirection {
        direction: Some(Direction::Up),
        taken_packets: 100_000,
        lost: if lossy { vec![lost] } else { vec![] },
        ..PathDirection::default()
    };
    EmulatedPath {
        name: "a eth0 - b eth0".to_owned(),
        directions: vec![forward],
        ..EmulatedPath::default()
    }
}

/// A flow at one rate for 20 s, a point each 100 ms.
fn acked(bps: f64) -> Series {
    let points = 0..=200_u64;
    Series {
        metric: MetricId::Acked,
        direction: Some(Direction::Up),
        flow: Some(0),
        side: None,
        payload_bytes: None,
        t_ns: points.clone().map(|tenth| tenth * 100_000_000).collect(),
        values: points.map(|tenth| Some(bps * tenth as f64 / 80.0)).collect(),
    }
}

/// The same where this host limited the best run of the largest window, and a run of the smallest
/// that is not the best; in the best run of the kernel's choice it was busy and limited nothing.
pub fn spoilt() -> StudyResults {
    let mut results = results();
    for record in &mut results.records {
        let cell = record.cell.as_ref().expect("a cell");
        let (test, on) = (cell.test.as_str(), cell.topology.as_str());
        let code = match (test, on, cell.parameter, cell.repetition) {
            ("window", "wan", 8_388_608, 3) => CaveatCode::OwnInterfaceDrops,
            // Of a link that was full: a busy CPU takes nothing from that.
            ("window", "wan", 0, 3) => CaveatCode::CpuBound,
            ("window", "wan", 16_384, 1) => CaveatCode::RunQueueWait,
            _ => continue,
        };
        record.caveats.push(Caveat::new(code, "97 % of a CPU", "leave the machine alone"));
    }
    results
}
