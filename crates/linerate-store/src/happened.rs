//! What happened goes, too, once it is old: events and incidents that are over, some hundreds at a
//! time. What still says how something stands is never old: the newest event of each kind of a
//! task, an incident that is open, and the events that are part of it. Alerts go by themselves.

use linerate_core::record::Failure;
use rusqlite::{Row, params};

use super::records::query_rows;
use super::schedule::FORGOTTEN_AT_ONCE;
use super::{DAY_S, Store};

/// Events, and incidents that are over, are kept so long, seconds: 400 days, as far as reports look
/// back, which is a year and what comes late.
pub const HAPPENED_KEPT_S: i64 = 400 * DAY_S;

/// Most events and incidents that one call deletes.
pub(super) fn at_once() -> i64 {
    i64::try_from(FORGOTTEN_AT_ONCE).expect("some hundred")
}

/// Events of plans from one to another that are old.
const OLD: &str = "SELECT id FROM schedule_event AS old
    WHERE plan BETWEEN ?1 AND ?2 AND at_s < ?3
      AND id NOT IN (SELECT max(id) FROM schedule_event WHERE plan BETWEEN ?1 AND ?2
                     GROUP BY plan, task, kind)
      AND NOT EXISTS (SELECT 1 FROM mesh_incident AS incident
                      WHERE incident.id = json_extract(old.detail, '$.incident')
                        AND until_s IS NULL)
    LIMIT ?4";

impl Store {
    /// Deletes events of a plan before a time, some hundreds at once. How many are gone.
    /// # Errors
    /// One line when the file cannot be read or written.
    pub fn events_forget(&mut self, plan: &str, before_s: i64) -> Result<usize, Failure> {
        self.plans_forget((plan, plan), before_s)
    }

    /// The same of plans from one to another.
    fn plans_forget(&mut self, plans: (&str, &str), before_s: i64) -> Result<usize, Failure> {
        let values = params![plans.0, plans.1, before_s, at_once()];
        // First they are looked for: others write meanwhile.
        let id = |row: &Row<'_>| row.get::<_, i64>(0);
        let old = query_rows(&self.connection, OLD, values, id);
        let old = old.map_err(|error| self.storage_failure("read store", &error))?;
        if old.is_empty() {
            return Ok(0);
        }
        let ids = serde_json::json!(old).to_string();
        let sql = "DELETE FROM schedule_event WHERE id IN (SELECT value FROM json_each(?1))";
        let gone = self.connection.execute(sql, params![ids]);
        gone.map_err(|error| self.storage_failure("delete events in", &error))
    }

    /// Deletes what happened to a mesh before a time: events of its plans, `MESH/AGENT`, and
    /// incidents.
    pub(super) fn mesh_forgets_old(&mut self, mesh: &str, before_s: i64) -> Result<usize, Failure> {
        let plans = (format!("{mesh}/"), format!("{mesh}/{}", char::MAX));
        let events = self.plans_forget((&plans.0, &plans.1), before_s)?;
        let sql = "DELETE FROM mesh_incident WHERE id IN
                       (SELECT id FROM mesh_incident
                        WHERE mesh = ?1 AND until_s < ?2 ORDER BY until_s LIMIT ?3)";
        let gone = self.connection.execute(sql, params![mesh, before_s, at_once()]);
        Ok(events + gone.map_err(|error| self.storage_failure("delete incidents in", &error))?)
    }
}
