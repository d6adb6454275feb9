//! An agent's spool when it is full: samples of the oldest results go first, then results, the
//! oldest first; that a run was made, or why it was not, stays.

use linerate_core::mesh::SPOOL_FULL;
use linerate_core::record::{Failure, Record};
use rusqlite::{Row, params};

use super::Store;
use super::records::query_rows;

/// Label of a record whose samples were dropped.
pub const TAG_RAW: &str = "raw";

/// A run that is not sent, with its record: task, begin, and the record's identifier and document.
type Kept = (String, i64, String, String);

impl Store {
    /// Bytes that the file's content takes: what was deleted is used again and does not count.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn used_bytes(&self) -> Result<u64, Failure> {
        let pragma =
            |name: &str| self.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        let used = || {
            let pages = pragma("page_count")? - pragma("freelist_count")?;
            Ok(u64::try_from(pages * pragma("page_size")?).unwrap_or(0))
        };
        used().map_err(|error: rusqlite::Error| self.storage_failure("read store", &error))
    }

    /// Drops the samples of the oldest results that are not sent, so many at most; how many.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn spool_thins(&mut self, plan: &str, limit: usize) -> Result<usize, Failure> {
        let kept = self.spool_kept(plan, "json_extract(tags, '$.raw') IS NULL", limit)?;
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            for (task, start_s, id, doc) in &kept {
                // One that cannot be read has nothing to drop, and is not looked at again.
                let thin = Record::from_json(doc).map(|mut record| {
                    record.tags.insert(TAG_RAW.to_owned(), "dropped".to_owned());
                    linerate_core::tree::to_json(&record.without_samples()).unwrap_or_default()
                });
                let doc = thin.as_ref().unwrap_or(doc);
                let sql = "UPDATE record SET doc = ?2, tags = json_set(tags, '$.raw', 'dropped')
                           WHERE id = ?1";
                transaction.prepare_cached(sql)?.execute(params![id, doc])?;
                let sql = "UPDATE schedule_run SET reason = ?4
                           WHERE plan = ?1 AND task = ?2 AND start_s = ?3 AND state = 'ok'";
                let reason = format!("{SPOOL_FULL}: its samples were dropped");
                let values = params![plan, task, start_s, reason];
                transaction.prepare_cached(sql)?.execute(values)?;
            }
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store mesh in", &error))?;
        Ok(kept.len())
    }

    /// Drops the oldest results that are not sent, so many at most: each leaves a gap with its
    /// reason. How many.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn spool_drops(&mut self, plan: &str, limit: usize) -> Result<usize, Failure> {
        let kept = self.spool_kept(plan, "1", limit)?;
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            for (task, start_s, id, _) in &kept {
                transaction.prepare_cached("DELETE FROM record WHERE id = ?1")?.execute([id])?;
                let sql = "DELETE FROM series WHERE plan = ?1 AND task = ?2 AND record = ?3";
                transaction.prepare_cached(sql)?.execute(params![plan, task, id])?;
                let sql = "UPDATE schedule_run SET state = 'lost', reason = ?4, record = NULL
                           WHERE plan = ?1 AND task = ?2 AND start_s = ?3";
                let reason = format!("{SPOOL_FULL}: its result was dropped");
                let values = params![plan, task, start_s, reason];
                transaction.prepare_cached(sql)?.execute(values)?;
            }
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store mesh in", &error))?;
        Ok(kept.len())
    }

    /// Stands for a disk without room: the file keeps the pages that it has.
    #[cfg(any(test, feature = "test-support"))]
    pub fn grows_no_more(&self) {
        let pages: i64 = self
            .connection
            .pragma_query_value(None, "page_count", |row| row.get(0))
            .expect("readable");
        let set =
            self.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
        set.expect("set");
    }

    fn spool_kept(&self, plan: &str, which: &str, limit: usize) -> Result<Vec<Kept>, Failure> {
        let sql = format!(
            "SELECT task, start_s, id, doc FROM schedule_run JOIN record ON id = record
             WHERE plan = ?1 AND sent = 0 AND state <> 'running' AND {which}
             ORDER BY start_s, task LIMIT ?2"
        );
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        query_rows(&self.connection, &sql, params![plan, limit], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_is_the_file_without_what_was_deleted() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("linerate.db");
        let used = || Store::open(&path).expect("a store").used_bytes().expect("readable");
        let file = || std::fs::metadata(&path).expect("it is there").len();
        let work = |sql: &str| {
            let store = Store::open(&path).expect("a store");
            store.connection.execute_batch(sql).expect("room");
        };
        work("CREATE TABLE filler (bytes BLOB); INSERT INTO filler VALUES (zeroblob(1000000))");
        let whole = used();
        // The last that closes the file takes its log in.
        assert_eq!(whole, file());
        work("DROP TABLE filler");
        assert!(used() + 1_000_000 <= whole, "{} of {whole}", used());
        assert_eq!(file(), whole, "the file keeps its pages");
    }
}
