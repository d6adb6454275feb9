//! Where the program keeps things, by the XDG Base Directory Specification.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use linerate_core::record::{Failure, FailureCode, Fault, Record};
use linerate_engine::failure::words_of;
use linerate_store::{Store, default_path};

/// The store that a flag names, else this user's.
/// # Errors
/// One line when it cannot be opened.
pub(crate) fn open_store(flag: Option<&Path>) -> Result<Store, Failure> {
    flag.map_or_else(Store::open_default, Store::open)
}

/// The store that a flag names, else this user's, opened for reading. Nothing is made: a user
/// without results has no store, and gets its path instead.
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
            .with_code(FailureCode::NoResult)
    })
}

/// Looks in the store for a name that the user gave to `command`; a name that no stored result has
/// is often a file's.
/// # Errors
/// One line when nothing is found, or when the store cannot be read.
pub(crate) fn find_result<T>(
    command: &str,
    name: &str,
    store: Option<&Path>,
    look: impl FnOnce(&mut Store) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let found = filled(store).and_then(|mut store| look(&mut store));
    found.map_err(|failure| match failure.code {
        Some(FailureCode::NoResult) if is_like_file(name) || Path::new(name).exists() => {
            no_file(command, name)
        }
        _ => failure,
    })
}

/// A name in the form of a file's: with a folder in it, or an ending.
pub(crate) fn is_like_file(name: &str) -> bool {
    let ending = Path::new(name).extension();
    name.contains('/') || ending.is_some_and(|text| ENDINGS.iter().any(|ending| text == *ending))
}

/// Endings of files that have results.
const ENDINGS: [&str; 8] = ["json", "jsonl", "txt", "log", "out", "csv", "pcap", "toml"];

/// The failure of a command that reads stored results, of a name that none has.
pub(crate) fn no_file(command: &str, name: &str) -> Failure {
    let path = Path::new(name);
    let failure = |reason: &str| Failure::new(Fault::Usage, command, name, reason);
    if path.is_dir() {
        return failure("it is a folder, and no stored result of this name is there")
            .advise("linerate history lists results");
    }
    if path.exists() {
        return failure("it is a file, and results of the store are read here")
            .advise("linerate explain reads files, linerate history lists results");
    }
    failure("no such file, and no stored result of this name")
        .advise("name one that is there: linerate history lists results")
}

/// Directory for the report of a run when no flag names one: its own in `reports` beside the store.
/// # Errors
/// When nothing tells where the store is, or `reports` cannot be made.
pub(crate) fn report_of(name: &str, store: Option<&Path>) -> Result<PathBuf, Failure> {
    let store = store.map_or_else(default_path, |path| Ok(path.to_owned()))?;
    let reports = store.parent().unwrap_or_else(|| Path::new("")).join("reports");
    make_folder(&reports)?;
    Ok(reports.join(name.replace('/', "-")))
}

/// Writes one file of a report. No directory is made for it: one that is not there is more often a
/// slip than a wish.
/// # Errors
/// One line when it cannot be written.
pub(crate) fn write(path: &Path, text: &str) -> Result<(), Failure> {
    write_bytes(path, text.as_bytes())
}

/// The same of a file that is no text.
/// # Errors
/// One line when it cannot be written.
pub(crate) fn write_bytes(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    std::fs::write(path, bytes).map_err(|error| unwritable("write", path, &error))
}

/// Makes the directory that a flag names where it is not there, but not the one that it is in.
/// # Errors
/// One line when it cannot be made.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    match std::fs::create_dir(path) {
        Err(error) if !path.is_dir() => Err(unwritable("make directory", path, &error)),
        _ => Ok(()),
    }
}

/// Tries whether a file that the user named can be written, and leaves it as it was.
/// # Errors
/// One line when it cannot be.
pub(crate) fn check_writable(path: &Path) -> Result<(), Failure> {
    let known = std::fs::metadata(path);
    // A device or a pipe may wait for its reader.
    if known.as_ref().is_ok_and(|path| !path.is_file() && !path.is_dir()) {
        return Ok(());
    }
    let opened = std::fs::File::options().append(true).create(true).open(path);
    opened.map_err(|error| unwritable("write", path, &error))?;
    if known.is_err() {
        // It was made by the trial.
        let _ = std::fs::remove_file(path);
    }
    Ok(())
}

/// The failure of an attempt to write a file, or to make a directory, that the user named.
pub(crate) fn unwritable(attempt: &str, path: &Path, error: &std::io::Error) -> Failure {
    let full = matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded);
    let fault = if full { Fault::System } else { Fault::Usage };
    let failure = Failure::new(fault, attempt, path.display().to_string(), words_of(error));
    match path.parent().filter(|path| !path.as_os_str().is_empty() && !path.exists()) {
        Some(folder) => failure.advise(format!("make {} first", folder.display())),
        None if full => failure.advise("free some space, or name another place"),
        None if attempt == "write" => failure.advise("name a file that this user may write"),
        None => failure.advise("name a directory that this user may write"),
    }
}

/// Reads a text file that the user named.
/// # Errors
/// One line when it cannot be read or is no UTF-8.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| unreadable("read", path, &error))
}

/// The failure of an attempt to read a file that the user named.
pub(crate) fn unreadable(attempt: &str, path: &Path, error: &std::io::Error) -> Failure {
    let failure = Failure::new(Fault::Usage, attempt, path.display().to_string(), words_of(error));
    failure.advise(match error.kind() {
        ErrorKind::NotFound => "name a file that is there",
        ErrorKind::IsADirectory => "name a file in it",
        ErrorKind::PermissionDenied => "name a file that this user may read",
        _ => "name a text file",
    })
}

/// A record on one line.
/// # Errors
/// When it cannot be written as JSON, which no record of this program is.
pub(crate) fn record_json(record: &Record) -> Result<String, Failure> {
    linerate_core::tree::to_json(record)
        .map_err(|error| Failure::new(Fault::System, "write record", record.id.to_string(), error))
}
