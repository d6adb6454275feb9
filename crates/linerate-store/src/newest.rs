//! How each schedule stands: the newest value of each series, and the last runs of each task.
//!
//! Read from the ends of keys, so that a scrape costs as much after years as on the first day.

use linerate_core::record::Failure;
use rusqlite::{OptionalExtension, Params, Row, params};

use super::{SeriesValue, Store};

/// Most series, and most tasks, that are read.
const KEYS_MAX: usize = 2000;

/// State of a task of a plan: its last runs and events; times in seconds since 1970-01-01 UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskState {
    /// Name of the schedule's plan.
    pub plan: String,
    /// Name of the task within the plan.
    pub task: String,
    /// Begin of the last run, with a result or not.
    pub last_s: i64,
    /// Begin of the last run with a result.
    pub good_s: Option<i64>,
    /// True while an alert of missing results is open: the newest event of that kind is `no_data`.
    pub no_data: bool,
    /// Time at which the last lasting change was found.
    pub changed_s: Option<i64>,
}

impl Store {
    /// The newest value of each series with its plan, by plan, task and figure. None where the
    /// file has no tables for schedules yet.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn newest_values(&self) -> Result<Vec<(String, SeriesValue)>, Failure> {
        if !self.knows_schedules()? {
            return Ok(Vec::new());
        }
        let sql = "SELECT plan, task, metric, at_s, value, record FROM series
                   WHERE ?1 IS NULL OR (plan, task, metric) < (?1, ?2, ?3)
                   ORDER BY plan DESC, task DESC, metric DESC, at_s DESC LIMIT 1";
        let read = |row: &Row<'_>| {
            let value = SeriesValue {
                task: row.get(1)?,
                metric: row.get(2)?,
                at_s: row.get(3)?,
                value: row.get(4)?,
                record: row.get(5)?,
            };
            Ok((row.get::<_, String>(0)?, value))
        };
        let mut found: Vec<(String, SeriesValue)> = Vec::new();
        while found.len() < KEYS_MAX {
            let last = found.last();
            let (plan, task) = (last.map(|(plan, _)| plan), last.map(|(_, value)| &value.task));
            let key = params![plan, task, last.map(|(_, value)| &value.metric)];
            let Some(next) = self.query_first(sql, key, read)? else { break };
            found.push(next);
        }
        found.reverse();
        Ok(found)
    }

    /// The state of each task that ever ran, by plan and task.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn task_states(&self) -> Result<Vec<TaskState>, Failure> {
        if !self.knows_schedules()? {
            return Ok(Vec::new());
        }
        let sql = "SELECT plan, task, start_s FROM schedule_run
                   WHERE ?1 IS NULL OR (plan, task) < (?1, ?2)
                   ORDER BY plan DESC, task DESC, start_s DESC LIMIT 1";
        let mut states: Vec<TaskState> = Vec::new();
        while states.len() < KEYS_MAX {
            let last = states.last();
            let key = params![last.map(|state| &state.plan), last.map(|state| &state.task)];
            let next =
                self.query_first(sql, key, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
            let Some((plan, task, last_s)) = next else { break };
            states.push(self.task_state(plan, task, last_s)?);
        }
        states.reverse();
        Ok(states)
    }

    fn task_state(&self, plan: String, task: String, last_s: i64) -> Result<TaskState, Failure> {
        let key = params![plan, task];
        let good = "SELECT start_s FROM schedule_run
                    WHERE plan = ?1 AND task = ?2 AND state = 'ok'
                    ORDER BY start_s DESC LIMIT 1";
        let good_s = self.query_first(good, key, |row| row.get(0))?;
        let data = "SELECT kind = 'no_data' FROM schedule_event
                    WHERE plan = ?1 AND task = ?2 AND kind IN ('no_data', 'data')
                    ORDER BY id DESC LIMIT 1";
        let no_data = self.query_first(data, key, |row| row.get(0))?.unwrap_or(false);
        let changed = "SELECT at_s FROM schedule_event
                       WHERE plan = ?1 AND task = ?2 AND kind = 'change'
                       ORDER BY id DESC LIMIT 1";
        let changed_s = self.query_first(changed, key, |row| row.get(0))?;
        Ok(TaskState { plan, task, last_s, good_s, no_data, changed_s })
    }

    /// True where the file has the tables of schedules; a file opened to be read may be of an
    /// older version.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn knows_schedules(&self) -> Result<bool, Failure> {
        let sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schedule_event'";
        self.query_first(sql, params![], |_| Ok(())).map(|found| found.is_some())
    }

    fn query_first<T>(
        &self,
        sql: &str,
        values: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, Failure> {
        let found = self
            .connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.query_row(values, read).optional());
        found.map_err(|error| self.storage_failure("read store", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linerate_core::schedule::{EventKind, RunWhy, ScheduleRun};

    fn store_with_series(directory: &tempfile::TempDir) -> Store {
        let store = Store::open(&directory.path().join("results.db")).expect("a new store");
        for (plan, task, metric, at_s, value) in [
            ("p", "a", "goodput_bps/up", 10.0, 1e6),
            ("p", "a", "goodput_bps/up", 30.0, 3e6),
            ("p", "a", "loss_ratio", 20.0, 0.5),
            ("p", "b", "loss_ratio", 5.0, 0.25),
            ("q", "a", "loss_ratio", 1.0, 0.125),
        ] {
            let sql = "INSERT INTO series VALUES (?1, ?2, ?3, ?4, ?5, 'r')";
            store.connection.execute(sql, params![plan, task, metric, at_s, value]).expect("kept");
        }
        store
    }

    #[test]
    fn the_newest_value_of_each_series_is_found() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let found = store_with_series(&directory).newest_values().expect("readable");
        let short: Vec<(&str, &str, f64, f64)> = found
            .iter()
            .map(|(plan, row)| (plan.as_str(), row.task.as_str(), row.at_s, row.value))
            .collect();
        let wanted = [
            ("p", "a", 30.0, 3e6),
            ("p", "a", 20.0, 0.5),
            ("p", "b", 5.0, 0.25),
            ("q", "a", 1.0, 0.125),
        ];
        assert_eq!(short, wanted);
    }

    #[test]
    fn a_task_stands_as_its_last_runs_and_events_say() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = store_with_series(&directory);
        let mut ran = |task: &str, start_s: i64, state: &str| {
            let run = ScheduleRun {
                task: task.to_owned(),
                start_s,
                why: RunWhy::Calendar,
                state: state.parse().expect("a word"),
                reason: None,
                record: None,
            };
            assert_eq!(store.slot_begun("p", &run), Ok(true));
        };
        ran("a", 100, "ok");
        ran("a", 200, "failed");
        ran("b", 150, "missed");
        let detail = serde_json::json!({});
        for (task, at_s, kind) in [
            ("a", 110, EventKind::NoData),
            ("a", 120, EventKind::Data),
            ("a", 130, EventKind::Change),
            ("b", 160, EventKind::NoData),
        ] {
            store.event_happened("p", task, at_s, kind, &detail).expect("kept");
        }
        let state = |task: &str, last_s, good_s, no_data, changed_s| TaskState {
            plan: "p".to_owned(),
            task: task.to_owned(),
            last_s,
            good_s,
            no_data,
            changed_s,
        };
        let wanted =
            vec![state("a", 200, Some(100), false, Some(130)), state("b", 150, None, true, None)];
        assert_eq!(store.task_states(), Ok(wanted));
    }

    #[test]
    fn a_file_of_an_older_version_has_no_schedules() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("old.db");
        rusqlite::Connection::open(&path)
            .expect("a new file")
            .execute_batch("CREATE TABLE x (y)")
            .expect("a table");
        let store = Store::open_for_lookup(&path).expect("readable");
        assert_eq!((store.newest_values(), store.task_states()), (Ok(vec![]), Ok(vec![])));
    }
}
