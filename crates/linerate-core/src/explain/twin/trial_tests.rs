//! What TCP reaches on planted paths and on the twins that were fitted to their probes.

use std::fmt::Write as _;
use std::time::Duration;

use super::{fit_path, goodput_bps};
use crate::explain::mechanism::mechanism;
use crate::explain::mechanism::trial_tests::{KINDS, planted};
use crate::explain::probing_tests::{Schedule, probe};
use crate::record::{Direction, PathPlan, SimulatedTcp};
use crate::simulate::TcpModel;
use crate::stats::{Z_95, wilson_interval};

/// Mbit/s on the path and on its twin.
fn rates(text: &str, schedule: Schedule) -> ([f64; 2], PathPlan) {
    let path: PathPlan = crate::tree::from_toml(text).expect("a path");
    let found = mechanism(&probe(&path, false, schedule), Direction::Up).expect("packets");
    let facts = path.direction_facts().expect("a sound path");
    let rtt: Duration = facts.iter().map(|fact| fact.delay).sum();
    let twin = fit_path(&found, None, rtt);
    let again: PathPlan =
        crate::tree::from_toml(&crate::tree::to_toml(&twin).expect("it is written"))
            .expect("and read");
    assert_eq!(again, twin);
    let tcp = SimulatedTcp::from(&TcpModel::TODAY);
    let mbps = |path: &PathPlan| goodput_bps(path, &tcp, 1).expect("it can be simulated") / 1e6;
    ([mbps(&path), mbps(&twin)], twin)
}

fn is_near([path, twin]: [f64; 2]) -> bool {
    (twin / path - 1.0).abs() <= 0.15
}

#[test]
fn twins_carry_what_their_paths_carry() {
    let (mut near, mut said) = (0, String::new());
    for (number, kind) in KINDS.into_iter().enumerate() {
        let text = planted(kind, 11 + number as u64, number % 2 == 0, 20.0);
        let (rates, _) = rates(&text, Schedule::SHORT);
        near += usize::from(is_near(rates));
        let _ = writeln!(said, "{kind}: {rates:.2?}");
    }
    assert!(near >= 6, "{near} of 7:\n{said}");
}

/// The long trial: `LINERATE_TRIAL_SEED=5 LINERATE_TRIAL_PATHS=20 cargo test --profile demo
/// -p linerate-core --lib twin::trial -- --ignored --nocapture`.
#[test]
#[ignore = "nightly: minutes, the whole trial, which prints its table"]
fn the_table_of_paths_and_twins() {
    let number = |name, usual| {
        std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok()).unwrap_or(usual)
    };
    let (seed, paths) = (number("LINERATE_TRIAL_SEED", 5), number("LINERATE_TRIAL_PATHS", 20));
    let (mut near, mut all) = (0, 0);
    for (row, kind) in KINDS.into_iter().enumerate() {
        let before = near;
        for path in 0..paths {
            let seed = seed * 100_000 + row as u64 * 1000 + path;
            let text = planted(kind, seed, path % 2 == 1, 200.0);
            let (rates, twin) = rates(&text, Schedule::WHOLE);
            (near, all) = (near + u64::from(is_near(rates)), all + 1);
            if !is_near(rates) {
                let twin = crate::tree::to_toml(&twin).expect("it is written").replace('\n', "; ");
                println!("{rates:.2?}: {}\n  {twin}", text.replace('\n', "; "));
            }
        }
        println!("{kind:8} {} of {paths} within 15 %", near - before);
    }
    let wilson = wilson_interval(near, all, Z_95).expect("trials");
    println!("seed {seed}: {near} of {all} within 15 %, {wilson:?}");
    assert!(near as f64 >= 0.85 * all as f64);
}
