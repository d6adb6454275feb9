//! A laboratory from the text of a TOML file (TOML 1.0), with the place of every mistake.

use std::ops::Range;
use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::LabPlan;
use super::problem::{Problem, Step};
use crate::record::{Failure, Fault};

impl LabPlan {
    /// Reads and checks a plan. `file_name` is for messages, and its stem is the name of a plan
    /// that gives none.
    /// # Errors
    /// One line with `file:line:column` for text that is no TOML, for keys that do not exist and
    /// for plans that cannot be built.
    pub fn from_toml(text: &str, file_name: &str) -> Result<Self, Failure> {
        let failed = |offset: Option<usize>, message: &str| {
            let object = match offset.map(|offset| line_and_column(text, offset)) {
                Some((line, column)) => format!("{file_name}:{line}:{column}"),
                None => file_name.to_owned(),
            };
            Failure::new(Fault::Usage, "read laboratory", object, one_line(message))
        };
        let plan = crate::tree::from_toml::<Self>(text);
        let mut plan = plan.map_err(|error| failed(error.offset(), error.message()))?;
        plan.check_buildable()
            .map_err(|problem| failed(place_of(text, &problem), &problem.message))?;
        if plan.name.is_none() {
            let stem = Path::new(file_name).file_stem();
            plan.name = stem.map(|stem| stem.to_string_lossy().into_owned());
        }
        Ok(plan)
    }
}

/// Line and column of a byte offset, both from 1; the column counts characters.
pub fn line_and_column(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
}

/// Offset of the deepest part of the path that the text spells out.
pub(crate) fn place_of(text: &str, problem: &Problem) -> Option<usize> {
    let root = DeTable::parse(text).ok()?;
    let root = DeValue::Table(root.into_inner());
    let mut value = &root;
    let mut span: Option<Range<usize>> = None;
    for step in &problem.path {
        let next = match step {
            Step::Key(key) => value.get(*key),
            Step::Named(key) => value.get(key.as_str()),
            Step::Index(index) => value.get(*index),
        };
        let Some(next) = next else { break };
        span = Some(next.span());
        value = next.get_ref();
    }
    span.map(|span| span.start)
}

pub(crate) fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join("; ")
}
