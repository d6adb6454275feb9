//! Runs of many agents in one transaction: what is there already stays, and which are new is said.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use linerate_core::mesh::RunOutcome;
use linerate_core::record::{Failure, Fault};
use linerate_core::schedule::RunState;
use linerate_core::time::WallTime;
use linerate_sys::clock::realtime_ns;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, Transaction};

use super::schema::LOCK;
use super::{PooledConnection, PostgresStore};
use crate::follow::in_series;
use crate::hub::AgentRun;

const DAY_S: i64 = 86_400;
/// Days before and after today that have a partition of their own: an agent without a clock names
/// any day.
const OWN_DAYS: (i64, i64) = (31, 2);

/// A run, the number of its path, its record as it is kept, and the values of its series.
struct BatchRow<'a> {
    path: i32,
    given: &'a AgentRun,
    doc: Option<String>,
    followed: Option<String>,
}

/// The values of a run that are part of a series, by figure.
fn followed(given: &AgentRun) -> Option<String> {
    let values = in_series(given.record.as_ref()?);
    let values: BTreeMap<String, f64> =
        values.into_iter().map(|(what, value)| (what.series_key(), value)).collect();
    if values.is_empty() { None } else { linerate_core::tree::to_json(&values).ok() }
}

impl PostgresStore {
    /// Keeps runs of a mesh; which of them are new.
    pub(super) fn keep_batch(
        &mut self,
        mesh: &str,
        runs: &[AgentRun],
    ) -> Result<Vec<bool>, Failure> {
        if runs.is_empty() {
            return Ok(Vec::new());
        }
        let docs: Result<Vec<_>, _> = runs
            .iter()
            .map(|run| run.record.as_ref().map(linerate_core::tree::to_json).transpose())
            .collect();
        let docs = docs.map_err(|error| {
            Failure::new(Fault::System, "write record", self.database.0.shown.clone(), error)
        })?;
        let mut link = self.take_connection()?;
        let PooledConnection { runtime, client, paths, days } = &mut link;
        let work = async {
            number(client, paths, mesh, runs).await?;
            partitions(client, days, runs).await?;
            let number = |given: &AgentRun| paths[&path_key(mesh, given)];
            let rows = runs.iter().zip(docs);
            let rows = rows.map(|(given, doc)| {
                let (path, followed) = (number(given), followed(given));
                BatchRow { path, given, doc, followed }
            });
            let rows: Vec<BatchRow<'_>> = rows.collect();
            let transaction = client.transaction().await?;
            let new = insert(&transaction, &rows).await?;
            outcomes(&transaction, mesh, &rows, &new).await?;
            newest(&transaction, &rows).await?;
            transaction.commit().await?;
            Ok(new)
        };
        let done: Result<Vec<bool>, Error> = runtime.block_on(work);
        let new = done.map_err(|error| self.failed("store mesh in", &error))?;
        self.link = Some(link);
        Ok(new)
    }
}

fn path_key(mesh: &str, given: &AgentRun) -> (String, String, String) {
    (mesh.to_owned(), given.agent.clone(), given.run.task.clone())
}

/// Gives each path its number.
async fn number(
    client: &Client,
    paths: &mut HashMap<(String, String, String), i32>,
    mesh: &str,
    runs: &[AgentRun],
) -> Result<(), Error> {
    let unknown: BTreeSet<(&str, &str)> = runs
        .iter()
        .filter(|given| !paths.contains_key(&path_key(mesh, given)))
        .map(|given| (given.agent.as_str(), given.run.task.as_str()))
        .collect();
    if unknown.is_empty() {
        return Ok(());
    }
    let (agents, tasks): (Vec<&str>, Vec<&str>) = unknown.into_iter().unzip();
    let sql = "INSERT INTO mesh_path (mesh, agent, task)
               SELECT $1, a, t FROM unnest($2::text[], $3::text[]) AS u(a, t)
               WHERE NOT EXISTS (SELECT 1 FROM mesh_path
                                 WHERE mesh = $1 AND agent = a AND task = t)
               ON CONFLICT DO NOTHING";
    client.execute(sql, &[&mesh, &agents, &tasks]).await?;
    let sql = "SELECT path, agent, task FROM mesh_path
               JOIN unnest($2::text[], $3::text[]) AS u(a, t) ON agent = a AND task = t
               WHERE mesh = $1";
    for row in client.query(sql, &[&mesh, &agents, &tasks]).await? {
        paths.insert((mesh.to_owned(), row.get(1), row.get(2)), row.get(0));
    }
    Ok(())
}

