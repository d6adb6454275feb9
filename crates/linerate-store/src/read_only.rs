//! A store that this program may read and not write: on a medium or a mount that is read-only, or
//! another user's.
//!
//! SQLite reads a file with a write-ahead log by a file of shared memory beside it, which cannot be
//! made there (sqlite.org/wal.html#readonly). One whose log is empty is read as immutable
//! (sqlite.org/c3ref/open.html): nobody changes what nobody may write.

use std::path::Path;

use linerate_sys::permission::may_write;
use rusqlite::{Connection, OpenFlags};

/// True where the file or its directory may not be written, so that SQLite cannot open it as usual.
pub(super) fn is_read_only(path: &Path) -> bool {
    is_read_only_by(path, may_write)
}

/// As [`is_read_only`], with the check of who may write as an argument.
fn is_read_only_by(path: &Path, may_write: impl Fn(&Path) -> bool) -> bool {
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or_else(|| Path::new("."));
    !may_write(path) || !may_write(parent)
}

/// Opens a store that cannot be written, without making files beside it.
pub(super) fn open_connection(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let readable = |connection: Connection| {
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    let plain = Connection::open_with_flags(path, flags).and_then(readable);
    if plain.is_ok() || has_log(path) {
        return plain;
    }
    let uri = format!("file:{}?immutable=1", escaped(path));
    Connection::open_with_flags(uri, flags | OpenFlags::SQLITE_OPEN_URI).and_then(readable)
}

/// True where the store's write-ahead log has changes that the file does not have yet.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// A path as part of a URI (sqlite.org/uri.html): every byte but plain ones by its number.
fn escaped(path: &Path) -> String {
    use std::os::unix::ffi::OsStrExt;
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-".contains(byte);
    let one = |byte: &u8| match plain(byte) {
        true => char::from(*byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    path.as_os_str().as_bytes().iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Store;

    /// The log and the shared memory are made beside the file, so that either is too little.
    #[test]
    fn a_file_or_a_directory_that_may_not_be_written_is_read_only() {
        for (path, parent) in [("/d/store.db", "/d"), ("store.db", ".")] {
            for (writable, read_only) in
                [(&[path, parent][..], false), (&[path], true), (&[parent], true), (&[], true)]
            {
                let may_write = |asked: &Path| writable.iter().any(|path| Path::new(path) == asked);
                let found = is_read_only_by(Path::new(path), may_write);
                assert_eq!(found, read_only, "{path} where only {writable:?} may be written");
            }
        }
    }

    #[test]
    fn a_file_that_nobody_writes_is_read_without_a_log_or_shared_memory() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a store?#%.db");
        drop(Store::open(&path).expect("a store"));
        assert!(!has_log(&path), "the last one that closed it took the log in");
        let uri = format!("file:{}?immutable=1", escaped(&path));
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
        let connection = Connection::open_with_flags(uri, flags).expect("it is there");
        let count: i64 = connection
            .query_row("SELECT count(*) FROM record", [], |row| row.get(0))
            .expect("the store's table");
        assert_eq!(count, 0);
        assert!(connection.execute("DELETE FROM record", []).is_err());
    }
}
