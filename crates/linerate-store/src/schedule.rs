//! What schedules leave: their runs, their series, and what happened to them.

use linerate_core::record::Failure;
use linerate_core::schedule::{EventKind, RunState, ScheduleRun};
use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use super::records::query_rows;
use super::word::StoredWord;

/// Records that one call deletes at most, so that others can write between the calls.
pub(super) const FORGOTTEN_AT_ONCE: usize = 500;

/// A plan that was run, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredSchedule {
    /// Name of the plan.
    pub plan: String,
    /// Text of the plan's file when it was last run.
    pub text: String,
    /// First run of the plan, seconds since 1970-01-01 UTC.
    pub since_s: i64,
    /// Time up to which the runs of its calendar were started or noted as missed, seconds since
    /// 1970-01-01 UTC.
    pub dealt_s: i64,
}

/// A value of a series.
#[derive(Clone, Debug, PartialEq)]
pub struct SeriesValue {
    /// Name of the task that measured it.
    pub task: String,
    /// The figure, as `Followed::key` names it.
    pub metric: String,
    /// Begin of the measurement, seconds since 1970-01-01 UTC.
    pub at_s: f64,
    /// The value, in the metric's unit.
    pub value: f64,
    /// Identifier of the record that has the value.
    pub record: String,
}

/// An event of a schedule: a change, missing data, the schedule's begin or end.
#[derive(Clone, Debug, PartialEq)]
pub struct ScheduleEvent {
    /// Number of the event in this store.
    pub id: i64,
    /// The task that it is about; empty for the plan as a whole.
    pub task: String,
    /// Time of the event, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// Kind of the event.
    pub kind: EventKind,
    /// Details, by its kind: sentence, changes, verdict.
    pub detail: serde_json::Value,
    /// Time at which the event's alert was made, seconds since 1970-01-01 UTC; none before.
    pub told_s: Option<i64>,
}

