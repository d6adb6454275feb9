//! What a hub's watch needs of a store beside what every hub does: until when each series was
//! looked at, what was found, incidents, and the outbox of their alerts. A plan here is
//! `MESH/AGENT`, a task `TASK/AGENT`.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::Incident;
use linerate_core::record::Failure;
use linerate_core::schedule::EventKind;
use serde_json::Value;

use super::{NewAlert, Outbox, ScheduleEvent, SeriesValue};

/// Incidents that are read at most.
pub(super) const READ_MAX: i64 = 1000;

/// Something that happened to a task of an agent, to be kept with what was found of it.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskNote {
    /// `MESH/AGENT`.
    pub plan: String,
    /// `TASK/AGENT`.
    pub task: String,
    /// When, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// As of [`super::ScheduleEvent`].
    pub kind: EventKind,
    /// Details of the event, as JSON.
    pub detail: Value,
}

/// An alert, whose outbox it is in, and who is to get it.
pub type Outgoing<'a> = (&'a str, &'a NewAlert, &'a [String]);

/// Until when series were looked at, by plan and task.
pub type Marks = BTreeMap<(String, String), f64>;

/// A store of which one hub watches what came. Times are seconds since 1970-01-01 UTC; each call
/// fails with one line where the store cannot be read or written.
pub trait WatchStore: Outbox {
    /// Takes the right to watch a mesh, for as long as this is open and does not fail; whether
    /// nobody else has it.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_watches(&mut self, mesh: &str) -> Result<bool, Failure>;

    /// Agents and tasks of a mesh that have a newer value than was looked at, or, where they never
    /// were, one after a time: as far as others than this process write into the store.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_unwatched(
        &mut self,
        mesh: &str,
        since_s: i64,
    ) -> Result<BTreeSet<(String, String)>, Failure>;

    /// Until when the series of a task were looked at.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_watched_s(&mut self, plan: &str, task: &str) -> Result<Option<f64>, Failure>;

    /// The values of a task after a time and not after another, the oldest first; at most the
    /// newest `limit` of each figure. A file says when a measurement began, a database when its
    /// run did.
    /// # Errors
    /// See [`WatchStore`].
    fn task_series(
        &mut self,
        of: (&str, &str),
        span: (f64, f64),
        limit: usize,
    ) -> Result<Vec<SeriesValue>, Failure>;

    /// Keeps until when the series of a task were looked at, and the changes that were found
    /// by it, both or neither; the changes' numbers.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_watched(
        &mut self,
        of: (&str, &str),
        until_s: f64,
        notes: &[TaskNote],
    ) -> Result<Vec<i64>, Failure>;

    /// Keeps until when series were looked at of which nothing was found. The last of it may not
    /// survive a loss of power: the same values are looked at again then, and nothing is found.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_looked(&mut self, marks: &Marks) -> Result<(), Failure>;

    /// Events of tasks of an agent at a time or later, the oldest first.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_events(&mut self, plan: &str, since_s: i64) -> Result<Vec<ScheduleEvent>, Failure>;

    /// Keeps an incident, in place of what was kept of it; with it the changes that are part of it,
    /// what is noted of tasks, and the alert: all or nothing.
    /// # Errors
    /// See [`WatchStore`].
    fn incident_is(
        &mut self,
        mesh: &str,
        incident: &Incident,
        with: (&[i64], &[TaskNote]),
        alert: Option<Outgoing<'_>>,
    ) -> Result<(), Failure>;

    /// The incidents of a mesh that are open, or were over at a time or later, the newest first.
    /// # Errors
    /// See [`WatchStore`].
    fn incidents(&mut self, mesh: &str, since_s: i64) -> Result<Vec<Incident>, Failure>;

    /// Keeps of changes that were found which runs are to confirm them.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_changes_ask(&mut self, events: &[i64], further: &Value) -> Result<(), Failure>;

    /// Further runs did not show changes that were found: they are `dropped`, with a sentence.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_changes_dropped(&mut self, events: &[i64], sentence: &str) -> Result<(), Failure>;

    /// Changes that were found are part of no incident, and never will be.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_changes_closed(&mut self, events: &[i64]) -> Result<(), Failure>;

    /// Deletes events of a mesh before a time, and incidents that were over before it, some
    /// hundreds of each at once; how many are gone. The newest event of each kind of a task stays,
    /// and so do open incidents with their events.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_forgets(&mut self, mesh: &str, before_s: i64) -> Result<usize, Failure>;
}
