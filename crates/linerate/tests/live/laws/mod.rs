//! Laws that hold everywhere: whatever protocol, end, direction, flag and number of streams, no
//! figure that the path cannot carry, no loss charged to the wrong place, no success of nothing.
//!
//! Each cell is a test between two fresh namespaces over a link of known rate; `judge` has the
//! laws, `cell` the product from which a seed draws. Left out: IPv6, and paths with losses.
//!
//! `LINERATE_LAWS_CELLS=N` or `all` runs more, `LINERATE_LAWS_SEED=N` others,
//! `LINERATE_LAWS_ONLY=TEXT` those alone whose description has the text; CONTRIBUTING has more.
#![allow(clippy::print_stdout, reason = "a skipped test says so, and a run what it found")]

mod cell;
mod json;
mod judge;
mod path;
mod rows;
mod run;
mod stall;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

use linerate_sys::{clock, userns};

use cell::{Cell, Fault, Program, Random};
use judge::{Case, Violation};
use rows::Printer;
use stall::Stalls;

/// The seed of `./dev test`.
const SEED: u64 = 11;
/// Cells of `./dev test`, of those of a whole path and of those where nothing arrives.
const CELLS: usize = 72;
const FAULTS: usize = 16;
/// No cell begins later than this in `./dev test`.
const TIME: Duration = Duration::from_secs(45);
/// Cells at a time: their links share the processors.
const AT_ONCE: usize = 4;
/// Cells in which a program mostly waits.
const FAULTS_AT_ONCE: usize = 12;

#[test]
fn laws_hold_in_a_draw_of_all_cells() {
    if let Some(reason) = why_not() {
        println!("skipped: {reason}");
        return;
    }
    let settings = Settings::read();
    let mut random = Random(settings.seed);
    let cells = cell::product(&mut random);
    let here = peers_here();
    let wanted = |cell: &Cell| settings.wants(cell) && has_peers(cell, &here);
    let cells: Vec<Cell> = cells.into_iter().filter(wanted).collect();
    let faults: Vec<Cell> = cell::faults(&mut random).into_iter().filter(wanted).collect();
    println!(
        "laws: {} cells and {} with a fault, seed {}",
        cells.len(),
        faults.len(),
        settings.seed
    );
    let cells = random.draw(cells, settings.cells.unwrap_or(CELLS));
    let faults = random.draw(faults, settings.cells.map_or(FAULTS, |cells| cells / 10));
    let end = settings.cells.is_none().then(|| clock::monotonic() + TIME);
    let late = move || end.is_some_and(|end| clock::monotonic() >= end);
    let mut report = Report::default();
    report.add(run_all(&faults, FAULTS_AT_ONCE, &late));
    report.add(run_all(&cells, settings.at_once, &late));
    report.print();
    assert!(report.ran > 0, "no cell ran");
    assert_eq!(
        report.own, 0,
        "laws are broken; LINERATE_LAWS_SEED={} has them again",
        settings.seed
    );
}

/// What the environment asks for.
struct Settings {
    seed: u64,
    cells: Option<usize>,
    only: Vec<String>,
    control: bool,
    at_once: usize,
}

impl Settings {
    fn read() -> Self {
        let text = |name: &str| std::env::var(format!("LINERATE_LAWS_{name}")).ok();
        let number = |name: &str| text(name).map(|it| it.parse::<usize>().expect("a number"));
        let cells = match text("CELLS").as_deref() {
            Some("all") => Some(usize::MAX),
            _ => number("CELLS"),
        };
        let only = text("ONLY").unwrap_or_default();
        Self {
            seed: number("SEED").map_or(SEED, |seed| seed as u64),
            cells,
            only: only.split_whitespace().map(str::to_owned).collect(),
            control: text("CONTROL").is_some(),
            at_once: number("AT_ONCE").unwrap_or(AT_ONCE),
        }
    }

    /// Cells between two programs that are not ours show whether the laws are too strict.
    fn wants(&self, cell: &Cell) -> bool {
        let text = format!(" {cell} ").replace('\n', " ");
        let only = self.only.iter().all(|word| text.contains(word));
        only && cell.is_ours() != self.control
    }
}

