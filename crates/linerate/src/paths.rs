//! Where the program keeps things, by the XDG Base Directory Specification.

use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, Fault, Record};
use linerate_engine::failure::words_of;
use linerate_server::store::{Store, default_path};

/// The store that a flag names, else this user's.
/// # Errors
/// One line when it cannot be opened.
pub(crate) fn open_store(flag: Option<&Path>) -> Result<Store, Failure> {
    flag.map_or_else(Store::open_default, Store::open)
}

/// The store that a flag names, else this user's, to read from it. Nothing is made: without a
/// result so far this user has no store, and its path comes back instead.
/// # Errors
/// One line when it cannot be opened, or when the named one is not there.
pub(crate) fn stored(flag: Option<&Path>) -> Result<Result<Store, PathBuf>, Failure> {
    if let Some(named) = flag {
        return Store::open_existing(named).map(Ok);
    }
    let path = default_path()?;
    if path.exists() { Store::open_existing(&path).map(Ok) } else { Ok(Err(path)) }
}

/// The same for a command that has nothing to do without a result.
/// # Errors
/// Also when this user has no store yet.
pub(crate) fn filled(flag: Option<&Path>) -> Result<Store, Failure> {
    stored(flag)?.map_err(|path| {
        let object = path.display().to_string();
        Failure::new(Fault::Usage, "open store", object, "it has no results yet")
            .advise("run a measurement, or name another store with --store")
    })
}

/// Where reports go when no flag names a place: `reports` beside the store.
/// # Errors
/// When nothing tells where the store is.
pub(crate) fn reports(store: Option<&Path>) -> Result<PathBuf, Failure> {
    let store = store.map_or_else(default_path, |path| Ok(path.to_owned()))?;
    Ok(store.parent().unwrap_or_else(|| Path::new("")).join("reports"))
}

/// Writes one file of a report.
/// # Errors
/// One line when it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failure = |error: std::io::Error| {
        Failure::new(Fault::System, "write", path.display().to_string(), words_of(&error))
            .advise("free some space, or name another place")
    };
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent).map_err(failure)?;
    }
    std::fs::write(path, text).map_err(failure)
}

/// Tries whether a file that the user named can be written, and leaves it as it was. No directory
/// is made for it: one that is not there is more often a slip than a wish.
/// # Errors
/// One line when it cannot be.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let known = std::fs::metadata(path);
    // A device or a pipe may wait for its reader.
    if known.as_ref().is_ok_and(|it| !it.is_file() && !it.is_dir()) {
        return Ok(());
    }
    let opened = std::fs::File::options().append(true).create(true).open(path);
    if let Err(error) = opened {
        let folder = path.parent().filter(|it| !it.as_os_str().is_empty() && !it.exists());
        let failure = |object: &Path| {
            Failure::new(Fault::Usage, "write", object.display().to_string(), words_of(&error))
        };
        return Err(match folder {
            Some(folder) => failure(path).advise(format!("make {} first", folder.display())),
            None => failure(path).advise("name a file that this user may write"),
        });
    }
    if known.is_err() {
        // It was made by the trial.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// Reads a text file that the user named.
/// # Errors
/// One line when it cannot be read or is no UTF-8.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| {
        Failure::new(Fault::Usage, "read", path.display().to_string(), words_of(&error))
    })
}

/// A record on one line.
/// # Errors
/// When it cannot be written as JSON, which no record of this program is.
pub(crate) fn json(record: &Record) -> Result<String, Failure> {
    linerate_core::tree::to_json(record)
        .map_err(|error| Failure::new(Fault::System, "write record", record.id.to_string(), error))
}
