//! A hub's store that was set back, to a copy of before: an agent finds it by the number of its
//! runs that the store has, and gives again what it still knows of those that it was told were
//! stored.

use linerate_core::mesh::SET_BACK;
use linerate_core::record::Failure;
use rusqlite::{OptionalExtension, params};

use super::Store;

impl Store {
    /// Number of runs of an agent that this store, a hub's, has taken in all.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_runs_of(&self, mesh: &str, agent: &str) -> Result<u64, Failure> {
        let sql = "SELECT coalesce(sum(runs), 0) FROM mesh_outcome WHERE mesh = ?1 AND agent = ?2";
        self.one_count(sql, params![mesh, agent]).map(Option::unwrap_or_default)
    }

    /// Number of this agent's runs that the hub's store had when the hub last reported it.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_hub_runs(&self) -> Result<u64, Failure> {
        let sql = "SELECT hub_runs FROM mesh_self";
        self.one_count(sql, params![]).map(Option::unwrap_or_default)
    }

    /// Keeps the number of this agent's runs that the hub's store has.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_hub_has(&mut self, runs: u64) -> Result<(), Failure> {
        let runs = i64::try_from(runs).unwrap_or(i64::MAX);
        let done = self.connection.execute("UPDATE mesh_self SET hub_runs = ?1", params![runs]);
        done.map(drop).map_err(|error| self.storage_failure("store mesh in", &error))
    }

    /// Marks all runs of this agent's plan as not stored by the hub, so that they are sent again.
    /// A run whose record this agent has deleted is sent as lost, with the reason; a hub that has
    /// the record keeps it. Returns the number of runs.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_unconfirms(&mut self, plan: &str) -> Result<usize, Failure> {
        let sql = "UPDATE schedule_run SET sent = 0, record = NULL,
                       state = iif(record IS NULL, state, 'lost'),
                       reason = iif(record IS NULL, reason, ?2)
                   WHERE plan = ?1 AND sent = 1";
        let reason = format!("{SET_BACK}: its result was dropped");
        let done = self.connection.execute(sql, params![plan, reason]);
        done.map_err(|error| self.storage_failure("store mesh in", &error))
    }

    fn one_count(
        &self,
        sql: &str,
        values: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<u64>, Failure> {
        let read = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
        let found = self.connection.query_row(sql, values, read).optional();
        let found = found.map_err(|error| self.storage_failure("read store", &error))?;
        Ok(found.map(|count| u64::try_from(count).unwrap_or(0)))
    }
}
