//! What a hub needs of a store, whichever it is: agents, tokens, plans, their runs, and the newest
//! of each pair; what its watch needs is in `watch`. A file of SQLite is one, a database of
//! PostgreSQL another; `mesh/tests` has what both of them hold to.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::PathBuf;

use linerate_core::mesh::{AgentState, BookedRun, Booking, Cells, Seen};
use linerate_core::record::{Failure, Record, RecordId};
use linerate_core::schedule::ScheduleRun;

use super::{Booked, Joined, KeptPlan, NewBooking, OutcomeCount, Sketched, Store, WatchStore};

/// A run of an agent, as a hub is given it.
#[derive(Clone, Debug, PartialEq)]
pub struct AgentRun {
    /// Name of the agent that made the run.
    pub agent: String,
    /// The run; its task is `TASK/AGENT`.
    pub run: ScheduleRun,
    /// The run's record; none without a result.
    pub record: Option<Record>,
    /// Metric and value that the matrix shows of the run.
    pub figure: Option<(String, f64)>,
}

/// The sketches that are asked for with [`HubStore::spreads`].
#[derive(Clone, Copy, Debug)]
pub struct SpreadQuery<'a> {
    /// Name of the mesh.
    pub mesh: &'a str,
    /// Name of the agent that measured.
    pub agent: &'a str,
    /// `TASK/AGENT`; with `merge` the task's name alone.
    pub task: &'a str,
    /// Takes all tasks of the agent with that name before the slash, not one pair alone.
    pub merge: bool,
    /// Length of a span, seconds: [`super::HOUR_S`] or [`super::DAY_S`].
    pub step_s: i64,
    /// Only spans that end after this time, seconds since 1970-01-01 UTC.
    pub since_s: i64,
}

/// A hub's store. Times are seconds since 1970-01-01 UTC; each call fails with one line where the
/// store cannot be read or written.
pub trait HubStore: WatchStore + std::fmt::Debug + Send {
    /// The store's name in messages: a file, or a database without its password.
    fn location_name(&self) -> String;

    /// Keeps a plan of a mesh; the newest two stay. One of a revision that is there stays as it is.
    /// # Errors
    /// See [`HubStore`].
    fn keep_plan(&mut self, mesh: &str, plan: &KeptPlan) -> Result<(), Failure>;

    /// The plans of a mesh, the newest first.
    /// # Errors
    /// See [`HubStore`].
    fn list_plans(&mut self, mesh: &str) -> Result<Vec<KeptPlan>, Failure>;

    /// The meshes that it has a plan of.
    /// # Errors
    /// See [`HubStore`].
    fn plan_names(&mut self) -> Result<Vec<String>, Failure>;

    /// Keeps a token of an agent of a mesh, by the digest of its secret part.
    /// # Errors
    /// See [`HubStore`].
    fn keep_token(
        &mut self,
        digest: &str,
        mesh: &str,
        agent: &str,
        until_s: i64,
    ) -> Result<(), Failure>;

    /// Lets an agent join by a token, with the digest of its secret: once, and again for the same
    /// secret, whose answer may have been lost. A second token of an agent takes its place.
    /// # Errors
    /// See [`HubStore`].
    fn join_by_token(&mut self, token: &str, secret: &str, now_s: i64) -> Result<Joined, Failure>;

    /// The mesh and the name of the agent with a secret of this digest.
    /// # Errors
    /// See [`HubStore`].
    fn agent_of(&mut self, secret: &str) -> Result<Option<(String, String)>, Failure>;

    /// The agents of a mesh by the digests of their secrets.
    /// # Errors
    /// See [`HubStore`].
    fn logins(&mut self, mesh: &str) -> Result<BTreeMap<String, String>, Failure>;

    /// Keeps what beats of agents of a mesh say, all at once. The last of it may not survive a loss
    /// of power.
    /// # Errors
    /// See [`HubStore`].
    fn keep_beats(&mut self, mesh: &str, seen: &BTreeMap<String, Seen>) -> Result<(), Failure>;

