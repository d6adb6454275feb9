//! The outbox: alerts, and which output still has to get each.

use linerate_core::record::Failure;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::Store;

/// Alerts are kept for a month, seconds.
pub(super) const KEPT_S: i64 = 30 * 86_400;

/// An alert that is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewAlert {
    /// Its identifier, by which a receiver tells a second copy.
    pub id: String,
    /// When it was made, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// The alert in one sentence, for people.
    pub sentence: String,
    /// The whole alert as JSON, for programs.
    pub json: String,
}

/// An alert that an output is to get.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DueAlert {
    /// Identifier of the alert, by which a receiver tells a second copy.
    pub id: String,
    /// When it was made, seconds since 1970-01-01 UTC.
    pub at_s: i64,
    /// The alert in one sentence, for people.
    pub sentence: String,
    /// The whole alert as JSON, for programs.
    pub json: String,
    /// Number of failed attempts to deliver the alert to the output.
    pub tries: u32,
}

/// Outbox of alerts: those that are still to be delivered to their outputs. Times are seconds since
/// 1970-01-01 UTC; each call fails with one line where the store cannot be read or written.
pub trait Outbox {
    /// The oldest alert of an owner that an output is to get now.
    /// # Errors
    /// See [`Outbox`].
    fn alert_due(
        &mut self,
        owner: &str,
        output: &str,
        now_s: i64,
    ) -> Result<Option<DueAlert>, Failure>;

    /// Notes that an output has taken an alert.
    /// # Errors
    /// See [`Outbox`].
    fn alert_told(&mut self, id: &str, output: &str, now_s: i64) -> Result<(), Failure>;

    /// Notes that an output did not take an alert, why, and when it is tried again; without
    /// `next_s` it never is.
    /// # Errors
    /// See [`Outbox`].
    fn alert_failed(
        &mut self,
        id: &str,
        output: &str,
        next_s: Option<i64>,
        reason: &str,
    ) -> Result<(), Failure>;

    /// Alerts of an owner that an output has not got, of those that were made at a time or later,
    /// with that output and why not, the oldest first; those that were given up among them.
    /// # Errors
    /// See [`Outbox`].
    fn alerts_waiting(
        &mut self,
        owner: &str,
        since_s: i64,
    ) -> Result<Vec<(String, Option<String>)>, Failure>;
}

/// Writes an alert for each output, within the caller's transaction.
pub(super) fn insert_alert(
    connection: &Connection,
    owner: &str,
    alert: &NewAlert,
    outputs: &[String],
) -> rusqlite::Result<()> {
    let old = "DELETE FROM alert WHERE at_s < ?1";
    connection.prepare_cached(old)?.execute(params![alert.at_s - KEPT_S])?;
    let NewAlert { id, at_s, sentence, json } = alert;
    let new = "INSERT INTO alert (id, owner, at_s, sentence, doc) VALUES (?1, ?2, ?3, ?4, ?5)";
    connection.prepare_cached(new)?.execute(params![id, owner, at_s, sentence, json])?;
    let to = "INSERT INTO alert_out (alert, output, next_s) VALUES (?1, ?2, ?3)";
    for output in outputs {
        connection.prepare_cached(to)?.execute(params![id, output, at_s])?;
    }
    Ok(())
}

impl Store {
    /// Makes the alert of a schedule's event, for each output; with it the event is told.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn event_alerts(
        &mut self,
        event: i64,
        owner: &str,
        alert: &NewAlert,
        outputs: &[String],
    ) -> Result<(), Failure> {
        let work = |store: &mut Self| {
            let transaction = store.connection.transaction()?;
            insert_alert(&transaction, owner, alert, outputs)?;
            let told = "UPDATE schedule_event SET told_s = ?2 WHERE id = ?1";
            transaction.execute(told, params![event, alert.at_s])?;
            transaction.commit()
        };
        work(self).map_err(|error| self.storage_failure("store alert in", &error))
    }
}

impl Outbox for Store {
    fn alert_due(
        &mut self,
        owner: &str,
        output: &str,
        now_s: i64,
    ) -> Result<Option<DueAlert>, Failure> {
        let sql = "SELECT id, at_s, sentence, doc, tries FROM alert_out JOIN alert ON alert = id
                   WHERE output = ?2 AND next_s <= ?3 AND owner = ?1
                   ORDER BY at_s, id LIMIT 1";
        let read = |row: &Row<'_>| {
            Ok(DueAlert {
                id: row.get(0)?,
                at_s: row.get(1)?,
                sentence: row.get(2)?,
                json: row.get(3)?,
                tries: row.get(4)?,
            })
        };
        let found = self.connection.prepare_cached(sql).and_then(|mut statement| {
            statement.query_row(params![owner, output, now_s], read).optional()
        });
        found.map_err(|error| self.storage_failure("read store", &error))
    }

    fn alert_told(&mut self, id: &str, output: &str, now_s: i64) -> Result<(), Failure> {
        let sql = "UPDATE alert_out SET told_s = ?3, next_s = NULL, reason = NULL
                   WHERE alert = ?1 AND output = ?2";
        let done = self.connection.execute(sql, params![id, output, now_s]);
        done.map(drop).map_err(|error| self.storage_failure("store alert in", &error))
    }

    fn alert_failed(
        &mut self,
        id: &str,
        output: &str,
        next_s: Option<i64>,
        reason: &str,
    ) -> Result<(), Failure> {
        let sql = "UPDATE alert_out SET tries = tries + 1, next_s = ?3, reason = ?4
                   WHERE alert = ?1 AND output = ?2";
        let done = self.connection.execute(sql, params![id, output, next_s, reason]);
        done.map(drop).map_err(|error| self.storage_failure("store alert in", &error))
    }

    fn alerts_waiting(
        &mut self,
        owner: &str,
        since_s: i64,
    ) -> Result<Vec<(String, Option<String>)>, Failure> {
        let sql = "SELECT output, reason FROM alert_out JOIN alert ON alert = id
                   WHERE owner = ?1 AND told_s IS NULL AND at_s >= ?2 ORDER BY at_s, id";
        let read = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?));
        super::records::query_rows(&self.connection, sql, params![owner, since_s], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }
}
