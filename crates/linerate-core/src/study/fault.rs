//! Faults of a plan, each with the key or the item of the file that it lies in.
//!
//! A check returns the first one; the text of the file turns its place into line and column.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::lab::{Problem, Step};

/// Longest run or trial: a day.
pub(super) const SECONDS_MAX: f64 = 86_400.0;

/// Outcome of a check.
pub(super) type Checked = Result<(), Problem>;

/// A fault at a place of the table that is checked; without a path, of the whole table.
pub(super) fn fault_at_path<T>(path: &[Step], message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { path: path.to_vec(), message: message.into() })
}

/// A fault of a key.
pub(super) fn key_fault<T>(key: &'static str, message: impl Into<String>) -> Result<T, Problem> {
    fault_at_path(&[Step::Key(key)], message)
}

/// A fault of one item of a list, counted from 0.
pub(super) fn item_fault(key: &'static str, index: usize, message: impl Into<String>) -> Checked {
    fault_at_path(&[Step::Key(key), Step::Index(index)], message)
}

/// Refuses a key unless its rule holds.
pub(super) fn require(holds: bool, key: &'static str, message: impl Into<String>) -> Checked {
    if holds { Ok(()) } else { key_fault(key, message) }
}

/// The same outcome, its place seen from the table that has the list.
pub(super) fn prefix_place(list: &'static str, index: usize, outcome: Checked) -> Checked {
    outcome.map_err(|mut problem| {
        problem.path.splice(..0, [Step::Key(list), Step::Index(index)]);
        problem
    })
}

/// The number of a key, where the plan has it, lies within bounds.
pub(super) fn check_number<T: PartialOrd + Display>(
    key: &'static str,
    number: Option<T>,
    bounds: RangeInclusive<T>,
) -> Checked {
    let (least, most) = (bounds.start(), bounds.end());
    match number.filter(|number| !bounds.contains(number)) {
        Some(number) => key_fault(key, format!("{key} is {number}; {least} to {most} are allowed")),
        None => Ok(()),
    }
}

/// The time of a run or of a trial, where the plan has it, is more than 0 and at most a day.
pub(super) fn check_seconds(key: &'static str, seconds: Option<f64>) -> Checked {
    match seconds.filter(|seconds| !(*seconds > 0.0 && *seconds <= SECONDS_MAX)) {
        Some(seconds) => {
            key_fault(key, format!("{key} is {seconds}; use more than 0, at most a day"))
        }
        None => Ok(()),
    }
}

/// No item is listed twice: its measurements would fill the same cells twice.
pub(super) fn check_once<T: Ord + Display>(key: &'static str, items: &[T]) -> Checked {
    match first_repeated(items) {
        Some(index) => item_fault(key, index, format!("{} is there twice", items[index])),
        None => Ok(()),
    }
}

/// Index of the first item that stands earlier in the list too.
pub(super) fn first_repeated<T: Ord>(items: &[T]) -> Option<usize> {
    let mut earlier = BTreeSet::new();
    items.iter().position(|item| !earlier.insert(item))
}
