//! What schedules measure, as sketches by hour, by day and as a whole: percentiles of longer times,
//! and of several tasks, are of sketches that were added up, never means of percentiles.

use linerate_core::record::Failure;
use linerate_core::stats::Sketch;
use rusqlite::types::Type;
use rusqlite::{Row, params};

use super::Store;
use super::add_up::HOURS_KEPT_S;
pub use super::add_up::{DAY_S, HOUR_S};
use super::records::query_rows;

/// Distribution of a figure of a task in one span of time, as a sketch.
#[derive(Clone, Debug, PartialEq)]
pub struct Sketched {
    /// Name of the task whose samples they are.
    pub task: String,
    /// The figure, by its key.
    pub metric: String,
    /// Begin of the span, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// The samples, in the metric's unit.
    pub sketch: Sketch,
}

impl Store {
    /// The sketches of a plan's figures by the hour or by the day, of spans that reach behind a
    /// time, the oldest first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn sketches(
        &self,
        plan: &str,
        step_s: i64,
        since_s: i64,
    ) -> Result<Vec<Sketched>, Failure> {
        if !self.has_sketches()? {
            return Ok(Vec::new());
        }
        let sql = "SELECT task, metric, at_s, sketch FROM sketch
                   WHERE plan = ?1 AND step_s = ?2 AND at_s > ?3 ORDER BY at_s, task, metric";
        let read = |row: &Row<'_>| {
            let (task, metric, at_s) = (row.get(0)?, row.get(1)?, row.get(2)?);
            Ok(Sketched { task, metric, at_s, sketch: sketch(row, 3)? })
        };
        query_rows(&self.connection, sql, params![plan, step_s, since_s - step_s], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Sketches of each figure of each task of a plan since a time, and that time. It is rounded
    /// down to a whole hour, or to a whole day where hours are no longer kept.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn sketches_since(
        &self,
        plan: &str,
        since_s: i64,
        now_s: i64,
    ) -> Result<(i64, Vec<Sketched>), Failure> {
        let step_s = if now_s - since_s <= HOURS_KEPT_S - DAY_S { HOUR_S } else { DAY_S };
        let from_s = since_s - since_s.rem_euclid(step_s);
        let mut merged: Vec<Sketched> = Vec::new();
        for each in self.sketches(plan, step_s, since_s)? {
            let same =
                |known: &&mut Sketched| known.task == each.task && known.metric == each.metric;
            match merged.iter_mut().find(same) {
                Some(known) => known.sketch.merge(&each.sketch),
                None => merged.push(Sketched { at_s: from_s, ..each }),
            }
        }
        Ok((from_s, merged))
    }

    /// All that was ever measured of each figure, with its plan: at most `limit` of them, and how
    /// many there are.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn whole_sketches(
        &self,
        limit: usize,
    ) -> Result<(Vec<(String, Sketched)>, usize), Failure> {
        if !self.has_sketches()? {
            return Ok((Vec::new(), 0));
        }
        let fault = |error: rusqlite::Error| self.storage_failure("read store", &error);
        let sql = "SELECT plan, task, metric, sketch FROM sketch WHERE step_s = 0
                   ORDER BY plan, task, metric LIMIT ?1";
        let read = |row: &Row<'_>| {
            let (task, metric) = (row.get(1)?, row.get(2)?);
            let whole = Sketched { task, metric, at_s: 0, sketch: sketch(row, 3)? };
            Ok((row.get::<_, String>(0)?, whole))
        };
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let found = query_rows(&self.connection, sql, params![limit], read).map_err(fault)?;
        let sql = "SELECT count(*) FROM sketch WHERE step_s = 0";
        let count: i64 = self.connection.query_row(sql, [], |row| row.get(0)).map_err(fault)?;
        Ok((found, usize::try_from(count).unwrap_or(0)))
    }

    /// True where the file has the table; a file opened to be read may be of an earlier version.
    fn has_sketches(&self) -> Result<bool, Failure> {
        let sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'sketch'";
        let found = self.connection.query_row(sql, [], |row| row.get::<_, i64>(0));
        found.map(|count| count > 0).map_err(|error| self.storage_failure("read store", &error))
    }
}

fn sketch(row: &Row<'_>, column: usize) -> rusqlite::Result<Sketch> {
    let bytes: Vec<u8> = row.get(column)?;
    let none = || {
        let reason = "no sketch of this version".into();
        rusqlite::Error::FromSqlConversionFailure(column, Type::Blob, reason)
    };
    Sketch::from_bytes(&bytes).ok_or_else(none)
}

#[cfg(test)]
mod tests {
    use linerate_core::record::{
        Distribution, MetricId, PingPlan, Plan, Record, RecordId, RecordStatus, Stat, Summary, Tool,
    };
    use linerate_core::time::WallTime;

    use super::super::{TAG_PLAN, TAG_SLOT, TAG_WHY};
    use super::*;

