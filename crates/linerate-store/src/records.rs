//! Records in and out.

use linerate_core::record::{Failure, Fault, Record, RecordStatus};
use rusqlite::{Connection, OptionalExtension, Row, ToSql, TransactionBehavior, params};

use super::Store;
use super::figures::RecordFigures;

impl Store {
    /// Keeps a record; once this returns, it survives a crash. The same record twice is one row.
    ///
    /// A record for a cell of a study takes the cell from one that failed or was interrupted: the
    /// older record stays in the store and no longer counts for its run.
    /// # Errors
    /// One line when the file cannot be written, when the record's run is not in the store, or
    /// when its cell already has a good record.
    pub fn put_record(&mut self, record: &Record) -> Result<(), Failure> {
        let doc = linerate_core::tree::to_json(record).map_err(|error| {
            Failure::new(Fault::System, "write record", record.id.to_string(), error)
        })?;
        let id = record.id.to_string();
        let row = CellColumns::from_record(record)?;
        let held = self.insert(&id, record, &row, &doc).map_err(|error| {
            let foreign_key = rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY;
            match error.sqlite_error() {
                Some(code) if code.extended_code == foreign_key => Failure::new(
                    Fault::Usage,
                    "store record",
                    id.clone(),
                    format!("run {} is not in {}", row.run.unwrap_or(""), self.path.display()),
                ),
                _ => self.storage_failure("store record in", &error),
            }
        })?;
        match held {
            None => Ok(()),
            Some(held) => Err(Failure::new(
                Fault::Usage,
                "store record",
                id,
                format!("its cell already has record {held}"),
            )
            .advise("another process may be measuring the same run")),
        }
    }

    /// The record called `name`, as [`Store::find_by_name`] reads names.
    /// # Errors
    /// One line when there is no such record, when several start so, when it is a study run, or
    /// when it cannot be read.
    pub fn get(&self, name: &str) -> Result<Record, Failure> {
        let found = self.find_by_name(name)?;
        if found.is_run {
            let reason = "it is a study run, not a single result";
            return Err(Failure::new(Fault::Usage, "read", format!("'{name}'"), reason)
                .advise(format!("name one of its records: linerate history --run {}", found.id)));
        }
        self.record(&found.id)
    }

    /// The record of a whole identifier.
    /// # Errors
    /// One line when it cannot be read.
    pub fn record(&self, id: &str) -> Result<Record, Failure> {
        let sql = "SELECT doc FROM record WHERE id = ?1";
        let doc: String = self
            .connection
            .query_row(sql, [id], |row| row.get(0))
            .map_err(|error| self.storage_failure("read store", &error))?;
        parse(id, &doc)
    }

    /// The record of a whole identifier, if there is one.
    /// # Errors
    /// One line when the file or the record cannot be read.
    pub fn stored(&self, id: &str) -> Result<Option<Record>, Failure> {
        let sql = "SELECT doc FROM record WHERE id = ?1";
        let doc: Option<String> = self
            .connection
            .query_row(sql, [id], |row| row.get(0))
            .optional()
            .map_err(|error| self.storage_failure("read store", &error))?;
        doc.map(|doc| parse(id, &doc)).transpose()
    }

    /// The records that count for a run, in the order in which they were stored.
    /// # Errors
    /// One line when the file or one of the records cannot be read.
    pub fn run_records(&self, run: &str) -> Result<Vec<Record>, Failure> {
        let sql =
            "SELECT id, doc FROM record WHERE run = ?1 AND superseded_by IS NULL ORDER BY rowid";
        let pair = |row: &Row<'_>| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?));
        let docs = query_rows(&self.connection, sql, params![run], pair)
            .map_err(|error| self.storage_failure("read store", &error))?;
        docs.iter().map(|(id, doc)| parse(id, doc)).collect()
    }

