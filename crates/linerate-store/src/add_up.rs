//! Adds what a record of a schedule has to the sketches of its task: by hour, by day and as a
//! whole. Reading them is in `sketches`.

use linerate_core::record::Record;
use linerate_core::schedule::sketched;
use linerate_core::stats::Sketch;
use rusqlite::{Connection, OptionalExtension, params};

/// Length of the spans that have sketches, seconds; 0 is all the time since the store began.
pub const HOUR_S: i64 = 3600;
/// A day, counted from midnight UTC.
pub const DAY_S: i64 = 86_400;
const WHOLE: i64 = 0;
/// Seconds for which sketches by the hour are kept; sketches by the day stay.
pub(super) const HOURS_KEPT_S: i64 = 35 * DAY_S;

/// Adds what a record has to the sketches of its task, in the record's own transaction.
pub(super) fn add(
    connection: &Connection,
    plan: &str,
    task: &str,
    at_s: i64,
    record: &Record,
) -> rusqlite::Result<()> {
    let read = "SELECT sketch FROM sketch
                WHERE plan = ?1 AND task = ?2 AND metric = ?3 AND step_s = ?4 AND at_s = ?5";
    let write = "INSERT INTO sketch (plan, task, metric, step_s, at_s, sketch)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)
                 ON CONFLICT (plan, task, metric, step_s, at_s)
                 DO UPDATE SET sketch = excluded.sketch";
    let forget = "DELETE FROM sketch
                  WHERE plan = ?1 AND task = ?2 AND metric = ?3 AND step_s = ?4 AND at_s < ?5";
    for (metric, new) in sketched(record) {
        for step_s in [HOUR_S, DAY_S, WHOLE] {
            let begin_s = if step_s == WHOLE { 0 } else { at_s - at_s.rem_euclid(step_s) };
            let key = params![plan, task, metric, step_s, begin_s];
            let known: Option<Vec<u8>> =
                connection.prepare_cached(read)?.query_row(key, |row| row.get(0)).optional()?;
            // Bytes that are no sketch are begun anew.
            let mut sketch = known.and_then(|bytes| Sketch::from_bytes(&bytes)).unwrap_or_default();
            sketch.merge(&new);
            let row = params![plan, task, metric, step_s, begin_s, sketch.to_bytes()];
            connection.prepare_cached(write)?.execute(row)?;
        }
        let old = params![plan, task, metric, HOUR_S, at_s - HOURS_KEPT_S];
        connection.prepare_cached(forget)?.execute(old)?;
    }
    Ok(())
}
