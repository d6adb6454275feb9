//! The watch over a mesh in PostgreSQL: series out of the rows of results, what was found, and the
//! outbox. The right to watch is an advisory lock of the connection (its manual, 13.3.5).

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::Incident;
use linerate_core::record::Failure;
use serde_json::Value;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresStore;
use super::tables::{READ, WRITE};
use crate::alerts::KEPT_S;
use crate::happened::at_once;
use crate::watch::READ_MAX;
use crate::word::StoredWord;
use crate::{
    DueAlert, Marks, NewAlert, Outbox, OutgoingAlert, ScheduleEvent, SeriesValue, TaskNote,
    WatchStore,
};

/// The number of a path; a result is read by it, in the partitions of a span.
const PATH: &str = "(SELECT path FROM mesh_path WHERE mesh = $1 AND agent = $2 AND task = $3)";
const ALERT: &str = "store alert in";
/// Deletes old events by the rules of `crate::happened`, but never those of open incidents.
const OLD_EVENTS: &str = "DELETE FROM mesh_event WHERE id IN
    (SELECT id FROM mesh_event AS old
     WHERE starts_with(plan, $1 || '/') AND at_s < $2
       AND id NOT IN (SELECT max(id) FROM mesh_event WHERE starts_with(plan, $1 || '/')
                      GROUP BY plan, task, kind)
       AND NOT EXISTS (SELECT 1 FROM mesh_incident AS incident
                       WHERE incident.id = old.detail ->> 'incident' AND until_s IS NULL)
     LIMIT $3)";
const OLD_INCIDENTS: &str = "DELETE FROM mesh_incident WHERE id IN
    (SELECT id FROM mesh_incident WHERE mesh = $1 AND until_s < $2 ORDER BY until_s LIMIT $3)";

/// Mesh and agent of `MESH/AGENT`.
fn split_plan_name(plan: &str) -> (&str, &str) {
    plan.split_once('/').unwrap_or((plan, ""))
}

/// The whole second of a time.
#[allow(clippy::cast_possible_truncation, reason = "seconds; what is beyond them is as far")]
fn second(at_s: f64) -> i64 {
    at_s.floor() as i64
}

#[allow(clippy::cast_precision_loss, reason = "seconds since 1970")]
fn seconds_f64(second: i64) -> f64 {
    second as f64
}

impl WatchStore for PostgresStore {
    fn mesh_watches(&mut self, mesh: &str) -> Result<bool, Failure> {
        if self.watches.is_none() {
            let has = self.with_client(WRITE, async |client| {
                let sql = "SELECT pg_try_advisory_lock(hashtextextended($1, 0))";
                let name = format!("mesh watch {mesh}");
                client.query_one_scalar::<bool, _>(sql, &[&name]).await
            })?;
            self.watches = has.then(|| mesh.to_owned());
        }
        Ok(self.watches.as_deref() == Some(mesh))
    }

    fn mesh_unwatched(
        &mut self,
        mesh: &str,
        since_s: i64,
    ) -> Result<BTreeSet<(String, String)>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT agent, task FROM mesh_path JOIN mesh_latest USING (path)
                       LEFT JOIN mesh_watched USING (path)
                       WHERE mesh = $1 AND metric IS NOT NULL AND good_s > coalesce(at_s, $2)";
            let found = client.query(sql, &[&mesh, &seconds_f64(since_s)]).await?;
            Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn mesh_watched_s(&mut self, plan: &str, task: &str) -> Result<Option<f64>, Failure> {
        let (mesh, agent) = split_plan_name(plan);
        self.with_client(READ, async |client| {
            let sql = format!("SELECT at_s FROM mesh_watched WHERE path = {PATH}");
            let found = client.query_opt(&sql, &[&mesh, &agent, &task]).await?;
            Ok(found.map(|row| row.get(0)))
        })
    }

    fn task_series(
        &mut self,
        plan: &str,
        task: &str,
        after_s: f64,
        until_s: f64,
        limit: usize,
    ) -> Result<Vec<SeriesValue>, Failure> {
        let (mesh, agent) = split_plan_name(plan);
        let (after_s, until_s) = (second(after_s), second(until_s));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.with_client(READ, async |client| {
            let sql = format!(
                "SELECT start_s, record, followed FROM mesh_result
                 WHERE path = {PATH} AND start_s > $4 AND start_s <= $5 AND followed IS NOT NULL
                 ORDER BY start_s DESC LIMIT $6"
            );
            let values: [&(dyn ToSql + Sync); 6] =
                [&mesh, &agent, &task, &after_s, &until_s, &limit];
            let found = client.query(&sql, &values).await?;
            Ok(found.iter().rev().flat_map(|row| of_run(task, row)).collect())
        })
    }

    fn mesh_watched(
        &mut self,
        plan: &str,
        task: &str,
        until_s: f64,
        notes: &[TaskNote],
    ) -> Result<Vec<i64>, Failure> {
        let (mesh, agent) = split_plan_name(plan);
        self.with_client(WRITE, async |client| {
            let transaction = client.transaction().await?;
            set_watched_until(&transaction, &[mesh], &[agent], &[task], &[until_s]).await?;
            let ids = insert_notes(&transaction, notes).await?;
            transaction.commit().await?;
            Ok(ids)
        })
    }