    /// Begin of the tests' records: 2026-11-24 00:00 UTC, seconds since 1970-01-01.
    const BEGIN_S: i64 = 1_795_478_400;

    /// A record of task `a` so many seconds after the begin, with these round trips.
    fn record(after_s: i64, task: &str, samples: &[u64]) -> Record {
        let at_s = u64::try_from(BEGIN_S + after_s).expect("after 1970");
        let salt = u8::try_from(task.len()).expect("short");
        let id = RecordId::from_parts(at_s * 1000, [salt; 10]);
        let tool = Tool { name: "linerate".to_owned(), version: "0.0.0".to_owned() };
        let at = WallTime::from_unix_nanos(u128::from(at_s) * 1_000_000_000);
        let mut record = Record::from_plan(id, tool, Plan::Ping(PingPlan::default()), at);
        record.name = Some(task.to_owned());
        record.tags.insert(TAG_PLAN.to_owned(), "p".to_owned());
        record.tags.insert(TAG_SLOT.to_owned(), at_s.to_string());
        record.summary = vec![Summary::from_value(MetricId::Rtt, Stat::P50, 1e6)];
        record.distributions = vec![Distribution::from_samples(MetricId::Rtt, samples)];
        record
    }

    fn sketch_from(samples: &[u64]) -> Sketch {
        samples.iter().copied().collect()
    }

    #[test]
    fn records_add_up_by_hour_by_day_and_as_a_whole_each_once() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("results.db");
        let mut store = Store::open(&path).expect("a store");
        let first = record(10, "a", &[1_000_000, 2_000_000]);
        store.put_record(&first).expect("room");
        store.put_record(&first).expect("the same again");
        store.put_record(&record(3599, "a", &[9_000_000])).expect("room");
        store.put_record(&record(3600, "a", &[5])).expect("room");
        store.put_record(&record(DAY_S + 1, "a", &[6])).expect("room");
        store.put_record(&record(20, "bb", &[7])).expect("room");
        let mut survey = record(30, "a", &[4_000_000_000]);
        survey.id = RecordId::from_parts(1, [9; 10]);
        survey.tags.insert(TAG_WHY.to_owned(), "survey".to_owned());
        store.put_record(&survey).expect("room");
        let mut failed = record(40, "a", &[4_000_000_000]);
        failed.status = RecordStatus::Error;
        store.put_record(&failed).expect("room");
        let is = |task: &str, at_s: i64, samples: &[u64]| Sketched {
            task: task.to_owned(),
            metric: "rtt_ns".to_owned(),
            at_s: BEGIN_S + at_s,
            sketch: sketch_from(samples),
        };
        let hours = store.sketches("p", HOUR_S, BEGIN_S).expect("a table");
        let first_hour = is("a", 0, &[1_000_000, 2_000_000, 9_000_000]);
        let expected = [first_hour, is("bb", 0, &[7]), is("a", 3600, &[5]), is("a", DAY_S, &[6])];
        assert_eq!(hours, expected);
        let days = store.sketches("p", DAY_S, BEGIN_S + DAY_S).expect("a table");
        assert_eq!(days, [is("a", DAY_S, &[6])]);
        let (from_s, since) =
            store.sketches_since("p", BEGIN_S + 3700, BEGIN_S + DAY_S + 5).expect("a table");
        assert_eq!((from_s, since), (BEGIN_S + 3600, vec![is("a", 3600, &[5, 6])]));
        let (whole, count) = store.whole_sketches(1).expect("a table");
        assert_eq!((count, whole.len()), (2, 1));
        assert_eq!(whole[0].1.sketch, sketch_from(&[1_000_000, 2_000_000, 9_000_000, 5, 6]));
        // Looked at from elsewhere, and of a store that has none.
        let looked = Store::open_for_lookup(&path).expect("a store");
        assert_eq!(looked.whole_sketches(9).map(|(_, count)| count), Ok(2));
        store.connection.execute_batch("DROP TABLE sketch").expect("room");
        assert_eq!(looked.whole_sketches(9), Ok((Vec::new(), 0)));
    }

    #[test]
    fn hours_are_forgotten_after_35_days_and_days_stay() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let mut store = Store::open(&directory.path().join("results.db")).expect("a store");
        store.put_record(&record(0, "a", &[1])).expect("room");
        let later_s = HOURS_KEPT_S + 2 * HOUR_S;
        store.put_record(&record(later_s, "a", &[2])).expect("room");
        let count = |step_s| store.sketches("p", step_s, 0).map(|sketches| sketches.len());
        assert_eq!((count(HOUR_S), count(DAY_S)), (Ok(1), Ok(2)));
        let (from_s, whole) =
            store.sketches_since("p", BEGIN_S, BEGIN_S + later_s).expect("a table");
        assert_eq!((from_s, whole[0].sketch.clone()), (BEGIN_S, sketch_from(&[1, 2])));
    }
}
