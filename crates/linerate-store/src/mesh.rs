//! What a mesh leaves in a store: of an agent its identity, its plans and what is to be sent; of a
//! hub its agents, their tokens, and the newest of each pair.
//!
//! Runs, series and records are those of schedules: an agent's schedule is called `MESH/AGENT` and
//! a task of it `TASK/AGENT`, on both ends.

use std::collections::BTreeMap;

use linerate_core::mesh::{AgentState, CellState, Cells, RunOutcome, Seen};
use linerate_core::record::Failure;
use linerate_core::schedule::{RunState, ScheduleRun};
use rusqlite::{OptionalExtension, Row, params};

use super::Store;
use super::records::query_rows;
use super::schedule::run_from_row;
use super::word::StoredWord;

/// This host's membership in a mesh: its hub, keys and name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeshSelf {
    /// Address of the hub.
    pub hub: String,
    /// The key that signs plans, hexadecimal digits.
    pub key: String,
    /// The secret that authenticates this host to the hub, hexadecimal digits.
    pub secret: String,
    /// Mesh and agent; none before the hub has said so.
    pub name: Option<(String, String)>,
    /// Number of starts of the agent on this host.
    pub starts: u64,
}

/// A plan with its signature, as it was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptPlan {
    /// Revision of the plan; the higher one is newer.
    pub revision: u64,
    /// Text of the plan's file, TOML.
    pub text: String,
    /// Public key that signed the plan, hexadecimal digits.
    pub key: String,
    /// Signature of the plan's text by `key` (Ed25519), hexadecimal digits.
    pub signature: String,
    /// When it was kept, seconds since 1970-01-01 UTC.
    pub kept_s: i64,
}

/// Runs of an agent that had one outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutcomeCount {
    /// Name of the agent.
    pub agent: String,
    /// The outcome that is counted.
    pub outcome: RunOutcome,
    /// Number of the agent's runs with that outcome.
    pub runs: u64,
}

/// Answer of a hub's store to an agent that joins with a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The agent has joined: its mesh and name.
    As(String, String),
    /// There is no such token, or it is over.
    Unknown,
    /// Another agent used it.
    Used,
}

