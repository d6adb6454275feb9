//! A day of a mesh as one file of Parquet, and out of its hub's store.
//!
//! The file has its name once it is whole and on the disk, and never takes another's place. A day
//! leaves the store only after the file was read back and has each run that the store has.

mod columns;
mod day;
mod sqlite;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::path::{Path as FilePath, PathBuf};

use linerate_core::record::{Failure, FailureCode, Fault};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use serde::Serialize;
use tempfile::NamedTempFile;

use self::columns::DayColumns;
pub(super) use self::day::{AT_ONCE, differs};
pub use self::day::{Day, DayRun, Takes, TaskPath};
use super::HubStore;

/// Options of [`archive`]: the day, the directory and what follows.
#[derive(Clone, Copy, Debug)]
pub struct ToArchive<'a> {
    /// Name of the mesh.
    pub mesh: &'a str,
    /// Day whose runs are written, in UTC.
    pub day: &'a Day,
    /// Directory that the file is written into.
    pub into: &'a FilePath,
    /// True where the day's runs are deleted from the store afterwards.
    pub drops: bool,
}

/// The file that [`archive`] wrote.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Archived {
    /// Name of the mesh.
    pub mesh: String,
    /// Day of the file in UTC, as `2026-11-25`.
    pub day: String,
    /// Path of the file.
    pub file: PathBuf,
    /// Its rows, each a run.
    pub runs: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Row groups of the Parquet file.
    pub row_groups: u64,
    /// True where the day's runs were deleted from the store.
    pub dropped: bool,
}

