//! Kinds of what happens to a plan that is kept for months, by the words of stores and pages.

use serde::Serialize;

use crate::record::named;

/// Kind of an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// A figure of a task changed and stays so.
    #[default]
    Change,
    /// A change that further runs did not show.
    Dropped,
    /// Runs of a task bring no results any more.
    NoData,
    /// They bring results again.
    Data,
    /// The clock was set.
    Clock,
    /// The program began to keep the plan.
    Begin,
    /// It ended.
    End,
}

named!(EventKind {
    Change = "change",
    Dropped = "dropped",
    NoData = "no_data",
    Data = "data",
    Clock = "clock",
    Begin = "begin",
    End = "end",
});
