//! A day's runs out of a file of SQLite.

use linerate_core::record::{Failure, Record};
use linerate_core::schedule::followed;
use rusqlite::{Connection, Row, TransactionBehavior, params};

use super::{AT_ONCE, Day, DayRun, Takes, TaskPath, differs};
use crate::Store;
use crate::records::query_rows;
use crate::word::StoredWord;

impl Store {
    /// Gives the runs of a day path by path, as the file is at one moment.
    pub(crate) fn mesh_day(
        &self,
        mesh: &str,
        span: (i64, i64),
        take: &mut Takes<'_>,
    ) -> Result<(), Failure> {
        let read = |error: &rusqlite::Error| self.storage_failure("read store", error);
        let snapshot = self.connection.unchecked_transaction().map_err(|error| read(&error))?;
        let mut paths = Vec::new();
        for agent in agents(&snapshot, mesh).map_err(|error| read(&error))? {
            let sql = "SELECT DISTINCT task FROM schedule_run
                       WHERE plan = ?1 AND start_s >= ?2 AND start_s < ?3";
            let plan = format!("{mesh}/{agent}");
            let tasks = query_rows(&snapshot, sql, params![plan, span.0, span.1], |row| row.get(0));
            let tasks: Vec<String> = tasks.map_err(|error| read(&error))?;
            paths.extend(tasks.into_iter().map(|task| (agent.clone(), task)));
        }
        // As bytes are: a database's own order may be that of a language.
        paths.sort_by(|a, b| TaskPath::from_task(&a.0, &a.1).cmp(&TaskPath::from_task(&b.0, &b.1)));
        for (agent, task) in &paths {
            let mut failure = Ok(true);
            let plan = format!("{mesh}/{agent}");
            let (from_s, until_s) = span;
            let given = read_path_runs(&snapshot, &plan, task, from_s, until_s, &mut |runs| {
                failure = take(TaskPath::from_task(agent, task), runs);
                matches!(failure, Ok(true))
            });
            given.map_err(|error| read(&error))?;
            if !failure? {
                break;
            }
        }
        Ok(())
    }

    /// Takes a day out if it has so many runs, all of it or nothing: its runs and their records,
    /// but for records that were asked to stay.
    pub(crate) fn mesh_day_goes(
        &mut self,
        mesh: &str,
        day: &Day,
        count: u64,
    ) -> Result<(), Failure> {
        let place = self.path().display().to_string();
        let work = |store: &mut Self| {
            let begin = TransactionBehavior::Immediate;
            let transaction = store.connection.transaction_with_behavior(begin)?;
            let ((from_s, until_s), mut stored) = (day.span_seconds(), 0);
            let agents = agents(&transaction, mesh)?;
            for agent in &agents {
                let plan = format!("{mesh}/{agent}");
                let records = "DELETE FROM record
                               WHERE run IS NULL AND json_extract(tags, '$.keep') IS NULL
                                 AND id IN (SELECT record FROM schedule_run
                                            WHERE plan = ?1 AND start_s >= ?2 AND start_s < ?3)";
                transaction.prepare_cached(records)?.execute(params![plan, from_s, until_s])?;
                let runs = "DELETE FROM schedule_run
                            WHERE plan = ?1 AND start_s >= ?2 AND start_s < ?3";
                stored +=
                    transaction.prepare_cached(runs)?.execute(params![plan, from_s, until_s])?;
            }
            let stored = u64::try_from(stored).unwrap_or(u64::MAX);
            if stored == count {
                transaction.commit()?;
            }
            Ok(stored)
        };
        let stored = work(self);
        let stored = stored
            .map_err(|error: rusqlite::Error| self.storage_failure("drop a day of", &error))?;
        if stored == count { Ok(()) } else { Err(differs(&place, day, stored, count)) }
    }
}

/// The agents of a mesh that have runs, by the ends of their keys.
fn agents(connection: &Connection, mesh: &str) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT plan FROM schedule_run WHERE plan > ?1 AND plan < ?2 ORDER BY plan LIMIT 1";
    // What comes after '/' is '0'.
    let (first, end) = (format!("{mesh}/"), format!("{mesh}0"));
    let (mut found, mut after) = (Vec::new(), first.clone());
    while let Some(plan) =
        query_rows(connection, sql, params![after, end], |row| row.get::<_, String>(0))?.pop()
    {
        found.push(plan[first.len()..].to_owned());
        after = plan;
    }
    Ok(found)
}

/// Gives runs of a path that began from `from_s` to before `until_s`, some at a time, until no more
/// are wanted. `plan` is `MESH/AGENT`.
fn read_path_runs(
    connection: &Connection,
    plan: &str,
    task: &str,
    from_s: i64,
    until_s: i64,
    take: &mut dyn FnMut(Vec<DayRun>) -> bool,
) -> rusqlite::Result<()> {
    let sql = "SELECT start_s, why, state, reason, record, doc FROM schedule_run
               LEFT JOIN record ON record.id = schedule_run.record
               WHERE plan = ?1 AND task = ?2 AND start_s >= ?3 AND start_s < ?4 ORDER BY start_s";
    let mut statement = connection.prepare_cached(sql)?;
    let mut found = statement.query(params![plan, task, from_s, until_s])?;
    let mut given = Vec::new();
    while let Some(row) = found.next()? {
        given.push(day_run(row)?);
        if given.len() == AT_ONCE && !take(std::mem::take(&mut given)) {
            return Ok(());
        }
    }
    if !given.is_empty() {
        take(given);
    }
    Ok(())
}

fn day_run(row: &Row<'_>) -> rusqlite::Result<DayRun> {
    let doc: Option<String> = row.get(5)?;
    // As a hub does it when a run comes; this file keeps it of the newest alone.
    let record = doc.as_deref().and_then(|doc| Record::from_json(doc).ok());
    let figure = record.and_then(|record| followed(&record).into_iter().next());
    Ok(DayRun {
        start_s: row.get(0)?,
        why: row.get::<_, StoredWord<_>>(1)?.0,
        state: row.get::<_, StoredWord<_>>(2)?.0,
        reason: row.get(3)?,
        figure: figure.map(|(what, value)| (what.series_key(), value)),
        record: row.get(4)?,
        doc,
    })
}