    /// The last beat of each of some agents; no entry for agents without one.
    /// # Errors
    /// See [`HubStore`].
    fn last_seen(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Seen>, Failure>;

    /// The agents of a mesh that have joined, by name.
    /// # Errors
    /// See [`HubStore`].
    fn agents(&mut self, mesh: &str) -> Result<BTreeMap<String, AgentState>, Failure>;

    /// Number of runs of each of some agents that the store has taken in all: a count that falls
    /// only where the store was restored from an older copy.
    /// # Errors
    /// See [`HubStore`].
    fn runs_of(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, u64>, Failure>;

    /// Keeps runs of a mesh with their records; which of them are new. By agent, task and begin a
    /// run is kept once, as it came first. Once this returns, they survive a crash.
    /// # Errors
    /// See [`HubStore`].
    fn keep_runs(&mut self, mesh: &str, runs: &[AgentRun]) -> Result<Vec<bool>, Failure>;

    /// Runs of an agent of a mesh that began within `began_s`, sorted by begin and task; with
    /// `task` those of that task alone.
    /// # Errors
    /// See [`HubStore`].
    fn agent_runs(
        &mut self,
        mesh: &str,
        agent: &str,
        task: Option<&str>,
        began_s: Range<i64>,
    ) -> Result<Vec<ScheduleRun>, Failure>;

    /// The record of a run of an agent of a mesh, where it has one.
    /// # Errors
    /// See [`HubStore`], and when this program is older than the record.
    fn record(
        &mut self,
        mesh: &str,
        agent: &str,
        run: &ScheduleRun,
    ) -> Result<Option<Record>, Failure>;

    /// A record by its identifier.
    /// # Errors
    /// See [`HubStore`], and when this program is older than the record.
    fn record_named(&mut self, id: RecordId) -> Result<Option<Record>, Failure>;

    /// Sketches of what a task of an agent measured, one for each figure and span of time.
    /// # Errors
    /// See [`HubStore`], and where there is too much to be added up.
    fn spreads(&mut self, query: SpreadQuery<'_>) -> Result<Vec<Sketched>, Failure>;

    /// The newest of each task and pair of a mesh.
    /// # Errors
    /// See [`HubStore`].
    fn newest_cells(&mut self, mesh: &str) -> Result<Cells, Failure>;

    /// Runs of a mesh by agent and by how they ended, since the store counts them.
    /// # Errors
    /// See [`HubStore`].
    fn outcomes(&mut self, mesh: &str) -> Result<Vec<OutcomeCount>, Failure>;

    /// Keeps a booking, all of it or nothing: no two that are kept ever occupy one thing at once,
    /// whoever asks beside this, for the database refuses it. Nor has an agent more in an hour than
    /// it may.
    /// # Errors
    /// See [`HubStore`].
    fn store_booking(&mut self, asked: &NewBooking) -> Result<Booked, Failure>;

    /// Bookings of some agents of a mesh that begin at a time or later and of which the agent has
    /// no run, the first first; no entry for agents without any.
    /// # Errors
    /// See [`HubStore`].
    fn bookings_open(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
        since_s: i64,
    ) -> Result<BTreeMap<String, Vec<Booking>>, Failure>;

    /// Bookings of a mesh that begin at a time or later, the newest first, each with how it ended.
    /// # Errors
    /// See [`HubStore`].
    fn bookings(&mut self, mesh: &str, since_s: i64) -> Result<Vec<BookedRun>, Failure>;

    /// Gives the runs of a mesh that began in a span, its end excluded, path by path: by agent,
    /// task, the other agent and begin, some of a path at a time, all as the store is at one
    /// moment. Ends early where no more are wanted.
    /// # Errors
    /// See [`HubStore`]; and what they are given to fails with.
    #[cfg(feature = "scale")]
    fn read_day_runs(
        &mut self,
        mesh: &str,
        span: (i64, i64),
        take: &mut super::Takes<'_>,
    ) -> Result<(), Failure>;

    /// Takes a day of a mesh out if it has so many runs, all of it or nothing. The newest of each
    /// pair stays, and so do counts of runs by how they ended.
    /// # Errors
    /// See [`HubStore`], and where it has more or fewer.
    #[cfg(feature = "scale")]
    fn day_goes(&mut self, mesh: &str, day: &super::Day, count: u64) -> Result<(), Failure>;
}

/// Location of a hub's store.
#[derive(Clone, Debug)]
pub enum HubPlace {
    /// A file of SQLite.
    File(PathBuf),
    /// A database of PostgreSQL.
    #[cfg(feature = "scale")]
    Database(super::postgres::Database),
}

impl HubPlace {
    /// A file, or a database where it begins with `postgresql://`.
    /// # Errors
    /// One line where it is an address that makes no sense, or this program was built without.
    pub fn parse(text: &str) -> Result<Self, String> {
        if !text.starts_with("postgresql://") && !text.starts_with("postgres://") {
            return Ok(Self::File(PathBuf::from(text)));
        }
        #[cfg(feature = "scale")]
        {
            super::postgres::Database::parse(text).map(Self::Database)
        }
        #[cfg(not(feature = "scale"))]
        {
            Err(linerate_core::record::BuildPart::Scale.refusal())
        }
    }

    /// True for a database; lists of results are read from files alone.
    pub const fn is_database(&self) -> bool {
        !matches!(self, Self::File(_))
    }

    /// Opens the store, and makes it where there is none.
    /// # Errors
    /// When it cannot be made, read or written, or a newer version has written it.
    pub fn open_store(&self) -> Result<Box<dyn HubStore>, Failure> {
        Ok(match self {
            Self::File(path) => Box::new(Store::open(path)?),
            #[cfg(feature = "scale")]
            Self::Database(database) => Box::new(database.open_store()?),
        })
    }
}

impl HubStore for Store {
    fn location_name(&self) -> String {
        self.path().display().to_string()
    }

    fn keep_plan(&mut self, mesh: &str, plan: &KeptPlan) -> Result<(), Failure> {
        self.mesh_plan_is(mesh, plan)
    }

    fn list_plans(&mut self, mesh: &str) -> Result<Vec<KeptPlan>, Failure> {
        self.mesh_plans(mesh)
    }

    fn plan_names(&mut self) -> Result<Vec<String>, Failure> {
        self.meshes()
    }

    fn keep_token(
        &mut self,
        digest: &str,
        mesh: &str,
        agent: &str,
        until_s: i64,
    ) -> Result<(), Failure> {
        self.mesh_token(digest, mesh, agent, until_s)
    }

    fn join_by_token(&mut self, token: &str, secret: &str, now_s: i64) -> Result<Joined, Failure> {
        self.mesh_joins(token, secret, now_s)
    }

    fn agent_of(&mut self, secret: &str) -> Result<Option<(String, String)>, Failure> {
        self.mesh_agent_of(secret)
    }

    fn logins(&mut self, mesh: &str) -> Result<BTreeMap<String, String>, Failure> {
        self.mesh_logins(mesh)
    }

    fn keep_beats(&mut self, mesh: &str, seen: &BTreeMap<String, Seen>) -> Result<(), Failure> {
        self.mesh_saw(mesh, seen)
    }

    fn last_seen(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Seen>, Failure> {
        let mut found = BTreeMap::new();
        for agent in agents {
            if let Some(seen) = self.mesh_last_seen(mesh, agent)? {
                found.insert((*agent).to_owned(), seen);
            }
        }
        Ok(found)
    }

    fn agents(&mut self, mesh: &str) -> Result<BTreeMap<String, AgentState>, Failure> {
        self.mesh_agents(mesh)
    }

    fn runs_of(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, u64>, Failure> {
        let count = |agent: &&str| Ok(((*agent).to_owned(), self.mesh_runs_of(mesh, agent)?));
        agents.iter().map(count).collect()
    }

    fn keep_runs(&mut self, mesh: &str, runs: &[AgentRun]) -> Result<Vec<bool>, Failure> {
        let mut new = Vec::with_capacity(runs.len());
        for AgentRun { agent, run, record, figure } in runs {
            if self.find_run(&format!("{mesh}/{agent}"), &run.task, run.start_s)?.is_some() {
                new.push(false);
                continue;
            }
            if let Some(record) = record {
                self.put_record(record)?;
            }
            let figure = figure.as_ref().map(|(key, value)| (key.as_str(), *value));
            new.push(self.mesh_ran(mesh, agent, run, figure)?);
        }
        Ok(new)
    }

    fn agent_runs(
        &mut self,
        mesh: &str,
        agent: &str,
        task: Option<&str>,
        began_s: Range<i64>,
    ) -> Result<Vec<ScheduleRun>, Failure> {
        let Range { start: from_s, end: until_s } = began_s;
        let plan = format!("{mesh}/{agent}");
        if let Some(task) = task.filter(|_| until_s == from_s.saturating_add(1)) {
            return Ok(self.find_run(&plan, task, from_s)?.into_iter().collect());
        }
        let mut runs = self.runs_since(&plan, from_s)?;
        runs.retain(|run| run.start_s < until_s && task.is_none_or(|task| run.task == task));
        runs.sort_by(|a, b| (a.start_s, &a.task).cmp(&(b.start_s, &b.task)));
        Ok(runs)
    }

    fn record(&mut self, _: &str, _: &str, run: &ScheduleRun) -> Result<Option<Record>, Failure> {
        Ok(run.record.as_deref().map(|id| self.stored(id)).transpose()?.flatten())
    }

    fn record_named(&mut self, id: RecordId) -> Result<Option<Record>, Failure> {
        self.stored(&id.to_string())
    }

    fn spreads(&mut self, query: SpreadQuery<'_>) -> Result<Vec<Sketched>, Failure> {
        let SpreadQuery { mesh, agent, task, merge, step_s, since_s } = query;
        let mut all = self.sketches(&format!("{mesh}/{agent}"), step_s, since_s)?;
        let name = |pair: &str| pair.split('/').next() == Some(task);
        all.retain(|sketched| sketched.task == task || merge && name(&sketched.task));
        Ok(all)
    }

    fn newest_cells(&mut self, mesh: &str) -> Result<Cells, Failure> {
        self.mesh_cells(mesh)
    }

    fn outcomes(&mut self, mesh: &str) -> Result<Vec<OutcomeCount>, Failure> {
        self.mesh_outcomes(mesh)
    }

    fn store_booking(&mut self, asked: &NewBooking) -> Result<Booked, Failure> {
        self.mesh_books(asked)
    }

    fn bookings_open(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
        since_s: i64,
    ) -> Result<BTreeMap<String, Vec<Booking>>, Failure> {
        let mut found = BTreeMap::new();
        for agent in agents {
            let open = self.mesh_bookings_open(mesh, agent, since_s)?;
            if !open.is_empty() {
                found.insert((*agent).to_owned(), open);
            }
        }
        Ok(found)
    }

    fn bookings(&mut self, mesh: &str, since_s: i64) -> Result<Vec<BookedRun>, Failure> {
        self.mesh_bookings(mesh, since_s)
    }

    #[cfg(feature = "scale")]
    fn read_day_runs(
        &mut self,
        mesh: &str,
        span: (i64, i64),
        take: &mut super::Takes<'_>,
    ) -> Result<(), Failure> {
        self.mesh_day(mesh, span, take)
    }

    #[cfg(feature = "scale")]
    fn day_goes(&mut self, mesh: &str, day: &super::Day, count: u64) -> Result<(), Failure> {
        self.mesh_day_goes(mesh, day, count)
    }
}
