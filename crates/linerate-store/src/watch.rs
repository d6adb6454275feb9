//! What a hub's watch needs of a store beside what every hub does: until when each series was
//! looked at, what was found, incidents, and the outbox of their alerts. A plan here is
//! `MESH/AGENT`, a task `TASK/AGENT`.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::Incident;
use linerate_core::record::Failure;
use linerate_core::schedule::EventKind;
use serde_json::Value;

use super::{NewAlert, Outbox, ScheduleEvent, SeriesValue};

/// Most incidents that one call reads.
pub(super) const READ_MAX: i64 = 1000;

/// An event of a task of an agent, to be stored together with the change or incident that it
/// belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct TaskNote {
    /// Mesh and agent, `MESH/AGENT`.
    pub plan: String,
    /// Task and the agent at its other end, `TASK/AGENT`.
    pub task: String,
    /// Time of the event, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// Kind of the event, as in [`super::ScheduleEvent`].
    pub kind: EventKind,
    /// Details of the event, as JSON.
    pub detail: Value,
}

/// An alert that is to be put into an outbox.
#[derive(Clone, Copy, Debug)]
pub struct OutgoingAlert<'a> {
    /// Owner of the outbox: a schedule's plan, or a mesh.
    pub owner: &'a str,
    /// The alert with its text.
    pub alert: &'a NewAlert,
    /// Keys of the outputs that are to get it.
    pub outputs: &'a [String],
}

/// Times until which series were looked at, seconds since 1970-01-01 UTC, by plan and task.
pub type Marks = BTreeMap<(String, String), f64>;

/// A store whose new results one hub watches for changes. Times are seconds since 1970-01-01 UTC;
/// each call fails with one line where the store cannot be read or written.
pub trait WatchStore: Outbox {
    /// Takes the right to watch a mesh, for as long as this store is open and does not fail. False
    /// where another hub has it.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_watches(&mut self, mesh: &str) -> Result<bool, Failure>;

    /// Agents and tasks of a mesh with values that were not looked at yet; where none ever was,
    /// with one after `since_s`. Only a store that other processes write into has any.
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

    /// The values of a task after `after_s` up to `until_s`, the oldest first; at most the newest
    /// `limit` of each figure. A file says when a measurement began, a database when its
    /// run did.
    /// # Errors
    /// See [`WatchStore`].
    fn task_series(
        &mut self,
        plan: &str,
        task: &str,
        after_s: f64,
        until_s: f64,
        limit: usize,
    ) -> Result<Vec<SeriesValue>, Failure>;

    /// Stores until when the series of a task were looked at, and the changes that were found in
    /// them, both or neither; returns the changes' numbers.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_watched(
        &mut self,
        plan: &str,
        task: &str,
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

    /// Keeps an incident, in place of what was kept of it; with it the numbers of the changes that
    /// are part of it, the notes of tasks, and the alert: all or nothing.
    /// # Errors
    /// See [`WatchStore`].
    fn incident_is(
        &mut self,
        mesh: &str,
        incident: &Incident,
        changes: &[i64],
        notes: &[TaskNote],
        alert: Option<OutgoingAlert<'_>>,
    ) -> Result<(), Failure>;

    /// The incidents of a mesh that are open, or were over at a time or later, the newest first.
    /// # Errors
    /// See [`WatchStore`].
    fn incidents(&mut self, mesh: &str, since_s: i64) -> Result<Vec<Incident>, Failure>;

    /// Stores with changes which further runs are to confirm them.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_changes_ask(&mut self, events: &[i64], further: &Value) -> Result<(), Failure>;

    /// Marks changes that further runs did not show as `dropped`, with a sentence.
    /// # Errors
    /// See [`WatchStore`].
    fn mesh_changes_dropped(&mut self, events: &[i64], sentence: &str) -> Result<(), Failure>;

    /// Marks changes as part of no incident, now or later.
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