fn why_not() -> Option<String> {
    crate::support::turn::take();
    if !userns::may_make_networks() {
        return Some("network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)".to_owned());
    }
    let nft = Command::new("nft").arg("--version").output();
    nft.is_err().then(|| "nft is not on the path (Debian's package nftables)".to_owned())
}

/// Which of the other programs this host has.
fn peers_here() -> BTreeSet<&'static str> {
    let has = |name: &&str| Command::new(name).arg("-v").output().is_ok();
    ["iperf3", "iperf", "nuttcp"].into_iter().filter(has).collect()
}

fn has_peers(cell: &Cell, here: &BTreeSet<&'static str>) -> bool {
    let has = |program: Program, words: Vec<String>| {
        program != Program::Peer || here.contains(words[0].as_str())
    };
    has(cell.client, cell.client_command()) && has(cell.server, cell.server_command())
}

/// What came of one cell.
struct Result {
    cell: Cell,
    violations: Vec<Violation>,
}

/// Runs cells on threads of their own, several at a time, until one would begin late.
fn run_all(cells: &[Cell], at_once: usize, late: &(dyn Fn() -> bool + Sync)) -> Vec<Result> {
    let next = Mutex::new(cells.iter());
    let results = Mutex::new(Vec::new());
    let stalls = Stalls::watch();
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                loop {
                    let cell = next.lock().expect("nobody panics with it").next().copied();
                    let Some(cell) = cell.filter(|_| !late()) else { return };
                    let result = Result { cell, violations: check(&cell, &stalls) };
                    say(&result);
                    results.lock().expect("nobody panics with it").push(result);
                }
            });
        }
    });
    results.into_inner().expect("nobody panicked with it")
}

/// Runs a cell and holds it to the laws.
fn check(cell: &Cell, stalls: &Stalls) -> Vec<Violation> {
    let outcome = match run::run(cell) {
        Ok(outcome) => outcome,
        Err(what) => {
            let foreign = cell.server == Program::Peer;
            return vec![Violation { law: "L0 ends well", what, foreign }];
        }
    };
    let mut rows = match serde_json::from_str(&outcome.client) {
        Ok(document) if cell.json => json::rows(cell, &document),
        _ => rows::of_text(cell, Printer::Client, &outcome.client),
    };
    rows.extend(rows::of_text(cell, Printer::Server, &outcome.server));
    let stall = stalls.longest(outcome.began, outcome.ended);
    judge::judge(&Case { cell, outcome: &outcome, rows: &rows, stall })
}

fn say(result: &Result) {
    for violation in &result.violations {
        let who = if violation.foreign { " (not ours)" } else { "" };
        println!("BROKEN{who} {}: {}\n    {}", violation.law, result.cell, violation.what);
    }
}

/// Counts of cells, and of those that break a law.
#[derive(Default)]
struct Report {
    ran: usize,
    own: usize,
    by_law: BTreeMap<String, usize>,
}

impl Report {
    fn add(&mut self, results: Vec<Result>) {
        self.ran += results.len();
        for Result { cell, violations } in results {
            let own = violations.iter().filter(|it| !it.foreign);
            let laws: BTreeSet<&str> = own.map(|it| it.law).collect();
            self.own += usize::from(!laws.is_empty());
            let fault = if cell.fault == Fault::None { "" } else { ", a fault" };
            let kind = if cell.udp { "UDP" } else { "TCP" };
            for law in laws {
                let key = format!("{law}: {:?} {kind}{fault}", cell.protocol);
                *self.by_law.entry(key).or_default() += 1;
            }
            for violation in violations.iter().filter(|it| it.foreign) {
                *self.by_law.entry(format!("not ours: {}", violation.law)).or_default() += 1;
            }
        }
    }

    fn print(&self) {
        for (law, count) in &self.by_law {
            println!("{count:5}  {law}");
        }
        println!("laws: {} cells run, {} with a violation", self.ran, self.own);
    }
}
