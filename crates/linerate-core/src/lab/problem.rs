//! What is wrong with a plan of a laboratory, and where in it.

use std::fmt;

/// Something in a plan that cannot be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Place of the problem: keys and indexes from the top of the plan, `link[2].ends[1]`.
    pub path: Vec<Step>,
    /// The problem, and a value that would be right.
    pub message: String,
}

/// One step into a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A key of a table.
    Key(&'static str),
    /// A key whose name was made while the plan was checked.
    Named(String),
    /// An element of an array, from 0.
    Index(usize),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, step) in self.path.iter().enumerate() {
            match step {
                Step::Key(key) if place == 0 => write!(f, "{key}")?,
                Step::Key(key) => write!(f, ".{key}")?,
                Step::Named(key) => write!(f, ".{key}")?,
                Step::Index(index) => write!(f, "[{index}]")?,
            }
        }
        if !self.path.is_empty() {
            write!(f, ": ")?;
        }
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for Problem {}

/// Result of a check that a part of a plan can be built.
pub(super) type Checked = Result<(), Problem>;

pub(super) fn problem<T>(path: &[Step], message: impl Into<String>) -> Result<T, Problem> {
    Err(Problem { path: path.to_vec(), message: message.into() })
}
