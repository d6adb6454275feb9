//! Bookings of a mesh: runs beside its calendar. What a booking occupies is in a table of its own,
//! into which the file itself takes nothing that overlaps: of many who ask at once for the same
//! time one has it.

use linerate_core::mesh::{BookedRun, Booking, BookingWhy, HOUR_S};
use linerate_core::record::Failure;
use rusqlite::{Connection, OptionalExtension, Row, TransactionBehavior, params};

use super::Store;
use super::records::query_rows;
use super::word::StoredWord;

/// Seconds for which bookings are kept.
const KEPT_S: i64 = 7 * 86_400;

/// A booking that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBooking {
    /// Name of the mesh.
    pub mesh: String,
    /// The agent that is to run it.
    pub agent: String,
    /// Its command, `COMMAND/AGENT` of the other one, and its time.
    pub booking: Booking,
    /// Hosts and uplinks that the run occupies, from its begin until `margin_s` after its end;
    /// empty for a run that may overlap with all others.
    pub things: Vec<String>,
    /// Seconds that have to lie between it and another.
    pub margin_s: i64,
    /// Seconds that either agent may be booked for in each hour of UTC.
    pub seconds_an_hour: i64,
    /// Purpose of the run: `adhoc`, `confirm` or `survey`.
    pub why: BookingWhy,
    /// Time of the request, seconds since 1970-01-01 UTC.
    pub asked_s: i64,
}

/// Answer of a store to a booking that is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Booked {
    /// The booking is stored, and its time is taken.
    Kept,
    /// Something of it is occupied, until a time at least: a later begin may be free.
    Taken {
        /// Seconds since 1970-01-01 UTC.
        until_s: i64,
    },
    /// The hour of one of its agents is spent: the next begins then.
    Spent {
        /// Seconds since 1970-01-01 UTC.
        until_s: i64,
    },
}

impl Store {
    /// Keeps a booking, all of it or nothing. No two that are kept ever occupy one thing at once,
    /// whoever asks beside this and from whatever process: the database refuses it, not this
    /// program. Nor has an agent more in an hour than it may.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn mesh_books(&mut self, asked: &NewBooking) -> Result<Booked, Failure> {
        let work = |store: &mut Self| {
            let begin = TransactionBehavior::Immediate;
            let transaction = store.connection.transaction_with_behavior(begin)?;
            let start_s = asked.booking.start_s;
            if let Some(until_s) = occupied(&transaction, asked)? {
                return Ok(Booked::Taken { until_s });
            }
            if is_spent(&transaction, asked)? {
                return Ok(Booked::Spent { until_s: (start_s.div_euclid(HOUR_S) + 1) * HOUR_S });
            }
            insert_booking(&transaction, asked)?;
            let old = "DELETE FROM mesh_booking WHERE mesh = ?1 AND until_s < ?2";
            transaction.execute(old, params![asked.mesh, asked.asked_s - KEPT_S])?;
            transaction.commit()?;
            Ok(Booked::Kept)
        };
        work(self).map_err(|error: rusqlite::Error| self.storage_failure("store mesh in", &error))
    }

    /// Bookings of an agent that begin at a time or later and of which the store has no run, the
    /// first first.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_bookings_open(
        &self,
        mesh: &str,
        agent: &str,
        since_s: i64,
    ) -> Result<Vec<Booking>, Failure> {
        let sql = "SELECT id, task, start_s, until_s - start_s FROM mesh_booking AS booking
                   WHERE mesh = ?1 AND agent = ?2 AND start_s >= ?4
                     AND NOT EXISTS (SELECT 1 FROM schedule_run AS run
                                     WHERE run.plan = ?3 AND run.task = booking.task
                                       AND run.start_s = booking.start_s)
                   ORDER BY start_s, task LIMIT ?5";
        let plan = format!("{mesh}/{agent}");
        // An hour's seconds are no more than some hundred of the shortest slots.
        let values = params![mesh, agent, plan, since_s, 1000];
        query_rows(&self.connection, sql, values, booking)
            .map_err(|error| self.storage_failure("read store", &error))
    }

    /// Bookings of a mesh that begin at a time or later, the newest first, each with how it ended;
    /// none where the file has no table for them yet.
    /// # Errors
    /// One line when the file cannot be read.
    pub fn mesh_bookings(&self, mesh: &str, since_s: i64) -> Result<Vec<BookedRun>, Failure> {
        let known = "SELECT count(*) FROM sqlite_schema WHERE name = 'mesh_booking'";
        let known: rusqlite::Result<i64> =
            self.connection.query_row(known, params![], |row| row.get(0));
        if known.map_err(|error| self.storage_failure("read store", &error))? == 0 {
            return Ok(Vec::new());
        }
        let sql = "SELECT id, booking.task, booking.start_s, until_s - booking.start_s, agent,
                          booking.why, asked_s, state, reason, record
                   FROM mesh_booking AS booking
                   LEFT JOIN schedule_run AS run ON run.plan = mesh || '/' || agent
                        AND run.task = booking.task AND run.start_s = booking.start_s
                   WHERE mesh = ?1 AND booking.start_s >= ?2
                   ORDER BY booking.start_s DESC, id DESC LIMIT ?3";
        let read = |row: &Row<'_>| {
            Ok(BookedRun {
                booking: booking(row)?,
                agent: row.get(4)?,
                why: row.get::<_, StoredWord<_>>(5)?.0,
                asked_s: row.get(6)?,
                state: row.get::<_, Option<StoredWord<_>>>(7)?.map(|StoredWord(state)| state),
                reason: row.get(8)?,
                record: row.get(9)?,
            })
        };
        query_rows(&self.connection, sql, params![mesh, since_s, 1000], read)
            .map_err(|error| self.storage_failure("read store", &error))
    }
}

