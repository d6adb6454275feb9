//! SQLite's errors as one line with a next step.

use std::path::Path;

use linerate_core::record::{Failure, FailureCode, Fault};
use rusqlite::ErrorCode;

/// A failure of SQLite with advice by its result code (sqlite.org/rescode.html).
pub(super) fn storage(attempt: &str, path: &Path, error: &rusqlite::Error) -> Failure {
    let failure = Failure::new(Fault::System, attempt, path.display().to_string(), reason(error));
    let full = error.sqlite_error_code() == Some(ErrorCode::DiskFull);
    let failure = failure.with_code(full.then_some(FailureCode::NoRoom));
    match advice(error) {
        Some(next_step) => failure.advise(next_step),
        None => failure,
    }
}

/// True for a failure because the disk is full.
pub fn is_full(failure: &Failure) -> bool {
    failure.code == Some(FailureCode::NoRoom)
}

fn reason(error: &rusqlite::Error) -> String {
    let text = match error {
        rusqlite::Error::SqliteFailure(code, None) => code.to_string(),
        rusqlite::Error::SqliteFailure(_, Some(text)) => text.clone(),
        other => other.to_string(),
    };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn advice(error: &rusqlite::Error) -> Option<&'static str> {
    Some(match error.sqlite_error_code()? {
        ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt => {
            "move the file away, or name another by --store"
        }
        ErrorCode::DiskFull => "make room there, or name another place by --store",
        ErrorCode::ReadOnly | ErrorCode::PermissionDenied => {
            "make it writable, or name another by --store"
        }
        ErrorCode::CannotOpen => "name a file that can be made by --store or LINERATE_STORE",
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => {
            "another process holds it; try again when that one has ended"
        }
        ErrorCode::SystemIoFailure => "check the disk and the kernel's log",
        _ => return None,
    })
}
