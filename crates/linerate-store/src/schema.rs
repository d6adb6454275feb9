//! The tables, and the steps from each version of them to the next.
//!
//! `PRAGMA user_version` holds the number of steps done. A step never changes once it was
//! released; what a later version needs is another step.

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use rusqlite::{Connection, TransactionBehavior};

use super::fault;

/// One entry per version: what brings a store from the one before to it.
const STEPS: &[&str] = &[STEP_1, STEP_2, STEP_3, STEP_4, STEP_5, STEP_6, STEP_7, STEP_8, STEP_9];

const STEP_1: &str = "
CREATE TABLE study_run (
    id          TEXT PRIMARY KEY NOT NULL,
    study       TEXT NOT NULL,
    plan        TEXT NOT NULL,
    started_at  TEXT NOT NULL,
    finished_at TEXT,
    state       TEXT NOT NULL,
    host        TEXT
) STRICT;
CREATE TABLE record (
    id            TEXT PRIMARY KEY NOT NULL,
    kind          TEXT NOT NULL,
    started_at    TEXT NOT NULL,
    status        TEXT NOT NULL,
    name          TEXT,
    study         TEXT,
    run           TEXT REFERENCES study_run (id),
    topology      TEXT,
    test          TEXT,
    parameter     INTEGER,
    repetition    INTEGER,
    superseded_by TEXT,
    doc           TEXT NOT NULL
) STRICT;
CREATE UNIQUE INDEX record_cell ON record (run, topology, test, parameter, repetition)
    WHERE run IS NOT NULL AND superseded_by IS NULL;
CREATE INDEX record_study ON record (study, id);
CREATE INDEX study_run_study ON study_run (study, id);
";

/// Names of both ends and the user's labels, by which a history is searched. A document that is no
/// JSON keeps its row.
const STEP_2: &str = "
ALTER TABLE record ADD COLUMN hosts TEXT;
ALTER TABLE record ADD COLUMN tags TEXT;
UPDATE record SET
    hosts = json_array(json_extract(doc, '$.plan.host'), json_extract(doc, '$.ends[0].address'),
                       json_extract(doc, '$.ends[1].address')),
    tags = json_extract(doc, '$.tags')
    WHERE json_valid(doc);
CREATE INDEX record_name ON record (name, id) WHERE name IS NOT NULL;
";

/// The figures of a list, and an index that has every column of it: a document of some kilobytes
/// lies before the columns of later steps, and would be read over for each line (SQLite's file
/// format §2.1).
const STEP_3: &str = "
ALTER TABLE record ADD COLUMN peer TEXT;
ALTER TABLE record ADD COLUMN rate_bps REAL;
ALTER TABLE record ADD COLUMN loss REAL;
ALTER TABLE record ADD COLUMN rtt_ns REAL;
UPDATE record SET
    peer = json_extract(doc, '$.plan.host'),
    rate_bps = (SELECT json_extract(value, '$.value') FROM json_each(doc, '$.summary')
                WHERE json_extract(value, '$.metric') = 'goodput_bps'
                  AND json_extract(value, '$.flow') IS NULL ORDER BY key LIMIT 1),
    loss = (SELECT json_extract(value, '$.value') FROM json_each(doc, '$.summary')
            WHERE json_extract(value, '$.metric') IN ('loss_ratio', 'datagram_loss_ratio')
              AND json_extract(value, '$.flow') IS NULL ORDER BY key LIMIT 1),
    rtt_ns = (SELECT json_extract(value, '$.value') FROM json_each(doc, '$.summary')
              WHERE (json_extract(value, '$.metric') = 'rtt_ns'
                     AND json_extract(value, '$.stat') = 'p50')
                 OR json_extract(value, '$.metric') = 'tcp_rtt_min_ns' ORDER BY key LIMIT 1)
    WHERE json_valid(doc);
CREATE INDEX record_line
    ON record (id, kind, started_at, status, name, peer, rate_bps, loss, rtt_ns)
    WHERE superseded_by IS NULL;
";

