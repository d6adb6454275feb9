//! The tables of a mesh in PostgreSQL, and the steps from each version of them to the next.
//!
//! `mesh_version` has the number of steps done. A step never changes once it was released; what a
//! later version needs is another step.

use linerate_core::record::{Failure, Fault};
use tokio_postgres::Client;

use super::{PooledConnection, database_failure};

/// One entry per version: what brings a database from the one before to it.
const STEPS: &[&str] = &[STEP_1, STEP_2, STEP_3];

/// Whoever holds it changes tables: steps, and partitions.
pub(super) const LOCK: i64 = 0x006c_696e_6572_6174;

/// A path is what one agent measures of another by one task; its number keeps results narrow.
const STEP_1: &str = "
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE TABLE mesh_plan (
    mesh      text NOT NULL,
    revision  bigint NOT NULL,
    text      text NOT NULL,
    key       text NOT NULL,
    signature text NOT NULL,
    kept_s    bigint NOT NULL,
    PRIMARY KEY (mesh, revision)
);
CREATE TABLE mesh_token (
    digest  text PRIMARY KEY,
    mesh    text NOT NULL,
    agent   text NOT NULL,
    until_s bigint NOT NULL,
    used_by text
);
CREATE TABLE mesh_agent (
    mesh     text NOT NULL,
    agent    text NOT NULL,
    secret   text NOT NULL UNIQUE,
    joined_s bigint NOT NULL,
    seen_s   bigint,
    instance text,
    starts   bigint,
    revision bigint,
    waiting  bigint,
    ahead_s  double precision,
    double_s bigint,
    PRIMARY KEY (mesh, agent)
);
CREATE TABLE mesh_path (
    path  integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    mesh  text NOT NULL,
    agent text NOT NULL,
    task  text NOT NULL,
    UNIQUE (mesh, agent, task)
);
CREATE TABLE mesh_result (
    path    integer NOT NULL,
    start_s bigint NOT NULL,
    why     text NOT NULL,
    state   text NOT NULL,
    value   double precision,
    metric  text,
    reason  text,
    record  text,
    doc     text,
    PRIMARY KEY (path, start_s)
) PARTITION BY RANGE (start_s);
CREATE TABLE mesh_result_other PARTITION OF mesh_result DEFAULT;
CREATE TABLE mesh_latest (
    path   integer PRIMARY KEY REFERENCES mesh_path (path),
    last_s bigint NOT NULL,
    state  text NOT NULL,
    reason text,
    good_s bigint,
    metric text,
    value  double precision,
    record text
);
CREATE TABLE mesh_outcome (
    mesh    text NOT NULL,
    agent   text NOT NULL,
    outcome text NOT NULL,
    runs    bigint NOT NULL,
    PRIMARY KEY (mesh, agent, outcome)
);
CREATE TABLE mesh_booking (
    id      text PRIMARY KEY,
    mesh    text NOT NULL,
    agent   text NOT NULL,
    task    text NOT NULL,
    peer    text NOT NULL,
    start_s bigint NOT NULL,
    until_s bigint NOT NULL CHECK (until_s > start_s),
    why     text NOT NULL,
    asked_s bigint NOT NULL,
    EXCLUDE USING gist (mesh WITH =, agent WITH =, task WITH =,
                        int8range(start_s, until_s) WITH &&)
);
CREATE INDEX mesh_booking_start ON mesh_booking (mesh, start_s);
CREATE TABLE mesh_occupied (
    mesh    text NOT NULL,
    thing   text NOT NULL,
    start_s bigint NOT NULL,
    until_s bigint NOT NULL,
    booking text NOT NULL REFERENCES mesh_booking (id) ON DELETE CASCADE,
    EXCLUDE USING gist (mesh WITH =, thing WITH =, int8range(start_s, until_s) WITH &&)
);
CREATE INDEX mesh_occupied_booking ON mesh_occupied (booking);
";

