//! Runs of studies whose program was killed: no program is at work on them, and they do not stay
//! "running".
//!
//! A program that measures a run shares a lock of a file beside the store (flock(2)), which the
//! kernel takes back whatever ends the program. Where nobody has the lock, nobody measures.

use std::fs::File;
use std::path::{Path, PathBuf};

use linerate_core::record::Failure;
use rusqlite::params;

use super::{Store, StudyState};

/// The lock's file, beside the store.
fn lock_file_path(store: &Path) -> PathBuf {
    let mut name = store.as_os_str().to_owned();
    name.push(".runs.lock");
    PathBuf::from(name)
}

fn open_lock_file(store: &Path) -> std::io::Result<File> {
    File::options().read(true).write(true).create(true).truncate(false).open(lock_file_path(store))
}

impl Store {
    /// Holds the lock for as long as the store is open. A file system without locks goes without:
    /// runs there are not settled either.
    pub(super) fn is_at_work(&mut self) {
        if self.at_work.is_none() {
            let lock = open_lock_file(&self.path).ok();
            // Who settles has it for a moment.
            self.at_work = lock.filter(|file| file.lock_shared().is_ok());
        }
    }

    /// Runs that a killed program left running are interrupted from now on; how many there were.
    /// # Errors
    /// One line when the file cannot be written.
    pub fn settle_runs(&mut self) -> Result<usize, Failure> {
        // Kept until the change is made: no run begins meanwhile.
        let lock = if self.at_work.is_some() { None } else { open_lock_file(&self.path).ok() };
        if lock.as_ref().is_none_or(|lock| lock.try_lock().is_err()) {
            return Ok(0);
        }
        // When it ended is not known.
        let sql = "UPDATE study_run SET state = ?1 WHERE state = ?2";
        let states =
            params![StudyState::Interrupted.state_name(), StudyState::Running.state_name()];
        self.connection
            .execute(sql, states)
            .map_err(|error| self.storage_failure("store run in", &error))
    }
}