/// Makes the partitions that are missing, each for a day of UTC.
async fn partitions(
    client: &Client,
    days: &mut BTreeSet<i64>,
    runs: &[AgentRun],
) -> Result<(), Error> {
    let today = i64::try_from(realtime_ns() / 1_000_000_000).unwrap_or(0).div_euclid(DAY_S);
    let own = today - OWN_DAYS.0..=today + OWN_DAYS.1;
    let missing: BTreeSet<i64> = runs
        .iter()
        .map(|given| given.run.start_s.div_euclid(DAY_S))
        .filter(|day| own.contains(day) && !days.contains(day))
        .collect();
    for day in missing {
        let (from_s, until_s) = (day * DAY_S, (day + 1) * DAY_S);
        let at = WallTime::from_unix_nanos(u128::try_from(from_s).unwrap_or(0) * 1_000_000_000);
        let date: String = at.to_string().chars().take(10).filter(char::is_ascii_digit).collect();
        let sql = format!(
            "BEGIN; SELECT pg_advisory_xact_lock({LOCK});
             CREATE TABLE IF NOT EXISTS mesh_result_{date} PARTITION OF mesh_result
                 FOR VALUES FROM ({from_s}) TO ({until_s});
             COMMIT"
        );
        match client.batch_execute(&sql).await {
            // Results of that day came before it was near: they are with the others, and so are
            // these.
            Err(error) if error.code() == Some(&SqlState::CHECK_VIOLATION) => {
                client.batch_execute("ROLLBACK").await?;
            }
            other => other?,
        }
        days.insert(day);
    }
    Ok(())
}

async fn insert(transaction: &Transaction<'_>, rows: &[BatchRow<'_>]) -> Result<Vec<bool>, Error> {
    // In the order of the key, so that two hubs never wait for each other.
    let mut order: Vec<&BatchRow<'_>> = rows.iter().collect();
    order.sort_by_key(|row| (row.path, row.given.run.start_s));
    let path: Vec<i32> = order.iter().map(|row| row.path).collect();
    let start_s: Vec<i64> = order.iter().map(|row| row.given.run.start_s).collect();
    let why: Vec<&str> = order.iter().map(|row| row.given.run.why.name()).collect();
    let state: Vec<&str> = order.iter().map(|row| row.given.run.state.name()).collect();
    let value: Vec<Option<f64>> =
        order.iter().map(|row| row.given.figure.as_ref().map(|(_, value)| *value)).collect();
    let metric: Vec<Option<&str>> =
        order.iter().map(|row| row.given.figure.as_ref().map(|(key, _)| key.as_str())).collect();
    let reason: Vec<Option<&str>> =
        order.iter().map(|row| row.given.run.reason.as_deref()).collect();
    let record: Vec<Option<&str>> =
        order.iter().map(|row| row.given.run.record.as_deref()).collect();
    let doc: Vec<Option<&str>> = order.iter().map(|row| row.doc.as_deref()).collect();
    let followed: Vec<Option<&str>> = order.iter().map(|row| row.followed.as_deref()).collect();
    let sql = "INSERT INTO mesh_result
                   (path, start_s, why, state, value, metric, reason, record, doc, followed)
               SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[], $5::float8[],
                                    $6::text[], $7::text[], $8::text[], $9::text[],
                                    $10::text[])
               ON CONFLICT DO NOTHING RETURNING path, start_s";
    let columns: [&(dyn ToSql + Sync); 10] =
        [&path, &start_s, &why, &state, &value, &metric, &reason, &record, &doc, &followed];
    let inserted = transaction.query(sql, &columns).await?;
    let mut inserted: BTreeSet<(i32, i64)> =
        inserted.iter().map(|row| (row.get(0), row.get(1))).collect();
    // The same run twice in one batch is new once.
    Ok(rows.iter().map(|row| inserted.remove(&(row.path, row.given.run.start_s))).collect())
}

