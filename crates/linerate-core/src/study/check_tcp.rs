//! What a TCP test of a study must hold: one varied list, values that can be asked for, an end.

use std::collections::BTreeSet;
use std::fmt::Display;

use super::embedded::{Embedded, refused};
use super::list::List;
use super::{StudyPlan, TcpSweep, Test};
use crate::lab::{Problem, Step, is_congestion_control};
use crate::record::TcpTest;

/// Longest single run: a day.
const SECONDS_MAX: f64 = 86_400.0;
/// Longest span that a test may leave out; the protocol's bound.
const OMIT_SECONDS_MAX: f64 = 600.0;
/// The protocol's bounds on connections, transfers and reads.
const STREAMS_MAX: u16 = 128;
const TRANSFER_BYTES_MAX: u64 = 1 << 60;
const READ_BYTES_MAX: u32 = 16 << 20;
/// The socket option is an int (setsockopt(2), SO_RCVBUF).
const WINDOW_BYTES_MAX: u64 = i32::MAX as u64;

pub(super) type Checked = Result<(), Problem>;

pub(super) fn problem(path: &[Step], message: String) -> Checked {
    Err(Problem { path: path.to_vec(), message })
}

/// The same outcome with the name of the test.
pub(super) fn named(id: &str, inner: Checked) -> Checked {
    inner.map_err(|problem| Problem {
        message: format!("test '{id}': {}", problem.message),
        ..problem
    })
}

/// Whether the test can be asked for on every topology of `study` that it is on.
pub(super) fn check_tcp(study: &StudyPlan, test: &Test, tcp: &TcpSweep) -> Checked {
    let id = &test.id;
    named(id, check_lists(&tcp.lists(), "windows_bytes or another list"))?;
    named(id, check_values(tcp))?;
    named(id, check_end(tcp))?;
    named(id, check_base(&tcp.base, TcpTest::check))?;
    named(id, check_background(study, test, tcp))
}

/// Whether every field that a test gives of its plan can be.
pub(super) fn check_base<T: Embedded, E: ToString>(
    base: &T,
    check: impl Fn(&T) -> Result<(), E>,
) -> Checked {
    match refused(base, check) {
        Some((key, reason)) => problem(&[Step::Named(key)], reason),
        None => Ok(()),
    }
}

/// The plan has a list, none is empty, and one has several values at most; `choice` are the lists
/// to choose from where it has none.
pub(super) fn check_lists(lists: &[List], choice: &str) -> Checked {
    let lengths = lists.iter().filter_map(|list| Some((list.parameter.key, list.length()?)));
    let lengths: Vec<(&'static str, usize)> = lengths.collect();
    if lengths.is_empty() {
        return problem(&[], format!("it varies nothing; give it {choice}"));
    }
    if let Some((key, _)) = lengths.iter().find(|(_, length)| *length == 0) {
        return problem(&[Step::Key(key)], format!("{key} is empty"));
    }
    let mut varied = lengths.iter().filter(|(_, length)| *length > 1);
    let (Some((first, _)), Some((second, _))) = (varied.next(), varied.next()) else {
        return Ok(());
    };
    let message = format!("{first} and {second} both have several values; vary one in a test");
    problem(&[Step::Key(second)], message)
}

fn check_values(test: &TcpSweep) -> Checked {
    list("windows_bytes", test.windows_bytes.as_ref(), 0, WINDOW_BYTES_MAX)?;
    list("streams", test.streams.as_ref(), 1, STREAMS_MAX)?;
    list("transfer_bytes", test.transfer_bytes.as_ref(), 1, TRANSFER_BYTES_MAX)?;
    list("read_bytes", test.read_bytes.as_ref(), 0, READ_BYTES_MAX)?;
    list("sack", test.sack.as_ref(), false, true)?;
    let names = test.congestion_controls.iter().flatten().enumerate();
    let names =
        names.map(|(at, name)| (name, vec![Step::Key("congestion_controls"), Step::Index(at)]));
    let one = test.base.congestion_control.iter();
    let one = one.map(|name| (name, vec![Step::Key("congestion_control")]));
    let mut seen = BTreeSet::new();
    for (name, path) in one.chain(names) {
        if !is_congestion_control(name) {
            let message = format!("`{name}` is no name of a congestion control, as `cubic` is");
            return problem(&path, message);
        }
        if path.len() > 1 && !seen.insert(name) {
            return problem(&path, format!("{name} is there twice"));
        }
    }
    if test.base.congestion_control.is_some() && test.congestion_controls.is_some() {
        let message = "congestion_control and congestion_controls; give one of them".to_owned();
        return problem(&[Step::Key("congestion_control")], message);
    }
    Ok(())
}

/// Values within bounds, each once: a value that is listed twice would fill the same cell twice.
pub(super) fn list<T: Copy + Ord + Display>(
    key: &'static str,
    values: Option<&Vec<T>>,
    min: T,
    max: T,
) -> Checked {
    let unit = if key.ends_with("_bytes") { " bytes" } else { "" };
    let mut seen = BTreeSet::new();
    for (index, &value) in values.into_iter().flatten().enumerate() {
        let path = [Step::Key(key), Step::Index(index)];
        if value > max {
            return problem(&path, format!("{value}{unit}; the most is {max}"));
        }
        if value < min {
            return problem(&path, format!("{value}{unit}; the least is {min}"));
        }
        if !seen.insert(value) {
            return problem(&path, format!("{value} is there twice"));
        }
    }
    Ok(())
}

/// A run ends by its time or by its bytes.
pub(super) fn check_end(test: &TcpSweep) -> Checked {
    match (test.seconds, &test.transfer_bytes) {
        (None, None) => problem(&[], "it has no end; give it seconds or transfer_bytes".to_owned()),
        (Some(_), Some(_)) => {
            let message = "seconds and transfer_bytes both end a run; give one of them".to_owned();
            problem(&[Step::Key("seconds")], message)
        }
        (seconds, _) => check_seconds(seconds.unwrap_or(SECONDS_MAX), test.omit_seconds),
    }
}

/// The time of a run and the span at its start that does not count.
pub(super) fn check_seconds(seconds: f64, omit_seconds: Option<f64>) -> Checked {
    if !(seconds > 0.0 && seconds <= SECONDS_MAX) {
        let message = format!("seconds is {seconds}; use more than 0, at most a day");
        return problem(&[Step::Key("seconds")], message);
    }
    match omit_seconds {
        Some(omit) if !(0.0..=OMIT_SECONDS_MAX).contains(&omit) => {
            let message = format!("omit_seconds is {omit}; 0 to {OMIT_SECONDS_MAX} are allowed");
            problem(&[Step::Key("omit_seconds")], message)
        }
        _ => Ok(()),
    }
}

pub(super) fn check_background(study: &StudyPlan, test: &Test, tcp: &TcpSweep) -> Checked {
    let Some(background) = &tcp.background else { return Ok(()) };
    for topology in study.topologies.iter().filter(|topology| test.is_on(&topology.id)) {
        if let Err(reason) = background.rate_on(topology) {
            return problem(&[Step::Key("background")], reason);
        }
    }
    Ok(())
}
