//! The tables, and the steps from each version of them to the next.
//!
//! `PRAGMA user_version` holds the number of steps done. A step never changes once it was
//! released; what a later version needs is another step.

use std::path::Path;

use linerate_core::record::{Failure, Fault};
use rusqlite::{Connection, TransactionBehavior};

use super::fault;

/// One entry per version: what brings a store from the one before to it.
const STEPS: &[&str] = &[STEP_1, STEP_2];

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

/// What either end is called, and the user's labels: a history is searched by them. A document that
/// is no JSON keeps its row.
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

/// Brings the tables to this version, all steps or none.
pub(super) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), Failure> {
    let storage = |error: &rusqlite::Error| fault::storage("open store", path, error);
    let found = version(connection).map_err(|error| storage(&error))?;
    if check(found, path)? == STEPS.len() {
        return Ok(());
    }
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(|error| storage(&error))?;
    // Another process may have done the steps while this one waited for the lock.
    let found = check(version(&transaction).map_err(|error| storage(&error))?, path)?;
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
fn check(found: i64, path: &Path) -> Result<usize, Failure> {
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