async fn outcomes(
    transaction: &Transaction<'_>,
    mesh: &str,
    rows: &[BatchRow<'_>],
    new: &[bool],
) -> Result<(), Error> {
    let mut counts: BTreeMap<(&str, &str), i64> = BTreeMap::new();
    for (row, _) in rows.iter().zip(new).filter(|(_, new)| **new) {
        let outcome = RunOutcome::from_end(row.given.run.state, row.given.run.reason.as_deref());
        *counts.entry((&row.given.agent, outcome.name())).or_default() += 1;
    }
    if counts.is_empty() {
        return Ok(());
    }
    let agents: Vec<&str> = counts.keys().map(|(agent, _)| *agent).collect();
    let words: Vec<&str> = counts.keys().map(|(_, outcome)| *outcome).collect();
    let runs: Vec<i64> = counts.values().copied().collect();
    let sql = "INSERT INTO mesh_outcome AS o (mesh, agent, outcome, runs)
               SELECT $1, * FROM unnest($2::text[], $3::text[], $4::bigint[])
               ON CONFLICT (mesh, agent, outcome) DO UPDATE SET runs = o.runs + excluded.runs";
    transaction.execute(sql, &[&mesh, &agents, &words, &runs]).await.map(drop)
}

/// The newest of each path, and the newest that is good.
async fn newest(transaction: &Transaction<'_>, rows: &[BatchRow<'_>]) -> Result<(), Error> {
    let (mut last, mut good) = (BTreeMap::new(), BTreeMap::new());
    for row in rows {
        let newer = |old: &&BatchRow<'_>| row.given.run.start_s > old.given.run.start_s;
        if last.get(&row.path).is_none_or(newer) {
            last.insert(row.path, row);
        }
        if row.given.run.state == RunState::Ok && good.get(&row.path).is_none_or(newer) {
            good.insert(row.path, row);
        }
    }
    let columns = |rows: &BTreeMap<i32, &BatchRow<'_>>| -> (Vec<i32>, Vec<i64>) {
        rows.values().map(|row| (row.path, row.given.run.start_s)).unzip()
    };
    let (path, start_s) = columns(&last);
    let state: Vec<&str> = last.values().map(|row| row.given.run.state.name()).collect();
    let reason: Vec<Option<&str>> =
        last.values().map(|row| row.given.run.reason.as_deref()).collect();
    let sql = "INSERT INTO mesh_latest AS l (path, last_s, state, reason)
               SELECT * FROM unnest($1::int[], $2::bigint[], $3::text[], $4::text[])
               ON CONFLICT (path) DO UPDATE SET last_s = excluded.last_s, state = excluded.state,
                   reason = excluded.reason
               WHERE excluded.last_s > l.last_s";
    transaction.execute(sql, &[&path, &start_s, &state, &reason]).await?;
    let (path, start_s) = columns(&good);
    let figures = good.values().map(|row| row.given.figure.as_ref());
    let (metric, value): (Vec<Option<&str>>, Vec<Option<f64>>) = figures
        .map(|figure| figure.map(|(metric, value)| (metric.as_str(), *value)).unzip())
        .unzip();
    let record: Vec<Option<&str>> =
        good.values().map(|row| row.given.run.record.as_deref()).collect();
    let sql = "UPDATE mesh_latest AS l SET good_s = u.at_s, metric = u.metric, value = u.value,
                   record = u.record
               FROM unnest($1::int[], $2::bigint[], $3::text[], $4::float8[], $5::text[])
                   AS u(path, at_s, metric, value, record)
               WHERE l.path = u.path AND (l.good_s IS NULL OR l.good_s < u.at_s)";
    transaction.execute(sql, &[&path, &start_s, &metric, &value, &record]).await.map(drop)
}
