//! What a mesh's hub has found: until when it has looked at each series, and its incidents.

use linerate_core::mesh::Incident;
use linerate_core::record::Failure;
use rusqlite::{OptionalExtension, Row, params};

use super::alerts::{NewAlert, make};
use super::records::rows;
use super::{SeriesValue, Store};

/// Incidents that are read at most.
const READ_MAX: i64 = 1000;

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
    pub kind: &'static str,
    /// What is known of it.
    pub detail: serde_json::Value,
}

/// An alert, whose outbox it is in, and who is to get it.
pub type Outgoing<'a> = (&'a str, &'a NewAlert, &'a [String]);

impl Store {
    /// Until when the series of a task were looked at, seconds since 1970-01-01 UTC.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_watched_s(&self, plan: &str, task: &str) -> Result<Option<f64>, Failure> {
        let sql = "SELECT at_s FROM mesh_watched WHERE plan = ?1 AND task = ?2";
        let found = self.connection.query_row(sql, params![plan, task], |row| row.get(0));
        found.optional().map_err(|error| self.fault("read store", &error))
    }

    /// The values of a task after a time and not after another, the oldest first; at most the
    /// newest `limit` of each figure.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn task_series(
        &self,
        (plan, task): (&str, &str),
        (after_s, until_s): (f64, f64),
        limit: usize,
    ) -> Result<Vec<SeriesValue>, Failure> {
        let sql = "SELECT metric, at_s, value, record FROM (
                       SELECT *, row_number() OVER (PARTITION BY metric ORDER BY at_s DESC) AS back
                       FROM series
                       WHERE plan = ?1 AND task = ?2 AND at_s > ?3 AND at_s <= ?4)
                   WHERE back <= ?5 ORDER BY at_s, record, metric";
        let read = |row: &Row<'_>| {
            Ok(SeriesValue {
                task: task.to_owned(),
                metric: row.get(0)?,
                at_s: row.get(1)?,
                value: row.get(2)?,
                record: row.get(3)?,
            })
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        rows(&self.connection, sql, params![plan, task, after_s, until_s, limit], read)
            .map_err(|error| self.fault("read store", &error))
    }

    /// Keeps until when the series of a task were looked at, and the changes that were found
    /// by it, both or neither; the changes' numbers.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_watched(
        &mut self,
        (plan, task): (&str, &str),
        until_s: f64,
        notes: &[TaskNote],
    ) -> Result<Vec<i64>, Failure> {
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            let mark = "INSERT INTO mesh_watched (plan, task, at_s) VALUES (?1, ?2, ?3)
                        ON CONFLICT (plan, task) DO UPDATE SET at_s = excluded.at_s";
            transaction.prepare_cached(mark)?.execute(params![plan, task, until_s])?;
            let ids =
                notes.iter().map(|note| noted(&transaction, note)).collect::<Result<_, _>>()?;
            transaction.commit()?;
            Ok(ids)
        };
        work(self).map_err(|error: rusqlite::Error| self.fault("store mesh in", &error))
    }

    /// Keeps an incident, in place of what was kept of it; with it the changes that are part of it,
    /// what is noted of tasks, and the alert: all or nothing.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn incident_is(
        &mut self,
        mesh: &str,
        incident: &Incident,
        (changes, notes): (&[i64], &[TaskNote]),
        alert: Option<Outgoing<'_>>,
    ) -> Result<(), Failure> {
        let doc = serde_json::to_string(incident).unwrap_or_default();
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            let sql = "INSERT INTO mesh_incident (id, mesh, opened_s, until_s, doc)
                       VALUES (?1, ?2, ?3, ?4, ?5)
                       ON CONFLICT (id) DO UPDATE SET until_s = excluded.until_s,
                           doc = excluded.doc";
            let Incident { id, opened_s, until_s, .. } = incident;
            transaction.execute(sql, params![id, mesh, opened_s, until_s, doc])?;
            let part = "UPDATE schedule_event SET detail = json_set(detail, '$.incident', ?2)
                        WHERE id = ?1";
            for change in changes {
                transaction.prepare_cached(part)?.execute(params![change, id])?;
            }
            for note in notes {
                noted(&transaction, note)?;
            }
            if let Some((owner, alert, outputs)) = alert {
                make(&transaction, owner, alert, outputs)?;
            }
            transaction.commit()
        };
        work(self).map_err(|error| self.fault("store mesh in", &error))
    }

    /// The incidents of a mesh that are open, or were over at a time or later, the newest first.
    /// None where the file has no tables for them yet.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn incidents(&self, mesh: &str, since_s: i64) -> Result<Vec<Incident>, Failure> {
        let known = "SELECT count(*) FROM sqlite_schema WHERE name = 'mesh_incident'";
        let known: rusqlite::Result<i64> =
            self.connection.query_row(known, params![], |row| row.get(0));
        if known.map_err(|error| self.fault("read store", &error))? == 0 {
            return Ok(Vec::new());
        }
        let sql = "SELECT doc FROM mesh_incident
                   WHERE mesh = ?1 AND (until_s IS NULL OR until_s >= ?2)
                   ORDER BY opened_s DESC, id DESC LIMIT ?3";
        let read = |row: &Row<'_>| row.get::<_, String>(0);
        let docs = rows(&self.connection, sql, params![mesh, since_s, READ_MAX], read);
        let docs = docs.map_err(|error| self.fault("read store", &error))?;
        // One that another version wrote and this one does not know is passed over.
        Ok(docs.iter().filter_map(|doc| serde_json::from_str(doc).ok()).collect())
    }
}

fn noted(connection: &rusqlite::Connection, note: &TaskNote) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO schedule_event (plan, task, at_s, kind, detail)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let TaskNote { plan, task, at_s, kind, detail } = note;
    let values = params![plan, task, at_s, kind, detail.to_string()];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(connection.last_insert_rowid())
}