    /// Writes the row; gives the record that holds the cell when it may not be replaced.
    fn insert(
        &mut self,
        id: &str,
        record: &Record,
        row: &CellColumns<'_>,
        doc: &str,
    ) -> rusqlite::Result<Option<String>> {
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        let known = "SELECT 1 FROM record WHERE id = ?1";
        if transaction.query_row(known, [id], |_| Ok(())).optional()?.is_some() {
            return Ok(None);
        }
        if let Some((held, replaceable)) = row.holder(&transaction)? {
            if !replaceable {
                return Ok(Some(held));
            }
            transaction
                .execute("UPDATE record SET superseded_by = ?1 WHERE id = ?2", params![id, held])?;
        }
        let figures = RecordFigures::from_record(record);
        transaction.execute(
            "INSERT INTO record (id, kind, started_at, status, name, study, run, topology, test,
                                 parameter, repetition, hosts, tags, doc, peer, rate_bps, loss,
                                 rtt_ns)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17,
                     ?18)",
            params![
                id,
                record.plan.kind_name(),
                record.started_at.to_string(),
                status(record.status),
                record.name,
                row.study,
                row.run,
                row.topology,
                row.test,
                row.parameter,
                row.repetition,
                serde_json::json!(record_hosts(record)).to_string(),
                serde_json::json!(record.tags).to_string(),
                doc,
                record.plan.host_names().next(),
                figures.rate_bps,
                figures.loss,
                figures.rtt_ns,
            ],
        )?;
        super::follow::follow(&transaction, record, id)?;
        transaction.commit()?;
        Ok(None)
    }
}

/// The columns of a study's cell; all null outside a study.
#[derive(Default)]
struct CellColumns<'a> {
    study: Option<&'a str>,
    run: Option<&'a str>,
    topology: Option<&'a str>,
    test: Option<&'a str>,
    parameter: Option<i64>,
    repetition: Option<u32>,
}

impl<'a> CellColumns<'a> {
    fn from_record(record: &'a Record) -> Result<Self, Failure> {
        let Some(cell) = &record.cell else { return Ok(Self::default()) };
        // SQLite counts in 63 bits and a sign.
        let parameter = i64::try_from(cell.parameter).map_err(|_| {
            let reason = format!("parameter {} is beyond 2^63", cell.parameter);
            Failure::new(Fault::Usage, "store record", record.id.to_string(), reason)
        })?;
        Ok(Self {
            study: Some(&cell.study),
            run: Some(&cell.run),
            topology: Some(&cell.topology),
            test: Some(&cell.test),
            parameter: Some(parameter),
            repetition: Some(cell.repetition),
        })
    }

    /// The record that holds this cell, and whether it may be replaced: only what failed or was
    /// interrupted may.
    fn holder(&self, connection: &Connection) -> rusqlite::Result<Option<(String, bool)>> {
        let sql = "SELECT id, status <> 'ok' FROM record
                   WHERE run = ?1 AND topology = ?2 AND test = ?3 AND parameter = ?4
                     AND repetition = ?5 AND superseded_by IS NULL";
        let values = params![self.run, self.topology, self.test, self.parameter, self.repetition];
        connection.query_row(sql, values, |row| Ok((row.get(0)?, row.get(1)?))).optional()
    }
}

/// Every row of a query.
pub(super) fn query_rows<T>(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Vec<T>> {
    connection.prepare_cached(sql)?.query_map(values, read)?.collect()
}

/// Names of the hosts of a record: as the user gave them, and the addresses of both ends.
fn record_hosts(record: &Record) -> Vec<&str> {
    let addresses = record.ends.iter().filter_map(|end| end.address.as_ref());
    record.plan.host_names().chain(addresses.map(String::as_str)).collect()
}

/// A record of a document that a store has.
pub(super) fn parse(id: &str, doc: &str) -> Result<Record, Failure> {
    let unreadable = |reason: String| {
        Failure::new(Fault::System, "read record", id, reason)
            .advise("use the linerate that wrote it")
    };
    Record::from_json(doc).map_err(unreadable)
}

const fn status(status: RecordStatus) -> &'static str {
    match status {
        RecordStatus::Ok => "ok",
        RecordStatus::Partial => "partial",
        RecordStatus::Error => "error",
        RecordStatus::Interrupted => "interrupted",
    }
}
