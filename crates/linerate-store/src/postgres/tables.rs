//! Plans, tokens and agents, and what is read of runs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use linerate_core::mesh::{AgentState, BookedRun, Booking, CellState, Cells, Seen};
use linerate_core::record::{Failure, Record, RecordId};
use linerate_core::schedule::ScheduleRun;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, IsolationLevel, Row};

use super::PostgresStore;
use crate::hub::{AgentRun, HubStore, SpreadQuery};
use crate::records::parse;
use crate::word::StoredWord;
use crate::{Booked, Day, Joined, KeptPlan, NewBooking, OutcomeCount, Sketched, Takes};

pub(super) const READ: &str = "read store";
pub(super) const WRITE: &str = "store mesh in";

fn saturating_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn counted(row: &Row, at: usize) -> u64 {
    u64::try_from(row.get::<_, i64>(at)).unwrap_or(0)
}

/// Reads an agent's last beat from seven columns, the first at index `at`: `seen_s, instance,
/// starts, revision, waiting, ahead_s, double_s`.
fn seen_from_row(row: &Row, at: usize) -> Option<Seen> {
    Some(Seen {
        at_s: row.get::<_, Option<i64>>(at)?,
        instance: row.get(at + 1),
        starts: counted(row, at + 2),
        revision: counted(row, at + 3),
        waiting: counted(row, at + 4),
        ahead_s: row.get(at + 5),
        double_s: row.get(at + 6),
    })
}

impl HubStore for PostgresStore {
    fn location_name(&self) -> String {
        self.database.0.shown.clone()
    }

    fn keep_plan(&mut self, mesh: &str, plan: &KeptPlan) -> Result<(), Failure> {
        self.with_client(WRITE, async |client| {
            let sql = "INSERT INTO mesh_plan (mesh, revision, text, key, signature, kept_s)
                       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT DO NOTHING";
            let KeptPlan { revision, text, key, signature, kept_s } = plan;
            let revision = saturating_i64(*revision);
            client.execute(sql, &[&mesh, &revision, text, key, signature, kept_s]).await?;
            let older = "DELETE FROM mesh_plan WHERE mesh = $1 AND revision NOT IN
                             (SELECT revision FROM mesh_plan WHERE mesh = $1
                              ORDER BY revision DESC LIMIT 2)";
            client.execute(older, &[&mesh]).await.map(drop)
        })
    }