/// Tables of a hub's watch: changes, incidents and alerts. The values of a run that are part of a
/// series are in the run's row, as JSON, figure by figure: a row for each value would make many of
/// one. Runs of version 1 have none.
const STEP_2: &str = "
ALTER TABLE mesh_result ADD COLUMN followed text;
CREATE TABLE mesh_watched (
    path integer PRIMARY KEY REFERENCES mesh_path (path),
    at_s double precision NOT NULL
);
CREATE TABLE mesh_event (
    id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plan   text NOT NULL,
    task   text NOT NULL,
    at_s   bigint NOT NULL,
    kind   text NOT NULL,
    detail jsonb NOT NULL
);
CREATE INDEX mesh_event_plan ON mesh_event (plan, at_s);
CREATE TABLE mesh_incident (
    id       text PRIMARY KEY,
    mesh     text NOT NULL,
    opened_s bigint NOT NULL,
    until_s  bigint,
    doc      text NOT NULL
);
CREATE INDEX mesh_incident_until ON mesh_incident (mesh, until_s);
CREATE TABLE mesh_alert (
    id       text PRIMARY KEY,
    owner    text NOT NULL,
    at_s     bigint NOT NULL,
    sentence text NOT NULL,
    doc      text NOT NULL
);
CREATE INDEX mesh_alert_at ON mesh_alert (at_s);
CREATE TABLE mesh_alert_out (
    alert  text NOT NULL REFERENCES mesh_alert (id) ON DELETE CASCADE,
    output text NOT NULL,
    tries  integer NOT NULL DEFAULT 0,
    next_s bigint,
    told_s bigint,
    reason text,
    PRIMARY KEY (alert, output)
);
CREATE INDEX mesh_alert_out_next ON mesh_alert_out (output, next_s) WHERE next_s IS NOT NULL;
";

/// A result is found by its record: identifiers of records sort by time, so it grows at its end.
const STEP_3: &str = "CREATE INDEX mesh_result_record ON mesh_result (record);";

/// Brings the tables to this version, all steps or none.
pub(super) fn migrate(link: &mut PooledConnection, shown: &str) -> Result<(), Failure> {
    let PooledConnection { runtime, client, .. } = link;
    let storage = |error: &tokio_postgres::Error| database_failure("open store", shown, error);
    let found = runtime.block_on(version(client)).map_err(|error| storage(&error))?;
    if check_version(found, shown)? == STEPS.len() {
        return Ok(());
    }
    // Another process may have done the steps while this one waited for the lock.
    let found = runtime.block_on(locked(client)).map_err(|error| storage(&error))?;
    let done = check_version(found, shown)?;
    runtime.block_on(apply_steps(client, done)).map_err(|error| storage(&error))
}

/// The steps already done; a number beyond ours is a newer program's.
fn check_version(found: i32, shown: &str) -> Result<usize, Failure> {
    let newest = STEPS.len();
    usize::try_from(found).ok().filter(|&found| found <= newest).ok_or_else(|| {
        let reason =
            format!("its tables are of version {found}; this linerate knows up to {newest}");
        Failure::new(Fault::System, "open store", shown, reason)
            .advise("use the newer linerate, or name another database")
    })
}

async fn version(client: &Client) -> Result<i32, tokio_postgres::Error> {
    let known = "SELECT to_regclass('mesh_version') IS NOT NULL";
    if !client.query_one_scalar::<bool, _>(known, &[]).await? {
        return Ok(0);
    }
    client.query_one_scalar("SELECT coalesce(max(version), 0) FROM mesh_version", &[]).await
}

async fn locked(client: &Client) -> Result<i32, tokio_postgres::Error> {
    client.batch_execute("BEGIN").await?;
    client.execute("SELECT pg_advisory_xact_lock($1)", &[&LOCK]).await?;
    let table = "CREATE TABLE IF NOT EXISTS mesh_version (version integer NOT NULL)";
    client.batch_execute(table).await?;
    version(client).await
}

async fn apply_steps(client: &Client, done: usize) -> Result<(), tokio_postgres::Error> {
    for step in STEPS.iter().skip(done) {
        client.batch_execute(step).await?;
    }
    let version = i32::try_from(STEPS.len()).expect("a handful of steps");
    client.execute("DELETE FROM mesh_version", &[]).await?;
    client.execute("INSERT INTO mesh_version VALUES ($1)", &[&version]).await?;
    client.batch_execute("COMMIT").await
}