/// Writes a day's runs into `MESH-DAY.parquet`. `goes_on` is told how many runs were written; where
/// it says no, nothing is left and there is nothing to tell.
/// # Errors
/// One line where there is such a file, no run of that day, or something cannot be read or written.
pub fn archive(
    store: &mut dyn HubStore,
    what: ToArchive<'_>,
    goes_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<Archived>, Failure> {
    let ToArchive { mesh, day, into, drops } = what;
    let name = format!("{mesh}-{}.parquet", day.date);
    let path = into.join(&name);
    if path.symlink_metadata().is_ok() {
        return Err(is_there(&path));
    }
    let prefix = format!(".{name}.");
    let mut builder = tempfile::Builder::new();
    builder.prefix(&prefix).suffix(".part");
    // As any file of this user: tempfile's own are closed to others.
    let permissions = std::os::unix::fs::PermissionsExt::from_mode(0o666);
    let file = builder.permissions(permissions).tempfile_in(into);
    let file = file.map_err(|error| cannot(Fault::Usage, &path, error))?;
    let clone = file.as_file().try_clone().map_err(|error| cannot(Fault::System, &path, error))?;
    let mut writer = DayWriter::new(clone, mesh, day).map_err(|error| broken(&path, &error))?;
    let mut stopped = false;
    store.read_day_runs(mesh, day.span_seconds(), &mut |of, runs| {
        for run in &runs {
            writer.push(of, run).map_err(|error| broken(&path, &error))?;
        }
        stopped = !goes_on(writer.runs);
        Ok(!stopped)
    })?;
    if stopped {
        return Ok(None);
    }
    if writer.runs == 0 {
        let reason = format!("{} has no run of that day", store.location_name());
        return Err(Failure::new(
            Fault::Usage,
            "archive",
            format!("{mesh} of {}", day.date),
            reason,
        ));
    }
    let written = writer.close().map_err(|error| broken(&path, &error))?;
    file.as_file().sync_all().map_err(|error| cannot(Fault::System, &path, error))?;
    if drops && !written.is_read_back(file.path(), &path, goes_on)? {
        return Ok(None);
    }
    let bytes = persist_file(file, &path)?;
    if drops {
        store.day_goes(mesh, day, written.runs)?;
    }
    Ok(Some(Archived {
        mesh: mesh.to_owned(),
        day: day.date.clone(),
        file: path,
        runs: written.runs,
        bytes,
        row_groups: u64::try_from(written.digests.len()).unwrap_or(u64::MAX),
        dropped: drops,
    }))
}

/// Gives a file that is whole its name, if nobody else has it; its size.
fn persist_file(file: NamedTempFile, path: &FilePath) -> Result<u64, Failure> {
    let system = |error| cannot(Fault::System, path, error);
    let file = file.persist_noclobber(path).map_err(|error| match error.error.kind() {
        std::io::ErrorKind::AlreadyExists => is_there(path),
        _ => system(error.error),
    })?;
    // The name, too, is on the disk before the store forgets anything.
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = File::open(directory.unwrap_or_else(|| FilePath::new(".")));
    directory.and_then(|directory| directory.sync_all()).map_err(system)?;
    file.metadata().map(|metadata| metadata.len()).map_err(system)
}

/// Writes runs in their order.
struct DayWriter {
    file: SerializedFileWriter<File>,
    columns: DayColumns,
    runs: u64,
    digests: Vec<u64>,
}

impl DayWriter {
    fn new(file: File, mesh: &str, day: &Day) -> Result<Self, ParquetError> {
        let about = [("linerate.mesh", mesh), ("linerate.day", day.date.as_str())];
        let file =
            SerializedFileWriter::new(file, columns::schema()?, columns::properties(about)?)?;
        Ok(Self { file, columns: DayColumns::default(), runs: 0, digests: Vec::new() })
    }

    fn push(&mut self, path: TaskPath<'_>, run: &DayRun) -> Result<(), ParquetError> {
        self.columns.push(path, run);
        self.runs += 1;
        if self.columns.is_full() { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), ParquetError> {
        let columns = std::mem::take(&mut self.columns);
        self.digests.push(columns.digest());
        columns.write(&mut self.file)
    }

    fn close(mut self) -> Result<WrittenDay, ParquetError> {
        if self.columns.row_count() > 0 {
            self.flush()?;
        }
        self.file.close()?;
        Ok(WrittenDay { runs: self.runs, digests: self.digests })
    }
}

/// Counts and digests of a written file, to compare it when it is read back.
struct WrittenDay {
    runs: u64,
    /// A digest of each row group, in order.
    digests: Vec<u64>,
}

impl WrittenDay {
    /// Reads the whole file again and compares; false where that was not to go on.
    fn is_read_back(
        &self,
        file: &FilePath,
        path: &FilePath,
        goes_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<bool, Failure> {
        let file = File::open(file).map_err(|error| cannot(Fault::System, path, error))?;
        let mut found = (0, Vec::new());
        let reader = SerializedFileReader::new(file).map_err(|error| broken(path, &error))?;
        for at in 0..reader.num_row_groups() {
            let group = reader.get_row_group(at).map_err(|error| broken(path, &error))?;
            let columns = DayColumns::read(&*group).map_err(|error| broken(path, &error))?;
            found.0 += u64::try_from(columns.row_count()).unwrap_or(0);
            found.1.push(columns.digest());
            if !goes_on(self.runs) {
                return Ok(false);
            }
        }
        if found != (self.runs, self.digests.clone()) {
            let reason = format!("of {} runs {} were read back as written", self.runs, found.0);
            return Err(Failure::new(Fault::System, "read", path_text(path), reason)
                .advise("nothing was dropped; check the disk and the kernel's log"));
        }
        Ok(true)
    }
}

fn path_text(path: &FilePath) -> String {
    path.display().to_string()
}

fn is_there(path: &FilePath) -> Failure {
    Failure::new(Fault::Usage, "write", path_text(path), "it is there already")
        .advise("move it away, or name another directory with --into")
}

fn cannot(
    fault: Fault,
    path: &FilePath,
    error: impl std::borrow::Borrow<std::io::Error>,
) -> Failure {
    let error = error.borrow();
    let full = error.kind() == std::io::ErrorKind::StorageFull;
    let reason = linerate_sys::words_of(error);
    Failure::new(fault, "write", path_text(path), reason)
        .with_code(full.then_some(FailureCode::NoRoom))
        .advise("name a directory with room, which this user may write")
}

fn broken(path: &FilePath, error: &ParquetError) -> Failure {
    // What the disk says is inside.
    let io = match error {
        ParquetError::External(inner) => inner.downcast_ref::<std::io::Error>(),
        _ => None,
    };
    io.map_or_else(
        || Failure::new(Fault::System, "write", path_text(path), error.to_string()),
        |error| cannot(Fault::System, path, error),
    )
}
