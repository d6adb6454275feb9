//! What a simulated test of a study must hold: values that the model has, and an emulated link on
//! every topology that it is on.

use std::collections::BTreeSet;

use super::check_tcp::{Checked, check_background, check_end, check_lists, list, named, problem};
use super::{SimulateSweep, StudyPlan, Test, embedded};
use crate::lab::Step;
use crate::record::ControlName;
use crate::simulate::INITIAL_WINDOW_MAX;
use crate::theory::window::WINDOW_MAX_BYTES;

/// Most flows of one simulation in a study: 1000 of them have been run in seconds.
const STREAMS_MAX: u16 = 1000;
/// Largest transfer: at 100 Gbit/s it takes most of a day.
const TRANSFER_BYTES_MAX: u64 = 1 << 50;
/// Longest span of starts.
const SPREAD_SECONDS_MAX: f64 = 3600.0;

/// Whether the test can be simulated wherever it is on.
pub(super) fn check_simulate(study: &StudyPlan, test: &Test, simulate: &SimulateSweep) -> Checked {
    let id = &test.id;
    named(id, check_lists(&simulate.lists(), "windows_bytes or another list"))?;
    named(id, check_values(simulate))?;
    named(id, check_end(&simulate.common))?;
    named(id, check_settings(simulate))?;
    named(id, check_background(study, test, &simulate.common))?;
    let place = if test.on.is_some() { vec![Step::Key("on")] } else { Vec::new() };
    for topology in study.topologies.iter().filter(|topology| test.is_on(&topology.id)) {
        if let Err(reason) = simulate.plan(topology, 0) {
            return named(id, problem(&place, reason));
        }
    }
    Ok(())
}

fn check_values(test: &SimulateSweep) -> Checked {
    let lists = &test.common;
    list("windows_bytes", lists.windows_bytes.as_ref(), 0, WINDOW_MAX_BYTES)?;
    list("streams", lists.streams.as_ref(), 1, STREAMS_MAX)?;
    list("transfer_bytes", lists.transfer_bytes.as_ref(), 1, TRANSFER_BYTES_MAX)?;
    list("sack", lists.sack.as_ref(), false, true)?;
    let one = lists.base.congestion_control.iter();
    let one = one.map(|name| (name, vec![Step::Key("congestion_control")]));
    let names = lists.congestion_controls.iter().flatten().enumerate();
    let names =
        names.map(|(at, name)| (name, vec![Step::Key("congestion_controls"), Step::Index(at)]));
    let mut seen = BTreeSet::new();
    for (name, path) in one.chain(names) {
        if name.parse::<ControlName>().is_err() {
            return problem(&path, format!("`{name}`: the model has `reno`, `cubic` and `bbr`"));
        }
        if !seen.insert(name) {
            return problem(&path, format!("{name} is there twice"));
        }
    }
    let mut seen = BTreeSet::new();
    for (at, recovery) in test.recoveries.iter().flatten().enumerate() {
        if !seen.insert(*recovery) {
            let path = [Step::Key("recoveries"), Step::Index(at)];
            return problem(&path, format!("{} is there twice", recovery.name()));
        }
    }
    Ok(())
}

fn check_settings(test: &SimulateSweep) -> Checked {
    let lists = &test.common;
    if lists.sack.is_some() && test.recoveries.is_some() {
        let message = "sack and recoveries both say how losses are repaired; give one of them";
        return problem(&[Step::Key("sack")], message.to_owned());
    }
    if lists.base.congestion_control.is_some() && lists.congestion_controls.is_some() {
        let message = "congestion_control and congestion_controls; give one of them".to_owned();
        return problem(&[Step::Key("congestion_control")], message);
    }
    let live = embedded::differing(&lists.base).into_iter().map(|(key, _)| key);
    let live = live.chain(lists.read_bytes.as_ref().map(|_| "read_bytes".to_owned()));
    if let Some(key) = live.into_iter().find(|key| key != "congestion_control") {
        let message = format!("simulate has no key '{key}'");
        return problem(&[Step::Named(key)], message);
    }
    if lists.omit_seconds.is_some() && lists.transfer_bytes.is_some() {
        let message = "a transfer is timed whole; leave omit_seconds out, or give it seconds";
        return problem(&[Step::Key("omit_seconds")], message.to_owned());
    }
    match test.initial_window {
        Some(segments) if !(1..=INITIAL_WINDOW_MAX).contains(&segments) => {
            let message = format!("initial_window of {segments}; 1 to {INITIAL_WINDOW_MAX}");
            return problem(&[Step::Key("initial_window")], message);
        }
        _ => {}
    }
    match test.start_spread_seconds {
        Some(seconds) if !(0.0..=SPREAD_SECONDS_MAX).contains(&seconds) => {
            let message =
                format!("start_spread_seconds is {seconds}; 0 to {SPREAD_SECONDS_MAX} are allowed");
            problem(&[Step::Key("start_spread_seconds")], message)
        }
        _ => Ok(()),
    }
}