    fn list_plans(&mut self, mesh: &str) -> Result<Vec<KeptPlan>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT revision, text, key, signature, kept_s FROM mesh_plan WHERE mesh = $1
                       ORDER BY revision DESC";
            let read = |row: &Row| KeptPlan {
                revision: counted(row, 0),
                text: row.get(1),
                key: row.get(2),
                signature: row.get(3),
                kept_s: row.get(4),
            };
            Ok(client.query(sql, &[&mesh]).await?.iter().map(read).collect())
        })
    }

    fn plan_names(&mut self) -> Result<Vec<String>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT DISTINCT mesh FROM mesh_plan ORDER BY mesh";
            Ok(client.query(sql, &[]).await?.iter().map(|row| row.get(0)).collect())
        })
    }

    fn keep_token(
        &mut self,
        digest: &str,
        mesh: &str,
        agent: &str,
        until_s: i64,
    ) -> Result<(), Failure> {
        self.with_client(WRITE, async |client| {
            let sql = "INSERT INTO mesh_token (digest, mesh, agent, until_s)
                       VALUES ($1, $2, $3, $4)";
            client.execute(sql, &[&digest, &mesh, &agent, &until_s]).await.map(drop)
        })
    }

    fn join_by_token(&mut self, token: &str, secret: &str, now_s: i64) -> Result<Joined, Failure> {
        self.with_client(WRITE, async |client| {
            let begin = client.build_transaction().isolation_level(IsolationLevel::ReadCommitted);
            let transaction = begin.start().await?;
            let sql = "SELECT mesh, agent, used_by, until_s FROM mesh_token WHERE digest = $1
                       FOR UPDATE";
            let Some(row) = transaction.query_opt(sql, &[&token]).await? else {
                return Ok(Joined::Unknown);
            };
            let (mesh, agent): (String, String) = (row.get(0), row.get(1));
            match row.get::<_, Option<String>>(2) {
                Some(used_by) if used_by == secret => return Ok(Joined::As(mesh, agent)),
                Some(_) => return Ok(Joined::Used),
                None if row.get::<_, i64>(3) < now_s => return Ok(Joined::Unknown),
                None => {}
            }
            let used = "UPDATE mesh_token SET used_by = $2 WHERE digest = $1";
            transaction.execute(used, &[&token, &secret]).await?;
            let joins = "INSERT INTO mesh_agent (mesh, agent, secret, joined_s)
                         VALUES ($1, $2, $3, $4)
                         ON CONFLICT (mesh, agent) DO UPDATE SET secret = excluded.secret,
                             joined_s = excluded.joined_s, seen_s = NULL";
            transaction.execute(joins, &[&mesh, &agent, &secret, &now_s]).await?;
            transaction.commit().await?;
            Ok(Joined::As(mesh, agent))
        })
    }

    fn agent_of(&mut self, secret: &str) -> Result<Option<(String, String)>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT mesh, agent FROM mesh_agent WHERE secret = $1";
            let found = client.query_opt(sql, &[&secret]).await?;
            Ok(found.map(|row| (row.get(0), row.get(1))))
        })
    }

    fn logins(&mut self, mesh: &str) -> Result<BTreeMap<String, String>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT secret, agent FROM mesh_agent WHERE mesh = $1";
            let found = client.query(sql, &[&mesh]).await?;
            Ok(found.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
    }

    fn keep_beats(&mut self, mesh: &str, seen: &BTreeMap<String, Seen>) -> Result<(), Failure> {
        self.with_client(WRITE, async |client| {
            let sql = "UPDATE mesh_agent AS known
                       SET seen_s = u.seen_s, instance = u.instance, starts = u.starts,
                           revision = u.revision, waiting = u.waiting, ahead_s = u.ahead_s,
                           double_s = u.double_s
                       FROM unnest($2::text[], $3::bigint[], $4::text[], $5::bigint[],
                                   $6::bigint[], $7::bigint[], $8::float8[], $9::bigint[])
                            AS u(agent, seen_s, instance, starts, revision, waiting, ahead_s,
                                 double_s)
                       WHERE known.mesh = $1 AND known.agent = u.agent";
            let agents: Vec<&str> = seen.keys().map(String::as_str).collect();
            let at_s: Vec<i64> = seen.values().map(|beat| beat.at_s).collect();
            let instance: Vec<&str> = seen.values().map(|beat| beat.instance.as_str()).collect();
            let starts: Vec<i64> = seen.values().map(|beat| saturating_i64(beat.starts)).collect();
            let revision: Vec<i64> =
                seen.values().map(|beat| saturating_i64(beat.revision)).collect();
            let waiting: Vec<i64> =
                seen.values().map(|beat| saturating_i64(beat.waiting)).collect();
            let ahead_s: Vec<Option<f64>> = seen.values().map(|beat| beat.ahead_s).collect();
            let double_s: Vec<Option<i64>> = seen.values().map(|beat| beat.double_s).collect();
            let columns: [&(dyn ToSql + Sync); 9] = [
                &mesh, &agents, &at_s, &instance, &starts, &revision, &waiting, &ahead_s, &double_s,
            ];
            // The next beats say it again.
            let transaction = client.transaction().await?;
            transaction.batch_execute("SET LOCAL synchronous_commit = off").await?;
            transaction.execute(sql, &columns).await?;
            transaction.commit().await
        })
    }

    fn last_seen(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Seen>, Failure> {
        self.with_client(READ, async |client| {
            let some: Vec<&str> = agents.iter().copied().collect();
            let sql = "SELECT agent, seen_s, instance, starts, revision, waiting, ahead_s, double_s
                       FROM mesh_agent WHERE mesh = $1 AND agent = ANY($2)";
            let found = client.query(sql, &[&mesh, &some]).await?;
            Ok(found.iter().filter_map(|row| Some((row.get(0), seen_from_row(row, 1)?))).collect())
        })
    }

    fn agents(&mut self, mesh: &str) -> Result<BTreeMap<String, AgentState>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT agent, joined_s, seen_s, instance, starts, revision, waiting,
                              ahead_s, double_s
                       FROM mesh_agent WHERE mesh = $1";
            let read = |row: &Row| {
                (row.get(0), AgentState { joined_s: row.get(1), seen: seen_from_row(row, 2) })
            };
            Ok(client.query(sql, &[&mesh]).await?.iter().map(read).collect())
        })
    }

    fn runs_of(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        self.with_client(READ, async |client| {
            let some: Vec<&str> = agents.iter().copied().collect();
            let sql =
                "SELECT u.agent, coalesce(sum(runs), 0)::bigint FROM unnest($2::text[]) AS u(agent)
                       LEFT JOIN mesh_outcome AS o ON o.mesh = $1 AND o.agent = u.agent
                       GROUP BY u.agent";
            let found = client.query(sql, &[&mesh, &some]).await?;
            Ok(found.iter().map(|row| (row.get(0), counted(row, 1))).collect())
        })
    }

    fn keep_runs(&mut self, mesh: &str, runs: &[AgentRun]) -> Result<Vec<bool>, Failure> {
        self.keep_batch(mesh, runs)
    }

    fn agent_runs(
        &mut self,
        mesh: &str,
        agent: &str,
        task: Option<&str>,
        began_s: Range<i64>,
    ) -> Result<Vec<ScheduleRun>, Failure> {
        let Range { start: from_s, end: until_s } = began_s;
        self.with_client(READ, async |client| {
            // The path first: results are read by its number, in the partitions of the span.
            let paths = "SELECT path, task FROM mesh_path
                         WHERE mesh = $1 AND agent = $2 AND ($3::text IS NULL OR task = $3)";
            let results = "SELECT start_s, state, reason, record, why FROM mesh_result
                           WHERE path = $1 AND start_s >= $2 AND start_s < $3";
            let mut runs = Vec::new();
            for path in client.query(paths, &[&mesh, &agent, &task]).await? {
                let (path, task): (i32, String) = (path.get(0), path.get(1));
                for row in client.query(results, &[&path, &from_s, &until_s]).await? {
                    runs.push(ScheduleRun {
                        task: task.clone(),
                        start_s: row.get(0),
                        why: row.try_get::<_, StoredWord<_>>(4)?.0,
                        state: row.try_get::<_, StoredWord<_>>(1)?.0,
                        reason: row.get(2),
                        record: row.get(3),
                    });
                }
            }
            runs.sort_by(|a, b| (a.start_s, &a.task).cmp(&(b.start_s, &b.task)));
            Ok(runs)
        })
    }

    fn record(
        &mut self,
        mesh: &str,
        agent: &str,
        run: &ScheduleRun,
    ) -> Result<Option<Record>, Failure> {
        let doc: Option<String> = self.with_client(READ, async |client| {
            let sql = "SELECT doc FROM mesh_result JOIN mesh_path USING (path)
                       WHERE mesh = $1 AND agent = $2 AND task = $3 AND start_s = $4";
            let found = client.query_opt(sql, &[&mesh, &agent, &run.task, &run.start_s]).await?;
            Ok(found.and_then(|row| row.get(0)))
        })?;
        let id = run.record.as_deref().unwrap_or_default();
        doc.map(|doc| parse(id, &doc)).transpose()
    }

    fn record_named(&mut self, id: RecordId) -> Result<Option<Record>, Failure> {
        let (name, begin_s) = (id.to_string(), (id.unix_millis() / 1000).cast_signed());
        let doc: Option<String> = self.with_client(READ, async |client| {
            // A record begins with its run: the partitions of a day before and after are enough.
            let sql = "SELECT doc FROM mesh_result
                       WHERE record = $1
                         AND start_s BETWEEN $2::bigint - 86400 AND $2::bigint + 86400";
            let found = client.query_opt(sql, &[&name, &begin_s]).await?;
            Ok(found.and_then(|row| row.get(0)))
        })?;
        doc.map(|doc| parse(&name, &doc)).transpose()
    }

    fn spreads(&mut self, query: SpreadQuery<'_>) -> Result<Vec<Sketched>, Failure> {
        self.add_up(query)
    }

    fn newest_cells(&mut self, mesh: &str) -> Result<Cells, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT task, agent, last_s, state, reason, good_s, metric, value, record
                       FROM mesh_latest JOIN mesh_path USING (path) WHERE mesh = $1";
            let read = |row: &Row| -> Result<_, Error> {
                let (task, agent): (String, String) = (row.get(0), row.get(1));
                let (task, peer) = task.split_once('/').unwrap_or((&task, ""));
                let state = CellState {
                    last_s: row.get(2),
                    state: row.try_get::<_, StoredWord<_>>(3)?.0,
                    reason: row.get(4),
                    good_s: row.get(5),
                    metric: row.get(6),
                    value: row.get(7),
                    record: row.get(8),
                };
                Ok(((task.to_owned(), agent, peer.to_owned()), state))
            };
            client.query(sql, &[&mesh]).await?.iter().map(read).collect()
        })
    }

    fn outcomes(&mut self, mesh: &str) -> Result<Vec<OutcomeCount>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT agent, outcome, runs FROM mesh_outcome WHERE mesh = $1
                       ORDER BY agent, outcome";
            let read = |row: &Row| -> Result<_, Error> {
                let outcome = row.try_get::<_, StoredWord<_>>(1)?.0;
                Ok(OutcomeCount { agent: row.get(0), outcome, runs: counted(row, 2) })
            };
            client.query(sql, &[&mesh]).await?.iter().map(read).collect()
        })
    }

    fn store_booking(&mut self, asked: &NewBooking) -> Result<Booked, Failure> {
        self.keep_booking(asked)
    }

    fn bookings_open(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
        since_s: i64,
    ) -> Result<BTreeMap<String, Vec<Booking>>, Failure> {
        self.open_bookings(mesh, agents, since_s)
    }

    fn bookings(&mut self, mesh: &str, since_s: i64) -> Result<Vec<BookedRun>, Failure> {
        self.all_bookings(mesh, since_s)
    }

    fn read_day_runs(
        &mut self,
        mesh: &str,
        span: (i64, i64),
        take: &mut Takes<'_>,
    ) -> Result<(), Failure> {
        self.day_by_path(mesh, span, take)
    }

    fn day_goes(&mut self, mesh: &str, day: &Day, count: u64) -> Result<(), Failure> {
        self.drop_day(mesh, day, count)
    }
}