fn saturating_i64(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

fn counted(row: &Row<'_>, at: usize) -> rusqlite::Result<u64> {
    row.get::<_, i64>(at).map(|value| u64::try_from(value).unwrap_or(0))
}

/// Reads an agent's last beat from seven columns, the first at index `at`: `seen_s, instance,
/// starts, revision, waiting, ahead_s, double_s`.
fn seen_from_row(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<Seen>> {
    let Some(at_s) = row.get::<_, Option<i64>>(at)? else { return Ok(None) };
    Ok(Some(Seen {
        at_s,
        instance: row.get(at + 1)?,
        starts: counted(row, at + 2)?,
        revision: counted(row, at + 3)?,
        waiting: counted(row, at + 4)?,
        ahead_s: row.get(at + 5)?,
        double_s: row.get(at + 6)?,
    }))
}

impl Store {
    /// Counts a start of this host's agent and returns its membership; none before it has asked to
    /// join.
    /// # Errors
    /// One line when the file cannot be read or written.
    pub fn mesh_self_starts(&mut self) -> Result<Option<MeshSelf>, Failure> {
        self.mesh_change("UPDATE mesh_self SET starts = starts + 1", params![])?;
        let sql = "SELECT hub, key, secret, mesh, agent, starts FROM mesh_self";
        let read = |row: &Row<'_>| {
            let (mesh, agent): (Option<String>, Option<String>) = (row.get(3)?, row.get(4)?);
            Ok(MeshSelf {
                hub: row.get(0)?,
                key: row.get(1)?,
                secret: row.get(2)?,
                name: mesh.zip(agent),
                starts: counted(row, 5)?,
            })
        };
        let found = self.connection.query_row(sql, params![], read).optional();
        found.map_err(|error| self.storage_failure("read store", &error))
    }

    /// Keeps who this host is, in place of what it was.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_self_is(&mut self, me: &MeshSelf) -> Result<(), Failure> {
        let sql = "INSERT INTO mesh_self (one, hub, key, secret, mesh, agent, starts)
                   VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6)
                   ON CONFLICT (one) DO UPDATE SET hub = excluded.hub, key = excluded.key,
                       secret = excluded.secret, mesh = excluded.mesh, agent = excluded.agent,
                       starts = excluded.starts";
        let (mesh, agent) = me.name.clone().unzip();
        let values = params![me.hub, me.key, me.secret, mesh, agent, saturating_i64(me.starts)];
        self.mesh_change(sql, values).map(drop)
    }

    /// Keeps a plan of a mesh; the newest two stay. One of a revision that is there stays as it is.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_plan_is(&mut self, mesh: &str, plan: &KeptPlan) -> Result<(), Failure> {
        let sql = "INSERT OR IGNORE INTO mesh_plan (mesh, revision, text, key, signature, kept_s)
                   VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let revision = saturating_i64(plan.revision);
        let values = params![mesh, revision, plan.text, plan.key, plan.signature, plan.kept_s];
        self.mesh_change(sql, values)?;
        let older = "DELETE FROM mesh_plan WHERE mesh = ?1 AND revision NOT IN
                         (SELECT revision FROM mesh_plan WHERE mesh = ?1
                          ORDER BY revision DESC LIMIT 2)";
        self.mesh_change(older, params![mesh]).map(drop)
    }

    /// The plans of a mesh, the newest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_plans(&self, mesh: &str) -> Result<Vec<KeptPlan>, Failure> {
        let sql = "SELECT revision, text, key, signature, kept_s FROM mesh_plan WHERE mesh = ?1
                   ORDER BY revision DESC";
        let read = |row: &Row<'_>| {
            Ok(KeptPlan {
                revision: counted(row, 0)?,
                text: row.get(1)?,
                key: row.get(2)?,
                signature: row.get(3)?,
                kept_s: row.get(4)?,
            })
        };
        query_rows(&self.connection, sql, params![mesh], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// The meshes that this store has a plan of.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn meshes(&self) -> Result<Vec<String>, Failure> {
        let known = "SELECT count(*) FROM sqlite_schema WHERE name = 'mesh_plan'";
        let known: rusqlite::Result<i64> =
            self.connection.query_row(known, params![], |row| row.get(0));
        if known.map_err(|error| self.storage_failure("read store", &error))? == 0 {
            return Ok(Vec::new());
        }
        let sql = "SELECT DISTINCT mesh FROM mesh_plan ORDER BY mesh";
        query_rows(&self.connection, sql, params![], |row| row.get(0))
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Runs of an agent's schedule that are over and not yet known to be stored, the oldest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_unsent(&self, plan: &str, limit: usize) -> Result<Vec<ScheduleRun>, Failure> {
        let sql = "SELECT task, start_s, why, state, reason, record FROM schedule_run
                   WHERE plan = ?1 AND sent = 0 AND state <> 'running'
                   ORDER BY start_s, task LIMIT ?2";
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        query_rows(&self.connection, sql, params![plan, limit], run_from_row)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Number of runs of a plan that have ended and are not yet stored by the hub.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_unsent_count(&self, plan: &str) -> Result<u64, Failure> {
        let sql = "SELECT count(*) FROM schedule_run
                   WHERE plan = ?1 AND sent = 0 AND state <> 'running'";
        let found = self.connection.query_row(sql, params![plan], |row| counted(row, 0));
        found.map_err(|error| self.storage_failure("read store", &error))
    }

    /// The hub's store has some runs: their records are dropped here, and of runs of two days ago
    /// everything. All of it or nothing.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_confirmed(
        &mut self,
        plan: &str,
        runs: &[ScheduleRun],
        before_s: i64,
    ) -> Result<(), Failure> {
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            for run in runs {
                let sent = "UPDATE schedule_run SET sent = 1
                            WHERE plan = ?1 AND task = ?2 AND start_s = ?3";
                transaction.prepare_cached(sent)?.execute(params![plan, run.task, run.start_s])?;
                transaction.execute("DELETE FROM record WHERE id = ?1", params![run.record])?;
            }
            let old = "DELETE FROM schedule_run WHERE plan = ?1 AND sent = 1 AND start_s < ?2";
            transaction.prepare_cached(old)?.execute(params![plan, before_s])?;
            let old = "DELETE FROM series WHERE plan = ?1 AND at_s < ?2";
            transaction.prepare_cached(old)?.execute(params![plan, before_s])?;
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store mesh in", &error))
    }

    /// Keeps a token, by the digest of its secret part.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_token(
        &mut self,
        digest: &str,
        mesh: &str,
        agent: &str,
        until_s: i64,
    ) -> Result<(), Failure> {
        let sql = "INSERT INTO mesh_token (digest, mesh, agent, until_s) VALUES (?1, ?2, ?3, ?4)";
        self.mesh_change(sql, params![digest, mesh, agent, until_s]).map(drop)
    }

    /// Lets an agent join by a token, with the digest of its secret: once, and again for the same
    /// secret, whose answer may have been lost. A second token of an agent takes its place.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_joins(&mut self, token: &str, secret: &str, now_s: i64) -> Result<Joined, Failure> {
        let work = |store: &mut Self| {
            let begin = rusqlite::TransactionBehavior::Immediate;
            let transaction = store.connection.transaction_with_behavior(begin)?;
            let sql = "SELECT mesh, agent, used_by, until_s FROM mesh_token WHERE digest = ?1";
            let found = transaction
                .query_row(sql, params![token], |row| {
                    let names: (String, String) = (row.get(0)?, row.get(1)?);
                    Ok((names, row.get::<_, Option<String>>(2)?, row.get::<_, i64>(3)?))
                })
                .optional()?;
            let Some(((mesh, agent), used_by, until_s)) = found else { return Ok(Joined::Unknown) };
            match used_by {
                Some(used_by) if used_by == secret => return Ok(Joined::As(mesh, agent)),
                Some(_) => return Ok(Joined::Used),
                None if until_s < now_s => return Ok(Joined::Unknown),
                None => {}
            }
            let used = "UPDATE mesh_token SET used_by = ?2 WHERE digest = ?1";
            transaction.execute(used, params![token, secret])?;
            let joins = "INSERT INTO mesh_agent (mesh, agent, secret, joined_s)
                         VALUES (?1, ?2, ?3, ?4)
                         ON CONFLICT (mesh, agent) DO UPDATE SET secret = excluded.secret,
                             joined_s = excluded.joined_s, seen_s = NULL";
            transaction.execute(joins, params![mesh, agent, secret, now_s])?;
            transaction.commit()?;
            Ok(Joined::As(mesh, agent))
        };
        work(self).map_err(|error: rusqlite::Error| self.storage_failure("store mesh in", &error))
    }

    /// The mesh and the name of the agent with a secret of this digest.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_agent_of(&self, secret: &str) -> Result<Option<(String, String)>, Failure> {
        let sql = "SELECT mesh, agent FROM mesh_agent WHERE secret = ?1";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = self.connection.query_row(sql, params![secret], read).optional();
        found.map_err(|error| self.storage_failure("read store", &error))
    }

    /// The agents of a mesh by the digests of their secrets.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_logins(&self, mesh: &str) -> Result<BTreeMap<String, String>, Failure> {
        let sql = "SELECT secret, agent FROM mesh_agent WHERE mesh = ?1";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        let found = query_rows(&self.connection, sql, params![mesh], read);
        Ok(found.map_err(|error| self.storage_failure("read store", &error))?.into_iter().collect())
    }

    /// Keeps what agents' beats say. It is not waited for the disk: the next beats say it again.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_saw(&mut self, mesh: &str, seen: &BTreeMap<String, Seen>) -> Result<(), Failure> {
        let work = |store: &mut Self| {
            store.connection.pragma_update(None, "synchronous", "NORMAL")?;
            let kept = store.keep_seen(mesh, seen);
            store.connection.pragma_update(None, "synchronous", "FULL")?;
            kept
        };
        work(self).map_err(|error: rusqlite::Error| self.storage_failure("store mesh in", &error))
    }

    fn keep_seen(&mut self, mesh: &str, seen: &BTreeMap<String, Seen>) -> rusqlite::Result<()> {
        let sql = "UPDATE mesh_agent SET seen_s = ?3, instance = ?4, starts = ?5, revision = ?6,
                       waiting = ?7, ahead_s = ?8, double_s = ?9
                   WHERE mesh = ?1 AND agent = ?2";
        let begin = rusqlite::TransactionBehavior::Immediate;
        let transaction = self.connection.transaction_with_behavior(begin)?;
        for (agent, seen) in seen {
            let Seen { at_s, instance, ahead_s, double_s, .. } = seen;
            let [starts, revision, waiting] =
                [seen.starts, seen.revision, seen.waiting].map(saturating_i64);
            let values =
                params![mesh, agent, at_s, instance, starts, revision, waiting, ahead_s, double_s];
            transaction.prepare_cached(sql)?.execute(values)?;
        }
        transaction.commit()
    }

    /// The last beat of an agent that the store has.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_last_seen(&self, mesh: &str, agent: &str) -> Result<Option<Seen>, Failure> {
        let sql = "SELECT seen_s, instance, starts, revision, waiting, ahead_s, double_s
                   FROM mesh_agent WHERE mesh = ?1 AND agent = ?2";
        let found =
            query_rows(&self.connection, sql, params![mesh, agent], |row| seen_from_row(row, 0));
        Ok(found.map_err(|error| self.storage_failure("read store", &error))?.pop().flatten())
    }

    /// The agents of a mesh that have joined, by name.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_agents(&self, mesh: &str) -> Result<BTreeMap<String, AgentState>, Failure> {
        let sql = "SELECT agent, joined_s, seen_s, instance, starts, revision, waiting, ahead_s,
                          double_s
                   FROM mesh_agent WHERE mesh = ?1";
        let read = |row: &Row<'_>| {
            Ok((row.get(0)?, AgentState { joined_s: row.get(1)?, seen: seen_from_row(row, 2)? }))
        };
        let found = query_rows(&self.connection, sql, params![mesh], read);
        Ok(found.map_err(|error| self.storage_failure("read store", &error))?.into_iter().collect())
    }

    /// Keeps a run of an agent, whose record is in the store already; whether it is new.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_ran(
        &mut self,
        mesh: &str,
        agent: &str,
        run: &ScheduleRun,
        figure: Option<(&str, f64)>,
    ) -> Result<bool, Failure> {
        let work = |store: &mut Self| {
            let begin = rusqlite::TransactionBehavior::Immediate;
            let transaction = store.connection.transaction_with_behavior(begin)?;
            let sql = "INSERT OR IGNORE INTO schedule_run
                           (plan, task, start_s, why, state, reason, record, sent)
                       VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, 1)";
            let plan = format!("{mesh}/{agent}");
            let ScheduleRun { task, start_s, why, state, reason, record } = run;
            let good = *state == RunState::Ok;
            let outcome = RunOutcome::from_end(*state, reason.as_deref()).name();
            let (why, state) = (why.name(), state.name());
            let values = params![plan, task, start_s, why, state, reason, record];
            let new = transaction.prepare_cached(sql)?.execute(values)? == 1;
            if new {
                let count = "INSERT INTO mesh_outcome (mesh, agent, outcome, runs)
                             VALUES (?1, ?2, ?3, 1)
                             ON CONFLICT (mesh, agent, outcome) DO UPDATE SET runs = runs + 1";
                transaction.prepare_cached(count)?.execute(params![mesh, agent, outcome])?;
            }
            let (task, peer) = task.split_once('/').unwrap_or((task, ""));
            let last = "INSERT INTO mesh_cell (mesh, task, agent, peer, last_s, state, reason)
                        VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                        ON CONFLICT (mesh, task, agent, peer) DO UPDATE SET last_s = excluded.last_s,
                            state = excluded.state, reason = excluded.reason
                        WHERE excluded.last_s > last_s";
            let values = params![mesh, task, agent, peer, start_s, state, reason];
            transaction.prepare_cached(last)?.execute(values)?;
            if good {
                let newest =
                    "UPDATE mesh_cell SET good_s = ?5, metric = ?6, value = ?7, record = ?8
                              WHERE mesh = ?1 AND task = ?2 AND agent = ?3 AND peer = ?4
                                AND coalesce(good_s, ?5 - 1) < ?5";
                let (metric, value) = figure.unzip();
                let values = params![mesh, task, agent, peer, start_s, metric, value, record];
                transaction.prepare_cached(newest)?.execute(values)?;
            }
            transaction.commit()?;
            Ok(new)
        };
        work(self).map_err(|error: rusqlite::Error| self.storage_failure("store mesh in", &error))
    }

    /// The newest of each task and pair of a mesh.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_cells(&self, mesh: &str) -> Result<Cells, Failure> {
        let sql = "SELECT task, agent, peer, last_s, state, reason, good_s, metric, value, record
                   FROM mesh_cell WHERE mesh = ?1";
        let read = |row: &Row<'_>| {
            let state = CellState {
                last_s: row.get(3)?,
                state: row.get::<_, StoredWord<_>>(4)?.0,
                reason: row.get(5)?,
                good_s: row.get(6)?,
                metric: row.get(7)?,
                value: row.get(8)?,
                record: row.get(9)?,
            };
            Ok(((row.get(0)?, row.get(1)?, row.get(2)?), state))
        };
        let found = query_rows(&self.connection, sql, params![mesh], read);
        Ok(found.map_err(|error| self.storage_failure("read store", &error))?.into_iter().collect())
    }

    /// Runs of a mesh by agent and by how they ended, since the store counts them.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_outcomes(&self, mesh: &str) -> Result<Vec<OutcomeCount>, Failure> {
        let sql = "SELECT agent, outcome, runs FROM mesh_outcome WHERE mesh = ?1
                   ORDER BY agent, outcome";
        let read = |row: &Row<'_>| {
            let outcome = row.get::<_, StoredWord<_>>(1)?.0;
            Ok(OutcomeCount { agent: row.get(0)?, outcome, runs: counted(row, 2)? })
        };
        query_rows(&self.connection, sql, params![mesh], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    fn mesh_change(
        &mut self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<usize, Failure> {
        let changed =
            self.connection.prepare_cached(sql).and_then(|mut statement| statement.execute(values));
        changed.map_err(|error| self.storage_failure("store mesh in", &error))
    }
}