    fn mesh_looked(&mut self, marks: &Marks) -> Result<(), Failure> {
        if marks.is_empty() {
            return Ok(());
        }
        let (meshes, agents): (Vec<&str>, Vec<&str>) =
            marks.keys().map(|(plan, _)| split_plan_name(plan)).unzip();
        let tasks: Vec<&str> = marks.keys().map(|(_, task)| task.as_str()).collect();
        let until_s: Vec<f64> = marks.values().copied().collect();
        self.with_client(WRITE, async |client| {
            let transaction = client.transaction().await?;
            transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
            set_watched_until(&transaction, &meshes, &agents, &tasks, &until_s).await?;
            transaction.commit().await
        })
    }

    fn mesh_events(&mut self, plan: &str, since_s: i64) -> Result<Vec<ScheduleEvent>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT id, task, at_s, kind, detail::text FROM mesh_event
                       WHERE plan = $1 AND at_s >= $2 ORDER BY id";
            let read = |row: &Row| -> Result<_, Error> {
                Ok(ScheduleEvent {
                    id: row.get(0),
                    task: row.get(1),
                    at_s: row.get(2),
                    kind: row.try_get::<_, StoredWord<_>>(3)?.0,
                    detail: linerate_core::tree::from_json(row.get(4)).unwrap_or_default(),
                    told_s: None,
                })
            };
            client.query(sql, &[&plan, &since_s]).await?.iter().map(read).collect()
        })
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
        self.with_client(WRITE, async |client| {
            let transaction = client.transaction().await?;
            let sql = "INSERT INTO mesh_incident (id, mesh, opened_s, until_s, doc)
                       VALUES ($1, $2, $3, $4, $5)
                       ON CONFLICT (id) DO UPDATE SET until_s = excluded.until_s,
                           doc = excluded.doc";
            let Incident { id, opened_s, until_s, .. } = incident;
            transaction.execute(sql, &[id, &mesh, opened_s, until_s, &doc]).await?;
            let part = "UPDATE mesh_event
                        SET detail = jsonb_set(detail, '{incident}', to_jsonb($2::text))
                        WHERE id = ANY($1)";
            transaction.execute(part, &[&changes, id]).await?;
            insert_notes(&transaction, notes).await?;
            if let Some(alert) = alert {
                insert_alert(&transaction, alert).await?;
            }
            transaction.commit().await
        })
    }

    fn incidents(&mut self, mesh: &str, since_s: i64) -> Result<Vec<Incident>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT doc FROM mesh_incident
                       WHERE mesh = $1 AND (until_s IS NULL OR until_s >= $2)
                       ORDER BY opened_s DESC, id DESC LIMIT $3";
            let found = client.query(sql, &[&mesh, &since_s, &READ_MAX]).await?;
            // One that another version wrote and this one does not know is passed over.
            Ok(found
                .iter()
                .filter_map(|row| linerate_core::tree::from_json(row.get(0)).ok())
                .collect())
        })
    }

    fn mesh_changes_ask(&mut self, events: &[i64], further: &Value) -> Result<(), Failure> {
        let further = further.to_string();
        self.with_client(WRITE, async |client| {
            let sql = "UPDATE mesh_event
                       SET detail = jsonb_set(detail, '{further}', $2::text::jsonb)
                       WHERE id = ANY($1)";
            client.execute(sql, &[&events, &further]).await.map(drop)
        })
    }

    fn mesh_changes_dropped(&mut self, events: &[i64], sentence: &str) -> Result<(), Failure> {
        self.with_client(WRITE, async |client| {
            let sql = "UPDATE mesh_event
                       SET kind = 'dropped',
                           detail = jsonb_set(detail, '{sentence}', to_jsonb($2::text))
                       WHERE id = ANY($1) AND kind = 'change'";
            client.execute(sql, &[&events, &sentence]).await.map(drop)
        })
    }

    fn mesh_changes_closed(&mut self, events: &[i64]) -> Result<(), Failure> {
        self.with_client(WRITE, async |client| {
            let sql = "UPDATE mesh_event SET detail = jsonb_set(detail, '{incident}', '\"none\"')
                       WHERE id = ANY($1)";
            client.execute(sql, &[&events]).await.map(drop)
        })
    }

    fn mesh_forgets(&mut self, mesh: &str, before_s: i64) -> Result<usize, Failure> {
        self.with_client("delete events in", async |client| {
            let values: [&(dyn ToSql + Sync); 3] = [&mesh, &before_s, &at_once()];
            let events = client.execute(OLD_EVENTS, &values).await?;
            let incidents = client.execute(OLD_INCIDENTS, &values).await?;
            Ok(usize::try_from(events + incidents).unwrap_or(usize::MAX))
        })
    }
}

