//! Results that go because a policy no longer keeps them: the oldest first, some hundreds at a
//! time, so that whoever stores one meanwhile waits for no more than that.
//!
//! Only single results go. A study's stay with their run, those of schedules and meshes go by the
//! plan's own `keep`, and those with the label `keep` were asked to stay.

use linerate_core::policy::Keep;
use linerate_core::record::{Failure, Fault, RecordId};
use linerate_core::time::WallTime;
use rusqlite::{Row, params};

use super::Store;
use super::records::query_rows;
use super::schedule::FORGOTTEN_AT_ONCE;

/// The label of a result that stays whatever a policy says.
pub const TAG_KEEP: &str = "keep";

/// The condition on results that a policy may delete. The index `record_loose` has the same text:
/// SQLite uses a partial index only where the query repeats its condition.
macro_rules! loose {
    () => {
        "run IS NULL AND json_extract(tags, '$.schedule') IS NULL
         AND json_extract(tags, '$.keep') IS NULL"
    };
}
macro_rules! size {
    () => {
        "length(CAST(doc AS BLOB))"
    };
}

/// No step of the tables: a program that does not know it keeps it up all the same. What is asked
/// by it comes from it: the row, whose document may be long, is not read.
const INDEX: &str = concat!(
    "CREATE INDEX IF NOT EXISTS record_loose ON record (id, ",
    size!(),
    ") WHERE ",
    loose!()
);
const TOTAL: &str =
    concat!("SELECT count(*), coalesce(sum(", size!(), "), 0) FROM record WHERE ", loose!());
const OLDEST: &str = concat!(
    "SELECT id, ",
    size!(),
    " FROM record WHERE ",
    loose!(),
    " AND id < ?1 ORDER BY id LIMIT ?2"
);
const DELETE: &str = concat!("DELETE FROM record WHERE id <= ?1 AND ", loose!());

/// Counts of the results that one call deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forgotten {
    /// Number of deleted results.
    pub results: u64,
    /// Bytes of their records.
    pub bytes: u64,
    /// There may be more to go.
    pub more: bool,
}

/// A result that may go, and the bytes of its record.
type Loose = (String, u64);

impl Store {
    /// Deletes the oldest results that `keep` does not have any more, some hundreds at most. Their
    /// room in the file is used again by what comes.
    /// # Errors
    /// One line when the file cannot be read or written.
    pub fn forget(&mut self, keep: &Keep, now: WallTime) -> Result<Forgotten, Failure> {
        let oldest = self.oldest_to_forget(keep, now, FORGOTTEN_AT_ONCE)?;
        let Some((last, _)) = oldest.last() else { return Ok(Forgotten::default()) };
        let results = self.connection.execute(DELETE, params![last]);
        let results = results.map_err(|error| self.storage_failure("delete results in", &error))?;
        let bytes = oldest.iter().map(|(_, bytes)| bytes).sum();
        Ok(Forgotten { results: results as u64, bytes, more: oldest.len() == FORGOTTEN_AT_ONCE })
    }

    /// Counts of all results that [`Store::forget`] would delete if it were called to the end.
    /// # Errors
    /// One line when the file cannot be read or written.
    pub fn would_forget(&mut self, keep: &Keep, now: WallTime) -> Result<Forgotten, Failure> {
        let going = self.oldest_to_forget(keep, now, usize::MAX)?;
        let bytes = going.iter().map(|(_, bytes)| bytes).sum();
        Ok(Forgotten { results: going.len() as u64, bytes, more: false })
    }

    /// Asks that a single result stays whatever a policy says, or no longer.
    /// # Errors
    /// One line when there is no such result, or the file cannot be written.
    pub fn mark_kept(&mut self, name: &str, stays: bool) -> Result<RecordId, Failure> {
        let mut record = self.get(name)?;
        match stays {
            true => record.tags.insert(TAG_KEEP.to_owned(), "yes".to_owned()),
            false => record.tags.remove(TAG_KEEP),
        };
        let id = record.id.to_string();
        let doc = linerate_core::tree::to_json(&record)
            .map_err(|error| Failure::new(Fault::System, "write record", id.clone(), error))?;
        let tags = serde_json::json!(record.tags).to_string();
        let sql = "UPDATE record SET tags = ?2, doc = ?3 WHERE id = ?1";
        let done = self.connection.execute(sql, params![id, tags, doc]);
        done.map_err(|error| self.storage_failure("store record in", &error))?;
        Ok(record.id)
    }

    /// The oldest results that have to go, at most so many.
    fn oldest_to_forget(
        &self,
        keep: &Keep,
        now: WallTime,
        most: usize,
    ) -> Result<Vec<Loose>, Failure> {
        let read = || {
            self.connection.execute(INDEX, [])?;
            let all = self.connection.query_row(TOTAL, [], |row| {
                Ok(Total { count: number(row, 0)?, bytes: number(row, 1)? })
            })?;
            let newest = first_id(now, Keep::AT_LEAST.as_secs());
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let loose = |row: &Row<'_>| Ok((row.get(0)?, number(row, 1)?));
            let oldest = query_rows(&self.connection, OLDEST, params![newest, most], loose)?;
            Ok((all, oldest))
        };
        let (all, mut oldest): (Total, Vec<Loose>) =
            read().map_err(|error: rusqlite::Error| self.storage_failure("read store", &error))?;
        oldest.truncate(count_to_go(&oldest, keep, all, now));
        Ok(oldest)
    }
}

/// A count, which is never below 0.
fn number(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    row.get(column).map(|count: i64| count.unsigned_abs())
}

/// All results that may go.
#[derive(Clone, Copy, Debug)]
struct Total {
    count: u64,
    bytes: u64,
}

/// Number of the oldest results to delete so that each limit of the policy holds.
fn count_to_go(oldest: &[Loose], keep: &Keep, all: Total, now: WallTime) -> usize {
    let aged = keep.time.map(|time| first_id(now, time.seconds()));
    let by_age = aged.map_or(0, |first| oldest.partition_point(|(id, _)| *id < first));
    let too_many = keep.count.map_or(0, |most| all.count.saturating_sub(most));
    let by_count = usize::try_from(too_many).unwrap_or(usize::MAX);
    let too_much = keep.bytes.map_or(0, |most| all.bytes.saturating_sub(most.count()));
    let before = oldest.iter().scan(0, |sum: &mut u64, (_, bytes)| {
        let before = *sum;
        *sum += bytes;
        Some(before)
    });
    let by_bytes = before.take_while(|before| *before < too_much).count();
    by_age.max(by_count).max(by_bytes).min(oldest.len())
}

/// The first identifier of a result that began so long before now: identifiers sort by their begin
/// (RFC 9562 §5.7).
fn first_id(now: WallTime, seconds_before: u64) -> String {
    let millis = now.unix_millis().saturating_sub(seconds_before.saturating_mul(1000));
    RecordId::from_parts(millis, [0; 10]).to_string()
}
