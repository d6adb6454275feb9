//! Bookings in PostgreSQL: an exclusion constraint (btree_gist) refuses what overlaps, so that of
//! many who ask at once for the same time one has it.

use std::collections::{BTreeMap, BTreeSet};

use linerate_core::mesh::{BookedRun, Booking, HOUR_S};
use linerate_core::record::Failure;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Error, Row, Transaction};

use super::PostgresStore;
use super::tables::{READ, WRITE};
use crate::word::StoredWord;
use crate::{Booked, NewBooking};

/// Tries of one that is refused by what is not seen yet.
const TRIES: usize = 10;
/// Bookings are kept for so long, seconds.
const KEPT_S: i64 = 7 * 86_400;

impl PostgresStore {
    /// Keeps a booking, all of it or nothing.
    pub(super) fn keep_booking(&mut self, asked: &NewBooking) -> Result<Booked, Failure> {
        for _ in 0..TRIES {
            let done = self.with_client(WRITE, async |client| {
                let transaction = client.transaction().await?;
                // An agent's hour is counted by one at a time, whoever it is that asks.
                let mut agents = [asked.agent.as_str(), peer_name(&asked.booking)];
                agents.sort_unstable();
                let lock = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))";
                for agent in agents {
                    let name = format!("mesh booking {} {agent}", asked.mesh);
                    transaction.execute(lock, &[&name]).await?;
                }
                if let Some(until_s) = occupied(&transaction, asked).await? {
                    return Ok(Some(Booked::Taken { until_s }));
                }
                if is_spent(&transaction, asked, &agents).await? {
                    let hour = asked.booking.start_s.div_euclid(HOUR_S);
                    return Ok(Some(Booked::Spent { until_s: (hour + 1) * HOUR_S }));
                }
                match insert_booking(&transaction, asked).await {
                    Ok(()) => {
                        transaction.commit().await?;
                        Ok(Some(Booked::Kept))
                    }
                    // Somebody was there between the look and this: a site's or an uplink's time is
                    // asked for by others than these agents.
                    Err(error) if is_refused(&error) => Ok(None),
                    Err(error) => Err(error),
                }
            })?;
            if let Some(booked) = done {
                return Ok(booked);
            }
        }
        Ok(Booked::Taken { until_s: asked.booking.start_s + 1 })
    }

    /// Bookings of agents without a run.
    pub(super) fn open_bookings(
        &mut self,
        mesh: &str,
        agents: &BTreeSet<&str>,
        since_s: i64,
    ) -> Result<BTreeMap<String, Vec<Booking>>, Failure> {
        self.with_client(READ, async |client| {
            let some: Vec<&str> = agents.iter().copied().collect();
            let sql = "SELECT id, task, start_s, until_s - start_s, agent
                       FROM mesh_booking AS booking
                       WHERE mesh = $1 AND agent = ANY($2) AND start_s >= $3
                         AND NOT EXISTS (SELECT 1 FROM mesh_path JOIN mesh_result USING (path)
                                         WHERE mesh_path.mesh = $1
                                           AND mesh_path.agent = booking.agent
                                           AND mesh_path.task = booking.task
                                           AND mesh_result.start_s = booking.start_s)
                       ORDER BY start_s, task";
            let mut found: BTreeMap<String, Vec<Booking>> = BTreeMap::new();
            for row in client.query(sql, &[&mesh, &some, &since_s]).await? {
                found.entry(row.get(4)).or_default().push(booking(&row));
            }
            Ok(found)
        })
    }

    /// Bookings of a mesh with how they ended.
    pub(super) fn all_bookings(
        &mut self,
        mesh: &str,
        since_s: i64,
    ) -> Result<Vec<BookedRun>, Failure> {
        self.with_client(READ, async |client| {
            let sql = "SELECT id, b.task, b.start_s, until_s - b.start_s, b.agent, b.why, asked_s,
                              state, reason, record
                       FROM mesh_booking AS b
                       LEFT JOIN mesh_path AS p
                            ON p.mesh = b.mesh AND p.agent = b.agent AND p.task = b.task
                       LEFT JOIN mesh_result AS r ON r.path = p.path AND r.start_s = b.start_s
                       WHERE b.mesh = $1 AND b.start_s >= $2
                       ORDER BY b.start_s DESC, id DESC LIMIT 1000";
            let read = |row: &Row| -> Result<BookedRun, Error> {
                Ok(BookedRun {
                    booking: booking(row),
                    agent: row.get(4),
                    why: row.try_get::<_, StoredWord<_>>(5)?.0,
                    asked_s: row.get(6),
                    state: row
                        .try_get::<_, Option<StoredWord<_>>>(7)?
                        .map(|StoredWord(state)| state),
                    reason: row.get(8),
                    record: row.get(9),
                })
            };
            client.query(sql, &[&mesh, &since_s]).await?.iter().map(read).collect()
        })
    }
}