impl Outbox for PostgresStore {
    fn alert_due(
        &mut self,
        owner: &str,
        output: &str,
        now_s: i64,
    ) -> Result<Option<DueAlert>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT id, at_s, sentence, doc, tries
                       FROM mesh_alert_out JOIN mesh_alert ON alert = id
                       WHERE output = $2 AND next_s <= $3 AND owner = $1
                       ORDER BY at_s, id LIMIT 1";
            let read = |row: &Row| DueAlert {
                id: row.get(0),
                at_s: row.get(1),
                sentence: row.get(2),
                json: row.get(3),
                tries: u32::try_from(row.get::<_, i32>(4)).unwrap_or(0),
            };
            Ok(client.query_opt(sql, &[&owner, &output, &now_s]).await?.as_ref().map(read))
        })
    }

    fn alert_told(&mut self, id: &str, output: &str, now_s: i64) -> Result<(), Failure> {
        self.with_client(ALERT, async |client| {
            let sql = "UPDATE mesh_alert_out SET told_s = $3, next_s = NULL, reason = NULL
                       WHERE alert = $1 AND output = $2";
            client.execute(sql, &[&id, &output, &now_s]).await.map(drop)
        })
    }

    fn alert_failed(
        &mut self,
        id: &str,
        output: &str,
        next_s: Option<i64>,
        reason: &str,
    ) -> Result<(), Failure> {
        let reason: String = reason.chars().filter(|c| *c != '\0').collect();
        self.with_client(ALERT, async |client| {
            let sql = "UPDATE mesh_alert_out SET tries = tries + 1, next_s = $3, reason = $4
                       WHERE alert = $1 AND output = $2";
            client.execute(sql, &[&id, &output, &next_s, &reason]).await.map(drop)
        })
    }

    fn alerts_waiting(
        &mut self,
        owner: &str,
        since_s: i64,
    ) -> Result<Vec<(String, Option<String>)>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT output, reason FROM mesh_alert_out JOIN mesh_alert ON alert = id
                       WHERE owner = $1 AND told_s IS NULL AND at_s >= $2
                       ORDER BY at_s, id, output";
            let found = client.query(sql, &[&owner, &since_s]).await?;
            Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }
}

/// Values of a run, from a row of `start_s, record, followed`.
fn of_run(task: &str, row: &Row) -> Vec<SeriesValue> {
    let values: BTreeMap<String, f64> =
        linerate_core::tree::from_json(row.get(2)).unwrap_or_default();
    let record: Option<String> = row.get(1);
    let value = |(metric, value)| SeriesValue {
        task: task.to_owned(),
        metric,
        at_s: seconds_f64(row.get(0)),
        value,
        record: record.clone().unwrap_or_default(),
    };
    values.into_iter().map(value).collect()
}

/// Writes until when series were looked at. A path has the same index in each list: its mesh, agent
/// and task, and its time, seconds since 1970-01-01 UTC.
async fn set_watched_until(
    transaction: &Transaction<'_>,
    meshes: &[&str],
    agents: &[&str],
    tasks: &[&str],
    until_s: &[f64],
) -> Result<(), Error> {
    let sql = "INSERT INTO mesh_watched (path, at_s)
               SELECT path, u.at_s
               FROM unnest($1::text[], $2::text[], $3::text[], $4::float8[])
                    AS u(mesh, agent, task, at_s)
               JOIN mesh_path USING (mesh, agent, task)
               ON CONFLICT (path) DO UPDATE SET at_s = excluded.at_s";
    transaction.execute(sql, &[&meshes, &agents, &tasks, &until_s]).await.map(drop)
}

async fn insert_notes(
    transaction: &Transaction<'_>,
    notes: &[TaskNote],
) -> Result<Vec<i64>, Error> {
    let sql = "INSERT INTO mesh_event (plan, task, at_s, kind, detail)
               VALUES ($1, $2, $3, $4, $5::text::jsonb) RETURNING id";
    let mut ids = Vec::with_capacity(notes.len());
    for TaskNote { plan, task, at_s, kind, detail } in notes {
        let values: [&(dyn ToSql + Sync); 5] =
            [plan, task, at_s, &kind.name(), &detail.to_string()];
        ids.push(transaction.query_one(sql, &values).await?.get(0));
    }
    Ok(ids)
}

/// Writes an alert for each output.
async fn insert_alert(
    transaction: &Transaction<'_>,
    outgoing: OutgoingAlert<'_>,
) -> Result<(), Error> {
    let OutgoingAlert { owner, alert, outputs } = outgoing;
    let NewAlert { id, at_s, sentence, json } = alert;
    transaction.execute("DELETE FROM mesh_alert WHERE at_s < $1", &[&(at_s - KEPT_S)]).await?;
    let new = "INSERT INTO mesh_alert (id, owner, at_s, sentence, doc) VALUES ($1, $2, $3, $4, $5)";
    transaction.execute(new, &[id, &owner, at_s, sentence, json]).await?;
    let to = "INSERT INTO mesh_alert_out (alert, output, next_s)
              SELECT $1, output, $3 FROM unnest($2::text[]) AS output";
    transaction.execute(to, &[id, &outputs, at_s]).await.map(drop)
}
