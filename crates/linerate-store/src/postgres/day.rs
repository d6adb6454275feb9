//! A day's runs out of the database, and the day out of it.

use linerate_core::record::Failure;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Error, IsolationLevel, Row, Statement, Transaction};

use super::schema::LOCK;
use super::tables::{READ, WRITE};
use super::{PooledConnection, PostgresStore};
use crate::archive::{AT_ONCE, Day, DayRun, Takes, TaskPath, differs};
use crate::word::StoredWord;

/// Some runs of a path, by their key.
const SOME: &str = "SELECT start_s, why, state, reason, metric, value, record, doc FROM mesh_result
    WHERE path = $1 AND start_s >= $2 AND start_s < $3 ORDER BY start_s LIMIT $4";

impl PostgresStore {
    /// Gives the runs of a span path by path, as the database is at one moment.
    pub(super) fn day_by_path(
        &mut self,
        mesh: &str,
        span: (i64, i64),
        take: &mut Takes<'_>,
    ) -> Result<(), Failure> {
        let (from_s, until_s) = span;
        self.with_client(READ, async |client| {
            let begin = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead);
            let snapshot = begin.read_only(true).start().await?;
            let some = snapshot.prepare(SOME).await?;
            for (number, agent, task) in mesh_paths(&snapshot, mesh).await? {
                let mut of = |runs| take(TaskPath::from_task(&agent, &task), runs);
                let given =
                    stream_path_runs(&snapshot, &some, number, from_s, until_s, &mut of).await?;
                match given {
                    Ok(true) => {}
                    Ok(false) => break,
                    Err(failure) => return Ok(Err(failure)),
                }
            }
            Ok(Ok(()))
        })?
    }

    /// Takes a day out if it has so many runs, all of it or nothing: its partition as a whole where
    /// no other mesh has runs in it, else those runs.
    pub(super) fn drop_day(&mut self, mesh: &str, day: &Day, count: u64) -> Result<(), Failure> {
        let stored =
            self.with_client(WRITE, async |client| delete_day(client, mesh, day, count).await)?;
        // A later run of that day finds no partition of its own.
        if let Some(PooledConnection { days, .. }) = &mut self.link {
            days.remove(&day.span_seconds().0.div_euclid(86_400));
        }
        if stored == count {
            return Ok(());
        }
        Err(differs(&self.database.0.shown, day, stored, count))
    }
}

/// The paths of a mesh with their numbers, in the order of a day's file.
async fn mesh_paths(
    snapshot: &Transaction<'_>,
    mesh: &str,
) -> Result<Vec<(i32, String, String)>, Error> {
    let sql = "SELECT path, agent, task FROM mesh_path WHERE mesh = $1";
    let read = |row: &Row| (row.get(0), row.get(1), row.get(2));
    let mut found: Vec<(i32, String, String)> =
        snapshot.query(sql, &[&mesh]).await?.iter().map(read).collect();
    // As bytes are: a database's own order may be that of a language.
    found.sort_by(|a, b| TaskPath::from_task(&a.1, &a.2).cmp(&TaskPath::from_task(&b.1, &b.2)));
    Ok(found)
}

/// Gives runs of a path, some at a time, by the key; whether more are wanted.
async fn stream_path_runs(
    snapshot: &Transaction<'_>,
    some: &Statement,
    path: i32,
    mut from_s: i64,
    until_s: i64,
    take: &mut dyn FnMut(Vec<DayRun>) -> Result<bool, Failure>,
) -> Result<Result<bool, Failure>, Error> {
    let limit = i64::try_from(AT_ONCE).expect("some hundred");
    loop {
        let values: [&(dyn ToSql + Sync); 4] = [&path, &from_s, &until_s, &limit];
        let found = snapshot.query(some, &values).await?;
        let found: Vec<DayRun> = found.iter().map(run).collect::<Result<_, _>>()?;
        let Some(last) = found.last() else { return Ok(Ok(true)) };
        from_s = last.start_s + 1;
        let is_last = found.len() < AT_ONCE;
        match take(found) {
            Ok(true) if !is_last => {}
            answer => return Ok(answer),
        }
    }
}

fn run(row: &Row) -> Result<DayRun, Error> {
    let metric: Option<String> = row.get(4);
    Ok(DayRun {
        start_s: row.get(0),
        why: row.try_get::<_, StoredWord<_>>(1)?.0,
        state: row.try_get::<_, StoredWord<_>>(2)?.0,
        reason: row.get(3),
        figure: metric.zip(row.get(5)),
        record: row.get(6),
        doc: row.get(7),
    })
}

/// Deletes a day's runs of a mesh if their number is `count`; returns the number found.
async fn delete_day(client: &mut Client, mesh: &str, day: &Day, count: u64) -> Result<u64, Error> {
    let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
    let transaction = begin.start().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    // Who adds a run waits until this is over, and never for one who waits for this.
    transaction.batch_execute("LOCK TABLE ONLY mesh_result IN ACCESS EXCLUSIVE MODE").await?;
    let (from_s, until_s) = day.span_seconds();
    let sql = "SELECT count(*) FILTER (WHERE mesh = $1), count(*) FROM mesh_result
               JOIN mesh_path USING (path) WHERE start_s >= $2 AND start_s < $3";
    let row = transaction.query_one(sql, &[&mesh, &from_s, &until_s]).await?;
    let (own, all): (i64, i64) = (row.get(0), row.get(1));
    let stored = u64::try_from(own).unwrap_or(0);
    if stored != count {
        return Ok(stored);
    }
    let partition = format!("mesh_result_{}", day.date().replace('-', ""));
    let sql = "SELECT EXISTS (SELECT 1 FROM pg_inherits
                              WHERE inhparent = 'mesh_result'::regclass
                                AND inhrelid = to_regclass($1))";
    let is_partition: bool = transaction.query_one(sql, &[&partition]).await?.get(0);
    if is_partition && own == all {
        transaction.batch_execute(&format!("DROP TABLE {partition}")).await?;
    } else {
        let sql = "DELETE FROM mesh_result WHERE start_s >= $2 AND start_s < $3
                     AND path IN (SELECT path FROM mesh_path WHERE mesh = $1)";
        transaction.execute(sql, &[&mesh, &from_s, &until_s]).await?;
    }
    transaction.commit().await?;
    Ok(stored)
}