fn is_refused(error: &Error) -> bool {
    let others = [SqlState::EXCLUSION_VIOLATION, SqlState::T_R_DEADLOCK_DETECTED];
    error.code().is_some_and(|code| others.contains(code))
}

fn peer_name(booking: &Booking) -> &str {
    booking.task.split_once('/').map_or("", |(_, peer)| peer)
}

fn booking(row: &Row) -> Booking {
    Booking { id: row.get(0), task: row.get(1), start_s: row.get(2), takes_s: row.get(3) }
}

/// Until when something of it is occupied.
async fn occupied(transaction: &Transaction<'_>, asked: &NewBooking) -> Result<Option<i64>, Error> {
    let NewBooking { mesh, agent, booking, things, margin_s, .. } = asked;
    let sql = "SELECT max(until_s) FROM (
                   SELECT until_s FROM mesh_occupied
                   WHERE mesh = $1 AND thing = ANY($2)
                     AND int8range(start_s, until_s) && int8range($3, $4)
                   UNION ALL
                   SELECT until_s FROM mesh_booking
                   WHERE mesh = $1 AND agent = $5 AND task = $6
                     AND int8range(start_s, until_s) && int8range($3, $4)) AS near";
    let until_s = booking.start_s + booking.takes_s + margin_s;
    let row = transaction
        .query_one(sql, &[mesh, things, &booking.start_s, &until_s, agent, &booking.task])
        .await?;
    Ok(row.get(0))
}

/// True where the booking would exceed the seconds that one of its agents may be booked for in
/// that hour.
async fn is_spent(
    transaction: &Transaction<'_>,
    asked: &NewBooking,
    agents: &[&str; 2],
) -> Result<bool, Error> {
    let hour_s = asked.booking.start_s.div_euclid(HOUR_S) * HOUR_S;
    let sql = "SELECT coalesce(sum(until_s - start_s), 0)::bigint FROM mesh_booking
               WHERE mesh = $1 AND start_s >= $2 AND start_s < $3 AND $4 IN (agent, peer)";
    for agent in agents {
        let values: [&(dyn ToSql + Sync); 4] = [&asked.mesh, &hour_s, &(hour_s + HOUR_S), agent];
        let spent: i64 = transaction.query_one(sql, &values).await?.get(0);
        if spent + asked.booking.takes_s > asked.seconds_an_hour {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn insert_booking(transaction: &Transaction<'_>, asked: &NewBooking) -> Result<(), Error> {
    let NewBooking { mesh, agent, booking, things, margin_s, why, asked_s, .. } = asked;
    let end_s = booking.start_s + booking.takes_s;
    let sql = "INSERT INTO mesh_booking
                   (id, mesh, agent, task, peer, start_s, until_s, why, asked_s)
               VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    let peer = peer_name(&asked.booking);
    let values: [&(dyn ToSql + Sync); 9] = [
        &booking.id,
        mesh,
        agent,
        &booking.task,
        &peer,
        &booking.start_s,
        &end_s,
        &why.name(),
        asked_s,
    ];
    transaction.execute(sql, &values).await?;
    let sql = "INSERT INTO mesh_occupied (mesh, thing, start_s, until_s, booking)
               SELECT $1, thing, $3, $4, $5 FROM unnest($2::text[]) AS thing ORDER BY thing";
    let until_s = end_s + margin_s;
    let values: [&(dyn ToSql + Sync); 5] = [mesh, things, &booking.start_s, &until_s, &booking.id];
    transaction.execute(sql, &values).await?;
    let old = "DELETE FROM mesh_booking WHERE mesh = $1 AND until_s < $2";
    transaction.execute(old, &[mesh, &(asked_s - KEPT_S)]).await.map(drop)
}
