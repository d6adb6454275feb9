//! The memory of linerate: every record and every study run in one SQLite file.
//!
//! The document of a record is kept as the JSON it is everywhere else; the columns beside it are
//! for finding it. What [`Store::put_record`] returned for survives a killed process and a power
//! cut (WAL with synchronous=FULL, sqlite.org/pragma.html#pragma_synchronous). `spec/store.md`
//! describes the file. Comparing and rendering are the report's.

mod add_up;
mod alerts;
mod alive;
#[cfg(feature = "scale")]
mod archive;
mod bookings;
mod entry;
mod fault;
mod figures;
mod find;
mod follow;
mod forget;
mod happened;
mod hub;
mod incidents;
mod lines;
mod location;
mod mesh;
mod newest;
#[cfg(feature = "scale")]
mod postgres;
mod read_only;
mod records;
mod runs;
mod schedule;
mod schema;
mod set_back;
mod sketches;
mod spool;
mod watch;
mod word;

pub use alerts::{DueAlert, NewAlert, Outbox};
#[cfg(feature = "scale")]
pub use archive::{Archived, Day, DayRun, Takes, TaskPath as DayPath, ToArchive, archive};
pub use bookings::{Booked, NewBooking};
pub use entry::{FoundResult, HistoryEntry, HistoryFilter, NewStudyRun, StudyRun, StudyState};
pub use fault::is_full;
pub use find::CompletionKind;
pub use follow::{TAG_PLAN, TAG_SLOT, TAG_WHY};
pub use forget::{Forgotten, TAG_KEEP};
pub use happened::HAPPENED_KEPT_S;
pub use hub::{AgentRun, HubPlace, HubStore, SpreadQuery};
pub use lines::{LineFilter, ResultLine};
pub use location::{check_place, default_path};
pub use mesh::{Joined, KeptPlan, MeshSelf, OutcomeCount};
pub use newest::TaskState;
pub use schedule::{ScheduleEvent, SeriesValue, StoredSchedule};
pub use sketches::{DAY_S, HOUR_S, Sketched};
pub use spool::TAG_RAW;
pub use watch::{Marks, OutgoingAlert, TaskNote, WatchStore};

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use linerate_core::record::{Failure, Fault};
use rusqlite::{Connection, OpenFlags};

/// Time that a writer waits for the lock of another process that writes.
const BUSY_WAIT: Duration = Duration::from_secs(10);

/// Time that a reader waits for the lock of a process that writes.
const LOOK_WAIT: Duration = Duration::from_millis(100);

/// An open store of results: one SQLite file.
#[derive(Debug)]
pub struct Store {
    connection: Connection,
    path: PathBuf,
    /// Lock that is held while this process measures a run of a study.
    at_work: Option<File>,
}

impl Store {
    /// Opens the store of this user: `LINERATE_STORE`, or `linerate/results.db` in the XDG data
    /// directory. Makes it when it is not there.
    /// # Errors
    /// See [`Store::open`]; also when neither variable nor home directory tells where it
    /// is.
    pub fn open_default() -> Result<Self, Failure> {
        Self::open(&default_path()?)
    }

    /// Opens the store in the file `path`, makes it when it is not there, and brings an older one
    /// to this version's tables. Of directories it makes that of this user's stores alone.
    /// # Errors
    /// One line for a file that cannot be made, read or written, that is no store, or that a newer
    /// version has written.
    pub fn open(path: &Path) -> Result<Self, Failure> {
        location::make_parent(path)?;
        let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        Self::open_with(path, create)
    }

    /// Opens the store in the file `path` to read what it has; makes none. One that may not be
    /// written is opened all the same, and refuses to change.
    /// # Errors
    /// See [`Store::open`]; also when there is no such file.
    pub fn open_existing(path: &Path) -> Result<Self, Failure> {
        if !path.exists() {
            let object = path.display().to_string();
            return Err(Failure::new(Fault::Usage, "open store", object, "no such file")
                .advise("name an existing store, or omit --store for the default one"));
        }
        if read_only::is_read_only(path) {
            return Self::open_read_only(path);
        }
        Self::open_with(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
    }

    fn open_read_only(path: &Path) -> Result<Self, Failure> {
        let failed = |error| fault::storage("open store", path, &error);
        let mut connection = read_only::open_connection(path).map_err(failed)?;
        connection.busy_timeout(BUSY_WAIT).map_err(failed)?;
        schema::migrate(&mut connection, path)?;
        Ok(Self { connection, path: path.to_owned(), at_work: None })
    }

    /// Opens the store in the file `path` to look something up at once: as it is, without bringing
    /// it to this version's tables, and without waiting for another process that writes.
    /// # Errors
    /// One line for a file that is not there or cannot be read now.
    pub fn open_for_lookup(path: &Path) -> Result<Self, Failure> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = || {
            let connection = match read_only::is_read_only(path) {
                true => read_only::open_connection(path)?,
                false => Connection::open_with_flags(path, flags)?,
            };
            connection.busy_timeout(LOOK_WAIT)?;
            Ok(Self { connection, path: path.to_owned(), at_work: None })
        };
        open().map_err(|error| fault::storage("open store", path, &error))
    }

    fn open_with(path: &Path, flags: OpenFlags) -> Result<Self, Failure> {
        // No SQLITE_OPEN_URI: a file may be called anything.
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags)
            .map_err(|error| fault::storage("open store", path, &error))?;
        let mut store = Self { connection, path: path.to_owned(), at_work: None };
        store.configure().map_err(|error| store.storage_failure("open store", &error))?;
        schema::migrate(&mut store.connection, path)?;
        Ok(store)
    }

    /// Path of the store's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn configure(&self) -> rusqlite::Result<()> {
        self.connection.busy_timeout(BUSY_WAIT)?;
        // A file system that cannot do WAL (some network ones) keeps its rollback journal, which
        // is as safe and only slower.
        self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(()))?;
        self.connection.pragma_update(None, "synchronous", "FULL")?;
        self.connection.pragma_update(None, "foreign_keys", true)
    }

    /// A storage error on this file as one line.
    fn storage_failure(&self, attempt: &str, error: &rusqlite::Error) -> Failure {
        fault::storage(attempt, &self.path, error)
    }
}

#[cfg(test)]
mod booking_tests;
#[cfg(test)]
mod forget_tests;
#[cfg(test)]
mod mesh_tests;
#[cfg(test)]
mod schedule_tests;
#[cfg(test)]
mod tests;