impl Store {
    /// Keeps that a plan is run from a time on, with its file as it is now.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn schedule_opened(
        &mut self,
        plan: &str,
        text: &str,
        now_s: i64,
    ) -> Result<StoredSchedule, Failure> {
        let sql = "INSERT INTO schedule (plan, text, since_s, dealt_s) VALUES (?1, ?2, ?3, ?3)
                   ON CONFLICT (plan) DO UPDATE SET text = excluded.text";
        let done = self.connection.execute(sql, params![plan, text, now_s]);
        done.map_err(|error| self.storage_failure("store schedule in", &error))?;
        let found = self.schedules()?.into_iter().find(|known| known.plan == plan);
        let none = || self.storage_failure("read store", &rusqlite::Error::QueryReturnedNoRows);
        found.ok_or_else(none)
    }

    /// Every plan that was run, by name.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn schedules(&self) -> Result<Vec<StoredSchedule>, Failure> {
        let sql = "SELECT plan, text, since_s, dealt_s FROM schedule ORDER BY plan";
        let read = |row: &Row<'_>| {
            Ok(StoredSchedule {
                plan: row.get(0)?,
                text: row.get(1)?,
                since_s: row.get(2)?,
                dealt_s: row.get(3)?,
            })
        };
        query_rows(&self.connection, sql, params![], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Keeps until when the calendar of a plan was dealt with.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn schedule_dealt(&mut self, plan: &str, until_s: i64) -> Result<(), Failure> {
        self.change("UPDATE schedule SET dealt_s = ?2 WHERE plan = ?1", params![plan, until_s])
            .map(drop)
    }

    /// Stores a run that begins, or that will not be made. False for one that is known already: it
    /// has begun before, and must not begin again.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn slot_begun(&mut self, plan: &str, run: &ScheduleRun) -> Result<bool, Failure> {
        let sql = "INSERT OR IGNORE INTO schedule_run (plan, task, start_s, why, state, reason)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let values =
            params![plan, run.task, run.start_s, run.why.name(), run.state.name(), run.reason];
        self.change(sql, values).map(|rows| rows == 1)
    }

    /// Keeps how a run ended.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn slot_ended(
        &mut self,
        plan: &str,
        task: &str,
        start_s: i64,
        state: RunState,
        reason: Option<&str>,
    ) -> Result<(), Failure> {
        let sql = "UPDATE schedule_run SET state = ?4, reason = ?5
                   WHERE plan = ?1 AND task = ?2 AND start_s = ?3";
        self.change(sql, params![plan, task, start_s, state.name(), reason]).map(drop)
    }

    /// Ends the runs that a killed runner left as running: those with a record take its status, the
    /// others are lost. Returns the number that are lost.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn slots_left(&mut self, plan: &str, reason: &str) -> Result<usize, Failure> {
        let kept = "UPDATE schedule_run SET state = (SELECT iif(status = 'ok', 'ok', 'failed')
                        FROM record WHERE record.id = schedule_run.record)
                    WHERE plan = ?1 AND state = 'running'
                      AND record IN (SELECT id FROM record)";
        self.change(kept, params![plan])?;
        let lost = "UPDATE schedule_run SET state = 'lost', reason = ?2
                    WHERE plan = ?1 AND state = 'running'";
        self.change(lost, params![plan, reason])
    }

    /// The runs of a plan that began at a time or later, the oldest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn runs_since(&self, plan: &str, since_s: i64) -> Result<Vec<ScheduleRun>, Failure> {
        let sql = "SELECT task, start_s, why, state, reason, record FROM schedule_run
                   WHERE plan = ?1 AND start_s >= ?2 ORDER BY start_s, task";
        query_rows(&self.connection, sql, params![plan, since_s], run_from_row)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// A run of a task.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn find_run(
        &self,
        plan: &str,
        task: &str,
        start_s: i64,
    ) -> Result<Option<ScheduleRun>, Failure> {
        let sql = "SELECT task, start_s, why, state, reason, record FROM schedule_run
                   WHERE plan = ?1 AND task = ?2 AND start_s = ?3";
        let found =
            self.connection.query_row(sql, params![plan, task, start_s], run_from_row).optional();
        found.map_err(|error| self.storage_failure("read store", &error))
    }

    /// The last runs of a task that the calendar asked for, the newest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn last_slots(
        &self,
        plan: &str,
        task: &str,
        limit: usize,
    ) -> Result<Vec<ScheduleRun>, Failure> {
        let sql = "SELECT task, start_s, why, state, reason, record FROM schedule_run
                   WHERE plan = ?1 AND task = ?2 AND why = 'calendar'
                   ORDER BY start_s DESC LIMIT ?3";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        query_rows(&self.connection, sql, params![plan, task, limit], run_from_row)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// The values of a plan from a time on, the oldest first; at most the newest `limit` of each
    /// figure of each task.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn series(
        &self,
        plan: &str,
        since_s: f64,
        limit: usize,
    ) -> Result<Vec<SeriesValue>, Failure> {
        let sql = "SELECT task, metric, at_s, value, record FROM (
                       SELECT *, row_number() OVER (PARTITION BY task, metric ORDER BY at_s DESC)
                                 AS back
                       FROM series WHERE plan = ?1 AND at_s >= ?2)
                   WHERE back <= ?3 ORDER BY at_s, task, metric";
        let read = |row: &Row<'_>| {
            Ok(SeriesValue {
                task: row.get(0)?,
                metric: row.get(1)?,
                at_s: row.get(2)?,
                value: row.get(3)?,
                record: row.get(4)?,
            })
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        query_rows(&self.connection, sql, params![plan, since_s, limit], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Stores an event of a plan or of one of its tasks; returns its number.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn event_happened(
        &mut self,
        plan: &str,
        task: &str,
        at_s: i64,
        kind: EventKind,
        detail: &serde_json::Value,
    ) -> Result<i64, Failure> {
        let sql = "INSERT INTO schedule_event (plan, task, at_s, kind, detail)
                   VALUES (?1, ?2, ?3, ?4, ?5)";
        self.change(sql, params![plan, task, at_s, kind.name(), detail.to_string()])?;
        Ok(self.connection.last_insert_rowid())
    }

    /// Replaces the details of an event.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn event_explained(&mut self, id: i64, detail: &serde_json::Value) -> Result<(), Failure> {
        let sql = "UPDATE schedule_event SET detail = ?2 WHERE id = ?1";
        self.change(sql, params![id, detail.to_string()]).map(drop)
    }

    /// Events of a plan at a time or later, the oldest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn events(&self, plan: &str, since_s: i64) -> Result<Vec<ScheduleEvent>, Failure> {
        let sql = "SELECT id, task, at_s, kind, detail, told_s FROM schedule_event
                   WHERE plan = ?1 AND at_s >= ?2 ORDER BY id";
        let read = |row: &Row<'_>| {
            let detail: String = row.get(4)?;
            Ok(ScheduleEvent {
                id: row.get(0)?,
                task: row.get(1)?,
                at_s: row.get(2)?,
                kind: row.get::<_, StoredWord<_>>(3)?.0,
                detail: linerate_core::tree::from_json(&detail).unwrap_or_default(),
                told_s: row.get(5)?,
            })
        };
        query_rows(&self.connection, sql, params![plan, since_s], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Deletes whole records of a plan's runs that began before a time, some hundreds at once; the
    /// values of their series stay, and what happened does for longer. How many are gone; their
    /// room is used again by what comes.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn schedule_forgets(&mut self, plan: &str, before_s: i64) -> Result<usize, Failure> {
        let sql = "DELETE FROM record WHERE run IS NULL
                     AND json_extract(tags, '$.schedule') = ?1
                     AND id IN (SELECT record FROM schedule_run
                                WHERE plan = ?1 AND start_s < ?2 AND record IN
                                      (SELECT id FROM record)
                                ORDER BY start_s LIMIT ?3)";
        let at_once = i64::try_from(FORGOTTEN_AT_ONCE).unwrap_or(i64::MAX);
        self.change(sql, params![plan, before_s, at_once])
    }

    fn change(&mut self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize, Failure> {
        let changed =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        changed.map_err(|error| self.storage_failure("store schedule in", &error))
    }
}

pub(super) fn run_from_row(row: &Row<'_>) -> rusqlite::Result<ScheduleRun> {
    Ok(ScheduleRun {
        task: row.get(0)?,
        start_s: row.get(1)?,
        why: row.get::<_, StoredWord<_>>(2)?.0,
        state: row.get::<_, StoredWord<_>>(3)?.0,
        reason: row.get(4)?,
        record: row.get(5)?,
    })
}