/// Schedules: plans, their runs, what is followed of their results, and what happened.
const STEP_4: &str = "
CREATE TABLE schedule (
    plan    TEXT PRIMARY KEY NOT NULL,
    text    TEXT NOT NULL,
    since_s INTEGER NOT NULL,
    dealt_s INTEGER NOT NULL
) STRICT;
CREATE TABLE schedule_run (
    plan    TEXT NOT NULL,
    task    TEXT NOT NULL,
    start_s INTEGER NOT NULL,
    why     TEXT NOT NULL,
    state   TEXT NOT NULL,
    reason  TEXT,
    record  TEXT,
    PRIMARY KEY (plan, task, start_s)
) STRICT, WITHOUT ROWID;
CREATE INDEX schedule_run_start ON schedule_run (plan, start_s);
CREATE TABLE series (
    plan   TEXT NOT NULL,
    task   TEXT NOT NULL,
    metric TEXT NOT NULL,
    at_s   REAL NOT NULL,
    value  REAL NOT NULL,
    record TEXT NOT NULL,
    PRIMARY KEY (plan, task, metric, at_s, record)
) STRICT, WITHOUT ROWID;
CREATE TABLE schedule_event (
    id     INTEGER PRIMARY KEY,
    plan   TEXT NOT NULL,
    task   TEXT NOT NULL,
    at_s   INTEGER NOT NULL,
    kind   TEXT NOT NULL,
    detail TEXT NOT NULL,
    told_s INTEGER
) STRICT;
CREATE INDEX schedule_event_at ON schedule_event (plan, at_s);
";

/// Meshes: who this host is in one, plans, tokens, agents, and the newest of each pair. A run is
/// sent once the hub's store has it.
const STEP_5: &str = "
ALTER TABLE schedule_run ADD COLUMN sent INTEGER NOT NULL DEFAULT 0;
CREATE INDEX schedule_run_unsent ON schedule_run (plan, start_s, task) WHERE sent = 0;
CREATE TABLE mesh_self (
    one    INTEGER PRIMARY KEY CHECK (one = 1),
    hub    TEXT NOT NULL,
    key    TEXT NOT NULL,
    secret TEXT NOT NULL,
    mesh   TEXT,
    agent  TEXT,
    starts INTEGER NOT NULL
) STRICT;
CREATE TABLE mesh_plan (
    mesh      TEXT NOT NULL,
    revision  INTEGER NOT NULL,
    text      TEXT NOT NULL,
    key       TEXT NOT NULL,
    signature TEXT NOT NULL,
    kept_s    INTEGER NOT NULL,
    PRIMARY KEY (mesh, revision)
) STRICT;
CREATE TABLE mesh_token (
    digest  TEXT PRIMARY KEY NOT NULL,
    mesh    TEXT NOT NULL,
    agent   TEXT NOT NULL,
    until_s INTEGER NOT NULL,
    used_by TEXT
) STRICT;
CREATE TABLE mesh_agent (
    mesh     TEXT NOT NULL,
    agent    TEXT NOT NULL,
    secret   TEXT NOT NULL UNIQUE,
    joined_s INTEGER NOT NULL,
    seen_s   INTEGER,
    instance TEXT,
    starts   INTEGER,
    revision INTEGER,
    waiting  INTEGER,
    ahead_s  REAL,
    double_s INTEGER,
    PRIMARY KEY (mesh, agent)
) STRICT;
CREATE TABLE mesh_cell (
    mesh   TEXT NOT NULL,
    task   TEXT NOT NULL,
    agent  TEXT NOT NULL,
    peer   TEXT NOT NULL,
    last_s INTEGER NOT NULL,
    state  TEXT NOT NULL,
    reason TEXT,
    good_s INTEGER,
    metric TEXT,
    value  REAL,
    record TEXT,
    PRIMARY KEY (mesh, task, agent, peer)
) STRICT, WITHOUT ROWID;
";

/// Alerts that are to be handed on, with each output that is to have them, and what a hub has found
/// in the series of its mesh: until when it has looked, and incidents; its runs by how they ended.
const STEP_6: &str = "
CREATE TABLE alert (
    id       TEXT PRIMARY KEY NOT NULL,
    owner    TEXT NOT NULL,
    at_s     INTEGER NOT NULL,
    sentence TEXT NOT NULL,
    doc      TEXT NOT NULL
) STRICT;
CREATE INDEX alert_at ON alert (at_s);
CREATE TABLE alert_out (
    alert  TEXT NOT NULL REFERENCES alert (id) ON DELETE CASCADE,
    output TEXT NOT NULL,
    tries  INTEGER NOT NULL DEFAULT 0,
    next_s INTEGER,
    told_s INTEGER,
    reason TEXT,
    PRIMARY KEY (alert, output)
) STRICT, WITHOUT ROWID;
CREATE INDEX alert_out_due ON alert_out (output, next_s) WHERE next_s IS NOT NULL;
CREATE TABLE mesh_watched (
    plan TEXT NOT NULL,
    task TEXT NOT NULL,
    at_s REAL NOT NULL,
    PRIMARY KEY (plan, task)
) STRICT, WITHOUT ROWID;
CREATE TABLE mesh_incident (
    id       TEXT PRIMARY KEY NOT NULL,
    mesh     TEXT NOT NULL,
    opened_s INTEGER NOT NULL,
    until_s  INTEGER,
    doc      TEXT NOT NULL
) STRICT;
CREATE INDEX mesh_incident_open ON mesh_incident (mesh, until_s);
CREATE TABLE mesh_outcome (
    mesh    TEXT NOT NULL,
    agent   TEXT NOT NULL,
    outcome TEXT NOT NULL,
    runs    INTEGER NOT NULL,
    PRIMARY KEY (mesh, agent, outcome)
) STRICT, WITHOUT ROWID;
";

