//! What a mesh's hub has found, in a file: until when it has looked at each series, and its
//! incidents.

use std::collections::BTreeSet;

use linerate_core::mesh::Incident;
use linerate_core::record::Failure;
use rusqlite::{OptionalExtension, Row, params};

use super::alerts::insert_alert;
use super::records::query_rows;
use super::watch::READ_MAX;
use super::{Marks, OutgoingAlert, ScheduleEvent, SeriesValue, Store, TaskNote, WatchStore};

impl WatchStore for Store {
    fn mesh_watches(&mut self, _: &str) -> Result<bool, Failure> {
        Ok(true)
    }

    fn mesh_unwatched(&mut self, _: &str, _: i64) -> Result<BTreeSet<(String, String)>, Failure> {
        Ok(BTreeSet::new())
    }

    fn mesh_watched_s(&mut self, plan: &str, task: &str) -> Result<Option<f64>, Failure> {
        let sql = "SELECT at_s FROM mesh_watched WHERE plan = ?1 AND task = ?2";
        let found = self.connection.query_row(sql, params![plan, task], |row| row.get(0));
        found.optional().map_err(|error| self.storage_failure("read store", &error))
    }

    fn task_series(
        &mut self,
        plan: &str,
        task: &str,
        after_s: f64,
        until_s: f64,
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
        query_rows(&self.connection, sql, params![plan, task, after_s, until_s, limit], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    fn mesh_watched(
        &mut self,
        plan: &str,
        task: &str,
        until_s: f64,
        notes: &[TaskNote],
    ) -> Result<Vec<i64>, Failure> {
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            set_watched_until(&transaction, plan, task, until_s)?;
            let ids = notes
                .iter()
                .map(|note| insert_note(&transaction, note))
                .collect::<Result<_, _>>()?;
            transaction.commit()?;
            Ok(ids)
        };
        work(self).map_err(|error: rusqlite::Error| self.storage_failure("store mesh in", &error))
    }

    fn mesh_looked(&mut self, marks: &Marks) -> Result<(), Failure> {
        if marks.is_empty() {
            return Ok(());
        }
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            for ((plan, task), until_s) in marks {
                set_watched_until(&transaction, plan, task, *until_s)?;
            }
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn mesh_events(&mut self, plan: &str, since_s: i64) -> Result<Vec<ScheduleEvent>, Failure> {
        self.events(plan, since_s)
    }

    fn incident_is(
        &mut self,
        mesh: &str,
        incident: &Incident,
        changes: &[i64],
        notes: &[TaskNote],
        alert: Option<OutgoingAlert<'_>>,
    ) -> Result<(), Failure> {
        let doc = linerate_core::tree::to_json(incident).unwrap_or_default();
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
                insert_note(&transaction, note)?;
            }
            if let Some(OutgoingAlert { owner, alert, outputs }) = alert {
                insert_alert(&transaction, owner, alert, outputs)?;
            }
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn incidents(&mut self, mesh: &str, since_s: i64) -> Result<Vec<Incident>, Failure> {
        let sql = "SELECT doc FROM mesh_incident
                   WHERE mesh = ?1 AND (until_s IS NULL OR until_s >= ?2)
                   ORDER BY opened_s DESC, id DESC LIMIT ?3";
        let read = |row: &Row<'_>| row.get::<_, String>(0);
        let docs = query_rows(&self.connection, sql, params![mesh, since_s, READ_MAX], read);
        let docs = docs.map_err(|error| self.storage_failure("read store", &error))?;
        // One that another version wrote and this one does not know is passed over.
        Ok(docs.iter().filter_map(|doc| linerate_core::tree::from_json(doc).ok()).collect())
    }

    fn mesh_changes_ask(
        &mut self,
        events: &[i64],
        further: &serde_json::Value,
    ) -> Result<(), Failure> {
        let sql = "UPDATE schedule_event SET detail = json_set(detail, '$.further', json(?2))
                   WHERE id = ?1";
        let further = further.to_string();
        let work = |event: &i64| self.connection.execute(sql, params![event, further]).map(drop);
        let done = events.iter().try_for_each(work);
        done.map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn mesh_changes_dropped(&mut self, events: &[i64], sentence: &str) -> Result<(), Failure> {
        let sql = "UPDATE schedule_event SET kind = 'dropped',
                          detail = json_set(detail, '$.sentence', ?2)
                   WHERE id = ?1 AND kind = 'change'";
        let work = |event: &i64| self.connection.execute(sql, params![event, sentence]).map(drop);
        let done = events.iter().try_for_each(work);
        done.map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn mesh_changes_closed(&mut self, events: &[i64]) -> Result<(), Failure> {
        let sql = "UPDATE schedule_event SET detail = json_set(detail, '$.incident', 'none')
                   WHERE id = ?1";
        let work = |event: &i64| self.connection.execute(sql, params![event]).map(drop);
        let done = events.iter().try_for_each(work);
        done.map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn mesh_forgets(&mut self, mesh: &str, before_s: i64) -> Result<usize, Failure> {
        self.mesh_forgets_old(mesh, before_s)
    }
}

fn set_watched_until(
    connection: &rusqlite::Connection,
    plan: &str,
    task: &str,
    until_s: f64,
) -> rusqlite::Result<()> {
    let sql = "INSERT INTO mesh_watched (plan, task, at_s) VALUES (?1, ?2, ?3)
               ON CONFLICT (plan, task) DO UPDATE SET at_s = excluded.at_s";
    connection.prepare_cached(sql)?.execute(params![plan, task, until_s]).map(drop)
}

fn insert_note(connection: &rusqlite::Connection, note: &TaskNote) -> rusqlite::Result<i64> {
    let sql = "INSERT INTO schedule_event (plan, task, at_s, kind, detail)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    let TaskNote { plan, task, at_s, kind, detail } = note;
    let values = params![plan, task, at_s, kind.name(), detail.to_string()];
    connection.prepare_cached(sql)?.execute(values)?;
    Ok(connection.last_insert_rowid())
}
