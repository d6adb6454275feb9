//! What a record of a schedule's run brings with it into the store.
//!
//! A record that a schedule's run made has the labels `schedule` (the plan), `slot` (its run) and
//! `why` (where the calendar did not ask for it), and its task as its name. `Store::put` writes
//! the values that are followed, and the run that they belong to, in the transaction of the record
//! itself: there is no moment at which one is kept and the others are not.

use linerate_core::record::Record;
#[cfg(feature = "scale")]
use linerate_core::schedule::Followed;
use linerate_core::schedule::{RunWhy, followed};
use rusqlite::{Connection, params};

use super::add_up;

/// Labels of a record of a schedule.
pub const TAG_PLAN: &str = "schedule";
/// The run: its begin, whole seconds since 1970-01-01 UTC.
pub const TAG_SLOT: &str = "slot";
/// `confirm`, `survey` or `booked`; absent where the calendar asked for it.
pub const TAG_WHY: &str = "why";

/// A survey's values are no part of its task's series.
fn is_survey(record: &Record) -> bool {
    record.tags.get(TAG_WHY).is_some_and(|why| why == RunWhy::Survey.name())
}

/// The values of a record that are part of its task's series: of a survey none.
#[cfg(feature = "scale")]
pub(super) fn in_series(record: &Record) -> Vec<(Followed, f64)> {
    if is_survey(record) { Vec::new() } else { followed(record) }
}

/// Writes what a schedule follows of a record, in the record's own transaction.
pub(super) fn follow(connection: &Connection, record: &Record, id: &str) -> rusqlite::Result<()> {
    let tag = |key: &str| record.tags.get(key).map(String::as_str);
    let slot = tag(TAG_SLOT).and_then(|text| text.parse::<i64>().ok());
    let (Some(plan), Some(slot), Some(task)) = (tag(TAG_PLAN), slot, record.name.as_deref()) else {
        return Ok(());
    };
    let run = "UPDATE schedule_run SET record = ?4 WHERE plan = ?1 AND task = ?2 AND start_s = ?3";
    connection.prepare_cached(run)?.execute(params![plan, task, slot, id])?;
    if is_survey(record) {
        return Ok(());
    }
    #[allow(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit 53 bits")]
    let at_s = record.started_at.unix_millis() as f64 / 1000.0;
    let value = "INSERT OR IGNORE INTO series (plan, task, metric, at_s, value, record)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
    let mut insert = connection.prepare_cached(value)?;
    for (what, value) in followed(record) {
        insert.execute(params![plan, task, what.series_key(), at_s, value, id])?;
    }
    #[allow(clippy::cast_possible_truncation, reason = "seconds since 1970")]
    let second = at_s.floor() as i64;
    add_up::add(connection, plan, task, second, record)
}