/// Bookings of a mesh, and what each occupies: no two rows of one thing overlap, whoever writes
/// them. Of an agent, how many of its runs the hub's store had.
const STEP_7: &str = "
ALTER TABLE mesh_self ADD COLUMN hub_runs INTEGER NOT NULL DEFAULT 0;
CREATE TABLE mesh_booking (
    id      TEXT PRIMARY KEY NOT NULL,
    mesh    TEXT NOT NULL,
    agent   TEXT NOT NULL,
    task    TEXT NOT NULL,
    peer    TEXT NOT NULL,
    start_s INTEGER NOT NULL,
    until_s INTEGER NOT NULL CHECK (until_s > start_s),
    why     TEXT NOT NULL,
    asked_s INTEGER NOT NULL,
    UNIQUE (mesh, agent, task, start_s)
) STRICT;
CREATE INDEX mesh_booking_start ON mesh_booking (mesh, start_s);
CREATE TABLE mesh_occupied (
    mesh    TEXT NOT NULL,
    thing   TEXT NOT NULL,
    start_s INTEGER NOT NULL,
    until_s INTEGER NOT NULL,
    booking TEXT NOT NULL REFERENCES mesh_booking (id) ON DELETE CASCADE,
    PRIMARY KEY (mesh, thing, start_s)
) STRICT, WITHOUT ROWID;
CREATE INDEX mesh_occupied_booking ON mesh_occupied (booking);
CREATE TRIGGER mesh_occupied_once BEFORE INSERT ON mesh_occupied
WHEN EXISTS (SELECT 1 FROM mesh_occupied AS other
             WHERE other.mesh = NEW.mesh AND other.thing = NEW.thing
               AND other.start_s < NEW.until_s AND other.until_s > NEW.start_s)
BEGIN
    SELECT RAISE(ABORT, 'occupied');
END;
";

/// Distributions of what schedules measure, by hour, by day and as a whole, which add up.
const STEP_8: &str = "
CREATE TABLE sketch (
    plan   TEXT NOT NULL,
    task   TEXT NOT NULL,
    metric TEXT NOT NULL,
    step_s INTEGER NOT NULL,
    at_s   INTEGER NOT NULL,
    sketch BLOB NOT NULL,
    PRIMARY KEY (plan, task, metric, step_s, at_s)
) STRICT, WITHOUT ROWID;
CREATE INDEX sketch_whole ON sketch (plan, task, metric) WHERE step_s = 0;
";

/// The round trip of a ping in a list is the one of its headline: by the kernel's clock where there
/// is such a median.
const STEP_9: &str = "
UPDATE record SET rtt_ns = coalesce(
    (SELECT json_extract(value, '$.value') FROM json_each(doc, '$.summary')
     WHERE json_extract(value, '$.metric') = 'rtt_kernel_ns'
       AND json_extract(value, '$.stat') = 'p50'
       AND json_extract(value, '$.flow') IS NULL ORDER BY key LIMIT 1), rtt_ns)
    WHERE json_valid(doc);
";

/// Brings the tables to this version, all steps or none.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    let storage = |error: &rusqlite::Error| fault::storage("open store", path, error);
    let found = version(connection).map_err(|error| storage(&error))?;
    if check_version(found, path)? == STEPS.len() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| storage(&error))?;
    // Another process may have done the steps while this one waited for the lock.
    let found = check_version(version(&transaction).map_err(|error| storage(&error))?, path)?;
    for step in STEPS.iter().skip(found) {
        transaction.execute_batch(step).map_err(|error| storage(&error))?;
    }
    let done = i64::try_from(STEPS.len()).expect("a handful of steps");
    transaction.pragma_update(None, "user_version", done).map_err(|error| storage(&error))?;
    transaction.commit().map_err(|error| storage(&error))
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The steps already done; a number beyond ours is a newer program's.
fn check_version(found: i64, path: &Path) -> Result<usize, Failure> {
    let newest = STEPS.len();
    usize::try_from(found).ok().filter(|&found| found <= newest).ok_or_else(|| {
        Failure::new(
            Fault::System,
            "open store",
            path.display().to_string(),
            format!("its tables are of version {found}; this linerate knows up to {newest}"),
        )
        .advise("use the newer linerate, or name another file with --store")
    })
}