fn booking(row: &Row<'_>) -> rusqlite::Result<Booking> {
    Ok(Booking { id: row.get(0)?, task: row.get(1)?, start_s: row.get(2)?, takes_s: row.get(3)? })
}

/// Time at which a booking no longer occupies its hosts and uplinks, seconds since 1970-01-01 UTC.
const fn free_s(asked: &NewBooking) -> i64 {
    asked.booking.start_s + asked.booking.takes_s + asked.margin_s
}

/// Until when the latest of those that are in its way occupies something of it.
fn occupied(connection: &Connection, asked: &NewBooking) -> rusqlite::Result<Option<i64>> {
    let sql = "SELECT max(until_s) FROM mesh_occupied
               WHERE mesh = ?1 AND thing = ?2 AND start_s < ?4 AND until_s > ?3";
    let mut latest = None;
    for thing in &asked.things {
        let values = params![asked.mesh, thing, asked.booking.start_s, free_s(asked)];
        let found: Option<i64> =
            connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
        latest = latest.max(found);
    }
    // The same run, of the same agents: its name is taken, too.
    let sql = "SELECT until_s FROM mesh_booking
               WHERE mesh = ?1 AND agent = ?2 AND task = ?3 AND start_s < ?5 AND until_s > ?4
               ORDER BY until_s DESC LIMIT 1";
    let Booking { task, start_s, .. } = &asked.booking;
    let values = params![asked.mesh, asked.agent, task, start_s, free_s(asked)];
    let same: Option<i64> =
        connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()?;
    Ok(latest.max(same))
}

/// Tells whether one of its agents has been given too much of the hour already.
fn is_spent(connection: &Connection, asked: &NewBooking) -> rusqlite::Result<bool> {
    let sql = "SELECT coalesce(sum(until_s - start_s), 0) FROM mesh_booking
               WHERE mesh = ?1 AND (agent = ?2 OR peer = ?2) AND start_s >= ?3 AND start_s < ?4";
    let hour_s = asked.booking.start_s.div_euclid(HOUR_S) * HOUR_S;
    for agent in [asked.agent.as_str(), peer_name(&asked.booking)] {
        let values = params![asked.mesh, agent, hour_s, hour_s + HOUR_S];
        let spent: i64 = connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))?;
        if spent + asked.booking.takes_s > asked.seconds_an_hour {
            return Ok(true);
        }
    }
    Ok(false)
}

fn peer_name(booking: &Booking) -> &str {
    booking.task.split_once('/').map_or("", |(_, peer)| peer)
}

fn insert_booking(connection: &Connection, asked: &NewBooking) -> rusqlite::Result<()> {
    let Booking { id, task, start_s, takes_s } = &asked.booking;
    let sql =
        "INSERT INTO mesh_booking (id, mesh, agent, task, peer, start_s, until_s, why, asked_s)
               VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
    let NewBooking { mesh, agent, why, asked_s, .. } = asked;
    let (peer, until_s) = (peer_name(&asked.booking), start_s + takes_s);
    let values = params![id, mesh, agent, task, peer, start_s, until_s, why.name(), asked_s];
    connection.prepare_cached(sql)?.execute(values)?;
    let sql = "INSERT INTO mesh_occupied (mesh, thing, start_s, until_s, booking)
               VALUES (?1, ?2, ?3, ?4, ?5)";
    for thing in &asked.things {
        let values = params![mesh, thing, start_s, free_s(asked), id];
        connection.prepare_cached(sql)?.execute(values)?;
    }
    Ok(())
}
