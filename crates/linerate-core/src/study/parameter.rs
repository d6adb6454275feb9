//! The parameter that a test varies, its values, and what is measured for one.

use crate::record::Plan;

/// Parameter that a test varies: words for headings and axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// The key that lists its values in the plan: `windows_bytes`.
    pub key: &'static str,
    /// Its name in headings: `window`.
    pub name: &'static str,
    /// Unit of its values; none for counts and names.
    pub unit: Option<&'static str>,
}

impl Parameter {
    /// The name with the unit, for the axis of a plot: `window, bytes`.
    pub fn axis_title(&self) -> String {
        match self.unit {
            Some(unit) => format!("{}, {unit}", self.name),
            None => self.name.to_owned(),
        }
    }
}

/// One value of a parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Value {
    /// The number that stands for it in cells and keys. For a name it is its place in the plan's
    /// list, from 1; for a choice 1 is yes.
    pub number: u64,
    /// How it is written in headings: `16 KiB`, `auto`, `reno`.
    pub label: String,
}

/// One value of a test with its plan.
pub(super) struct TestStep {
    pub(super) value: Value,
    pub(super) plan: Plan,
    /// Selective acknowledgements at both ends; none leaves them as the topology has them.
    pub(super) sack: Option<bool>,
}
